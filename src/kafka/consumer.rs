//! A consumer group member: batches of borrowed records, on the caller's thread.
//!
//! One call of [`Consumer::poll`] first handles rebalances, errors and statistics, then hands over
//! one batch. Both happen in turn on one thread. So a partition is revoked between two batches,
//! never within one, and none of its records is in flight when [`Handler::revoked`] is called.
//!
//! Guarantees for the handler, whatever the broker does:
//! * A record comes only between `assigned` and `revoked` of its partition.
//! * Between these two, offsets of a partition strictly increase, except after `rewound`.
//! * After an assignment the first record is the one that the handler requested, because the offset
//!   is part of the assignment. There is no window in which another record is fetched.
//!
//! [`NextOffsets`] checks the first two guarantees again. [`PartitionEnds`] detects the ends of
//! partitions, [`StartOffsets`] finds where to start, and [`OffsetRecovery`] handles offsets out of
//! range.
//!
//! Offsets are stored at the broker only by [`Consumer::commit`], for lag tools. The snapshot of
//! the caller is authoritative.

mod counts;
mod denied;
mod members;
mod next_offsets;
mod rebalance;
mod view;

use super::client::Brokers;
use super::contact::Contact;
use super::context::Rebalance;
use super::group_client::GroupClient;
use super::handler::Fetched;
use super::native::BATCH;
use super::offsets::{OffsetRecovery, Position, position_of};
use super::partition_ends::{PartitionEnds, Progress};
use super::start_offsets::StartOffsets;
use super::throttle::ErrorThrottle;
use super::topics::Topics;
use super::{Handler, KafkaError, KafkaOptions, Partition};
use counts::Counts;
use next_offsets::NextOffsets;
use rdkafka::error::KafkaResult;
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Longest wait for a record before rebalances and errors are handled again.
const WAIT: Duration = Duration::from_millis(20);

/// Time between two checks whether the logs of idle partitions have grown.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A consumer group member. One thread polls it.
pub struct Consumer {
    client: Box<dyn GroupClient>,
    topics: Topics,
    /// Partitions that are assigned but not read.
    suspended: BTreeSet<Partition>,
    /// Copartitions that are assigned and do not exist.
    absent: BTreeSet<Partition>,
    /// Partitions whose position is out of range.
    recovery: OffsetRecovery,
    /// Restarted partitions without a record so far, and their next offset at the restart.
    restarted: BTreeMap<Partition, Option<i64>>,
    /// When restarted partitions were last forwarded.
    restarts_forwarded_at: Instant,
    starts: StartOffsets,
    /// A partition has begun at an offset that the caller has not stored yet.
    begun: bool,
    counts: Counts,
    /// Topics without a partition: they do not exist, or may not be read.
    missing: BTreeSet<u16>,
    /// A broker has reported a topic as missing since partitions were last counted.
    missing_topic_reported: bool,
    /// An answer was missing when partitions were last counted.
    unanswered: bool,
    /// When the partitions of all topics were last counted.
    partitions_counted_at: Instant,
    /// Partitions were counted since [`Consumer::take_recounted`].
    was_recounted: bool,
    /// Partitions that this user may not read.
    denied: BTreeSet<Partition>,
    options: KafkaOptions,
    next: NextOffsets,
    ends: PartitionEnds,
    contact: Contact,
    /// When logs were last checked for growth.
    growth_checked_at: Instant,
    /// Records came after a wait: the logs of other partitions may have grown too, for example
    /// after an outage.
    woke_with_records: bool,
    throttle: ErrorThrottle,
    paused: bool,
    joined: bool,
}

impl Consumer {
    /// Joins the group with a client of these brokers. Returns at once, whether or not a broker can
    /// be reached.
    pub fn new(options: &KafkaOptions, brokers: &dyn Brokers) -> Result<Consumer, KafkaError> {
        KafkaError::find_owned(options)?;
        Ok(Consumer {
            client: brokers.join(options)?,
            topics: Topics::new(options),
            suspended: BTreeSet::new(),
            absent: BTreeSet::new(),
            recovery: OffsetRecovery::new(options.truncated),
            restarted: BTreeMap::new(),
            restarts_forwarded_at: Instant::now(),
            starts: StartOffsets::new(options),
            begun: false,
            counts: Counts::default(),
            missing: BTreeSet::new(),
            missing_topic_reported: false,
            unanswered: false,
            partitions_counted_at: Instant::now(),
            was_recounted: false,
            denied: BTreeSet::new(),
            options: options.clone(),
            next: NextOffsets::new(options.topics.len()),
            ends: PartitionEnds::default(),
            contact: Contact::default(),
            growth_checked_at: Instant::now(),
            woke_with_records: false,
            throttle: ErrorThrottle::default(),
            paused: false,
            joined: false,
        })
    }

    /// Hands over available records and waits at most `timeout` for the first one. Returns the
    /// number of records. Call it at least every `max.poll.interval.ms` (5 minutes).
    pub fn poll<H: Handler>(&mut self, timeout: Duration, handler: &mut H) -> usize {
        let start = Instant::now();
        if self.serve(handler) {
            // Also under load, because a partition without records must not delay the others.
            self.report_ends(handler, false);
        }
        if std::mem::take(&mut self.woke_with_records)
            || self.growth_checked_at.elapsed() >= LOOK_EVERY
        {
            self.report_grown(handler);
            self.report_hidden(handler);
            self.admit_allowed();
        }
        if !self.recovery.is_empty() {
            self.recover(handler);
        }
        self.report_unfetched(handler);
        if !self.restarted.is_empty() {
            self.forward_restarted();
        }
        if !self.starts.is_complete() {
            self.retry_starts(handler);
        }
        self.recount_if_due(handler);
        if std::mem::take(&mut self.begun) {
            return 0;
        }
        let (mut n, mut fetched) = self.fetch(BATCH, Duration::ZERO, handler);
        while n == 0 {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            self.report_ends(handler, fetched == 0);
            (n, fetched) = self.fetch(1, left.min(WAIT), handler);
            self.woke_with_records = n > 0;
            self.serve(handler);
            if std::mem::take(&mut self.begun) {
                break;
            }
        }
        n
    }

    /// Fetches one batch and hands it over. Returns how many records were handed over and how many
    /// were fetched. Records of partitions that are not read now, and errors, only count as
    /// fetched.
    fn fetch<H: Handler>(
        &mut self,
        max: usize,
        timeout: Duration,
        handler: &mut H,
    ) -> (usize, usize) {
        let (next, recovery) = (&mut self.next, &mut self.recovery);
        let (restarted, starts) = (&self.restarted, &self.starts);
        let mut failed: Vec<(i32, String)> = Vec::new();
        let mut denied: Vec<(Partition, String)> = Vec::new();
        let (mut n, mut fetched) = (0, 0);
        self.client.fetch(max, timeout, &mut |batch| {
            let mut records = Vec::with_capacity(batch.len());
            for &Fetched { record, error } in batch {
                if error == 0 {
                    if next.admit(record.topic, record.partition, record.offset) {
                        records.push(record);
                    }
                    continue;
                }
                let partition = record.in_partition();
                // A suspended partition is not read anyway.
                let ours = next.readable(partition);
                let position = ours.and_then(|next| position_of(error, next, record.offset));
                match position.map(|p| p.since_restart(restarted.get(&partition))) {
                    Some(position) => recovery.add(partition, position),
                    None if starts.awaits(partition) => {}
                    None => {
                        let text = String::from_utf8_lossy(record.payload).into_owned();
                        match error == RDKafkaErrorCode::TopicAuthorizationFailed as i32 {
                            true => denied.push((partition, text)),
                            false => failed.push((error, text)),
                        }
                    }
                }
            }
            n += records.len();
            fetched += batch.len();
            handler.records(&records);
        });
        if n > 0 {
            self.watch_ends();
        }
        for (code, text) in failed {
            self.report(KafkaError::Other(format!("{text} (code {code})")), handler);
        }
        for (p, text) in denied {
            self.deny(p, text, handler);
        }
        (n, fetched)
    }

    /// After new records, watches for the ends of all assigned partitions again.
    fn watch_ends(&mut self) {
        if self.ends.watched() < self.next.count() {
            for p in self.assignment() {
                if !self.suspended.contains(&p) && !self.starts.awaits(p) {
                    self.ends.watch_again(p);
                }
            }
        }
    }

    /// Reports the ends that have been reached. `drained` says that no fetched record waits to be
    /// handed over.
    fn report_ends<H: Handler>(&mut self, handler: &mut H, drained: bool) {
        if self.ends.watched() == 0 || self.paused {
            return;
        }
        // The client's own position also counts records that are not handed over (control records).
        let positions = self.client.position().unwrap_or_default();
        let (client, topics, next) = (&self.client, &self.topics, &self.next);
        let reached = self.ends.take_reached(drained, |p| {
            let theirs = positions.find_partition(topics.name(p), p.partition);
            Some(Progress {
                end: client.end(topics.name(p), p.partition)?,
                next: next.get(p),
                position: theirs.and_then(|e| e.offset().to_raw()),
            })
        });
        for reached in reached {
            let p = reached.partition;
            if let Some(end) = reached.passed
                && self.next.skip_to(p, end)
            {
                handler.passed(p, end);
            }
            if reached.is_news {
                handler.end_of_partition(p);
            }
        }
    }

    /// Reports the partitions whose log has grown since their end was reported.
    fn report_grown<H: Handler>(&mut self, handler: &mut H) {
        self.growth_checked_at = Instant::now();
        let (client, topics) = (&self.client, &self.topics);
        let grown = self
            .ends
            .take_grown(|p| client.end(topics.name(p), p.partition));
        for p in grown {
            self.ends.watch_again(p);
            handler.grown(p);
        }
    }

    /// Reports the partitions whose next records an open transaction has hidden for too long.
    fn report_hidden<H: Handler>(&mut self, handler: &mut H) {
        if self.paused {
            return;
        }
        let after = self.options.open_transaction_max;
        for (p, hidden) in self.ends.take_hidden(after) {
            handler.hidden(p, hidden.offset, hidden.since.elapsed());
        }
    }

    /// Handles rebalances, errors and statistics, and messages on the consumer's own queue. Returns
    /// whether there were statistics.
    fn serve<H: Handler>(&mut self, handler: &mut H) -> bool {
        let mut statistics = false;
        // A rebalance ends a poll of rdkafka; a few iterations empty the queue.
        for _ in 0..8 {
            let next = &mut self.next;
            let events = self.client.serve(&mut |record| {
                // The record reached the client's own queue before its partition was forwarded.
                if next.admit(record.topic, record.partition, record.offset) {
                    handler.records(&[record]);
                }
            });
            if let Some(connected) = events.connected {
                self.contact.update(connected, events.answered);
            }
            for stats in events.statistics {
                if let Some(topic) = self.topics.number(&stats.topic) {
                    statistics = true;
                    let partition = stats.partition;
                    let p = Partition { topic, partition };
                    let next = self.next.readable(p);
                    // Also if the leader has been away since the assignment.
                    let reads = (next.is_some() || self.starts.awaits(p))
                        && !self.paused
                        && !self.suspended.contains(&p)
                        && !self.absent.contains(&p)
                        && !self.is_gone(p);
                    self.contact
                        .update_leader(p, !reads || stats.responded.is_some());
                    let unfetched = reads && stats.unfetched;
                    if self.contact.update_unfetched(p, unfetched)
                        && !self.recovery.contains(p)
                        && !self.restarted.contains_key(&p)
                        && let Some(next) = next
                    {
                        self.recovery.add(p, Position::At(next));
                    }
                    // Statistics from before a denial may come after it.
                    if stats.end.is_some() && !self.denied.contains(&p) {
                        self.ends.update(p, stats, next);
                    }
                }
            }
            for (code, text) in events.errors {
                let error = self.explain(code, text);
                let is_of_topics =
                    matches!(error, KafkaError::Topic { .. } | KafkaError::Denied { .. });
                self.missing_topic_reported |= is_of_topics;
                self.report(error, handler);
            }
            if events.rebalances.is_empty() {
                break;
            }
            for rebalance in events.rebalances {
                match rebalance {
                    Rebalance::Assign(list) => self.assign(&list, handler),
                    Rebalance::Revoke(list) => self.revoke(&list, handler),
                }
            }
        }
        statistics
    }

    fn report_failure<H: Handler>(&mut self, result: KafkaResult<()>, handler: &mut H) {
        if let Err(error) = result {
            self.report(error.into(), handler);
        }
    }

    /// Reports an error unless the same one was reported a short time ago.
    fn report<H: Handler>(&mut self, error: KafkaError, handler: &mut H) {
        if self.throttle.admits(&error) {
            handler.error(error);
        }
    }

    fn explain(&mut self, code: RDKafkaErrorCode, text: String) -> KafkaError {
        if let Some(fatal) = self.client.fatal_error() {
            return fatal;
        }
        let error = KafkaError::from_code(code, text, &self.options);
        self.contact.explain(code, error)
    }

    /// Commits the next offset of each of these partitions that is assigned, without waiting.
    /// Partitions that are gone are left out: with one of them, the broker would refuse all.
    pub fn commit(&self, positions: &[(Partition, i64)]) -> Result<(), KafkaError> {
        let mut list = TopicPartitionList::new();
        for &(p, offset) in positions {
            if self.next.get(p).is_some() && !self.is_gone(p) {
                let mut entry = list.add_partition(self.topics.name(p), p.partition);
                if let Some(metadata) = self.starts.metadata(p) {
                    entry.set_metadata(metadata);
                }
                entry.set_offset(Offset::Offset(offset))?;
            }
        }
        if list.count() == 0 {
            return Ok(());
        }
        Ok(self.client.commit(&list)?)
    }

    /// Stops fetching all partitions, including those assigned later. `poll` must still be called.
    pub fn pause(&mut self) -> Result<(), KafkaError> {
        self.paused = true;
        Ok(self.client.pause(&self.client.assignment()?)?)
    }

    /// Undoes [`Consumer::pause`].
    pub fn resume(&mut self) -> Result<(), KafkaError> {
        self.paused = false;
        let suspended: Vec<Partition> = self.suspended.iter().copied().collect();
        self.client.resume(&self.client.assignment()?)?;
        Ok(self.client.pause(&self.topics.list(&suspended))?)
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let assigned = self.assignment();
        for &p in &assigned {
            self.client.unforward(self.topics.name(p), p.partition);
        }
        // The group revokes only what the group itself has assigned.
        let copartitions = assigned.into_iter();
        let copartitions = copartitions.filter(|&p| !self.topics.is_subscribed(p));
        let copartitions: Vec<Partition> = copartitions.collect();
        if !copartitions.is_empty() {
            let _ = self.client.unassign(&self.topics.list(&copartitions));
        }
        // The client leaves the group when it is dropped.
        self.client.close();
    }
}
