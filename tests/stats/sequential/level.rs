//! False alarms on calibrated streams of 10⁵ events, four laws of scores and one that drifts; beside them those of T-Cal
//! repeated at level 0.05 on a window of 1000 events, every 500.
//!
//! Bars: the bound n/A of the budget, and the probability of `ever`, each plus two standard errors of the bound.
//! `TRUELINE_DATA_SETS=400` runs it at the size of the issue; CI runs fewer streams.

use crate::support::streams::{LAWS, Law, each, grid, pane, runs};
use trueline::stats::evaluation::{DiscreteMode, Options, evaluate};
use trueline::stats::rng::Rng;
use trueline::stats::sequential::{Budget, Odds, Outcome, Rules, Watch};

const EVENTS: u64 = 100_000;
const PANE: usize = 500;

/// Whether each budget raised an alarm.
fn alarms(odds: &Odds, budgets: &[Budget], seed: u64, law: impl Fn(u64) -> Law) -> Vec<bool> {
    let mut rng = Rng::new(1000 + seed);
    let mut watches = vec![Watch::default(); budgets.len()];
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
                assert!(watch.alarm().is_some());
            }
        }
    }
    watches.iter().map(|w| w.alarms() > 0).collect()
}

#[test]
fn calibrated_streams_raise_no_more_false_alarms_than_the_budget_allows() {
    let runs = runs(40);
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
    for (name, halves) in laws {
        let all = each(runs, |seed| {
            alarms(&odds, &only, seed, |half| halves[half as usize])
        });
        for (i, (budget, bound)) in budgets.iter().enumerate() {
            let count = all.iter().filter(|a| a[i]).count();
            let share = count as f64 / runs as f64;
            let error = (bound * (1.0 - bound) / runs as f64).sqrt();
            println!("{name}, {budget}: {count} of {runs} ({share:.3}, bound {bound})");
            assert!(
                share <= bound + 2.0 * error,
                "{name}, {budget}: seeds 1000 on"
            );
        }
    }
}

#[test]
fn calibrated_streams_do_raise_false_alarms_under_repeated_t_cal() {
    let runs = runs(8);
    let options = Options {
        discrete: DiscreteMode::Off,
        ..Options::default()
    };
    for (name, law) in LAWS {
        let all = each(runs, |seed| {
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
        let count = all.iter().filter(|&&a| a).count();
        println!("{name}, T-Cal at 0.05 on 1000 events every 500: {count} of {runs}");
        assert!(
            2 * count as u64 > runs,
            "{name}: the warning is out of date"
        );
    }
}
