//! What integration tests share: a real Kafka broker, its topics, and a `trueline run` process.
//!
//! A test that needs the broker asks for one and returns when there is none; it has then said so by
//! name ([`skip`]). There is one when `KAFKA_BOOTSTRAP` names it, or when `tests/run` found Java
//! and Maven and set `TRUELINE_TEST_KAFKA`: then each test starts its own through
//! `tests/kafka/broker`, about four seconds, because a test that stops a broker must not stop
//! another's. Everything started here ends when its value is dropped, also when the test fails.

// Each test binary compiles this file and uses a part of it.
#![allow(dead_code)]

pub mod bars;
pub mod broker;
pub mod clock;
pub mod disk;
pub mod encode;
pub mod events;
pub mod expressions;
pub mod golden;
pub mod json_page;
pub mod late;
pub mod many_streams;
pub mod memory_store;
pub mod oracle;
pub mod partitions;
pub mod published;
pub mod random;
pub mod records;
pub mod registry;
pub mod scrape;
pub mod sender;
pub mod server;
pub mod service;
pub mod streams;

use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use tempfile::TempPath;

/// Says that `test` did not run and what it lacks; fails it instead where nothing may be skipped.
pub fn skip(test: &str, lacks: &str) {
    let everything = std::env::var("TRUELINE_TEST_ALL").is_ok_and(|v| v == "1");
    assert!(!everything, "{test} may not be skipped here: {lacks}");
    let line = format!("{test} ({lacks})");
    // Not `eprintln!`, which the test runner keeps to itself when the test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {line}");
    if let Some(path) = std::env::var_os("TRUELINE_SKIPPED_LIST") {
        let list = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        let _ = list.and_then(|mut list| writeln!(list, "{line}"));
    }
}

/// A file whose name ends in this one; it goes when the value does.
pub fn file(name: &str, bytes: &[u8]) -> TempPath {
    let name = format!("-{name}");
    let mut file = tempfile::Builder::new();
    let file = file.prefix("trueline-").suffix(&name).tempfile();
    let mut file = file.expect("a temporary file");
    file.write_all(bytes).expect("it is written");
    file.into_temp_path()
}

/// A port on loopback that was free a moment ago. It is below the kernel's ephemeral range, so that
/// no outgoing connection takes it while the process that has it is down (`kafka/broker` does the
/// same).
pub fn free_port() -> u16 {
    let draw = |at: u16| 15_000 + (RandomState::new().hash_one(at) % 15_000) as u16;
    (0..100)
        .map(draw)
        .find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        .expect("a free port")
}

/// Waits until `answer` is `Some`, looking ten times a second; fails after `limit` with `what`.
pub fn wait_for<T>(what: &str, limit: Duration, mut answer: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = answer() {
            return value;
        }
        assert!(
            start.elapsed() < limit,
            "waited {limit:?} in vain for {what}"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}
