//! The judges that a stream begins with.

use crate::collect::{Key, SegmentKind};
use crate::judge::ledger::stake_of;
use crate::judge::{Detector, Judge, ModelPlan, StreamId};
use crate::monitor::views::scalars;
use crate::stats::sequential::Odds;
use crate::stats::view::View;
use std::sync::Arc;

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
            let share = stake_of(options, plan, SegmentKind::of(key.segment()));
            judge.watch_by(Detector::new(odds.clone(), options.clone(), share));
        }
        judge
    };
    scalars(plan).map(judge).collect()
}

/// The bets of the detectors of a model, if it has any.
pub(super) fn odds(m: &ModelPlan) -> Option<Arc<Odds>> {
    m.judge.detector.as_ref().map(|d| d.odds(m.grid))
}
