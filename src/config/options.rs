//! The checked options of sources, of the HTTP server and of state.

use crate::collect::join::JoinPlan;
use crate::decode::{DecodeOptions, OutcomeOptions};
use crate::http::AccessOptions;
use crate::kafka::KafkaOptions;
use crate::store::event_log::LogLimits;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Most topics of all sources together, because topics are numbered over all sources.
// The end of a range of numbers is one higher.
pub const TOPICS_MAX: usize = u16::MAX as usize - 1;

/// One source. `KafkaOptions` hides its secrets in `Debug`.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// Its name.
    pub name: String,
    /// The input of its records.
    pub input: Input,
    /// The options of the Kafka client.
    pub kafka: KafkaOptions,
    /// The shape of its records.
    pub decode: DecodeOptions,
    /// The join with separate outcomes, if any.
    pub join: Option<JoinOptions>,
    /// Names of the models that are configured.
    pub models: Vec<String>,
    /// How far apart in time two records of one id may be to count once; `None` if every record
    /// counts.
    pub deduplicate_ms: Option<i64>,
}

impl SourceOptions {
    /// The number of its topics. A configuration with more than [`TOPICS_MAX`] is refused.
    pub fn topic_count(&self) -> u16 {
        u16::try_from(self.kafka.topics.len()).unwrap_or(u16::MAX)
    }

    /// The topic with the outcomes of the predictions of `topic`: `topic` itself if it carries both
    /// kinds, `None` if it carries no predictions that wait for outcomes.
    pub fn outcomes_of(&self, topic: &str) -> Option<&str> {
        let outcomes = &self.join.as_ref()?.topics;
        let all = &self.kafka.topics;
        let predictions = &all[..all.len() - outcomes.len()];
        let at = predictions.iter().position(|of| of == topic)?;
        outcomes.get(at).or(predictions.get(at)).map(String::as_str)
    }
}

/// Where the records of a source come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// Topics of Kafka.
    #[default]
    Kafka,
    /// Requests to the HTTP server, through a log on disk.
    Http,
}

/// Posted events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventOptions {
    /// Limits of each log.
    pub limits: LogLimits,
    /// Longest body of a request.
    pub request_bytes_max: usize,
}

/// The HTTP server.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Most series on `/metrics`.
    pub series_max: usize,
    /// Most streams whose cells are exported as series.
    pub cell_streams_max: usize,
    /// Which requests are accepted.
    pub access: AccessOptions,
}

/// Snapshots and the state topic.
#[derive(Debug, Clone)]
pub struct StateOptions {
    /// Directory of the snapshots.
    pub directory: PathBuf,
    /// Milliseconds between snapshots.
    pub interval_ms: i64,
    /// The state topic.
    pub topic: Option<String>,
    /// `group` of `[kafka]`, under which the topic keeps state.
    pub namespace: String,
    /// Which process judges.
    pub verdicts: Verdicts,
    /// Number of judge partitions over which the models are spread; `None` if one process judges
    /// all.
    pub judge_partitions: Option<i32>,
    /// How long verdicts wait for a partition without new checkpoints, in ms.
    pub missing_after_ms: i64,
    /// Longest time to restore a partition, in ms.
    pub restore_within_ms: i64,
    /// Whether a partition with unusable state starts without it.
    pub fresh: bool,
    /// Most records of alert changes to keep.
    pub records_max: usize,
}

/// Which process judges, with a state topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdicts {
    /// Each process judges the partitions that it reads.
    #[default]
    Own,
    /// This process only counts, and another judges.
    None,
    /// This process only judges, namely what the others count.
    All,
}

/// The joins of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinOptions {
    /// Topics of the outcomes, one for each topic of the source; empty if those contain both.
    pub topics: Vec<String>,
    /// Shape of the outcomes.
    pub outcomes: OutcomeOptions,
    /// All other options, without source numbers yet.
    pub(super) plan: JoinPlan,
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::config::value::Outside;

    #[test]
    fn outcomes_come_on_the_topic_that_is_paired_with_that_of_the_predictions() {
        let source = |outcomes: &str| {
            let text = format!(
                "version = 1\n[kafka]\nbrokers = \"b:1\"\n[[source]]\ntopics = [\"fraud\", \"credit\"]\n\
                 [source.fields]\nscore = \"s\"\nid = \"id\"\n{outcomes}\n"
            );
            let mut config = Config::parse(&text, "test", &Outside::nothing()).expect("valid");
            config.sources.remove(0)
        };
        let names = ["fraud", "credit", "chargebacks", "repaid"];
        let of = |outcomes: &str| {
            let source = source(outcomes);
            names.map(|topic| source.outcomes_of(topic).map(str::to_owned))
        };
        let is = |expected: [Option<&str>; 4]| expected.map(|of| of.map(str::to_owned));
        assert_eq!(of(""), is([None; 4]));
        let section = "[source.outcomes]\nmaturity = \"1h\"\noutcome = \"y\"";
        assert_eq!(of(section), is([Some("fraud"), Some("credit"), None, None]));
        let own = format!("{section}\ntopics = [\"chargebacks\", \"repaid\"]");
        assert_eq!(
            of(&own),
            is([Some("chargebacks"), Some("repaid"), None, None])
        );
    }
}
