use super::*;
use crate::telemetry::facts::SourceFacts;

#[test]
fn ready_means_every_named_part_said_so() {
    let published = Published::default();
    assert!(published.missing().contains_key("start"));
    published.not_ready("kafka", "joining the group");
    published.not_ready("state", "restoring");
    published.ready("state");
    let missing = published.missing();
    assert_eq!(missing.len(), 1);
    assert_eq!(missing["kafka"], "joining the group");
    published.ready("kafka");
    assert!(published.missing().is_empty());
    let mut pairs = published.taps.listen(None, 1).expect("room");
    published.drain();
    assert!(published.missing().contains_key("drain"));
    assert_eq!(pairs.blocking_recv(), None);
}

#[test]
fn a_source_whose_brokers_do_not_answer_is_of_concern_until_they_do() {
    let published = Published::default();
    published.not_ready("kafka scores,clicks", "joining the group");
    assert_eq!(published.concerns(), []);
    published.not_ready("kafka scores,clicks", "no broker answers");
    published.not_ready("brokers of scores", "no broker has answered for 30 s");
    let concerns = published.concerns();
    let found: Vec<_> = concerns
        .iter()
        .map(|c| (c.source.as_str(), c.rule))
        .collect();
    let rule = "TruelineNotReady";
    assert_eq!(found, [("clicks", rule), ("scores", rule)]);
    assert!(concerns[1].words.contains("for 30 s"), "{concerns:?}");
    published.ready("kafka scores,clicks");
    published.ready("brokers of scores");
    assert_eq!(published.concerns(), []);
}

/// The wall clock plays no part: it may be set forward and back.
#[test]
fn what_was_rejected_counts_for_minutes_of_the_time_since_the_start() {
    let mut published = Published::default();
    let mut rules_after = |minutes: u64, records: u64, rejected: u64| {
        published.grow_older(Duration::from_secs(60 * minutes));
        let mut source = SourceFacts::default();
        source.counters.records = records;
        source.counters.rejected[0] = rejected;
        published.update(|facts| facts.sources = vec![source]);
        published.observe_counts();
        let concerns = published.concerns();
        concerns.iter().map(|c| c.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules_after(0, 1000, 0), [""; 0]);
    assert_eq!(rules_after(4, 2000, 12), ["TruelineRecordsRejected"]);
    assert_eq!(rules_after(1, 3000, 12), [""; 0]);
    assert_eq!(rules_after(600, 100_000, 12), [""; 0]);
    assert_eq!(rules_after(5, 101_000, 24), ["TruelineRecordsRejected"]);
}

#[test]
fn a_silent_loop_is_not_live() {
    let published = Published::new(Limits {
        live_within: Duration::ZERO,
        ..Limits::default()
    });
    assert!(published.live());
    let beat = published.beat("engine");
    while beat.silence().is_zero() {
        std::hint::spin_loop();
    }
    assert!(!published.live());
    published.ready("state");
    assert!(published.missing()["loop engine"].contains("it has not run for"));
    beat.tick();
    published.end_beat("engine");
    assert!(published.live() && published.missing().is_empty());
}

#[test]
fn facts_read_before_a_change_stay_as_they_were() {
    let published = Published::default();
    let before = published.facts();
    published.update(|facts| facts.engine.streams = 7);
    assert_eq!(before.engine.streams, 0);
    assert_eq!(published.facts().engine.streams, 7);
}

#[test]
fn each_duration_falls_in_the_bucket_that_bounds_it() {
    let published = Published::default();
    published.record_evaluation(Duration::from_micros(50));
    published.record_evaluation(Duration::from_secs(2));
    let all = published.evaluations();
    assert_eq!(all.counts[0], 1);
    assert_eq!(all.counts[EVALUATION_BUCKETS.len()], 1);
    assert!((all.sum - 2.000_05).abs() < 1e-9);
}
