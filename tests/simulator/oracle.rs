//! What is true: recomputed from the log alone, by code that is too simple to be wrong in the same way.
//!
//! Good records are counted by hand: by window, model and outcome, and by disposition. Verdicts, intervals
//! and detectors are those of one engine that reads the committed log once, undisturbed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use trueline::app::cluster::topology::Topology;
use trueline::app::engine_loop::EngineLoop;
use trueline::app::ingest::record::RecordReader;
use trueline::collect::{Reason, SourceCounters};
use trueline::config::Config;
use trueline::kafka::{Headers, Record as Read};
use trueline::monitor::{Engine, Monitor};

use super::broker::Broker;
use super::clock;
use super::scenario::{BEGIN, Kind, Scenario};
use super::world::{LATENESS_MS, STALLED_MS, TOPIC};

/// A committed record.
pub struct Entry {
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
    partitions: i32,
}

impl Committed {
    /// What a consumer has to count.
    pub fn of(broker: &Broker, s: &Scenario) -> Committed {
        let mut entries = Vec::new();
        for (partition, log) in (0..).zip(&broker.topics[TOPIC]) {
            for (offset, e) in (0..).zip(&log.entries) {
                let key: Option<[u8; 8]> = e.key.as_slice().try_into().ok();
                let number = key
                    .map(u64::from_le_bytes)
                    .and_then(|n| usize::try_from(n).ok());
                let Some(record) = number.and_then(|n| s.records.get(n)) else {
                    continue;
                };
                if !broker.is_seen(e) || (s.latest && e.appended < BEGIN) {
                    continue;
                }
                entries.push(Entry {
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
        entries.sort_by_key(|e| (e.appended, e.partition, e.offset));
        Committed {
            entries,
            partitions: s.partitions,
        }
    }

    fn count(&self, of: impl Fn(Kind) -> bool) -> u64 {
        self.entries.iter().filter(|e| of(e.kind)).count() as u64
    }

    /// Model, time and outcome of the good records, each once.
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

    /// One engine that reads everything, undisturbed.
    fn reference(&self, config: &Config) -> Engine {
        let mut engine = Engine::new(config.plan.clone());
        let mut reader = RecordReader::new(&config.sources[0], 0, None).expect("sound");
        (0..self.partitions).for_each(|p| {
            engine.assign(0, p);
        });
        for e in &self.entries {
            reader.reading_ms = Some(clock::wall_ms(e.appended) + 1000);
            let record = Read {
                topic: 0,
                partition: e.partition,
                offset: e.offset,
                timestamp_ms: Some(e.stamp_ms),
                key: None,
                payload: &e.text,
                headers: Headers::default(),
            };
            reader.read(&mut engine, &record);
        }
        (0..self.partitions).for_each(|p| engine.end_of_partition(0, p));
        // Reports of detectors are brought up to date.
        engine.tick(clock::wall_ms(clock::now()));
        engine
    }
}

/// No evaluated verdict is older than it may be, unless the process says that it is not ready.
pub fn young(engine: &EngineLoop) -> Result<(), String> {
    let Topology::Single(single) = &engine.engines else {
        // A shard by itself sets the first records after a long gap aside.
        return Ok(());
    };
    if !engine.published.missing().is_empty() {
        return Ok(());
    }
    // What came is sealed, and then the window has to slide.
    let bound_ms = LATENESS_MS + STALLED_MS + 25_000;
    for report in single.monitor().reports() {
        for window in &report.windows {
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

/// Compares a process that has read everything with what is true.
/// `counting` are the processes that count, and `future` says that no clock of a host was
/// ahead, so that records of the future are known to be; `bets`, that no delta was missing to the judge of others,
/// so that its detectors saw every slide.
pub fn compare<'e>(
    engine: &EngineLoop,
    counting: impl Iterator<Item = &'e EngineLoop>,
    committed: &Committed,
    config: &Config,
    (future, bets): (bool, bool),
) -> Result<(), String> {
    let mut counters = SourceCounters::default();
    for engine in counting {
        match &engine.engines {
            Topology::Single(e) => counters.add(&e.counters().total()),
            Topology::Sharded(m) => {
                let all = m.shards().all().iter();
                all.for_each(|s| counters.add(&s.shard().counters().total()));
            }
            Topology::Judges(_) => {}
        }
    }
    dispositions(&counters, committed, future)?;
    let monitor = engine
        .engines
        .monitors()
        .next()
        .ok_or("it judges nothing")?;
    windows(monitor, committed)?;
    let reference = committed.reference(config);
    let (mut expected, mut found) = (judged(reference.monitor()), judged(monitor));
    // Records of the third model are late or not, by when they were read.
    expected.retain(|k, _| !k.starts_with("c/"));
    found.retain(|k, _| !k.starts_with("c/"));
    let whole = match &engine.engines {
        Topology::Single(_) => true,
        // A process whose partitions move bets on those that it has.
        Topology::Sharded(_) => false,
        Topology::Judges(_) => bets,
    };
    if !whole {
        expected.retain(|k, _| !k.ends_with(" detector"));
    }
    for (what, said) in &expected {
        match found.get(what) {
            Some(found) if found == said => {}
            Some(found) => return Err(format!("{what}: {}", difference(found, said))),
            None => return Err(format!("{what} is missing")),
        }
    }
    Ok(())
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
    expect("records", c.records, committed.count(|_| true))?;
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

/// Counts the events of each window by hand.
fn windows(monitor: &Monitor, committed: &Committed) -> Result<(), String> {
    let good = committed.good();
    let mut compared = 0;
    for (id, report, sums) in monitor.totals() {
        let Some(model) = ["a", "b"].iter().position(|m| *m == id.model) else {
            continue;
        };
        let width_ms = if report.window == "30s" {
            30_000
        } else {
            60_000
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
    if compared < 4 && good.len() > 100 {
        return Err(format!("only {compared} windows"));
    }
    Ok(())
}

/// What every window and detector says.
fn judged(monitor: &Monitor) -> BTreeMap<String, String> {
    let totals = monitor.totals().map(|(id, report, sums)| {
        let said = format!(
            "{} {} {} {:?} {sums:?}",
            report.end_ms, report.n, report.verdict, report.numbers
        );
        (format!("{id} {}", report.window), said)
    });
    let detectors = monitor.reports().map(|r| {
        let said = format!("{:?} {:?}", r.detector, r.overdispersion);
        (format!("{} detector", r.id), said)
    });
    totals.chain(detectors).collect()
}
