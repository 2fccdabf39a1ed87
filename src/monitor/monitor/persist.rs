//! Saves a monitor to a snapshot, and restores it.

use super::together::adjust_families;
use super::{Monitor, MonitorView, Stream, judges_for};
use crate::collect::{Key, Named, Slots};
use crate::judge::{Judge, Plan};
use crate::monitor::restore::{Fit, RestoreError};
use crate::monitor::snapshot::{ModelState, Snapshot, StreamState};
use crate::monitor::views::scalars;
use crate::window::PackError;

impl MonitorView<'_> {
    /// Adds all state to the snapshot of the shard, or to an empty one.
    pub fn save_to(self, snapshot: &mut Snapshot) {
        if snapshot.models.is_empty() {
            let models = self.0.plan.models.iter().zip(&self.0.sealed_until_ms);
            let models = models.map(|(m, until)| ModelState::new(m, *until));
            snapshot.models = models.collect();
        }
        let mut known = Slots::<KnownStream>::default();
        for state in &snapshot.streams {
            let key = Key::new(&state.name, &state.version, &state.segment);
            known.insert(KnownStream(key));
        }
        let counted = std::mem::take(&mut snapshot.streams);
        let mut counted: Vec<Option<StreamState>> = counted.into_iter().map(Some).collect();
        // In the order of the monitor, so that a restored one reports in the same order.
        for (_, stream) in self.0.streams.iter() {
            let at = known.find(&stream.key.names());
            let state = at.and_then(|at| counted[at].take());
            let state = state.unwrap_or_else(|| StreamState {
                model: stream.model as u32,
                newest_ms: stream.last.newest_ms,
                ..StreamState::new(&stream.key)
            });
            snapshot.streams.push(StreamState {
                pending: stream.pending.state(),
                judges: stream.judges.iter().map(Judge::state).collect(),
                ..state
            });
        }
        snapshot.streams.extend(counted.into_iter().flatten());
        self.0.vectors.save_to(&mut snapshot.vectors);
        snapshot.ledger = self.0.ledger.state();
        self.add_counts_to(&mut snapshot.counters);
    }
}

impl Monitor {
    /// A monitor that resumes from a snapshot.
    pub fn restore(plan: Plan, s: &Snapshot, fit: &Fit) -> Result<Monitor, RestoreError> {
        let mut monitor = Monitor::new(plan);
        monitor.dropped.clone_from(&fit.dropped);
        for (model, until_ms) in fit.sealed_until_ms(s) {
            monitor.sealed_until_ms[model] = until_ms;
        }
        monitor.ledger.restore(&s.ledger);
        for state in &s.streams {
            match fit.model_of(&monitor.plan, state) {
                Some(model) => monitor.restore_stream(model, state)?,
                None => {
                    let gone = state.judges.iter().filter_map(|j| j.detector.as_ref());
                    gone.for_each(|d| monitor.ledger.keep(d));
                }
            }
        }
        for state in &s.vectors {
            let Some(model) = fit.model_of_version(&monitor.plan, state) else {
                continue;
            };
            let restored = monitor.vectors.restore(&monitor.plan, model, state);
            if restored.is_none() {
                monitor.dropped.push(state.of_another_shape());
            }
        }
        let streams = monitor.streams.iter();
        let keys: Vec<_> = streams.map(|(_, s)| (s.model, s.key.clone())).collect();
        // Roll-ups that the plan wants and the snapshot lacks begin now.
        keys.iter()
            .for_each(|(model, key)| monitor.make_rollup(*model, key));
        for (model, plan) in monitor.plan.models.iter().enumerate() {
            adjust_families(&mut monitor.streams, model, plan);
        }
        Ok(monitor)
    }

    fn restore_stream(&mut self, model: usize, s: &StreamState) -> Result<(), RestoreError> {
        let corrupt = |_: PackError| RestoreError::Corrupt(format!("sums of {}", s.title()));
        let plan = &self.plan.models[model];
        let key = Key::new(&s.name, &s.version, &s.segment);
        let mut stream = Stream::new(model, key);
        stream.last.newest_ms = s.newest_ms;
        let views = scalars(plan).count();
        let pending = s.pending.clone();
        let restored = stream.pending.restore(pending, views, plan.grid);
        restored.map_err(corrupt)?;
        let odds = self.odds[model].as_ref();
        stream.judges = judges_for(plan, odds, &stream.key);
        if !s.judges.is_empty() {
            if s.judges.len() != views {
                return Err(RestoreError::Corrupt(format!("views of {}", s.title())));
            }
            for (judge, state) in stream.judges.iter_mut().zip(&s.judges) {
                judge.set_last_event_ms(s.newest_ms);
                let other = judge.restore(state.clone(), &plan.judge).map_err(corrupt)?;
                if let Some(other) = other {
                    self.ledger.keep(&other);
                }
            }
        }
        self.streams.insert(stream);
        Ok(())
    }
}

/// A stream that a snapshot has already.
struct KnownStream(Key);

impl Named for KnownStream {
    fn key(&self) -> &Key {
        &self.0
    }
}
