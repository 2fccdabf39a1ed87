//! The pages as people find them: order, filters, size, history, sources, alerts, and what is not
//! there.

use std::sync::Arc;

use crate::support::many_streams::many_streams;
use crate::support::published::{id, now_ms, populated, publish, publish_alerts, publish_vectors};
use crate::support::server::{Answer, Server};
use trueline::alert::{Ack, Alert, AlertState, Holds, Matcher, Silence, Silences};
use trueline::collect::{Disposition, Reason};
use trueline::judge::{HistoryError, HistoryPoint, Numbers, Verdict, Verdicts};
use trueline::stats::view::View;
use trueline::telemetry::Published;
use trueline::telemetry::facts::{AlertFacts, AlertRules, LastRejection, SourceFacts};
use trueline::telemetry::history::HistoryAlert;
use trueline::telemetry::published::Limits;

/// Largest page, however many streams there are.
const PAGE_BYTES_MAX: usize = 100_000;

/// A GET as a browser asks.
fn browse(server: &Server, path: &str) -> Answer {
    server.ask(&format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\naccept: text/html\r\nconnection: close\r\n\r\n"
    ))
}

/// Names of the streams of a page, in its order.
fn rows(page: &str) -> Vec<String> {
    let rows = page.split("<th scope=row><a href=\"/streams/").skip(1);
    rows.map(|r| r.split('"').next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn the_pages_run_one_script_of_this_server_and_escape_every_name() {
    let server = Server::start(populated());
    for path in ["/", "/alerts", "/runbooks", "/streams/rare///class:3"] {
        let page = server.get(path);
        assert_eq!(page.status, 200);
        assert!(page.head.contains("content-type: text/html"));
        assert_eq!(page.body.matches("<script").count(), 1, "{path}");
        assert!(page.body.contains("<script src=/script.js defer></script>"));
        assert!(!page.body.contains("onclick") && !page.body.contains("javascript:"));
        let policy = page
            .head
            .split("content-security-policy: ")
            .nth(1)
            .expect("a policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"));
        assert!(!policy.contains("script-src 'unsafe"), "{policy}");
    }
    let index = server.get("/").body;
    assert!(index.contains("team/over &quot;confident&quot;"));
    assert!(!index.contains("over \"confident\""));
    assert!(server.get("/script.js").head.contains("text/javascript"));
    assert!(server.get("/icon.svg").head.contains("image/svg+xml"));
}

#[test]
fn the_worst_streams_come_first_with_counts_and_filters() {
    let server = Server::start(populated());
    let index = server.get("/").body;
    let order = rows(&index);
    assert_eq!(order.len(), 4);
    assert!(order[0].starts_with("rare/"), "{order:?}");
    assert!(order[1].starts_with("team"), "{order:?}");
    assert!(order[2].starts_with("new/") && order[3].starts_with("calibrated/"));
    for count in [
        "<b class=bad>1</b> page",
        "<b class=bad>1</b> warn",
        "<b class=soft>4</b> in all",
    ] {
        assert!(index.contains(count), "{count}");
    }
    let names = |query: &str| rows(&server.get(query).body);
    assert_eq!(names("/?q=OVER+de").len(), 1);
    assert_eq!(names("/?state=firing").len(), 2);
    assert_eq!(names("/?state=page"), ["rare///class:3"]);
    assert_eq!(names("/?model=new").len(), 1);
    assert_eq!(names("/?q=nothing+like+it").len(), 0);
    assert!(server.get("/?state=red").body.contains("no state `red`"));
    let by_model = server.get("/?by=model").body;
    assert!(by_model.contains("<a href=\"/?model=rare\">rare</a>"));
    // The API asks the same.
    assert_eq!(server.json("/api/v1/streams?state=firing")["count"], 2);
    let one = server.json("/api/v1/streams?limit=1&offset=1");
    assert_eq!((&one["count"], &one["total"]), (&1.into(), &4.into()));
    assert_eq!(one["states"]["page"], 1);
    assert_eq!(server.get("/api/v1/streams?state=red").status, 400);
}

#[test]
fn five_hundred_streams_fit_on_small_pages_and_all_are_found() {
    let server = Server::start(many_streams(500, Limits::default()));
    let index = server.get("/").body;
    let (firing, bad) = (36, 36);
    assert!(index.contains(&format!("<b class=bad>{firing}</b> page")));
    assert!(index.contains(&format!("<b class=bad>{bad}</b> miscalibrated")));
    assert_eq!(rows(&index).len(), 50);
    let paths = [
        "/",
        "/?q=model-07",
        "/?by=model",
        "/?state=firing",
        "/alerts",
        "/api/v1/streams",
        "/streams/recommendation-model-000/2026-11-01/country=0/binary",
    ];
    for path in paths {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}");
        let bytes = answer.body.len();
        assert!(
            bytes < PAGE_BYTES_MAX || path.starts_with("/api"),
            "{path}: {bytes}"
        );
    }
    // All are on some page, each once.
    let mut all: Vec<String> = Vec::new();
    for page in 1..=10 {
        all.extend(rows(&server.get(&format!("/?page={page}")).body));
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 500);
    // A page that is not there is empty.
    for page in ["11", "0", "18446744073709551615", "-1", "x"] {
        let answer = server.get(&format!("/?page={page}"));
        assert_eq!(answer.status, 200, "{page}");
    }
    assert!(rows(&server.get("/?page=18446744073709551615").body).is_empty());
}

#[test]
fn a_stream_shows_its_past_in_a_drawing_and_in_the_api() {
    let published = populated();
    let stream = id("calibrated", "1", "", View::Binary);
    for i in 0..50 {
        let point = HistoryPoint {
            end_ms: now_ms() / 1000 * 1000 - 50_000 + 1000 * i,
            n: 1000,
            verdict: Verdict::Calibrated,
            error: Some(HistoryError {
                estimate: 0.01,
                lower: 0.0,
                upper: 0.02,
            }),
            ratio: Some(HistoryError {
                estimate: 1.5,
                lower: 1.25,
                upper: 1.75,
            }),
            besides: Verdicts::default(),
        };
        published.history.observe(&stream, "5m", point);
    }
    let alert = HistoryAlert {
        at_ms: now_ms(),
        state: "firing".to_owned(),
        severity: "page".to_owned(),
        sentence: "scores are <too> low".to_owned(),
    };
    published.history.alert(&stream, alert);
    let server = Server::start(published);
    let page = server.get("/streams/calibrated/1//binary").body;
    assert_eq!(page.matches("Over time").count(), 1);
    assert!(page.contains("class=error") && page.contains("50 judgements"));
    assert!(page.contains("scores are &lt;too&gt; low"));
    assert!(page.contains("class=corp") && page.contains("class=band"));
    let path = "/api/v1/streams/calibrated/1//binary/history";
    let history = server.json(path);
    let points = history["windows"][0]["points"].as_array().expect("points");
    assert_eq!(
        (points.len(), &points[7]["error"]["estimate"]),
        (50, &0.01.into())
    );
    assert_eq!(points[7]["observed_expected"]["upper"], 1.75);
    assert_eq!(points[7]["verdicts"]["calibrated"], 1);
    assert_eq!(history["alerts"][0]["severity"], "page");
    let since = points[40]["end_ms"].as_i64().expect("a time");
    let late = server.json(&format!("{path}?window=5m&since_ms={since}"));
    assert_eq!(
        late["windows"][0]["points"].as_array().map(Vec::len),
        Some(10)
    );
    assert_eq!(server.get(&format!("{path}?window=9h")).status, 404);
    assert_eq!(
        server.get(&format!("{path}?since_ms=yesterday")).status,
        400
    );
    let corp = &server.json("/api/v1/streams/calibrated/1//binary/reliability?window=5m")["windows"]
        [0]["corp"];
    assert_eq!(corp["axis"], "linear");
    let curve = corp["curve"].as_array().expect("a curve");
    let rates: Vec<f64> = curve.iter().filter_map(|b| b["rate"].as_f64()).collect();
    assert!(rates.len() > 5 && rates.windows(2).all(|w| w[0] < w[1]));
    let n: f64 = curve.iter().filter_map(|b| b["n"].as_f64()).sum();
    assert_eq!(n, 20_000.0);
}

#[test]
fn an_alert_says_what_keeps_it_open_and_who_looks_after_it() {
    let published = populated();
    let rules = AlertRules {
        model: "*".to_owned(),
        holds: Holds {
            pending_ms: 0,
            keep_firing_ms: 300_000,
            flap_within_ms: 0,
        },
        window_alerts: false,
        no_alert: None,
    };
    published.update(|facts| facts.alert_rules = [rules].into());
    publish_alerts(&published);
    let report = published
        .report(&id("rare", "", "", View::Class(3)))
        .expect("published");
    let mut silences = Silences::default();
    silences.acks.insert(
        report.id.fingerprint(),
        Ack {
            by: "ann".to_owned(),
            note: "rolling back".to_owned(),
            at_ms: now_ms(),
            since_ms: report.alert.since_ms.expect("it fires"),
        },
    );
    silences.enter(Silence {
        id: 3,
        matchers: vec!["model=team*".parse::<Matcher>().expect("a matcher")],
        from_ms: now_ms(),
        until_ms: now_ms() + 60_000,
        by: "bob".to_owned(),
        note: "release".to_owned(),
    });
    let silences = Arc::new(silences);
    published.control.on_silences(move || Arc::clone(&silences));
    let server = Server::start(published);
    let page = server.get("/streams/rare///class:3").body;
    for words in [
        "What keeps it open",
        "The detector is in alarm",
        "ends 5m later",
        "acknowledged by <b>ann</b>",
        "href=/runbooks/TruelineMiscalibrated",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let alerts = server.get("/alerts").body;
    let at = |words: &str| alerts.find(words).unwrap_or_else(|| panic!("{words}"));
    assert!(at("Firing <span class=soft>0</span>") < at("Acknowledged"));
    assert!(at("acknowledged by <b>ann</b>") < at(">Silenced"));
    assert!(at(">Silenced") < at("silenced by <b>bob</b>"));
    assert!(alerts.contains("model=team*") && alerts.contains("release"));
}

#[test]
fn a_stream_that_raises_no_alert_says_so_in_place_of_its_detector() {
    let published = populated();
    let rules = |no_alert: Option<&str>, window_alerts| AlertRules {
        model: "*".to_owned(),
        holds: Holds {
            pending_ms: 0,
            keep_firing_ms: 0,
            flap_within_ms: 0,
        },
        window_alerts,
        no_alert: no_alert.map(str::to_owned),
    };
    publish_vectors(&published);
    let server = Server::start(Arc::clone(&published));
    let says = |path: &str, words: &str| server.get(path).body.contains(words);
    let binary = "/streams/calibrated/1//binary";
    for (no_alert, window_alerts, expected) in [
        (Some("no detector, since w"), false, [true, true]),
        (None, false, [false, true]),
        (None, true, [false, false]),
    ] {
        let rules = [rules(no_alert, window_alerts)];
        published.update(|facts| facts.alert_rules = rules.into());
        let said = [
            says(binary, "This stream has no detector, since w."),
            says(
                "/streams/whole/1//kernel",
                "since a vector has no single score: no alert",
            ),
        ];
        assert_eq!(said, expected, "{no_alert:?}");
    }
    assert!(!says("/streams/rare///class:3", "no detector"));
}

/// Their mean score is 1 %, and twice as many happen.
#[test]
fn of_rare_events_pages_api_and_tables_show_the_ratio_that_decided() {
    let published = populated();
    publish_alerts(&published);
    let server = Server::start(published);
    let says = |text: &str, parts: &[&str]| {
        let missing = parts.iter().find(|part| !text.contains(**part));
        assert_eq!(missing, None, "{text}");
    };
    let tolerated = "], tolerated 0.83 to 1.20";
    let ratio = ["observed/expected [1.", tolerated, "data-k=O/E>"];
    says(&server.get("/").body, &ratio);
    let ratio = ["last:50000: observed/expected [1.", tolerated];
    says(&server.get("/alerts").body, &ratio);
    let stream = server.get("/streams/rare///class:3").body;
    says(
        &stream,
        &["; observed/expected within [1.", tolerated, "0.83 to 1.20"],
    );
    let error = &server.json("/api/v1/alerts")["alerts"][0]["streams"][0]["window"]["error"];
    assert_eq!(error["quantity"], "observed_expected", "{error}");
    assert!(error["lower"].as_f64() > error["most"].as_f64(), "{error}");
    let table = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trueline"));
        let url = format!("http://{}", server.address);
        let out = command.args(args).args(["--url", &url]).output();
        String::from_utf8(out.expect("it ends").stdout).expect("UTF-8")
    };
    says(&table(&["alert", "list"]), &["O/E [1.", tolerated]);
    says(&table(&["top", "--once"]), &["O/E 1.98", tolerated]);
}

#[test]
fn an_alert_is_silenced_only_if_all_of_its_streams_are() {
    for (matcher, silenced) in [("model=rare", false), ("model=*", true)] {
        let published = populated();
        let rare = id("rare", "", "", View::Class(3));
        let name = "team/over \"confident\"";
        let team = id(name, "v2", "country=DE,tier=a", View::TopLabel);
        let alert = AlertFacts {
            name: "both".to_owned(),
            state: AlertState::Firing,
            streams: vec![rare, team],
            ..AlertFacts::default()
        };
        published.update(|facts| facts.alerts = [alert].into());
        let mut silences = Silences::default();
        silences.enter(Silence {
            id: 3,
            matchers: vec![matcher.parse::<Matcher>().expect("a matcher")],
            from_ms: now_ms(),
            until_ms: now_ms() + 60_000,
            by: "bob".to_owned(),
            note: String::new(),
        });
        let silences = Arc::new(silences);
        published.control.on_silences(move || Arc::clone(&silences));
        let page = Server::start(published).get("/alerts").body;
        assert_eq!(page.contains("silenced by"), silenced, "{matcher}");
        assert_eq!(page.contains("nobody yet"), !silenced, "{matcher}");
    }
}

/// A source of which all records are rejected.
pub fn rejecting(published: &Published) {
    let mut source = SourceFacts {
        name: "labels".to_owned(),
        ..SourceFacts::default()
    };
    for _ in 0..40 {
        source
            .counters
            .count(Disposition::Rejected(Reason::MissingField));
    }
    (source.counters.implied, source.counters.pending) = (1234, 5678);
    source.last_rejection = Some(Arc::new(LastRejection {
        at_ms: Some(now_ms()),
        partition: 2,
        offset: 41,
        reason: Reason::MissingField.as_str(),
        detail: "no field <label>".to_owned(),
    }));
    published.update(|facts| facts.sources.push(source));
    published.observe_counts();
}

#[test]
fn a_source_that_is_rejected_is_seen_at_a_glance() {
    let published = Arc::new(Published::default());
    published.ready("engine");
    let server = Server::start(Arc::clone(&published));
    assert!(!server.get("/").body.contains("id=sources"));
    rejecting(&published);
    let index = server.get("/").body;
    assert!(index.contains("labels: all records are rejected"));
    assert!(index.contains("no field &lt;label&gt;") && index.contains("partition 2 offset 41"));
    assert!(index.contains("href=/runbooks/TruelineRecordsRejected"));
    assert!(!index.contains(">sources</span>"));
    assert!(index.contains("data-k=implied>1,234") && index.contains("data-k=pending>5,678"));
    let sources = server.json("/api/v1/sources");
    assert_eq!(
        (&sources["ok"], &sources["count"]),
        (&false.into(), &1.into())
    );
    let one = &sources["sources"][0];
    assert_eq!(one["rejected_by_reason"]["missing_field"], 40);
    assert_eq!(one["implied"], 1234);
    assert_eq!(one["last_rejection"]["detail"], "no field <label>");
    assert_eq!(
        one["concerns"][0]["runbook"],
        "/runbooks/TruelineRecordsRejected"
    );
    // All that is listed exists.
    assert_eq!(server.get("/runbooks/TruelineRecordsRejected").status, 200);
}

#[test]
fn vector_pages_explain_what_they_show_and_are_not_green_at_a_tiny_p() {
    let published = populated();
    publish_vectors(&published);
    let report = published
        .report(&id("whole", "1", "", View::Kernel))
        .expect("published");
    let mut within = (*report).clone();
    within.windows[0].verdict = Verdict::Calibrated;
    within.windows[0].alert = AlertState::Inactive;
    within.alert = Alert::default();
    assert!(
        within.windows[0]
            .numbers
            .as_ref()
            .is_some_and(Numbers::reject)
    );
    published.publish(&Arc::new(within));
    let server = Server::start(published);
    let page = server.get("/streams/whole/1//kernel").body;
    assert!(page.contains("calibrated: within tolerance"));
    assert!(!page.contains("badge good\">calibrated"));
    assert!(page.contains("kernel calibration error compares the vectors"));
    assert!(!page.contains("CORP") && !page.contains("Whiskers"));
}

#[test]
fn a_window_that_was_never_judged_has_no_date_of_1970() {
    let published = Published::default();
    let blank = trueline::judge::WindowReport::blank("5m");
    publish(&published, id("first", "1", "", View::Binary), vec![blank]);
    let server = Server::start(Arc::new(published));
    for path in ["/", "/streams/first/1//binary"] {
        assert!(!server.get(path).body.contains("1970"), "{path}");
    }
    assert!(
        server
            .get("/streams/first/1//binary")
            .body
            .contains("not judged yet")
    );
    let window = &server.json("/api/v1/streams/first/1//binary")["windows"][0];
    assert!(window["end"].is_null() && window["start"].is_null());
}

#[test]
fn what_is_not_there_is_a_page_for_a_browser_and_an_object_for_a_program() {
    let server = Server::start(populated());
    let page = browse(&server, "/streams/rare/8//binary");
    assert_eq!(page.status, 404);
    assert!(
        page.head.contains("text/html") && page.body.contains("href=\"/streams/rare///class:3\"")
    );
    let slip = browse(&server, "/alert");
    assert!(slip.status == 404 && slip.body.contains("href=\"/alerts\""));
    for path in ["/api/v1/stream", "/api/v1/streems", "/api/v2/streams"] {
        let answer = browse(&server, path);
        assert_eq!(answer.status, 404, "{path}");
        let body: serde_json::Value = serde_json::from_str(&answer.body).expect("an object");
        let hint = body["hint"].as_str().expect("a hint");
        assert!(
            hint.contains("did you mean /api/v1/streams?"),
            "{path}: {hint}"
        );
    }
    let list = server.json("/api/v1");
    let addresses = list["addresses"].as_array().expect("a list");
    assert!(addresses.len() > 20);
    for address in addresses {
        let path = address["path"].as_str().expect("a path");
        if address["method"] == "GET" && !path.contains('{') && path != "/api/v1/tap" {
            assert_eq!(server.get(path).status, 200, "{path}");
        }
    }
    assert_eq!(server.get("/api/v1/explanations/0-1-page").status, 404);
    assert_eq!(
        server.get("/api/v1/explanations/..%2F..%2Fpasswd").status,
        404
    );
}
