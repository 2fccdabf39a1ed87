//! The outputs of the engine: published reports and facts, alerts, audit entries, and snapshots.

pub mod alert_facts;
pub mod alert_requests;
pub mod alert_topic;
pub mod alerts;
pub mod audit;
mod caught_up;
pub mod history;
pub mod lookup;
pub mod publish;
pub mod snapshots;
pub mod state_dir;
