//! Late outcomes revise every pane that holds their prediction, exactly, and cells that are capped
//! are counted.

use super::{
    CLASSES, Feed, MATURITY_MS, Record, VECTORS, join, outcome, panes, plan, rows, take, views,
    whole, wide, windows,
};
use crate::support::random::shuffle;
use trueline::collect::join::{Missing, Repeated};
use trueline::judge::{Undecided, Verdict};
use trueline::stats::rng::Rng;
use trueline::stats::view::View;

#[test]
fn late_outcomes_revise_every_pane_that_holds_their_prediction_exactly() {
    for (seed, missing) in [
        (1, Missing::Drop),
        (2, Missing::Class(0)),
        (3, Missing::Drop),
        (4, Missing::Class(3)),
    ] {
        let rows = rows(1500, seed);
        let expected = whole(&rows);
        let mut rng = Rng::new(seed);
        let revising = join(missing, Repeated::Last, true);
        let mut feed = Feed::new(plan(&views(), vec![revising], 0));
        let mut late = Vec::new();
        for row in &rows {
            take(&mut feed, &Record::Prediction(row.clone()));
            match rng.uniform() {
                // Another class before the one that holds, in time or not.
                u if u < 0.2 => {
                    take(
                        &mut feed,
                        &Record::Outcome {
                            id: row.id,
                            time_ms: row.time_ms,
                            class: (row.y + 1) % CLASSES as u32,
                        },
                    );
                    late.push(outcome(row, 2 * MATURITY_MS));
                }
                u if u < 0.5 => late.push(outcome(row, 2 * MATURITY_MS)),
                _ => {
                    take(&mut feed, &outcome(row, 1000));
                }
            }
        }
        shuffle(&mut late, &mut rng);
        for record in &late {
            take(&mut feed, record);
            if rng.uniform() < 0.02 {
                feed.restart();
            }
        }
        feed.engine.finish();
        // All is there, but windows of the narrow ladder were trimmed as they slid; the wide one
        // holds all.
        assert!(
            wide(panes(feed.engine.monitor())) == wide(panes(expected.monitor())),
            "{missing:?}"
        );
        let kernel = windows(feed.engine.monitor(), View::Kernel)[1]
            .kernel()
            .cloned()
            .unwrap();
        assert!(kernel.blocks_outdated > 200 && kernel.blocks.len() == 2);
        assert!(feed.engine.counters().total().revised > 200);
        for version in feed.engine.snapshot().vectors {
            for view in version.views {
                for pane in &view.judge.rings[1].panes {
                    let open: u64 = pane.unlabelled.dropped().iter().sum();
                    let implied: u64 = pane.unlabelled.implied().iter().sum();
                    assert_eq!(open + implied, 0);
                }
            }
        }
    }
}

#[test]
fn cells_that_are_capped_are_counted_and_leave_joined_windows_without_a_verdict_too() {
    let rows = rows(1500, 5);
    let revising = join(Missing::Class(0), Repeated::First, true);
    let mut capped = plan(&views(), vec![revising], 0);
    capped.caps.vector_cells_max = 3;
    let mut feed = Feed::new(capped);
    for row in &rows {
        take(&mut feed, &Record::Prediction(row.clone()));
    }
    for row in &rows {
        take(&mut feed, &outcome(row, 3 * MATURITY_MS));
    }
    feed.engine.finish();
    let all = feed.engine.counters().total();
    assert!(all.no_cell > 0 && all.revised > 100);
    for view in VECTORS {
        let w = windows(feed.engine.monitor(), view)[1].clone();
        let capped = w.verdict == Verdict::Undecided(Undecided::Capacity);
        // A sample has no cells.
        assert_eq!(capped, view != View::Kernel, "{view}");
    }
}
