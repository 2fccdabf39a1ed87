//! `[[model]]`: what to monitor, and how to judge it.
//!
//! This module checks what one value alone cannot show: a duplicate name, two windows of the same
//! length, a view of classes without classes. Each problem is recorded with the position of the
//! value to change. Reading continues, so that one run reports everything.

use crate::collect::{Caps, Segmenting};
use crate::judge::ANY_MODEL as ANY;
use crate::judge::{CompareOptions, JudgeOptions, ModelPlan, Plan};
use crate::stats::axis::{Axis, Grid};
use crate::stats::discrete::DiscreteMode;
use crate::stats::distance::Extent;
use crate::stats::evaluation::{DecideBy, Options};
use crate::stats::interval::NullReach;
use crate::stats::kernel::window::KernelOptions;
use crate::stats::sampling::Sampling;
use crate::stats::tcal::{Critical, Sharing, TCalOptions};
use crate::stats::view::View;

use super::detector::detectors;
use super::document::Record;
use super::feeds::feeds;
use super::ladder;
use super::problem::{Problems, TextPosition};
use super::value::Value;
use super::{vectors, views};

/// Fills the missing keys of every named model from `*`, and adds `*` if there is no model.
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

/// The models to monitor.
pub fn plan(root: &Record, problems: &mut Problems<'_>) -> Plan {
    let records = root.all("model");
    no_name_twice(records, problems);
    no_pattern(records, problems);
    let mut models: Vec<ModelPlan> = records.iter().map(|m| model(m, root, problems)).collect();
    let limits = root.child("limits");
    let streams_max = limits.count("streams_max");
    let detectors = detectors(root.child("detector"), streams_max, records, problems);
    for (model, detector) in models.iter_mut().zip(detectors) {
        // Bets need outcomes of equal weight.
        model.judge.detector = detector.filter(|_| !model.grid.is_weighted());
    }
    Plan {
        models,
        caps: Caps {
            streams_max,
            open_panes_max: limits.count("open_panes_max"),
            open_bytes_max: limits.bytes("open_memory"),
            expire_after_ms: limits.milliseconds("stream_expiry"),
            stalled_after_ms: limits.milliseconds("stalled_after"),
            future_max_ms: limits.milliseconds("future_max"),
            vector_cells_max: limits.count("vector_cells_max"),
            vector_versions_max: limits.count("vector_versions_max"),
            ids_max: limits.count("ids_max"),
        },
        ..Plan::default()
    }
}

/// Rejects two sections for one model.
fn no_name_twice(models: &[Record], problems: &mut Problems<'_>) {
    for (i, m) in models.iter().enumerate() {
        let name = m.entry("name");
        let mut before = models[..i].iter().map(|o| o.entry("name"));
        if let Some(first) = before.find(|o| o.given && o.value == name.value) {
            let what = format!(
                "model `{}` has two sections, the first in line {}",
                m.text("name").unwrap_or(""),
                first.at.line
            );
            problems.add(name.at, what, "merge them into one [[model]]");
        }
    }
}

/// Rejects a pattern: a name is compared as a whole, and only a lone `*` stands for all other
/// models.
fn no_pattern(models: &[Record], problems: &mut Problems<'_>) {
    for m in models {
        if let Some(name) = m.text("name").filter(|n| n.contains('*') && *n != ANY) {
            let what = format!("`name` is \"{name}\", and a name is no pattern");
            let remedy = "write a [[model]] for each name, or \"*\" for all models that have none";
            problems.add(m.entry("name").at, what, remedy);
        }
    }
}

fn model(record: &Record, root: &Record, problems: &mut Problems<'_>) -> ModelPlan {
    let classes = record.strings("classes");
    let views = views::views(record, &classes, problems);
    let level = u32::try_from(record.count("level")).unwrap_or(1);
    let test = record.child("model.test");
    let reliability = test.entry("reliability_level");
    if let Value::Integer(i) = reliability.value
        && i > i64::from(level)
    {
        let what = format!("`reliability_level` is {i}, finer than the model's `level` {level}");
        let remedy = format!("write at most {level}, or raise `level`");
        problems.add(reliability.at, what, remedy);
    }
    let sampling = sampling(record, &views, problems);
    let mut grid = Grid::new(axis(record, problems), level.clamp(1, 16));
    let weighted = weighted(record, root, problems);
    if weighted {
        grid = grid.weighted();
    }
    if clustered(record, root, problems) && !weighted {
        grid = grid.clustered();
        vectors::refuse_clustered(record, &views, problems);
    }
    vectors::check(record, &views, weighted, problems);
    let keeping = vectors::keeping(record, problems);
    ModelPlan {
        name: record.owned("name").unwrap_or_default(),
        classes,
        ladder: ladder::ladder(
            record.entry("windows"),
            record.milliseconds("lateness"),
            problems,
        ),
        grid,
        judge: JudgeOptions {
            compare: compare(record, root, &views, problems),
            kernel: keeping,
            ..judge(test, record.child("model.alert"), sampling, problems)
        },
        segmenting: segmenting(record, root),
        views,
    }
}

/// The position of a field that the sources of a model name. Reports a problem if only some name
/// it; `would` says what happens to events with the field.
fn of_all_sources(
    record: &Record,
    root: &Record,
    field: &str,
    would: &str,
    problems: &mut Problems<'_>,
) -> Option<TextPosition> {
    let entries = || feeds(record, root).map(|s| s.child("source.fields").entry(field));
    let first = entries().find(|e| e.given)?.at;
    if !entries().all(|e| e.given) {
        let name = record.text("name").unwrap_or_default();
        let what =
            format!("events of model `{name}` would {would} from this source and not from another");
        let remedy = format!("give all sources of a model a `{field}`, or each a fixed `model`");
        problems.add(first, what, remedy);
    }
    Some(first)
}

/// Whether the events of a model are weighted.
fn weighted(record: &Record, root: &Record, problems: &mut Problems<'_>) -> bool {
    if of_all_sources(record, root, "weight", "be weighted", problems).is_none() {
        return false;
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
    let alert = record.child("model.alert");
    if alert.text("budget").is_some_and(|b| b != "none") {
        let what = "the detector bets on outcomes of equal weight, and events are weighted";
        let remedy = "remove `budget`: windows are tested by weight";
        problems.add(alert.entry("budget").at, what, remedy);
    }
    if test.text("discrete") == Some("on") {
        let what =
            "the exact test of discrete scores has no weighted form, and events are weighted";
        let remedy = "leave `discrete` out";
        problems.add(test.entry("discrete").at, what, remedy);
    }
    true
}

/// Whether the events of a model are clustered.
fn clustered(record: &Record, root: &Record, problems: &mut Problems<'_>) -> bool {
    let Some(at) = of_all_sources(record, root, "cluster", "have clusters", problems) else {
        return false;
    };
    let weighted = |s: &Record| s.child("source.fields").entry("weight").given;
    if feeds(record, root).any(weighted) {
        let what = "`cluster` is given together with `weight`, and weighted events have no tests by cluster";
        problems.add(at, what, "remove one of them");
    }
    let test = record.child("model.test");
    let unsound = [
        ("critical", "moments"),
        ("interval_reach", "conditional"),
        ("discrete", "auto"),
    ];
    let mut independent = |key: &str, remedy: &str| {
        let text = test.text(key).unwrap_or_default();
        let what = format!(
            "`{key}` is \"{text}\", which takes events as independent, and they are clustered"
        );
        problems.add(test.entry(key).at, what, remedy);
    };
    for (key, sound) in unsound {
        let text = test.text(key);
        if text.is_some_and(|text| text != sound && text != "off") {
            independent(key, &format!("write \"{sound}\""));
        }
    }
    if test.text("decide_by") == Some("paper") {
        independent("decide_by", "write \"combined\" or \"tcal\"");
    }
    true
}

/// Options of the segments of a model. By default it has a roll-up if one of its sources has
/// segments.
fn segmenting(record: &Record, root: &Record) -> Segmenting {
    let split = feeds(record, root).any(|s| !s.child("source.fields").list("segments").is_empty());
    Segmenting {
        rollup: match record.entry("rollup").given {
            true => record.truth("rollup"),
            false => split,
        },
        max: record.count("segments_max"),
        other: record.text("segments_beyond") != Some("refused"),
    }
}

/// The axis; linear if its bounds are in the wrong order.
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

/// The rates at which negatives were sampled. They must be above 0 and, unless both are 1, `binary`
/// must be the model's only view.
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
    // Invalid values were reported before.
    let sampling = Sampling::new(kept, trained).unwrap_or_default();
    if sampling != Sampling::default() && views != [View::Binary] {
        let at = section.given_position(&keys).unwrap_or(section.at);
        let what = "negatives can be sampled of the view `binary` alone, and this model has others";
        let remedy = "remove [model.sampling], or give this model `views = [\"binary\"]`";
        problems.add(at, what, remedy);
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
    JudgeOptions {
        evaluation: Options {
            family: 1,
            decide_by: test.word("decide_by").unwrap_or(DecideBy::Combined),
            tcal: TCalOptions {
                alpha: test.number("alpha"),
                critical: match test.text("critical") {
                    Some("theorem") => Critical::Theorem,
                    Some("monte_carlo") => Critical::MonteCarlo { replicates },
                    _ => Critical::Moments,
                },
                sharing: test.word("sharing").unwrap_or(Sharing::Joint),
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
            tolerance: test.tolerance("tolerance"),
            discrete: test.word("discrete").unwrap_or(DiscreteMode::Auto),
            reliability_level: u32::try_from(test.count("reliability_level")).unwrap_or(1),
            distances: test.word("distances").unwrap_or(Extent::Cheap),
            sampling,
            overdispersion: None,
            correct_overdispersion: test.text("overdispersion") != Some("show"),
        },
        coverage_min: test.number("coverage_min"),
        min_events: test.integer("min_events").unwrap_or(1).unsigned_abs(),
        pending_ms: alert.milliseconds("for"),
        keep_firing_ms: alert.milliseconds("keep_firing_for"),
        flap_within_ms: alert.milliseconds("flap_within"),
        window_alerts: alert.truth("window_alerts"),
        stale_after_ms: alert.milliseconds("stale_after"),
        detector: None,
        compare: None,
        kernel: KernelOptions::default(),
    }
}

/// Options of the comparisons of versions. Reports problems that prevent them.
fn compare(
    record: &Record,
    root: &Record,
    views: &[View],
    problems: &mut Problems<'_>,
) -> Option<CompareOptions> {
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
    if !views.is_empty() && views.iter().all(|v| *v == View::TopLabel) {
        refuse(
            "of `top_label` the outcome is whether the version itself was right, so two versions are not scored \
             on the same outcome",
            "add the view `binary` or `class:0` to `views`, or remove `enabled`",
        );
    }
    let sources: Vec<&Record> = feeds(record, root).collect();
    let field = |s: &Record, key: &str| s.child("source.fields").entry(key).given;
    if !sources.is_empty() && !sources.iter().any(|s| field(s, "id")) {
        refuse(
            "versions are compared by id, and no source of this model has one",
            "add `id` to [source.fields]",
        );
    }
    let versioned = |s: &&Record| field(s, "version") || s.entry("model_version").given;
    if !sources.is_empty() && !sources.iter().any(versioned) {
        refuse(
            "no source of this model has versions, so nothing would be compared",
            "add `version` to [source.fields], or `model_version` to each [[source]]",
        );
    }
    if sources.iter().any(|s| field(s, "weight")) {
        refuse(
            "versions are compared on events of equal weight, and events are weighted",
            "remove `enabled`",
        );
    }
    if sources.iter().any(|s| field(s, "cluster")) {
        refuse(
            "versions are compared on independent events, and events are clustered",
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
