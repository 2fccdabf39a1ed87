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
use crate::notify::notice::Links;
use crate::notify::notifier::{Firing, links};
use crate::notify::{Arrival, Carrier, Clerk, Kind, Notice, Notifier, NotifyOptions, SinkOptions};
use crate::telemetry::Published;
use crate::telemetry::control::{Asked, Told};
use crate::telemetry::published::SinkFacts;

/// Time between two comparisons of the firing alerts with what was notified.
const COMPARE: Duration = Duration::from_secs(1);

/// A topic that receives notifications.
struct TopicSink(Topic);

impl Carrier for TopicSink {
    fn carry(&mut self, key: &str, body: &str, _: Duration) -> Result<String, String> {
        let (partition, offset) = self.0.write(key, body)?;
        Ok(format!("partition {partition}, offset {offset}"))
    }
}

/// The topic of a sink, on the brokers of the sources; `None` for a sink of another kind.
pub fn topic_sink(
    kafka: Option<&KafkaOptions>,
    sink: &SinkOptions,
) -> Result<Option<Box<dyn Carrier>>, String> {
    let (Kind::Kafka, false, Some(kafka)) = (sink.kind, sink.dry_run, kafka) else {
        return Ok(None);
    };
    let topic = Topic::new(kafka, &sink.address, sink.timeout);
    let topic = topic.map_err(|e| format!("sink {}: {e}", sink.name))?;
    Ok(Some(Box::new(TopicSink(topic))))
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
        let carriers = |sink: &SinkOptions| topic_sink(kafka, sink);
        let notifier = Notifier::start(
            &options,
            (directory, moving),
            &carriers,
            clock::now_ms,
            seed,
        );
        let notifier = notifier.map_err(|e| AppError::Unavailable(format!("alerts: {e}")))?;
        accept_requests(&notifier.clerk(), published);
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
        let carriers = |sink: &SinkOptions| topic_sink(kafka, sink);
        self.notifier.renew(options, &carriers)?;
        self.options = options.clone();
        Ok(())
    }

    /// Sends the notifications of these changes and, once a second, those that are missing.
    pub fn dispatch(&mut self, changes: &[Change], engine: &mut Topology, published: &Published) {
        let now_ms = clock::now_ms();
        let left = self.follow_moves(engine);
        // The checkpoint holds the last change of a stream that left, and its next owner sends it.
        for change in changes.iter().filter(|c| !left.contains(&c.stream)) {
            if let Some(notice) = Notice::of(change, self.links(&change.stream)) {
                self.notifier.take(notice, now_ms);
            }
        }
        if self.compared.elapsed() >= COMPARE {
            self.compared = Instant::now();
            self.compare(engine, now_ms);
        }
        if engine.may_move()
            && let Some(notified) = self.notifier.carried()
        {
            engine.carry(notified);
        }
        self.publish(published);
    }

    /// Passes moved streams to the notifier; returns the streams that left.
    fn follow_moves(&mut self, engine: &mut Topology) -> Vec<StreamId> {
        let moves = engine.moves();
        for id in &moves.left {
            self.notifier.left(&id.fingerprint());
        }
        for memory in moves.came {
            self.notifier.came(&Arrival {
                fingerprint: memory.stream.fingerprint(),
                carried: memory.told,
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
                let notice = Notice::firing(&report.id, &facts, at_ms, links);
                self.notifier.take(notice, now_ms);
            }
        }
    }

    fn links(&self, id: &StreamId) -> Links {
        links(&self.options, &page_path(id))
    }

    fn publish(&self, published: &Published) {
        let counts = self.notifier.counts();
        if counts.is_empty() {
            return;
        }
        let facts = counts.into_iter().map(|sink| SinkFacts {
            name: sink.name,
            sent: sink.counts.sent,
            failed: sink.counts.failed,
            retried: sink.counts.retried,
            dropped: sink.counts.dropped,
            queued: sink.counts.queued,
            last_success_ms: sink.counts.last_success_ms,
            trouble: sink.counts.trouble,
        });
        let facts: Vec<SinkFacts> = facts.collect();
        published.update(|all| all.sinks = facts);
    }

    /// Journal lines that could not be written, and notices that were dropped because a queue was full.
    pub fn lost(&self) -> (u64, u64) {
        (self.notifier.faults(), self.notifier.refused())
    }

    /// Ends within the given time. Undelivered notices stay on disk.
    pub fn stop(self, within: Duration) {
        self.notifier.stop(within);
    }
}

/// Accepts silences and acknowledgements.
fn accept_requests(clerk: &Clerk, published: &Arc<Published>) {
    let reader = clerk.clone();
    published.control.on_book(move || reader.book());
    let clerk = clerk.clone();
    // Weak, because the published state would otherwise own itself.
    let reports = Arc::downgrade(published);
    published.control.on_ask(move |asked| {
        let now_ms = clock::now_ms();
        match asked {
            Asked::Silence {
                matchers,
                until_ms,
                by,
                note,
            } => match clerk.silence(matchers, (now_ms, until_ms), &by, &note) {
                Ok(silence) => Told::Silenced(silence),
                Err(why) => Told::Refused(why),
            },
            Asked::Lift(id) => match clerk.lift(id) {
                Ok(true) => Told::Done,
                Ok(false) => Told::Unknown,
                Err(why) => Told::Refused(why),
            },
            Asked::Acknowledge {
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
                    return Told::Unknown;
                };
                let ack = Ack {
                    by,
                    note,
                    at_ms: now_ms,
                    since_ms,
                };
                match clerk.acknowledge(&fingerprint, ack.clone()) {
                    Ok(()) => Told::Acknowledged(ack),
                    Err(why) => Told::Refused(why),
                }
            }
        }
    });
}
