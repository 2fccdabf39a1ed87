//! False alarms on calibrated streams of 10⁵ events, four laws of scores. Beside them in the same engine, on the same
//! events: T-Cal at level 0.05 on windows of 1000 events that slide by 500, which is what a monitor does that tests windows.
//!
//! Bars: n/A of the budget, and for a fleet what the ledger says is to be expected, each plus two standard errors.

use crate::feed::{PANE_MS, Stream, Truth, alarms, event, plan};
use crate::streams::{LAWS, each, runs, score};
use trueline::judge::{Step, Verdict};
use trueline::monitor::Engine;
use trueline::stats::rng::Rng;

const EVENTS: i64 = 100_000;
const PANE: i64 = 500;

#[test]
fn calibrated_streams_alarm_no_more_often_than_promised_where_repeated_tests_nearly_always_do() {
    let runs = runs(16);
    let bound = 0.05;
    for (name, law) in LAWS {
        let all = each(runs, |seed| {
            let mut engine = Engine::new(plan("2000000 events", 0.0, 1000));
            let mut stream = Stream::new(4000 + seed, law, PANE);
            let (mut alarmed, mut naive) = (false, false);
            for _ in 0..EVENTS / PANE {
                let changes = stream.feed(&mut engine, Truth::Calibrated);
                alarmed |= alarms(&changes).next().is_some();
                naive |= changes.iter().any(|c| {
                    matches!(
                        c.step,
                        Step::Verdict {
                            to: Verdict::Miscalibrated,
                            ..
                        }
                    )
                });
            }
            let ledger = engine.ledger();
            assert!(ledger[0].expected_false_alarms() <= bound);
            assert_eq!(ledger[0].alarms > 0, alarmed);
            (alarmed, naive)
        });
        let count = |of: fn(&(bool, bool)) -> bool| all.iter().filter(|a| of(a)).count();
        let (alarmed, naive) = (count(|a| a.0), count(|a| a.1));
        let n = runs as f64;
        let share = alarmed as f64 / n;
        let error = (bound * (1.0 - bound) / n).sqrt();
        println!(
            "{name}: detector {alarmed} of {runs} ({share:.4}, bound {bound}), repeated T-Cal {naive} of {runs} ({:.4})",
            naive as f64 / n
        );
        assert!(share <= bound + 2.0 * error, "{name}: seeds 4000 on");
        assert!(2 * naive > all.len(), "{name}: the warning is out of date");
    }
}

/// Twenty streams under one budget by time: the ledger says how many false alarms to expect of all of them, and
/// that is what the mean number stays below.
#[test]
fn a_calibrated_fleet_alarms_no_more_often_than_its_ledger_says() {
    let runs = runs(6).div_ceil(2);
    let (streams, panes, pane) = (20i64, 200i64, 100i64);
    let all = each(runs, |seed| {
        let mut engine = Engine::new(plan("1 per 1000s", 0.0, u64::MAX));
        let mut rng = Rng::new(8000 + seed);
        let mut offset = 0;
        for i in 0..panes * pane {
            let time_ms = crate::feed::BEGIN_MS + i * PANE_MS / pane;
            for s in 0..streams {
                let z = score(LAWS[s as usize % 4].1, &mut rng);
                let y = rng.uniform() < z;
                event(
                    &mut engine,
                    &format!("s={s}"),
                    offset,
                    time_ms,
                    (z, Some(y)),
                );
                offset += 1;
            }
        }
        engine.finish();
        let ledger = engine.ledger();
        assert!(ledger[0].share <= 1.0);
        (ledger[0].expected_false_alarms(), ledger[0].alarms)
    });
    let n = runs as f64;
    let expected = all.iter().map(|a| a.0).sum::<f64>() / n;
    let raised = all.iter().map(|a| a.1).sum::<u64>() as f64 / n;
    let error = (expected / n).sqrt();
    println!(
        "fleet of {streams}: {raised:.3} false alarms a run, at most {expected:.3} expected by the ledger ({runs} runs)"
    );
    assert!(expected <= 2.0, "2000 s of a budget of one in 1000 s");
    assert!(raised <= expected + 2.0 * error, "seeds 8000 on");
}
