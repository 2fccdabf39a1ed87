//! Bets of the detector on clusters that are named: they keep the budget, whatever the events of a
//! cluster have in common, and find errors.

use crate::support::bars::{Bar, count, data_sets};
use trueline::stats::attribute::Attribute;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::clusters::Bucket;
use trueline::stats::fixed::Score;
use trueline::stats::null::normal_survival;
use trueline::stats::rng::Rng;
use trueline::stats::sequential::{Budget, Odds, Outcome, Rules, StreamDetector};
use trueline::stats::sums::Sums;

/// Streams of a point in CI.
const STREAMS: u64 = 400;

/// Bursts of 50 events, two a pane, that share a normal shift of latent variables.
#[derive(Clone, Copy)]
struct Stream {
    /// Share of the variance that a burst has in common.
    correlation: f64,
    /// The shift raises high scores and lowers low ones: it cancels in the total of a burst.
    cancels: bool,
    /// Panes before the first burst: until then events are independent.
    calm: i64,
    panes: i64,
    /// Bursts take turns in so many names; 0: each has its own.
    names: i64,
    /// Outcomes are those of log-odds divided by this.
    temperature: f64,
}

const BURSTS: Stream = Stream {
    correlation: 0.1,
    cancels: false,
    calm: 0,
    panes: 500,
    names: 0,
    temperature: 1.0,
};

/// Number of events until the first alarm, if there is one.
fn alarmed(seed: u64, of: Stream, budget: Budget, told: bool) -> Option<u64> {
    let (mut rng, plain) = (Rng::new(seed), Grid::new(Axis::Linear, 10));
    let grid = if told { plain.clustered() } else { plain };
    let odds = Odds::new(grid, 0.05);
    let rules = Rules {
        budget,
        ..Rules::default()
    };
    let (mut detector, mut events) = (StreamDetector::default(), 0);
    (0..of.panes).find_map(|pane| {
        let mut sums = Sums::new(grid);
        for burst in 2 * pane..2 * pane + 2 {
            let shared = rng.normal();
            let name = burst.checked_rem(of.names).unwrap_or(burst);
            let attribute = match told {
                true => Attribute::Cluster(Bucket::of(&name.to_le_bytes())),
                false => Attribute::None,
            };
            let share = if pane < of.calm { 0.0 } else { of.correlation };
            for _ in 0..50 {
                let z = rng.uniform();
                let sign = if of.cancels && z < 0.5 { -1.0 } else { 1.0 };
                let latent = share.sqrt() * sign * shared + (1.0 - share).sqrt() * rng.normal();
                let odds = (z / (1.0 - z)).powf(1.0 / of.temperature);
                let y = normal_survival(latent) < odds / (1.0 + odds);
                let z = Score::new(z).expect("a score");
                sums.observe_with(z, y, attribute).expect("few events");
            }
        }
        events += sums.n();
        let span = (60_000 * pane, 60_000 * (pane + 1));
        let outcome = detector.observe(&odds, &rules, &sums, span);
        (outcome == Outcome::Alarm).then_some(events)
    })
}

fn alarms(of: Stream, budget: Budget, told: bool) -> u64 {
    let n = data_sets(STREAMS);
    count(n, |seed| alarmed(seed, of, budget, told).is_some())
}

#[test]
fn calibrated_streams_keep_their_budget_whatever_a_cluster_has_in_common() {
    let ever = Budget::Ever { probability: 0.05 };
    let bar = Bar::new(data_sets(STREAMS), 0.0..=0.05, &[0.15]);
    let cases = [
        ("shifts", BURSTS),
        (
            "shifts that cancel",
            Stream {
                cancels: true,
                ..BURSTS
            },
        ),
        (
            "strong shifts that cancel",
            Stream {
                cancels: true,
                correlation: 0.3,
                ..BURSTS
            },
        ),
        (
            "bursts after a calm",
            Stream {
                calm: 500,
                panes: 1000,
                ..BURSTS
            },
        ),
        (
            "14 names",
            Stream {
                names: 14,
                correlation: 0.3,
                ..BURSTS
            },
        ),
    ];
    for (name, of) in cases {
        bar.assert(name, alarms(of, ever, true));
    }
    bar.refuse("clusters without names", alarms(BURSTS, ever, false));
}

/// Over these 500 minutes the default budget of one stream, one alarm in 30 days, allows one alarm
/// of 86 streams.
#[test]
fn a_budget_by_time_is_kept_too() {
    let bar = Bar::new(data_sets(STREAMS), 0.0..=0.0116, &[0.06]);
    let cancels = Stream {
        cancels: true,
        ..BURSTS
    };
    bar.assert("shifts", alarms(BURSTS, Budget::default(), true));
    bar.assert(
        "shifts that cancel",
        alarms(cancels, Budget::default(), true),
    );
}

#[test]
fn errors_are_found_in_bursts_and_nothing_is_staked_on_few_clusters() {
    let sharp = Stream {
        temperature: 1.5,
        panes: 50,
        ..BURSTS
    };
    let n = data_sets(STREAMS);
    let bar = Bar::new(n, 0.95..=1.0, &[0.85]);
    bar.assert(
        "found in 5000 events",
        alarms(sharp, Budget::default(), true),
    );
    let few = Stream { names: 9, ..sharp };
    assert_eq!(alarms(few, Budget::default(), true), 0);
}
