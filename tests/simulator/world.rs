//! Runs a scenario: the processes in turn, each in its own time, on one thread.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use trueline::app::cluster::topology::Topology;
use trueline::app::engine_loop::EngineLoop;
use trueline::app::{App, Setup};
use trueline::collect::Origin;
use trueline::config::Config;
use trueline::config::value::Outside;
use trueline::monitor::liveness::Freshness;
use trueline::telemetry::facts::Role;

use super::alerts;
use super::broker::{Broker, Entry, Log, Transaction, is_first};
use super::client::{Jobs, Shared, Site, lock};
use super::clock;
use super::directed::Circumstance;
use super::disk;
use super::oracle;
use super::oracle::STRAY;
use super::registry::{self, Registry, Waits};
use super::scenario::{BEGIN, CALM, EXPIRY, Fault, Fleet, Scenario};
use super::sinks::Receivers;

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
/// How long the watermark may be held when everything is in order.
const HELD_MS: i64 = 8_000;
/// How long the watermark may stand still under a verdict.
pub const STALLED_MS: i64 = 10_000;
/// No clock of a host in order is so far ahead.
const AHEAD_MS: i64 = 24 * 3_600_000;
/// Within this a process says that something is wrong.
const NOTICED: Duration = Duration::from_secs(8);
/// Within this the later one of two processes in a group has stopped.
const DECIDED: Duration = Duration::from_secs(26);

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
}

#[derive(Clone, Copy)]
enum Later {
    End {
        transaction: u32,
        log: i32,
        commits: bool,
    },
    Hung {
        transaction: u32,
        log: i32,
    },
    Disk {
        host: usize,
    },
    Room {
        host: usize,
    },
    Clock {
        host: usize,
    },
    State {
        host: usize,
    },
    Stranger {
        member: u64,
    },
}

/// Over how many judge partitions judges share the models.
const JUDGE_PARTITIONS: u64 = 4;

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
        let _ = std::fs::remove_dir_all(&root);
        let process = |host: usize| Process {
            site: Site {
                broker: Arc::clone(&broker),
                host,
                jobs: Arc::default(),
                killed: Arc::default(),
                folder: root.join(host.to_string()),
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
            folder: root.join(host.to_string()),
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

    fn fail(&mut self) {
        let fault = self.scenario.faults[self.next_fault].1;
        self.next_fault += 1;
        self.faults += 1;
        let now = self.now;
        if let Fault::Sink {
            sink,
            trouble,
            time,
        } = fault
        {
            lock(&self.receivers).trouble(sink, trouble, now + time);
            return;
        }
        if let Fault::Registry { trouble, time } = fault {
            lock(&self.registry).trouble(trouble, now + time);
            return;
        }
        // The owner of a partition finds the claim of a stray when it next writes, which may be after another
        // fault, and claims again a session later.
        let strays = self.scenario.faults[..self.next_fault].iter();
        let strays = strays.filter(|(_, f)| matches!(f, Fault::Stray { .. }));
        let mut settled = SETTLED * if strays.count() > 0 { 2 } else { 1 };
        let circumstance = self.scenario.circumstance;
        if matches!(
            circumstance,
            Some(Circumstance::Hidden | Circumstance::Frozen)
        ) {
            // What holds verdicts ends with the next checkpoint; that may be after another fault.
            settled += Duration::from_secs(self.scenario.interval_s);
        }
        self.healthy = self.healthy.max(now + fault.lasts() + settled);
        // What the fetchers knew before.
        lock(&self.broker).refresh(now);
        match fault {
            Fault::Kill { host, down } => self.kill(host, down, false),
            Fault::Power { host, down } => self.kill(host, down, true),
            Fault::Stop { host, down } => {
                self.stop(host);
                let p = &mut self.processes[host];
                p.free = p.free.max(now + down);
            }
            Fault::Freeze { host, time } => {
                let host = &mut lock(&self.broker).hosts[host];
                host.frozen = host.frozen.max(now + time);
            }
            Fault::Cut { host, time } => {
                let host = &mut lock(&self.broker).hosts[host];
                host.cut = host.cut.max(now + time);
            }
            Fault::Clock {
                host,
                ahead_ms,
                time,
            } => {
                self.processes[host].ahead_ms = ahead_ms;
                self.later.push((now + time, Later::Clock { host }));
            }
            Fault::Move { log } => {
                let (topic, partition) = self.scenario.place(log);
                lock(&self.broker).ask_back(topic, partition, now);
            }
            Fault::Away { log, time } => {
                let (topic, partition) = self.scenario.place(log);
                if let Some(log) = lock(&self.broker).log_mut(topic, partition) {
                    log.away = log.away.max(now + time);
                }
            }
            Fault::Transaction { log, time, commits } => {
                if !self.transactions.contains_key(&log) {
                    let transaction = self.begin();
                    self.transactions.insert(log, transaction);
                    let end = Later::End {
                        transaction,
                        log,
                        commits,
                    };
                    self.later.push((now + time, end));
                }
            }
            Fault::Hang { log, time } => {
                let transaction = self.begin();
                let entry = Entry {
                    time_ms: clock::wall_ms(now),
                    appended: now,
                    key: u64::MAX.to_le_bytes().to_vec(),
                    value: Some(Vec::new()),
                    transaction: Some(transaction),
                    control: false,
                    compacted: false,
                };
                self.append(log, entry);
                self.later
                    .push((now + time, Later::Hung { transaction, log }));
            }
            Fault::Retain => self.retain(),
            Fault::Compact => self.compact(),
            Fault::SlowDisk { host, time } => {
                lock(&self.processes[host].site.jobs).slow = Duration::from_secs(3);
                self.later.push((now + time, Later::Disk { host }));
            }
            Fault::NoState { host, time } => {
                let p = &mut self.processes[host];
                let there = trueline::store::load(&p.folder).is_ok_and(|found| found.is_some());
                if p.gone.is_none() && there && p.engine.is_some() {
                    std::fs::rename(&p.folder, aside(&p.folder)).expect("a folder in memory");
                    p.gone = Some(now);
                    self.later.push((now + time, Later::State { host }));
                }
            }
            Fault::Stranger { earlier, time } => {
                let mut broker = lock(&self.broker);
                let topics = [TOPIC.to_owned()];
                let member = broker.join(self.scenario.hosts, "g", &topics, now);
                let at_ms = if earlier { 1 } else { 4_000_000_000_000_i64 };
                let client = format!("trueline-{at_ms}-00000001");
                broker.strangers.insert(member, client);
                self.later.push((now + time, Later::Stranger { member }));
            }
            Fault::Twin { earlier, time } => {
                let at_ms = if earlier { 1 } else { 4_000_000_000_000_i64 };
                let client = format!("trueline-{at_ms}-00000001");
                let hosts = (0, self.scenario.hosts);
                let member = lock(&self.broker).fence(hosts, &client, now);
                if let Some(member) = member {
                    self.later.push((now + time, Later::Stranger { member }));
                }
            }
            Fault::Stray { log } => self.claim(log),
            Fault::Taken { time } => {
                let member = lock(&self.broker).take_all(self.scenario.hosts, now);
                if let Some(member) = member {
                    self.later.push((now + time, Later::Stranger { member }));
                }
            }
            Fault::Sink { .. } | Fault::Registry { .. } => {}
            Fault::FullDisk { host, time } => {
                self.processes[host].room = 3000;
                lock(&self.processes[host].site.parts).full = true;
                self.later.push((now + time, Later::Room { host }));
            }
        }
    }

    fn begin(&mut self) -> u32 {
        let transaction = self.next_transaction;
        self.next_transaction += 1;
        lock(&self.broker)
            .transactions
            .insert(transaction, Transaction::Open);
        transaction
    }

    fn mend(&mut self) {
        let due = self.later.iter().position(|(at, _)| *at <= self.now);
        let (_, what) = self.later.swap_remove(due.expect("one is due"));
        match what {
            Later::End {
                transaction,
                log,
                commits,
            } => {
                self.transactions.remove(&log);
                let ended = if commits {
                    Transaction::Committed
                } else {
                    Transaction::Aborted
                };
                lock(&self.broker).transactions.insert(transaction, ended);
                self.marker(log);
            }
            Later::Hung { transaction, log } => {
                lock(&self.broker)
                    .transactions
                    .insert(transaction, Transaction::Aborted);
                self.marker(log);
            }
            Later::Disk { host } => lock(&self.processes[host].site.jobs).slow = Duration::ZERO,
            Later::Room { host } => self.processes[host].room = usize::MAX,
            Later::Clock { host } => self.processes[host].ahead_ms = 0,
            Later::State { host } => {
                self.kill(host, Duration::ZERO, false);
                let p = &mut self.processes[host];
                let _ = std::fs::remove_dir_all(&p.folder);
                std::fs::rename(aside(&p.folder), &p.folder).expect("a folder in memory");
                p.gone = None;
            }
            Later::Stranger { member } => {
                let mut broker = lock(&self.broker);
                broker.leave(member, true);
                broker.strangers.remove(&member);
            }
        }
    }

    /// Somebody claims a partition and does nothing with it.
    fn claim(&mut self, log: i32) {
        let now = self.now;
        let (topic, partition) = self.scenario.place(log);
        let end = format!("/{topic}/{partition}/claim");
        let mut broker = lock(&self.broker);
        for log in broker.topics.get_mut("state").into_iter().flatten() {
            let theirs = log.entries.iter().rev();
            let mut theirs = theirs.filter(|e| e.key.ends_with(end.as_bytes()));
            if let Some(last) = theirs.next().cloned() {
                log.entries.push(Entry {
                    time_ms: clock::wall_ms(now),
                    appended: now,
                    value: Some(STRAY.to_vec()),
                    compacted: false,
                    ..last
                });
            }
        }
    }

    /// Removes what no restart needs any more.
    fn retain(&mut self) {
        if self.scenario.fleet != Fleet::Single {
            return;
        }
        let p = &self.processes[0];
        let folder = p.gone.map_or(p.folder.clone(), |_| aside(&p.folder));
        let Ok(Some(snapshot)) = trueline::store::load(&folder) else {
            return;
        };
        let mut broker = lock(&self.broker);
        for o in snapshot.partitions.positions() {
            let topic = self.scenario.topics()[usize::from(o.source)];
            if let Some(log) = broker.log_mut(topic, o.partition) {
                log.start = log.start.max(o.offset.min(log.end()));
            }
        }
    }

    /// Of each key the state topic keeps the newest record, but for the newest ones of all.
    fn compact(&mut self) {
        let mut broker = lock(&self.broker);
        let Some(logs) = broker.topics.get_mut("state") else {
            return;
        };
        for log in logs {
            let clean = log.entries.len() * 3 / 4;
            let mut newest: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
            for (at, e) in log.entries.iter().enumerate() {
                newest.insert(e.key.clone(), at);
            }
            for (at, e) in log.entries.iter_mut().enumerate().take(clean) {
                e.compacted |= newest[&e.key] != at;
            }
        }
    }

    fn kill(&mut self, host: usize, down: Duration, power: bool) {
        let now = self.now;
        let share = lock(&self.broker).rng.uniform();
        let p = &mut self.processes[host];
        if p.ended {
            return;
        }
        if power {
            // In the middle of what is being written.
            disk::room((5000.0 * share) as usize);
            clock::set(now, p.ahead_ms);
            p.site.work(now + Duration::from_secs(60));
        }
        lock(&p.site.jobs).take();
        *lock(&p.site.killed) = true;
        clock::set(now, p.ahead_ms);
        p.site.forget(power);
        drop(p.engine.take());
        if power {
            disk::lose(&p.folder, share);
        }
        p.free = p.free.max(now + down);
        p.watermark = None;
        p.heard.clear();
    }

    fn stop(&mut self, host: usize) {
        let now = self.now;
        let frozen = lock(&self.broker).hosts[host].frozen > now;
        let p = &mut self.processes[host];
        if frozen || p.ended {
            return;
        }
        if let Some(engine) = p.engine.take() {
            clock::set(now.max(p.free), p.ahead_ms);
            disk::room(p.room);
            let _ = engine.end();
            p.site.leave(true, None);
            p.site.work(clock::now() + Duration::from_secs(60));
            p.free = p.free.max(clock::now());
            p.site.forget(false);
            lock(&p.site.jobs).take();
            p.watermark = None;
            p.heard.clear();
        }
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
        if !p.site.reaches() {
            p.deaf = now;
        }
        let busy = Duration::from_micros(500 + 30 * records as u64);
        let jitter = lock(&self.broker).delay(0, 3);
        let p = &mut self.processes[host];
        p.free = clock::now() + busy + jitter;
        if now > std::mem::replace(&mut p.ran, p.free) + Duration::from_secs(1) {
            (p.since, p.deaf) = (now, now);
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

    /// What holds after every step of a process.
    fn check(&mut self, host: usize) -> Result<(), String> {
        let p = &mut self.processes[host];
        let Some(engine) = &p.engine else {
            return Ok(());
        };
        if let Some(fault) = engine.engines.fault() {
            return Err(format!("store of pending predictions: {fault}"));
        }
        if let Some(wrong) = lock(&self.broker).wrong {
            return Err(wrong.to_owned());
        }
        let wrong = lock(&self.receivers).wrong.clone();
        if let Some(wrong) = wrong.filter(|_| alerts::are_compared(self.scenario.fleet)) {
            return Err(wrong);
        }
        if let Topology::Judges(judges) = &engine.engines {
            let whole = judges.aggregators().all(|a| a.rebuilt() == 0);
            if !whole && self.scenario.circumstance == Some(Circumstance::Frozen) {
                return Err(
                    "a delta is missing to a judge to which nothing has happened".to_owned(),
                );
            }
            // Verdicts go on without a partition that is not heard of for too long.
            let waits = match engine.published.facts().role {
                Role::Judge(facts) => facts.partitions[2..] == [0, 0],
                _ => true,
            };
            self.bets &= whole && waits;
            // Judges that share models come to those of another that has left.
            let alone = self.scenario.fleet == Fleet::Judged;
            for o in judges.positions().iter().filter(|_| alone) {
                let heard = p.heard.entry((o.source, o.partition)).or_insert(o.offset);
                if o.offset < std::mem::replace(heard, o.offset) {
                    return Err(format!("it goes back to {o:?}, which is not the owner's"));
                }
            }
        }
        let total = engine.engines.counters().total();
        if matches!(engine.engines, Topology::Single(_)) {
            if total.records != total.disposed() {
                return Err(format!("a record has not one disposition: {total:?}"));
            }
            let mark = engine.engines.watchdog().map(|dog| dog.watermark());
            let watermark = mark.and_then(|mark| mark.time_ms);
            if watermark < p.watermark {
                return Err(format!(
                    "the watermark goes back: {:?} to {watermark:?}",
                    p.watermark
                ));
            }
            if watermark > p.watermark || mark.is_none_or(|mark| mark.holder.is_none()) {
                p.moved = self.now;
            }
            p.watermark = watermark;
        }
        let from = p.since.max(lock(&self.registry).failed());
        if p.waits.check(engine, from, self.now)? {
            self.healthy = self.healthy.max(self.now + SETTLED);
        }
        let held_ms = engine.engines.watchdog().map_or(0, |dog| dog.held_ms());
        // The judge of others waits for their next checkpoint.
        let wait_s = match self.scenario.fleet {
            Fleet::Single | Fleet::Moving => 0,
            Fleet::Judged => 2 * self.scenario.interval_s + 8,
            // And for its group, if a judge has left.
            Fleet::Shared => 2 * self.scenario.interval_s + 20,
        };
        let bound_ms = HELD_MS + 1000 * wait_s as i64;
        let missing = engine.published.missing();
        let ready = missing.is_empty();
        // It reads nothing until it knows which of two processes goes on, and its group begins after that.
        let contests = missing.keys().any(|part| part.starts_with("instance "));
        p.contests = contests.then(|| p.contests.unwrap_or(self.now));
        if p.contests.is_some_and(|since| self.now < since + DECIDED) {
            self.healthy = self.healthy.max(self.now + SETTLED);
        }
        let mark = engine.engines.watchdog().map(|dog| dog.watermark());
        let ahead = is_ahead(engine, self.scenario, self.now);
        let settled = self.now > self.healthy && self.now > BEGIN + SETTLED;
        if settled && held_ms > bound_ms && !ahead {
            return Err(format!(
                "nothing is wrong and {mark:?} stands for {held_ms} ms"
            ));
        }
        if ready && held_ms > STALLED_MS + NOTICED.as_millis() as i64 + 1000 * wait_s as i64 {
            return Err(format!("{mark:?} stands for {held_ms} ms and it is ready"));
        }
        let lately = |since: Duration| since + NOTICED > self.now;
        if ready && p.gone.is_some_and(|since| !lately(since.max(p.since))) {
            return Err("its state directory is gone and it is ready".to_owned());
        }
        let fenced = lock(&self.broker).hosts[host].fenced;
        if ready && fenced.is_some_and(|(since, _)| !lately(since.max(p.deaf))) {
            return Err(
                "another process took its instance, the group has given it nothing since, and it is ready"
                    .to_owned(),
            );
        }
        let shared = lock(&self.broker).shared;
        if let Some(shared) = shared.map(|since| since.max(p.since)) {
            if ready && !lately(shared) {
                return Err("a stranger has partitions of its group and it is ready".to_owned());
            }
            let first = lock(&self.broker).strangers.values().any(|s| is_first(s));
            if !first && self.scenario.named && shared + DECIDED < self.now {
                return Err("another process came later and keeps its instance".to_owned());
            }
            if first && shared + DECIDED < self.now {
                return Err("a stranger was in its group first and it does not stop".to_owned());
            }
        }
        let folder = p.gone.map_or(p.folder.clone(), |_| aside(&p.folder));
        committed(
            self.scenario,
            &self.broker,
            &mut self.stored,
            engine,
            &folder,
        )?;
        // Its patience begins again with it.
        let quiet = p.since.max(p.moved);
        if self.now < quiet + Duration::from_millis(STALLED_MS as u64 + 5000) {
            return Ok(());
        }
        oracle::young(engine)
    }

    /// Whether everything was read and stored, and every partition is known to be idle.
    fn is_drained(&self) -> bool {
        let broker = lock(&self.broker);
        let p = &self.processes[0];
        let Some(engine) = &p.engine else {
            return false;
        };
        let logs = self.scenario.topics().iter().map(|t| &broker.topics[*t]);
        let seen = |log: &Log| {
            let last = log.entries.iter().rposition(|e| broker.is_seen(e));
            last.map_or(0, |at| at as i64 + 1).max(log.start)
        };
        let ends: Vec<i64> = logs.flatten().map(seen).collect();
        let log = |o: &Origin| i32::from(o.source) * self.scenario.partitions + o.partition;
        let positions = engine.engines.positions();
        let positions: BTreeMap<i32, i64> = positions.iter().map(|o| (log(o), o.offset)).collect();
        let read = (0..)
            .zip(&ends)
            .all(|(p, end)| positions.get(&p).copied().unwrap_or(0) >= *end);
        let held = engine
            .engines
            .watchdog()
            .is_none_or(|dog| dog.watermark().holder.is_some());
        let waits = match engine.engines.role() {
            Role::Judge(facts) => {
                let behind = facts.partitions[Freshness::Behind as usize] > 0;
                behind || facts.tasks.is_some_and(|n| n < JUDGE_PARTITIONS)
            }
            _ => false,
        };
        let facts = engine.published.facts();
        let told = p.site.has_notified() && facts.sinks.iter().all(|s| s.queued == 0);
        read && !held && !waits && told && lock(&p.site.jobs).waiting_none()
    }

    fn standing(&self) -> String {
        let p = &self.processes[0];
        let Some(engine) = &p.engine else {
            let why = start(&p.site, p.role, &p.folder, self.scenario).err();
            return format!("host 0 does not run: {why:?}");
        };
        let broker = lock(&self.broker);
        let logs = self.scenario.topics().iter().map(|t| &broker.topics[*t]);
        let ends: Vec<i64> = logs.flatten().map(Log::end).collect();
        format!(
            "positions {:?}, ends {ends:?}, watermark {:?}, not ready {:?}",
            engine.engines.positions(),
            engine.engines.watchdog().map(|dog| dog.watermark()),
            engine.published.missing()
        )
    }

    /// Compares what was counted and judged with the oracle.
    fn verdict(&mut self) -> Result<(), String> {
        let engine = self.processes[0].engine.as_ref();
        let engine = engine.ok_or("host 0 does not run")?;
        let receivers = lock(&self.receivers);
        alerts::at_the_end(engine, &receivers, self.scenario)?;
        if is_ahead(engine, self.scenario, self.now) {
            // Which records are late depends on when that was read.
            return Ok(());
        }
        let broker = lock(&self.broker);
        let config = config(
            &self.processes[0].folder,
            self.processes[0].role,
            self.scenario,
            // Bytes and schemas are the business of others.
            false,
        );
        let committed = oracle::Committed::of(&broker, self.scenario);
        let ahead = |f: &Fault| matches!(f, Fault::Clock { ahead_ms, .. } if *ahead_ms > 0);
        let future = !self.scenario.faults.iter().any(|(_, f)| ahead(f));
        let counting = match self.scenario.fleet {
            Fleet::Judged => &self.processes[1..],
            Fleet::Shared => &self.processes[2..],
            Fleet::Single | Fleet::Moving => &self.processes[..1],
        };
        let engines = counting.iter().filter_map(|p| p.engine.as_ref());
        let changes = oracle::compare(engine, engines, &committed, &config, (future, self.bets))?;
        let expired: Vec<&str> = committed.expired().collect();
        alerts::compare(&changes, &receivers, self.scenario, &expired)
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
        let root = self.processes[0].folder.parent().map(Path::to_path_buf);
        if let Some(root) = root {
            let _ = std::fs::remove_dir_all(root);
        }
    }
}

/// Whether records were believed that a producer's clock ahead has written while the host's was ahead too. What
/// comes afterwards is late until somebody resets the watermark. Where no host's clock was ahead they must not be.
fn is_ahead(engine: &EngineLoop, scenario: &Scenario, now: Duration) -> bool {
    let ahead = |f: &Fault| matches!(f, Fault::Clock { ahead_ms, .. } if *ahead_ms > AHEAD_MS);
    let mark = engine.engines.watchdog().map(|dog| dog.watermark());
    mark.and_then(|mark| mark.time_ms) > Some(clock::wall_ms(now) + AHEAD_MS)
        && scenario.faults.iter().any(|(_, f)| ahead(f))
}

/// Where a state directory is while it is gone.
fn aside(folder: &Path) -> PathBuf {
    folder.with_extension("aside")
}

impl Jobs {
    fn take(&mut self) -> Jobs {
        std::mem::take(self)
    }
}

/// Offsets are committed after the snapshot that holds their records is on disk.
fn committed(
    s: &Scenario,
    broker: &Shared,
    stored: &mut BTreeMap<i32, i64>,
    engine: &EngineLoop,
    folder: &Path,
) -> Result<(), String> {
    if !matches!(engine.engines, Topology::Single(_)) {
        return Ok(());
    }
    let broker = lock(broker);
    for log in 0..s.partitions * s.topics().len() as i32 {
        let (topic, partition) = s.place(log);
        let group = if topic == TOPIC { "g" } else { "g.predictions" };
        let Some((offset, _)) = broker.committed(group, &(topic.to_owned(), partition)) else {
            continue;
        };
        if stored.get(&log).is_some_and(|stored| *stored >= offset) {
            continue;
        }
        let snapshot = trueline::store::load(folder).map_err(|e| e.to_string())?;
        let positions = snapshot.map(|s| s.partitions.positions().collect::<Vec<_>>());
        let positions = positions.unwrap_or_default();
        let number = |o: &Origin| i32::from(o.source) * s.partitions + o.partition;
        stored.extend(positions.iter().map(|o| (number(o), o.offset)));
        if stored.get(&log).is_none_or(|stored| *stored < offset) {
            return Err(format!(
                "offset {offset} of {topic}/{partition} is committed, and no snapshot holds it"
            ));
        }
    }
    Ok(())
}

/// The configuration of a process.
pub fn config(folder: &Path, role: &str, s: &Scenario, schemas: bool) -> Config {
    let directory = folder.display();
    let (start, interval) = (if s.latest { "latest" } else { "earliest" }, s.interval_s);
    // A judge hears of events with the next checkpoint.
    let stalled_ms = match s.fleet {
        Fleet::Judged | Fleet::Shared => STALLED_MS + 2000 * interval as i64,
        Fleet::Single | Fleet::Moving => STALLED_MS,
    };
    let state = match role {
        "" => String::new(),
        role => format!("topic = \"state\"\nverdicts = \"{role}\"\nmissing_after = \"2m\""),
    };
    let state = match s.fleet {
        Fleet::Shared => format!("{state}\njudge_partitions = {JUDGE_PARTITIONS}"),
        _ => state,
    };
    let model = |name: &str| {
        format!(
            "[[model]]\nname = \"{name}\"\nwindows = [\"30s\", \"1m\"]\nlateness = \"{LATENESS_MS}ms\"\n[model.test]\nmin_events = 30\n{}",
            alerts::of_model(name)
        )
    };
    let instance = if s.named { r#"instance = "i""# } else { "" };
    let expiry = s
        .expires
        .then(|| format!("stream_expiry = \"{}s\"", EXPIRY.as_secs()));
    let expiry = expiry.unwrap_or_default();
    let (registry, format) = match schemas {
        true => (registry::section(), "avro"),
        false => (String::new(), "json"),
    };
    let joined = s
        .joined
        .map_or(String::new(), |joined| joined.source(start));
    let text = format!(
        r#"
version = 1
[kafka]
brokers = "localhost:9"
group = "g"
{instance}
statistics_interval = "1s"
open_transaction_max = "60s"
[kafka.options]
"session.timeout.ms" = "6000"
[state]
directory = "{directory}"
interval = "{interval}s"
records_max = 0
{state}
[limits]
future_max = "3m"
stalled_after = "{stalled_ms}ms"
{expiry}
{registry}
[[source]]
topics = ["{TOPIC}"]
start = "{start}"
format = "{format}"
[source.fields]
id = "id"
model = "model"
time = "time_ms"
score = "score"
outcome = "outcome"
{joined}
{}{}{}{}{}
"#,
        model("a"),
        model("b"),
        model("c"),
        model("d"),
        alerts::sinks(s.seed)
    );
    let outside = Outside {
        variable: &|_| None,
        directory: ".".into(),
    };
    Config::parse(&text, "simulation", &outside).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn start(site: &Site, role: &str, folder: &Path, s: &Scenario) -> Result<EngineLoop, String> {
    let mut setup = Setup::of(config(folder, role, s, s.schemas));
    setup.brokers = Arc::new(site.clone());
    setup.workers = Arc::new(site.clone());
    setup.sinks = Arc::new(site.clone());
    setup.registry = Arc::new(site.clone());
    let engine = App::engine_loop(setup).map_err(|e| e.to_string());
    if engine.is_err() {
        site.forget(false);
    }
    engine
}
