//! A joiner that spills tells what one in memory tells, over generated steps and over the store on
//! disk.

use super::{END_MS, Side, Step, directory, plan};
use crate::support::memory_store::MemoryBackend;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::sync::Arc;
use trueline::collect::join::{JoinPlan, Repeated, SpillBackend};
use trueline::store::spill::SpillStore;

fn step(ids: u16) -> impl Strategy<Value = Step> {
    let prediction =
        (0..ids, 0..END_MS, 0..3u8, 0..8u8).prop_map(|(id, time_ms, score, version)| {
            Step::Prediction {
                id,
                model: id % 2,
                time_ms,
                score,
                // Every fourth id is scored by several versions.
                version: if id % 4 == 0 { version % 3 } else { 0 },
            }
        });
    let outcome = (0..ids, 0..2 * END_MS, 0..2u32).prop_map(|(id, time_ms, class)| Step::Outcome {
        id,
        time_ms,
        class,
    });
    prop_oneof![
        30 => prediction,
        20 => outcome,
        2 => (0..10i64).prop_map(Step::Mature),
        1 => Just(Step::Restart),
    ]
}

/// Both sides take the same steps and tell the same; returns how many had spilled at most.
fn agree(steps: &[Step], plan: &JoinPlan, spills: Arc<dyn SpillBackend>) -> usize {
    let memory = JoinPlan {
        pending_memory: usize::MAX,
        ..plan.clone()
    };
    let mut plain = Side::new(memory, None);
    let mut spilling = Side::new(plan.clone(), Some(spills));
    let end = [Step::Mature(100), Step::Mature(200)];
    for (i, step) in steps.iter().chain(&end).enumerate() {
        let expected = plain.take(step);
        assert_eq!(spilling.take(step), expected, "step {i}: {step:?}");
        assert_eq!(
            spilling.joins.retained(),
            plain.joins.retained(),
            "step {i}"
        );
        for model in [0, 1] {
            assert_eq!(
                spilling.joins.oldest_ms(model),
                plain.joins.oldest_ms(model)
            );
        }
        if i % (16 + steps.len() / 100) == 0 {
            assert_eq!(spilling.pending(), plain.pending());
            assert_eq!(spilling.keep(), plain.keep(), "journals do not know of it");
        }
    }
    assert_eq!(
        (spilling.joins.retained(), spilling.joins.spilled()),
        (0, 0)
    );
    spilling.spilled
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn whatever_spills_the_joiners_tell_the_same(
        steps in proptest::collection::vec(step(24), 0..200),
        repeated in 0..3usize,
        revise: bool,
        pending_memory in 0..4000usize,
    ) {
        let repeated = [Repeated::First, Repeated::Last, Repeated::Reject][repeated];
        agree(&steps, &plan(repeated, revise, pending_memory), Arc::new(MemoryBackend));
    }
}

/// Steps by the thousand, so that lists are full and tables are merged.
fn many(n: usize, ids: u16) -> Vec<Step> {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let steps = proptest::collection::vec(step(ids), n);
    let tree = steps.new_tree(&mut runner).expect("steps");
    let mut steps = tree.current();
    // Lines that move far are rare, and restarts, which read everything again.
    let mut restarts = 0;
    steps.retain(|s| {
        restarts += usize::from(matches!(s, Step::Restart));
        !matches!(s, Step::Mature(4..)) && (!matches!(s, Step::Restart) || restarts % 200 == 0)
    });
    steps
}

#[test]
fn the_store_on_disk_tells_the_same_as_memory() {
    for (revise, ids, pending_memory) in [(false, 20_000, 200_000), (true, 60_000, 400_000)] {
        let directory = directory();
        let store = Arc::new(SpillStore::new(directory.path()).expect("a store"));
        let plan = plan(Repeated::First, revise, pending_memory);
        let spilled = agree(&many(40_000, ids), &plan, store.clone());
        println!("{spilled} predictions had spilled, {} bytes", store.bytes());
        assert!(spilled > 1000, "the test bites: {spilled}");
    }
}
