//! Options of the Kafka client, and their translation for librdkafka.
//!
//! The common settings are typed. Any other setting of librdkafka goes through
//! [`KafkaOptions::options`] under its own name and overrides the typed value, except for the
//! settings that the guarantees of the consumer depend on (see [`OWNED`]). `Debug` never shows
//! secrets.

use super::process_start::ProcessStart;
use super::rebootstrap::Rebootstrap;
use super::token::TokenFile;
use rdkafka::ClientConfig;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where to start a partition without a snapshot and without a committed offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartAt {
    /// At the oldest record of the broker.
    #[default]
    Earliest,
    /// After the newest record.
    Latest,
    /// At the first record that is at most this old, in ms.
    Back(i64),
    /// At the first record of this time or later, in ms since 1970.
    Time(i64),
}

/// What to do with a partition that has a committed offset but no sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingState {
    /// Suspend and report it.
    #[default]
    Stop,
    /// Continue at the committed offset, with empty windows.
    Committed,
    /// Start here, as if nothing had been read.
    Start(StartAt),
}

/// What to do with a partition that ends before the offset up to which it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncated {
    /// Suspend and report it.
    #[default]
    Stop,
    /// Read it from its oldest record.
    Earliest,
    /// Continue after its newest record.
    Latest,
}

/// Credentials and encryption, in the terms of librdkafka; `None` means its default.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Security {
    /// `plaintext`, `ssl`, `sasl_plaintext` or `sasl_ssl`.
    pub protocol: Option<String>,
    /// `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or `OAUTHBEARER`.
    pub mechanism: Option<String>,
    /// SASL user.
    pub username: Option<String>,
    /// SASL password; omitted in `Debug`.
    pub password: Option<String>,
    /// PEM file of the certificate authority of the brokers.
    pub ca_file: Option<String>,
    /// File with the bearer token of `OAUTHBEARER`. It is read again before the token expires.
    pub token_file: Option<PathBuf>,
}

/// One source: membership in a consumer group, and its topics.
#[derive(Clone, PartialEq, Eq)]
pub struct KafkaOptions {
    /// `host:port`, comma separated.
    pub brokers: String,
    /// Consumer group.
    pub group: String,
    /// Static member name. With it a restart within the session timeout moves no partition.
    pub instance: Option<String>,
    /// Topics, by name; the position in this list is [`super::Record::topic`].
    pub topics: Vec<String>,
    /// Credentials and encryption.
    pub security: Security,
    /// Where to start without a snapshot or a commit.
    pub start: StartAt,
    /// Where to start with a commit but without a snapshot.
    pub missing_state: MissingState,
    /// What to do with a partition that is shorter than what was read of it.
    pub truncated: Truncated,
    /// Longest record to decode, in bytes. A longer one is fetched too, by itself, so that it is
    /// counted and the partition continues.
    pub record_bytes_max: usize,
    /// Cap on the memory of records that are fetched but not consumed, in KiB.
    pub queue_kbytes_max: u32,
    /// Number of copartitioned topics, the last ones in the list. They are not subscribed to.
    /// Partition p of such a topic is assigned together with partition p of the subscribed topic at
    /// the same index.
    pub copartitions: usize,
    /// Topic for records that could not be decoded; with `None` they are only counted.
    pub dead_letter: Option<String>,
    /// How long a transaction may hide records of a partition before
    /// [`Handler::hidden`](super::Handler::hidden) reports it.
    pub open_transaction_max: Duration,
    /// Interval of the statistics of librdkafka in ms, which report the lag and the ends of
    /// partitions; above 0.
    pub statistics_ms: u32,
    /// Other settings of librdkafka.
    pub options: BTreeMap<String, String>,
}

/// 64 MiB, the default of librdkafka. Two seconds of 200-byte records at the full fetch rate would
/// need five times as much, but a consumer that lags must not grow.
pub const QUEUE_KBYTES_MAX: u32 = 65_536;

/// librdkafka's default of `session.timeout.ms`.
const SESSION_MS: u64 = 45_000;

impl Default for KafkaOptions {
    fn default() -> KafkaOptions {
        KafkaOptions {
            brokers: "localhost:9092".into(),
            group: "trueline".into(),
            instance: None,
            topics: Vec::new(),
            security: Security::default(),
            start: StartAt::Earliest,
            missing_state: MissingState::Stop,
            truncated: Truncated::Stop,
            record_bytes_max: 1 << 20,
            queue_kbytes_max: QUEUE_KBYTES_MAX,
            copartitions: 0,
            dead_letter: None,
            open_transaction_max: Duration::from_secs(900),
            statistics_ms: 5_000,
            options: BTreeMap::new(),
        }
    }
}

/// How long a broker waits for records before it answers a fetch: the default of librdkafka.
const FETCH_WAIT_MS: u64 = 500;
/// Defaults of librdkafka, which are lower limits here, and its limit for one partition of a
/// response.
const FETCH_PARTITION_BYTES: usize = 1 << 20;
const FETCH_BYTES: usize = 50 << 20;
const RESPONSE_BYTES: usize = 100_000_000;
const FETCH_PARTITION_BYTES_MAX: usize = 1_000_000_000;

/// Settings that may not be passed through because the guarantees of this program depend on them,
/// with the reason.
pub const OWNED: [(&str, &str); 9] = [
    ("bootstrap.servers", "set `brokers` instead"),
    ("metadata.broker.list", "set `brokers` instead"),
    ("group.id", "set `group` instead"),
    (
        "statistics.interval.ms",
        "lag, ends of partitions and absent brokers are known from statistics; set `statistics_interval` instead",
    ),
    (
        "enable.auto.commit",
        "offsets are stored with the sums, in one snapshot",
    ),
    (
        "enable.auto.offset.store",
        "offsets are stored with the sums, in one snapshot",
    ),
    (
        "enable.partition.eof",
        "its events would move the position in a batch, and a resumed partition would skip a record",
    ),
    (
        "partition.assignment.strategy",
        "the assignment is cooperative-sticky",
    ),
    (
        "auto.offset.reset",
        "deleted records would be skipped silently; set `start` and `on_truncated` instead",
    ),
];

/// Whether a setting applies to every client, not only to consumers.
fn is_client_option(name: &str) -> bool {
    let prefixes = [
        "security.",
        "sasl.",
        "ssl.",
        "socket.",
        "broker.",
        "client.",
        "debug",
        "api.version.",
        "connections.",
        "enable.sasl.",
        "enable.ssl.",
        "https.",
        "log.connection.close",
        "log_level",
        "metadata.",
        "reconnect.backoff.",
        "retry.backoff.",
        "topic.metadata.",
    ];
    prefixes.iter().any(|p| name.starts_with(p))
}

impl KafkaOptions {
    /// Topics that the group subscribes to.
    pub fn subscribed(&self) -> &[String] {
        &self.topics[..self.topics.len().saturating_sub(self.copartitions)]
    }

    /// Whether connections are neither encrypted nor authenticated.
    pub(super) fn is_plain(&self) -> bool {
        let by_option = self.options.get("security.protocol");
        let protocol = by_option.or(self.security.protocol.as_ref());
        protocol.is_none_or(|p| p.eq_ignore_ascii_case("plaintext"))
    }

    /// How long the group waits for a silent member, in ms.
    pub fn session_ms(&self) -> u64 {
        let set = self.options.get("session.timeout.ms");
        set.and_then(|v| v.parse().ok()).unwrap_or(SESSION_MS)
    }

    pub(super) fn consumer_config(&self) -> ClientConfig {
        let mut c = self.client_config();
        c.set("client.id", ProcessStart::of_this_process().client_id())
            .set("group.id", &self.group)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "false")
            .set("partition.assignment.strategy", "cooperative-sticky")
            // Fetch again at once when the queue has room: the default of one second starves the
            // consumer.
            .set("fetch.queue.backoff.ms", "1")
            // librdkafka pauses fetching above this; below 1e5 the drain rate halves (measured).
            .set("queued.min.messages", "100000")
            .set(
                "queued.max.messages.kbytes",
                self.queue_kbytes_max.to_string(),
            )
            .set("statistics.interval.ms", self.statistics_ms.to_string())
            // The group learns of added partitions by the refresh: after five minutes, the default,
            // their records would be late. It asks for the topics of this client only.
            .set("topic.metadata.refresh.interval.ms", "5000")
            // The default. If unset, it would be three intervals: while brokers do not answer, the
            // client would forget its topics and report them as missing.
            .set("metadata.max.age.ms", "900000")
            // `offsets` decides what to do.
            .set("auto.offset.reset", "error");
        self.set_fetch_limits(&mut c);
        if let Some(instance) = &self.instance {
            c.set("group.instance.id", instance);
        }
        for (k, v) in &self.options {
            c.set(k, v);
        }
        c
    }

    /// Sets the fetch limits so that a record of the longest length fits in one response with
    /// others. A longer record does not block the partition: brokers always respond with at least
    /// one batch. Only the whole response has a hard limit, which is above all of these.
    fn set_fetch_limits(&self, c: &mut ClientConfig) {
        let of_partition = self
            .record_bytes_max
            .clamp(FETCH_PARTITION_BYTES, FETCH_PARTITION_BYTES_MAX);
        let of_fetch = of_partition.max(FETCH_BYTES);
        let of_response = (of_fetch + FETCH_BYTES).max(RESPONSE_BYTES);
        c.set("fetch.message.max.bytes", of_partition.to_string())
            .set("fetch.max.bytes", of_fetch.to_string())
            .set("receive.message.max.bytes", of_response.to_string());
    }

    /// Settings of a producer, without the settings of the map that only apply to consumers.
    pub(super) fn producer_config(&self) -> ClientConfig {
        let mut c = self.client_config();
        c.set("linger.ms", "50")
            .set("queue.buffering.max.messages", "10000")
            .set("queue.buffering.max.kbytes", "65536")
            // A dead letter may be longer than the longest record to decode.
            .set("message.max.bytes", "16777216");
        self.pass_through_to_client(&mut c);
        c
    }

    /// Settings of every client: brokers and credentials.
    pub(super) fn client_config(&self) -> ClientConfig {
        let mut c = ClientConfig::new();
        c.set("bootstrap.servers", &self.brokers)
            .set("client.id", "trueline");
        let s = &self.security;
        let typed = [
            ("security.protocol", &s.protocol),
            ("sasl.mechanism", &s.mechanism),
            ("sasl.username", &s.username),
            ("sasl.password", &s.password),
            ("ssl.ca.location", &s.ca_file),
        ];
        for (k, v) in typed {
            if let Some(v) = v {
                c.set(k, v);
            }
        }
        c
    }

    /// The re-bootstrap of a client.
    pub(super) fn rebootstrap(&self) -> Rebootstrap {
        Rebootstrap::new(&self.brokers)
    }

    /// How long a broker may wait for records before it answers a fetch.
    pub(super) fn fetch_wait(&self) -> Duration {
        let set = self.options.get("fetch.wait.max.ms");
        let ms = set.and_then(|ms| ms.parse().ok());
        Duration::from_millis(ms.unwrap_or(FETCH_WAIT_MS))
    }

    /// Where tokens come from.
    pub(super) fn token(&self) -> TokenFile {
        TokenFile(self.security.token_file.clone())
    }

    /// Adds those of the user's settings that apply to every client.
    pub(super) fn pass_through_to_client(&self, c: &mut ClientConfig) {
        for (k, v) in self.options.iter().filter(|(k, _)| is_client_option(k)) {
            c.set(k, v);
        }
    }
}

/// Whether the value of this librdkafka setting must not be shown.
pub fn is_secret(option: &str) -> bool {
    [
        "password",
        "secret",
        "token",
        "jaas",
        ".pem",
        "oauthbearer.config",
    ]
    .iter()
    .any(|s| option.contains(s))
}

impl fmt::Debug for Security {
    /// Omits the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security")
            .field("protocol", &self.protocol)
            .field("mechanism", &self.mechanism)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for KafkaOptions {
    /// Omits the other settings of librdkafka, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaOptions")
            .field("brokers", &self.brokers)
            .field("group", &self.group)
            .field("topics", &self.topics)
            .field("security", &self.security)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::KafkaError;

    #[test]
    fn a_password_is_never_shown() {
        let o = KafkaOptions {
            security: Security {
                password: Some("hunter2".into()),
                ..Security::default()
            },
            options: BTreeMap::from([("ssl.key.password".into(), "hunter2".into())]),
            ..KafkaOptions::default()
        };
        assert!(!format!("{o:?}").contains("hunter2"));
    }

    #[test]
    fn a_setting_that_the_promises_rest_on_is_refused_with_its_reason() {
        for (name, why) in [
            ("enable.auto.commit", "offsets are stored with the sums"),
            ("metadata.broker.list", "set `brokers` instead"),
            (
                "statistics.interval.ms",
                "set `statistics_interval` instead",
            ),
        ] {
            let o = KafkaOptions {
                options: BTreeMap::from([(name.into(), "0".into())]),
                ..KafkaOptions::default()
            };
            let said = KafkaError::find_owned(&o).expect_err(name).to_string();
            assert!(said.contains(name) && said.contains(why), "{said}");
        }
    }

    #[test]
    fn added_partitions_are_looked_for_within_the_default_lateness_unless_set_otherwise() {
        let name = "topic.metadata.refresh.interval.ms";
        let mut o = KafkaOptions::default();
        let interval = |o: &KafkaOptions| o.consumer_config().get(name)?.parse::<u32>().ok();
        assert!(interval(&o).is_some_and(|ms| ms <= 5_000));
        o.options.insert(name.to_owned(), "60000".to_owned());
        assert_eq!(interval(&o), Some(60_000));
    }

    #[test]
    fn producers_get_the_settings_of_every_client_and_none_of_consumers_alone() {
        let all = [
            "enable.ssl.certificate.verification",
            "reconnect.backoff.max.ms",
            "connections.max.idle.ms",
            "metadata.max.age.ms",
            "topic.metadata.refresh.interval.ms",
            "sasl.kerberos.service.name",
        ];
        let consumers = ["session.timeout.ms", "fetch.min.bytes", "isolation.level"];
        let both = all.iter().chain(&consumers);
        let o = KafkaOptions {
            options: both.map(|k| ((*k).to_owned(), "x".to_owned())).collect(),
            ..KafkaOptions::default()
        };
        let (consumer, producer) = (o.consumer_config(), o.producer_config());
        for name in all {
            assert_eq!(producer.get(name), Some("x"), "{name}");
            assert_eq!(consumer.get(name), Some("x"), "{name}");
        }
        for name in consumers {
            assert_eq!(producer.get(name), None, "{name}");
        }
    }
}
