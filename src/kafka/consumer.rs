//! A consumer group member: batches of borrowed records, on the caller's thread.
//!
//! One call of [`Consumer::poll`] first serves what is not a record (rebalances, errors, statistics),
//! then hands over one batch. Because both happen in turn on one thread, a partition is revoked between
//! two batches, never within one, and no record of it is in flight when [`Handler::revoked`] is called.
//!
//! What holds for the handler, whatever the broker does:
//! * a record comes only between `assigned` and `revoked` of its partition;
//! * offsets of a partition grow strictly between these two, but after `rewound`;
//! * on assignment the first record read is the one that the handler asked for, because the offset is
//!   part of the assignment; there is no window in which another is fetched.
//!
//! The first two are checked here a second time, by a table of next offsets, at the cost of one look-up
//! a record: librdkafka has had bugs with messages of revoked partitions in batches (issue 3093).
//!
//! The end of a partition is read off the watermark that comes with every answer to a fetch, and told
//! once the partition's leader has answered again a while after it was reached ([`QUIET`]; the time of
//! its last answer is in librdkafka's statistics). Both matter, because a partition at its end holds no
//! other back: one whose broker is frozen or away only seems to have ended, and after an outage the
//! backlog of one partition arrives a moment before that of the next. librdkafka's own event for it (`enable.partition.eof`) is not to be
//! used with batches: `rd_kafka_q_serve_rkmessages` takes the event's offset, which is the next one to
//! read, for that of a record and moves the position past it, so that the next resume (after each
//! cooperative rebalance) skips one record a partition. A test with two members showed it.
//!
//! Offsets are not stored at the broker except by [`Consumer::commit`], which is a courtesy to lag
//! tools: the truth is the caller's snapshot.

use super::astray::{Astray, Course, Position, position_of};
use super::context::{Context, News, Pending};
use super::native::{BATCH, BatchQueue, Message};
use super::{Handler, Headers, KafkaError, KafkaOptions, Partition, Record, StartAt};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _, RebalanceProtocol};
use rdkafka::message::{Message as _, Timestamp};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest wait for a record before rebalances and errors are looked at again.
const WAIT: Duration = Duration::from_millis(20);

/// How often partitions that return are forwarded.
const FORWARD_EVERY: Duration = Duration::from_millis(50);

/// Longest wait for what the group has committed, when partitions are assigned.
const COMMITTED: Duration = Duration::from_secs(5);
/// Longest wait for it and pause between two questions, when it was not known then.
const COMMITTED_LATER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3));

/// The same failure is told again after this time.
const REPEAT_AFTER: Duration = Duration::from_secs(30);

/// How long after a partition's end was reached its leader must still answer with nothing new. Fetches
/// are answered within `fetch.wait.max.ms`, half a second.
const QUIET: Duration = Duration::from_secs(1);

/// The same without statistics, which then cannot tell whether the leader answers.
const SETTLED: Duration = Duration::from_secs(2);

/// A partition that is not assigned, in the table of next offsets.
const NOT_OURS: i64 = -1;

/// A consumer group member. Not shared: one thread polls it.
pub struct Consumer {
    // Dropped before the client; see the safety argument in `native`.
    queue: BatchQueue,
    client: Arc<BaseConsumer<Context>>,
    topics: Vec<String>,
    /// How many of these are subscribed to; see [`KafkaOptions::followers`].
    leads: usize,
    /// Partitions that are ours and are not read.
    barred: BTreeSet<Partition>,
    /// Partitions whose next record the broker does not have.
    astray: Astray,
    /// Partitions that were set on their way again, with the offset that came next then, until a record came.
    returning: BTreeMap<Partition, i64>,
    /// Partitions of which nobody could tell what the group has committed, and when to ask again. The client was told to ask by
    /// itself, which it does once: if the broker goes away meanwhile, it was seen never to read them.
    untold: BTreeSet<Partition>,
    ask_again: Instant,
    /// When these were last forwarded.
    forwarded: Instant,
    /// Where a partition begins of which nothing is known.
    begin: Offset,
    brokers: String,
    /// By topic and partition, the lowest offset that may come next, or [`NOT_OURS`].
    next: Vec<Vec<i64>>,
    told: HashMap<String, Instant>,
    /// Partitions whose end has not been told since their last record or their assignment.
    open: BTreeMap<Partition, Open>,
    /// From the latest statistics.
    news: BTreeMap<Partition, News>,
    statistics: bool,
    paused: bool,
    joined: bool,
}

/// Where a partition stands whose end has not been told, and since when.
struct Open {
    position: i64,
    since: Instant,
}

impl Open {
    fn now() -> Open {
        Open {
            position: NOT_OURS,
            since: Instant::now(),
        }
    }
}

impl Consumer {
    /// Joins the group; answers at once, whether or not a broker can be reached.
    pub fn new(options: &KafkaOptions) -> Result<Consumer, KafkaError> {
        if let Some((name, why)) = options.refused_option() {
            return Err(KafkaError::Option {
                name: name.to_string(),
                detail: format!("may not be set: {why}; remove it"),
            });
        }
        let client: BaseConsumer<Context> = options
            .consumer_config()
            .create_with_context(Context::new(options.token(), options.lifeline()))
            .map_err(KafkaError::from_native)?;
        let client = Arc::new(client);
        let queue = BatchQueue::new(Arc::clone(&client))
            .ok_or_else(|| KafkaError::Other("no memory for a queue".to_string()))?;
        let topics: Vec<&str> = options.leads().iter().map(String::as_str).collect();
        client.subscribe(&topics).map_err(KafkaError::from_native)?;
        Ok(Consumer {
            queue,
            client,
            topics: options.topics.clone(),
            leads: options.leads().len(),
            barred: BTreeSet::new(),
            astray: Astray::new(options.start, options.truncated),
            returning: BTreeMap::new(),
            untold: BTreeSet::new(),
            ask_again: Instant::now(),
            forwarded: Instant::now(),
            begin: match options.start {
                StartAt::Earliest => Offset::Beginning,
                StartAt::Latest => Offset::End,
            },
            brokers: options.brokers.clone(),
            next: vec![Vec::new(); options.topics.len()],
            told: HashMap::new(),
            open: BTreeMap::new(),
            news: BTreeMap::new(),
            statistics: options.consumer_config().get("statistics.interval.ms") != Some("0"),
            paused: false,
            joined: false,
        })
    }

    /// Hands over what there is, waiting at most `timeout` for the first record; answers the number of
    /// records. It must be called at least every `max.poll.interval.ms` (5 minutes).
    pub fn poll<H: Handler>(&mut self, timeout: Duration, handler: &mut H) -> usize {
        let start = Instant::now();
        self.client.context().lifeline.hold(self.client.client());
        if self.serve(handler) {
            // Told under load too: a partition without records must not hold the others back.
            self.tell_ends(handler, false);
        }
        if !self.astray.is_empty() {
            self.find_again(handler);
        }
        if !self.returning.is_empty() {
            self.forward_returning();
        }
        if !self.untold.is_empty() {
            self.ask_committed(handler);
        }
        let mut n = self.take(BATCH, Duration::ZERO, handler);
        while n == 0 {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            self.tell_ends(handler, true);
            n = self.take(1, left.min(WAIT), handler);
            self.serve(handler);
        }
        n
    }

    fn take<H: Handler>(&mut self, max: usize, timeout: Duration, handler: &mut H) -> usize {
        let (queue, next, topics) = (&mut self.queue, &mut self.next, &self.topics);
        let batch = queue.take(max, timeout);
        let mut failed: Vec<(i32, String)> = Vec::new();
        let mut n = 0;
        // Within a batch the handle of a topic stands for it.
        let mut last: Option<(usize, Option<usize>)> = None;
        for m in batch.iter() {
            let topic = match last {
                Some((id, topic)) if id == m.topic_id() => topic,
                _ => {
                    let topic = topics.iter().position(|t| t == m.topic());
                    last = Some((m.topic_id(), topic));
                    topic
                }
            };
            let Some(topic) = topic else { continue };
            match m.error() {
                0 => {
                    if claim(&mut next[topic], m.partition(), m.offset()) {
                        n += 1;
                        handler.record(record(topic, m));
                    }
                }
                code => {
                    let partition = Partition {
                        topic: topic as u16,
                        partition: m.partition(),
                    };
                    let ours = next[topic].get(m.partition() as usize).copied();
                    // One that is barred was not to be read in any case.
                    let ours = ours.filter(|&n| n != NOT_OURS && n != i64::MAX);
                    match ours.and_then(|next| position_of(code, next, m.offset())) {
                        Some(position) => self.astray.add(partition, position),
                        None => failed.push((code, m.error_text())),
                    }
                }
            }
        }
        drop(batch);
        if n > 0 {
            self.reopen();
        }
        for (code, text) in failed {
            self.tell(KafkaError::Other(format!("{text} (code {code})")), handler);
        }
        n
    }

    /// After records came: every assigned partition may have an end to tell again.
    fn reopen(&mut self) {
        let assigned = self
            .next
            .iter()
            .flatten()
            .filter(|&&n| n != NOT_OURS)
            .count();
        if self.open.len() < assigned {
            for p in self.assignment() {
                if !self.barred.contains(&p) {
                    self.open.entry(p).or_insert_with(Open::now);
                }
            }
        }
    }

    /// Tells the ends that have been reached. `drained`: nothing that was fetched waits to be handed over.
    fn tell_ends<H: Handler>(&mut self, handler: &mut H, drained: bool) {
        if self.open.is_empty() || self.paused {
            return;
        }
        // The client's own position also counts records that are not handed over (control records).
        let positions = self.client.position().unwrap_or_default();
        let (queue, topics, next, news) = (&self.queue, &self.topics, &self.next, &self.news);
        let mut ended = Vec::new();
        for (&p, open) in &mut self.open {
            let topic = &topics[p.topic as usize];
            let Some(end) = queue.end(topic, p.partition) else {
                continue;
            };
            let ours = next[p.topic as usize].get(p.partition as usize);
            let theirs = positions
                .find_partition(topic, p.partition)
                .and_then(|e| e.offset().to_raw());
            let news = news.get(&p);
            // Where reading began at a committed offset, only the fetcher knows it before a record came.
            let fetched = news.and_then(|n| n.next).filter(|_| drained);
            let position = ours.copied().max(theirs).max(fetched).unwrap_or(0);
            if position != open.position {
                *open = Open {
                    position,
                    since: Instant::now(),
                };
            }
            let confirmed = if self.statistics {
                let answered = news.and_then(|n| n.answered);
                position >= end && answered.is_some_and(|at| at >= open.since + QUIET)
            } else {
                (position >= end || position <= 0) && open.since.elapsed() >= SETTLED
            };
            if confirmed {
                ended.push(p);
            }
        }
        for p in ended {
            self.open.remove(&p);
            handler.end_of_partition(p);
        }
    }

    /// Rebalances, errors and statistics, and any message that still came by the consumer's queue.
    /// Answers whether there were statistics.
    fn serve<H: Handler>(&mut self, handler: &mut H) -> bool {
        let mut statistics = false;
        // A rebalance ends a poll of rdkafka; a few turns empty the queue.
        for _ in 0..8 {
            let client = Arc::clone(&self.client);
            // Errors have been noted by the context, with their words.
            if let Some(Ok(message)) = client.poll(Duration::ZERO) {
                self.stray(&message, handler);
            }
            let notes = std::mem::take(&mut *client.context().notes());
            for news in notes.news {
                if let Some(topic) = self.topic(&news.topic) {
                    statistics = true;
                    let partition = news.partition;
                    self.news.insert(Partition { topic, partition }, news);
                }
            }
            for (code, text) in notes.errors {
                let error = self.explain(code, text);
                self.tell(error, handler);
            }
            if notes.rebalances.is_empty() {
                break;
            }
            for pending in notes.rebalances {
                match pending {
                    Pending::Assign(list) => self.assign(&list, handler),
                    Pending::Revoke(list) => self.revoke(&list, handler),
                }
            }
        }
        statistics
    }

    /// A message that was on the consumer's queue before its partition was forwarded.
    fn stray<H: Handler>(&mut self, m: &rdkafka::message::BorrowedMessage<'_>, handler: &mut H) {
        let Some(topic) = self.topic(m.topic()) else {
            return;
        };
        if claim(&mut self.next[topic as usize], m.partition(), m.offset()) {
            let timestamp_ms = match m.timestamp() {
                Timestamp::CreateTime(t) | Timestamp::LogAppendTime(t) => Some(t),
                Timestamp::NotAvailable => None,
            };
            handler.record(Record {
                topic,
                partition: m.partition(),
                offset: m.offset(),
                timestamp_ms,
                key: m.key(),
                payload: m.payload().unwrap_or_default(),
                headers: Headers::of_borrowed(m.headers()),
            });
        }
    }

    /// The partitions of a rebalance, each with those of the topics that go with it.
    fn with_followers(&self, list: &TopicPartitionList) -> Vec<Partition> {
        let mut all = Vec::new();
        for e in list.elements() {
            let Some(topic) = self.topic(e.topic()) else {
                continue;
            };
            let partition = e.partition();
            let mut at = usize::from(topic);
            while at < self.topics.len() {
                let topic = at as u16;
                all.push(Partition { topic, partition });
                at += self.leads.max(1);
            }
        }
        all
    }

    fn list_of(&self, partitions: &[Partition]) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for p in partitions {
            list.add_partition(&self.topics[usize::from(p.topic)], p.partition);
        }
        list
    }

    /// What the group has committed of these partitions, if it answers in time.
    fn committed(&self, partitions: &[Partition], within: Duration) -> BTreeMap<Partition, Offset> {
        if partitions.is_empty() {
            return BTreeMap::new();
        }
        let Ok(list) = self
            .client
            .committed_offsets(self.list_of(partitions), within)
        else {
            return BTreeMap::new();
        };
        let told = partitions.iter().filter_map(|&p| {
            let told = list.find_partition(&self.topics[usize::from(p.topic)], p.partition)?;
            // One that the broker could not tell is not one that was never committed.
            told.error().ok()?;
            match told.offset() {
                Offset::Offset(o) => Some((p, Offset::Offset(o))),
                _ => Some((p, self.begin)),
            }
        });
        told.collect()
    }

    /// Asks again for what the group has committed of partitions of which no record has come, and begins there.
    #[cold]
    fn ask_committed<H: Handler>(&mut self, handler: &mut H) {
        if Instant::now() < self.ask_again {
            return;
        }
        let next = &self.next;
        let none = |p: &Partition| next[usize::from(p.topic)].get(p.partition as usize) == Some(&0);
        self.untold.retain(none);
        let untold: Vec<Partition> = self.untold.iter().copied().collect();
        let (within, pause) = COMMITTED_LATER;
        for (p, offset) in self.committed(&untold, within) {
            self.go_to(p, offset, handler);
        }
        self.ask_again = Instant::now() + pause;
    }

    fn assign<H: Handler>(&mut self, list: &TopicPartitionList, handler: &mut H) {
        self.joined = true;
        let mut with_offsets = TopicPartitionList::new();
        let (mut all, mut barred) = (Vec::new(), Vec::new());
        let mut given = Vec::new();
        for p in self.with_followers(list) {
            given.push((p, handler.assigned(p)));
        }
        let unknown = given.iter().filter(|(_, start)| start.is_none());
        let unknown: Vec<Partition> = unknown.map(|(p, _)| *p).collect();
        let committed = self.committed(&unknown, COMMITTED);
        for (p, start) in given {
            let (topic, partition) = (usize::from(p.topic), p.partition);
            self.queue.forward(&self.topics[topic], partition);
            let first = if handler.bars(p) {
                barred.push(p);
                // None is handed over that was fetched before the pause below.
                i64::MAX
            } else {
                start.unwrap_or(0).max(0)
            };
            set_next(&mut self.next[topic], partition, first);
            all.push(p);
            let name = &self.topics[topic];
            let offset = match start {
                Some(o) => Offset::Offset(o),
                None => committed.get(&p).copied().unwrap_or(Offset::Stored),
            };
            if let Err(error) = with_offsets.add_partition_offset(name, partition, offset) {
                self.tell(KafkaError::from_native(error), handler);
            }
        }
        let answer = match self.client.rebalance_protocol() {
            RebalanceProtocol::Cooperative => self.client.incremental_assign(&with_offsets),
            _ => self.client.assign(&with_offsets),
        };
        // Not before: taking a partition over takes time, and until it is fetched its end is not known, or is
        // that of an assignment before.
        for &p in all.iter().filter(|p| !barred.contains(p)) {
            self.open.insert(p, Open::now());
        }
        let paused = if self.paused { &all } else { &barred };
        if let Err(error) = answer {
            self.tell(KafkaError::from_native(error), handler);
        } else if !paused.is_empty()
            && let Err(error) = self.client.pause(&self.list_of(paused))
        {
            self.tell(KafkaError::from_native(error), handler);
        }
        let untold = unknown
            .iter()
            .filter(|p| !committed.contains_key(p) && !barred.contains(p));
        self.untold.extend(untold);
        self.ask_again = Instant::now() + COMMITTED_LATER.1;
        self.barred.extend(barred);
    }

    fn revoke<H: Handler>(&mut self, list: &TopicPartitionList, handler: &mut H) {
        let lost = self.client.assignment_lost();
        let all = self.with_followers(list);
        for &p in &all {
            let topic = usize::from(p.topic);
            set_next(&mut self.next[topic], p.partition, NOT_OURS);
            self.news.remove(&p);
            self.open.remove(&p);
            self.barred.remove(&p);
            self.astray.forget(p);
            self.returning.remove(&p);
            self.untold.remove(&p);
            self.queue.unforward(&self.topics[topic], p.partition);
        }
        all.iter().for_each(|&p| handler.revoked(p, lost));
        let answer = match self.client.rebalance_protocol() {
            RebalanceProtocol::Cooperative => self.client.incremental_unassign(&self.list_of(&all)),
            _ => self.client.unassign(),
        };
        if let Err(error) = answer {
            self.tell(KafkaError::from_native(error), handler);
        }
    }

    /// Sets partitions on their way again whose next record the broker does not have.
    #[cold]
    fn find_again<H: Handler>(&mut self, handler: &mut H) {
        let (client, topics) = (Arc::clone(&self.client), self.topics.clone());
        let ends = |p: Partition, within: Duration| {
            let topic = &topics[usize::from(p.topic)];
            let ends = client.fetch_watermarks(topic, p.partition, within);
            ends.map_err(KafkaError::from_native)
        };
        let Some((p, position, course)) = self.astray.next(ends) else {
            return;
        };
        match course {
            Ok(Course::On(offset)) => self.go_to(p, offset, handler),
            Ok(Course::Skip(from, to)) => {
                handler.lost(p, from..to);
                self.go_to(p, Offset::Offset(to), handler);
            }
            Ok(Course::Rewind(to)) => {
                handler.rewound(p, to);
                self.go_to(p, Offset::Offset(to), handler);
            }
            Ok(Course::Stop(end)) => {
                self.barred.insert(p);
                self.open.remove(&p);
                let read = match position {
                    Position::None => 0,
                    Position::At(at) | Position::Cut(at) => at,
                };
                handler.stopped(
                    p,
                    &format!(
                        "it ends at offset {end} and was read up to {read}: the topic was made anew, or its log was \
                         cut; set `on_truncated` of the source to say where to go on"
                    ),
                );
            }
            Err(error) => self.tell(error, handler),
        }
    }

    /// Has the records of partitions come here that were set on their way again: librdkafka undoes the forwarding
    /// when it stops a partition, a while after it was told to, and does not do it again when it starts one.
    fn forward_returning(&mut self) {
        if self.forwarded.elapsed() < FORWARD_EVERY {
            return;
        }
        self.forwarded = Instant::now();
        let (next, queue, topics) = (&self.next, &self.queue, &self.topics);
        self.returning.retain(|p, from| {
            let topic = usize::from(p.topic);
            let came = next[topic].get(p.partition as usize) != Some(&*from);
            if !came {
                queue.forward(&topics[topic], p.partition);
            }
            !came
        });
    }

    /// Reads a partition on from elsewhere. librdkafka does not seek in one that it has given up.
    fn go_to<H: Handler>(&mut self, p: Partition, offset: Offset, handler: &mut H) {
        self.untold.remove(&p);
        let (topic, partition) = (usize::from(p.topic), p.partition);
        let name = self.topics[topic].clone();
        if let Offset::Offset(at) = offset {
            set_next(&mut self.next[topic], partition, at);
        }
        let mut list = TopicPartitionList::new();
        let answer = list
            .add_partition_offset(&name, partition, offset)
            .and_then(|()| self.client.incremental_unassign(&self.list_of(&[p])));
        let answer = answer.and_then(|()| self.client.incremental_assign(&list));
        let paused = answer.and_then(|()| match self.paused {
            true => self.client.pause(&self.list_of(&[p])),
            false => Ok(()),
        });
        self.open.insert(p, Open::now());
        let from = self.next[topic].get(partition as usize);
        self.returning.insert(p, from.copied().unwrap_or(NOT_OURS));
        if let Err(error) = paused {
            self.tell(KafkaError::from_native(error), handler);
        }
    }

    /// Hands an error over unless the same was told a short time ago.
    fn tell<H: Handler>(&mut self, error: KafkaError, handler: &mut H) {
        let now = Instant::now();
        let kind = error.kind();
        match self.told.get(&kind) {
            Some(at) if now.duration_since(*at) < REPEAT_AFTER => {}
            _ => {
                self.told
                    .retain(|_, at| now.duration_since(*at) < REPEAT_AFTER);
                self.told.insert(kind, now);
                handler.error(error);
            }
        }
    }

    fn explain(&self, code: RDKafkaErrorCode, text: String) -> KafkaError {
        if let Some((_, reason)) = self.client.client().fatal_error() {
            return KafkaError::Fatal(reason);
        }
        KafkaError::from_code(code, text, &self.brokers, &self.topics)
    }

    /// Tells the broker, without waiting, up to where each partition is done: the next offset to read.
    pub fn commit(&self, positions: &[(Partition, i64)]) -> Result<(), KafkaError> {
        self.commit_mode(positions, CommitMode::Async)
    }

    /// The same, waiting for the broker's answer; for the end of a run.
    pub fn commit_and_wait(&self, positions: &[(Partition, i64)]) -> Result<(), KafkaError> {
        self.commit_mode(positions, CommitMode::Sync)
    }

    fn commit_mode(
        &self,
        positions: &[(Partition, i64)],
        mode: CommitMode,
    ) -> Result<(), KafkaError> {
        let mut list = TopicPartitionList::new();
        for (p, offset) in positions {
            if !is_ours(
                self.next.get(p.topic as usize).map_or(&[], |n| n),
                p.partition,
            ) {
                continue;
            }
            list.add_partition_offset(
                &self.topics[p.topic as usize],
                p.partition,
                Offset::Offset(*offset),
            )
            .map_err(KafkaError::from_native)?;
        }
        if list.count() == 0 {
            return Ok(());
        }
        self.client
            .commit(&list, mode)
            .map_err(KafkaError::from_native)
    }

    /// Stops fetching all partitions, those assigned later too; `poll` must go on being called.
    pub fn pause(&mut self) -> Result<(), KafkaError> {
        self.paused = true;
        self.client
            .assignment()
            .and_then(|a| self.client.pause(&a))
            .map_err(KafkaError::from_native)
    }

    /// Undoes [`Consumer::pause`].
    pub fn resume(&mut self) -> Result<(), KafkaError> {
        self.paused = false;
        let barred: Vec<Partition> = self.barred.iter().copied().collect();
        self.client
            .assignment()
            .and_then(|a| self.client.resume(&a))
            .and_then(|()| self.client.pause(&self.list_of(&barred)))
            .map_err(KafkaError::from_native)
    }

    /// Whether the group has ever answered with an assignment, be it an empty one.
    pub fn joined(&self) -> bool {
        self.joined
    }

    /// Partitions that are assigned now.
    pub fn assignment(&self) -> Vec<Partition> {
        let mut all = Vec::new();
        for (topic, next) in (0u16..).zip(&self.next) {
            for (partition, &offset) in (0i32..).zip(next) {
                if offset != NOT_OURS {
                    all.push(Partition { topic, partition });
                }
            }
        }
        all
    }

    /// Records of each assigned partition that the broker had at the latest statistics and that we have
    /// not handed over by now.
    pub fn lag(&self) -> Vec<(Partition, i64)> {
        let mut all = Vec::new();
        for (&p, news) in &self.news {
            let next = self.next[p.topic as usize].get(p.partition as usize);
            if let Some(&next) = next.filter(|&&n| n != NOT_OURS && n != i64::MAX) {
                all.push((p, (news.end - next).max(0)));
            }
        }
        all
    }

    fn topic(&self, name: &str) -> Option<u16> {
        let i = self.topics.iter().position(|t| t == name)?;
        u16::try_from(i).ok()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        for p in self.assignment() {
            self.queue
                .unforward(&self.topics[p.topic as usize], p.partition);
        }
        // What the group did not give out it does not take back.
        let followers = self.assignment().into_iter();
        let followers: Vec<Partition> = followers
            .filter(|p| usize::from(p.topic) >= self.leads)
            .collect();
        if !followers.is_empty() {
            let _ = self.client.incremental_unassign(&self.list_of(&followers));
        }
        // The client itself leaves the group when its last `Arc` goes.
        self.client.context().closing.store(true, Ordering::Relaxed);
    }
}

#[inline]
fn record(topic: usize, m: Message<'_>) -> Record<'_> {
    Record {
        topic: topic as u16,
        partition: m.partition(),
        offset: m.offset(),
        timestamp_ms: m.timestamp_ms(),
        key: m.key(),
        payload: m.payload(),
        headers: Headers::of_message(m),
    }
}

/// Whether the record may be handed over; if so the next must be later.
#[inline]
fn claim(next: &mut [i64], partition: i32, offset: i64) -> bool {
    match next.get_mut(partition as usize) {
        Some(n) if *n != NOT_OURS && offset >= *n => {
            *n = offset + 1;
            true
        }
        _ => false,
    }
}

fn is_ours(next: &[i64], partition: i32) -> bool {
    next.get(partition as usize).is_some_and(|&n| n != NOT_OURS)
}

fn set_next(next: &mut Vec<i64>, partition: i32, offset: i64) {
    let Ok(p) = usize::try_from(partition) else {
        return;
    };
    if next.len() <= p {
        next.resize(p + 1, NOT_OURS);
    }
    next[p] = offset;
}
