//! The real broker of the other tests does what they take for granted.

use crate::support::broker::{Broker, unique};
use crate::support::events::Events;

#[test]
fn a_real_broker_keeps_what_was_produced_over_a_restart() {
    let Some(mut broker) = Broker::own("a_real_broker_keeps_what_was_produced_over_a_restart")
    else {
        return;
    };
    let topic = format!("trueline-test-{}", unique());
    broker.create_topics(&[(&topic, 1)]);
    let mut events = Events::new(1, 1_700_000_000_000, 10);
    let records: Vec<String> = (0..1000).map(|_| events.next_record()).collect();
    let mut sender = broker.producer();
    for record in &records[..500] {
        sender.send(&topic, 0, record.as_bytes());
    }
    sender.flush();
    broker.stop();
    broker.start();
    for record in &records[500..] {
        sender.send(&topic, 0, record.as_bytes());
    }
    sender.flush();
    let read = broker.read_all(&topic);
    assert_eq!(read.len(), records.len());
    assert!(
        read.iter()
            .zip(&records)
            .all(|(read, record)| read.payload == record.as_bytes())
    );
}
