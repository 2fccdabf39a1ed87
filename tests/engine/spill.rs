//! Pending predictions that spill to the store on disk: the same bits as without, whatever spills when; and a
//! store that fails is told, never taken for a miss.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trueline::collect::join::{
    JoinPlan, Joins, JournalDelta, Key, Labelled, MaturityEvent, Missing, NewPrediction, Predicted,
    Repeated, RowLayout, SpillBackend, SpillEntries, SpillError, SpillTable,
};
use trueline::stats::fixed::Score;
use trueline::store::spill::{FOLDER, SpillStore};

const PANE_MS: i64 = 1000;
const END_MS: i64 = 8000;

/// A store in memory, that can fail.
#[derive(Debug, Default)]
struct Shelf(BTreeMap<Vec<u8>, Vec<u8>>);

impl SpillTable for Shelf {
    fn write(&mut self, entries: &mut SpillEntries<'_>) -> Result<(), SpillError> {
        let mut last: Option<Vec<u8>> = None;
        for (name, value) in entries {
            assert!(last.as_deref() < Some(name), "ascending, no name twice");
            last = Some(name.to_vec());
            match value {
                Some(value) => self.0.insert(name.to_vec(), value.to_vec()),
                None => self.0.remove(name),
            };
        }
        Ok(())
    }

    fn read(&mut self, name: &[u8], value: &mut Vec<u8>) -> Result<bool, SpillError> {
        value.clear();
        value.extend(self.0.get(name).into_iter().flatten());
        Ok(self.0.contains_key(name))
    }
}

#[derive(Debug)]
struct Shelves;

impl SpillBackend for Shelves {
    fn open(&self) -> Result<Box<dyn SpillTable>, SpillError> {
        Ok(Box::new(Shelf::default()))
    }
}

/// A directory of this test alone.
fn directory(name: &str) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let directory =
        std::env::temp_dir().join(format!("trueline-spill-{name}-{}-{n}", std::process::id()));
    fs::create_dir_all(&directory).expect("a writable temporary directory");
    directory
}

fn plan(repeated: Repeated, revise: bool, pending_memory: usize) -> JoinPlan {
    JoinPlan {
        predictions: 0,
        outcomes: 1,
        maturity_ms: 0,
        missing: Missing::Drop,
        repeated,
        revise,
        by_model: false,
        model: None,
        pending_max: 10_000,
        pending_memory,
    }
}

#[derive(Debug, Clone)]
enum Step {
    Prediction {
        id: u16,
        model: u16,
        time_ms: i64,
        score: u8,
        version: u8,
    },
    Outcome {
        id: u16,
        time_ms: i64,
        class: u32,
    },
    Mature(i64),
    Restart,
}

fn step(ids: u16) -> impl Strategy<Value = Step> {
    let prediction =
        (0..ids, 0..END_MS, 0..3u8, 0..8u8).prop_map(|(id, time_ms, score, version)| {
            Step::Prediction {
                id,
                model: id % 2,
                time_ms,
                score,
                // Every fourth id is scored by several versions.
                version: if id % 4 == 0 { version % 3 } else { 0 },
            }
        });
    let outcome = (0..ids, 0..2 * END_MS, 0..2u32).prop_map(|(id, time_ms, class)| Step::Outcome {
        id,
        time_ms,
        class,
    });
    prop_oneof![
        30 => prediction,
        20 => outcome,
        2 => (0..10i64).prop_map(Step::Mature),
        1 => Just(Step::Restart),
    ]
}

/// What a step told, in an order of its own.
#[derive(Debug, PartialEq)]
enum Told {
    Predicted(Predicted),
    Labelled(Labelled, Vec<String>),
    Matured(Vec<String>),
    Nothing,
}

/// Two models, of one view and of two, on two partitions.
struct Side {
    joins: Joins,
    plan: JoinPlan,
    spills: Option<Arc<dyn SpillBackend>>,
    disk: BTreeMap<(u16, i32, u64), Vec<u8>>,
    line_ms: i64,
    /// Most predictions that had spilled.
    spilled: usize,
}

impl Side {
    fn new(plan: JoinPlan, spills: Option<Arc<dyn SpillBackend>>) -> Side {
        Side {
            joins: Side::joins(&plan, spills.as_ref()),
            plan,
            spills,
            disk: BTreeMap::new(),
            line_ms: i64::MIN,
            spilled: 0,
        }
    }

    fn joins(plan: &JoinPlan, spills: Option<&Arc<dyn SpillBackend>>) -> Joins {
        let mut joins = Joins::new(vec![plan.clone()]);
        if let Some(spills) = spills {
            joins.spill_to(Arc::clone(spills), 1);
        }
        joins
    }

    fn take(&mut self, step: &Step) -> Told {
        let told = match *step {
            Step::Prediction {
                id,
                model,
                time_ms,
                score,
                version,
            } => self.predict((id, version), model, time_ms, score),
            Step::Outcome { id, time_ms, class } => {
                let mut revised = Vec::new();
                let (key, partition) = (
                    Key::new(None, &id.to_le_bytes()),
                    i32::from(id.is_multiple_of(3)),
                );
                let end =
                    self.joins
                        .label(0, partition, key, None, time_ms, class, &[2, 2], |_, r| {
                            revised.push(format!("{:?}", (r.now, r.before)))
                        });
                Told::Labelled(end, revised)
            }
            Step::Mature(panes) => self.mature((panes - 3) * PANE_MS),
            Step::Restart => {
                self.restart();
                Told::Nothing
            }
        };
        self.spilled = self.spilled.max(self.joins.spilled());
        assert_eq!(self.joins.fault(), None);
        if self.spills.is_some() {
            let (memory, most) = (self.joins.memory(), self.plan.pending_memory);
            assert!(
                memory <= most,
                "{memory} bytes, {most} are allowed, after {step:?}"
            );
        }
        told
    }

    fn predict(&mut self, (id, version): (u16, u8), model: u16, time_ms: i64, score: u8) -> Told {
        let start_ms = time_ms - time_ms.rem_euclid(PANE_MS);
        if start_ms < self.line_ms {
            // What comes for a mature pane is late, and never gets to a joiner.
            return Told::Nothing;
        }
        let z = Score::new(f64::from(score) / 4.0).expect("a score");
        let views = [(z, 1), (z, 0)];
        let expect = NewPrediction {
            key: Key::new(None, &id.to_le_bytes()).of_version(&version.to_string()),
            model,
            subject: u32::from(id),
            start_ms,
            time_ms,
            due_ms: start_ms + 3 * PANE_MS,
            views: &views[..usize::from(model) + 1],
            full_vector: (0, 0),
            classes: 2,
        };
        let partition = i32::from(id.is_multiple_of(3));
        Told::Predicted(self.joins.predict(0, partition, &expect))
    }

    fn mature(&mut self, line_ms: i64) -> Told {
        self.line_ms = self.line_ms.max(line_ms);
        let mut all = Vec::new();
        for model in [0, 1] {
            self.joins
                .mature(model, self.line_ms, &[2, 2], |_, event| match event {
                    MaturityEvent::Matured(m) => all.push(format!("{m:?}")),
                    MaturityEvent::Revised(r) => all.push(format!("{:?}", (r.now, r.before))),
                    MaturityEvent::Ended(end) => all.push(format!("{end:?}")),
                });
            self.joins.evict(model, self.line_ms - 2 * PANE_MS);
        }
        self.joins.orphan(|_| self.line_ms, |_, _| ());
        all.sort();
        Told::Matured(all)
    }

    /// Writes the journals down; returns where their parts lie and how long they are. What is within may
    /// differ in the order in which the predictions of one pane were revised.
    fn keep(&mut self) -> Vec<(i32, u64, usize)> {
        let deltas: Vec<JournalDelta> = self.joins.take_journals(i64::MIN);
        for d in &deltas {
            let at = (d.join, d.partition, d.segment);
            self.disk.entry(at).or_default().extend(&d.bytes);
        }
        let lies = |d: &JournalDelta| (d.partition, d.offset, d.bytes.len());
        deltas.iter().map(lies).collect()
    }

    fn restart(&mut self) {
        self.keep();
        let mut joins = Side::joins(&self.plan, self.spills.as_ref());
        let (line_ms, held) = (self.line_ms, if self.plan.revise { 2 * PANE_MS } else { 0 });
        for state in self.joins.states() {
            let segment = |i: usize| {
                let at = (state.join, state.partition, state.marks[i].segment);
                Ok(Cow::Borrowed(self.disk[&at].as_slice()))
            };
            joins
                .restore(
                    &state,
                    segment,
                    &[RowLayout::scores(1), RowLayout::scores(2)],
                    |_| line_ms,
                    |_| line_ms.saturating_sub(held),
                    |_, start_ms| start_ms + 3 * PANE_MS,
                )
                .expect("a sound journal");
        }
        assert_eq!(joins.retained(), self.joins.retained());
        self.joins = joins;
    }

    fn pending(&mut self) -> BTreeMap<u32, u64> {
        let mut all = BTreeMap::new();
        let each = |_, subject, n| *all.entry(subject).or_default() += n;
        self.joins.each_pending(each);
        all
    }
}

/// Both sides take the same steps and tell the same; returns how many had spilled at most.
fn agree(steps: &[Step], plan: &JoinPlan, spills: Arc<dyn SpillBackend>) -> usize {
    let memory = JoinPlan {
        pending_memory: usize::MAX,
        ..plan.clone()
    };
    let mut plain = Side::new(memory, None);
    let mut spilling = Side::new(plan.clone(), Some(spills));
    let end = [Step::Mature(100), Step::Mature(200)];
    for (i, step) in steps.iter().chain(&end).enumerate() {
        let expected = plain.take(step);
        assert_eq!(spilling.take(step), expected, "step {i}: {step:?}");
        assert_eq!(
            spilling.joins.retained(),
            plain.joins.retained(),
            "step {i}"
        );
        for model in [0, 1] {
            assert_eq!(
                spilling.joins.oldest_ms(model),
                plain.joins.oldest_ms(model)
            );
        }
        if i % (16 + steps.len() / 100) == 0 {
            assert_eq!(spilling.pending(), plain.pending());
            assert_eq!(spilling.keep(), plain.keep(), "journals do not know of it");
        }
    }
    assert_eq!(
        (spilling.joins.retained(), spilling.joins.spilled()),
        (0, 0)
    );
    spilling.spilled
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn whatever_spills_the_joiners_tell_the_same(
        steps in proptest::collection::vec(step(24), 0..200),
        repeated in 0..3usize,
        revise: bool,
        pending_memory in 0..4000usize,
    ) {
        let repeated = [Repeated::First, Repeated::Last, Repeated::Reject][repeated];
        agree(&steps, &plan(repeated, revise, pending_memory), Arc::new(Shelves));
    }
}

/// Steps by the thousand, so that lists are full and tables are merged.
fn many(n: usize, ids: u16) -> Vec<Step> {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let steps = proptest::collection::vec(step(ids), n);
    let tree = steps.new_tree(&mut runner).expect("steps");
    let mut steps = tree.current();
    // Lines that move far are rare, and restarts, which read everything again.
    let mut restarts = 0;
    steps.retain(|s| {
        restarts += usize::from(matches!(s, Step::Restart));
        !matches!(s, Step::Mature(4..)) && (!matches!(s, Step::Restart) || restarts % 200 == 0)
    });
    steps
}

#[test]
fn the_store_on_disk_tells_the_same_as_memory() {
    for (revise, ids, pending_memory) in [(false, 20_000, 200_000), (true, 60_000, 400_000)] {
        let directory = directory("same");
        let store = Arc::new(SpillStore::new(&directory).expect("a store"));
        let plan = plan(Repeated::First, revise, pending_memory);
        let spilled = agree(&many(40_000, ids), &plan, store.clone());
        println!("{spilled} predictions had spilled, {} bytes", store.bytes());
        assert!(spilled > 1000, "the test bites: {spilled}");
        drop(store);
        fs::remove_dir_all(directory).expect("removable");
    }
}

#[test]
fn a_store_begins_empty_and_is_not_there_before_something_spills() {
    let directory = directory("empty");
    let folder = directory.join(FOLDER);
    fs::create_dir_all(folder.join("keyspaces/7")).expect("writable");
    fs::write(folder.join("0.jnl"), b"what a crash left").expect("writable");
    let store = SpillStore::new(&directory).expect("a store");
    assert!(!folder.exists() && store.bytes() == 0);
    let mut corner = store.open().expect("a corner");
    let mut entries = [(&b"a"[..], Some(&b"1"[..])), (b"b", Some(b"2"))].into_iter();
    corner.write(&mut entries).expect("written");
    let mut other = store.open().expect("another");
    let mut value = Vec::new();
    assert!(corner.read(b"b", &mut value).expect("readable"));
    assert_eq!(value, b"2");
    assert!(!other.read(b"b", &mut value).expect("readable"));
    let mut entries = [(&b"a"[..], None), (b"b", Some(&b"3"[..]))].into_iter();
    corner.write(&mut entries).expect("written");
    assert!(!corner.read(b"a", &mut value).expect("readable"));
    assert!(corner.read(b"b", &mut value).expect("readable"));
    assert_eq!(value, b"3");
    assert!(store.bytes() > 0);
    drop((corner, other, store));
    fs::remove_dir_all(directory).expect("removable");
}

#[test]
fn a_store_that_cannot_be_made_says_where_and_what_to_do() {
    let directory = directory("file");
    let store = SpillStore::new(&directory).expect("nothing to remove");
    fs::write(directory.join(FOLDER), b"a file in its place").expect("writable");
    let error = store.open().expect_err("no folder").to_string();
    assert!(
        error.contains(FOLDER) && error.contains("pending_memory"),
        "{error}"
    );
    fs::remove_dir_all(directory).expect("removable");
}

/// A store whose disk fills up, or that forgets.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Broken {
    Full,
    Unreadable,
    Forgetful,
}

impl SpillBackend for Broken {
    fn open(&self) -> Result<Box<dyn SpillTable>, SpillError> {
        Ok(Box::new(*self))
    }
}

impl SpillTable for Broken {
    fn write(&mut self, _: &mut SpillEntries<'_>) -> Result<(), SpillError> {
        match self {
            Broken::Full => Err(SpillError("no space left on device".into())),
            _ => Ok(()),
        }
    }

    fn read(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<bool, SpillError> {
        match self {
            Broken::Forgetful => Ok(false),
            _ => Err(SpillError("input/output error".into())),
        }
    }
}

#[test]
fn a_store_that_fails_is_told_and_never_taken_for_a_miss() {
    for broken in [Broken::Full, Broken::Unreadable, Broken::Forgetful] {
        let plan = plan(Repeated::First, false, 5_000);
        let mut side = Side::new(plan, Some(Arc::new(broken)));
        let ends: Vec<Told> = (0..200)
            .map(|id| side.predict((id, 0), 0, i64::from(id) * 10, 1))
            .collect();
        if broken == Broken::Full {
            let refused = Told::Predicted(Predicted::Refused);
            assert!(ends.contains(&refused), "nothing is taken any more");
        } else {
            // The oldest of a partition have spilled: their outcome must not be taken for one that came too early.
            let ends = [(1u16, 0), (3, 1)].map(|(id, partition)| {
                let key = Key::new(None, &id.to_le_bytes());
                (side.joins).label(0, partition, key, None, 40, 1, &[2], |_, _| ())
            });
            if broken == Broken::Unreadable {
                assert!(ends.contains(&Labelled::Refused), "{ends:?}");
                assert!(!ends.contains(&Labelled::Waiting), "{ends:?}");
            }
            side.mature(END_MS);
        }
        let fault = side.joins.fault().expect("a fault").to_string();
        let expected = match broken {
            Broken::Full => "no space left",
            Broken::Unreadable => "input/output error",
            Broken::Forgetful => "has 0 of",
        };
        assert!(fault.contains(expected), "{fault}");
    }
}

/// A store in memory that counts the ids that are looked for, and the rows that are written.
#[derive(Debug, Clone, Default)]
struct Counting {
    looks: Arc<AtomicU64>,
    rows: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Counted(Shelf, Counting);

impl SpillBackend for Counting {
    fn open(&self) -> Result<Box<dyn SpillTable>, SpillError> {
        Ok(Box::new(Counted(Shelf::default(), self.clone())))
    }
}

impl SpillTable for Counted {
    fn write(&mut self, entries: &mut SpillEntries<'_>) -> Result<(), SpillError> {
        for (name, value) in entries {
            let rows = u64::from(name[0] == 0 && value.is_some());
            self.1.rows.fetch_add(rows, Ordering::Relaxed);
            match value {
                Some(value) => self.0.0.insert(name.to_vec(), value.to_vec()),
                None => self.0.0.remove(name),
            };
        }
        Ok(())
    }

    fn read(&mut self, name: &[u8], value: &mut Vec<u8>) -> Result<bool, SpillError> {
        let looks = u64::from(name[0] == 0);
        self.1.looks.fetch_add(looks, Ordering::Relaxed);
        self.0.read(name, value)
    }
}

/// Every id is scored by two versions, the second of them `later_ms` after the first, and has its outcome; for three of
/// the ids it comes after one of their panes is due. Returns what a side told when all was mature, and how
/// often the store was asked for an id and a row of it written while the panes of the first versions matured.
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
            subject: 0,
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
