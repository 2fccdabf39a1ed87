//! Every address with a word on it: the list at `/api/v1`, the same as an OpenAPI document, and
//! what an unknown address is answered.

use serde_json::{Map, Value, json};

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
    get("/runbooks", "what to do about each alert, and the guide"),
    get("/runbooks/{alert}", "what to do about one alert"),
    get("/guide/{page}", "a page of the guide"),
    get("/metrics", "metrics for Prometheus"),
    get("/live", "503 while a loop is silent"),
    get("/ready", "503 while a part is not ready, with the reason"),
    get("/api/v1", "this list"),
    get("/api/v1/openapi.json", "this list as an OpenAPI document"),
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
        "why an alert changed, recomputed from its record: {key} of the record, or an alert (the newest)",
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

/// What `{id}` stands for.
const ID: &str = "{id} is model/version/segment/view, each of the four percent-encoded; any but the \
                  view may be empty";

/// The list as JSON.
pub fn list() -> Value {
    let one = |a: &Address| json!({ "method": a.method, "path": a.path, "what": a.what });
    json!({ "addresses": ADDRESSES.iter().map(one).collect::<Value>(), "id": ID })
}

/// The list as an OpenAPI document. `{…}` in a path and `?x=` in the words are its parameters.
pub fn open_api() -> Value {
    let mut paths = Map::new();
    for a in ADDRESSES {
        let in_path = a
            .path
            .split('{')
            .skip(1)
            .filter_map(|s| s.split('}').next());
        let in_query = a.what.split('?').skip(1);
        let in_query = in_query.filter_map(|s| s.split_once('=').map(|(name, _)| name));
        let parameters = in_path
            .map(|name| (name, "path"))
            .chain(in_query.map(|name| (name, "query")));
        let parameters: Value = parameters
            .map(|(name, place)| {
                json!({ "name": name, "in": place, "required": place == "path", "schema": { "type": "string" } })
            })
            .collect();
        let mut operation = json!({
            "summary": a.what,
            "parameters": parameters,
            "responses": { "default": { "description": "see the summary; errors say what is wrong and what would be right" } },
        });
        if a.method == "POST" {
            operation["requestBody"] = json!({ "content": { "application/json": {} } });
        }
        if a.path.starts_with("/v1/events") {
            operation["requestBody"]["content"]["application/x-ndjson"] = json!({});
        }
        let methods = paths.entry(a.path).or_insert_with(|| json!({}));
        methods[a.method.to_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "trueline", "version": env!("CARGO_PKG_VERSION"), "description": ID },
        "paths": paths,
    })
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
    fn the_open_api_document_has_every_address_with_its_parameters() {
        let document = open_api();
        for a in ADDRESSES {
            let operation = &document["paths"][a.path][a.method.to_lowercase()];
            assert_eq!(operation["summary"], a.what);
        }
        let names = |path: &str| {
            let all = document["paths"][path]["get"]["parameters"]
                .as_array()
                .expect("a list");
            let one = |p: &Value| {
                format!(
                    "{}:{}",
                    p["in"].as_str().unwrap_or(""),
                    p["name"].as_str().unwrap_or("")
                )
            };
            all.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        let history = names("/api/v1/streams/{id}/history");
        assert_eq!(history, "path:id query:window query:since_ms");
        assert_eq!(names("/live"), "");
    }

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
