//! trueline watches whether the probabilities of production models are calibrated.
//!
//! # The path of a record
//!
//! ```text
//! Kafka ─► decode ─► Event ─► Shard ──────► Delta ─► Monitor ─► StreamReport ─► Prometheus, HTTP
//!                             counts:       sealed   judges:    Change ───────► notifications, audit
//!                             open panes    panes    windows
//! ```
//!
//! Two pure stages do the work. A [`monitor::Shard`] counts the records of its partitions in open
//! panes of event time. When the watermark passes a pane, its integer sums leave as a
//! [`monitor::Delta`]. A [`monitor::Monitor`] adds the deltas of all shards to windows and judges
//! each window whenever it slides. One process, partitions that move between processes, and workers
//! with a separate judge are the same two types, placed differently: see [`monitor`].
//!
//! `tests/repo/path.rs` lists the files on this path, in order.
//!
//! # Vocabulary
//!
//! | word | meaning |
//! |---|---|
//! | score, outcome | the probability that a model gave, and what happened |
//! | view | what of a prediction is tested: its score, one class, the whole vector |
//! | stream | one view of one segment of one version of a model; the `Stream`s of both stages hold all views of a segment |
//! | pane | the sums of a stream over a short stretch of event time |
//! | frontier | the least event time of the partitions that are being read |
//! | watermark, sealed | the frontier minus a model's lateness; a pane before it is sealed |
//! | window, slide | a length of event time over which a verdict is given, and how often |
//! | delta | a sealed pane, or a correction of one, on its way from a shard to the monitor |
//! | verdict | calibrated, miscalibrated or undecided, with an interval and a p-value |
//! | checkpoint | the state of one partition, stored in a topic, from which any process can resume |
//!
//! # Invariants
//!
//! * Judgements depend on the records alone: not on the order in which partitions are read (within
//!   `lateness` and `maturity`), on restarts, or on which process counts which partition. Sums are
//!   integers, so this holds to the bit. Ticks of the clock only withdraw values. Two exceptions
//!   last until the next slide after a restart: a window that is stale, though a prediction came
//!   that waits for its outcome, shows `immature`; and the numbers beside a verdict have what came
//!   late since it was given (revised outcomes, panes of partitions that are behind).
//! * Every record ends in exactly one disposition, and is counted once.
//! * A snapshot holds sums and offsets of one moment: nothing is lost and nothing counts twice.
//! * The core (layers 0 to 2) has no clock, socket, file or log, and does not panic. It starts no
//!   thread: [`judge::runtime`] uses those that a process lends, and keeps their results in order.
//! * A module imports from its own layer (see the table below) or a lower one, and files
//!   have no import cycles; `tests/repo/layers.rs` and `cycles.rs` check both in the source.
//!
//! # Modules, in reading order
//!
//! | layer | module | holds |
//! |---|---|---|
//! | 0 | [`stats`] | scores, cells, estimators, tests; pure mathematics |
//! | 1 | [`window`] | event time: panes, packed sums, windows |
//! | 1 | [`alert`] | the life of an alert |
//! | 2 | [`collect`] | from events to sealed panes: streams, partitions, joins |
//! | 2 | [`judge`] | from a window's sums to a verdict; detectors, comparisons, reports |
//! | 2 | [`monitor`] | the two stages as types, deltas, snapshots, and every placement of them |
//! | 3 | [`files`] | files that are replaced as a whole |
//! | 3 | [`http_client`] | HTTP requests to other servers |
//! | 3 | [`report`] | what was found, as JSON, text and records |
//! | 3 | [`decode`], [`registry`] | records to checked events; schemas |
//! | 3 | [`kafka`], [`store`] | the broker; snapshots and checkpoints |
//! | 3 | [`telemetry`], [`http`], [`notify`] | published state, metrics, logs; pages; notifications |
//! | 4 | [`config`] | one file to the options of every layer |
//! | 5 | [`app`] | the wiring: threads, clocks, the engine loop, processes that share partitions |
//! | 5 | [`cli`], [`demo`], [`reproduce`] | the commands, a demonstration, the papers' experiments |

pub use trueline_stats as stats;

pub mod alert;
pub mod window;

pub mod collect;
pub mod judge;
pub mod monitor;

pub mod decode;
pub mod files;
pub mod http;
pub mod http_client;
pub mod kafka;
pub mod notify;
pub mod registry;
pub mod report;
pub mod store;
pub mod telemetry;

pub mod config;

pub mod app;
pub mod cli;
pub mod demo;
pub mod reproduce;
