//! Builds responses.
//!
//! Every response except that of the tap is complete in memory before it is sent. An error of the
//! JSON API is an object with `error`, the problem, and `hint`, the remedy. Clients must not cache
//! responses, because a verdict is valid only for its moment.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap,
    HeaderValue, RETRY_AFTER,
};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

/// The text of an error response, carried with the response for the log.
#[derive(Debug, Clone)]
pub struct Reason(pub String);

/// A response that is complete in memory.
pub type Answer = Response<Full<Bytes>>;

/// Content type of a line of plain text.
pub const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
/// Content type of the script.
pub const SCRIPT: &str = "text/javascript; charset=utf-8";
/// Content type of the icon.
pub const ICON: &str = "image/svg+xml";
const HTML: &str = "text/html; charset=utf-8";

/// An error of the JSON API.
pub fn error(status: StatusCode, what: &str, hint: &str) -> Answer {
    json_answer(status, &json!({ "error": what, "hint": hint }))
}

/// A temporary error: the request can be sent again in some seconds.
pub fn later(status: StatusCode, what: &str, hint: &str) -> Answer {
    let mut answer = error(status, what, hint);
    let seconds = HeaderValue::from_static("5");
    answer.headers_mut().insert(RETRY_AFTER, seconds);
    answer
}

/// JSON with status 200.
pub fn ok(body: &Value) -> Answer {
    json_answer(StatusCode::OK, body)
}

/// An HTML page.
pub fn html(body: String) -> Answer {
    html_of(StatusCode::OK, body)
}

/// An HTML page with a status.
pub fn html_of(status: StatusCode, body: String) -> Answer {
    let mut answer = whole(status, HTML, body);
    // Pages contain their own styles and drawings and run one script of this server. This tells the
    // browser to allow nothing else.
    answer.headers_mut().insert(
        "content-security-policy",
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; img-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
    );
    answer
}

/// JSON with a status.
pub fn json_answer(status: StatusCode, body: &Value) -> Answer {
    let mut text = serde_json::to_vec_pretty(body).unwrap_or_default();
    text.push(b'\n');
    let mut answer = whole(status, JSON, text);
    if let Some(error) = body.get("error").and_then(Value::as_str) {
        answer.extensions_mut().insert(Reason(error.to_owned()));
    }
    answer
}

/// A complete body of any content type.
pub fn whole(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    answer
}

/// Whether a client accepts a compressed body.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|v| v.to_str().ok());
    let mut codings = accepted.unwrap_or_default().split(',');
    codings.any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = ["q=0", "q=0.0", "q=0.00", "q=0.000"].contains(&quality.trim());
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

/// An answer with its body compressed.
pub fn gzipped(answer: Answer) -> Answer {
    let (mut head, body) = answer.into_parts();
    let body = body.into_inner().unwrap_or_default();
    let mut packed = GzEncoder::new(Vec::with_capacity(body.len() / 8), Compression::fast());
    // Writing to memory cannot fail.
    let packed = packed.write_all(&body).and_then(|()| packed.finish());
    let Ok(packed) = packed else {
        return Response::from_parts(head, Full::new(body));
    };
    let coding = HeaderValue::from_static("gzip");
    head.headers.insert(CONTENT_ENCODING, coding);
    Response::from_parts(head, Full::new(Bytes::from(packed)))
}

/// A table for download.
pub fn table(text: String) -> Answer {
    let mut answer = whole(StatusCode::OK, "text/csv; charset=utf-8", text);
    let disposition = HeaderValue::from_static("attachment; filename=\"recalibration.csv\"");
    answer
        .headers_mut()
        .insert(CONTENT_DISPOSITION, disposition);
    answer
}

/// The response of the tap, with this body.
pub fn pairs<B>(body: B) -> Response<B> {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-ndjson"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
