use super::*;
use crate::alert::Alert;
use crate::notify::grouping::GroupBy;
use crate::notify::slack;
use crate::notify::tests::options;
use crate::stats::view::View;

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
    for why in [Undecided::TooFew, Undecided::Immature] {
        assert_eq!(said(Verdict::Undecided(why)), "no window has a verdict yet");
    }
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
