//! What the streams of a monitor say together: p-values of class views adjusted for each other,
//! alarms over all watched streams, and versions against each other.

use super::{Monitor, Stream};
use crate::collect::Slots;
use crate::judge::family;
use crate::judge::ledger::Entry;
use crate::judge::{CompareOptions, ComparisonReport, Comparisons, Judge, ModelPlan, Plan};
use crate::stats::view::View;

impl Monitor {
    /// Runs after panes were judged: adjusts the p-values of class views for each other, and finds
    /// the streams that e-BH calls among all watched streams. Once done it changes nothing until a
    /// model is judged, a detector comes or goes, or one starts over.
    pub fn compare_streams(&mut self) {
        if !std::mem::take(&mut self.moved) {
            return;
        }
        for model in 0..self.plan.models.len() {
            if std::mem::take(&mut self.uncompared[model]) {
                adjust_families(&mut self.streams, model, &self.plan.models[model]);
            }
        }
        let made: u64 = self.judges_mut().map(Judge::take_evaluations).sum();
        self.counts.evaluations += made + self.vectors.take_evaluations();
        self.call();
    }

    /// Finds the streams that e-BH calls among all watched streams.
    fn call(&mut self) {
        let entries = entries(&self.streams);
        let newest_ms = entries.iter().filter_map(|e| e.detector.at_ms()).max();
        let called = self.ledger.called(&entries);
        let Some(at_ms) = newest_ms else { return };
        // In the order of the entries.
        let watched = self.judges_mut().filter(|j| j.detector().is_some());
        for (judge, called) in watched.zip(called) {
            judge.call(called, at_ms);
        }
    }
}

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

/// What can be said of versions that scored the same ids, over all shards.
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
