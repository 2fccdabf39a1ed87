//! What holds after each step of a process, and at the end.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use trueline::app::cluster::topology::Topology;
use trueline::app::engine_loop::EngineLoop;
use trueline::collect::Origin;
use trueline::telemetry::facts::Role;

use super::configuration::{config, start};
use super::faults::aside;
use super::{JUDGE_PARTITIONS, SETTLED, STALLED_MS, TOPIC, World};
use crate::broker::{Log, is_first};
use crate::client::{Shared, lock};
use crate::directed::Circumstance;
use crate::scenario::{BEGIN, Fault, Fleet, Kind, Scenario};
use crate::{alerts, clock, oracle, registry};

/// How long the watermark may be held when everything is in order.
const HELD_MS: i64 = 8_000;
/// So many records in a row whose clocks are ahead are believed.
const CONFIRMATIONS: usize = 3;
/// No clock of a host in order is so far ahead.
const AHEAD_MS: i64 = 24 * 3_600_000;
/// Within this a process says that something is wrong.
const NOTICED: Duration = Duration::from_secs(8);
/// A broker that does not answer for so long is away.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(30);
/// Within this the later one of two processes in a group has stopped.
const DECIDED: Duration = Duration::from_secs(26);

impl World<'_> {
    /// What holds after every step of a process.
    pub(super) fn check(&mut self, host: usize) -> Result<(), String> {
        let p = &mut self.processes[host];
        let Some(engine) = &p.engine else {
            return Ok(());
        };
        if let Some(fault) = engine.topology.fault() {
            return Err(format!("store of pending predictions: {fault}"));
        }
        if let Some(wrong) = lock(&self.broker).wrong {
            return Err(wrong.to_owned());
        }
        let wrong = lock(&self.receivers).wrong.clone();
        if let Some(wrong) = wrong.filter(|_| alerts::come_once(self.scenario.fleet)) {
            return Err(wrong);
        }
        let again = std::mem::take(&mut lock(&self.receivers).again);
        if self.scenario.fleet == Fleet::Shared {
            let hosts = &lock(&self.broker).hosts;
            for (what, both) in again {
                let unsettled = |(host, at): &(usize, Duration)| {
                    let mut all = hosts[*host].unsettled.iter();
                    all.any(|(from, until)| (from..=until).contains(&at))
                };
                if !both.iter().any(unsettled) {
                    return Err(format!("{what}: it was recorded"));
                }
            }
        }
        if let Topology::Judges(judges) = &engine.topology {
            let whole = judges.aggregators().all(|a| a.rebuilt() == 0);
            if !whole && self.scenario.circumstance == Some(Circumstance::Frozen) {
                return Err(
                    "a delta is missing to a judge to which nothing has happened".to_owned(),
                );
            }
            // Verdicts go on without a partition that is not heard of for too long.
            let waits = match engine.published.facts().role {
                Role::Judge(facts) => facts.partitions.stale + facts.partitions.missing == 0,
                _ => true,
            };
            if !waits && self.scenario.circumstance == Some(Circumstance::Stepped) {
                return Err(
                    "verdicts go on without a worker that is away for less than the judge waits"
                        .to_owned(),
                );
            }
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
        let total = engine.topology.counters().total();
        if matches!(engine.topology, Topology::Single(_)) {
            if total.records != total.disposed() {
                return Err(format!("a record has not one disposition: {total:?}"));
            }
            let mark = engine.topology.watchdog().map(|w| w.frontier());
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
        let holds = registry::holds(self.scenario, self.now);
        if p.waits.check(engine, (from, holds), self.now)? {
            // A judge hears of the end with the next checkpoint.
            let heard = Duration::from_secs(match self.scenario.fleet {
                Fleet::Single | Fleet::Moving => 0,
                Fleet::Judged | Fleet::Shared => self.scenario.interval_s,
            });
            self.healthy = self.healthy.max(self.now + SETTLED + heard);
        }
        let stalled_for_ms = engine.topology.watchdog().map_or(0, |w| w.stalled_for_ms());
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
        // It reads nothing until it knows which of two processes goes on, and its group begins
        // after that.
        let contests = missing.keys().any(|part| part.starts_with("instance "));
        p.contests = contests.then(|| p.contests.unwrap_or(self.now));
        if p.contests.is_some_and(|since| self.now < since + DECIDED) {
            self.healthy = self.healthy.max(self.now + SETTLED);
        }
        let mark = engine.topology.watchdog().map(|w| w.frontier());
        let ahead = is_ahead(engine, self.scenario, self.now);
        let settled = self.now > self.healthy && self.now > BEGIN + SETTLED;
        if settled && stalled_for_ms > bound_ms && !ahead {
            return Err(format!(
                "nothing is wrong and {mark:?} stands for {stalled_for_ms} ms"
            ));
        }
        if ready && stalled_for_ms > STALLED_MS + NOTICED.as_millis() as i64 + 1000 * wait_s as i64
        {
            return Err(format!(
                "{mark:?} stands for {stalled_for_ms} ms and it is ready"
            ));
        }
        let lately = |since: Duration| since + NOTICED > self.now;
        if ready && p.gone.is_some_and(|since| !lately(since.max(p.since))) {
            return Err("its state directory is gone and it is ready".to_owned());
        }
        let fenced = lock(&self.broker).hosts[host].fenced;
        let reads = !engine.consumers.is_empty();
        if ready
            && reads
            && p.cut
                .is_some_and(|since| since + UNREACHABLE_AFTER + NOTICED < self.now)
        {
            return Err("no broker has answered it for long and it is ready".to_owned());
        }
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
    pub(super) fn is_drained(&self) -> bool {
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
        let positions = engine.topology.positions();
        let positions: BTreeMap<i32, i64> = positions.iter().map(|o| (log(o), o.offset)).collect();
        let read = (0..)
            .zip(&ends)
            .all(|(p, end)| positions.get(&p).copied().unwrap_or(0) >= *end);
        let held = engine
            .topology
            .watchdog()
            .is_none_or(|w| w.frontier().holder.is_some());
        let waits = match engine.topology.role() {
            Role::Judge(facts) => {
                let behind = facts.partitions.behind > 0;
                behind || facts.tasks.is_some_and(|n| n < JUDGE_PARTITIONS)
            }
            _ => false,
        };
        let facts = engine.published.facts();
        let told = p.site.has_notified() && facts.sinks.iter().all(|s| s.queued == 0);
        read && !held && !waits && told && lock(&p.site.jobs).waiting_none()
    }

    pub(super) fn standing(&self) -> String {
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
            engine.topology.positions(),
            engine.topology.watchdog().map(|w| w.frontier()),
            engine.published.missing()
        )
    }

    /// Compares what was counted and judged with the oracle.
    pub(super) fn verdict(&mut self) -> Result<(), String> {
        let engine = self.processes[0].engine.as_ref();
        let engine = engine.ok_or("host 0 does not run")?;
        let receivers = lock(&self.receivers);
        if is_ahead(engine, self.scenario, self.now) {
            // Which records are late depends on when that was read.
            return Ok(());
        }
        alerts::at_the_end(engine, &receivers, self.scenario.fleet)?;
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
}

/// Whether records were believed that a producer's clock ahead has written while the host's was
/// ahead too. What comes afterwards is late until somebody resets the watermark. Where no host's
/// clock was ahead they must not be, nor where no partition has several of them in a row.
fn is_ahead(engine: &EngineLoop, scenario: &Scenario, now: Duration) -> bool {
    let ahead = |f: &Fault| matches!(f, Fault::Clock { ahead_ms, .. } if *ahead_ms > AHEAD_MS);
    let mark = engine.topology.watchdog().map(|w| w.frontier());
    mark.and_then(|mark| mark.time_ms) > Some(clock::wall_ms(now) + AHEAD_MS)
        && scenario.faults.iter().any(|(_, f)| ahead(f))
        && (0..scenario.partitions).any(|log| ahead_in_a_row(scenario, log) >= CONFIRMATIONS)
}

/// Most records of a log whose clocks are years ahead, without one between them whose clock is in
/// order.
fn ahead_in_a_row(scenario: &Scenario, log: i32) -> usize {
    let (mut run, mut longest) = (0, 0);
    for r in scenario.records.iter().filter(|r| r.log == log) {
        match r.kind {
            Kind::Future if r.stamp_ms > clock::wall_ms(r.at) + AHEAD_MS => run += 1,
            Kind::Good { .. } | Kind::Doubtful => run = 0,
            _ => {}
        }
        longest = longest.max(run);
    }
    longest
}

/// Offsets are committed after the snapshot that holds their records is on disk.
fn committed(
    s: &Scenario,
    broker: &Shared,
    stored: &mut BTreeMap<i32, i64>,
    engine: &EngineLoop,
    folder: &Path,
) -> Result<(), String> {
    if !matches!(engine.topology, Topology::Single(_)) {
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
