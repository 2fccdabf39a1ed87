//! The path of a record: the files that a reader opens, in this order, to follow one JSON record, a
//! score with its outcome, from the poll to the verdict in one process; what to look for in each;
//! and the code of an earlier file that leads there.
//!
//! A file counts if it decides something about the record or holds it on its way. What a call says
//! completely does not count, because a reader need not open it:
//!
//! * decoding and the statistics, beyond one file each, which says what is behind the calls;
//! * the client library, where a batch is fetched (`client.fetch(..)`);
//! * the names by which tables find streams (`event.names()`), and counting
//!   (`counters.source_mut(..).count(..)`);
//! * what holds a shard beside the monitor that takes its deltas (`self.parts()`);
//! * the codec of sums (`Packed::new(..)`, `merge_into(..)`), and the threads that judge streams in
//!   order (`runtime.map(..)`);
//! * the settings of a model.
//!
//! The list may become shorter; a change that makes it longer puts a file into every reader's way.
//! A new file between two of these takes the place of the code that led from one to the other.

use super::source::{blank_comments_and_strings, sources};
use std::collections::BTreeMap;

/// Most files on the path.
const FILES_MAX: usize = 20;

/// In each line a file under `src`, what the record meets there, the file from which the reader
/// comes, and the code there that leads on.
const PATH: &str = "
app/engine_loop.rs | pub fn step(
app/ingest/consumer.rs | pub fn poll(&mut self, topology: &mut Topology | app/engine_loop.rs | consumer.poll(&mut self.topology
kafka/consumer.rs | pub fn poll<H: Handler>( | app/ingest/consumer.rs | self.consumer.poll(wait, &mut handler)
kafka/handler.rs | pub struct Record< | kafka/consumer.rs | handler.records(&records)
app/ingest/record.rs | pub fn read_at( | app/ingest/consumer.rs | records.read_at(sink, record, rows)
decode/mod.rs | pub use source::{Needed, SourceDecoder} | app/ingest/record.rs | self.decoder.decode(topic, &raw(record), &mut each)
collect/event.rs | pub struct Event< | app/ingest/record.rs | Ok(Content::Event(event))
app/cluster/topology.rs | pub fn sink_of( | app/ingest/consumer.rs | self.topology.sink_of(
monitor/shard.rs | pub trait RecordSink | app/cluster/topology.rs | Option<&mut dyn RecordSink>
collect/collector.rs | pub fn observe( | monitor/shard.rs | self.collector.observe(origin, event)
collect/partition.rs | pub fn observe( | collect/collector.rs | self.partitions.observe(time_ms,
collect/streams.rs | pub fn find( | collect/collector.rs | self.streams.find(&event.names())
collect/stream.rs | pub fn current( | collect/collector.rs | stream.current(time, facts.pane_ms)
stats/lib.rs | pub mod batch | collect/stream.rs | use crate::stats::batch::BatchedSums
monitor/delta.rs | pub enum Delta | monitor/shard.rs | deltas.push(Delta::Pane {
monitor/monitor.rs | impl DeltaSink for Monitor | monitor/shard.rs | sink.take(delta)
judge/judge.rs | pub fn seal( | monitor/monitor.rs | judge.seal(pane.as_ref(), end_ms,
window/pane.rs | pub struct Pane | judge/judge.rs | pane: Option<&Pane>
window/windows.rs | pub fn next_total( | judge/judge.rs | self.windows.next_total(index, end_ms)
judge/verdict.rs | pub fn of(total: &Total | judge/judge.rs | Numbers::of(&total,
";

/// The first place where the path is not as listed.
fn fault(path: &str, sources: Vec<(String, String)>) -> Option<String> {
    let code = |(file, text): (String, String)| (file, blank_comments_and_strings(&text));
    let all: BTreeMap<String, String> = sources.into_iter().map(code).collect();
    let holds = |file: &str, item: &str| all.get(file).is_some_and(|text| text.contains(item));
    let mut before = Vec::new();
    for line in path.trim().lines() {
        let step: Vec<&str> = line.split(" | ").collect();
        let (file, item) = (step[0], step[1]);
        if !holds(file, item) {
            return Some(format!("src/{file} has no `{item}`"));
        }
        let leads = |from: &str| before.contains(&from) && holds(from, step[3]);
        if !before.is_empty() && !leads(step[2]) {
            return Some(format!("`{line}` does not lead on"));
        }
        before.push(file);
    }
    None
}

#[test]
fn the_path_of_a_record_is_as_listed_and_no_longer() {
    assert_eq!(fault(PATH, sources()), None);
    assert!(PATH.trim().lines().count() <= FILES_MAX);
}

#[test]
fn a_file_between_two_others_is_found() {
    let of = |a: &str| {
        let files = [
            ("a.rs", a),
            ("b.rs", "fn b() { c() }"),
            ("c.rs", "fn c() {}"),
        ];
        let files = files.map(|(file, text)| (file.to_owned(), text.to_owned()));
        fault("a.rs | fn a()\nc.rs | fn c() | a.rs | c()", files.to_vec())
    };
    assert_eq!(of("fn a() { c() }"), None);
    assert!(of("fn a() { b() } // c()").is_some());
}
