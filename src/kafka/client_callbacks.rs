//! The callbacks of every client except the consumer's: those of the state topic, the alerts topic
//! and dead letters.
//!
//! Errors are only debug lines, because the consumer reports the same ones. The result of a write
//! goes to its caller.

use super::rebootstrap::Rebootstrap;
use super::token::TokenFile;
use super::{KafkaError, KafkaOptions};
use rdkafka::ClientConfig;
use rdkafka::client::{Client, ClientContext, OAuthToken};
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError as Native;
use rdkafka::message::Message;
use rdkafka::producer::{DeliveryResult, NoCustomPartitioner, ProducerContext};
use std::error::Error;

/// Partition and offset of a record, or why it was not written.
pub(super) type Written = Result<(i32, i64), String>;

/// Called once it is known whether a record was written.
pub(super) type OnDelivery = Box<dyn FnOnce(Written) + Send + Sync>;

pub(super) struct ClientCallbacks {
    of: &'static str,
    token: TokenFile,
    rebootstrap: Rebootstrap,
}

impl ClientCallbacks {
    /// A client with these callbacks; `of` names it in the debug lines.
    pub fn client<T: FromClientConfigAndContext<ClientCallbacks>>(
        of: &'static str,
        config: &ClientConfig,
        options: &KafkaOptions,
    ) -> Result<T, KafkaError> {
        let context = ClientCallbacks {
            of,
            token: options.token(),
            rebootstrap: options.rebootstrap(),
        };
        let client = config.create_with_context(context);
        client.map_err(|error| KafkaError::of_creation(error, options))
    }

    /// Adds the brokers again if the client has lost them.
    pub fn rebootstrap(client: &Client<ClientCallbacks>) {
        client.context().rebootstrap.run_due(client);
    }
}

impl ClientContext for ClientCallbacks {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.token.token()
    }

    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, message, "librdkafka, {}", self.of);
    }

    fn error(&self, error: Native, reason: &str) {
        self.rebootstrap.on_error(&error);
        tracing::debug!(%error, reason, "{}", self.of);
    }
}

impl ConsumerContext for ClientCallbacks {}

impl ProducerContext<NoCustomPartitioner> for ClientCallbacks {
    type DeliveryOpaque = Box<OnDelivery>;

    fn delivery(&self, result: &DeliveryResult<'_>, on_delivery: Box<OnDelivery>) {
        on_delivery(match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.to_string()),
        });
    }
}

/// Settings of a reader that commits nothing.
pub(super) fn reader_config(options: &KafkaOptions, group: &str) -> ClientConfig {
    let mut c = settings(options);
    c.set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("fetch.wait.max.ms", "50");
    c
}

/// Settings of every client with these callbacks.
pub(super) fn settings(options: &KafkaOptions) -> ClientConfig {
    let mut c = options.client_config();
    options.pass_through_to_client(&mut c);
    c
}

/// A client for the state topic, with these settings.
pub(super) fn create<T: FromClientConfigAndContext<ClientCallbacks>>(
    config: &ClientConfig,
    options: &KafkaOptions,
) -> Result<T, KafkaError> {
    ClientCallbacks::client("state topic", config, options)
}
