//! The clients of the simulated broker, and the workers of the simulated hosts.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rdkafka::consumer::CommitMode;
use rdkafka::error::{KafkaError as Native, KafkaResult};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};
use trueline::app::{AppError, Job, Worker, Workers};
use trueline::kafka::{
    Brokers, Ends, Events, Fetched, FollowState, Followed, GroupClient, Headers, KafkaError,
    KafkaOptions, PartitionStats, ReadState, Rebalance, WriteState,
};

use super::broker::{Broker, Entry, Fetch, Member, Place, list};
use super::clock;
use super::registry::{Fetching, Registry};
use super::sinks::{Parts, Receivers};

/// The broker, shared by all that can reach it.
pub type Shared = Arc<Mutex<Broker>>;

/// Time between two statistics.
const STATISTICS: Duration = Duration::from_secs(1);
/// How long a write to the state topic is tried.
const WRITE: Duration = Duration::from_secs(30);

thread_local! {
    /// A job of a worker runs, which waits for nobody.
    static IN_JOB: Cell<bool> = const { Cell::new(false) };
}

/// What runs beside the engine of a host.
#[derive(Default)]
pub struct Jobs {
    /// When it was handed over, when it is done at the earliest, whether it needs the broker.
    waiting: VecDeque<(Duration, Duration, bool, Job)>,
    /// The disk is this slow.
    pub slow: Duration,
}

impl Jobs {
    /// Whether nothing is to be done.
    pub fn waiting_none(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The client and the workers of the process of one host.
#[derive(Clone)]
pub struct Site {
    pub broker: Shared,
    pub host: usize,
    pub jobs: Arc<Mutex<Jobs>>,
    /// The process was killed: what it drops says good-bye to nobody.
    pub killed: Arc<Mutex<bool>>,
    /// The state directory.
    pub folder: PathBuf,
    pub parts: Arc<Mutex<Parts>>,
    pub receivers: Arc<Mutex<Receivers>>,
    pub registry: Arc<Mutex<Registry>>,
    /// The client of the registry, where records need one.
    pub fetching: Arc<Mutex<Option<Fetching>>>,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.host)
    }
}

pub fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().expect("no panic while it was held")
}

fn timeout<T>(within: Duration) -> KafkaResult<T> {
    if !IN_JOB.get() {
        clock::sleep(within);
    }
    Err(Native::MetadataFetch(Code::OperationTimedOut))
}

fn away<T>(within: Duration) -> Result<T, KafkaError> {
    if !IN_JOB.get() {
        clock::sleep(within);
    }
    Err(KafkaError::Other("the broker is away".to_owned()))
}

impl Site {
    pub fn reaches(&self) -> bool {
        lock(&self.broker).reaches(self.host, clock::now())
    }

    /// The clients of the process leave their groups, if they can say so; or those of this group.
    pub fn leave(&self, in_order: bool, group: Option<&str>) {
        let in_order = in_order && self.reaches();
        let mut broker = lock(&self.broker);
        let mine = broker.members.iter();
        let left = |m: &Member| group.is_none_or(|group| m.group == group);
        let mine = mine.filter(|(_, m)| m.host == self.host && m.alive && left(m));
        for id in mine.map(|(id, _)| *id).collect::<Vec<_>>() {
            broker.leave(id, in_order);
        }
    }

    /// Runs the jobs that are done by now.
    pub fn work(&self, now: Duration) {
        loop {
            let mut jobs = lock(&self.jobs);
            let Some((since, due, remote, _)) = jobs.waiting.front() else {
                return;
            };
            let held = *remote && !self.reaches() && now < *since + WRITE;
            if *due > now || held {
                return;
            }
            let (.., job) = jobs.waiting.pop_front().expect("it is there");
            drop(jobs);
            IN_JOB.set(true);
            job();
            IN_JOB.set(false);
        }
    }
}

struct SimulatedWorker {
    site: Site,
    remote: bool,
}

impl Worker for SimulatedWorker {
    fn start(&mut self, job: Job) -> bool {
        let now = clock::now();
        let takes = lock(&self.site.broker).delay(1, 300);
        let mut jobs = lock(&self.site.jobs);
        let slow = if self.remote {
            Duration::ZERO
        } else {
            jobs.slow
        };
        jobs.waiting
            .push_back((now, now + takes + slow, self.remote, job));
        true
    }

    fn ends_within(&mut self, within: Duration) -> bool {
        let until = clock::now().saturating_add(within);
        while let Some(due) = {
            let jobs = lock(&self.site.jobs);
            jobs.waiting.front().map(|(since, due, remote, _)| {
                let cut = lock(&self.site.broker).hosts[self.site.host].cut;
                if *remote {
                    (*due).max(cut.min(*since + WRITE))
                } else {
                    *due
                }
            })
        } {
            if due > until {
                clock::sleep(until.saturating_sub(clock::now()));
                return false;
            }
            clock::sleep(due.saturating_sub(clock::now()));
            self.site.work(clock::now());
        }
        true
    }
}

impl Workers for Site {
    fn worker(&self, name: &str) -> Result<Box<dyn Worker>, AppError> {
        Ok(Box::new(SimulatedWorker {
            site: self.clone(),
            remote: name == "checkpoints",
        }))
    }
}

impl Brokers for Site {
    fn join(&self, options: &KafkaOptions) -> Result<Box<dyn GroupClient>, KafkaError> {
        let now = clock::now();
        // The client before is dropped on a thread of its own.
        self.leave(true, Some(&options.group));
        let mut broker = lock(&self.broker);
        if options.instance.is_some() && options.group == "g" {
            broker.unfence(self.host);
        }
        let id = broker.join(self.host, &options.group, options.subscribed(), now);
        drop(broker);
        Ok(Box::new(Client {
            site: self.clone(),
            id,
            topics: options.topics.clone(),
        }))
    }

    fn state_reader(
        &self,
        _: &KafkaOptions,
        topic: &str,
        _: usize,
    ) -> Result<Box<dyn ReadState>, KafkaError> {
        Ok(Box::new(self.state(topic)))
    }

    fn state_writer(
        &self,
        _: &KafkaOptions,
        topic: &str,
    ) -> Result<Arc<dyn WriteState>, KafkaError> {
        Ok(Arc::new(self.state(topic)))
    }

    fn claim_writer(
        &self,
        options: &KafkaOptions,
        topic: &str,
    ) -> Result<Arc<dyn WriteState>, KafkaError> {
        self.state_writer(options, topic)
    }

    fn state_follower(
        &self,
        _: &KafkaOptions,
        topic: &str,
    ) -> Result<Box<dyn FollowState>, KafkaError> {
        Ok(Box::new(self.state(topic)))
    }
}

impl Site {
    fn state(&self, topic: &str) -> State {
        State {
            site: self.clone(),
            topic: topic.to_owned(),
            next: Mutex::default(),
        }
    }
}

/// A member of a group.
struct Client {
    site: Site,
    id: u64,
    topics: Vec<String>,
}

/// A record on its way to the consumer.
struct Taken {
    topic: usize,
    partition: i32,
    offset: i64,
    /// `None` if the offset is out of range.
    entry: Option<Entry>,
}

impl Client {
    fn with<T>(&self, f: impl FnOnce(&mut Broker, u64) -> T) -> T {
        f(&mut lock(&self.site.broker), self.id)
    }

    /// What is ready now, of one partition after the other.
    fn fetch(&self, max: usize) -> Vec<Taken> {
        let now = clock::now();
        let mut broker = lock(&self.site.broker);
        let (host, topics) = (self.site.host, &self.topics);
        if !broker.reaches(host, now) {
            return Vec::new();
        }
        let first = (broker.rng.uniform() * 64.0) as usize;
        // Batches of librdkafka were seen to hold messages of an earlier fetch.
        let again = broker.rng.uniform() < 0.002;
        let many = 1 + (broker.rng.uniform() * 200.0) as usize;
        let Some(mut member) = broker.members.remove(&self.id) else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        let count = member.assigned.len().max(1);
        let places: Vec<Place> = member.assigned.keys().cloned().collect();
        for i in 0..places.len() {
            let (name, partition) = &places[(i + first) % count];
            let fetch = member.assigned.get_mut(&places[(i + first) % count]);
            let (Some(fetch), Some(topic)) = (fetch, topics.iter().position(|t| t == name)) else {
                continue;
            };
            let stable = broker.stable(name, *partition);
            let Some(log) = broker.log(name, *partition) else {
                continue;
            };
            if fetch.paused || fetch.stopped || log.away > now {
                continue;
            }
            fetch.end = Some(log.end());
            fetch.responded = now;
            if fetch.next < log.start || fetch.next > log.end() {
                fetch.stopped = true;
                taken.push(Taken {
                    topic,
                    partition: *partition,
                    offset: fetch.next,
                    entry: None,
                });
                continue;
            }
            let until = stable.min(fetch.next + many as i64);
            if again && fetch.next > log.start && taken.len() < max {
                let entry = &log.entries[fetch.next as usize - 1];
                if broker.is_seen(entry) {
                    let (offset, entry) = (fetch.next - 1, Some(entry.clone()));
                    taken.push(Taken {
                        topic,
                        partition: *partition,
                        offset,
                        entry,
                    });
                }
            }
            while fetch.next < until && taken.len() < max {
                let entry = &log.entries[fetch.next as usize];
                let after = fetch.next > 0 && log.entries[fetch.next as usize - 1].control;
                if broker.is_seen(entry) && !(broker.planted && after) {
                    let (offset, entry) = (fetch.next, Some(entry.clone()));
                    taken.push(Taken {
                        topic,
                        partition: *partition,
                        offset,
                        entry,
                    });
                }
                fetch.next += 1;
            }
        }
        for t in &taken {
            let words = [
                now.as_nanos() as u64,
                host as u64,
                t.partition as u64,
                t.offset as u64,
            ];
            broker.note(&words);
        }
        broker.members.insert(self.id, member);
        taken
    }
}

impl GroupClient for Client {
    fn serve(&mut self, _: &mut dyn FnMut(Fetched<'_>)) -> Events {
        let (now, at) = (clock::now(), Instant::now());
        let mut broker = lock(&self.site.broker);
        broker.refresh(now);
        let mut events = Events::default();
        let Some(mut member) = broker.members.remove(&self.id) else {
            return events;
        };
        if member.fenced && broker.reaches(self.site.host, now) {
            let text = "the instance is in use".to_owned();
            events.errors.push((Code::Fatal, text));
        }
        if member.events.front().is_some_and(|(due, ..)| *due <= now) {
            let (_, rebalance, lost) = member.events.pop_front().expect("it is there");
            member.lost = lost;
            if matches!(rebalance, Rebalance::Assign(_)) && member.group == "g" {
                broker.hosts[self.site.host].fenced = None;
            }
            events.rebalances.push_back(rebalance);
        }
        if member.statistics <= now {
            member.statistics = now + STATISTICS;
            for ((topic, partition), fetch) in &member.assigned {
                let stable = broker.stable(topic, *partition);
                let fresh = fetch.end.filter(|_| !fetch.stopped);
                events.statistics.extend(fresh.map(|end| PartitionStats {
                    topic: topic.clone(),
                    partition: *partition,
                    end,
                    stable: Some(stable.min(end)),
                    next: Some(fetch.next).filter(|_| !fetch.paused),
                    responded: at.checked_sub(now.saturating_sub(fetch.responded)),
                }));
            }
        }
        broker.members.insert(self.id, member);
        events
    }

    fn fatal_error(&self) -> Option<KafkaError> {
        let fenced = self.with(|broker, id| broker.members.get(&id).is_some_and(|m| m.fenced));
        fenced.then(|| KafkaError::Fenced("the instance is in use".to_owned()))
    }

    fn members(&self, group: &str, within: Duration) -> KafkaResult<Vec<(String, String)>> {
        if !self.site.reaches() {
            return timeout(within);
        }
        // Processes of this program share a group by a state topic here, or are alone.
        Ok(self.with(|broker, _| {
            let all = broker.strangers.iter();
            let here =
                all.filter(|(id, _)| broker.members.get(id).is_some_and(|m| m.group == group));
            here.map(|(_, client)| ("elsewhere".to_owned(), client.clone()))
                .collect()
        }))
    }

    fn take(&mut self, max: usize, timeout: Duration, batch: &mut dyn FnMut(&[Fetched<'_>])) {
        let mut taken = self.fetch(max);
        if taken.is_empty() && !timeout.is_zero() {
            clock::sleep(timeout);
            taken = self.fetch(max);
        }
        let messages = taken.iter().map(|t| {
            let entry = t.entry.as_ref();
            Fetched {
                topic: t.topic,
                partition: t.partition,
                offset: t.offset,
                timestamp_ms: entry.map(|e| e.time_ms),
                key: entry.map(|e| e.key.as_slice()),
                payload: entry.and_then(|e| e.value.as_deref()).unwrap_or_default(),
                headers: Headers::default(),
                error: if entry.is_some() {
                    0
                } else {
                    Code::AutoOffsetReset as i32
                },
            }
        });
        batch(&messages.collect::<Vec<_>>());
    }

    fn forward(&self, _: &str, _: i32) {}

    fn unforward(&self, _: &str, _: i32) {}

    fn end(&self, topic: &str, partition: i32) -> Option<i64> {
        let place = (topic.to_owned(), partition);
        self.with(|broker, id| broker.members.get(&id)?.assigned.get(&place)?.end)
    }

    fn position(&self) -> KafkaResult<TopicPartitionList> {
        self.with(|broker, id| {
            let mut list = TopicPartitionList::new();
            let assigned = broker.members.get(&id).map(|m| &m.assigned);
            for ((topic, partition), fetch) in assigned.into_iter().flatten() {
                list.add_partition_offset(topic, *partition, Offset::Offset(fetch.next))?;
            }
            Ok(list)
        })
    }

    fn assignment(&self) -> KafkaResult<TopicPartitionList> {
        self.with(|broker, id| {
            let assigned = broker.members.get(&id).map(|m| m.assigned.keys().cloned());
            Ok(list(&assigned.into_iter().flatten().collect::<Vec<_>>()))
        })
    }

    fn accept(&self, with_offsets: &TopicPartitionList) -> KafkaResult<()> {
        self.assign(with_offsets)
    }

    fn give_back(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        self.with(|broker, id| {
            for e in list.elements() {
                broker.give_back(id, &(e.topic().to_owned(), e.partition()));
            }
        });
        Ok(())
    }

    fn assign(&self, with_offsets: &TopicPartitionList) -> KafkaResult<()> {
        self.with(|broker, id| {
            for e in with_offsets.elements() {
                let place = (e.topic().to_owned(), e.partition());
                let stored = |b: &Broker| {
                    let group = b
                        .members
                        .get(&id)
                        .map(|m| m.group.clone())
                        .unwrap_or_default();
                    b.committed(&group, &place).map_or(0, |(offset, _)| offset)
                };
                let next = match e.offset() {
                    Offset::Offset(offset) => offset,
                    _ => stored(broker),
                };
                if let Some(member) = broker.members.get_mut(&id) {
                    let fetch = Fetch {
                        next,
                        ..Fetch::default()
                    };
                    member.assigned.insert(place, fetch);
                }
            }
        });
        Ok(())
    }

    fn unassign(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        // A client that was replaced is dropped on a thread of its own, and when that runs no seed says.
        if !clock::is_simulated() {
            return Ok(());
        }
        self.with(|broker, id| {
            let Some(member) = broker.members.get_mut(&id) else {
                return;
            };
            for e in list.elements() {
                member
                    .assigned
                    .remove(&(e.topic().to_owned(), e.partition()));
            }
        });
        Ok(())
    }

    fn assignment_lost(&self) -> bool {
        self.with(|broker, id| broker.members.get(&id).is_some_and(|m| m.lost))
    }

    fn pause(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        self.set_paused(list, true)
    }

    fn resume(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        self.set_paused(list, false)
    }

    fn commit(&self, offsets: &TopicPartitionList, _: CommitMode) -> KafkaResult<()> {
        if self.site.reaches() {
            self.with(|broker, id| broker.commit(id, offsets));
        }
        Ok(())
    }

    fn partitions(&self, topic: &str, within: Duration) -> KafkaResult<usize> {
        match self.site.reaches() {
            true => Ok(self.with(|broker, _| broker.topics.get(topic).map_or(0, Vec::len))),
            false => timeout(within),
        }
    }

    fn committed(
        &self,
        list: TopicPartitionList,
        within: Duration,
    ) -> KafkaResult<TopicPartitionList> {
        if !self.site.reaches() {
            return timeout(within);
        }
        self.with(|broker, id| {
            let group = broker
                .members
                .get(&id)
                .map(|m| m.group.clone())
                .unwrap_or_default();
            let mut found = TopicPartitionList::new();
            for e in list.elements() {
                let committed = broker.committed(&group, &(e.topic().to_owned(), e.partition()));
                let mut entry = found.add_partition(e.topic(), e.partition());
                if let Some((offset, metadata)) = committed {
                    entry.set_offset(Offset::Offset(offset))?;
                    if let Some(metadata) = metadata {
                        entry.set_metadata(metadata);
                    }
                }
            }
            Ok(found)
        })
    }

    fn committed_afresh(
        &self,
        _: &KafkaOptions,
        list: TopicPartitionList,
        within: Duration,
    ) -> Result<TopicPartitionList, KafkaError> {
        self.committed(list, within)
            .map_err(|error| KafkaError::Other(error.to_string()))
    }

    fn offsets_for_times(
        &self,
        _: TopicPartitionList,
        within: Duration,
    ) -> KafkaResult<TopicPartitionList> {
        timeout(within)
    }

    fn watermarks(&self, topic: &str, partition: i32, within: Duration) -> KafkaResult<(i64, i64)> {
        let now = clock::now();
        let ends = self.with(|broker, _| {
            let log = broker.log(topic, partition).filter(|log| log.away <= now);
            log.map(|log| (log.start, log.end()))
        });
        match ends.filter(|_| self.site.reaches()) {
            Some(ends) => Ok(ends),
            None => timeout(within),
        }
    }

    fn close(&self) {}
}

impl Client {
    fn set_paused(&self, list: &TopicPartitionList, paused: bool) -> KafkaResult<()> {
        self.with(|broker, id| {
            let Some(member) = broker.members.get_mut(&id) else {
                return;
            };
            for e in list.elements() {
                let place = (e.topic().to_owned(), e.partition());
                if let Some(fetch) = member.assigned.get_mut(&place) {
                    fetch.paused = paused;
                }
            }
        });
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !clock::is_simulated() {
            return;
        }
        let in_order = !*lock(&self.site.killed) && self.site.reaches();
        self.with(|broker, id| broker.leave(id, in_order));
    }
}

/// The state topic, for one reader or writer.
struct State {
    site: Site,
    topic: String,
    /// Next offsets of a follower, and which ends it was told.
    next: Mutex<BTreeMap<i32, (i64, bool)>>,
}

impl State {
    fn with<T>(&self, f: impl FnOnce(&mut Broker) -> T) -> T {
        f(&mut lock(&self.site.broker))
    }
}

impl ReadState for State {
    fn state_partition(&mut self, of: i32, sources: &[String]) -> Result<i32, KafkaError> {
        if !self.site.reaches() {
            return away(Duration::from_secs(10));
        }
        let topic = self.topic.clone();
        Ok(self.with(|broker| {
            let widest = sources
                .iter()
                .map(|s| broker.topics.get(s).map_or(0, Vec::len));
            let widest = widest.max().unwrap_or(0).max(1);
            let logs = broker.topics.entry(topic).or_default();
            if logs.is_empty() {
                logs.resize_with(widest, Default::default);
            }
            of.rem_euclid(logs.len() as i32)
        }))
    }

    fn partitions(&mut self, at_creation: i32) -> Result<i32, KafkaError> {
        if !self.site.reaches() {
            return away(Duration::from_secs(10));
        }
        let topic = self.topic.clone();
        Ok(self.with(|broker| {
            let logs = broker.topics.entry(topic).or_default();
            if logs.is_empty() {
                logs.resize_with(at_creation.unsigned_abs() as usize, Default::default);
            }
            logs.len() as i32
        }))
    }

    fn committed(
        &mut self,
        group: &str,
        topic: &str,
        partition: i32,
    ) -> Result<Option<i64>, KafkaError> {
        if !self.site.reaches() {
            return away(Duration::from_secs(10));
        }
        let place = (topic.to_owned(), partition);
        Ok(self.with(|broker| broker.committed(group, &place).map(|(offset, _)| offset)))
    }

    fn read(
        &self,
        partition: i32,
        until: i64,
        within: Duration,
        each: &mut dyn FnMut(&[u8], Option<&[u8]>),
    ) -> Result<(), KafkaError> {
        if !self.site.reaches() {
            return away(within);
        }
        clock::sleep(self.with(|broker| broker.delay(1, 100)));
        let entries = self.with(|broker| {
            let log = broker.log(&self.topic, partition).expect("it was made");
            log.entries[..=(until as usize)].to_vec()
        });
        for e in entries.iter().filter(|e| !e.compacted) {
            each(&e.key, e.value.as_deref());
        }
        Ok(())
    }

    fn read_after(
        &self,
        partition: i32,
        from: i64,
        until: Option<i64>,
        within: Duration,
        each: &mut dyn FnMut(i64, &[u8], Option<&[u8]>),
    ) -> Result<(), KafkaError> {
        if !self.site.reaches() {
            return away(within);
        }
        let entries = self.with(|broker| {
            let log = broker.log(&self.topic, partition).expect("it was made");
            let end = until.map_or(log.end(), |until| until + 1);
            log.entries[(from.min(end) as usize)..(end as usize)].to_vec()
        });
        for (offset, e) in (from..).zip(&entries).filter(|(_, e)| !e.compacted) {
            each(offset, &e.key, e.value.as_deref());
        }
        Ok(())
    }
}

impl WriteState for State {
    fn put(
        &self,
        records: &[(i32, &(String, Option<Vec<u8>>))],
        within: Duration,
    ) -> Result<Vec<i64>, KafkaError> {
        let now = clock::now();
        if !self.site.reaches() {
            return away(within);
        }
        if !IN_JOB.get() {
            clock::sleep(self.with(|broker| broker.delay(1, 50)));
        }
        Ok(self.with(|broker| {
            let mut offsets = Vec::new();
            for (partition, (key, value)) in records {
                let size = value.as_ref().map_or(0, Vec::len) as u64;
                let offset = broker.append(
                    &self.topic,
                    *partition,
                    Entry {
                        time_ms: clock::wall_ms(now),
                        appended: now,
                        key: key.clone().into_bytes(),
                        value: value.clone(),
                        transaction: None,
                        control: false,
                        compacted: false,
                    },
                );
                // A claim names the process.
                let size = if key.ends_with("claim") || key.ends_with("judge") {
                    0
                } else {
                    size
                };
                broker.note(&[
                    now.as_nanos() as u64,
                    *partition as u64,
                    offset as u64,
                    size,
                ]);
                offsets.push(offset);
            }
            offsets
        }))
    }
}

impl FollowState for State {
    fn begin(&self, partitions: i32) -> Result<(), KafkaError> {
        *lock(&self.next) = (0..partitions).map(|p| (p, (0, false))).collect();
        Ok(())
    }

    fn poll(
        &self,
        within: Duration,
        each: &mut dyn FnMut(Followed<'_>),
    ) -> Result<bool, KafkaError> {
        let mut next = lock(&self.next);
        if self.site.reaches() {
            for (&state_partition, (offset, ended)) in next.iter_mut() {
                let found = self.with(|broker| {
                    let log = broker.log(&self.topic, state_partition)?;
                    let rest = log.entries.iter().enumerate().skip(*offset as usize);
                    let mut rest = rest.filter(|(_, e)| !e.compacted);
                    rest.next().map(|(at, e)| (at as i64, e.clone()))
                });
                if let Some((at, e)) = found {
                    (*offset, *ended) = (at + 1, false);
                    let (time, key, value) = (Some(e.time_ms), e.key, e.value);
                    each(Followed::Record {
                        state_partition,
                        offset: at,
                        at_ms: time,
                        key: &key,
                        value: value.as_deref(),
                    });
                    return Ok(true);
                }
                if !std::mem::replace(ended, true) {
                    each(Followed::End(state_partition));
                    return Ok(true);
                }
            }
        }
        clock::sleep(within);
        Ok(false)
    }

    fn partitions(&self, topic: &str) -> Result<Option<i32>, KafkaError> {
        if !self.site.reaches() {
            return away(Duration::from_secs(10));
        }
        Ok(self.with(|broker| broker.topics.get(topic).map(|logs| logs.len() as i32)))
    }

    fn ends(&self, of: &[(String, i32)]) -> Result<Ends, KafkaError> {
        self.offsets(of, |broker, topic, p| {
            broker.log(topic, p).map_or(0, |log| log.end())
        })
    }

    fn stable_ends(&self, of: &[(String, i32)]) -> Result<Ends, KafkaError> {
        self.offsets(of, |broker, topic, p| broker.stable(topic, p))
    }

    fn begins(&self, of: &[(String, i32)]) -> Result<Ends, KafkaError> {
        self.offsets(of, |broker, topic, p| {
            broker.log(topic, p).map_or(0, |log| log.start)
        })
    }
}

impl State {
    fn offsets(
        &self,
        of: &[(String, i32)],
        which: impl Fn(&Broker, &str, i32) -> i64,
    ) -> Result<Ends, KafkaError> {
        if !self.site.reaches() {
            return away(Duration::from_secs(10));
        }
        Ok(self.with(|broker| {
            let one = |(topic, p): &(String, i32)| ((topic.clone(), *p), which(broker, topic, *p));
            of.iter().map(one).collect()
        }))
    }
}
