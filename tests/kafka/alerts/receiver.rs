//! A receiver of posts, which checks their signatures, and the sink that posts to it.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trueline::notify::webhook::signature;

const SECRET: &str = "between us";

/// A receiver of posts: takes them, refuses them with 503, or is not there.
pub struct Receiver {
    address: SocketAddr,
    posts: Arc<Mutex<Vec<(String, Value)>>>,
    pub refuses: Arc<AtomicBool>,
    pub away: Arc<AtomicBool>,
}

impl Receiver {
    pub fn start(away: bool) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let receiver = Receiver {
            address: listener.local_addr().expect("its address"),
            posts: Arc::default(),
            refuses: Arc::default(),
            away: Arc::new(AtomicBool::new(away)),
        };
        let (posts, refuses) = (Arc::clone(&receiver.posts), Arc::clone(&receiver.refuses));
        let away = Arc::clone(&receiver.away);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Away: the connection is closed at once, as by a proxy without anybody behind it.
                if !away.load(Ordering::Relaxed) {
                    let status = if refuses.load(Ordering::Relaxed) {
                        503
                    } else {
                        200
                    };
                    take(stream, status, &posts);
                }
            }
        });
        receiver
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn of(&self, path: &str) -> Vec<Value> {
        let posts = self.posts.lock().expect("posts");
        let ours = posts.iter().filter(|(at, _)| at == path);
        ours.map(|(_, body)| body.clone()).collect()
    }
}

/// Reads one post, checks its signature where it has a timestamp, and answers. What it accepts is
/// among the posts before the sender knows.
fn take(stream: TcpStream, status: u16, posts: &Mutex<Vec<(String, Value)>>) -> Option<()> {
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .ok()?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let header = |name: &str| {
        let mut lines = head.lines();
        let line = lines.find(|l| l.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        line.split_once(':').map(|(_, v)| v.trim().to_owned())
    };
    let mut body = vec![0; header("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    if path.starts_with("/hook") {
        let timestamp = header("trueline-timestamp").expect("a timestamp");
        let wanted = signature(SECRET, &timestamp, &body);
        assert_eq!(header("trueline-signature"), Some(wanted), "{head}");
    }
    if status == 200 {
        let post = (path, serde_json::from_str(&body).ok()?);
        posts.lock().expect("posts").push(post);
    }
    let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
    reader.get_mut().write_all(answer.as_bytes()).ok()
}

pub fn webhook(receiver: &Receiver) -> String {
    let url = receiver.url("/hook");
    format!(
        "[[sink]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{url}\"\nsecret = \"{SECRET}\"\n\
         retry_max = \"1s\"\ntimeout = \"2s\"\n"
    )
}
