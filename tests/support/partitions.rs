//! Records of a topic with partitions, for engines without a broker, and what is judged of them.

use super::disk::segment_of;
use std::collections::BTreeMap;

use trueline::collect::{Event, Origin, PartitionId, Segmenting};
use trueline::judge::JudgeOptions;
use trueline::monitor::snapshot::VectorViewState;
use trueline::monitor::{LocalShard, ModelPlan, MonitorView, Plan, RecordSink, Snapshot};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::evaluation::{Options, TCalOptions};
use trueline::stats::kernel::window::KernelOptions;
use trueline::stats::rng::Rng;
use trueline::stats::tolerance::Tolerance;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::RingState;
use trueline::window::{Ladder, WindowSpec};

/// Event time of the first records.
pub const BEGIN_MS: i64 = 1_700_000_064_000;
/// Of the topic.
pub const PARTITIONS: i32 = 6;

/// One model with views of every kind.
pub fn plan() -> Plan {
    let windows = vec![
        WindowSpec::time("6s", 6_000),
        WindowSpec::time("60s", 60_000),
        WindowSpec::last(1_000),
    ];
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting: Segmenting {
                rollup: true,
                ..Segmenting::default()
            },
            views: vec![
                View::TopLabel,
                View::TopK(2),
                View::Class(1),
                View::Full,
                View::Kernel,
            ],
            classes: ["no", "perhaps", "yes"].map(str::to_owned).to_vec(),
            ladder: Ladder::new(windows, 2_000).expect("a valid ladder"),
            grid: Grid::new(Axis::Linear, 6),
            judge: JudgeOptions {
                min_events: 10,
                // At this level and without a tolerance verdicts change often.
                evaluation: Options {
                    tcal: TCalOptions {
                        alpha: 0.3,
                        ..Options::default().tcal
                    },
                    tolerance: Tolerance::absolute(0.0),
                    ..Options::default()
                },
                // Fewer than a window holds.
                kernel: KernelOptions {
                    sample: 24,
                    ..KernelOptions::default()
                },
                ..JudgeOptions::plain()
            },
        }],
        ..Plan::default()
    }
}

/// One record of a partition.
pub struct Record {
    model: &'static str,
    time_ms: i64,
    pub segment: &'static str,
    score: f64,
    outcome: bool,
}

/// Each partition's records, disordered within the lateness, and at last one that closes all
/// windows.
pub fn logs(seed: u64, n: usize) -> Vec<Vec<Record>> {
    let mut rng = Rng::new(seed);
    let mut log = |partition: i32| {
        let mut all: Vec<Record> = (0..n)
            .map(|i| Record {
                model: "m",
                time_ms: BEGIN_MS + i as i64 * 40 + (rng.uniform() * 1_900.0) as i64,
                segment: ["k=a", "k=b", "k=c"][(rng.uniform() * 3.0) as usize],
                score: rng.uniform(),
                outcome: rng.uniform() < 0.4 + 0.05 * f64::from(partition),
            })
            .collect();
        all.push(Record {
            model: "m",
            time_ms: BEGIN_MS + n as i64 * 40 + 15_000,
            segment: "k=a",
            score: 0.5,
            outcome: true,
        });
        all
    };
    (0..PARTITIONS).map(&mut log).collect()
}

/// The same records, those of each segment under a model of its own.
pub fn of_models(mut logs: Vec<Vec<Record>>) -> Vec<Vec<Record>> {
    for r in logs.iter_mut().flatten() {
        r.model = MODELS[usize::from(r.segment.as_bytes()[2] - b'a')];
    }
    logs
}

/// The models of [`of_models`].
pub const MODELS: [&str; 3] = ["ads", "credit", "fraud"];

/// Shows a record to what counts its partition.
pub fn feed(sink: &mut impl RecordSink, partition: i32, offset: usize, r: &Record) {
    let origin = Origin {
        source: 0,
        partition,
        offset: offset as i64,
    };
    let event = Event {
        model: r.model,
        version: "1",
        segment: r.segment,
        id: b"",
        time_ms: r.time_ms,
        arrival_ms: None,
        prediction: Prediction::Vector(&[1.0 - r.score, 0.75 * r.score, 0.25 * r.score]),
        outcome: Some(Outcome::Class(2 * u32::from(r.outcome))),
        weight: None,
        cluster: None,
    };
    sink.observe(origin, &event);
}

/// The shard of a partition, from its checkpoint with the journal segments that it marks.
pub fn restored(
    at: PartitionId,
    plan: &Plan,
    snapshot: &Snapshot,
    segments: &[Vec<Vec<u8>>],
) -> LocalShard {
    let segment = segment_of(&snapshot.joins, segments);
    let snapshot = snapshot.clone();
    LocalShard::restore(at, plan, snapshot, &segment, None).expect("a sound checkpoint")
}

/// The state of a monitor alone.
pub fn saved(monitor: MonitorView<'_>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    monitor.save_to(&mut snapshot);
    snapshot
}

/// Number, verdict and sums of every window of every stream, and how much its outcomes vary.
pub fn judged(monitor: MonitorView<'_>) -> BTreeMap<String, String> {
    let total = monitor.totals().map(|(id, report, sums)| {
        let said = format!(
            "{} {} {} {:?} {sums:?}",
            report.end_ms, report.n, report.verdict, report.numbers
        );
        (format!("{id} {}", report.window), said)
    });
    let vectors = monitor.reports().filter(|r| r.id.view.is_vector());
    let vectors = vectors.flat_map(|r| {
        r.windows.iter().map(move |w| {
            let said = format!("{} {} {} {:?}", w.end_ms, w.n, w.verdict, w.numbers);
            (format!("{} {}", r.id, w.window), said)
        })
    });
    let panes = saved(monitor).vectors.into_iter().flat_map(|v| {
        let version = format!("{}/{}", v.name, v.version);
        let panes = |v: VectorViewState| {
            let rings = v.judge.rings.into_iter().enumerate();
            let of = format!("{version} {}", v.view);
            let panes = move |(i, r): (usize, RingState)| {
                (format!("{of} panes {i}"), format!("{:?}", r.panes))
            };
            rings.map(panes).collect::<Vec<_>>()
        };
        v.views.into_iter().flat_map(panes).collect::<Vec<_>>()
    });
    let scores = monitor.reports().filter(|r| !r.id.view.is_vector());
    let varied = scores.map(|r| {
        let said = format!("{:?}", r.overdispersion);
        (format!("{} overdispersion", r.id), said)
    });
    total.chain(vectors).chain(panes).chain(varied).collect()
}
