//! A POST of a notice as JSON, signed.
//!
//! | header | value |
//! |---|---|
//! | `trueline-timestamp` | seconds since 1970 at which it was sent |
//! | `trueline-signature` | `sha256=` and HMAC-SHA-256 of `timestamp.body` with the configured secret, in hexadecimal |
//! | `idempotency-key` | the notice's `key` |
//!
//! The receiver computes the signature over the bytes of the body as they came, compares in constant time, and refuses what is older than
//! it wants to be: the timestamp is signed too, so that nothing can be sent again later. Each attempt is signed anew.

use super::notice::Notice;
use super::options::{SinkOptions, Texts};
use super::post::Post;
use super::receiver::Failure;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use std::fmt::Write;

/// A webhook.
pub struct Webhook {
    post: Post,
    texts: Texts,
    secret: Option<String>,
}

impl Webhook {
    /// One of these options.
    pub fn new(options: &SinkOptions, texts: &Texts) -> Result<Webhook, String> {
        Ok(Webhook {
            post: Post::new(options, options.address.clone())?,
            texts: texts.clone(),
            secret: options.secret.clone(),
        })
    }

    /// Tells one notice.
    pub fn tell(&self, notice: &Notice, now_ms: i64) -> Result<String, Failure> {
        let body = body(notice, &self.texts);
        let timestamp = now_ms.div_euclid(1000).to_string();
        let signature = match &self.secret {
            Some(secret) => signature(secret, &timestamp, &body),
            None => String::new(),
        };
        let mut headers = vec![
            ("trueline-timestamp", timestamp.as_str()),
            ("idempotency-key", notice.key.as_str()),
        ];
        if self.secret.is_some() {
            headers.push(("trueline-signature", &signature));
        }
        self.post.json(&body, &headers)
    }
}

/// A notice as JSON with its texts; see [`super::notice::schema`].
pub fn body(notice: &Notice, texts: &Texts) -> String {
    let mut value = serde_json::to_value(notice).unwrap_or(Value::Null);
    value["summary"] = json!(texts.summary.fill(notice));
    value["description"] = json!(texts.description.fill(notice));
    value.to_string()
}

/// What stands in `trueline-signature`.
pub fn signature(secret: &str, timestamp: &str, body: &str) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        unreachable!("HMAC takes keys of every length");
    };
    for part in [timestamp, ".", body] {
        mac.update(part.as_bytes());
    }
    let mut out = "sha256=".to_owned();
    for byte in mac.finalize().into_bytes() {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_openssl_makes_of_it() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac key
        let wanted = "sha256=a438e398bfafc57e4396bb7fc2304422f0f768e965d073ca313cb52e22e6ad03";
        assert_eq!(signature("key", "1700000000", r#"{"a":1}"#), wanted);
    }
}
