//! Sends notifications of alerts: connects the engine with [`crate::notify`].
//!
//! This is part of the engine's thread and never waits. After each tick the changes become notices. Once a
//! second the firing alerts are compared with what was notified, which finds alerts whose silence has
//! ended and notified alerts of streams that are gone.
//!
//! Where partitions move between processes, the state of a notification moves with its stream. The
//! process that gives up the last partition of a stream neither resolves nor repeats its alert from then
//! on; the next owner knows that people were notified and sends the end. A stream whose partitions lie in
//! several processes is judged, and notified, by each process over its own partitions.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::alert::{Ack, AlertState};
use crate::app::clock;
use crate::app::cluster::topology::Topology;
use crate::app::error::AppError;
use crate::http::page_path;
use crate::judge::{Change, StreamId, StreamReport, alarm};
use crate::kafka::{KafkaOptions, Topic};
use crate::notify::notification::Links;
use crate::notify::notifier::{Firing, links};
use crate::notify::{
    AlertControl, AlertHandover, Kind, Notification, Notifier, NotifyOptions, SinkOptions,
    TopicSink,
};
use crate::telemetry::Published;
use crate::telemetry::control::{AlertRequest, AlertResponse};

/// Time between two comparisons of the firing alerts with what was notified.
const COMPARE: Duration = Duration::from_secs(1);

/// A topic that receives notifications.
struct AlertTopic(Topic);

impl TopicSink for AlertTopic {
    fn write(&mut self, key: &str, body: &str, _: Duration) -> Result<String, String> {
        let (partition, offset) = self.0.write(key, body)?;
        Ok(format!("partition {partition}, offset {offset}"))
    }
}

/// The topic of a sink, on the brokers of the sources; `None` for a sink of another kind.
pub fn topic_sink(
    kafka: Option<&KafkaOptions>,
    sink: &SinkOptions,
) -> Result<Option<Box<dyn TopicSink>>, String> {
    let (Kind::Kafka, false, Some(kafka)) = (sink.kind, sink.dry_run, kafka) else {
        return Ok(None);
    };
    let topic = Topic::new(kafka, &sink.address, sink.timeout);
    let topic = topic.map_err(|e| format!("sink {}: {e}", sink.name))?;
    Ok(Some(Box::new(AlertTopic(topic))))
}

/// Sends notifications. See the module.
pub struct AlertDispatcher {
    notifier: Notifier,
    options: NotifyOptions,
    /// The brokers of sinks that are topics.
    kafka: Option<KafkaOptions>,
    compared: Instant,
}

impl AlertDispatcher {
    /// Opens the journal in the state directory, starts the sinks, and accepts silences and
    /// acknowledgements through `published`.
    pub fn start(
        options: NotifyOptions,
        (directory, moving): (&Path, bool),
        kafka: Option<&KafkaOptions>,
        published: &Arc<Published>,
    ) -> Result<AlertDispatcher, AppError> {
        // The seed of the jitter only has to differ between processes.
        let seed = clock::now_ms().unsigned_abs() ^ u64::from(std::process::id()).rotate_left(32);
        let topic_sinks = |sink: &SinkOptions| topic_sink(kafka, sink);
        let notifier = Notifier::start(
            &options,
            (directory, moving),
            &topic_sinks,
            clock::now_ms,
            seed,
        );
        let notifier = notifier.map_err(|e| AppError::Unavailable(format!("alerts: {e}")))?;
        accept_requests(&notifier.control(), published);
        Ok(AlertDispatcher {
            notifier,
            options,
            kafka: kafka.cloned(),
            compared: Instant::now(),
        })
    }

    /// Replaces the sinks and texts. An error names the sink that failed, and then nothing changes.
    pub fn reload(&mut self, options: &NotifyOptions) -> Result<(), String> {
        let kafka = self.kafka.as_ref();
        let topic_sinks = |sink: &SinkOptions| topic_sink(kafka, sink);
        self.notifier.replace_sinks(options, &topic_sinks)?;
        self.options = options.clone();
        Ok(())
    }

    /// Sends the notifications of these changes and, once a second, those that are missing.
    pub fn dispatch(&mut self, changes: &[Change], engine: &mut Topology, published: &Published) {
        let now_ms = clock::now_ms();
        let left = self.follow_moves(engine);
        // The checkpoint holds the last change of a stream that left, and its next owner sends it.
        for change in changes.iter().filter(|c| !left.contains(&c.stream)) {
            if let Some(notice) = Notification::of(change, self.links(&change.stream)) {
                self.notifier.notify(notice, now_ms);
            }
        }
        if self.compared.elapsed() >= COMPARE {
            self.compared = Instant::now();
            self.compare(engine, now_ms);
        }
        if engine.may_move()
            && let Some(notified) = self.notifier.transfers()
        {
            engine.carry(notified);
        }
        self.publish(published);
    }

    /// Passes moved streams to the notifier; returns the streams that left.
    fn follow_moves(&mut self, engine: &mut Topology) -> Vec<StreamId> {
        let moves = engine.moves();
        for id in &moves.left {
            self.notifier.release(&id.fingerprint());
        }
        for memory in moves.came {
            self.notifier.acquire(&AlertHandover {
                fingerprint: memory.stream.fingerprint(),
                transferred: memory.notified,
                ended_ms: memory.alert.ended_ms,
            });
        }
        moves.left
    }

    /// Sends notifications of firing alerts that are missing.
    fn compare(&mut self, engine: &Topology, now_ms: i64) {
        let fires = |r: &&StreamReport| r.alert.state == AlertState::Firing;
        let reports: Vec<&StreamReport> = engine.reports().filter(fires).collect();
        let firing = reports.iter().map(|r| Firing {
            fingerprint: r.id.fingerprint(),
            since_ms: r.alert.since_ms.unwrap_or_default(),
            severity: r.alert.severity,
        });
        let firing: Vec<Firing> = firing.collect();
        let missing = self.notifier.compare(&firing, now_ms);
        for (report, alert) in reports.iter().zip(&firing) {
            if missing.contains(&alert.fingerprint)
                && let Some(facts) = alarm::facts(report, report.alert, None)
            {
                let at_ms = report.alert.bad_ms.unwrap_or(alert.since_ms);
                let links = self.links(&report.id);
                let notice = Notification::firing(&report.id, &facts, at_ms, links);
                self.notifier.notify(notice, now_ms);
            }
        }
    }

    fn links(&self, id: &StreamId) -> Links {
        links(&self.options, &page_path(id))
    }

    fn publish(&self, published: &Published) {
        let sinks = self.notifier.sinks();
        if !sinks.is_empty() {
            published.update(|facts| facts.sinks = sinks);
        }
    }

    /// Journal lines that could not be written, and notices that were dropped because a queue was full.
    pub fn lost(&self) -> (u64, u64) {
        (self.notifier.write_errors(), self.notifier.dropped())
    }

    /// Ends within the given time. Undelivered notices stay on disk.
    pub fn stop(self, within: Duration) {
        self.notifier.stop(within);
    }
}

/// Accepts silences and acknowledgements.
fn accept_requests(control: &AlertControl, published: &Arc<Published>) {
    let reader = control.clone();
    published.control.on_book(move || reader.book());
    let control = control.clone();
    // Weak, because the published state would otherwise own itself.
    let reports = Arc::downgrade(published);
    published.control.on_alert_request(move |asked| {
        let now_ms = clock::now_ms();
        match asked {
            AlertRequest::Silence {
                matchers,
                until_ms,
                by,
                note,
            } => match control.silence(matchers, (now_ms, until_ms), &by, &note) {
                Ok(silence) => AlertResponse::Silenced(silence),
                Err(why) => AlertResponse::Refused(why),
            },
            AlertRequest::Lift(id) => match control.lift(id) {
                Ok(true) => AlertResponse::Done,
                Ok(false) => AlertResponse::Unknown,
                Err(why) => AlertResponse::Refused(why),
            },
            AlertRequest::Acknowledge {
                fingerprint,
                by,
                note,
            } => {
                let reports = reports.upgrade().map(|p| p.reports()).unwrap_or_default();
                let fires = |r: &&Arc<StreamReport>| {
                    r.alert.state == AlertState::Firing && r.id.fingerprint() == fingerprint
                };
                let Some(since_ms) = reports.iter().find(fires).and_then(|r| r.alert.since_ms)
                else {
                    return AlertResponse::Unknown;
                };
                let ack = Ack {
                    by,
                    note,
                    at_ms: now_ms,
                    since_ms,
                };
                match control.acknowledge(&fingerprint, ack.clone()) {
                    Ok(()) => AlertResponse::Acknowledged(ack),
                    Err(why) => AlertResponse::Refused(why),
                }
            }
        }
    });
}
