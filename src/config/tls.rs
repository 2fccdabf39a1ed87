//! The parts of a configuration that need TLS. A binary built without TLS refuses the file, so that
//! the problem appears at the start and not with the first undelivered alert.

use crate::notify::{Kind, NotifyOptions};

use super::document::Record;
use super::problem::{Problems, TextPosition};
use super::value::Value;

/// Whether this binary supports TLS.
pub const TLS_BUILT: bool = cfg!(any(feature = "tls", feature = "tls-vendored"));

/// The remedy for a binary without TLS.
const REMEDY: &str = "use a binary whose `trueline --version` says `tls: yes`, or build with \
                      `cargo build --release --features tls`";

/// Rejects keys that this binary does not support.
pub fn check(root: &Record, notify: &NotifyOptions, problems: &mut Problems<'_>) {
    if TLS_BUILT {
        return;
    }
    for (at, key) in needs(root, notify) {
        let what = format!("this binary was built without TLS, which {key} needs");
        problems.add(at, what, REMEDY);
    }
}

/// The keys that need TLS, as messages name them, with their positions.
pub fn needs(root: &Record, notify: &NotifyOptions) -> Vec<(TextPosition, String)> {
    let mut needs = kafka(root.child("kafka"));
    let registry = root.child("registry");
    if registry.text("url").is_some_and(is_https) {
        let at = registry.entry("url").at;
        needs.push((at, "https in `url` of [registry]".to_owned()));
    }
    for (record, sink) in root.all("sink").iter().zip(&notify.sinks) {
        if sink.kind != Kind::Kafka && is_https(&sink.address) {
            let url = record.entry("url");
            let at = if url.given { url.at } else { record.at };
            needs.push((at, format!("https to the sink `{}`", sink.name)));
        }
    }
    needs
}

fn is_https(url: &str) -> bool {
    url.starts_with("https://")
}

/// The keys of encryption, and of mechanisms other than PLAIN, which need the same library.
fn kafka(record: &Record) -> Vec<(TextPosition, String)> {
    let mut needs = Vec::new();
    let (tls, sasl) = (record.child("kafka.tls"), record.child("kafka.sasl"));
    let enabled = tls.entry("enabled");
    if enabled.value == Value::Truth(true) {
        needs.push((enabled.at, "`enabled` of [kafka.tls]".to_owned()));
    }
    if let Some(mechanism) = sasl.text("mechanism").filter(|m| *m != "PLAIN") {
        let at = sasl.entry("mechanism").at;
        needs.push((at, format!("the mechanism {mechanism}")));
    }
    if let Value::Map(options) = &record.entry("options").value {
        for (name, given) in options {
            let value = given.value.to_ascii_lowercase();
            let needed = match name.as_str() {
                "security.protocol" => value.ends_with("ssl"),
                "sasl.mechanism" | "sasl.mechanisms" => value != "plain",
                name => name.starts_with("ssl."),
            };
            if needed {
                needs.push((given.at, format!("the kafka option `{name}`")));
            }
        }
    }
    needs
}
