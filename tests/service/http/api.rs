//! The API says everything of a window, why a number is absent, and what to ask in place of what is
//! not there.

use super::{Line, metrics};
use crate::support::published::{now_ms, populated};
use crate::support::records::{EVENT, origin};
use crate::support::server::Server;
use trueline::collect::Event;
use trueline::judge::{JudgeOptions, ModelPlan, Plan};
use trueline::monitor::{Engine, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::tolerance::Tolerance;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

#[test]
fn the_ledger_says_what_is_promised_and_what_was_staked() {
    let server = Server::start(populated());
    let answer = server.get("/api/v1/ledger");
    assert_eq!(answer.status, 200);
    let ledger: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    let account = &ledger["ledger"][0];
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
fn streams_are_found_by_encoded_parts_and_by_their_whole_id() {
    let server = Server::start(populated());
    let list = server.json("/api/v1/streams");
    assert_eq!(list["count"], 4);
    for stream in list["streams"].as_array().unwrap() {
        for link in ["self", "reliability"] {
            let body = server.json(stream["links"][link].as_str().unwrap());
            assert_eq!(body["stream"], stream["stream"]);
        }
        let id = stream["id"].as_str().unwrap();
        for below in ["", "/history"] {
            let body = server.json(&format!("/api/v1/streams/{id}{below}"));
            assert_eq!(body["model"], stream["model"], "{id}");
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

/// An engine that has judged a window of calibrated vectors by the whole, the two largest and each
/// class.
pub fn judged_vectors() -> Engine {
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
        let origin = origin(0, 0, i);
        let event = Event {
            model: "pets",
            version: "1",
            time_ms: begin_ms + i,
            prediction: Prediction::Vector(&p),
            outcome: Some(Outcome::Class(class)),
            ..EVENT
        };
        engine.observe(origin, &event);
    }
    engine.finish();
    engine
}

/// Options whose tolerance 2000 events can show to be kept.
fn wide() -> JudgeOptions {
    let mut options = JudgeOptions::plain();
    options.evaluation.tolerance = Tolerance::absolute(0.5);
    options
}

#[test]
fn a_vector_view_shows_its_numbers_and_says_why_others_are_absent() {
    let engine = judged_vectors();
    let published = populated();
    for report in engine.reports() {
        published.publish(report);
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
            window["absent"]["why"]
                .as_str()
                .unwrap()
                .contains("single score")
        );
        for part in ["reliability", "recalibration"] {
            let part = json(&format!("{path}/{part}"));
            assert!(part["absent"]["why"].is_string(), "{part}");
        }
        let page = server.get(&format!("/streams/pets/1//{view}")).body;
        assert!(page.contains("A vector has no single score"), "{page}");
    }
    let path = "/api/v1/streams/pets/1//kernel";
    let window = json(path)["windows"][0].clone();
    let kernel = &window["kernel"];
    assert_eq!(
        (&window["verdict"], &window["n"], &kernel["sample"]["n"]),
        (&"undecided".into(), &2000.into(), &512.into())
    );
    let p = kernel["p_value"].as_f64().unwrap();
    assert!(p > 0.05 && kernel["decided_by"] == "sample" && kernel["features"].is_null());
    let why = window["absent"]["why"].as_str().unwrap();
    assert!(why.contains("`kernel` holds its numbers"));
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
    assert!(post.head.contains("allow: get, head\r"), "{}", post.head);
    let ask = |method: &str, path: &str, length: usize| {
        let body = " ".repeat(length);
        server.ask(&format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    };
    let put = ask("PUT", "/api/v1/silences", 0);
    assert_eq!(put.status, 405);
    assert!(put.head.contains("allow: get, head, post"), "{}", put.head);
    assert_eq!(ask("POST", "/api/v1/nothing", 0).status, 404);
    assert_eq!(ask("POST", "/api/v1/silences", 65_537).status, 413);
    let tap = ask("HEAD", "/api/v1/tap", 0);
    assert_eq!(tap.status, 200);
    assert!(tap.head.contains("application/x-ndjson"), "{}", tap.head);
}
