//! Published state with something to show: streams, windows, alerts and the facts of every kind.
#![allow(dead_code)]

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use trueline::alert::{Alert, AlertState, Severity};
use trueline::collect::join::WrongPartition;
use trueline::collect::{Disposition, PairCounts, Reason, Refusal};
use trueline::judge::recalibration::JudgedWindow;
use trueline::judge::{
    AccountReport, ComparisonId, ComparisonReport, Coverage, CoverageCell, Detector,
    DetectorOptions, DetectorReport, JudgeOptions, Numbers, Recalibration, StreamId, StreamReport,
    Undecided, Verdict, WindowReport,
};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::evaluation::{Evaluation, Options, evaluate};
use trueline::stats::fixed::Score;
use trueline::stats::kernel::window::{
    KernelOptions, KernelSums, WindowEvaluation, evaluate as evaluate_kernel,
};
use trueline::stats::sequential::{Budget, Pair, Paired};
use trueline::stats::sums::Sums;
use trueline::stats::view::View;
use trueline::telemetry::Published;
use trueline::telemetry::facts::{
    AlertFacts, CheckpointCounts, CheckpointFacts, EventLogFacts, Facts, PartitionFacts, REFUSALS,
    SinkFacts, SourceFacts, WatermarkFacts,
};
use trueline::window::COVERAGE_CELLS;

/// The machine's clock.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// splitmix64, so that every run sees the same sample.
pub struct Chance(pub u64);

impl Chance {
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Evaluation of `n` scores from `score`, whose outcomes happen with probability `truth(score)`.
pub fn sample(n: u32, score: fn(f64) -> f64, truth: fn(f64) -> f64) -> Evaluation {
    evaluate(&sums(n, score, truth), &Options::default()).unwrap()
}

/// The sums of such a sample.
fn sums(n: u32, score: fn(f64) -> f64, truth: fn(f64) -> f64) -> Sums {
    let mut chance = Chance(u64::from(n));
    let mut sums = Sums::new(Grid::new(Axis::Linear, 12));
    for _ in 0..n {
        let z = score(chance.uniform());
        let y = chance.uniform() < truth(z);
        sums.observe(Score::new(z).unwrap(), y).unwrap();
    }
    sums
}

fn over_confident(z: f64) -> f64 {
    0.5 + 0.6 * (z - 0.5)
}

/// A name of a stream.
pub fn id(model: &str, version: &str, segment: &str, view: View) -> StreamId {
    StreamId {
        model: model.to_owned(),
        version: version.to_owned(),
        segment: segment.to_owned(),
        view,
    }
}

/// A window that ended `age_ms` ago.
pub fn window(
    name: &str,
    verdict: Verdict,
    alert: AlertState,
    evaluation: Option<Evaluation>,
) -> WindowReport {
    let end_ms = now_ms() / 1000 * 1000 - 1000;
    WindowReport {
        window: name.to_owned(),
        start_ms: end_ms - 300_000,
        end_ms,
        since_ms: end_ms - 300_000,
        n: evaluation.as_ref().map_or(12, |e| e.n),
        coverage: (name == "5m").then(|| Box::new(coverage())),
        verdict,
        alert,
        alert_since_ms: (alert != AlertState::Inactive).then_some(end_ms),
        numbers: evaluation.map(|e| Numbers::Scores(Arc::new(e))),
        family: None,
        evaluated_at_ms: end_ms,
        recalibration: (verdict == Verdict::Miscalibrated).then(recalibrated),
    }
}

/// Maps of one miscalibrated window, judged on the next.
fn recalibrated() -> Arc<Recalibration> {
    let end_ms = now_ms() / 1000 * 1000 - 1000;
    let step = |before: Option<&Arc<Recalibration>>, start_ms: i64| {
        let window = JudgedWindow {
            start_ms,
            end_ms: start_ms + 300_000,
            n: 10_000,
            verdict: Verdict::Miscalibrated,
            overdispersion: None,
        };
        let total = || Ok::<Sums, ()>(sums(10_000, |u| u, over_confident));
        let stepped = Recalibration::step(before, window, &JudgeOptions::plain(), total);
        stepped.unwrap().unwrap()
    };
    let first = step(None, end_ms - 600_000);
    let second = step(Some(&first), end_ms - 300_000);
    assert!(second.advised().is_some());
    second
}

/// A kernel test of vectors that say less of the third class than happens.
fn kernel() -> WindowEvaluation {
    let mut sums = KernelSums::new(3, KernelOptions::default()).expect("three classes");
    for i in 0..600_u32 {
        let a = f64::from(i % 97) / 100.0;
        let rank = u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        assert!(sums.observe(rank, &[a, 0.98 - a, 0.02], 1.0, i % 3));
    }
    evaluate_kernel(&sums, 0.05, 0.9).expect("more than one event")
}

/// Publishes a stream of whole vectors.
pub fn publish_vectors(published: &Published) {
    let whole = WindowReport {
        numbers: Some(Numbers::Kernel(Arc::new(kernel()))),
        recalibration: None,
        ..window("5m", Verdict::Miscalibrated, AlertState::Firing, None)
    };
    publish(published, id("whole", "1", "", View::Kernel), vec![whole]);
}

/// Nine of ten predictions have an outcome.
fn coverage() -> Coverage {
    let cell = CoverageCell {
        predictions: 10,
        labelled: 9,
    };
    Coverage {
        predictions: 160,
        labelled: 144,
        dropped: 16,
        implied: 0,
        cells: [cell; COVERAGE_CELLS],
    }
}

/// A detector that has raised an alarm.
fn alarmed() -> DetectorReport {
    let options = DetectorOptions::alone(Budget::default(), 0.05);
    let grid = Grid::new(Axis::Linear, 12);
    let mut detector = Detector::new(options.odds(grid), options, 1.0);
    let pane = sums(10_000, |u| u, over_confident);
    detector.observe(&pane, (now_ms() - 10_000, now_ms()));
    // It starts again: the sequences need something to go by.
    let calm = sums(10_000, |u| u, |z| z);
    detector.observe(&calm, (now_ms() - 10_000, now_ms()));
    let report = detector.report().expect("a pane was shown");
    assert!(report.alarm.is_some());
    report
}

/// Publishes a stream without a detector.
pub fn publish(published: &Published, id: StreamId, windows: Vec<WindowReport>) {
    publish_with(published, id, None, windows);
}

/// Publishes an alert for each stream.
pub fn publish_alerts(published: &Published) {
    let alert = |r: &Arc<StreamReport>| AlertFacts {
        fingerprint: r.id.fingerprint(),
        name: r.id.to_string(),
        model: r.id.model.clone(),
        version: r.id.version.clone(),
        segment: r.id.segment.clone(),
        view: r.id.view.to_string(),
        state: r.alert.state,
        severity: r.alert.severity,
        since_ms: r.alert.since_ms,
        streams: vec![r.id.clone()],
    };
    let alerts = published.reports().iter().map(alert).collect();
    published.update(|facts| facts.alerts = alerts);
}

/// Publishes a stream.
fn publish_with(
    published: &Published,
    id: StreamId,
    detector: Option<DetectorReport>,
    windows: Vec<WindowReport>,
) {
    let worst = |state| windows.iter().any(|w| w.alert == state);
    let of_windows = [
        AlertState::Firing,
        AlertState::Pending,
        AlertState::Resolved,
    ];
    let alert = of_windows
        .into_iter()
        .find(|s| worst(*s))
        .unwrap_or_default();
    let detects = detector.is_some();
    published.publish(&Arc::new(StreamReport {
        id,
        last_event_ms: now_ms(),
        due_ms: None,
        overdispersion: None,
        detector: detector.map(Arc::new),
        alert: Alert {
            state: alert,
            since_ms: (alert != AlertState::Inactive).then(now_ms),
            severity: match detects && alert == AlertState::Firing {
                true => Severity::Page,
                false => Severity::Warn,
            },
            ..Alert::default()
        },
        windows,
    }));
}

/// Published state with a calibrated, an over-confident, a rare-event and an undecided stream, two
/// sources and three partitions, ready and alive.
pub fn populated() -> Arc<Published> {
    use AlertState::{Firing, Inactive, Pending};
    use Verdict::{Calibrated, Miscalibrated};
    let published = Arc::new(Published::default());
    let good = sample(20_000, |u| u, |z| z);
    let over = sample(10_000, |u| u, over_confident);
    let rare = sample(50_000, |u| u * 0.02, |z| 2.0 * z);
    publish(
        &published,
        id("calibrated", "1", "", View::Binary),
        vec![
            window(
                "1m",
                Calibrated,
                Inactive,
                Some(sample(2_000, |u| u, |z| z)),
            ),
            window("5m", Calibrated, Inactive, Some(good)),
        ],
    );
    publish(
        &published,
        id(
            "team/over \"confident\"",
            "v2",
            "country=DE,tier=a",
            View::TopLabel,
        ),
        vec![
            window(
                "1m",
                Miscalibrated,
                Pending,
                Some(sample(3_000, |u| u, over_confident)),
            ),
            window("5m", Miscalibrated, Firing, Some(over)),
        ],
    );
    publish_with(
        &published,
        id("rare", "", "", View::Class(3)),
        Some(alarmed()),
        vec![window("last:50000", Miscalibrated, Firing, Some(rare))],
    );
    publish(
        &published,
        id("new", "7", "", View::Binary),
        vec![
            window("1m", Verdict::Undecided(Undecided::TooFew), Inactive, None),
            // An evaluation that was published by mistake must not be shown either.
            window(
                "5m",
                Verdict::Undecided(Undecided::Stale),
                Inactive,
                Some(sample(100, |u| u, |z| z)),
            ),
        ],
    );
    published.update(facts);
    for part in ["config", "state", "kafka"] {
        published.ready(part);
    }
    published.beat("engine");
    published.record_evaluation(Duration::from_micros(120));
    published.record_evaluation(Duration::from_micros(180));
    published
}

fn facts(facts: &mut Facts) {
    let log = EventLogFacts {
        bytes: 5000,
        end: 40,
        appended: 40,
        duplicates: 1,
        refused: [1; REFUSALS.len()],
        ..EventLogFacts::default()
    };
    facts.event_logs = vec![("posted".to_owned(), log)];
    for (name, scale) in [("scored", 10u64), ("payments", 3)] {
        let mut source = SourceFacts {
            name: name.to_owned(),
            outcomes: Some(name.to_owned()),
            dead_letters_delivered: scale,
            ..SourceFacts::default()
        };
        for (disposition, times) in [
            (Disposition::Observed, 100),
            (Disposition::Late, 2),
            (Disposition::Replayed, 1),
            (Disposition::Rejected(Reason::Malformed), 3),
            (Disposition::Rejected(Reason::ScoreOutOfRange), 4),
            (Disposition::Refused(Refusal::Streams), 1),
        ] {
            for _ in 0..times * scale {
                source.counters.count(disposition);
            }
        }
        facts.sources.push(source);
    }
    for partition in 0..3 {
        facts.partitions.push(PartitionFacts {
            topic: "scored".to_owned(),
            partition,
            position: 1000 + i64::from(partition),
            lag: Some(7),
            lag_ms: Some(1500),
            watermark_ms: Some(now_ms() - 2000),
            idle: partition == 2,
            hidden_ms: (partition == 1).then_some(4_000),
            unread: false,
        });
    }
    facts.watermark = Some(WatermarkFacts {
        time_ms: Some(now_ms() - 2000),
        held: Some(("scored".to_owned(), 1, 4_000)),
    });
    facts.ledger = [AccountReport {
        account: "fleet".to_owned(),
        budget: Budget::default(),
        streams: 1,
        share: 1.0,
        staked: 25_920.0,
        alarms: 1,
        alarmed: vec![id("rare", "", "", View::Class(3))],
        called: Vec::new(),
    }]
    .into();
    let mut paired = Paired::default();
    let (champion, challenger, outcome) = (1 << 31, 1 << 30, false);
    let pair = Pair {
        champion,
        challenger,
        outcome,
    };
    paired.observe(&[pair; 40], Grid::new(Axis::Linear, 12));
    facts.comparisons = [ComparisonReport {
        id: ComparisonId {
            model: "rare".to_owned(),
            view: View::Binary,
            champion: "1".to_owned(),
            challenger: "2".to_owned(),
        },
        since_ms: now_ms() - 60_000,
        last_ms: now_ms(),
        confidence: 0.95,
        compared: paired.compared(0.05).unwrap(),
    }]
    .into();
    let counts = PairCounts {
        taken: 81,
        paired: 80,
        ..PairCounts::default()
    };
    facts.pair_counts.push(("rare".to_owned(), counts, 1));
    facts.checkpoints = Some(CheckpointFacts {
        counts: CheckpointCounts {
            written: 7,
            written_bytes: 70_000,
            read: 2,
            read_bytes: 20_000,
            refused: 1,
            superseded: 1,
            deltas_cut: 3,
            restore_seconds: 0.06,
        },
        last_ms: vec![("scored".to_owned(), 0, Some(now_ms()))],
    });
    facts.suspended = vec![("scored".to_owned(), 3)];
    let sample = WrongPartition {
        source: 1,
        model: None,
        waiting: 16,
        found: 1,
    };
    facts.wrong_partitions = vec![("labels".to_owned(), sample)];
    facts.sinks.push(SinkFacts {
        name: "oncall".to_owned(),
        sent: 12,
        failed: 1,
        retried: 4,
        dropped: 2,
        queued: 3,
        last_success_ms: Some(now_ms()),
        trouble: None,
    });
    facts.engine.streams = 4;
    facts.engine.panes = 24;
    facts.engine.state_bytes = 400_000;
    facts.snapshot.last_ms = Some(now_ms());
    facts.snapshot.seconds = 0.02;
    facts.snapshot.bytes = 123_456;
    facts.config.loaded = true;
    facts.config.loaded_ms = Some(now_ms());
    facts.config.hash = "0123456789abcdef".to_owned();
}
