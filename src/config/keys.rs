//! The one table of all keys of the configuration file.
//!
//! An entry here is all that a new key needs to be parsed, checked, defaulted, suggested,
//! documented and shown; only its use is elsewhere ([`super::models`] and [`super::sources`]). Each
//! text says what the key does and, if it is not obvious, the reason for its default.

use super::schema::Kind::{self, *};
use super::schema::{Bounds, Key, Preset, Section};

/// A share: any number from 0 to 1.
const SHARE: Kind = closed(0.0, 1.0);
/// A probability that must be neither impossible nor certain.
const PROBABILITY: Kind = open(0.0, 1.0);
/// A count of at least one.
const COUNT: Kind = whole(1, i64::MAX);

const fn whole(low: i64, high: i64) -> Kind {
    Integer { low, high }
}

const fn closed(low: f64, high: f64) -> Kind {
    let open = false;
    Number(Bounds { low, high, open })
}

const fn open(low: f64, high: f64) -> Kind {
    let open = true;
    Number(Bounds { low, high, open })
}

/// Keys without a default that the sample sets, because each file must choose them: where records
/// come from, and the form of the prediction.
pub const CHOSEN: [(&str, &str); 2] = [("kafka", "brokers"), ("source.fields", "score")];

/// Defines [`SECTIONS`]. A section is its path and its keys; a key is its name, [`Kind`],
/// [`Preset`] and, as in the file, its default or example. The comments above them are their texts.
macro_rules! sections {
    ($($(#[doc = $content:literal])+ $path:literal, repeated: $repeated:literal {
        $($(#[doc = $about:literal])+ $name:ident: $kind:expr, $preset:ident $toml:tt;)+
    })+) => {
        /// All sections in the order of the reference. A child follows its parent.
        pub const SECTIONS: &[Section] = &[$(Section {
            path: $path,
            repeated: $repeated,
            about: concat!($($content),+).trim_ascii_start(),
            keys: &[$(Key {
                name: stringify!($name),
                kind: $kind,
                preset: Preset::$preset(stringify!($toml)),
                about: concat!($($about),+).trim_ascii_start(),
            }),+],
        }),+];
    };
}

sections! {
    /// The file as a whole.
    "", repeated: false {
        /// Version of the file format.
        version: whole(1, 1), Required 1;
    }

    /// Connection to the brokers.
    "kafka", repeated: false {
        /// Bootstrap brokers, `host:port`, comma separated. Required unless every source has
        /// `input = "http"`.
        brokers: Text, Unset "localhost:9092";
        /// Consumer group of the first source. Others have their own, `GROUP.NAME` with the name of
        /// the source, so that a rebalance of one does not stop the others.
        group: Text, Value "trueline";
        /// Static member name, unique in the group. With it a restart within the session timeout
        /// moves no partition. Unset: dynamic membership.
        instance: Text, Unset "${HOSTNAME}";
        /// Cap on the memory of fetched records that are not consumed yet, per source. The default
        /// is that of librdkafka.
        queue_bytes_max: Bytes, Value "64MiB";
        /// Interval between measurements of the lag, and of what transactions hide.
        statistics_interval: Time, Value "5s";
        /// How long verdicts wait for a partition whose records an open transaction hides. After
        /// that they continue without it, and `/ready` and a metric name it. Brokers end a
        /// transaction after its `transaction.timeout.ms`.
        open_transaction_max: Duration, Value "15m";
        /// Any other librdkafka setting under its own name. It overrides the settings here, except
        /// for the brokers and those that exact counting depends on, which are refused. Settings of
        /// every client hold for producers too.
        options: Map, Unset { "session.timeout.ms" = "30000" };
    }

    /// Encryption. Needs a binary built with the feature `tls`. The files are read when the process
    /// starts: restart it after renewing one.
    "kafka.tls", repeated: false {
        /// Whether to use TLS. Unset, `security.protocol` in `options` of [kafka] decides.
        enabled: Truth, Value false;
        /// PEM file of the certificate authority of the brokers. Unset: those of the system.
        ca_file: Path, Unset "/etc/trueline/ca.pem";
        /// PEM file of the client certificate, for mutual TLS.
        certificate_file: Path, Unset "/etc/trueline/client.pem";
        /// PEM file of the private key of the client.
        key_file: Path, Unset "/etc/trueline/client.key";
        /// Password of the private key.
        key_password: Secret, Unset "${KEY_PASSWORD}";
    }

    /// Credentials. All mechanisms but PLAIN need a binary built with the feature `tls`.
    "kafka.sasl", repeated: false {
        /// Authentication mechanism. Unset: no credentials.
        mechanism: Choice(&["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]),
            Unset "SCRAM-SHA-512";
        /// User.
        username: Text, Unset "trueline";
        /// Password.
        password: Secret, Unset "${KAFKA_PASSWORD}";
        /// File with the bearer token of OAUTHBEARER, which another program renews. It is read
        /// again before the token expires.
        token_file: Path, Unset "/var/run/secrets/kafka/token";
    }

    /// A Confluent-compatible schema registry, for sources whose `format` is `avro` or `protobuf`.
    /// While it does not respond, records with an unknown schema wait and their partitions are
    /// paused; nothing is lost.
    "registry", repeated: false {
        /// Address of the registry. `https` needs a binary built with the feature `tls`.
        url: Text, Unset "http://localhost:8081";
        /// User, for basic authentication.
        user: Text, Unset "trueline";
        /// Password.
        password: Secret, Unset "${REGISTRY_PASSWORD}";
        /// PEM file of the certificate authority of the registry. Unset: those of the system.
        ca_file: Path, Unset "/etc/trueline/ca.pem";
        /// Longest duration of one request. Requests do not block consumption.
        timeout: Time, Value "5s";
    }

    /// Topics whose records have the same shape. At least one; each source is one consumer.
    "source", repeated: true {
        /// Name in messages of `check`, and in the default consumer group. Unset: the first topic.
        /// The label `source` of metrics is the topic.
        name: Text, Unset "predictions";
        /// Consumer group of this source. Unset: `group` of [kafka] for the first source, and
        /// `GROUP.NAME` for others. State is kept by topic, so another group continues where the
        /// one before stopped.
        group: Text, Unset "trueline";
        /// Where its records come from. `kafka`: the topics of the brokers. `http`: requests to
        /// `/v1/events/TOPIC` of this process, which are on disk before they are answered. See
        /// [http.events].
        input: Choice(&["kafka", "http"]), Value "kafka";
        /// Topics to read, by name.
        topics: List, Required ["predictions"];
        /// Format of the records, including those of [source.outcomes]: one JSON object each, alone
        /// or behind the frame of a JSON Schema serializer; or Avro or Protobuf in that frame, with
        /// schemas from the [registry].
        format: Choice(&["json", "avro", "protobuf"]), Value "json";
        /// Envelope of the data. `cloudevents`: structured (one JSON object, with paths below its
        /// `data`) or binary (attributes are headers), as each record says. The path `ce_time` is
        /// the attribute `time`, and so on.
        envelope: Choice(&["none", "cloudevents"]), Value "none";
        /// Path of an array whose objects are events. Paths of their fields start with it, such as
        /// `predictions.score`; other fields are common to all rows. Each row counts as a record.
        /// Unset: a record is one event.
        rows: Text, Unset "predictions";
        /// Where to start a partition that was never read: at its oldest record, after its newest
        /// one, at records that are at most so old (`24h`), or at a time. The offset that this
        /// means is stored before the first record is read, so a restart continues there. A
        /// partition that is added to the topic later starts at its first record.
        start: Start(&[]), Value "earliest";
        /// What to do with a partition that has a committed offset and no state, because the state
        /// was deleted or the process runs elsewhere. `stop`: it is not read, and `/ready` gives
        /// the reason. `committed`: windows begin empty at the committed offset. Any other value is
        /// a start as in `start`: the partition is read from there, as if it had never been read.
        /// Remove the key once the state exists again.
        on_missing_state: Start(&["stop", "committed"]), Value "stop";
        /// What to do with a partition that ends before the offset up to which it was read, because
        /// its topic was recreated or its log was cut. `stop` suspends and reports it, also after a
        /// restart and however long it is by then; otherwise it is read from its oldest record or
        /// from its end.
        on_truncated: Choice(&["stop", "earliest", "latest"]), Value "stop";
        /// Whether repeated records that carry their outcome count once: records with the same
        /// partition, model, version, segment and id. Needs `fields.id`. The first that was counted
        /// stays. With [source.outcomes], repeats always count once.
        deduplicate: Truth, Value true;
        /// How far the event times of two records of one id may differ for the second to be a
        /// duplicate. This matters if the event time is the record's timestamp, which is new when a
        /// producer sends the record again. Records with their own event time repeat it and are
        /// recognised with any value here, up to `ids_max`. An hour covers retries of producers and
        /// restarts from an older position.
        deduplicate_within: Time, Value "1h";
        /// Topic for records that could not be used, with the reason in their headers. Unset: they
        /// are only counted.
        dead_letter: Text, Unset "predictions.dead";
        /// Name of the model, if records do not contain it.
        model: Text, Unset "fraud";
        /// Version of the model, if records do not contain it.
        model_version: Text, Unset "2026-11";
        /// Names of the classes, in the order of the probabilities. Unset: those of the [[model]].
        /// If all names are whole numbers, as in ["1", "2", "3"], an outcome that is a number names
        /// a class; otherwise it is an index, counted from 0.
        classes: List, Unset ["cat", "dog", "bird"];
    }

    /// Paths of the fields of an event, such as `prediction.score`. A dot inside a name is written
    /// `\.`.
    "source.fields", repeated: false {
        /// Path of the name of the model. Not used if the source has a fixed `model`.
        model: Text, Value "model";
        /// Path of the version of the model. Each version is a separate stream. Unset: one stream.
        version: Text, Unset "model_version";
        /// Paths of the fields whose values split a model into streams. Events without a value, or
        /// with null, are the segment of the empty value, as in `country=`.
        segments: List, Unset ["country"];
        /// Path of the event's id, or `@key` for the record's key. An id names one prediction:
        /// unless `deduplicate` is off, a record that is delivered twice counts once.
        id: Text, Unset "request_id";
        /// Path of the event time. Unset: the record's timestamp.
        time: Text, Unset "time_ms";
        /// Format of the event time: a number since 1970, or text. Needs `time`, unless it is `ms`.
        time_unit: Choice(&["ms", "s", "us", "rfc3339"]), Value "ms";
        /// With `time_unit = "rfc3339"`: the zone of times that have no offset, `UTC` or an offset.
        /// Unset: such a record is rejected. Needs `time`.
        time_zone: Text, Unset "+02:00";
        /// Path of the probability of the positive outcome. Exactly one of `score`, `probabilities`
        /// and `class_probabilities` is needed.
        score: Text, Unset "score";
        /// Path of an array of probabilities, one per class.
        probabilities: Text, Unset "probabilities";
        /// Path of an object from class name to probability; needs `classes`.
        class_probabilities: Text, Unset "class_probabilities";
        /// What outcomes mean: a text, number or boolean, and the name or index of its class.
        outcome_map: List, Unset ["yes=1", "no=0"];
        /// Path of the outcome: a boolean, 0 or 1, a class name or a class index.
        outcome: Text, Value "outcome";
        /// Path of the importance weight of the event, if records were sampled with unequal
        /// probabilities: a number proportional to the inverse of its probability, above 0 and
        /// below 65536, preferably around 1 (resolution 1/65536). Every record must have it. Unset:
        /// all events count equally.
        weight: Text, Unset "weight";
        /// Path of the cluster whose outcomes depend on each other: a user, a session, a household
        /// (deploy/guide/dependence.md). Decision, interval and tolerance then hold whatever the
        /// dependence within clusters. Every record must have it; events that share a cluster give
        /// the same text or number. Not together with `weight`, nor with views of vectors. Unset:
        /// events are taken as independent, and the stream measures whether they are.
        cluster: Text, Unset "user_id";
    }

    /// Outcomes that arrive separately from their predictions, and later. They are joined by id,
    /// and a prediction is counted once it is mature. Enabled by `maturity`.
    "source.outcomes", repeated: false {
        /// Time after a prediction by which its outcome has arrived, if it ever arrives. Only then
        /// is the prediction counted, so that every window contains whole cohorts and not only the
        /// outcomes that arrived quickly. Verdicts are delayed by this time. An outcome is on time
        /// up to `maturity` after the end of its prediction's pane, which is as long as the model's
        /// shortest slide.
        maturity: Time, Unset "30m";
        /// Topics of the outcomes, one for each topic of the source, with the same number of
        /// partitions and the same keys. Unset: the topics of the source contain both, and a record
        /// without a prediction is an outcome.
        topics: List, Unset ["outcomes"];
        /// Path of the prediction's id, or `@key` for the record's key. Unset: as in
        /// [source.fields].
        id: Text, Unset "request_id";
        /// Path of an array whose objects are outcomes. If the topics of the source contain both
        /// kinds, it must equal the source's `rows`, which is the default.
        rows: Text, Unset "outcomes";
        /// Path of the name of the model, if two models may use the same id. Unset: ids are unique.
        model: Text, Unset "model";
        /// Path of the outcome's event time. Unset: the record's timestamp.
        time: Text, Unset "time_ms";
        /// Format of the event time: a number since 1970, or text. Needs `time`, unless it is `ms`.
        time_unit: Choice(&["ms", "s", "us", "rfc3339"]), Value "ms";
        /// With `time_unit = "rfc3339"`: the zone of times that have no offset, `UTC` or an offset.
        /// Unset: such a record is rejected. Needs `time`.
        time_zone: Text, Unset "+02:00";
        /// What outcomes mean: a text, number or boolean, and the name or index of its class.
        /// Unset: as in [source.fields].
        outcome_map: List, Unset ["yes=1", "no=0"];
        /// Path of the outcome: a boolean, 0 or 1, a class name or a class index.
        outcome: Text, Value "outcome";
        /// Meaning of a mature prediction without an outcome: `drop` (it is counted as expired and
        /// in no sum), `negative` (it did not happen: a click that never came), or a class.
        on_missing: Text, Value "drop";
        /// Which of two outcomes of one prediction counts: the first or the last in event time.
        /// `reject`: the one that arrived first, and a contradicting one is rejected.
        repeated: Choice(&["first", "last", "reject"]), Value "first";
        /// Whether an outcome that arrives after maturity still corrects the windows that contain
        /// its prediction. Predictions then stay in memory for as long as the widest window.
        revise: Truth, Value false;
        /// Cap on retained predictions, and on outcomes that wait for their prediction; about 64
        /// bytes each, plus 12 bytes for each probability that vector views need and 8 bytes per
        /// class for `kernel`.
        pending_max: COUNT, Value 10000000;
        /// Cap on the memory of retained predictions of one topic. The oldest ones above it spill
        /// to a store in the state directory. With a state topic, the partitions of this process
        /// share it.
        pending_memory: Bytes, Value "1GiB";
    }

    /// How a model is monitored. The model `*` stands for every model without a section of its own
    /// and provides the defaults of the others. Without any [[model]] there is one `*` with the
    /// defaults.
    "model", repeated: true {
        /// Name as in the records, or `*`.
        name: Text, Required "*";
        /// What is tested. Unset: `binary`, and `top_label` with three or more `classes`. `binary`
        /// (the score, or the probability of the second of two classes, against the outcome),
        /// `top_label` (the largest probability against whether that class occurred), `class:K`
        /// (the probability of class number or name K against whether it occurred; by name alone
        /// where a name is a number), `top_k:K` (the K largest probabilities together), `full` (the
        /// whole vector; both up to 12 coordinates) and `kernel` (the whole vector by the kernel
        /// test, with any number of classes). Views of a vector cover whole versions and need at
        /// least one of the other views beside them.
        views: List, Unset ["top_label"];
        /// Names of the classes, in the order of the probabilities. Unset: those of its sources, if
        /// they are all equal.
        classes: List, Unset ["cat", "dog", "bird"];
        /// How scores are divided into cells: equally in the score, or equally in log-odds, for
        /// rare events whose scores are all near 0. On either axis the level of the default test
        /// needs some tens of events of the rarer outcome (deploy/guide/verdicts.md).
        axis: Choice(&["linear", "logit"]), Value "linear";
        /// Score at which the inner cells of a logit axis start. Lower scores share the first cell.
        axis_low: PROBABILITY, Value 0.000001;
        /// Score at which the inner cells of a logit axis end.
        axis_high: PROBABILITY, Value 0.999999;
        /// Finest level: 2^level cells. 4096 cells resolve what 10^5 events can show; each further
        /// level doubles the memory of a stream.
        level: whole(1, 16), Value 12;
        /// Windows of event time, each judged at every slide: a length (`"5m"`), a length with its
        /// own slide, by default about a sixth (`{ width = "6h", slide = "30m" }`), or the newest
        /// panes that contain a number of events (`{ last = 10000 }`).
        windows: Windows, Value ["5m", "1h", "24h"];
        /// How far the watermark stays behind the newest event. Events that arrive after it are
        /// counted as late. A larger value loses fewer events and delays every verdict by as much.
        lateness: Duration, Value "10s";
        /// Whether each version with segments also has a stream over all of them, segment `*`.
        /// Unset: if a source of the model has `segments`.
        rollup: Truth, Unset true;
        /// Most segments of one version at once, not counting the roll-up and `other`. The default
        /// is enough for the countries of the world.
        segments_max: COUNT, Value 250;
        /// What happens to events of a new segment when `segments_max` or `streams_max` is reached:
        /// they count in segment `other` (and in the roll-up), or are refused.
        segments_beyond: Choice(&["other", "refused"]), Value "other";
    }

    /// Negatives that were down-sampled at a known rate, for the view `binary`. The odds of a score
    /// are multiplied by `negatives_trained` / `negatives_kept`, and all reports are on the scale
    /// of the events in the stream.
    "model.sampling", repeated: false {
        /// Share of the negatives that is in the stream, above 0; all positives are. Scores refer
        /// to the whole population and are converted to the stream: s / (s + r (1 - s)).
        negatives_kept: SHARE, Value 1.0;
        /// Share of the negatives that the model was trained on, above 0, if its scores were not
        /// corrected for it: p / (p + (1 - p) / w).
        negatives_trained: SHARE, Value 1.0;
    }

    /// Data that the view `kernel` keeps of a window: a sample whose pairs are compared at each
    /// slide, and random features, which are sums over all events.
    "model.kernel", repeated: false {
        /// Events of a window that are kept and compared pair by pair: those whose ids (or
        /// positions in the topic) have the lowest hashes. An evaluation costs its square, at each
        /// slide of each window, in the reading thread; 512 events have 131 thousand pairs.
        sample: whole(2, 4000), Value 512;
        /// Width v of the kernel exp(-TV/v), where TV is the total variation distance of two
        /// vectors, from 0 to 1. Unset: the median distance in each sample.
        bandwidth: open(0.0, 100.0), Unset 0.5;
        /// Random features: each event adds to 2 x features x classes sums, and the test uses all
        /// events instead of the sample. This is the only key here that costs each event more than
        /// a hash. Needs `bandwidth`.
        features: whole(0, 1024), Value 0;
        /// Seed of the sample and the features; the same data and seed give the same bits.
        seed: whole(0, i64::MAX), Value 0;
    }

    /// When a window is called miscalibrated.
    "model.test", repeated: false {
        /// Level of the test: probability that it rejects one calibrated window.
        alpha: PROBABILITY, Value 0.05;
        /// Which test decides: `combined` joins T-Cal over coarse and over fine cells, a score test
        /// against shift, slope and label noise, and Kolmogorov-Smirnov; `tcal` is T-Cal alone as
        /// the keys below set it; `paper` is T-Cal, and the exact binomial tests where scores are
        /// discrete. All are reported whichever decides.
        decide_by: Choice(&["combined", "tcal", "paper"]), Value "combined";
        /// Calibration error that is acceptable: an l2-ECE ("0.02"), a share of the mean score of
        /// the rarer outcome ("10%"), or the smaller of both. A window is `miscalibrated` if its
        /// error is shown to exceed it, `calibrated` if it is shown to be within it, and else
        /// `undecided(inconclusive)`. Below a mean score of 5 % a share is compared with the ratio
        /// of observed to expected outcomes.
        tolerance: Tolerance, Value "0.05 or 20%";
        /// What is done where outcomes vary more than independent ones would: `correct` widens
        /// p-values and intervals accordingly, `show` only reports the factor. A model that goes
        /// wrong and is put right every few minutes looks overdispersed too.
        overdispersion: Choice(&["correct", "show"]), Value "correct";
        /// A window with fewer events has no verdict: `undecided(too_few)`. 500 is the smallest
        /// number at which the level of the default test was measured to hold, for outcomes that
        /// are not rare (deploy/guide/verdicts.md). For weighted events the effective number
        /// counts.
        min_events: COUNT, Value 500;
        /// Share of the mature predictions of a window that must be counted, if those without
        /// outcome are dropped. Below it: `undecided(coverage)`.
        coverage_min: SHARE, Value 0.5;
        /// Critical values of T-Cal: from three exact moments (microseconds; where positives are
        /// too few for them, outcomes are resampled), by resampling outcomes always, or the bound
        /// of the paper's theorem (conservative).
        critical: Choice(&["moments", "monte_carlo", "theorem"]), Value "moments";
        /// Replicates of `monte_carlo`. The default is that of the paper's program.
        replicates: whole(99, 1_000_000), Value 3000;
        /// How the error is divided over levels: by their joint distribution, or alpha divided by
        /// their number.
        sharing: Choice(&["joint", "bonferroni"]), Value "joint";
        /// Seed of all that is drawn: `monte_carlo`, tests of discrete scores, signs of clusters.
        /// The same data and seed give the same p-value.
        seed: whole(0, i64::MAX), Value 1;
        /// Confidence of the interval.
        confidence: PROBABILITY, Value 0.9;
        /// Cells of the interval, a power of two. Unset: the next above 2 n^(2/5).
        interval_cells: whole(2, 65536), Unset 64;
        /// When the interval contains 0: by the exact null given the scores, or by the formula of
        /// the paper, which is far too wide for rare events.
        interval_reach: Choice(&["conditional", "paper"]), Value "conditional";
        /// Smallest possible score for `paper`: 0 for `binary`, 1/K for the top label of K classes.
        interval_lower_support: SHARE, Value 0.0;
        /// Tests over distinct scores, one by one (exact binomial) and summed up; the sum joins the
        /// combination. `auto`: when there are at most 64 distinct scores.
        discrete: Choice(&["auto", "on", "off"]), Value "auto";
        /// Level of the reliability diagram: 2^level cells.
        reliability_level: whole(1, 16), Value 4;
        /// Distances from calibration in the report of a window: none; smooth, Laplace kernel and
        /// surrogate interval error (0.3 to 0.6 ms per window, two to four times the rest of the
        /// evaluation); or also interval error, lower distance and smECE (10 to 35 ms).
        distances: Choice(&["off", "cheap", "all"]), Value "off";
    }

    /// What raises an alert, and how long it must persist.
    "model.alert", repeated: false {
        /// Whether a window's verdict alone raises an alert of severity `warn`. Windows are tested
        /// again and again, so a calibrated stream then alerts several times a day. Without it only
        /// the detector raises alerts, and windows say how large the error is; streams without a
        /// detector (vector views, weighted events, budget `none`) raise none.
        window_alerts: Truth, Value false;
        /// How long a stream must stay bad before its alert fires. Detector and windows already
        /// smooth, so the default does not wait.
        for: Duration, Value "0s";
        /// How long an alert stays after its stream was last bad, so that it does not flap: after
        /// the detector is clear and, with `window_alerts`, after the last miscalibrated verdict.
        keep_firing_for: Duration, Value "5m";
        /// If the alert of a stream fires again within this time after it was resolved, it is kept
        /// twice as long each time, up to 16 times `keep_firing_for`. "0s": never.
        flap_within: Duration, Value "1h";
        /// Without events for this long, verdicts are withdrawn: `undecided(stale)`. A window is
        /// also withdrawn if it was not judged for this long beyond its slide.
        stale_after: Time, Value "1h";
        /// A false-alarm budget of each stream of this model, in place of the common one; `none`:
        /// no detector. Unset: its streams draw on the common budget.
        budget: Text, Unset "5% ever";
        /// Share of the common false-alarm budget for each stream of this model, relative to other
        /// models. Streams of the model with the largest weight get 1/`detector.streams` each; with
        /// half that weight, half of it.
        budget_weight: open(0.0, 1e6), Value 1.0;
        /// Error in log-odds that the detector ignores. Without it, a small error of any model
        /// would raise an alarm sooner or later, because a stream never ends.
        log_odds_tolerance: closed(0.0, 2.0), Value 0.05;
    }

    /// Compares versions of the model that score the same ids, such as a champion and its shadow:
    /// Brier score and calibration, with anytime-valid intervals.
    "model.compare", repeated: false {
        /// Whether to compare versions, in the views `binary` and `class:k`. Needs `fields.id` and
        /// a version, and the records of an id of both versions in one process. With [state]
        /// `topic` they must be in one partition, and `champion` must be set.
        enabled: Truth, Value false;
        /// The version to which all others are compared. Unset: each version is compared to every
        /// earlier one.
        champion: Text, Unset "2026-10";
        /// How far apart in event time two versions may score one id. An observation is kept for
        /// the other version for this time after its pane was sealed.
        wait: Duration, Value "1m";
        /// Most observations that are kept for other versions, in open panes and within `wait`, at
        /// most 128 bytes each. Further ones count in their stream as usual but in no pair.
        rows_max: COUNT, Value 1000000;
        /// Confidence of each anytime-valid interval.
        confidence: PROBABILITY, Value 0.95;
    }

    /// The detector of each stream. It examines every pane, raises alarms, and guarantees a bound
    /// on false alarms over all time for all streams together.
    "detector", repeated: false {
        /// False alarms allowed: `1 per 30d` (of data, for all streams together, whatever the
        /// traffic), `2000000 events` (average run length over all streams), `5% ever` (probability
        /// of each stream from its begin until it expires); `none`: no detectors.
        budget: Text, Value "1 per 30d";
        /// Streams among which a budget of time is divided, in equal parts: the promise holds if at
        /// most this many live at once, over all processes. A smaller number finds errors sooner.
        /// Unset: `limits.streams_max`.
        streams: COUNT, Unset 20;
        /// Confidence of each anytime-valid interval.
        confidence: closed(0.5, 0.9999), Value 0.95;
    }

    /// Notifications when the alert of a stream fires or is resolved.
    "notify", repeated: false {
        /// Streams with the same values of these labels share one alert: model, version, segment,
        /// view. Where partitions move between processes (a state topic, and verdicts of a
        /// process's own), each stream has an alert of its own.
        group_by: List, Value ["model"];
        /// Changes older than this, in event time, are not sent while records are unread, so that
        /// catching up does not send outdated alerts. When all records are read, alerts that still
        /// fire are sent.
        max_age: Duration, Value "1h";
        /// Address of this process for the readers of alerts, used in links. Unset: the address on
        /// which it listens (`--listen`, else that of [http]), or `localhost` if that is all
        /// addresses.
        external_url: Text, Unset "http://trueline.example:9464";
        /// Folder of the runbooks, for links; `/NAME.md` is added. Unset: `/runbooks` of this
        /// process, at `external_url`.
        runbook_url: Text, Unset "https://wiki.example/runbooks";
        /// One-line text. Placeholders in braces: alert, stream (the worst one), streams (in
        /// words), streams_firing, evidence (the numbers of window and detector in words), deployed
        /// (the newest deployment, if any), record, model, version, segment, view, window, status,
        /// severity, verdict, what (direction of the error, or why the alert was resolved),
        /// direction, since, at, onset, n, error (what was compared with the tolerance, with its
        /// interval), ece, ece_lower, ece_upper, confidence, detectable, tolerance, p_value,
        /// mean_score, event_rate, page. A literal brace is doubled.
        summary: Text, Value "[{status}] {alert}: {what} ({streams})";
        /// The full text.
        description: Text, Value "{severity} since {since}: {evidence}.{deployed} {page}";
        /// Log what would be sent to every sink, and send nothing.
        dry_run: Truth, Value false;
    }

    /// Destinations of alerts. Each change of an alert goes once to each sink, in order. Without
    /// sinks, alerts appear only on /metrics, in the API and in the log.
    "sink", repeated: true {
        /// Name in metrics, logs and the journal of deliveries. A renamed sink is a new sink.
        name: Text, Required "oncall";
        /// `alertmanager` (API version 2), `pagerduty` (Events API 2), `opsgenie` (Alert API 2),
        /// `slack` (incoming webhook), `teams` (webhook of Workflows), `webhook` (POST of JSON, see
        /// deploy/alert.schema.json), `kafka` (the same JSON to a topic on the brokers of [kafka]).
        kind: Choice(&["alertmanager", "pagerduty", "opsgenie", "slack", "teams", "webhook", "kafka"]),
            Required "kafka";
        /// Address; that of a hook of Slack or Teams is a secret. Unset, PagerDuty and Opsgenie
        /// have their public ones, of the USA. `https` needs a binary built with the feature `tls`.
        url: Secret, Unset "http://localhost:9093";
        /// Topic of the kind `kafka`. The key is the fingerprint of the alert, so that compaction
        /// keeps the last change.
        topic: Text, Value "trueline-alerts";
        /// Integration key of `pagerduty`, API key of `opsgenie`, or key of the signature of a
        /// `webhook`: header `trueline-signature`, HMAC-SHA-256 over timestamp and body. Unset: not
        /// signed.
        secret: Secret, Unset "${WEBHOOK_SECRET}";
        /// Value of the header `authorization`.
        authorization: Secret, Unset "Bearer ${ALERT_TOKEN}";
        /// PEM file of the certificate authority of the sink. Unset: those of the system.
        ca_file: Path, Unset "/etc/trueline/ca.pem";
        /// Alerts that the sink gets: those that satisfy all of these. Labels model, version,
        /// segment, view (`class:` with a name, or the number that alerts show), severity (`page`
        /// or `warn`); `=` or `!=`; `*` matches any text. Unset: all.
        match: List, Unset ["severity=page", "model!=sandbox*"];
        /// Whether the sink gets resolutions.
        resolved: Truth, Value true;
        /// Time between two resends of firing alerts to an Alertmanager, which drops an alert that
        /// is not refreshed for four times as long.
        resend: Time, Value "1m";
        /// Longest duration of one attempt.
        timeout: Time, Value "10s";
        /// Longest pause between two attempts. The first pause is half a second, and each further
        /// one is twice as long. Attempts continue until the sink accepts the notification or
        /// rejects it permanently.
        retry_max: Time, Value "30s";
        /// Most notifications in the queue of the sink, about 1 kB each. Further ones are dropped
        /// and counted. Ends of alerts have as many places again.
        queue_max: COUNT, Value 10000;
        /// Log what would be sent to this sink, and send nothing.
        dry_run: Truth, Value false;
    }

    /// Metrics, health and the API.
    "http", repeated: false {
        /// Address of /metrics, /live, /ready and the API. Reading needs no authentication, so it
        /// listens on this machine only; in a container use `0.0.0.0:9464`.
        listen: Address, Value "127.0.0.1:9464";
        /// Public names of this server, such as that of an ingress. Addresses, names without dots
        /// and names inside a cluster are always accepted. Requests for any other name are refused,
        /// so that no web page can read the API through its own host name.
        hosts: List, Value [];
        /// Token that requests that change something, and the tap, must send in the header
        /// `Authorization: Bearer`. Unset: no token is needed. The commands take it from
        /// TRUELINE_TOKEN.
        token: Secret, Unset "${TRUELINE_TOKEN}";
    }

    /// Events that are posted to `/v1/events`, for sources with `input = "http"`. Each of their
    /// topics is a log in the state directory.
    "http.events", repeated: false {
        /// Most bytes of one log on disk. Where it is full of events that were not read yet,
        /// requests are answered 429 and nothing is lost.
        bytes_max: Bytes, Value "1GiB";
        /// How long events stay in the log after they were read and their sums are in a snapshot,
        /// as long as there is room. Idempotency keys are known for the same time.
        keep: Duration, Value "24h";
        /// Longest body of a request, at most 128MiB. Longer ones are answered 413.
        request_bytes_max: Bytes, Value "1MiB";
    }

    /// Snapshots of sums and offsets, from which a restart resumes.
    "state", repeated: false {
        /// Directory of the snapshots, one per running process. It is created if it is missing.
        directory: Path, Value "trueline-state";
        /// Time between snapshots. After a crash, at most this much is read again; nothing is lost.
        /// The verdicts of another process (`verdicts`) are delayed by this time.
        interval: Time, Value "30s";
        /// Topic for the state of each partition, from which the process that is assigned the
        /// partition restores it. One topic per group, created with cleanup.policy=compact if it is
        /// missing. Unset: state stays in the directory, for a group of one process. With a topic
        /// the directory contains no snapshots.
        topic: Text, Unset "trueline-state";
        /// With a state topic: which process judges. `own`: each process judges the partitions that
        /// it reads. `all`: this process reads no source, follows the state topic and judges the
        /// events of all processes. `none`: this process only counts and sends no notifications.
        verdicts: Choice(&["own", "none", "all"]), Value "own";
        /// With `verdicts = "none"` or `"all"`: any number of processes judge, at most this many at
        /// once. The models are spread by name over so many partitions of the topic `TOPIC-judges`,
        /// which is created if it is missing, and group `GROUP-judges` shares them. It cannot be
        /// changed later. Unset: one process judges all models.
        judge_partitions: whole(1, 4_096), Unset 32;
        /// With `verdicts = "all"`: how long verdicts wait for a partition without new checkpoints.
        /// After that they continue without it, and `/ready` and a metric name it.
        missing_after: Time, Value "5m";
        /// Longest time to restore one partition from the topic before the process rejoins the
        /// group.
        restore_within: Time, Value "30s";
        /// What to do with a partition whose state in the topic is damaged, foreign or missing.
        /// `stop`: it is not read, and `/ready` gives the reason. `fresh`: it starts without its
        /// state at the committed offset of the group.
        on_broken: Choice(&["stop", "fresh"]), Value "stop";
        /// Records of alert changes kept for `trueline explain`, about 100 kB each. The oldest are
        /// removed first.
        records_max: whole(0, 1_000_000), Value 1000;
    }

    /// Caps. Metrics count what a cap refuses.
    "limits", repeated: false {
        /// Most streams (model x version x segment x view) at once. Events of further ones are
        /// refused, or counted in the segment `other` (`segments_beyond`). Each vector view adds
        /// one per version.
        streams_max: COUNT, Value 1000;
        /// A stream is removed once the watermark is this far past its newest event, by event time,
        /// and while all partitions are read. It stays at least as long as its longest window.
        stream_expiry: Duration, Value "7d";
        /// If the watermark stands still for this long while events are counted after it, verdicts
        /// are withdrawn: `undecided(stalled)`. `/ready` and a metric name the partition that holds
        /// it.
        stalled_after: Time, Value "5m";
        /// Most panes of a stream that wait for the watermark. An event that would open another is
        /// refused. Enough for one partition a week ahead of another.
        open_panes_max: COUNT, Value 10000;
        /// Most bytes of such panes over all streams, for partitions that are ahead of others. An
        /// event that would open another pane ahead of the watermark is refused.
        open_memory: Bytes, Value "256MiB";
        /// Most ids of counted records that are remembered, over all partitions of a process, about
        /// 60 bytes each. Beyond it the oldest are forgotten early, and counted.
        ids_max: COUNT, Value 4000000;
        /// How far an event time may lie after the arrival of the record, which is its timestamp or
        /// the time of reading if that is earlier. Later events are rejected, because one event
        /// from the future would make all others late. An event that is this far ahead of its
        /// partition is counted, but moves the watermark only together with others.
        future_max: Duration, Value "1h";
        /// Cells of a pane of a view `top_k` or `full`. An event that needs another cell is in no
        /// sum of that view, and its windows are undecided (capacity). 4096 is the maximum.
        vector_cells_max: whole(1, 4096), Value 4096;
        /// Versions with cells or a sample for vector views at once. Windows of vector views of
        /// further versions are undecided (capacity) until another version is removed.
        vector_versions_max: whole(0, 1_000_000), Value 64;
        /// Most series of streams on /metrics. Above it, cells are omitted first, then values, with
        /// streams that need attention last; alerts and verdicts are always exported.
        series_max: COUNT, Value 250000;
        /// Most streams with which the cells of reliability diagrams are exported as series, 80 for
        /// a window of 16 cells. With more streams they are on the pages and in the API. 0: never.
        cell_series_streams: whole(0, i64::MAX), Value 100;
        /// Longest record to decode. The default is that of the brokers.
        record_bytes_max: Bytes, Value "1MiB";
        /// Threads that decode records and judge streams, the engine's among them. Counts and
        /// verdicts are the same with any number. 0: as many as there are cores judge and one less
        /// decode, at most 4 each.
        threads: whole(0, 64), Value 0;
    }

    /// Log lines, on standard error.
    "log", repeated: false {
        /// `auto`: human on a terminal, JSON otherwise.
        format: Choice(&["auto", "human", "json"]), Value "auto";
        /// Level, or directives such as `info,trueline::kafka=debug`.
        level: Text, Value "info";
    }
}

/// The section with this path.
pub fn section(path: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|s| s.path == path)
}

/// Sections directly inside the section with this path.
pub fn children(path: &'static str) -> impl Iterator<Item = &'static Section> {
    SECTIONS.iter().filter(move |s| s.parent() == Some(path))
}
