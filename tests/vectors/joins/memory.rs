//! Pending vectors take the memory that `check` counts for them, also those of hundreds of classes.

use super::{
    Feed, MATURITY_MS, Record, SPAN_MS, join, observe, outcome, panes, plan, rows, take, windows,
};
use crate::support::random::vector;
use crate::support::records::origin;
use trueline::collect::join::{JoinPlan, Joiner, Key, Missing, NewPrediction, Repeated};
use trueline::monitor::Engine;
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::view::View;

#[test]
fn each_probability_of_a_pending_vector_takes_twelve_bytes() {
    let z = Score::new(0.25).unwrap();
    let of = |entries: usize| {
        let views: Vec<(Score, u32)> = (0..entries).map(|k| (z, k as u32)).collect();
        let mut joiner = Joiner::default();
        let plan = JoinPlan {
            pending_max: usize::MAX,
            ..join(Missing::Drop, Repeated::First, false)
        };
        for i in 0..100_000u64 {
            let time_ms = i as i64;
            let expect = NewPrediction {
                key: Key::new(None, &i.to_le_bytes()),
                model: 0,
                slot: 0,
                start_ms: time_ms - time_ms.rem_euclid(1000),
                time_ms,
                due_ms: i64::MAX,
                views: &views,
                full_vector: (0, 0),
                classes: 2,
            };
            joiner.predict(&plan, &expect, 0, 0);
        }
        joiner.take_journal(0, 0, |_| i64::MIN);
        joiner.bytes() as f64 / 1e5
    };
    let (scalar, three) = (of(1), of(4));
    println!("{scalar:.1} bytes with a view, {three:.1} with top_k:3 beside it");
    assert!(three - scalar < 36.5, "{three} {scalar}");
}

#[test]
fn pending_vectors_of_many_classes_stay_within_their_memory_and_lose_no_bit() {
    const MANY: usize = 300;
    let of = |joins, lateness_ms| {
        let mut plan = plan(&[View::TopLabel, View::Kernel], joins, lateness_ms);
        plan.models[0].classes = (0..MANY).map(|k| k.to_string()).collect();
        plan
    };
    let mut rng = Rng::new(2);
    let mut rows = rows(600, 70);
    for row in &mut rows {
        row.p = vector(&mut rng, MANY);
        row.y = (rng.uniform() * MANY as f64) as u32;
    }
    let mut alone = Engine::new(of(Vec::new(), SPAN_MS));
    for (offset, row) in (0..).zip(&rows) {
        let origin = origin(0, 0, offset);
        observe(&mut alone, origin, row, Some(row.y));
    }
    alone.finish();
    let mut joined = join(Missing::Drop, Repeated::First, true);
    joined.pending_memory = 300_000;
    let mut feed = Feed::spilling(of(vec![joined], SPAN_MS + MATURITY_MS));
    for row in &rows {
        take(&mut feed, &Record::Prediction(row.clone()));
        let (spilled, bytes) = feed.engine.shard().spilled();
        let held = feed.engine.shard().retained() - spilled;
        if row.id == 60 {
            // 12·(1 + 200) of the vector, 56 of the rest, 20 in the index, and a half more for what
            // is to come.
            println!("{} bytes each of {held}", bytes / held);
            assert!(spilled == 0 && bytes / held < 2488 * 3 / 2);
        }
        assert!(bytes <= 300_000, "{bytes}");
    }
    for row in rows.iter().rev() {
        take(&mut feed, &outcome(row, 0));
        if row.id == 300 {
            feed.restart();
        }
    }
    feed.engine.finish();
    assert!(feed.spilled > 400, "{}", feed.spilled);
    assert!(panes(feed.engine.monitor()) == panes(alone.monitor()));
    assert!(windows(feed.engine.monitor(), View::Kernel) == windows(alone.monitor(), View::Kernel));
}
