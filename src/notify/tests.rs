//! Tests of the whole: what is notified, what a receiver gets, and what the next start knows. The
//! threads run step by step on the thread of the test, with a clock of the test.

use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

mod moves;
mod reload;

use super::notification::Links;
use super::notifier::Firing;
use super::*;
use crate::alert::{Labels, Severity};
use crate::judge::StreamId;
use crate::stats::view::View;
use tempfile::TempDir;

const MINUTE_MS: i64 = 60_000;
/// When the tests begin, in ms since 1970.
const BEGIN_MS: i64 = 1_760_000_000_000;

thread_local! {
    static NOW_MS: Cell<i64> = const { Cell::new(BEGIN_MS) };
}

fn now_ms() -> i64 {
    NOW_MS.get()
}

/// The next answers of receivers; without one they are away.
type Answers = Arc<Mutex<VecDeque<Result<(), ()>>>>;
/// What receivers got: sink and key.
type Came = Arc<Mutex<Vec<(String, String)>>>;

struct Part {
    steps: Option<Box<dyn Steps>>,
    ended: Arc<AtomicBool>,
}

/// Runs the threads step by step, as the test asks.
#[derive(Default, Clone)]
struct Bench {
    parts: Arc<Mutex<Vec<Part>>>,
    answers: Answers,
    came: Came,
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bench")
    }
}

impl Bench {
    /// Runs each thread until it waits.
    fn settle(&self) {
        for _ in 0..2 {
            let count = self.parts.lock().len();
            for place in 0..count {
                // One that is in the middle of a step is not there.
                let steps = self.parts.lock()[place].steps.take();
                let Some(mut steps) = steps else { continue };
                let mut again = Again::Now;
                while again == Again::Now {
                    again = steps.step();
                }
                let mut parts = self.parts.lock();
                parts[place]
                    .ended
                    .fetch_or(again == Again::Never, Ordering::Relaxed);
                parts[place].steps = Some(steps).filter(|_| again != Again::Never);
            }
        }
    }

    /// Receivers give these answers in turn.
    fn answer(&self, answers: &[Result<(), ()>]) {
        self.answers.lock().extend(answers);
        // The pause after a failure.
        std::thread::sleep(Duration::from_millis(25));
        self.settle();
    }

    /// What receivers got since the last call: sink and key.
    fn came(&self) -> Vec<(String, String)> {
        std::mem::take(&mut *self.came.lock())
    }
}

/// Shows whether a thread has ended.
struct Ended(Bench, Arc<AtomicBool>);

impl Running for Ended {
    fn is_ended(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }

    fn wait(&self, _: Instant) {
        self.0.settle();
    }
}

/// The receiver of the sink of this name.
struct Inbox(Bench, String);

impl Receiver for Inbox {
    fn send(&mut self, n: &Notification, _: i64) -> Result<String, Failure> {
        match self.0.answers.lock().pop_front() {
            Some(Ok(())) => {
                self.0.came.lock().push((self.1.clone(), n.key.clone()));
                Ok(String::new())
            }
            Some(Err(())) => Err(Failure::Permanent("never".to_owned())),
            None => Err(Failure::Temporary("away".to_owned())),
        }
    }
}

impl Host for Bench {
    fn run(
        &self,
        _: &str,
        _: &Arc<Bell>,
        steps: Box<dyn Steps>,
    ) -> Result<Arc<dyn Running>, String> {
        let ended = Arc::new(AtomicBool::new(false));
        self.parts.lock().push(Part {
            steps: Some(steps),
            ended: Arc::clone(&ended),
        });
        Ok(Arc::new(Ended(self.clone(), ended)))
    }

    fn receiver(
        &self,
        sink: &SinkOptions,
        _: &Texts,
        _: Option<TopicSink>,
    ) -> Result<Box<dyn Receiver>, String> {
        Ok(Box::new(Inbox(self.clone(), sink.name.clone())))
    }
}

/// Sinks of these names, with queues of one notification.
pub(crate) fn options(sinks: &[&str]) -> NotifyOptions {
    let sink = |name: &&str| SinkOptions {
        name: (*name).to_owned(),
        kind: Kind::Webhook,
        address: String::new(),
        secret: None,
        authorization: None,
        ca_file: None,
        matchers: Vec::new(),
        resolved: true,
        timeout: Duration::from_secs(1),
        retry_max: Duration::from_millis(20),
        resend: Duration::from_secs(1),
        queue_max: 1,
        dry_run: false,
    };
    let text = || Template::parse("{model}").expect("a template");
    NotifyOptions {
        external_url: String::new(),
        runbook_url: String::new(),
        texts: Texts {
            summary: text(),
            description: text(),
        },
        group_by: GroupBy::default(),
        max_age_ms: 0,
        sinks: sinks.iter().map(sink).collect(),
    }
}

/// The address of a server that answers with these statuses, in turn.
pub(super) fn answering(statuses: &[u16]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let statuses = statuses.to_vec();
    std::thread::spawn(move || {
        for status in statuses {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = vec![0; 1 << 16];
            let mut length = 0;
            // The body, at the end of the request, is one object.
            while !request[..length].ends_with(b"}") {
                length += stream.read(&mut request[length..]).expect("a request");
            }
            let answer =
                format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).expect("it listens");
        }
    });
    format!("http://{address}")
}

/// A notification that the alert with this number fires since `since_ms`.
pub(super) fn firing(alert: u8, since_ms: i64) -> Notification {
    let mut notification = Notification::trial(since_ms, Links::default());
    notification.fingerprint = format!("{alert:016}");
    notification.start(since_ms);
    notification
}

/// The stream of a model with a score.
pub(crate) fn stream(model: &str, version: &str, segment: &str) -> StreamId {
    StreamId {
        model: model.to_owned(),
        version: version.to_owned(),
        segment: segment.to_owned(),
        view: View::Binary,
    }
}

/// A process with a journal.
struct Process {
    notifier: Option<Notifier>,
    /// Its partitions may move to other processes.
    moving: bool,
    bench: Bench,
    folder: TempDir,
}

impl Process {
    fn new(sinks: &[&str]) -> Process {
        NOW_MS.set(BEGIN_MS);
        let mut process = Process {
            notifier: None,
            moving: false,
            bench: Bench::default(),
            folder: TempDir::with_prefix("trueline-notify-").expect("a folder"),
        };
        process.start(sinks);
        process
    }

    /// Starts the process; stops it first if it runs.
    fn start(&mut self, sinks: &[&str]) {
        if let Some(mut before) = self.notifier.take() {
            before.stop(Duration::ZERO);
        }
        let bench = Bench {
            parts: Arc::default(),
            ..self.bench.clone()
        };
        let host: Arc<dyn Host> = Arc::new(bench.clone());
        let none = |_: &SinkOptions| Ok(None);
        let (options, folder) = (options(sinks), self.folder.path());
        let notifier = Notifier::start(&options, folder, self.moving, &none, &host, now_ms, 1);
        self.notifier = Some(notifier.expect("it starts"));
        self.bench = bench;
        self.bench.settle();
    }

    /// Replaces the sinks by these.
    fn replace_sinks(&mut self, options: &NotifyOptions) {
        let none = |_: &SinkOptions| Ok(None);
        let reloaded = self.notifier().replace_sinks(options, &none);
        reloaded.expect("it reloads");
    }

    fn reload(&mut self, options: &NotifyOptions) {
        self.replace_sinks(options);
        self.bench.settle();
    }

    fn notifier(&mut self) -> &mut Notifier {
        self.notifier.as_mut().expect("it runs")
    }

    fn notify(&mut self, notification: &Notification) {
        let sent = self.notifier().notify(notification.clone(), now_ms());
        assert!(sent, "{}", notification.key);
        self.bench.settle();
    }

    /// Compares what fires, and offers it to sinks that lack it, as the engine's thread does.
    /// Returns whether a sink lacks it.
    fn offer(&mut self, alert: &Notification) -> bool {
        let fires = Firing {
            fingerprint: alert.fingerprint.clone(),
            since_ms: alert.since_ms,
            severity: alert.severity,
        };
        let unsent = self.notifier().compare(&[fires], now_ms(), 0);
        assert!(unsent.is_empty(), "{unsent:?}");
        let lacks = self.notifier().lacks_sink(&alert.fingerprint, now_ms());
        let again = Notification {
            joined: true,
            ..alert.clone()
        };
        if lacks {
            assert!(self.notifier().notify(again, now_ms()));
        }
        self.bench.settle();
        lacks
    }
}

fn came(sink: &str, notification: &Notification) -> (String, String) {
    (sink.to_owned(), notification.key.clone())
}

#[test]
fn an_alert_that_had_no_room_is_offered_again_until_the_sink_has_it() {
    for restarts in [false, true] {
        let mut process = Process::new(&["s"]);
        let (first, second) = (firing(1, 10), firing(2, 20));
        process.notify(&first);
        process.notify(&second);
        // The queue is full, so an offer is useless.
        assert!(!process.offer(&second));
        if restarts {
            process.start(&["s"]);
        }
        assert!(!process.offer(&second));
        process.bench.answer(&[Ok(())]);
        assert_eq!(process.bench.came(), [came("s", &first)]);
        assert!(process.offer(&second));
        assert!(!process.offer(&second), "it waits now");
        process.bench.answer(&[Ok(())]);
        assert_eq!(process.bench.came(), [came("s", &second)]);
        for alert in [&first, &second] {
            assert!(
                !process.offer(alert),
                "nothing that was delivered comes again"
            );
        }
        process.start(&["s"]);
        for alert in [&first, &second] {
            assert!(!process.offer(alert));
        }
    }
}

#[test]
fn an_alert_that_was_refused_for_good_is_offered_once_an_hour_while_it_fires() {
    for restarts in [false, true] {
        let mut process = Process::new(&["s"]);
        let alert = firing(1, 10);
        process.notify(&alert);
        process.bench.answer(&[Err(())]);
        for minute in 0..60 {
            NOW_MS.set(BEGIN_MS + minute * MINUTE_MS);
            assert!(!process.offer(&alert), "{minute}");
        }
        if restarts {
            process.start(&["s"]);
        }
        assert!(!process.offer(&alert));
        NOW_MS.set(BEGIN_MS + 60 * MINUTE_MS);
        assert!(process.offer(&alert));
        process.bench.answer(&[Err(())]);
        NOW_MS.set(BEGIN_MS + 119 * MINUTE_MS);
        assert!(!process.offer(&alert));
        NOW_MS.set(BEGIN_MS + 120 * MINUTE_MS);
        assert!(process.offer(&alert));
        process.bench.answer(&[Ok(())]);
        assert_eq!(process.bench.came(), [came("s", &alert)]);
        NOW_MS.set(BEGIN_MS + 999 * MINUTE_MS);
        assert!(!process.offer(&alert));
        process.notify(&alert.resolved(99, "well"));
        process.bench.answer(&[Ok(())]);
        assert_eq!(process.bench.came().len(), 1);
    }
}

#[test]
fn a_removed_sink_gives_up_what_it_has_not_sent_and_one_that_stops_does_not() {
    let mut process = Process::new(&["gone", "here"]);
    let (ended, fires) = (firing(1, 10), firing(2, 20));
    process.notify(&ended);
    // A stop leaves all of it.
    process.start(&["gone", "here"]);
    process.reload(&options(&["here"]));
    process.bench.answer(&[Ok(())]);
    assert_eq!(process.bench.came(), [came("here", &ended)]);
    process.notify(&ended.resolved(15, "well"));
    process.bench.answer(&[Ok(())]);
    process.notify(&fires);
    process.bench.answer(&[Ok(())]);
    assert_eq!(process.bench.came().len(), 2);
    // The sink returns: it gets what fires, and no longer what is over.
    process.reload(&options(&["gone", "here"]));
    process.bench.answer(&[]);
    assert!(process.offer(&fires));
    process.bench.answer(&[Ok(())]);
    assert_eq!(process.bench.came(), [came("gone", &fires)]);
    // A sink that is gone after a restart also gives up its notifications, if there is another
    // sink.
    let last = firing(3, 30);
    process.notify(&last);
    process.start(&[]);
    process.start(&["here"]);
    process.bench.answer(&[Ok(())]);
    assert_eq!(process.bench.came(), [came("here", &last)]);
    process.notify(&last.resolved(35, "well"));
    process.bench.answer(&[Ok(())]);
    assert_eq!(process.bench.came().len(), 1);
    process.start(&["gone", "here"]);
    process.bench.answers.lock().push_back(Ok(()));
    process.bench.answer(&[]);
    assert!(process.bench.came().is_empty());
}

#[test]
fn sinks_are_replaced_once_their_thread_has_done_it() {
    let mut process = Process::new(&["old"]);
    assert!(!process.notifier().replaces_sinks());
    process.replace_sinks(&options(&["old", "new"]));
    assert!(process.notifier().replaces_sinks());
    process.bench.settle();
    assert!(!process.notifier().replaces_sinks());
    assert_eq!(process.notifier().sinks().len(), 2);
}

/// Thousands of streams may join one alert at once, and a notification looks at all of them. So one
/// is made only if a sink wants the stream and did not get the alert.
#[test]
fn that_a_stream_joins_is_news_only_for_a_sink_that_wants_it_and_lacks_the_alert() {
    let labels =
        |segment: &str| -> Labels { ["trueline-test", "", segment, "", "warn"].map(str::to_owned) };
    let mut process = Process::new(&["all"]);
    let alert = firing(1, 10);
    let wants = |process: &mut Process, segment: &str, severity| {
        let labels = labels(segment);
        let notifier = process.notifier();
        notifier.wants_joined(&alert.fingerprint, severity, &labels, now_ms())
    };
    // Nobody knows the alert: the comparison once a second sends it.
    assert!(!wants(&mut process, "a", Severity::Warn));
    process.notify(&alert);
    for segment in ["a", "b", "c"] {
        assert!(!wants(&mut process, segment, Severity::Warn));
    }
    // People know another severity.
    assert!(wants(&mut process, "a", Severity::Page));
    // A silenced stream waits for the comparison once a second, which looks at all streams once.
    let matchers = vec!["segment=a".parse().expect("a matcher")];
    let span = (BEGIN_MS, BEGIN_MS + MINUTE_MS);
    let control = process.notifier().control();
    let silence = control.silence(matchers, span, "ann", "");
    let silence = silence.expect("it is entered");
    assert!(!wants(&mut process, "a", Severity::Page));
    assert!(wants(&mut process, "b", Severity::Page));
    assert!(control.lift(silence.id).expect("it is lifted"));
    // A sink of one segment did not get the alert.
    let mut routed = options(&["all", "routed"]);
    routed.sinks[1].matchers = vec!["segment=b".parse().expect("a matcher")];
    process.reload(&routed);
    assert!(!wants(&mut process, "a", Severity::Warn));
    assert!(wants(&mut process, "b", Severity::Warn));
    let joined = Notification {
        joined: true,
        labels: vec![labels("a"), labels("b")],
        ..alert.clone()
    };
    process.notify(&joined);
    for segment in ["a", "b", "c"] {
        assert!(!wants(&mut process, segment, Severity::Warn));
    }
}
