//! Deltas that wait for the checkpoints of a worker.

use super::{Topic, assign, options};
use crate::app::Threads;
use crate::app::cluster::assignment::Assignment;
use crate::app::cluster::checkpoint_store::CheckpointStore;
use crate::app::ingest::config;
use crate::app::testing::event;
use crate::collect::PartitionId;
use crate::monitor::{RecordSink, Shards};
use std::time::Duration;

const CONFIG: &str = r#"
version = 1
[[source]]
input = "http"
topics = ["t"]
fields = { model = "m", time = "at", score = "p", outcome = "y" }
[[model]]
name = "*"
[state]
directory = 'state'
"#;

#[test]
fn many_panes_ask_for_a_checkpoint_and_for_a_pause_until_it_is_stored() {
    let store = CheckpointStore::new(options(&Topic::default(), Threads)).expect("a store");
    let shards = Shards::of_worker(config(CONFIG).plan, vec![0]);
    let mut assignment = Assignment::new(shards, store, vec!["t".to_owned()]);
    assign(&mut assignment, 1);
    // 300 panes of 400 models.
    for pane in 0..300 {
        let shards = assignment.shards_mut();
        let shard = shards.get_mut((0, 0).into()).expect("ours");
        for model in 0..400 {
            let origin = PartitionId::from((0, 0)).at(pane * 400 + model);
            let model = format!("model {model}");
            let time_ms = 1_700_000_000_000 + pane * 50_000;
            let event = event(&model, "", time_ms, 0.5, true);
            shard.observe(origin, &event);
        }
        shards.advance();
    }
    let asks = |a: &Assignment| (a.shards().deltas_due(), a.shards().deltas_full());
    assert_eq!(asks(&assignment), (true, true));
    assignment.write();
    assert_eq!(asks(&assignment), (true, true));
    let written = assignment.wait_written(Duration::MAX).expect("a batch");
    assert!(written.result.is_ok() && written.bytes > 8 << 20);
    assert_eq!(asks(&assignment), (false, false));
    assert_eq!(assignment.checkpoints().0.deltas_cut, 0);
}
