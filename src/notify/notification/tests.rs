use super::*;
use crate::alert::{Alert, AlertState};
use crate::judge::alarm::sentence;
use crate::judge::detector::{Hold, HoldReason};
use crate::judge::{Detector, DetectorOptions};
use crate::notify::grouping::GroupBy;
use crate::notify::slack;
use crate::notify::tests::{options, stream};
use crate::stats::axis::{Axis, Grid};
use crate::stats::evaluation::{Options as EvaluationOptions, evaluate_scores};
use crate::stats::fixed::Score;
use crate::stats::sequential::Budget;
use crate::stats::sums::Sums;
use std::sync::Arc;

const NOTHING_KNOWN: &str = "no verdict is possible any more";

#[test]
fn a_stream_whose_numbers_were_withdrawn_is_no_young_stream() {
    let id = stream("fraud", "3", "");
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
        let stream = StreamFacts {
            id: &id,
            facts: &facts,
        };
        let links = Links::default();
        let ended = Notification::ended(&group, 5, Severity::Warn, stream, 10, "", links);
        assert!(ended.what.starts_with(NOTHING_KNOWN));
        let message = slack::message(&ended, &options(&[]).texts);
        let field = message["attachments"][0]["fields"][2]["value"].as_str();
        let words = field.expect("a text").to_owned();
        assert_eq!(ended.evidence, format!("{words} (n = 12 over 5m)"));
        words
    };
    let young = said(Verdict::Undecided(Undecided::Immature));
    assert_eq!(young, "no window has a verdict yet");
    // It may have had verdicts while there were more events.
    let few = said(Verdict::Undecided(Undecided::TooFew));
    assert_eq!(few, "no window has enough events for a verdict");
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
fn numbers_of_a_later_moment_than_the_change_say_so() {
    let id = stream("fraud", "3", "");
    let facts = Facts {
        alert: Alert::default(),
        window: WindowReport {
            end_ms: 1_700_000_000_000,
            ..WindowReport::blank("5m")
        },
        detector: None,
        evidence: None,
    };
    let said = |at_ms: i64, own: bool| {
        let (group, links) = (GroupBy::default().group_of(&id), Links::default());
        let stream = StreamFacts {
            id: &id,
            facts: &facts,
        };
        let fires = Notification::firing(&group, 5, Severity::Page, stream, at_ms, own, links);
        assert_eq!(fires.window_end_ms, Some(1_700_000_000_000));
        fires.evidence
    };
    let later = "; the numbers are those of 2023-11-14T22:13:20Z";
    assert!(said(1_699_999_999_000, false).ends_with(later));
    // Facts from its own change are from the time of that change.
    assert!(!said(1_699_999_999_000, true).contains("the numbers are those"));
    assert!(!said(1_700_000_000_000, false).contains("the numbers are those"));
}

/// 100,000 events with a score of 1 %, which happen twice as often.
#[test]
fn the_error_of_rare_events_is_the_ratio_that_decided() {
    let sample: Vec<(f64, bool)> = (0..100_000).map(|i| (0.01, i % 50 == 0)).collect();
    let e = evaluate_scores(&sample, &EvaluationOptions::default()).expect("events");
    let id = stream("fraud", "3", "");
    let facts = Facts {
        alert: Alert::default(),
        window: WindowReport {
            verdict: Verdict::Miscalibrated,
            n: e.n,
            numbers: Some(Numbers::Scores(Arc::new(e))),
            ..WindowReport::blank("7d")
        },
        detector: None,
        evidence: None,
    };
    let (group, links) = (GroupBy::default().group_of(&id), Links::default());
    let stream = StreamFacts {
        id: &id,
        facts: &facts,
    };
    let fires = Notification::firing(&group, 5, Severity::Page, stream, 10, true, links);
    let said = "observed/expected 2.00 (90 % interval 1.93 to 2.07) over 7d, n = 100000; tolerated 0.83 to 1.20";
    assert_eq!(fires.evidence, said);
    let message = slack::message(&fires, &options(&[]).texts);
    let field = &message["attachments"][0]["fields"][2];
    assert_eq!(field["title"], "observed/expected");
    assert_eq!(field["value"], "2.00 [1.93, 2.07], tolerated 0.83 to 1.20");
}

#[test]
fn an_end_says_that_the_detector_is_on_hold_and_that_a_window_still_shows_the_error() {
    const HOLD: Hold = Hold {
        since_ms: 0,
        why: HoldReason::MaturityTooShort,
    };
    use AlertState::{Inactive, Resolved};
    use Verdict::{Calibrated, Miscalibrated};
    let grid = Grid::new(Axis::Linear, 4);
    let options = DetectorOptions::alone(Budget::default(), 0.05);
    let mut detector = Detector::new(options.odds(grid), options, 1.0);
    let mut pane = Sums::new(grid);
    let score = Score::new(0.5).expect("a score");
    pane.observe(score, true).expect("room");
    detector.observe(&pane, (0, 60_000));
    let watches = detector.report().expect("a pane was shown");
    let holds = DetectorReport {
        hold: Some(HOLD),
        ..watches.clone()
    };
    let (id, group) = (stream("fraud", "3", ""), GroupBy::default());
    let said = |state, verdict, detector: Option<&DetectorReport>| {
        let facts = Facts {
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
        };
        let (of, links) = (group.group_of(&id), Links::default());
        let stream = StreamFacts {
            id: &id,
            facts: &facts,
        };
        let ended = Notification::ended(&of, 5, Severity::Warn, stream, 10, "", links);
        // Log, history, records and pages show the sentence.
        let fired = Alert {
            state: AlertState::Firing,
            ..Alert::default()
        };
        let logged = sentence(&id, &fired, &facts.alert, None, Some(&facts));
        let is = if state == Resolved {
            "is resolved"
        } else {
            "ends"
        };
        assert_eq!(logged, format!("alert of {id} {is}: {}", ended.what));
        ended.what
    };
    let held = said(Inactive, Miscalibrated, Some(&holds));
    let why = HOLD.why.words();
    assert_eq!(held, format!("the detector is on hold: {why}"));
    assert!(said(Inactive, Miscalibrated, Some(&watches)).starts_with(NOTHING_KNOWN));
    let shows = said(Resolved, Miscalibrated, Some(&watches));
    assert_eq!(
        shows,
        "the detector is clear; the error still shows over 5m"
    );
    for well in [Some(&watches), None] {
        assert_eq!(said(Resolved, Calibrated, well), "calibrated again");
    }
}
