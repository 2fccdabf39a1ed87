//! Builds a whole response from a method, a path and the published state. Only an explanation does
//! I/O: it reads the record of a change.

use crate::report::moment::rfc3339;
use http_body_util::Full;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;

use super::path::{self, Route, page_path, route};
use super::recalibration::{self, NoTable};
use super::response::{
    Answer, ICON, PLAIN, SCRIPT, error, html, html_of, json_answer, later, ok, pairs, table, whole,
};
use super::urgency::Filter;
use super::{alerts, api, history, page, routes, runbooks, sources};
use crate::judge::StreamReport;
use crate::telemetry::facts::{AlertFacts, Role};
use crate::telemetry::taps::RATE_MAX;
use crate::telemetry::{Published, now_ms, scrape};

/// Pairs per second of a tap, if the request does not say.
const RATE: u32 = 10;

/// Answers one request. A request for an explanation reads files.
pub fn answer(method: &Method, uri: &Uri, published: &Published) -> Answer {
    let route = route(uri.path());
    if let Route::Reload = route {
        return refuse(method, "POST", "only POST reloads the configuration");
    }
    if let Route::Events(_) = route {
        return refuse(method, "POST", "only POST appends events");
    }
    if let Route::Silence(_) = route {
        return refuse(method, "DELETE", "only DELETE lifts a silence");
    }
    if let Route::Acknowledge(_) | Route::Close(_) | Route::Deploy(_) = route {
        let hint = "only POST acknowledges or closes an alert, or marks a deployment";
        return refuse(method, "POST", hint);
    }
    if let Route::Unknown = route {
        return nothing_at(uri.path());
    }
    if method != Method::GET && method != Method::HEAD {
        let allow = match route {
            Route::Silences => "GET, HEAD, POST",
            _ => "GET, HEAD",
        };
        let hint = "the header `allow` has the methods of this path; /api/v1 lists all addresses";
        return refuse(method, allow, hint);
    }
    let query = uri.query();
    match route {
        Route::Index => html(page::index(published, query)),
        Route::AlertsPage => html(page::alerts(published, now_ms())),
        Route::Script => whole(StatusCode::OK, SCRIPT, page::SCRIPT),
        Route::Icon => whole(StatusCode::OK, ICON, page::ICON),
        Route::Addresses => ok(&routes::list()),
        Route::OpenApi => ok(&routes::open_api()),
        Route::Sources => ok(&sources::json(published)),
        Route::Explanation(key) => explanation(&key, published),
        Route::History(parts) => of_stream(&parts, published, |r| past(r, query, published)),
        Route::Metrics => metrics(published),
        Route::Live => live(published),
        Route::Ready => ready(published),
        Route::Streams => streams(query, published),
        Route::Ledger => ok(&api::ledger(published)),
        Route::Comparison(model) => compared(model.as_deref(), published),
        Route::Stream(parts) => of_stream(&parts, published, |r| ok(&api::stream(r, published))),
        Route::Reliability(parts) => of_stream(&parts, published, |r| reliability(r, query)),
        Route::Recalibration(parts) => of_stream(&parts, published, |r| recalibration(r, query)),
        Route::Page(parts) => of_stream(&parts, published, |r| {
            let window = path::query(query, "window");
            html(page::stream(r, published, window.as_deref(), now_ms()))
        }),
        Route::Alerts => {
            let all =
                path::query(query, "all").is_some_and(|v| !["0", "false"].contains(&v.as_str()));
            ok(&alerts::list(published, all))
        }
        Route::Silences => ok(&alerts::silences(published)),
        Route::Deployments => ok(&alerts::deployments(published)),
        Route::Runbooks => html(runbooks::list()),
        Route::Runbook(name) => document(runbooks::one(&name), "runbook", &name),
        Route::Guide(name) => document(runbooks::guide(&name), "page of the guide", &name),
        // For a GET, the server sends a stream of lines.
        Route::Tap => pairs(Full::default()),
        Route::Reload
        | Route::Events(_)
        | Route::Acknowledge(_)
        | Route::Close(_)
        | Route::Deploy(_)
        | Route::Silence(_)
        | Route::Unknown => nothing_at(uri.path()),
    }
}

fn document(page: Option<String>, noun: &str, name: &str) -> Answer {
    match page {
        Some(page) => html(page),
        None => {
            let what = format!("no {noun} is called {name}");
            error(StatusCode::NOT_FOUND, &what, "see /runbooks for all names")
        }
    }
}

fn nothing_at(path: &str) -> Answer {
    let near = routes::nearest(path);
    let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
    let hint = format!(
        "{near}see / for the pages and /api/v1 for all addresses; the parts of a stream's id must be percent-encoded"
    );
    error(StatusCode::NOT_FOUND, &format!("nothing at {path}"), &hint)
}

/// The page for a browser at an address with nothing, with streams of similar names.
pub fn nothing_page(uri: &Uri, published: &Published) -> Answer {
    let path = uri.path();
    let stream = path.strip_prefix("/streams/").and_then(path::decode);
    let (what, hint, links) = match stream {
        Some(name) => {
            let model = name.split('/').next().unwrap_or_default().to_owned();
            let filter = Filter {
                q: model,
                ..Filter::default()
            };
            let near = filter.named(published).into_iter().take(20);
            let links: Vec<(String, String)> = near
                .map(|(_, r)| (page_path(&r.id), r.id.to_string()))
                .collect();
            let hint = match links.is_empty() {
                true => "No stream has a name like that. It may have expired, or not begun.",
                false => "Streams with such a name:",
            };
            (format!("There is no stream {name}."), hint, links)
        }
        None => {
            let near = routes::nearest(path).filter(|near| !near.contains('{'));
            let links = near.map(|near| (near.to_owned(), near.to_owned()));
            let hint = "The pages are listed above, and all addresses at /api/v1.";
            (
                format!("There is nothing at {path}."),
                hint,
                links.into_iter().collect(),
            )
        }
    };
    html_of(StatusCode::NOT_FOUND, page::nothing(&what, hint, &links))
}

/// The streams that a filter selects. Its state must exist.
fn streams(query: Option<&str>, published: &Published) -> Answer {
    let filter = Filter::of(query);
    if let Some((what, hint)) = filter.fault() {
        return error(StatusCode::BAD_REQUEST, &what, hint);
    }
    let number = |name: &str, default: usize| match path::query(query, name) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| name.to_owned()),
    };
    match (number("offset", 0), number("limit", usize::MAX)) {
        (Ok(offset), Ok(limit)) => ok(&api::streams(published, &filter, offset, limit)),
        (Err(name), _) | (_, Err(name)) => {
            let what = format!("`{name}` is not a number");
            error(StatusCode::BAD_REQUEST, &what, "write a number of streams")
        }
    }
}

/// The record of a change of an alert, recomputed. `key` is the key of the record, or the name or
/// fingerprint of an alert, whose newest record is meant. Reads files.
fn explanation(key: &str, published: &Published) -> Answer {
    let facts = published.facts();
    let of_stream = |a: &AlertFacts| {
        let mut streams = a.streams.iter();
        streams.any(|id| key.starts_with(&id.fingerprint()))
    };
    let mut wanted = vec![key.to_owned()];
    // A key or fingerprint of a stream means that stream; anything else means all streams of the
    // alert.
    if !facts.alerts.iter().any(of_stream) {
        // The last two parts of a key are the time and the new state.
        let mut parts = key.rsplitn(3, '-');
        let at = match (parts.next(), parts.next(), parts.next()) {
            (Some(state), Some(at), Some(_)) => format!("-{at}-{state}"),
            _ => String::new(),
        };
        for alert in facts.alerts.iter().filter(|a| a.is_called(key)) {
            let rest = if alert.is_named(key) { "" } else { &at };
            let streams = alert.streams.iter();
            wanted.extend(streams.map(|id| format!("{}{rest}", id.fingerprint())));
        }
    }
    let Some(e) = published.control.explain(&wanted) else {
        let hint = "a key, or the fingerprint or name of an alert, as /api/v1/alerts, the history of a stream and \
                    `trueline explain` list them; old records are removed \
                    (records_max), and a process that does not judge keeps none";
        return error(StatusCode::NOT_FOUND, &format!("no record `{key}`"), hint);
    };
    ok(&json!({
        "key": e.key,
        "at_ms": e.at_ms,
        "at": rfc3339(e.at_ms),
        "sentence": e.sentence,
        "words": e.words.lines().collect::<Vec<_>>(),
        "recomputed_equal": e.equal,
        "taken_as_it_stands": e.taken,
        "recomputed_different": e.different,
    }))
}

/// The answer if too many other requests ask for explanations.
pub fn busy_explaining() -> Answer {
    let what = "others ask why alerts changed, and that reads the disk";
    let hint = "send the request again in a moment";
    later(StatusCode::SERVICE_UNAVAILABLE, what, hint)
}

/// The answer if other responses take too long to build.
pub fn busy_building() -> Answer {
    let what = "other responses take long to build, and few are built at a time";
    let hint = "send the request again in a moment, or ask for less with `limit`";
    later(StatusCode::SERVICE_UNAVAILABLE, what, hint)
}

/// The history of a stream.
fn past(report: &StreamReport, query: Option<&str>, published: &Published) -> Answer {
    let window = path::query(query, "window");
    let since = path::query(query, "since_ms").map(|s| s.parse());
    let since_ms = match since {
        None => i64::MIN,
        Some(Ok(ms)) => ms,
        Some(Err(_)) => {
            let hint = "write milliseconds since 1970";
            return error(StatusCode::BAD_REQUEST, "`since_ms` is not a number", hint);
        }
    };
    let body = history::json(report, published, window.as_deref(), since_ms);
    of_window(body, report, window.as_deref())
}

fn refuse(method: &Method, allow: &'static str, hint: &str) -> Answer {
    let what = format!("method {method}");
    let mut refused = error(StatusCode::METHOD_NOT_ALLOWED, &what, hint);
    let headers = refused.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(allow));
    refused
}

/// The answer if a reload is under way.
pub fn busy_reloading() -> Answer {
    let what = "a reload is under way";
    let hint = "reload again in a moment";
    later(StatusCode::SERVICE_UNAVAILABLE, what, hint)
}

/// Reads the configuration again and says what became of it. Reads files and waits for the engine.
pub fn reload(published: &Published) -> Answer {
    let Some(done) = published.control.reload() else {
        let hint = "start it with `trueline run --config FILE`";
        let what = "there is no configuration file to read again";
        return error(StatusCode::SERVICE_UNAVAILABLE, what, hint);
    };
    if done.unanswered {
        let what =
            "the engine has not answered: whether it takes the new configuration is not known yet";
        let hint =
            "reload again; until a reload is answered, the hash is that of the old configuration";
        return later(StatusCode::SERVICE_UNAVAILABLE, what, hint);
    }
    if !done.problems.is_empty() {
        let body = json!({
            "reloaded": false,
            "error": "the configuration is invalid; the old one stays in force",
            "hint": "correct the file; `trueline check` reports the same problems",
            "problems": done.problems,
        });
        return json_answer(StatusCode::UNPROCESSABLE_ENTITY, &body);
    }
    ok(&json!({
        "reloaded": true,
        "applied": done.applied,
        "needs_restart": done.needs_restart,
        "hash": published.facts().config.hash,
    }))
}

/// Begins to listen to pairs, for a GET of the tap; an error is the answer to send.
pub fn listen(uri: &Uri, published: &Published) -> Result<Receiver<String>, Box<Answer>> {
    if let Role::Judge(_) | Role::Standby = published.facts().role {
        let what = "this process judges and reads no records";
        let hint = "ask a worker: it counts the pairs of its partitions";
        return Err(Box::new(error(StatusCode::CONFLICT, what, hint)));
    }
    if published.draining() {
        let (what, hint) = ("the program is stopping", "ask the process that follows it");
        let refused = error(StatusCode::SERVICE_UNAVAILABLE, what, hint);
        return Err(Box::new(refused));
    }
    let model = path::query(uri.query(), "model");
    let rate = match path::query(uri.query(), "rate").map(|r| r.parse()) {
        None => RATE,
        Some(Ok(rate)) if (1..=RATE_MAX).contains(&rate) => rate,
        Some(_) => {
            let hint = "write a number of pairs a second, from 1 to 1000";
            let what = "`rate` is not a number from 1 to 1000";
            let refused = error(StatusCode::BAD_REQUEST, what, hint);
            return Err(Box::new(refused));
        }
    };
    published.taps.listen(model, rate).ok_or_else(|| {
        let (what, hint) = ("too many listen already", "end one of them first");
        Box::new(error(StatusCode::SERVICE_UNAVAILABLE, what, hint))
    })
}

fn metrics(published: &Published) -> Answer {
    match scrape::text(published) {
        Ok(body) => whole(
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            body,
        ),
        Err(cause) => {
            crate::warn_limited!(error = %cause, "could not encode the metrics");
            let what = "the metrics could not be encoded";
            let hint = "see the log; this is a bug of trueline";
            error(StatusCode::INTERNAL_SERVER_ERROR, what, hint)
        }
    }
}

fn live(published: &Published) -> Answer {
    let within = published.limits().live_within;
    let silent = published.silent().into_iter();
    let silent: serde_json::Map<String, Value> = silent
        .map(|(name, silence)| (name, json!(silence.as_secs_f64())))
        .collect();
    if silent.is_empty() {
        return whole(StatusCode::OK, PLAIN, "live\n");
    }
    let body =
        json!({ "live": false, "within_seconds": within.as_secs_f64(), "silent_seconds": silent });
    json_answer(StatusCode::SERVICE_UNAVAILABLE, &body)
}

fn ready(published: &Published) -> Answer {
    let missing = published.missing();
    if missing.is_empty() {
        return whole(StatusCode::OK, PLAIN, "ready\n");
    }
    let body = json!({ "ready": false, "draining": published.draining(), "missing": missing });
    json_answer(StatusCode::SERVICE_UNAVAILABLE, &body)
}

/// The comparisons of versions. An unknown model is an error; one whose versions share no id yet is
/// not.
fn compared(model: Option<&str>, published: &Published) -> Answer {
    let body = api::comparisons(published, model);
    let known = |model: &str| published.reports().iter().any(|r| r.id.model == model);
    match model {
        Some(model) if body["count"] == 0 && !known(model) => {
            let hint = "/api/v1/streams lists what is known; the name must be percent-encoded";
            error(StatusCode::NOT_FOUND, &format!("no model `{model}`"), hint)
        }
        _ => ok(&body),
    }
}

fn reliability(report: &StreamReport, query: Option<&str>) -> Answer {
    let window = path::query(query, "window");
    let body = api::reliability(report, window.as_deref());
    of_window(body, report, window.as_deref())
}

/// The answer about one window or all; an error if there is no window of that name.
fn of_window(body: Option<Value>, report: &StreamReport, window: Option<&str>) -> Answer {
    body.map_or_else(|| no_window(report, window), |body| ok(&body))
}

fn no_window(report: &StreamReport, window: Option<&str>) -> Answer {
    let names: Vec<&str> = report.windows.iter().map(|w| w.window.as_str()).collect();
    let what = format!("no window `{}`", window.unwrap_or_default());
    let hint = format!("this stream has {}", names.join(", "));
    error(StatusCode::NOT_FOUND, &what, &hint)
}

/// The recalibration maps of a stream, as JSON or as a table for download.
fn recalibration(report: &StreamReport, query: Option<&str>) -> Answer {
    let window = path::query(query, "window");
    let window = window.as_deref();
    match path::query(query, "format").as_deref() {
        None | Some("json") => of_window(recalibration::json(report, window), report, window),
        Some("csv") => {
            let method = path::query(query, "method");
            match recalibration::csv(report, window, method.as_deref()) {
                Ok(text) => table(text),
                Err(NoTable::Window) => no_window(report, window),
                Err(NoTable::Method) => {
                    let what = format!("no map `{}`", method.unwrap_or_default());
                    let hint = "write logistic, beta, isotonic or advised";
                    error(StatusCode::BAD_REQUEST, &what, hint)
                }
                Err(NoTable::Map) => {
                    let hint = "the same address without `format` says why; `method` takes a map that is not advised";
                    error(StatusCode::NOT_FOUND, "no map is advised", hint)
                }
            }
        }
        Some(other) => {
            let what = format!("no format `{other}`");
            error(StatusCode::BAD_REQUEST, &what, "write json or csv")
        }
    }
}

/// The answer about the stream that these parts name; an error if there is none.
fn of_stream(
    parts: &[String],
    published: &Published,
    answer: impl FnOnce(&StreamReport) -> Answer,
) -> Answer {
    let Some(report) = path::find(parts, published) else {
        let what = format!("no stream `{}`", parts.join("/"));
        let hint = "see /api/v1/streams for the streams seen so far and their addresses";
        return error(StatusCode::NOT_FOUND, &what, hint);
    };
    answer(&report)
}
