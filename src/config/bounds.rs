//! The memory bound of a configuration, computed before it runs.
//!
//! A stream keeps one sealed and packed pane per slide of each window by time, the panes with the
//! events of each window by count, and unpacked open panes. With m = 2^level cells, all occupied:
//!
//! ```text
//! windows by time    Σ (width / slide + 1) · m · 16 B       packed
//! windows by count   Σ last · 80 B                          worst case: each event in its own pane
//! recalibration      16 KiB per window                      maps of two fits, if miscalibrated
//! open panes         (lateness / pane + 3) · m · 48 B       unpacked, within the lateness
//! ```
//!
//! A pane of a vector view has at most `vector_cells_max` cells, or as many as its view can have.
//! With k coordinates each cell takes up to 2·(72 + 4k) + 8·(2 + 2k + k² + k(k+1)/2) bytes; for
//! weighted events the second term is 16·(2 + 4k + k² + k(k+1)/2) + 112. Its windows by time keep
//! panes per slide as above, those by count at most 64 panes, once per version, for at most
//! `vector_versions_max` versions. A pane of a kernel view keeps, for each event of its sample, 8
//! bytes per class plus 64, and 32 bytes per class for each random feature.
//!
//! A detector takes 36 kB per stream, and 26 kB more for clustered events. Its bets take 864 B per
//! row, up to 4096 rows, once per model.
//!
//! [`retained`] bounds the memory of predictions and outcomes that wait for each other.
//!
//! With comparisons of versions, each of `rows_max` retained observations takes [`ROW_BYTES`], and
//! each of 1000 comparisons 5 kB.
//!
//! For weighted events a cell takes 600 bytes open and 288 packed.
//!
//! For clustered events a pane has up to 64 more groups of 64 cells, each of 25 bytes open and
//! [`CLUSTER_PACKED_CELL_BYTES`] packed; the pane of a single event takes 32 bytes more.
//!
//! 16 bytes exceed the measured size of a packed cell (5 to 11 bytes, see the window layer). 48
//! bytes are the size of an unpacked cell if a sixteenth of the cells have more than 2¹⁵ events
//! each; the others take 32 bytes. A stream whose scores touch few cells costs proportionally less.
//!
//! A partition that is ahead of others keeps further panes open: at most `open_panes_max` for a
//! stream, and `open_memory` over all streams. Events beyond either are refused and counted, so the
//! bound holds however far apart partitions are.
//!
//! The bound also includes: a quarter more memory than requested, for the allocator; the copy of
//! all panes from which a snapshot is written; for each source the queue of fetched records, with
//! [`FETCH_BYTES`] for responses in flight and for the overhead of each record; [`PROCESS_BYTES`]
//! for the process itself; and [`RUNNING_BYTES_MAX`] for the sums that windows keep from slide to
//! slide. A test compares the peak of real processes with the sum.

use crate::collect::stream::{IN_STEP_PANES, OpenPane};
use crate::decode::Format;
use crate::http::POSTS_MAX;
use crate::judge::ModelPlan;
use crate::judge::comparison::COMPARISONS_MAX;
use crate::stats::clusters::{BUCKETS, ClusterSums, LEVEL_MAX, RunningClusters};
use crate::stats::multiclass::sums::Shape;
use crate::stats::recalibration::isotonic::{BLOCKS_MAX, Block};
use crate::stats::sequential::Odds;
use crate::stats::view::View;
use crate::store::event_log::{FRAME_BYTES, KEYS_MAX};
use crate::telemetry::history;
use crate::window::ring::COUNT_PANES_MAX;
use crate::window::{RUNNING_BYTES_MAX, Width};

use super::{Config, Input, SourceOptions};

mod retained;

pub use retained::{COORDINATE_BYTES, PENDING_BYTES, WAITING_BYTES};
use retained::{ids_bytes, pending_bytes, spill_bytes};

/// Largest packed cell, with a margin above the measured size.
const PACKED_CELL_BYTES: u64 = 16;
/// An unpacked cell: six integers of eight bytes, or four while it has few events.
const OPEN_CELL_BYTES: u64 = 48;
/// An open cell of weighted events: 256 bytes in a tree that is at least half full.
const WEIGHTED_OPEN_CELL_BYTES: u64 = 600;
/// A packed cell of weighted events: 18 numbers of variable length, at most 282 bytes.
const WEIGHTED_PACKED_CELL_BYTES: u64 = 288;
/// Cells of all groups of clusters of a pane.
const CLUSTER_CELLS: u64 = (BUCKETS << LEVEL_MAX) as u64;
/// Such a cell in a packed pane: 8 bytes with two events, 15 with half a million.
const CLUSTER_PACKED_CELL_BYTES: u64 = 16;
/// The group of a single event in its pane.
const CLUSTER_LONE_BYTES: u64 = 32;
/// An event of a window by count that is alone in its pane: a packed cell and the pane.
const LONE_EVENT_BYTES: u64 = 80;
/// Recalibration of a window: the isotonic maps of two fits, with their reports.
const MENDING_BYTES: u64 = 2 * (BLOCKS_MAX * size_of::<Block>()) as u64 + 4096;
/// Names, reports and bookkeeping of a stream, its series of panes (35 kB), the batch of events
/// before its open cells, and the fine cells of three windows' curves (5 kB each).
const STREAM_BYTES: u64 = 67 * 1024;

/// An observation retained for other versions: 40 bytes in a list that may be half empty, and half
/// as much again while it is sorted.
pub const ROW_BYTES: u64 = 128;
/// A comparison of two versions.
const COMPARISON_BYTES: u64 = 5 * 1024;
/// An open pane without its sums: its place in a list that may be half empty.
const OPEN_PANE_BYTES: u64 = 2 * size_of::<OpenPane>() as u64;
/// A process that has read nothing, with its threads, connections and answers.
pub(super) const PROCESS_BYTES: u64 = 96 << 20;

/// An idempotency key of usual length, in its table and in its queue.
const KEY_BYTES: u64 = 300;
/// Responses of brokers in flight, and the overhead of 100,000 queued records.
pub(super) const FETCH_BYTES: u64 = 128 << 20;
/// Copies of the panes of a partition while its checkpoint is written.
const COPIES: u64 = 4;
/// Bytes of records of a source that may wait for their schemas before it is paused.
pub const SCHEMA_QUEUE_BYTES_MAX: usize = 16 << 20;
/// Bytes of decoded records that a thread keeps for a batch. Beyond that it leaves the rest to the
/// engine's thread.
pub const DECODED_BYTES_MAX: usize = 2 << 20;
/// Longest record that another thread than the engine's decodes. As little as 14 bytes of it may
/// become a row of 200 bytes.
pub const SHARED_RECORD_BYTES_MAX: usize = 64 << 10;
/// Most threads that decode and judge if their number is left to the machine.
pub const THREADS_USUAL: usize = 4;
/// Memory of a pool thread while it judges: the total of a window, its levels, the buffers of its
/// sums, and what its allocator keeps.
const JUDGING_BYTES: u64 = 6 << 20;
/// A detector with its report.
const DETECTOR_BYTES: u64 = 36 * 1024;

/// A notification: its numbers, and names and links of usual length.
const NOTICE_BYTES: u64 = 1024;

/// The expected load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Number of streams of all models together.
    pub streams: u64,
    /// Events per second of all streams together.
    pub rate: f64,
}

/// The parts of the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBound {
    /// The most expensive stream, in bytes.
    pub stream_bytes: u64,
    /// Most streams.
    pub streams_max: u64,
    /// Cells of vector views, in bytes.
    pub vector_bytes: u64,
    /// Bets of the detectors, one table for each model, in bytes.
    pub bets_bytes: u64,
    /// Predictions and outcomes that wait for each other, observations of versions, and ids of
    /// counted records, in bytes.
    pub pending_bytes: u64,
    /// Spilled predictions on disk, in bytes.
    pub spill_bytes: u64,
    /// Queued records and notifications, in bytes.
    pub queue_bytes: u64,
    /// Open panes of partitions that are ahead of others, in bytes.
    pub ahead_bytes: u64,
    /// The copy of the panes from which a snapshot is written, in bytes.
    pub copy_bytes: u64,
    /// The process without state, in bytes: code, threads, buffers of connections, answers of HTTP,
    /// the history, and the sums that windows keep from slide to slide.
    pub process_bytes: u64,
}

impl MemoryBound {
    /// Computes the bound of a configuration.
    pub fn of(config: &Config) -> MemoryBound {
        let models = || config.plan.models.iter();
        let read = config.sources.iter().filter(|s| s.input == Input::Kafka);
        let queues = read.map(|s| {
            let waiting = match s.decode.packing.format {
                Format::Json => 0,
                _ => SCHEMA_QUEUE_BYTES_MAX as u64,
            };
            fetched_bytes(s) + decoded_bytes(config) + waiting
        });
        let streams_max = config.plan.caps.streams_max as u64;
        let held = models().map(held_panes_bytes).max().unwrap_or(0);
        let windows = models()
            .map(|m| m.views.len() * m.ladder.windows.len())
            .max();
        let history = history::bytes_max(streams_max, windows.unwrap_or(0) as u64);
        MemoryBound {
            stream_bytes: models().map(stream_bytes).max().unwrap_or(0),
            streams_max,
            vector_bytes: vector_bytes(config),
            bets_bytes: bets_bytes(config),
            pending_bytes: pending_bytes(config)
                .saturating_add(compared_bytes(config))
                .saturating_add(ids_bytes(config)),
            spill_bytes: spill_bytes(config),
            queue_bytes: queues.fold(notice_bytes(config), u64::saturating_add),
            ahead_bytes: ahead_bytes(config),
            copy_bytes: held.saturating_mul(streams_max),
            process_bytes: PROCESS_BYTES
                .saturating_add(RUNNING_BYTES_MAX as u64)
                .saturating_add(pool_threads(config) * JUDGING_BYTES)
                .saturating_add(history)
                .saturating_add(posted_bytes(config)),
        }
    }

    /// The engine's part of the bound with the allocator's overhead, in bytes.
    pub fn state(&self) -> u64 {
        let streams = self.stream_bytes.saturating_mul(self.streams_max);
        let shared = self.bets_bytes.saturating_add(self.pending_bytes);
        with_slack(
            streams
                .saturating_add(shared)
                .saturating_add(self.vector_bytes)
                .saturating_add(self.ahead_bytes),
        )
    }

    /// The memory of a process that keeps its state in a topic and judges what it counts, with this
    /// many partitions. Each partition has its streams and pending predictions, and is written from
    /// a copy that is encoded, split and sent to the broker. The rest is [`MemoryBound::union`].
    pub fn moving(&self, partitions: u64) -> u64 {
        let copies = with_slack(self.copy_bytes.saturating_mul(COPIES));
        let each = self.state().saturating_add(copies);
        let all = each.saturating_mul(partitions);
        self.union().saturating_add(all)
    }

    /// The part of [`MemoryBound::moving`] that does not depend on the partitions, in bytes.
    pub fn union(&self) -> u64 {
        let streams = self.stream_bytes.saturating_mul(self.streams_max);
        let panes = streams.saturating_add(self.ahead_bytes);
        with_slack(panes.saturating_add(self.vector_bytes))
            .saturating_add(self.queue_bytes)
            .saturating_add(self.process_bytes)
    }

    /// The memory of a process whose state is in a directory, in bytes.
    pub fn total(&self) -> u64 {
        let beside = self.queue_bytes.saturating_add(self.process_bytes);
        let copy = with_slack(self.copy_bytes);
        self.state().saturating_add(copy).saturating_add(beside)
    }
}

/// Adds the overhead of the allocator: its size classes are an eighth apart, and partly free pages
/// are not returned.
pub(super) fn with_slack(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 4)
}

/// Memory of posted events: the requests served at a time, each as its body, its events and its
/// frame; and for each log a frame being read and the keys.
fn posted_bytes(config: &Config) -> u64 {
    let posted = config.sources.iter().filter(|s| s.input == Input::Http);
    let logs = posted.map(|s| s.kafka.topics.len() as u64).sum::<u64>();
    if logs == 0 {
        return 0;
    }
    let request = config.events.request_bytes_max as u64;
    let requests = POSTS_MAX as u64 * request * 3;
    requests + logs * (FRAME_BYTES as u64 + request + KEYS_MAX as u64 * KEY_BYTES)
}

/// Memory of librdkafka for a source: its queue, a response of each kind in flight, and the
/// overhead of each record.
fn fetched_bytes(source: &SourceOptions) -> u64 {
    let queue = u64::from(source.kafka.queue_kbytes_max) * 1024;
    let record = source.kafka.record_bytes_max as u64;
    queue.saturating_add(FETCH_BYTES).saturating_add(2 * record)
}

/// Most threads of the pool.
fn pool_threads(config: &Config) -> u64 {
    match config.threads {
        0 => THREADS_USUAL as u64,
        1 => 0,
        threads => threads as u64,
    }
}

/// Memory of the decoded part of a batch of one source, over all threads.
fn decoded_bytes(config: &Config) -> u64 {
    pool_threads(config) * (DECODED_BYTES_MAX + 16 * SHARED_RECORD_BYTES_MAX) as u64
}

/// Open panes ahead of the watermark, up to `open_memory`.
fn ahead_bytes(config: &Config) -> u64 {
    let caps = &config.plan.caps;
    let pane = config.plan.models.iter().map(|m| {
        let cells = PaneBytes::of(m);
        let views = m.views.iter().filter(|v| !v.is_vector()).count() as u64;
        // One more pane is being packed.
        (views.max(1) * cells.packed + OPEN_PANE_BYTES)
            .saturating_mul(caps.open_panes_max as u64 + 1)
    });
    let most = pane.max().unwrap_or(0);
    let most = most.saturating_mul(caps.streams_max as u64);
    most.min(caps.open_bytes_max as u64)
}

/// Bytes of one pane of a stream.
struct PaneBytes {
    /// A pane that takes events.
    open: u64,
    /// A sealed pane, or an open one that was left for another.
    packed: u64,
    /// A pane with a single event.
    lone: u64,
}

impl PaneBytes {
    fn of(model: &ModelPlan) -> PaneBytes {
        let cells = u64::from(model.grid.cells());
        let (open_cell, packed_cell) = match model.grid.is_weighted() {
            true => (WEIGHTED_OPEN_CELL_BYTES, WEIGHTED_PACKED_CELL_BYTES),
            false => (OPEN_CELL_BYTES, PACKED_CELL_BYTES),
        };
        let (open_more, packed_more, lone_more) = match model.grid.is_clustered() {
            true => (
                ClusterSums::BYTES_MAX as u64,
                CLUSTER_CELLS * CLUSTER_PACKED_CELL_BYTES,
                CLUSTER_LONE_BYTES,
            ),
            false => (0, 0, 0),
        };
        PaneBytes {
            open: cells * open_cell + open_more,
            packed: cells * packed_cell + packed_more,
            lone: LONE_EVENT_BYTES + lone_more,
        }
    }
}

/// Sealed panes of the windows of one stream.
fn held_panes_bytes(model: &ModelPlan) -> u64 {
    let pane = PaneBytes::of(model);
    let of = |width: Width| match width {
        Width::Time { width_ms, slide_ms } => {
            let panes = (width_ms / slide_ms.max(1)).unsigned_abs() + 1;
            panes.saturating_mul(pane.packed)
        }
        Width::Count { last } => last.saturating_mul(pane.lone),
    };
    let windows = model.ladder.windows.iter();
    windows.map(|w| of(w.width)).fold(0, u64::saturating_add)
}

/// The vector views of as many versions of the most expensive model as may have cells, and the
/// reports of versions without cells.
fn vector_bytes(config: &Config) -> u64 {
    let caps = &config.plan.caps;
    let each = config.plan.models.iter();
    let cells = each.map(|m| version_bytes(m, caps.vector_cells_max)).max();
    let versions = caps.vector_versions_max.min(caps.streams_max) as u64;
    let views = |m: &ModelPlan| m.views.iter().filter(|v| v.is_vector()).count();
    let views = config.plan.models.iter().map(views).max().unwrap_or(0) as u64;
    // Reports of versions without cells.
    let reports = views
        .saturating_mul(STREAM_BYTES)
        .saturating_mul(caps.streams_max as u64);
    let cells = cells.unwrap_or(0).saturating_mul(versions);
    cells.saturating_add(reports)
}

/// Cells of the vector views of one version, bytes.
fn version_bytes(model: &ModelPlan, cells_max: usize) -> u64 {
    let pane_ms = model.ladder.pane_ms.max(1);
    let open = (model.ladder.lateness_ms / pane_ms).unsigned_abs() + 2;
    let held = model.ladder.windows.iter().map(|w| match w.width {
        Width::Time { width_ms, slide_ms } => (width_ms / slide_ms.max(1)).unsigned_abs() + 1,
        Width::Count { last } => last.min(COUNT_PANES_MAX as u64),
    });
    let panes = held.fold(open, u64::saturating_add);
    let pane = |view: &View| {
        if *view == View::Kernel {
            return Some(model.judge.kernel.pane_bytes(model.classes.len()) as u64);
        }
        let shape = Shape {
            view: view.cells()?,
            classes: model.classes.len(),
            cells_max,
            weighted: model.grid.is_weighted(),
        };
        Some((shape.cells_most() * shape.cell_bytes()) as u64)
    };
    let all = model.views.iter().filter_map(pane);
    all.fold(0, u64::saturating_add).saturating_mul(panes)
}

/// The tables of bets of all models.
fn bets_bytes(config: &Config) -> u64 {
    let models = config.plan.models.iter();
    let watched = models.filter(|m| m.judge.detector.is_some());
    watched.map(|m| Odds::bytes_of(m.grid) as u64).sum()
}

/// Memory of comparisons of versions.
fn compared_bytes(config: &Config) -> u64 {
    let models = config.plan.models.iter();
    let compared = models.filter_map(|m| m.judge.compare.as_ref());
    let most = compared.map(|o| {
        let rows = (o.rows_max as u64).saturating_mul(ROW_BYTES);
        rows.saturating_add(COMPARISONS_MAX as u64 * COMPARISON_BYTES)
    });
    most.fold(0, u64::saturating_add)
}

/// Notifications in the queues of sinks, which have as many places again for ends, and in the state
/// of the journal.
fn notice_bytes(config: &Config) -> u64 {
    let queues = config.notify.sinks.iter().map(|s| s.queue_max as u64);
    let places = queues.fold(0, u64::saturating_add);
    places.saturating_mul(2 * 2 * NOTICE_BYTES)
}

/// State of one stream, bytes.
fn stream_bytes(model: &ModelPlan) -> u64 {
    let pane_ms = model.ladder.pane_ms.max(1);
    let open = (model.ladder.lateness_ms / pane_ms).unsigned_abs() + IN_STEP_PANES as u64 + 1;
    let detector = match (&model.judge.detector, model.grid.is_clustered()) {
        (Some(_), true) => DETECTOR_BYTES + RunningClusters::BYTES_MAX as u64,
        (Some(_), false) => DETECTOR_BYTES,
        (None, _) => 0,
    };
    STREAM_BYTES
        .saturating_add(open.saturating_mul(PaneBytes::of(model).open))
        .saturating_add(detector)
        .saturating_add(held_panes_bytes(model))
        .saturating_add(MENDING_BYTES * model.ladder.windows.len() as u64)
}

/// Formats bytes in a readable unit.
pub fn human(bytes: u64) -> String {
    let mut amount = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1024.0 {
            return format!("{amount:.1} {unit}");
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}
