//! What leaves, read by the real reader: promtool on a live `/metrics`, and a Prometheus that
//! scrapes a server and answers every query of the dashboard and of the rules. `tests/run` checks
//! the rules and runs their tests.
//!
//! Needs `prometheus` and `promtool` on the path (Debian's `prometheus` has both); says by name
//! what it did not run without them.

use crate::support;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::expressions::{ALERT_FILES, dashboard, deploy, recorded, rules};
use crate::support::published::{id, populated, publish, publish_vectors, window};
use crate::support::server::Server;
use serde_json::Value;
use tempfile::TempDir;
use trueline::alert::AlertState;
use trueline::collect::Disposition;
use trueline::judge::{Undecided, Verdict};
use trueline::stats::view::View;
use trueline::telemetry::Published;
use trueline::telemetry::facts::{JudgeFacts, Role};

/// Whether a program is on the path; when not, the test says so.
fn has(program: &str, test: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        support::skip(
            &format!("tests/repo/prometheus.rs {test}"),
            &format!("{program} is not on the path; Debian's `prometheus` has it"),
        );
    }
    found
}

/// Runs promtool and returns what it wrote; it must succeed.
fn promtool(arguments: &[&str], input: &str) -> String {
    let mut child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "promtool {arguments:?}:\n{said}");
    said
}

#[test]
fn promtool_finds_no_fault_in_live_metrics() {
    if !has("promtool", "promtool_finds_no_fault_in_live_metrics") {
        return;
    }
    let server = Server::start(populated());
    let said = promtool(&["check", "metrics"], &server.get("/metrics").body);
    assert!(said.trim().is_empty(), "{said}");
}

/// A Prometheus of our own, gone when dropped.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes `target` each second with the rules of `deploy/`.
    fn start(target: SocketAddr) -> Prometheus {
        let folder = TempDir::with_prefix("trueline-prometheus-").unwrap();
        let config = folder.path().join("prometheus.yml");
        let rules = deploy("prometheus");
        let rules = rules.display();
        fs::write(
            &config,
            format!(
                "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
                 rule_files: ['{rules}/trueline_*s.yml']\n\
                 scrape_configs:\n  - job_name: trueline\n    static_configs: [{{ targets: ['{target}'] }}]\n"
            ),
        )
        .unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], support::free_port()));
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Prometheus {
            child,
            address,
            folder,
        }
    }

    /// Result of an instant query; `None` while it does not answer.
    fn query(&self, expr: &str) -> Option<Vec<Value>> {
        let mut encoded = String::new();
        for byte in expr.bytes() {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .ok()?;
        // HTTP/1.0, so that the answer is not chunked.
        let request = format!("GET /api/v1/query?query={encoded} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (_, body) = text.split_once("\r\n\r\n")?;
        let body: Value = serde_json::from_str(body).ok()?;
        assert_ne!(body["status"], "error", "{expr}: {body}");
        body["data"]["result"].as_array().cloned()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            eprintln!("prometheus wrote:\n{log}");
        }
    }
}

/// Moves the counters, as a consumer would.
fn work(published: &Published) {
    published.update(|facts| {
        for source in &mut facts.sources {
            source.counters.count(Disposition::Observed);
        }
    });
    published.record_evaluation(Duration::from_micros(150));
}

/// A query of the dashboard as Grafana would send it with every variable at "All".
fn substituted(expr: &str) -> String {
    let mut expr = expr.replace("$__rate_interval", "1m");
    for variable in ["instance", "model", "version", "segment", "view", "window"] {
        expr = expr.replace(&format!("\"${variable}\""), "\".*\"");
    }
    assert!(!expr.contains('$'), "a variable is left in {expr}");
    expr
}

/// An alert's expression without its thresholds: what it compares must exist, whether or not it is
/// bad now.
fn without_thresholds(expr: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut parts = expr.split(' ').peekable();
    while let Some(word) = parts.next() {
        let number = |text: &str| text.trim_end_matches(')').parse::<f64>().is_ok();
        if matches!(word, ">" | "<" | "==") && parts.peek().is_some_and(|next| number(next)) {
            let threshold = parts.next().unwrap();
            // Brackets that close after the number belong to the rest.
            words.push(&threshold[threshold.trim_end_matches(')').len()..]);
        } else {
            words.push(word);
        }
    }
    words.join(" ")
}

#[test]
fn thresholds_are_taken_out_with_their_brackets_kept() {
    assert_eq!(
        without_thresholds("(time() - a > 1800) and on (b) (c > 0)").replace("  ", " "),
        "(time() - a ) and on (b) (c )"
    );
    assert_eq!(without_thresholds("a == 1").trim(), "a");
}

#[test]
fn a_real_prometheus_answers_every_query_of_the_dashboard_and_of_the_rules() {
    let test = "a_real_prometheus_answers_every_query_of_the_dashboard_and_of_the_rules";
    if !has("prometheus", test) {
        return;
    }
    let published = populated();
    publish_vectors(&published);
    let missing = Verdict::Undecided(Undecided::Coverage);
    let windows = vec![window("5m", missing, AlertState::Inactive, None)];
    publish(&published, id("unlabelled", "1", "", View::Binary), windows);
    published.update(|facts| facts.role = Role::Judge(JudgeFacts::default()));
    let server = Server::start(published);
    let prometheus = Prometheus::start(server.address);
    // Rates need two scrapes between which the counters moved; the rules one evaluation more.
    support::wait_for("rates in Prometheus", Duration::from_secs(60), || {
        work(&server.published);
        let moved = prometheus.query("sum(trueline:records:rate5m) > 0")?;
        let alerts = prometheus
            .query("ALERTS{alertname=\"TruelineMiscalibrated\",alertstate=\"firing\"}")?;
        let mut names = recorded().into_iter();
        let all = names.all(|(name, _)| prometheus.query(&name).is_some_and(|r| !r.is_empty()));
        (all && !moved.is_empty() && !alerts.is_empty()).then_some(())
    });
    let up = prometheus.query("up{job=\"trueline\"} == 1").unwrap();
    assert_eq!(up.len(), 1, "the scrape failed: {up:?}");

    let (queries, variables) = dashboard();
    let mut asked: Vec<(String, String)> = queries
        .into_iter()
        .map(|(title, expr)| (title, substituted(&expr)))
        .collect();
    for (name, metric, label) in variables {
        asked.push((
            name,
            format!("group by ({label}) ({})", substituted(&metric)),
        ));
    }
    asked.extend(recorded());
    for (name, _) in recorded() {
        asked.push((format!("recorded {name}"), name));
    }
    for (name, expr) in ALERT_FILES.iter().flat_map(|file| rules(file, "alert")) {
        // `absent` answers only when there is nothing to answer about; `up` was seen above. Workers
        // without a judge are not to be seen beside one; the rule's own test has them.
        if !expr.starts_with("absent(") && name != "TruelineJudgeMissing" {
            // A server that began just now has nothing of ten minutes, an hour or a day ago, and
            // few moments on a grid.
            let young = expr
                .replace(" offset 10m", "")
                .replace(" offset 1h", "")
                .replace(" offset 1d", "")
                .replace("[15m:15s]", "[15m:1s]");
            asked.push((name, without_thresholds(&young)));
        }
    }
    let empty: Vec<String> = asked
        .iter()
        .filter(|(_, expr)| prometheus.query(expr).unwrap().is_empty())
        .map(|(title, expr)| format!("{title}: {expr}"))
        .collect();
    assert!(empty.is_empty(), "no data for\n{}", empty.join("\n"));
    println!("{} queries answered", asked.len());
}
