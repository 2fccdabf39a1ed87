//! A producer that writes each record once and in order, and outlives its client.
//!
//! The client of such a producer stops permanently at some errors, for example if its user may
//! write nowhere. At the next record it is replaced.

use super::client_callbacks::ClientCallbacks;
use super::{KafkaError, KafkaOptions};
use parking_lot::{RwLock, RwLockReadGuard};
use rdkafka::ClientConfig;
use rdkafka::producer::{Producer, ThreadedProducer};

/// A producer that writes each record once and in order. Threads can share it. See the module.
pub(super) struct IdempotentProducer {
    of: &'static str,
    config: ClientConfig,
    options: KafkaOptions,
    client: RwLock<ThreadedProducer<ClientCallbacks>>,
}

impl IdempotentProducer {
    /// A producer with these settings; `of` names it in the debug lines.
    pub fn new(
        of: &'static str,
        mut config: ClientConfig,
        options: &KafkaOptions,
    ) -> Result<IdempotentProducer, KafkaError> {
        config.set("enable.idempotence", "true");
        Ok(IdempotentProducer {
            client: RwLock::new(ClientCallbacks::client(of, &config, options)?),
            of,
            config,
            options: options.clone(),
        })
    }

    /// The current client.
    pub fn client(&self) -> RwLockReadGuard<'_, ThreadedProducer<ClientCallbacks>> {
        self.client.read()
    }

    /// Adds the brokers again if the client has lost them, and replaces a client that has stopped.
    pub fn renew(&self) -> Result<(), KafkaError> {
        let ended = {
            let now = self.client();
            ClientCallbacks::rebootstrap(now.client());
            now.client().fatal_error().is_some()
        };
        if ended {
            let new = ClientCallbacks::client(self.of, &self.config, &self.options)?;
            *self.client.write() = new;
        }
        Ok(())
    }
}
