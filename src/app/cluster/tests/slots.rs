//! The two slots of a checkpoint, and of its parts for judges.

use super::{Topic, assign, options};
use crate::app::Threads;
use crate::app::cluster::assignment::Assignment;
use crate::app::cluster::checkpoint_store::CheckpointStore;
use crate::app::cluster::options::CheckpointOptions;
use crate::monitor::{PartitionEvent, Plan, RecordSink, Shards};
use std::time::Duration;

#[test]
fn a_judge_partition_that_nobody_serves_leaves_the_newest_checkpoint_whole() {
    let topic = Topic::default();
    let options = CheckpointOptions {
        judge_partitions: Some(2),
        ..options(&topic, Threads)
    };
    let store = CheckpointStore::new(options).expect("a store");
    let mut assignment = Assignment::new(
        Shards::of_worker(Plan::default(), vec![0]),
        store,
        vec!["t".to_owned()],
    );
    assign(&mut assignment, 1);
    let at = (0, 0).into();
    // The slots of the written heads: of the checkpoint, then of its parts for judges.
    for (offset, leaderless, slots) in [
        (1, None, "1 1 1"),
        (2, Some(1), "0"),
        (3, Some(1), "1"),
        (4, Some(1), "0"),
        (5, None, "1 0 0"),
        (6, None, "0 1 1"),
    ] {
        *topic.leaderless.lock() = leaderless.into_iter().collect();
        topic.written.lock().clear();
        let sink = assignment.shards_mut().get_mut(at).expect("a shard");
        sink.on_partition(at, PartitionEvent::Rewound(offset));
        assignment.write();
        let written = assignment.wait_written(Duration::MAX).expect("a batch");
        assert_eq!(written.result.is_ok(), leaderless.is_none(), "{written:?}");
        let written = topic.written.lock();
        let heads = written
            .iter()
            .filter_map(|(key, _)| key.split_once("/head/"));
        let heads: Vec<&str> = heads.map(|(_, slot)| slot).collect();
        assert_eq!(heads.join(" "), slots, "{offset}");
    }
}
