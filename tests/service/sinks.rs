//! What PagerDuty, Opsgenie, Teams and Slack are sent, held to the limits that their documentation
//! names.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

/// A request as it came.
#[derive(Clone)]
struct Request {
    line: String,
    head: String,
    body: Value,
}

/// A server that takes everything.
struct Receiver {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Receiver {
    fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let receiver = Receiver {
            address: listener.local_addr().expect("its address"),
            requests: Arc::default(),
        };
        let requests = Arc::clone(&receiver.requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                requests.lock().expect("requests").extend(take(stream));
            }
        });
        receiver
    }

    fn taken(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().expect("requests"))
    }
}

fn take(stream: TcpStream) -> Option<Request> {
    let timeout = Some(Duration::from_secs(10));
    stream.set_read_timeout(timeout).ok()?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut lines = head.lines().map(str::to_ascii_lowercase);
    let length = lines.find_map(|l| l.strip_prefix("content-length:")?.trim().parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let answer = "HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    reader.get_mut().write_all(answer.as_bytes()).ok()?;
    let line = head.lines().next()?.to_owned();
    let body = serde_json::from_slice(&body).ok()?;
    Some(Request { line, head, body })
}

/// Sends a test alert, and its end, through one sink; returns what was sent.
fn sent(kind: &str, path: &str, key: &str) -> Vec<Request> {
    let receiver = Receiver::start();
    let key = match key {
        "" => String::new(),
        key => format!("secret = \"{key}\"\n"),
    };
    let config = format!(
        "version = 1\n[[source]]\ninput = \"http\"\ntopics = [\"t\"]\n[source.fields]\nscore = \"p\"\n\
         [[sink]]\nname = \"s\"\nkind = \"{kind}\"\nurl = \"http://{}{path}\"\n{key}",
        receiver.address
    );
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("sinks-{kind}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("trueline.toml");
    std::fs::write(&file, config).expect("a file");
    let said = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["alert", "test", "--config"])
        .arg(&file)
        .output()
        .expect("trueline starts");
    let words = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.status.success(),
        "{words}{}",
        String::from_utf8_lossy(&said.stderr)
    );
    assert!(
        words.contains(&format!("s ({kind}): accepted: 202")),
        "{words}"
    );
    receiver.taken()
}

fn text(value: &Value, most: usize) -> &str {
    let text = value.as_str().unwrap_or_else(|| panic!("no text: {value}"));
    let length = text.chars().count();
    assert!((1..=most).contains(&length), "{length} characters: {text}");
    text
}

/// Events API version 2: a trigger and a resolve with one `dedup_key`.
#[test]
fn pagerduty_gets_a_trigger_and_a_resolve_of_one_key() {
    let sent = sent("pagerduty", "/v2/enqueue", "R0UT1NGK3Y");
    assert_eq!(sent.len(), 2);
    for request in &sent {
        assert_eq!(request.line, "POST /v2/enqueue HTTP/1.1");
        assert_eq!(request.body["routing_key"], "R0UT1NGK3Y");
        text(&request.body["dedup_key"], 255);
    }
    let [trigger, resolve] = [0, 1].map(|i| &sent[i].body);
    let actions = [trigger, resolve].map(|event| &event["event_action"]);
    assert_eq!(actions, ["trigger", "resolve"]);
    assert_eq!(trigger["dedup_key"], resolve["dedup_key"]);
    let payload = &trigger["payload"];
    text(&payload["summary"], 1024);
    text(&payload["source"], 1024);
    let severity = text(&payload["severity"], 10);
    assert!(
        ["critical", "error", "warning", "info"].contains(&severity),
        "{severity}"
    );
    let at = text(&payload["timestamp"], 40);
    humantime::parse_rfc3339(at).expect("a time of ISO 8601");
    assert!(payload["custom_details"].is_object());
    for link in trigger["links"].as_array().expect("a list") {
        assert!(text(&link["href"], 2000).starts_with("http://"), "{link}");
        text(&link["text"], 200);
    }
}

/// Alert API version 2: created with an alias, closed by it.
#[test]
fn opsgenie_gets_an_alert_and_closes_it_by_its_alias() {
    let sent = sent("opsgenie", "", "G3N13");
    assert_eq!(sent.len(), 2);
    for request in &sent {
        let head = request.head.to_ascii_lowercase();
        assert!(
            head.contains("\r\nauthorization: geniekey g3n13\r\n"),
            "{head}"
        );
        assert!(
            head.contains("\r\ncontent-type: application/json"),
            "{head}"
        );
    }
    let alert = &sent[0].body;
    assert_eq!(sent[0].line, "POST /v2/alerts HTTP/1.1");
    text(&alert["message"], 130);
    let alias = text(&alert["alias"], 512);
    assert!(
        alias
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-'),
        "{alias}"
    );
    text(&alert["description"], 15_000);
    text(&alert["entity"], 512);
    assert!(["P1", "P2", "P3", "P4", "P5"].contains(&text(&alert["priority"], 2)));
    let details = alert["details"].as_object().expect("an object");
    let characters = details.iter().map(|(name, value)| {
        let value = value
            .as_str()
            .unwrap_or_else(|| panic!("{name} is no text: {value}"));
        name.len() + value.chars().count()
    });
    assert!(characters.sum::<usize>() <= 8000, "{details:?}");
    for tag in alert["tags"].as_array().expect("a list") {
        text(tag, 50);
    }
    let close = format!("POST /v2/alerts/{alias}/close?identifierType=alias HTTP/1.1");
    assert_eq!(sent[1].line, close);
    text(&sent[1].body["note"], 25_000);
}

/// Workflows: a message with one Adaptive Card, of at most 28 KB.
#[test]
fn teams_gets_an_adaptive_card_for_the_alert_and_for_its_end() {
    let sent = sent("teams", "/workflow", "");
    assert_eq!(sent.len(), 2);
    for (request, color) in sent.iter().zip(["Warning", "Good"]) {
        let message = &request.body;
        assert!(message.to_string().len() <= 28 << 10);
        assert_eq!(message["type"], "message");
        let card = &message["attachments"][0];
        assert_eq!(
            card["contentType"],
            "application/vnd.microsoft.card.adaptive"
        );
        let card = &card["content"];
        assert_eq!(
            (&card["type"], &card["version"]),
            (&"AdaptiveCard".into(), &"1.4".into())
        );
        let body = card["body"].as_array().expect("a list");
        assert_eq!(
            (&body[0]["type"], &body[0]["color"]),
            (&"TextBlock".into(), &color.into())
        );
        text(&body[0]["text"], 2000);
        for action in card["actions"].as_array().expect("a list") {
            assert!(
                text(&action["url"], 2000).starts_with("http://"),
                "{action}"
            );
        }
    }
}

/// An incoming webhook: `text`, and blocks within their limits.
#[test]
fn slack_gets_a_message_for_the_alert_and_for_its_end() {
    let sent = sent("slack", "/services/T/B/x", "");
    assert_eq!(sent.len(), 2);
    for request in &sent {
        assert_eq!(request.line, "POST /services/T/B/x HTTP/1.1");
        text(&request.body["text"], 40_000);
    }
}
