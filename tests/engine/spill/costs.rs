//! What spilling costs: panes of several versions mature where they lie, and memory is given back
//! in bounded steps.

use super::{PANE_MS, Side, Step, Told, plan};
use crate::support::memory_store::MemoryTable;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trueline::collect::join::{
    JoinPlan, Joins, Key, NewPrediction, Repeated, SpillBackend, SpillEntries, SpillError,
    SpillTable,
};
use trueline::stats::fixed::Score;

/// A store in memory that counts the ids that are looked for, and the rows that are written.
#[derive(Debug, Clone, Default)]
struct Counting {
    looks: Arc<AtomicU64>,
    rows: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Counted(MemoryTable, Counting);

impl SpillBackend for Counting {
    fn open(&self) -> Result<Box<dyn SpillTable>, SpillError> {
        Ok(Box::new(Counted(MemoryTable::default(), self.clone())))
    }
}

impl SpillTable for Counted {
    fn write(&mut self, entries: &mut SpillEntries<'_>) -> Result<(), SpillError> {
        let mut counted = entries.map(|(name, value)| {
            let rows = u64::from(name[0] == 0 && value.is_some());
            self.1.rows.fetch_add(rows, Ordering::Relaxed);
            (name, value)
        });
        self.0.write(&mut counted)
    }

    fn read(&mut self, name: &[u8], value: &mut Vec<u8>) -> Result<bool, SpillError> {
        let looks = u64::from(name[0] == 0);
        self.1.looks.fetch_add(looks, Ordering::Relaxed);
        self.0.read(name, value)
    }
}

/// Every id is scored by two versions, the second of them `later_ms` after the first, and has its
/// outcome; for three of the ids it comes after one of their panes is due. Returns what a side told
/// when all was mature, and how often the store was asked for an id and a row of it written while
/// the panes of the first versions matured.
fn champion_and_shadow(later_ms: i64, revise: bool, spills: bool) -> (Vec<Told>, u64, u64) {
    let counting = Counting::default();
    let plan = plan(Repeated::First, revise, 100_000);
    let store = spills.then(|| Arc::new(counting.clone()) as Arc<dyn SpillBackend>);
    let mut side = Side::new(plan, store);
    let score = |id: u16, version: u8, time_ms: i64| Step::Prediction {
        id,
        model: 0,
        time_ms,
        score: version,
        version,
    };
    for id in 0..9000u16 {
        let time_ms = i64::from(id) / 10;
        side.take(&score(id, 0, time_ms));
        side.take(&score(id, 1, time_ms + later_ms));
        let after_ms = match id {
            7 | 77 | 777 => 3 * PANE_MS + 999,
            _ => 5,
        };
        let outcome = Step::Outcome {
            id,
            time_ms: time_ms + after_ms,
            class: 1,
        };
        side.take(&outcome);
    }
    for id in 10_000..11_000u16 {
        side.take(&score(id, 0, 2 * PANE_MS + 5));
    }
    assert!(!spills || side.spilled > 5_000, "{}", side.spilled);
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let before = (count(&counting.looks), count(&counting.rows));
    let first = side.take(&Step::Mature(4));
    let looks = count(&counting.looks) - before.0;
    let rows = count(&counting.rows) - before.1;
    let rest = side.take(&Step::Mature(6));
    (
        vec![first, rest, side.take(&Step::Mature(200))],
        looks,
        rows,
    )
}

#[test]
fn a_pane_of_two_versions_that_has_spilled_matures_without_coming_back() {
    // Beside each other, and a pane apart.
    for (later_ms, revise) in [(0, true), (PANE_MS, true), (0, false)] {
        let (told, looks, rows) = champion_and_shadow(later_ms, revise, true);
        let (expected, ..) = champion_and_shadow(later_ms, revise, false);
        assert_eq!(told, expected, "{later_ms} {revise}");
        println!("{later_ms} ms apart, revise {revise}: {looks} looks, {rows} rows written");
        assert!(looks < 50 && rows < 50, "{looks} looks, {rows} rows");
    }
}

#[test]
fn memory_that_more_share_is_given_back_in_steps_with_records_and_without() {
    // What a step moves, and at most one cohort more.
    const STEP: usize = 22 << 20;
    let counting = Counting::default();
    let plan = plan(Repeated::First, false, 64 << 20);
    let mut joins = Side::joins(
        &JoinPlan {
            pending_max: usize::MAX,
            ..plan
        },
        None,
    );
    joins.spill_to(Arc::new(counting.clone()), 1);
    let mut next = 0u32;
    let mut predict = |joins: &mut Joins| {
        next += 1;
        let views = [(Score::new(0.5).expect("a score"), 1)];
        let expect = NewPrediction {
            key: Key::new(None, &next.to_le_bytes()),
            model: 0,
            slot: 0,
            start_ms: 0,
            time_ms: 1,
            due_ms: PANE_MS,
            views: &views,
            full_vector: (0, 0),
            classes: 2,
        };
        joins.predict(0, 0, &expect);
    };
    while joins.memory() < 60 << 20 {
        predict(&mut joins);
    }
    assert_eq!(joins.spilled(), 0);
    joins.share(8);
    let mut before = joins.memory();
    predict(&mut joins);
    assert!(
        joins.memory() + STEP > before,
        "one record does not move it all"
    );
    let mut steps = 0;
    loop {
        before = joins.memory();
        if !joins.reduce_memory() {
            break;
        }
        assert!(joins.memory() + STEP > before && joins.memory() < before);
        steps += 1;
        before = joins.memory();
        // Every other turn without records.
        if steps % 2 == 0 {
            predict(&mut joins);
            assert!(joins.memory() + STEP > before);
        }
    }
    assert!(
        joins.memory() <= 8 << 20 && steps >= 2,
        "{} {steps}",
        joins.memory()
    );
    assert_eq!(joins.retained(), next as usize);
    // More again: nothing comes back by itself, and nothing more has to go.
    joins.share(1);
    assert!(!joins.reduce_memory());
}
