//! One segment of one version of a model, with its open panes.
//!
//! All views of a stream share its key and its panes, so an event is looked up once and lands in
//! one pane; each view has its own sums there.
//!
//! A stream has few open panes while partitions advance together: the newest, and those within the
//! lateness. It has hundreds if one partition is read hours ahead of another. So only [`HOT_MAX`]
//! panes are *hot*, that is unpacked; the others are packed like sealed ones, and unpacked when an
//! event lands in them. Caps bound the number of open panes of a stream, and the bytes of those of
//! all streams. At a cap, a pane is opened only within the lateness and a little more, so that
//! panes ahead of the watermark do not take the room of the panes that it waits for.

use super::event::Refusal;
use super::key::{Key, Named};
use super::last_seen::LastSeen;
use super::segment::SegmentKind;
use super::shape::ModelFacts;
use crate::stats::algebra::Overflow;
use crate::stats::attribute::Attribute;
use crate::stats::axis::Grid;
use crate::stats::batch::BatchedSums;
use crate::stats::fixed::Scored;
use crate::stats::stored::{Stored, checked};
use crate::stats::sums::Sums;
use crate::window::{LateOutcomes, PackError, Packed, Pane, PaneSums, ScoreSums, Unlabelled};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Hot panes of a stream. Disorder across a pane's boundary touches two; a third absorbs a
/// straggler.
pub const HOT_MAX: usize = 3;

/// Panes that are open beyond the lateness while partitions advance together.
pub const IN_STEP_PANES: i64 = 2;

/// Room for one more open pane.
#[derive(Debug, Clone, Copy)]
pub struct OpenRoom {
    /// Most open panes of the stream.
    pub panes_max: usize,
    /// A pane that begins here or later is not opened.
    pub until_ms: i64,
}

#[derive(Debug, Clone)]
enum Body {
    Hot(BatchedSums),
    /// Events with attributes, which go to their cells one by one.
    Single(Vec<Sums>),
    Packed(Vec<Packed>),
}

/// A pane that still takes events. What an event touches is in its first line of the cache.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct OpenPane {
    /// Start; the pane ends one width later.
    pub start_ms: i64,
    body: Body,
    /// The stream's turn at which it last became the current pane.
    turn: u64,
    /// Predictions without outcome, for each view; empty while there are none.
    unlabelled: Vec<Unlabelled>,
}

/// The sums of one stream over one sealed pane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaneDelta {
    /// Start of the pane.
    #[serde(deserialize_with = "checked")]
    pub start_ms: i64,
    /// End of the pane, exclusive.
    #[serde(deserialize_with = "checked")]
    pub end_ms: i64,
    /// Events that came too late since the previous delta.
    #[serde(deserialize_with = "checked")]
    pub late: u64,
    /// Sums for each view, in the order of the model's.
    pub views: Vec<ScoreSums>,
    /// Predictions whose outcome never came, for each view.
    pub unlabelled: Vec<Unlabelled>,
    /// Late outcomes of predictions in older panes, for each view; empty if none.
    pub late_outcomes: Vec<LateOutcomes>,
}

impl PaneDelta {
    /// Unpacks the sums of all views, of `grid`, and keeps them packed as well.
    pub fn unpack_beside(&mut self, grid: Grid) -> Result<(), PackError> {
        let mut views = self.views.iter_mut();
        views.try_for_each(|sums| sums.unpack_beside(grid))
    }

    /// Packs the sums of all views.
    pub fn pack(&mut self) {
        self.views.iter_mut().for_each(ScoreSums::drop_unpacked);
    }

    /// The pane of one view, by its place in the order of the model's.
    pub fn pane(&self, view: usize) -> Pane {
        Pane {
            start_ms: self.start_ms,
            end_ms: self.end_ms,
            late: self.late,
            sums: PaneSums::Scores(self.views[view].clone()),
            unlabelled: self.unlabelled[view].clone(),
            late_outcomes: self.late_outcomes.get(view).copied().unwrap_or_default(),
        }
    }
}

/// See the module. What an event touches comes first, in three lines of the cache.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Stream {
    /// Names as records have them; under the default plan the model's name is not the plan's.
    pub key: Key,
    /// Index of the model's plan.
    pub model: usize,
    /// What its events need to know of the model.
    pub facts: ModelFacts,
    /// Index of the pane that took the last event.
    current: usize,
    /// Ascending by start.
    open: Vec<OpenPane>,
    /// Its last event.
    pub last: LastSeen,
    /// What it is among the segments of its version.
    pub kind: SegmentKind,
    /// Events that came too late since a pane was last sealed.
    pub late: u64,
    /// Predictions that are not mature.
    pub pending: u64,
    /// Late outcomes for each view, by the start of the pane with which they are sealed.
    late_outcomes: BTreeMap<i64, Vec<LateOutcomes>>,
    /// Bytes of the open panes that are packed.
    packed_bytes: usize,
    turn: u64,
}

impl Named for Stream {
    fn key(&self) -> &Key {
        &self.key
    }
}

impl Stream {
    /// A stream without events.
    pub fn new(model: usize, key: Key) -> Stream {
        Stream {
            model,
            facts: ModelFacts::default(),
            kind: SegmentKind::of(key.segment()),
            key,
            last: LastSeen::before(i64::MIN),
            late: 0,
            pending: 0,
            late_outcomes: BTreeMap::new(),
            open: Vec::new(),
            packed_bytes: 0,
            current: 0,
            turn: 0,
        }
    }

    /// Notes an event of this time.
    #[inline]
    pub fn saw(&mut self, time_ms: i64) {
        self.last.saw(time_ms);
    }

    /// Counts an event of this time that came too late.
    pub fn miss(&mut self, time_ms: i64) {
        self.saw(time_ms);
        self.late += 1;
    }

    /// Notes an event, whatever becomes of it.
    pub fn touch(&mut self) {
        self.last.seen = true;
    }

    /// Adds `n` pending predictions.
    pub fn add_pending(&mut self, n: u64) {
        self.pending += n;
    }

    /// Removes one pending prediction.
    pub fn end_pending(&mut self) {
        self.pending -= 1;
    }

    /// Seals the oldest pane if it begins before `watermark_ms`. A pane with only late outcomes of
    /// older predictions is sealed with `views` views without events.
    pub fn seal(
        &mut self,
        watermark_ms: i64,
        pane_ms: i64,
        views: usize,
        grid: Grid,
    ) -> Option<PaneDelta> {
        let late_ms = self.late_outcomes.first_key_value().map(|(ms, _)| *ms);
        let start_ms = self.oldest_ms().into_iter().chain(late_ms).min()?;
        if start_ms >= watermark_ms {
            return None;
        }
        let (views, unlabelled) = match self.oldest_ms() == Some(start_ms) {
            true => self.take_oldest()?,
            false => (
                vec![Sums::new(grid).into(); views],
                vec![Unlabelled::default(); views],
            ),
        };
        Some(PaneDelta {
            start_ms,
            end_ms: start_ms + pane_ms,
            late: std::mem::take(&mut self.late),
            views,
            unlabelled,
            late_outcomes: self.late_outcomes.remove(&start_ms).unwrap_or_default(),
        })
    }

    /// Adds late outcomes, one for each view, that go with the pane that begins at `start_ms`.
    pub fn add_late_outcomes(&mut self, start_ms: i64, views: &[LateOutcomes]) {
        let ours = self.late_outcomes.entry(start_ms).or_default();
        LateOutcomes::merge_all(ours, views);
    }

    /// Late outcomes that go with panes that are not sealed, for a snapshot.
    pub fn late_outcomes(&self) -> Vec<(i64, Vec<LateOutcomes>)> {
        let all = self.late_outcomes.iter();
        all.map(|(ms, views)| (*ms, views.clone())).collect()
    }

    /// The current pane, if the time lies in it.
    #[inline]
    pub fn current(&mut self, time_ms: i64, pane_ms: i64) -> Option<&mut OpenPane> {
        let pane = self.open.get_mut(self.current)?;
        let into = time_ms.wrapping_sub(pane.start_ms);
        // As unsigned, a time before the pane is beyond its end.
        (into.cast_unsigned() < pane_ms.cast_unsigned()).then_some(pane)
    }

    /// Makes the pane that begins at `start_ms` the current one, and hot.
    #[inline]
    pub fn turn_to(
        &mut self,
        start_ms: i64,
        views: usize,
        grid: Grid,
        room: OpenRoom,
    ) -> Result<(), Refusal> {
        let current = self.open.get(self.current);
        // The current pane is hot.
        if current.is_some_and(|p| p.start_ms == start_ms) {
            return Ok(());
        }
        self.turn += 1;
        match self.open.binary_search_by_key(&start_ms, |p| p.start_ms) {
            Ok(at) => self.current = at,
            Err(_) if self.open.len() >= room.panes_max || start_ms >= room.until_ms => {
                return Err(Refusal::Panes);
            }
            Err(at) => {
                let pane = OpenPane::new(start_ms, Body::new(grid, views));
                self.open.insert(at, pane);
                self.current = at;
            }
        }
        let pane = &mut self.open[self.current];
        pane.turn = self.turn;
        if let Body::Packed(packed) = &pane.body {
            // Sums packed here always unpack; if they did not, the pane would take no more events.
            let bytes = packed_bytes(packed);
            pane.body = Body::unpack(packed, grid).map_err(|_| Refusal::Panes)?;
            self.packed_bytes -= bytes;
        }
        self.pack();
        Ok(())
    }

    /// Packs the hot pane that became current longest ago, if there are more than [`HOT_MAX`].
    fn pack(&mut self) {
        let hot = |p: &&mut OpenPane| matches!(p.body, Body::Hot(_) | Body::Single(_));
        if self.open.iter_mut().filter(hot).count() > HOT_MAX
            && let Some(pane) = self.open.iter_mut().filter(hot).min_by_key(|p| p.turn)
        {
            let packed: Vec<Packed> = match &mut pane.body {
                Body::Hot(batched) => batched.flush().iter().map(Packed::new).collect(),
                Body::Single(sums) => sums.iter().map(Packed::new).collect(),
                Body::Packed(_) => return,
            };
            self.packed_bytes += packed_bytes(&packed);
            pane.body = Body::Packed(packed);
        }
    }

    /// Bytes of the open panes that are packed.
    #[inline]
    pub fn packed_bytes(&self) -> usize {
        self.packed_bytes
    }

    /// Number of events in open panes. Scans all cells of hot panes.
    pub fn unsealed(&self) -> u64 {
        let n = |pane: &OpenPane| match &pane.body {
            Body::Hot(batched) => batched.n(),
            Body::Single(sums) => sums.first().map_or(0, Sums::n),
            Body::Packed(packed) => packed.first().map_or(0, Packed::n),
        };
        self.open.iter().map(n).sum()
    }

    /// Start of the oldest open pane.
    pub fn oldest_ms(&self) -> Option<i64> {
        self.open.first().map(|p| p.start_ms)
    }

    /// Number of open panes.
    pub fn open_len(&self) -> usize {
        self.open.len()
    }

    /// Start of the newest open pane.
    pub fn newest_pane_ms(&self) -> Option<i64> {
        self.open.last().map(|p| p.start_ms)
    }

    /// Takes out the oldest pane: its sums for each view, and its predictions without outcome.
    fn take_oldest(&mut self) -> Option<(Vec<ScoreSums>, Vec<Unlabelled>)> {
        if self.open.is_empty() {
            return None;
        }
        // If the current pane is removed, none is current: its neighbour may be packed.
        self.current = self.current.wrapping_sub(1);
        let pane = self.open.remove(0);
        if let Body::Packed(packed) = &pane.body {
            self.packed_bytes -= packed_bytes(packed);
        }
        let views = pane.body.sums();
        let mut unlabelled = pane.unlabelled;
        unlabelled.resize(views.len(), Unlabelled::default());
        Some((views, unlabelled))
    }

    /// All open panes, packed, for a snapshot.
    pub fn packed(&self) -> Vec<(i64, Vec<Packed>)> {
        let pane = |p: &OpenPane| (p.start_ms, p.body.clone().packed());
        self.open.iter().map(pane).collect()
    }

    /// Restores the open panes of a snapshot once they are checked: ascending, one sum for each of
    /// `views`, all of the same number of events.
    pub fn restore(
        &mut self,
        panes: Vec<(i64, Vec<Packed>)>,
        views: usize,
        grid: Grid,
    ) -> Result<(), PackError> {
        for (start_ms, packed) in panes {
            let in_order = self.newest_pane_ms() < Some(start_ms);
            if packed.len() != views || !in_order || !start_ms.is_possible() {
                return Err(PackError::Corrupt);
            }
            Body::unpack(&packed, grid)?;
            self.packed_bytes += packed_bytes(&packed);
            let pane = OpenPane::new(start_ms, Body::Packed(packed));
            self.open.push(pane);
        }
        // No pane is current until an event turns to one, because the current one must be hot.
        self.current = usize::MAX;
        Ok(())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let pane = |p: &OpenPane| match &p.body {
            Body::Hot(batched) => batched.bytes(),
            Body::Packed(all) => all.iter().map(Packed::bytes).sum(),
            Body::Single(all) => all.iter().map(|s| size_of::<Sums>() + s.bytes()).sum(),
        };
        self.open.iter().map(pane).sum::<usize>()
            + self.open.capacity() * size_of::<OpenPane>()
            + self.key.bytes()
            + size_of::<Stream>()
    }
}

impl OpenPane {
    fn new(start_ms: i64, body: Body) -> OpenPane {
        OpenPane {
            start_ms,
            turn: 0,
            body,
            unlabelled: Vec::new(),
        }
    }

    /// Adds an event, one entry for each view; the pane must be hot, as the current one is.
    #[inline]
    pub fn observe(&mut self, seen: &[Scored], attribute: Attribute) -> Result<(), Refusal> {
        match &mut self.body {
            Body::Hot(batched) => batched.observe(seen).map_err(|_| Refusal::Sums),
            Body::Single(sums) => add(sums, seen, attribute).map_err(|_| Refusal::Sums),
            Body::Packed(_) => Err(Refusal::Panes),
        }
    }

    /// [`OpenPane::observe`] for a model with one view.
    #[inline]
    pub fn observe_one(&mut self, seen: Scored) -> Result<(), Refusal> {
        match &mut self.body {
            Body::Hot(batched) => batched.observe_one(seen).map_err(|_| Refusal::Sums),
            // Events with an attribute go through `observe`, with it.
            Body::Single(_) | Body::Packed(_) => Err(Refusal::Panes),
        }
    }

    /// Counts a prediction without outcome, one score for each view; `implied` if it was added with
    /// an implied one. A pane is sealed in the call that counts into it, so snapshots need not hold
    /// these counts.
    pub fn count_unlabelled(&mut self, seen: &[Scored], implied: bool) {
        self.unlabelled.resize(seen.len(), Unlabelled::default());
        for (unlabelled, one) in self.unlabelled.iter_mut().zip(seen) {
            unlabelled.count(one.score().value(), implied);
        }
    }
}

/// Bytes of a packed pane: its sums, and its place in a list that may be half empty.
fn packed_bytes(packed: &[Packed]) -> usize {
    packed.iter().map(Packed::bytes).sum::<usize>() + 2 * size_of::<OpenPane>()
}

/// Adds an event to all views. They hold the same events, so what fits one fits all.
fn add(sums: &mut [Sums], seen: &[Scored], attribute: Attribute) -> Result<(), Overflow> {
    for (sums, one) in sums.iter_mut().zip(seen) {
        sums.observe_with(one.score(), one.outcome(), attribute)?;
    }
    Ok(())
}

impl Body {
    /// No events.
    fn new(grid: Grid, views: usize) -> Body {
        match grid.is_plain() {
            false => Body::Single(vec![Sums::new(grid); views.max(1)]),
            true => Body::Hot(BatchedSums::new(grid, views)),
        }
    }

    /// The sums of a packed pane, to take events again.
    fn unpack(packed: &[Packed], grid: Grid) -> Result<Body, PackError> {
        let sums: Result<Vec<Sums>, PackError> = packed.iter().map(|p| p.unpack(grid)).collect();
        let sums = sums?;
        if grid.is_plain() {
            return Ok(Body::Hot(BatchedSums::from_sums(sums)?));
        }
        let n = sums.first().map(Sums::n).ok_or(PackError::Corrupt)?;
        match sums.iter().all(|s| s.n() == n) {
            true => Ok(Body::Single(sums)),
            false => Err(PackError::Corrupt),
        }
    }

    /// The sums, packed or unpacked as they are held.
    fn sums(self) -> Vec<ScoreSums> {
        match self {
            Body::Hot(batched) => batched.into_sums().into_iter().map(Into::into).collect(),
            Body::Packed(packed) => packed.into_iter().map(Into::into).collect(),
            Body::Single(sums) => sums.into_iter().map(Into::into).collect(),
        }
    }

    fn packed(self) -> Vec<Packed> {
        let sums = self.sums();
        sums.iter().map(|sums| sums.packed().clone()).collect()
    }
}
