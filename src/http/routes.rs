//! Every address with a word on it: the list at `/api/v1`, and what an unknown address is answered.

use serde_json::{Value, json};

/// An address.
pub struct Address {
    /// Its method.
    pub method: &'static str,
    /// Its path; `{…}` is to be filled in, percent-encoded.
    pub path: &'static str,
    /// What it answers.
    pub what: &'static str,
}

const fn get(path: &'static str, what: &'static str) -> Address {
    Address {
        method: "GET",
        path,
        what,
    }
}

const fn post(path: &'static str, what: &'static str) -> Address {
    Address {
        method: "POST",
        path,
        what,
    }
}

/// All of them.
pub const ADDRESSES: &[Address] = &[
    get(
        "/",
        "the streams, the worst first; ?q=, ?model=, ?state=, ?by=model, ?page=",
    ),
    get(
        "/alerts",
        "the alerts that are open, and those that ended last",
    ),
    get("/streams/{id}", "the page of a stream; ?window="),
    get("/runbooks", "what to do about each alert"),
    get("/metrics", "metrics for Prometheus"),
    get("/live", "503 while a loop is silent"),
    get("/ready", "503 while a part is not ready, with the reason"),
    get("/api/v1", "this list"),
    get(
        "/api/v1/streams",
        "all streams; ?q=, ?model=, ?state=, ?limit=, ?offset=",
    ),
    get("/api/v1/streams/{id}", "one stream in full"),
    get(
        "/api/v1/streams/{id}/reliability",
        "the cells of its diagram and its CORP curve; ?window=",
    ),
    get(
        "/api/v1/streams/{id}/history",
        "its error and verdict over time, and its last alerts; ?window=, ?since_ms=",
    ),
    get(
        "/api/v1/streams/{id}/recalibration",
        "its recalibration maps; ?window=, ?method=, ?format=csv",
    ),
    get(
        "/api/v1/sources",
        "the sources: read, rejected and why, matched, orphaned, lag",
    ),
    get("/api/v1/alerts", "the alerts that are open; ?all=1 for all"),
    get(
        "/api/v1/explanations/{key}",
        "why an alert changed, recomputed from its record",
    ),
    get("/api/v1/silences", "the silences"),
    get(
        "/api/v1/ledger",
        "the budgets of false alarms: promises and use",
    ),
    get("/api/v1/comparisons", "versions that scored the same ids"),
    get("/api/v1/models/{model}/comparison", "the same of one model"),
    get(
        "/api/v1/tap",
        "labelled predictions as lines of JSON; ?model=, ?rate=",
    ),
    post(
        "/api/v1/alerts/{alert}/ack",
        "acknowledges an alert that fires",
    ),
    post(
        "/api/v1/alerts/{alert}/close",
        "ends an alert; from now on it rests on new data only",
    ),
    get("/api/v1/deployments", "the deployments that were marked"),
    post(
        "/api/v1/models/{model}/deployments",
        "marks a deployment: the alerts of the model rest on new data only",
    ),
    post("/api/v1/silences", "adds a silence"),
    Address {
        method: "DELETE",
        path: "/api/v1/silences/{id}",
        what: "lifts a silence",
    },
    post(
        "/v1/events/{topic}",
        "takes events: an object, an array, or lines of JSON; on disk before it answers; ?dry_run=1",
    ),
    post("/-/reload", "reads the configuration again"),
];

/// The list as JSON.
pub fn list() -> Value {
    let one = |a: &Address| json!({ "method": a.method, "path": a.path, "what": a.what });
    let id = "model/version/segment/view, each of the four percent-encoded; any but the view may be empty";
    json!({ "addresses": ADDRESSES.iter().map(one).collect::<Value>(), "id": id })
}

/// The known address that looks most like this one.
pub fn nearest(path: &str) -> Option<&'static str> {
    let likeness = |a: &Address| strsim::normalized_levenshtein(a.path, path);
    let best = ADDRESSES
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.6).then_some(best.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::path::{Route, route};

    #[test]
    fn every_address_is_a_route_and_a_slip_finds_it() {
        for a in ADDRESSES {
            let filled = a.path.replace(
                "{id}",
                match a.method {
                    "DELETE" => "7",
                    _ => "fraud/3//binary",
                },
            );
            let filled = filled
                .replace("{model}", "fraud")
                .replace("{key}", "0-1-page");
            let filled = filled.replace("{alert}", "0").replace("{topic}", "scores");
            assert_ne!(route(&filled), Route::Unknown, "{}", a.path);
        }
        assert_eq!(nearest("/api/v1/stream"), Some("/api/v1/streams"));
        assert_eq!(nearest("/alert"), Some("/alerts"));
        assert_eq!(nearest("/wp-login.php"), None);
    }
}
