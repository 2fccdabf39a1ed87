//! Runs a scenario: the processes in turn, each in its own time, on one thread.

mod checks;
mod configuration;
mod faults;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

use trueline::app::engine_loop::EngineLoop;

use configuration::start;
use faults::Later;

use crate::alerts;
use crate::broker::{Broker, Entry, Log};
use crate::client::{Jobs, Shared, Site, lock};
use crate::clock;
use crate::directed::Circumstance;
use crate::disk;
use crate::oracle;
use crate::registry::{self, Registry, Waits};
use crate::scenario::{CALM, Fleet, Scenario};
use crate::sinks::Receivers;

/// The topic of records.
pub const TOPIC: &str = "events";
/// Time between two turns of the coordinator.
const TURN: Duration = Duration::from_millis(100);
/// Within this time every process takes the time, and what it reports is of now.
const TICKED: Duration = Duration::from_secs(2);
/// How long what is left may take at the end.
const DRAIN: Duration = Duration::from_secs(180);
/// Widest window, beyond which nothing is kept in it.
pub const LATENESS_MS: i64 = 10_000;
/// After a fault the group, the watermark and a batch of state need so long.
const SETTLED: Duration = Duration::from_secs(15);
/// How long the watermark may stand still under a verdict.
pub const STALLED_MS: i64 = 10_000;

/// Over how many judge partitions judges share the models.
pub const JUDGE_PARTITIONS: u64 = 4;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Hash of everything that was read and written, and when.
    pub trace: u64,
    /// What differs from the oracle, or which invariant is broken.
    pub failure: Option<String>,
    /// Faults that happened.
    pub faults: usize,
    /// Notifications that came to receivers.
    pub told: usize,
}

/// A process and its host.
struct Process {
    site: Site,
    role: &'static str,
    folder: PathBuf,
    engine: Option<EngineLoop>,
    /// When it runs next.
    free: Duration,
    ahead_ms: i64,
    /// Bytes that each step may write.
    room: usize,
    /// It is not to be started again.
    ended: bool,
    /// Its state directory is gone since.
    gone: Option<Duration>,
    watermark: Option<i64>,
    /// When that moved last, or was not held.
    moved: Duration,
    ran: Duration,
    /// When it began to read, or to read again.
    since: Duration,
    /// When it last could not know what the broker knows.
    deaf: Duration,
    /// Since when it has run without reaching the broker.
    cut: Option<Duration>,
    /// Since when it says that another process has what it may have alone.
    contests: Option<Duration>,
    /// How far the judge of others has heard of each partition.
    heard: BTreeMap<(u16, i32), i64>,
    waits: Waits,
}

/// Everything that exists.
pub struct World<'s> {
    scenario: &'s Scenario,
    broker: Shared,
    receivers: Arc<Mutex<Receivers>>,
    registry: Arc<Mutex<Registry>>,
    processes: Vec<Process>,
    now: Duration,
    next_record: usize,
    next_fault: usize,
    /// What ends later: transactions, disks and clocks.
    later: Vec<(Duration, Later)>,
    transactions: BTreeMap<i32, u32>,
    next_transaction: u32,
    faults: usize,
    failure: Option<String>,
    /// Everything is in order from then on.
    healthy: Duration,
    /// No delta was missing to the judge of others.
    bets: bool,
    /// Committed offsets that were seen to be stored, by log.
    stored: BTreeMap<i32, i64>,
    /// Where the state directories are.
    _root: TempDir,
}

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Outcome {
    // Nothing that lives for as long as this program may have seen a later time.
    clock::set(Duration::ZERO, 0);
    let _ = trueline::app::clock::steady_ms();
    let mut world = World::new(scenario);
    world.play();
    let (told, notified) = alerts::trace(&lock(&world.receivers));
    let trace = lock(&world.broker).trace ^ notified;
    let outcome = Outcome {
        trace,
        told,
        failure: world.failure.take(),
        faults: world.faults,
    };
    world.clear();
    outcome
}

/// What a fleet has counted and written.
pub struct Counts {
    /// Windows that the first process has evaluated.
    pub evaluations: u64,
    /// Checkpoints of partitions in the state topic, and their parts in the topic of judges.
    pub checkpoints: u64,
    pub parts: u64,
}

/// Runs a scenario in which nothing fails, and counts.
pub fn count(scenario: &Scenario) -> Counts {
    clock::set(Duration::ZERO, 0);
    let mut world = World::new(scenario);
    world.play();
    assert_eq!(world.failure, None);
    let engine = world.processes[0].engine.as_ref();
    let evaluations = engine.map_or(0, |e| e.topology.counters().evaluations);
    let heads = |topic: &str| {
        let broker = lock(&world.broker);
        let logs = broker.topics.get(topic).into_iter().flatten();
        let entries = logs.flat_map(|log| &log.entries);
        let of_partition = format!("g/{TOPIC}/");
        let is_head = |e: &&Entry| {
            let key = String::from_utf8_lossy(&e.key);
            key.starts_with(&of_partition) && key.contains("/head/") && e.value.is_some()
        };
        entries.filter(is_head).count() as u64
    };
    let counts = Counts {
        evaluations,
        checkpoints: heads("state"),
        parts: heads("state-judges"),
    };
    world.clear();
    counts
}

impl<'s> World<'s> {
    fn new(scenario: &'s Scenario) -> World<'s> {
        // The last host is that of strangers.
        let mut broker = Broker::new(scenario.seed, scenario.hosts + 1);
        broker.planted = scenario.planted;
        for topic in scenario.topics() {
            let logs = (0..scenario.partitions).map(|_| Log::default()).collect();
            broker.topics.insert((*topic).to_owned(), logs);
        }
        let broker: Shared = Arc::new(Mutex::new(broker));
        let receivers = Arc::new(Mutex::new(Receivers::new(scenario.seed)));
        let registry = Arc::new(Mutex::new(Registry::new(scenario.seed)));
        let root = disk::root();
        let process = |host: usize| Process {
            site: Site {
                broker: Arc::clone(&broker),
                host,
                jobs: Arc::default(),
                killed: Arc::default(),
                folder: root.path().join(host.to_string()),
                parts: Arc::default(),
                receivers: Arc::clone(&receivers),
                registry: Arc::clone(&registry),
                fetching: Arc::default(),
            },
            role: match (scenario.fleet, host) {
                (Fleet::Single, _) => "",
                (Fleet::Moving, _) => "own",
                (Fleet::Judged, 0) => "all",
                (Fleet::Shared, 0 | 1) => "all",
                (Fleet::Judged | Fleet::Shared, _) => "none",
            },
            folder: root.path().join(host.to_string()),
            engine: None,
            free: Duration::from_secs(1) + Duration::from_millis(37) * host as u32,
            ahead_ms: 0,
            room: usize::MAX,
            ended: false,
            gone: None,
            watermark: None,
            moved: Duration::ZERO,
            ran: Duration::ZERO,
            since: Duration::ZERO,
            deaf: Duration::ZERO,
            cut: None,
            contests: None,
            heard: BTreeMap::new(),
            waits: Waits::default(),
        };
        World {
            processes: (0..scenario.hosts).map(process).collect(),
            scenario,
            broker,
            receivers,
            registry,
            now: Duration::ZERO,
            next_record: 0,
            next_fault: 0,
            later: Vec::new(),
            transactions: BTreeMap::new(),
            next_transaction: 0,
            faults: 0,
            failure: None,
            healthy: Duration::ZERO,
            bets: true,
            stored: BTreeMap::new(),
            _root: root,
        }
    }

    fn play(&mut self) {
        let mut turn = Duration::ZERO;
        let until = self.scenario.until;
        let mut calm = false;
        let mut drained = None;
        while self.failure.is_none() {
            let runs = self.processes.iter().map(|p| p.free).min().unwrap_or(turn);
            let record = self.scenario.records.get(self.next_record).map(|r| r.at);
            let fault = self.scenario.faults.get(self.next_fault).map(|(at, _)| *at);
            let later = self.later.iter().map(|(at, _)| *at).min();
            let notifies = self.notifies();
            let fetches = self.fetches();
            let at = notifies.into_iter().chain(fetches).map(|(at, _)| at).min();
            let times = [Some(runs), Some(turn), record, fault, later, at];
            self.now = times
                .into_iter()
                .flatten()
                .min()
                .unwrap_or(turn)
                .max(self.now);
            if record.is_some_and(|at| at <= self.now) {
                self.produce();
            } else if fault.is_some_and(|at| at <= self.now) {
                self.fail();
            } else if later.is_some_and(|at| at <= self.now) {
                self.mend();
            } else if turn <= self.now {
                turn += TURN;
                lock(&self.broker).coordinate(self.now);
                if self.now > CALM + Duration::from_secs(10) && !calm {
                    calm = true;
                    self.gather();
                }
                if self.scenario.circumstance == Some(Circumstance::Claimed) {
                    let broker = lock(&self.broker);
                    self.failure = oracle::claimed_again(&broker, self.scenario, self.now).err();
                }
                if self.now > until + Duration::from_secs(15)
                    && self.is_drained()
                    && self.now > *drained.get_or_insert(self.now) + TICKED
                {
                    break;
                }
                if self.now > until + DRAIN {
                    self.failure = Some(format!("not drained: {}", self.standing()));
                }
            } else if let Some((_, host)) = notifies.filter(|(at, _)| *at <= self.now) {
                self.notify(host);
            } else if let Some((_, host)) = fetches.filter(|(at, _)| *at <= self.now) {
                clock::set(self.now, self.processes[host].ahead_ms);
                self.processes[host].site.fetch();
            } else {
                let first = (0..self.processes.len()).min_by_key(|h| self.processes[*h].free);
                self.step(first.unwrap_or(0));
            }
        }
        if self.failure.is_none() {
            self.failure = self.verdict().err();
        }
    }

    /// Lets one process keep all partitions, so that what it judges is whole.
    fn gather(&mut self) {
        let others = match self.scenario.fleet {
            Fleet::Single | Fleet::Judged => 1..1,
            Fleet::Moving => 1..self.processes.len(),
            Fleet::Shared => 1..2,
        };
        for host in others {
            self.stop(host);
            self.processes[host].ended = true;
        }
    }

    /// Which host has something to do next beside its engine, and when.
    fn notifies(&self) -> Option<(Duration, usize)> {
        let broker = lock(&self.broker);
        let running = (0..).zip(&self.processes);
        let running = running.filter(|(_, p)| p.engine.is_some());
        let due = running.filter_map(|(host, p)| {
            let due = p.site.notifies(self.now)?;
            Some((due.max(broker.hosts[host].frozen), host))
        });
        due.min()
    }

    /// The same of the client of the registry.
    fn fetches(&self) -> Option<(Duration, usize)> {
        let frozen = |host: usize| lock(&self.broker).hosts[host].frozen;
        let all = (0..).zip(&self.processes);
        let due =
            all.filter_map(|(host, p)| Some((p.site.fetches(self.now)?.max(frozen(host)), host)));
        due.min()
    }

    fn notify(&mut self, host: usize) {
        let p = &self.processes[host];
        clock::set(self.now, p.ahead_ms);
        disk::room(p.room);
        p.site.notify(None);
    }

    fn produce(&mut self) {
        let r = &self.scenario.records[self.next_record];
        self.next_record += 1;
        let transaction = self.transactions.get(&r.log).copied();
        let entry = Entry {
            time_ms: r.stamp_ms,
            appended: self.now,
            key: (self.next_record as u64 - 1).to_le_bytes().to_vec(),
            value: Some(registry::payload(self.scenario, r)),
            transaction,
            control: false,
            compacted: false,
        };
        self.append(r.log, entry);
    }

    fn append(&self, log: i32, entry: Entry) {
        let (topic, partition) = self.scenario.place(log);
        lock(&self.broker).append(topic, partition, entry);
    }

    fn marker(&self, log: i32) {
        let entry = Entry {
            time_ms: clock::wall_ms(self.now),
            appended: self.now,
            key: Vec::new(),
            value: None,
            transaction: None,
            control: true,
            compacted: false,
        };
        self.append(log, entry);
    }

    fn step(&mut self, host: usize) {
        let now = self.now;
        let frozen = lock(&self.broker).hosts[host].frozen;
        let p = &mut self.processes[host];
        if p.ended {
            p.free = now + Duration::from_secs(3600);
            return;
        }
        if frozen > now {
            p.free = frozen;
            return;
        }
        if p.gone.is_some() && p.engine.is_none() {
            p.free = now + Duration::from_millis(500);
            return;
        }
        clock::set(now, p.ahead_ms);
        disk::room(p.room);
        p.site.work(now);
        let records = match &mut p.engine {
            Some(engine) => engine.step(),
            None => {
                *lock(&p.site.killed) = false;
                lock(&self.broker).hosts[host].fenced = None;
                lock(&p.site.parts).full = p.room < usize::MAX;
                match start(&p.site, p.role, &p.folder, self.scenario) {
                    Ok(engine) => (p.engine, p.since) = (Some(engine), now),
                    Err(_) => clock::sleep(Duration::from_secs(2)),
                }
                0
            }
        };
        let reads = |e: &EngineLoop| {
            e.consumers
                .iter()
                .all(|c| !c.consumer.assignment().is_empty())
        };
        if !p.site.reaches() || !p.engine.as_ref().is_some_and(reads) {
            p.since = now;
        }
        let cut = (!p.site.reaches()).then(|| p.cut.unwrap_or(now));
        p.cut = cut;
        if cut.is_some() {
            p.deaf = now;
        }
        let busy = Duration::from_micros(500 + 30 * records as u64);
        let jitter = lock(&self.broker).delay(0, 3);
        let p = &mut self.processes[host];
        p.free = clock::now() + busy + jitter;
        if now > std::mem::replace(&mut p.ran, p.free) + Duration::from_secs(1) {
            (p.since, p.deaf) = (now, now);
            p.cut = p.cut.map(|_| now);
        }
        let displaced = |e: &mut EngineLoop| e.displaced().is_some();
        if self.processes[host].engine.as_mut().is_some_and(displaced) {
            self.stop(host);
            let named = |l: &Later| self.scenario.named && matches!(l, Later::Stranger { .. });
            let ends = self.later.iter().filter(|(_, l)| named(l));
            let ends = ends.map(|(at, _)| *at).max();
            let p = &mut self.processes[host];
            // Whoever starts it again sees to it that the other one has ended.
            p.free = ends.unwrap_or(p.free).max(p.free) + Duration::from_secs(5);
        }
        if let Err(why) = self.check(host) {
            self.failure = Some(format!("{:.1} s, host {host}: {why}", now.as_secs_f64()));
        }
    }

    fn clear(&mut self) {
        for p in &mut self.processes {
            *lock(&p.site.killed) = true;
            lock(&p.site.jobs).take();
            drop(p.engine.take());
            // What runs beside an engine holds its site.
            drop(std::mem::take(&mut *lock(&p.site.parts)));
            lock(&p.site.fetching).take();
        }
        disk::end();
    }
}

impl Jobs {
    fn take(&mut self) -> Jobs {
        std::mem::take(self)
    }
}
