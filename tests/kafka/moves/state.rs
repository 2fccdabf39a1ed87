//! What a group holds in the end: the checkpoints in its topic, and the windows that its members
//! show.

use super::{PARTITIONS, SLIDE};
use crate::support::broker::Broker;
use crate::support::service::Service;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Debug;
use trueline::collect::SourceCounters;
use trueline::monitor::snapshot::{Snapshot, StreamState, VersionState};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::sums::Sums;
use trueline::store::checkpoint::{PartitionCheckpoint, prefix};
use trueline::store::reader::CheckpointReader;
use trueline::window::{PaneState, SumsState};

/// The checkpoints of a group as they lie in its topic.
pub fn checkpoints(
    broker: &Broker,
    group: &str,
    state: &str,
    topic: &str,
) -> BTreeMap<i32, PartitionCheckpoint> {
    let open = |partition: i32| {
        let mut reader = CheckpointReader::new(prefix(group, topic, partition));
        for (key, value) in broker.read_keyed(state, partition) {
            reader.read(&key, value.as_deref());
        }
        let found = reader
            .newest()
            .expect("sound checkpoints")
            .expect("a checkpoint");
        assert!(found.refused.is_empty(), "{:?}", found.refused);
        (partition, found.checkpoint)
    };
    (0..PARTITIONS).map(open).collect()
}

/// What is known of a partition, but for the wall clock's part in it and the order of first
/// arrival.
pub type Known = (
    BTreeMap<(u16, i32), i64>,
    Vec<SourceCounters>,
    BTreeMap<String, StreamState>,
    BTreeMap<String, VersionState>,
);

pub fn known(snapshot: &Snapshot) -> Known {
    let positions = snapshot.partitions.positions();
    let vectors = snapshot.vectors.iter().cloned().map(|mut version| {
        version.model = 0;
        // Partitions do not judge; ticks report what waits at the moment.
        version
            .views
            .iter_mut()
            .for_each(|v| v.judge.verdicts.clear());
        (version.name.clone(), version)
    });
    let streams = snapshot.streams.iter().cloned().map(|mut stream| {
        stream.slot = None;
        stream.model = 0;
        (stream.name.clone(), stream)
    });
    (
        positions
            .map(|p| ((p.source, p.partition), p.offset))
            .collect(),
        snapshot
            .counters
            .sources()
            .map(|(_, c)| c.clone())
            .collect(),
        streams.collect(),
        vectors.collect(),
    )
}

/// Sums, late events and predictions without outcome of each slide of each window, by model.
pub type Held = BTreeMap<(String, usize, i64), (Sums, u64, Vec<u64>)>;

pub fn hold(held: &mut Held, snapshot: &Snapshot) {
    let grid = Grid::new(Axis::Linear, 12);
    for stream in &snapshot.streams {
        // A stream without a sealed pane has no windows yet.
        let windows = stream.judges.first().map_or(&[][..], |j| &j.rings);
        for (window, ring) in windows.iter().enumerate() {
            let panes = ring.panes.iter().chain(&ring.gathering);
            for pane in panes {
                let PaneState {
                    start_ms,
                    late,
                    sums: SumsState::Scores(sums),
                    unlabelled,
                    ..
                } = pane
                else {
                    panic!("sums of scores")
                };
                let slide = start_ms - start_ms.rem_euclid(SLIDE);
                let entry = held.entry((stream.name.clone(), window, slide));
                let (all, lates, open) = entry.or_insert_with(|| (Sums::new(grid), 0, vec![0; 32]));
                sums.merge_into(all).expect("sums that fit");
                *lates += late;
                let counts = unlabelled.dropped().into_iter().chain(unlabelled.implied());
                open.iter_mut().zip(counts).for_each(|(a, b)| *a += b);
            }
        }
    }
}

/// Windows of the three models by stream and name.
pub type Windows = BTreeMap<String, Value>;

/// The windows of the three models as the API shows them, without alerts: they remember each slide,
/// and slides are skipped when partitions move; and without linear and block sums, which are of
/// each partition's events by themselves.
pub fn windows(service: &Service) -> Windows {
    let mut all = BTreeMap::new();
    for stream in service.streams().expect("streams") {
        if stream["model"] == "clock" {
            continue;
        }
        let path = stream["links"]["self"].as_str().expect("a link");
        let (_, body) = service.get(path).expect("an answer");
        let stream: Value = serde_json::from_str(&body).expect("the API answers JSON");
        for mut window in stream["windows"].as_array().cloned().expect("windows") {
            let name = format!(
                "{} {} {}",
                stream["model"], stream["view"], window["window"]
            );
            let fields = window.as_object_mut().expect("an object");
            fields.retain(|key, _| !key.starts_with("alert"));
            if let Some(kernel) = fields.get_mut("kernel").and_then(Value::as_object_mut) {
                kernel.retain(|key, _| !key.starts_with("blocks"));
            }
            all.insert(name, window);
        }
    }
    all
}

/// Shows where two states begin to differ.
pub fn assert_same<T: PartialEq + Debug>(what: &str, ours: &T, theirs: &T) {
    if ours == theirs {
        return;
    }
    let (a, b) = (format!("{ours:?}"), format!("{theirs:?}"));
    let at = a.bytes().zip(b.bytes()).position(|(x, y)| x != y);
    let near = |text: &str| {
        let at = at.unwrap_or(text.len());
        let range = at.saturating_sub(200)..(at + 100).min(text.len());
        text.get(range).unwrap_or_default().to_owned()
    };
    panic!("{what} differs:\n{}\n{}", near(&a), near(&b));
}
