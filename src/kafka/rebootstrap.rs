//! Re-bootstrap: adds the configured brokers again after a client has lost all brokers.
//!
//! A single broker that freezes for longer than its session with the controller omits itself from
//! the metadata for a moment. librdkafka then drops it. If that overtakes librdkafka's own
//! re-bootstrap (its issue 5301, seen in 2.12), the client no longer knows any broker and never
//! connects again. `tests/kafka/rebootstrap.rs` reproduces this. The remedy is what the
//! re-bootstrap would have done: add the configured brokers after the client reports that all are
//! down. Known brokers stay unchanged, so this does no harm if the brokers are really down.

use super::native;
use parking_lot::Mutex;
use rdkafka::client::{Client, ClientContext};
use rdkafka::error::KafkaError as Native;
use rdkafka::types::RDKafkaErrorCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Delay until dropped brokers are gone. A broker that is being removed cannot be added again.
const FIRST: Duration = Duration::from_secs(1);

/// Number of attempts, with a delay that doubles; the last one comes after a minute. A client that
/// finds brokers and loses them reports it again.
const ATTEMPTS: u32 = 6;

/// The re-bootstrap of one client. It is part of the client's context, to which the loss is
/// reported.
pub(super) struct Rebootstrap {
    brokers: String,
    /// Whether an attempt is due or scheduled.
    lost: AtomicBool,
    /// Time of the next attempt, and the number of attempts so far.
    next: Mutex<Option<(Instant, u32)>>,
}

impl Rebootstrap {
    /// A re-bootstrap to these brokers.
    pub fn new(brokers: &str) -> Rebootstrap {
        Rebootstrap {
            brokers: brokers.to_owned(),
            lost: AtomicBool::new(false),
            next: Mutex::new(None),
        }
    }

    /// Schedules the first attempt if the error is the loss of all brokers.
    pub fn on_error(&self, error: &Native) {
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) {
            let mut next = self.next.lock();
            // A repeated report does not postpone the attempt.
            let first = Instant::now() + FIRST;
            *next = Some((next.map_or(first, |(at, _)| at.min(first)), 0));
            self.lost.store(true, Ordering::Release);
        }
    }

    /// Adds the brokers if an attempt is due. Call it regularly; it costs one load if nothing is
    /// due.
    pub fn run_due<C: ClientContext>(&self, client: &Client<C>) {
        if !self.lost.load(Ordering::Acquire) {
            return;
        }
        let mut next = self.next.lock();
        let Some((at, attempts)) = *next else { return };
        if Instant::now() < at {
            return;
        }
        native::add_brokers(client, &self.brokers);
        tracing::debug!(
            brokers = self.brokers,
            attempts,
            "adding the configured brokers again"
        );
        *next = (attempts + 1 < ATTEMPTS).then(|| {
            (
                Instant::now() + FIRST * 2_u32.pow(attempts + 1),
                attempts + 1,
            )
        });
        self.lost.store(next.is_some(), Ordering::Release);
    }
}
