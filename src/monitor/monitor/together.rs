//! Results over several streams of a monitor: p-values of class views adjusted for each other,
//! alarms over all watched streams, and comparisons of versions.

use super::Stream;
use crate::collect::Slots;
use crate::judge::family;
use crate::judge::ledger::Entry;
use crate::judge::{CompareOptions, ComparisonReport, Comparisons, ModelPlan, Plan};
use crate::stats::view::View;

/// Adjusts the p-values of the class views of each stream of a model for each other.
pub(super) fn adjust_families(streams: &mut Slots<Stream>, model: usize, plan: &ModelPlan) {
    let classes = plan.views.iter().filter(|v| matches!(v, View::Class(_)));
    if classes.count() < 2 {
        return;
    }
    let alpha = plan.judge.evaluation.tcal.alpha;
    for (_, stream) in streams.iter_mut().filter(|(_, s)| s.model == model) {
        family::adjust_all(&mut stream.judges, alpha);
    }
}

/// The streams that have a detector, as the ledger sees them.
pub(super) fn entries(streams: &Slots<Stream>) -> Vec<Entry<'_>> {
    let judges = streams.iter();
    let judges = judges.flat_map(|(_, s)| s.judges.iter().map(|j| (s.model, j)));
    let entries = judges.filter_map(|(model, judge)| {
        Some(Entry {
            model,
            id: &judge.report().id,
            detector: judge.detector()?,
        })
    });
    entries.collect()
}

/// The comparisons of versions that scored the same ids, over all shards.
pub fn comparisons<'s>(
    plan: &Plan,
    shards: impl Iterator<Item = &'s [Comparisons]> + Clone,
) -> Vec<ComparisonReport> {
    let models = plan.models.iter().enumerate();
    let compared = models.filter_map(|(i, m)| Some((i, m.judge.compare.as_ref()?)));
    let of = |(i, options): (usize, &CompareOptions)| {
        let mut all = Comparisons::default();
        let theirs = shards.clone().filter_map(|s| s.get(i));
        theirs.for_each(|theirs| all.merge(theirs));
        all.reports(options.alpha).collect::<Vec<_>>()
    };
    compared.flat_map(of).collect()
}
