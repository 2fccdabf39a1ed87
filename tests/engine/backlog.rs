//! A judge that has much to judge at once judges it in steps, and says the same.

use crate::support::partitions::{PARTITIONS, feed, judged, logs, plan};
use trueline::judge::Change;
use trueline::monitor::liveness::Freshness;
use trueline::monitor::{Aggregator, LocalShard, Plan};

const NOW_MS: i64 = 1_800_000_000_000;

fn topics() -> Vec<String> {
    vec!["t".to_owned()]
}

/// Shows a judge the checkpoints of all partitions, each read to its end.
fn show(judge: &mut Aggregator, plan: &Plan) {
    for (p, log) in (0..PARTITIONS).zip(logs(7, 1_500)) {
        let at = (0, p).into();
        let mut shard = LocalShard::new(at, plan, topics(), None);
        shard.assign(at);
        shard.keep_log();
        for (offset, r) in log.iter().enumerate() {
            feed(&mut shard, p, offset, r);
        }
        let deltas = shard.delta_batch();
        let taken = judge.take(at, 1, shard.snapshot(), deltas);
        taken.expect("usable");
        judge.set_freshness(at, Freshness::Behind);
    }
}

/// A judge that has read all and judged nothing.
fn judge(plan: &Plan) -> Aggregator {
    let mut judge = Aggregator::new(plan.clone(), topics());
    show(&mut judge, plan);
    judge
}

fn say(said: &mut Vec<String>, changes: Vec<Change>) {
    let change = |c: Change| format!("{} {} {:?} {}", c.stream, c.at_ms, c.step, c.sentence);
    said.extend(changes.into_iter().map(change));
}

#[test]
fn a_backlog_is_judged_in_steps_to_the_same_verdicts_though_the_judge_is_restarted_in_between() {
    let plan = plan();
    let (mut expected, mut said) = (Vec::new(), Vec::new());
    let mut at_once = judge(&plan);
    at_once.advance();
    say(&mut expected, at_once.tick(NOW_MS));
    assert!(expected.len() > 20, "only {} changes", expected.len());

    let (mut in_steps, mut steps) = (judge(&plan), 0);
    let mut evaluations = 0;
    while !in_steps.advance_some(1) {
        steps += 1;
        say(&mut said, in_steps.tick(NOW_MS));
        if steps == 5 {
            evaluations = in_steps.counters().evaluations;
            assert!(evaluations > 0, "what was judged is counted at once");
            let restored = Aggregator::restore(plan.clone(), topics(), in_steps.snapshot());
            in_steps = restored.expect("sound");
            show(&mut in_steps, &plan);
        }
    }
    say(&mut said, in_steps.tick(NOW_MS));
    // Each step judges one pane of 2 s, of a minute.
    assert!(steps > 25, "{steps} steps");
    assert_eq!(judged(in_steps.monitor()), judged(at_once.monitor()));
    assert_eq!(
        in_steps.counters().evaluations + evaluations,
        at_once.counters().evaluations
    );
    // The streams come in another order.
    for all in [&mut said, &mut expected] {
        all.sort();
    }
    assert_eq!(said, expected);
}
