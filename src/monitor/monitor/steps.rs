//! Judging in steps: a backlog of panes is judged a bounded number at a time, and then the streams
//! are compared.
//!
//! Between two steps the process ticks, publishes and saves. Where the steps end changes no
//! verdict: panes are judged one after the other in any case.

use super::Monitor;
use super::together::{adjust_families, entries};
use crate::judge::Judge;
use crate::monitor::views::scalars;

impl Monitor {
    /// Judges towards the watermarks of the models, about `most` panes of views, model after model.
    /// Returns whether all are reached.
    pub fn advance_to(&mut self, watermarks_ms: &[i64], mut most: usize) -> bool {
        for (model, &watermark_ms) in watermarks_ms.iter().enumerate() {
            if watermark_ms > self.sealed_until_ms[model] {
                most = self.advance_some(model, watermark_ms, most);
            }
            if watermark_ms > self.sealed_until_ms[model] {
                self.count_evaluations();
                return false;
            }
        }
        self.compare_streams();
        true
    }

    /// Seals and judges panes of a model towards the watermark: of each view of a stream at least
    /// one, and of all together about `most`. Returns how many of `most` are left.
    fn advance_some(&mut self, model: usize, watermark_ms: i64, most: usize) -> usize {
        let of_model = self.streams.iter().filter(|(_, s)| s.model == model);
        let plan = &self.plan.models[model];
        let views = (of_model.count() * scalars(plan).count()).max(1);
        let pane_ms = plan.ladder.pane_ms;
        let begin_ms = self.next_ms(model, watermark_ms);
        let panes = i64::try_from(most / views).unwrap_or(i64::MAX).max(1);
        let until_ms = begin_ms.saturating_add(pane_ms.saturating_mul(panes));
        let until_ms = until_ms.min(watermark_ms);
        self.advance(model, until_ms);
        let judged = until_ms.saturating_sub(begin_ms) / pane_ms;
        let judged = usize::try_from(judged).unwrap_or(usize::MAX);
        most.saturating_sub(judged.saturating_mul(views))
    }

    /// Where the next pane of a model may begin: before it there is nothing to judge.
    fn next_ms(&self, model: usize, watermark_ms: i64) -> i64 {
        let mine = || self.streams.iter().filter(|(_, s)| s.model == model);
        let mut judges = mine().flat_map(|(_, s)| &s.judges);
        if judges.any(Judge::can_slide) || self.vectors.can_slide(model) {
            return self.sealed_until_ms[model];
        }
        let waiting = mine().filter_map(|(_, s)| s.pending.oldest_ms());
        let oldest_ms = waiting.chain(self.vectors.oldest_ms(model)).min();
        let from_ms = oldest_ms.map_or(watermark_ms, |ms| ms.min(watermark_ms));
        from_ms.max(self.sealed_until_ms[model])
    }

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
        self.count_evaluations();
        self.call();
    }

    /// Counts the windows that were judged since the last call.
    fn count_evaluations(&mut self) {
        let made: u64 = self.judges_mut().map(Judge::take_evaluations).sum();
        self.counts.evaluations += made + self.vectors.take_evaluations();
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
