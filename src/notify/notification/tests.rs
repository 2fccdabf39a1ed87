use super::*;
use crate::alert::Alert;
use crate::judge::{Detector, DetectorOptions};
use crate::notify::grouping::GroupBy;
use crate::notify::slack;
use crate::notify::tests::options;
use crate::stats::axis::{Axis, Grid};
use crate::stats::fixed::Score;
use crate::stats::sequential::Budget;
use crate::stats::sums::Sums;
use crate::stats::view::View;
use std::sync::Arc;

#[test]
fn a_stream_whose_numbers_were_withdrawn_is_no_young_stream() {
    let id = StreamId {
        model: "fraud".to_owned(),
        version: "3".to_owned(),
        segment: String::new(),
        view: View::Binary,
    };
    let said = |verdict: Verdict| {
        let facts = Facts {
            alert: Alert::default(),
            window: WindowReport {
                verdict,
                n: 12,
                ..WindowReport::blank("5m")
            },
            detector: None,
            evidence: None,
        };
        let group = GroupBy::default().group_of(&id);
        let links = Links {
            page: String::new(),
            runbook: String::new(),
        };
        let (begun, end) = ((5, Severity::Warn), (10, ""));
        let ended = Notification::ended(&group, begun, (&id, &facts), end, links);
        assert_eq!(ended.what, NOTHING_KNOWN);
        let message = slack::message(&ended, &options(&[]).texts);
        let field = message["attachments"][0]["fields"][2]["value"].as_str();
        let words = field.expect("a text").to_owned();
        assert_eq!(ended.evidence, format!("{words} (n = 12 over 5m)"));
        words
    };
    let young = said(Verdict::Undecided(Undecided::Immature));
    assert_eq!(young, "no window has a verdict yet");
    // It may have had verdicts, while there were more.
    let few = said(Verdict::Undecided(Undecided::TooFew));
    assert_eq!(few, "no window has enough events for a verdict");
    // The last two as after a restart that leaves too few panes.
    let judged = [
        Verdict::Undecided(Undecided::Stale),
        Verdict::Undecided(Undecided::Stalled),
        Verdict::Miscalibrated,
        Verdict::Calibrated,
    ];
    for verdict in judged {
        assert_eq!(said(verdict), "no window has numbers now");
    }
}

#[test]
fn an_end_says_that_the_detector_is_on_hold_and_that_a_window_still_shows_the_error() {
    let grid = Grid::new(Axis::Linear, 4);
    let options = DetectorOptions::alone(Budget::default(), 0.05);
    let mut detector = Detector::new(options.odds(grid), options, 1.0);
    let mut pane = Sums::new(grid);
    let score = Score::new(0.5).expect("a score");
    pane.observe(score, true).expect("room");
    detector.observe(&pane, (0, 60_000));
    let watches = detector.report().expect("a pane was shown");
    let holds = DetectorReport {
        held_ms: Some(0),
        ..watches.clone()
    };
    let said = |state, verdict, detector: Option<&DetectorReport>| {
        reason(&Facts {
            alert: Alert {
                state,
                ..Alert::default()
            },
            window: WindowReport {
                verdict,
                ..WindowReport::blank("5m")
            },
            detector: detector.cloned().map(Arc::new),
            evidence: None,
        })
    };
    use AlertState::{Inactive, Resolved};
    use Verdict::{Calibrated, Miscalibrated};
    let held = said(Inactive, Miscalibrated, Some(&holds));
    assert_eq!(held, format!("the detector is on hold: {HELD}"));
    assert_eq!(said(Inactive, Miscalibrated, Some(&watches)), NOTHING_KNOWN);
    let shows = said(Resolved, Miscalibrated, Some(&watches));
    assert_eq!(
        shows,
        "the detector is clear; the error still shows over 5m"
    );
    for well in [Some(&watches), None] {
        assert_eq!(said(Resolved, Calibrated, well), WELL);
    }
}
