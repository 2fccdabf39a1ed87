//! The path of a record: the files that a reader opens, in this order, to follow one JSON record, a
//! score with its outcome, from the poll to the verdict in one process, and what to look for in
//! each.
//!
//! A file counts if it decides something about the record or holds it on its way. What a call says
//! completely does not count, because a reader need not open it:
//!
//! * decoding and the statistics, beyond one file each, which says what is behind the calls;
//! * the client library, where a batch is fetched (`client.take(..)`);
//! * the names by which tables find streams (`event.names()`), and counting
//!   (`counters.source_mut(..).count(..)`);
//! * the codec of sums (`Packed::new(..)`, `merge_into(..)`), and the threads that judge streams in
//!   order (`runtime.map(..)`);
//! * the settings of a model.
//!
//! The list may become shorter; a change that makes it longer puts a file into every reader's way.

use super::source::sources;
use std::collections::BTreeMap;

/// Most files on the path.
const FILES_MAX: usize = 21;

/// Files under `src`, and what the record meets there.
const PATH: [(&str, &str); 21] = [
    ("app/engine_loop.rs", "pub fn step("),
    ("app/ingest/consumer.rs", "pub fn poll("),
    ("kafka/consumer.rs", "pub fn poll<"),
    ("kafka/handler.rs", "pub struct Record<"),
    ("app/ingest/record.rs", "impl RecordReader"),
    ("decode/mod.rs", "//! "),
    ("collect/event.rs", "pub struct Event<"),
    ("app/cluster/topology.rs", "pub enum Topology"),
    ("monitor/shard.rs", "pub trait RecordSink"),
    ("collect/collector.rs", "pub fn observe("),
    ("collect/partition.rs", "pub fn observe("),
    ("collect/streams.rs", "pub fn find"),
    ("collect/stream.rs", "pub struct PaneDelta"),
    ("stats/lib.rs", "//! "),
    ("monitor/engine.rs", "pub struct Engine"),
    ("monitor/delta.rs", "pub struct PendingPanes"),
    ("monitor/monitor.rs", "pub fn apply("),
    ("judge/judge.rs", "pub fn seal("),
    ("window/pane.rs", "pub struct Pane"),
    ("window/ring.rs", "pub fn next_total("),
    ("judge/verdict.rs", "pub enum Verdict"),
];

#[test]
fn the_path_of_a_record_is_as_listed_and_no_longer() {
    assert!(PATH.len() <= FILES_MAX);
    let all: BTreeMap<String, String> = sources().into_iter().collect();
    for (file, item) in PATH {
        let text = all.get(file).unwrap_or_else(|| panic!("no src/{file}"));
        assert!(text.contains(item), "src/{file} has no `{item}`");
    }
}
