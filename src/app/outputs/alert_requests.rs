//! Requests of people about alerts: silences, acknowledgements, ends and deployments.
//!
//! Requests arrive on the threads of HTTP, which write silences and acknowledgements to the
//! journal. An end or a deployment changes what the engine judges, so the engine's thread executes
//! it, between two ticks.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::alert::{Ack, AlertState, Deployment, Silences};
use crate::app::clock;
use crate::judge::Plan;
use crate::notify::AlertControl;
use crate::notify::grouping::GroupId;
use crate::telemetry::Published;
use crate::telemetry::control::{AlertRequest, AlertResponse};
use crate::telemetry::facts::AlertFacts;

/// An order of a person, which the engine's thread executes.
pub struct Order {
    /// What to do.
    pub act: Act,
    /// Receives the number of streams, 0 if nothing has this name; `None` if this process does not
    /// judge.
    pub reply: SyncSender<Option<usize>>,
    /// Set by whichever comes first: the engine when it answers, or the requester when it stops
    /// waiting.
    settled: Arc<AtomicBool>,
}

impl Order {
    /// Sends the result to the requester. If the requester no longer waits, returns the deployment
    /// that was marked, so that the engine's thread writes it down.
    pub fn answer(self, result: Option<usize>) -> Option<Deployment> {
        let waits =
            !self.settled.swap(true, Ordering::AcqRel) && self.reply.try_send(result).is_ok();
        let done = result.is_some_and(|streams| streams > 0);
        match self.act {
            Act::Deploy(deployment) if done && !waits => Some(deployment),
            Act::Deploy(_) | Act::Close { .. } => None,
        }
    }
}

/// What the engine's thread is to do.
pub enum Act {
    /// Ends the alert; from now on it rests on new data only.
    Close {
        /// The alert.
        group: GroupId,
        /// Who closed it, and why.
        why: String,
    },
    /// From now on, the alerts of a model, or of one version of it, rest on new data only.
    Deploy(Deployment),
}

/// How long the engine may take for an order: longer than any poll, shorter than the timeout of a
/// client.
const REPLY_WITHIN: Duration = Duration::from_secs(5);

/// The answer of a process that only counts or stands by.
const ANOTHER_JUDGES: &str = "another process judges; ask that one";

/// Handles requests about alerts on the threads of HTTP.
struct Requests {
    control: AlertControl,
    orders: Mutex<Sender<Order>>,
    /// The models as they were at the start: a reload adds no model and no view.
    plan: Plan,
    /// Weak, because the published state would otherwise own itself.
    published: Weak<Published>,
}

/// Accepts silences, acknowledgements, ends of alerts and deployments of these models.
pub fn accept_requests(
    control: &AlertControl,
    plan: &Plan,
    orders: Sender<Order>,
    published: &Arc<Published>,
) {
    let reader = control.clone();
    published.control.on_silences(move || reader.silences());
    let requests = Requests {
        control: control.clone(),
        orders: Mutex::new(orders),
        plan: plan.clone(),
        published: Arc::downgrade(published),
    };
    published
        .control
        .on_alert_request(move |asked| requests.handle(asked));
}

impl Requests {
    fn handle(&self, asked: AlertRequest) -> AlertResponse {
        // What this process writes down does not reach the process that sends alerts.
        if self.another_judges() {
            return AlertResponse::Unavailable(ANOTHER_JUDGES);
        }
        let now_ms = clock::now_ms();
        let result = match asked {
            AlertRequest::Silence {
                matchers,
                until_ms,
                by,
                note,
            } => self.plan.resolve_matchers(&matchers).and_then(|matchers| {
                let silence = (self.control).silence(matchers, (now_ms, until_ms), &by, &note)?;
                Ok(AlertResponse::Silenced(silence))
            }),
            AlertRequest::Lift(id) => self.control.lift(id).map(|known| match known {
                true => AlertResponse::Done,
                false => AlertResponse::Unknown,
            }),
            AlertRequest::Acknowledge { alert, by, note } => self.acknowledge(&alert, by, note),
            AlertRequest::Close { alert, by, note } => self.close(&alert, &by, &note),
            AlertRequest::Deploy {
                model,
                version,
                by,
                note,
            } => self.deploy(Deployment {
                model,
                version,
                at_ms: now_ms,
                by,
                note,
            }),
        };
        result.unwrap_or_else(AlertResponse::Refused)
    }

    fn another_judges(&self) -> bool {
        let published = self.published.upgrade();
        published.is_some_and(|p| !p.facts().role.judges())
    }

    /// The alert that someone names by its fingerprint, its name, or one of its streams.
    fn find(&self, wanted: &str) -> Option<AlertFacts> {
        let published = self.published.upgrade()?;
        let alerts = Arc::clone(&published.facts().alerts);
        let open = |a: &&AlertFacts| matches!(a.state, AlertState::Firing | AlertState::Pending);
        let found = alerts.iter().filter(open).find(|a| a.is_called(wanted));
        found.cloned()
    }

    fn acknowledge(&self, alert: &str, by: String, note: String) -> Result<AlertResponse, String> {
        let firing = |a: &AlertFacts| a.state == AlertState::Firing;
        let Some(alert) = self.find(alert).filter(firing) else {
            return Ok(AlertResponse::Unknown);
        };
        let ack = Ack {
            by,
            note,
            at_ms: clock::now_ms(),
            since_ms: alert.since_ms.unwrap_or_default(),
        };
        self.control.acknowledge(&alert.fingerprint, ack.clone())?;
        Ok(AlertResponse::Acknowledged(ack))
    }

    fn close(&self, alert: &str, by: &str, note: &str) -> Result<AlertResponse, String> {
        Silences::acceptable_words(by, note).map_err(|e| e.to_string())?;
        let Some(alert) = self.find(alert) else {
            return Ok(AlertResponse::Unknown);
        };
        let colon = if note.is_empty() { "" } else { ": " };
        let why = format!("closed by {by}{colon}{note}");
        let name = alert.name;
        let group = GroupId {
            model: alert.model,
            version: alert.version,
            segment: alert.segment,
            view: alert.view,
        };
        let answer = order(&self.orders, Act::Close { group, why }, REPLY_WITHIN);
        if answer == AlertResponse::Done {
            tracing::info!(alert = name, by, note, "alert closed");
        }
        Ok(answer)
    }

    fn deploy(&self, deployment: Deployment) -> Result<AlertResponse, String> {
        let (model, by, note) = (&deployment.model, &deployment.by, &deployment.note);
        Silences::acceptable_words(by, note).map_err(|e| e.to_string())?;
        match order(&self.orders, Act::Deploy(deployment.clone()), REPLY_WITHIN) {
            AlertResponse::Done => {
                self.control.deploy(deployment.clone())?;
                let version = deployment.version.as_deref().unwrap_or("");
                tracing::info!(model, version, by, note, "deployment marked");
                Ok(AlertResponse::Deployed(deployment))
            }
            other => Ok(other),
        }
    }
}

/// Sends an order to the engine's thread and waits for the result.
fn order(orders: &Mutex<Sender<Order>>, act: Act, within: Duration) -> AlertResponse {
    let (reply, result) = sync_channel(1);
    let orders = orders.lock();
    let settled = Arc::new(AtomicBool::new(false));
    let sent = orders.send(Order {
        act,
        reply,
        settled: Arc::clone(&settled),
    });
    drop(orders);
    if sent.is_err() {
        return AlertResponse::Unavailable("the engine has stopped");
    }
    let answer = match result.recv_timeout(within) {
        // The engine is just answering.
        Err(RecvTimeoutError::Timeout) if settled.swap(true, Ordering::AcqRel) => {
            result.recv().map_err(|_| RecvTimeoutError::Disconnected)
        }
        answer => answer,
    };
    match answer {
        Ok(Some(0)) => AlertResponse::Unknown,
        Ok(Some(_)) => AlertResponse::Done,
        Ok(None) => AlertResponse::Unavailable(ANOTHER_JUDGES),
        Err(_) => AlertResponse::Unavailable(
            "the engine has not answered within 5 s and may still do it; look, then ask again",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    fn deploy() -> Act {
        Act::Deploy(Deployment {
            model: "fraud".to_owned(),
            version: None,
            at_ms: 7,
            by: "ann".to_owned(),
            note: String::new(),
        })
    }

    fn orders() -> (Mutex<Sender<Order>>, Receiver<Order>) {
        let (sender, orders) = channel();
        (Mutex::new(sender), orders)
    }

    #[test]
    fn the_answer_of_the_engine_decides_and_without_one_the_request_can_come_again() {
        let answer = |result: Option<usize>| {
            let (sender, orders) = orders();
            std::thread::scope(|scope| {
                let asks = scope.spawn(|| order(&sender, deploy(), REPLY_WITHIN));
                let asked = orders.recv().expect("an order");
                assert_eq!(asked.answer(result), None, "who asked writes it down");
                asks.join().expect("an answer")
            })
        };
        assert_eq!(answer(Some(0)), AlertResponse::Unknown);
        assert_eq!(answer(Some(2)), AlertResponse::Done);
        let unavailable = |answer| matches!(answer, AlertResponse::Unavailable(_));
        assert!(unavailable(answer(None)));
        let (sender, orders) = orders();
        drop(orders);
        assert!(unavailable(order(&sender, deploy(), REPLY_WITHIN)));
    }

    #[test]
    fn an_answer_that_comes_as_the_wait_ends_is_waited_for() {
        let (sender, orders) = orders();
        std::thread::scope(|scope| {
            let asks = scope.spawn(|| order(&sender, deploy(), Duration::from_millis(50)));
            let asked = orders.recv().expect("an order");
            // The engine has set the flag and not yet sent its answer.
            assert!(!asked.settled.swap(true, Ordering::AcqRel));
            std::thread::sleep(Duration::from_millis(200));
            asked.reply.try_send(Some(2)).expect("somebody waits");
            assert_eq!(asks.join().expect("an answer"), AlertResponse::Done);
        });
    }

    #[test]
    fn a_deployment_that_the_engine_marks_too_late_for_who_asked_is_still_written_down() {
        let late = |act: Act, result: Option<usize>| {
            let (sender, orders) = orders();
            let answer = order(&sender, act, Duration::from_millis(1));
            assert!(matches!(answer, AlertResponse::Unavailable(_)));
            orders.recv().expect("an order").answer(result)
        };
        let written = late(deploy(), Some(2)).expect("a deployment");
        assert_eq!((written.model.as_str(), written.at_ms), ("fraud", 7));
        assert_eq!(late(deploy(), Some(0)), None);
        assert_eq!(late(deploy(), None), None);
        let group = GroupId {
            model: "fraud".to_owned(),
            ..GroupId::default()
        };
        let why = "closed by ann".to_owned();
        assert_eq!(late(Act::Close { group, why }, Some(1)), None);
    }
}
