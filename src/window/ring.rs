//! The sealed panes of all windows of one stream.
//!
//! Base panes come in as they seal, oldest first, with the gaps between them. Each time window keeps
//! the panes of its own slide that it still covers, and one more that is being gathered; a wider window
//! gathers from the widest narrower one whose slide divides its own, so that a day gathers six panes of
//! four hours, each from twenty-four of ten minutes, not from three hundred of fifty seconds.
//!
//! ```text
//! base ─► 5m:  panes of 50s ────────────────► total at every 50s
//!     └─► 1h:  gathering ─ at 10m ─► panes ─► total at every 10m
//!                                      └─► 24h: gathering ─ at 4h ─► panes ─► total at every 4h
//! ```
//!
//! A window by count keeps base panes, newest first until they hold N events; above
//! [`COUNT_PANES_MAX`] the two neighbours with the fewest events together are folded into one.
//!
//! Always: panes of a window are disjoint and in order of time; a window's total is the merge of its
//! panes and equals the sums of the events in them, since merging is exact. Empty panes are not kept.
//! Panes that the next total will not need are dropped after a judgement (see [`RETAIN_SLIDE_MS`]).
//!
//! A window that ends within one of its slides has its first slide under way: what it has gathered is
//! then part of it. So a day need not wait four hours for its first verdict.

use super::pack::{PackError, Packed};
use super::unlabelled::Unlabelled;
use super::width::{Ladder, Width};
use crate::stats::algebra::{Merge, Retract};
use crate::stats::axis::Grid;
use crate::stats::sums::Sums;
use std::collections::VecDeque;

/// Most panes of a window by count.
pub const COUNT_PANES_MAX: usize = 64;

/// Windows that slide this seldom keep the pane that will leave next even after their judgement, so
/// that a restored window can be evaluated again as it was. For shorter slides the pane (a sixth of the
/// window's memory) is not worth it: the next judgement is near, and until then a restored window is
/// evaluated over the panes that it still holds.
pub const RETAIN_SLIDE_MS: i64 = 3_600_000;

/// Sealed sums of a stretch of event time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    /// Begin.
    pub start_ms: i64,
    /// End, exclusive.
    pub end_ms: i64,
    /// Events that came too late between the sealing of the pane before and of this one.
    pub late: u64,
    /// The sums.
    pub packed: Packed,
    /// Predictions whose outcome never came.
    pub unlabelled: Unlabelled,
}

/// What late outcomes change in a pane that was sealed: the same events leave and come back with other
/// outcomes, or come for the first time.
#[derive(Debug, Clone)]
pub struct Correction {
    /// Begin of the base pane.
    pub start_ms: i64,
    /// What is taken out.
    pub minus: Sums,
    /// What is put in.
    pub plus: Sums,
    /// Scores whose outcome has come, and whether one had been implied.
    pub labelled: Vec<(f64, bool)>,
}

impl Pane {
    /// Both together, over the stretch that holds both.
    pub(super) fn merged(&self, other: &Pane, grid: Grid) -> Result<Pane, PackError> {
        let mut sums = self.packed.unpack(grid)?;
        other.packed.merge_into(&mut sums)?;
        let mut unlabelled = self.unlabelled.clone();
        unlabelled.merge(&other.unlabelled);
        Ok(Pane {
            start_ms: self.start_ms.min(other.start_ms),
            end_ms: self.end_ms.max(other.end_ms),
            late: self.late.saturating_add(other.late),
            packed: Packed::new(&sums),
            unlabelled,
        })
    }

    fn correct(&mut self, c: &Correction, grid: Grid) -> Result<(), PackError> {
        let mut sums = self.packed.unpack(grid)?;
        c.apply(&mut sums)?;
        self.packed = Packed::new(&sums);
        c.uncount(&mut self.unlabelled);
        Ok(())
    }
}

impl Correction {
    /// Changes the sums of the pane.
    pub fn apply(&self, sums: &mut Sums) -> Result<(), PackError> {
        // What was never there cannot be taken out; the pane is then another's.
        // It is put in first: an event that changed twice is in both.
        sums.merge(&self.plus).map_err(|_| PackError::Corrupt)?;
        sums.retract(&self.minus).map_err(|_| PackError::Corrupt)
    }

    /// Takes those whose outcome has come from those that had none.
    pub fn uncount(&self, unlabelled: &mut Unlabelled) {
        for &(z, implied) in &self.labelled {
            unlabelled.uncount(z, implied);
        }
    }
}

/// Panes of one window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ring {
    /// Whole panes, oldest first.
    pub panes: VecDeque<Pane>,
    /// The pane of one slide that is being gathered.
    pub gathering: Option<Pane>,
}

/// All windows of one stream, in the order of the ladder.
#[derive(Debug, Clone)]
pub struct Windows {
    grid: Grid,
    widths: Vec<Width>,
    /// For each window the narrower one it gathers from; `None`: from base panes.
    feeds: Vec<Option<usize>>,
    rings: Vec<Ring>,
}

impl Windows {
    /// Windows without panes.
    pub fn new(ladder: &Ladder, grid: Grid) -> Windows {
        let widths: Vec<Width> = ladder.windows.iter().map(|w| w.width).collect();
        Windows {
            grid,
            feeds: (0..widths.len()).map(|i| feed(&widths, i)).collect(),
            rings: vec![Ring::default(); widths.len()],
            widths,
        }
    }

    /// Puts back the rings of a snapshot: as many as there are windows, panes of the same grid.
    pub fn restore(&mut self, rings: Vec<Ring>) -> Result<(), PackError> {
        if rings.len() != self.rings.len() {
            return Err(PackError::Corrupt);
        }
        for pane in rings
            .iter()
            .flat_map(|r| r.panes.iter().chain(&r.gathering))
        {
            pane.packed.unpack(self.grid)?;
        }
        self.rings = rings;
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.rings.len()
    }

    pub(super) fn grid(&self) -> Grid {
        self.grid
    }

    pub(super) fn width_of(&self, index: usize) -> Width {
        self.widths[index]
    }

    pub(super) fn feed_of(&self, index: usize) -> Option<usize> {
        self.feeds[index]
    }

    pub(super) fn ring_mut(&mut self, index: usize) -> &mut Ring {
        &mut self.rings[index]
    }

    /// The panes, for a snapshot.
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Whether time alone can change any window: a window by time holds something.
    pub fn moves(&self) -> bool {
        let moves = |(r, w): (&Ring, &Width)| {
            matches!(w, Width::Time { .. }) && !(r.panes.is_empty() && r.gathering.is_none())
        };
        self.rings.iter().zip(&self.widths).any(moves)
    }

    /// Whether window `index` is one by time.
    pub fn by_time(&self, index: usize) -> bool {
        matches!(self.widths[index], Width::Time { .. })
    }

    /// Takes the base pane that ends at `end_ms`, if any event fell into it. Afterwards
    /// [`Windows::due`] says which windows have a new total.
    pub fn seal(&mut self, pane: Option<&Pane>, end_ms: i64) -> Result<(), PackError> {
        self.step(pane, end_ms, false)
    }

    /// Ends all slides that are under way, as if every window slid at `end_ms`: for the end of input.
    pub fn finish(&mut self, end_ms: i64) -> Result<(), PackError> {
        self.step(None, end_ms, true)
    }

    fn step(&mut self, pane: Option<&Pane>, end_ms: i64, all: bool) -> Result<(), PackError> {
        let mut whole: Vec<Option<Pane>> = vec![None; self.rings.len()];
        for i in 0..self.rings.len() {
            let input = match self.feeds[i] {
                None => pane.cloned(),
                Some(from) => whole[from].clone(),
            };
            let ring = &mut self.rings[i];
            match self.widths[i] {
                Width::Count { last } => {
                    if let Some(pane) = input {
                        push_count(ring, pane, last, self.grid)?;
                    }
                }
                Width::Time { width_ms, slide_ms } => {
                    ring.gather(input, self.grid)?;
                    if all || end_ms.rem_euclid(slide_ms) == 0 {
                        whole[i] = ring.complete(begin(end_ms, width_ms, slide_ms));
                    }
                }
            }
        }
        Ok(())
    }

    /// After the judgements at `end_ms`, drops the panes that the next totals will not need. See
    /// [`RETAIN_SLIDE_MS`].
    pub fn trim(&mut self, end_ms: i64) {
        for (ring, width) in self.rings.iter_mut().zip(&self.widths) {
            if let Width::Time { width_ms, slide_ms } = *width
                && slide_ms < RETAIN_SLIDE_MS
                && end_ms.rem_euclid(slide_ms) == 0
            {
                ring.evict(end_ms + slide_ms - width_ms);
            }
        }
    }

    /// Whether window `index` slides at `end_ms`, the end of the base pane just sealed; a window by
    /// count slides with every base pane that has events.
    pub fn due(&self, index: usize, end_ms: i64, events: bool) -> bool {
        match self.widths[index] {
            Width::Time { slide_ms, .. } => end_ms.rem_euclid(slide_ms) == 0,
            Width::Count { .. } => events,
        }
    }

    /// Whether window `index` slides at `end_ms`, or has no slide.
    pub fn whole(&self, index: usize, end_ms: i64) -> bool {
        match self.widths[index] {
            Width::Time { slide_ms, .. } => end_ms.rem_euclid(slide_ms) == 0,
            Width::Count { .. } => true,
        }
    }

    /// Whether window `index` holds no whole slide, and something of its first.
    pub fn young(&self, index: usize) -> bool {
        self.rings[index].panes.is_empty() && self.rings[index].gathering.is_some()
    }

    /// Corrects the panes that hold the base pane of `c`, in every window.
    pub fn correct(&mut self, c: &Correction) -> Result<(), PackError> {
        for ring in &mut self.rings {
            let mut panes = ring.panes.iter_mut().chain(&mut ring.gathering);
            if let Some(pane) = panes.find(|p| (p.start_ms..p.end_ms).contains(&c.start_ms)) {
                pane.correct(c, self.grid)?;
            }
        }
        Ok(())
    }

    /// Predictions without outcome in the window that ends at `end_ms`.
    pub fn unlabelled(&self, index: usize, end_ms: i64) -> Unlabelled {
        let mut all = Unlabelled::default();
        for pane in self.held(index, end_ms) {
            all.merge(&pane.unlabelled);
        }
        all
    }

    /// Number of events in the slide under way, as far as it has been gathered.
    pub fn gathered(&self, index: usize) -> u64 {
        let gathering = self.rings[index].gathering.as_ref();
        gathering.map_or(0, |p| p.packed.n())
    }

    /// The panes of the window that ends at `end_ms`.
    fn held(&self, index: usize, end_ms: i64) -> impl Iterator<Item = &Pane> {
        let ring = &self.rings[index];
        let first = (!self.whole(index, end_ms)).then_some(&ring.gathering);
        ring.panes.iter().chain(first.into_iter().flatten())
    }

    /// Number of events in the window that ends at `end_ms`.
    pub fn n(&self, index: usize, end_ms: i64) -> u64 {
        self.held(index, end_ms).map(|p| p.packed.n()).sum()
    }

    /// Events that came too late, over the panes of the window.
    pub fn late(&self, index: usize, end_ms: i64) -> u64 {
        self.held(index, end_ms).map(|p| p.late).sum()
    }

    /// Begin of the oldest pane in the window; its end where there is none.
    pub fn since_ms(&self, index: usize, end_ms: i64) -> i64 {
        let mut held = self.held(index, end_ms);
        held.next().map_or(end_ms, |p| p.start_ms)
    }

    /// Begin of the window that ends at `end_ms`.
    pub fn start_ms(&self, index: usize, end_ms: i64) -> i64 {
        match self.widths[index] {
            Width::Time { width_ms, slide_ms } => begin(end_ms, width_ms, slide_ms),
            Width::Count { .. } => self.rings[index]
                .panes
                .front()
                .map_or(end_ms, |p| p.start_ms),
        }
    }

    /// The merge of the window's panes.
    pub fn total(&self, index: usize, end_ms: i64) -> Result<Sums, PackError> {
        let mut sums = Sums::new(self.grid);
        for pane in self.held(index, end_ms) {
            pane.packed.merge_into(&mut sums)?;
        }
        Ok(sums)
    }

    /// Heap bytes held. Panes that windows share are counted for each.
    pub fn bytes(&self) -> usize {
        let pane = |p: &Pane| size_of::<Pane>() + p.packed.bytes() + p.unlabelled.bytes();
        let ring = |r: &Ring| r.panes.iter().chain(&r.gathering).map(pane).sum::<usize>();
        self.rings.iter().map(ring).sum::<usize>()
            + self.rings.len() * (size_of::<Ring>() + size_of::<Width>() + 16)
    }
}

impl Ring {
    fn gather(&mut self, pane: Option<Pane>, grid: Grid) -> Result<(), PackError> {
        let Some(pane) = pane else { return Ok(()) };
        self.gathering = Some(match self.gathering.take() {
            None => pane,
            Some(older) => older.merged(&pane, grid)?,
        });
        Ok(())
    }

    /// Ends the slide; returns its pane, if any event fell into it. Panes from before `begin_ms` go.
    fn complete(&mut self, begin_ms: i64) -> Option<Pane> {
        let whole = self.gathering.take();
        self.panes.extend(whole.clone());
        self.evict(begin_ms);
        whole
    }

    fn evict(&mut self, begin_ms: i64) {
        while let Some(oldest) = self.panes.front()
            && oldest.start_ms < begin_ms
        {
            self.panes.pop_front();
        }
    }
}

/// Begin of the window that ends at `end_ms`: of its first whole slide. At a slide that is the width
/// before; at the end of input, in the middle of a slide, it is less than a slide later.
fn begin(end_ms: i64, width_ms: i64, slide_ms: i64) -> i64 {
    let begin = end_ms - width_ms;
    begin + (-begin).rem_euclid(slide_ms)
}

/// The widest narrower slide that divides window `i`'s, unless it is that of the base pane.
fn feed(widths: &[Width], i: usize) -> Option<usize> {
    let slide = |w: &Width| match w {
        Width::Time { slide_ms, .. } => Some(*slide_ms),
        Width::Count { .. } => None,
    };
    let mine = slide(&widths[i])?;
    (0..i)
        .rev()
        .find(|&j| slide(&widths[j]).is_some_and(|other| mine % other == 0 && other < mine))
}

fn push_count(ring: &mut Ring, pane: Pane, last: u64, grid: Grid) -> Result<(), PackError> {
    ring.panes.push_back(pane);
    settle_count(ring, last, grid)
}

/// Lets go of what a window by count no longer needs, and folds what is too many panes.
pub(super) fn settle_count(ring: &mut Ring, last: u64, grid: Grid) -> Result<(), PackError> {
    let panes = &mut ring.panes;
    let mut n: u64 = panes.iter().map(|p| p.packed.n()).sum();
    while let Some(oldest) = panes.front()
        && n - oldest.packed.n() >= last
    {
        n -= oldest.packed.n();
        panes.pop_front();
    }
    if panes.len() > COUNT_PANES_MAX {
        let both = |i: &usize| panes[*i].packed.n() + panes[*i + 1].packed.n();
        let at = (0..panes.len() - 1).min_by_key(both).unwrap_or(0);
        let folded = panes[at].merged(&panes[at + 1], grid)?;
        panes[at] = folded;
        panes.remove(at + 1);
    }
    Ok(())
}
