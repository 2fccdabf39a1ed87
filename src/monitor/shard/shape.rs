//! What the first stage must know of the models of a plan.

use crate::collect::join::JoinPlan;
use crate::collect::{ModelShape, PairShape};
use crate::judge::{CompareOptions, ModelPlan, Plan};
use crate::monitor::views::scalars;
use crate::stats::multiclass::ranked::depth;
use crate::stats::view::View;

/// What the collector must know of a model.
pub(in crate::monitor) fn model_shape(m: &ModelPlan, plan: &Plan) -> ModelShape {
    ModelShape {
        maturity_ms: maturity_ms(m, plan),
        retention_ms: m.ladder.retention_ms(),
        segmenting: m.segmenting,
        sampling: m.judge.evaluation.sampling,
        compare: m.judge.compare.as_ref().and_then(|o| pair_shape(m, o)),
        name: m.name.clone(),
        views: scalars(m).collect(),
        depth: depth(m.views.iter().filter_map(|v| v.cells()), m.classes.len()),
        sampled: m.samples().then_some(m.judge.kernel.seed),
        classes: m.classes.len(),
        pane_ms: m.ladder.pane_ms,
        lateness_ms: m.ladder.lateness_ms,
        grid: m.grid,
    }
}

/// Tells the judges of each model what the rest of the plan says of it: how long outcomes are
/// waited for, and how many class views there are.
pub(in crate::monitor) fn complete(plan: &mut Plan) {
    let maturities: Vec<i64> = plan.models.iter().map(|m| maturity_ms(m, plan)).collect();
    for (model, maturity_ms) in plan.models.iter_mut().zip(maturities) {
        let classes = model.views.iter().filter(|v| matches!(v, View::Class(_)));
        model.judge.evaluation.family = classes.count().max(1) as u32;
        if let Some(detector) = &mut model.judge.detector {
            detector.maturity_ms = maturity_ms;
        }
    }
}

/// How long predictions of a model wait for their outcomes; 0 if both come together.
fn maturity_ms(m: &ModelPlan, plan: &Plan) -> i64 {
    let feeds = |j: &&JoinPlan| {
        let name = j.model.as_deref();
        name.is_none_or(|name| plan.serving(name).is_some_and(|p| p.name == m.name))
    };
    let maturity = plan.joins.iter().filter(feeds).map(|j| j.maturity_ms);
    maturity.max().unwrap_or(0)
}

/// How versions are paired; `None` if there is nothing to pair.
fn pair_shape(m: &ModelPlan, o: &CompareOptions) -> Option<PairShape> {
    let views = scalars(m).enumerate();
    let views = views.filter(|(_, view)| CompareOptions::takes(*view));
    let views: Vec<usize> = views.map(|(at, _)| at).collect();
    (!views.is_empty() && !m.grid.is_weighted()).then(|| PairShape {
        views,
        wait_ms: o.wait_ms,
        rows_max: o.rows_max,
        champion: o.champion.clone(),
    })
}
