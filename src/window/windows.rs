//! The sealed panes of all windows of one stream.
//!
//! Base panes come in as they seal, oldest first, with the gaps between them. Each time window
//! keeps the panes of its own slide that it still covers, and one more that is being gathered; a
//! wider window gathers from the widest narrower one whose slide divides its own, so that a day
//! gathers six panes of four hours, each from twenty-four of ten minutes, not from three hundred of
//! fifty seconds.
//!
//! ```text
//! base ─► 5m:  panes of 50s ────────────────► total at every 50s
//!     └─► 1h:  gathering ─ at 10m ─► panes ─► total at every 10m
//!                                      └─► 24h: gathering ─ at 4h ─► panes ─► total at every 4h
//! ```
//!
//! A window by count keeps base panes, newest first until they hold N events. If there are more
//! than [64](super::ring::COUNT_PANES_MAX), the two neighbours with the fewest events together are
//! folded into one.
//!
//! Always: panes of a window are disjoint and in order of time; a window's total is the merge of
//! its panes and equals the sums of the events in them, since merging is exact. Empty panes are not
//! kept. The oldest pane stays until the window slides again, so that a restored window is
//! evaluated to the bits that were judged.
//!
//! A window that ends within one of its slides is still in its first slide, and that unfinished
//! slide is part of it. So a window of a day does not wait four hours for its first verdict.

use super::pack_error::PackError;
use super::pane::{EmptySums, MergeOptions, Pane, PaneState, PaneSums, Total};
use super::ring::{Ring, RingState};
use super::running::RunningSums;
use super::score_sums::ScoreSums;
use super::unlabelled::Unlabelled;
use super::width::{Ladder, Width};
use crate::stats::overdispersion::Dispersion;
use crate::stats::sums::Cell;
use std::sync::Arc;

/// Most bytes of unpacked sums that are kept from slide to slide, in all windows of a monitor that
/// take base panes: sums of whole windows, and of slides under way.
pub const RUNNING_BYTES_MAX: usize = 128 << 20;

/// All windows of one stream, in the order of the ladder.
#[derive(Debug, Clone)]
pub struct Windows {
    /// The kind of the panes.
    pub(super) empty: EmptySums,
    pub(super) widths: Vec<Width>,
    /// For each window the narrower one it gathers from; `None`: from base panes.
    pub(super) feeds: Vec<Option<usize>>,
    pub(super) rings: Vec<Ring>,
    /// Width of a base pane.
    pub(super) pane_ms: i64,
    /// How much the outcomes of base panes of scores vary, and whether that may have changed since
    /// it was measured.
    pub(super) dispersion: Dispersion,
    pub(super) dispersed: bool,
    /// The sums of each window that are kept from slide to slide, and how many bytes they and the
    /// unpacked slides under way may take.
    running: Vec<Option<RunningSums>>,
    running_bytes_max: usize,
}

impl Windows {
    /// Windows without panes, for sums of one kind.
    pub fn new(ladder: &Ladder, empty: EmptySums) -> Windows {
        let widths: Vec<Width> = ladder.windows.iter().map(|w| w.width).collect();
        Windows {
            empty,
            feeds: (0..widths.len()).map(|i| feed(&widths, i)).collect(),
            running: vec![None; widths.len()],
            running_bytes_max: 0,
            rings: vec![Ring::default(); widths.len()],
            widths,
            pane_ms: ladder.pane_ms,
            dispersion: Dispersion::default(),
            dispersed: true,
        }
    }

    /// The panes, for a snapshot.
    pub fn state(&self) -> Vec<RingState> {
        let ring = |r: &Ring| RingState {
            panes: r.panes.iter().map(PaneState::from).collect(),
            gathering: r.gathering.iter().map(PaneState::from).collect(),
        };
        self.rings.iter().map(ring).collect()
    }

    /// Restores the panes of a snapshot with as many windows and the same kind of sums.
    pub fn restore(&mut self, states: Vec<RingState>) -> Result<(), PackError> {
        if states.len() != self.rings.len() {
            return Err(PackError::Corrupt);
        }
        for (ring, state) in self.rings.iter_mut().zip(states) {
            let panes = state.panes.into_iter().map(|p| p.restore(&self.empty));
            ring.panes = panes.collect::<Result<_, _>>()?;
            let gathering = state.gathering.into_iter().map(|p| p.restore(&self.empty));
            ring.gathering = gathering.collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// Sets how many bytes unpacked sums that are kept from slide to slide may take.
    pub fn set_running_bytes_max(&mut self, bytes: usize) {
        self.running_bytes_max = bytes;
    }

    /// Drops the unpacked sums that a seal brought, after the judgements. Slides under way stay
    /// unpacked if there is room.
    pub fn drop_unpacked(&mut self) {
        for index in 0..self.rings.len() {
            let kept = usize::from(self.gathers_unpacked(index));
            let ring = &mut self.rings[index];
            let newest = ring.panes.back_mut().into_iter();
            let gathering = ring.gathering.iter_mut().skip(kept);
            newest.chain(gathering).for_each(Pane::drop_unpacked);
        }
    }

    /// Changes the cap on cells of vectors, for panes that begin here from now on.
    pub fn set_cells_max(&mut self, cells_max: usize) {
        if let PaneSums::Vector(blank) = &mut self.empty {
            Arc::make_mut(blank).set_cells_max(cells_max);
        }
    }

    /// The panes of each window.
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Whether time alone can change any window: a window by time holds something.
    pub fn can_slide(&self) -> bool {
        let can_slide = |(r, w): (&Ring, &Width)| matches!(w, Width::Time { .. }) && !r.is_empty();
        self.rings.iter().zip(&self.widths).any(can_slide)
    }

    /// Whether window `index` is one by time.
    pub fn by_time(&self, index: usize) -> bool {
        matches!(self.widths[index], Width::Time { .. })
    }

    /// How often window `index` slides: by count, with every base pane that has events.
    pub fn slide_ms(&self, index: usize) -> i64 {
        match self.widths[index] {
            Width::Time { slide_ms, .. } => slide_ms,
            Width::Count { .. } => self.pane_ms,
        }
    }

    /// Width of a base pane.
    pub fn pane_ms(&self) -> i64 {
        self.pane_ms
    }

    /// The first end after `after_ms` at which window `index` slides.
    pub fn next_slide_ms(&self, index: usize, after_ms: i64) -> i64 {
        let slide_ms = self.slide_ms(index);
        after_ms.saturating_add(slide_ms - after_ms.rem_euclid(slide_ms))
    }

    /// The last end up to `until_ms` at which window `index` slides.
    pub fn last_slide_ms(&self, index: usize, until_ms: i64) -> i64 {
        until_ms.saturating_sub(until_ms.rem_euclid(self.slide_ms(index)))
    }

    /// The first end after `after_ms` at which a window that holds something slides.
    pub fn next_end_ms(&self, after_ms: i64) -> Option<i64> {
        let held = (0..self.rings.len()).filter(|i| self.by_time(*i) && !self.rings[*i].is_empty());
        held.map(|i| self.next_slide_ms(i, after_ms)).min()
    }

    /// Takes the base pane that ends at `end_ms`, if any event fell into it. Afterwards
    /// [`Windows::due`] says which windows have a new total.
    pub fn seal(&mut self, pane: Option<&Pane>, end_ms: i64) -> Result<(), PackError> {
        if let Some(pane) = pane {
            self.disperse(pane);
        }
        self.step(pane, end_ms, false)
    }

    /// Ends all slides that are under way, as if every window slid at `end_ms`: for the end of
    /// input.
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
            let by = MergeOptions {
                empty: &self.empty,
                unpacked: self.gathers_unpacked(i),
            };
            let ring = &mut self.rings[i];
            match self.widths[i] {
                Width::Count { last } => {
                    if let Some(pane) = input {
                        ring.panes.push_back(pane);
                        ring.trim_count(last, &self.empty)?;
                    }
                }
                Width::Time { width_ms, slide_ms } => {
                    if let Some(pane) = input {
                        ring.gather(pane, by)?;
                    }
                    if all || end_ms.rem_euclid(slide_ms) == 0 {
                        whole[i] = ring.complete(begin(end_ms, width_ms, slide_ms), by)?;
                    }
                }
            }
        }
        Ok(())
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
        self.due(index, end_ms, true)
    }

    /// Whether window `index` holds no whole slide, and something of its first.
    pub fn young(&self, index: usize) -> bool {
        self.rings[index].panes.is_empty() && !self.rings[index].gathering.is_empty()
    }

    /// Predictions without outcome in the window that ends at `end_ms`.
    pub fn unlabelled(&self, index: usize, end_ms: i64) -> Unlabelled {
        let mut all = Unlabelled::default();
        for pane in self.held(index, end_ms) {
            all.merge(&pane.unlabelled);
        }
        all
    }

    /// [`Pane::outcomes`] over all that each window holds, its slide under way included.
    pub fn outcomes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.rings.iter().map(|ring| {
            let add = |(n, missing), (more, also): (u64, u64)| (n + more, missing + also);
            ring.held(false).map(Pane::outcomes).fold((0, 0), add)
        })
    }

    /// Number of events in the slide under way, as far as it has been gathered.
    pub fn gathered(&self, index: usize) -> u64 {
        self.rings[index].gathering.iter().map(|p| p.sums.n()).sum()
    }

    /// The panes of the window that ends at `end_ms`.
    pub(super) fn held(&self, index: usize, end_ms: i64) -> impl Iterator<Item = &Pane> {
        self.rings[index].held(self.whole(index, end_ms))
    }

    /// The merge of the window's panes.
    pub fn total(&self, index: usize, end_ms: i64) -> Result<Total, PackError> {
        let mut total = self.empty.total();
        for pane in self.held(index, end_ms) {
            total.add(&pane.sums)?;
        }
        Ok(total)
    }

    /// [`Windows::total`], from sums that are kept from slide to slide if there is room for them.
    pub fn next_total(&mut self, index: usize, end_ms: i64) -> Result<Total, PackError> {
        let kept = self.running[index].take();
        if let PaneSums::Scores(grid) = self.empty
            && grid.is_plain()
            && self.takes_base_panes(index)
            && self.running_bytes_max > 0
        {
            let panes = self.rings[index].held(self.whole(index, end_ms));
            let panes: Vec<&ScoreSums> = panes.filter_map(|p| p.sums.scores()).collect();
            let mut running = kept.unwrap_or_default();
            let total = running.total(&panes, grid, self.running_room())?;
            self.running[index] = running.is_kept().then_some(running);
            return Ok(PaneSums::Scores(total));
        }
        self.total(index, end_ms)
    }

    /// Heap bytes of the sums that are kept, without their panes.
    fn running_bytes(&self) -> usize {
        self.running.iter().flatten().map(RunningSums::bytes).sum()
    }

    /// Whether window `index` changes with each base pane. To keep unpacked sums of other windows
    /// would save little: their slides are long.
    fn takes_base_panes(&self, index: usize) -> bool {
        self.feeds[index].is_none_or(|from| self.slide_ms(from) == self.pane_ms)
    }

    /// Whether the slide under way of window `index` stays unpacked: windows are judged, and there
    /// is room for it beside the sums of all windows, however many cells they occupy.
    fn gathers_unpacked(&self, index: usize) -> bool {
        let cells = self.empty.scores().map_or(0, |grid| grid.cells() as usize);
        let most = 2 * self.rings.len() * cells * size_of::<(u32, Cell)>();
        let are_judged = self.running.iter().any(Option::is_some);
        self.takes_base_panes(index) && are_judged && most <= self.running_bytes_max
    }

    /// Bytes that unpacked sums may take beyond those that are kept.
    fn running_room(&self) -> usize {
        let under_way = (0..self.rings.len()).filter(|index| self.gathers_unpacked(*index));
        let under_way = under_way.filter_map(|index| self.rings[index].gathering.first());
        let under_way: usize = under_way.map(|pane| pane.sums.unpacked_bytes()).sum();
        (self.running_bytes_max).saturating_sub(self.running_bytes() + under_way)
    }

    /// Number of events in the window that ends at `end_ms`.
    pub fn n(&self, index: usize, end_ms: i64) -> u64 {
        self.held(index, end_ms).map(|p| p.sums.n()).sum()
    }

    /// Events in the window that ends at `end_ms` that found no room.
    pub fn refused(&self, index: usize, end_ms: i64) -> u64 {
        self.held(index, end_ms).map(|p| p.sums.refused()).sum()
    }

    /// Events that came too late, over the panes of the window.
    pub fn late(&self, index: usize, end_ms: i64) -> u64 {
        self.held(index, end_ms).map(|p| p.late).sum()
    }

    /// Start of the oldest pane in the window; the window's end if it has none.
    pub fn since_ms(&self, index: usize, end_ms: i64) -> i64 {
        let mut held = self.held(index, end_ms);
        held.next().map_or(end_ms, |p| p.start_ms)
    }

    /// Start of the window that ends at `end_ms`.
    pub fn start_ms(&self, index: usize, end_ms: i64) -> i64 {
        match self.widths[index] {
            Width::Time { width_ms, slide_ms } => begin(end_ms, width_ms, slide_ms),
            Width::Count { .. } => self.rings[index]
                .panes
                .front()
                .map_or(end_ms, |p| p.start_ms),
        }
    }

    /// Panes held. One that two windows share counts for each.
    pub fn panes(&self) -> usize {
        self.rings.iter().map(|r| r.all().count()).sum()
    }

    /// Heap bytes held. Panes that windows share are counted for each.
    pub fn bytes(&self) -> usize {
        let ring = |r: &Ring| r.all().map(Pane::bytes).sum::<usize>();
        self.rings.iter().map(ring).sum::<usize>()
            + self.dispersion.bytes()
            + self.running_bytes()
            + self.rings.len() * (size_of::<Ring>() + size_of::<Width>() + 16)
    }
}

/// Start of the window that ends at `end_ms`, that is, of its first whole slide. If `end_ms` ends a
/// slide, the start is one width before; at the end of input, within a slide, less than a slide
/// later.
fn begin(end_ms: i64, width_ms: i64, slide_ms: i64) -> i64 {
    let begin = end_ms - width_ms;
    begin + (-begin).rem_euclid(slide_ms)
}

/// The widest narrower window by time whose slide divides that of window `i`.
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

#[cfg(test)]
mod tests;
