//! A real Alertmanager, asked over HTTP.

use crate::support;
use crate::support::broker::unique;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A real Alertmanager, gone when dropped.
pub struct Alertmanager {
    child: Child,
    address: String,
    folder: PathBuf,
}

impl Alertmanager {
    /// One on this address, or `None` after saying that it is not installed.
    pub fn start(test: &str, address: &str) -> Option<Alertmanager> {
        let program = "prometheus-alertmanager";
        let known = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !known.is_ok_and(|s| s.success()) {
            let lacks =
                "prometheus-alertmanager is not on the path; Debian has a package of that name";
            support::skip(
                &format!("tests/kafka/alerts/outages.rs {test}, its Alertmanager"),
                lacks,
            );
            return None;
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("am-{}", unique()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("alertmanager.yml");
        let text = "route: {receiver: none, group_wait: 0s}\nreceivers: [{name: none}]\n";
        std::fs::write(&file, text).expect("a file");
        let child = Command::new(program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.path={}", folder.display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--cluster.listen-address=")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        Some(Alertmanager {
            child,
            address: address.to_owned(),
            folder,
        })
    }

    /// Its active alerts; `None` while it does not answer.
    pub fn active(&self) -> Option<Vec<Value>> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let path = "/api/v2/alerts?active=true";
        write!(stream, "GET {path} HTTP/1.0\r\nhost: x\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn free_address() -> String {
    format!("127.0.0.1:{}", support::free_port())
}
