//! What windows take late: outcomes, and panes of a partition that joined or fell behind.
//!
//! Windows over several partitions gather what each has sealed. A partition that comes from another
//! process brings whole windows, and one that is behind the others seals panes that the windows
//! have passed. Both are merged here into the panes that hold their stretch of event time, exactly,
//! since sums are integers. Panes that no window will need again are left out. A window shows them
//! at its next slide, or with the next pane in order if its stream is stale.
//!
//! The time up to which everything was sealed says how far a window has come:
//!
//! ```text
//!            slide      slide      slide      sealed until
//! 1h    ├──────────┼──────────┼──────────┼──────┤         panes …, and what is gathered after the last
//! 24h   ├────────────────────────────────┤                a pane has come as far as the narrower
//!                                                         window has ended its slide
//! ```
//!
//! Windows by count have no slides, and fold panes: a new pane and the panes that it overlaps
//! become one.

use super::pack_error::PackError;
use super::pane::{Correction, EmptySums, MergeOptions, Pane, PaneSums, VectorCorrection};
use super::width::Width;
use super::windows::Windows;
use std::collections::VecDeque;

impl Windows {
    /// Corrects the panes that hold the base pane of `c`, in every window, and the dispersion.
    pub fn correct(&mut self, c: &Correction) -> Result<(), PackError> {
        let PaneSums::Scores(grid) = self.empty else {
            return Err(PackError::Corrupt);
        };
        self.disperse_correction(c);
        let panes = self.rings.iter_mut();
        let panes = panes.filter_map(|ring| ring.pane_at(c.start_ms));
        // If the pane of one window cannot be corrected, the others still are.
        let results: Vec<_> = panes.map(|pane| pane.correct(c, grid)).collect();
        results.into_iter().collect()
    }

    /// Takes a late outcome into the pane that holds its vector, in every window; returns whether
    /// there was room for it in all of them.
    pub fn revise(&mut self, r: &VectorCorrection<'_>) -> bool {
        let mut took = true;
        for ring in &mut self.rings {
            if let Some(pane) = ring.pane_at(r.time_ms) {
                took &= pane.revise(r);
            }
        }
        took
    }

    /// Merges a base pane that begins before `sealed_until_ms` into every window that it would have
    /// reached by now, had it come in order.
    pub fn place(&mut self, pane: &Pane, sealed_until_ms: i64) -> Result<(), PackError> {
        let pane = self.empty.admit(pane)?;
        self.disperse(&pane);
        for index in 0..self.widths.len() {
            if self.reached(index, pane.start_ms, sealed_until_ms) {
                self.put(index, &pane, sealed_until_ms)?;
            }
        }
        Ok(())
    }

    /// Merges all panes of windows of the same ladder that are sealed no further than
    /// `sealed_until_ms`.
    pub fn absorb(&mut self, theirs: &Windows, sealed_until_ms: i64) -> Result<(), PackError> {
        if theirs.rings.len() != self.rings.len() {
            return Err(PackError::Corrupt);
        }
        self.merge_dispersion(theirs.dispersion());
        let theirs = &theirs.rings;
        for (index, ring) in theirs.iter().enumerate() {
            for pane in ring.all() {
                let pane = self.empty.admit(pane)?;
                self.put(index, &pane, sealed_until_ms)?;
            }
            // What they still gather in a narrower window has reached this one if we are further
            // ahead.
            let mut narrower = self.feeds[index];
            while let Some(from) = narrower {
                let gathering = theirs[from].gathering.iter();
                for pane in gathering {
                    if !self.reached(index, pane.start_ms, sealed_until_ms) {
                        continue;
                    }
                    let pane = self.empty.admit(pane)?;
                    self.put(index, &pane, sealed_until_ms)?;
                }
                narrower = self.feeds[from];
            }
        }
        Ok(())
    }

    /// Whether a base pane has reached window `index`: the slide of the narrower window that holds
    /// the pane is over.
    fn reached(&self, index: usize, start_ms: i64, sealed_until_ms: i64) -> bool {
        match self.feeds[index].map(|from| self.widths[from]) {
            Some(Width::Time { slide_ms, .. }) => {
                floor(start_ms, slide_ms) + slide_ms <= sealed_until_ms
            }
            _ => true,
        }
    }

    pub(super) fn put(
        &mut self,
        index: usize,
        pane: &Pane,
        sealed_until_ms: i64,
    ) -> Result<(), PackError> {
        let (width_ms, slide_ms) = match self.widths[index] {
            Width::Time { width_ms, slide_ms } => (width_ms, slide_ms),
            Width::Count { last } => {
                let (ring, empty) = (&mut self.rings[index], &self.empty);
                merge_overlapping(&mut ring.panes, pane, empty)?;
                return ring.trim_count(last, empty);
            }
        };
        let (ring, empty) = (&mut self.rings[index], &self.empty);
        let ours = floor(pane.start_ms, slide_ms);
        let under_way = floor(sealed_until_ms, slide_ms);
        if ours >= under_way {
            return ring.gather(pane.clone(), MergeOptions::packed(empty));
        }
        if ours < under_way - width_ms {
            return Ok(());
        }
        let same = |p: &Pane| floor(p.start_ms, slide_ms) == ours;
        merge(&mut ring.panes, pane, empty, same)
    }
}

/// Merges a pane into the one for which `same` is true, or inserts it in order of time.
fn merge(
    panes: &mut VecDeque<Pane>,
    pane: &Pane,
    empty: &EmptySums,
    same: impl Fn(&Pane) -> bool,
) -> Result<(), PackError> {
    match panes.iter().position(same) {
        Some(at) => panes[at].merge(pane, empty)?,
        None => {
            let at = panes.partition_point(|p| p.start_ms < pane.start_ms);
            panes.insert(at, pane.clone());
        }
    }
    Ok(())
}

/// Merges a pane and those that it overlaps into one, or inserts it in order of time.
fn merge_overlapping(
    panes: &mut VecDeque<Pane>,
    pane: &Pane,
    empty: &EmptySums,
) -> Result<(), PackError> {
    let begin = panes.partition_point(|p| p.end_ms <= pane.start_ms);
    let end = panes.partition_point(|p| p.start_ms < pane.end_ms);
    if begin == end {
        panes.insert(begin, pane.clone());
        return Ok(());
    }
    let others: Vec<Pane> = panes.drain(begin + 1..end).collect();
    let whole = &mut panes[begin];
    whole.merge_all(&others, MergeOptions::packed(empty))?;
    whole.merge(pane, empty)
}

fn floor(time_ms: i64, slide_ms: i64) -> i64 {
    time_ms - time_ms.rem_euclid(slide_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::rng::Rng;
    use crate::window::sums_of;
    use crate::window::{Ladder, Total, WindowSpec};

    const BASE: i64 = 10;
    const END: i64 = 4_000;

    fn ladder() -> Ladder {
        let windows = vec![
            WindowSpec::time("60", 60),
            WindowSpec::time("360", 360),
            WindowSpec::time("1440", 1_440),
            WindowSpec::time("8640", 8_640),
            WindowSpec::last(40),
        ];
        Ladder::new(windows, 0).expect("a valid ladder")
    }

    fn grid() -> Grid {
        Grid::new(Axis::Linear, 4)
    }

    /// Base panes of one partition: some empty.
    fn panes(seed: u64) -> Vec<Option<Pane>> {
        let mut rng = Rng::new(seed);
        let pane = |start_ms: i64| {
            let n = (rng.uniform() * 4.0) as u64;
            let sums = sums_of(grid(), (0..n).map(|_| (rng.uniform(), rng.uniform() < 0.5)));
            (n > 0).then(|| Pane {
                late: u64::from(rng.uniform() < 0.1),
                ..Pane::of_scores(start_ms, start_ms + BASE, &sums)
            })
        };
        (0..END / BASE).map(|i| i * BASE).map(pane).collect()
    }

    fn sealed(panes: &[Option<Pane>]) -> Windows {
        let mut windows = Windows::new(&ladder(), PaneSums::Scores(grid()));
        for (i, pane) in (1..).zip(panes) {
            windows.seal(pane.as_ref(), i * BASE).expect("sound");
        }
        windows
    }

    fn totals(windows: &Windows, end_ms: i64) -> Vec<(u64, u64, Total)> {
        let one = |i: usize| {
            let sums = windows.total(i, end_ms).expect("sound");
            (windows.n(i, end_ms), windows.late(i, end_ms), sums)
        };
        // The window by count is compared by its size alone, below.
        (0..4).map(one).collect()
    }

    #[test]
    fn windows_of_partitions_at_different_watermarks_sum_up_to_those_of_all_at_the_next_slides() {
        let parts: Vec<_> = (1..4).map(panes).collect();
        let both = |a: &Option<Pane>, b: &Option<Pane>| match (a, b) {
            (Some(a), Some(b)) => {
                let mut both = a.clone();
                both.merge(b, &PaneSums::Scores(grid())).expect("sound");
                Some(both)
            }
            (a, b) => a.clone().or(b.clone()),
        };
        let all = parts.iter().skip(1).fold(parts[0].clone(), |all, part| {
            all.iter().zip(part).map(|(a, b)| both(a, b)).collect()
        });
        for (case, reached) in [
            (0, [100, 100, 100]),
            (1, [217, 150, 219]),
            (2, [39, 300, 241]),
        ] {
            let newest = *reached.iter().max().expect("three");
            let sealed_until_ms = newest * BASE;
            let mut ours = Windows::new(&ladder(), PaneSums::Scores(grid()));
            for (part, until) in parts.iter().zip(reached) {
                let lane = sealed(&part[..until as usize]);
                ours.absorb(&lane, sealed_until_ms).expect("sound");
            }
            // Parts that are behind continue, and come too late for the slides that were passed.
            for (part, until) in parts.iter().zip(reached) {
                for pane in part[until as usize..newest as usize].iter().flatten() {
                    ours.place(pane, sealed_until_ms).expect("sound");
                }
            }
            let mut theirs = sealed(&all[..newest as usize]);
            for i in newest..END / BASE {
                let end_ms = (i + 1) * BASE;
                let pane = all[i as usize].as_ref();
                for windows in [&mut ours, &mut theirs] {
                    windows.seal(pane, end_ms).expect("sound");
                }
                for w in (0..4).filter(|&w| ours.due(w, end_ms, true)) {
                    assert_eq!(
                        totals(&ours, end_ms)[w],
                        totals(&theirs, end_ms)[w],
                        "window {w} at {end_ms}, case {case}"
                    );
                }
            }
            assert!(ours.n(4, END) >= 40);
        }
    }

    /// Panes of a window by count are folded, at other times in each partition.
    #[test]
    fn panes_of_a_window_by_count_stay_disjoint_and_a_late_outcome_changes_one_of_them() {
        let ladder = Ladder::new(vec![WindowSpec::last(100_000)], 0).expect("a valid ladder");
        let mut rng = Rng::new(7);
        for case in 0..40 {
            let mut parts = [0, 1, 2].map(|_| Windows::new(&ladder, PaneSums::Scores(grid())));
            let mut events = Vec::new();
            for i in 0..200 {
                let (start_ms, end_ms) = (i * BASE, (i + 1) * BASE);
                for part in &mut parts {
                    let (z, y) = (rng.uniform(), rng.uniform() < 0.5);
                    let one = rng.uniform() < 0.8;
                    let sums = sums_of(grid(), one.then_some((z, y)));
                    let pane = Pane::of_scores(start_ms, end_ms, &sums);
                    part.seal(one.then_some(&pane), end_ms).expect("sound");
                    events.extend(one.then_some((start_ms, z, y)));
                }
            }
            let [mut ours, second, third] = parts;
            for theirs in [second, third] {
                ours.absorb(&theirs, 200 * BASE).expect("sound");
            }
            let panes: Vec<(i64, i64)> = ours.rings[0]
                .all()
                .map(|p| (p.start_ms, p.end_ms))
                .collect();
            assert!(panes.is_sorted_by(|a, b| a.1 <= b.0), "{case}: {panes:?}");
            assert_eq!(ours.n(0, 200 * BASE), events.len() as u64);
            for (start_ms, z, y) in events {
                let correction = Correction {
                    start_ms,
                    minus: sums_of(grid(), [(z, y)]),
                    plus: sums_of(grid(), [(z, !y)]),
                    labelled: Vec::new(),
                };
                ours.correct(&correction).expect("its pane holds the event");
            }
        }
    }

    #[test]
    fn a_correction_that_does_not_fit_changes_nothing() {
        let one = sums_of(grid(), [(0.5, true)]);
        let mut pane = Pane::of_scores(0, BASE, &one);
        let before = pane.sums.clone();
        let correction = Correction {
            start_ms: 0,
            minus: sums_of(grid(), [(0.9, true)]),
            plus: sums_of(grid(), [(0.9, false)]),
            labelled: Vec::new(),
        };
        assert!(pane.correct(&correction, grid()).is_err());
        assert_eq!(pane.sums, before);
    }
}
