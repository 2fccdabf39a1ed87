//! Tests of the engine's loop, over a log of posted events.

use super::saving::UNWRITTEN_MAX;
use super::*;
use crate::app::ingest::config;
use crate::app::outputs::snapshots::Written;
use crate::app::{App, Job, Setup, Worker, Workers};
use crate::telemetry::facts::SinkFacts;
use tempfile::TempDir;

const CONFIG: &str = r#"
version = 1
[[source]]
input = "http"
topics = ["scores"]
fields = { time = "at", score = "p", outcome = "y" }
[[model]]
name = "*"
windows = ["1m"]
[state]
directory = 'STATE'
"#;

/// A process with this configuration, and its folder.
fn started(text: &str) -> (TempDir, EngineLoop) {
    let folder = TempDir::with_prefix("trueline-engine-").expect("a folder");
    let text = text.replace("STATE", &folder.path().display().to_string());
    let engine = App::engine_loop(Setup::of(config(&text)));
    (folder, engine.expect("it loads"))
}

/// Steps until a record was read.
fn read_one(engine: &mut EngineLoop) {
    let begun = Instant::now();
    while engine.step() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is read");
    }
}

/// A write that left this many bytes of journals in memory.
fn unwritten(bytes: usize) -> Written {
    Written {
        result: Err("no space left".to_owned()),
        took: Duration::ZERO,
        at_ms: 0,
        bytes: 0,
        unwritten: bytes,
    }
}

#[test]
fn nothing_is_read_while_too_much_of_the_journals_is_in_memory_and_ready_says_so() {
    let (_folder, mut engine) = started(CONFIG);
    let log = Arc::clone(&engine.logs["scores"]);
    let post = || {
        let event = r#"{"at":1700000000000,"p":0.5,"y":1}"#.to_owned();
        log.append(None, 0, vec![event]).expect("room");
    };
    post();
    read_one(&mut engine);
    engine.wait_saved();

    engine.saved(&unwritten(UNWRITTEN_MAX + 1));
    post();
    let read: usize = (0..3).map(|_| engine.step()).sum();
    assert_eq!(read, 0);
    engine.publish_suspended();
    let missing = engine.published.missing();
    let why = missing.get("state journals").expect("it is named");
    assert!(why.contains("more than 256 MiB"), "{why}");

    engine.saved(&unwritten(UNWRITTEN_MAX));
    engine.publish_suspended();
    assert!(!engine.published.missing().contains_key("state journals"));
    read_one(&mut engine);
    engine.end().expect("it ends in order");
}

#[test]
fn ready_says_that_snapshots_cannot_be_written_until_one_is() {
    let (_folder, mut engine) = started(CONFIG);
    let why = |engine: &EngineLoop| engine.published.missing().get("state").cloned();
    engine.saved(&unwritten(0));
    let said = why(&engine).expect("it is named");
    assert_eq!(said, "snapshots cannot be written: no space left");
    engine.save_and_wait().expect("there is space");
    assert_eq!(why(&engine), None);
    engine.end().expect("it ends in order");
}

#[test]
fn ready_says_that_a_write_hangs_until_it_ends() {
    let (_folder, mut engine) = started(CONFIG);
    let why = |engine: &EngineLoop| engine.published.missing().get("state").cloned();
    engine.save_and_wait().expect("there is space");
    engine.save();
    engine.publish_long_write();
    assert_eq!(why(&engine), None);
    let (now, ago) = (Instant::now(), Duration::from_secs(3600));
    engine.timers.save_began = now
        .checked_sub(ago)
        .expect("a machine that is up for an hour");
    engine.publish_long_write();
    let said = why(&engine).expect("it is named");
    assert!(said.contains("under way for 3600 s"), "{said}");
    engine.wait_saved().expect("a write").expect("it ends");
    assert_eq!(why(&engine), None);
    engine.publish_long_write();
    assert_eq!(why(&engine), None);
    engine.end().expect("it ends in order");
}

/// Workers whose first job ends after two waits for it.
#[derive(Debug)]
struct Slow;

struct SlowWorker(Vec<Job>, usize);

impl Workers for Slow {
    fn worker(&self, _: &str) -> Result<Box<dyn Worker>, AppError> {
        Ok(Box::new(SlowWorker(Vec::new(), 2)))
    }
}

impl Worker for SlowWorker {
    fn start(&mut self, job: Job) -> bool {
        self.0.push(job);
        true
    }

    fn ends_within(&mut self, within: Duration) -> bool {
        assert!(within <= Duration::from_secs(5), "{within:?}");
        let waits = self.1 > 0;
        match waits {
            true => self.1 -= 1,
            false => self.0.drain(..).for_each(|job| job()),
        }
        !waits
    }
}

#[test]
fn who_waits_for_a_snapshot_shows_that_it_lives() {
    let folder = TempDir::with_prefix("trueline-engine-").expect("a folder");
    let text = CONFIG.replace("STATE", &folder.path().display().to_string());
    let setup = Setup {
        workers: Arc::new(Slow),
        ..Setup::of(config(&text))
    };
    let mut engine = App::engine_loop(setup).expect("it loads");
    let beat = engine.published.beat("engine");
    engine.beat = Some(beat.clone());
    std::thread::sleep(Duration::from_millis(300));
    let before = beat.silence();
    engine.save_and_wait().expect("it is written in the end");
    assert!(beat.silence() < before);
    engine.end().expect("it ends in order");
}

#[test]
fn journals_that_a_write_has_not_finished_with_pause_reading_too() {
    let text = CONFIG.replace("outcome = \"y\" }", "outcome = \"y\", id = \"id\" }");
    let (_folder, mut engine) = started(&text);
    let log = Arc::clone(&engine.logs["scores"]);
    // The first event is read with the start, which is stored at once.
    for id in ["a", "b"] {
        let event = r#"{"model":"m","at":1700000000000,"p":0.5,"y":1,"id":"ID"}"#.replace("ID", id);
        log.append(None, 0, vec![event]).expect("room");
        read_one(&mut engine);
        engine.wait_saved();
        assert_eq!(engine.unwritten, 0);
    }
    // The journal of its ids.
    let bytes = engine.topology.journal_bytes();
    assert!(bytes > 0);
    engine.save();
    assert_eq!(
        (engine.unwritten, engine.topology.journal_bytes()),
        (bytes, 0)
    );
    // As if that write did not end.
    engine.unwritten = UNWRITTEN_MAX + 1;
    engine.pause_while_unwritten();
    assert!(engine.disk_behind && engine.is_writing());
    engine
        .wait_saved()
        .expect("a write")
        .expect("it is written");
    assert_eq!(engine.unwritten, 0);
    assert!(!engine.disk_behind);
    engine.end().expect("it ends in order");
}

#[test]
fn a_backlog_of_which_a_third_is_rejected_is_not_well_though_it_is_read_at_once() {
    let (_folder, mut engine) = started(CONFIG);
    let good = r#"{"model":"m","at":1700000000000,"p":0.5,"y":1}"#;
    let backlog = [
        good,
        good,
        r#"{"model":"m","at":1700000000000,"p":2,"y":1}"#,
    ];
    let log = Arc::clone(&engine.logs["scores"]);
    log.append(None, 0, backlog.map(str::to_owned).into())
        .expect("room");
    let (begun, mut read) = (Instant::now(), 0);
    while read < backlog.len() {
        read += engine.step();
        assert!(begun.elapsed() < Duration::from_secs(60), "{read} are read");
    }
    engine.publish_facts();
    let concerns = engine.published.concerns();
    let rejected = concerns.iter().find(|c| c.source == "scores");
    let rejected = rejected.expect("a concern");
    assert_eq!(rejected.words, "33 % of the records are rejected");
    engine.end().expect("it ends in order");
}

#[test]
fn a_process_that_notifies_nobody_any_more_shows_no_sinks() {
    let (_folder, mut engine) = started(CONFIG);
    let sink = SinkFacts::default();
    engine.published.update(|facts| facts.sinks = vec![sink]);
    engine.stop_alerts();
    assert_eq!(engine.published.facts().sinks, []);
}

/// An event so large that a segment of the smallest log holds few.
fn large_event() -> String {
    let pad = "x".repeat(8 << 10);
    format!(r#"{{"at":1700000000000,"p":0.5,"y":1,"pad":"{pad}"}}"#)
}

#[test]
fn an_event_log_keeps_what_the_snapshot_in_use_needs_if_the_newest_is_torn() {
    let limits = "[http.events]\nbytes_max = \"1MiB\"\nrequest_bytes_max = \"64KiB\"\n[state]";
    let text = CONFIG.replace("[state]", limits);
    let (folder, mut engine) = started(&text);
    for _ in 0..2 {
        let log = Arc::clone(&engine.logs["scores"]);
        for _ in 0..20 {
            log.append(None, 0, vec![large_event()]).expect("room");
            read_one(&mut engine);
        }
        engine.save_and_wait().expect("there is space");
    }
    assert_eq!(engine.logs["scores"].reader().consumed(), Some(40));
    // As if the process was killed and the newest snapshot torn.
    drop(engine);
    let files = std::fs::read_dir(folder.path()).expect("a folder");
    let files = files.map(|file| file.expect("a file").path());
    let snapshots = files.filter(|file| file.extension().is_some_and(|e| e == "trueline"));
    let newest = snapshots.max().expect("a snapshot");
    let bytes = std::fs::read(&newest).expect("its bytes");
    std::fs::write(&newest, &bytes[..bytes.len() / 2]).expect("written");
    let text = text.replace("STATE", &folder.path().display().to_string());
    let engine = App::engine_loop(Setup::of(config(&text))).expect("it loads");
    let restored = engine.topology.positions()[0].offset;
    assert!(restored < 40, "{restored}");
    let log = &engine.logs["scores"];
    while log.append(None, 0, vec![large_event()]).is_ok() {}
    let first = log.facts().first;
    assert!(first as i64 <= restored, "{first} of {restored}");
}

#[test]
fn the_worker_tells_the_event_log_what_a_snapshot_has_once_it_is_on_disk() {
    let (folder, mut engine) = started(CONFIG);
    let log = Arc::clone(&engine.logs["scores"]);
    let post = || {
        let event = r#"{"at":1700000000000,"p":0.5,"y":1}"#.to_owned();
        log.append(None, 0, vec![event]).expect("room");
    };
    let consumed = || log.reader().consumed();
    post();
    read_one(&mut engine);
    engine.wait_saved();
    engine.save();
    let written = engine.snapshots.wait(Duration::MAX).expect("a write");
    // The engine's thread has not used the result.
    assert!(written.result.is_ok());
    assert_eq!(consumed(), Some(1));
    engine.saved(&written);
    post();
    read_one(&mut engine);
    std::fs::remove_file(folder.path().join("lock")).expect("it is there");
    engine.wait_saved();
    engine.save_and_wait().expect_err("the directory is lost");
    assert_eq!(consumed(), Some(1));
}
