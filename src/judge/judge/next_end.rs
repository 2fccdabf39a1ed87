//! When time alone changes what a judge says.
//!
//! Without events windows still slide and alerts still end. A gap of a month is a quarter of a
//! million base panes of ten seconds, so a walk over a gap stops only where something changes: at
//! the slides of windows that hold something, and at every base pane while an alert may end. At all
//! other ends nothing moves but the end of an empty window, and the time at which the condition of
//! an alert that fires was last bad; of these the walk takes the last one before each stop.
//!
//! Always: a walk over a gap in one stride and a walk in many small ones end in the same state.
//! Every stop of the first walk is a stop of the second, and the stops between change only what the
//! last of them changes.

use super::Judge;
use super::alerts::STALLED;
use crate::alert::AlertState;
use crate::judge::alarm;
use crate::judge::options::JudgeOptions;
use crate::judge::verdict::{Undecided, Verdict};

impl Judge {
    /// Whether time alone can change a window: a window by time still holds panes, or its last
    /// judgement was made before it became empty.
    pub fn can_slide(&self) -> bool {
        let had = |(i, r): (usize, &super::WindowReport)| r.n > 0 && self.windows.by_time(i);
        self.windows.can_slide() || self.report.windows.iter().enumerate().any(had)
    }

    /// The next end of a base pane without events after `after_ms`, and at most at `until_ms`, at
    /// which the judge has something to do. Both are ends of base panes.
    pub fn next_end_ms(&self, after_ms: i64, until_ms: i64, options: &JudgeOptions) -> Option<i64> {
        if !self.can_slide() {
            return None;
        }
        let stale = self.stale || self.all_stale();
        if !self.rests(stale, options) {
            return Some(after_ms.saturating_add(self.windows.pane_ms()));
        }
        let by_time = || (0..self.alerts.len()).filter(|i| self.windows.by_time(*i));
        let active = by_time().filter(|i| !self.is_settled(*i, stale));
        let next = active
            .map(|i| self.windows.next_slide_ms(i, after_ms))
            .min();
        let limit_ms = next.unwrap_or(until_ms).min(until_ms);
        let settled = by_time().filter(|i| self.is_settled(*i, stale));
        let last = settled.map(|i| self.windows.last_slide_ms(i, limit_ms));
        // An alert that fires stores when its condition was last bad.
        let fires = self.report.alert.state == AlertState::Firing;
        let before_ms = match next {
            Some(next_ms) if next_ms <= until_ms => next_ms.saturating_sub(self.windows.pane_ms()),
            _ => until_ms,
        };
        let last = last.chain(fires.then_some(before_ms));
        let last = last.filter(|last_ms| *last_ms > after_ms);
        next.into_iter().chain(last).min()
    }

    /// Whether no alert changes and no window is judged between its slides until an event comes.
    fn rests(&self, stale: bool, options: &JudgeOptions) -> bool {
        let condition = alarm::condition_of(stale, &self.report, options.window_alerts);
        let mut windows = self.report.windows.iter().enumerate();
        self.report.alert.lasts(condition)
            && !self.awaits_window()
            && windows.all(|(i, window)| window.verdict != STALLED && !self.fills(i))
    }

    /// Whether a window is empty and was judged so: another judgement changes nothing but its end.
    pub(super) fn is_settled(&self, index: usize, stale: bool) -> bool {
        let report = &self.report.windows[index];
        let why = if stale {
            Undecided::Stale
        } else {
            Undecided::TooFew
        };
        self.windows.rings()[index].is_empty()
            && report.n == 0
            && report.verdict == Verdict::Undecided(why)
            && report.numbers.is_none()
            && report.family.is_none()
            && self.alerts[index].state == AlertState::Inactive
            && report.alert == AlertState::Inactive
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::StreamId;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::rng::Rng;
    use crate::stats::view::View;
    use crate::window::{Ladder, Pane, WindowSpec, sums_of};
    use std::collections::BTreeMap;

    const PANE_MS: i64 = 10_000;
    const MINUTE_MS: i64 = 60_000;

    fn judge() -> Judge {
        let windows = [("1m", 1), ("5m", 5), ("30m", 30), ("3h", 180)];
        let windows = windows.map(|(name, minutes)| WindowSpec::time(name, minutes * MINUTE_MS));
        let windows = windows.into_iter().chain([WindowSpec::last(500)]);
        let ladder = Ladder::new(windows.collect(), 0).expect("a valid ladder");
        assert_eq!(ladder.pane_ms, PANE_MS);
        let id = StreamId {
            model: "m".to_owned(),
            version: String::new(),
            segment: String::new(),
            view: View::Binary,
        };
        let mut judge = Judge::new(id, &ladder, Grid::new(Axis::Linear, 4));
        judge.time_by(Some(|| 0));
        judge
    }

    fn options() -> JudgeOptions {
        JudgeOptions {
            min_events: 60,
            pending_ms: 3 * PANE_MS,
            keep_firing_ms: 4 * MINUTE_MS,
            flap_within_ms: 20 * MINUTE_MS,
            ..JudgeOptions::plain()
        }
    }

    /// Panes of calibrated and of bad events, with gaps up to six hours, and the end of the last
    /// gap.
    fn panes(rng: &mut Rng) -> (BTreeMap<i64, Pane>, i64) {
        let grid = Grid::new(Axis::Linear, 4);
        let (mut panes, mut at_ms) = (BTreeMap::new(), 1_700_000_000_000 / PANE_MS * PANE_MS);
        for _ in 0..6 {
            let bias = if rng.uniform() < 0.5 { 0.0 } else { 0.3 };
            for _ in 0..1 + rng.bits() % 20 {
                let mut event = |_| {
                    let z = 0.1 + 0.6 * rng.uniform();
                    (z, rng.uniform() < z + bias)
                };
                let events: Vec<(f64, bool)> = (0..40).map(&mut event).collect();
                let pane = Pane::of_scores(at_ms, at_ms + PANE_MS, &sums_of(grid, events));
                panes.insert(at_ms, pane);
                at_ms += PANE_MS * (1 + i64::from(rng.uniform() < 0.2));
            }
            at_ms += PANE_MS * (2160.0 * rng.uniform().powi(3)) as i64;
        }
        (panes, at_ms)
    }

    /// Seals the panes between two moments, each base pane or from stop to stop; returns the number
    /// of ends.
    fn walk(
        judge: &mut Judge,
        panes: &BTreeMap<i64, Pane>,
        (mut at_ms, until_ms): (i64, i64),
        each: bool,
    ) -> usize {
        let (options, mut ends) = (options(), 0);
        while at_ms < until_ms {
            let oldest_ms = panes
                .range(at_ms..until_ms)
                .next()
                .map(|(ms, _)| ms + PANE_MS);
            let limit_ms = oldest_ms.unwrap_or(until_ms);
            let slide_ms = match each {
                true => judge.can_slide().then_some(at_ms + PANE_MS),
                false => judge.next_end_ms(at_ms, limit_ms, &options),
            };
            let Some(end_ms) = slide_ms.filter(|ms| *ms <= limit_ms).or(oldest_ms) else {
                break;
            };
            let pane = panes.get(&(end_ms - PANE_MS));
            judge.seal(pane, end_ms, &options, &mut Vec::new());
            (at_ms, ends) = (end_ms, ends + 1);
        }
        ends
    }

    #[test]
    fn a_walk_from_stop_to_stop_ends_as_one_over_every_base_pane() {
        let (mut stops, mut all) = (0, 0);
        for seed in 0..12 {
            let mut rng = Rng::new(seed);
            let (panes, end_ms) = panes(&mut rng);
            let begin_ms = *panes.keys().next().expect("a pane");
            let [mut each, mut strides, mut small] = [judge(), judge(), judge()];
            let mut at_ms = begin_ms;
            while at_ms < end_ms {
                // Strides of up to three hours; the small ones end where these do.
                let until_ms = end_ms.min(at_ms + PANE_MS * (1 + (rng.bits() % 1080) as i64));
                all += walk(&mut each, &panes, (at_ms, until_ms), true);
                stops += walk(&mut strides, &panes, (at_ms, until_ms), false);
                while at_ms < until_ms {
                    let next_ms = until_ms.min(at_ms + PANE_MS * (1 + (rng.bits() % 40) as i64));
                    walk(&mut small, &panes, (at_ms, next_ms), false);
                    at_ms = next_ms;
                }
                assert_eq!(strides.report(), each.report(), "seed {seed}");
                assert_eq!(strides.state(), each.state(), "seed {seed}");
                assert_eq!(small.report(), each.report(), "seed {seed}");
                assert_eq!(small.state(), each.state(), "seed {seed}");
            }
            let judgements = [&each, &strides, &small].map(|j| j.judgements.clone());
            assert_eq!(judgements[0], judgements[1], "seed {seed}");
            assert_eq!(judgements[0], judgements[2], "seed {seed}");
        }
        assert!(3 * stops < all, "{stops} stops of {all}");
    }

    #[test]
    fn a_month_without_events_takes_few_stops_and_few_judgements() {
        let (panes, _) = panes(&mut Rng::new(3));
        let (begin_ms, last_ms) = (*panes.keys().next().unwrap(), *panes.keys().last().unwrap());
        let mut judge = judge();
        walk(&mut judge, &panes, (begin_ms, last_ms + PANE_MS), false);
        judge.judgements.clear();
        let month_ms = 30 * 24 * 60 * MINUTE_MS;
        let ends = walk(
            &mut judge,
            &panes,
            (last_ms + PANE_MS, last_ms + month_ms),
            false,
        );
        assert!(ends < 200 && judge.judgements.len() < 60, "{ends}");
        assert!(!judge.can_slide());
    }
}
