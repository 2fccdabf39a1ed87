//! The names of topics: what Kafka accepts, and no topic in two roles.
//!
//! A topic that is read twice would count every event twice. A topic that is read and receives dead
//! letters would circulate its rejected records for ever.

use std::collections::BTreeMap;

use super::document::Record;
use super::options::TOPICS_MAX;
use super::problem::{Problems, TextPosition};

/// Longest name of a topic.
const NAME_MAX: usize = 249;

/// Checks all topics of the file.
pub fn check(root: &Record, problems: &mut Problems<'_>) {
    let sources = root.all("source");
    let mut read: BTreeMap<&str, TextPosition> = BTreeMap::new();
    for record in sources {
        let topics = record.list("topics");
        if topics.is_empty() {
            let at = record.entry("topics").at;
            problems.add(at, "`topics` is empty", "name at least one topic");
        }
        let outcomes = record.child("source.outcomes").list("topics");
        for topic in topics.iter().chain(outcomes) {
            check_name(&topic.value, topic.at, problems);
            if let Some(first) = read.insert(&topic.value, topic.at) {
                let what = format!(
                    "topic `{}` is read twice, first in line {}: every event would count twice",
                    topic.value, first.line
                );
                problems.add(topic.at, what, "remove one");
            }
        }
    }
    if let Some(last) = sources.last().filter(|_| read.len() > TOPICS_MAX) {
        let what = format!("there are {} topics, more than {TOPICS_MAX}", read.len());
        let at = last.entry("topics").at;
        problems.add(at, what, "read them with several processes");
    }
    for record in sources {
        let dead = record.entry("dead_letter");
        if let Some(topic) = record.text("dead_letter").filter(|t| read.contains_key(t)) {
            let what = format!("dead-letter topic `{topic}` is also read");
            let remedy = "name another, or bad records come round for ever";
            problems.add(dead.at, what, remedy);
        }
    }
    let dead_letters = sources.iter().map(|source| (source, "dead_letter"));
    let sinks = root.all("sink").iter().map(|sink| (sink, "topic"));
    let others = dead_letters
        .chain(sinks)
        .chain([(root.child("state"), "topic")]);
    for (record, key) in others {
        if let Some(topic) = record.text(key) {
            check_name(topic, record.entry(key).at, problems);
        }
    }
}

/// Checks a name as Kafka does.
fn check_name(name: &str, at: TextPosition, problems: &mut Problems<'_>) {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let fits = (1..=NAME_MAX).contains(&name.len()) && !matches!(name, "." | "..");
    if !fits || !name.bytes().all(plain) {
        let what = format!("`{name}` is no name of a topic");
        let remedy = format!("write letters, digits, `.`, `_` and `-`, at most {NAME_MAX}");
        problems.add(at, what, remedy);
    }
}
