//! The published state of the program: loops write it, HTTP requests read it.
//!
//! It contains the last [`StreamReport`] of each monitored stream, the [`Facts`], the [`History`],
//! the parts that must be ready and the heartbeat of each loop. Nothing else crosses from the
//! engine to the outside.
//!
//! The HTTP server does not query the engine, because the engine is a single thread without locks:
//! a scrape must neither wait for it nor delay it. A report is immutable once published. Publishing
//! swaps an `Arc`, reading clones it. The facts sit behind one lock that is held for a pointer
//! copy. Values are translated into metrics during a scrape and never stored as metrics, so a
//! withdrawn value cannot survive here.
//!
//! Invariants: a reader sees whole reports. Every named part is either ready or carries a reason.
//! Once draining, the program is never ready again.
//!
//! Cost: a publish is one hash per stream and tick, and one swap if a report changed; a heartbeat
//! is one atomic store. The readiness of named parts follows linkerd2-proxy (`linkerd/app/admin`,
//! readiness).

use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dashmap::DashMap;

use super::concerns::{Concern, CountHistory, unread, wrong_partition};
use super::control::Control;
use super::facts::Facts;
use super::history::History;
use super::taps::Taps;
use crate::alert::Severity;
use crate::judge::{StreamId, StreamReport};

/// Silence of a loop after which the program is no longer live. Loops beat at least once a second;
/// thirty seconds outlast a snapshot on a slow disk and a long rebalance callback.
pub const LIVE_WITHIN: Duration = Duration::from_secs(30);

/// Cap on the series of streams and windows in one scrape. Without cells, those of a thousand
/// streams with three windows each fit.
pub const SERIES_MAX: usize = 250_000;
/// Most streams whose cells are exported: cells are more than half of all series.
pub const CELL_STREAMS_MAX: usize = 100;
/// Series of a stream with a detector while no alarm stands, without those of its windows and bins.
pub const STREAM_SERIES: usize = 17;
/// Series of a window of scores, without its cells; rare events have four more.
pub const WINDOW_SERIES: usize = 51;

/// The reason of a source that is not ready at the start, and how long it is normal.
const JOINING: &str = "joining the group";
const JOINS_WITHIN: Duration = Duration::from_secs(300);

/// Upper bounds of the evaluation histogram, in seconds. An evaluation takes 50 µs to 200 µs, or
/// some tens of milliseconds with Monte Carlo. More than one second indicates a problem.
pub const EVALUATION_BUCKETS: [f64; 10] = [
    0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.005, 0.02, 0.1, 0.5, 1.0,
];

/// Limits of what is exported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Cap on series of streams and windows per scrape. `trueline_series_refused` counts the rest.
    pub series_max: usize,
    /// Most streams whose cells of the reliability diagram (five series per cell and window) and
    /// detector bins are exported.
    pub cell_streams_max: usize,
    /// Silence of a loop after which `/live` fails and calibration values are withdrawn.
    pub live_within: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            series_max: SERIES_MAX,
            cell_streams_max: CELL_STREAMS_MAX,
            live_within: LIVE_WITHIN,
        }
    }
}

/// Counters of the HTTP server itself.
#[derive(Debug, Default)]
pub struct HttpCounters {
    /// Open connections.
    pub open: AtomicU64,
    /// Connections answered with 503 because the cap was reached, and those ended to make room for
    /// a new one.
    pub refused: AtomicU64,
    /// Responses by status class: 2xx, 4xx, 5xx.
    pub responses: [AtomicU64; 3],
}

/// The heartbeat of one loop. Cheap to clone into that loop.
#[derive(Debug, Clone)]
pub struct Beat {
    started: Instant,
    last_ms: Arc<AtomicU64>,
}

impl Beat {
    /// Records an iteration of the loop.
    pub fn tick(&self) {
        self.last_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Time since the last tick.
    pub fn silence(&self) -> Duration {
        let last = self.last_ms.load(Ordering::Relaxed);
        Duration::from_millis(self.now_ms().saturating_sub(last))
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A histogram of durations with the bounds of [`EVALUATION_BUCKETS`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Durations {
    /// Observations at or below each bound and above the previous one; the last entry is above all.
    pub counts: [u64; EVALUATION_BUCKETS.len() + 1],
    /// Sum of all observations in seconds.
    pub sum: f64,
}

/// All published state. Readers see whole reports.
#[derive(Debug)]
pub struct Published {
    limits: Limits,
    /// Cap on series; a reload may change it.
    series_max: AtomicUsize,
    started: Instant,
    /// Wall-clock time of the start, in seconds since 1970.
    started_seconds: f64,
    reports: DashMap<StreamId, Arc<StreamReport>>,
    facts: RwLock<Arc<Facts>>,
    /// Why each part is not ready; `None` once it is.
    parts: Mutex<BTreeMap<String, Option<String>>>,
    loops: Mutex<BTreeMap<String, Beat>>,
    evaluations: Mutex<Durations>,
    draining: AtomicBool,
    /// Counters of the HTTP server.
    pub http: HttpCounters,
    /// Requests to the running program.
    pub control: Control,
    /// Listeners to the tap.
    pub taps: Taps,
    /// Past verdicts of windows and alerts of streams.
    pub history: History,
    counts: Mutex<CountHistory>,
}

/// Milliseconds since 1970 by this machine's clock.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

impl Default for Published {
    fn default() -> Published {
        Published::new(Limits::default())
    }
}

impl Published {
    /// An empty state: nothing published, no part named, no loop known.
    pub fn new(limits: Limits) -> Published {
        Published {
            series_max: AtomicUsize::new(limits.series_max),
            limits,
            started: Instant::now(),
            started_seconds: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0.0, |since| since.as_secs_f64()),
            reports: DashMap::new(),
            facts: RwLock::new(Arc::new(Facts::default())),
            parts: Mutex::new(BTreeMap::new()),
            loops: Mutex::new(BTreeMap::new()),
            evaluations: Mutex::new(Durations::default()),
            draining: AtomicBool::new(false),
            http: HttpCounters::default(),
            control: Control::default(),
            taps: Taps::default(),
            history: History::default(),
            counts: Mutex::default(),
        }
    }

    /// The limits given at the start, with the current cap on series.
    pub fn limits(&self) -> Limits {
        Limits {
            series_max: self.series_max.load(Ordering::Relaxed),
            ..self.limits
        }
    }

    /// Replaces the cap on series.
    pub fn set_series_max(&self, series_max: usize) {
        self.series_max.store(series_max, Ordering::Relaxed);
    }

    /// Start of the program in seconds since the epoch.
    pub fn started_seconds(&self) -> f64 {
        self.started_seconds
    }

    /// Publishes a stream's report in place of its last one. Publishing the same pointer again
    /// costs one look-up.
    pub fn publish(&self, report: &Arc<StreamReport>) {
        match self.reports.get_mut(&report.id) {
            Some(last) if Arc::ptr_eq(&last, report) => {}
            Some(mut last) => *last = Arc::clone(report),
            None => {
                self.reports.insert(report.id.clone(), Arc::clone(report));
            }
        }
    }

    /// Number of streams with a report.
    pub fn streams(&self) -> usize {
        self.reports.len()
    }

    /// Withdraws the reports of all streams for which `keep` is false, such as evicted or revoked
    /// ones.
    pub fn retain(&self, mut keep: impl FnMut(&StreamId) -> bool) {
        self.reports.retain(|id, _| keep(id));
    }

    /// The report of one stream.
    pub fn report(&self, id: &StreamId) -> Option<Arc<StreamReport>> {
        self.reports.get(id).map(|entry| Arc::clone(entry.value()))
    }

    /// All reports, ordered by the names of their streams.
    pub fn reports(&self) -> Vec<Arc<StreamReport>> {
        let mut all: Vec<_> = self.reports.iter().map(|e| Arc::clone(e.value())).collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// The current facts.
    pub fn facts(&self) -> Arc<Facts> {
        Arc::clone(&self.facts.read())
    }

    /// Changes the facts. Readers keep the old ones until their next read.
    pub fn update(&self, change: impl FnOnce(&mut Facts)) {
        let mut facts = self.facts.write();
        change(Arc::make_mut(&mut facts));
    }

    /// Stores the current counts of the sources, for [`Published::concerns`]. Returns the concerns
    /// that began and those that ended.
    pub fn observe_counts(&self) -> (Vec<Concern>, Vec<Concern>) {
        self.counts
            .lock()
            .observe(self.age_ms(), &self.facts().sources);
        let now = self.concerns();
        self.counts.lock().changes(now)
    }

    /// The current concerns about incoming records.
    pub fn concerns(&self) -> Vec<Concern> {
        let facts = self.facts();
        let wrong = facts.wrong_partitions.iter();
        let mut all: Vec<Concern> = wrong.filter_map(|(t, s)| wrong_partition(t, s)).collect();
        let mut stopped: BTreeMap<&str, usize> = BTreeMap::new();
        for (topic, _) in &facts.suspended {
            *stopped.entry(topic).or_default() += 1;
        }
        all.extend(stopped.into_iter().map(|(topic, n)| unread(topic, n)));
        all.extend(self.unreachable());
        all.extend(self.counts.lock().concerns(self.age_ms(), &facts.sources));
        all
    }

    /// Milliseconds since the start, independent of steps of the wall clock.
    fn age_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Concerns about topics that are not fully read because brokers do not answer or the group is
    /// not joined.
    fn unreachable(&self) -> Vec<Concern> {
        let starts = self.started.elapsed() < JOINS_WITHIN;
        let mut found: BTreeMap<String, Concern> = BTreeMap::new();
        for (part, why) in self.parts.lock().iter() {
            let Some(why) = why else { continue };
            let (topics, words) = match part.strip_prefix("kafka ") {
                Some(topics) => (Some(topics), format!("nothing is read: {why}")),
                // The reason says whether anything is read.
                None => (part.strip_prefix("brokers of "), why.clone()),
            };
            let Some(topics) = topics else { continue };
            if starts && why == JOINING {
                continue;
            }
            for topic in topics.split(',') {
                found.entry(topic.to_owned()).or_insert_with(|| Concern {
                    source: topic.to_owned(),
                    rule: "TruelineNotReady",
                    severity: Severity::Page,
                    words: words.clone(),
                });
            }
        }
        found.into_values().collect()
    }

    /// Names a part that is not ready, with the reason. All parts are named before the server
    /// starts, so that `/ready` cannot succeed too early.
    pub fn not_ready(&self, part: &str, reason: &str) {
        self.parts
            .lock()
            .insert(part.to_owned(), Some(reason.to_owned()));
    }

    /// Marks a part as ready.
    pub fn ready(&self, part: &str) {
        self.parts.lock().insert(part.to_owned(), None);
    }

    /// Marks the program as stopping. `/ready` fails from then on, and taps are closed, because a
    /// stop waits for open responses.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.taps.close();
    }

    /// Whether the program is stopping.
    pub fn draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Each named part, with the reason if it is not ready.
    pub fn parts(&self) -> BTreeMap<String, Option<String>> {
        self.parts.lock().clone()
    }

    /// Parts that are not ready, with their reasons; empty if the program is ready. Before any part
    /// is named, the program is starting and not ready. A silent loop is not ready either, because
    /// its published state is old.
    pub fn missing(&self) -> BTreeMap<String, String> {
        let parts = self.parts.lock();
        let mut missing: BTreeMap<String, String> = parts
            .iter()
            .filter_map(|(part, why)| Some((part.clone(), why.clone()?)))
            .collect();
        if parts.is_empty() {
            missing.insert("start".to_owned(), "no part has reported yet".to_owned());
        }
        drop(parts);
        for (name, silence) in self.silent() {
            let seconds = silence.as_secs();
            let why = format!("it has not run for {seconds} s; what is shown is as old; see /live");
            missing.insert(format!("loop {name}"), why);
        }
        if self.draining() {
            missing.insert("drain".to_owned(), "the program is stopping".to_owned());
        }
        missing
    }

    /// Registers the heartbeat of a loop with `/live`.
    pub fn beat(&self, name: &str) -> Beat {
        let beat = Beat {
            started: self.started,
            last_ms: Arc::new(AtomicU64::new(0)),
        };
        beat.tick();
        self.loops.lock().insert(name.to_owned(), beat.clone());
        beat
    }

    /// Removes a loop that has ended normally.
    pub fn end_beat(&self, name: &str) {
        self.loops.lock().remove(name);
    }

    /// Time since the last iteration of each loop.
    pub fn silences(&self) -> BTreeMap<String, Duration> {
        let loops = self.loops.lock();
        loops
            .iter()
            .map(|(name, beat)| (name.clone(), beat.silence()))
            .collect()
    }

    /// Loops that have not beaten within the limit, and for how long.
    pub fn silent(&self) -> BTreeMap<String, Duration> {
        let within = self.limits.live_within;
        let mut silences = self.silences();
        silences.retain(|_, silence| *silence > within);
        silences
    }

    /// Whether every loop has beaten within the limit. A program without loops is live.
    pub fn live(&self) -> bool {
        self.silent().is_empty()
    }

    /// Records the duration of one evaluation.
    pub fn record_evaluation(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = EVALUATION_BUCKETS.partition_point(|&bound| bound < seconds);
        let mut all = self.evaluations.lock();
        all.counts[bucket] += 1;
        all.sum += seconds;
    }

    /// Durations of all evaluations so far.
    pub fn evaluations(&self) -> Durations {
        *self.evaluations.lock()
    }
}

#[cfg(test)]
impl Published {
    /// Makes the program older by this much.
    pub fn grow_older(&mut self, by: Duration) {
        self.started = self.started.checked_sub(by).expect("a time");
    }
}

#[cfg(test)]
mod tests;
