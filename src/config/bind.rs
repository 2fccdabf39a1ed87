//! From a document to the options of every floor.
//!
//! The second layer of checks: what one value cannot tell alone. A name used twice, two windows of one
//! length, a topic read by two sources, a dead-letter topic that is also read (its records would come
//! round for ever), a view of classes without classes. All are noted with the place of the value that
//! has to change, and binding goes on, so that one run shows them all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::collect::Segmenting;
use crate::decode::{
    DecodeOptions, Decoder, FieldOrConst, IdField, PredictionField, TimeField, TimeUnit,
};
use crate::judge::{Caps, CompareOptions, JudgeOptions, ModelPlan, Plan};
use crate::kafka::{KafkaOptions, OWNED, Security, StartAt, Truncated};
use crate::stats::axis::{Axis, Grid};
use crate::stats::discrete::DiscreteMode;
use crate::stats::distance::Extent;
use crate::stats::evaluation::Options;
use crate::stats::interval::NullReach;
use crate::stats::kernel::window::Keeping;
use crate::stats::sampling::Sampling;
use crate::stats::tcal::{Critical, Sharing, TCalOptions};
use crate::stats::view::View;
use crate::telemetry::log::{Format, LogOptions};

use super::detector::detectors;
use super::document::{Entry, Record};
use super::join::JoinOptions;
use super::ladder;
use super::problem::{Place, Problems};
use super::registry::packing;
use super::value::{Placed, Value};
use super::vectors;
use super::{HttpOptions, SourceOptions, StateOptions};

/// The name that stands for every model without a section of its own.
const ANY: &str = "*";

/// Whether this binary can talk TLS.
pub(super) const TLS_BUILT: bool = cfg!(any(feature = "tls", feature = "tls-vendored"));

/// Typed reading of a record. The schema decides the kind of every key and the reader keeps to it, so
/// a value of another kind is a fault of the schema's author; the zero of the kind stands for it.
impl Record {
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match &self.entry(key).value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn owned(&self, key: &str) -> Option<String> {
        self.text(key).map(str::to_owned)
    }

    pub(super) fn path(&self, key: &str) -> Option<&Path> {
        match &self.entry(key).value {
            Value::Path(path) => Some(path),
            _ => None,
        }
    }

    pub(super) fn milliseconds(&self, key: &str) -> i64 {
        match self.entry(key).value {
            Value::Duration(ms) => ms,
            _ => 0,
        }
    }

    pub(super) fn number(&self, key: &str) -> f64 {
        match self.entry(key).value {
            Value::Number(x) => x,
            _ => 0.0,
        }
    }

    pub(super) fn integer(&self, key: &str) -> Option<i64> {
        match self.entry(key).value {
            Value::Integer(i) => Some(i),
            _ => None,
        }
    }

    /// A count, as wide as the machine allows.
    pub(super) fn count(&self, key: &str) -> usize {
        let i = self.integer(key).unwrap_or(0);
        usize::try_from(i).unwrap_or(usize::MAX)
    }

    /// A size.
    pub(super) fn bytes(&self, key: &str) -> usize {
        match self.entry(key).value {
            Value::Bytes(n) => usize::try_from(n).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// A switch.
    pub(super) fn truth(&self, key: &str) -> bool {
        self.entry(key).value == Value::Truth(true)
    }

    pub(super) fn list(&self, key: &str) -> &[Placed<String>] {
        match &self.entry(key).value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub(super) fn strings(&self, key: &str) -> Vec<String> {
        self.list(key).iter().map(|p| p.value.clone()).collect()
    }
}

/// Lets every named model take from `*` what it leaves out, and adds `*` when there is no model.
pub fn settle_models(root: &mut Record, any: impl FnOnce() -> Record) {
    let models = root.children.entry("model").or_default();
    if models.is_empty() {
        models.push(any());
    }
    let default = models.iter().find(|m| m.text("name") == Some(ANY)).cloned();
    if let Some(default) = default {
        for model in models.iter_mut() {
            model.inherit(&default);
        }
    }
}

/// What is monitored.
pub fn plan(root: &Record, problems: &mut Problems<'_>) -> Plan {
    let records = root.all("model");
    no_name_twice(records, problems);
    let mut models: Vec<ModelPlan> = records.iter().map(|m| model(m, root, problems)).collect();
    let detectors = detectors(root.child("detector"), records, problems);
    for (model, detector) in models.iter_mut().zip(detectors) {
        // Its bets are on outcomes of equal weight.
        model.judge.detector = detector.filter(|_| !model.grid.is_weighted());
    }
    let limits = root.child("limits");
    Plan {
        models,
        caps: Caps {
            streams_max: limits.count("streams_max"),
            open_panes_max: limits.count("open_panes_max"),
            expire_after_ms: limits.milliseconds("stream_expiry"),
            future_max_ms: limits.milliseconds("future_max"),
            vector_cells_max: limits.count("vector_cells_max"),
            vector_versions_max: limits.count("vector_versions_max"),
        },
        joins: Vec::new(),
    }
}

/// Two sections for one model would leave open which holds.
fn no_name_twice(models: &[Record], problems: &mut Problems<'_>) {
    for (i, m) in models.iter().enumerate() {
        let name = m.entry("name");
        if let Some(first) = models[..i]
            .iter()
            .map(|o| o.entry("name"))
            .find(|o| o.given && o.value == name.value)
        {
            let what = format!(
                "model `{}` has two sections, the first in line {}",
                m.text("name").unwrap_or(""),
                first.at.line
            );
            problems.add(name.at, what, "merge them into one [[model]]");
        }
    }
}

fn model(record: &Record, root: &Record, problems: &mut Problems<'_>) -> ModelPlan {
    let classes = record.strings("classes");
    let views = views(record, &classes, problems);
    let level = u32::try_from(record.count("level")).unwrap_or(1);
    let test = record.child("model.test");
    let reliability = test.entry("reliability_level");
    if let Value::Integer(i) = reliability.value
        && i > i64::from(level)
    {
        problems.add(
            reliability.at,
            format!("`reliability_level` is {i}, finer than the model's `level` {level}"),
            format!("write at most {level}, or raise `level`"),
        );
    }
    let sampling = sampling(record, &views, problems);
    let mut grid = Grid::new(axis(record, problems), level.clamp(1, 16));
    let weighted = weighted(record, root, problems);
    if weighted {
        grid = grid.weighted();
    }
    vectors::check(record, root, &views, weighted, problems);
    let keeping = vectors::keeping(record, problems);
    ModelPlan {
        name: record.owned("name").unwrap_or_default(),
        views,
        classes,
        ladder: ladder::ladder(
            record.entry("windows"),
            record.milliseconds("lateness"),
            problems,
        ),
        grid,
        judge: JudgeOptions {
            compare: compare(record, root, problems),
            kernel: keeping,
            ..judge(test, record.child("model.alert"), sampling, problems)
        },
        segmenting: segmenting(record, root),
    }
}

/// Whether the events of a model are weighted: those of all sources that feed it, or of none.
fn weighted(record: &Record, root: &Record, problems: &mut Problems<'_>) -> bool {
    let name = record.text("name");
    let own = |s: &Record| {
        let models = root.all("model").iter();
        let mut named = models.filter(|m| m.text("name") == s.text("model"));
        named.next().is_some()
    };
    // `*` serves what has no section of its own.
    let feeds = |s: &&Record| {
        s.text("model").is_none() || s.text("model") == name || name == Some(ANY) && !own(s)
    };
    let sources: Vec<&Record> = root.all("source").iter().filter(feeds).collect();
    let entry = |s: &Record| s.child("source.fields").entry("weight").clone();
    let Some(first) = sources.iter().map(|s| entry(s)).find(|e| e.given) else {
        return false;
    };
    if sources.iter().any(|s| !entry(s).given) {
        let what = format!(
            "events of model `{}` would be weighted from this source and not from another",
            name.unwrap_or_default()
        );
        let remedy = "give all sources of a model a `weight`, or each a fixed `model`";
        problems.add(first.at, what, remedy);
    }
    let test = record.child("model.test");
    let unsound = [
        (
            "critical",
            "moments",
            "redraws or bounds outcomes of equal weight",
        ),
        (
            "interval_reach",
            "conditional",
            "is for outcomes of equal weight",
        ),
    ];
    for (key, sound, why) in unsound {
        if let Some(text) = test.text(key).filter(|text| *text != sound) {
            let what = format!("`{key}` is \"{text}\", which {why}, and events are weighted");
            problems.add(test.entry(key).at, what, format!("write \"{sound}\""));
        }
    }
    let budget = record.child("model.alert").entry("budget");
    if record
        .child("model.alert")
        .text("budget")
        .is_some_and(|b| b != "none")
    {
        let what = "the detector bets on outcomes of equal weight, and events are weighted";
        problems.add(
            budget.at,
            what,
            "remove `budget`: windows are tested by weight",
        );
    }
    if test.text("discrete") == Some("on") {
        let what =
            "the exact test of discrete scores has no weighted form, and events are weighted";
        let remedy = "leave `discrete` out: T-Cal decides";
        problems.add(test.entry("discrete").at, what, remedy);
    }
    true
}
/// How the segments of a model are kept; it has a roll-up where a source that feeds it has segments,
/// unless it says.
fn segmenting(record: &Record, root: &Record) -> Segmenting {
    let name = record.text("name");
    let feeds = |s: &&Record| {
        let fixed = s.text("model");
        fixed.is_none() || name == Some(ANY) || fixed == name
    };
    let mut sources = root.all("source").iter().filter(feeds);
    let split = sources.any(|s| !s.child("source.fields").list("segments").is_empty());
    Segmenting {
        rollup: match record.entry("rollup").given {
            true => record.truth("rollup"),
            false => split,
        },
        max: record.count("segments_max"),
        other: record.text("segments_beyond") != Some("refused"),
    }
}

/// The axis; linear while the clips are in the wrong order.
fn axis(record: &Record, problems: &mut Problems<'_>) -> Axis {
    if record.text("axis") != Some("logit") {
        return Axis::Linear;
    }
    let (low, high) = (record.number("axis_low"), record.number("axis_high"));
    if low < high {
        return Axis::Logit { low, high };
    }
    let entry = record.entry("axis_high");
    let what = format!("`axis_high` is {high}, which is not above `axis_low`, {low}");
    problems.add(entry.at, what, "write the lower score as `axis_low`");
    Axis::Linear
}

fn views(record: &Record, classes: &[String], problems: &mut Problems<'_>) -> Vec<View> {
    let mut views = Vec::new();
    for item in record.list("views") {
        match view(&item.value, classes) {
            Ok(view) if views.contains(&view) => {
                let what = format!("view `{}` is named twice", item.value);
                problems.add(item.at, what, "remove one");
            }
            Ok(view) => views.push(view),
            Err((what, remedy)) => problems.add(item.at, what, remedy),
        }
    }
    if record.list("views").is_empty() {
        let what = "`views` is empty, so nothing would be tested";
        problems.add(
            record.entry("views").at,
            what,
            "write `views = [\"binary\"]`",
        );
    }
    views
}

/// A view by its name; a class by its number or its name.
fn view(text: &str, classes: &[String]) -> Result<View, (String, String)> {
    let Some(class) = text.strip_prefix("class:") else {
        let parsed = text.parse().map_err(|_| {
            (
                format!("`{text}` is not a view"),
                "write `binary`, `top_label`, `class:` with a number or a name, `top_k:` with a count, `full` or `kernel`"
                    .to_owned(),
            )
        });
        return parsed.and_then(|view| vectors::fits(view, text, classes));
    };
    let by_name = classes.iter().position(|c| c == class);
    let index = by_name.and_then(|i| u32::try_from(i).ok());
    match (index, class.parse::<u32>()) {
        (Some(k), _) => Ok(View::Class(k)),
        (None, Ok(k)) if classes.is_empty() || (k as usize) < classes.len() => Ok(View::Class(k)),
        (None, Ok(k)) => Err((
            format!(
                "view `{text}`: there are {} classes, numbered from 0",
                classes.len()
            ),
            format!("write a number below {}, not {k}", classes.len()),
        )),
        (None, Err(_)) => Err((
            format!("view `{text}`: `{class}` is none of the model's `classes`"),
            match super::value::nearest(class, classes.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `class:{near}`?"),
                None => "list it in `classes`, or write the number of the class".to_owned(),
            },
        )),
    }
}

/// The rates at which negatives were sampled: above 0, and of a model whose one view is `binary`.
fn sampling(record: &Record, views: &[View], problems: &mut Problems<'_>) -> Sampling {
    let section = record.child("model.sampling");
    let keys = ["negatives_kept", "negatives_trained"];
    for key in keys {
        if section.number(key) <= 0.0 {
            let what = format!("`{key}` is 0: no negative would be left");
            let remedy = "write the share that was kept, such as 0.1, or 1 where all were";
            problems.add(section.entry(key).at, what, remedy);
        }
    }
    let [kept, trained] = keys.map(|key| section.number(key));
    // What was found wrong has been noted.
    let sampling = Sampling::new(kept, trained).unwrap_or_default();
    if sampling != Sampling::default() && views != [View::Binary] {
        let at = given_place(section, &keys).unwrap_or(section.at);
        let what = "negatives can be sampled of the view `binary` alone, and this model has others";
        problems.add(
            at,
            what,
            "remove [model.sampling], or give this model `views = [\"binary\"]`",
        );
    }
    sampling
}

fn judge(
    test: &Record,
    alert: &Record,
    sampling: Sampling,
    problems: &mut Problems<'_>,
) -> JudgeOptions {
    let replicates = u32::try_from(test.count("replicates")).unwrap_or(u32::MAX);
    let cells = test.entry("interval_cells");
    let interval_cells = test.integer("interval_cells").map(i64::unsigned_abs);
    if let Some(m) = interval_cells.filter(|m| !m.is_power_of_two()) {
        let what = format!("`interval_cells` is {m}, which is not a power of two");
        problems.add(cells.at, what, format!("write {}", m.next_power_of_two()));
    }
    let tolerance = test.number("tolerance");
    JudgeOptions {
        evaluation: Options {
            tcal: TCalOptions {
                alpha: test.number("alpha"),
                critical: match test.text("critical") {
                    Some("theorem") => Critical::Theorem,
                    Some("monte_carlo") => Critical::MonteCarlo { replicates },
                    _ => Critical::Moments,
                },
                sharing: match test.text("sharing") {
                    Some("bonferroni") => Sharing::Bonferroni,
                    _ => Sharing::Joint,
                },
                seed: test.integer("seed").unwrap_or(0).unsigned_abs(),
            },
            interval_cells,
            confidence: test.number("confidence"),
            null_reach: match test.text("interval_reach") {
                Some("paper") => NullReach::Paper {
                    lower_support: test.number("interval_lower_support"),
                },
                _ => NullReach::Conditional,
            },
            tolerance,
            discrete: match test.text("discrete") {
                Some("on") => DiscreteMode::On,
                Some("off") => DiscreteMode::Off,
                _ => DiscreteMode::Auto,
            },
            reliability_level: u32::try_from(test.count("reliability_level")).unwrap_or(1),
            distances: match test.text("distances") {
                Some("off") => Extent::Off,
                Some("all") => Extent::All,
                _ => Extent::Cheap,
            },
            sampling,
        },
        coverage_min: test.number("coverage_min"),
        min_events: test.integer("min_events").unwrap_or(1).unsigned_abs(),
        tolerance,
        pending_ms: alert.milliseconds("for"),
        keep_firing_ms: alert.milliseconds("keep_firing_for"),
        flap_within_ms: alert.milliseconds("flap_within"),
        stale_after_ms: alert.milliseconds("stale_after"),
        detector: None,
        compare: None,
        kernel: Keeping::default(),
    }
}

/// How the versions of a model are compared; said here what stands against it.
fn compare(record: &Record, root: &Record, problems: &mut Problems<'_>) -> Option<CompareOptions> {
    let section = record.child("model.compare");
    if !section.truth("enabled") {
        return None;
    }
    let at = section.entry("enabled").at;
    let mut refuse = |what: &str, remedy: &str| problems.add(at, what, remedy);
    if root.child("state").entry("topic").given && !section.entry("champion").given {
        refuse(
            "where partitions move with their state each pairs its own records, and two may not agree which \
             version came first",
            "name the version to which all others are compared in `champion`",
        );
    }
    let views = record.list("views").iter().map(|v| v.value.as_str());
    if views.clone().all(|v| v == "top_label") && views.count() > 0 {
        refuse(
            "of `top_label` the outcome is whether the version itself was right, so two versions are not scored \
             on the same outcome",
            "add the view `binary` or `class:0` to `views`, or remove `enabled`",
        );
    }
    let feeds = |s: &&Record| s.text("model").is_none() || s.text("model") == record.text("name");
    let sources: Vec<&Record> = root.all("source").iter().filter(feeds).collect();
    let field = |s: &Record, key: &str| s.child("source.fields").entry(key).given;
    if !sources.is_empty() && !sources.iter().any(|s| field(s, "id")) {
        refuse(
            "versions are compared by id, and no source of this model has one",
            "add `id` to [source.fields]",
        );
    }
    if sources.iter().any(|s| field(s, "weight")) {
        refuse(
            "versions are compared on events of equal weight, and events are weighted",
            "remove `enabled`",
        );
    }
    Some(CompareOptions {
        champion: section.owned("champion"),
        wait_ms: section.milliseconds("wait"),
        rows_max: section.count("rows_max"),
        alpha: 1.0 - section.number("confidence"),
    })
}

/// The sources: for each the client's options and the shape of its records.
pub fn sources(root: &Record, problems: &mut Problems<'_>) -> Vec<SourceOptions> {
    let records = root.all("source");
    if records.is_empty() {
        let remedy = "add `[[source]]` with `topics = [\"predictions\"]`";
        problems.add(
            root.at,
            "there is no [[source]], so nothing would be read",
            remedy,
        );
    }
    let shared = kafka(root, problems);
    topics_apart(records, problems);
    let mut out: Vec<SourceOptions> = Vec::with_capacity(records.len());
    for record in records {
        let name = source_name(record);
        if out.iter().any(|s| s.name == name) {
            let what = format!("two sources are called `{name}`");
            problems.add(record.at, what, "give each [[source]] a `name` of its own");
        }
        let mut kafka = shared.clone();
        if records.len() > 1 {
            kafka.group = format!("{}.{name}", shared.group);
        }
        kafka.topics = record.strings("topics");
        kafka.dead_letter = record.owned("dead_letter");
        kafka.start = match record.text("start") {
            Some("latest") => StartAt::Latest,
            _ => StartAt::Earliest,
        };
        kafka.truncated = match record.text("on_truncated") {
            Some("earliest") => Truncated::Earliest,
            Some("latest") => Truncated::Latest,
            _ => Truncated::Stop,
        };
        let decode = decode(root, record, problems);
        if let Err(error) = Decoder::new(&decode) {
            let remedy = "correct the paths of [source.fields]";
            problems.add(record.child("source.fields").at, error.to_string(), remedy);
        }
        let join = JoinOptions::of(record, &decode, problems);
        if let Some(join) = &join {
            kafka.topics.extend(join.topics.iter().cloned());
        }
        out.push(SourceOptions {
            name,
            kafka,
            decode,
            join,
        });
    }
    out
}

/// The name of a source: its own, or its first topic.
fn source_name(record: &Record) -> String {
    record
        .owned("name")
        .or_else(|| record.list("topics").first().map(|t| t.value.clone()))
        .unwrap_or_default()
}

/// No topic may be read twice, nor take dead letters and be read.
fn topics_apart(records: &[Record], problems: &mut Problems<'_>) {
    let mut read: BTreeMap<&str, Place> = BTreeMap::new();
    for record in records {
        let topics = record.list("topics");
        if topics.is_empty() {
            let at = record.entry("topics").at;
            problems.add(at, "`topics` is empty", "name at least one topic");
        }
        let outcomes = record.child("source.outcomes").list("topics");
        for topic in topics.iter().chain(outcomes) {
            if let Some(first) = read.insert(&topic.value, topic.at) {
                let what = format!(
                    "topic `{}` is read twice, first in line {}: every event would count twice",
                    topic.value, first.line
                );
                problems.add(topic.at, what, "remove one");
            }
        }
    }
    for record in records {
        let dead = record.entry("dead_letter");
        if let Some(topic) = record.text("dead_letter").filter(|t| read.contains_key(t)) {
            let what = format!("dead-letter topic `{topic}` is also read");
            problems.add(
                dead.at,
                what,
                "name another, or bad records come round for ever",
            );
        }
    }
}

/// What all sources share of the client's options.
fn kafka(root: &Record, problems: &mut Problems<'_>) -> KafkaOptions {
    let record = root.child("kafka");
    let mut options = BTreeMap::new();
    if let Value::Map(map) = &record.entry("options").value {
        for (name, given) in map {
            if let Some((_, why)) = OWNED.iter().find(|(owned, _)| owned == name) {
                let what = format!("kafka option `{name}` cannot be set: {why}");
                problems.add(given.at, what, "remove it");
            }
            options.insert(name.clone(), given.value.clone());
        }
    }
    let security = security(record, &mut options, problems);
    let queue_kbytes = record.bytes("queue_bytes_max").div_ceil(1024);
    KafkaOptions {
        brokers: record.owned("brokers").unwrap_or_default(),
        group: record.owned("group").unwrap_or_default(),
        instance: record.owned("instance"),
        security,
        record_bytes_max: root.child("limits").bytes("record_bytes_max"),
        queue_kbytes_max: u32::try_from(queue_kbytes).unwrap_or(u32::MAX),
        statistics_ms: u32::try_from(record.milliseconds("statistics_interval"))
            .unwrap_or(u32::MAX),
        options,
        ..KafkaOptions::default()
    }
}

/// Encryption and credentials. What has no typed option goes into the map, unless it is there.
fn security(
    kafka: &Record,
    options: &mut BTreeMap<String, String>,
    problems: &mut Problems<'_>,
) -> Security {
    let (tls, sasl) = (kafka.child("kafka.tls"), kafka.child("kafka.sasl"));
    let encrypted = tls.entry("enabled").value == Value::Truth(true);
    let rebuild = "build with `cargo build --release --features tls`";
    if encrypted && !TLS_BUILT {
        let what = "this binary was built without TLS";
        problems.add(tls.entry("enabled").at, what, rebuild);
    }
    let mechanism = sasl.owned("mechanism");
    if mechanism.as_deref().is_some_and(|m| m != "PLAIN") && !TLS_BUILT {
        let what = "this binary has PLAIN alone, the other mechanisms come with TLS";
        problems.add(sasl.entry("mechanism").at, what, rebuild);
    }
    let needed: &[&str] = match mechanism.as_deref() {
        None => &[],
        Some("OAUTHBEARER") => &["token_file"],
        Some(_) => &["username", "password"],
    };
    for key in needed {
        if !sasl.entry(key).given {
            let what = format!("[kafka.sasl] has a `mechanism` and no `{key}`");
            problems.add(sasl.at, what, format!("add `{key}`"));
        }
    }
    let useless = ["username", "password", "token_file"];
    if mechanism.is_none()
        && let Some(at) = given_place(sasl, &useless)
    {
        let remedy = "add `mechanism = \"SCRAM-SHA-512\"` or the one your brokers use";
        problems.add(
            at,
            "credentials without a `mechanism` would not be used",
            remedy,
        );
    }
    let file = |key: &str| tls.path(key).map(|p| p.display().to_string());
    let extra = [
        ("ssl.certificate.location", file("certificate_file")),
        ("ssl.key.location", file("key_file")),
        ("ssl.key.password", tls.owned("key_password")),
    ];
    for (name, value) in extra {
        if let Some(value) = value.filter(|_| encrypted) {
            options.entry(name.to_owned()).or_insert(value);
        }
    }
    let protocol = match (encrypted, mechanism.is_some()) {
        (false, false) => None,
        (true, false) => Some("ssl"),
        (false, true) => Some("sasl_plaintext"),
        (true, true) => Some("sasl_ssl"),
    };
    Security {
        protocol: protocol.map(str::to_owned),
        mechanism,
        username: sasl.owned("username"),
        password: sasl.owned("password"),
        ca_file: file("ca_file").filter(|_| encrypted),
        token_file: sasl.path("token_file").map(Path::to_path_buf),
    }
}

/// The place of the first of the keys that the file gives.
fn given_place(record: &Record, keys: &[&str]) -> Option<Place> {
    let given = |key: &&str| record.entry(key).given;
    keys.iter().find(|k| given(k)).map(|k| record.entry(k).at)
}

/// The shape of a source's records.
fn decode(root: &Record, source: &Record, problems: &mut Problems<'_>) -> DecodeOptions {
    let fields = source.child("source.fields");
    let limits = root.child("limits");
    let constant = |key: &str| source.owned(key).map(FieldOrConst::Const);
    DecodeOptions {
        model: constant("model")
            .or_else(|| fields.owned("model").map(FieldOrConst::Field))
            .unwrap_or(FieldOrConst::Const(String::new())),
        version: constant("model_version")
            .or_else(|| fields.owned("version").map(FieldOrConst::Field)),
        segments: fields.strings("segments"),
        id: fields.owned("id").map(id_field),
        time: fields.owned("time").map(|path| time_field(fields, path)),
        prediction: prediction(fields, problems),
        outcome: fields.owned("outcome").unwrap_or_default(),
        weight: fields.owned("weight"),
        classes: classes(root, source, problems),
        record_bytes_max: limits.bytes("record_bytes_max"),
        ahead_ms_max: Some(limits.milliseconds("future_max")),
        packing: packing(source),
        ..DecodeOptions::default()
    }
}

/// Where an id lies.
pub fn id_field(path: String) -> IdField {
    match path.as_str() {
        "@key" => IdField::Key,
        _ => IdField::Path(path),
    }
}

/// Where an event time lies; its unit stands beside it.
pub fn time_field(record: &Record, path: String) -> TimeField {
    TimeField {
        path,
        unit: match record.text("time_unit") {
            Some("s") => TimeUnit::Seconds,
            Some("us") => TimeUnit::Microseconds,
            Some("rfc3339") => TimeUnit::Rfc3339,
            _ => TimeUnit::Milliseconds,
        },
    }
}

/// Exactly one of the three forms of a prediction.
fn prediction(fields: &Record, problems: &mut Problems<'_>) -> PredictionField {
    type Form = fn(String) -> PredictionField;
    let forms: [(&str, Form); 3] = [
        ("score", PredictionField::Score),
        ("probabilities", PredictionField::Vector),
        ("class_probabilities", PredictionField::ClassMap),
    ];
    let mut found = None;
    for (key, form) in forms {
        let Some(path) = fields.owned(key) else {
            continue;
        };
        if found.is_some() {
            let what = format!("`{key}` is a second form of the prediction");
            let remedy = "keep one of `score`, `probabilities` and `class_probabilities`";
            problems.add(fields.entry(key).at, what, remedy);
        }
        found = found.or(Some(form(path)));
    }
    let given = forms.iter().any(|(key, _)| fields.entry(key).given);
    found.unwrap_or_else(|| {
        if given {
            // One was given and could not be read, which has been noted.
            return PredictionField::Score("score".to_owned());
        }
        let what = "[source.fields] does not say where the prediction lies";
        let remedy = "add `score = \"score\"`, `probabilities` or `class_probabilities`";
        problems.add(fields.at, what, remedy);
        PredictionField::Score("score".to_owned())
    })
}

/// The classes of a source: its own, those of its one model, or those that all models share.
fn classes(root: &Record, source: &Record, problems: &mut Problems<'_>) -> Vec<String> {
    if source.entry("classes").given {
        return source.strings("classes");
    }
    let models = root.all("model");
    if let Some(fixed) = source.text("model") {
        let named = |name: &str| models.iter().find(|m| m.text("name") == Some(name));
        let model = named(fixed).or_else(|| named(ANY));
        return model.map(|m| m.strings("classes")).unwrap_or_default();
    }
    let mut lists = models.iter().map(|m| m.entry("classes")).filter(has_items);
    let Some(first) = lists.next() else {
        return Vec::new();
    };
    if lists.any(|l| texts(l) != texts(first)) {
        let what = "the models have different `classes` and this source reads them all";
        let remedy = "give the source a fixed `model` or `classes` of its own";
        problems.add(source.at, what, remedy);
    }
    texts(first).into_iter().map(str::to_owned).collect()
}

fn has_items(entry: &&Entry) -> bool {
    !texts(entry).is_empty()
}

/// The strings of a list without their places.
fn texts(entry: &Entry) -> Vec<&str> {
    match &entry.value {
        Value::List(items) => items.iter().map(|p| p.value.as_str()).collect(),
        _ => Vec::new(),
    }
}

/// Where to listen.
pub fn http(root: &Record) -> HttpOptions {
    let listen = match root.child("http").entry("listen").value {
        Value::Address(address) => address,
        _ => ([127, 0, 0, 1], 9464).into(),
    };
    HttpOptions {
        listen,
        series_max: root.child("limits").count("series_max"),
    }
}

/// Where and how often to save. A relative directory starts at that of the file.
pub fn state(root: &Record, directory: &Path, problems: &mut Problems<'_>) -> StateOptions {
    let record = root.child("state");
    let interval_ms = record.milliseconds("interval");
    if interval_ms < 1000 {
        let at = record.entry("interval").at;
        let what = "`interval` is under a second: writing snapshots would be all the work";
        problems.add(at, what, "write \"1s\" or more");
    }
    StateOptions {
        directory: directory.join(record.path("directory").unwrap_or(&PathBuf::new())),
        interval_ms,
        topic: record.owned("topic"),
        restore_within_ms: record.milliseconds("restore_within"),
        fresh: record.text("on_broken") == Some("fresh"),
        records_max: record.count("records_max"),
    }
}

/// How to log. The directives are tried here, so that a typing error is known before the start.
pub fn log(root: &Record, problems: &mut Problems<'_>) -> LogOptions {
    let record = root.child("log");
    let filter = record.owned("level").unwrap_or_default();
    if let Err(error) = tracing_subscriber::EnvFilter::try_new(&filter) {
        let what = format!("`level` is \"{filter}\", which is not understood: {error}");
        let remedy =
            "write a level such as \"info\", or directives such as \"info,trueline=debug\"";
        problems.add(record.entry("level").at, what, remedy);
    }
    LogOptions {
        format: match record.text("format") {
            Some("human") => Format::Human,
            Some("json") => Format::Json,
            _ => Format::Auto,
        },
        filter,
    }
}
