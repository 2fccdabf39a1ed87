//! Everything that leaves over HTTP: metrics, health, the JSON interface and a page for people.
//!
//! | path | answers |
//! |---|---|
//! | `/` | a page that links the others and lists the streams |
//! | `/metrics` | Prometheus text format, collected at the moment of the scrape |
//! | `/live` | 200 while every loop ticks, else 503 with the silent ones |
//! | `/ready` | 200 once every named part said so, else 503 with the missing ones and why |
//! | `/api/v1/streams` | every monitored stream with its verdicts, `?model=` narrows |
//! | `/api/v1/streams/{id}` | everything known of one stream |
//! | `/api/v1/streams/{id}/reliability` | the cells of its reliability diagram with their bars, `?window=` picks |
//! | `/api/v1/streams/{id}/recalibration` | what would mend it; `?format=csv` is a table for download, `?window=` and `?method=` pick |
//! | `/api/v1/ledger` | budgets of false alarms: what is promised, what was staked, which streams are alarmed |
//! | `/api/v1/alerts` | alerts that are not inactive, the most urgent first; `?all=1` all |
//! | `POST /api/v1/alerts/{fingerprint}/ack` | says who looks after one that fires |
//! | `/api/v1/silences` | what is kept back; POST adds one, `DELETE /api/v1/silences/{id}` lifts it |
//! | `/streams/{id}` | the same as a page with the diagram drawn |
//!
//! An id is `model/version/segment/view` with each of the four parts percent-encoded, or all of it
//! as one percent-encoded part. GET and HEAD, but for silences, acknowledgements and `/-/reload`.
//!
//! Why plain hyper: eight routes need no framework, and every limit (`server.rs`) stays in sight.
//! Answers are computed from [`Published`](crate::telemetry::Published) without waiting for any other
//! thread, so a request can be slow only by the size of its own answer.

mod alerts;
pub mod answer;
mod api;
pub mod client;
mod diagram;
mod page;
mod path;
mod recalibration;
mod response;
mod server;

pub use api::rfc3339;
pub use path::page_path;
pub use server::{CONNECTIONS_MAX, serve};
