//! Settings that are valid alone but not together: with them no window would be decided, or events
//! would be refused permanently.

use super::document::Record;
use super::feeds::feeds;
use super::inputs;
use super::ladder::shown;
use super::options::{Input, SourceOptions};
use super::problem::Problems;
use super::value::{Value, WindowValue};
use crate::judge::{ModelPlan, Plan};
use crate::stats::view::View;

/// Records the contradictions of a configuration.
pub fn check(root: &Record, plan: &Plan, sources: &[SourceOptions], problems: &mut Problems<'_>) {
    state_topic(root, problems);
    sink_topics(root, problems);
    implied_class(root, plan, sources, problems);
    champion_of_nothing(root, problems);
    for (record, model) in root.all("model").iter().zip(&plan.models) {
        single_scores(root, record, model, problems);
        let name = record.text("name").unwrap_or_default();
        let open = plan.caps.open_panes_max as i64;
        let panes = model.ladder.lateness_ms / model.ladder.pane_ms.max(1) + 1;
        if panes >= open {
            let what = format!(
                "`lateness` of model `{name}` keeps {panes} panes of {} open, and `open_panes_max` is {open}: after that \
                 time every event would be refused",
                shown(model.ladder.pane_ms)
            );
            let remedy = "shorten `lateness`, lengthen the shortest slide, or raise `open_panes_max` in [limits]";
            problems.add(record.entry("lateness").at, what, remedy);
        }
        too_short_to_decide(record, model.judge.min_events, problems);
    }
}

/// Reports windows by count that are smaller than a decision needs.
fn too_short_to_decide(record: &Record, min_events: u64, problems: &mut Problems<'_>) {
    let entry = record.entry("windows");
    let Value::Windows(items) = &entry.value else {
        return;
    };
    for item in items {
        if let WindowValue::Last(last) = item.value
            && last < min_events
        {
            let what = format!(
                "a window of the last {last} events never has the {min_events} of `min_events`: it would never be decided"
            );
            let remedy = "make the window longer, or lower `min_events` in [model.test]";
            problems.add(item.at, what, remedy);
        }
    }
}

/// Reports a model whose views need the probabilities of all classes while its sources have a
/// single score.
fn single_scores(root: &Record, record: &Record, model: &ModelPlan, problems: &mut Problems<'_>) {
    let mut sources = feeds(record, root).peekable();
    let fed = sources.peek().is_some();
    let single = sources.all(|source| source.child("source.fields").entry("score").given);
    if !fed || !single || model.views.is_empty() || model.views.contains(&View::Binary) {
        return;
    }
    let name = record.text("name").unwrap_or_default();
    let what = format!(
        "the views of model `{name}` need the probabilities of all classes, and its sources have a single `score`: every \
         record would be rejected"
    );
    let remedy = "add \"binary\" to `views`, or write `probabilities` or `class_probabilities` in [source.fields]";
    let at = record.given_position(&["views", "classes"]);
    problems.add(at.unwrap_or(record.at), what, remedy);
}

/// Reports a champion if nothing says whether models are compared.
fn champion_of_nothing(root: &Record, problems: &mut Problems<'_>) {
    let sections = || root.all("model").iter().map(|m| m.child("model.compare"));
    let mut champions = sections().map(|s| s.entry("champion"));
    if let Some(champion) = champions.find(|e| e.given)
        && !sections().any(|s| s.entry("enabled").given)
    {
        let what = "`champion` is set, and no model has `enabled` in [model.compare]";
        let remedy = "write `enabled = true`, or remove `champion`";
        problems.add(champion.at, what, remedy);
    }
}

/// Reports an implied class that no model has: all predictions without an outcome would count as
/// negative.
fn implied_class(
    root: &Record,
    plan: &Plan,
    sources: &[SourceOptions],
    problems: &mut Problems<'_>,
) {
    let classes = |m: &ModelPlan| match (m.views.contains(&View::Binary), m.classes.len()) {
        (true, _) => 2,
        (false, 0) => usize::MAX,
        (false, declared) => declared,
    };
    let most = plan.models.iter().map(classes).max().unwrap_or(usize::MAX);
    for (record, source) in root.all("source").iter().zip(sources) {
        let Some(join) = &source.join else {
            continue;
        };
        let outcomes = record.child("source.outcomes");
        if let Some(class) = join.plan.missing.class()
            && class as usize >= most
        {
            let what = format!(
                "`on_missing` is class {class}, and no model has more than {most}: predictions without outcome would \
                 count as negative"
            );
            let remedy = "write \"drop\", \"negative\", or a class that a model has";
            problems.add(outcomes.entry("on_missing").at, what, remedy);
        }
    }
}

/// Reports a state topic that is also read or receives dead letters.
fn state_topic(root: &Record, problems: &mut Problems<'_>) {
    let state = root.child("state");
    let Some(topic) = state.text("topic") else {
        return;
    };
    for source in root.all("source") {
        let outcomes = source.child("source.outcomes");
        let read = source.list("topics").iter().chain(outcomes.list("topics"));
        let mut names = read
            .map(|t| t.value.as_str())
            .chain(source.text("dead_letter"));
        if names.any(|name| name == topic) {
            let what = format!(
                "`topic` of [state] is `{topic}`, which a source reads or writes dead letters to"
            );
            problems.add(state.entry("topic").at, what, "name a topic of its own");
            return;
        }
    }
}

/// Reports topics of sinks that are also read or are the state topic.
fn sink_topics(root: &Record, problems: &mut Problems<'_>) {
    let sources = root.all("source").iter();
    let kafka = sources.filter(|source| inputs::input(source) == Input::Kafka);
    let read: Vec<&str> = kafka
        .flat_map(|source| {
            let outcomes = source.child("source.outcomes").list("topics");
            source.list("topics").iter().chain(outcomes)
        })
        .map(|topic| topic.value.as_str())
        .collect();
    let state = root.child("state").text("topic");
    let sinks = root.all("sink").iter();
    for sink in sinks.filter(|sink| sink.text("kind") == Some("kafka")) {
        let Some(topic) = sink.text("topic") else {
            continue;
        };
        let use_of_it = match (read.contains(&topic), state == Some(topic)) {
            (true, _) => "a source reads",
            (_, true) => "is `topic` of [state]",
            _ => continue,
        };
        let what = format!("`topic` of a sink is `{topic}`, which {use_of_it}");
        let at = sink.entry("topic").at;
        problems.add(at, what, "name a topic of its own for notifications");
    }
}
