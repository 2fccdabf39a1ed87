//! False alarms on calibrated streams of 10⁵ events, four laws of scores and one that drifts;
//! beside them those of T-Cal repeated at level 0.05 on a window of 1000 events, every 500.
//!
//! Bars: the bound n/A of the budget, or the probability of `ever`; three times as many alarms
//! would not pass. The same through the engine, law by law and with a narrower bar, is in
//! `alarms/calibrated.rs`.

use crate::support::bars::{Bar, count, data_sets, each};
use crate::support::streams::{LAWS, Law, grid, pane};
use trueline::stats::algebra::Merge;
use trueline::stats::evaluation::{DiscreteMode, Options, evaluate};
use trueline::stats::rng::Rng;
use trueline::stats::sequential::{Budget, Odds, Outcome, Rules, StreamDetector};

const EVENTS: u64 = 100_000;
const PANE: usize = 500;

/// Whether each budget raised an alarm.
fn alarms(odds: &Odds, budgets: &[Budget], seed: u64, law: impl Fn(u64) -> Law) -> Vec<bool> {
    let mut rng = Rng::new(1000 + seed);
    let mut watches = vec![StreamDetector::default(); budgets.len()];
    let panes = EVENTS / PANE as u64;
    for t in 0..panes {
        let sums = pane(&mut rng, PANE, law(t * 2 / panes), |z| z);
        for (watch, budget) in watches.iter_mut().zip(budgets) {
            let rules = Rules {
                budget: *budget,
                ..Rules::default()
            };
            let ms = 10_000 * t as i64;
            if watch.observe(odds, &rules, &sums, (ms, ms + 10_000)) == Outcome::Alarm {
                assert!(watch.alarm.is_some());
            }
        }
    }
    watches.iter().map(|w| w.alarms > 0).collect()
}

/// Streams of each law in CI; bars are of the streams of all five laws.
const STREAMS: u64 = 60;

#[test]
fn calibrated_streams_raise_no_more_false_alarms_than_the_budget_allows() {
    let streams = data_sets(STREAMS);
    let odds = Odds::new(grid(), 0.0);
    let budgets = [
        (Budget::RunLength { events: 1e6 }, 0.1),
        (Budget::RunLength { events: 2e6 }, 0.05),
        (Budget::Ever { probability: 0.05 }, 0.05),
        // 200 panes of 10 s: 2000 s of 20 000.
        (
            Budget::PerTime {
                alarms: 1.0,
                seconds: 20_000.0,
            },
            0.1,
        ),
    ];
    let only: Vec<Budget> = budgets.iter().map(|b| b.0).collect();
    let mut laws: Vec<(&str, [Law; 2])> = LAWS.iter().map(|&(n, l)| (n, [l, l])).collect();
    laws.push(("uniform, then beta(5,.5)", [LAWS[0].1, LAWS[2].1]));
    let mut alarmed = [0; 4];
    for (name, halves) in &laws {
        let all = each(streams, |seed| {
            alarms(&odds, &only, seed, |half| halves[half as usize])
        });
        let of = |i: usize| all.iter().filter(|a| a[i]).count() as u64;
        let counts = [0, 1, 2, 3].map(of);
        println!("{name}: {counts:?} of {streams}");
        alarmed
            .iter_mut()
            .zip(counts)
            .for_each(|(sum, n)| *sum += n);
    }
    let mut failures = Vec::new();
    for ((budget, bound), alarmed) in budgets.iter().zip(alarmed) {
        let bar = Bar::new(streams * laws.len() as u64, 0.0..=*bound, &[3.0 * bound]);
        bar.check(&format!("{budget}"), alarmed, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn repeated_t_cal_rejects_nearly_every_calibrated_stream() {
    let streams = data_sets(24);
    let bar = Bar::new(streams, 0.95..=1.0, &[0.5]);
    let options = Options {
        discrete: DiscreteMode::Off,
        ..Options::default()
    };
    let mut failures = Vec::new();
    for (name, law) in LAWS {
        let rejected = count(streams, |seed| {
            let mut rng = Rng::new(1000 + seed);
            let mut last = pane(&mut rng, PANE, law, |z| z);
            let mut looks = 1..EVENTS / PANE as u64;
            looks.any(|_| {
                let next = pane(&mut rng, PANE, law, |z| z);
                let mut window = std::mem::replace(&mut last, next);
                window.merge(&last).unwrap();
                evaluate(&window, &options).unwrap().tcal.reject
            })
        });
        bar.check(name, rejected, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Scores near 0 without a positive outcome: no bet wins or loses, and the stakes add up to twenty
/// times the threshold. That is no evidence. An error that comes afterwards is found as soon as by
/// a new stream.
#[test]
fn stakes_that_win_nothing_raise_no_alarm_and_hide_none() {
    let odds = Odds::new(grid(), 0.0);
    let rules = Rules::default();
    let day = 86_400_000;
    let mut rng = Rng::new(3);
    let mut watch = StreamDetector::default();
    let nothing = pane(&mut rng, PANE, |_| 0.0, |_| 0.0);
    for t in 0..600 {
        let outcome = watch.observe(&odds, &rules, &nothing, (t * day, (t + 1) * day));
        assert_eq!(outcome, Outcome::Quiet, "day {t}");
    }
    assert!(watch.log_worth() > rules.budget.log_threshold() + 2.0);
    let mut days_to_alarm = |mut watch: StreamDetector| {
        (600..700).find(|&t| {
            let wrong = pane(&mut rng, PANE, LAWS[0].1, |z| 0.5 + 0.6 * (z - 0.5));
            watch.observe(&odds, &rules, &wrong, (t * day, (t + 1) * day)) == Outcome::Alarm
        })
    };
    let (after, fresh) = (
        days_to_alarm(watch),
        days_to_alarm(StreamDetector::default()),
    );
    println!("day {after:?}, and {fresh:?} of a stream that is new");
    assert!(after.unwrap() <= fresh.unwrap() + 3);
}
