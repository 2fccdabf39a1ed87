//! A stream in a monitor: the panes that wait for its shards, and a judge for each of its views.
//!
//! Sealing a stream changes that stream alone, so streams are sealed in parallel. [`Sealed`]
//! carries the effects on others: changes for the caller, and panes for the roll-up.

use crate::collect::{Key, LastSeen, Named, PaneDelta, Part};
use crate::judge::ledger::stake_of;
use crate::judge::{Change, Detector, Judge, ModelPlan, Stopwatch, StreamId};
use crate::monitor::delta::{PaneWalk, PendingPanes};
use crate::monitor::views::scalars;
use crate::stats::sequential::Odds;
use crate::stats::view::View;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(super) struct Stream {
    pub model: usize,
    pub key: Key,
    pub part: Part,
    pub last: LastSeen,
    /// Predictions that wait for outcomes, over all shards.
    pub waiting: u64,
    /// Sealed panes that not all shards have passed.
    pub pending: PendingPanes,
    pub judges: Vec<Judge>,
}

/// What came of sealing a stream.
#[derive(Debug, Default)]
pub(super) struct Sealed {
    /// The panes, in order of time, if the stream has a roll-up.
    pub panes: Vec<PaneDelta>,
    /// What changed, in order of time.
    pub changes: Vec<Change>,
}

impl Named for Stream {
    fn key(&self) -> &Key {
        &self.key
    }
}

impl Stream {
    pub fn new(model: usize, key: Key) -> Stream {
        Stream {
            model,
            part: Part::of(key.segment()),
            key,
            last: LastSeen::before(i64::MIN),
            waiting: 0,
            pending: PendingPanes::default(),
            judges: Vec::new(),
        }
    }

    pub fn is_of(&self, model: &str, version: &str) -> bool {
        (self.key.model(), self.key.version()) == (model, version)
    }

    /// Makes the judges on first use, and tells them the newest event time.
    pub fn make_judges(
        &mut self,
        plan: &ModelPlan,
        odds: Option<&Arc<Odds>>,
        stopwatch: Option<Stopwatch>,
    ) {
        if self.judges.is_empty() {
            self.judges = judges_for(plan, odds, &self.key);
            self.judges.iter_mut().for_each(|j| j.time_by(stopwatch));
        }
        self.judges
            .iter_mut()
            .for_each(|j| j.seen(self.last.newest_ms));
    }

    /// Seals and judges the panes from `from_ms` to the line. Each judge's windows may keep
    /// `running_bytes` of sums.
    pub fn seal(
        &mut self,
        plan: &ModelPlan,
        (from_ms, line_ms): (i64, i64),
        running_bytes: usize,
    ) -> Sealed {
        let rolls_up = plan.segmenting.rollup && self.part.is_rolled_up();
        let mut sealed = Sealed::default();
        self.judges.iter_mut().for_each(|j| j.keep(running_bytes));
        let mut walk = PaneWalk::new(from_ms, line_ms, plan.ladder.pane_ms);
        while let Some(end_ms) = walk.next_end_ms(
            self.judges.iter().any(Judge::moves),
            self.pending.oldest_ms(),
        ) {
            let pane = self.pending.take(end_ms);
            for (view, judge) in self.judges.iter_mut().enumerate() {
                let pane = pane.as_ref().map(|d| d.pane(view));
                judge.seal(pane.as_ref(), end_ms, &plan.judge, &mut sealed.changes);
            }
            sealed.panes.extend(pane.filter(|_| rolls_up));
        }
        sealed
    }
}

/// A judge for each view of scores.
pub(super) fn judges_for(plan: &ModelPlan, odds: Option<&Arc<Odds>>, key: &Key) -> Vec<Judge> {
    let judge = |view: View| {
        let id = StreamId {
            model: key.model().to_owned(),
            version: key.version().to_owned(),
            segment: key.segment().to_owned(),
            view,
        };
        let mut judge = Judge::new(id, &plan.ladder, plan.grid);
        if let (Some(odds), Some(options)) = (odds, &plan.judge.detector) {
            let share = stake_of(options, plan, Part::of(key.segment()));
            judge.watch_by(Detector::new(odds.clone(), options.clone(), share));
        }
        judge
    };
    scalars(plan).map(judge).collect()
}
