//! Translates request paths to routes, and streams to paths.
//!
//! A stream has four parts, model, version, segment and view, and any of them may contain a slash
//! or be empty. So each part is percent-encoded in a path (`fraud/v1/country=DE/binary`,
//! `team%2Ffraud/v1//binary`). The whole id may also be one encoded part, in the form of logs and
//! labels.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::judge::{StreamId, StreamReport};
use crate::telemetry::Published;
use std::sync::Arc;

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// The page with the list of streams.
    Index,
    /// The page with the alerts.
    AlertsPage,
    /// The script of the pages.
    Script,
    /// The icon of the pages.
    Icon,
    /// The list of addresses.
    Addresses,
    /// The list of addresses as an OpenAPI document.
    OpenApi,
    /// The sources.
    Sources,
    /// The history of one stream.
    History(Vec<String>),
    /// The record of a change of an alert.
    Explanation(String),
    /// Prometheus text.
    Metrics,
    /// Whether the loops of this process tick.
    Live,
    /// Whether every part of this process is ready.
    Ready,
    /// All streams.
    Streams,
    /// The false-alarm budgets.
    Ledger,
    /// Comparisons of versions, of one model or of all.
    Comparison(Option<String>),
    /// One stream; its encoded parts.
    Stream(Vec<String>),
    /// The cells of one stream.
    Reliability(Vec<String>),
    /// The recalibration maps of one stream.
    Recalibration(Vec<String>),
    /// The page of one stream.
    Page(Vec<String>),
    /// Reads the configuration again.
    Reload,
    /// Takes events for this topic, or for the only one.
    Events(Option<String>),
    /// Labelled predictions.
    Tap,
    /// Alerts.
    Alerts,
    /// An acknowledgement of the alert with this fingerprint or name.
    Acknowledge(String),
    /// The end of the alert with this fingerprint or name.
    Close(String),
    /// Deployments of all models.
    Deployments,
    /// A deployment of this model.
    Deploy(String),
    /// Silences.
    Silences,
    /// The silence with this number.
    Silence(u64),
    /// The list of runbooks.
    Runbooks,
    /// The runbook of an alert.
    Runbook(String),
    /// A page of the guide.
    Guide(String),
    /// An unknown path.
    Unknown,
}

/// The route of a path. Parts that are not valid percent-encoded UTF-8 yield [`Route::Unknown`].
pub fn route(path: &str) -> Route {
    match path {
        "/" => return Route::Index,
        "/alerts" => return Route::AlertsPage,
        "/script.js" => return Route::Script,
        "/icon.svg" | "/favicon.ico" => return Route::Icon,
        "/api" | "/api/" | "/api/v1" | "/api/v1/" => return Route::Addresses,
        "/api/v1/openapi.json" | "/openapi.json" => return Route::OpenApi,
        "/api/v1/sources" => return Route::Sources,
        "/metrics" => return Route::Metrics,
        "/live" => return Route::Live,
        "/ready" => return Route::Ready,
        "/-/reload" => return Route::Reload,
        "/v1/events" | "/v1/events/" => return Route::Events(None),
        "/api/v1/ledger" => return Route::Ledger,
        "/api/v1/comparisons" => return Route::Comparison(None),
        "/api/v1/tap" => return Route::Tap,
        "/api/v1/streams" | "/api/v1/streams/" => return Route::Streams,
        "/api/v1/alerts" => return Route::Alerts,
        "/api/v1/silences" => return Route::Silences,
        "/api/v1/deployments" => return Route::Deployments,
        "/runbooks" | "/runbooks/" => return Route::Runbooks,
        _ => {}
    }
    if let Some(rest) = path.strip_prefix("/api/v1/streams/") {
        // A fifth part, or a second part after an id in one part, can only be one of these.
        let below = [
            (
                "/reliability",
                Route::Reliability as fn(Vec<String>) -> Route,
            ),
            ("/recalibration", Route::Recalibration),
            ("/history", Route::History),
        ];
        for (what, found) in below {
            if let Some(id) = rest.strip_suffix(what)
                && matches!(id.split('/').count(), 1 | 4)
            {
                return parts(id).map_or(Route::Unknown, found);
            }
        }
        return parts(rest).map_or(Route::Unknown, Route::Stream);
    }
    if let Some(rest) = path.strip_prefix("/api/v1/models/") {
        if let Some(model) = rest.strip_suffix("/deployments") {
            return decode(model).map_or(Route::Unknown, Route::Deploy);
        }
        let model = rest.strip_suffix("/comparison").and_then(decode);
        return model.map_or(Route::Unknown, |model| Route::Comparison(Some(model)));
    }
    if let Some(id) = path.strip_prefix("/api/v1/silences/") {
        return id.parse().map_or(Route::Unknown, Route::Silence);
    }
    if let Some(rest) = path.strip_prefix("/api/v1/alerts/") {
        if let Some(alert) = rest.strip_suffix("/close") {
            return decode(alert).map_or(Route::Unknown, Route::Close);
        }
        let alert = rest.strip_suffix("/ack").and_then(decode);
        return alert.map_or(Route::Unknown, Route::Acknowledge);
    }
    if let Some(key) = path.strip_prefix("/api/v1/explanations/") {
        return decode(key).map_or(Route::Unknown, Route::Explanation);
    }
    if let Some(topic) = path.strip_prefix("/v1/events/") {
        return decode(topic).map_or(Route::Unknown, |topic| Route::Events(Some(topic)));
    }
    if let Some(name) = path.strip_prefix("/runbooks/") {
        return Route::Runbook(name.to_owned());
    }
    if let Some(name) = path.strip_prefix("/guide/") {
        return Route::Guide(name.to_owned());
    }
    if let Some(rest) = path.strip_prefix("/streams/") {
        return parts(rest).map_or(Route::Unknown, Route::Page);
    }
    Route::Unknown
}

fn parts(id: &str) -> Option<Vec<String>> {
    let parts: Option<Vec<String>> = id.split('/').map(decode).collect();
    parts.filter(|parts| matches!(parts.len(), 1 | 4))
}

/// The published report of the stream that these parts name.
pub fn find(parts: &[String], published: &Published) -> Option<Arc<StreamReport>> {
    if let [model, version, segment, view] = parts {
        let id = StreamId {
            model: model.clone(),
            version: version.clone(),
            segment: segment.clone(),
            view: view.parse().ok()?,
        };
        return published.report(&id);
    }
    let whole = parts.first()?;
    let mut reports = published.reports().into_iter();
    reports.find(|r| r.id.to_string() == *whole)
}

/// The encoded parts of a stream, joined by slashes.
pub fn encode_id(id: &StreamId) -> String {
    let view = id.view.to_string();
    [&id.model, &id.version, &id.segment, &view]
        .map(|part| encode(part))
        .join("/")
}

/// Path of a stream's page.
pub fn page_path(id: &StreamId) -> String {
    format!("/streams/{}", encode_id(id))
}

/// The characters that are encoded in a part. Not encoded are the unreserved characters of RFC
/// 3986, and some that are common in segments and always safe: `=` and `,`, and the `:` of a class
/// view.
const PART: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'=')
    .remove(b',')
    .remove(b':');

/// Percent-encodes a part of a path.
pub fn encode(part: &str) -> String {
    // A client would resolve away a part of only dots.
    match part.bytes().all(|b| b == b'.') {
        true => part.replace('.', "%2E"),
        false => utf8_percent_encode(part, PART).to_string(),
    }
}

/// Undoes percent-encoding; `None` if it is invalid or not UTF-8.
pub fn decode(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let high = char::from(rest.next()?).to_digit(16)?;
        let low = char::from(rest.next()?).to_digit(16)?;
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Value of a query parameter, decoded.
pub fn query(query: Option<&str>, name: &str) -> Option<String> {
    query?.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then(|| decode(&value.replace('+', "%20")))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(parts: &[&str]) -> Vec<String> {
        parts.iter().map(|&part| part.to_owned()).collect()
    }

    #[test]
    fn paths_with_slashes_and_empty_parts_find_their_way() {
        assert_eq!(
            route("/api/v1/streams/team%2Ffraud/v1//binary"),
            Route::Stream(owned(&["team/fraud", "v1", "", "binary"]))
        );
        assert_eq!(
            route("/api/v1/streams/a/1//binary/reliability"),
            Route::Reliability(owned(&["a", "1", "", "binary"]))
        );
        assert_eq!(
            route("/api/v1/streams/a%2F1%2F%2Fbinary/reliability"),
            Route::Reliability(owned(&["a/1//binary"]))
        );
        assert_eq!(
            route("/api/v1/streams/a/1//binary/recalibration"),
            Route::Recalibration(owned(&["a", "1", "", "binary"]))
        );
        assert_eq!(
            route("/api/v1/models/team%2Ffraud/comparison"),
            Route::Comparison(Some("team/fraud".to_owned()))
        );
        assert_eq!(route("/api/v1/models/fraud"), Route::Unknown);
        assert_eq!(route("/api/v1/streams/a/b"), Route::Unknown);
        assert_eq!(route("/api/v1/streams/%zz"), Route::Unknown);
        assert_eq!(route("/api/v1/streams/%ff"), Route::Unknown);
        assert_eq!(route("/favicon.ico"), Route::Icon);
        assert_eq!(route("/favicon.png"), Route::Unknown);
    }

    #[test]
    fn encoding_is_undone_by_decoding() {
        for part in [
            "", "a b", "100%", "ü/λ", "k=v,l=w", "..", "class:3", "?x=1&y#z",
        ] {
            let encoded = encode(part);
            assert!(!encoded.contains(['/', '?', '#', '&', ' ']), "{encoded}");
            assert_eq!(decode(&encoded).as_deref(), Some(part));
        }
        assert_eq!(encode(".."), "%2E%2E");
        assert_eq!(encode("a-._~=,:é/"), "a-._~=,:%C3%A9%2F");
    }

    #[test]
    fn query_values_are_decoded() {
        assert_eq!(
            query(Some("a=1&window=last%3A100"), "window").as_deref(),
            Some("last:100")
        );
        assert_eq!(query(Some("model=a+b"), "model").as_deref(), Some("a b"));
        assert_eq!(query(Some("a=1"), "b"), None);
        assert_eq!(query(None, "b"), None);
    }
}
