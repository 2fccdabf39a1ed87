//! `input` of a source, and the other keys that it allows.

use super::Input;
use super::document::Record;
use super::problem::Problems;

/// Longest name of a topic of posted events: it becomes a folder and part of a URL.
const TOPIC_MAX: usize = 100;

/// Where the records of a source come from.
pub fn input(record: &Record) -> Input {
    record.word("input").unwrap_or_default()
}

/// Checks `input` of all sources against the other keys.
pub fn check(root: &Record, problems: &mut Problems<'_>) {
    let (kafka, state) = (root.child("kafka"), root.child("state"));
    let sources = root.all("source");
    let reads = sources.iter().any(|s| input(s) == Input::Kafka) || sources.is_empty();
    let posted = root.all("source").iter().find(|s| input(s) == Input::Http);
    if reads && !kafka.entry("brokers").given {
        let what = "[kafka] has no `brokers`";
        let remedy = "add `brokers = \"localhost:9092\"`, or `input = \"http\"` to each [[source]] whose events \
                      are posted";
        problems.add(kafka.at, what, remedy);
    }
    let Some(posted) = posted else { return };
    if state.text("topic").is_some() {
        let what = "a source has `input = \"http\"`, and its log cannot move between processes with the topic of state";
        let remedy = "remove `topic` of [state], or send the events to Kafka";
        problems.add(posted.entry("input").at, what, remedy);
    }
    for sink in root.all("sink") {
        if sink.text("kind") == Some("kafka") && kafka.text("brokers").is_none() {
            let what = "a sink has `kind = \"kafka\"`, and [kafka] has no `brokers`";
            problems.add(sink.at, what, "add `brokers` to [kafka]");
        }
    }
    for source in sources.iter().filter(|s| input(s) == Input::Http) {
        check_posted(source, problems);
    }
}

/// Rejects keys that a source of posted events cannot have.
fn check_posted(source: &Record, problems: &mut Problems<'_>) {
    if source.text("dead_letter").is_some() {
        let what = "a source with `input = \"http\"` has no dead letters: a request with a bad event is refused";
        problems.add(source.entry("dead_letter").at, what, "remove `dead_letter`");
    }
    if source.text("format").is_some_and(|format| format != "json") {
        let what = "posted events are JSON";
        problems.add(source.entry("format").at, what, "remove `format`");
    }
    let outcomes = source.child("source.outcomes").list("topics");
    for topic in source.list("topics").iter().chain(outcomes) {
        let name = topic.value.as_str();
        if name.len() > TOPIC_MAX || name.starts_with('.') {
            let what = format!("topic `{name}` cannot be part of a path");
            let remedy = format!("write at most {TOPIC_MAX} characters, and no `.` in front");
            problems.add(topic.at, what, remedy);
        }
    }
}
