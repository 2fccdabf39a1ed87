//! One segment of one version of a model, with its open panes.
//!
//! All views of a subject share its key and its panes, so an event is looked up once and lands in one
//! pane; each view has sums of its own there.
//!
//! Open panes are few while partitions go along together: the newest, and those within the lateness.
//! When one partition is read hours ahead of another there are hundreds. So only [`HOT_MAX`] panes are
//! *hot*, that is unpacked; the others are parked, packed like sealed ones, and unpacked again when an
//! event lands in them. A cap on open panes bounds the rest.

use super::collector::PaneDelta;
use super::event::Refusal;
use super::key::Key;
use super::segments::Part;
use crate::stats::algebra::Overflow;
use crate::stats::axis::Grid;
use crate::stats::batch::BatchedSums;
use crate::stats::fixed::Scored;
use crate::stats::sums::Sums;
use crate::stats::weight::Weight;
use crate::window::{Correction, PackError, Packed, Unlabelled};

/// Hot panes of a subject. Disorder across a pane's boundary touches two; a third absorbs a straggler.
pub const HOT_MAX: usize = 3;

#[derive(Debug, Clone)]
enum Body {
    Hot(BatchedSums),
    /// Of weighted events, which go to their cells one by one.
    Weighed(Vec<Sums>),
    Parked(Vec<Packed>),
    /// Sums of sealed panes, in a roll-up.
    Poured(Vec<Sums>),
}

/// A pane that still takes events.
#[derive(Debug, Clone)]
pub struct OpenPane {
    /// Begin; it ends one pane later.
    pub start_ms: i64,
    /// When it was last turned to, in turns of the subject.
    turn: u64,
    body: Body,
    /// Predictions without outcome, for each view; empty while there are none.
    unlabelled: Vec<Unlabelled>,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Index of the model's plan.
    pub model: usize,
    /// Names as they came; the model's differs from the plan's for the default plan.
    pub key: Key,
    /// What it is among the segments of its version.
    pub part: Part,
    /// Index of the group of these.
    pub group: usize,
    /// Newest event time.
    pub newest_ms: i64,
    /// Whether an event came since the last tick.
    pub seen: bool,
    /// The tick at which an event was last seen.
    pub seen_ms: Option<i64>,
    /// Events that came too late since a pane was last sealed.
    pub late: u64,
    /// Predictions that are not mature.
    pub pending: u64,
    /// Ascending by start.
    open: Vec<OpenPane>,
    /// Index of the pane that took the last event.
    current: usize,
    turn: u64,
}

impl Subject {
    /// A subject without events.
    pub fn new(model: usize, key: Key) -> Subject {
        Subject {
            model,
            part: Part::of(key.segment()),
            group: usize::MAX,
            key,
            newest_ms: i64::MIN,
            seen: false,
            seen_ms: None,
            late: 0,
            pending: 0,
            open: Vec::new(),
            current: 0,
            turn: 0,
        }
    }

    /// An event of this time was taken.
    #[inline]
    pub fn saw(&mut self, time_ms: i64) {
        self.seen = true;
        self.newest_ms = self.newest_ms.max(time_ms);
    }

    /// The current pane, if the time lies in it.
    #[inline]
    pub fn current(&mut self, time_ms: i64, pane_ms: i64) -> Option<&mut OpenPane> {
        let pane = self.open.get_mut(self.current)?;
        let into = time_ms.wrapping_sub(pane.start_ms);
        (0..pane_ms).contains(&into).then_some(pane)
    }

    /// The pane that begins at `start_ms`; made the current one if it is not.
    #[inline]
    pub fn pane_at(
        &mut self,
        start_ms: i64,
        views: usize,
        grid: Grid,
        open_max: usize,
    ) -> Result<&mut OpenPane, Refusal> {
        let current = self.open.get(self.current);
        if current.is_some_and(|p| p.start_ms == start_ms) {
            // The current pane is hot.
            return Ok(&mut self.open[self.current]);
        }
        self.turn_to(start_ms, views, grid, open_max)
    }

    /// Makes the pane that begins at `start_ms` the current one, and hot.
    #[cold]
    pub fn turn_to(
        &mut self,
        start_ms: i64,
        views: usize,
        grid: Grid,
        open_max: usize,
    ) -> Result<&mut OpenPane, Refusal> {
        self.turn += 1;
        match self.open.binary_search_by_key(&start_ms, |p| p.start_ms) {
            Ok(at) => self.current = at,
            Err(_) if self.open.len() >= open_max => return Err(Refusal::Panes),
            Err(at) => {
                let pane = OpenPane {
                    start_ms,
                    turn: 0,
                    body: Body::new(grid, views),
                    unlabelled: Vec::new(),
                };
                self.open.insert(at, pane);
                self.current = at;
            }
        }
        let pane = &mut self.open[self.current];
        pane.turn = self.turn;
        if let Body::Parked(packed) = &pane.body {
            // What was packed here unpacks; if it ever did not, the pane would take no more events.
            pane.body = Body::unpack(packed, grid).map_err(|_| Refusal::Panes)?;
        }
        self.park();
        Ok(&mut self.open[self.current])
    }

    /// Packs the hot panes that were longest not turned to, down to [`HOT_MAX`].
    fn park(&mut self) {
        let hot = |p: &&mut OpenPane| matches!(p.body, Body::Hot(_) | Body::Weighed(_));
        if self.open.iter_mut().filter(hot).count() > HOT_MAX
            && let Some(pane) = self.open.iter_mut().filter(hot).min_by_key(|p| p.turn)
        {
            let packed = match &mut pane.body {
                Body::Hot(batched) => batched.flush().iter().map(Packed::new).collect(),
                Body::Weighed(sums) => sums.iter().map(Packed::new).collect(),
                Body::Parked(_) | Body::Poured(_) => return,
            };
            pane.body = Body::Parked(packed);
        }
    }

    /// Begin of the oldest open pane.
    pub fn oldest_ms(&self) -> Option<i64> {
        self.open.first().map(|p| p.start_ms)
    }

    /// Number of open panes.
    pub fn open_len(&self) -> usize {
        self.open.len()
    }

    /// Begin of the newest open pane.
    pub fn newest_pane_ms(&self) -> Option<i64> {
        self.open.last().map(|p| p.start_ms)
    }

    /// Takes out the oldest pane, packed, one for each view, with its predictions without outcome.
    pub fn take_oldest(&mut self) -> Option<(i64, Vec<Packed>, Vec<Unlabelled>)> {
        if self.open.is_empty() {
            return None;
        }
        // Where the current pane goes, none is current: its neighbour may be parked.
        self.current = self.current.wrapping_sub(1);
        let pane = self.open.remove(0);
        let views = pane.body.packed();
        let mut unlabelled = pane.unlabelled;
        unlabelled.resize(views.len(), Unlabelled::default());
        Some((pane.start_ms, views, unlabelled))
    }

    /// Merges a sealed pane of a segment into the pane of this roll-up.
    pub fn pour(&mut self, delta: &PaneDelta, grid: Grid) -> Result<(), PackError> {
        let views = delta.views.len();
        let at = match self
            .open
            .binary_search_by_key(&delta.start_ms, |p| p.start_ms)
        {
            Ok(at) => at,
            Err(at) => {
                let pane = OpenPane {
                    start_ms: delta.start_ms,
                    turn: 0,
                    body: Body::Poured(vec![Sums::new(grid); views]),
                    unlabelled: vec![Unlabelled::default(); views],
                };
                self.open.insert(at, pane);
                at
            }
        };
        self.turn += 1;
        let pane = &mut self.open[at];
        pane.turn = self.turn;
        pane.unlabelled.resize(views, Unlabelled::default());
        for (ours, theirs) in pane.unlabelled.iter_mut().zip(&delta.unlabelled) {
            ours.merge(theirs);
        }
        for (sums, packed) in pane.body.poured(grid)?.iter_mut().zip(&delta.views) {
            packed.merge_into(sums)?;
        }
        self.park_poured();
        Ok(())
    }

    /// Corrects an open pane that was poured, one correction for each view.
    pub fn correct(&mut self, corrections: &[Correction], grid: Grid) -> Result<(), PackError> {
        let Some(start_ms) = corrections.first().map(|c| c.start_ms) else {
            return Ok(());
        };
        let Ok(at) = self.open.binary_search_by_key(&start_ms, |p| p.start_ms) else {
            return Ok(());
        };
        let pane = &mut self.open[at];
        for (sums, c) in pane.body.poured(grid)?.iter_mut().zip(corrections) {
            c.apply(sums)?;
        }
        for (unlabelled, c) in pane.unlabelled.iter_mut().zip(corrections) {
            c.uncount(unlabelled);
        }
        self.park_poured();
        Ok(())
    }

    /// Packs the poured panes that were longest not turned to, down to [`HOT_MAX`].
    fn park_poured(&mut self) {
        let poured = |p: &&mut OpenPane| matches!(p.body, Body::Poured(_));
        while self.open.iter_mut().filter(poured).count() > HOT_MAX
            && let Some(pane) = self.open.iter_mut().filter(poured).min_by_key(|p| p.turn)
        {
            let body = std::mem::replace(&mut pane.body, Body::Parked(Vec::new()));
            pane.body = Body::Parked(body.packed());
        }
    }

    /// All open panes, packed, for a snapshot.
    pub fn packed(&self) -> Vec<(i64, Vec<Packed>)> {
        let pane = |p: &OpenPane| (p.start_ms, p.body.clone().packed());
        self.open.iter().map(pane).collect()
    }

    /// Predictions without outcome of each open pane, for a snapshot: a union's panes wait for its line with theirs.
    pub fn unlabelled(&self) -> Vec<Vec<Unlabelled>> {
        self.open.iter().map(|p| p.unlabelled.clone()).collect()
    }

    /// Puts them back, after the panes.
    pub fn restore_unlabelled(&mut self, all: Vec<Vec<Unlabelled>>) {
        for (pane, unlabelled) in self.open.iter_mut().zip(all) {
            pane.unlabelled = unlabelled;
        }
    }

    /// Puts back the open panes of a snapshot, checked: ascending, one sum for each of `views`, all
    /// of the same number of events.
    pub fn restore(
        &mut self,
        panes: Vec<(i64, Vec<Packed>)>,
        views: usize,
        grid: Grid,
    ) -> Result<(), PackError> {
        for (start_ms, packed) in panes {
            if packed.len() != views || self.newest_pane_ms() >= Some(start_ms) {
                return Err(PackError::Corrupt);
            }
            Body::unpack(&packed, grid)?;
            self.open.push(OpenPane {
                start_ms,
                turn: 0,
                body: Body::Parked(packed),
                unlabelled: Vec::new(),
            });
        }
        // No pane is current until an event turns to one, for the current one must be hot.
        self.current = usize::MAX;
        Ok(())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let pane = |p: &OpenPane| match &p.body {
            Body::Hot(batched) => batched.bytes(),
            Body::Parked(all) => all.iter().map(Packed::bytes).sum(),
            Body::Poured(all) | Body::Weighed(all) => {
                all.iter().map(|s| size_of::<Sums>() + s.bytes()).sum()
            }
        };
        self.open.iter().map(pane).sum::<usize>()
            + self.open.capacity() * size_of::<OpenPane>()
            + self.key.bytes()
            + size_of::<Subject>()
    }
}

impl OpenPane {
    /// Adds an event, one entry for each view; the pane must be hot, as the current one is. A weight is looked
    /// at, and needed, where events are weighted.
    #[inline]
    pub fn observe(&mut self, seen: &[Scored], weight: Option<Weight>) -> Result<(), Refusal> {
        match &mut self.body {
            Body::Hot(batched) => batched.observe(seen).map_err(|_| Refusal::Sums),
            Body::Weighed(sums) => weigh(sums, seen, weight).map_err(|_| Refusal::Sums),
            Body::Parked(_) | Body::Poured(_) => Err(Refusal::Panes),
        }
    }

    /// [`OpenPane::observe`] where there is one view.
    #[inline]
    pub fn observe_one(&mut self, seen: Scored) -> Result<(), Refusal> {
        match &mut self.body {
            Body::Hot(batched) => batched.observe_one(seen).map_err(|_| Refusal::Sums),
            // A weighted event comes with its weight.
            Body::Weighed(_) | Body::Parked(_) | Body::Poured(_) => Err(Refusal::Panes),
        }
    }

    /// Counts a prediction without outcome, one score for each view; `implied` when it was added all the
    /// same. A pane is sealed in the call that counts into it, so no snapshot need hold the counts.
    pub fn count_unlabelled(&mut self, seen: &[Scored], implied: bool) {
        self.unlabelled.resize(seen.len(), Unlabelled::default());
        for (unlabelled, one) in self.unlabelled.iter_mut().zip(seen) {
            unlabelled.count(one.score().value(), implied);
        }
    }
}

/// Adds a weighted event to all views. They hold the same events, so what fits one fits all.
fn weigh(sums: &mut [Sums], seen: &[Scored], weight: Option<Weight>) -> Result<(), Overflow> {
    let weight = weight.ok_or(Overflow)?;
    for (sums, one) in sums.iter_mut().zip(seen) {
        sums.observe_weighted(one.score(), one.outcome(), weight)?;
    }
    Ok(())
}

impl Body {
    /// As sums, to pour into.
    fn poured(&mut self, grid: Grid) -> Result<&mut Vec<Sums>, PackError> {
        if !matches!(self, Body::Poured(_)) {
            let packed = std::mem::replace(self, Body::Parked(Vec::new())).packed();
            let sums: Result<_, _> = packed.iter().map(|p| p.unpack(grid)).collect();
            *self = Body::Poured(sums?);
        }
        match self {
            Body::Poured(sums) => Ok(sums),
            Body::Hot(_) | Body::Weighed(_) | Body::Parked(_) => Err(PackError::Corrupt),
        }
    }

    /// Of no events.
    fn new(grid: Grid, views: usize) -> Body {
        match grid.is_weighted() {
            true => Body::Weighed(vec![Sums::new(grid); views.max(1)]),
            false => Body::Hot(BatchedSums::new(grid, views)),
        }
    }

    /// The sums of a parked pane, to take events again.
    fn unpack(packed: &[Packed], grid: Grid) -> Result<Body, PackError> {
        if !grid.is_weighted() {
            return Ok(Body::Hot(hot(packed, grid)?));
        }
        let sums: Result<Vec<Sums>, PackError> = packed.iter().map(|p| p.unpack(grid)).collect();
        let sums = sums?;
        let n = sums.first().map(Sums::n).ok_or(PackError::Corrupt)?;
        match sums.iter().all(|s| s.n() == n) {
            true => Ok(Body::Weighed(sums)),
            false => Err(PackError::Corrupt),
        }
    }

    fn packed(self) -> Vec<Packed> {
        match self {
            Body::Hot(batched) => batched.into_sums().iter().map(Packed::new).collect(),
            Body::Parked(packed) => packed,
            Body::Poured(sums) | Body::Weighed(sums) => sums.iter().map(Packed::new).collect(),
        }
    }
}

/// The sums of a parked pane, to take events again.
fn hot(packed: &[Packed], grid: Grid) -> Result<BatchedSums, PackError> {
    let sums: Result<_, PackError> = packed.iter().map(|p| p.unpack(grid)).collect();
    Ok(BatchedSums::from_sums(sums?)?)
}
