use super::*;
use crate::alert::{Alert, Severity};
use crate::app::testing;
use crate::collect::{Disposition, PartitionId};
use crate::judge::JudgeOptions;
use crate::monitor::{Engine, Plan, RecordSink};
use crate::notify::{
    self, Again, AlertJournal, Bell, Running, Status, Steps, Texts, Threads, TopicSink,
};
use crate::stats::view::View;
use crate::telemetry::control::{AlertRequest, AlertResponse};
use crate::telemetry::facts::{Role, SinkFacts};
use Severity::{Page, Warn};
use parking_lot::Mutex;
use tempfile::TempDir;

const AT_MS: i64 = 1_700_000_064_000;
const SECOND_MS: i64 = 1_000;

fn plan() -> Plan {
    testing::plan(JudgeOptions::plain())
}

/// The alert of a stream that fires with this severity, or no longer fires.
fn alert(severity: Option<Severity>) -> Alert {
    let state = severity.map_or(AlertState::Resolved, |_| AlertState::Firing);
    Alert {
        state,
        since_ms: Some(AT_MS),
        bad_ms: Some(AT_MS),
        severity: severity.unwrap_or_default(),
        ..Alert::default()
    }
}

/// A restored engine with versions 1 and 2 of a model; a version with a severity fires.
fn engine(severities: [Option<Severity>; 2]) -> Topology {
    let mut engine = Engine::new(plan());
    let at = PartitionId::from((0, 0));
    engine.assign(at);
    for (offset, version) in (0..).zip(["1", "2"]) {
        let event = testing::event("m", version, AT_MS, 0.5, true);
        let taken = engine.observe(at.at(offset), &event);
        assert_eq!(taken, Disposition::Observed);
    }
    engine.finish();
    let mut snapshot = engine.snapshot();
    for stream in &mut snapshot.streams {
        let severity = severities[usize::from(stream.version == "2")];
        for judge in &mut stream.judges {
            judge.alert = alert(severity);
        }
    }
    let engine = Engine::restore(plan(), snapshot).expect("it fits");
    Topology::Single(Box::new(engine))
}

fn id(version: &str) -> StreamId {
    notify::tests::stream("m", version, "")
}

fn options(sinks: &[&str]) -> NotifyOptions {
    NotifyOptions {
        max_age_ms: i64::MAX,
        ..notify::tests::options(sinks)
    }
}

fn start(folder: &TempDir, engine: &Topology, published: &Arc<Published>) -> AlertDispatcher {
    let host: Arc<dyn Host> = Arc::new(Threads);
    let started =
        AlertDispatcher::start(options(&[]), folder.path(), engine, None, &host, published);
    started.expect("it starts")
}

/// Starts, handles a change within the first second or else compares, and stops. Returns the last
/// notification.
fn told_after_start(
    folder: &TempDir,
    mut engine: Topology,
    change: Option<(&str, i64, Option<Severity>)>,
) -> Notification {
    let published = Arc::new(Published::default());
    let mut alerts = start(folder, &engine, &published);
    match change {
        Some((version, at_ms, severity)) => {
            let stream = id(version);
            let report = engine.reports().find(|r| r.id == stream);
            let (report, to) = (report.expect("its report"), alert(severity));
            let change = Change {
                window: "6s".to_owned(),
                at_ms,
                step: Step::Stream {
                    from: report.alert,
                    to,
                },
                sentence: String::new(),
                facts: alarm::facts(report, to, None),
                stream,
            };
            // So that no comparison comes, however slow the machine is.
            alerts.compared = Instant::now() + Duration::from_secs(3_600);
            alerts.dispatch(&[change], &mut engine, &published);
        }
        None => {
            let lookup = Lookup::of(&engine, &published);
            alerts.compare(&engine, &lookup, clock::now_ms(), true);
        }
    }
    alerts.stop(Duration::from_secs(60), &mut engine);
    let (journal, _) = AlertJournal::open(folder.path()).expect("a journal");
    let told = journal.state().last.values().next();
    told.cloned().expect("a notification")
}

/// As in a rebalance: as many comparisons as there are pairs would take a minute.
#[test]
fn changes_of_streams_that_left_are_not_told_and_others_are_in_order() {
    let stream = |i: i64| notify::tests::stream("m", &i.to_string(), "");
    let of = |i: i64| Change {
        stream: stream(i),
        window: String::new(),
        at_ms: -i,
        step: Step::Stream {
            from: alert(None),
            to: alert(Some(Page)),
        },
        sentence: String::new(),
        facts: None,
    };
    let changes: Vec<Change> = (0..10_000).map(of).collect();
    let left: Vec<StreamId> = (2..100_000).rev().map(stream).collect();
    let told = in_order(&changes, &left).into_iter();
    let told: Vec<i64> = told.map(|c| c.at_ms).collect();
    assert_eq!(told, [-1, 0]);
}

#[test]
fn streams_that_fired_before_a_restart_belong_to_their_alert_at_once() {
    let folder = TempDir::with_prefix("trueline-alerts-").expect("a folder");
    let told = |fire, change| told_after_start(&folder, engine(fire), change);
    let paged = told([Some(Page), None], None);
    assert_eq!((paged.severity, paged.was), (Page, None));
    // It joins as a warning, which needs no notification.
    let joins = Some(("2", AT_MS + SECOND_MS, Some(Warn)));
    assert_eq!(told([Some(Page), None], joins), paged);
    let ends = |version| Some((version, AT_MS + 2 * SECOND_MS, None));
    let fallen = told([Some(Page), Some(Warn)], ends("1"));
    assert_eq!((fallen.severity, fallen.was), (Warn, Some(Page)));
    let ended = told([None, Some(Warn)], ends("2"));
    assert_eq!(ended.status, Status::Resolved);
    assert_eq!(ended.what, "calibrated again");
}

#[test]
fn the_record_is_that_of_the_streams_own_change_or_its_newest() {
    let told = |fire, change| {
        let folder = TempDir::with_prefix("trueline-alerts-").expect("a folder");
        let paged = told_after_start(&folder, engine([Some(Page), None]), None);
        assert_eq!(paged.record, id("1").fingerprint(), "it is only compared");
        told_after_start(&folder, engine(fire), Some(change)).record
    };
    let at_ms = AT_MS + SECOND_MS;
    let (one, two) = (id("1").fingerprint(), id("2").fingerprint());
    // One stream changes; the other one represents the alert from then on.
    assert_eq!(told([Some(Page), Some(Warn)], ("1", at_ms, None)), two);
    let falls = told([Some(Page), None], ("1", at_ms, Some(Warn)));
    assert_eq!(falls, format!("{one}-{at_ms}-warn"));
    let ends = told([Some(Page), None], ("1", at_ms, None));
    assert_eq!(ends, format!("{one}-{at_ms}-resolved"));
}

#[test]
fn what_fires_can_be_acknowledged_as_soon_as_it_starts() {
    let folder = TempDir::with_prefix("trueline-alerts-").expect("a folder");
    let published = Arc::new(Published::default());
    let mut engine = engine([Some(Page), None]);
    let alerts = start(&folder, &engine, &published);
    let asked = AlertRequest::Acknowledge {
        alert: "m".to_owned(),
        by: "ann".to_owned(),
        note: String::new(),
    };
    let answer = published.control.request(asked);
    assert!(
        matches!(answer, Some(AlertResponse::Acknowledged(_))),
        "{answer:?}"
    );
    alerts.stop(Duration::from_secs(60), &mut engine);
}

#[test]
fn a_process_that_does_not_judge_takes_no_silence() {
    let folder = TempDir::with_prefix("trueline-alerts-").expect("a folder");
    let published = Arc::new(Published::default());
    let mut engine = engine([Some(Page), None]);
    let alerts = start(&folder, &engine, &published);
    let ask = |role: Role| {
        published.update(|facts| facts.role = role);
        published.control.request(AlertRequest::Silence {
            matchers: vec!["model=m".parse().expect("a matcher")],
            until_ms: clock::now_ms() + 60_000,
            by: "ann".to_owned(),
            note: String::new(),
        })
    };
    for role in [Role::Worker, Role::Standby] {
        let answer = ask(role);
        assert!(
            matches!(answer, Some(AlertResponse::Unavailable(_))),
            "{answer:?}"
        );
    }
    assert!(published.control.silences().silences.is_empty());
    let answer = ask(Role::Alone);
    assert!(
        matches!(answer, Some(AlertResponse::Silenced(_))),
        "{answer:?}"
    );
    alerts.stop(Duration::from_secs(60), &mut engine);
}

#[test]
fn a_silence_of_a_class_is_of_its_number_and_one_of_an_unknown_class_is_refused() {
    let folder = TempDir::with_prefix("trueline-alerts-").expect("a folder");
    let published = Arc::new(Published::default());
    let mut plan = plan();
    plan.models[0].views = vec![View::Class(2)];
    plan.models[0].classes = ["none", "benign", "malignant"].map(str::to_owned).to_vec();
    let mut engine = Topology::Single(Box::new(Engine::new(plan)));
    let alerts = start(&folder, &engine, &published);
    let ask = |matcher: &str| {
        published.control.request(AlertRequest::Silence {
            matchers: vec![matcher.parse().expect("a matcher")],
            until_ms: clock::now_ms() + 60_000,
            by: "ann".to_owned(),
            note: String::new(),
        })
    };
    let Some(AlertResponse::Silenced(silence)) = ask("view=class:malignant") else {
        panic!("it is not taken");
    };
    assert_eq!(silence.matchers[0].to_string(), "view=class:2");
    let answer = ask("view=class:malignent");
    let said = |why: &str| why.ends_with("did you mean `class:malignant`?");
    assert!(
        matches!(&answer, Some(AlertResponse::Refused(why)) if said(why)),
        "{answer:?}"
    );
    alerts.stop(Duration::from_secs(60), &mut engine);
}

#[test]
fn sinks_that_a_reload_removed_are_not_shown_any_more() {
    let folder = TempDir::with_prefix("trueline-alerts-").expect("a folder");
    let published = Arc::new(Published::default());
    let mut engine = engine([None, None]);
    let mut alerts = start(&folder, &engine, &published);
    published.update(|facts| facts.sinks = vec![SinkFacts::default()]);
    alerts.dispatch(&[], &mut engine, &published);
    assert_eq!(published.facts().sinks, []);
    alerts.stop(Duration::from_secs(60), &mut engine);
}

#[test]
fn an_alert_that_is_none_any_more_after_a_reload_ends_at_once() {
    let folder = TempDir::with_prefix("trueline-alerts-").expect("a folder");
    let mut engine = engine([Some(Page), None]);
    let published = Arc::new(Published::default());
    let mut alerts = start(&folder, &engine, &published);
    let mut options = options(&[]);
    // Here segments share an alert, and versions do not.
    for stays in [true, false] {
        alerts.compare(
            &engine,
            &Lookup::of(&engine, &published),
            clock::now_ms(),
            true,
        );
        let before = GroupBy::default().group_of(&id("1")).fingerprint();
        assert_eq!(alerts.notifier.firing_since(&before), Some(AT_MS));
        options.group_by.segment = true;
        options.group_by.version = !stays;
        alerts.reload(&options, &engine).expect("it reloads");
        assert_eq!(alerts.notifier.firing_since(&before).is_some(), stays);
    }
    alerts.compare(
        &engine,
        &Lookup::of(&engine, &published),
        clock::now_ms(),
        true,
    );
    alerts.stop(Duration::from_secs(60), &mut engine);
    let (journal, _) = AlertJournal::open(folder.path()).expect("a journal");
    let told = journal.state().last.values();
    let told: BTreeMap<_, _> = told
        .map(|n| (n.alert.as_str(), (n.status, n.what.as_str())))
        .collect();
    assert_eq!(told["m"], (Status::Resolved, REGROUPED));
    assert_eq!(told["m/1"].0, Status::Firing);
}

#[test]
fn an_alert_that_a_reload_ended_is_sent_again_when_the_next_one_brings_it_back() {
    let folder = TempDir::with_prefix("trueline-alerts-").expect("a folder");
    let mut engine = engine([Some(Page), None]);
    let published = Arc::new(Published::default());
    let mut alerts = start(&folder, &engine, &published);
    let alert = GroupBy::default().group_of(&id("1")).fingerprint();
    let mut since = Vec::new();
    // Nothing is judged meanwhile.
    for by_version in [false, true, false, true, false] {
        let mut options = options(&[]);
        options.group_by.version = by_version;
        alerts.reload(&options, &engine).expect("it reloads");
        for _ in 0..2 {
            let lookup = Lookup::of(&engine, &published);
            alerts.compare(&engine, &lookup, clock::now_ms(), true);
        }
        since.extend(alerts.notifier.firing_since(&alert));
    }
    assert_eq!(since, [AT_MS, AT_MS + 1, AT_MS + 2]);
    alerts.stop(Duration::from_secs(60), &mut engine);
}

/// A host that runs nothing until it is asked to.
#[derive(Default)]
struct Idle(Mutex<Vec<Box<dyn Steps>>>);

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Idle")
    }
}

impl Idle {
    fn run_all(&self) {
        // What starts meanwhile does not run.
        let mut all = std::mem::take(&mut *self.0.lock());
        for steps in &mut all {
            while steps.step() == Again::Now {}
        }
    }
}

impl Host for Idle {
    fn run(
        &self,
        _: &str,
        _: &Arc<Bell>,
        steps: Box<dyn Steps>,
    ) -> Result<Arc<dyn Running>, String> {
        self.0.lock().push(steps);
        Ok(Arc::new(std::thread::spawn(|| ())))
    }

    fn receiver(
        &self,
        sink: &SinkOptions,
        texts: &Texts,
        topic: Option<TopicSink>,
    ) -> Result<Box<dyn crate::notify::Receiver>, String> {
        Threads.receiver(sink, texts, topic)
    }
}

#[test]
fn what_fires_is_offered_until_the_sinks_of_a_reload_are_there() {
    let folder = TempDir::with_prefix("trueline-alerts-").expect("a folder");
    let engine = engine([Some(Page), None]);
    let idle = Arc::new(Idle::default());
    let host: Arc<dyn Host> = Arc::<Idle>::clone(&idle);
    let published = Arc::new(Published::default());
    let started = AlertDispatcher::start(
        options(&[]),
        folder.path(),
        &engine,
        None,
        &host,
        &published,
    );
    let mut alerts = started.expect("it starts");
    let mut options = options(&["new"]);
    options.sinks[0].dry_run = true;
    alerts.reload(&options, &engine).expect("it reloads");
    let mut compare = || {
        alerts.compare(
            &engine,
            &Lookup::of(&engine, &published),
            clock::now_ms(),
            true,
        );
        alerts.offered.is_some()
    };
    assert!(!compare());
    idle.run_all();
    assert!(compare());
}
