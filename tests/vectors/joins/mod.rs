//! Vector views of predictions whose outcomes are records of their own: in any order of arrival,
//! with repeats, spills and restarts, the sums of the stream that was not joined, to the bit; late
//! outcomes revise them exactly; what is missing is told.

mod changes;
mod coverage;
mod memory;
mod moves;
mod revisions;
mod sums;

use crate::support::disk::Feed;
use crate::support::partitions;
use crate::support::random::vector;
use crate::support::records::{EVENT, JOIN, origin, outcome_record};
use trueline::collect::join::{JoinPlan, Missing, Repeated};
use trueline::collect::{Disposition, Event, Origin};
use trueline::judge::{JudgeOptions, ModelPlan, Plan, WindowReport};
use trueline::monitor::{Engine, MonitorView, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::kernel::window::KernelOptions;
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, PaneState, RingState, SumsState, ViewSumsState, WindowSpec};

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
                ..JudgeOptions::plain()
            },
            segmenting: Default::default(),
        }],
        joins,
        ..Plan::default()
    }
}

fn join(missing: Missing, repeated: Repeated, revise: bool) -> JoinPlan {
    JoinPlan {
        maturity_ms: MATURITY_MS,
        missing,
        repeated,
        revise,
        ..JOIN
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
        let mut p = vector(&mut rng, CLASSES);
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

/// Feeds a record: predictions come from the first source, outcomes from the second.
fn take(to: &mut Feed, record: &Record) -> Disposition {
    let origin = to.next(u16::from(matches!(record, Record::Outcome { .. })));
    let end = feed(&mut to.engine, origin, record);
    to.conserved();
    end
}

fn feed(engine: &mut impl RecordSink, origin: Origin, record: &Record) -> Disposition {
    match record {
        Record::Prediction(row) => observe(engine, origin, row, None),
        Record::Outcome { id, time_ms, class } => engine.observe_outcome(
            origin,
            &outcome_record(&id.to_le_bytes(), *time_ms, Outcome::Class(*class)),
        ),
    }
}

fn observe(engine: &mut impl RecordSink, origin: Origin, row: &Row, y: Option<u32>) -> Disposition {
    let event = Event {
        model: "animals",
        version: "7",
        segment: row.segment,
        id: &row.id.to_le_bytes(),
        time_ms: row.time_ms,
        prediction: Prediction::Vector(&row.p),
        outcome: y.map(Outcome::Class),
        ..EVENT
    };
    engine.observe(origin, &event)
}

/// The stream that was never apart.
fn whole(rows: &[Row]) -> Engine {
    let mut engine = Engine::new(plan(&views(), Vec::new(), SPAN_MS));
    for (offset, row) in (0..).zip(rows) {
        let origin = origin(0, 0, offset);
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

/// The panes of the wide window, where late outcomes may have revised them: all but linear and
/// block sums, which are of outcomes at maturity.
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

fn windows(monitor: MonitorView<'_>, view: View) -> Vec<WindowReport> {
    let mut all = monitor.reports().filter(|r| r.id.view == view);
    let report = all.next().unwrap();
    assert!(all.next().is_none());
    assert_eq!(report.id.segment, "*");
    report.windows.clone()
}
