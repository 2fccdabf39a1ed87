//! Starting, restarting and giving up partitions.

use super::super::offsets::Action;
use super::super::start_offsets::{Start, Unknown, Wait, truncated};
use super::super::{Handler, KafkaError, Partition};
use super::Consumer;
use super::next_offsets::SUSPENDED;
use rdkafka::error::KafkaResult;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Longest wait for an answer about a topic when partitions are counted.
const COUNT_WITHIN: Duration = Duration::from_secs(2);
/// Pause before partitions are counted again, until two answers are the same.
const COUNT_AGAIN: Duration = Duration::from_secs(2);
/// Pause before partitions are counted again while the leader of a partition is away, a topic is
/// missing, or an answer was missing.
const COUNT_LEADERLESS: Duration = Duration::from_secs(10);
/// How often restarted partitions are forwarded.
const FORWARD_EVERY: Duration = Duration::from_millis(50);

impl Consumer {
    /// Requests unknown starts again, and starts these partitions.
    #[cold]
    pub(super) fn retry_starts<H: Handler>(&mut self, handler: &mut H) {
        for (p, start) in self.starts.retry(self.client.as_ref(), &self.topics) {
            self.starts.remove(p);
            self.absent.remove(&p);
            match start {
                Start::At(begin) => {
                    self.begun = true;
                    handler.begins(p, begin);
                    self.restart_at(p, Offset::Offset(begin.offset), handler);
                }
                Start::Again(offset) => {
                    self.begun = true;
                    handler.rewound(p, offset);
                    self.restart_at(p, Offset::Offset(offset), handler);
                }
                Start::Refused(why) => {
                    let done = self.pause_partitions(&[p]);
                    self.report_failure(done, handler);
                    self.suspend(p, &why, handler);
                }
            }
        }
        self.report_absent(handler);
    }

    /// Suspends an assigned partition: it is not read.
    fn suspend<H: Handler>(&mut self, p: Partition, why: &str, handler: &mut H) {
        self.suspended.insert(p);
        self.ends.ignore(p);
        handler.suspended(p, why);
    }

    /// Starts newly assigned partitions at the offsets of the handler, or at those that
    /// [`StartOffsets`] finds.
    ///
    /// [`StartOffsets`]: super::super::start_offsets::StartOffsets
    pub(super) fn assign<H: Handler>(&mut self, list: &TopicPartitionList, handler: &mut H) {
        self.joined = true;
        handler.assigning();
        let mut assigned = Vec::new();
        let mut unknown = Vec::new();
        for p in self.topics.with_copartitions(list) {
            let mut position = handler.assigned(p);
            if let (Some(read), Some(end)) = (position, handler.truncated_at(p)) {
                position = None;
                unknown.push((p, Unknown::Truncated { read, end }));
            } else if position.is_none() && !handler.is_suspended(p) {
                let later = handler.was_read(p.topic);
                unknown.push((p, if later { Unknown::Later } else { Unknown::New }));
            }
            assigned.push((p, position));
        }
        let known = assigned.iter();
        let known: Vec<_> = known.filter_map(|&(p, at)| Some((p, at?))).collect();
        let mut starts = match unknown.is_empty() {
            true => BTreeMap::new(),
            false => (self.starts).first(self.client.as_ref(), &self.topics, &unknown),
        };
        let mut with_offsets = TopicPartitionList::new();
        let (mut all, mut suspended) = (Vec::new(), Vec::new());
        let mut refused = Vec::new();
        for (p, position) in assigned {
            self.client.forward(self.topics.name(p), p.partition);
            let first = match starts.remove(&p) {
                _ if handler.is_suspended(p) => None,
                Some(Start::At(begin)) => {
                    self.begun = true;
                    handler.begins(p, begin);
                    Some(begin.offset)
                }
                Some(Start::Again(offset)) => {
                    self.begun = true;
                    handler.rewound(p, offset);
                    Some(offset)
                }
                Some(Start::Refused(why)) => {
                    refused.push((p, why));
                    None
                }
                None => position,
            };
            if first.is_none() && !self.starts.awaits(p) {
                suspended.push(p);
            }
            // No record of a partition without a start is handed over.
            self.next
                .set(p, first.map_or(SUSPENDED, |first| first.max(0)));
            all.push(p);
            let offset = first.map_or(Offset::Stored, Offset::Offset);
            let name = self.topics.name(p);
            let added = with_offsets.add_partition_offset(name, p.partition, offset);
            self.report_failure(added, handler);
        }
        let done = self.client.accept(&with_offsets);
        // Not before this: restoring a partition takes time, and until it is fetched its end is
        // unknown or belongs to an earlier assignment.
        let read = |p: &&Partition| !suspended.contains(p) && !self.starts.awaits(**p);
        for &p in all.iter().filter(read) {
            self.ends.watch(p);
        }
        let paused = if self.paused { &all } else { &suspended };
        let done = done.and_then(|()| self.pause_partitions(paused));
        self.report_failure(done, handler);
        self.count_partitions(handler);
        self.counts.share();
        if self.options.instance.is_some() {
            let stored = known.into_iter();
            let stored = stored.map(|(p, at)| (p, handler.stored(p).unwrap_or(at)));
            self.announce(&stored.collect::<Vec<_>>());
        }
        self.suspended.extend(suspended);
        for (p, why) in refused {
            self.suspend(p, &why, handler);
        }
        self.report_absent(handler);
    }

    /// Reports the copartitions that do not exist, because their topic has fewer partitions:
    /// nothing waits for them. They start once they are added.
    fn report_absent<H: Handler>(&mut self, handler: &mut H) {
        for (p, count) in self.starts.absent() {
            let lead = self.topics.lead(p);
            let Some(all) = self.counts.of(lead).filter(|_| lead != p.topic) else {
                continue;
            };
            if self.absent.insert(p) {
                let why = format!(
                    "topic `{}` has {all} partitions and `{}` {count}; outcomes are joined within partitions: give \
                     both as many",
                    self.topics.names[usize::from(lead)],
                    self.topics.name(p)
                );
                handler.suspended(p, &why);
            }
        }
    }

    /// Finds out how many partitions the topics have. A member keeps partitions that no longer
    /// exist; the group does not assign them to a new client, unless it has an `instance`. The
    /// client joins the group without missing topics, and reports them once. Topics without an
    /// answer in time are counted again.
    fn count_partitions<H: Handler>(&mut self, handler: &mut H) {
        let wait = Wait::each(COUNT_WITHIN);
        self.unanswered = false;
        for (number, name) in (0..).zip(&self.topics.names) {
            let count = wait.next().map(|w| self.client.partitions(name, w));
            let Some(Ok(count)) = count else {
                self.unanswered = true;
                continue;
            };
            if number < self.topics.subscribed() {
                self.counts.take(number, count);
            }
            match count {
                0 => self.missing.insert(number),
                _ => self.missing.remove(&number),
            };
        }
        (
            self.partitions_counted_at,
            self.was_recounted,
            self.missing_topic_reported,
        ) = (Instant::now(), true, false);
        let assigned = self.assignment();
        let assigned: BTreeSet<u16> = assigned.iter().map(|p| p.topic).collect();
        let missing = self.missing.difference(&assigned);
        missing.for_each(|topic| handler.missing(*topic));
        let exist = assigned.difference(&self.missing).copied().collect();
        let client = self.client.as_ref();
        self.unanswered |= !self.starts.learn(client, &self.topics, exist, wait);
        let gone = self.assignment().into_iter();
        let gone: Vec<_> = gone.filter(|p| self.is_gone(*p)).collect();
        for p in gone {
            let lead = self.topics.lead(p);
            if self.counts.had(lead, p.partition) {
                let name = &self.topics.names[usize::from(lead)];
                let why = format!("topic {name} was made again with fewer partitions");
                self.report(KafkaError::Fatal(why), handler);
            } else {
                handler.gone(p);
            }
        }
    }

    /// Counts the partitions again if the last count is in doubt, because a broker that lags may
    /// report too few. Also counts again while a topic or an answer is missing, and while a leader
    /// is away, because the client keeps partitions that no longer exist.
    pub(super) fn recount_if_due<H: Handler>(&mut self, handler: &mut H) {
        let waited = self.partitions_counted_at.elapsed();
        let is_due = match self.counts.is_unconfirmed() || self.missing_topic_reported {
            true => waited >= COUNT_AGAIN,
            false => {
                let is_asked = self.unanswered
                    || !self.missing.is_empty()
                    || self.leaderless().next().is_some();
                waited >= COUNT_LEADERLESS && is_asked
            }
        };
        if is_due && self.cut_off().is_none() {
            self.count_partitions(handler);
        }
    }

    /// Gives up revoked partitions.
    pub(super) fn revoke<H: Handler>(&mut self, list: &TopicPartitionList, handler: &mut H) {
        let lost = self.client.assignment_lost();
        let all = self.topics.with_copartitions(list);
        for &p in &all {
            self.next.remove(p);
            self.ends.remove(p);
            self.contact.remove(p);
            self.suspended.remove(&p);
            self.absent.remove(&p);
            self.denied.remove(&p);
            self.recovery.remove(p);
            self.restarted.remove(&p);
            self.starts.remove(p);
            self.client.unforward(self.topics.name(p), p.partition);
        }
        handler.revoking(&all);
        all.iter().for_each(|&p| handler.revoked(p, lost));
        let done = self.client.give_back(&self.topics.list(&all));
        self.report_failure(done, handler);
    }

    /// Recovers the next partition whose position is out of range.
    #[cold]
    pub(super) fn recover<H: Handler>(&mut self, handler: &mut H) {
        let (client, topics) = (&self.client, &self.topics);
        let ends = |p: Partition, within: Duration| -> Result<_, KafkaError> {
            Ok(client.offset_bounds(topics.name(p), p.partition, within)?)
        };
        let Some((p, position, action)) = self.recovery.next(ends) else {
            return;
        };
        if self
            .next
            .readable(p)
            .is_some_and(|next| next > position.offset())
        {
            // Records came since, so the error belongs to an earlier request, and the partition is
            // being read.
            self.recovery.remove(p);
            self.contact.update_unfetched(p, false);
            return;
        }
        match action {
            Ok(Action::Continue(offset)) => self.restart_at(p, offset, handler),
            Ok(Action::Skip(from, to)) => {
                handler.lost(p, from..to);
                // Perhaps no record follows that would move the position.
                handler.passed(p, to);
                self.restart_at(p, Offset::Offset(to), handler);
            }
            Ok(Action::Rewind(to)) => {
                self.begun = true;
                handler.rewound(p, to);
                self.restart_at(p, Offset::Offset(to), handler);
            }
            Ok(Action::Stop(end)) => {
                handler.truncated(p, end);
                self.suspend(p, &truncated(position.offset(), end), handler);
            }
            Err(error) => self.report(error, handler),
        }
    }

    /// Reports that a new client is needed for partitions that this one no longer fetches, once it
    /// is decided where each of them continues.
    pub(super) fn report_unfetched<H: Handler>(&mut self, handler: &mut H) {
        let undecided = self.contact.unfetched().any(|p| self.recovery.contains(p));
        let is_restarted = |p: &Partition| self.restarted.contains_key(p);
        let restarted = self.contact.unfetched().find(is_restarted);
        if let Some(p) = restarted.filter(|_| !undecided) {
            let topic = self.topics.name(p);
            let why = format!("the client fetches nothing of topic {topic}: it was recreated");
            self.report(KafkaError::Fatal(why), handler);
        }
    }

    /// Forwards restarted partitions again until a record comes: librdkafka undoes the forwarding a
    /// while after a partition was stopped, and does not repeat it when the partition starts.
    pub(super) fn forward_restarted(&mut self) {
        if self.restarts_forwarded_at.elapsed() < FORWARD_EVERY {
            return;
        }
        self.restarts_forwarded_at = Instant::now();
        let (next, client, topics) = (&self.next, &self.client, &self.topics);
        self.restarted.retain(|&p, from| {
            let waits = next.get(p) == *from;
            if waits {
                client.forward(topics.name(p), p.partition);
            }
            waits
        });
    }

    /// Restarts a partition at an offset, by assigning it again: librdkafka does not seek in a
    /// partition that it has given up.
    fn restart_at<H: Handler>(&mut self, p: Partition, offset: Offset, handler: &mut H) {
        if let Offset::Offset(at) = offset {
            self.next.set(p, at);
        }
        let mut list = TopicPartitionList::new();
        let done = list
            .add_partition_offset(self.topics.name(p), p.partition, offset)
            .and_then(|()| self.client.unassign(&self.topics.list(&[p])))
            .and_then(|()| self.client.assign(&list))
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
