//! What a judge says of a window, with maps that recalibrate its scores, and what it does to
//! alerts: of the window at each judgement, and of the stream.

use super::last_end::LastEnd;
use super::withheld::Withheld;
use super::{Before, Change, Ground, Judge, JudgeOptions, Step};
use super::{StreamReport, Undecided, Verdict, WindowReport};
use crate::alert::{Alert, Condition, Holds};
use crate::judge::alarm;
use crate::judge::recalibration::{JudgedWindow, Recalibration};
use crate::judge::report::{AlertGround, DetectorStep};
use crate::judge::sentence::{alert_sentence, verdict_sentence};
use crate::judge::verdict::Numbers;
use crate::stats::overdispersion::Overdispersion;
use crate::window::{PackError, PaneSums, Total};

pub(super) const STALLED: Verdict = Verdict::Undecided(Undecided::Stalled);

impl Judge {
    /// Advances the clock to `now_ms`. While the stream is `stale` (no event came for too long) or
    /// the watermark is `stalled`, all windows are undecided and their values are withdrawn. A
    /// single window becomes stale if it was not judged for too long beyond its slide: its verdict
    /// is as old as its end, however many events come. A stale stream stays so, also after a
    /// restart, which does not know since when no event came.
    pub fn tick(
        &mut self,
        now_ms: i64,
        stale: bool,
        stalled: bool,
        options: &JudgeOptions,
        changes: &mut Vec<Change>,
    ) {
        let unjudged = LastEnd::seen(0, now_ms);
        self.last_ends.resize(self.alerts.len(), unjudged);
        for (last, report) in self.last_ends.iter_mut().zip(&self.report.windows) {
            last.tick(report.end_ms, now_ms, stalled);
        }
        let event_ms = self.last_ends.iter().filter_map(LastEnd::event_ms).max();
        let at_ms = event_ms.unwrap_or(now_ms);
        // In a stall nothing is sealed.
        self.stale |= stale && !stalled;
        // `all_stale` visits panes; not needed if the tick says it.
        let still_stale = !stalled && !stale && (self.stale || self.all_stale());
        let mut withdrawn = 0;
        for index in 0..self.alerts.len() {
            let judged = self.report.windows[index].end_ms > 0;
            let slide_ms = self.windows.slide_ms(index);
            let bound_ms = options.stale_after_ms.saturating_add(slide_ms);
            let why = if stalled {
                self.withhold(index);
                Undecided::Stalled
            } else if stale
                || (judged && (still_stale || self.last_ends[index].age_ms() >= bound_ms))
            {
                Undecided::Stale
            } else {
                self.give_back(index, at_ms, changes);
                let immature = Verdict::Undecided(Undecided::Immature);
                let waits = !judged && self.report.due_ms.is_some();
                if waits && self.report.windows[index].verdict != immature {
                    self.edit().windows[index].verdict = immature;
                }
                continue;
            };
            withdrawn += 1;
            self.publish(
                index,
                at_ms,
                Verdict::Undecided(why),
                None,
                options,
                changes,
            );
        }
        if withdrawn == self.alerts.len() {
            self.step_alert(
                at_ms,
                Condition::Unknown,
                options,
                Ground::Standing,
                changes,
            );
        }
    }

    /// Whether ticks have withdrawn every judged window as stale, no window holds a pane from after
    /// the last judgement, and no prediction waits. All but the last follows from what a snapshot
    /// stores; a tick says whether a prediction waits. Without ticks it is never so.
    pub(super) fn all_stale(&self) -> bool {
        if self.report.due_ms.is_some() {
            return false;
        }
        let judged = || {
            let all = self.report.windows.iter().enumerate();
            all.filter(|(_, report)| report.end_ms > 0)
        };
        let stale = Verdict::Undecided(Undecided::Stale);
        let Some(last_ms) = judged().map(|(_, report)| report.end_ms).max() else {
            return false;
        };
        if !judged().all(|(index, report)| self.judged(index, report).0 == stale) {
            return false;
        }
        let mut panes = self.windows.rings().iter().flat_map(|ring| ring.all());
        panes.all(|pane| pane.end_ms <= last_ms)
    }

    /// Fits recalibration maps of scores from the window that was just judged.
    pub(super) fn refit(
        &mut self,
        index: usize,
        verdict: Verdict,
        overdispersion: Option<Overdispersion>,
        options: &JudgeOptions,
    ) {
        if self.report.id.view.is_vector() {
            return;
        }
        let report = &self.report.windows[index];
        let window = JudgedWindow {
            start_ms: report.start_ms,
            end_ms: report.end_ms,
            n: report.n,
            verdict,
            overdispersion,
        };
        let total = || match self.windows.total(index, window.end_ms)? {
            PaneSums::Scores(sums) => Ok(sums),
            PaneSums::Vector(_) => Err(PackError::Corrupt),
        };
        // Sums that overflow are reported by the verdict.
        let next = Recalibration::step(report.recalibration.as_ref(), window, options, total)
            .unwrap_or(None);
        self.edit().windows[index].recalibration = next;
    }

    /// Puts a verdict into the report, and steps the alert of its window.
    pub(super) fn publish(
        &mut self,
        index: usize,
        at_ms: i64,
        verdict: Verdict,
        numbers: Option<Numbers>,
        options: &JudgeOptions,
        changes: &mut Vec<Change>,
    ) {
        // Flaps are damped in the alert of the stream, which notifications are sent for.
        let holds = Holds {
            flap_within_ms: 0,
            ..options.holds()
        };
        let before = self.alerts[index];
        let condition = match options.window_alerts {
            true => verdict.condition(),
            false => Condition::Unknown,
        };
        let alert = before.step(condition, at_ms, &holds);
        self.say(index, at_ms, verdict, numbers, alert, changes);
    }

    /// Puts a verdict and the alert of its window into the report, and says what changed.
    fn say(
        &mut self,
        index: usize,
        at_ms: i64,
        verdict: Verdict,
        numbers: Option<Numbers>,
        alert: Alert,
        changes: &mut Vec<Change>,
    ) {
        let before = std::mem::replace(&mut self.alerts[index], alert);
        let said = &self.report.windows[index];
        let from = said.verdict;
        let same =
            (from, said.alert, said.alert_since_ms) == (verdict, alert.state, alert.since_ms);
        if same && [&said.numbers, &numbers].iter().all(|n| n.is_none()) && said.family.is_none() {
            return;
        }
        let report = &mut self.edit().windows[index];
        report.verdict = verdict;
        report.numbers = numbers;
        report.family = None;
        report.alert = alert.state;
        report.alert_since_ms = alert.since_ms;
        let StreamReport { id, windows, .. } = self.report.as_ref();
        let report = &windows[index];
        let mut tell = |step, sentence| {
            changes.push(Change {
                stream: id.clone(),
                window: report.window.clone(),
                at_ms,
                step,
                sentence,
                facts: None,
            });
        };
        if from != verdict {
            let sentence = verdict_sentence(id, report, from);
            tell(Step::Verdict { from, to: verdict }, sentence);
        }
        if before.state != alert.state {
            let (from, to) = (before.state, alert.state);
            let sentence = alert_sentence(id, report, from);
            tell(Step::Alert { from, to }, sentence);
        }
    }

    /// Keeps what a window says, before it becomes stalled.
    fn withhold(&mut self, index: usize) {
        let report = &self.report.windows[index];
        if report.verdict == STALLED {
            return;
        }
        self.withheld.resize(self.alerts.len(), None);
        self.withheld[index] = Some(Withheld {
            verdict: report.verdict,
            numbers: report.numbers.clone(),
            family: report.family,
            alert: self.alerts[index],
        });
    }

    /// Restores the verdict and alert that a window had before it became stalled. The alert of the
    /// stream follows at the next pane, in every process, so that its conditions depend on the log
    /// alone.
    pub(super) fn give_back(&mut self, index: usize, at_ms: i64, changes: &mut Vec<Change>) {
        if self.report.windows[index].verdict != STALLED {
            return;
        }
        let Some(before) = self.withheld.get_mut(index).and_then(Option::take) else {
            return;
        };
        self.say(
            index,
            at_ms,
            before.verdict,
            before.numbers,
            before.alert,
            changes,
        );
        self.edit().windows[index].family = before.family;
    }

    /// Verdict, numbers and alert that a window was judged to have, also while it is stalled.
    pub(super) fn judged<'a>(
        &'a self,
        index: usize,
        report: &'a WindowReport,
    ) -> (Verdict, Option<&'a Numbers>, Alert) {
        let withheld = self.withheld.get(index).and_then(Option::as_ref);
        match (report.verdict, withheld) {
            (STALLED, Some(before)) => (before.verdict, before.numbers.as_ref(), before.alert),
            (verdict, _) => (verdict, report.numbers.as_ref(), self.alerts[index]),
        }
    }

    /// Ends an alert that fires, because the stream is removed.
    pub fn leave(&mut self, now_ms: i64, options: &JudgeOptions, changes: &mut Vec<Change>) {
        let at_once = JudgeOptions {
            keep_firing_ms: 0,
            ..options.clone()
        };
        self.step_alert(
            now_ms,
            Condition::Unknown,
            &at_once,
            Ground::Standing,
            changes,
        );
    }

    /// Sets whether the fleet calls the stream.
    pub fn call(&mut self, called: bool, at_ms: i64) {
        if let Some(detector) = &mut self.detector
            && detector.called_ms().is_some() != called
        {
            detector.call(called, at_ms);
            self.detector_reported = false;
        }
    }

    /// Makes the alert depend on new data only, after someone said that the model was fixed or
    /// replaced. The detector starts over. Only windows and panes that begin after the newest event
    /// count, because outcomes of earlier events may still come. With `close`, which says who
    /// closed it and why (`closed by ann: fixed`), an alert that fires ends at once, at `at_ms`.
    pub fn start_over(
        &mut self,
        at_ms: i64,
        close: Option<&str>,
        options: &JudgeOptions,
        changes: &mut Vec<Change>,
    ) {
        if let Some(detector) = &mut self.detector {
            detector.forget();
            self.detector_reported = false;
            self.report_detector();
        }
        let newest_ms = self.report.last_event_ms;
        let from_ms = at_ms.max(newest_ms.saturating_add(1));
        self.edit().alert.counts_from_ms = Some(from_ms);
        if let Some(why) = close {
            let at_once = JudgeOptions {
                keep_firing_ms: 0,
                ..options.clone()
            };
            let condition = alarm::condition(&self.report, options.window_alerts);
            self.step_alert(at_ms, condition, &at_once, Ground::Closed(why), changes);
        }
    }

    /// Whether the alert cannot change: no window that counts has begun since it started over, and
    /// there is no detector.
    pub(super) fn awaits_window(&self) -> bool {
        let mut windows = self.report.windows.iter();
        self.detector.is_none() && windows.all(|w| !self.report.alert.counts(w.begins_ms()))
    }

    /// Steps the alert of the stream.
    pub(super) fn step_alert(
        &mut self,
        at_ms: i64,
        condition: Condition,
        options: &JudgeOptions,
        ground: Ground<'_>,
        changes: &mut Vec<Change>,
    ) {
        let from = self.report.alert;
        let to = from.step(condition, at_ms, &options.holds());
        if from != to {
            self.edit().alert = to;
        }
        if from.state == to.state && from.severity == to.severity {
            return;
        }
        self.report_detector();
        let sums = self.report.windows.iter().enumerate().map(|(i, w)| {
            let whole = matches!(ground, Ground::Judged(_)) && w.evaluated_at_ms == at_ms;
            let now = whole && w.numbers.is_some();
            let total = now.then(|| self.windows.total(i, w.end_ms).ok());
            total.flatten().map(Total::pack)
        });
        let sums = sums.collect();
        let (step, closed) = match ground {
            Ground::Judged(before) => (before.map(detector_step), None),
            Ground::Standing => (None, None),
            Ground::Closed(why) => (None, Some(why)),
        };
        let evidence = AlertGround {
            from,
            condition,
            sums,
            report: StreamReport::clone(&self.report),
            options: options.clone(),
            grid: self.grid,
            step,
        };
        let speaker = alarm::speaker(&self.report).and_then(|i| self.report.windows.get(i));
        let facts = alarm::facts(&self.report, to, Some(Box::new(evidence)));
        changes.push(Change {
            stream: self.report.id.clone(),
            window: speaker.map(|w| w.window.clone()).unwrap_or_default(),
            at_ms,
            step: Step::Stream { from, to },
            sentence: alarm::sentence(&self.report.id, &from, &to, closed, facts.as_deref()),
            facts,
        });
    }
}

/// What the detector of an alert was shown last.
fn detector_step(before: Before<'_>) -> DetectorStep {
    DetectorStep {
        before: before.detector.state(),
        share: before.detector.share(),
        pane: before.pane.clone(),
        span_ms: before.span_ms,
    }
}
