//! Journals as a disk keeps them: segments by their place, appended to.

use super::memory_store::MemoryBackend;
use super::records::origin;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use trueline::collect::Origin;
use trueline::collect::join::{JoinState, JournalDelta, JournalError, SpillBackend};
use trueline::monitor::restore::Segment;
use trueline::monitor::{Engine, Plan, Snapshot};

/// A place for predictions that memory has no room for, and how many engines share the memory.
type Spills = (Arc<dyn SpillBackend>, usize);

/// Segments by join, partition and number.
#[derive(Default)]
pub struct Disk(pub BTreeMap<(u16, i32, u64), Vec<u8>>);

impl Disk {
    /// Writes what joiners added; each segment goes on where it ended.
    pub fn append(&mut self, deltas: Vec<JournalDelta>) {
        for d in deltas {
            let segment = self.0.entry((d.join, d.partition, d.segment)).or_default();
            assert_eq!(segment.len() as u64, d.offset, "journals are appended to");
            segment.extend(d.bytes);
        }
    }

    /// Those that a snapshot marks, by join.
    pub fn segments(&self, snapshot: &Snapshot) -> Vec<Vec<Vec<u8>>> {
        let of = |j: &JoinState| {
            let marks = j.marks.iter();
            marks
                .map(|m| self.0[&(j.join, j.partition, m.segment)].clone())
                .collect()
        };
        snapshot.joins.iter().map(of).collect()
    }

    /// Snapshot, journals and all, and a new engine from it.
    pub fn restart(&mut self, engine: &mut Engine, plan: Plan) -> Engine {
        self.restart_spilling(engine, plan, None)
    }

    fn restart_spilling(&mut self, engine: &mut Engine, plan: Plan, to: Option<Spills>) -> Engine {
        self.append(engine.take_journals());
        let bytes = postcard::to_stdvec(&engine.snapshot()).expect("to be stored");
        let snapshot: Snapshot = postcard::from_bytes(&bytes).expect("as it was stored");
        let segments = self.segments(&snapshot);
        restore(plan, snapshot, &segments, to)
    }
}

/// An engine fed by two sources of one partition each, with a disk for its journals.
pub struct Feed {
    pub engine: Engine,
    offsets: [i64; 2],
    disk: Disk,
    spills: bool,
    /// Most predictions that were spilled before a record.
    pub spilled: usize,
}

impl Feed {
    pub fn new(plan: Plan) -> Feed {
        let mut engine = Engine::new(plan);
        engine.assign((0, 0).into());
        engine.assign((1, 0).into());
        Feed {
            engine,
            offsets: [0; 2],
            disk: Disk::default(),
            spills: false,
            spilled: 0,
        }
    }

    /// One that spills predictions.
    pub fn spilling(plan: Plan) -> Feed {
        let mut feed = Feed::new(plan);
        feed.engine.upkeep().spill_to(Arc::new(MemoryBackend), 1);
        feed.spills = true;
        feed
    }

    /// Where the next record of a source is read.
    pub fn next(&mut self, source: u16) -> Origin {
        self.spilled = self.spilled.max(self.engine.shard().spilled().0);
        let offset = &mut self.offsets[usize::from(source)];
        *offset += 1;
        origin(source, 0, *offset - 1)
    }

    /// Snapshot, journals and all, and a new engine from it.
    pub fn restart(&mut self) {
        self.restart_under(self.engine.plan().clone());
    }

    /// The same under another plan.
    pub fn restart_under(&mut self, plan: Plan) {
        let to = (self.spills).then(|| (Arc::new(MemoryBackend) as Arc<dyn SpillBackend>, 1));
        self.engine = self.disk.restart_spilling(&mut self.engine, plan, to);
    }

    /// Fails if a record is in no disposition, or in two.
    pub fn conserved(&self) {
        for (source, c) in self.engine.counters().sources() {
            assert_eq!(c.records, c.disposed(), "source {source}: {c:?}");
        }
    }
}

/// An engine from a snapshot and the segments that it marks, by join.
pub fn restore_joined(plan: Plan, snapshot: Snapshot, segments: &[Vec<Vec<u8>>]) -> Engine {
    restore(plan, snapshot, segments, None)
}

fn restore(plan: Plan, s: Snapshot, segments: &[Vec<Vec<u8>>], to: Option<Spills>) -> Engine {
    let joins = s.joins.clone();
    let segment = segment_of(&joins, segments);
    let restored = Engine::restore_spilling(plan, s, &segment, to);
    restored.expect("a sound snapshot")
}

/// Reads segments that are at hand, by join.
pub fn segment_of<'s>(
    joins: &'s [JoinState],
    segments: &'s [Vec<Vec<u8>>],
) -> impl Fn(&JoinState, usize) -> Segment<'s> {
    move |state, mark| {
        let index = joins.iter().position(|j| j == state);
        let bytes = index.and_then(|i| segments.get(i)?.get(mark));
        let bytes = bytes.ok_or(JournalError::Torn)?;
        Ok(Cow::Borrowed(bytes.as_slice()))
    }
}
