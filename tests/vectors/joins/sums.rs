//! Joined vectors have the sums and verdicts of the stream that was never joined, whatever comes
//! again, spills or restarts.

use super::{
    CLASSES, Feed, MATURITY_MS, Record, SPAN_MS, VECTORS, join, observe, outcome, panes, plan,
    rows, take, views, whole, windows,
};
use crate::support::random::shuffle;
use crate::support::records::origin;
use std::collections::BTreeMap;
use trueline::collect::Disposition;
use trueline::collect::join::{Missing, Repeated};
use trueline::judge::WindowReport;
use trueline::monitor::Engine;
use trueline::stats::rng::Rng;
use trueline::stats::view::View;

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
            take(&mut feed, record);
            if rng.uniform() < 0.004 {
                feed.restart();
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
        let origin = origin(0, 0, offset);
        observe(&mut alone, origin, row, Some(row.y));
        told(&alone, &mut expected);
        take(&mut feed, &Record::Prediction(row.clone()));
        take(&mut feed, &outcome(row, 0));
        told(&feed.engine, &mut found);
        if rng.uniform() < 0.01 {
            feed.restart();
        }
    }
    alone.finish();
    feed.engine.finish();
    told(&alone, &mut expected);
    told(&feed.engine, &mut found);
    // What was judged at the end of input, several slides at once, was seen at the last of them
    // only.
    assert!(found.len() > 30 && found.len() <= expected.len());
    for (at, w) in &found {
        assert!(expected.get(at) == Some(w), "{at:?}");
    }
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
    let ends = [row.clone(), later, other].map(|row| take(&mut feed, &Record::Prediction(row)));
    let wanted = [
        Disposition::Pending,
        Disposition::Duplicate,
        Disposition::Conflict,
    ];
    assert_eq!(ends, wanted);
}
