//! The engine as a whole: laws over generated events, joins, restarts, partitions that move.

mod aggregator;
mod backlog;
mod comparison;
mod deduplication;
mod detector;
mod event_time;
mod join;
mod join_plans;
mod late_outcomes;
mod memory;
mod promises;
mod recorded_state;
mod segments;
mod shards;
mod spill;
mod state;
mod stopped;
#[path = "../support/mod.rs"]
mod support;
mod tap;
mod threads;
