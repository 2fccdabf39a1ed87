//! Partitions whose topic this user sees and may not read.
//!
//! librdkafka says that once, and goes on asking every few seconds. An answer that denies has no
//! end of the log, so the client does not know the end of such a partition until it may read again.

use super::super::{Handler, KafkaError, Partition};
use super::Consumer;

impl Consumer {
    /// The broker denies a partition: what it has is not known, so its end no longer holds.
    pub(super) fn deny<H: Handler>(&mut self, p: Partition, text: String, handler: &mut H) {
        let error = KafkaError::topic_denied(self.topics.name(p), "READ", text);
        self.report(error, handler);
        if self.next.readable(p).is_some() && self.denied.insert(p) {
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
