//! `POST /v1/events`: what was acknowledged counts once, whatever happens to the process; what is
//! refused says why.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;

const HOUR_MS: i64 = 3_600_000;
/// Events that end the hour.
const LAST: i64 = 5;

const CONFIG: &str = r#"
version = 1
[[source]]
input = "http"
topics = ["scores"]
fields = { time = "at", model = "m", score = "p", outcome = "y" }
[[model]]
name = "*"
windows = [{ width = "1h", slide = "1h" }]
lateness = "1m"
[model.alert]
stale_after = "30d"
[http]
listen = "LISTEN"
[state]
directory = 'STATE'
interval = "1s"
"#;

/// An hour that is over.
fn past_hour() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now =
        i64::try_from(now.expect("after 1970").as_millis()).expect("before the year 292 million");
    (now / HOUR_MS - 6) * HOUR_MS
}

/// An event of the model `m`.
fn event(at: i64, score: f64, outcome: u64) -> Value {
    json!({ "at": at, "m": "m", "p": score, "y": outcome })
}

/// Ends the hour. One event so much later could be a wrong clock; several are not.
fn end_hour(service: &Service, hour: i64) {
    let later = |i| event(hour + 2 * HOUR_MS + i, 0.5, 1);
    let last = Value::from_iter((0..LAST).map(later)).to_string();
    let (status, body) = service.post("/v1/events", &[], &last).expect("an answer");
    assert_eq!(status, 200, "{body}");
}

fn parsed(body: &str) -> Value {
    serde_json::from_str(body).expect("the API answers JSON")
}

/// Senders repeat a request under its key until it is acknowledged, while the process is killed. In
/// the end the window holds each event once, and says to the bit what a process says that was never
/// killed.
#[test]
fn what_was_acknowledged_counts_once_through_kills() {
    const SENDERS: u64 = 3;
    const REQUESTS: u64 = 60;
    const EVENTS: u64 = 20;
    let hour = past_hour();
    let body = |sender: u64, request: u64| -> String {
        let first = (sender * REQUESTS + request) * EVENTS;
        let lines = (first..first + EVENTS).map(|i| {
            let score = 0.05 + 0.9 * ((i * 37 % 1000) as f64 / 1000.0);
            let at = hour + request as i64 * 100 + (i % EVENTS) as i64;
            event(at, score, u64::from((i * 7919) % 100 < 40)).to_string() + "\n"
        });
        lines.collect()
    };
    let lines = ("content-type", "application/x-ndjson");
    let service = Mutex::new(Service::start(CONFIG));
    let (done, unanswered) = (AtomicU64::new(0), AtomicU64::new(0));
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (service, body) = (&service, &body);
            let (done, unanswered) = (&done, &unanswered);
            scope.spawn(move || {
                // The address stays; the lock is not held while a request waits.
                let url = service.lock().expect("no panic").url();
                let agent = ureq::Agent::config_builder()
                    .timeout_global(Some(Duration::from_secs(10)))
                    .http_status_as_error(false)
                    .build()
                    .new_agent();
                for request in 0..REQUESTS {
                    let key = format!("{sender}-{request}");
                    wait_for("an acknowledgement", LIMIT, || {
                        let post = agent.post(format!("{url}/v1/events/scores"));
                        let post = post
                            .header("content-type", lines.1)
                            .header("idempotency-key", &key);
                        let Ok(mut answer) = post.send(body(sender, request)) else {
                            unanswered.fetch_add(1, Ordering::Relaxed);
                            return None;
                        };
                        let text = answer.body_mut().read_to_string().ok()?;
                        match answer.status().as_u16() {
                            200 => Some(()),
                            503 => None,
                            status => panic!("{status}: {text}"),
                        }
                    });
                    done.fetch_add(1, Ordering::Relaxed);
                    // Snapshots come every second, so kills fall on both sides of some.
                    std::thread::sleep(Duration::from_millis(60));
                }
            });
        }
        scope.spawn(|| {
            for kill in 1..=5 {
                let due = kill * SENDERS * REQUESTS / 6;
                while done.load(Ordering::Relaxed) < due {
                    std::thread::sleep(Duration::from_millis(2));
                }
                let mut service = service.lock().expect("no panic");
                service.end("KILL");
                service.start_again();
            }
            ended.store(true, Ordering::Relaxed);
        });
    });
    assert!(ended.into_inner() && unanswered.into_inner() > 0);
    let service = service.into_inner().expect("no panic");
    service.wait_ready();
    // A last repetition of everything changes nothing.
    for (sender, request) in (0..SENDERS).flat_map(|s| (0..REQUESTS).map(move |r| (s, r))) {
        let key = ("idempotency-key", &*format!("{sender}-{request}"));
        let answer = service.post("/v1/events/scores", &[lines, key], &body(sender, request));
        let (status, text) = answer.expect("an answer");
        assert_eq!(
            (status, &parsed(&text)["duplicate"]),
            (200, &Value::Bool(true)),
            "{sender}-{request}"
        );
    }
    end_hour(&service, hour);
    let total = SENDERS * REQUESTS * EVENTS;
    let found = service.wait_for_n("m", "1h", total);

    let calm = Service::start(CONFIG);
    calm.wait_ready();
    for request in 0..REQUESTS {
        for sender in (0..SENDERS).rev() {
            let answer = calm.post("/v1/events", &[lines], &body(sender, request));
            assert_eq!(answer.expect("an answer").0, 200);
        }
    }
    end_hour(&calm, hour);
    let expected = calm.wait_for_n("m", "1h", total);
    assert_eq!(found, expected);
    let log = service.scrape().expect("an answer");
    assert_eq!(log.sum("trueline_event_log_keys_forgotten_total", &[]), 0.0);
}

#[test]
fn a_request_is_all_or_nothing_and_says_what_is_wrong() {
    let config = CONFIG.replace(
        "[state]",
        "[http.events]\nrequest_bytes_max = \"64KiB\"\n[state]",
    );
    let service = Service::start(&config);
    service.wait_ready();
    let hour = past_hour();
    let good = event(hour, 0.3, 1);
    let bad =
        json!([good, { "at": hour, "m": "m", "p": 1.5, "y": 0 }, { "m": "m", "p": 0.2 }, good]);
    let post = |path: &str, headers: &[(&str, &str)], body: &str| {
        let (status, body) = service.post(path, headers, body).expect("an answer");
        (status, parsed(&body))
    };
    let (status, answer) = post("/v1/events", &[], &bad.to_string());
    assert_eq!(status, 400, "{answer}");
    let rejected = answer["rejected"].as_array().expect("a list");
    let places: Vec<&Value> = rejected.iter().map(|r| &r["event"]).collect();
    assert_eq!(places, [1, 2]);
    assert!(
        rejected[0]["detail"].to_string().contains("1.5"),
        "{answer}"
    );
    assert!(
        answer["error"].to_string().contains("2 of 4 events"),
        "{answer}"
    );

    let (status, answer) = post("/v1/events?dry_run=1", &[], &good.to_string());
    assert_eq!((status, &answer["events"]), (200, &json!(1)), "{answer}");
    let (status, answer) = post("/v1/events?dry_run=true", &[], &good.to_string());
    assert_eq!(
        (status, &answer["dry_run"]),
        (200, &json!(true)),
        "{answer}"
    );
    let word = |(status, answer): (u16, Value), expected: u16, word: &str| {
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(
            status == expected && error.contains(word),
            "{status} {answer}"
        );
        assert!(
            answer["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
            "{answer}"
        );
    };
    let good = good.to_string();
    word(post("/v1/events/other", &[], &good), 404, "no topic");
    word(post("/v1/events?dryrun=1", &[], &good), 400, "no parameter");
    word(post("/v1/events", &[], "{\"a\": "), 400, "no JSON");
    word(post("/v1/events", &[], "[]"), 400, "no event");
    let long = format!("[{}]", vec![good.as_str(); 2000].join(","));
    word(
        post("/v1/events", &[], &long),
        413,
        "longer than 65536 bytes",
    );
    word(
        post("/v1/events", &[("content-type", "text/plain")], &good),
        415,
        "any page",
    );
    let (named, text) = (("x-requested-by", "test"), ("content-type", "text/plain"));
    word(
        post("/v1/events", &[named, text], &good),
        415,
        "not said to be JSON",
    );
    word(
        post("/v1/events", &[("content-encoding", "gzip")], &good),
        415,
        "encoded",
    );
    word(
        post("/v1/events", &[("idempotency-key", "")], &good),
        400,
        "key is empty",
    );
    let (status, answer) = service.ask("GET", "/v1/events").expect("an answer");
    assert_eq!(status, 405, "{answer}");
    let key = ("idempotency-key", "k");
    let (status, first) = post("/v1/events", &[key], &good);
    assert_eq!(
        (status, &first["duplicate"]),
        (200, &json!(false)),
        "{first}"
    );
    let (status, again) = post("/v1/events", &[key], &good);
    assert_eq!(
        (status, &again["duplicate"]),
        (200, &json!(true)),
        "{again}"
    );
    assert_eq!(first["offset"], again["offset"]);
    let other = event(hour, 0.4, 1).to_string();
    word(post("/v1/events", &[key], &other), 422, "other events");

    let waiting = || {
        let (_, body) = service.get("/api/v1/streams/m///binary")?;
        Some(parsed(&body)["waiting"].clone())
    };
    let waits = wait_for("the event that waits", LIMIT, || {
        waiting().filter(|waits| waits["events"] == 1)
    });
    assert_eq!(waits["until_ms"], hour + HOUR_MS + 60_000);
    let (_, page) = service.get("/streams/m///binary").expect("an answer");
    assert!(
        page.contains("Waiting for the first window to end: 1 events so far."),
        "{page}"
    );
    assert!(!page.contains("1970"), "{page}");
    end_hour(&service, hour);
    service.wait_for_n("m", "1h", 1);
    wait_for("nothing to wait", LIMIT, || {
        waiting().filter(Value::is_null)
    });
    // Sizes are published once a second.
    let metrics = wait_for("the sizes of the log", LIMIT, || {
        let metrics = service.scrape()?;
        let events = metrics.sum("trueline_event_log_events_total", &[]);
        (events == 1.0 + LAST as f64).then_some(metrics)
    });
    let refused = |reason: &str| {
        let label = format!("reason=\"{reason}\"");
        metrics.sum("trueline_event_log_refused_total", &[&label])
    };
    assert_eq!((refused("rejected"), refused("key_reused")), (3.0, 1.0));
    assert_eq!(metrics.sum("trueline_event_log_duplicates_total", &[]), 1.0);
    assert_eq!(
        metrics.sum("trueline_records_total", &["disposition=\"rejected\""]),
        0.0
    );
}

/// Predictions and outcomes have logs of their own and are joined by id.
#[test]
fn outcomes_that_are_posted_later_find_their_predictions() {
    let config = CONFIG.replace("\"scores\"", "\"asked\"").replace(
        "fields = { time = \"at\", model = \"m\", score = \"p\", outcome = \"y\" }",
        "fields = { id = \"id\", time = \"at\", model = \"m\", score = \"p\" }\n\
         outcomes = { topics = [\"answered\"], maturity = \"1s\", time = \"at\", outcome = \"y\" }",
    );
    let service = Service::start(&config);
    service.wait_ready();
    let hour = past_hour();
    let post = |path: &str, events: Vec<Value>| {
        let body = Value::from_iter(events).to_string();
        let (status, answer) = service.post(path, &[], &body).expect("an answer");
        assert_eq!(status, 200, "{answer}");
    };
    let asked = |i: i64, at: i64| json!({ "id": i, "at": at, "m": "m", "p": 0.4 });
    let answered = |i: i64, at: i64| json!({ "id": i, "at": at, "y": i % 5 < 2 });
    post(
        "/v1/events/asked",
        (0..1000).map(|i| asked(i, hour + i)).collect(),
    );
    post(
        "/v1/events/answered",
        (0..1000).map(|i| answered(i, hour + i + 1500)).collect(),
    );
    let later = hour + 2 * HOUR_MS;
    post(
        "/v1/events/asked",
        (1000..1005).map(|i| asked(i, later + i)).collect(),
    );
    post(
        "/v1/events/answered",
        (1000..1005).map(|i| answered(i, later + i)).collect(),
    );
    let window = service.wait_for_n("m", "1h", 1000);
    assert_eq!(window["verdict"], "calibrated", "{window}");
    let (status, answer) = service.post("/v1/events", &[], "[]").expect("an answer");
    assert!(
        status == 404 && answer.contains("asked, answered"),
        "{answer}"
    );
}

/// Nothing is read into a snapshot, so the log fills; a restart writes one, and there is room
/// again.
#[test]
fn a_full_log_answers_429_and_loses_nothing() {
    let config = CONFIG
        .replace("interval = \"1s\"", "interval = \"1h\"")
        .replace(
            "[state]",
            "[http.events]\nbytes_max = \"1MiB\"\nrequest_bytes_max = \"64KiB\"\n[state]",
        );
    let mut service = Service::start(&config);
    service.wait_ready();
    let hour = past_hour();
    let many = format!(
        "[{}]",
        vec![event(hour, 0.3, 1).to_string(); 1000].join(",")
    );
    let mut stored = 0;
    let post = |service: &Service| service.post("/v1/events", &[], &many).expect("an answer");
    let refusal = loop {
        match post(&service) {
            (200, _) => stored += 1000,
            refused => break refused,
        }
    };
    assert_eq!(refusal.0, 429, "{}", refusal.1);
    assert!(refusal.1.contains("bytes_max"), "{}", refusal.1);
    assert!((20_000..27_000).contains(&stored), "{stored}");
    let metrics = wait_for("the refusal", LIMIT, || {
        let metrics = service.scrape()?;
        let full = metrics.sum("trueline_event_log_refused_total", &["reason=\"full\""]);
        (full == 1.0).then_some(metrics)
    });
    let bytes = metrics.sum("trueline_event_log_bytes", &[]);
    assert!(bytes <= f64::from(1 << 20), "{bytes}");
    service.end("TERM");
    service.start_again();
    service.wait_ready();
    assert_eq!(post(&service).0, 200);
    end_hour(&service, hour);
    service.wait_for_n("m", "1h", stored + 1000);
}

/// The disk is full before the log is. What is kept free of it lets the next snapshot make room.
#[test]
fn a_disk_smaller_than_the_log_may_be_recovers_with_the_next_snapshot() {
    let config = CONFIG.replace("interval = \"1s\"", "interval = \"1h\"");
    let Some(service) = Service::start_on_disk(&config, "8m") else {
        crate::support::skip(
            "a_disk_smaller_than_the_log_may_be_recovers_with_the_next_snapshot",
            "this user cannot mount",
        );
        return;
    };
    service.wait_ready();
    let hour = past_hour();
    let many = format!(
        "[{}]",
        vec![event(hour, 0.3, 1).to_string(); 5_000].join(",")
    );
    let post = |service: &Service| service.post("/v1/events", &[], &many).expect("an answer");
    let mut stored = 0;
    let (status, refusal) = loop {
        match post(&service) {
            (200, _) => stored += 5_000,
            refused => break refused,
        }
    };
    assert_eq!(status, 503, "{refusal}");
    assert!(
        refusal.contains("1.0 MiB are kept free for snapshots"),
        "{refusal}"
    );
    wait_for("the refusal", LIMIT, || {
        let refused = ["reason=\"space\""];
        let n = service
            .scrape()?
            .sum("trueline_event_log_refused_total", &refused);
        (n == 1.0).then_some(())
    });
    service.rewrite(|text| text.replace("\"1h\"\n", "\"1s\"\n"));
    service.signal("HUP");
    wait_for("room", LIMIT, || (post(&service).0 == 200).then_some(()));
    end_hour(&service, hour);
    service.wait_for_n("m", "1h", stored + 5_000);
}

/// The program that the guide shows, under a real Python.
#[test]
fn the_example_of_the_guide_posts_events() {
    if std::process::Command::new("python3")
        .arg("--version")
        .output()
        .is_err()
    {
        crate::support::skip(
            "the_example_of_the_guide_posts_events",
            "there is no python3",
        );
        return;
    }
    let guide = include_str!("../../deploy/guide/posted_events.md");
    let program = guide.split("```python\n").nth(1).expect("a program");
    let program = program.split("```").next().expect("its end");
    assert!(program.lines().count() <= 22, "the example is short");
    let service = Service::start(&CONFIG.replace("\"scores\"", "\"predictions\""));
    service.wait_ready();
    let program = program.replace("http://127.0.0.1:9464", &service.url());
    let ran = std::process::Command::new("python3")
        .args(["-c", &program])
        .output();
    let ran = ran.expect("it runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    let failed = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}{failed}");
    wait_for("both events", LIMIT, || {
        let metrics = service.scrape()?;
        (metrics.sum("trueline_records_total", &["disposition=\"observed\""]) == 2.0).then_some(())
    });
}
