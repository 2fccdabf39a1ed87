//! Predictions whose outcomes come later, on two topics with as many partitions: some never, some
//! twice, some after their maturity, some predictions twice.

use std::time::{SystemTime, UNIX_EPOCH};

use super::sender::Sender;
use trueline::stats::rng::Rng;

/// A minute in milliseconds.
pub const MINUTE: i64 = 60_000;

/// The number that the environment gives, or the default.
pub fn of_environment(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|v| v.parse().ok());
    given.unwrap_or(default)
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a clock after 1970").as_millis() as i64
}

/// One record, and where it goes.
pub struct Record {
    /// Event time.
    pub time_ms: i64,
    /// Whether it is an outcome.
    pub outcome: bool,
    /// Partition of its topic.
    pub partition: i32,
    /// Its JSON.
    pub text: String,
}

/// What predictions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The score of one class.
    Scores,
    /// Probabilities of three.
    Vectors,
}

impl Kind {
    /// A score as it is said: of three classes that of the first is what the other two leave, which
    /// share it unevenly.
    fn prediction(self, id: &str, model: &str, time_ms: i64, score: f64) -> String {
        let said = match self {
            Kind::Scores => format!(r#""score":{score}"#),
            Kind::Vectors => {
                let third = score * (time_ms % 97) as f64 / 97.0;
                format!(
                    r#""probabilities":[{},{},{third}]"#,
                    1.0 - score,
                    score - third
                )
            }
        };
        format!(r#"{{"id":"{id}","model":"{model}","time_ms":{time_ms},{said}}}"#)
    }

    /// What happened; of three classes one of the last two where it is so.
    fn outcome(self, id: &str, time_ms: i64, y: bool) -> String {
        let said = match (self, y) {
            (Kind::Scores, y) => y.to_string(),
            (Kind::Vectors, false) => "0".to_owned(),
            (Kind::Vectors, true) => (1 + time_ms % 2).to_string(),
        };
        format!(r#"{{"id":"{id}","time_ms":{time_ms},"outcome":{said}}}"#)
    }
}

/// Predictions over the 100 minutes that ended ten minutes ago, a fifth without outcome, some
/// outcomes twice and some later than the five minutes that they have, some predictions twice.
pub fn records(n: u64, partitions: i32) -> Vec<Record> {
    records_of(Kind::Scores, n, partitions)
}

/// The same of this kind.
pub fn records_of(kind: Kind, n: u64, partitions: i32) -> Vec<Record> {
    let mut rng = Rng::new(20_261_121);
    // An event moves the watermark no further than its arrival: what closes the windows comes now.
    let begin = now_ms() - 155 * MINUTE;
    let step = (100 * MINUTE) as f64 / n as f64;
    let mut all = Vec::new();
    for id in 0..n {
        let partition = (id % partitions as u64) as i32;
        let at = begin + (id as f64 * step) as i64;
        let (score, model) = (rng.uniform(), id / partitions as u64 % 3);
        let happened = rng.uniform() < score;
        let mut put = |time_ms: i64, outcome: bool, text: String| {
            all.push(Record {
                time_ms,
                outcome,
                partition,
                text,
            });
        };
        let (id, model) = (id.to_string(), format!("m{model}"));
        let prediction = |time_ms, score| kind.prediction(&id, &model, time_ms, score);
        put(at, false, prediction(at, score));
        if rng.uniform() < 0.02 {
            let again = at + 1 + (rng.uniform() * 20_000.0) as i64;
            let other = if rng.uniform() < 0.5 {
                score
            } else {
                1.0 - score
            };
            put(again, false, prediction(again, other));
        }
        let mut delay = || (-(1.0 - rng.uniform()).ln() * MINUTE as f64 * 1.5) as i64;
        let (first, second) = (at + delay(), at + delay());
        let outcome = |time_ms, y| kind.outcome(&id, time_ms, y);
        let draw = rng.uniform();
        if draw >= 0.2 {
            put(first, true, outcome(first, happened));
        }
        if draw >= 0.95 {
            put(second, true, outcome(second, !happened));
        }
    }
    all.sort_by_key(|r| r.time_ms);
    all
}

/// A configuration that reads them: `group` and what else is to stand in its sections.
pub fn config(
    brokers: &str,
    group: &str,
    topics: &[String; 2],
    kafka: &str,
    state: &str,
) -> String {
    let [predictions, outcomes] = topics;
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{group}"
statistics_interval = "1s"
{kafka}
[[source]]
topics = ["{predictions}"]
[source.fields]
id = "id"
time = "time_ms"
score = "score"
[source.outcomes]
topics = ["{outcomes}"]
maturity = "5m"
time = "time_ms"
on_missing = "negative"
revise = true
[[model]]
name = "*"
windows = [{{ width = "30m", slide = "10m" }}, {{ width = "10h", slide = "10m" }}]
lateness = "30m"
[model.alert]
window_alerts = true
stale_after = "7d"
[http]
listen = "LISTEN"
[state]
directory = "STATE"
interval = "1s"
{state}
"#
    )
}

/// The same with so little memory for what waits that most of it goes to the disk.
pub fn spilling(config: &str) -> String {
    config.replace("revise = true", "revise = true\npending_memory = \"1MiB\"")
}

/// The same for vectors of three classes, by their largest, the two largest and a sample of whole
/// ones.
pub fn vectors(config: &str) -> String {
    let model = r#"name = "*"
classes = ["a", "b", "c"]
views = ["top_label", "top_k:2", "kernel"]
kernel = { sample = 40, bandwidth = 0.4, features = 4 }"#;
    config
        .replace("score = \"score\"", "probabilities = \"probabilities\"")
        .replace("on_missing = \"negative\"", "on_missing = \"a\"")
        .replace("name = \"*\"", model)
}

/// Queues records, each for the topic of its kind.
pub fn send(sender: &mut Sender, topics: &[String; 2], records: &[Record]) {
    for r in records {
        let topic = &topics[usize::from(r.outcome)];
        sender.send(topic, r.partition, r.text.as_bytes());
    }
}

/// Moves the watermark of every partition of both topics past all others.
pub fn close(sender: &mut Sender, topics: &[String; 2], partitions: i32) {
    close_of(Kind::Scores, sender, topics, partitions);
}

/// The same where records are of this kind.
pub fn close_of(kind: Kind, sender: &mut Sender, topics: &[String; 2], partitions: i32) {
    let time_ms = now_ms();
    for partition in 0..partitions {
        let id = format!("clock{partition}");
        let prediction = kind.prediction(&id, "clock", time_ms, 0.5);
        let outcome = kind.outcome(&id, time_ms, true);
        sender.send(&topics[0], partition, prediction.as_bytes());
        sender.send(&topics[1], partition, outcome.as_bytes());
    }
    sender.flush();
}
