//! What librdkafka calls back with, laid down for the consumer to act on.
//!
//! All callbacks run within `BaseConsumer::poll`, on the polling thread. They only take notes; the
//! consumer reads them when the call has returned. A rebalance is thus carried out by the consumer
//! itself, which may then ask its handler for the offset to start from and use the answer in the very
//! assignment, instead of seeking afterwards.

use super::lifeline::Lifeline;
use super::token::TokenFile;
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::KafkaError as Native;
use rdkafka::statistics::Statistics;
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{TopicPartitionList, config::RDKafkaLogLevel};
use std::collections::VecDeque;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A rebalance that waits to be carried out.
pub(super) enum Pending {
    Assign(TopicPartitionList),
    Revoke(TopicPartitionList),
}

/// What the callbacks have told.
#[derive(Default)]
pub(super) struct Notes {
    pub rebalances: VecDeque<Pending>,
    /// Code and librdkafka's words.
    pub errors: Vec<(RDKafkaErrorCode, String)>,
    /// What the latest statistics say of each partition.
    pub news: Vec<News>,
}

/// A partition in the statistics.
pub(super) struct News {
    pub topic: String,
    pub partition: i32,
    /// The offset after the broker's newest record.
    pub end: i64,
    /// The next offset to fetch, once that is known.
    pub next: Option<i64>,
    /// When the partition's leader last answered anything; `None` while it is away.
    pub answered: Option<Instant>,
}

pub(super) struct Context {
    notes: Mutex<Notes>,
    token: TokenFile,
    /// To be held now and then.
    pub lifeline: Lifeline,
    /// The consumer is being closed and nobody will act on notes.
    pub closing: AtomicBool,
}

/// Errors kept between two polls; the rest of a flood says nothing new.
const ERRORS_MAX: usize = 64;

impl Context {
    pub fn new(token: TokenFile, lifeline: Lifeline) -> Context {
        Context {
            notes: Mutex::default(),
            token,
            lifeline,
            closing: AtomicBool::new(false),
        }
    }

    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Context {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.token.token()
    }

    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        // Connection failures come through `error` as well, where they are limited in rate.
        if facility == "FAIL" || facility == "ERROR" {
            tracing::debug!(facility, message, "librdkafka");
            return;
        }
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                tracing::error!(facility, message, "librdkafka");
            }
            RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning => {
                tracing::warn!(facility, message, "librdkafka");
            }
            _ => tracing::debug!(facility, message, "librdkafka"),
        }
    }

    fn stats(&self, statistics: Statistics) {
        let now = Instant::now();
        let answered = |leader: i32| {
            let mut up = statistics.brokers.values().filter(|b| b.state == "UP");
            let silent = u64::try_from(up.find(|b| b.nodeid == leader)?.rxidle).ok()?;
            now.checked_sub(Duration::from_micros(silent))
        };
        let mut notes = self.notes();
        notes.news.clear();
        for (name, topic) in &statistics.topics {
            for p in topic.partitions.values() {
                if p.partition >= 0 && p.hi_offset >= 0 {
                    notes.news.push(News {
                        topic: name.clone(),
                        partition: p.partition,
                        end: p.hi_offset,
                        next: (p.fetch_state == "active" && p.next_offset >= 0)
                            .then_some(p.next_offset),
                        answered: answered(p.leader),
                    });
                }
            }
        }
    }

    fn error(&self, error: Native, reason: &str) {
        self.lifeline.note(&error);
        let Some(code) = error.rdkafka_error_code() else {
            return;
        };
        if code == RDKafkaErrorCode::PartitionEOF {
            return;
        }
        let mut notes = self.notes();
        if notes.errors.len() < ERRORS_MAX {
            notes.errors.push((code, reason.to_string()));
        }
    }
}

impl ConsumerContext for Context {
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        event: RDKafkaRespErr,
        partitions: &mut TopicPartitionList,
    ) {
        let assigns = event == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        if !self.closing.load(Ordering::Relaxed) {
            let pending = if assigns {
                Pending::Assign(partitions.clone())
            } else {
                Pending::Revoke(partitions.clone())
            };
            self.notes().rebalances.push_back(pending);
            return;
        }
        // Closing: librdkafka waits for an answer; accept nothing and give all back.
        let answer = match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative if assigns => Ok(()),
            RebalanceProtocol::Cooperative => consumer.incremental_unassign(partitions),
            _ => consumer.unassign(),
        };
        if let Err(error) = answer {
            tracing::debug!(%error, "could not give partitions back while closing");
        }
    }
}
