//! A server on a free port of loopback, and a client that speaks plain HTTP over a socket.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use trueline::http::AccessOptions;
use trueline::telemetry::Published;

/// A running server; stops when dropped.
pub struct Server {
    pub address: SocketAddr,
    pub published: Arc<Published>,
    stop: Option<oneshot::Sender<()>>,
    task: Option<tokio::task::JoinHandle<std::io::Result<()>>>,
    runtime: Option<Runtime>,
}

impl Server {
    /// Serves `published` on a free port of loopback.
    pub fn start(published: Arc<Published>) -> Server {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&published);
        let task = runtime.spawn(trueline::http::serve(
            listener,
            shared,
            AccessOptions::default(),
            async {
                let _ = stopped.await;
            },
        ));
        Server {
            address,
            published,
            stop: Some(stop),
            task: Some(task),
            runtime: Some(runtime),
        }
    }

    /// Asks the server to stop and waits until it has.
    pub fn stop(&mut self) {
        let stop = self.stop.take().unwrap();
        let _ = stop.send(());
        let task = self.task.take().unwrap();
        self.runtime
            .as_ref()
            .unwrap()
            .block_on(task)
            .unwrap()
            .unwrap();
    }

    /// Answer to a GET.
    pub fn get(&self, path: &str) -> Answer {
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        ))
    }

    /// Body of a GET that must succeed with JSON.
    pub fn json(&self, path: &str) -> serde_json::Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    /// Answer to these bytes.
    pub fn ask(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        // A server that refuses may close while the request is still being written.
        let _ = stream.write_all(request.as_bytes());
        Answer::read(&mut stream)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// An HTTP answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// Reads until the server closes.
    pub fn read(stream: &mut TcpStream) -> Answer {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|s| s.parse().ok())
            .unwrap_or(0);
        Answer {
            status,
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }
}
