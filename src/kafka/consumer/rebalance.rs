//! Starting, restarting and giving up partitions.

use super::super::next_offsets::SUSPENDED;
use super::super::offsets::{Action, Position};
use super::super::{Handler, KafkaError, Partition};
use super::Consumer;
use rdkafka::consumer::{Consumer as _, RebalanceProtocol};
use rdkafka::error::KafkaResult;
use rdkafka::{Offset, TopicPartitionList};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often restarted partitions are forwarded.
const FORWARD_EVERY: Duration = Duration::from_millis(50);

impl Consumer {
    /// Requests unknown committed offsets again, and starts the partitions there.
    #[cold]
    pub(super) fn retry_committed<H: Handler>(&mut self, handler: &mut H) {
        let next = &self.next;
        let started = |p: Partition| next.get(p) != Some(0);
        let found = self.committed.retry(&self.client, &self.topics, started);
        for (p, offset) in found {
            self.restart_at(p, offset, handler);
        }
    }

    /// Starts newly assigned partitions at the offsets of the handler, of a commit, or of the
    /// configuration.
    pub(super) fn assign<H: Handler>(&mut self, list: &TopicPartitionList, handler: &mut H) {
        self.joined = true;
        let mut assigned = Vec::new();
        for p in self.topics.with_copartitions(list) {
            assigned.push((p, handler.assigned(p)));
        }
        let unknown = assigned.iter().filter(|(_, start)| start.is_none());
        let unknown: Vec<Partition> = unknown.map(|(p, _)| *p).collect();
        let committed = self.committed.first(&self.client, &self.topics, &unknown);
        let mut with_offsets = TopicPartitionList::new();
        let (mut all, mut suspended) = (Vec::new(), Vec::new());
        for (p, start) in assigned {
            self.queue.forward(self.topics.name(p), p.partition);
            let first = if handler.is_suspended(p) {
                suspended.push(p);
                // No record that is fetched before the pause below is handed over.
                SUSPENDED
            } else {
                start.unwrap_or(0).max(0)
            };
            self.next.set(p, first);
            all.push(p);
            let offset = match start {
                Some(o) => Offset::Offset(o),
                None => committed.get(&p).copied().unwrap_or(Offset::Stored),
            };
            let name = self.topics.name(p);
            let added = with_offsets.add_partition_offset(name, p.partition, offset);
            self.report_failure(added, handler);
        }
        let done = match self.client.rebalance_protocol() {
            RebalanceProtocol::Cooperative => self.client.incremental_assign(&with_offsets),
            _ => self.client.assign(&with_offsets),
        };
        // Not before: restoring a partition takes time, and until it is fetched its end is not
        // known or is that of an earlier assignment.
        for &p in all.iter().filter(|p| !suspended.contains(p)) {
            self.ends.watch(p);
        }
        let paused = if self.paused { &all } else { &suspended };
        let done = done.and_then(|()| self.pause_partitions(paused));
        self.report_failure(done, handler);
        let unknown = unknown.into_iter();
        let unknown = unknown.filter(|p| !committed.contains_key(p) && !suspended.contains(p));
        self.committed.retry_later(unknown);
        self.suspended.extend(suspended);
    }

    /// Gives up revoked partitions.
    pub(super) fn revoke<H: Handler>(&mut self, list: &TopicPartitionList, handler: &mut H) {
        let lost = self.client.assignment_lost();
        let all = self.topics.with_copartitions(list);
        for &p in &all {
            self.next.remove(p);
            self.ends.remove(p);
            self.suspended.remove(&p);
            self.recovery.remove(p);
            self.restarted.remove(&p);
            self.committed.remove(p);
            self.queue.unforward(self.topics.name(p), p.partition);
        }
        all.iter().for_each(|&p| handler.revoked(p, lost));
        let done = match self.client.rebalance_protocol() {
            RebalanceProtocol::Cooperative => {
                self.client.incremental_unassign(&self.topics.list(&all))
            }
            _ => self.client.unassign(),
        };
        self.report_failure(done, handler);
    }

    /// Recovers the next partition whose position is out of range.
    #[cold]
    pub(super) fn recover<H: Handler>(&mut self, handler: &mut H) {
        let (client, topics) = (Arc::clone(&self.client), self.topics.clone());
        let ends = |p: Partition, within: Duration| {
            let ends = client.fetch_watermarks(topics.name(p), p.partition, within);
            ends.map_err(KafkaError::from_native)
        };
        let Some((p, position, action)) = self.recovery.next(ends) else {
            return;
        };
        match action {
            Ok(Action::Continue(offset)) => self.restart_at(p, offset, handler),
            Ok(Action::Skip(from, to)) => {
                handler.lost(p, from..to);
                self.restart_at(p, Offset::Offset(to), handler);
            }
            Ok(Action::Rewind(to)) => {
                handler.rewound(p, to);
                self.restart_at(p, Offset::Offset(to), handler);
            }
            Ok(Action::Stop(end)) => {
                self.suspended.insert(p);
                self.ends.ignore(p);
                let read = match position {
                    Position::None => 0,
                    Position::At(at) | Position::Cut(at) => at,
                };
                handler.suspended(
                    p,
                    &format!(
                        "it ends at offset {end} but was read up to {read}: the topic was recreated or \
                         its log was cut; set `on_truncated` of the source to say where to continue"
                    ),
                );
            }
            Err(error) => self.report(error, handler),
        }
    }

    /// Forwards restarted partitions again until a record comes: librdkafka undoes the forwarding a
    /// while after a partition was stopped, and does not repeat it when the partition starts.
    pub(super) fn forward_restarted(&mut self) {
        if self.forwarded.elapsed() < FORWARD_EVERY {
            return;
        }
        self.forwarded = Instant::now();
        let (next, queue, topics) = (&self.next, &self.queue, &self.topics);
        self.restarted.retain(|&p, from| {
            let waits = next.get(p) == *from;
            if waits {
                queue.forward(topics.name(p), p.partition);
            }
            waits
        });
    }

    /// Restarts a partition at an offset. librdkafka does not seek in a partition that it has given
    /// up.
    fn restart_at<H: Handler>(&mut self, p: Partition, offset: Offset, handler: &mut H) {
        self.committed.remove(p);
        if let Offset::Offset(at) = offset {
            self.next.set(p, at);
        }
        let mut list = TopicPartitionList::new();
        let done = list
            .add_partition_offset(self.topics.name(p), p.partition, offset)
            .and_then(|()| self.client.incremental_unassign(&self.topics.list(&[p])))
            .and_then(|()| self.client.incremental_assign(&list))
            .and_then(|()| match self.paused {
                true => self.pause_partitions(&[p]),
                false => Ok(()),
            });
        self.ends.watch(p);
        self.restarted.insert(p, self.next.get(p));
        self.report_failure(done, handler);
    }

    fn pause_partitions(&self, partitions: &[Partition]) -> KafkaResult<()> {
        if partitions.is_empty() {
            return Ok(());
        }
        self.client.pause(&self.topics.list(partitions))
    }
}
