//! Checks a configuration against the brokers, for `trueline check`.

use super::token::TokenFile;
use super::{KafkaError, KafkaOptions};
use parking_lot::Mutex;
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError as Native, KafkaResult};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

/// Stores the errors that the client reports; they say more than the timeout of a call.
#[derive(Default)]
struct Errors(Mutex<Vec<(RDKafkaErrorCode, String)>>, TokenFile);

impl ClientContext for Errors {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.1.token()
    }

    fn log(&self, _: RDKafkaLogLevel, _: &str, _: &str) {}

    fn error(&self, error: Native, reason: &str) {
        if let Some(code) = error.rdkafka_error_code() {
            let mut errors = self.0.lock();
            errors.push((code, reason.to_string()));
        }
    }
}

impl ConsumerContext for Errors {}

/// Result of a probe.
#[derive(Debug, Default)]
pub struct Probe {
    /// Problems; empty if the client would start.
    pub problems: Vec<KafkaError>,
    /// Number of partitions of each existing topic.
    pub partitions: BTreeMap<String, usize>,
    /// Whether the topics to read can be read, even if something else is wrong.
    pub readable: bool,
}

/// What a client does with the topics of its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It reads them in a group, and writes to the topic of dead letters.
    Read,
    /// It asks for their ends.
    Judge,
    /// It writes to them.
    Write,
}

impl Use {
    /// The right that this use needs on the topics, and the key of the configuration that names
    /// them.
    fn of_topics(self) -> (&'static str, &'static str) {
        match self {
            Use::Read => ("READ", "topics"),
            Use::Judge => ("DESCRIBE", "topics"),
            Use::Write => ("WRITE", "topic"),
        }
    }
}

/// Checks whether a consumer with these options would start and may read. Takes at most about
/// `timeout`. Joins no group and consumes no record.
pub fn probe(options: &KafkaOptions, timeout: Duration) -> Probe {
    look(options, Use::Read, timeout)
}

/// Checks whether a judge of what others count would start with these options: it requests the ends
/// of the topics, reads and writes none of them, and does not use the group.
pub fn probe_of_judge(options: &KafkaOptions, timeout: Duration) -> Probe {
    look(options, Use::Judge, timeout)
}

/// Checks whether a sink may write to the topics of these options: it reads none of them and does
/// not use the group.
pub fn probe_of_sink(options: &KafkaOptions, timeout: Duration) -> Probe {
    look(options, Use::Write, timeout)
}

fn look(options: &KafkaOptions, is_to: Use, timeout: Duration) -> Probe {
    let mut probe = Probe {
        readable: true,
        ..Probe::default()
    };
    if let Err(problem) = try_metadata(options, is_to, timeout, &mut probe) {
        probe.problems.push(problem);
        probe.readable = false;
    }
    probe
}

fn try_metadata(
    options: &KafkaOptions,
    is_to: Use,
    timeout: Duration,
    probe: &mut Probe,
) -> Result<(), KafkaError> {
    KafkaError::find_owned(options)?;
    let mut config = options.consumer_config();
    // So that the check of a readable topic ends.
    config.set("enable.partition.eof", "true");
    let context = Errors(Mutex::default(), options.token());
    let client: KafkaResult<BaseConsumer<Errors>> = config.create_with_context(context);
    let client = client.map_err(|error| KafkaError::of_creation(error, options))?;
    if options.security.token_file.is_some() {
        // A poll requests the token, without which there is no metadata.
        let _ = client.poll(Duration::from_millis(200));
    }
    let start = Instant::now();
    let of_topics = is_to.of_topics();
    let topics = options.topics.iter().map(|topic| (topic, of_topics));
    let written = options.dead_letter.iter().filter(|_| is_to == Use::Read);
    let wanted = topics.chain(written.map(|topic| (topic, ("WRITE", "dead_letter"))));
    for (topic, (right, key)) in wanted {
        let left = timeout
            .saturating_sub(start.elapsed())
            .max(Duration::from_millis(100));
        match client.fetch_metadata(Some(topic), left) {
            Ok(metadata) => {
                let found = metadata.topics().iter().find(|t| t.name() == topic);
                let error = found.and_then(|t| t.error()).map(RDKafkaErrorCode::from);
                let partitions = found.map_or(0, |t| t.partitions().len());
                probe.partitions.insert(topic.clone(), partitions);
                if error.is_some() || partitions == 0 {
                    let detail =
                        error.map_or_else(|| "has no partitions".to_string(), |e| e.to_string());
                    probe.readable &= key != "topics";
                    let topic = topic.clone();
                    let denied = error == Some(RDKafkaErrorCode::TopicAuthorizationFailed);
                    probe.problems.push(match denied {
                        true => KafkaError::topic_denied(&topic, right, detail),
                        false => KafkaError::Topic { topic, detail, key },
                    });
                }
            }
            Err(error) => return Err(unreachable(&client, options, &error)),
        }
    }
    if probe.readable && is_to == Use::Read {
        let until = start + timeout;
        probe.problems.extend(denied_group(&client, options, until));
        let topics = options.topics.iter();
        let denied = topics.filter_map(|topic| denied_topic(&client, topic, until));
        let denied: Vec<KafkaError> = denied.collect();
        probe.readable = denied.is_empty();
        probe.problems.extend(denied);
    }
    Ok(())
}

/// The error if this user may not use the group, from a request for its committed offsets. `None`
/// without an answer in time.
fn denied_group(
    client: &BaseConsumer<Errors>,
    options: &KafkaOptions,
    until: Instant,
) -> Option<KafkaError> {
    let within = until.saturating_duration_since(Instant::now()) / 2;
    let mut list = TopicPartitionList::new();
    list.add_partition(options.topics.first()?, 0);
    let answer = client.committed_offsets(list, within).err()?;
    // Without the right, the client does not find the coordinator.
    let found = reported(client, options).into_iter();
    let mut found = found.chain([match answer.rdkafka_error_code() {
        Some(code) => KafkaError::from_code(code, answer.to_string(), options),
        None => answer.into(),
    }]);
    found.find(KafkaError::is_of_group)
}

/// The error if this user may see a topic but not read it, from a fetch after its last record.
/// `None` without an answer in time.
fn denied_topic(client: &BaseConsumer<Errors>, topic: &str, until: Instant) -> Option<KafkaError> {
    let mut list = TopicPartitionList::new();
    let end = list.add_partition_offset(topic, 0, Offset::End);
    end.and_then(|()| client.assign(&list)).ok()?;
    while Instant::now() < until {
        match client.poll(Duration::from_millis(50)) {
            Some(Err(Native::MessageConsumption(
                code @ RDKafkaErrorCode::TopicAuthorizationFailed,
            ))) => {
                return Some(KafkaError::topic_denied(topic, "READ", code.to_string()));
            }
            Some(Ok(_) | Err(Native::PartitionEOF(_))) => return None,
            Some(Err(_)) | None => {}
        }
    }
    None
}

/// Why there is no metadata: the error that the client reported, if any.
fn unreachable(
    client: &BaseConsumer<Errors>,
    options: &KafkaOptions,
    error: &Native,
) -> KafkaError {
    let found = reported(client, options).into_iter();
    // An error that needs an operator says most.
    let best = found.min_by_key(|error| !error.needs_operator());
    best.unwrap_or_else(|| KafkaError::Unreachable {
        brokers: options.brokers.clone(),
        detail: error.to_string(),
    })
}

/// The errors that the client has reported. "All brokers are down" comes last, because others say
/// why.
fn reported(client: &BaseConsumer<Errors>, options: &KafkaOptions) -> Vec<KafkaError> {
    // Errors stay in the queue until the client is polled.
    for _ in 0..8 {
        client.poll(Duration::from_millis(5));
    }
    let mut errors = client.context().0.lock().clone();
    errors.sort_by_key(|(code, _)| *code == RDKafkaErrorCode::AllBrokersDown);
    let explain = |(code, text)| KafkaError::from_code(code, text, options);
    errors.into_iter().map(explain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_topic_of_a_sink_is_named_with_its_key() {
        let (_mock, options) = crate::kafka::mock::broker("alerts");
        let sink = |topic: &str| {
            let topics = vec![topic.to_owned()];
            let options = KafkaOptions {
                topics,
                ..options.clone()
            };
            probe_of_sink(&options, Duration::from_secs(30)).problems
        };
        assert!(sink("alerts").is_empty());
        let problems = sink("other");
        let problem = problems.first().expect("a problem").to_string();
        assert!(problem.contains("correct `topic`"), "{problem}");
    }

    #[test]
    fn an_option_that_librdkafka_does_not_know_is_named() {
        let o = KafkaOptions {
            options: BTreeMap::from([("fetch.wait.maximum".into(), "1".into())]),
            ..KafkaOptions::default()
        };
        let problems = probe(&o, Duration::from_millis(100)).problems;
        assert!(
            problems[0].to_string().contains("`fetch.wait.maximum`"),
            "{problems:?}"
        );
    }
}
