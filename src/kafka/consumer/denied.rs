//! Partitions whose topic this user may see but not read.
//!
//! librdkafka reports this once and keeps asking every few seconds. A denial does not contain the
//! end of the log, so the client does not know it until reading is allowed again. The known end is
//! forgotten, because much may be unread by then.

use super::super::{Handler, KafkaError, Partition};
use super::Consumer;

impl Consumer {
    /// Notes that the broker denies a partition: its end is no longer known.
    pub(super) fn deny<H: Handler>(&mut self, p: Partition, text: String, handler: &mut H) {
        let error = KafkaError::topic_denied(self.topics.name(p), "READ", text);
        self.report(error, handler);
        if self.next.readable(p).is_some() && self.denied.insert(p) {
            self.ends.forget(p);
            self.ends.watch_again(p);
            handler.grown(p);
        }
    }

    /// Forgets the partitions that the broker no longer denies.
    pub(super) fn admit_allowed(&mut self) {
        let (client, topics) = (&self.client, &self.topics);
        self.denied
            .retain(|p| client.end(topics.name(*p), p.partition).is_none());
    }

    /// The partitions that this user may not read.
    pub fn denied(&self) -> impl Iterator<Item = Partition> {
        self.denied.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::context::PartitionStats;
    use super::super::super::{Begin, KafkaOptions, Librdkafka, Record};
    use super::*;

    #[derive(Default)]
    struct Told(Vec<String>);

    impl Handler for Told {
        fn records(&mut self, _: &[Record<'_>]) {}
        fn assigned(&mut self, _: Partition) -> Option<i64> {
            None
        }
        fn begins(&mut self, _: Partition, _: Begin) {}
        fn revoked(&mut self, _: Partition, _: bool) {}
        fn end_of_partition(&mut self, _: Partition) {}
        fn lost(&mut self, _: Partition, _: std::ops::Range<i64>) {}
        fn rewound(&mut self, _: Partition, _: i64) {}
        fn suspended(&mut self, _: Partition, _: &str) {}
        fn error(&mut self, error: KafkaError) {
            self.0.push(error.to_string());
        }
    }

    #[test]
    fn the_lag_of_a_partition_that_was_denied_is_unknown_until_its_end_is_known_again() {
        let options = KafkaOptions {
            brokers: "127.0.0.1:1".to_owned(),
            group: "g".to_owned(),
            topics: vec!["t".to_owned()],
            ..KafkaOptions::default()
        };
        let mut consumer = Consumer::new(&options, &Librdkafka).expect("a client");
        let (p, mut told) = (Partition::from((0, 0)), Told::default());
        let stats = |end| PartitionStats {
            topic: "t".to_owned(),
            partition: 0,
            end: Some(end),
            stable: Some(end),
            next: None,
            responded: None,
            unfetched: false,
        };
        consumer.next.set(p, 100);
        consumer.ends.update(p, stats(100), Some(100));
        assert_eq!(consumer.lag(), [(p, 0)]);
        consumer.deny(p, "no".to_owned(), &mut told);
        assert_eq!((consumer.lag(), told.0.len()), (vec![], 1));
        // The partition may be read again, and it is not known yet how much was written meanwhile.
        consumer.denied.clear();
        assert_eq!(consumer.lag(), []);
        consumer.ends.update(p, stats(9_100), Some(100));
        assert_eq!(consumer.lag(), [(p, 9_000)]);
    }
}
