//! The sums of windows, kept from slide to slide.
//!
//! A window that slides loses its oldest pane and gains one. Its sums are integers, so the lost
//! pane is subtracted exactly, and only the changed panes are unpacked, two of six. Changes are
//! found by comparing panes with those that were added: a pane that a late outcome corrected, or
//! that took the events of another partition, is a different pane. So the code that changes panes
//! does not need to know of these sums.
//!
//! Distinct scores and the sample of repeats cannot be subtracted: a score that was dropped stays
//! dropped. They are few and come before the cells of a packed pane, so they are merged again at
//! each slide.
//!
//! Always: the total is the merge of the panes, to the bit. Cost: 56 bytes a cell, which the total
//! shares, and the packed panes that were added, which the window mostly shares. They are in no
//! snapshot; a restored window makes them again at its next slide.

use super::pack::Packed;
use super::pack_error::PackError;
use crate::stats::algebra::{Merge, Overflow, Retract};
use crate::stats::axis::Grid;
use crate::stats::sums::{Cell, LogSums, Sums};
use std::sync::Arc;

/// Most bytes that the sums of all windows of a monitor take.
pub const RUNNING_BYTES_MAX: usize = 128 << 20;

/// A pane with its sums.
pub(super) type Unpacked = (Packed, Sums);

/// The sums of all windows of a stream of scores. See the module.
#[derive(Debug, Clone)]
pub(super) struct RunningSums {
    windows: Vec<Option<Running>>,
    /// How many bytes they may take.
    pub(super) bytes_max: usize,
    /// A pane that was unpacked.
    pub(super) known: Option<Unpacked>,
}

/// The sums of one window.
#[derive(Debug, Clone, Default)]
struct Running {
    /// The panes that were added.
    held: Vec<Packed>,
    /// Occupied cells, ascending.
    cells: Arc<Vec<(u32, Cell)>>,
    logs: LogSums,
}

impl RunningSums {
    /// Of so many windows, with no room yet.
    pub(super) fn new(windows: usize) -> RunningSums {
        RunningSums {
            windows: vec![None; windows],
            bytes_max: 0,
            known: None,
        }
    }

    /// The merge of the panes of window `index`; `None` where no room is given or sums of such a
    /// grid are not kept.
    pub(super) fn total(
        &mut self,
        index: usize,
        panes: &[&Packed],
        grid: Grid,
    ) -> Result<Option<Sums>, PackError> {
        if grid.is_weighted() || grid.is_clustered() || self.bytes_max == 0 {
            self.windows[index] = None;
            return Ok(None);
        }
        let mut running = self.windows[index].take().unwrap_or_default();
        let total = running.total(panes, grid, self.known.as_ref())?;
        if self.bytes() + running.bytes() <= self.bytes_max {
            self.windows[index] = Some(running);
        }
        Ok(Some(total))
    }

    /// Heap bytes held, the panes left out.
    pub(super) fn bytes(&self) -> usize {
        self.windows.iter().flatten().map(Running::bytes).sum()
    }
}

/// The merge of the panes, which are neither weighted nor clustered.
pub(super) fn merge(panes: &[&Packed], grid: Grid) -> Result<Sums, PackError> {
    Running::default().total(panes, grid, None)
}

impl Running {
    /// The merge of these panes. `known` may hold the sums of one of them, so that it is not
    /// unpacked again. After an error the sums are unusable.
    fn total(
        &mut self,
        panes: &[&Packed],
        grid: Grid,
        known: Option<&Unpacked>,
    ) -> Result<Sums, PackError> {
        let (gone, stay): (Vec<Packed>, Vec<Packed>) =
            (self.held.drain(..)).partition(|held| !panes.iter().any(|pane| pane.is(held)));
        let cells = Arc::make_mut(&mut self.cells);
        let mut list = Vec::new();
        for pane in &gone {
            let mut parts = pane.parts(grid)?;
            parts.list(pane.n(), &mut list)?;
            self.logs = self.logs.zip(&parts.logs, i128::checked_sub)?;
            take_out(cells, &list)?;
        }
        let new = |pane: &&&Packed| !stay.iter().any(|held| pane.is(held));
        for pane in panes.iter().filter(new) {
            let mut parts = pane.parts(grid)?;
            let known = known.filter(|(known, _)| known.is(pane));
            let theirs = match known.and_then(|(_, sums)| sums.listed()) {
                Some(known) => known,
                None => {
                    parts.list(pane.n(), &mut list)?;
                    &list
                }
            };
            self.logs = self.logs.zip(&parts.logs, i128::checked_add)?;
            put_in(cells, theirs)?;
        }
        cells.shrink_to(cells.len() + cells.len() / 8);
        self.held = panes.iter().map(|pane| (*pane).clone()).collect();
        let mut total = Sums::of_listed(grid, self.cells.clone(), self.logs)?;
        for pane in panes {
            let parts = pane.parts(grid)?;
            total.merge_scores(&parts.distinct, &parts.repeats)?;
        }
        Ok(total)
    }

    /// Heap bytes held, the panes left out.
    fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<(u32, Cell)>() + self.held.len() * size_of::<Packed>()
    }
}

/// Adds cells to others, both ascending.
fn put_in(cells: &mut Vec<(u32, Cell)>, more: &[(u32, Cell)]) -> Result<(), Overflow> {
    let mut old = cells.iter().map(|(index, _)| *index).peekable();
    let is_new = |(index, _): &&(u32, Cell)| {
        while old.next_if(|ours| ours < index).is_some() {}
        old.peek() != Some(index)
    };
    let new = more.iter().filter(is_new).count();
    // From the last on, each to where it stays.
    let mut from = cells.len();
    let mut to = from + new;
    cells.reserve_exact(new);
    cells.resize(to, (0, Cell::default()));
    for &(index, ref theirs) in more.iter().rev() {
        while from > 0 && cells[from - 1].0 > index {
            (from, to) = (from - 1, to - 1);
            cells[to] = cells[from];
        }
        to -= 1;
        if from > 0 && cells[from - 1].0 == index {
            from -= 1;
            cells[to] = cells[from];
            cells[to].1.merge(theirs)?;
        } else {
            cells[to] = (index, *theirs);
        }
    }
    Ok(())
}

/// Takes cells out of others, both ascending.
fn take_out(cells: &mut Vec<(u32, Cell)>, less: &[(u32, Cell)]) -> Result<(), Overflow> {
    let mut ours = cells.iter_mut();
    for (index, theirs) in less {
        let cell = ours.find(|(ours, _)| ours >= index);
        match cell.filter(|(ours, _)| ours == index) {
            Some((_, cell)) => cell.retract(theirs)?,
            None => return Err(Overflow),
        }
    }
    cells.retain(|(_, cell)| cell.n > 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::axis::Axis;
    use crate::stats::fixed::Score;
    use crate::stats::rng::Rng;
    use crate::window::{
        Correction, Ladder, LateOutcomes, Pane, PaneSums, Unlabelled, WindowSpec, Windows,
    };
    use proptest::prelude::*;

    const BASE: i64 = 10;

    /// Events of a base pane: some many, some none, of few distinct scores or of any.
    fn events(rng: &mut Rng, coarse: bool) -> Vec<(Score, bool)> {
        let n = match (rng.uniform() * 4.0) as u32 {
            0 => 0,
            1 => 400,
            some => 10 * some,
        };
        (0..n)
            .map(|_| {
                let z = rng.uniform().powi(2);
                let z = if coarse { (z * 20.0).round() / 20.0 } else { z };
                (Score::new(z).unwrap(), rng.uniform() < z)
            })
            .collect()
    }

    fn sums(grid: Grid, events: &[(Score, bool)]) -> Sums {
        let mut sums = Sums::new(grid);
        for (z, y) in events {
            sums.observe(*z, *y).unwrap();
        }
        sums
    }

    fn pane(grid: Grid, start_ms: i64, events: &[(Score, bool)]) -> Pane {
        Pane {
            start_ms,
            end_ms: start_ms + BASE,
            late: 0,
            sums: PaneSums::Scores(Packed::new(&sums(grid, events))),
            unlabelled: Unlabelled::default(),
            late_outcomes: LateOutcomes::default(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        // Against recomputation from scratch, with panes of other partitions that come late,
        // outcomes that change after their pane was sealed, room that comes and goes, and restarts.
        #[test]
        fn kept_sums_are_those_of_the_panes_to_the_bit(seed: u64, level in 3u32..12, coarse: bool, logit: bool) {
            let mut rng = Rng::new(seed);
            let axis = match logit {
                true => Axis::Logit { low: 1e-3, high: 0.9 },
                false => Axis::Linear,
            };
            let grid = Grid::new(axis, level);
            let specs = vec![
                WindowSpec::time("60", 60),
                WindowSpec::time("360", 360),
                WindowSpec::time("1440", 1_440),
                WindowSpec::last(700),
            ];
            let ladder = Ladder::new(specs, 0).unwrap();
            let mut windows = Windows::new(&ladder, PaneSums::Scores(grid));
            windows.keep(usize::MAX);
            let (mut past, mut kept) = (Vec::new(), 0);
            for i in 0..260 {
                let (start_ms, end_ms) = (i * BASE, (i + 1) * BASE);
                let new = events(&mut rng, coarse);
                let sealed = (!new.is_empty()).then(|| pane(grid, start_ms, &new));
                windows.seal(sealed.as_ref(), end_ms).unwrap();
                for index in 0..4 {
                    if windows.due(index, end_ms, sealed.is_some()) || windows.young(index) {
                        let got = windows.next_total(index, end_ms).unwrap();
                        prop_assert_eq!(got, windows.total(index, end_ms).unwrap());
                        kept += usize::from(windows.running.windows[index].is_some());
                    }
                }
                windows.trim(end_ms);
                past.extend(sealed.map(|_| (start_ms, new)));
                let mut chance = |p: f64| rng.uniform() < p;
                if chance(0.1) && let Some((start_ms, events)) = past.last().cloned() {
                    // The first event comes again with the other outcome.
                    let (z, y) = events[0];
                    let correction = Correction {
                        start_ms,
                        minus: sums(grid, &[(z, y)]),
                        plus: sums(grid, &[(z, !y)]),
                        labelled: Vec::new(),
                    };
                    windows.correct(&correction).unwrap();
                    past.pop();
                }
                if chance(0.1) {
                    let behind = start_ms - BASE * (rng.uniform() * 20.0) as i64;
                    let more = events(&mut rng, coarse);
                    windows.place(&pane(grid, behind.max(0), &more), end_ms).unwrap();
                }
                match (rng.uniform() * 40.0) as u32 {
                    0 => {
                        let state = windows.state();
                        windows = Windows::new(&ladder, PaneSums::Scores(grid));
                        windows.restore(state).unwrap();
                        windows.keep(usize::MAX);
                    }
                    1 => windows.keep((rng.uniform() * 100_000.0) as usize),
                    2 | 3 => windows.keep(usize::MAX),
                    _ => {}
                }
            }
            prop_assert!(kept > 100, "{kept}");
        }
    }
}
