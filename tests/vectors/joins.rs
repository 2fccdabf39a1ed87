//! Vector views of predictions whose outcomes come apart: in any order of arrival, with repeats, spills and restarts, the
//! sums of the stream that was not joined, to the bit; late outcomes revise them exactly; what is missing is told.

use crate::support::partitions;
use std::collections::BTreeMap;
use std::sync::Arc;
use trueline::collect::join::{
    JoinPlan, Joiner, Key, Missing, NewPrediction, Repeated, SpillBackend, SpillEntries,
    SpillError, SpillTable,
};
use trueline::collect::{Disposition, Event, Label, Origin};
use trueline::judge::{Caps, JudgeOptions, ModelPlan, Plan, Undecided, Verdict, WindowReport};
use trueline::monitor::{
    Engine, LocalShard, MonitorView, RecordSink, Shards, Snapshot, VerdictState,
};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::fixed::Score;
use trueline::stats::kernel::window::{KernelOptions, WindowEvaluation};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};
use trueline::window::{PaneState, RingState, SumsState, ViewSumsState};

const MINUTE: i64 = 60_000;
const START_MS: i64 = 1_760_000_400_000 / 600_000 * 600_000;
const SPAN_MS: i64 = 20 * MINUTE;
const MATURITY_MS: i64 = 5 * MINUTE;
const CLASSES: usize = 4;
const VECTORS: [View; 3] = [View::TopK(2), View::Full, View::Kernel];
/// A sample smaller than the panes, features and blocks.
const KEEPING: KernelOptions = KernelOptions {
    sample: 60,
    nu: Some(0.4),
    features: 4,
    seed: 3,
};

fn plan(views: &[View], joins: Vec<JoinPlan>, lateness_ms: i64) -> Plan {
    // One whose slides are panes, and one whose slides hold several.
    let windows = vec![
        WindowSpec::time("6m", 6 * MINUTE),
        WindowSpec::time("30m", 30 * MINUTE),
    ];
    Plan {
        models: vec![ModelPlan {
            name: "*".into(),
            views: views.to_vec(),
            classes: (0..CLASSES).map(|k| format!("class {k}")).collect(),
            ladder: Ladder::new(windows, lateness_ms).unwrap(),
            grid: Grid::new(Axis::Linear, 6),
            judge: JudgeOptions {
                min_events: 50,
                stale_after_ms: i64::MAX,
                kernel: KEEPING,
                ..JudgeOptions::default()
            },
            segmenting: Default::default(),
        }],
        caps: Caps::default(),
        joins,
        ids: Vec::new(),
    }
}

fn join(missing: Missing, repeated: Repeated, revise: bool) -> JoinPlan {
    JoinPlan {
        predictions: 0,
        outcomes: 1,
        maturity_ms: MATURITY_MS,
        missing,
        repeated,
        revise,
        by_model: false,
        model: None,
        pending_max: 1_000_000,
        pending_memory: usize::MAX,
    }
}

fn views() -> Vec<View> {
    vec![
        View::TopLabel,
        VECTORS[0],
        View::Class(1),
        VECTORS[1],
        VECTORS[2],
    ]
}

#[derive(Debug, Clone)]
struct Row {
    id: u32,
    time_ms: i64,
    segment: &'static str,
    p: Vec<f64>,
    y: u32,
}

/// Events over [`SPAN_MS`]: some vectors with equal entries, some to be divided by their sum.
fn rows(n: u32, seed: u64) -> Vec<Row> {
    let mut rng = Rng::new(seed);
    let mut one = |id: u32| {
        let mut p: Vec<f64> = (0..CLASSES).map(|_| -(1.0 - rng.uniform()).ln()).collect();
        let sum: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= sum);
        match id % 10 {
            0 => p = vec![0.25, 0.25, 0.25, 0.25],
            1 => p = vec![0.1, 0.4, 0.4, 0.1],
            2 => p = vec![0.0, -0.0, 1.0, 0.0],
            3 => p.iter_mut().for_each(|p| *p *= 0.9995),
            _ => {}
        }
        Row {
            id,
            time_ms: START_MS + i64::from(id) * SPAN_MS / i64::from(n),
            segment: ["country=de", "country=fr"][id as usize % 2],
            p,
            y: (rng.uniform() * CLASSES as f64) as u32,
        }
    };
    (0..n).map(&mut one).collect()
}

#[derive(Debug, Clone)]
enum Record {
    Prediction(Row),
    Outcome { id: u32, time_ms: i64, class: u32 },
}

fn outcome(row: &Row, after_ms: i64) -> Record {
    Record::Outcome {
        id: row.id,
        time_ms: row.time_ms + after_ms,
        class: row.y,
    }
}

fn shuffle<T>(all: &mut [T], rng: &mut Rng) {
    for i in 0..all.len() {
        let j = i + (rng.uniform() * (all.len() - i) as f64) as usize;
        all.swap(i, j);
    }
}

/// A store in memory.
#[derive(Debug, Default)]
struct Shelf(BTreeMap<Vec<u8>, Vec<u8>>);

impl SpillTable for Shelf {
    fn write(&mut self, entries: &mut SpillEntries<'_>) -> Result<(), SpillError> {
        for (name, value) in entries {
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

/// An engine fed by a topic of predictions and one of outcomes, with a disk for its journals.
struct Feed {
    engine: Engine,
    offsets: [i64; 2],
    disk: BTreeMap<u64, Vec<u8>>,
    spills: bool,
    spilled: usize,
}

impl Feed {
    fn new(plan: Plan) -> Feed {
        let mut engine = Engine::new(plan);
        engine.assign((0, 0).into());
        engine.assign((1, 0).into());
        Feed {
            engine,
            offsets: [0; 2],
            disk: BTreeMap::new(),
            spills: false,
            spilled: 0,
        }
    }

    fn spilling(plan: Plan) -> Feed {
        let mut feed = Feed::new(plan);
        feed.engine.spill_to(Arc::new(Shelves), 1);
        feed.spills = true;
        feed
    }

    fn take(&mut self, record: &Record) -> Disposition {
        let source = usize::from(matches!(record, Record::Outcome { .. }));
        let origin = Origin {
            source: source as u16,
            partition: 0,
            offset: self.offsets[source],
        };
        self.offsets[source] += 1;
        let end = feed(&mut self.engine, origin, record);
        self.spilled = self.spilled.max(self.engine.spilled().0);
        let all = self.engine.counters().total();
        assert_eq!(all.records, all.disposed());
        end
    }

    /// Snapshot, journals and all, and a new engine from it, under the same plan or another.
    fn restart(&mut self, plan: Option<Plan>) {
        for d in self.engine.take_journals() {
            let segment = self.disk.entry(d.segment).or_default();
            assert_eq!(segment.len() as u64, d.offset);
            segment.extend(d.bytes);
        }
        let snapshot = self.engine.snapshot();
        let bytes = postcard::to_stdvec(&snapshot).unwrap();
        let snapshot: Snapshot = postcard::from_bytes(&bytes).unwrap();
        let marks: Vec<Vec<u64>> = (snapshot.joins.iter())
            .map(|j| j.marks.iter().map(|m| m.segment).collect())
            .collect();
        let joins = snapshot.joins.clone();
        let plan = plan.unwrap_or_else(|| self.engine.plan().clone());
        let spills = self
            .spills
            .then(|| (Arc::new(Shelves) as Arc<dyn SpillBackend>, 1));
        let segment = |state: &trueline::collect::join::JoinState, mark: usize| {
            let index = joins.iter().position(|j| j == state).unwrap();
            Ok(std::borrow::Cow::Owned(
                self.disk[&marks[index][mark]].clone(),
            ))
        };
        self.engine = Engine::restore_spilling(plan, snapshot, &segment, spills).unwrap();
    }
}

fn feed(engine: &mut impl RecordSink, origin: Origin, record: &Record) -> Disposition {
    match record {
        Record::Prediction(row) => observe(engine, origin, row, None),
        Record::Outcome { id, time_ms, class } => {
            let label = Label {
                model: None,
                id: &id.to_le_bytes(),
                time_ms: *time_ms,
                arrival_ms: None,
                outcome: Outcome::Class(*class),
            };
            engine.label(origin, &label)
        }
    }
}

fn observe(engine: &mut impl RecordSink, origin: Origin, row: &Row, y: Option<u32>) -> Disposition {
    let event = Event {
        model: "animals",
        version: "7",
        segment: row.segment,
        id: &row.id.to_le_bytes(),
        time_ms: row.time_ms,
        arrival_ms: None,
        prediction: Prediction::Vector(&row.p),
        outcome: y.map(Outcome::Class),
        weight: None,
        cluster: None,
    };
    engine.observe(origin, &event)
}

/// The stream that was never apart.
fn whole(rows: &[Row]) -> Engine {
    let mut engine = Engine::new(plan(&views(), Vec::new(), SPAN_MS));
    for (offset, row) in (0..).zip(rows) {
        let origin = Origin {
            source: 0,
            partition: 0,
            offset,
        };
        let end = observe(&mut engine, origin, row, Some(row.y));
        assert_eq!(end, Disposition::Observed);
    }
    engine.finish();
    engine
}

/// All panes of all vector windows, but for predictions without outcome.
fn panes(monitor: MonitorView<'_>) -> Vec<(String, Vec<RingState>)> {
    let mut all = Vec::new();
    for version in partitions::saved(monitor).vectors {
        for view in version.views {
            let mut rings = view.judge.rings;
            for pane in rings.iter_mut().flat_map(|r| &mut r.panes) {
                pane.unlabelled = Default::default();
            }
            all.push((view.view, rings));
        }
    }
    assert!(
        all.iter()
            .any(|(_, rings)| rings.iter().any(|r| !r.panes.is_empty()))
    );
    all
}

/// Begin of a pane, late events, and what it holds.
type Seen = (i64, u64, String);

/// The panes of the wide window, where late outcomes may have revised them: all but linear and block sums, which are of outcomes at
/// maturity.
fn wide(all: Vec<(String, Vec<RingState>)>) -> Vec<(String, Vec<Seen>)> {
    let pane = |p: &PaneState| {
        let held = match &p.sums {
            SumsState::Vector(ViewSumsState::Kernel(kernel)) => {
                let mut parts = kernel.clone().parts();
                (parts.blocks, parts.outdated) = Default::default();
                format!("{parts:?}")
            }
            cells => format!("{cells:?}"),
        };
        (p.start_ms, p.late, held)
    };
    let slot = |(view, rings): (String, Vec<RingState>)| {
        let panes = rings[1].panes.iter().map(pane);
        (view, panes.collect())
    };
    all.into_iter().map(slot).collect()
}

/// The kernel test of a window but for what is of outcomes at maturity.
fn unblocked(w: &WindowReport) -> Option<WindowEvaluation> {
    let mut e = w.kernel().cloned()?;
    (e.blocks, e.blocks_outdated) = Default::default();
    Some(e)
}

fn windows(monitor: MonitorView<'_>, view: View) -> Vec<WindowReport> {
    let mut all = monitor.reports().filter(|r| r.id.view == view);
    let report = all.next().unwrap();
    assert!(all.next().is_none());
    assert_eq!(report.id.segment, "*");
    report.windows.clone()
}

#[test]
fn joined_vectors_have_the_bits_of_the_stream_that_was_never_joined() {
    for seed in 0..6 {
        let rows = rows(2000, seed);
        let expected = whole(&rows);
        let mut rng = Rng::new(100 + seed);
        let mut all: Vec<Record> = Vec::new();
        for row in &rows {
            all.push(Record::Prediction(row.clone()));
            all.push(outcome(row, (rng.uniform() * MATURITY_MS as f64) as i64));
            if rng.uniform() < 0.1 {
                // The same again, and one that is later and says something else.
                all.push(Record::Prediction(row.clone()));
                let mut other = row.clone();
                other.time_ms += 1;
                other.p.reverse();
                all.push(Record::Prediction(other));
            }
            if rng.uniform() < 0.1 {
                all.push(Record::Outcome {
                    id: row.id,
                    time_ms: row.time_ms + MATURITY_MS,
                    class: (row.y + 1) % CLASSES as u32,
                });
            }
        }
        shuffle(&mut all, &mut rng);
        let mut joined = join(Missing::Drop, Repeated::First, seed % 2 == 0);
        joined.pending_memory = 40_000;
        let plan = plan(&views(), vec![joined], SPAN_MS + MATURITY_MS);
        let spills = seed % 3 == 0;
        let mut feed = match spills {
            true => Feed::spilling(plan),
            false => Feed::new(plan),
        };
        for record in &all {
            feed.take(record);
            if rng.uniform() < 0.004 {
                feed.restart(None);
            }
        }
        assert_eq!(feed.spilled > 0, spills);
        feed.engine.finish();
        assert!(
            panes(feed.engine.monitor()) == panes(expected.monitor()),
            "seed {seed}"
        );
        for view in VECTORS {
            assert!(windows(feed.engine.monitor(), view) == windows(expected.monitor(), view));
        }
        assert!(feed.engine.counters().total().conflict > 50);
    }
}

#[test]
fn joined_vectors_are_judged_a_maturity_later_and_otherwise_alike() {
    // In order and without lateness, so that every slide is judged by itself.
    let rows = rows(3000, 40);
    let mut alone = Engine::new(plan(&views(), Vec::new(), 0));
    let joined = join(Missing::Drop, Repeated::First, false);
    let mut feed = Feed::new(plan(&views(), vec![joined], 0));
    let told = |engine: &Engine, seen: &mut BTreeMap<(String, i64), WindowReport>| {
        for r in engine.reports().filter(|r| r.id.view.is_vector()) {
            for w in r.windows.iter().filter(|w| w.end_ms > 0) {
                let at = (format!("{} {}", r.id.view, w.window), w.end_ms);
                seen.insert(at, w.clone());
            }
        }
    };
    let (mut expected, mut found) = (BTreeMap::new(), BTreeMap::new());
    let mut rng = Rng::new(4);
    for (offset, row) in (0..).zip(&rows) {
        let origin = Origin {
            source: 0,
            partition: 0,
            offset,
        };
        observe(&mut alone, origin, row, Some(row.y));
        told(&alone, &mut expected);
        feed.take(&Record::Prediction(row.clone()));
        feed.take(&outcome(row, 0));
        told(&feed.engine, &mut found);
        if rng.uniform() < 0.01 {
            feed.restart(None);
        }
    }
    alone.finish();
    feed.engine.finish();
    told(&alone, &mut expected);
    told(&feed.engine, &mut found);
    // What was judged at the end of input, several slides at once, was seen at the last of them only.
    assert!(found.len() > 30 && found.len() <= expected.len());
    for (at, w) in &found {
        assert!(expected.get(at) == Some(w), "{at:?}");
    }
}

#[test]
fn late_outcomes_revise_every_pane_that_holds_their_prediction_exactly() {
    for (seed, missing) in [
        (1, Missing::Drop),
        (2, Missing::Class(0)),
        (3, Missing::Drop),
        (4, Missing::Class(3)),
    ] {
        let rows = rows(1500, seed);
        let expected = whole(&rows);
        let mut rng = Rng::new(seed);
        let revising = join(missing, Repeated::Last, true);
        let mut feed = Feed::new(plan(&views(), vec![revising], 0));
        let mut late = Vec::new();
        for row in &rows {
            feed.take(&Record::Prediction(row.clone()));
            match rng.uniform() {
                // Another class before the one that holds, in time or not.
                u if u < 0.2 => {
                    feed.take(&Record::Outcome {
                        id: row.id,
                        time_ms: row.time_ms,
                        class: (row.y + 1) % CLASSES as u32,
                    });
                    late.push(outcome(row, 2 * MATURITY_MS));
                }
                u if u < 0.5 => late.push(outcome(row, 2 * MATURITY_MS)),
                _ => {
                    feed.take(&outcome(row, 1000));
                }
            }
        }
        shuffle(&mut late, &mut rng);
        for record in &late {
            feed.take(record);
            if rng.uniform() < 0.02 {
                feed.restart(None);
            }
        }
        feed.engine.finish();
        // All is there, but windows of the narrow ladder were trimmed as they slid; the wide one holds all.
        assert!(
            wide(panes(feed.engine.monitor())) == wide(panes(expected.monitor())),
            "{missing:?}"
        );
        let kernel = windows(feed.engine.monitor(), View::Kernel)[1]
            .kernel()
            .cloned()
            .unwrap();
        assert!(kernel.blocks_outdated > 200 && kernel.blocks.len() == 2);
        assert!(feed.engine.counters().total().revised > 200);
        for version in feed.engine.snapshot().vectors {
            for view in version.views {
                for pane in &view.judge.rings[1].panes {
                    let open: u64 = pane.unlabelled.dropped().iter().sum();
                    let implied: u64 = pane.unlabelled.implied().iter().sum();
                    assert_eq!(open + implied, 0);
                }
            }
        }
    }
}

#[test]
fn predictions_without_outcome_are_covered_or_leave_their_windows_without_a_verdict() {
    let rows = rows(2000, 7);
    for (share, missing, wanted) in [
        (0.8, Missing::Drop, None),
        (0.3, Missing::Drop, Some(Undecided::Coverage)),
        (0.3, Missing::Class(0), None),
    ] {
        let mut rng = Rng::new(9);
        let joined = join(missing, Repeated::First, false);
        let mut feed = Feed::new(plan(&views(), vec![joined], 0));
        let (mut came, mut inside) = (0, 0);
        let from_ms = START_MS + SPAN_MS - 6 * MINUTE;
        for row in &rows {
            feed.take(&Record::Prediction(row.clone()));
            let comes = rng.uniform() < share;
            if comes {
                feed.take(&outcome(row, 0));
            }
            if row.time_ms >= from_ms {
                (came, inside) = (came + u64::from(comes), inside + 1);
            }
        }
        feed.engine.tick(START_MS);
        let dues = feed.engine.reports().map(|r| r.due_ms);
        assert!(dues.into_iter().all(|due| due.is_some()));
        feed.engine.finish();
        feed.restart(None);
        for view in VECTORS {
            let w = windows(feed.engine.monitor(), view)[0].clone();
            let coverage = w.coverage.clone().unwrap();
            assert_eq!((coverage.predictions, coverage.labelled), (inside, came));
            match wanted {
                Some(why) => assert_eq!(w.verdict, Verdict::Undecided(why)),
                None => assert!(w.numbers.is_some(), "{view} {:?}", w.verdict),
            }
        }
        // As the scalar views have it.
        let scalar = feed.engine.reports().find(|r| r.id.view == View::TopLabel);
        assert!(scalar.unwrap().windows[0].coverage.is_some());
    }
}

#[test]
fn a_vector_view_is_immature_until_its_first_cohort_is() {
    let joined = join(Missing::Drop, Repeated::First, false);
    let mut feed = Feed::new(plan(&views(), vec![joined], 0));
    for row in rows(200, 3).iter().take(10) {
        feed.take(&Record::Prediction(row.clone()));
        feed.take(&outcome(row, 0));
    }
    feed.engine.tick(START_MS);
    for view in VECTORS {
        let w = windows(feed.engine.monitor(), view)[0].clone();
        assert_eq!(w.verdict, Verdict::Undecided(Undecided::Immature));
    }
    // A week of silence by the clock does not let go what is waited for.
    feed.engine.tick(START_MS + 30 * 86_400_000);
    feed.engine.tick(START_MS + 60 * 86_400_000);
    assert!(feed.engine.reports().any(|r| r.id.view == View::Full));
}

#[test]
fn cells_that_are_capped_are_counted_and_leave_joined_windows_without_a_verdict_too() {
    let rows = rows(1500, 5);
    let revising = join(Missing::Class(0), Repeated::First, true);
    let mut capped = plan(&views(), vec![revising], 0);
    capped.caps.vector_cells_max = 3;
    let mut feed = Feed::new(capped);
    for row in &rows {
        feed.take(&Record::Prediction(row.clone()));
    }
    for row in &rows {
        feed.take(&outcome(row, 3 * MATURITY_MS));
    }
    feed.engine.finish();
    let all = feed.engine.counters().total();
    assert!(all.no_cell > 0 && all.revised > 100);
    for view in VECTORS {
        let w = windows(feed.engine.monitor(), view)[1].clone();
        let capped = w.verdict == Verdict::Undecided(Undecided::Capacity);
        // A sample has no cells.
        assert_eq!(capped, view != View::Kernel, "{view}");
    }
}

#[test]
fn views_that_come_and_go_while_predictions_wait_leave_the_others_as_they_are() {
    let rows = rows(2000, 8);
    let joined = || vec![join(Missing::Drop, Repeated::First, false)];
    let with = |views: &[View]| plan(views, joined(), 0);
    let scalars = [View::TopLabel];
    let mut feed = Feed::new(with(&scalars));
    let steps: [&[View]; 6] = [
        &[View::TopLabel, View::TopK(2)],
        &[View::TopLabel, View::Full, View::TopK(2), View::Kernel],
        // As many entries as before of other things: four ranked probabilities, or three of a whole vector and its rank.
        &[View::TopLabel, View::Kernel],
        &[View::TopLabel, View::Full],
        // Other views of single scores: all begins anew.
        &[View::TopLabel, View::Class(1), View::TopK(3)],
        &[View::TopLabel, View::TopK(2), View::Kernel],
    ];
    let (mut kept, mut lost) = (Vec::new(), 0);
    for (i, row) in rows.iter().enumerate() {
        feed.take(&Record::Prediction(row.clone()));
        feed.take(&outcome(row, 0));
        let step = i / 250;
        if i % 250 == 249 && step < steps.len() {
            let before = feed.engine.counters().total();
            feed.restart(Some(with(steps[step])));
            let after = feed.engine.counters().total();
            kept.push(after.pending == before.pending);
            lost += after.expired - before.expired;
            // And once more under the same, from the journal that has both.
            let held = feed.engine.retained();
            feed.restart(None);
            assert_eq!(feed.engine.retained(), held, "step {step}");
            assert_eq!(feed.engine.counters().total().pending, after.pending);
        }
    }
    assert_eq!(kept, [true, true, true, true, false, false]);
    feed.engine.finish();
    let all = feed.engine.counters().total();
    assert_eq!(all.records, all.disposed());
    // Each lasts a minute and a maturity.
    assert!(lost > 0 && all.expired == lost && all.pending == 0);
    // What waited when a view was asked for did not have what it needs.
    let n = windows(feed.engine.monitor(), View::TopK(2))[1].n;
    assert_eq!(windows(feed.engine.monitor(), View::Kernel)[1].n, n);
    let scalar = feed
        .engine
        .reports()
        .filter(|r| r.id.view == View::TopLabel);
    let scalar: u64 = scalar.map(|r| r.windows[1].n).sum();
    assert!(n > 0 && n <= scalar, "{n} {scalar}");
}

#[test]
fn each_probability_of_a_pending_vector_takes_twelve_bytes() {
    let z = Score::new(0.25).unwrap();
    let of = |entries: usize| {
        let views: Vec<(Score, u32)> = (0..entries).map(|k| (z, k as u32)).collect();
        let mut joiner = Joiner::default();
        let plan = JoinPlan {
            pending_max: usize::MAX,
            ..join(Missing::Drop, Repeated::First, false)
        };
        for i in 0..100_000u64 {
            let time_ms = i as i64;
            let expect = NewPrediction {
                key: Key::new(None, &i.to_le_bytes()),
                model: 0,
                subject: 0,
                start_ms: time_ms - time_ms.rem_euclid(1000),
                time_ms,
                due_ms: i64::MAX,
                views: &views,
                full_vector: (0, 0),
                classes: 2,
            };
            joiner.predict(&plan, &expect, 0);
        }
        joiner.take_journal(0, 0, i64::MIN);
        joiner.bytes() as f64 / 1e5
    };
    let (scalar, three) = (of(1), of(4));
    println!("{scalar:.1} bytes with a view, {three:.1} with top_k:3 beside it");
    assert!(three - scalar < 36.5, "{three} {scalar}");
}

#[test]
fn a_prediction_that_comes_again_later_is_a_repeat_though_its_rank_would_be_another() {
    let joined = join(Missing::Drop, Repeated::First, false);
    let mut feed = Feed::new(plan(&[View::TopLabel, View::Kernel], vec![joined], 0));
    let row = rows(10, 1)[5].clone();
    let (mut later, mut other) = (row.clone(), row.clone());
    later.time_ms += 1;
    // The same but where the largest is not.
    other.time_ms += 1;
    other.p.swap(0, 1);
    other.p.swap(1, 2);
    assert_ne!(other.p, row.p);
    let ends = [row.clone(), later, other].map(|row| feed.take(&Record::Prediction(row)));
    let wanted = [
        Disposition::Pending,
        Disposition::Duplicate,
        Disposition::Conflict,
    ];
    assert_eq!(ends, wanted);
}

const PARTITIONS: i32 = 3;

/// What is in the topic of states of one partition.
#[derive(Default)]
struct Parcel {
    written: Option<(Snapshot, Vec<VerdictState>)>,
    disk: BTreeMap<u64, Vec<u8>>,
}

/// Processes among which partitions move with what waits in them.
struct Group {
    all: Vec<Shards>,
    owner: Vec<usize>,
    parcels: Vec<Parcel>,
    /// For each partition predictions and outcomes, by time of arrival.
    logs: Vec<[Vec<(i64, Record)>; 2]>,
}

impl Group {
    fn shards(&mut self, p: usize) -> &mut Shards {
        &mut self.all[self.owner[p]]
    }

    fn write(&mut self, p: usize) {
        let (owner, parcel) = (self.owner[p], &mut self.parcels[p]);
        let verdicts = self.all[owner].verdicts(0, p as i32);
        let shard = self.all[owner].get_mut(0, p as i32).unwrap();
        for d in shard.take_journals() {
            let segment = parcel.disk.entry(d.segment).or_default();
            // What a process wrote that died before its parcel is cut off.
            segment.truncate(d.offset as usize);
            segment.extend(d.bytes);
        }
        parcel.written = Some((shard.snapshot(), verdicts));
    }

    fn adopt(&mut self, p: usize, process: usize) {
        self.owner[p] = process;
        let (shards, parcel) = (&mut self.all[process], &self.parcels[p]);
        let (at, plan) = ((0, p as i32), shards.plan());
        let (mut shard, verdicts) = match &parcel.written {
            None => (LocalShard::new(at, plan, Vec::new(), None), Vec::new()),
            Some((snapshot, verdicts)) => {
                let marks = snapshot.joins.iter().map(|j| &j.marks);
                let segments: Vec<Vec<Vec<u8>>> = marks
                    .map(|marks| {
                        marks
                            .iter()
                            .map(|m| parcel.disk[&m.segment].clone())
                            .collect()
                    })
                    .collect();
                let shard = partitions::restored(at, plan, snapshot, &segments);
                (shard, verdicts.clone())
            }
        };
        (0..2).for_each(|source| {
            shard.assign((source, p as i32).into());
        });
        shards.adopt(shard, verdicts);
    }

    /// Reads all of a partition that had come at a time.
    fn read(&mut self, p: usize, until_ms: i64) {
        let logs = std::mem::take(&mut self.logs[p]);
        let shard = self.shards(p).get_mut(0, p as i32).unwrap();
        let mut from = [0; 2];
        for at in shard.view().partitions().positions() {
            from[usize::from(at.source)] = at.offset as usize;
        }
        for (source, log) in (0u16..).zip(&logs) {
            let next = log.iter().enumerate().skip(from[usize::from(source)]);
            for (offset, (_, record)) in next.take_while(|(_, (at, _))| *at <= until_ms) {
                let origin = Origin {
                    source,
                    partition: p as i32,
                    offset: offset as i64,
                };
                feed(shard, origin, record);
            }
        }
        self.logs[p] = logs;
        self.shards(p).settle();
        for shards in &self.all {
            for source in 0..2 {
                let (counts, moved) = (shards.counters().source(source), shards.moved(source));
                assert_eq!(
                    counts.records + moved.brought,
                    counts.disposed() + moved.taken
                );
            }
        }
    }
}

#[test]
fn pending_vectors_move_with_their_partitions_and_lose_no_bit() {
    const LATENESS_MS: i64 = 2 * MINUTE;
    for seed in 0..4 {
        let rows = rows(2400, 60 + seed);
        let expected = whole(&rows);
        let mut rng = Rng::new(seed);
        let mut logs: Vec<[Vec<(i64, Record)>; 2]> = vec![Default::default(); PARTITIONS as usize];
        for row in &rows {
            let log = &mut logs[row.id as usize % PARTITIONS as usize];
            let arrival = row.time_ms + (rng.uniform() * MINUTE as f64) as i64;
            log[0].push((arrival, Record::Prediction(row.clone())));
            // A sixth comes after maturity and revises.
            let after_ms = (rng.uniform() * 1.2 * MATURITY_MS as f64) as i64;
            log[1].push((arrival + after_ms, outcome(row, after_ms)));
        }
        let end_ms = START_MS + SPAN_MS;
        for (p, log) in (0..).zip(&mut logs) {
            log.iter_mut().for_each(|l| l.sort_by_key(|(at, _)| *at));
            let mut last = rows[0].clone();
            (last.id, last.time_ms) = (1_000_000 + p, end_ms + LATENESS_MS + MATURITY_MS);
            let at = end_ms + 30 * MINUTE;
            log[1].push((at, outcome(&last, 0)));
            log[0].push((at, Record::Prediction(last)));
        }
        let revising = join(Missing::Drop, Repeated::First, true);
        let plan = plan(&views(), vec![revising], LATENESS_MS);
        let mut group = Group {
            all: (0..2)
                .map(|_| Shards::new(plan.clone(), vec![0, 0]))
                .collect(),
            owner: vec![0; PARTITIONS as usize],
            parcels: (0..PARTITIONS).map(|_| Parcel::default()).collect(),
            logs,
        };
        for p in 0..PARTITIONS as usize {
            group.adopt(p, p % 2);
        }
        let mut now_ms = START_MS;
        while now_ms < end_ms + 10 * MINUTE {
            now_ms += (rng.uniform() * 20_000.0) as i64;
            for p in 0..PARTITIONS as usize {
                group.read(p, now_ms - (rng.uniform() * 10_000.0) as i64);
                if rng.uniform() < 0.1 {
                    group.write(p);
                }
            }
            if rng.uniform() < 0.1 && seed > 0 {
                let p = (rng.uniform() * f64::from(PARTITIONS)) as usize;
                let from = group.owner[p];
                if rng.uniform() < 0.5 {
                    group.write(p);
                }
                // Without it the taker goes on from the parcel before.
                group.all[from].release(0, p as i32).unwrap();
                group.adopt(p, 1 - from);
            }
        }
        for p in 0..PARTITIONS as usize {
            group.read(p, now_ms);
            if group.owner[p] != 0 {
                group.write(p);
                group.all[1].release(0, p as i32).unwrap();
                group.adopt(p, 0);
            }
        }
        group.all[0].settle();
        for p in 0..PARTITIONS as usize {
            group.read(p, i64::MAX);
        }
        let union = group.all[0].monitor().unwrap();
        assert!(
            wide(panes(union)) == wide(panes(expected.monitor())),
            "seed {seed}"
        );
        for view in VECTORS {
            let [ours, theirs] = [union, expected.monitor()].map(|e| windows(e, view)[1].clone());
            assert_eq!((ours.end_ms, ours.n), (theirs.end_ms, theirs.n), "{view}");
            assert!(ours.cells() == theirs.cells() && ours.verdict == theirs.verdict);
            assert_eq!(unblocked(&ours), unblocked(&theirs));
        }
        assert!(group.all[0].counters().total().revised > 0);
    }
}

#[test]
fn pending_vectors_of_many_classes_stay_within_their_memory_and_lose_no_bit() {
    const MANY: usize = 300;
    let of = |joins, lateness_ms| {
        let mut plan = plan(&[View::TopLabel, View::Kernel], joins, lateness_ms);
        plan.models[0].classes = (0..MANY).map(|k| k.to_string()).collect();
        plan
    };
    let mut rng = Rng::new(2);
    let mut rows = rows(600, 70);
    for row in &mut rows {
        row.p = (0..MANY).map(|_| -(1.0 - rng.uniform()).ln()).collect();
        let sum: f64 = row.p.iter().sum();
        row.p.iter_mut().for_each(|p| *p /= sum);
        row.y = (rng.uniform() * MANY as f64) as u32;
    }
    let mut alone = Engine::new(of(Vec::new(), SPAN_MS));
    for (offset, row) in (0..).zip(&rows) {
        let origin = Origin {
            source: 0,
            partition: 0,
            offset,
        };
        observe(&mut alone, origin, row, Some(row.y));
    }
    alone.finish();
    let mut joined = join(Missing::Drop, Repeated::First, true);
    joined.pending_memory = 300_000;
    let mut feed = Feed::spilling(of(vec![joined], SPAN_MS + MATURITY_MS));
    for row in &rows {
        feed.take(&Record::Prediction(row.clone()));
        let (spilled, bytes) = feed.engine.spilled();
        let held = feed.engine.retained() - spilled;
        if row.id == 60 {
            // 12·(1 + 200) of the vector, 56 of the rest, 20 in the index, and a half more for what is to come.
            println!("{} bytes each of {held}", bytes / held);
            assert!(spilled == 0 && bytes / held < 2488 * 3 / 2);
        }
        assert!(bytes <= 300_000, "{bytes}");
    }
    for row in rows.iter().rev() {
        feed.take(&outcome(row, 0));
        if row.id == 300 {
            feed.restart(None);
        }
    }
    feed.engine.finish();
    assert!(feed.spilled > 400, "{}", feed.spilled);
    assert!(panes(feed.engine.monitor()) == panes(alone.monitor()));
    assert!(windows(feed.engine.monitor(), View::Kernel) == windows(alone.monitor(), View::Kernel));
}
