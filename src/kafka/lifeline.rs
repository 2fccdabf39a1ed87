//! The configured brokers, asked again when a client has lost all brokers it knew.
//!
//! A broker alone in its cluster that was frozen for longer than its session with the controller leaves
//! itself out of the metadata for a moment. librdkafka then drops it, and where that overtakes its own
//! re-bootstrap (issue 5301 there, seen in 2.12) it knows no broker any more and asks none, for good.
//! `tests/brokers_forgotten.rs` brings it about at will. The remedy is what the re-bootstrap would have done:
//! the configured brokers are added again after the client has said that all are down. Those that it knows
//! stay as they are, so nothing is lost by it where the brokers are really away.

use super::native;
use rdkafka::client::{Client, ClientContext};
use rdkafka::error::KafkaError as Native;
use rdkafka::types::RDKafkaErrorCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Until the brokers that were dropped are gone: one that is ending is not known, and is not added anew.
const FIRST: Duration = Duration::from_secs(1);

/// How often they are added, at twice the distance each time: the last time after a minute. A client that
/// has brokers again and loses them says so again.
const TRIES: u32 = 6;

/// See the module. Part of a client's context, because it is there that the loss is told.
pub(super) struct Lifeline {
    brokers: String,
    /// Whether there is something to do.
    lost: AtomicBool,
    /// When the brokers are added again, and how often they were.
    next: Mutex<Option<(Instant, u32)>>,
}

impl Lifeline {
    /// To these brokers.
    pub fn new(brokers: &str) -> Lifeline {
        Lifeline {
            brokers: brokers.to_owned(),
            lost: AtomicBool::new(false),
            next: Mutex::new(None),
        }
    }

    /// Notes an error of the client, if it is the one.
    pub fn note(&self, error: &Native) {
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            // One that is told again and again does not put it off.
            let first = Instant::now() + FIRST;
            *next = Some((next.map_or(first, |(at, _)| at.min(first)), 0));
            self.lost.store(true, Ordering::Release);
        }
    }

    /// Adds the brokers again where that is due. To be called now and then; costs one load where nothing is.
    pub fn hold<C: ClientContext>(&self, client: &Client<C>) {
        if !self.lost.load(Ordering::Acquire) {
            return;
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((at, tries)) = *next else { return };
        if Instant::now() < at {
            return;
        }
        native::add_brokers(client, &self.brokers);
        tracing::debug!(
            brokers = self.brokers,
            tries,
            "asking the configured brokers again"
        );
        *next =
            (tries + 1 < TRIES).then(|| (Instant::now() + FIRST * 2_u32.pow(tries + 1), tries + 1));
        self.lost.store(next.is_some(), Ordering::Release);
    }
}
