//! The demo, as a user runs it: the real binary, for 45 seconds, scraped meanwhile.
//!
//! One test, because it is long; it covers the broker protocol, the consumer, the decoder, the
//! engine, the statistics, the published state and the HTTP server in one go, against truths that
//! are known.

use crate::support::scrape;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A child that does not outlive its test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: demo\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if let Some((_, body)) = answer.split_once("\r\n\r\n") {
        scrape::assert_conserved(path, body);
    }
    Ok(answer)
}

#[test]
fn a_port_in_use_is_named_with_the_option_of_the_demo() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["demo", "--for", "45s", "--port", &port])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(69), "{said}");
    assert!(said.contains("choose another with --port"), "{said}");
    assert!(!said.contains("--listen"), "{said}");
}

#[test]
fn the_demo_finds_every_truth_and_says_so_on_metrics() {
    let child = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["demo", "--for", "45s", "--port", "0", "--rate", "2000"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut child = Guard(child);
    let stdout = child.0.stdout.take().expect("stdout is piped");
    let mut lines = BufReader::new(stdout).lines();
    let mut text = String::new();
    let address = loop {
        let line = lines
            .next()
            .expect("a line with the address")
            .expect("text");
        text.push_str(&line);
        text.push('\n');
        if let Some((_, rest)) = line.split_once("http://") {
            break rest.split('/').next().unwrap_or("").to_owned();
        }
    };
    // The rest is read beside us, lest the pipe fill.
    let reader = thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>().join("\n"));

    let start = Instant::now();
    let mut metrics = String::new();
    while start.elapsed() < Duration::from_secs(30) {
        thread::sleep(Duration::from_secs(2));
        metrics = get(&address, "/metrics").expect("metrics while it runs");
        if metrics.contains("model=\"card_fraud\"") && start.elapsed() > Duration::from_secs(25) {
            break;
        }
    }
    for model in ["credit_default", "churn", "clicks", "card_fraud", "animals"] {
        assert!(
            metrics.contains(&format!("model=\"{model}\"")),
            "{model} is not on /metrics"
        );
    }
    let ready = get(&address, "/ready").expect("an answer of /ready");
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");

    let status = child.0.wait().expect("the demo ends");
    text.push_str(&reader.join().expect("the reader ends"));
    assert!(status.success(), "{status}\n{text}");
    assert!(text.contains("every verdict matched the truth"), "{text}");
    assert!(!text.contains("WRONG"), "{text}");
}

#[test]
fn a_demo_too_short_to_judge_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["demo", "--for", "10s"])
        .output()
        .expect("the binary starts");
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("at least 45s"));
}
