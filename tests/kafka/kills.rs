//! Predictions and outcomes on two topics of a real Kafka, with the process killed at random
//! moments: the sums, counters and verdicts must be those of a pass that nobody disturbed, bit for
//! bit. Its pending predictions go beyond the memory that they may take, and three threads decode;
//! those of the undisturbed pass stay in memory, and its engine decodes alone.
//!
//! `TRUELINE_KILLS` and `TRUELINE_EVENTS` make it as long as wanted; in CI it is short.

use crate::support;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::broker::{Broker, unique};
use crate::support::late::{close, of_environment, records, send, spilling};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use trueline::collect::SourceCounters;
use trueline::monitor::snapshot::StreamState;
use trueline::stats::rng::Rng;

const PARTITIONS: i32 = 4;

fn config(brokers: &str, instance: &str, topics: &[String; 2]) -> String {
    let group = format!("{}-{instance}", topics[0]);
    let kafka =
        format!("instance = \"{instance}\"\n[kafka.options]\n\"session.timeout.ms\" = \"10000\"");
    support::late::config(brokers, &group, topics, &kafka, "")
}

/// What a process knows in the end, but for the wall clock's part in it and the order of first
/// arrival.
pub(super) type Known = (
    BTreeMap<(u16, i32), i64>,
    Vec<SourceCounters>,
    BTreeMap<String, StreamState>,
);

pub(super) fn known(service: &Service) -> Known {
    let snapshot = trueline::store::load(&service.state())
        .expect("a snapshot that can be read")
        .expect("a snapshot");
    let positions = snapshot.partitions.positions();
    let streams = snapshot.streams.into_iter().map(|mut stream| {
        stream.slot = None;
        (stream.name.clone(), stream)
    });
    let counters = snapshot.counters.sources();
    (
        positions
            .map(|p| ((p.source, p.partition), p.offset))
            .collect(),
        counters.map(|(_, c)| c.clone()).collect(),
        streams.collect(),
    )
}

/// Waits until all records were read and everything before the clock is mature.
pub(super) fn settle(service: &Service, records: u64) {
    let read = || {
        let scrape = service.scrape()?;
        let open = scrape.sum("trueline_records_open", &[]) as u64;
        let read = service.counted("records")? as u64;
        // The predictions of the clock are never mature here.
        (read == records && open == PARTITIONS as u64).then_some(())
    };
    wait_for("all records to be read and mature", 2 * LIMIT, read);
}

#[test]
fn kills_at_random_moments_leave_the_sums_of_one_undisturbed_pass() {
    let name = "kills_at_random_moments_leave_the_sums_of_one_undisturbed_pass";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let kills = of_environment("TRUELINE_KILLS", 6);
    let records = records(of_environment("TRUELINE_EVENTS", 60_000), PARTITIONS);
    let topics = ["predictions", "outcomes"].map(|t| format!("trueline-late-{t}-{}", unique()));
    broker.create_topics(&[(&topics[0], PARTITIONS), (&topics[1], PARTITIONS)]);
    let mut sender = broker.producer();
    let threads = "[limits]\nthreads = 3\n";
    let disturbed = spilling(&config(&broker.bootstrap, "one", &topics)) + threads;
    let mut service = Service::start(&disturbed);
    service.wait_ready();

    let mut rng = Rng::new(7);
    let share = records.len() / kills as usize + 1;
    for part in records.chunks(share) {
        // About two seconds of traffic, and the kill somewhere in it.
        let kill = (rng.uniform() * 20.0) as usize;
        for (i, chunk) in part.chunks(part.len().div_ceil(20)).enumerate() {
            send(&mut sender, &topics, chunk);
            std::thread::sleep(Duration::from_millis(100));
            // A partition that the broker takes later than others would have late records.
            sender.flush();
            if i == kill {
                service.end("KILL");
                service.start_again();
            }
        }
    }
    service.wait_spilled();
    close(&mut sender, &topics, PARTITIONS);
    let all = records.len() as u64 + 2 * PARTITIONS as u64;
    settle(&service, all);
    assert_eq!(service.end("TERM"), Some(0));

    assert_undisturbed(&service, &broker, &topics, all);
}

/// Compares what a process knows in the end with one that nobody disturbs.
fn assert_undisturbed(service: &Service, broker: &Broker, topics: &[String; 2], all: u64) {
    let alone = "[limits]\nthreads = 1\n";
    let mut undisturbed = Service::start(&(config(&broker.bootstrap, "two", topics) + alone));
    settle(&undisturbed, all);
    assert_eq!(undisturbed.end("TERM"), Some(0));

    let (ours, theirs) = (known(service), known(&undisturbed));
    assert_eq!(ours.0, theirs.0, "offsets");
    assert_eq!(ours.1, theirs.1, "counters");
    let total = &ours.1[1];
    assert!(
        total.matched > 1000 && total.revised > 100 && total.duplicate > 100,
        "{total:?}"
    );
    assert!(ours.1.iter().all(|c| c.records == c.disposed()));
    assert_eq!(ours.2.len(), 4, "three models and the clock");
    for (model, state) in &ours.2 {
        assert!(*state == theirs.2[model], "state of {model} differs");
    }
}

#[test]
fn a_network_cut_loses_nothing_and_doubles_nothing() {
    let name = "a_network_cut_loses_nothing_and_doubles_nothing";
    let Some(broker) = Broker::own(name) else {
        return;
    };
    // Longer than a session, so that the group has put the process out when it is over.
    let cut = of_environment("TRUELINE_CUT_SECONDS", 12);
    let records = records(40_000, PARTITIONS);
    let topics = ["predictions", "outcomes"].map(|t| format!("trueline-cut-{t}-{}", unique()));
    broker.create_topics(&[(&topics[0], PARTITIONS), (&topics[1], PARTITIONS)]);
    let mut sender = broker.producer();
    let mut service = Service::start(&config(&broker.bootstrap, "one", &topics));
    service.wait_ready();
    for (i, chunk) in records.chunks(records.len().div_ceil(40)).enumerate() {
        send(&mut sender, &topics, chunk);
        if i == 20 {
            broker.signal("STOP");
            for _ in 0..cut {
                std::thread::sleep(Duration::from_secs(1));
                let scrape = service.scrape();
                assert!(scrape.is_some(), "metrics are answered meanwhile");
            }
            broker.signal("CONT");
        }
        std::thread::sleep(Duration::from_millis(100));
        sender.flush();
    }
    close(&mut sender, &topics, PARTITIONS);
    let all = records.len() as u64 + 2 * PARTITIONS as u64;
    settle(&service, all);
    assert_eq!(service.end("TERM"), Some(0));
    assert_undisturbed(&service, &broker, &topics, all);
}
