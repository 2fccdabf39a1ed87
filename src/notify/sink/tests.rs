use super::*;
use crate::alert::Severity;
use crate::notify::notification::Links;
use crate::notify::options::Kind;
use tempfile::TempDir;

fn options(name: &str, matchers: &[&str], queue_max: usize) -> SinkOptions {
    SinkOptions {
        name: name.to_owned(),
        kind: Kind::Webhook,
        address: String::new(),
        secret: None,
        authorization: None,
        ca_file: None,
        matchers: matchers
            .iter()
            .map(|m| m.parse().expect("a matcher"))
            .collect(),
        resolved: true,
        timeout: Duration::from_secs(1),
        retry_max: Duration::from_secs(1),
        resend: Duration::from_secs(1),
        queue_max,
        dry_run: false,
    }
}

fn notification(at_ms: i64, severity: Severity, was: Option<Severity>) -> Notification {
    let links = Links {
        page: String::new(),
        runbook: String::new(),
    };
    Notification {
        severity,
        was,
        ..Notification::trial(at_ms, links)
    }
}

#[test]
fn a_resolution_goes_exactly_to_the_sinks_that_were_notified_of_the_firing() {
    let pager = Sink::new(
        &options("pager", &["severity=page"], 9),
        Vec::new(),
        SinkFacts::default(),
    );
    let all = Sink::new(&options("all", &[], 9), Vec::new(), SinkFacts::default());
    let mut state = State::default();
    let mut notified = Vec::new();
    let warned = notification(1, Severity::Warn, None);
    let paged = notification(2, Severity::Page, Some(Severity::Warn));
    let calmer = notification(3, Severity::Warn, Some(Severity::Page));
    let stories = [
        vec![warned.clone(), warned.resolved(4, "well")],
        vec![
            warned.clone(),
            paged,
            calmer.clone(),
            calmer.resolved(5, "well"),
        ],
    ];
    for notification in stories.iter().flatten() {
        let wanting: Vec<&Sink> = [&pager, &all]
            .into_iter()
            .filter(|s| s.wants(notification, &state, 0))
            .collect();
        notified.push(
            wanting
                .iter()
                .map(|s| s.name.as_str())
                .collect::<Vec<_>>()
                .join(" "),
        );
        state.apply(&Entry::Queued {
            notification: Box::new(notification.clone()),
            sinks: wanting.iter().map(|s| s.name.clone()).collect(),
        });
    }
    let both = "pager all";
    assert_eq!(notified, ["all", "all", "all", both, both, both]);
}

#[test]
fn a_full_queue_drops_the_newest_and_counts_it() {
    let first = notification(1, Severity::Warn, None);
    let sink = Sink::new(&options("s", &[], 2), vec![first], SinkFacts::default());
    assert!(sink.push(notification(2, Severity::Warn, None)));
    assert!(!sink.push(notification(3, Severity::Warn, None)));
    let counts = sink.facts();
    assert_eq!((counts.queued, counts.dropped), (2, 1));
    let Next::Send(first) = sink.next(None) else {
        panic!("a notification is next");
    };
    assert_eq!(first.at_ms, 1);
    assert!(!sink.finish(true, &Err(Failure::Temporary("away".to_owned())), 5));
    assert_eq!(sink.facts().queued, 2, "a temporary failure stays queued");
    assert!(sink.finish(true, &Err(Failure::Permanent("no".to_owned())), 6));
    assert!(sink.finish(true, &Ok("200".to_owned()), 7));
    let counts = sink.facts();
    let seen = (counts.sent, counts.failed, counts.retried, counts.queued);
    assert_eq!(seen, (1, 1, 1, 0));
    assert_eq!((counts.last_success_ms, counts.trouble), (Some(7), None));
}

#[test]
fn an_end_has_room_where_a_firing_has_none_and_as_many_as_the_queue_has_places() {
    let sink = Sink::new(&options("s", &[], 2), Vec::new(), SinkFacts::default());
    let fires = |at_ms| notification(at_ms, Severity::Warn, None);
    let ended = |at_ms| fires(at_ms).resolved(at_ms + 9, "well");
    assert!(sink.push(fires(1)) && sink.push(fires(2)));
    assert!(!sink.push(fires(3)));
    assert!(sink.push(ended(1)) && !sink.has_room());
    assert!(sink.push(ended(2)));
    assert!(!sink.push(ended(3)), "it is bounded all the same");
    let counts = sink.facts();
    assert_eq!((counts.queued, counts.dropped), (4, 2));
}

/// Answers that it is busy.
struct Busy(Duration);

impl Receiver for Busy {
    fn send(&mut self, _: &Notification, _: i64) -> Result<String, Failure> {
        Err(Failure::Busy("429".to_owned(), self.0))
    }
}

#[test]
fn a_busy_receiver_is_left_alone_for_as_long_as_it_asks_but_not_for_hours() {
    let folder = TempDir::with_prefix("trueline-sink-").expect("a folder");
    for (asks, waits) in [(60, 60), (7_200, 300), (0, 0)] {
        let options = options("s", &[], 2);
        let waiting = vec![notification(1, Severity::Warn, None)];
        let sink = Arc::new(Sink::new(&options, waiting, SinkFacts::default()));
        let (journal, _) = AlertJournal::open(folder.path()).expect("a journal");
        let journal = Arc::new(Mutex::new(journal));
        let receiver = Box::new(Busy(Duration::from_secs(asks)));
        let mut worker = Worker::new(sink, &options, receiver, journal, (|| 0, 1));
        let began = Instant::now();
        let mut again = worker.step();
        while again == Again::Now {
            again = worker.step();
        }
        let Again::Until(until) = again else {
            panic!("it pauses: {again:?}");
        };
        let pause = until.duration_since(began).as_secs();
        // The first pause is half a second.
        assert!((waits..waits + 30).contains(&pause), "{asks} {pause}");
    }
}
