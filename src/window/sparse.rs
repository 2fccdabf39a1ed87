//! Windows over what a vector view keeps of events: sums of sparse cells, or what the kernel test needs.
//!
//! Events land in open base panes; a pane that seals is merged into one pane a slide of every window, and at each
//! slide's end a window's total is the merge of the panes in it, at most as many as there are slides in the window. There
//! is no running total as scalar windows have: vectors are judged once a slide and hold at most a few thousand cells, or events.
//!
//! Where outcomes come apart, a pane also counts its predictions that had none, by their largest probability; and a
//! late outcome revises its event in every pane that holds it, exactly ([`Held::revise`]).
//!
//! Where partitions move between processes, the windows of each (a *lane*) also lay out the base panes that they seal, and
//! those of a *union* take them: into an open pane, or, where the line has passed that, into every sealed one that holds its
//! stretch; and they [absorb](SparseWindows::absorb) the sealed panes of a lane that has come. Sums are integers, so the
//! union's windows are those of one stream of all partitions, from the slide after on.
//!
//! Windows by time only. They are judged at ends of slides, first where the first slide with an event ends; a window
//! that has become empty is told once.
//!
//! Always: what is judged at an end depends on the events that were observed before the line passed it, not on when
//! [`SparseWindows::seal`] was called, nor on restarts in between.

use super::held::{Held, HeldShape, HeldState, RetainedVector, Seen};
use super::{Ladder, Unlabelled, Width};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A pane, of any width.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorPane {
    /// Its events.
    pub sums: Held,
    /// Predictions whose outcome never came, by their largest probability.
    pub unlabelled: Unlabelled,
}

/// A late outcome of an event that was counted, or left out for want of one.
#[derive(Debug, Clone, Copy)]
pub struct Revised<'a> {
    /// Event time of the prediction.
    pub time_ms: i64,
    /// Its vector.
    pub vector: RetainedVector<'a>,
    /// The class it was counted with.
    pub before: Option<u32>,
    /// Whether that one was implied.
    pub implied: bool,
    /// The class that happened.
    pub now: u32,
}

/// One window.
#[derive(Debug, Clone)]
struct Slot {
    width_ms: i64,
    slide_ms: i64,
    /// Panes of a slide each, by their begin.
    panes: BTreeMap<i64, VectorPane>,
    /// End at which it was last judged.
    judged_ms: Option<i64>,
    /// Whether that judgement had no events, or there was none.
    empty: bool,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct SparseWindows {
    blank: VectorPane,
    pane_ms: i64,
    open: BTreeMap<i64, VectorPane>,
    /// Events that came too late since the last pane was sealed, in which they will count.
    late: u64,
    slots: Vec<Slot>,
    /// Base panes that were sealed and not taken yet, in a lane.
    poured: Option<Vec<(i64, VectorPane)>>,
}

/// A window at the end of a slide.
#[derive(Debug, Clone)]
pub struct Slid {
    /// Its index among the windows by time.
    pub window: usize,
    /// Begin.
    pub start_ms: i64,
    /// Begin of its oldest pane.
    pub since_ms: i64,
    /// End.
    pub end_ms: i64,
    /// What is in it.
    pub total: Held,
    /// Predictions whose outcome never came.
    pub unlabelled: Unlabelled,
}

/// A pane in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SparsePane {
    /// Begin.
    pub start_ms: i64,
    /// Events that came too late between the sealing of the pane before and of this one.
    pub late: u64,
    /// What it holds.
    pub held: HeldState,
    /// Predictions whose outcome never came.
    pub unlabelled: Unlabelled,
}

/// One window in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SparseSlot {
    /// Its panes.
    pub panes: Vec<SparsePane>,
    /// End at which it was last judged.
    pub judged_ms: Option<i64>,
    /// Whether that judgement had no events.
    pub empty: bool,
}

/// All windows in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SparseState {
    /// Open base panes.
    pub open: Vec<SparsePane>,
    /// Events that came too late since the last pane was sealed.
    pub late: u64,
    /// Windows by time, in the ladder's order.
    pub slots: Vec<SparseSlot>,
}

/// Names of the ladder's windows by time, in its order.
pub fn windows_by_time(ladder: &Ladder) -> impl Iterator<Item = &str> {
    let by_time = |w: &&super::WindowSpec| matches!(w.width, Width::Time { .. });
    ladder
        .windows
        .iter()
        .filter(by_time)
        .map(|w| w.name.as_str())
}

impl SparsePane {
    /// The pane, kept as `blank` is; `None` where it is of another shape.
    pub fn pane(self, blank: &Held) -> Option<VectorPane> {
        let mut sums = blank.restored(self.held)?;
        sums.add_late(self.late);
        let unlabelled = self.unlabelled;
        Some(VectorPane { sums, unlabelled })
    }
}

impl VectorPane {
    /// Adds the events of another pane, as far as there are cells.
    fn take(&mut self, other: &VectorPane) {
        self.sums.merge_capped(&other.sums);
        self.unlabelled.merge(&other.unlabelled);
    }

    /// For a snapshot.
    pub fn state(&self, start_ms: i64) -> SparsePane {
        SparsePane {
            start_ms,
            late: self.sums.late(),
            held: self.sums.state(),
            unlabelled: self.unlabelled.clone(),
        }
    }

    /// Whether it holds, refused or left out anything.
    fn is_empty(&self) -> bool {
        let dropped: u64 = self.unlabelled.dropped().iter().sum();
        self.sums.n() + self.sums.refused() + dropped == 0
    }

    fn revise(&mut self, r: &Revised<'_>) -> bool {
        if r.before.is_none() || r.implied {
            self.unlabelled.uncount(r.vector.top(), r.implied);
        }
        self.sums.revise(r.vector, r.before, r.now)
    }

    fn bytes(&self) -> usize {
        size_of::<VectorPane>() + self.sums.bytes() + self.unlabelled.bytes()
    }
}

impl SparseWindows {
    /// Without events; `None` where the shape has no dimension.
    pub fn new(shape: HeldShape, ladder: &Ladder) -> Option<SparseWindows> {
        let slot = |width: &Width| match *width {
            Width::Time { width_ms, slide_ms } => Some(Slot {
                width_ms,
                slide_ms,
                panes: BTreeMap::new(),
                judged_ms: None,
                empty: true,
            }),
            Width::Count { .. } => None,
        };
        Some(SparseWindows {
            blank: VectorPane {
                sums: shape.blank()?,
                unlabelled: Unlabelled::default(),
            },
            pane_ms: ladder.pane_ms,
            open: BTreeMap::new(),
            late: 0,
            slots: ladder
                .windows
                .iter()
                .filter_map(|w| slot(&w.width))
                .collect(),
            poured: None,
        })
    }

    /// Adds an event that is not late; answers whether there was room for it.
    pub fn observe(&mut self, time_ms: i64, seen: Seen<'_>) -> bool {
        self.pane_at(time_ms).sums.observe(seen)
    }

    /// Adds a mature prediction with its class, if it has one; `implied` where that is not an outcome that came.
    pub fn observe_matured(
        &mut self,
        time_ms: i64,
        vector: RetainedVector<'_>,
        class: Option<u32>,
        implied: bool,
    ) -> bool {
        let pane = self.pane_at(time_ms);
        if class.is_none() || implied {
            pane.unlabelled.count(vector.top(), implied);
        }
        class.is_none_or(|class| pane.sums.observe_retained(vector, class))
    }

    fn pane_at(&mut self, time_ms: i64) -> &mut VectorPane {
        let start = floor(time_ms, self.pane_ms);
        let blank = &self.blank;
        self.open.entry(start).or_insert_with(|| blank.clone())
    }

    /// Corrects every pane that holds an event; windows show it at their next slide. Answers whether there was a cell
    /// for it in all of them.
    pub fn revise(&mut self, r: &Revised<'_>) -> bool {
        if let Some(pane) = self.open.get_mut(&floor(r.time_ms, self.pane_ms)) {
            return pane.revise(r);
        }
        let mut took = true;
        for slot in &mut self.slots {
            let at = floor(r.time_ms, slot.slide_ms);
            if let Some(pane) = slot.panes.get_mut(&at) {
                took &= pane.revise(r);
            }
        }
        took
    }

    /// Counts an event that came too late.
    pub fn miss(&mut self) {
        self.late += 1;
    }

    /// Changes the cap of cells of panes that open from now on.
    pub fn cap(&mut self, cells_max: usize) {
        self.blank.sums.cap(cells_max);
    }

    /// Whether any event would be taken.
    pub fn has_room(&self) -> bool {
        self.blank.sums.has_room()
    }

    /// Lays out from now on the base panes that it seals.
    pub fn lane(&mut self) {
        self.poured.get_or_insert_default();
    }

    /// The base panes that were sealed since the last call, by their begin.
    pub fn take_poured(&mut self) -> Vec<(i64, VectorPane)> {
        self.poured.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes a base pane that a lane has sealed; all before `line_ms` is sealed here.
    pub fn pour(&mut self, start_ms: i64, pane: &VectorPane, line_ms: i64) {
        if start_ms >= line_ms {
            self.pane_at(start_ms).take(pane);
            return;
        }
        for slot in &mut self.slots {
            slot.put(start_ms, pane, line_ms, &self.blank);
        }
    }

    /// Takes the sealed panes of a lane, none of whose lines is beyond ours.
    pub fn absorb(&mut self, lane: &SparseWindows, line_ms: i64) {
        for (slot, theirs) in self.slots.iter_mut().zip(&lane.slots) {
            for (start_ms, pane) in &theirs.panes {
                slot.put(*start_ms, pane, line_ms, &self.blank);
            }
        }
    }

    /// Stands at a line without having judged: slides that ended before are not judged any more.
    pub fn stand_at(&mut self, line_ms: i64) {
        for slot in &mut self.slots {
            slot.judged_ms = Some(floor(line_ms, slot.slide_ms));
        }
    }

    /// Tells whether a window had events when it was judged last: one that has become empty is judged once more.
    pub fn had(&mut self, index: usize, events: bool) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.empty &= !events;
        }
    }

    /// Seals the panes before the line and lets go of what no later window holds; nothing is judged.
    pub fn pass(&mut self, line_ms: i64) {
        self.close(line_ms);
        for slot in &mut self.slots {
            let end_ms = floor(line_ms, slot.slide_ms);
            slot.judged_ms = Some(end_ms);
            slot.trim(end_ms);
        }
    }

    /// Moves the open panes before the line into the windows.
    fn close(&mut self, line_ms: i64) {
        while let Some(entry) = self.open.first_entry().filter(|e| *e.key() < line_ms) {
            let (start, mut pane) = entry.remove_entry();
            pane.sums.add_late(std::mem::take(&mut self.late));
            pane.sums.close();
            for slot in &mut self.slots {
                slot.take(start, &pane, &self.blank);
            }
            if let Some(poured) = &mut self.poured {
                poured.push((start, pane));
            }
        }
    }

    /// Seals the panes before the line and hands the windows that slid at one end to `judge`, end after end.
    pub fn seal(&mut self, line_ms: i64, mut judge: impl FnMut(i64, Vec<Slid>)) {
        self.close(line_ms);
        while let Some(end) = self.slots.iter().filter_map(Slot::next_ms).min() {
            if end > line_ms {
                break;
            }
            let mut slid = Vec::new();
            for (window, slot) in self.slots.iter_mut().enumerate() {
                if slot.next_ms() != Some(end) {
                    continue;
                }
                let seen = slot.total(end, &self.blank);
                slot.judged_ms = Some(end);
                slot.empty = seen.is_empty();
                slid.push(slot.slid(window, end, seen));
                slot.trim(end);
            }
            judge(end, slid);
        }
    }

    /// The input ended at `end_ms`, all panes before it sealed: every window as it stands, but those judged there.
    pub fn finish(&self, end_ms: i64) -> Vec<Slid> {
        let slots = self.slots.iter().enumerate();
        let moves = |s: &Slot| s.judged_ms != Some(end_ms) && !(s.panes.is_empty() && s.empty);
        slots
            .filter(|(_, slot)| moves(slot))
            .map(|(window, slot)| slot.slid(window, end_ms, slot.total(end_ms, &self.blank)))
            .collect()
    }

    /// The total of a window that ends at `end_ms`, of the panes that are held.
    pub fn total(&self, index: usize, end_ms: i64) -> Option<VectorPane> {
        let slot = self.slots.get(index)?;
        Some(slot.total(end_ms, &self.blank))
    }

    /// Begin of the oldest pane in a window that ends at `end_ms`, or of the window where it has none.
    pub fn since_ms(&self, index: usize, end_ms: i64) -> i64 {
        let slot = self.slots.get(index);
        slot.map_or(end_ms, |s| s.since_ms(end_ms))
    }

    /// For a snapshot.
    pub fn state(&self) -> SparseState {
        let panes = |all: &BTreeMap<i64, VectorPane>| {
            let pane = |(start, pane): (&i64, &VectorPane)| pane.state(*start);
            all.iter().map(pane).collect()
        };
        let slot = |s: &Slot| SparseSlot {
            panes: panes(&s.panes),
            judged_ms: s.judged_ms,
            empty: s.empty,
        };
        SparseState {
            open: panes(&self.open),
            late: self.late,
            slots: self.slots.iter().map(slot).collect(),
        }
    }

    /// Puts back a snapshot; `None` where it is not of this shape and ladder.
    pub fn restore(&mut self, state: SparseState) -> Option<()> {
        if state.slots.len() != self.slots.len() {
            return None;
        }
        let blank = self.blank.sums.clone();
        let panes = |all: Vec<SparsePane>| -> Option<BTreeMap<i64, VectorPane>> {
            let pane = |p: SparsePane| Some((p.start_ms, p.pane(&blank)?));
            all.into_iter().map(pane).collect()
        };
        self.open = panes(state.open)?;
        self.late = state.late;
        for (slot, s) in self.slots.iter_mut().zip(state.slots) {
            slot.panes = panes(s.panes)?;
            slot.judged_ms = s.judged_ms;
            slot.empty = s.empty;
        }
        Some(())
    }

    /// Panes held, open and sealed.
    pub fn panes(&self) -> usize {
        let sealed = self.slots.iter().map(|s| s.panes.len());
        self.open.len() + sealed.sum::<usize>()
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let poured = self.poured.iter().flatten().map(|(_, pane)| pane);
        let open = self.open.values().chain(poured);
        let held = open.chain(self.slots.iter().flat_map(|s| s.panes.values()));
        held.map(VectorPane::bytes).sum()
    }
}

impl Slot {
    /// The next end at which there is something to say: the next slide while panes are held or an empty window was not
    /// told, the end of the first pane where that is later.
    fn next_ms(&self) -> Option<i64> {
        let next = self.judged_ms.map(|t| t + self.slide_ms);
        match self.panes.first_key_value() {
            Some((first, _)) => Some((first + self.slide_ms).max(next.unwrap_or(i64::MIN))),
            None if self.empty => None,
            None => next,
        }
    }

    /// Begin of the first whole slide in it.
    fn start_ms(&self, end_ms: i64) -> i64 {
        let at = end_ms - self.width_ms;
        at + (self.slide_ms - at.rem_euclid(self.slide_ms)) % self.slide_ms
    }

    fn since_ms(&self, end_ms: i64) -> i64 {
        let start = self.start_ms(end_ms);
        let mut held = self.panes.range(start..end_ms);
        held.next().map_or(start, |(at, _)| *at)
    }

    fn slid(&self, window: usize, end_ms: i64, pane: VectorPane) -> Slid {
        Slid {
            window,
            start_ms: self.start_ms(end_ms),
            since_ms: self.since_ms(end_ms),
            end_ms,
            total: pane.sums,
            unlabelled: pane.unlabelled,
        }
    }

    fn total(&self, end_ms: i64, blank: &VectorPane) -> VectorPane {
        let mut total = blank.clone();
        let held = self.panes.range(self.start_ms(end_ms)..end_ms);
        for (_, pane) in held {
            total.sums.merge(&pane.sums);
            total.unlabelled.merge(&pane.unlabelled);
        }
        total
    }

    /// Merges a pane, of a slide at most, into the one that holds its begin.
    fn take(&mut self, start_ms: i64, pane: &VectorPane, blank: &VectorPane) {
        let at = floor(start_ms, self.slide_ms);
        let held = self.panes.entry(at).or_insert_with(|| blank.clone());
        held.take(pane);
    }

    /// The same where a window that ends after the line holds it, or the last before.
    fn put(&mut self, start_ms: i64, pane: &VectorPane, line_ms: i64, blank: &VectorPane) {
        let last_ms = floor(line_ms, self.slide_ms);
        if floor(start_ms, self.slide_ms) >= last_ms - self.width_ms {
            self.take(start_ms, pane, blank);
        }
    }

    /// Lets go of panes that no later window holds; those of the last judgement stay until the next, for a restart.
    fn trim(&mut self, end_ms: i64) {
        let first = end_ms - self.width_ms;
        self.panes = self.panes.split_off(&first);
    }
}

fn floor(time_ms: i64, width_ms: i64) -> i64 {
    time_ms - time_ms.rem_euclid(width_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::multiclass::VectorView;
    use crate::stats::multiclass::sums::Shape;
    use crate::window::WindowSpec;

    fn windows() -> SparseWindows {
        let specs = vec![
            WindowSpec::time("6s", 6000),
            WindowSpec::time("12s", 12_000),
        ];
        let shape = HeldShape::Cells(Shape {
            view: VectorView::Full,
            classes: 3,
            cells_max: 100,
            weighted: false,
        });
        SparseWindows::new(shape, &Ladder::new(specs, 0).unwrap()).unwrap()
    }

    fn event(w: &mut SparseWindows, time_ms: i64) {
        let seen = Seen {
            entries: &[0.5, 0.3, 0.2],
            sum: 1.0,
            class: (time_ms % 3) as u32,
            rank: 0,
            weight: None,
        };
        assert!(w.observe(time_ms, seen));
    }

    fn seal(w: &mut SparseWindows, line_ms: i64) -> Vec<(usize, i64, u64)> {
        let mut seen = Vec::new();
        w.seal(line_ms, |end, slid| {
            seen.extend(slid.iter().map(|s| (s.window, end, s.total.n())));
        });
        seen.sort_unstable();
        seen
    }

    #[test]
    fn every_slide_is_judged_with_the_events_of_its_width_and_emptiness_is_told_once() {
        let mut all = windows();
        for t in [100, 900, 1500, 4200, 11_000] {
            event(&mut all, t);
        }
        let whole = seal(&mut all, 40_000);
        let six: Vec<(i64, u64)> = whole
            .iter()
            .filter(|s| s.0 == 0)
            .map(|s| (s.1, s.2))
            .collect();
        let events = [100, 900, 1500, 4200, 11_000];
        for (end, n) in &six {
            let inside = events
                .iter()
                .filter(|t| (end - 6000..*end).contains(t))
                .count();
            assert_eq!(inside as u64, *n, "{end}");
        }
        // Ends 1 s to 10 s while the first four leave, emptiness, then the last event's six, and emptiness.
        assert_eq!(six.first().unwrap(), &(1000, 2));
        assert_eq!(six.last().unwrap(), &(18_000, 0));
        assert!(seal(&mut all, 100_000).is_empty());
        // The same by steps, with a restart between.
        let mut stepped = windows();
        let (mut seen, mut at) = (Vec::new(), 0);
        for t in [100, 900, 1500, 4200, 11_000] {
            event(&mut stepped, t);
        }
        while at < 40_000 {
            at += 500;
            seen.extend(seal(&mut stepped, at));
            let mut again = windows();
            again.restore(stepped.state()).unwrap();
            stepped = again;
        }
        seen.sort_unstable();
        assert_eq!(seen, whole);
    }

    #[test]
    fn the_end_of_input_shows_what_no_slide_has_shown_yet() {
        let mut all = windows();
        event(&mut all, 100);
        assert!(seal(&mut all, 1000).contains(&(0, 1000, 1)));
        let rest: Vec<_> = all.finish(1000).into_iter().collect();
        let seen: Vec<_> = rest
            .iter()
            .map(|s| (s.window, s.end_ms, s.total.n()))
            .collect();
        assert_eq!(seen, [(1, 1000, 1)]);
        // Slides of two seconds: the first whole one of twelve begins at -10 s.
        assert_eq!((rest[0].start_ms, rest[0].since_ms), (-10_000, 0));
    }

    #[test]
    fn late_events_count_in_the_pane_that_seals_next() {
        let mut all = windows();
        event(&mut all, 100);
        seal(&mut all, 1000);
        all.miss();
        all.miss();
        event(&mut all, 1100);
        let mut late = Vec::new();
        let mut again = windows();
        again.restore(all.state()).unwrap();
        again.seal(2000, |_, slid| {
            late.extend(slid.iter().map(|s| s.total.late()))
        });
        assert_eq!(late, [2, 2]);
    }
}
