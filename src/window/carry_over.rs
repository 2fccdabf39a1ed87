//! A changed list of windows: the new windows take over the panes of the old ones.
//!
//! Base panes have the same width before and after. A new window takes the panes of the longest old
//! window whose slide divides its own, and the unfinished slides of that window and of those that
//! feed it. So an unchanged window continues as it was, a shorter one has all of its panes, and a
//! longer one begins with the panes of the longest old one. No event counts twice: events that a
//! feeding window will deliver later stay there. If another window feeds a window than before, the
//! window loses its unfinished slide, because that cannot be cut at the point where the new feed
//! begins. The windows that it feeds lose theirs too.

use super::pack_error::PackError;
use super::pane::Pane;
use super::width::Width;
use super::windows::Windows;

impl Windows {
    /// Takes over the panes of windows of another ladder with base panes of the same width, which
    /// were sealed up to `sealed_until_ms`. These windows hold nothing yet. Windows by count begin
    /// empty, unless there was one of the same count.
    pub fn carry_over(&mut self, old: &Windows, sealed_until_ms: i64) -> Result<(), PackError> {
        for index in 0..self.widths.len() {
            let width = self.widths[index];
            let Width::Time { slide_ms, .. } = width else {
                if let Some(same) = (0..old.widths.len()).find(|&i| old.widths[i] == width) {
                    let panes = old.rings[same].panes.clone();
                    self.rings[index].panes = panes;
                }
                continue;
            };
            let feed = self.feeds[index].map(|from| self.widths[from]);
            let until_ms = match feed {
                Some(Width::Time { slide_ms, .. }) => {
                    sealed_until_ms.saturating_sub(sealed_until_ms.rem_euclid(slide_ms))
                }
                _ => sealed_until_ms,
            };
            let Some(from) = old.longest_within(slide_ms) else {
                continue;
            };
            for pane in old.pieces(from).filter(|p| p.end_ms <= until_ms) {
                self.put(index, pane, sealed_until_ms)?;
            }
        }
        Ok(())
    }

    /// The longest window by time whose slide divides `slide_ms`.
    fn longest_within(&self, slide_ms: i64) -> Option<usize> {
        let length = |index: usize| match self.widths[index] {
            Width::Time {
                width_ms,
                slide_ms: ours,
            } if slide_ms % ours == 0 => Some(width_ms),
            _ => None,
        };
        let all = (0..self.widths.len()).filter_map(|i| Some((length(i)?, i)));
        all.max().map(|(_, index)| index)
    }

    /// All that a window has of the time before the watermark, in disjoint panes: its own, and what
    /// the windows that feed it still gather.
    fn pieces(&self, index: usize) -> impl Iterator<Item = &Pane> {
        let feeds = std::iter::successors(self.feeds[index], |&from| self.feeds[from]);
        let gathered = feeds.flat_map(|from| &self.rings[from].gathering);
        self.rings[index].all().chain(gathered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::rng::Rng;
    use crate::window::sums_of;
    use crate::window::{Ladder, PaneSums, Total, WindowSpec};
    use proptest::prelude::*;

    const BASE: i64 = 10;

    fn grid() -> Grid {
        Grid::new(Axis::Linear, 4)
    }

    fn windows_of(widths: &[i64]) -> Windows {
        let specs = widths.iter().map(|w| WindowSpec::time(&w.to_string(), *w));
        let ladder = Ladder::new(specs.collect(), 0).expect("a valid ladder");
        assert_eq!(ladder.pane_ms, BASE);
        Windows::new(&ladder, PaneSums::Scores(grid()))
    }

    fn pane(number: i64) -> Option<Pane> {
        let mut rng = Rng::new(number as u64);
        let n = (rng.uniform() * 4.0) as u64;
        let sums = sums_of(grid(), (0..n).map(|_| (rng.uniform(), rng.uniform() < 0.5)));
        (n > 0).then(|| Pane::of_scores(number * BASE, (number + 1) * BASE, &sums))
    }

    /// Seals base panes, and returns the totals at each slide after `from`.
    fn seal(windows: &mut Windows, numbers: std::ops::Range<i64>) -> Vec<(usize, i64, u64, Total)> {
        let mut totals = Vec::new();
        for number in numbers {
            let (pane, end_ms) = (pane(number), (number + 1) * BASE);
            windows.seal(pane.as_ref(), end_ms).expect("sound");
            for index in 0..windows.widths.len() {
                if windows.due(index, end_ms, pane.is_some()) {
                    let total = windows.total(index, end_ms).expect("sound");
                    totals.push((index, end_ms, windows.n(index, end_ms), total));
                }
            }
        }
        totals
    }

    proptest! {
        /// Against windows of the new ladder that have seen everything: never more than they hold,
        /// the same to the bit where the old windows hold all of it, and the same everywhere once
        /// the longest new window has passed the change.
        #[test]
        fn windows_that_are_carried_over_go_on_as_if_they_had_been_there(
            before in prop::sample::subsequence(vec![360_i64, 1_440, 2_880], 0..=3),
            after in prop::sample::subsequence(vec![360_i64, 1_440, 2_880, 720], 0..=4),
            change in 1_i64..700,
        ) {
            let [before, after] = [before, after].map(|mut widths| {
                widths.push(60);
                widths
            });
            let feeds = |all: &[i64], of: i64| {
                let mut narrower: Vec<i64> = all.iter().copied().filter(|w| *w < of).collect();
                narrower.sort_unstable();
                narrower
            };
            let mut old = windows_of(&before);
            seal(&mut old, 0..change);
            let mut carried = windows_of(&after);
            carried.carry_over(&old, change * BASE).expect("sound");
            let mut scratch = windows_of(&after);
            seal(&mut scratch, 0..change);
            let ours = seal(&mut carried, change..change + 700);
            let theirs = seal(&mut scratch, change..change + 700);
            prop_assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(&theirs) {
                prop_assert!(ours.2 <= theirs.2, "an event counts twice: {:?} {:?}", ours, theirs);
                let width = carried.widths[ours.0];
                let Width::Time { width_ms, slide_ms } = width else { unreachable!() };
                let kept = before.contains(&width_ms)
                    && feeds(&before, width_ms) == feeds(&after, width_ms);
                let passed = ours.1 - width_ms - slide_ms >= change * BASE;
                if kept || passed {
                    prop_assert_eq!(ours, theirs);
                }
            }
        }
    }
}
