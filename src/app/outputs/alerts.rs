//! Sends notifications of alerts: connects the engine with [`crate::notify`].
//!
//! It runs on the engine's thread and never waits. After each tick the changes become
//! notifications. Once a second the firing alerts are [compared](comparison) with the sent
//! notifications. If streams move between processes, the state of a notification [moves](handover)
//! with its stream.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::alert_facts::alert_facts;
use super::alert_requests::{Act, Order, accept_requests};
use super::alert_topic::topic_sink;
use super::caught_up::{ReadingClock, caught_up};
use super::lookup::Lookup;
use crate::alert::AlertState;
use crate::app::clock;
use crate::app::cluster::topology::Topology;
use crate::app::error::AppError;
use crate::http::page_path;
use crate::judge::{Change, Facts, Step, StreamId, alarm};
use crate::kafka::KafkaOptions;
use crate::notify::grouping::{AlertGroups, GroupBy, GroupChange, GroupId};
use crate::notify::notification::{Links, StreamFacts};
use crate::notify::notifier::links;
use crate::notify::{Host, Notification, Notifier, NotifyOptions, SinkOptions};
use crate::telemetry::Published;

mod comparison;
mod handover;

/// Time between two comparisons of the firing alerts with what was notified.
const COMPARE: Duration = Duration::from_secs(1);

/// The reason for ending an alert that grouping no longer produces.
const REGROUPED: &str = "alerts are now grouped differently";

/// Sends notifications. See the module.
pub struct AlertDispatcher {
    notifier: Notifier,
    options: NotifyOptions,
    /// Options of the brokers for sinks that are topics.
    kafka: Option<KafkaOptions>,
    groups: AlertGroups,
    /// The streams of a model may be in several processes, so each stream has its own alert.
    divided: bool,
    /// By fingerprint, why somebody closed an alert.
    closing: BTreeMap<String, String>,
    orders: Receiver<Order>,
    compared: Instant,
    /// Whether it had caught up at the last call.
    caught_up: bool,
    /// Measures how long an alert that does not fire could have been seen.
    reading: ReadingClock,
    /// When the sinks were last offered what fires; `None` after the start and after a change of
    /// sinks.
    offered: Option<Instant>,
}

impl AlertDispatcher {
    /// Opens the journal in the state directory, starts the sinks, and accepts silences and
    /// acknowledgements through `published`.
    pub fn start(
        options: NotifyOptions,
        directory: &Path,
        engine: &Topology,
        kafka: Option<&KafkaOptions>,
        host: &Arc<dyn Host>,
        published: &Arc<Published>,
    ) -> Result<AlertDispatcher, AppError> {
        let (moving, divided) = (engine.may_move(), engine.divides_models());
        // The seed of the jitter need only differ between processes.
        let seed = clock::now_ms().unsigned_abs() ^ u64::from(std::process::id()).rotate_left(32);
        let topic_sinks = |sink: &SinkOptions| topic_sink(kafka, sink);
        let notifier = Notifier::start(
            &options,
            directory,
            moving,
            &topic_sinks,
            host,
            clock::now_ms,
            seed,
        );
        let notifier = notifier.map_err(|e| AppError::Unavailable(format!("alerts: {e}")))?;
        if let Some(listener) = engine.delivery_listener() {
            notifier.listen(listener);
        }
        let (sender, orders) = channel();
        accept_requests(&notifier.control(), engine.plan(), sender, published);
        // Without the streams that already fire, an alert would consist of only the first stream
        // that changes.
        let mut groups = AlertGroups::new(group_by(&options, divided));
        let notified = |fingerprint: &str| notifier.firing_since(fingerprint);
        groups.sync(engine.reports().map(Arc::as_ref), notified);
        // What fires can be acknowledged at once.
        publish_alerts(engine, &groups, published);
        Ok(AlertDispatcher {
            notifier,
            groups,
            options,
            kafka: kafka.cloned(),
            divided,
            closing: BTreeMap::new(),
            orders,
            compared: Instant::now(),
            caught_up: false,
            reading: ReadingClock::default(),
            offered: None,
        })
    }

    /// Replaces the sinks and texts, and groups alerts as these options say. An error names the
    /// sink that failed, and then nothing changes.
    pub fn reload(&mut self, options: &NotifyOptions, engine: &Topology) -> Result<(), String> {
        let kafka = self.kafka.as_ref();
        let topic_sinks = |sink: &SinkOptions| topic_sink(kafka, sink);
        self.notifier.replace_sinks(options, &topic_sinks)?;
        self.offered = None;
        self.options = options.clone();
        let by = group_by(options, self.divided);
        if by != self.groups.by() {
            self.regroup(by, engine);
        }
        Ok(())
    }

    /// Groups alerts by other labels and ends those that no longer exist. The next comparison sends
    /// the new ones.
    fn regroup(&mut self, by: GroupBy, engine: &Topology) {
        let mut groups = AlertGroups::new(by);
        let notified = |fingerprint: &str| self.notifier.firing_since(fingerprint);
        groups.sync(engine.reports().map(Arc::as_ref), notified);
        let before = std::mem::replace(&mut self.groups, groups);
        let now_ms = clock::now_ms();
        let gone = before
            .open()
            .filter(|(id, _)| self.groups.get(id).is_none());
        for (id, _) in gone {
            self.notifier.withdraw(&id.fingerprint(), REGROUPED, now_ms);
        }
    }

    /// Sends the notifications of these changes and, once a second, those that are missing. Returns
    /// whether somebody changed what alerts rest on, so that it must be saved.
    pub fn dispatch(
        &mut self,
        changes: &[Change],
        engine: &mut Topology,
        published: &Published,
    ) -> bool {
        let now_ms = clock::now_ms();
        let left = self.follow_migrations(engine);
        let caught_up = caught_up(engine, published, now_ms, self.options.max_age_ms);
        // The changes since the last call may be the end of a backlog.
        let kept_up = std::mem::replace(&mut self.caught_up, caught_up) && caught_up;
        let lookup = Lookup::of(engine, published);
        // The checkpoint holds the last change of a stream that left, and its next owner sends it.
        for change in in_order(changes, &left) {
            self.notify_change(change, &lookup, now_ms, kept_up);
        }
        let stepped = changes
            .iter()
            .any(|c| matches!(c.step, Step::Stream { .. }));
        let due = self.compared.elapsed() >= COMPARE;
        if due {
            self.compared = Instant::now();
            self.reading
                .follow(engine, published, clock::steady_ms(), caught_up);
            self.compare(engine, &lookup, now_ms, caught_up);
        }
        drop(lookup);
        if due || stepped {
            publish_alerts(engine, &self.groups, published);
        }
        // After the comparison, which would otherwise forget a closed alert before its end is
        // notified.
        let saves = self.execute_orders(engine);
        let sinks = self.notifier.sinks();
        published.update(|facts| facts.sinks = sinks);
        if self.notifier.has_ended() {
            published.not_ready(
                "notifications",
                "their thread has ended, which is a bug: restart",
            );
        }
        saves
    }

    /// Sends a notification if the change of a stream's alert changes the alert of its group.
    fn notify_change(&mut self, change: &Change, lookup: &Lookup<'_>, now_ms: i64, kept_up: bool) {
        let (Step::Stream { to, .. }, Some(facts)) = (change.step, &change.facts) else {
            return;
        };
        let notified = |fingerprint: &str| self.notifier.firing_since(fingerprint);
        let Some((id, group_change)) = self.groups.step(&change.stream, &to, notified) else {
            return;
        };
        let known = StreamFacts {
            id: &change.stream,
            facts,
        };
        let notification = match group_change {
            GroupChange::Ended {
                since_ms,
                severity,
                bad_ms,
            } => {
                let why = self.closing.remove(&id.fingerprint()).unwrap_or_default();
                let (at_ms, links) = (change.at_ms, self.links(&change.stream));
                let ended = Notification::ended(&id, since_ms, severity, known, at_ms, &why, links);
                Some(Notification { bad_ms, ..ended })
            }
            GroupChange::Fires | GroupChange::Joined => {
                let fingerprint = id.fingerprint();
                // If it ends later, nobody has closed it.
                self.closing.remove(&fingerprint);
                // Old news waits until all is read; what still fires then is sent. The age does not
                // count the time that outcomes may take.
                let age_ms = now_ms.saturating_sub(change.at_ms + maturity_ms(facts));
                let old = !kept_up && age_ms > self.options.max_age_ms;
                let joined = group_change == GroupChange::Joined;
                // Thousands of streams may join at once, and building a notification looks at all
                // streams of its alert.
                let severity = self.groups.get(&id).map_or(to.severity, |g| g.severity);
                let labels = change.stream.labels(to.severity);
                let wants = || {
                    let notifier = &self.notifier;
                    notifier.wants_joined(&fingerprint, severity, &labels, now_ms)
                };
                let wanted = !joined || wants();
                let made = (wanted && !old)
                    .then(|| self.firing(&id, Some(known), change.at_ms, lookup))
                    .flatten();
                made.map(|n| Notification { joined, ..n })
            }
        };
        if let Some(notification) = notification {
            self.notifier.notify(notification, now_ms);
        }
    }

    /// The notification of an alert that fires. `known` has the stream that changed at `at_ms`,
    /// with its facts at that time.
    fn firing(
        &self,
        id: &GroupId,
        known: Option<StreamFacts<'_>>,
        at_ms: i64,
        lookup: &Lookup<'_>,
    ) -> Option<Notification> {
        let group = self.groups.get(id)?;
        let ranked = group.ranked(|id| lookup.report(id));
        let (worst, _) = ranked.first()?;
        let own = known.filter(|known| *known.id == worst.id);
        let facts = match own {
            Some(known) => known.facts.clone(),
            None => alarm::facts(worst, worst.alert, None)?.as_ref().clone(),
        };
        let stream = StreamFacts {
            id: &worst.id,
            facts: &facts,
        };
        let mut notification = Notification::firing(
            id,
            group.since_ms,
            group.severity,
            stream,
            at_ms,
            own.is_some(),
            self.links(&worst.id),
        );
        notification.bad_ms = group.bad_ms;
        notification.list(&ranked, |id| self.links(id).page);
        let silences = self.notifier.silences();
        let deployment = silences.deployment_of(&worst.id.model, &worst.id.version);
        notification.deployment = deployment.cloned();
        let caveats = lookup.caveats(worst);
        notification.evidence.push_str(&caveats);
        Some(notification)
    }

    /// Closes alerts and marks deployments, as people ask. Returns whether anything changed.
    fn execute_orders(&mut self, engine: &mut Topology) -> bool {
        let mut changed = false;
        while let Ok(order) = self.orders.try_recv() {
            let result = match &order.act {
                Act::Close { group, why } => {
                    let by = self.groups.by();
                    let found =
                        engine.start_over(|id| by.group_of(id) == *group, Some(why.as_str()));
                    if found.is_some_and(|n| n > 0) {
                        self.closing.insert(group.fingerprint(), why.clone());
                    }
                    found
                }
                Act::Deploy(marked) => {
                    let (model, version) = (&marked.model, marked.version.as_ref());
                    let of = |id: &StreamId| {
                        id.model == *model && version.is_none_or(|v| *v == id.version)
                    };
                    // A version that is about to be deployed has no streams yet.
                    let known = engine.reports().any(|r| r.id.model == *model);
                    let begun = engine.start_over(of, None);
                    begun.map(|n| n.max(usize::from(known)))
                }
            };
            changed |= result.is_some_and(|n| n > 0);
            if let Some(deployment) = order.answer(result) {
                self.notifier.record_deployment(deployment);
            }
        }
        changed
    }

    fn links(&self, id: &StreamId) -> Links {
        links(&self.options, &page_path(id))
    }

    /// Journal lines that could not be written, and notifications that were dropped because a queue
    /// was full.
    pub fn lost(&self) -> (u64, u64) {
        (self.notifier.write_errors(), self.notifier.dropped())
    }

    /// Ends within the given time, and hands what was delivered meanwhile to the engine.
    /// Undelivered notifications stay on disk.
    pub fn stop(mut self, within: Duration, engine: &mut Topology) {
        self.notifier.stop(within);
        self.carry_after(Duration::ZERO, engine);
    }
}

/// Publishes the alerts as people see them.
fn publish_alerts(engine: &Topology, groups: &AlertGroups, published: &Published) {
    let alerts = alert_facts(engine.reports().map(Arc::as_ref), groups).into();
    published.update(|facts| facts.alerts = alerts);
}

/// How long after its predictions a stream is judged, in ms.
fn maturity_ms(facts: &Facts) -> i64 {
    let detector = facts
        .evidence
        .as_ref()
        .and_then(|e| e.options.detector.as_ref());
    detector.map_or(0, |d| d.maturity_ms)
}

/// The labels by which streams are grouped into alerts.
fn group_by(options: &NotifyOptions, divided: bool) -> GroupBy {
    if divided {
        GroupBy::STREAM
    } else {
        options.group_by
    }
}

/// The changes of streams that did not leave, in order of time. At the same time, starts come
/// before ends, so that an alert that passes from one stream to another does not end.
fn in_order<'c>(changes: &'c [Change], left: &[StreamId]) -> Vec<&'c Change> {
    // A rebalance may revoke many streams, with as many changes.
    let left: HashSet<&StreamId> = left.iter().collect();
    let ours = changes.iter().filter(|c| !left.contains(&c.stream));
    let mut ours: Vec<&Change> = ours.collect();
    let ends =
        |c: &Change| !matches!(c.step, Step::Stream { to, .. } if to.state == AlertState::Firing);
    ours.sort_by_key(|c| (c.at_ms, ends(c)));
    ours
}

#[cfg(test)]
mod tests;
