//! Views that come and go while predictions wait leave the others as they are.

use super::{Feed, Record, join, outcome, plan, rows, take, windows};
use trueline::collect::join::{Missing, Repeated};
use trueline::stats::view::View;

#[test]
fn views_that_come_and_go_while_predictions_wait_leave_the_others_as_they_are() {
    let rows = rows(2000, 8);
    let joined = || vec![join(Missing::Drop, Repeated::First, false)];
    let with = |views: &[View]| plan(views, joined(), 0);
    let scalars = [View::TopLabel];
    let mut feed = Feed::new(with(&scalars));
    let steps: [&[View]; 6] = [
        &[View::TopLabel, View::TopK(2)],
        &[View::TopLabel, View::Full, View::TopK(2), View::Kernel],
        // As many entries as before of other things: four ranked probabilities, or three of a whole
        // vector and its rank.
        &[View::TopLabel, View::Kernel],
        &[View::TopLabel, View::Full],
        // Other views of single scores: all starts empty.
        &[View::TopLabel, View::Class(1), View::TopK(3)],
        &[View::TopLabel, View::TopK(2), View::Kernel],
    ];
    let (mut kept, mut lost) = (Vec::new(), 0);
    for (i, row) in rows.iter().enumerate() {
        take(&mut feed, &Record::Prediction(row.clone()));
        take(&mut feed, &outcome(row, 0));
        let step = i / 250;
        if i % 250 == 249 && step < steps.len() {
            let before = feed.engine.counters().total();
            feed.restart_under(with(steps[step]));
            let after = feed.engine.counters().total();
            kept.push(after.pending == before.pending);
            lost += after.expired - before.expired;
            // And once more under the same, from the journal that has both.
            let held = feed.engine.shard().retained();
            feed.restart();
            assert_eq!(feed.engine.shard().retained(), held, "step {step}");
            assert_eq!(feed.engine.counters().total().pending, after.pending);
        }
    }
    assert_eq!(kept, [true, true, true, true, false, false]);
    feed.engine.finish();
    let all = feed.engine.counters().total();
    assert_eq!(all.records, all.disposed());
    // Each lasts a minute and a maturity.
    assert!(lost > 0 && all.expired == lost && all.pending == 0);
    // What waited when a view was asked for did not have what it needs.
    let n = windows(feed.engine.monitor(), View::TopK(2))[1].n;
    assert_eq!(windows(feed.engine.monitor(), View::Kernel)[1].n, n);
    let scalar = feed
        .engine
        .reports()
        .filter(|r| r.id.view == View::TopLabel);
    let scalar: u64 = scalar.map(|r| r.windows[1].n).sum();
    assert!(n > 0 && n <= scalar, "{n} {scalar}");
}
