//! What is true: recomputed from the log alone, by code that is too simple to be wrong in the same
//! way.
//!
//! Good records are counted by hand: by window, model and outcome, and by disposition. Verdicts,
//! intervals and detectors are those of one engine that reads the committed log once, undisturbed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use trueline::app::cluster::topology::Topology;
use trueline::app::engine_loop::EngineLoop;
use trueline::app::ingest::record::RecordReader;
use trueline::collect::{Counters, Reason, SourceCounters};
use trueline::config::Config;
use trueline::judge::{Change, DetectorReport};
use trueline::kafka::{Headers, Record as Read};
use trueline::monitor::{Engine, MonitorView, PartitionEvent, RecordSink};

use super::broker::Broker;
use super::clock;
use super::outcomes::{self, Joined, MATURITY_MS};
use super::scenario::{EXPIRY, Fault, Kind, Scenario};
use super::world::{LATENESS_MS, STALLED_MS};

/// Models of which it is known how each record counts; the last one has its outcomes apart.
const MODELS: [&str; 3] = ["a", "b", "d"];

/// Within this and the time between two checkpoints an owner has claimed again what nobody has
/// claimed: a session, the pause before a consumer is made again, and what the group takes.
const RECLAIMED: Duration = Duration::from_secs(20);
/// Who claims where nobody does.
pub const STRAY: &[u8] = b"stray";

/// A committed record.
pub struct Entry {
    /// Number of its topic.
    topic: usize,
    partition: i32,
    offset: i64,
    stamp_ms: i64,
    appended: Duration,
    text: Vec<u8>,
    kind: Kind,
    time_ms: i64,
}

/// The committed log, in the order in which it was appended.
pub struct Committed {
    entries: Vec<Entry>,
    topics: usize,
    partitions: i32,
    joined: Option<Joined>,
    expires: bool,
}

impl Committed {
    /// What a consumer has to count.
    pub fn of(broker: &Broker, s: &Scenario) -> Committed {
        let mut entries = Vec::new();
        let topics = s.topics().iter().enumerate();
        let logs =
            topics.flat_map(|(n, topic)| (0..).zip(&broker.topics[*topic]).map(move |l| (n, l)));
        for (topic, (partition, log)) in logs {
            let first = s.start.first(log);
            for (offset, e) in (0..).zip(&log.entries) {
                let key: Option<[u8; 8]> = e.key.as_slice().try_into().ok();
                let number = key
                    .map(u64::from_le_bytes)
                    .and_then(|n| usize::try_from(n).ok());
                let Some(record) = number.and_then(|n| s.records.get(n)) else {
                    continue;
                };
                if !broker.is_seen(e) || offset < first {
                    continue;
                }
                entries.push(Entry {
                    topic,
                    partition,
                    offset,
                    stamp_ms: e.time_ms,
                    appended: e.appended,
                    text: record.text.clone().into_bytes(),
                    kind: record.kind,
                    time_ms: record.time_ms,
                });
            }
        }
        entries.sort_by_key(|e| (e.appended, e.topic, e.partition, e.offset));
        Committed {
            entries,
            topics: s.topics().len(),
            partitions: s.partitions,
            joined: s.joined,
            expires: s.expires,
        }
    }

    fn count(&self, of: impl Fn(Kind) -> bool) -> u64 {
        self.entries.iter().filter(|e| of(e.kind)).count() as u64
    }

    /// Model, time and outcome of what counts.
    fn counted(&self) -> Vec<(usize, i64, bool)> {
        let mut all = self.good();
        if let Some(how) = self.joined {
            let records = self.entries.iter().map(|e| (e.kind, e.time_ms));
            let counted = outcomes::counted(how, records).into_iter();
            all.extend(counted.map(|(time_ms, y)| (MODELS.len() - 1, time_ms, y)));
        }
        all
    }

    /// Models whose stream may have been let go. Open: that happens at a tick, and whether one
    /// comes within a gap goes by how far the reader is behind; so afterwards a detector goes on or
    /// begins again, and an empty window has been judged or has not.
    pub fn expired(&self) -> impl Iterator<Item = &'static str> {
        let expires = |model: usize| {
            let of = self.counted().into_iter().filter(|(m, ..)| *m == model);
            let mut times: Vec<i64> = of.map(|(_, time_ms, _)| time_ms).collect();
            // Old records before the begin count too where reading begins with them.
            let name = format!(r#""model":"{}""#, MODELS[model]);
            let doubtful = self.entries.iter().filter(|e| e.kind == Kind::Doubtful);
            let named = |e: &&Entry| String::from_utf8_lossy(&e.text).contains(&name);
            times.extend(doubtful.filter(named).map(|e| e.time_ms));
            // A clock ten years ahead is not believed.
            let believed = self.entries.iter().filter(|e| e.kind != Kind::Future);
            times.extend(believed.map(|e| e.time_ms).max());
            times.sort_unstable();
            let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
            self.expires && gaps.max() >= Some(EXPIRY.as_millis() as i64)
        };
        let all = MODELS.iter().enumerate();
        all.filter(move |(model, _)| expires(*model))
            .map(|(_, name)| *name)
    }

    /// Model, time and outcome of the good records with their outcomes, each once.
    fn good(&self) -> Vec<(usize, i64, bool)> {
        let mut texts = BTreeSet::new();
        let good = self.entries.iter().filter_map(|e| match e.kind {
            Kind::Good { model, outcome } => {
                texts.insert(&e.text).then_some((model, e.time_ms, outcome))
            }
            _ => None,
        });
        good.collect()
    }

    /// One engine that reads everything, undisturbed, and what changed.
    fn reference(&self, config: &Config) -> (Engine, Vec<Change>) {
        let mut engine = Engine::new(config.plan.clone());
        let readers = config.sources.iter().zip([0, 1]);
        let readers = readers.map(|(s, base)| RecordReader::new(s, base, None).expect("sound"));
        let mut readers: Vec<RecordReader> = readers.collect();
        let topics = 0..self.topics as u16;
        let all = topics.flat_map(|t| (0..self.partitions).map(move |p| (t, p)));
        for (topic, p) in all.clone() {
            engine.assign((topic, p).into());
        }
        for e in &self.entries {
            let reader = &mut readers[e.topic.min(1)];
            reader.reading_ms = Some(clock::wall_ms(e.appended) + 1000);
            let record = Read {
                topic: e.topic.saturating_sub(1) as u16,
                partition: e.partition,
                offset: e.offset,
                timestamp_ms: Some(e.stamp_ms),
                key: None,
                payload: &e.text,
                headers: Headers::default(),
            };
            reader.read(&mut engine, &record);
        }
        all.for_each(|(topic, p)| engine.on_partition((topic, p).into(), PartitionEvent::Ended));
        // Reports of detectors are brought up to date.
        let changes = engine.tick(clock::wall_ms(clock::now()));
        (engine, changes)
    }
}

/// No evaluated verdict is older than it may be, unless the process says that it is not ready.
pub fn young(engine: &EngineLoop) -> Result<(), String> {
    let Topology::Single(single) = &engine.topology else {
        // A shard by itself sets the first records after a long gap aside.
        return Ok(());
    };
    if !engine.published.missing().is_empty() {
        return Ok(());
    }
    // What came is sealed, and then the window has to slide.
    let bound_ms = LATENESS_MS + STALLED_MS + 25_000;
    for report in single.monitor().reports() {
        let joined = report.id.model == "d";
        let bound_ms = bound_ms + if joined { MATURITY_MS } else { 0 };
        // The third one slides once.
        for window in report.windows.iter().take(2) {
            let age_ms = report.last_event_ms - window.end_ms;
            if window.verdict.is_evaluated() && age_ms > bound_ms {
                return Err(format!(
                    "{} over {} says {} of {} s before its last event and the process is ready",
                    report.id,
                    window.window,
                    window.verdict,
                    age_ms / 1000
                ));
            }
        }
    }
    Ok(())
}

/// The owner of a partition notices a claim of nobody also if it has nothing to write, and claims
/// again: with the next batch of checkpoints, and a session later.
pub fn claimed_again(broker: &Broker, s: &Scenario, now: Duration) -> Result<(), String> {
    let within = Duration::from_secs(s.interval_s) + RECLAIMED;
    for (at, fault) in &s.faults {
        let due = *at + within;
        let Fault::Stray { log } = fault else {
            continue;
        };
        if now < due || now > due + Duration::from_secs(1) {
            continue;
        }
        let (topic, partition) = s.place(*log);
        let end = format!("/{topic}/{partition}/claim");
        let state = broker.topics.get("state").into_iter().flatten();
        let mut newest = state.flat_map(|log| log.entries.iter().rev());
        let last = newest.find(|e| e.key.ends_with(end.as_bytes()));
        if last.is_some_and(|e| e.value.as_deref() == Some(STRAY)) {
            return Err(format!(
                "nobody has claimed {topic}/{partition} for {} s and its owner does not claim it again",
                within.as_secs()
            ));
        }
    }
    Ok(())
}

/// Compares a process that has read everything with what is true, and answers what changes there
/// were. `counting` are the processes that count, and `future` says that no clock of a host was
/// ahead, so that records of the future are known to be; `bets`, that no delta was missing to the
/// judge of others, so that its detectors saw every slide.
pub fn compare<'e>(
    engine: &EngineLoop,
    counting: impl Iterator<Item = &'e EngineLoop>,
    committed: &Committed,
    config: &Config,
    (future, bets): (bool, bool),
) -> Result<Vec<Change>, String> {
    let mut counters = [(); 3].map(|()| SourceCounters::default());
    let mut add = |all: &Counters| {
        let by_topic = (0..).zip(&mut counters);
        by_topic.for_each(|(n, sum)| sum.add(&all.source(n)));
    };
    for engine in counting {
        match &engine.topology {
            Topology::Single(e) => add(&e.counters()),
            Topology::Sharded(m) => {
                let all = m.shards().all().iter();
                all.for_each(|s| add(s.view().counters()));
            }
            Topology::Judges(_) => {}
        }
    }
    dispositions(&counters[0], committed, future)?;
    joined(&counters[1..], committed)?;
    windows(&engine.topology, committed)?;
    let (reference, changes) = committed.reference(config);
    let mut expected = judged(reference.monitor());
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (what, said) in engine.topology.monitors().flat_map(judged) {
        if found.insert(what.clone(), said).is_some() {
            return Err(format!("{what} is judged twice"));
        }
    }
    // Records of the third model are late or not, by when they were read.
    expected.retain(|k, _| !k.starts_with("c/"));
    found.retain(|k, _| !k.starts_with("c/"));
    let whole = match &engine.topology {
        Topology::Single(_) => true,
        // A process whose partitions move bets on those that it has.
        Topology::Sharded(_) => false,
        Topology::Judges(_) => bets,
    };
    if !whole {
        expected.retain(|k, _| !k.ends_with(" detector"));
    }
    if matches!(engine.topology, Topology::Judges(_)) {
        // It seals when checkpoints come, and an outcome that corrects a pane before that is not
        // missed.
        expected.retain(|k, _| !(k.starts_with("d/") && k.ends_with(" detector")));
    }
    for model in committed.expired() {
        // A window that has been emptied since is one that was never judged, in a stream that came
        // again.
        let open = |k: &str, said: &str| k.ends_with(" detector") || said.contains(" n: 0, ");
        expected.retain(|k, said| !(k.starts_with(&format!("{model}/")) && open(k, said)));
    }
    for (what, said) in &expected {
        match found.get(what) {
            Some(found) if found == said => {}
            Some(found) => return Err(format!("{what}: {}", difference(found, said))),
            None => return Err(format!("{what} is missing")),
        }
    }
    Ok(changes)
}

/// Two texts from a little before where they begin to differ.
fn difference(found: &str, expected: &str) -> String {
    let same = found
        .bytes()
        .zip(expected.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let part = |text: &str| {
        text.chars()
            .skip(same.saturating_sub(60))
            .take(160)
            .collect::<String>()
    };
    format!("found …{}… instead of …{}…", part(found), part(expected))
}

fn dispositions(c: &SourceCounters, committed: &Committed, known: bool) -> Result<(), String> {
    let expect = |what: &str, found: u64, expected: u64| match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found} instead of {expected}; {c:?}")),
    };
    let apart = |k| matches!(k, Kind::Prediction(_) | Kind::Outcome(..));
    expect("records", c.records, committed.count(|k| !apart(k)))?;
    expect("disposed", c.disposed(), c.records)?;
    expect(
        "malformed",
        c.rejected(Reason::Malformed),
        committed.count(|k| k == Kind::Broken),
    )?;
    let unwatched = committed.count(|k| k == Kind::Unwatched);
    expect(
        "of unknown models",
        c.rejected(Reason::UnknownModel),
        unwatched,
    )?;
    expect(
        "of schemas that cannot be had",
        c.rejected(Reason::UnknownSchema),
        committed.count(|k| matches!(k, Kind::Unschemed(_))),
    )?;
    expect("replayed", c.replayed, 0)?;
    let good = committed.good().len() as u64;
    let all = committed.count(|k| matches!(k, Kind::Good { .. }));
    expect("duplicates", c.duplicate, all - good)?;
    let doubtful = committed.count(|k| k == Kind::Doubtful);
    let future = committed.count(|k| k == Kind::Future);
    let rejected = c.rejected(Reason::TimeOutOfRange);
    if (known && rejected < future) || rejected + c.late > future + doubtful {
        return Err(format!(
            "good records are late or rejected: {} late and {rejected} out of range, of {doubtful} doubtful and {future} future",
            c.late
        ));
    }
    Ok(())
}

/// Of predictions and outcomes each has an end, and none came late.
fn joined(all: &[SourceCounters], committed: &Committed) -> Result<(), String> {
    let predictions = committed.count(|k| matches!(k, Kind::Prediction(_)));
    let outcomes = committed.count(|k| matches!(k, Kind::Outcome(..)));
    for (c, n) in all.iter().zip([predictions, outcomes]) {
        let lost = c.records - c.disposed() + c.late + c.replayed;
        let rejected = Reason::ALL.iter().map(|r| c.rejected(*r)).sum::<u64>();
        if (c.records, lost, rejected) != (n, 0, 0) {
            return Err(format!("{n} of a joined topic: {c:?}"));
        }
    }
    Ok(())
}

/// Counts the events of each window by hand.
fn windows(topology: &Topology, committed: &Committed) -> Result<(), String> {
    let good = committed.counted();
    let mut compared = 0;
    for (id, report, sums) in topology.monitors().flat_map(MonitorView::totals) {
        let Some(model) = MODELS.iter().position(|m| *m == id.model) else {
            continue;
        };
        let width_ms = match report.window.as_str() {
            "30s" => 30_000,
            "1m" => 60_000,
            _ => 3_600_000,
        };
        let within = |t: i64| t >= report.end_ms - width_ms && t < report.end_ms;
        let here = good.iter().filter(|(m, t, _)| *m == model && within(*t));
        let (n, positives) = here.fold((0, 0), |(n, k), (.., y)| (n + 1, k + u64::from(*y)));
        let mut found = 0;
        sums.each_occupied(|_, cell| found += cell.y);
        if report.n == n && sums.n() < n {
            // Panes came since the window slid, and its first ones are gone.
            compared += 1;
            continue;
        }
        if (report.n, sums.n(), found) != (n, n, positives) {
            return Err(format!(
                "{id} over {} to {}: n {} and {found} positive instead of {n} and {positives}",
                report.window, report.end_ms, report.n
            ));
        }
        compared += 1;
    }
    // A stream that was let go has no windows.
    let least = 4_usize.saturating_sub(2 * committed.expired().count());
    if compared < least && good.len() > 100 {
        return Err(format!("only {compared} windows"));
    }
    Ok(())
}

/// What every window and detector says.
fn judged(monitor: MonitorView<'_>) -> BTreeMap<String, String> {
    let totals = monitor.totals().map(|(id, report, sums)| {
        let said = format!(
            "{} {} {} {:?} {sums:?}",
            report.end_ms, report.n, report.verdict, report.numbers
        );
        (format!("{id} {}", report.window), said)
    });
    let detectors = monitor.reports().map(|r| {
        // Since when a stream is called goes by how many panes were sealed at once: of all streams
        // the newest ones are compared, and those of a model whose outcomes come later are behind.
        let detector = r.detector.as_deref().map(|d| DetectorReport {
            called_ms: None,
            ..d.clone()
        });
        let said = format!("{detector:?} {:?}", r.overdispersion);
        (format!("{} detector", r.id), said)
    });
    totals.chain(detectors).collect()
}
