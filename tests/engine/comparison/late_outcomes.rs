//! Two versions score one id, and its outcome comes late and in a record of its own: every order
//! gives the same comparison.

use super::{BEGIN_MS, PANE_MS, Record, plan, said, worse};
use crate::support::disk::Feed;
use crate::support::records::{EVENT, JOIN, outcome_record};
use std::collections::{BTreeMap, BTreeSet};
use trueline::collect::Event;
use trueline::collect::join::{JoinPlan, Missing};
use trueline::monitor::RecordSink;
use trueline::stats::rng::Rng;
use trueline::stats::sequential::Compared;
use trueline::stats::sums::Sums;
use trueline::stats::view::{Outcome, Prediction};

/// Predictions of two versions and one outcome for both.
#[derive(Debug, Clone, Copy)]
enum Late {
    Prediction(Record),
    Outcome {
        id: u32,
        time_ms: i64,
        happened: bool,
    },
}

/// n and positives by version, and what is said of the versions.
type End = (
    Vec<(String, u64, u64)>,
    BTreeMap<(String, String), Compared>,
);

fn take(feed: &mut Feed, late: &Late) {
    match *late {
        Late::Prediction(r) => {
            let event = Event {
                model: "m",
                version: r.version,
                id: &r.id.to_le_bytes(),
                time_ms: r.time_ms,
                prediction: Prediction::Score(r.score),
                ..EVENT
            };
            let origin = feed.next(0);
            feed.engine.observe(origin, &event);
        }
        Late::Outcome {
            id,
            time_ms,
            happened,
        } => {
            let (id, outcome) = (id.to_le_bytes(), Outcome::Binary(happened));
            let origin = feed.next(1);
            feed.engine
                .observe_outcome(origin, &outcome_record(&id, time_ms, outcome));
        }
    }
}

/// n and positives of each version's longest window, and the comparisons.
fn end(feed: &mut Feed) -> End {
    feed.engine.finish();
    feed.conserved();
    for (source, c) in feed.engine.counters().sources() {
        assert_eq!(c.conflict, 0, "two versions of one id of {source}: {c:?}");
    }
    let totals = feed
        .engine
        .monitor()
        .totals()
        .filter(|(_, w, _)| w.window == "10m");
    let positives = |s: &Sums| s.occupied().map(|(_, c)| c.y).sum();
    let totals = totals.map(|(id, _, s)| (id.version.clone(), s.n(), positives(&s)));
    let mut totals: Vec<_> = totals.collect();
    // Slots are given in the order of arrival.
    totals.sort();
    (totals, said(&feed.engine))
}

fn join(missing: Missing, revise: bool) -> Vec<JoinPlan> {
    vec![JoinPlan {
        maturity_ms: 30_000,
        missing,
        revise,
        ..JOIN
    }]
}

/// Outcomes come once an id, for both versions: some before their predictions, many between the
/// dues of the two, some after.
fn late(n: u32, seed: u64) -> Vec<Late> {
    let mut rng = Rng::new(seed);
    let mut all = Vec::new();
    for id in 0..n {
        let at = BEGIN_MS + i64::from(id) * 100;
        let (p, champion, challenger) = worse(&mut rng);
        for (version, score) in [("1", champion), ("2", challenger)] {
            all.push(Late::Prediction(Record {
                id,
                version,
                time_ms: at + (rng.uniform() * 8_000.0) as i64,
                score,
                happened: false,
            }));
        }
        if rng.uniform() < 0.9 {
            all.push(Late::Outcome {
                id,
                time_ms: at + (rng.uniform() * 60_000.0) as i64,
                happened: rng.uniform() < p,
            });
        }
    }
    all
}

fn shuffled(all: &[Late], seed: u64) -> Vec<Late> {
    let mut rng = Rng::new(seed);
    let time = |l: &Late| match *l {
        Late::Prediction(r) => r.time_ms,
        Late::Outcome { time_ms, .. } => time_ms,
    };
    let mut keyed: Vec<(i64, Late)> = all
        .iter()
        .map(|l| (time(l) + (rng.uniform() * 9_000.0) as i64, *l))
        .collect();
    keyed.sort_by_key(|(at, _)| *at);
    keyed.into_iter().map(|(_, l)| l).collect()
}

/// By version: predictions whose outcome happened by the end of their maturity, with what is
/// implied.
fn on_time(all: &[Late], missing: Missing) -> BTreeMap<(u32, &'static str), (Record, bool)> {
    let mut outcomes = BTreeMap::new();
    for l in all {
        if let Late::Outcome {
            id,
            time_ms,
            happened,
        } = *l
        {
            outcomes.insert(id, (time_ms, happened));
        }
    }
    let mut found = BTreeMap::new();
    for l in all {
        let Late::Prediction(r) = *l else { continue };
        let due = r.time_ms - r.time_ms.rem_euclid(PANE_MS) + PANE_MS + 30_000;
        let told = outcomes.get(&r.id).filter(|(at, _)| *at <= due);
        match (told, missing) {
            (Some(&(_, happened)), _) => found.insert((r.id, r.version), (r, happened)),
            (None, Missing::Class(k)) => found.insert((r.id, r.version), (r, k == 1)),
            (None, Missing::Drop) => None,
        };
    }
    found
}

/// Predictions whose outcome happened after their maturity, and is not what was implied.
fn too_late(all: &[Late], missing: Missing) -> u64 {
    let found = on_time(all, Missing::Drop);
    let outcome = |l: &Late| match *l {
        Late::Outcome { id, happened, .. } => Some((id, happened)),
        Late::Prediction(_) => None,
    };
    let outcomes: BTreeMap<u32, bool> = all.iter().filter_map(outcome).collect();
    let late = |l: &&Late| match **l {
        Late::Prediction(r) if !found.contains_key(&(r.id, r.version)) => {
            let happened = outcomes.get(&r.id).map(|y| u32::from(*y));
            happened.is_some() && happened != missing.class()
        }
        _ => false,
    };
    all.iter().filter(late).count() as u64
}

#[test]
fn two_versions_of_one_id_get_its_late_outcome_in_whatever_order_they_come() {
    let all = late(4_000, 3);
    for (missing, revise) in [
        (Missing::Drop, false),
        (Missing::Class(0), true),
        (Missing::Drop, true),
    ] {
        let mut straight = Feed::new(plan(None, 1_000_000, join(missing, revise)));
        shuffled(&all, 1)
            .iter()
            .for_each(|l| take(&mut straight, l));
        let expected = end(&mut straight);
        for seed in [2, 3, 4] {
            let mut feed = Feed::new(plan(None, 1_000_000, join(missing, revise)));
            for (i, l) in shuffled(&all, seed).iter().enumerate() {
                take(&mut feed, l);
                if i % 2_501 == 2_500 {
                    feed.restart();
                }
            }
            assert_eq!(
                end(&mut feed),
                expected,
                "{missing:?} revise {revise} seed {seed}"
            );
        }
        // From scratch: pairs are of what had its outcome, or was implied it, at maturity.
        let found = on_time(&all, missing);
        let ids: BTreeSet<u32> = found.keys().map(|(id, _)| *id).collect();
        let same = |id: &&u32| {
            let of = |v| found.get(&(**id, v)).map(|(_, y)| *y);
            of("1").is_some() && of("1") == of("2")
        };
        let pairs = ids.iter().filter(same).count() as u64;
        let compared = expected.1.values().next().expect("a comparison");
        assert_eq!((expected.1.len(), compared.n), (1, pairs), "{missing:?}");
        assert!(pairs > 1_000, "the test bites: {pairs}");
        let (_, c, _) = straight.engine.pair_counts().remove(0);
        // Pairs were made of what was known at maturity, whatever came later; that is counted.
        let want = if revise { too_late(&all, missing) } else { 0 };
        assert_eq!(c.unrevised, want, "{c:?}");
        assert_eq!(revise, want > 500);
        if missing == Missing::Class(0) {
            assert!(c.contradicted > 20, "between the two dues: {c:?}");
        }
    }
}
