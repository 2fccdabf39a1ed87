//! A schema registry over HTTP, in the test: the two requests that a reader makes, and faults on
//! order.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// It answers until it is dropped.
pub struct TestRegistry {
    /// Where it answers.
    pub url: String,
    address: SocketAddr,
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    answers: Mutex<HashMap<String, Value>>,
    /// Paths that are refused, with the status.
    refused: Mutex<HashMap<String, u16>>,
    /// The header that every request must have.
    authorization: Option<String>,
    requests: AtomicU64,
    /// Answers are 503.
    broken: AtomicBool,
    stop: AtomicBool,
}

impl TestRegistry {
    /// One on any free port.
    pub fn start() -> TestRegistry {
        TestRegistry::at("127.0.0.1:0", None)
    }

    /// One at an address, that may ask for credentials.
    pub fn at(address: &str, authorization: Option<&str>) -> TestRegistry {
        let listener = TcpListener::bind(address).expect("the port is free");
        let address = listener.local_addr().expect("an address");
        let inner = Arc::new(Inner {
            authorization: authorization.map(str::to_owned),
            ..Inner::default()
        });
        let theirs = Arc::clone(&inner);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if theirs.stop.load(Ordering::SeqCst) {
                    return;
                }
                let _ = answer(&theirs, stream);
            }
        });
        let url = format!("http://{address}");
        TestRegistry {
            url,
            address,
            inner,
        }
    }

    /// Registers a schema; `references` are name, subject and version.
    pub fn put(&self, id: u32, kind: &str, text: &str, references: &[(&str, &str, i64)]) {
        self.answer(&format!("/schemas/ids/{id}"), kind, text, references);
    }

    /// Registers a version of a subject, to be referred to.
    pub fn put_subject(&self, subject: &str, version: i64, kind: &str, text: &str) {
        self.answer(
            &format!("/subjects/{subject}/versions/{version}"),
            kind,
            text,
            &[],
        );
    }

    fn answer(&self, path: &str, kind: &str, text: &str, references: &[(&str, &str, i64)]) {
        let references: Vec<Value> = references
            .iter()
            .map(|(name, subject, version)| json!({"name": name, "subject": subject, "version": version}))
            .collect();
        let mut answer = json!({"schema": text, "references": references});
        // The registry leaves out what is the default.
        if kind != "AVRO" {
            answer["schemaType"] = kind.into();
        }
        let mut answers = self.inner.answers.lock().expect("no panic before");
        answers.insert(path.to_owned(), answer);
    }

    /// From now on it answers the request for this id with a status of its own, without the code of
    /// an unknown schema.
    pub fn refuse(&self, id: u32, status: u16) {
        let mut refused = self.inner.refused.lock().expect("no panic before");
        refused.insert(format!("/schemas/ids/{id}"), status);
    }

    /// From now on it answers 503, or no longer.
    pub fn break_down(&self, broken: bool) {
        self.inner.broken.store(broken, Ordering::SeqCst);
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.inner.requests.load(Ordering::SeqCst)
    }
}

impl Drop for TestRegistry {
    fn drop(&mut self) {
        self.inner.stop.store(true, Ordering::SeqCst);
        // The thread looks at the flag when somebody comes.
        let _ = TcpStream::connect(self.address);
    }
}

fn answer(inner: &Inner, mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut request, mut authorization) = (String::new(), None);
    reader.read_line(&mut request)?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("authorization")
        {
            authorization = Some(value.trim().to_owned());
        }
    }
    inner.requests.fetch_add(1, Ordering::SeqCst);
    let path = request.split(' ').nth(1).unwrap_or_default();
    let known = inner
        .answers
        .lock()
        .expect("no panic before")
        .get(path)
        .cloned();
    let refused = inner.refused.lock().expect("no panic before");
    let refused = refused.get(path).map(|status| format!("{status} Refused"));
    let (status, body) = if let Some(status) = &refused {
        (status.as_str(), json!({"error_code": 400, "message": "no"}))
    } else if inner.broken.load(Ordering::SeqCst) {
        (
            "503 Service Unavailable",
            json!({"error_code": 50003, "message": "no leader"}),
        )
    } else if inner.authorization.is_some() && inner.authorization != authorization {
        (
            "401 Unauthorized",
            json!({"error_code": 401, "message": "Unauthorized"}),
        )
    } else {
        match known {
            Some(answer) => ("200 OK", answer),
            None if path.starts_with("/schemas/ids/") => (
                "404 Not Found",
                json!({"error_code": 40403, "message": "Schema not found"}),
            ),
            None if path == "/schemas/types" => ("200 OK", json!(["AVRO", "JSON", "PROTOBUF"])),
            None => (
                "404 Not Found",
                json!({"error_code": 404, "message": "HTTP 404 Not Found"}),
            ),
        }
    };
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/vnd.schemaregistry.v1+json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
