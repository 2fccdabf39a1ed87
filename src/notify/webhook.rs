//! A signed POST of a notification as JSON.
//!
//! | header | value |
//! |---|---|
//! | `trueline-timestamp` | time of sending, in seconds since 1970 |
//! | `trueline-signature` | `sha256=` and the hexadecimal HMAC-SHA-256 of `timestamp.body` |
//! | `idempotency-key` | the notification's `key` |
//!
//! The receiver computes the signature over the received bytes of the body, compares in constant
//! time, and refuses requests that are too old. The timestamp is signed too, so a request cannot be
//! replayed later. Each attempt has a new signature.

use super::notification::Notification;
use super::options::{SinkOptions, Texts};
use super::post::Post;
use super::receiver::{Failure, Receiver};
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
    /// The webhook of these options.
    pub fn new(options: &SinkOptions, texts: &Texts) -> Result<Webhook, String> {
        Ok(Webhook {
            post: Post::new(options, options.address.clone())?,
            texts: texts.clone(),
            secret: options.secret.clone(),
        })
    }
}

impl Receiver for Webhook {
    fn send(&mut self, notification: &Notification, now_ms: i64) -> Result<String, Failure> {
        let body = body(notification, &self.texts);
        let timestamp = now_ms.div_euclid(1000).to_string();
        let signature = match &self.secret {
            Some(secret) => signature(secret, &timestamp, &body),
            None => String::new(),
        };
        let mut headers = vec![
            ("trueline-timestamp", timestamp.as_str()),
            ("idempotency-key", notification.key.as_str()),
        ];
        if self.secret.is_some() {
            headers.push(("trueline-signature", &signature));
        }
        self.post.json(&body, &headers)
    }
}

/// A notification as JSON with its texts, as `deploy/alert.schema.json` describes it.
pub fn body(notification: &Notification, texts: &Texts) -> String {
    let mut value = serde_json::to_value(notification).unwrap_or(Value::Null);
    // The journal keeps a verdict and its reason as one text.
    let (verdict, reason) = match notification.verdict.split_once('(') {
        Some((verdict, reason)) => (verdict, Some(reason.trim_end_matches(')'))),
        None => (&*notification.verdict, None),
    };
    (value["verdict"], value["reason"]) = (json!(verdict), json!(reason));
    value["summary"] = json!(texts.summary.fill(notification));
    value["description"] = json!(texts.description.fill(notification));
    value.to_string()
}

/// The value of `trueline-signature`.
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
    fn a_signature_is_the_one_of_openssl() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac key
        let wanted = "sha256=a438e398bfafc57e4396bb7fc2304422f0f768e965d073ca313cb52e22e6ad03";
        assert_eq!(signature("key", "1700000000", r#"{"a":1}"#), wanted);
    }
}
