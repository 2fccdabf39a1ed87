//! The topic that receives notifications: the client of the brokers for a sink of the kind `kafka`.

use crate::kafka::{KafkaOptions, Topic};
use crate::notify::{Kind, SinkOptions, TopicSink};

/// The topic of a sink, on the brokers of the sources; `None` for a sink of another kind.
pub fn topic_sink(
    kafka: Option<&KafkaOptions>,
    sink: &SinkOptions,
) -> Result<Option<TopicSink>, String> {
    let (Kind::Kafka, false, Some(kafka)) = (sink.kind, sink.dry_run, kafka) else {
        return Ok(None);
    };
    let topic = Topic::new(kafka, &sink.address, sink.timeout);
    let topic = topic.map_err(|e| format!("sink {}: {e}", sink.name))?;
    let name = sink.address.clone();
    Ok(Some(Box::new(move |key: &str, body: &str| {
        let (partition, offset) = topic.write(key, body).map_err(|why| {
            format!(
                "topic `{name}`: {why}; check that the topic exists and that this user may write to it"
            )
        })?;
        Ok(format!("partition {partition}, offset {offset}"))
    })))
}
