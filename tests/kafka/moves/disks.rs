//! A process whose disk is full cannot take a partition over, and loses nothing of it for the next.

use super::{PARTITIONS, Stage};
use crate::support::broker::Broker;
use crate::support::late::{Kind, records_of, send, spilling};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use std::process::Command;

#[test]
fn a_full_disk_during_a_takeover_ends_the_process_and_the_next_has_everything() {
    const PREDICTIONS: u32 = 40_000;
    let name = "a_full_disk_during_a_takeover_ends_the_process_and_the_next_has_everything";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let records = records_of(Kind::Scores, PREDICTIONS.into(), PARTITIONS);
    let stage = Stage::new(&broker, Kind::Scores, records.len());
    let mut sender = broker.producer();
    send(&mut sender, &stage.topics, &records);
    sender.flush();
    // All is there before it reads: a hundred minutes in a second would make what lags behind late.
    let mut service = Service::start(&spilling(&stage.config("group", None, true)));
    service.wait_ready();
    // Records are counted as they come, what is retained some time later: only the end of both is
    // compared.
    let retained = |service: &Service, what: &str| {
        wait_for(what, LIMIT, || {
            let retained = service.scrape()?.sum("trueline_predictions_retained", &[]);
            (retained == f64::from(PREDICTIONS)).then_some(())
        });
    };
    retained(&service, "all predictions");
    assert_eq!(service.end("TERM"), Some(0));
    // No file may grow beyond 8 KiB: to the process, a full disk.
    let limited = "trap '' XFSZ; ulimit -S -f 8; exec timeout 120 \"$0\" run --config \"$1\"";
    let limited = Command::new("bash")
        .args(["-c", limited, env!("CARGO_BIN_EXE_trueline")])
        .arg(service.config())
        .output()
        .expect("bash");
    let said = [limited.stdout, limited.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(limited.status.code(), Some(69), "{said}");
    for words in ["could not be taken over", "spill", "free space"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    service.start_again();
    retained(&service, "all predictions in the next process");
    assert_eq!(service.metric("trueline_partition_suspended", &[]), 0.0);
    assert_eq!(service.end("TERM"), Some(0));
}
