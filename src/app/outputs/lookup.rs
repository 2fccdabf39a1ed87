//! What notifications need of the engine, looked up once a dispatch, where something fires.
//!
//! Thousands of alerts may begin together, and a search through all streams for each of them would
//! hold up the engine's thread.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::caveats::caveats;
use crate::app::cluster::topology::Topology;
use crate::collect::Counters;
use crate::collect::join::WrongPartition;
use crate::judge::{StreamId, StreamReport};

/// The engine as it is during one dispatch.
pub struct Lookup<'e> {
    engine: &'e Topology,
    reports: OnceCell<HashMap<&'e StreamId, &'e StreamReport>>,
    wrong_partitions: OnceCell<Vec<WrongPartition>>,
    counters: OnceCell<Counters>,
}

impl<'e> Lookup<'e> {
    /// Nothing is looked up yet.
    pub fn of(engine: &'e Topology) -> Lookup<'e> {
        Lookup {
            engine,
            reports: OnceCell::new(),
            wrong_partitions: OnceCell::new(),
            counters: OnceCell::new(),
        }
    }

    /// The report of a stream.
    pub fn report(&self, id: &StreamId) -> Option<&'e StreamReport> {
        let all = self.reports.get_or_init(|| {
            let all = self.engine.reports();
            all.map(|r| (&r.id, r.as_ref())).collect()
        });
        all.get(id).copied()
    }

    /// The reasons to doubt the numbers of a model.
    pub fn caveats(&self, model: &str) -> String {
        let wrong = self
            .wrong_partitions
            .get_or_init(|| self.engine.wrong_partitions());
        let counters = self.counters.get_or_init(|| self.engine.counters());
        caveats(model, wrong, (self.engine.joins(), counters))
    }
}
