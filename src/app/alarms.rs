//! Alerts between the engine and those who are told: the wiring of [`crate::notify`].
//!
//! Belongs to the engine's thread. After each tick its changes become notices; once a second what fires is compared with what was told,
//! which finds alerts whose silence is over and those that nobody watches any more. Neither waits for anything.
//!
//! Where partitions move between processes, what was told of an alert goes with its stream: who gives the last partition of
//! a stream away neither ends nor repeats its alert from then on, and who takes it knows that people were told and tells the end. A
//! stream whose partitions lie in several processes is judged by each over its own part, and so is its alert.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clock;
use super::engines::Engines;
use super::fault::Fault;
use crate::alert::{Ack, AlertState};
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

/// Time between two comparisons of what fires with what was told.
const COMPARE: Duration = Duration::from_secs(1);

/// The way to an alerts topic.
struct Way(Topic);

impl TopicSink for Way {
    fn write(&mut self, key: &str, body: &str, _: Duration) -> Result<String, String> {
        let (partition, offset) = self.0.write(key, body)?;
        Ok(format!("partition {partition}, offset {offset}"))
    }
}

/// Makes the way to the topic of a sink, by the brokers that are read from.
pub fn carrier(
    kafka: Option<&KafkaOptions>,
    sink: &SinkOptions,
) -> Result<Option<Box<dyn TopicSink>>, String> {
    let (Kind::Kafka, false, Some(kafka)) = (sink.kind, sink.dry_run, kafka) else {
        return Ok(None);
    };
    let topic = Topic::new(kafka, &sink.address, sink.timeout);
    let topic = topic.map_err(|e| format!("sink {}: {e}", sink.name))?;
    Ok(Some(Box::new(Way(topic))))
}

/// See the module.
pub struct Alarms {
    notifier: Notifier,
    options: NotifyOptions,
    /// The brokers of topics that are sinks.
    kafka: Option<KafkaOptions>,
    compared: Instant,
}

impl Alarms {
    /// Opens the journal in the state directory, starts the sinks, and lets people speak through `published`.
    pub fn start(
        options: NotifyOptions,
        (directory, moving): (&Path, bool),
        kafka: Option<&KafkaOptions>,
        published: &Arc<Published>,
    ) -> Result<Alarms, Fault> {
        // Jitter must differ from process to process, and no more is asked of it.
        let seed = clock::now_ms().unsigned_abs() ^ u64::from(std::process::id()).rotate_left(32);
        let topic_sinks = |sink: &SinkOptions| carrier(kafka, sink);
        let notifier = Notifier::start(
            &options,
            (directory, moving),
            &topic_sinks,
            clock::now_ms,
            seed,
        );
        let notifier = notifier.map_err(|e| Fault::Unavailable(format!("alerts: {e}")))?;
        speak(&notifier.control(), published);
        Ok(Alarms {
            notifier,
            options,
            kafka: kafka.cloned(),
            compared: Instant::now(),
        })
    }

    /// Takes over other sinks and texts. An error names the sink that cannot be made, and changes nothing.
    pub fn renew(&mut self, options: &NotifyOptions) -> Result<(), String> {
        let kafka = self.kafka.as_ref();
        let topic_sinks = |sink: &SinkOptions| carrier(kafka, sink);
        self.notifier.replace_sinks(options, &topic_sinks)?;
        self.options = options.clone();
        Ok(())
    }

    /// Tells what changed, and now and then what is missing.
    pub fn tell(&mut self, changes: &[Change], engine: &mut Engines, published: &Published) {
        let now_ms = clock::now_ms();
        let left = self.follow(engine);
        // What was judged of a stream just before it left stands in its parcel, and its taker tells it.
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
            && let Some(told) = self.notifier.transfers()
        {
            engine.carry(told);
        }
        self.publish(published);
    }

    /// Goes along with the streams that moved; answers those that left.
    fn follow(&mut self, engine: &mut Engines) -> Vec<StreamId> {
        let moves = engine.moves();
        for id in &moves.left {
            self.notifier.release(&id.fingerprint());
        }
        for memory in moves.came {
            self.notifier.acquire(&AlertHandover {
                fingerprint: memory.stream.fingerprint(),
                transferred: memory.told,
                ended_ms: memory.alert.ended_ms,
            });
        }
        moves.left
    }

    fn compare(&mut self, engine: &Engines, now_ms: i64) {
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

    /// Lines of the journal that the disk did not take, and notices for which the way there was full.
    pub fn lost(&self) -> (u64, u64) {
        (self.notifier.write_errors(), self.notifier.dropped())
    }

    /// Ends within the time; what was not delivered is on disk.
    pub fn stop(self, within: Duration) {
        self.notifier.stop(within);
    }
}

/// Lets people silence and acknowledge.
fn speak(control: &AlertControl, published: &Arc<Published>) {
    let reader = control.clone();
    published.control.on_book(move || reader.book());
    let control = control.clone();
    // Weak, or the published state would hold itself.
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
