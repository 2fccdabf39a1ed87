//! The HTTP server over real sockets: what each address says, and what it costs to be asked
//! wrongly.

pub mod api;
mod metrics;
mod requests;
mod runbooks;

use crate::support::server::Server;
use std::collections::{BTreeMap, BTreeSet};

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
