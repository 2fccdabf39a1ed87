use super::*;
use crate::alert::Severity;
use crate::notify::journal::Entry;
use crate::notify::{self, Host, Threads, notification::Links};
use tempfile::TempDir;

/// Options of a sink with these matchers.
fn options(name: &str, matchers: &[&str], queue_max: usize) -> SinkOptions {
    let matchers = matchers.iter().map(|m| m.parse().expect("a matcher"));
    SinkOptions {
        matchers: matchers.collect(),
        retry_max: Duration::from_secs(1),
        queue_max,
        ..notify::tests::options(&[name]).sinks.remove(0)
    }
}

/// A sink without earlier notifications.
fn sink(options: &SinkOptions, undelivered: Vec<Notification>) -> Sink {
    Sink::new(options, undelivered)
}

fn notification(at_ms: i64, severity: Severity, was: Option<Severity>) -> Notification {
    Notification {
        severity,
        was,
        ..Notification::trial(at_ms, Links::default())
    }
}

#[test]
fn a_resolution_goes_exactly_to_the_sinks_that_were_notified_of_the_firing() {
    let pager = sink(&options("pager", &["severity=page"], 9), Vec::new());
    let all = sink(&options("all", &[], 9), Vec::new());
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
        let sinks: Vec<String> = wanting.iter().map(|s| s.name.clone()).collect();
        notified.push(sinks.join(" "));
        state.apply(&Entry::Queued {
            notification: Box::new(notification.clone()),
            sinks,
        });
    }
    let both = "pager all";
    assert_eq!(notified, ["all", "all", "all", both, both, both]);
}

#[test]
fn a_full_queue_drops_the_newest_and_counts_it() {
    let first = notification(1, Severity::Warn, None);
    let sink = sink(&options("s", &[], 2), vec![first]);
    assert!(sink.push(notification(2, Severity::Warn, None)));
    assert!(!sink.push(notification(3, Severity::Warn, None)));
    let counts = sink.facts();
    assert_eq!((counts.queued, counts.dropped), (2, 1));
    let Next::Send(first) = sink.next(None, false) else {
        panic!("a notification is next");
    };
    assert_eq!(first.at_ms, 1);
    let key = Some(first.key.as_str());
    assert!(!sink.finish(key, &Err(Failure::Temporary("away".to_owned())), 5));
    assert_eq!(sink.facts().queued, 2, "a temporary failure stays queued");
    assert!(sink.finish(key, &Err(Failure::Permanent("no".to_owned())), 6));
    let second = notification(2, Severity::Warn, None).key;
    assert!(sink.finish(Some(&second), &Ok("200".to_owned()), 7));
    let counts = sink.facts();
    let seen = (counts.sent, counts.failed, counts.retried, counts.queued);
    assert_eq!(seen, (1, 1, 1, 0));
    assert_eq!((counts.last_success_ms, counts.trouble), (Some(7), None));
}

#[test]
fn an_end_has_room_where_a_firing_has_none_and_as_many_as_the_queue_has_places() {
    let sink = sink(&options("s", &[], 2), Vec::new());
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

/// A receiver that is busy for this long; the flag says whether it needs resends.
struct Busy(Duration, bool);

impl Receiver for Busy {
    fn send(&mut self, _: &Notification, _: i64) -> Result<String, Failure> {
        Err(Failure::Busy("429".to_owned(), self.0))
    }

    fn needs_resend(&self) -> bool {
        self.1
    }
}

#[test]
fn a_busy_receiver_is_left_alone_for_as_long_as_it_asks_but_not_for_hours() {
    let folder = TempDir::with_prefix("trueline-sink-").expect("a folder");
    // A receiver that needs a resend every minute waits for at most two.
    let cases = [
        (60, false, 60),
        (7_200, false, 300),
        (0, false, 0),
        (60, true, 60),
        (300, true, 120),
    ];
    for (asks, resends, waits) in cases {
        let mut options = options("s", &[], 2);
        options.resend = Duration::from_secs(60);
        let waiting = vec![notification(1, Severity::Warn, None)];
        let sink = Arc::new(sink(&options, waiting));
        let (journal, _) = AlertJournal::open(folder.path()).expect("a journal");
        let journal = Arc::new(Mutex::new(journal));
        let receiver = Box::new(Busy(Duration::from_secs(asks), resends));
        let mut worker = Worker::new(sink, &options, receiver, journal, || 0, 1);
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

/// A sink whose receiver is busy for a minute, and its thread's steps.
fn busy(folder: &TempDir) -> (Arc<Sink>, Worker) {
    let options = options("s", &[], 2);
    let waiting = vec![notification(1, Severity::Warn, None)];
    let sink = Arc::new(Sink::new(&options, waiting));
    let (journal, _) = AlertJournal::open(folder.path()).expect("a journal");
    let journal = Arc::new(Mutex::new(journal));
    let receiver = Box::new(Busy(Duration::from_secs(60), false));
    let worker = Worker::new(Arc::clone(&sink), &options, receiver, journal, || 0, 1);
    (sink, worker)
}

#[test]
fn a_process_stops_at_once_while_a_receiver_is_to_be_left_alone() {
    let folder = TempDir::with_prefix("trueline-sink-").expect("a folder");
    type Stop = fn(&Sink);
    let stops: [(&str, Stop); 2] = [("stop", Sink::drain), ("remove", Sink::remove)];
    for (name, stop) in stops {
        let (sink, worker) = busy(&folder);
        let thread = Threads.run("sink", &sink.bell, Box::new(worker));
        let thread = thread.expect("it starts");
        let begun = Instant::now();
        while sink.facts().retried == 0 {
            assert!(begun.elapsed() < Duration::from_secs(30), "no attempt");
            std::thread::sleep(Duration::from_millis(5));
        }
        let asked = Instant::now();
        stop(&sink);
        thread.wait(asked + Duration::from_secs(30));
        assert!(
            thread.is_ended() && asked.elapsed() < Duration::from_secs(10),
            "{name}"
        );
        assert_eq!(sink.facts().retried, 1, "{name}: no further attempt");
    }
}

#[test]
fn a_pause_that_the_receiver_asked_for_outlasts_a_change_of_the_sink() {
    let folder = TempDir::with_prefix("trueline-sink-").expect("a folder");
    let (sink, mut worker) = busy(&folder);
    while worker.step() == Again::Now {}
    let receiver = Box::new(Busy(Duration::ZERO, false));
    sink.change(options("s", &[], 9), receiver);
    let Again::Until(until) = worker.step() else {
        panic!("it pauses");
    };
    let left = until.duration_since(Instant::now()).as_secs();
    assert!((50..=60).contains(&left), "{left}");
    assert_eq!(sink.facts().retried, 1, "the count goes on");
    // After a start there is no pause.
    let (_, mut worker) = busy(&folder);
    assert_eq!(worker.step(), Again::Now);
}

#[test]
fn a_removed_sink_that_returns_while_its_thread_runs_stays() {
    let folder = TempDir::with_prefix("trueline-sink-").expect("a folder");
    let (sink, mut worker) = busy(&folder);
    while worker.step() == Again::Now {}
    sink.remove();
    assert!(sink.stay());
    assert!(matches!(worker.step(), Again::Until(_)));
    assert_eq!(sink.facts().queued, 1);
    sink.remove();
    assert_eq!(worker.step(), Again::Never);
    assert!(!sink.stay());
}

/// Keeps the fingerprints that it gets, and those of each resend; refuses resends if told to.
struct Refreshed {
    got: Arc<Mutex<Vec<String>>>,
    refuses: bool,
}

impl Receiver for Refreshed {
    fn send(&mut self, n: &Notification, _: i64) -> Result<String, Failure> {
        self.got.lock().push(n.fingerprint.clone());
        Ok(String::new())
    }

    fn needs_resend(&self) -> bool {
        true
    }

    fn resend(&mut self, firing: &[Notification], _: i64) -> Result<String, Failure> {
        let all: Vec<&str> = firing.iter().map(|n| n.fingerprint.as_str()).collect();
        self.got.lock().push(format!("again {}", all.join(" ")));
        match self.refuses {
            true => Err(Failure::Temporary("away".to_owned())),
            false => Ok(String::new()),
        }
    }
}

#[test]
fn firing_alerts_are_sent_again_before_a_long_queue_but_not_those_that_wait_in_it() {
    for refuses in [false, true] {
        let folder = TempDir::with_prefix("trueline-sink-").expect("a folder");
        let of = |alert: &str| Notification {
            fingerprint: alert.to_owned(),
            ..notification(1, Severity::Warn, None)
        };
        let (mut journal, _) = AlertJournal::open(folder.path()).expect("a journal");
        for alert in ["a", "b", "c"] {
            let queued = Entry::Queued {
                notification: Box::new(of(alert)),
                sinks: vec!["s".to_owned()],
            };
            journal.append(&queued, false).expect("it is written");
        }
        // The receiver has got the first notification.
        let mut options = options("s", &[], 9);
        (options.resend, options.retry_max) = (Duration::from_secs(60), Duration::ZERO);
        let sink = Arc::new(sink(&options, vec![of("b"), of("c")]));
        let journal = Arc::new(Mutex::new(journal));
        let got = Arc::default();
        let receiver = Box::new(Refreshed {
            got: Arc::clone(&got),
            refuses,
        });
        let mut worker = Worker::new(sink, &options, receiver, journal, || 0, 1);
        // An attempt and its record are two steps.
        for _ in 0..6 {
            let _ = worker.step();
        }
        let expected = match refuses {
            false => ["again a", "b", "c"],
            true => ["again a", "b", "again a b"],
        };
        assert_eq!(*got.lock(), expected);
    }
}
