//! Every key of the configuration file: the one table.
//!
//! A line here is all that a new key needs in order to be parsed, checked, defaulted, hinted at,
//! documented and shown; only its use is elsewhere ([`super::models`] and [`super::sources`]). Each `about` says what the key
//! does and, where it is not plain, why its default is what it is.

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
        about: "How to reach the brokers, and as whom.",
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
        about: "A Confluent-compatible schema registry, for sources whose `format` is `avro` or `protobuf`. \
                While it does not answer, records whose schema is not known yet wait, and their \
                partitions with them; nothing is lost.",
        keys: REGISTRY,
    },
    Section {
        path: "source",
        repeated: true,
        about: "Topics whose records have one shape. At least one; each is one consumer.",
        keys: SOURCE,
    },
    Section {
        path: "source.fields",
        repeated: false,
        about: "Where the facts of an event lie in a record: dotted paths, `prediction.score`; a dot \
                inside a name is written `\\.`.",
        keys: FIELDS,
    },
    Section {
        path: "source.outcomes",
        repeated: false,
        about: "Outcomes that come apart from their predictions, and later: they are joined by id, and a \
                prediction is counted once it is mature. In force when `maturity` is set.",
        keys: OUTCOMES,
    },
    Section {
        path: "model",
        repeated: true,
        about: "How a model is watched. A model named `*` stands for every model without a section of \
                its own and is where other models take the keys that they leave out; without any \
                [[model]] there is one `*` with the defaults.",
        keys: MODEL,
    },
    Section {
        path: "model.sampling",
        repeated: false,
        about: "Negatives that were down-sampled at a known rate; for the view `binary`. The odds of a score \
                are multiplied by `negatives_trained` / `negatives_kept`, and all that is reported is on \
                the scale of the events in the stream.",
        keys: SAMPLING,
    },
    Section {
        path: "model.kernel",
        repeated: false,
        about: "What the view `kernel` keeps of a window: a sample whose pairs are compared at each slide, and \
                random features, sums over all events.",
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
        about: "How long a verdict must hold before an alert follows it.",
        keys: ALERT,
    },
    Section {
        path: "model.compare",
        repeated: false,
        about: "Versions of the model that score the same ids, as a champion and its shadow do, against each other: \
                Brier score and calibration, with intervals that hold at all times.",
        keys: COMPARE,
    },
    Section {
        path: "detector",
        repeated: false,
        about: "What alarms: a detector of each stream that looks at every pane and keeps a promise about false \
                alarms over all time, for the whole fleet.",
        keys: DETECTOR,
    },
    Section {
        path: "notify",
        repeated: false,
        about: "What people are told when the alert of a stream fires or ends.",
        keys: NOTIFY,
    },
    Section {
        path: "sink",
        repeated: true,
        about: "Where alerts go: each change of an alert once to each sink, in order. Without any, alerts \
                are on /metrics, in the API and in the log alone.",
        keys: SINK,
    },
    Section {
        path: "http",
        repeated: false,
        about: "Metrics, health and the API.",
        keys: HTTP,
    },
    Section {
        path: "state",
        repeated: false,
        about: "Snapshots of sums and offsets, from which a restart goes on.",
        keys: STATE,
    },
    Section {
        path: "limits",
        repeated: false,
        about: "Caps. What a cap refuses is counted in a metric.",
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
    "Version of the file's format.",
)];

const KAFKA: &[Key] = &[
    key(
        "brokers",
        Kind::Text,
        Required("\"localhost:9092\""),
        "Bootstrap brokers, `host:port`, comma separated.",
    ),
    key(
        "group",
        Kind::Text,
        Value("\"trueline\""),
        "Consumer group. With several sources each has a group of its own, `group.source`, so that a \
         rebalance of one does not stop the others.",
    ),
    key(
        "instance",
        Kind::Text,
        Unset("\"${HOSTNAME}\""),
        "Static member name, unique in the group: a restart within the session timeout then moves no \
         partition. Unset: dynamic membership.",
    ),
    key(
        "queue_bytes_max",
        Kind::Bytes,
        Value("\"64MiB\""),
        "Memory that fetched records may take before they are consumed, for each source. \
         librdkafka's own default.",
    ),
    key(
        "statistics_interval",
        Kind::Duration,
        Value("\"5s\""),
        "How often lag is measured.",
    ),
    key(
        "options",
        Kind::Map,
        Unset("{ \"session.timeout.ms\" = \"30000\" }"),
        "Any other librdkafka setting under its own name; wins over what is set here, except for the \
         settings on which exact counting rests.",
    ),
];

const TLS: &[Key] = &[
    key(
        "enabled",
        Kind::Truth,
        Value("false"),
        "Whether to talk TLS to the brokers.",
    ),
    key(
        "ca_file",
        Kind::Path,
        Unset("\"/etc/trueline/ca.pem\""),
        "PEM file of the authority that signed the brokers' certificates. Unset: the system's.",
    ),
    key(
        "certificate_file",
        Kind::Path,
        Unset("\"/etc/trueline/client.pem\""),
        "PEM file of the client's certificate, for mutual TLS.",
    ),
    key(
        "key_file",
        Kind::Path,
        Unset("\"/etc/trueline/client.key\""),
        "PEM file of the client's private key.",
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
        "How to prove who we are. Unset: no credentials.",
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
        "File with the bearer token of OAUTHBEARER, which somebody else renews; it is read again before \
         the token it held runs out.",
    ),
];

const REGISTRY: &[Key] = &[
    key(
        "url",
        Kind::Text,
        Unset("\"http://localhost:8081\""),
        "Where it is. `https` needs a binary built with the feature `tls`.",
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
        "PEM file of the authority that signed its certificate. Unset: the system's.",
    ),
    key(
        "timeout",
        Kind::Duration,
        Value("\"5s\""),
        "How long one request may take. Requests are made beside the consumption, not in it.",
    ),
];

const SOURCE: &[Key] = &[
    key(
        "name",
        Kind::Text,
        Unset("\"predictions\""),
        "Name in messages and metrics. Unset: the first topic.",
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
        "Format of the records, those of [source.outcomes] too: one JSON object each, alone or behind the \
         frame of a JSON Schema serializer; or Avro or Protobuf in that frame, with schemas from the \
         [registry].",
    ),
    key(
        "envelope",
        Kind::Choice(&["none", "cloudevents"]),
        Value("\"none\""),
        "What the data are wrapped in. `cloudevents`: structured (one JSON object, paths are below its \
         `data`) or binary (attributes are headers), as each record says; the path `ce_time` is the \
         attribute `time`, and so on.",
    ),
    key(
        "rows",
        Kind::Text,
        Unset("\"predictions\""),
        "Path of an array, each object of which is an event. Fields within begin with it, \
         `predictions.score`; others are the same for all. Each row is counted as a record. Unset: a \
         record is one event.",
    ),
    key(
        "start",
        Kind::Choice(&["earliest", "latest"]),
        Value("\"earliest\""),
        "Where a partition begins that has neither a snapshot nor a committed offset.",
    ),
    key(
        "on_truncated",
        Kind::Choice(&["stop", "earliest", "latest"]),
        Value("\"stop\""),
        "What to do where a partition ends before the offset up to which it was read: its topic was made anew, or \
         its log was cut. `stop` leaves it unread and says so; otherwise it is read from its oldest record, or \
         from its end.",
    ),
    key(
        "dead_letter",
        Kind::Text,
        Unset("\"predictions.dead\""),
        "Topic for records that could not be used, with the reason in their headers. Unset: they are \
         only counted.",
    ),
    key(
        "model",
        Kind::Text,
        Unset("\"fraud\""),
        "Name of the model, when records do not carry it.",
    ),
    key(
        "model_version",
        Kind::Text,
        Unset("\"2026-11\""),
        "Version of the model, when records do not carry it.",
    ),
    key(
        "classes",
        Kind::List,
        Unset("[\"cat\", \"dog\", \"bird\"]"),
        "Names of the classes, in the order of the probabilities. Unset: those of the [[model]].",
    ),
];

const FIELDS: &[Key] = &[
    key(
        "model",
        Kind::Text,
        Value("\"model\""),
        "Path of the model's name. Not used when the source has a fixed `model`.",
    ),
    key(
        "version",
        Kind::Text,
        Unset("\"model_version\""),
        "Path of the model's version; each version is a stream of its own. Unset: one stream.",
    ),
    key(
        "segments",
        Kind::List,
        Unset("[\"country\"]"),
        "Paths of the fields by whose values a model is split into streams.",
    ),
    key(
        "id",
        Kind::Text,
        Unset("\"request_id\""),
        "Path of the event's id, or `@key` for the record's key.",
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
        "How the event time is written: a number since 1970, or text.",
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
        "Path of an array of probabilities, one a class.",
    ),
    key(
        "class_probabilities",
        Kind::Text,
        Unset("\"class_probabilities\""),
        "Path of an object from class name to probability; needs `classes`.",
    ),
    key(
        "outcome",
        Kind::Text,
        Value("\"outcome\""),
        "Path of what happened: a boolean, 0 or 1, a class name or a class index.",
    ),
    key(
        "weight",
        Kind::Text,
        Unset("\"weight\""),
        "Path of the event's importance weight, where records were sampled with unequal chances: a number \
         proportional to one over its chance, above 0 and below 65536, best around 1 (resolution \
         1/65536). Every record must have it. Unset: all count alike.",
    ),
];

const OUTCOMES: &[Key] = &[
    key(
        "maturity",
        Kind::Duration,
        Unset("\"30m\""),
        "Time after a prediction by which its outcome is in, if it ever comes. Only then is the \
         prediction counted, so that every window holds whole cohorts and not only the outcomes that \
         were quick. Verdicts are as much later.",
    ),
    key(
        "topics",
        Kind::List,
        Unset("[\"outcomes\"]"),
        "Topics of the outcomes, one for each of the source's, with as many partitions and keyed alike. \
         Unset: the source's own topics carry both, and a record without a prediction is an outcome.",
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
        "Path of an array, each object of which is an outcome. Where the source's topics carry both kinds, \
         it must be the source's `rows`, and is unless set.",
    ),
    key(
        "model",
        Kind::Text,
        Unset("\"model\""),
        "Path of the model's name, where two models may use one id. Unset: ids are unique.",
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
        "How it is written.",
    ),
    key(
        "outcome",
        Kind::Text,
        Value("\"outcome\""),
        "Path of what happened: a boolean, 0 or 1, a class name or a class index.",
    ),
    key(
        "on_missing",
        Kind::Text,
        Value("\"drop\""),
        "What a mature prediction without outcome means: `drop` (it is counted as expired and in no \
         sum), `negative` (it did not happen: a click that never came), or a class.",
    ),
    key(
        "repeated",
        Kind::Choice(&["first", "last", "reject"]),
        Value("\"first\""),
        "Which of two outcomes of one prediction holds: the first or the last in event time, or the one \
         that arrived first, with another that contradicts it rejected.",
    ),
    key(
        "revise",
        Kind::Truth,
        Value("false"),
        "Whether an outcome that comes after maturity still corrects the windows that hold its \
         prediction. Keeps predictions in memory for as long as the widest window.",
    ),
    key(
        "pending_max",
        COUNT,
        Value("10000000"),
        "Most predictions held, and most outcomes that wait for theirs; about 64 bytes each, and 12 for each \
         probability that vector views need, 8 a class for `kernel`.",
    ),
    key(
        "pending_memory",
        Kind::Bytes,
        Value("\"1GiB\""),
        "Memory that held predictions of one topic may take; what is beyond spills to a store in the state \
         directory, the oldest first. With a state topic, the partitions of this process share it.",
    ),
];

const MODEL: &[Key] = &[
    key(
        "name",
        Kind::Text,
        Required("\"*\""),
        "Name as it stands in the records, or `*`.",
    ),
    key(
        "views",
        Kind::List,
        Value("[\"binary\"]"),
        "What is tested: `binary` (the score against the outcome), `top_label` (the largest \
         probability against whether that class came), `class:K` (the probability of class number or \
         name K against whether it came), `top_k:K` (the K largest probabilities together), `full` (the whole \
         vector; both up to 12 coordinates) and `kernel` (the whole vector by the kernel test, of any number of classes) of whole \
         versions, beside at least one of the others.",
    ),
    key(
        "classes",
        Kind::List,
        Unset("[\"cat\", \"dog\", \"bird\"]"),
        "Names of the classes, in the order of the probabilities.",
    ),
    key(
        "axis",
        Kind::Choice(&["linear", "logit"]),
        Value("\"linear\""),
        "How scores are cut into cells: equal in the score, or equal in log-odds, for rare events \
         whose scores all sit near 0. The level of the test is the same, its power is not.",
    ),
    key(
        "axis_low",
        PROBABILITY,
        Value("0.000001"),
        "Score at which the inner cells of a logit axis begin; lower ones share the first cell.",
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
        "Finest level: 2^level cells. 4096 cells see what 10^5 events can show; each level more \
         doubles a stream's memory.",
    ),
    key(
        "windows",
        Kind::Windows,
        Value("[\"5m\", \"1h\", \"24h\"]"),
        "Windows of event time, each judged at every slide: a length, a length with its own slide \
         (default about a sixth), or the newest panes that hold a number of events.",
    ),
    key(
        "lateness",
        Kind::Duration,
        Value("\"10s\""),
        "How far the watermark stays behind the newest event; what comes later is counted as late. \
         Longer loses fewer stragglers and delays every verdict by as much.",
    ),
    key(
        "rollup",
        Kind::Truth,
        Unset("true"),
        "Whether each version has a stream over all its segments beside theirs, segment `*`. Unset: \
         where a source of the model has `segments`.",
    ),
    key(
        "segments_max",
        COUNT,
        Value("250"),
        "Segments of one version at once, roll-up and `other` not counted. The default is enough for \
         the countries of the world.",
    ),
    key(
        "segments_beyond",
        Kind::Choice(&["other", "refused"]),
        Value("\"other\""),
        "What becomes of events of a new segment when there are `segments_max`, or no room under \
         `streams_max`: they count in segment `other` (and in the roll-up), or are refused.",
    ),
];

const SAMPLING: &[Key] = &[
    key(
        "negatives_kept",
        SHARE,
        Value("1.0"),
        "Share of the negatives that is in the stream, above 0; all positives are. Scores are of the whole \
         population and are carried to the stream's: s / (s + r (1 - s)).",
    ),
    key(
        "negatives_trained",
        SHARE,
        Value("1.0"),
        "Share of the negatives that the model was trained on, above 0, where its scores were not corrected \
         for it: p / (p + (1 - p) / w).",
    ),
];

const KERNEL: &[Key] = &[
    key(
        "sample",
        Kind::Integer { low: 2, high: 4000 },
        Value("512"),
        "Events of a window that are kept and compared pair by pair, those whose ids (or places in the topic) have the lowest \
         hashes. Its square is what a judgement costs, at each slide of each window, in the thread that reads; \
         512 have 131 thousand pairs.",
    ),
    key(
        "bandwidth",
        Kind::Number(Bounds {
            low: 0.0,
            high: 100.0,
            open: true,
        }),
        Unset("0.5"),
        "Width v of the kernel exp(-TV/v), TV the total variation distance of two vectors, from 0 to 1. Unset: the median \
         distance in each sample.",
    ),
    key(
        "features",
        Kind::Integer { low: 0, high: 1024 },
        Value("0"),
        "Random features: each event adds to 2 x features x classes sums, and the test is of all events in place of the sample. \
         The one key here that costs each event more than a hash. Needs `bandwidth`.",
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
        "Whether versions are compared, in the views `binary` and `class:k`. Needs `fields.id`, and both \
         versions' records of an id in one process: with [state] `topic` in one partition, and `champion` named.",
    ),
    key(
        "champion",
        Kind::Text,
        Unset("\"2026-10\""),
        "The version to which all others are compared. Unset: each to each that came before it.",
    ),
    key(
        "wait",
        Kind::Duration,
        Value("\"1m\""),
        "How far apart in event time two versions may score one id; so long an observation is kept for \
         the other after its pane was sealed.",
    ),
    key(
        "rows_max",
        COUNT,
        Value("1000000"),
        "Most observations that are kept for other versions, at most 128 bytes each, in open panes and within \
         `wait`; one above is counted in its stream as ever, and in no pair.",
    ),
    key(
        "confidence",
        PROBABILITY,
        Value("0.95"),
        "Of each interval at all times together.",
    ),
];

const TEST: &[Key] = &[
    key(
        "alpha",
        PROBABILITY,
        Value("0.05"),
        "Probability of calling one calibrated window miscalibrated, before the hold times of the \
         alert.",
    ),
    key(
        "tolerance",
        SHARE,
        Value("0.0"),
        "Calibration error (l2-ECE) that does not matter; an alert needs the lower end of the interval \
         above it. At 10^7 events every model rejects with 0.",
    ),
    key(
        "min_events",
        COUNT,
        Value("500"),
        "Fewer events than this in a window give no verdict: `undecided(too_few)`. 500 is the least at \
         which the level of the default test was measured to hold. Where events are weighted, the \
         effective number counts.",
    ),
    key(
        "coverage_min",
        SHARE,
        Value("0.5"),
        "Share of a window's mature predictions that must be counted, where those without outcome are \
         dropped; below it: `undecided(coverage)`.",
    ),
    key(
        "critical",
        Kind::Choice(&["moments", "monte_carlo", "theorem"]),
        Value("\"moments\""),
        "Critical values: from three exact moments (microseconds), by resampling outcomes, or the \
         bound of the paper's theorem (conservative).",
    ),
    key(
        "replicates",
        Kind::Integer {
            low: 99,
            high: 1_000_000,
        },
        Value("3000"),
        "Replicates of `monte_carlo`; 3000 as in the paper's program.",
    ),
    key(
        "sharing",
        Kind::Choice(&["joint", "bonferroni"]),
        Value("\"joint\""),
        "How the error is shared over levels: by their joint law, or alpha divided by their number.",
    ),
    key(
        "seed",
        Kind::Integer {
            low: 0,
            high: i64::MAX,
        },
        Value("1"),
        "Seed of `monte_carlo`; the same data and seed give the same p-value.",
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
        "When 0 belongs to the interval: by the exact null given the scores, or by the paper's \
         formula, which is far too wide for rare events.",
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
        "Exact binomial test per distinct score; `auto`: when there are at most 64 of them.",
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
        "Distances from calibration in the report of a window: none; smooth, Laplace kernel and \
         surrogate interval error (0.3 to 0.6 ms a window, two to four times the rest of the evaluation); or also interval error, lower \
         distance and smECE (10 to 35 milliseconds).",
    ),
];

const ALERT: &[Key] = &[
    key(
        "for",
        Kind::Duration,
        Value("\"0s\""),
        "How long a window must stay miscalibrated before its alert fires. The window itself already \
         smooths, so the default does not wait.",
    ),
    key(
        "keep_firing_for",
        Kind::Duration,
        Value("\"5m\""),
        "How long an alert stays after the last miscalibrated verdict, so that it does not flap.",
    ),
    key(
        "flap_within",
        Kind::Duration,
        Value("\"1h\""),
        "An alert of a stream that fires again this soon after its end is kept twice as long each time, \
         up to 16 times `keep_firing_for`; \"0s\": never.",
    ),
    key(
        "stale_after",
        Kind::Duration,
        Value("\"1h\""),
        "Without events for this long, verdicts are withdrawn: `undecided(stale)`.",
    ),
    key(
        "budget",
        Kind::Text,
        Unset("\"5% ever\""),
        "A budget of false alarms for this model alone, beside that of the fleet; `none`: no detector. Unset: \
         its streams draw on the fleet's.",
    ),
    key(
        "budget_weight",
        Kind::Number(Bounds {
            low: 0.0,
            high: 1e6,
            open: true,
        }),
        Value("1.0"),
        "The model's part of the fleet's budget, in relation to those of the others.",
    ),
    key(
        "log_odds_tolerance",
        Kind::Number(Bounds {
            low: 0.0,
            high: 2.0,
            open: false,
        }),
        Value("0.05"),
        "Error in log-odds that the detector lets pass: no model is perfect, and traffic has no end.",
    ),
];

const DETECTOR: &[Key] = &[
    key(
        "budget",
        Kind::Text,
        Value("\"1 per 30d\""),
        "False alarms allowed to all streams together: `1 per 30d` (of data, whatever the traffic), `2000000 events` \
         (average run length, over all streams), `5% ever` (probability, over all time and all streams); `none`: no \
         detectors. Each process keeps it for its own streams.",
    ),
    key(
        "confidence",
        Kind::Number(Bounds {
            low: 0.5,
            high: 0.9999,
            open: false,
        }),
        Value("0.95"),
        "Confidence of each of the intervals that hold at all times.",
    ),
];

const NOTIFY: &[Key] = &[
    key(
        "external_url",
        Kind::Text,
        Unset("\"http://trueline.example:9464\""),
        "Where those who read alerts reach this trueline, for links to its pages. Unset: the address of \
         [http].",
    ),
    key(
        "runbook_url",
        Kind::Text,
        Value("\"deploy/runbooks\""),
        "Folder of the runbooks, for links; `/NAME.md` is added.",
    ),
    key(
        "summary",
        Kind::Text,
        Value("\"[{status}] {stream}: {what}\""),
        "Text of one line. In braces: stream, model, version, segment, view, window, status, severity, \
         verdict, what (direction of the error, or why the alert ended), direction, since, at, onset, n, \
         ece, ece_lower, ece_upper, confidence, detectable, tolerance, p_value, mean_score, event_rate, \
         page. A brace is written twice.",
    ),
    key(
        "description",
        Kind::Text,
        Value(
            "\"{severity} since {since}: l2-ECE {ece} ({confidence} % interval {ece_lower} to {ece_upper}) \
             over {window}, n = {n}; tolerated {tolerance}, smallest error that could have been seen {detectable}. {page}\"",
        ),
        "The longer text.",
    ),
    key(
        "dry_run",
        Kind::Truth,
        Value("false"),
        "Log what every sink would be sent, and send nothing.",
    ),
];

const SINK: &[Key] = &[
    key(
        "name",
        Kind::Text,
        Required("\"oncall\""),
        "Name in metrics and logs, and in the journal of what was delivered: renamed, it is another sink.",
    ),
    key(
        "kind",
        Kind::Choice(&["alertmanager", "webhook", "slack", "kafka"]),
        Required("\"kafka\""),
        "`alertmanager` (API version 2), `webhook` (POST of JSON, see deploy/alert.schema.json), `slack` \
         (incoming webhook), `kafka` (the same JSON to a topic, by the brokers of [kafka]).",
    ),
    key(
        "url",
        Kind::Secret,
        Unset("\"http://localhost:9093\""),
        "Address of an Alertmanager, webhook or Slack hook; that of Slack is a secret. `https` needs a \
         binary built with the feature `tls`.",
    ),
    key(
        "topic",
        Kind::Text,
        Value("\"trueline-alerts\""),
        "Topic of the kind `kafka`; the key is the alert's fingerprint, so that compaction keeps the last.",
    ),
    key(
        "secret",
        Kind::Secret,
        Unset("\"${WEBHOOK_SECRET}\""),
        "Key of the signature of a `webhook`: header `trueline-signature`, HMAC-SHA-256 over timestamp \
         and body. Unset: not signed.",
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
        "PEM file of the authority that signed its certificate. Unset: the system's.",
    ),
    key(
        "match",
        Kind::List,
        Unset("[\"severity=page\", \"model!=sandbox*\"]"),
        "Which alerts it gets: those that satisfy all of these. Labels model, version, segment, view, \
         severity; `=` or `!=`; `*` is any text. Unset: all.",
    ),
    key(
        "resolved",
        Kind::Truth,
        Value("true"),
        "Whether it is told that an alert has ended.",
    ),
    key(
        "resend",
        Kind::Duration,
        Value("\"1m\""),
        "How often an Alertmanager is told again of what fires; it forgets what nobody speaks of for four \
         times as long.",
    ),
    key(
        "timeout",
        Kind::Duration,
        Value("\"10s\""),
        "How long one attempt may take.",
    ),
    key(
        "retry_max",
        Kind::Duration,
        Value("\"30s\""),
        "Longest pause between two attempts; the first is half a second, each twice the one before. \
         Attempts go on until the sink takes the notice or refuses it for good.",
    ),
    key(
        "queue_max",
        COUNT,
        Value("10000"),
        "Most notices that wait for it, about 1 kB each; further ones are refused and counted.",
    ),
    key(
        "dry_run",
        Kind::Truth,
        Value("false"),
        "Log what this sink would be sent, and send nothing.",
    ),
];

const HTTP: &[Key] = &[key(
    "listen",
    Kind::Address,
    Value("\"127.0.0.1:9464\""),
    "Address of /metrics, /live, /ready and the API. There is no password on it, so it listens on \
     this machine alone; in a container write `0.0.0.0:9464`.",
)];

const STATE: &[Key] = &[
    key(
        "directory",
        Kind::Path,
        Value("\"trueline-state\""),
        "Directory of the snapshots, one for each running process; created when missing.",
    ),
    key(
        "interval",
        Kind::Duration,
        Value("\"30s\""),
        "Time between snapshots: what a crash makes us read again, never what it loses; and by how much verdicts of another \
         process (`verdicts`) are later.",
    ),
    key(
        "topic",
        Kind::Text,
        Unset("\"trueline-parcels\""),
        "Topic through which the state of each partition moves to whichever process of the group is given \
         it. One topic for a group; made when missing, with cleanup.policy=compact. Unset: state stays in \
         the directory, for a group of one process. With it the directory holds no snapshots.",
    ),
    key(
        "verdicts",
        Kind::Choice(&["own", "none", "all"]),
        Value("\"own\""),
        "Over whose events verdicts are, where the state is in a topic: over those of the partitions that this process reads; or \
         over those of all processes, in one that follows the topic and reads no source (`all`), while the others count \
         and judge and tell nothing (`none`).",
    ),
    key(
        "missing_after",
        Kind::Duration,
        Value("\"5m\""),
        "With `verdicts = \"all\"`: how long verdicts wait for a partition of whose new records no parcel comes; then they go \
         on without it, and `/ready` and a metric name it.",
    ),
    key(
        "restore_within",
        Kind::Duration,
        Value("\"30s\""),
        "How long taking over one partition from the topic may take before the membership is tried anew.",
    ),
    key(
        "on_broken",
        Kind::Choice(&["stop", "fresh"]),
        Value("\"stop\""),
        "What becomes of a partition whose state in the topic is broken, foreign or gone: it is not read, \
         and `/ready` says why; or it begins without its state, where the group's committed offset says.",
    ),
    key(
        "records_max",
        Kind::Integer {
            low: 0,
            high: 1_000_000,
        },
        Value("1000"),
        "Records of changes of alerts kept for `trueline explain`, some 100 kB each; the oldest go first.",
    ),
];

const LIMITS: &[Key] = &[
    key(
        "streams_max",
        COUNT,
        Value("1000"),
        "Streams (model x version x segment x view) at once; events of further ones are refused. Each vector view adds one \
         for each version.",
    ),
    key(
        "stream_expiry",
        Kind::Duration,
        Value("\"7d\""),
        "A stream without events for this long is forgotten.",
    ),
    key(
        "open_panes_max",
        COUNT,
        Value("10000"),
        "Panes of a stream that wait for their watermark at once; an event that would open another is \
         refused. Enough for one partition a week ahead of another.",
    ),
    key(
        "future_max",
        Kind::Duration,
        Value("\"1h\""),
        "How far an event time may lie after the record's arrival; beyond that the event is rejected, \
         because one event from the future would make all others late.",
    ),
    key(
        "vector_cells_max",
        Kind::Integer { low: 1, high: 4096 },
        Value("4096"),
        "Cells of a pane of a view `top_k` or `full`; an event that would begin another is in no sum of that \
         view, and its windows are undecided (capacity). 4096 is all there are.",
    ),
    key(
        "vector_versions_max",
        Kind::Integer {
            low: 0,
            high: 1_000_000,
        },
        Value("64"),
        "Versions that have cells, or a sample, for vector views at once; windows of vector views of further ones are undecided \
         (capacity) until another is forgotten.",
    ),
    key(
        "series_max",
        COUNT,
        Value("100000"),
        "Series on /metrics; streams beyond it stay in the API. 10^5 is what a small Prometheus takes \
         without notice.",
    ),
    key(
        "record_bytes_max",
        Kind::Bytes,
        Value("\"1MiB\""),
        "Longest record that is looked at; the brokers' own default.",
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
