//! What it costs to be asked wrongly, often or by strangers: probes are answered, all else is
//! refused.

use super::parse;
use crate::support::published::populated;
use crate::support::server::{Answer, Server};
use crate::support::service::LIMIT;
use crate::support::wait_for;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use trueline::alert::AlertState;
use trueline::telemetry::Published;
use trueline::telemetry::control::{AlertResponse, EventAnswer, Explanation};
use trueline::telemetry::facts::AlertFacts;

#[test]
fn head_answers_as_get_without_the_body() {
    let server = Server::start(populated());
    let head = server.ask("HEAD /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert_eq!(head.status, 200);
    assert!(head.head.contains("content-length: ") && head.body.is_empty());
}

#[test]
fn ready_names_what_is_missing_and_fails_while_draining() {
    let published = Arc::new(Published::default());
    published.not_ready("kafka", "joining group `trueline`");
    published.ready("state");
    let server = Server::start(Arc::clone(&published));
    let answer = server.get("/ready");
    assert_eq!(answer.status, 503);
    let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(body["missing"]["kafka"], "joining group `trueline`");
    assert!(body["missing"]["state"].is_null());
    published.ready("kafka");
    assert_eq!(server.get("/ready").status, 200);
    published.drain();
    let answer = server.get("/ready");
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("stopping"));
    // Draining is no reason to stop answering: the last scrape still comes.
    assert_eq!(server.get("/metrics").status, 200);
}

#[test]
fn a_request_beyond_the_limits_is_refused_and_the_server_goes_on() {
    let server = Server::start(populated());
    let huge = "x".repeat(64 * 1024);
    let answer = server.ask(&format!("GET / HTTP/1.1\r\nhost: x\r\nbig: {huge}\r\n\r\n"));
    assert!(matches!(answer.status, 0 | 431), "{}", answer.status);
    let many = "a: b\r\n".repeat(200);
    let answer = server.ask(&format!("GET / HTTP/1.1\r\nhost: x\r\n{many}\r\n"));
    assert!(matches!(answer.status, 0 | 431), "{}", answer.status);
    let answer = server.ask("\u{1}\u{2} nonsense\r\n\r\n");
    assert!(matches!(answer.status, 0 | 400), "{}", answer.status);
    assert_eq!(server.get("/live").status, 200);
}

#[test]
fn a_probe_is_answered_within_a_second_however_many_connections_are_held() {
    let published = populated();
    let beat = published.beat("engine");
    let server = Server::start(published);
    let mut held: Vec<TcpStream> = Vec::new();
    let probe = || {
        let start = Instant::now();
        // The loop is alive, however long the connections took.
        beat.tick();
        for path in ["/live", "/ready", "/metrics"] {
            assert_eq!(server.get(path).status, 200, "{path}");
        }
        start.elapsed()
    };
    for n in [128, 1000, 5000] {
        while held.len() < n {
            let mut stream = TcpStream::connect(server.address).unwrap();
            // Some have asked for something, some have asked for half of it, some for nothing.
            let part: &[u8] = match held.len() % 3 {
                0 => b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n",
                1 => b"GET /live HTTP/1.1\r\nho",
                _ => b"",
            };
            let _ = stream.write_all(part);
            held.push(stream);
        }
        // Another process may take the processor from a few.
        let fastest = (0..10).map(|_| probe()).min();
        assert!(fastest < Some(Duration::from_secs(1)), "{fastest:?}");
    }
    let lines = parse(&server.get("/metrics").body);
    let of = |name: &str| lines.iter().find(|l| l.name == name).unwrap().value;
    assert!(of("trueline_http_connections_refused_total") >= 4000.0);
    assert!(of("trueline_http_connections") <= trueline::http::CONNECTIONS_MAX as f64);
}

/// The disk answers explanations late; the server of the test has two threads.
#[test]
fn who_asks_why_an_alert_changed_holds_up_no_probe() {
    let published = populated();
    let beat = published.beat("engine");
    let (release, disk) = channel::<()>();
    let (disk, reading) = (Mutex::new(disk), Arc::new(AtomicUsize::new(0)));
    let begun = Arc::clone(&reading);
    published.control.on_explain(move |_| {
        begun.fetch_add(1, Ordering::SeqCst);
        let _ = disk.lock().unwrap().recv();
        Some(Explanation::default())
    });
    let server = Server::start(published);
    let explain = || server.get("/api/v1/explanations/0-1-page");
    std::thread::scope(|scope| {
        let asked = [scope.spawn(explain), scope.spawn(explain)];
        wait_for("two requests that read", LIMIT, || {
            (reading.load(Ordering::SeqCst) == 2).then_some(())
        });
        let third = explain();
        assert_eq!(third.status, 503, "{}", third.body);
        assert!(third.head.contains("retry-after: "), "{}", third.head);
        beat.tick();
        for path in ["/live", "/ready", "/metrics"] {
            assert_eq!(server.get(path).status, 200, "{path}");
        }
        drop(release);
        for asked in asked {
            assert_eq!(asked.join().unwrap().status, 200);
        }
    });
    assert_eq!(explain().status, 200, "the places are free again");
}

/// The server of the test has two threads, and more lists are asked for.
#[test]
fn lists_that_take_long_hold_up_no_probe_scrape_or_post() {
    let published = populated();
    let beat = published.beat("engine");
    let (release, slow) = channel::<()>();
    let (slow, building) = (Mutex::new(slow), Arc::new(AtomicUsize::new(0)));
    let begun = Arc::clone(&building);
    published.control.on_silences(move || {
        begun.fetch_add(1, Ordering::SeqCst);
        let _ = slow.lock().unwrap().recv();
        Arc::default()
    });
    let checked = || EventAnswer::Checked {
        topic: "scores".to_owned(),
        events: 1,
    };
    published.control.on_events(move |_| checked());
    let server = Server::start(published);
    let list = || server.get("/api/v1/silences");
    std::thread::scope(|scope| {
        let asked = [(); 3].map(|()| scope.spawn(list));
        wait_for("two lists that are built", LIMIT, || {
            (building.load(Ordering::SeqCst) == 2).then_some(())
        });
        beat.tick();
        for path in ["/live", "/ready", "/metrics"] {
            assert_eq!(server.get(path).status, 200, "{path}");
        }
        let post = "POST /v1/events?dry_run=1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
                    content-type: application/json\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(server.ask(post).status, 200);
        // The third waits in vain; it is counted.
        let failed = &server.published.http.responses[2];
        wait_for("a list that is refused", LIMIT, || {
            (failed.load(Ordering::SeqCst) == 1).then_some(())
        });
        assert_eq!(building.load(Ordering::SeqCst), 2);
        drop(release);
        let mut answers = asked.map(|asked| asked.join().unwrap());
        answers.sort_by_key(|answer| answer.status);
        assert_eq!(answers.each_ref().map(|a| a.status), [200, 200, 503]);
        assert!(answers[2].head.contains("retry-after: "));
    });
    assert_eq!(list().status, 200, "the places are free again");
}

#[test]
fn requests_under_a_foreign_name_and_changes_without_a_header_are_refused() {
    let server = Server::start(populated());
    let ask = |request: &str| server.ask(request).status;
    assert_eq!(
        ask("GET /metrics HTTP/1.1\r\nhost: evil.example\r\n\r\n"),
        421
    );
    assert_eq!(ask("GET /live HTTP/1.1\r\nhost: evil.example\r\n\r\n"), 200);
    let form = "POST /-/reload HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(ask(form), 415);
    let page = "POST /-/reload HTTP/1.1\r\nhost: x\r\norigin: http://evil.example\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(ask(page), 403);
}

#[test]
fn stopping_lets_idle_connections_go_and_refuses_new_ones() {
    let mut server = Server::start(populated());
    let mut idle = TcpStream::connect(server.address).unwrap();
    idle.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    idle.write_all(b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    let mut byte = [0; 1];
    idle.read_exact(&mut byte).unwrap();
    server.stop();
    let rest = Answer::read(&mut idle);
    assert!(rest.body.ends_with("live\n"));
    assert!(TcpStream::connect(server.address).is_err());
}

#[test]
fn what_the_engine_does_not_answer_in_time_is_unavailable_and_says_where_to_look() {
    let published = populated();
    let late = |_| AlertResponse::Unavailable("the engine has not answered");
    published.control.on_alert_request(late);
    let server = Server::start(published);
    for path in [
        "/api/v1/alerts/fraud/close",
        "/api/v1/models/fraud/deployments",
    ] {
        let body = r#"{"by": "ann"}"#;
        let answer = server.ask(&format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nx-requested-by: ann\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        ));
        assert_eq!(answer.status, 503, "{path}: {}", answer.body);
        for words in ["the engine has not answered", "/api/v1/deployments"] {
            assert!(answer.body.contains(words), "{path}: {}", answer.body);
        }
    }
}

#[test]
fn a_body_that_cannot_be_read_is_answered_with_one_of_its_own_kind() {
    let server = Server::start(populated());
    for (path, words) in [
        ("silences", "a silence is {"),
        ("alerts/fraud/ack", "an acknowledgement is {"),
        ("alerts/fraud/close", "an end is {"),
        ("models/fraud/deployments", "a deployment is {"),
    ] {
        let answer = server.ask(&format!(
            "POST /api/v1/{path} HTTP/1.1\r\nhost: x\r\nx-requested-by: ann\r\n\
             content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
        ));
        assert_eq!(answer.status, 400, "{path}: {}", answer.body);
        assert!(answer.body.contains(words), "{path}: {}", answer.body);
        let others = [
            "a silence is",
            "an acknowledgement is",
            "an end is",
            "a deployment is",
        ];
        let others = others.iter().filter(|o| answer.body.contains(**o));
        assert_eq!(others.count(), 1, "{path}: {}", answer.body);
    }
}

#[test]
fn who_closes_an_alert_that_has_ended_is_told_so_and_its_severity_is_none() {
    let published = populated();
    published
        .control
        .on_alert_request(|_| AlertResponse::Unknown);
    published.update(|facts| {
        let ended = AlertFacts {
            fingerprint: "0123456789abcdef".to_owned(),
            name: "fraud".to_owned(),
            state: AlertState::Resolved,
            since_ms: Some(1_700_000_000_000),
            ..AlertFacts::default()
        };
        facts.alerts = vec![ended].into();
    });
    let server = Server::start(published);
    let alerts: serde_json::Value =
        serde_json::from_str(&server.get("/api/v1/alerts").body).unwrap();
    assert_eq!(alerts["alerts"][0]["state"], "resolved");
    assert!(alerts["alerts"][0]["severity"].is_null(), "{alerts}");
    for (name, words) in [
        (
            "fraud",
            "alert `fraud` does not fire: it is resolved since 2023-11-14T22:13:20",
        ),
        ("nothere", "there is no such alert or silence"),
    ] {
        let body = r#"{"by": "ann"}"#;
        let answer = server.ask(&format!(
            "POST /api/v1/alerts/{name}/close HTTP/1.1\r\nhost: x\r\nx-requested-by: ann\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        ));
        assert_eq!(answer.status, 404, "{}", answer.body);
        assert!(answer.body.contains(words), "{}", answer.body);
    }
}
