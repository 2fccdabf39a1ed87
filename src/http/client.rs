//! A minimal HTTP client for commands that query a running trueline: one request, one response, no
//! TLS.
//!
//! It speaks HTTP/1.0, so that the response is not chunked and ends with the connection. Every wait
//! is bounded. Errors say what to start or to specify.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Longest time for connecting, sending and each piece of a response.
const WITHIN: Duration = Duration::from_secs(10);

/// Longest response that is read whole.
const BODY_MAX: u64 = 256 << 20;

/// A response whose body is not read yet.
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: BufReader<TcpStream>,
}

impl Reply {
    /// Removes the limit on the wait for each piece of the body.
    pub fn patient(&self) {
        // If this fails, the wait stays bounded and ends in an error.
        let _ = self.body.get_ref().set_read_timeout(None);
    }
}

pub use super::path::encode;

/// The address in `http://host:port/` or `host:port`; an error says how to write it.
pub fn authority(url: &str) -> Result<&str, String> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    if rest.contains("://") {
        return Err(format!(
            "`{url}` is no address of a trueline; write http://host:port"
        ));
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !path.is_empty() {
        return Err(format!(
            "`{url}` has a path, under which no trueline answers; write http://{authority}"
        ));
    }
    match authority.contains(':') && !authority.contains(['@', ' ']) {
        true => Ok(authority),
        false => Err(format!("`{url}` names no port; write http://host:port")),
    }
}

/// A running trueline, and the token that it requires.
pub struct Server {
    /// Its address, `http://host:port` or `host:port`.
    pub url: String,
    /// The token of `[http]`, if it has one.
    pub token: Option<String>,
}

impl Server {
    /// Sends a GET request and reads the head of the response.
    pub fn open(&self, path: &str) -> Result<Reply, String> {
        self.send("GET", path, "")
    }

    /// Sends a GET request and reads the whole response.
    pub fn get(&self, path: &str) -> Result<(u16, String), String> {
        self.ask("GET", path, "")
    }

    /// Sends a request with a JSON body or an empty one, and reads the whole response.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Result<(u16, String), String> {
        let mut reply = self.send(method, path, body)?;
        let mut body = String::new();
        let read = (&mut reply.body).take(BODY_MAX).read_to_string(&mut body);
        read.map_err(|error| format!("{}{path}: {error}", self.url))?;
        Ok((reply.status, body))
    }

    /// Sends a request and reads the head of the response.
    fn send(&self, method: &str, path: &str, body: &str) -> Result<Reply, String> {
        let authority = authority(&self.url)?;
        let failed = |error: std::io::Error| {
            format!("cannot ask {authority}: {error}; is trueline running there? see [http] listen")
        };
        let addresses = authority.to_socket_addrs().map_err(failed)?;
        let mut head = format!(
            "{method} {path} HTTP/1.0\r\nhost: {authority}\r\nx-requested-by: trueline\r\n"
        );
        if let Some(token) = &self.token {
            head.push_str(&format!("authorization: Bearer {}\r\n", token.trim()));
        }
        let mut last = std::io::Error::other("the name has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, WITHIN) {
                Ok(stream) => return exchange(stream, &head, body).map_err(failed),
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }
}

/// Writes a request and reads the head of the response.
fn exchange(mut stream: TcpStream, head: &str, body: &str) -> std::io::Result<Reply> {
    stream.set_write_timeout(Some(WITHIN))?;
    stream.set_read_timeout(Some(WITHIN))?;
    match body.len() {
        0 => write!(stream, "{head}\r\n")?,
        n => write!(
            stream,
            "{head}content-type: application/json\r\ncontent-length: {n}\r\n\r\n{body}"
        )?,
    }
    let mut body = BufReader::new(stream);
    let mut status = None;
    loop {
        let mut line = String::new();
        if (&mut body).take(16 * 1024).read_line(&mut line)? == 0 {
            return Err(std::io::Error::other("the answer broke off"));
        }
        if status.is_none() {
            let code = line.split(' ').nth(1).and_then(|code| code.parse().ok());
            status = Some(code.ok_or_else(|| std::io::Error::other("not an http answer"))?);
        }
        if line.trim_end().is_empty() {
            break;
        }
    }
    Ok(Reply {
        status: status.unwrap_or_default(),
        body,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port_without_a_path() {
        for url in ["http://h:1", "http://h:1/", "h:1", "[::1]:2"] {
            assert!(authority(url).is_ok(), "{url}");
        }
        let why = authority("http://h:1/foo").expect_err("it has a path");
        assert!(why.ends_with("; write http://h:1"), "{why}");
        for url in ["https://h:1", "http://h", "http://u@h:1"] {
            assert!(authority(url).is_err(), "{url}");
        }
    }
}
