//! HTTP: metrics, health, the JSON API and pages for people.
//!
//! [`routes`] lists the addresses, each with what it answers.
//!
//! An id is `model/version/segment/view` with each of the four parts percent-encoded, or the whole
//! id as one percent-encoded part.
//!
//! Plain hyper is enough for these routes, and all limits are visible in `server.rs`. Responses are
//! computed from [`Published`](crate::telemetry::Published) without waiting for the engine.
//! Responses that may be large are built on separate threads, few at a time; changes and
//! explanations wait for the disk on such threads. Probes are answered at once.

mod access;
mod alerts;
pub mod answer;
mod api;
mod bodies;
pub mod client;
mod connections;
mod events;
mod history;
mod page;
mod path;
mod recalibration;
mod response;
mod routes;
pub mod runbooks;
mod server;
mod sources;
mod stall;
mod urgency;

pub use access::AccessOptions;
pub use connections::{CONNECTIONS_MAX, PEER_MAX};
pub use path::page_path;
pub use server::{POSTS_MAX, serve};
