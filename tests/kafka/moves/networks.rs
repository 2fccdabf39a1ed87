//! A broker that nobody reaches for a while costs no record of state, and doubles none.

use super::{PARTITIONS, Process, Stage, settled};
use crate::support::broker::Broker;
use crate::support::late::{Kind, close_of, of_environment, records_of, send};
use crate::support::service::LIMIT;
use crate::support::wait_for;
use std::time::Duration;

#[test]
fn a_network_cut_with_state_in_a_topic_loses_and_doubles_nothing() {
    let name = "a_network_cut_with_state_in_a_topic_loses_and_doubles_nothing";
    let Some(broker) = Broker::own(name) else {
        return;
    };
    let cut = of_environment("TRUELINE_CUT_SECONDS", 10);
    let kind = Kind::Scores;
    let records = records_of(kind, 40_000, PARTITIONS);
    let stage = Stage::new(&broker, kind, records.len());
    let mut all: Vec<Process> = [Some("one"), None]
        .map(|instance| Process::start(&stage.config("group", instance, true)))
        .into();
    all.iter().for_each(|p| p.service.wait_ready());
    let mut sender = broker.producer();
    for (i, chunk) in records.chunks(records.len().div_ceil(40)).enumerate() {
        send(&mut sender, &stage.topics, chunk);
        if i == 20 {
            broker.signal("STOP");
            for _ in 0..cut {
                std::thread::sleep(Duration::from_secs(1));
                let answers = |p: &Process| p.service.scrape().is_some();
                assert!(all.iter().all(answers), "metrics are answered meanwhile");
            }
            broker.signal("CONT");
        }
        std::thread::sleep(Duration::from_millis(100));
        sender.flush();
    }
    sender.flush();
    all[0].end("TERM");
    let last = &mut all[1];
    wait_for("one process to have all partitions", 2 * LIMIT, || {
        settled(&[&last.service], 2 * PARTITIONS as usize).then_some(())
    });
    close_of(kind, &mut sender, &stage.topics, PARTITIONS);
    let moved = stage.judged(&last.service);
    last.end("TERM");
    stage.compare("group", &moved);
}
