//! Pending predictions that spill to the store on disk: the same bits as without, whatever spills
//! when; and a store that fails is an error, never a miss.

mod costs;
mod joiners;
mod stores;

use crate::support::records::JOIN;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use tempfile::TempDir;
use trueline::collect::join::{
    JoinPlan, Joins, JournalDelta, Key, MaturityEvent, NewPrediction, OutcomeResult, Predicted,
    Repeated, RowLayout, SpillBackend,
};
use trueline::stats::fixed::Score;

const PANE_MS: i64 = 1000;
const END_MS: i64 = 8000;

fn directory() -> TempDir {
    TempDir::with_prefix("trueline-spill-").expect("a writable temporary directory")
}

fn plan(repeated: Repeated, revise: bool, pending_memory: usize) -> JoinPlan {
    JoinPlan {
        repeated,
        revise,
        pending_max: 10_000,
        pending_memory,
        ..JOIN
    }
}

#[derive(Debug, Clone)]
enum Step {
    Prediction {
        id: u16,
        model: u16,
        time_ms: i64,
        score: u8,
        version: u8,
    },
    Outcome {
        id: u16,
        time_ms: i64,
        class: u32,
    },
    Mature(i64),
    Restart,
}

/// What a step told, in an order of its own.
#[derive(Debug, PartialEq)]
enum Told {
    Predicted(Predicted),
    Outcome(OutcomeResult, Vec<String>),
    Matured(Vec<String>),
    Nothing,
}

/// Two models, of one view and of two, on two partitions.
struct Side {
    joins: Joins,
    plan: JoinPlan,
    spills: Option<Arc<dyn SpillBackend>>,
    disk: BTreeMap<(u16, i32, u64), Vec<u8>>,
    line_ms: i64,
    /// Most predictions that had spilled.
    spilled: usize,
}

impl Side {
    fn new(plan: JoinPlan, spills: Option<Arc<dyn SpillBackend>>) -> Side {
        Side {
            joins: Side::joins(&plan, spills.as_ref()),
            plan,
            spills,
            disk: BTreeMap::new(),
            line_ms: i64::MIN,
            spilled: 0,
        }
    }

    fn joins(plan: &JoinPlan, spills: Option<&Arc<dyn SpillBackend>>) -> Joins {
        let mut joins = Joins::new(vec![plan.clone()]);
        if let Some(spills) = spills {
            joins.spill_to(Arc::clone(spills), 1);
        }
        joins
    }

    fn take(&mut self, step: &Step) -> Told {
        let told = match *step {
            Step::Prediction {
                id,
                model,
                time_ms,
                score,
                version,
            } => self.predict((id, version), model, time_ms, score),
            Step::Outcome { id, time_ms, class } => {
                let mut revised = Vec::new();
                let (key, partition) = (
                    Key::new(None, &id.to_le_bytes()),
                    i32::from(id.is_multiple_of(3)),
                );
                let end = self.joins.observe_outcome(
                    0,
                    partition,
                    key,
                    None,
                    time_ms,
                    class,
                    &[2, 2],
                    |_, r| revised.push(format!("{:?}", (r.now, r.before))),
                );
                Told::Outcome(end, revised)
            }
            Step::Mature(panes) => self.mature((panes - 3) * PANE_MS),
            Step::Restart => {
                self.restart();
                Told::Nothing
            }
        };
        self.spilled = self.spilled.max(self.joins.spilled());
        assert_eq!(self.joins.fault(), None);
        if self.spills.is_some() {
            let (memory, most) = (self.joins.memory(), self.plan.pending_memory);
            assert!(
                memory <= most,
                "{memory} bytes, {most} are allowed, after {step:?}"
            );
        }
        told
    }

    fn predict(&mut self, (id, version): (u16, u8), model: u16, time_ms: i64, score: u8) -> Told {
        let start_ms = time_ms - time_ms.rem_euclid(PANE_MS);
        if start_ms < self.line_ms {
            // What comes for a mature pane is late, and never gets to a joiner.
            return Told::Nothing;
        }
        let z = Score::new(f64::from(score) / 4.0).expect("a score");
        let views = [(z, 1), (z, 0)];
        let expect = NewPrediction {
            key: Key::new(None, &id.to_le_bytes()).of_version(&version.to_string()),
            model,
            slot: u32::from(id),
            start_ms,
            time_ms,
            due_ms: start_ms + 3 * PANE_MS,
            views: &views[..usize::from(model) + 1],
            full_vector: (0, 0),
            classes: 2,
        };
        let partition = i32::from(id.is_multiple_of(3));
        Told::Predicted(self.joins.predict(0, partition, &expect))
    }

    fn mature(&mut self, line_ms: i64) -> Told {
        self.line_ms = self.line_ms.max(line_ms);
        let mut all = Vec::new();
        for model in [0, 1] {
            self.joins
                .mature(model, self.line_ms, &[2, 2], |_, event| match event {
                    MaturityEvent::Matured(m) => all.push(format!("{m:?}")),
                    MaturityEvent::Revised(r) => all.push(format!("{:?}", (r.now, r.before))),
                    MaturityEvent::Ended(end) => all.push(format!("{end:?}")),
                });
            self.joins.evict(model, self.line_ms - 2 * PANE_MS);
        }
        self.joins.orphan(|_, _| self.line_ms, |_, _| ());
        all.sort();
        Told::Matured(all)
    }

    /// Writes the journals down; returns where their parts lie and how long they are. What is
    /// within may differ in the order in which the predictions of one pane were revised.
    fn keep(&mut self) -> Vec<(i32, u64, usize)> {
        let deltas: Vec<JournalDelta> = self.joins.take_journals(|_, _| i64::MIN);
        for d in &deltas {
            let at = (d.join, d.partition, d.segment);
            self.disk.entry(at).or_default().extend(&d.bytes);
        }
        let lies = |d: &JournalDelta| (d.partition, d.offset, d.bytes.len());
        deltas.iter().map(lies).collect()
    }

    fn restart(&mut self) {
        self.keep();
        let mut joins = Side::joins(&self.plan, self.spills.as_ref());
        let (line_ms, held) = (self.line_ms, if self.plan.revise { 2 * PANE_MS } else { 0 });
        for state in self.joins.states() {
            let segment = |i: usize| {
                let at = (state.join, state.partition, state.marks[i].segment);
                Ok(Cow::Borrowed(self.disk[&at].as_slice()))
            };
            joins
                .restore(
                    &state,
                    segment,
                    &[RowLayout::scores(1), RowLayout::scores(2)],
                    |_| line_ms,
                    |_| line_ms.saturating_sub(held),
                    |_, start_ms| start_ms + 3 * PANE_MS,
                )
                .expect("a sound journal");
        }
        assert_eq!(joins.retained(), self.joins.retained());
        self.joins = joins;
    }

    fn pending(&mut self) -> BTreeMap<u32, u64> {
        let mut all = BTreeMap::new();
        let each = |_, slot, n| *all.entry(slot).or_default() += n;
        self.joins.each_pending(each);
        all
    }
}
