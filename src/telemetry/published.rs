//! What the program shows of itself: written by the loops, read by every HTTP request.
//!
//! Kept here: the last [`StreamReport`] of each monitored stream, the counters of each source, the
//! position and lag of each partition, facts about state and snapshots, the parts that must be ready,
//! and the last beat of each loop. Nothing else crosses from the engine to the outside.
//!
//! Why not let the HTTP server ask the engine: the engine is one thread without locks, and a scrape
//! must neither wait for it nor make it wait. A report is immutable once published; publishing swaps an
//! `Arc`, reading clones one. The small facts sit behind one lock that is held for a pointer copy. The
//! values are translated into metrics at scrape and at no other time (`metrics.rs`), so nothing here
//! remembers a value that its writer has withdrawn.
//!
//! Always: a reader sees whole reports, never half of one; every part that was ever named is either
//! ready or carries the reason why not; once draining, never ready again.
//!
//! Cost: a publish is one hash and one swap, once per stream and slide; a beat is one atomic store.
//! The idea of parts that must each say so once is linkerd2-proxy's (`linkerd/app/admin`, readiness).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dashmap::DashMap;

use super::control::Control;
use super::taps::Taps;
use crate::collect::{PairCounts, SourceCounters};
use crate::judge::{AccountReport, ComparisonReport, StreamId, StreamReport};

/// Silence of a loop after which the program no longer counts as live. Loops beat at least once a
/// second; thirty seconds outlast a snapshot on a slow disk and a long rebalance callback.
pub const LIVE_WITHIN: Duration = Duration::from_secs(30);

/// Series of streams and windows that one scrape may carry. About forty per window and five per cell
/// of its diagram, so eight hundred windows with sixteen cells: 12.5 MB and 0.4 s a scrape, as much as
/// the usual scrape timeout of 10 s bears with room on a busy machine.
pub const SERIES_MAX: usize = 100_000;

/// Upper bounds of the evaluation histogram, in seconds: an evaluation takes 50 µs to 200 µs, Monte
/// Carlo some tens of milliseconds; beyond one second something is wrong.
pub const EVALUATION_BUCKETS: [f64; 10] = [
    0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.005, 0.02, 0.1, 0.5, 1.0,
];

/// Limits of what is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Series of streams and windows per scrape; the rest is counted in `trueline_series_refused`.
    pub series_max: usize,
    /// Whether the cells of the reliability diagram leave as series too (five a cell and window).
    pub cells: bool,
    /// Silence of a loop after which `/live` fails and calibration values are withdrawn.
    pub live_within: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            series_max: SERIES_MAX,
            cells: true,
            live_within: LIVE_WITHIN,
        }
    }
}

/// One source, as of its last batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceFacts {
    /// Name of the source: the topic, or the file. No two sources share one.
    pub name: String,
    /// Where its records went.
    pub counters: SourceCounters,
    /// Rejected records that the dead-letter topic acknowledged.
    pub dead_letters_delivered: u64,
    /// Rejected records that the dead-letter topic did not take.
    pub dead_letters_failed: u64,
    /// Records that wait for their schema.
    pub parked: u64,
    /// Open records that came with partitions from other processes.
    pub brought: u64,
    /// Open records that left with partitions.
    pub taken: u64,
    /// Offsets that the broker deleted before they were read.
    pub lost: u64,
}

/// One assigned partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionFacts {
    /// Topic.
    pub topic: String,
    /// Number of the partition in its topic.
    pub partition: i32,
    /// Offset of the next record to read.
    pub position: i64,
    /// Records between the position and the end of the partition, where the broker told the end.
    pub lag: Option<i64>,
    /// How far the newest event read is behind this machine's clock, while records wait; 0 at the end.
    pub lag_ms: Option<i64>,
    /// Highest event time seen less lateness, where an event was seen.
    pub watermark_ms: Option<i64>,
    /// End reached and confirmed: this partition holds no other back.
    pub idle: bool,
}

/// Size of the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineFacts {
    /// Monitored streams.
    pub streams: u64,
    /// Streams that went unused and were let go.
    pub streams_expired: u64,
    /// Streams of a snapshot that the configuration no longer fits.
    pub streams_dropped: u64,
    /// Sealed and open panes over all streams.
    pub panes: u64,
    /// Bytes of all streams' state.
    pub state_bytes: u64,
    /// Predictions that are held for their outcomes.
    pub held: u64,
    /// Of these, those that memory has no room for.
    pub spilled: u64,
    /// Bytes of memory that the others take.
    pub pending_bytes: u64,
    /// Bytes on disk of what spilled.
    pub spill_bytes: u64,
}

/// Snapshots on disk.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SnapshotFacts {
    /// When the last good one was complete, milliseconds since the epoch.
    pub last_ms: Option<i64>,
    /// How long it took.
    pub seconds: f64,
    /// How large it is.
    pub bytes: u64,
    /// Attempts that failed; the state in memory is unharmed by them.
    pub errors: u64,
    /// Newer files that were torn, damaged or foreign when the state was restored; an older one was used.
    pub refused: u64,
}

/// Parcels, in which the state of partitions moves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParcelFacts {
    /// Parcels written.
    pub written: u64,
    /// Bytes of these, with what was written of journals.
    pub written_bytes: u64,
    /// Parcels read.
    pub read: u64,
    /// Bytes read to find them.
    pub read_bytes: u64,
    /// Parcels that could not be used.
    pub refused: u64,
    /// How long it took to take the last partition over.
    pub restore_seconds: f64,
    /// When the last parcel of a partition was written or read: topic, partition, milliseconds.
    pub last_ms: Vec<(String, i32, Option<i64>)>,
}

/// What a process is among those of which one judges what all count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// It judges what it counts.
    #[default]
    Alone,
    /// It counts.
    Worker,
    /// It judges.
    Judge(FleetFacts),
    /// It was to judge, and another has claimed it since.
    Standby,
}

/// How partitions stand that others count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FleetFacts {
    /// Partitions covered, behind, stale, missing.
    pub partitions: [u64; 4],
    /// Age of the oldest parcel that another is waited for of, milliseconds.
    pub delay_ms: i64,
    /// Records that no parcel in use holds.
    pub uncovered: u64,
    /// Base panes at whose ends nothing was judged.
    pub skipped: u64,
}

/// One sink of alerts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SinkFacts {
    /// Its name.
    pub name: String,
    /// Notices taken.
    pub sent: u64,
    /// Notices that it refused for good.
    pub failed: u64,
    /// Attempts that failed and were, or will be, made again.
    pub retried: u64,
    /// Notices that its full queue refused.
    pub dropped: u64,
    /// Notices that wait.
    pub queued: u64,
    /// When it last took something, milliseconds since the epoch.
    pub last_success_ms: Option<i64>,
    /// Why the last attempt failed, while none has succeeded since.
    pub trouble: Option<String>,
}

/// The last attempt to load the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFacts {
    /// Whether it succeeded. A failed reload leaves the old configuration at work.
    pub loaded: bool,
    /// When the configuration at work was loaded, milliseconds since the epoch.
    pub loaded_ms: Option<i64>,
    /// Hash of its values; empty while nothing was loaded.
    pub hash: String,
}

/// Facts that are replaced as they change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// One entry per source.
    pub sources: Vec<SourceFacts>,
    /// One entry per assigned partition.
    pub partitions: Vec<PartitionFacts>,
    /// Schemas asked for at the registry: found, absent, failed.
    pub registry: [u64; 3],
    /// Accounts of false alarms.
    pub ledger: Arc<[AccountReport]>,
    /// Versions that scored the same ids.
    pub comparisons: Arc<[ComparisonReport]>,
    /// Where rows of pairs went, by name of the model's section, and how many are held.
    pub pair_counts: Vec<(String, PairCounts, usize)>,
    /// One entry per sink of alerts.
    pub sinks: Vec<SinkFacts>,
    /// What the disk did not take of alerts: lines of the journal, notices on their way there, records.
    pub alert_writes_lost: [u64; 3],
    /// Size of the engine.
    pub engine: EngineFacts,
    /// Failures of the store of pending predictions that memory has no room for.
    pub spill_errors: u64,
    /// Snapshots.
    pub snapshot: SnapshotFacts,
    /// Parcels, where there are any.
    pub parcels: Option<ParcelFacts>,
    /// What it is among other processes.
    pub role: Role,
    /// Topics and partitions that are assigned and cannot be read.
    pub barred: Vec<(String, i32)>,
    /// Configuration.
    pub config: ConfigFacts,
}

/// Counters of the HTTP server itself.
#[derive(Debug, Default)]
pub struct HttpCounters {
    /// Open connections.
    pub open: AtomicU64,
    /// Connections answered with 503 because the cap was reached.
    pub refused: AtomicU64,
    /// Answers by status class: 2xx, 4xx, 5xx.
    pub answers: [AtomicU64; 3],
}

/// The heart of one loop. Cheap to clone into the loop that beats it.
#[derive(Debug, Clone)]
pub struct Beat {
    started: Instant,
    last_ms: Arc<AtomicU64>,
}

impl Beat {
    /// Says that the loop went round.
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
    /// Observations at or below each bound and above the one before; the last entry is above all.
    pub counts: [u64; EVALUATION_BUCKETS.len() + 1],
    /// Sum of all observations in seconds.
    pub sum: f64,
}

/// Everything that may be shown; see the module.
#[derive(Debug)]
pub struct Published {
    limits: Limits,
    /// The cap of the limits, which may change.
    series_max: AtomicUsize,
    started: Instant,
    /// The same moment by the wall clock, in seconds since the epoch.
    started_seconds: f64,
    reports: DashMap<StreamId, Arc<StreamReport>>,
    facts: RwLock<Arc<Facts>>,
    /// Part → why it is not ready; `None` once it is.
    parts: Mutex<BTreeMap<String, Option<String>>>,
    loops: Mutex<BTreeMap<String, Beat>>,
    evaluations: Mutex<Durations>,
    draining: AtomicBool,
    /// Counters of the HTTP server.
    pub http: HttpCounters,
    /// What may be asked of the program.
    pub control: Control,
    /// Who listens to pairs.
    pub taps: Taps,
}

impl Default for Published {
    fn default() -> Published {
        Published::new(Limits::default())
    }
}

impl Published {
    /// Nothing published yet, no part named, no loop known.
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
        }
    }

    /// The limits given at the start, with the cap on series as it is now.
    pub fn limits(&self) -> Limits {
        Limits {
            series_max: self.series_max.load(Ordering::Relaxed),
            ..self.limits
        }
    }

    /// Shows at most so many series from now on.
    pub fn series_max(&self, series_max: usize) {
        self.series_max.store(series_max, Ordering::Relaxed);
    }

    /// Start of the program in seconds since the epoch.
    pub fn started_seconds(&self) -> f64 {
        self.started_seconds
    }

    /// Publishes a stream's report in place of its last one.
    pub fn publish(&self, report: Arc<StreamReport>) {
        self.reports.insert(report.id.clone(), report);
    }

    /// Withdraws the reports of all streams for which `keep` says no: evicted or revoked ones.
    pub fn retain(&self, mut keep: impl FnMut(&StreamId) -> bool) {
        self.reports.retain(|id, _| keep(id));
    }

    /// The report of one stream.
    pub fn report(&self, id: &StreamId) -> Option<Arc<StreamReport>> {
        self.reports.get(id).map(|entry| Arc::clone(entry.value()))
    }

    /// All reports in the order of their streams' names.
    pub fn reports(&self) -> Vec<Arc<StreamReport>> {
        let mut all: Vec<_> = self.reports.iter().map(|e| Arc::clone(e.value())).collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// The facts as of now.
    pub fn facts(&self) -> Arc<Facts> {
        Arc::clone(&self.facts.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the facts. Readers hold the old ones until they ask again.
    pub fn update(&self, change: impl FnOnce(&mut Facts)) {
        let mut facts = self.facts.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut facts));
    }

    /// Names a part that is not ready, with the reason. Naming all of them before the server starts
    /// keeps `/ready` from saying yes too early.
    pub fn not_ready(&self, part: &str, reason: &str) {
        lock(&self.parts).insert(part.to_owned(), Some(reason.to_owned()));
    }

    /// Says that a part is ready.
    pub fn ready(&self, part: &str) {
        lock(&self.parts).insert(part.to_owned(), None);
    }

    /// Says that the program is stopping: `/ready` fails from here on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether the program is stopping.
    pub fn draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Each named part, with the reason why it is not ready where it is not.
    pub fn parts(&self) -> BTreeMap<String, Option<String>> {
        lock(&self.parts).clone()
    }

    /// Parts that keep the program from being ready; empty means ready. Before any part was named the
    /// program is starting, which is not ready.
    pub fn missing(&self) -> BTreeMap<String, String> {
        let parts = lock(&self.parts);
        let mut missing: BTreeMap<String, String> = parts
            .iter()
            .filter_map(|(part, why)| Some((part.clone(), why.clone()?)))
            .collect();
        if parts.is_empty() {
            missing.insert("start".to_owned(), "no part has reported yet".to_owned());
        }
        if self.draining() {
            missing.insert("drain".to_owned(), "the program is stopping".to_owned());
        }
        missing
    }

    /// The beat of a loop, known to `/live` from now on.
    pub fn beat(&self, name: &str) -> Beat {
        let beat = Beat {
            started: self.started,
            last_ms: Arc::new(AtomicU64::new(0)),
        };
        beat.tick();
        lock(&self.loops).insert(name.to_owned(), beat.clone());
        beat
    }

    /// Forgets a loop that has ended as it should.
    pub fn rest(&self, name: &str) {
        lock(&self.loops).remove(name);
    }

    /// Silence of each loop.
    pub fn silences(&self) -> BTreeMap<String, Duration> {
        let loops = lock(&self.loops);
        loops
            .iter()
            .map(|(name, beat)| (name.clone(), beat.silence()))
            .collect()
    }

    /// Whether every loop has beaten within the limit. A program without loops is alive.
    pub fn live(&self) -> bool {
        let within = self.limits.live_within;
        lock(&self.loops)
            .values()
            .all(|beat| beat.silence() <= within)
    }

    /// Records how long one evaluation took.
    pub fn evaluated(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = EVALUATION_BUCKETS.partition_point(|&bound| bound < seconds);
        let mut all = lock(&self.evaluations);
        all.counts[bucket] += 1;
        all.sum += seconds;
    }

    /// Durations of all evaluations so far.
    pub fn evaluations(&self) -> Durations {
        *lock(&self.evaluations)
    }
}

/// A panic of another thread while it held one of these locks leaves whole values behind: each is
/// changed by one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_means_every_named_part_said_so() {
        let published = Published::default();
        assert!(published.missing().contains_key("start"));
        published.not_ready("kafka", "joining the group");
        published.not_ready("state", "restoring");
        published.ready("state");
        let missing = published.missing();
        assert_eq!(missing.len(), 1);
        assert_eq!(missing["kafka"], "joining the group");
        published.ready("kafka");
        assert!(published.missing().is_empty());
        published.drain();
        assert!(published.missing().contains_key("drain"));
    }

    #[test]
    fn a_silent_loop_is_not_live() {
        let published = Published::new(Limits {
            live_within: Duration::ZERO,
            ..Limits::default()
        });
        assert!(published.live());
        let beat = published.beat("engine");
        while beat.silence().is_zero() {
            std::hint::spin_loop();
        }
        assert!(!published.live());
        beat.tick();
        published.rest("engine");
        assert!(published.live());
    }

    #[test]
    fn facts_read_before_a_change_stay_as_they_were() {
        let published = Published::default();
        let before = published.facts();
        published.update(|facts| facts.engine.streams = 7);
        assert_eq!(before.engine.streams, 0);
        assert_eq!(published.facts().engine.streams, 7);
    }

    #[test]
    fn each_duration_falls_in_the_bucket_that_bounds_it() {
        let published = Published::default();
        published.evaluated(Duration::from_micros(50));
        published.evaluated(Duration::from_secs(2));
        let all = published.evaluations();
        assert_eq!(all.counts[0], 1);
        assert_eq!(all.counts[EVALUATION_BUCKETS.len()], 1);
        assert!((all.sum - 2.000_05).abs() < 1e-9);
    }
}
