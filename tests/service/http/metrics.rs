//! `/metrics`: every line is a row of the table; values nobody stands behind are withdrawn; a cap
//! takes values before verdicts.

use super::{Line, metrics, parse};
use crate::support::published::{id, populated, publish, sample, window};
use crate::support::server::Server;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use trueline::alert::AlertState;
use trueline::judge::Verdict;
use trueline::stats::view::View;
use trueline::telemetry::Published;
use trueline::telemetry::metrics::{Kind, TABLE};
use trueline::telemetry::published::Limits;

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
    // The discrete test does not run on continuous scores, no event is weighted, there is one class
    // view only and no kernel view; everything else must be there.
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
