//! What can be set about the Kafka client, and what it becomes for librdkafka.
//!
//! The common settings are typed; anything else librdkafka knows goes through [`KafkaOptions::options`]
//! under librdkafka's own name and wins over the typed value, but for those settings that the
//! consumer's promises rest on (see [`OWNED`]). Secrets never leave through `Debug`.

use super::lifeline::Lifeline;
use super::token::TokenFile;
use rdkafka::ClientConfig;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Where a partition starts that has neither a snapshot nor a committed offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartAt {
    /// At the oldest record the broker still has.
    #[default]
    Earliest,
    /// After the newest.
    Latest,
}

/// What to do where a partition ends before the offset up to which it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Truncated {
    /// Leave it unread, and say so.
    #[default]
    Stop,
    /// Read it from its oldest record.
    Earliest,
    /// Read what comes after its newest.
    Latest,
}

/// How the client proves itself to the broker, in librdkafka's words; `None` leaves its default.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Security {
    /// `plaintext`, `ssl`, `sasl_plaintext` or `sasl_ssl`.
    pub protocol: Option<String>,
    /// `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or `OAUTHBEARER`.
    pub mechanism: Option<String>,
    /// SASL user.
    pub username: Option<String>,
    /// SASL password; masked in `Debug`.
    pub password: Option<String>,
    /// PEM file of the authority that signed the broker's certificate.
    pub ca_file: Option<String>,
    /// File with the bearer token of `OAUTHBEARER`, read again before it runs out.
    pub token_file: Option<PathBuf>,
}

/// One source: a consumer group's membership and the topics it reads.
#[derive(Clone, PartialEq, Eq)]
pub struct KafkaOptions {
    /// `host:port`, comma separated.
    pub brokers: String,
    /// Consumer group.
    pub group: String,
    /// Static member name: a restart within the session timeout then moves no partition.
    pub instance: Option<String>,
    /// Topics, by name; the position in this list is [`super::Record::topic`].
    pub topics: Vec<String>,
    /// Credentials and encryption.
    pub security: Security,
    /// Where to begin without a snapshot or a commit.
    pub start: StartAt,
    /// What to do with a partition that is shorter than what was read of it.
    pub truncated: Truncated,
    /// Longest record that is decoded, bytes. One that is longer is fetched nevertheless, by itself, so
    /// that it is counted and the partition goes on.
    pub record_bytes_max: usize,
    /// Memory that fetched, not yet consumed records may take, KiB.
    pub queue_kbytes_max: u32,
    /// How many of the topics, the last ones, are not subscribed to: each goes with one of the first, the
    /// one in its place among these. Partition p of both then always has the same reader.
    pub followers: usize,
    /// Topic for records that could not be decoded; `None`: they are only counted.
    pub dead_letter: Option<String>,
    /// Milliseconds between librdkafka's statistics, from which the lag is read; 0 turns them off.
    pub statistics_ms: u32,
    /// Any other librdkafka setting.
    pub options: BTreeMap<String, String>,
}

/// 64 MiB: the default of librdkafka; two seconds of 200-byte records at the full fetch rate would be
/// five times that, but a consumer that lags must not grow.
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
            truncated: Truncated::Stop,
            record_bytes_max: 1 << 20,
            queue_kbytes_max: QUEUE_KBYTES_MAX,
            followers: 0,
            dead_letter: None,
            statistics_ms: 5_000,
            options: BTreeMap::new(),
        }
    }
}

/// librdkafka's defaults, never gone below, and its own limit of a partition's part of an answer.
const FETCH_PARTITION_BYTES: usize = 1 << 20;
const FETCH_BYTES: usize = 50 << 20;
const ANSWER_BYTES: usize = 100_000_000;
const FETCH_PARTITION_BYTES_MAX: usize = 1_000_000_000;

/// Settings that may not be passed through, because what this program promises rests on them, and why.
pub const OWNED: [(&str, &str); 7] = [
    ("bootstrap.servers", "set `brokers` instead"),
    ("group.id", "set `group` instead"),
    (
        "enable.auto.commit",
        "offsets are kept with the sums, in one snapshot",
    ),
    (
        "enable.auto.offset.store",
        "offsets are kept with the sums, in one snapshot",
    ),
    (
        "enable.partition.eof",
        "in a batch its events move the position by one, and a resumed partition then skips a record",
    ),
    (
        "partition.assignment.strategy",
        "the assignment is cooperative-sticky",
    ),
    (
        "auto.offset.reset",
        "records that are gone would be passed over in silence; set `start` and `on_truncated` instead",
    ),
];

/// Whether a setting is every client's, and not a consumer's alone.
pub(super) fn is_client_option(name: &str) -> bool {
    let prefixes = [
        "security.",
        "sasl.",
        "ssl.",
        "socket.",
        "broker.",
        "client.",
        "debug",
    ];
    prefixes.iter().any(|p| name.starts_with(p))
}

impl KafkaOptions {
    /// Topics that the group gives out.
    pub fn leads(&self) -> &[String] {
        &self.topics[..self.topics.len().saturating_sub(self.followers)]
    }

    /// How long the group waits for a member that is silent, milliseconds.
    pub fn session_ms(&self) -> u64 {
        let set = self.options.get("session.timeout.ms");
        set.and_then(|v| v.parse().ok()).unwrap_or(SESSION_MS)
    }

    /// Settings of a consumer.
    pub(super) fn consumer_config(&self) -> ClientConfig {
        let mut c = self.client_config();
        c.set("group.id", &self.group)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "false")
            .set("partition.assignment.strategy", "cooperative-sticky")
            // Fetch again at once when the queue has room: the default of a second starves the consumer.
            .set("fetch.queue.backoff.ms", "1")
            // librdkafka pauses fetching above this; below 1e5 the drain rate halves (measured).
            .set("queued.min.messages", "100000")
            .set(
                "queued.max.messages.kbytes",
                self.queue_kbytes_max.to_string(),
            )
            .set("statistics.interval.ms", self.statistics_ms.to_string())
            // What to do is decided in `astray`.
            .set("auto.offset.reset", "error");
        self.set_fetch_limits(&mut c);
        if let Some(instance) = &self.instance {
            c.set("group.instance.id", instance);
        }
        self.pass_through(&mut c);
        c
    }

    /// A record of the longest length comes with others in one answer. A longer one does not stop the
    /// partition either: brokers answer with at least one batch whatever these limits say, and only the
    /// whole answer has a limit, which is kept above all of it.
    fn set_fetch_limits(&self, c: &mut ClientConfig) {
        let of_partition = self
            .record_bytes_max
            .clamp(FETCH_PARTITION_BYTES, FETCH_PARTITION_BYTES_MAX);
        let of_fetch = of_partition.max(FETCH_BYTES);
        let of_answer = (of_fetch + FETCH_BYTES).max(ANSWER_BYTES);
        c.set("fetch.message.max.bytes", of_partition.to_string())
            .set("fetch.max.bytes", of_fetch.to_string())
            .set("receive.message.max.bytes", of_answer.to_string());
    }

    /// Settings of the dead-letter producer; those of the map that only a consumer knows are left out.
    pub(super) fn producer_config(&self) -> ClientConfig {
        let mut c = self.client_config();
        c.set("linger.ms", "50")
            .set("queue.buffering.max.messages", "10000")
            .set("queue.buffering.max.kbytes", "65536")
            // A record that could not be decoded may be longer than what we decode.
            .set("message.max.bytes", "16777216");
        for (k, v) in self.options.iter().filter(|(k, _)| is_client_option(k)) {
            c.set(k, v);
        }
        c
    }

    /// What every client needs: the brokers and the credentials.
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

    /// What brings a client's brokers back.
    pub(super) fn lifeline(&self) -> Lifeline {
        Lifeline::new(&self.brokers)
    }

    /// Where tokens come from.
    pub(super) fn token(&self) -> TokenFile {
        TokenFile(self.security.token_file.clone())
    }

    /// Adds the user's own settings, but for those of [`OWNED`], which [`super::Consumer::new`] refuses.
    pub(super) fn pass_through(&self, c: &mut ClientConfig) {
        for (k, v) in &self.options {
            c.set(k, v);
        }
    }

    /// The first setting of the map that may not be set, with the reason.
    pub fn refused_option(&self) -> Option<(&'static str, &'static str)> {
        OWNED
            .into_iter()
            .find(|(name, _)| self.options.contains_key(*name))
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

const MASK: &str = "******";

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security")
            .field("protocol", &self.protocol)
            .field("mechanism", &self.mechanism)
            .field("username", &self.username)
            .field("password", &self.password.as_ref().map(|_| MASK))
            .field("ca_file", &self.ca_file)
            .field("token_file", &self.token_file)
            .finish()
    }
}

impl fmt::Debug for KafkaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options: BTreeMap<&str, &str> = self
            .options
            .iter()
            .map(|(k, v)| (k.as_str(), if is_secret(k) { MASK } else { v.as_str() }))
            .collect();
        f.debug_struct("KafkaOptions")
            .field("brokers", &self.brokers)
            .field("group", &self.group)
            .field("instance", &self.instance)
            .field("topics", &self.topics)
            .field("security", &self.security)
            .field("start", &self.start)
            .field("record_bytes_max", &self.record_bytes_max)
            .field("queue_kbytes_max", &self.queue_kbytes_max)
            .field("dead_letter", &self.dead_letter)
            .field("statistics_ms", &self.statistics_ms)
            .field("options", &options)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let o = KafkaOptions {
            options: BTreeMap::from([("enable.auto.commit".into(), "true".into())]),
            ..KafkaOptions::default()
        };
        assert_eq!(o.refused_option().map(|r| r.0), Some("enable.auto.commit"));
    }
}
