//! The program on a real Kafka that is stopped, frozen, killed and cleaned up under it.

mod access;
mod alert_groups;
mod alerts;
mod attacks;
mod broker;
mod comparison;
mod consumer;
mod duplicates;
mod end_to_end;
mod frozen;
mod hostile;
mod judges;
mod kills;
mod memory;
mod mock;
mod moves;
mod ranges;
mod rebootstrap;
mod restart;
mod retention;
mod rivals;
mod sample;
mod soak;
mod starts;
mod state_topic;
#[path = "../support/mod.rs"]
mod support;
mod tls;
mod workers_and_judge;
mod wrong_partition;
