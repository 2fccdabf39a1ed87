//! Decides which requests are let in.
//!
//! The server speaks plain HTTP, mostly inside a network. A browser in that network sends requests
//! on behalf of any page that it shows. Three checks keep such pages out:
//!
//! * `Host` must be an address, `localhost`, a name without dots, a name inside a cluster (`.svc`,
//!   `.cluster.local`, `.internal`, `.local`), or one of `[http] hosts`: a page whose own name
//!   resolves to this server (DNS rebinding) reads nothing. `/live` and `/ready` are excepted,
//!   because probes use other names. So such a page can read what is not ready, and why: this may
//!   name topics, brokers and groups, but no model and no score.
//! * `Origin`, if a browser sends it, must be this server.
//! * A request that changes something must be of type JSON or have the header `X-Requested-By`. A
//!   page can send neither to another server without a preflight request. A request with a body is
//!   refused later if it is not of type JSON, so the hint names the header only for requests
//!   without a body.
//!
//! If `[http] token` is set, changes and the tap need it as `Authorization: Bearer`.

use std::net::IpAddr;

use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN, WWW_AUTHENTICATE,
};
use hyper::{Method, StatusCode, Uri};
use sha2::{Digest, Sha256};

use super::alerts;
use super::path::{Route, route};
use super::response::{Answer, error};

/// The header that names the sender, and shows that the request is not from a page of another
/// server.
pub const REQUESTED_BY: &str = "x-requested-by";

/// Types of bodies that no page of another server can send without a preflight request.
const JSON_KINDS: [&str; 2] = ["application/json", "application/x-ndjson"];

/// Longest name of an actor that is logged.
const ACTOR_MAX: usize = 100;

/// Suffixes that no public name has.
const INSIDE: [&str; 5] = [
    ".svc",
    ".cluster.local",
    ".internal",
    ".local",
    ".localhost",
];

/// Who is let in.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AccessOptions {
    /// Names of this server, in addition to those that cannot be public.
    pub hosts: Vec<String>,
    /// The token that changes and the tap need, if any.
    pub token: Option<String>,
    /// Longest body of a request with events.
    pub event_bytes_max: usize,
}

impl std::fmt::Debug for AccessOptions {
    /// Omits the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessOptions")
            .field("hosts", &self.hosts)
            .field("event_bytes_max", &self.event_bytes_max)
            .finish_non_exhaustive()
    }
}

impl AccessOptions {
    /// Whether requests for this host, with a port or without, are let in.
    pub fn serves(&self, authority: &str) -> bool {
        is_ours(name_of(authority), &self.hosts)
    }
}

/// Why a request is not let in, if it is not.
pub fn refusal(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    access: &AccessOptions,
) -> Option<Answer> {
    let route = route(uri.path());
    if matches!(route, Route::Live | Route::Ready) {
        return None;
    }
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
    let host = text(HOST).or(uri.authority().map(|a| a.as_str()));
    if let Some(host) = host
        && !access.serves(host)
    {
        let what = format!("`{}` is no name of this server", name_of(host));
        let hint = "add it to `hosts` in [http], or use the address";
        return Some(error(StatusCode::MISDIRECTED_REQUEST, &what, hint));
    }
    if let Some(origin) = text(ORIGIN)
        && origin.split_once("://").map(|(_, authority)| authority) != host
    {
        let hint = "requests come from this server's own pages, or from programs";
        return Some(error(
            StatusCode::FORBIDDEN,
            "a page of another server asks",
            hint,
        ));
    }
    // Routes refuse other methods themselves.
    let changes = match route {
        Route::Reload | Route::Events(_) => method == Method::POST,
        _ => alerts::changes(method, &route),
    };
    if changes {
        let kind = text(CONTENT_TYPE).unwrap_or_default();
        let json = JSON_KINDS.iter().any(|json| kind.starts_with(json));
        if !json && text_of_actor(headers).is_none() {
            let what = "the request could come from any page";
            let hint = match route {
                Route::Events(_) => {
                    "send `content-type: application/json`, or application/x-ndjson with one event in each line"
                }
                Route::Reload | Route::Silence(_) => {
                    "send `content-type: application/json` or `x-requested-by: NAME`"
                }
                _ => "send JSON and say so: `content-type: application/json`",
            };
            return Some(error(StatusCode::UNSUPPORTED_MEDIA_TYPE, what, hint));
        }
    }
    let token = access
        .token
        .as_deref()
        .filter(|_| changes || matches!(route, Route::Tap))?;
    let given = text(AUTHORIZATION).and_then(bearer);
    if given.is_some_and(|given| same(given, token)) {
        return None;
    }
    let hint = "send `authorization: Bearer TOKEN` with the `token` of [http]";
    let what = "the token is missing or another";
    let mut refused = error(StatusCode::UNAUTHORIZED, what, hint);
    let scheme = HeaderValue::from_static("Bearer");
    refused.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    Some(refused)
}

/// The token of a header. The name of the scheme may be in any case (RFC 9110, 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim_start_matches(' '))
}

/// The name that a request gives for its sender; `-` without one.
pub fn actor(headers: &HeaderMap) -> &str {
    text_of_actor(headers).unwrap_or("-")
}

fn text_of_actor(headers: &HeaderMap) -> Option<&str> {
    let name = headers.get(REQUESTED_BY)?.to_str().ok()?;
    Some(name).filter(|n| !n.is_empty() && n.len() <= ACTOR_MAX)
}

/// A host without its port.
fn name_of(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => authority
            .rsplit_once(':')
            .map_or(authority, |(name, _)| name),
    }
}

fn is_ours(name: &str, hosts: &[String]) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let inside = !name.contains('.') || INSIDE.iter().any(|end| name.ends_with(end));
    name.parse::<IpAddr>().is_ok() || inside || hosts.iter().any(|h| h.eq_ignore_ascii_case(&name))
}

/// Compares in constant time.
fn same(a: &str, b: &str) -> bool {
    Sha256::digest(a) == Sha256::digest(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderName;

    fn status(
        method: Method,
        path: &'static str,
        headers: &[(&'static str, &str)],
        access: &AccessOptions,
    ) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(
                HeaderName::from_static(name),
                HeaderValue::from_str(value).expect("a value"),
            );
        }
        let refused = refusal(&method, &Uri::from_static(path), &map, access);
        refused.map_or(200, |answer| answer.status().as_u16())
    }

    #[test]
    fn foreign_names_and_pages_are_refused_everywhere_but_for_probes() {
        let access = AccessOptions {
            hosts: vec!["trueline.example.com".to_owned()],
            ..AccessOptions::default()
        };
        let get = |path, host: &str| status(Method::GET, path, &[("host", host)], &access);
        for host in [
            "127.0.0.1:9464",
            "[::1]:9464",
            "localhost",
            "trueline:9464",
            "t.ml.svc:80",
            "Trueline.example.com",
        ] {
            assert_eq!(get("/metrics", host), 200, "{host}");
        }
        for path in ["/", "/metrics", "/api/v1/streams", "/api/v1/tap"] {
            assert_eq!(get(path, "evil.example"), 421, "{path}");
            assert_eq!(get(path, "127.0.0.1.evil.example:80"), 421, "{path}");
        }
        assert_eq!(
            (get("/live", "evil.example"), get("/ready", "evil.example")),
            (200, 200)
        );
        let from = |origin: &str| {
            let headers = [
                ("host", "localhost:9464"),
                ("origin", origin),
                ("content-type", "application/json"),
            ];
            status(Method::POST, "/-/reload", &headers, &access)
        };
        assert_eq!(from("http://localhost:9464"), 200);
        for origin in ["http://evil.example", "null", "http://localhost:9465"] {
            assert_eq!(from(origin), 403, "{origin}");
        }
    }

    #[test]
    fn changes_need_what_no_foreign_page_can_send_and_the_token_if_there_is_one() {
        let open = AccessOptions::default();
        let closed = AccessOptions {
            token: Some("secret".to_owned()),
            ..AccessOptions::default()
        };
        let post = |headers: &[(&'static str, &str)], access| {
            status(Method::POST, "/-/reload", headers, access)
        };
        assert_eq!(post(&[], &open), 415);
        let silence = |method| status(method, "/api/v1/silences/7", &[], &closed);
        assert_eq!(silence(Method::DELETE), 415);
        for method in [Method::OPTIONS, Method::PUT, Method::POST] {
            // The route refuses other methods.
            assert_eq!(silence(method), 200);
        }
        assert_eq!(post(&[("content-type", "text/plain")], &open), 415);
        let json = ("content-type", "application/json");
        assert_eq!(post(&[json], &open), 200);
        assert_eq!(post(&[("x-requested-by", "ann")], &open), 200);
        for (value, expected) in [
            ("Bearer secret", 200),
            ("bearer  secret", 200),
            ("Basic secret", 401),
            ("Bearer SECRET", 401),
            ("Bearer other", 401),
            ("secret", 401),
            ("Bearer ", 401),
        ] {
            assert_eq!(
                post(&[json, ("authorization", value)], &closed),
                expected,
                "{value}"
            );
        }
        let get = |path| status(Method::GET, path, &[], &closed);
        assert_eq!(
            (get("/api/v1/tap"), get("/metrics"), get("/")),
            (401, 200, 200)
        );
        let tap = Uri::from_static("/api/v1/tap");
        let refused = refusal(&Method::GET, &tap, &HeaderMap::new(), &closed);
        let refused = refused.expect("it has no token");
        assert_eq!(refused.headers()[WWW_AUTHENTICATE], "Bearer");
        assert!(!format!("{closed:?}").contains("secret"));
    }
}
