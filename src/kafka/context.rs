//! The callbacks of librdkafka, stored as events for the consumer.
//!
//! All callbacks run within `BaseConsumer::poll`, on the polling thread. They only store events,
//! which the consumer reads after the call. So the consumer itself performs a rebalance: it asks
//! its handler for the offset to start from and uses it in the assignment, instead of seeking
//! afterwards.

use super::KafkaOptions;
use super::rebootstrap::Rebootstrap;
use super::throttle::ErrorThrottle;
use super::token::TokenFile;
use parking_lot::{Mutex, MutexGuard};
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError as Native, KafkaResult};
use rdkafka::statistics::{Broker, Statistics};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{TopicPartitionList, config::RDKafkaLogLevel};
use std::collections::VecDeque;
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A rebalance that the consumer must perform.
#[derive(Debug, Clone)]
pub enum Rebalance {
    /// These partitions are assigned.
    Assign(TopicPartitionList),
    /// These partitions are revoked.
    Revoke(TopicPartitionList),
}

/// Events since the last poll.
#[derive(Debug, Default)]
pub struct Events {
    /// Rebalances, in order.
    pub rebalances: VecDeque<Rebalance>,
    /// Code and text of librdkafka.
    pub errors: Vec<(RDKafkaErrorCode, String)>,
    /// Number of errors for which there was no room.
    pub errors_dropped: u64,
    /// The latest statistics of each partition.
    pub statistics: Vec<PartitionStats>,
    /// Whether any broker is connected and answers; `None` without statistics.
    pub connected: Option<bool>,
    /// When a broker last answered, if some are connected and none answers.
    pub answered: Option<Instant>,
}

/// Statistics of one partition.
#[derive(Debug, Clone)]
pub struct PartitionStats {
    /// Topic.
    pub topic: String,
    /// Number of the partition.
    pub partition: i32,
    /// The offset after the broker's newest record, once something was fetched.
    pub end: Option<i64>,
    /// The offset before which no transaction is open.
    pub stable: Option<i64>,
    /// The next offset to fetch, once it is known.
    pub next: Option<i64>,
    /// When the broker from which it is fetched, its leader or a follower, last responded; `None`
    /// while there is no such broker, or it is not connected or does not answer.
    pub responded: Option<Instant>,
    /// The leader is known, but the client fetches from no broker. This happens if the metadata has
    /// a lower leader epoch than the client has seen; it is permanent if the topic was recreated.
    pub unfetched: bool,
}

pub(super) struct Context {
    events: Mutex<Events>,
    token: TokenFile,
    /// The consumer runs its due attempts.
    pub rebootstrap: Rebootstrap,
    /// The consumer is being closed and no longer handles events.
    pub closing: AtomicBool,
    /// How many callbacks librdkafka has run.
    callbacks: AtomicU64,
    /// Limits the log lines of each facility of librdkafka.
    lines: Mutex<ErrorThrottle>,
    /// A connected broker that has owed an answer for this long counts as not answering.
    answers_within: Duration,
}

/// How long an answer may take, beyond the wait of a fetch for records. Without this limit, a
/// connection to a frozen broker, or through a network that drops packets, would count as up for
/// `socket.timeout.ms`.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Most errors stored between two polls.
const ERRORS_MAX: usize = 64;

impl Context {
    pub fn new(options: &KafkaOptions) -> Context {
        Context {
            events: Mutex::default(),
            token: options.token(),
            rebootstrap: options.rebootstrap(),
            answers_within: ANSWERS_WITHIN + options.fetch_wait(),
            closing: AtomicBool::new(false),
            callbacks: AtomicU64::new(0),
            lines: Mutex::default(),
        }
    }

    /// How many callbacks librdkafka has run. A poll that runs none has found its queue empty.
    pub fn callbacks(&self) -> u64 {
        self.callbacks.load(Ordering::Relaxed)
    }

    fn admits_line(&self, facility: &str) -> bool {
        let mut lines = self.lines.lock();
        lines.admits_kind(facility.to_owned())
    }

    fn count_callback(&self) {
        self.callbacks.fetch_add(1, Ordering::Relaxed);
    }

    pub fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock()
    }

    /// Everything since the last call. The number of errors for which there was no room is logged.
    pub fn take_events(&self) -> Events {
        let events = std::mem::take(&mut *self.events());
        if events.errors_dropped > 0 {
            let more = events.errors_dropped;
            tracing::warn!(more, "errors of the broker client between two polls");
        }
        events
    }
}

impl ClientContext for Context {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.count_callback();
        self.token.token()
    }

    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.count_callback();
        // Connection failures also reach `error`, where their rate is limited.
        if facility == "FAIL" || facility == "ERROR" {
            tracing::debug!(facility, message, "librdkafka");
            return;
        }
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                tracing::error!(facility, message, "librdkafka");
            }
            // While a right or a certificate is missing, such a line would come with each commit or
            // connection. Warnings about settings come once, in several lines.
            RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning
                if facility == "CONFWARN" || self.admits_line(facility) =>
            {
                tracing::warn!(facility, message, "librdkafka");
            }
            _ => tracing::debug!(facility, message, "librdkafka"),
        }
    }

    fn stats(&self, statistics: Statistics) {
        self.count_callback();
        let now = Instant::now();
        let idle = |b: &Broker| Some(Duration::from_micros(u64::try_from(b.rxidle).ok()?));
        // A broker that was asked nothing owes nothing.
        let owes = |b: &Broker| {
            b.waitresp_cnt > 0 && idle(b).is_some_and(|time| time > self.answers_within)
        };
        let up = || statistics.brokers.values().filter(|b| b.state == "UP");
        let responded = |id: i32| {
            // A bootstrap address has the number -1, and so does the broker of a partition without
            // a broker.
            let mut brokers = up().filter(|b| id >= 0 && b.nodeid == id && !owes(b));
            now.checked_sub(brokers.find_map(idle)?)
        };
        let answers = up().any(|b| !owes(b));
        let least = up().filter_map(idle).min().filter(|_| !answers);
        let mut events = self.events();
        events.connected = Some(answers);
        events.answered = least.and_then(|time| now.checked_sub(time));
        events.statistics.clear();
        for (name, topic) in &statistics.topics {
            for p in topic.partitions.values() {
                if p.partition >= 0 {
                    events.statistics.push(PartitionStats {
                        topic: name.clone(),
                        partition: p.partition,
                        end: (p.hi_offset >= 0).then_some(p.hi_offset),
                        stable: (p.ls_offset >= 0).then_some(p.ls_offset),
                        next: (p.fetch_state == "active" && p.next_offset >= 0)
                            .then_some(p.next_offset),
                        responded: responded(p.broker),
                        unfetched: p.leader >= 0 && p.broker < 0 && !p.unknown,
                    });
                }
            }
        }
    }

    fn error(&self, error: Native, reason: &str) {
        self.count_callback();
        self.rebootstrap.on_error(&error);
        let Some(code) = error.rdkafka_error_code() else {
            return;
        };
        if code == RDKafkaErrorCode::PartitionEOF {
            return;
        }
        let mut events = self.events();
        if events.errors.len() < ERRORS_MAX {
            events.errors.push((code, reason.to_string()));
        } else {
            events.errors_dropped += 1;
        }
    }
}

impl ConsumerContext for Context {
    fn commit_callback(&self, _: KafkaResult<()>, _: &TopicPartitionList) {
        self.count_callback();
    }

    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        event: RDKafkaRespErr,
        partitions: &mut TopicPartitionList,
    ) {
        self.count_callback();
        let assigns = event == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        if !self.closing.load(Ordering::Relaxed) {
            let rebalance = if assigns {
                Rebalance::Assign(partitions.clone())
            } else {
                Rebalance::Revoke(partitions.clone())
            };
            self.events().rebalances.push_back(rebalance);
            return;
        }
        // Closing: librdkafka expects a response. Accept no partition and return all.
        let result = match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative if assigns => Ok(()),
            RebalanceProtocol::Cooperative => consumer.incremental_unassign(partitions),
            _ => consumer.unassign(),
        };
        if let Err(error) = result {
            tracing::debug!(%error, "could not return partitions while closing");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::statistics::{Broker, Partition, Topic};

    #[test]
    fn a_broker_that_is_connected_and_owes_an_answer_for_long_does_not_answer() {
        let seconds = |s: i64| s * 1_000_000;
        let connected = |idle: i64, owed: i64, options: &KafkaOptions| {
            let broker = Broker {
                nodeid: 1,
                state: "UP".to_owned(),
                rxidle: idle,
                waitresp_cnt: owed,
                ..Broker::default()
            };
            let context = Context::new(options);
            context.stats(Statistics {
                brokers: [("one".to_owned(), broker)].into(),
                ..Statistics::default()
            });
            let events = context.take_events();
            let ago = events.answered.map(|at| at.elapsed().as_secs());
            (events.connected, ago)
        };
        let usual = KafkaOptions::default();
        assert_eq!(connected(seconds(6), 1, &usual), (Some(false), Some(6)));
        assert_eq!(connected(seconds(5), 1, &usual), (Some(true), None));
        assert_eq!(connected(seconds(60), 0, &usual), (Some(true), None));
        // A fetch may wait this long for records.
        let wait = ("fetch.wait.max.ms".to_owned(), "9000".to_owned());
        let waits = KafkaOptions {
            options: [wait].into(),
            ..KafkaOptions::default()
        };
        assert_eq!(connected(seconds(13), 1, &waits), (Some(true), None));
        assert_eq!(connected(seconds(15), 1, &waits), (Some(false), Some(15)));
    }

    #[test]
    fn a_partition_that_was_never_fetched_says_whether_its_leader_answers() {
        let broker = |nodeid: i32, state: &str| Broker {
            nodeid,
            state: state.to_owned(),
            rxidle: 1000,
            ..Broker::default()
        };
        let partition = |partition: i32, leader: i32, broker: i32| Partition {
            partition,
            leader,
            broker,
            hi_offset: -1001,
            ..Partition::default()
        };
        // The last but one is fetched from no broker, although its leader answers.
        let partitions = [(0, 1, 1), (1, 2, 2), (2, -1, -1), (3, 1, -1), (-1, -1, -1)];
        let partitions = partitions.map(|(p, leader, broker)| (p, partition(p, leader, broker)));
        let topic = Topic {
            partitions: partitions.into(),
            ..Topic::default()
        };
        let brokers = [("one", broker(1, "UP")), ("two", broker(2, "CONNECT"))];
        let context = Context::new(&KafkaOptions::default());
        context.stats(Statistics {
            brokers: brokers.map(|(name, b)| (name.to_owned(), b)).into(),
            topics: [("scores".to_owned(), topic)].into(),
            ..Statistics::default()
        });
        let mut found = context.take_events().statistics;
        found.sort_by_key(|p| p.partition);
        let found = found.iter();
        let found = found.map(|p| (p.end, p.responded.is_some(), p.unfetched));
        let found: Vec<_> = found.collect();
        let away = (None, false, false);
        assert_eq!(
            found,
            [(None, true, false), away, away, (None, false, true)]
        );
    }
}
