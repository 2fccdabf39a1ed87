//! Saves a shard to a snapshot, and restores it.

use super::{Shard, ShardView};
use crate::collect::join::{JoinState, SpillBackend};
use crate::collect::{Key, Stream};
use crate::judge::{Comparisons, Plan};
use crate::monitor::restore::{Fit, RestoreError, SegmentOf};
use crate::monitor::snapshot::{ComparedState, ModelState, Snapshot, StreamState};
use crate::monitor::views::scalars;
use crate::window::PackError;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Highest slot of a stream that a snapshot may name: far above any cap on streams, yet harmless to
/// memory.
const SLOT_MAX: usize = 1 << 24;

impl ShardView<'_> {
    /// All state, to be restored by [`Shard::restore`]; if outcomes come separately, together with
    /// the journals. Windows are kept elsewhere.
    pub fn snapshot(self) -> Snapshot {
        let models = self.0.plan.models.iter().zip(self.sealed_until_ms());
        let streams = self.0.collector.streams().iter();
        Snapshot {
            partitions: self.0.collector.partitions().clone(),
            counters: self.0.collector.counters().clone(),
            models: models.map(|(m, until)| ModelState::new(m, until)).collect(),
            streams: streams.map(|(slot, s)| stream_state(slot, s)).collect(),
            joins: self.0.collector.join_states(),
            compared: self.0.compared_states(),
            vectors: self.0.vectors.state(),
            ..Snapshot::default()
        }
    }
}

impl Shard {
    fn compared_states(&self) -> Vec<ComparedState> {
        let models = (0u32..).zip(&self.comparisons);
        let state = |(model, comparisons): (u32, &Comparisons)| {
            Some(ComparedState {
                model,
                pairing: self.collector.pairing(model as usize)?.state(),
                comparisons: comparisons.states(),
            })
        };
        models.filter_map(state).collect()
    }

    /// A shard that resumes from a snapshot. `segment` reads the journals that the snapshot marks;
    /// `spills` is a store for the predictions that do not fit into memory, with the number of
    /// shards that share the memory. What no longer fits the plan is left out.
    pub fn restore<'s>(
        plan: Plan,
        s: &Snapshot,
        fit: &Fit,
        segment: SegmentOf<'s, '_>,
        spills: Option<(Arc<dyn SpillBackend>, usize)>,
    ) -> Result<Shard, RestoreError> {
        let mut shard = Shard::new(plan);
        if let Some((spills, shared_by)) = spills {
            shard.upkeep().spill_to(spills, shared_by);
        }
        let ids = s.partitions.positions();
        shard.unread = ids.map(|o| (o.partition_id(), Some(o.offset))).collect();
        let mut counters = s.counters.clone();
        counters.streams_dropped += fit.streams_dropped;
        let sealed = fit.sealed_until_ms(s);
        shard
            .collector
            .restore(s.partitions.clone(), counters, &sealed);
        for stream in &s.streams {
            if let (Some(model), Some(slot)) = (fit.model_of(&shard.plan, stream), stream.slot) {
                shard.restore_stream(model, slot as usize, stream)?;
            }
        }
        for version in &s.vectors {
            if let Some(model) = fit.model_of_version(&shard.plan, version) {
                // Sums of another shape are reported by the restore of their windows.
                let _ = shard.vectors.restore(&shard.plan, model, version);
            }
        }
        shard.restore_comparisons(s, fit)?;
        shard.restore_joins(s, fit, segment)?;
        Ok(shard)
    }

    fn restore_stream(
        &mut self,
        model: usize,
        slot: usize,
        s: &StreamState,
    ) -> Result<(), RestoreError> {
        let corrupt = |_: PackError| RestoreError::Corrupt(format!("sums of {}", s.title()));
        let plan = &self.plan.models[model];
        let mut stream = Stream::new(model, Key::new(&s.name, &s.version, &s.segment));
        (stream.last.newest_ms, stream.late) = (s.newest_ms, s.late);
        for (start_ms, views) in &s.late_outcomes {
            stream.add_late_outcomes(*start_ms, views);
        }
        let views = scalars(plan).count();
        stream
            .restore(s.open.clone(), views, plan.grid)
            .map_err(corrupt)?;
        if slot > SLOT_MAX || !self.collector.restore_stream(slot, stream) {
            return Err(RestoreError::Corrupt(format!("slot of {}", s.title())));
        }
        Ok(())
    }

    /// Restores pairs and comparisons of models that are unchanged, and whose versions are still
    /// compared.
    fn restore_comparisons(&mut self, s: &Snapshot, fit: &Fit) -> Result<(), RestoreError> {
        for state in &s.compared {
            let model = fit.model(state.model);
            let Some(model) = model.filter(|&m| self.collector.pairing(m).is_some()) else {
                continue;
            };
            let pairing = state.pairing.clone();
            let sound = self.collector.restore_pairing(model, pairing);
            if !sound || !self.comparisons[model].restore(state.comparisons.clone()) {
                let name = &self.plan.models[model].name;
                return Err(RestoreError::Corrupt(format!("comparison of {name}")));
            }
        }
        Ok(())
    }

    /// Restores the joiners, and counts as expired or orphaned what was open in joins or models
    /// that the plan no longer has.
    fn restore_joins(
        &mut self,
        s: &Snapshot,
        fit: &Fit,
        segment: SegmentOf<'_, '_>,
    ) -> Result<(), RestoreError> {
        let before = s.models.len() as u16;
        // Journals name slots of streams that were not restored: these are vacant, or another's.
        let left = s.streams.iter().filter(|stream| stream.slot.is_some());
        let left = left.filter(|stream| fit.model_of(&self.plan, stream).is_none());
        let left: BTreeSet<u32> = left.map(|stream| stream.model).collect();
        let in_place = |m: u16| fit.model(u32::from(m)) == Some(usize::from(m));
        let same = |m: u16| in_place(m) && !left.contains(&u32::from(m));
        self.collector.joins_mut().number_journals(&s.joins);
        self.collector.reserve_journals(&s.joins);
        for state in &s.joins {
            let (join, partition) = (state.join, state.partition);
            let read = |mark| segment(state, mark);
            let restored = match state.ids {
                true => self.collector.restore_ids(state, read),
                false => self.collector.restore_joiner(state, read, before, same),
            };
            let restored = restored.map_err(|e| {
                RestoreError::Corrupt(format!("journal {join} of partition {partition} {e}"))
            })?;
            if !restored && !state.ids {
                self.drop_join(state, &s.topics);
            }
        }
        let joined = s.joins.iter().any(|state| !state.ids);
        for (model, before) in (0..).zip(&s.models).filter(|(m, _)| joined && !same(*m)) {
            let now = fit.model(u32::from(model));
            let gone = now.is_none() && left.contains(&u32::from(model));
            if gone || now.is_some_and(|now| self.collector.models()[now].maturity_ms > 0) {
                let why = match in_place(model) {
                    _ if gone => "its [[model]] changed, and its streams were dropped too",
                    false => {
                        "its [[model]] has another place in the file; write new ones behind it"
                    }
                    true => "another [[model]] watches some of its streams now",
                };
                let name = &before.name;
                self.dropped.push(format!(
                    "predictions of {name} that waited for outcomes: {why}"
                ));
            }
        }
        self.collector.recount_joins();
        self.collector.forget_given_up_of_none(same);
        match self.view().fault() {
            Some(error) => Err(RestoreError::Spill(error.clone())),
            None => Ok(()),
        }
    }

    fn drop_join(&mut self, state: &JoinState, topics: &[String]) {
        let topic = topics.get(usize::from(state.predictions));
        let (topic, partition) = (topic.map_or("", String::as_str), state.partition);
        self.dropped.push(format!(
            "predictions of {topic}/{partition} that waited for outcomes: they are no longer joined, or with \
             another topic"
        ));
    }
}

fn stream_state(slot: usize, s: &Stream) -> StreamState {
    StreamState {
        model: s.model as u32,
        newest_ms: s.last.newest_ms,
        late: s.late,
        slot: u32::try_from(slot).ok(),
        open: s.packed(),
        late_outcomes: s.late_outcomes(),
        ..StreamState::new(&s.key)
    }
}
