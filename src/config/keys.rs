//! The one table of all keys of the configuration file.
//!
//! An entry here is all that a new key needs to be parsed, checked, defaulted, suggested,
//! documented and shown; only its use is elsewhere ([`super::models`] and [`super::sources`]). Each
//! `about` says what the key does and, if it is not obvious, the reason for its default.

use super::schema::{Bounds, Key, Kind, Preset, Section};
use Preset::{Required, Unset, Value};

/// A share: any number from 0 to 1.
const SHARE: Kind = Kind::Number(Bounds {
    low: 0.0,
    high: 1.0,
    open: false,
});
/// A probability that must be neither impossible nor certain.
const PROBABILITY: Kind = Kind::Number(Bounds {
    low: 0.0,
    high: 1.0,
    open: true,
});
/// A count of at least one.
const COUNT: Kind = Kind::Integer {
    low: 1,
    high: i64::MAX,
};

const fn key(name: &'static str, kind: Kind, preset: Preset, about: &'static str) -> Key {
    Key {
        name,
        kind,
        preset,
        about,
    }
}

/// Keys without a default that the sample sets: where the records come from, and the
/// form of the prediction: each file has to choose one.
pub const CHOSEN: [(&str, &str); 2] = [("kafka", "brokers"), ("source.fields", "score")];

/// All sections in the order of the reference. A child follows its parent.
pub const SECTIONS: &[Section] = &[
    Section {
        path: "",
        repeated: false,
        about: "The file as a whole.",
        keys: TOP,
    },
    Section {
        path: "kafka",
        repeated: false,
        about: "Connection to the brokers.",
        keys: KAFKA,
    },
    Section {
        path: "kafka.tls",
        repeated: false,
        about: "Encryption. Needs a binary built with the feature `tls`.",
        keys: TLS,
    },
    Section {
        path: "kafka.sasl",
        repeated: false,
        about: "Credentials. All mechanisms but PLAIN need a binary built with the feature `tls`.",
        keys: SASL,
    },
    Section {
        path: "registry",
        repeated: false,
        about: "A Confluent-compatible schema registry, for sources whose `format` is `avro` \
                or `protobuf`. While it does not respond, records with an unknown schema wait \
                and their partitions are paused; nothing is lost.",
        keys: REGISTRY,
    },
    Section {
        path: "source",
        repeated: true,
        about: "Topics whose records have the same shape. At least one; each source is one \
                consumer.",
        keys: SOURCE,
    },
    Section {
        path: "source.fields",
        repeated: false,
        about: "Paths of the fields of an event, such as `prediction.score`. A dot inside a \
                name is written `\\.`.",
        keys: FIELDS,
    },
    Section {
        path: "source.outcomes",
        repeated: false,
        about: "Outcomes that arrive separately from their predictions, and later. They are \
                joined by id, and a prediction is counted once it is mature. Enabled by \
                `maturity`.",
        keys: OUTCOMES,
    },
    Section {
        path: "model",
        repeated: true,
        about: "How a model is monitored. The model `*` stands for every model without a \
                section of its own and provides the defaults of the others. Without any \
                [[model]] there is one `*` with the defaults.",
        keys: MODEL,
    },
    Section {
        path: "model.sampling",
        repeated: false,
        about: "Negatives that were down-sampled at a known rate, for the view `binary`. The \
                odds of a score are multiplied by `negatives_trained` / `negatives_kept`, and \
                all reports are on the scale of the events in the stream.",
        keys: SAMPLING,
    },
    Section {
        path: "model.kernel",
        repeated: false,
        about: "Data that the view `kernel` keeps of a window: a sample whose pairs are \
                compared at each slide, and random features, which are sums over all events.",
        keys: KERNEL,
    },
    Section {
        path: "model.test",
        repeated: false,
        about: "When a window is called miscalibrated.",
        keys: TEST,
    },
    Section {
        path: "model.alert",
        repeated: false,
        about: "What raises an alert, and how long it must persist.",
        keys: ALERT,
    },
    Section {
        path: "model.compare",
        repeated: false,
        about: "Compares versions of the model that score the same ids, such as a champion and \
                its shadow: Brier score and calibration, with anytime-valid intervals.",
        keys: COMPARE,
    },
    Section {
        path: "detector",
        repeated: false,
        about: "The detector of each stream. It examines every pane, raises alarms, and \
                guarantees a bound on false alarms over all time for all streams together.",
        keys: DETECTOR,
    },
    Section {
        path: "notify",
        repeated: false,
        about: "Notifications when the alert of a stream fires or is resolved.",
        keys: NOTIFY,
    },
    Section {
        path: "sink",
        repeated: true,
        about: "Destinations of alerts. Each change of an alert goes once to each sink, in \
                order. Without sinks, alerts appear only on /metrics, in the API and in the \
                log.",
        keys: SINK,
    },
    Section {
        path: "http",
        repeated: false,
        about: "Metrics, health and the API.",
        keys: HTTP,
    },
    Section {
        path: "http.events",
        repeated: false,
        about: "Events that are posted to `/v1/events`, for sources with `input = \"http\"`. Each of \
                their topics is a log in the state directory.",
        keys: EVENTS,
    },
    Section {
        path: "state",
        repeated: false,
        about: "Snapshots of sums and offsets, from which a restart resumes.",
        keys: STATE,
    },
    Section {
        path: "limits",
        repeated: false,
        about: "Caps. Metrics count what a cap refuses.",
        keys: LIMITS,
    },
    Section {
        path: "log",
        repeated: false,
        about: "Log lines, on standard error.",
        keys: LOG,
    },
];

const TOP: &[Key] = &[key(
    "version",
    Kind::Integer { low: 1, high: 1 },
    Required("1"),
    "Version of the file format.",
)];

const KAFKA: &[Key] = &[
    key(
        "brokers",
        Kind::Text,
        Unset("\"localhost:9092\""),
        "Bootstrap brokers, `host:port`, comma separated. Required unless every source has \
         `input = \"http\"`.",
    ),
    key(
        "group",
        Kind::Text,
        Value("\"trueline\""),
        "Consumer group of the first source. Others have their own, `group.source`, so that \
         a rebalance of one does not stop the others.",
    ),
    key(
        "instance",
        Kind::Text,
        Unset("\"${HOSTNAME}\""),
        "Static member name, unique in the group. With it a restart within the session timeout \
         moves no partition. Unset: dynamic membership.",
    ),
    key(
        "queue_bytes_max",
        Kind::Bytes,
        Value("\"64MiB\""),
        "Cap on the memory of fetched records that are not consumed yet, per source. The \
         default is that of librdkafka.",
    ),
    key(
        "statistics_interval",
        Kind::Time,
        Value("\"5s\""),
        "Interval between measurements of the lag, and of what transactions hide.",
    ),
    key(
        "open_transaction_max",
        Kind::Duration,
        Value("\"15m\""),
        "How long verdicts wait for a partition whose records an open transaction hides. After that they \
         continue without it, and `/ready` and a metric name it. Brokers end a transaction after its \
         `transaction.timeout.ms`.",
    ),
    key(
        "options",
        Kind::Map,
        Unset("{ \"session.timeout.ms\" = \"30000\" }"),
        "Any other librdkafka setting under its own name. It overrides the settings here, \
         except for the brokers and those that exact counting depends on, which are refused. \
         Settings of every client hold for producers too.",
    ),
];

const TLS: &[Key] = &[
    key(
        "enabled",
        Kind::Truth,
        Value("false"),
        "Whether to use TLS. Unset, `security.protocol` in `options` of [kafka] decides. The files \
         of this section are read when the process starts: restart it after renewing one.",
    ),
    key(
        "ca_file",
        Kind::Path,
        Unset("\"/etc/trueline/ca.pem\""),
        "PEM file of the certificate authority of the brokers. Unset: those of the system.",
    ),
    key(
        "certificate_file",
        Kind::Path,
        Unset("\"/etc/trueline/client.pem\""),
        "PEM file of the client certificate, for mutual TLS.",
    ),
    key(
        "key_file",
        Kind::Path,
        Unset("\"/etc/trueline/client.key\""),
        "PEM file of the private key of the client.",
    ),
    key(
        "key_password",
        Kind::Secret,
        Unset("\"${KEY_PASSWORD}\""),
        "Password of the private key.",
    ),
];

const SASL: &[Key] = &[
    key(
        "mechanism",
        Kind::Choice(&["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]),
        Unset("\"SCRAM-SHA-512\""),
        "Authentication mechanism. Unset: no credentials.",
    ),
    key("username", Kind::Text, Unset("\"trueline\""), "User."),
    key(
        "password",
        Kind::Secret,
        Unset("\"${KAFKA_PASSWORD}\""),
        "Password.",
    ),
    key(
        "token_file",
        Kind::Path,
        Unset("\"/var/run/secrets/kafka/token\""),
        "File with the bearer token of OAUTHBEARER, which another program renews. It is read \
         again before the token expires.",
    ),
];

const REGISTRY: &[Key] = &[
    key(
        "url",
        Kind::Text,
        Unset("\"http://localhost:8081\""),
        "Address of the registry. `https` needs a binary built with the feature `tls`.",
    ),
    key(
        "user",
        Kind::Text,
        Unset("\"trueline\""),
        "User, for basic authentication.",
    ),
    key(
        "password",
        Kind::Secret,
        Unset("\"${REGISTRY_PASSWORD}\""),
        "Password.",
    ),
    key(
        "ca_file",
        Kind::Path,
        Unset("\"/etc/trueline/ca.pem\""),
        "PEM file of the certificate authority of the registry. Unset: those of the system.",
    ),
    key(
        "timeout",
        Kind::Time,
        Value("\"5s\""),
        "Longest duration of one request. Requests do not block consumption.",
    ),
];

const SOURCE: &[Key] = &[
    key(
        "name",
        Kind::Text,
        Unset("\"predictions\""),
        "Name in messages of `check`, and in the default consumer group. Unset: the first topic. \
         The label `source` of metrics is the topic.",
    ),
    key(
        "group",
        Kind::Text,
        Unset("\"trueline\""),
        "Consumer group of this source. Unset: `group` of [kafka] for the first source, and \
         `group.name` for others. State is kept by topic, so another group continues where the \
         one before stopped.",
    ),
    key(
        "input",
        Kind::Choice(&["kafka", "http"]),
        Value("\"kafka\""),
        "Where its records come from. `kafka`: the topics of the brokers. `http`: requests to \
         `/v1/events/TOPIC` of this process, which are on disk before they are answered. See \
         [http.events].",
    ),
    key(
        "topics",
        Kind::List,
        Required("[\"predictions\"]"),
        "Topics to read, by name.",
    ),
    key(
        "format",
        Kind::Choice(&["json", "avro", "protobuf"]),
        Value("\"json\""),
        "Format of the records, including those of [source.outcomes]: one JSON object each, \
         alone or behind the frame of a JSON Schema serializer; or Avro or Protobuf in that \
         frame, with schemas from the [registry].",
    ),
    key(
        "envelope",
        Kind::Choice(&["none", "cloudevents"]),
        Value("\"none\""),
        "Envelope of the data. `cloudevents`: structured (one JSON object, with paths below \
         its `data`) or binary (attributes are headers), as each record says. The path \
         `ce_time` is the attribute `time`, and so on.",
    ),
    key(
        "rows",
        Kind::Text,
        Unset("\"predictions\""),
        "Path of an array whose objects are events. Paths of their fields start with it, such \
         as `predictions.score`; other fields are common to all rows. Each row counts as a \
         record. Unset: a record is one event.",
    ),
    key(
        "start",
        Kind::Start(&[]),
        Value("\"earliest\""),
        "Where to start a partition that was never read: at its oldest record, after its newest \
         one, at records that are at most so old (`24h`), or at a time. The offset that this \
         means is stored before the first record is read, so a restart continues there. A \
         partition that is added to the topic later starts at its first record.",
    ),
    key(
        "on_missing_state",
        Kind::Start(&["stop", "committed"]),
        Value("\"stop\""),
        "What to do with a partition that has a committed offset and no state, because the state \
         was deleted or the process runs elsewhere. `stop`: it is not read, and `/ready` gives the \
         reason. `committed`: windows begin empty at the committed offset. Any other value is a \
         start as in `start`: the partition is read from there, as if it had never been read. \
         Remove the key once the state exists again.",
    ),
    key(
        "on_truncated",
        Kind::Choice(&["stop", "earliest", "latest"]),
        Value("\"stop\""),
        "What to do with a partition that ends before the offset up to which it was read, \
         because its topic was recreated or its log was cut. `stop` suspends and reports it; \
         otherwise it is read from its oldest record or from its end.",
    ),
    key(
        "deduplicate",
        Kind::Truth,
        Value("true"),
        "Whether repeated records that carry their outcome count once: records with the same \
         partition, model, version, segment and id. Needs `fields.id`. The first that was counted \
         stays. With [source.outcomes], repeats always count once.",
    ),
    key(
        "deduplicate_within",
        Kind::Time,
        Value("\"1h\""),
        "How far the event times of two records of one id may differ for the second to be a \
         duplicate. This matters if the event time is the record's timestamp, which is new when a \
         producer sends the record again. Records with their own event time repeat it and are \
         recognised with any value here, up to `ids_max`. An hour covers retries of producers and \
         restarts from an older position.",
    ),
    key(
        "dead_letter",
        Kind::Text,
        Unset("\"predictions.dead\""),
        "Topic for records that could not be used, with the reason in their headers. Unset: \
         they are only counted.",
    ),
    key(
        "model",
        Kind::Text,
        Unset("\"fraud\""),
        "Name of the model, if records do not contain it.",
    ),
    key(
        "model_version",
        Kind::Text,
        Unset("\"2026-11\""),
        "Version of the model, if records do not contain it.",
    ),
    key(
        "classes",
        Kind::List,
        Unset("[\"cat\", \"dog\", \"bird\"]"),
        "Names of the classes, in the order of the probabilities. Unset: those of the [[model]]. \
         If all names are whole numbers, as in [\"1\", \"2\", \"3\"], an outcome that is a number names a \
         class; otherwise it is an index, counted from 0.",
    ),
];

const FIELDS: &[Key] = &[
    key(
        "model",
        Kind::Text,
        Value("\"model\""),
        "Path of the name of the model. Not used if the source has a fixed `model`.",
    ),
    key(
        "version",
        Kind::Text,
        Unset("\"model_version\""),
        "Path of the version of the model. Each version is a separate stream. Unset: one stream.",
    ),
    key(
        "segments",
        Kind::List,
        Unset("[\"country\"]"),
        "Paths of the fields whose values split a model into streams. Events without a value, or \
         with null, are the segment of the empty value, as in `country=`.",
    ),
    key(
        "id",
        Kind::Text,
        Unset("\"request_id\""),
        "Path of the event's id, or `@key` for the record's key. An id names one prediction: \
         unless `deduplicate` is off, a record that is delivered twice counts once.",
    ),
    key(
        "time",
        Kind::Text,
        Unset("\"time_ms\""),
        "Path of the event time. Unset: the record's timestamp.",
    ),
    key(
        "time_unit",
        Kind::Choice(&["ms", "s", "us", "rfc3339"]),
        Value("\"ms\""),
        "Format of the event time: a number since 1970, or text. Needs `time`, unless it is `ms`.",
    ),
    key(
        "time_zone",
        Kind::Text,
        Unset("\"+02:00\""),
        "With `time_unit = \"rfc3339\"`: the zone of times that have no offset, `UTC` or an offset. \
         Unset: such a record is rejected. Needs `time`.",
    ),
    key(
        "score",
        Kind::Text,
        Unset("\"score\""),
        "Path of the probability of the positive outcome. Exactly one of `score`, `probabilities` and \
         `class_probabilities` is needed.",
    ),
    key(
        "probabilities",
        Kind::Text,
        Unset("\"probabilities\""),
        "Path of an array of probabilities, one per class.",
    ),
    key(
        "class_probabilities",
        Kind::Text,
        Unset("\"class_probabilities\""),
        "Path of an object from class name to probability; needs `classes`.",
    ),
    key(
        "outcome_map",
        Kind::List,
        Unset("[\"yes=1\", \"no=0\"]"),
        "What outcomes mean: a text, number or boolean, and the name or index of its class.",
    ),
    key(
        "outcome",
        Kind::Text,
        Value("\"outcome\""),
        "Path of the outcome: a boolean, 0 or 1, a class name or a class index.",
    ),
    key(
        "weight",
        Kind::Text,
        Unset("\"weight\""),
        "Path of the importance weight of the event, if records were sampled with unequal \
         probabilities: a number proportional to the inverse of its probability, above 0 and \
         below 65536, preferably around 1 (resolution 1/65536). Every record must have it. \
         Unset: all events count equally.",
    ),
    key(
        "cluster",
        Kind::Text,
        Unset("\"user_id\""),
        "Path of the cluster whose outcomes depend on each other: a user, a session, a household \
         (deploy/guide/dependence.md). Decision, interval and tolerance then hold whatever the \
         dependence within clusters. Every record must have it; events that share a cluster give \
         the same text or number. Not together with `weight`, nor with views of vectors. Unset: \
         events are taken as independent, and the stream measures whether they are.",
    ),
];

const OUTCOMES: &[Key] = &[
    key(
        "maturity",
        Kind::Time,
        Unset("\"30m\""),
        "Time after a prediction by which its outcome has arrived, if it ever arrives. Only \
         then is the prediction counted, so that every window contains whole cohorts and not \
         only the outcomes that arrived quickly. Verdicts are delayed by this time. An outcome is on time \
         up to `maturity` after the end of its prediction's pane, which is as long as the model's shortest \
         slide.",
    ),
    key(
        "topics",
        Kind::List,
        Unset("[\"outcomes\"]"),
        "Topics of the outcomes, one for each topic of the source, with the same number of \
         partitions and the same keys. Unset: the topics of the source contain both, and a \
         record without a prediction is an outcome.",
    ),
    key(
        "id",
        Kind::Text,
        Unset("\"request_id\""),
        "Path of the prediction's id, or `@key` for the record's key. Unset: as in [source.fields].",
    ),
    key(
        "rows",
        Kind::Text,
        Unset("\"outcomes\""),
        "Path of an array whose objects are outcomes. If the topics of the source contain both \
         kinds, it must equal the source's `rows`, which is the default.",
    ),
    key(
        "model",
        Kind::Text,
        Unset("\"model\""),
        "Path of the name of the model, if two models may use the same id. Unset: ids are unique.",
    ),
    key(
        "time",
        Kind::Text,
        Unset("\"time_ms\""),
        "Path of the outcome's event time. Unset: the record's timestamp.",
    ),
    key(
        "time_unit",
        Kind::Choice(&["ms", "s", "us", "rfc3339"]),
        Value("\"ms\""),
        "Format of the event time: a number since 1970, or text. Needs `time`, unless it is `ms`.",
    ),
    key(
        "time_zone",
        Kind::Text,
        Unset("\"+02:00\""),
        "With `time_unit = \"rfc3339\"`: the zone of times that have no offset, `UTC` or an offset. \
         Unset: such a record is rejected. Needs `time`.",
    ),
    key(
        "outcome_map",
        Kind::List,
        Unset("[\"yes=1\", \"no=0\"]"),
        "What outcomes mean: a text, number or boolean, and the name or index of its class. Unset: as \
         in [source.fields].",
    ),
    key(
        "outcome",
        Kind::Text,
        Value("\"outcome\""),
        "Path of the outcome: a boolean, 0 or 1, a class name or a class index.",
    ),
    key(
        "on_missing",
        Kind::Text,
        Value("\"drop\""),
        "Meaning of a mature prediction without an outcome: `drop` (it is counted as expired \
         and in no sum), `negative` (it did not happen: a click that never came), or a class.",
    ),
    key(
        "repeated",
        Kind::Choice(&["first", "last", "reject"]),
        Value("\"first\""),
        "Which of two outcomes of one prediction counts: the first or the last in event time. \
         `reject`: the one that arrived first, and a contradicting one is rejected.",
    ),
    key(
        "revise",
        Kind::Truth,
        Value("false"),
        "Whether an outcome that arrives after maturity still corrects the windows that \
         contain its prediction. Predictions then stay in memory for as long as the widest \
         window.",
    ),
    key(
        "pending_max",
        COUNT,
        Value("10000000"),
        "Cap on retained predictions, and on outcomes that wait for their prediction; about 64 \
         bytes each, plus 12 bytes for each probability that vector views need and 8 bytes per \
         class for `kernel`.",
    ),
    key(
        "pending_memory",
        Kind::Bytes,
        Value("\"1GiB\""),
        "Cap on the memory of retained predictions of one topic. The oldest ones above it \
         spill to a store in the state directory. With a state topic, the partitions of this \
         process share it.",
    ),
];

const MODEL: &[Key] = &[
    key(
        "name",
        Kind::Text,
        Required("\"*\""),
        "Name as in the records, or `*`.",
    ),
    key(
        "views",
        Kind::List,
        Unset("[\"top_label\"]"),
        "What is tested. Unset: `binary`, and `top_label` with three or more `classes`. `binary` (the score, or \
         the probability of the second of two classes, against the outcome), `top_label` (the largest \
         probability against whether that class occurred), `class:K` (the probability of class \
         number or name K against whether it occurred; by name alone where a name is a number), \
         `top_k:K` (the K largest probabilities together), `full` (the whole vector; both up to 12 \
         coordinates) and `kernel` (the whole vector by the kernel test, with any number of \
         classes). Views of a vector cover whole versions and need at least one of the other views beside them.",
    ),
    key(
        "classes",
        Kind::List,
        Unset("[\"cat\", \"dog\", \"bird\"]"),
        "Names of the classes, in the order of the probabilities. Unset: those of its sources, if \
         they are all equal.",
    ),
    key(
        "axis",
        Kind::Choice(&["linear", "logit"]),
        Value("\"linear\""),
        "How scores are divided into cells: equally in the score, or equally in log-odds, for \
         rare events whose scores are all near 0. On either axis the level of the default test \
         needs some tens of events of the rarer outcome (deploy/guide/verdicts.md).",
    ),
    key(
        "axis_low",
        PROBABILITY,
        Value("0.000001"),
        "Score at which the inner cells of a logit axis start. Lower scores share the first cell.",
    ),
    key(
        "axis_high",
        PROBABILITY,
        Value("0.999999"),
        "Score at which the inner cells of a logit axis end.",
    ),
    key(
        "level",
        Kind::Integer { low: 1, high: 16 },
        Value("12"),
        "Finest level: 2^level cells. 4096 cells resolve what 10^5 events can show; each \
         further level doubles the memory of a stream.",
    ),
    key(
        "windows",
        Kind::Windows,
        Value("[\"5m\", \"1h\", \"24h\"]"),
        "Windows of event time, each judged at every slide: a length (`\"5m\"`), a length with its own \
         slide, by default about a sixth (`{ width = \"6h\", slide = \"30m\" }`), or the newest panes that \
         contain a number of events (`{ last = 10000 }`).",
    ),
    key(
        "lateness",
        Kind::Duration,
        Value("\"10s\""),
        "How far the watermark stays behind the newest event. Events that arrive after it are \
         counted as late. A larger value loses fewer events and delays every verdict by as \
         much.",
    ),
    key(
        "rollup",
        Kind::Truth,
        Unset("true"),
        "Whether each version with segments also has a stream over all of them, segment `*`. \
         Unset: if a source of the model has `segments`.",
    ),
    key(
        "segments_max",
        COUNT,
        Value("250"),
        "Most segments of one version at once, not counting the roll-up and `other`. The \
         default is enough for the countries of the world.",
    ),
    key(
        "segments_beyond",
        Kind::Choice(&["other", "refused"]),
        Value("\"other\""),
        "What happens to events of a new segment when `segments_max` or `streams_max` is \
         reached: they count in segment `other` (and in the roll-up), or are refused.",
    ),
];

const SAMPLING: &[Key] = &[
    key(
        "negatives_kept",
        SHARE,
        Value("1.0"),
        "Share of the negatives that is in the stream, above 0; all positives are. Scores \
         refer to the whole population and are converted to the stream: s / (s + r (1 - s)).",
    ),
    key(
        "negatives_trained",
        SHARE,
        Value("1.0"),
        "Share of the negatives that the model was trained on, above 0, if its scores were not \
         corrected for it: p / (p + (1 - p) / w).",
    ),
];

const KERNEL: &[Key] = &[
    key(
        "sample",
        Kind::Integer { low: 2, high: 4000 },
        Value("512"),
        "Events of a window that are kept and compared pair by pair: those whose ids (or \
         positions in the topic) have the lowest hashes. An evaluation costs its square, at \
         each slide of each window, in the reading thread; 512 events have 131 thousand pairs.",
    ),
    key(
        "bandwidth",
        Kind::Number(Bounds {
            low: 0.0,
            high: 100.0,
            open: true,
        }),
        Unset("0.5"),
        "Width v of the kernel exp(-TV/v), where TV is the total variation distance of two \
         vectors, from 0 to 1. Unset: the median distance in each sample.",
    ),
    key(
        "features",
        Kind::Integer { low: 0, high: 1024 },
        Value("0"),
        "Random features: each event adds to 2 x features x classes sums, and the test uses \
         all events instead of the sample. This is the only key here that costs each event \
         more than a hash. Needs `bandwidth`.",
    ),
    key(
        "seed",
        Kind::Integer {
            low: 0,
            high: i64::MAX,
        },
        Value("0"),
        "Seed of the sample and the features; the same data and seed give the same bits.",
    ),
];

const COMPARE: &[Key] = &[
    key(
        "enabled",
        Kind::Truth,
        Value("false"),
        "Whether to compare versions, in the views `binary` and `class:k`. Needs `fields.id` and \
         a version, and the records of an id of both versions in one process. With [state] `topic` they \
         must be in one partition, and `champion` must be set.",
    ),
    key(
        "champion",
        Kind::Text,
        Unset("\"2026-10\""),
        "The version to which all others are compared. Unset: each version is compared to \
         every earlier one.",
    ),
    key(
        "wait",
        Kind::Duration,
        Value("\"1m\""),
        "How far apart in event time two versions may score one id. An observation is kept for \
         the other version for this time after its pane was sealed.",
    ),
    key(
        "rows_max",
        COUNT,
        Value("1000000"),
        "Most observations that are kept for other versions, in open panes and within `wait`, \
         at most 128 bytes each. Further ones count in their stream as usual but in no pair.",
    ),
    key(
        "confidence",
        PROBABILITY,
        Value("0.95"),
        "Confidence of each anytime-valid interval.",
    ),
];

const TEST: &[Key] = &[
    key(
        "alpha",
        PROBABILITY,
        Value("0.05"),
        "Level of the test: probability that it rejects one calibrated window.",
    ),
    key(
        "decide_by",
        Kind::Choice(&["combined", "tcal", "paper"]),
        Value("\"combined\""),
        "Which test decides: `combined` joins T-Cal over coarse and over fine cells, a score test \
         against shift, slope and label noise, and Kolmogorov-Smirnov; `tcal` is T-Cal alone as \
         the keys below set it; `paper` is T-Cal, and the exact binomial tests where scores are \
         discrete. All are reported whichever decides.",
    ),
    key(
        "tolerance",
        Kind::Tolerance,
        Value("\"0.05 or 20%\""),
        "Calibration error that is acceptable: an l2-ECE (\"0.02\"), a share of the mean score of \
         the rarer outcome (\"10%\"), or the smaller of both. A window is `miscalibrated` if its \
         error is shown to exceed it, `calibrated` if it is shown to be within it, and else \
         `undecided(inconclusive)`. Below a mean score of 5 % a share is compared with the ratio \
         of observed to expected outcomes.",
    ),
    key(
        "overdispersion",
        Kind::Choice(&["correct", "show"]),
        Value("\"correct\""),
        "What is done where outcomes vary more than independent ones would: `correct` widens \
         p-values and intervals accordingly, `show` only reports the factor. A model that goes \
         wrong and is put right every few minutes looks overdispersed too.",
    ),
    key(
        "min_events",
        COUNT,
        Value("500"),
        "A window with fewer events has no verdict: `undecided(too_few)`. 500 is the smallest \
         number at which the level of the default test was measured to hold, for outcomes that \
         are not rare (deploy/guide/verdicts.md). For weighted events the effective number \
         counts.",
    ),
    key(
        "coverage_min",
        SHARE,
        Value("0.5"),
        "Share of the mature predictions of a window that must be counted, if those without \
         outcome are dropped. Below it: `undecided(coverage)`.",
    ),
    key(
        "critical",
        Kind::Choice(&["moments", "monte_carlo", "theorem"]),
        Value("\"moments\""),
        "Critical values of T-Cal: from three exact moments (microseconds; where positives are too \
         few for them, outcomes are resampled), by resampling outcomes always, or the bound of the \
         paper's theorem (conservative).",
    ),
    key(
        "replicates",
        Kind::Integer {
            low: 99,
            high: 1_000_000,
        },
        Value("3000"),
        "Replicates of `monte_carlo`. The default is that of the paper's program.",
    ),
    key(
        "sharing",
        Kind::Choice(&["joint", "bonferroni"]),
        Value("\"joint\""),
        "How the error is divided over levels: by their joint distribution, or alpha divided \
         by their number.",
    ),
    key(
        "seed",
        Kind::Integer {
            low: 0,
            high: i64::MAX,
        },
        Value("1"),
        "Seed of all that is drawn: `monte_carlo`, tests of discrete scores, signs of clusters. The \
         same data and seed give the same p-value.",
    ),
    key(
        "confidence",
        PROBABILITY,
        Value("0.9"),
        "Confidence of the interval.",
    ),
    key(
        "interval_cells",
        Kind::Integer {
            low: 2,
            high: 65536,
        },
        Unset("64"),
        "Cells of the interval, a power of two. Unset: the next above 2 n^(2/5).",
    ),
    key(
        "interval_reach",
        Kind::Choice(&["conditional", "paper"]),
        Value("\"conditional\""),
        "When the interval contains 0: by the exact null given the scores, or by the formula \
         of the paper, which is far too wide for rare events.",
    ),
    key(
        "interval_lower_support",
        SHARE,
        Value("0.0"),
        "Smallest possible score for `paper`: 0 for `binary`, 1/K for the top label of K classes.",
    ),
    key(
        "discrete",
        Kind::Choice(&["auto", "on", "off"]),
        Value("\"auto\""),
        "Tests over distinct scores, one by one (exact binomial) and summed up; the sum joins the \
         combination. `auto`: when there are at most 64 distinct scores.",
    ),
    key(
        "reliability_level",
        Kind::Integer { low: 1, high: 16 },
        Value("4"),
        "Level of the reliability diagram: 2^level cells.",
    ),
    key(
        "distances",
        Kind::Choice(&["off", "cheap", "all"]),
        Value("\"off\""),
        "Distances from calibration in the report of a window: none; smooth, Laplace kernel \
         and surrogate interval error (0.3 to 0.6 ms per window, two to four times the rest of \
         the evaluation); or also interval error, lower distance and smECE (10 to 35 ms).",
    ),
];

const ALERT: &[Key] = &[
    key(
        "window_alerts",
        Kind::Truth,
        Value("false"),
        "Whether a window's verdict alone raises an alert of severity `warn`. Windows are tested \
         again and again, so a calibrated stream then alerts several times a day. Without it only \
         the detector raises alerts, and windows say how large the error is; streams without a \
         detector (vector views, weighted events, budget `none`) raise none.",
    ),
    key(
        "for",
        Kind::Duration,
        Value("\"0s\""),
        "How long a stream must stay bad before its alert fires. Detector and windows already \
         smooth, so the default does not wait.",
    ),
    key(
        "keep_firing_for",
        Kind::Duration,
        Value("\"5m\""),
        "How long an alert stays after its stream was last bad, so that it does not flap: after the \
         detector is clear and, with `window_alerts`, after the last miscalibrated verdict.",
    ),
    key(
        "flap_within",
        Kind::Duration,
        Value("\"1h\""),
        "If the alert of a stream fires again within this time after it was resolved, it is \
         kept twice as long each time, up to 16 times `keep_firing_for`. \"0s\": never.",
    ),
    key(
        "stale_after",
        Kind::Time,
        Value("\"1h\""),
        "Without events for this long, verdicts are withdrawn: `undecided(stale)`. A window is also \
         withdrawn if it was not judged for this long beyond its slide.",
    ),
    key(
        "budget",
        Kind::Text,
        Unset("\"5% ever\""),
        "A false-alarm budget of each stream of this model, in place of the common one; \
         `none`: no detector. Unset: its streams draw on the common budget.",
    ),
    key(
        "budget_weight",
        Kind::Number(Bounds {
            low: 0.0,
            high: 1e6,
            open: true,
        }),
        Value("1.0"),
        "Share of the common false-alarm budget for each stream of this model, relative to other \
         models. Streams of the model with the largest weight get 1/`detector.streams` each; with \
         half that weight, half of it.",
    ),
    key(
        "log_odds_tolerance",
        Kind::Number(Bounds {
            low: 0.0,
            high: 2.0,
            open: false,
        }),
        Value("0.05"),
        "Error in log-odds that the detector ignores. Without it, a small error of any model \
         would raise an alarm sooner or later, because a stream never ends.",
    ),
];

const DETECTOR: &[Key] = &[
    key(
        "budget",
        Kind::Text,
        Value("\"1 per 30d\""),
        "False alarms allowed: `1 per 30d` (of data, for all streams together, whatever the \
         traffic), `2000000 events` (average run length over all streams), `5% ever` \
         (probability of each stream over all time); `none`: no detectors.",
    ),
    key(
        "streams",
        COUNT,
        Unset("20"),
        "Streams among which a budget of time is divided, in equal parts: the promise holds if at \
         most this many live at once, over all processes. A smaller number finds errors sooner. \
         Unset: `limits.streams_max`.",
    ),
    key(
        "confidence",
        Kind::Number(Bounds {
            low: 0.5,
            high: 0.9999,
            open: false,
        }),
        Value("0.95"),
        "Confidence of each anytime-valid interval.",
    ),
];

const NOTIFY: &[Key] = &[
    key(
        "group_by",
        Kind::List,
        Value("[\"model\"]"),
        "Streams with the same values of these labels share one alert: model, version, segment, \
         view. Where partitions move between processes (a state topic, and verdicts of a process's \
         own), each stream has an alert of its own.",
    ),
    key(
        "max_age",
        Kind::Duration,
        Value("\"1h\""),
        "Changes older than this, in event time, are not sent while records are unread, so that \
         catching up does not send outdated alerts. When all records are read, alerts that still \
         fire are sent.",
    ),
    key(
        "external_url",
        Kind::Text,
        Unset("\"http://trueline.example:9464\""),
        "Address of this process for the readers of alerts, used in links. Unset: the address on \
         which it listens (`--listen`, else that of [http]), or `localhost` if that is all addresses.",
    ),
    key(
        "runbook_url",
        Kind::Text,
        Unset("\"https://wiki.example/runbooks\""),
        "Folder of the runbooks, for links; `/NAME.md` is added. Unset: `/runbooks` of this process, \
         at `external_url`.",
    ),
    key(
        "summary",
        Kind::Text,
        Value("\"[{status}] {alert}: {what} ({streams})\""),
        "One-line text. Placeholders in braces: alert, stream (the worst one), streams (in words), \
         streams_firing, evidence (the numbers of window and detector in words), deployed (the newest \
         deployment, if any), record, model, version, segment, view, window, \
         status, severity, verdict, what (direction of the error, or why the alert was \
         resolved), direction, since, at, onset, n, ece, ece_lower, ece_upper, confidence, \
         detectable, tolerance, p_value, mean_score, event_rate, page. A literal brace is \
         doubled.",
    ),
    key(
        "description",
        Kind::Text,
        Value("\"{severity} since {since}: {evidence}.{deployed} {page}\""),
        "The full text.",
    ),
    key(
        "dry_run",
        Kind::Truth,
        Value("false"),
        "Log what would be sent to every sink, and send nothing.",
    ),
];

const SINK: &[Key] = &[
    key(
        "name",
        Kind::Text,
        Required("\"oncall\""),
        "Name in metrics, logs and the journal of deliveries. A renamed sink is a new sink.",
    ),
    key(
        "kind",
        Kind::Choice(&[
            "alertmanager",
            "pagerduty",
            "opsgenie",
            "slack",
            "teams",
            "webhook",
            "kafka",
        ]),
        Required("\"kafka\""),
        "`alertmanager` (API version 2), `pagerduty` (Events API 2), `opsgenie` (Alert API 2), \
         `slack` (incoming webhook), `teams` (webhook of Workflows), `webhook` (POST of JSON, see \
         deploy/alert.schema.json), `kafka` (the same JSON to a topic on the brokers of [kafka]).",
    ),
    key(
        "url",
        Kind::Secret,
        Unset("\"http://localhost:9093\""),
        "Address; that of a hook of Slack or Teams is a secret. Unset, PagerDuty and Opsgenie have \
         their public ones, of the USA. `https` needs a binary built with the feature `tls`.",
    ),
    key(
        "topic",
        Kind::Text,
        Value("\"trueline-alerts\""),
        "Topic of the kind `kafka`. The key is the fingerprint of the alert, so that \
         compaction keeps the last change.",
    ),
    key(
        "secret",
        Kind::Secret,
        Unset("\"${WEBHOOK_SECRET}\""),
        "Integration key of `pagerduty`, API key of `opsgenie`, or key of the signature of a \
         `webhook`: header `trueline-signature`, HMAC-SHA-256 over timestamp and body. Unset: not \
         signed.",
    ),
    key(
        "authorization",
        Kind::Secret,
        Unset("\"Bearer ${ALERT_TOKEN}\""),
        "Value of the header `authorization`.",
    ),
    key(
        "ca_file",
        Kind::Path,
        Unset("\"/etc/trueline/ca.pem\""),
        "PEM file of the certificate authority of the sink. Unset: those of the system.",
    ),
    key(
        "match",
        Kind::List,
        Unset("[\"severity=page\", \"model!=sandbox*\"]"),
        "Alerts that the sink gets: those that satisfy all of these. Labels model, version, \
         segment, view, severity (`page` or `warn`); `=` or `!=`; `*` matches any text. Unset: all.",
    ),
    key(
        "resolved",
        Kind::Truth,
        Value("true"),
        "Whether the sink gets resolutions.",
    ),
    key(
        "resend",
        Kind::Time,
        Value("\"1m\""),
        "Time between two resends of firing alerts to an Alertmanager, which drops an alert \
         that is not refreshed for four times as long.",
    ),
    key(
        "timeout",
        Kind::Time,
        Value("\"10s\""),
        "Longest duration of one attempt.",
    ),
    key(
        "retry_max",
        Kind::Time,
        Value("\"30s\""),
        "Longest pause between two attempts. The first pause is half a second, and each \
         further one is twice as long. Attempts continue until the sink accepts the \
         notification or rejects it permanently.",
    ),
    key(
        "queue_max",
        COUNT,
        Value("10000"),
        "Most notifications in the queue of the sink, about 1 kB each. Further ones are \
         dropped and counted.",
    ),
    key(
        "dry_run",
        Kind::Truth,
        Value("false"),
        "Log what would be sent to this sink, and send nothing.",
    ),
];

const HTTP: &[Key] = &[
    key(
        "listen",
        Kind::Address,
        Value("\"127.0.0.1:9464\""),
        "Address of /metrics, /live, /ready and the API. Reading needs no authentication, so it \
         listens on this machine only; in a container use `0.0.0.0:9464`.",
    ),
    key(
        "hosts",
        Kind::List,
        Value("[]"),
        "Public names of this server, such as that of an ingress. Addresses, names without dots \
         and names inside a cluster are always accepted. Requests for any other name are refused, \
         so that no web page can read the API through its own host name.",
    ),
    key(
        "token",
        Kind::Secret,
        Unset("\"${TRUELINE_TOKEN}\""),
        "Token that requests that change something, and the tap, must send in the header \
         `Authorization: Bearer`. Unset: no token is needed. The commands take it from \
         TRUELINE_TOKEN.",
    ),
];

const EVENTS: &[Key] = &[
    key(
        "bytes_max",
        Kind::Bytes,
        Value("\"1GiB\""),
        "Most bytes of one log on disk. Where it is full of events that were not read yet, \
         requests are answered 429 and nothing is lost.",
    ),
    key(
        "keep",
        Kind::Duration,
        Value("\"24h\""),
        "How long events stay in the log after they were read and their sums are in a snapshot, \
         as long as there is room. Idempotency keys are known for the same time.",
    ),
    key(
        "request_bytes_max",
        Kind::Bytes,
        Value("\"1MiB\""),
        "Longest body of a request. Longer ones are answered 413.",
    ),
];

const STATE: &[Key] = &[
    key(
        "directory",
        Kind::Path,
        Value("\"trueline-state\""),
        "Directory of the snapshots, one per running process. It is created if it is missing. A \
         relative path starts at the folder of this file.",
    ),
    key(
        "interval",
        Kind::Time,
        Value("\"30s\""),
        "Time between snapshots. After a crash, at most this much is read again; nothing is lost. \
         The verdicts of another process (`verdicts`) are delayed by this time.",
    ),
    key(
        "topic",
        Kind::Text,
        Unset("\"trueline-state\""),
        "Topic for the state of each partition, from which the process that is assigned the \
         partition restores it. One topic per group, created with cleanup.policy=compact if it \
         is missing. Unset: state stays in the directory, for a group of one process. With a \
         topic the directory contains no snapshots.",
    ),
    key(
        "verdicts",
        Kind::Choice(&["own", "none", "all"]),
        Value("\"own\""),
        "With a state topic: which process judges. `own`: each process judges the partitions \
         that it reads. `all`: this process reads no source, follows the state topic and \
         judges the events of all processes. `none`: this process only counts and sends no \
         notifications.",
    ),
    key(
        "judge_partitions",
        Kind::Integer {
            low: 1,
            high: 4_096,
        },
        Unset("32"),
        "With `verdicts = \"none\"` or `\"all\"`: any number of processes judge, at most this many \
         at once. The models are spread by name over so many partitions of the topic \
         `TOPIC-judges`, which is created if it is missing, and group `GROUP-judges` shares \
         them. It cannot be changed later. Unset: one process judges all models.",
    ),
    key(
        "missing_after",
        Kind::Time,
        Value("\"5m\""),
        "With `verdicts = \"all\"`: how long verdicts wait for a partition without new \
         checkpoints. After that they continue without it, and `/ready` and a metric name it.",
    ),
    key(
        "restore_within",
        Kind::Time,
        Value("\"30s\""),
        "Longest time to restore one partition from the topic before the process rejoins the \
         group.",
    ),
    key(
        "on_broken",
        Kind::Choice(&["stop", "fresh"]),
        Value("\"stop\""),
        "What to do with a partition whose state in the topic is damaged, foreign or missing. \
         `stop`: it is not read, and `/ready` gives the reason. `fresh`: it starts without its \
         state at the committed offset of the group.",
    ),
    key(
        "records_max",
        Kind::Integer {
            low: 0,
            high: 1_000_000,
        },
        Value("1000"),
        "Records of alert changes kept for `trueline explain`, about 100 kB each. The oldest \
         are removed first.",
    ),
];

const LIMITS: &[Key] = &[
    key(
        "streams_max",
        COUNT,
        Value("1000"),
        "Most streams (model x version x segment x view) at once. Events of further ones are \
         refused, or counted in the segment `other` (`segments_beyond`). Each vector view adds one \
         per version.",
    ),
    key(
        "stream_expiry",
        Kind::Duration,
        Value("\"7d\""),
        "A stream is removed once the watermark is this far past its newest event, by event time, and \
         while all partitions are read. It stays at least as long as its longest window.",
    ),
    key(
        "stalled_after",
        Kind::Time,
        Value("\"5m\""),
        "If the watermark stands still for this long while events are counted after it, verdicts are \
         withdrawn: `undecided(stalled)`. `/ready` and a metric name the partition that holds it.",
    ),
    key(
        "open_panes_max",
        COUNT,
        Value("10000"),
        "Most panes of a stream that wait for the watermark. An event that would open another \
         is refused. Enough for one partition a week ahead of another.",
    ),
    key(
        "open_memory",
        Kind::Bytes,
        Value("\"256MiB\""),
        "Most bytes of such panes over all streams, for partitions that are ahead of others. An \
         event that would open another pane ahead of the watermark is refused.",
    ),
    key(
        "ids_max",
        COUNT,
        Value("4000000"),
        "Most ids of counted records that are remembered, over all partitions of a process, \
         about 60 bytes each. Beyond it the oldest are forgotten early, and counted.",
    ),
    key(
        "future_max",
        Kind::Duration,
        Value("\"1h\""),
        "How far an event time may lie after the arrival of the record, which is its timestamp or the \
         time of reading if that is earlier. Later events are rejected, because one event from the \
         future would make all others late. An event that is this far ahead of its partition is counted, \
         but moves the watermark only together with others.",
    ),
    key(
        "vector_cells_max",
        Kind::Integer { low: 1, high: 4096 },
        Value("4096"),
        "Cells of a pane of a view `top_k` or `full`. An event that needs another cell is in \
         no sum of that view, and its windows are undecided (capacity). 4096 is the maximum.",
    ),
    key(
        "vector_versions_max",
        Kind::Integer {
            low: 0,
            high: 1_000_000,
        },
        Value("64"),
        "Versions with cells or a sample for vector views at once. Windows of vector views of \
         further versions are undecided (capacity) until another version is removed.",
    ),
    key(
        "series_max",
        COUNT,
        Value("250000"),
        "Most series of streams on /metrics. Above it, cells are omitted first, then values, with \
         streams that need attention last; alerts and verdicts are always exported.",
    ),
    key(
        "cell_series_streams",
        Kind::Integer {
            low: 0,
            high: i64::MAX,
        },
        Value("100"),
        "Most streams with which the cells of reliability diagrams are exported as series, 80 for a \
         window of 16 cells. With more streams they are on the pages and in the API. 0: never.",
    ),
    key(
        "record_bytes_max",
        Kind::Bytes,
        Value("\"1MiB\""),
        "Longest record to decode. The default is that of the brokers.",
    ),
    key(
        "threads",
        Kind::Integer { low: 0, high: 64 },
        Value("0"),
        "Threads that decode records and judge streams, the engine's among them. Counts and verdicts are the \
         same with any number. 0: as many as there are cores judge and one less decode, at most 4 each.",
    ),
];

const LOG: &[Key] = &[
    key(
        "format",
        Kind::Choice(&["auto", "human", "json"]),
        Value("\"auto\""),
        "`auto`: human on a terminal, JSON otherwise.",
    ),
    key(
        "level",
        Kind::Text,
        Value("\"info\""),
        "Level, or directives such as `info,trueline::kafka=debug`.",
    ),
];

/// The section of that path.
pub fn section(path: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|s| s.path == path)
}

/// Sections directly inside the one of that path.
pub fn children(path: &'static str) -> impl Iterator<Item = &'static Section> {
    SECTIONS.iter().filter(move |s| s.parent() == Some(path))
}
