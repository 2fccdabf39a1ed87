//! Segments of one version of a model: which subjects there are, and the two that hold several.
//!
//! Subjects of one model and version are a *group*. Beside the segments it may have a *roll-up*, called
//! `*`, whose sums are those of all its segments, and an *other*, called `other`, that takes the events
//! of segments for which there is no room.
//!
//! ```text
//! events ─► country=de ─┐ sealed panes
//!        ─► country=fr ─┼────────────► *          sums of sealed panes, never of events
//!        ─► other      ─┘
//! ```
//!
//! Sums are additive, so the roll-up costs nothing an event: when a pane of a segment seals, its packed
//! sums are merged into the roll-up's pane, which seals last. It holds exactly what its segments held,
//! also of those that were let go since.
//!
//! A segment that is new while its group has as many as it may, or while there is no room for another
//! stream, goes to `other`, for which room is kept from the first segment on; a group that does not fit
//! with roll-up, segment and `other` is refused. Names of records are never `*` or `other`: a segment
//! reads `field=value`.
//!
//! Always: streams with what is kept for others are at most the cap; a group's roll-up lives as long as
//! any of its members.

use super::collector::{Collector, ModelShape, NAME_MAX, PaneDelta, project};
use super::event::{Disposition, Event, Reason, Refusal};
use super::key::{Key, Names};
use super::subject::Subject;
use super::table::Table;

/// Name of the segment that holds the sums of all others.
pub const ROLL_UP: &str = "*";

/// Name of the segment that takes the events of segments that are too many.
pub const OTHER: &str = "other";

/// How the segments of a model are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmenting {
    /// Whether there is a roll-up.
    pub rollup: bool,
    /// Most segments of a version, roll-up and other not counted.
    pub max: usize,
    /// Whether those beyond go to other; otherwise they are refused.
    pub other: bool,
}

impl Default for Segmenting {
    /// No roll-up, and the cap on streams alone.
    fn default() -> Segmenting {
        Segmenting {
            rollup: false,
            max: usize::MAX,
            other: false,
        }
    }
}

/// What a subject is in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A segment, or all events where there are none.
    Segment,
    /// What takes the events of segments that are too many.
    Other,
    /// The sums of all.
    RollUp,
}

impl Part {
    /// The part of that segment's name.
    pub fn of(segment: &str) -> Part {
        match segment {
            ROLL_UP => Part::RollUp,
            OTHER => Part::Other,
            _ => Part::Segment,
        }
    }
}

#[derive(Debug, Clone)]
struct Group {
    /// Model and version.
    key: Key,
    views: usize,
    segmenting: Segmenting,
    rollup: Option<usize>,
    other: Option<usize>,
    /// Named segments.
    segments: usize,
    /// Subjects but the roll-up.
    members: usize,
}

impl Group {
    /// Streams for which room is kept.
    fn kept(&self) -> usize {
        let keeps = self.segmenting.other && self.segments > 0 && self.other.is_none();
        if keeps { self.views } else { 0 }
    }

    /// Streams that a new subject would take, with the roll-up and the room for other that come with it.
    fn wanted(&self, segmented: bool) -> usize {
        let rollup = self.segmenting.rollup && self.rollup.is_none();
        let other = self.segmenting.other && segmented && self.other.is_none();
        let kept = usize::from(other && self.segments == 0);
        self.views * (1 + usize::from(rollup) + kept)
    }
}

/// All groups. See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    all: Vec<Option<Group>>,
    table: Table,
    /// Streams for which room is kept, over all.
    kept: usize,
}

impl Groups {
    fn find(&self, names: &Names<'_>) -> Option<usize> {
        let group = names.group();
        let is = |at: usize| {
            let known = self.all.get(at).and_then(Option::as_ref);
            known.is_some_and(|g| g.key.is(&group))
        };
        self.table.find(group.hash(), is)
    }

    fn get(&self, at: usize) -> Option<&Group> {
        self.all.get(at)?.as_ref()
    }

    /// Changes a group and what is kept for it.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Group)) {
        if let Some(Some(group)) = self.all.get_mut(at) {
            self.kept -= group.kept();
            change(group);
            self.kept += group.kept();
        }
    }

    fn find_or_make(&mut self, names: &Names<'_>, shape: &ModelShape) -> usize {
        if let Some(at) = self.find(names) {
            return at;
        }
        let group = Group::new(names, shape);
        let free = self.all.iter().position(Option::is_none);
        let at = free.unwrap_or(self.all.len());
        if at == self.all.len() {
            self.all.push(None);
        }
        self.table.insert(group.key.names().hash(), at);
        self.all[at] = Some(group);
        at
    }

    fn join(&mut self, at: usize, slot: usize, subject: &Subject) {
        let named = !subject.key.segment().is_empty();
        self.change(at, |group| match subject.part {
            Part::RollUp => group.rollup = Some(slot),
            Part::Other => {
                group.other = Some(slot);
                group.members += 1;
            }
            Part::Segment => {
                group.segments += usize::from(named);
                group.members += 1;
            }
        });
    }

    fn leave(&mut self, subject: &Subject) {
        let named = !subject.key.segment().is_empty();
        self.change(subject.group, |group| match subject.part {
            Part::RollUp => group.rollup = None,
            Part::Other => {
                group.other = None;
                group.members -= 1;
            }
            Part::Segment => {
                group.segments -= usize::from(named);
                group.members -= 1;
            }
        });
        let empty = |g: &&Group| g.members == 0 && g.rollup.is_none();
        if self.get(subject.group).filter(empty).is_some() {
            self.all[subject.group] = None;
            self.table.clear();
            for (at, group) in self.all.iter().enumerate() {
                if let Some(group) = group {
                    self.table.insert(group.key.names().hash(), at);
                }
            }
        }
    }

    fn bytes(&self) -> usize {
        let keys = self.all.iter().flatten().map(|g| g.key.bytes());
        self.all.capacity() * size_of::<Option<Group>>() + self.table.bytes() + keys.sum::<usize>()
    }
}

impl Group {
    fn new(names: &Names<'_>, shape: &ModelShape) -> Group {
        Group {
            key: names.group().to_key(),
            views: shape.views.len(),
            segmenting: shape.segmenting,
            rollup: None,
            other: None,
            segments: 0,
            members: 0,
        }
    }
}

impl Collector {
    /// A subject for the first event of its names, or the one that takes its events.
    #[cold]
    pub(super) fn begin(
        &mut self,
        event: &Event<'_>,
        h: u32,
        joined: bool,
    ) -> Result<usize, Disposition> {
        let names = &Names::new(event.model, event.version, event.segment);
        let model = self.admit(event, joined).map_err(Disposition::Rejected)?;
        let shape = &self.models[model];
        let at = self.groups.find(names);
        let fresh = Group::new(names, shape);
        let group = at.and_then(|at| self.groups.get(at)).unwrap_or(&fresh);
        let segmented = !event.segment.is_empty();
        let taken = self.streams + self.groups.kept + group.wanted(segmented);
        let full = segmented && group.segments >= group.segmenting.max;
        if !full && taken <= self.bounds.streams_max {
            let at = self.groups.find_or_make(names, &self.models[model]);
            let slot = self.put(Subject::new(model, names.to_key()), h);
            self.make_rollup(at, model, names);
            self.last = slot;
            return Ok(slot);
        }
        if !segmented || !group.segmenting.other {
            return Err(Disposition::Refused(Refusal::Streams));
        }
        match group.other {
            Some(slot) => Ok(slot),
            // Room was kept for it.
            None if group.segments > 0 => {
                let key = Key::new(event.model, event.version, OTHER);
                let h = key.names().hash();
                Ok(self.put(Subject::new(model, key), h))
            }
            _ => Err(Disposition::Refused(Refusal::Streams)),
        }
    }

    /// The model of an event whose names are new: a subject is not begun for one that will be turned away.
    fn admit(&mut self, event: &Event<'_>, joined: bool) -> Result<usize, Reason> {
        if event.model.is_empty() {
            return Err(Reason::EmptyKey);
        }
        let long = |s: &str| s.len() > NAME_MAX;
        if long(event.model) || long(event.version) || long(event.segment) {
            return Err(Reason::TooLarge);
        }
        if Part::of(event.segment) != Part::Segment {
            return Err(Reason::Malformed);
        }
        let model = self.model_of(event.model).ok_or(Reason::UnknownModel)?;
        if joined {
            self.views_of(model, 0, event)?;
        } else {
            project(&self.models[model], event, &mut self.seen)?;
        }
        Ok(model)
    }

    /// The subject of these names, begun if need be whatever the caps say: another collector's have let
    /// its events in.
    pub fn subject_named(&mut self, model: usize, key: &Key) -> usize {
        if let Some(slot) = self.slot_named(key) {
            return slot;
        }
        let h = key.names().hash();
        let slot = self.put(Subject::new(model, key.clone()), h);
        if let Some(at) = self.subject(slot).map(|s| s.group) {
            self.make_rollup(at, model, &key.names());
        }
        slot
    }

    /// The slot of the subject of these names.
    pub fn slot_named(&self, key: &Key) -> Option<usize> {
        let names = key.names();
        let group = || self.groups.find(&names).and_then(|at| self.groups.get(at));
        match Part::of(key.segment()) {
            Part::Other => group()?.other,
            Part::RollUp => group()?.rollup,
            Part::Segment => self.table.find(names.hash(), |slot| {
                self.subject(slot).is_some_and(|s| s.key.is(&names))
            }),
        }
    }

    /// The roll-up of a group, where it should have one and has not.
    fn make_rollup(&mut self, at: usize, model: usize, names: &Names<'_>) {
        let group = self.groups.get(at);
        if group.is_some_and(|g| g.segmenting.rollup && g.rollup.is_none()) {
            let [model_name, version, _] = names.text();
            let key = Key::new(model_name, version, ROLL_UP);
            let h = key.names().hash();
            self.put(Subject::new(model, key), h);
        }
    }

    /// After all subjects of a snapshot are back: roll-ups for the groups that should have one and had
    /// not. They begin now.
    pub fn settle_groups(&mut self) {
        for slot in 0..self.subjects.len() {
            if let Some(subject) = &self.subjects[slot] {
                let (at, model, key) = (subject.group, subject.model, subject.key.clone());
                self.make_rollup(at, model, &key.names());
            }
        }
    }

    fn put(&mut self, subject: Subject, h: u32) -> usize {
        let free = match self.vacant {
            0 => None,
            _ => self.subjects.iter().position(Option::is_none),
        };
        let slot = free.unwrap_or(self.subjects.len());
        if slot == self.subjects.len() {
            self.subjects.push(None);
            self.vacant += 1;
        }
        self.put_at(slot, subject, h);
        slot
    }

    fn put_at(&mut self, slot: usize, mut subject: Subject, h: u32) {
        let shape = &self.models[subject.model];
        let names = subject.key.names();
        let at = self.groups.find_or_make(&names, shape);
        self.streams += shape.views.len();
        subject.group = at;
        self.groups.join(at, slot, &subject);
        // The others are found by their group: no record has their names.
        if subject.part == Part::Segment {
            self.table.insert(h, slot);
        }
        self.subjects[slot] = Some(subject);
        self.vacant -= 1;
    }

    /// Puts back a subject of a snapshot into its slot; false where another is there.
    pub fn put_back(&mut self, slot: usize, subject: Subject) -> bool {
        let h = subject.key.names().hash();
        if slot >= self.subjects.len() {
            self.vacant += slot + 1 - self.subjects.len();
            self.subjects.resize_with(slot + 1, || None);
        }
        if self.subjects[slot].is_some() {
            return false;
        }
        self.put_at(slot, subject, h);
        true
    }

    /// Whether a subject may be let go: a roll-up only without members.
    pub fn may_expire(&self, slot: usize) -> bool {
        let subject = self.subject(slot);
        let rollup = subject.filter(|s| s.part == Part::RollUp);
        let group = rollup.and_then(|s| self.groups.get(s.group));
        group.is_none_or(|g| g.members == 0)
    }

    /// Lets a subject go, with its open panes.
    pub fn expire(&mut self, slot: usize) {
        if let Some(gone) = self.subjects.get_mut(slot).and_then(Option::take) {
            let views = self.models[gone.model].views.len();
            if let Some(pairing) = &mut self.pairings[gone.model] {
                pairing.retain(|of| of as usize != slot);
            }
            self.vacant += 1;
            self.streams -= views;
            self.counters.streams_expired += views as u64;
            self.groups.leave(&gone);
            self.table.clear();
            for (slot, subject) in self.subjects.iter().enumerate() {
                if let Some(s) = subject.as_ref().filter(|s| s.part == Part::Segment) {
                    self.table.insert(s.key.names().hash(), slot);
                }
            }
        }
    }

    /// The slot of the roll-up over a subject.
    pub fn rollup_of(&self, slot: usize) -> Option<usize> {
        let subject = self.subject(slot)?;
        let group = self.groups.get(subject.group)?;
        group.rollup.filter(|&rollup| rollup != slot)
    }

    /// Adds a sealed pane of a segment to its roll-up.
    pub fn pour(&mut self, slot: usize, delta: &PaneDelta) {
        let Some(rollup) = self.rollup_of(slot) else {
            return;
        };
        let newest_ms = self.subject(slot).map_or(i64::MIN, |s| s.newest_ms);
        if let Some(Some(subject)) = self.subjects.get_mut(rollup) {
            let grid = self.models[subject.model].grid;
            subject.newest_ms = subject.newest_ms.max(newest_ms);
            subject.late += delta.late;
            if subject.pour(delta, grid).is_err() {
                // More than its integers hold, which no number of events that fits a day makes: the
                // window that lacks them must not be judged.
                let n = delta.views.first().map_or(0, |p| p.n());
                subject.late = subject.late.saturating_add(n.saturating_mul(2));
            }
        }
    }

    /// End of the oldest open pane of a model that has roll-ups, if that comes before `line_ms`; so that
    /// one pane after the other is poured and sealed.
    pub fn next_pour(&self, model: usize, line_ms: i64) -> i64 {
        let shape = &self.models[model];
        if !shape.segmenting.rollup {
            return line_ms;
        }
        let oldest = self.slots(model).filter_map(|(_, s)| s.oldest_ms()).min();
        oldest.map_or(line_ms, |oldest| line_ms.min(oldest + shape.pane_ms))
    }

    /// Tells the roll-ups what their segments have seen and wait for.
    pub fn tell_rollups(&mut self) {
        for subject in self.subjects.iter_mut().flatten() {
            if subject.part == Part::RollUp {
                subject.pending = 0;
            }
        }
        for slot in 0..self.subjects.len() {
            let Some(rollup) = self.rollup_of(slot) else {
                continue;
            };
            let said = self.subject(slot);
            let Some((seen, newest_ms, pending)) = said.map(|s| (s.seen, s.newest_ms, s.pending))
            else {
                continue;
            };
            if let Some(Some(subject)) = self.subjects.get_mut(rollup) {
                subject.seen |= seen;
                subject.newest_ms = subject.newest_ms.max(newest_ms);
                subject.pending += pending;
            }
        }
    }

    /// Changes how segments are kept from now on; what there is stays.
    pub fn segment_anew(&mut self, model: usize, max: usize, other: bool) {
        let shape = &mut self.models[model];
        shape.segmenting.max = max;
        shape.segmenting.other = other;
        let slots: Vec<usize> = self.slots(model).map(|(_, s)| s.group).collect();
        for at in slots {
            self.groups.change(at, |group| {
                group.segmenting.max = max;
                group.segmenting.other = other;
            });
        }
    }

    /// Heap bytes of what is known of groups.
    pub(super) fn group_bytes(&self) -> usize {
        self.groups.bytes()
    }
}
