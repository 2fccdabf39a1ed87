//! All addresses with a short description: the list at `/api/v1`, as an OpenAPI document too, and
//! the suggestion for an unknown address.

use serde_json::{Map, Value, json};

/// Every address in a line: method, path and what it answers. `{…}` in a path stands for a
/// percent-encoded value.
const ADDRESSES: &str = "\
GET / the streams, the worst first; ?q=, ?model=, ?state=, ?by=model, ?page=
GET /alerts the alerts that are open, and those that ended last
GET /streams/{id} the page of a stream; ?window=
GET /runbooks what to do about each alert, and the guide
GET /runbooks/{alert} what to do about one alert
GET /guide/{page} a page of the guide
GET /metrics metrics for Prometheus
GET /live 503 while a loop is silent
GET /ready 503 while a part is not ready, with the reason
GET /api/v1 this list
GET /api/v1/openapi.json this list as an OpenAPI document
GET /api/v1/streams all streams; ?q=, ?model=, ?state=, ?limit=, ?offset=
GET /api/v1/streams/{id} one stream in full
GET /api/v1/streams/{id}/reliability the cells of its diagram and its CORP curve; ?window=
GET /api/v1/streams/{id}/history its error and verdict over time, and its last alerts; ?window=, ?since_ms=
GET /api/v1/streams/{id}/recalibration its recalibration maps; ?window=, ?method=, ?format=csv
GET /api/v1/sources the sources: read, rejected and why, matched, orphaned, expired, implied, lag
GET /api/v1/alerts the alerts that are open; ?all=1 for all
GET /api/v1/explanations/{key} why an alert changed, recomputed from its record: {key} of the record, or an alert (the newest)
GET /api/v1/silences the silences
GET /api/v1/ledger the budgets of false alarms: promises and use
GET /api/v1/comparisons versions that scored the same ids
GET /api/v1/models/{model}/comparison the same of one model
GET /api/v1/tap labelled predictions as lines of JSON; ?model=, ?rate=
POST /api/v1/alerts/{alert}/ack acknowledges an alert that fires
POST /api/v1/alerts/{alert}/close ends an alert; from now on it rests on new data only
GET /api/v1/deployments the deployments that were marked
POST /api/v1/models/{model}/deployments marks a deployment: the alerts of the model rest on new data only
POST /api/v1/silences adds a silence
DELETE /api/v1/silences/{id} lifts a silence
POST /v1/events/{topic} takes events: an object, an array, or lines of JSON; on disk before it answers; ?dry_run=1
POST /-/reload reads the configuration again";

struct Address {
    method: &'static str,
    path: &'static str,
    what: &'static str,
}

fn addresses() -> impl Iterator<Item = Address> {
    ADDRESSES.lines().filter_map(|line| {
        let (method, rest) = line.split_once(' ')?;
        let (path, what) = rest.split_once(' ')?;
        Some(Address { method, path, what })
    })
}

/// What `{id}` stands for.
const ID: &str = "{id} is model/version/segment/view, each of the four percent-encoded; any but the \
                  view may be empty. It is the `id` of a stream in the answers. {alert} is a \
                  fingerprint, the percent-encoded name of an alert, or the {id} of one of its streams";

/// The list as JSON.
pub fn list() -> Value {
    let one = |a: Address| json!({ "method": a.method, "path": a.path, "what": a.what });
    json!({ "addresses": addresses().map(one).collect::<Value>(), "id": ID })
}

/// The list as an OpenAPI document. `{…}` in a path and `?x=` in a description are its parameters.
pub fn open_api() -> Value {
    let mut paths = Map::new();
    for a in addresses() {
        let in_path = a.path.split('{').skip(1);
        let in_path = in_path.filter_map(|s| s.split('}').next());
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

/// The known address that is most similar to this one.
pub fn nearest(path: &str) -> Option<&'static str> {
    let likeness = |a: &Address| strsim::normalized_levenshtein(a.path, path);
    let best = addresses().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) > 0.6).then_some(best.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::path::{Route, route};

    #[test]
    fn the_open_api_document_has_every_address_with_its_parameters() {
        let document = open_api();
        for a in addresses() {
            let operation = &document["paths"][a.path][a.method.to_lowercase()];
            assert_eq!(operation["summary"], a.what);
        }
        let names = |path: &str| {
            let all = &document["paths"][path]["get"]["parameters"];
            let text = |v: &Value| v.as_str().expect("a text").to_owned();
            let one = |p: &Value| text(&p["in"]) + ":" + &text(&p["name"]);
            let all: Vec<String> = all.as_array().expect("a list").iter().map(one).collect();
            all.join(" ")
        };
        let history = names("/api/v1/streams/{id}/history");
        assert_eq!(history, "path:id query:window query:since_ms");
        assert_eq!(names("/live"), "");
    }

    #[test]
    fn every_address_is_a_route_and_a_slip_finds_it() {
        for a in addresses() {
            let id = match a.method {
                "DELETE" => "7",
                _ => "fraud/3//binary",
            };
            let parts = [("{id}", id), ("{model}", "fraud"), ("{key}", "0-1-page")];
            let others = [("{alert}", "0"), ("{topic}", "scores")];
            let fill = |path: String, (name, with): (&str, &str)| path.replace(name, with);
            let filled = parts
                .into_iter()
                .chain(others)
                .fold(a.path.to_owned(), fill);
            assert_ne!(route(&filled), Route::Unknown, "{}", a.path);
        }
        assert_eq!(nearest("/api/v1/stream"), Some("/api/v1/streams"));
        assert_eq!(nearest("/alert"), Some("/alerts"));
        assert_eq!(nearest("/wp-login.php"), None);
    }
}
