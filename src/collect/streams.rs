//! The table of streams: which streams there are, and which segment of a version an event belongs
//! to.
//!
//! Streams of one model and version are a *group*. Beside the segments a group may have a stream
//! called `other`, which takes the events of segments for which there is no room, and a *roll-up*
//! called `*`, whose sums are those of all segments. Events without a segment are a stream by
//! themselves.
//!
//! ```text
//! events ─► country=de ─┐ sealed panes
//!        ─► country=fr ─┼────────────► *          sums of sealed panes, never of events
//!        ─► other      ─┘
//! ```
//!
//! Sums are additive, so a roll-up costs nothing per event: the second stage makes it from the
//! sealed panes of the segments. Here a group only keeps room for it.
//!
//! A new segment goes to `other` if its group is at its cap on segments, or if there is no room for
//! another stream. Room for `other` is reserved with the first segment; a group without room for
//! roll-up, segment and `other` is refused. A record never has the segment `*` or `other`, because
//! record segments read `field=value`.
//!
//! Always: no stream begins if the streams plus the room kept would exceed the cap. A restored
//! snapshot and a lowered cap may leave more.
//!
//! [`Slots`] holds one value per stream under a number, its slot. The slot stays the same while the
//! stream lives; a new stream takes the first vacant slot. A hash table of slot numbers finds the
//! slot by borrowed names; a `HashMap` would need an owned key for each look-up.

use super::key::{Key, Named, Names};
use super::segment::{OTHER, SegmentKind, Segmenting};
use super::shape::{ModelFacts, ModelShape};
use super::stream::Stream;
use hashbrown::HashTable;

/// Digests of names for each slot.
const RECENT: usize = 8;

/// Events of one stream in a row after which the next one is first compared with that stream. If
/// streams take turns at random, the processor cannot predict the result of this comparison, and a
/// wrong guess costs more than the digest.
const RUN_MIN: u8 = 4;

/// Streams of one model and version.
#[derive(Debug, Clone)]
struct Group {
    /// Model and version.
    key: Key,
    views: usize,
    segmenting: Segmenting,
    other: Option<usize>,
    segments: usize,
    /// Streams, `other` among them.
    members: usize,
}

impl Named for Group {
    fn key(&self) -> &Key {
        &self.key
    }
}

impl Group {
    fn new(names: &Names<'_>, shape: &ModelShape) -> Group {
        Group {
            key: names.group().to_key(),
            views: shape.views.len(),
            segmenting: shape.segmenting,
            other: None,
            segments: 0,
            members: 0,
        }
    }

    /// Streams for which room is kept: the roll-up, and `other` until it exists.
    fn kept(&self) -> usize {
        let other = self.segmenting.other && self.segments > 0 && self.other.is_none();
        let rollup = self.segmenting.rollup && self.has_rolled_up();
        self.views * (usize::from(other) + usize::from(rollup))
    }

    /// Whether there is anything to roll up.
    fn has_rolled_up(&self) -> bool {
        self.segments > 0 || self.other.is_some()
    }

    /// Room that a new stream takes, including the room for roll-up and `other` that it reserves.
    fn wanted(&self, segmented: bool) -> usize {
        let rollup = self.segmenting.rollup && segmented && !self.has_rolled_up();
        let other = self.segmenting.other && segmented && self.other.is_none();
        let kept = usize::from(other && self.segments == 0);
        self.views * (1 + usize::from(rollup) + kept)
    }
}

/// All streams. See the module.
#[derive(Debug, Clone, Default)]
pub struct Streams {
    slots: Slots<Stream>,
    groups: Slots<Group>,
    /// Number of streams, each view counted.
    count: usize,
    /// Streams for which room is kept, over all groups.
    kept: usize,
    /// The slot that was found last for each digest of names. A digest takes fewer steps than the
    /// table, and usually finds the stream.
    recent: Vec<u32>,
    /// How far a digest is shifted to be an index into `recent`.
    shift: u32,
    /// The slot that was found last, and how many events in a row found it.
    last: usize,
    run: u8,
    /// Slot of the stream that took the last event, which may be `other`.
    taken: usize,
}

impl Streams {
    /// The slot of the stream with these names.
    #[inline]
    pub fn find(&mut self, names: &Names<'_>) -> Option<usize> {
        if self.run >= RUN_MIN && self.slots.is(self.last, names) {
            self.taken = self.last;
            return Some(self.last);
        }
        if let Some(&slot) = self.recent.get(self.recent_at(names))
            && let slot = slot as usize
            && self.slots.is(slot, names)
        {
            let run = if slot == self.last { self.run } else { 0 };
            self.run = run.saturating_add(1);
            (self.last, self.taken) = (slot, slot);
            return Some(slot);
        }
        // Passed in parts: passing `names` whole would write them to memory for each event.
        let [model, version, segment] = names.text();
        self.find_other(model, version, segment)
    }

    /// [`Streams::find`] for a stream that was not the last one of its digest.
    #[cold]
    fn find_other(&mut self, model: &str, version: &str, segment: &str) -> Option<usize> {
        let names = Names::new(model, version, segment);
        let slot = self.slots.find(&names)?;
        // `other` is found through its group only: no record has its names.
        if self.get(slot)?.kind.is_derived() {
            return None;
        }
        self.remember(&names, slot);
        Some(slot)
    }

    /// The index of names into `recent`.
    #[inline]
    fn recent_at(&self, names: &Names<'_>) -> usize {
        names.digest().wrapping_shr(self.shift) as usize
    }

    /// Notes that the stream with these names took an event.
    fn remember(&mut self, names: &Names<'_>, slot: usize) {
        (self.taken, self.last, self.run) = (slot, slot, 1);
        let room = RECENT * self.slots.len().next_power_of_two();
        if self.recent.len() < room {
            self.recent = vec![u32::MAX; room];
            self.shift = u64::BITS - room.trailing_zeros();
        }
        let at = self.recent_at(names);
        self.recent[at] = u32::try_from(slot).unwrap_or(u32::MAX);
    }

    /// The stream in a slot.
    #[inline]
    pub fn get(&self, slot: usize) -> Option<&Stream> {
        self.slots.get(slot)
    }

    /// The stream in a slot, to change it.
    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut Stream> {
        self.slots.get_mut(slot)
    }

    /// Slot of the stream that took the last accepted event.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// All streams with their slots.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Stream)> {
        self.slots.iter()
    }

    /// All streams with their slots, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Stream)> {
        self.slots.iter_mut()
    }

    /// Begins a stream for the first event of its names, or finds the one that takes its events;
    /// `None` if there is no room.
    #[cold]
    pub fn begin(
        &mut self,
        names: &Names<'_>,
        model: usize,
        shape: &ModelShape,
        streams_max: usize,
    ) -> Option<usize> {
        let fresh = Group::new(names, shape);
        let at = self.groups.find(&names.group());
        let group = at.and_then(|at| self.groups.get(at)).unwrap_or(&fresh);
        let segmented = !names.text()[2].is_empty();
        let taken = self.count + self.kept + group.wanted(segmented);
        let full = segmented && group.segments >= group.segmenting.max;
        if !full && taken <= streams_max {
            let slot = self.slots.insert(Stream::new(model, names.to_key()));
            self.join(slot, shape);
            self.remember(names, slot);
            return Some(slot);
        }
        if !segmented || !group.segmenting.other {
            return None;
        }
        let slot = match group.other {
            Some(slot) => slot,
            // Room was reserved with the first segment.
            None if group.segments > 0 => {
                let [model_name, version, _] = names.text();
                let key = Key::new(model_name, version, OTHER);
                let slot = self.slots.insert(Stream::new(model, key));
                self.join(slot, shape);
                slot
            }
            None => return None,
        };
        self.taken = slot;
        Some(slot)
    }

    /// Restores a stream to its slot; returns `false` if the slot is taken.
    pub fn restore(&mut self, slot: usize, stream: Stream, shape: &ModelShape) -> bool {
        let done = self.slots.insert_at(slot, stream);
        if done {
            self.join(slot, shape);
        }
        done
    }

    /// Removes a stream, with its open panes.
    pub fn remove(&mut self, slot: usize) -> Option<Stream> {
        let gone = self.slots.remove(slot)?;
        // The next stream in this slot may be `other`, whose names no record has.
        let at = self.recent_at(&gone.key.names());
        if let Some(recent) = self.recent.get_mut(at) {
            *recent = u32::MAX;
        }
        self.run = 0;
        let Some(at) = self.groups.find(&gone.key.names().group()) else {
            return Some(gone);
        };
        let mut views = 0;
        self.change(at, |group| {
            views = group.views;
            group.members -= 1;
            if gone.kind == SegmentKind::Other {
                group.other = None;
            } else {
                group.segments -= usize::from(gone.kind == SegmentKind::Segment);
            }
        });
        self.count -= views;
        if self.groups.get(at).is_some_and(|g| g.members == 0) {
            self.groups.remove(at);
        }
        Some(gone)
    }

    /// Changes how the segments of a model are kept from now on; streams that exist stay.
    pub fn resegment(&mut self, model: usize, segmenting: Segmenting) {
        let groups: Vec<usize> = self
            .iter()
            .filter(|(_, s)| s.model == model)
            .filter_map(|(_, s)| self.groups.find(&s.key.names().group()))
            .collect();
        for at in groups {
            self.change(at, |group| {
                group.segmenting.max = segmenting.max;
                group.segmenting.other = segmenting.other;
            });
        }
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let keys = self.groups.iter().map(|(_, g)| g.key.bytes());
        let streams = self.iter().map(|(_, s)| s.bytes());
        let recent = self.recent.capacity() * size_of::<u32>();
        recent
            + self.slots.bytes()
            + self.groups.bytes()
            + keys.sum::<usize>()
            + streams.sum::<usize>()
    }

    /// Tells the stream in a slot what its events need to know of its model, and counts it in its
    /// group.
    fn join(&mut self, slot: usize, shape: &ModelShape) {
        let Some(stream) = self.slots.get_mut(slot) else {
            return;
        };
        stream.facts = ModelFacts::new(shape);
        let (names, kind) = (stream.key.names(), stream.kind);
        let at = match self.groups.find(&names.group()) {
            Some(at) => at,
            None => self.groups.insert(Group::new(&names, shape)),
        };
        self.count += shape.views.len();
        self.change(at, |group| {
            group.members += 1;
            if kind == SegmentKind::Other {
                group.other = Some(slot);
            } else {
                group.segments += usize::from(kind == SegmentKind::Segment);
            }
        });
    }

    /// Changes a group and the room that is kept for it.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Group)) {
        if let Some(group) = self.groups.get_mut(at) {
            self.kept -= group.kept();
            change(group);
            self.kept += group.kept();
        }
    }
}

/// One value per stream, by slot.
#[derive(Debug, Clone)]
pub struct Slots<T> {
    /// Slots by the names of their values.
    table: HashTable<usize>,
    all: Vec<Option<T>>,
    vacant: usize,
    /// No slot before it is vacant.
    from: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots {
            table: HashTable::new(),
            all: Vec::new(),
            vacant: 0,
            from: 0,
        }
    }
}

impl<T: Named> Slots<T> {
    /// The slot of the stream with these names.
    #[inline]
    pub fn find(&self, names: &Names<'_>) -> Option<usize> {
        let is = |slot: &usize| self.is(*slot, names);
        self.table.find(names.hash(), is).copied()
    }

    /// Whether the stream in a slot has these names.
    #[inline]
    pub fn is(&self, slot: usize, names: &Names<'_>) -> bool {
        self.get(slot).is_some_and(|value| value.key().is(names))
    }

    /// The value in a slot.
    #[inline]
    pub fn get(&self, slot: usize) -> Option<&T> {
        self.all.get(slot)?.as_ref()
    }

    /// The value in a slot, to change it.
    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.all.get_mut(slot)?.as_mut()
    }

    /// All values with their slots.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(slot, value)| Some((slot, value.as_ref()?)))
    }

    /// All values with their slots, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let all = self.all.iter_mut().enumerate();
        all.filter_map(|(slot, value)| Some((slot, value.as_mut()?)))
    }

    /// Number of slots, taken or vacant.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is no slot.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Puts a stream whose names are not there yet into the first vacant slot.
    pub fn insert(&mut self, value: T) -> usize {
        let free = match self.vacant {
            0 => None,
            _ => (self.from..self.all.len()).find(|slot| self.all[*slot].is_none()),
        };
        let slot = free.unwrap_or(self.all.len());
        self.insert_at(slot, value);
        self.from = slot + 1;
        slot
    }

    /// Puts a stream into its slot; returns `false` if the slot is taken.
    pub fn insert_at(&mut self, slot: usize, value: T) -> bool {
        if slot >= self.all.len() {
            self.vacant += slot + 1 - self.all.len();
            self.all.resize_with(slot + 1, || None);
        }
        if self.all[slot].is_some() {
            return false;
        }
        let hash = value.key().names().hash();
        self.all[slot] = Some(value);
        self.vacant -= 1;
        let all = &self.all;
        let hash_of = |slot: &usize| all[*slot].as_ref().map_or(0, |v| v.key().names().hash());
        self.table.insert_unique(hash, slot, hash_of);
        true
    }

    /// Takes a stream out.
    pub fn remove(&mut self, slot: usize) -> Option<T> {
        let gone = self.all.get_mut(slot)?.take()?;
        self.vacant += 1;
        self.from = self.from.min(slot);
        let hash = gone.key().names().hash();
        if let Ok(entry) = self.table.find_entry(hash, |at| *at == slot) {
            entry.remove();
        }
        Some(gone)
    }

    /// Heap bytes of the table and of the slots, without what the values hold.
    pub fn bytes(&self) -> usize {
        self.table.allocation_size() + self.all.capacity() * size_of::<Option<T>>()
    }
}

#[cfg(test)]
mod tests;
