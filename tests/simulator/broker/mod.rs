//! The simulated broker: logs with transactions and retention, groups with sessions, and who can
//! reach it.

mod group;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rdkafka::TopicPartitionList;
use trueline::kafka::Rebalance;
use trueline::stats::rng::Rng;

use group::Group;

/// How long a group waits for a silent member.
pub const SESSION: Duration = Duration::from_secs(6);

/// Topic and partition.
pub type TopicPartition = (String, i32);

/// One offset of a log.
#[derive(Debug, Clone)]
pub struct Entry {
    pub time_ms: i64,
    /// When the broker appended it.
    pub appended: Duration,
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
    /// The transaction that it belongs to.
    pub transaction: Option<u32>,
    /// The end of a transaction, which no consumer sees.
    pub control: bool,
    /// Compaction has removed it.
    pub compacted: bool,
}

/// One partition.
#[derive(Debug, Default)]
pub struct Log {
    /// The first offset that is left.
    pub start: i64,
    pub entries: Vec<Entry>,
    /// Its leader is away until then.
    pub away: Duration,
}

impl Log {
    pub fn end(&self) -> i64 {
        self.entries.len() as i64
    }
}

/// How a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transaction {
    Open,
    Committed,
    Aborted,
}

/// What a member reads of a partition.
#[derive(Debug, Default)]
pub struct Fetch {
    pub next: i64,
    pub paused: bool,
    /// The end of the log by the last response, and when that was.
    pub end: Option<i64>,
    pub responded: Duration,
    /// The offset was out of range; reading goes on after the next assignment.
    pub stopped: bool,
}

/// A member of a group, as the broker and its client see it.
#[derive(Debug)]
pub struct Member {
    pub host: usize,
    pub group: String,
    pub topics: Vec<String>,
    /// Its process runs.
    pub alive: bool,
    /// The group knows it.
    pub joined: bool,
    heard: Duration,
    rejoins: Option<Duration>,
    pub assigned: BTreeMap<TopicPartition, Fetch>,
    pub events: VecDeque<(Duration, Rebalance, bool)>,
    /// The rebalance that is handled now takes away what was given to others already.
    pub lost: bool,
    pub statistics: Duration,
    /// The broker has told it how the group stands at least once.
    welcomed: bool,
    /// Another process has taken its `instance`.
    pub fenced: bool,
}

/// A host of a process.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// It cannot reach the broker until then.
    pub cut: Duration,
    /// It does not run until then.
    pub frozen: Duration,
    /// When another process took the `instance` of its process, which has nothing since; and
    /// whether that one was there first.
    pub fenced: Option<(Duration, bool)>,
    /// From when until when others may not know what it tells, or it may not know that they have
    /// taken over.
    pub unsettled: Vec<(Duration, Duration)>,
}

/// See the module.
#[derive(Debug)]
pub struct Broker {
    pub topics: BTreeMap<String, Vec<Log>>,
    pub transactions: BTreeMap<u32, Transaction>,
    pub hosts: Vec<Host>,
    pub members: BTreeMap<u64, Member>,
    /// Members of another program, each with the name of its client.
    pub strangers: BTreeMap<u64, String>,
    /// Since when one of them has a part of what a process should have.
    pub shared: Option<Duration>,
    groups: BTreeMap<String, Group>,
    pub rng: Rng,
    next_member: u64,
    /// The client loses the record after the end of a transaction.
    pub planted: bool,
    /// What a process has done that none may do.
    pub wrong: Option<&'static str>,
    /// Hash over everything that was handed over and written.
    pub trace: u64,
}

impl Broker {
    pub fn new(seed: u64, hosts: usize) -> Broker {
        Broker {
            topics: BTreeMap::new(),
            transactions: BTreeMap::new(),
            hosts: vec![Host::default(); hosts],
            members: BTreeMap::new(),
            strangers: BTreeMap::new(),
            shared: None,
            groups: BTreeMap::new(),
            rng: Rng::new(seed ^ 0xB20C),
            next_member: 0,
            planted: false,
            wrong: None,
            trace: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Adds to the trace.
    pub fn note(&mut self, what: &[u64]) {
        for word in what {
            self.trace = (self.trace ^ word)
                .wrapping_mul(0x0100_0000_01b3)
                .rotate_left(17);
        }
    }

    pub fn log(&self, topic: &str, partition: i32) -> Option<&Log> {
        self.topics
            .get(topic)?
            .get(usize::try_from(partition).ok()?)
    }

    pub fn log_mut(&mut self, topic: &str, partition: i32) -> Option<&mut Log> {
        let logs = self.topics.get_mut(topic)?;
        logs.get_mut(usize::try_from(partition).ok()?)
    }

    pub fn append(&mut self, topic: &str, partition: i32, entry: Entry) -> i64 {
        let log = self.log_mut(topic, partition).expect("the topic is there");
        log.entries.push(entry);
        log.end() - 1
    }

    /// The offset before which no transaction is open.
    pub fn stable(&self, topic: &str, partition: i32) -> i64 {
        let Some(log) = self.log(topic, partition) else {
            return 0;
        };
        let open = |e: &Entry| {
            let t = e.transaction.and_then(|t| self.transactions.get(&t));
            t == Some(&Transaction::Open)
        };
        let hidden = log.entries.iter().position(open);
        hidden.map_or(log.end(), |at| at as i64)
    }

    /// Whether a consumer of committed records sees the entry.
    pub fn is_seen(&self, entry: &Entry) -> bool {
        let of = entry.transaction.and_then(|t| self.transactions.get(&t));
        let committed = of.is_none_or(|t| *t == Transaction::Committed);
        committed && !entry.control && !entry.compacted
    }

    pub fn reaches(&self, host: usize, now: Duration) -> bool {
        self.hosts[host].cut <= now
    }

    /// A time between two numbers of ms.
    pub fn delay(&mut self, least: u64, most: u64) -> Duration {
        let ms = least + (self.rng.uniform() * (most - least) as f64) as u64;
        Duration::from_millis(ms)
    }

    /// Lets the fetchers of a host, or of a partition, learn how long the logs are now.
    pub fn refresh(&mut self, now: Duration) {
        let Broker {
            topics,
            hosts,
            members,
            ..
        } = self;
        for member in members.values_mut().filter(|m| m.alive) {
            let host = &hosts[member.host];
            if host.cut > now || host.frozen > now {
                continue;
            }
            for ((topic, partition), fetch) in &mut member.assigned {
                let log = topics
                    .get(topic)
                    .and_then(|logs| logs.get(*partition as usize));
                if let Some(log) = log.filter(|log| log.away <= now) {
                    fetch.end = Some(log.end());
                    fetch.responded = now;
                }
            }
        }
    }
}

/// Whether a client is that of a process that started before all others.
pub fn is_first(client: &str) -> bool {
    client.starts_with("trueline-1-")
}

/// Places as a list of the client.
pub fn list(partitions: &[TopicPartition]) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    for (topic, partition) in partitions {
        list.add_partition(topic, *partition);
    }
    list
}
