//! trueline watches whether the probabilities of production models are true.
//!
//! Floors, from the ground up; each imports downwards only (a test reads the `use` lines):
//!
//! | floor | module | holds |
//! |---|---|---|
//! | 0 | [`stats`] | scores, cells, estimators, tests; pure mathematics |
//! | 1 | [`window`], [`alert`] | event time, panes, window lengths; the life of an alert |
//! | 2 | [`collect`], [`judge`] | records to pane sums; pane sums to verdicts |
//! | 3 | [`report`] | what was found, as JSON, text and records |
//! | 3 | [`store`] | snapshots on disk |
//! | 3 | [`telemetry`], [`http`] | published state, metrics, logs; the pages that show them |
//! | 3 | [`kafka`], [`decode`] | the broker; records to checked events |
//! | 3 | [`notify`] | alerts on their way to people |
//! | 3 | [`registry`] | schemas of records that are not JSON |
//! | 4 | [`config`] | one file to the options of every floor |
//! | 5 | [`cli`], [`app`], [`demo`], [`reproduce`] | wiring, the loops, the verbs, the papers' experiments |

pub mod alert;
pub mod app;
pub mod cli;
pub mod collect;
pub mod config;
pub mod decode;
pub mod demo;
pub mod http;
pub mod judge;
pub mod kafka;
pub mod monitor;
pub mod notify;
pub mod registry;
pub mod report;
pub mod reproduce;
pub mod store;
pub mod telemetry;
pub mod window;

pub use trueline_stats as stats;
