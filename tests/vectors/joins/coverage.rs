//! Predictions without outcome: windows say how many, and have no verdict before their first cohort
//! or with too few.

use super::{
    Feed, MINUTE, Record, SPAN_MS, START_MS, VECTORS, join, outcome, plan, rows, take, views,
    windows,
};
use trueline::collect::join::{Missing, Repeated};
use trueline::judge::{Undecided, Verdict};
use trueline::stats::rng::Rng;
use trueline::stats::view::View;

#[test]
fn predictions_without_outcome_are_covered_or_leave_their_windows_without_a_verdict() {
    let rows = rows(2000, 7);
    for (share, missing, wanted) in [
        (0.8, Missing::Drop, None),
        (0.3, Missing::Drop, Some(Undecided::Coverage)),
        (0.3, Missing::Class(0), None),
    ] {
        let mut rng = Rng::new(9);
        let joined = join(missing, Repeated::First, false);
        let mut feed = Feed::new(plan(&views(), vec![joined], 0));
        let (mut came, mut inside) = (0, 0);
        let from_ms = START_MS + SPAN_MS - 6 * MINUTE;
        for row in &rows {
            take(&mut feed, &Record::Prediction(row.clone()));
            let comes = rng.uniform() < share;
            if comes {
                take(&mut feed, &outcome(row, 0));
            }
            if row.time_ms >= from_ms {
                (came, inside) = (came + u64::from(comes), inside + 1);
            }
        }
        feed.engine.tick(START_MS);
        let dues = feed.engine.reports().map(|r| r.due_ms);
        assert!(dues.into_iter().all(|due| due.is_some()));
        feed.engine.finish();
        feed.restart();
        for view in VECTORS {
            let w = windows(feed.engine.monitor(), view)[0].clone();
            let coverage = w.coverage.clone().unwrap();
            assert_eq!((coverage.predictions, coverage.labelled), (inside, came));
            match wanted {
                Some(why) => assert_eq!(w.verdict, Verdict::Undecided(why)),
                None => assert!(w.numbers.is_some(), "{view} {:?}", w.verdict),
            }
        }
        // As the scalar views have it.
        let scalar = feed.engine.reports().find(|r| r.id.view == View::TopLabel);
        assert!(scalar.unwrap().windows[0].coverage.is_some());
    }
}

#[test]
fn a_vector_view_is_immature_until_its_first_cohort_is() {
    let joined = join(Missing::Drop, Repeated::First, false);
    let mut feed = Feed::new(plan(&views(), vec![joined], 0));
    for row in rows(200, 3).iter().take(10) {
        take(&mut feed, &Record::Prediction(row.clone()));
        take(&mut feed, &outcome(row, 0));
    }
    feed.engine.tick(START_MS);
    for view in VECTORS {
        let w = windows(feed.engine.monitor(), view)[0].clone();
        assert_eq!(w.verdict, Verdict::Undecided(Undecided::Immature));
    }
    // A week of silence by the clock does not let go what is waited for.
    feed.engine.tick(START_MS + 30 * 86_400_000);
    feed.engine.tick(START_MS + 60 * 86_400_000);
    assert!(feed.engine.reports().any(|r| r.id.view == View::Full));
}
