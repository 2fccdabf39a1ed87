//! Journals as a disk keeps them: segments by their place, appended to.

use super::records::origin;
use std::borrow::Cow;
use std::collections::BTreeMap;
use trueline::collect::Origin;
use trueline::collect::join::{JoinState, JournalDelta, JournalError};
use trueline::monitor::restore::Segment;
use trueline::monitor::{Engine, Plan, Snapshot};

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
        self.append(engine.take_journals());
        let snapshot = engine.snapshot();
        let segments = self.segments(&snapshot);
        restore_joined(plan, snapshot, &segments)
    }
}

/// An engine fed by two sources of one partition each, with a disk for its journals.
pub struct Feed {
    pub engine: Engine,
    offsets: [i64; 2],
    disk: Disk,
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
        }
    }

    /// Where the next record of a source is read.
    pub fn next(&mut self, source: u16) -> Origin {
        let offset = &mut self.offsets[usize::from(source)];
        *offset += 1;
        origin(source, 0, *offset - 1)
    }

    /// Snapshot, journals and all, and a new engine from it.
    pub fn restart(&mut self) {
        let plan = self.engine.plan().clone();
        self.engine = self.disk.restart(&mut self.engine, plan);
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
    let joins = snapshot.joins.clone();
    let segment = segment_of(&joins, segments);
    let restored = Engine::restore_spilling(plan, snapshot, &segment, None);
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
