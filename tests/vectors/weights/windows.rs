//! Weighted windows of the engine are the same to the bit joined, revised and through restarts, as
//! are the records of their alerts.

use super::{Sample, heavy, overdone, overdone_by_half, sample, tiers};
use crate::support::disk::Disk;
use crate::support::records::{EVENT, JOIN, origin, outcome_record};
use trueline::collect::join::{JoinPlan, Missing};
use trueline::collect::{Disposition, Event};
use trueline::judge::{Change, JudgeOptions, ModelPlan, Plan, Step, Undecided, Verdict};
use trueline::monitor::{Engine, RecordSink};
use trueline::report::record::Record;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::stats::weight::Weight;
use trueline::window::{Ladder, SumsState, WindowSpec};

const BEGIN_MS: i64 = 1_760_000_400_000 / 600_000 * 600_000;
const MINUTE: i64 = 60_000;

fn plan(joined: bool) -> Plan {
    let windows = vec![
        WindowSpec::time("6m", 6 * MINUTE),
        WindowSpec::time("30m", 30 * MINUTE),
    ];
    let join = JoinPlan {
        maturity_ms: 2 * MINUTE,
        missing: Missing::Class(0),
        revise: true,
        pending_max: 100_000,
        ..JOIN
    };
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting: Default::default(),
            views: vec![View::TopLabel, View::TopK(2), View::Full],
            classes: (0..3).map(|k| k.to_string()).collect(),
            ladder: Ladder::new(windows, 10_000).unwrap(),
            grid: Grid::new(Axis::Linear, 6).weighted(),
            judge: JudgeOptions {
                stale_after_ms: i64::MAX,
                min_events: 600,
                ..JudgeOptions::plain()
            },
        }],
        joins: joined.then_some(join).into_iter().collect(),
        ..Plan::default()
    }
}

fn observe(engine: &mut Engine, s: &Sample, i: usize, joined: bool) {
    let event = Event {
        model: "m",
        id: &i.to_le_bytes(),
        time_ms: BEGIN_MS + 400 * i as i64,
        prediction: Prediction::Vector(s.all.row(i)),
        outcome: (!joined).then_some(Outcome::Class(s.all.outcome(i))),
        weight: Weight::new(s.weights[i]).ok(),
        ..EVENT
    };
    let origin = origin(0, 0, i as i64);
    let end = engine.observe(origin, &event);
    let wanted = [Disposition::Observed, Disposition::Pending][usize::from(joined)];
    assert_eq!(end, wanted);
}

/// All that the wide windows of the vector views hold.
fn held(engine: &mut Engine) -> Vec<(String, Vec<(i64, SumsState)>)> {
    engine.finish();
    let mut all = Vec::new();
    for version in engine.snapshot().vectors {
        for view in version.views {
            let panes = view.judge.rings[1].panes.iter();
            let panes = panes.map(|p| (p.start_ms, p.sums.clone()));
            all.push((view.view, panes.collect()));
        }
    }
    assert_eq!(all.len(), 2);
    all
}

#[test]
fn weighted_windows_are_the_same_to_the_bit_joined_revised_and_through_restarts() {
    let s = sample(3, 2400, heavy, overdone, 21);
    let mut straight = Engine::new(plan(false));
    (0..2400).for_each(|i| observe(&mut straight, &s, i, false));
    let expected = held(&mut straight);
    for view in [View::TopK(2), View::Full] {
        let report = straight.reports().find(|r| r.id.view == view).unwrap();
        let [narrow, wide] = &report.windows[..] else {
            panic!()
        };
        let e = wide.cells().cloned().unwrap();
        assert!(e.n == 2400 && e.weights.unwrap().effective < 2000.0);
        // Nine hundred events, and half as many by weight.
        assert_eq!(narrow.verdict, Verdict::Undecided(Undecided::TooFew));
        assert!(narrow.n >= 600);
    }
    // Outcomes come up to six minutes later, after two as revisions of class 0.
    let mut rng = Rng::new(4);
    let mut records: Vec<(i64, bool, usize)> = Vec::new();
    for i in 0..2400 {
        let at = 400 * i as i64;
        records.push((at, false, i));
        records.push((at + (rng.uniform() * 6.0 * MINUTE as f64) as i64, true, i));
    }
    records.sort_unstable();
    let mut joined = Engine::new(plan(true));
    let mut disk = Disk::default();
    let mut outcomes = 0;
    for (n, &(at, outcome, i)) in records.iter().enumerate() {
        if outcome {
            let origin = origin(1, 0, outcomes);
            let id = i.to_le_bytes();
            joined.observe_outcome(
                origin,
                &outcome_record(&id, BEGIN_MS + at, Outcome::Class(s.all.outcome(i))),
            );
            outcomes += 1;
        } else {
            observe(&mut joined, &s, i, true);
        }
        if n % 701 == 700 {
            joined = disk.restart(&mut joined, plan(true));
        }
    }
    let got = held(&mut joined);
    assert!(joined.counters().total().revised > 500);
    assert!(got == expected, "joined: other sums");
}

#[test]
fn an_alert_by_weight_is_recomputed_from_its_record_to_the_bit() {
    let s = sample(3, 2400, tiers, overdone_by_half, 22);
    let mut engine = Engine::new(plan(false));
    (0..2400).for_each(|i| observe(&mut engine, &s, i, false));
    let changes = engine.finish();
    for view in [View::Full, View::TopLabel] {
        let mine = |c: &&Change| matches!(c.step, Step::Stream { .. }) && c.stream.view == view;
        let change = changes.iter().find(mine).expect("an alert");
        let record = Record::of(change, "", Vec::new()).expect("its facts");
        let text = serde_json::to_string(&record).unwrap();
        let checked = Record::read(&text).unwrap().recompute();
        assert!(checked.different.is_empty(), "{view:?} {checked:?}");
        let evaluated = |p: &String| p.contains("evaluation");
        assert!(checked.equal.iter().any(evaluated), "{view:?} {checked:?}");
    }
}
