//! The HTTP server over real sockets: what each address says, and what it costs to be asked wrongly.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::outside::{Answer, Server, id, now_ms, populated, publish, sample, window};
use trueline::alert::AlertState;
use trueline::collect::{Event, Origin};
use trueline::judge::{JudgeOptions, ModelPlan, Plan, Verdict};
use trueline::monitor::Engine;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::tolerance::Tolerance;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::telemetry::Published;
use trueline::telemetry::metrics::{Kind, TABLE};
use trueline::telemetry::published::Limits;
use trueline::window::{Ladder, WindowSpec};

/// One line of the exposition.
#[derive(Debug, Clone)]
struct Line {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// Reads the exposition format strictly: every sample after its HELP and TYPE, no series twice.
fn parse(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut seen = BTreeSet::new();
    let mut family = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().unwrap().to_owned();
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(seen.insert(series.to_owned()), "series twice: {series}");
        assert!(
            series.starts_with(&family),
            "{series} outside its family {family}"
        );
        let (name, labels) = match series.split_once('{') {
            Some((name, rest)) => (name, labels(rest.strip_suffix('}').unwrap())),
            None => (series, BTreeMap::new()),
        };
        lines.push(Line {
            name: name.to_owned(),
            labels,
            value: value.parse().unwrap(),
        });
    }
    lines
}

/// Reads `a="b",c="d\"e"`.
fn labels(text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut rest = text;
    while let Some((name, tail)) = rest.split_once("=\"") {
        let mut value = String::new();
        let mut chars = tail.char_indices();
        let end = loop {
            match chars.next().expect("a closing quote") {
                (_, '\\') => value.push(match chars.next().unwrap().1 {
                    'n' => '\n',
                    c => c,
                }),
                (at, '"') => break at,
                (_, c) => value.push(c),
            }
        };
        all.insert(name.trim_start_matches(',').to_owned(), value);
        rest = &tail[end + 1..];
    }
    all
}

fn metrics(server: &Server) -> Vec<Line> {
    let answer = server.get("/metrics");
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .head
            .contains("content-type: text/plain; version=0.0.4")
    );
    parse(&answer.body)
}

#[test]
fn every_line_of_metrics_is_a_row_of_the_table_with_its_labels() {
    let server = Server::start(populated());
    let lines = metrics(&server);
    let mut found = BTreeSet::new();
    for line in &lines {
        let row = TABLE.iter().find(|row| match row.kind {
            Kind::Histogram => ["_bucket", "_sum", "_count"]
                .iter()
                .any(|end| line.name.strip_suffix(end) == Some(row.name)),
            _ => row.name == line.name,
        });
        let row = row.unwrap_or_else(|| panic!("{} is not in the table", line.name));
        found.insert(row.name);
        assert!(line.value.is_finite(), "{line:?}");
        if row.kind != Kind::Histogram {
            let expected: BTreeSet<&str> = row.all_labels().collect();
            let names: BTreeSet<&str> = line.labels.keys().map(String::as_str).collect();
            assert_eq!(names, expected, "{}", row.name);
        }
    }
    // The discrete test does not run on continuous scores, no event is weighted, there is one class view only and no kernel view;
    // everything else must be there.
    let left_out = [
        "trueline_class_adjusted_p_value",
        "trueline_discrete_p_value",
        "trueline_kce",
        "trueline_kce_lower",
        "trueline_kernel_p_value",
        "trueline_kernel_sample_events",
        "trueline_process_role",
        "trueline_window_events_effective",
    ];
    // Nor does one process judge what others count (tests/kafka/workers_and_judge.rs).
    let left_out = |name: &str| left_out.contains(&name) || name.starts_with("trueline_judge_");
    for row in TABLE {
        assert!(
            found.contains(row.name) || left_out(row.name),
            "{} has no series",
            row.name
        );
    }
}

#[test]
fn the_ledger_says_what_is_promised_and_what_was_staked() {
    let server = Server::start(populated());
    let answer = server.get("/api/v1/ledger");
    assert_eq!(answer.status, 200);
    let ledger: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    let account = &ledger["accounts"][0];
    assert_eq!(account["account"], "fleet");
    assert_eq!(account["budget"], "1 per 30d");
    let promise = account["promise"].as_str().unwrap();
    assert!(
        promise.contains("at most 1 false alarm in 30 days"),
        "{promise}"
    );
    let expected = account["expected_false_alarms_max"].as_f64().unwrap();
    assert!((expected - 0.01).abs() < 1e-12, "{expected}");
    assert_eq!(account["alarmed"][0], "rare///class:3");
}

#[test]
fn the_dispositions_on_the_wire_add_up_to_the_records_read() {
    let server = Server::start(populated());
    let lines = metrics(&server);
    for source in ["scored", "payments"] {
        let of = |name: &str| -> f64 {
            let of_source = lines
                .iter()
                .filter(|l| l.labels.get("source").is_some_and(|s| s == source));
            of_source.filter(|l| l.name == name).map(|l| l.value).sum()
        };
        assert!(of("trueline_records_read_total") > 0.0);
        assert_eq!(
            of("trueline_records_read_total"),
            of("trueline_records_total"),
            "{source}"
        );
    }
}

#[test]
fn an_undecided_window_shows_its_n_and_reason_but_no_calibration_value() {
    let server = Server::start(populated());
    let lines = metrics(&server);
    let new: Vec<&Line> = lines
        .iter()
        .filter(|l| l.labels.get("model").is_some_and(|m| m == "new"))
        .collect();
    let value = |name: &str, window: &str, key: &str, want: &str| {
        new.iter()
            .find(|l| {
                l.name == name
                    && l.labels["window"] == window
                    && (key.is_empty() || l.labels[key] == want)
            })
            .map(|l| l.value)
    };
    assert_eq!(value("trueline_window_events", "1m", "", ""), Some(12.0));
    assert_eq!(
        value("trueline_verdict", "1m", "state", "undecided"),
        Some(1.0)
    );
    assert_eq!(
        value("trueline_verdict", "1m", "state", "calibrated"),
        Some(0.0)
    );
    assert_eq!(
        value("trueline_undecided", "1m", "reason", "too_few"),
        Some(1.0)
    );
    assert_eq!(
        value("trueline_undecided", "5m", "reason", "stale"),
        Some(1.0)
    );
    for gone in [
        "trueline_ece_l2",
        "trueline_tcal_p_value",
        "trueline_cell_events",
        "trueline_event_rate",
    ] {
        assert!(
            new.iter().all(|l| l.name != gone),
            "{gone} of an undecided window"
        );
    }
    let body = server.json("/api/v1/streams/new/7//binary");
    assert_eq!(body["windows"][1]["reason"], "stale");
    assert!(body["windows"][1]["evaluation"].is_null());
}

#[test]
fn values_that_nobody_stands_behind_are_withdrawn() {
    let published = Arc::new(Published::new(Limits {
        live_within: Duration::from_millis(50),
        ..Limits::default()
    }));
    let evaluation = sample(1000, |u| u, |z| z);
    publish(
        &published,
        id("m", "1", "", View::Binary),
        vec![window(
            "1m",
            Verdict::Calibrated,
            AlertState::Inactive,
            Some(evaluation),
        )],
    );
    let server = Server::start(Arc::clone(&published));
    let shown = |lines: &[Line]| lines.iter().any(|l| l.name == "trueline_ece_l2");
    assert!(shown(&metrics(&server)));
    let beat = published.beat("engine");
    while beat.silence() <= Duration::from_millis(60) {
        std::thread::yield_now();
    }
    assert!(!shown(&metrics(&server)));
    let dead = server.get("/live");
    assert_eq!(dead.status, 503);
    assert!(dead.body.contains("engine"), "{}", dead.body);
    // The next tick brings them back.
    published.end_beat("engine");
    assert!(shown(&metrics(&server)));
    assert_eq!(server.get("/live").status, 200);
}

#[test]
fn the_cap_on_series_takes_cells_then_values_and_never_an_alert_or_a_verdict() {
    const STREAMS: usize = 1000;
    let published_with = |series_max: usize, cell_streams_max: usize| {
        let published = Arc::new(Published::new(Limits {
            series_max,
            cell_streams_max,
            ..Limits::default()
        }));
        let evaluation = sample(1000, |u| u, |z| z);
        for i in 0..STREAMS {
            // The last by name fires: a cap by alphabet would lose it.
            let fires = i == STREAMS - 1;
            let alert = if fires {
                AlertState::Firing
            } else {
                AlertState::Inactive
            };
            publish(
                &published,
                id("m", &format!("{i:04}"), "", View::Binary),
                vec![window(
                    "1m",
                    Verdict::Calibrated,
                    alert,
                    Some(evaluation.clone()),
                )],
            );
        }
        published
    };
    let of = |published: Arc<Published>| {
        let server = Server::start(published);
        metrics(&server)
    };
    let count = |lines: &[Line], name: &str| lines.iter().filter(|l| l.name == name).count();
    let one = |lines: &[Line], name: &str| lines.iter().find(|l| l.name == name).unwrap().value;
    // Room for the values of one stream in ten.
    let lines = of(published_with(20_000, 0));
    let shown = lines
        .iter()
        .filter(|l| l.labels.contains_key("model"))
        .count();
    assert_eq!(one(&lines, "trueline_series"), shown as f64);
    assert!(one(&lines, "trueline_series_refused") > 0.0);
    for (name, each) in [
        ("trueline_verdict", 3),
        ("trueline_alert", 4),
        ("trueline_stream_alert", 4),
        ("trueline_stream_alert_severity", 2),
        ("trueline_window_end_timestamp_seconds", 1),
    ] {
        assert_eq!(count(&lines, name), each * STREAMS, "{name}");
    }
    let values = count(&lines, "trueline_ece_l2");
    assert!(values > 0 && values < STREAMS, "{values}");
    let firing = format!("{:04}", STREAMS - 1);
    let kept = lines.iter().filter(|l| l.name == "trueline_ece_l2");
    assert!(kept.clone().any(|l| l.labels["version"] == firing));
    assert_eq!(count(&lines, "trueline_cell_events"), 0);
    // By default all values are there, and no cells with so many streams.
    let limits = Limits::default();
    let lines = of(published_with(limits.series_max, limits.cell_streams_max));
    assert_eq!(count(&lines, "trueline_ece_l2"), STREAMS);
    assert_eq!(one(&lines, "trueline_series_refused"), 0.0);
    assert_eq!(count(&lines, "trueline_cell_events"), 0);
    assert!(
        count(
            &of(published_with(250_000, STREAMS)),
            "trueline_cell_events"
        ) > STREAMS
    );
}

#[test]
fn streams_are_found_by_encoded_parts_and_by_their_whole_id() {
    let server = Server::start(populated());
    let list = server.json("/api/v1/streams");
    assert_eq!(list["count"], 4);
    for stream in list["streams"].as_array().unwrap() {
        for link in ["self", "reliability"] {
            let body = server.json(stream["links"][link].as_str().unwrap());
            assert_eq!(body["id"], stream["id"]);
        }
        assert_eq!(
            server.get(stream["links"]["page"].as_str().unwrap()).status,
            200
        );
    }
    let whole = server.json("/api/v1/streams/calibrated%2F1%2F%2Fbinary");
    assert_eq!(whole["model"], "calibrated");
    assert_eq!(server.json("/api/v1/streams?model=rare")["count"], 1);
    let odd = server.json("/api/v1/streams?model=team%2Fover+%22confident%22");
    assert_eq!(odd["streams"][0]["segment"], "country=DE,tier=a");
}

#[test]
fn the_api_says_everything_of_a_decided_window() {
    let server = Server::start(populated());
    let body = server.json("/api/v1/streams/calibrated/1//binary");
    let window = &body["windows"][1];
    assert_eq!(window["verdict"], "calibrated");
    let evaluation = &window["evaluation"];
    for key in ["n", "ece_l1", "reject"] {
        assert!(!evaluation[key].is_null(), "{key}");
    }
    assert!(evaluation["interval"]["upper"].as_f64().unwrap() > 0.0);
    assert_eq!(evaluation["n"], 20_000);
    let cells = server.json("/api/v1/streams/calibrated/1//binary/reliability?window=5m");
    let cells = cells["windows"][0]["cells"].as_array().unwrap();
    let n: u64 = cells.iter().map(|cell| cell["n"].as_u64().unwrap()).sum();
    assert_eq!(n, 20_000);
    for cell in cells {
        let at = |key: &str| cell[key].as_f64().unwrap();
        assert!(at("rate_low") <= at("event_rate") && at("event_rate") <= at("rate_high"));
        assert!(at("null_low") <= at("mean_score") && at("mean_score") <= at("null_high"));
    }
}

/// An engine that has judged a window of calibrated vectors by the whole, the two largest and each class.
fn judged_vectors() -> Engine {
    let class = [View::Class(0), View::Class(1), View::Class(2)];
    let windows = vec![WindowSpec::time("1m", 60_000)];
    let mut engine = Engine::new(Plan {
        models: vec![ModelPlan {
            name: "*".into(),
            views: [&[View::TopK(2), View::Full, View::Kernel], &class[..]].concat(),
            classes: ["cat", "dog", "ox"].map(String::from).to_vec(),
            ladder: Ladder::new(windows, 60_000).unwrap(),
            grid: Grid::new(Axis::Linear, 8),
            judge: wide(),
            segmenting: Default::default(),
        }],
        ..Plan::default()
    });
    let begin_ms = now_ms() / 60_000 * 60_000 - 60_000;
    for i in 0..2000_i64 {
        let share = |step: f64| (i as f64 * step).fract();
        let p = [0.6 * share(0.414_213_562), 0.3, 0.0];
        let p = [p[0], p[1], 1.0 - p[0] - p[1]];
        let u = share(0.618_033_989);
        let class = u32::from(u > p[0]) + u32::from(u > p[0] + p[1]);
        let origin = Origin {
            source: 0,
            partition: 0,
            offset: i,
        };
        let event = Event {
            model: "pets",
            version: "1",
            segment: "",
            id: b"",
            time_ms: begin_ms + i,
            arrival_ms: None,
            prediction: Prediction::Vector(&p),
            outcome: Some(Outcome::Class(class)),
            weight: None,
            cluster: None,
        };
        engine.observe(origin, &event);
    }
    engine.finish();
    engine
}

/// Options whose tolerance 2000 events can show to be kept.
fn wide() -> JudgeOptions {
    let mut options = JudgeOptions::default();
    options.evaluation.tolerance = Tolerance::absolute(0.5);
    options
}

#[test]
fn a_vector_view_shows_its_numbers_and_says_why_others_are_absent() {
    let engine = judged_vectors();
    let published = populated();
    for report in engine.reports() {
        published.publish(Arc::new(report.clone()));
    }
    let server = Server::start(published);
    let json =
        |path: &str| -> serde_json::Value { serde_json::from_str(&server.get(path).body).unwrap() };
    for view in ["full", "top_k:2"] {
        let path = format!("/api/v1/streams/pets/1//{view}");
        let window = json(&path)["windows"][0].clone();
        assert_eq!(window["verdict"], "calibrated", "{window}");
        assert_eq!(
            (&window["n"], &window["vector"]["n"]),
            (&2000.into(), &2000.into())
        );
        assert!(window["vector"]["tcal"]["p_value"].as_f64().unwrap() > 0.05);
        assert!(window["evaluation"].is_null());
        assert!(
            window["absent"]["reason"]
                .as_str()
                .unwrap()
                .contains("single score")
        );
        for part in ["reliability", "recalibration"] {
            let part = json(&format!("{path}/{part}"));
            assert!(part["absent"]["reason"].is_string(), "{part}");
        }
        let page = server.get(&format!("/streams/pets/1//{view}")).body;
        assert!(page.contains("A vector has no single score"), "{page}");
    }
    let path = "/api/v1/streams/pets/1//kernel";
    let window = json(path)["windows"][0].clone();
    let kernel = &window["kernel"];
    assert_eq!(
        (&window["verdict"], &window["n"], &kernel["sample"]["n"]),
        (&"calibrated".into(), &2000.into(), &512.into())
    );
    let p = kernel["p_value"].as_f64().unwrap();
    assert!(p > 0.05 && kernel["decided_by"] == "sample" && kernel["features"].is_null());
    let reason = window["absent"]["reason"].as_str().unwrap();
    assert!(reason.contains("`kernel` holds its numbers"));
    let page = server.get("/streams/pets/1//kernel").body;
    assert!(page.contains("kernel calibration error") && page.contains("512 of 2,000 events"));
    assert!(server.get("/").body.contains("data-k=KCE"));
    let class = json("/api/v1/streams/pets/1//class:1")["windows"][0].clone();
    let family = &class["family"];
    assert_eq!(family["classes"], 3);
    let alone = class["evaluation"]["tcal"]["p_value"].as_f64().unwrap();
    assert!(family["adjusted_p_value"].as_f64().unwrap() >= alone);
    assert!(
        server
            .get("/streams/pets/1//class:1")
            .body
            .contains("Among 3 classes")
    );
    let lines = metrics(&server);
    let of = |view: &str, name: &str| {
        let mine = |l: &&Line| l.name == name && l.labels.get("view").is_some_and(|v| v == view);
        lines.iter().filter(mine).count()
    };
    assert_eq!(of("full", "trueline_tcal_p_value"), 1);
    assert_eq!(
        of("full", "trueline_mean_score") + of("full", "trueline_direction"),
        0
    );
    assert_eq!(of("class:1", "trueline_class_adjusted_p_value"), 1);
    for name in ["kce", "kce_lower", "kernel_p_value", "kernel_sample_events"] {
        let name = format!("trueline_{name}");
        assert_eq!((of("kernel", &name), of("full", &name)), (1, 0), "{name}");
    }
    assert_eq!(of("kernel", "trueline_reject"), 1);
    assert_eq!(of("kernel", "trueline_tcal_p_value"), 0);
}

#[test]
fn what_is_not_there_is_said_with_the_remedy() {
    let server = Server::start(populated());
    for (path, word) in [
        ("/api/v1/streams/no/such//binary", "/api/v1/streams"),
        ("/api/v1/streams/a/b", "percent-encoded"),
        ("/nothing", "see /"),
        (
            "/api/v1/streams/calibrated/1//binary/reliability?window=9h",
            "1m, 5m",
        ),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 404, "{path}");
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert!(body["error"].is_string());
        assert!(
            body["hint"].as_str().unwrap().contains(word),
            "{path}: {body}"
        );
    }
    let post = server
        .ask("POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    assert_eq!(post.status, 405);
    assert!(post.head.contains("allow: get, head"));
}

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
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "{:?}",
            start.elapsed()
        );
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
        for _ in 0..10 {
            probe();
        }
    }
    let lines = parse(&server.get("/metrics").body);
    let of = |name: &str| lines.iter().find(|l| l.name == name).unwrap().value;
    assert!(of("trueline_http_connections_refused_total") >= 4000.0);
    assert!(of("trueline_http_connections") <= trueline::http::CONNECTIONS_MAX as f64);
}

#[test]
fn metrics_come_compressed_to_those_who_take_it() {
    let server = Server::start(populated());
    let plain = server.get("/metrics").body;
    let mut stream = TcpStream::connect(server.address).unwrap();
    let ask = b"GET /metrics HTTP/1.1\r\nhost: x\r\naccept-encoding: deflate, gzip\r\nconnection: close\r\n\r\n";
    stream.write_all(ask).unwrap();
    let mut whole = Vec::new();
    stream.read_to_end(&mut whole).unwrap();
    let at = whole.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&whole[..at]).to_lowercase();
    assert!(head.contains("content-encoding: gzip"), "{head}");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&whole[at + 4..])
        .read_to_string(&mut text)
        .unwrap();
    assert!(
        whole.len() * 3 < plain.len(),
        "{} of {}",
        whole.len(),
        plain.len()
    );
    assert_eq!(parse(&text).len(), parse(&plain).len());
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
#[ignore = "a measurement: cargo test --release --test service http:: -- --ignored --nocapture"]
fn a_scrape_of_all_series_that_the_cap_allows_is_measured() {
    let published = Published::default();
    let evaluation = sample(20_000, |u| u, |z| z);
    for i in 0..1000 {
        publish(
            &published,
            id("model", &i.to_string(), "country=DE", View::Binary),
            vec![window(
                "1m",
                Verdict::Calibrated,
                AlertState::Inactive,
                Some(evaluation.clone()),
            )],
        );
    }
    let text = || trueline::telemetry::collector::text(&published).unwrap();
    let first = parse(&String::from_utf8(text()).unwrap());
    let series = first.iter().find(|l| l.name == "trueline_series").unwrap();
    let mut took: Vec<f64> = (0..9)
        .map(|_| {
            let start = std::time::Instant::now();
            let bytes = text().len();
            assert!(bytes > 1_000_000);
            start.elapsed().as_secs_f64()
        })
        .collect();
    took.sort_by(f64::total_cmp);
    println!(
        "{} series: {:.1} MB, fastest {:.0} ms, median {:.0} ms, {:.2} us a series",
        series.value,
        text().len() as f64 / 1e6,
        took[0] * 1e3,
        took[4] * 1e3,
        took[4] * 1e6 / series.value
    );
}

#[test]
fn every_runbook_is_served_under_its_name() {
    let server = Server::start(populated());
    let list = server.get("/runbooks");
    assert_eq!(list.status, 200);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/runbooks");
    let mut pages = 0;
    for entry in std::fs::read_dir(folder).expect("the runbooks") {
        let path = entry.expect("a file").path();
        let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
        assert!(
            list.body.contains(&format!("href=/runbooks/{name}>")),
            "{name}"
        );
        // The link of a notification ends in `.md`, as in a folder of a repository.
        for link in [format!("/runbooks/{name}"), format!("/runbooks/{name}.md")] {
            let page = server.get(&link);
            assert_eq!(page.status, 200, "{link}");
            for heading in ["What it means", "Check", "Fix"] {
                assert!(page.body.contains(&format!(">{heading}</h2>")), "{link}");
            }
            let policy = "content-security-policy: default-src 'none'";
            assert!(page.head.contains(policy), "{link}");
        }
        pages += 1;
    }
    assert!(pages > 20);
    let waiting = server.get("/runbooks/TruelineAlertsLost").body;
    let links = "<a href=\"/runbooks/TruelineAlertsWaiting\">TruelineAlertsWaiting</a>";
    assert!(waiting.contains(links), "{waiting}");
    let guide = server.get("/guide/alerts");
    assert!(guide.status == 200 && guide.body.contains("<h2 id=\"send-alerts-to-people\">"));
    assert_eq!(server.get("/guide/nothing").status, 404);
    let unknown = server.get("/runbooks/TruelineNothing");
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains("see /runbooks"), "{}", unknown.body);
}
