//! HTTP: metrics, health, the JSON API and pages for people.
//!
//! | path | response |
//! |---|---|
//! | `/` | a page with the streams, the worst first, and the sources; `?q=`, `?model=`, `?state=`, `?by=model` |
//! | `/streams/{id}` | one stream as a page: its alert, diagrams and history |
//! | `/alerts` | a page with the alerts that are open or ended last |
//! | `/metrics` | Prometheus text format, collected during the scrape |
//! | `/live` | 200 while every loop ticks, otherwise 503 with the silent loops |
//! | `/ready` | 200 once every part is ready, otherwise 503 with the missing parts and reasons |
//! | `POST /-/reload` | reloads the configuration |
//! | `/api/v1`, `/api/v1/openapi.json` | the list of addresses; the same as an OpenAPI document |
//! | `/api/v1/streams` | every monitored stream with its verdicts; the filters of `/`, `?limit=`, `?offset=` |
//! | `/api/v1/streams/{id}` | one stream in full |
//! | `/api/v1/streams/{id}/reliability` | the cells of its diagram, and its CORP curve; `?window=` selects |
//! | `/api/v1/streams/{id}/history` | its error and verdict over time, and its last alerts |
//! | `/api/v1/streams/{id}/recalibration` | its maps; `?format=csv`, `?window=`, `?method=` |
//! | `/api/v1/sources` | what was read of each source, and what became of it |
//! | `/api/v1/explanations/{key}` | why an alert changed, recomputed from its record: by its key, or the newest of an alert |
//! | `/api/v1/ledger` | false-alarm budgets: guarantees, use, alarmed streams |
//! | `/api/v1/comparisons` | all comparisons of versions |
//! | `/api/v1/models/{model}/comparison` | the comparisons of one model |
//! | `/api/v1/alerts` | active alerts, the most urgent first; `?all=1` includes inactive ones |
//! | `POST /api/v1/alerts/{alert}/ack`, `/close` | acknowledges or ends an alert, by name or fingerprint |
//! | `/api/v1/deployments`, `POST /api/v1/models/{model}/deployments` | deployments; marks one |
//! | `/api/v1/silences` | silences; `POST` adds one |
//! | `DELETE /api/v1/silences/{id}` | lifts a silence |
//! | `/runbooks`, `/runbooks/{alert}`, `/guide/{page}` | what to do about an alert; the guide |
//! | `/api/v1/tap` | labelled predictions as lines of JSON; `?model=`, `?rate=` |
//!
//! An id is `model/version/segment/view` with each of the four parts percent-encoded, or the whole
//! id as one percent-encoded part. All other methods are GET and HEAD.
//!
//! Plain hyper is enough for these routes, and all limits are visible in `server.rs`. Responses
//! are computed from [`Published`](crate::telemetry::Published) without waiting for any other
//! thread, so a request is slow only if its own response is large. Changes and explanations wait
//! for the disk, on threads of their own.

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
mod standing;

pub use access::AccessOptions;
pub use connections::{CONNECTIONS_MAX, PEER_MAX};
pub use path::page_path;
pub use server::{POSTS_MAX, serve};
