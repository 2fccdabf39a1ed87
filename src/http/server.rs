//! The HTTP server: one task per connection, every wait bounded.
//!
//! A request head may have 16 KiB and must arrive within ten seconds. A connection lives at most
//! five minutes; then it must close after its current response, and is dropped if it does not.
//! [`Connections`] decides who may connect and whose connection ends for another, and
//! [`access`](super::access) which requests are let in. [`Bodies`] limits the memory of responses
//! to slow clients, and [`StallGuard`] ends the connection of a client that reads nothing. Separate
//! threads wait for the disk or the engine, and build responses that take long: with many streams a
//! list takes seconds. The caller binds the listener, so that a port in use is detected before
//! anything starts.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::Receiver;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::access::{self, AccessOptions};
use super::bodies::Bodies;
use super::connections::{ConnectionSlot, Connections};
use super::path::{Route, route};
use super::response::{self, Answer, Reason};
use super::stall::StallGuard;
use super::{alerts, answer, events};
use crate::telemetry::Published;

/// Most bytes of the request line and headers.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Most headers of one request.
const HEADERS_MAX: usize = 64;
/// A request's head must be complete within this time; also how long a connection may idle between
/// requests. More than the usual scrape interval of 15 s would avoid reconnects, but these are
/// cheap.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// Age at which a connection must close.
const AGE_MAX: Duration = Duration::from_secs(300);
/// Time for the last response of a connection that must close.
const LAST_ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Requests with events at a time: their bodies are being read or wait for the disk.
pub const POSTS_MAX: usize = 16;
/// Requests at a time that change alerts, silences or deployments: their bodies are being read, or
/// they wait for the disk.
pub const CHANGES_MAX: usize = 8;
/// Explanations that are computed at a time: each may read all records, and people ask for one.
const EXPLANATIONS_MAX: usize = 2;
/// Pages and lists that are built at a time: each takes a processor, and memory beyond its body.
const BUILDS_MAX: usize = 2;
/// Responses of `/metrics` that are built at a time; they do not wait for pages and lists.
const SCRAPES_MAX: usize = 1;
/// Reloads at a time. Each may wait for the engine, whether or not its client still waits.
const RELOADS_MAX: usize = 1;
/// How long a request waits until its response can be built.
const BUILT_WITHIN: Duration = Duration::from_secs(10);
/// Pause between two checks whether the last connections have ended.
const ENDING_PAUSE: Duration = Duration::from_millis(20);
/// Pause after a failed accept, which usually means that file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A complete body, or a stream of lines.
type Body = Either<Full<Bytes>, Lines>;

/// Lines as they arrive, until the client disconnects.
struct Lines(Receiver<String>);

impl hyper::body::Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let line = self.0.poll_recv(context);
        line.map(|line| line.map(|line| Ok(Frame::data(Bytes::from(line)))))
    }
}

/// Serves requests until `shutdown` resolves, then lets open requests finish.
pub async fn serve(
    listener: TcpListener,
    published: Arc<Published>,
    access: AccessOptions,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let state = Arc::new(ServerState {
        published,
        access,
        posts: Arc::new(Semaphore::new(POSTS_MAX)),
        changes: Arc::new(Semaphore::new(CHANGES_MAX)),
        explanations: Arc::new(Semaphore::new(EXPLANATIONS_MAX)),
        builds: Arc::new(Semaphore::new(BUILDS_MAX)),
        scrapes: Arc::new(Semaphore::new(SCRAPES_MAX)),
        reloads: Arc::new(Semaphore::new(RELOADS_MAX)),
        bodies: Bodies::default(),
    });
    let connections = Arc::new(Connections::default());
    let (close, closing) = watch::channel(false);
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => accept(stream, peer, &connections, &state, &closing),
                Err(error) => {
                    crate::warn_limited!(error = %error, "could not accept an http connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let _ = close.send(true);
    let all_ended = async {
        while !connections.is_empty() {
            sleep(ENDING_PAUSE).await;
        }
    };
    let _ = timeout(LAST_ANSWER_WITHIN * 2, all_ended).await;
    Ok(())
}

/// What requests are answered from, who is let in, and how many requests run at a time.
struct ServerState {
    published: Arc<Published>,
    access: AccessOptions,
    /// Places of requests with events.
    posts: Arc<Semaphore>,
    /// Places of requests that change something.
    changes: Arc<Semaphore>,
    /// Places of explanations.
    explanations: Arc<Semaphore>,
    /// Places of pages and lists that are built.
    builds: Arc<Semaphore>,
    /// Places of `/metrics`.
    scrapes: Arc<Semaphore>,
    /// Places of reloads.
    reloads: Arc<Semaphore>,
    /// Room for large responses.
    bodies: Bodies,
}

/// Starts a task for a connection, or responds that there are too many.
fn accept(
    stream: TcpStream,
    peer: SocketAddr,
    connections: &Arc<Connections>,
    state: &Arc<ServerState>,
    closing: &watch::Receiver<bool>,
) {
    let refused = &state.published.http.refused;
    let Some(slot) = connections.admit(peer.ip(), Instant::now()) else {
        refused.fetch_add(1, Ordering::Relaxed);
        let (open, of_address) = connections.open(peer.ip());
        crate::warn_limited!(%peer, open, of_address, "http connection refused, all places are taken");
        // Best effort: the buffer of a new socket takes these bytes.
        let _ = stream.try_write(
            b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n",
        );
        return;
    };
    if slot.made_room {
        refused.fetch_add(1, Ordering::Relaxed);
    }
    let state = Arc::clone(state);
    let closing = closing.clone();
    tokio::spawn(async move {
        let open = OpenConnection::of(&state);
        serve_connection(stream, peer, &slot, &state, closing).await;
        drop(open);
    });
}

/// Counts a connection as open until this is dropped, also by a panic.
struct OpenConnection(Arc<ServerState>);

impl OpenConnection {
    fn of(state: &Arc<ServerState>) -> OpenConnection {
        state.published.http.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(state))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.published.http.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves one connection.
async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    slot: &ConnectionSlot,
    state: &Arc<ServerState>,
    mut closing: watch::Receiver<bool>,
) {
    let service = service_fn(|request: Request<Incoming>| async move {
        slot.busy();
        let listens =
            request.method() == Method::GET && matches!(route(request.uri().path()), Route::Tap);
        let response = respond(request, peer, state).await;
        match listens && response.status().is_success() {
            true => slot.listening(),
            false => slot.idle(),
        }
        Ok::<_, Infallible>(response)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(StallGuard::new(stream)), service);
    let mut connection = pin!(connection);
    tokio::select! {
        // An error here is the client's fault: it hung up, was too slow or did not speak HTTP.
        _ = connection.as_mut() => return,
        () = slot.ended() => return,
        _ = closing.wait_for(|&now| now) => {}
        () = sleep(AGE_MAX) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(LAST_ANSWER_WITHIN, connection).await;
}

/// Responds to one request, counts it, and logs who changes something or is refused.
async fn respond(
    request: Request<Incoming>,
    peer: SocketAddr,
    state: &Arc<ServerState>,
) -> Response<Body> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let actor = access::actor(request.headers()).to_owned();
    let refused = access::refusal(&method, request.uri(), request.headers(), &state.access);
    let is_let_in = refused.is_none();
    let response = match refused {
        Some(refused) => refused.map(Either::Left),
        None => match route_request(request, state).await.into_parts() {
            (head, Either::Left(body)) => {
                let whole = Response::from_parts(head, body);
                state.bodies.admit(whole).await.map(Either::Left)
            }
            (head, lines) => Response::from_parts(head, lines),
        },
    };
    let status = response.status().as_u16();
    let changes = !matches!(method, Method::GET | Method::HEAD);
    if status >= 400 && (changes || !is_let_in) {
        let reason = response.extensions().get::<Reason>();
        let reason = reason.map_or("", |reason| reason.0.as_str());
        // Rate-limited, because anyone can send many of these.
        crate::warn_limited!(%peer, actor, %method, path, status, reason, "http request refused");
    } else if changes && !matches!(route(&path), Route::Events(_)) {
        // Not for events: they come all the time, and metrics count them.
        tracing::info!(%peer, actor, %method, path, status, "http request to change something");
    }
    let class = match status {
        200..=399 => 0,
        400..=499 => 1,
        _ => 2,
    };
    state.published.http.responses[class].fetch_add(1, Ordering::Relaxed);
    response
}

/// Responds to a request that was let in.
async fn route_request(request: Request<Incoming>, state: &Arc<ServerState>) -> Response<Body> {
    let published = &state.published;
    match (request.method(), route(request.uri().path())) {
        (&Method::POST, Route::Reload) => {
            let published = Arc::clone(published);
            let done = match Arc::clone(&state.reloads).try_acquire_owned() {
                Err(_) => answer::busy_reloading(),
                Ok(place) => {
                    let reload = move || {
                        let _place = place;
                        answer::reload(&published)
                    };
                    blocking(reload).await
                }
            };
            done.map(Either::Left)
        }
        (&Method::POST, Route::Events(topic)) => {
            take_events(request, topic, state).await.map(Either::Left)
        }
        (method, route) if alerts::changes(method, &route) => {
            change_alert(request, route, state).await.map(Either::Left)
        }
        (&Method::GET | &Method::HEAD, Route::Explanation(_)) => {
            let (method, uri) = (request.method().clone(), request.uri().clone());
            explain(method, uri, state).await.map(Either::Left)
        }
        (&Method::GET, Route::Tap) => match answer::listen(request.uri(), published) {
            Ok(lines) => response::pairs(Either::Right(Lines(lines))),
            Err(refused) => refused.map(Either::Left),
        },
        (method, Route::Live | Route::Ready) => {
            answer::answer(method, request.uri(), published).map(Either::Left)
        }
        _ => build(&request, state).await.map(Either::Left),
    }
}

/// Builds a response from the published state, once a place is free.
async fn build(request: &Request<Incoming>, state: &Arc<ServerState>) -> Answer {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let is_scrape = route(uri.path()) == Route::Metrics;
    let places = match is_scrape {
        true => &state.scrapes,
        false => &state.builds,
    };
    let place = Arc::clone(places).acquire_owned();
    let Ok(Ok(place)) = timeout(BUILT_WITHIN, place).await else {
        crate::warn_limited!("http response refused, others take long to build");
        return answer::busy_building();
    };
    let packs = is_scrape && response::takes_gzip(request.headers());
    let names_near = takes_html(request) && !uri.path().starts_with("/api");
    let theirs = Arc::clone(&state.published);
    blocking(move || {
        // The place is taken until the response is built, whether or not the client still waits.
        let _place = place;
        let answer = answer::answer(&method, &uri, &theirs);
        match answer.status() {
            StatusCode::NOT_FOUND if names_near => answer::nothing_page(&uri, &theirs),
            _ if packs => response::gzipped(answer),
            _ => answer,
        }
    })
    .await
}

/// Explains why an alert changed. Reads the disk on a separate thread, for few requests at a time:
/// probes and scrapes do not wait for it.
async fn explain(method: Method, uri: Uri, state: &Arc<ServerState>) -> Answer {
    let Ok(place) = Arc::clone(&state.explanations).try_acquire_owned() else {
        return answer::busy_explaining();
    };
    let theirs = Arc::clone(&state.published);
    blocking(move || {
        // The place is taken while the disk is read, whether or not the client still waits.
        let _place = place;
        answer::answer(&method, &uri, &theirs)
    })
    .await
}

/// Whether the client is a browser, because it accepts HTML.
fn takes_html(request: &Request<Incoming>) -> bool {
    let accepted = request.headers().get(ACCEPT).and_then(|v| v.to_str().ok());
    accepted.is_some_and(|kinds| kinds.contains("text/html"))
}

/// Handles a request about alerts. The body is bounded; the response waits for the disk. Few such
/// requests run at a time, so that slow bodies leave connections for probes.
async fn change_alert(
    request: Request<Incoming>,
    route: Route,
    state: &Arc<ServerState>,
) -> Answer {
    let method = request.method();
    let kind = request.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|v| v.to_str().ok()).unwrap_or_default();
    if method == Method::POST && !kind.starts_with("application/json") {
        let hint = "send JSON and say so: `content-type: application/json`";
        let what = "the body is not said to be JSON";
        return response::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, what, hint);
    }
    let Ok(place) = Arc::clone(&state.changes).try_acquire_owned() else {
        return alerts::busy();
    };
    let body = Limited::new(request.into_body(), alerts::BODY_BYTES_MAX).collect();
    let body = match timeout(HEAD_WITHIN, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let (what, hint) = ("the body is too long", "send at most 64 KiB");
            return response::error(StatusCode::PAYLOAD_TOO_LARGE, what, hint);
        }
        _ => {
            let what = "the body is too slow or broken off";
            let hint = "send the whole body within ten seconds";
            return response::error(StatusCode::BAD_REQUEST, what, hint);
        }
    };
    let theirs = Arc::clone(&state.published);
    // The work continues if the client leaves, and keeps its place.
    blocking(move || {
        let _place = place;
        alerts::change(&route, &body, &theirs)
    })
    .await
}

/// Takes events. Few such requests run at a time, because their bodies are in memory.
async fn take_events(
    request: Request<Incoming>,
    topic: Option<String>,
    state: &Arc<ServerState>,
) -> Answer {
    let Ok(place) = Arc::clone(&state.posts).try_acquire_owned() else {
        return events::busy();
    };
    let (head, body) = request.into_parts();
    let mut post = match events::post(topic, head.uri.query(), &head.headers) {
        Ok(post) => post,
        Err(refused) => return refused,
    };
    let most = state.access.event_bytes_max;
    let body = timeout(HEAD_WITHIN, Limited::new(body, most).collect()).await;
    match body {
        Ok(Ok(body)) => post.body = body.to_bytes().to_vec(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let what = format!("the body is longer than {most} bytes");
            let hint =
                "send fewer events in a request, or raise `request_bytes_max` of [http.events]";
            return response::error(StatusCode::PAYLOAD_TOO_LARGE, &what, hint);
        }
        _ => {
            let what = "the body is too slow or broken off, and nothing was appended";
            let hint = "send the whole body within ten seconds";
            return response::error(StatusCode::BAD_REQUEST, what, hint);
        }
    }
    let theirs = Arc::clone(&state.published);
    // The work continues if the client leaves, and keeps its place.
    blocking(move || {
        let _place = place;
        events::hand_over(&post, &theirs)
    })
    .await
}

/// Runs work that waits for the disk or the engine, or takes long, on a separate thread; returns
/// its answer.
async fn blocking(work: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    let done = tokio::task::spawn_blocking(work).await;
    // The work panicked.
    done.unwrap_or_else(|_| {
        let what = "the request broke something";
        let hint = "see the log; this is a bug of trueline";
        response::error(StatusCode::INTERNAL_SERVER_ERROR, what, hint)
    })
}

#[cfg(test)]
mod tests;
