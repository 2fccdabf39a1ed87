//! `[kafka.tls]` and `[kafka.sasl]`: encryption and credentials.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use crate::kafka::{KafkaOptions, Security};

use super::document::Record;
use super::problem::Problems;
use super::value::Value;

/// Encryption and credentials. Settings without a typed option are added to the map, unless it
/// already has them.
pub fn security(
    kafka: &Record,
    options: &mut BTreeMap<String, String>,
    problems: &mut Problems<'_>,
) -> Security {
    let (tls, sasl) = (kafka.child("kafka.tls"), kafka.child("kafka.sasl"));
    let protocol = options.get("security.protocol");
    let by_option = protocol.is_some_and(|p| p.to_ascii_lowercase().contains("ssl"));
    let enabled = tls.entry("enabled");
    let encrypted = enabled.value == Value::Truth(true) || (!enabled.given && by_option);
    let mechanism = sasl.owned("mechanism");
    let needed: &[&str] = match mechanism.as_deref() {
        None => &[],
        Some("OAUTHBEARER") => &["token_file"],
        Some(_) => &["username", "password"],
    };
    for key in needed {
        if !sasl.entry(key).given {
            let what = format!("[kafka.sasl] has a `mechanism` and no `{key}`");
            problems.add(sasl.at, what, format!("add `{key}`"));
        }
    }
    let useless = ["username", "password", "token_file"];
    if mechanism.is_none()
        && let Some(at) = sasl.given_position(&useless)
    {
        let remedy = "add `mechanism = \"SCRAM-SHA-512\"` or the one your brokers use";
        let what = "credentials without a `mechanism` would not be used";
        problems.add(at, what, remedy);
    }
    let files = ["ca_file", "certificate_file", "key_file", "key_password"];
    if !enabled.given
        && !by_option
        && let Some(at) = tls.given_position(&files)
    {
        let what =
            "[kafka.tls] has files and no `enabled`: they would not be used, and nothing encrypted";
        let remedy = "add `enabled = true`, or `enabled = false` to keep them unused";
        problems.add(at, what, remedy);
    }
    let file = |key: &str| tls.path(key).map(|p| p.display().to_string());
    let extra = [
        ("ssl.certificate.location", file("certificate_file")),
        ("ssl.key.location", file("key_file")),
        ("ssl.key.password", tls.owned("key_password")),
    ];
    for (name, value) in extra {
        if let Some(value) = value.filter(|_| encrypted) {
            options.entry(name.to_owned()).or_insert(value);
        }
    }
    let protocol = match (encrypted, mechanism.is_some()) {
        (false, false) => None,
        (true, false) => Some("ssl"),
        (false, true) => Some("sasl_plaintext"),
        (true, true) => Some("sasl_ssl"),
    };
    Security {
        protocol: protocol.map(str::to_owned),
        mechanism,
        username: sasl.owned("username"),
        password: sasl.owned("password"),
        ca_file: file("ca_file").filter(|_| encrypted),
        token_file: sasl.path("token_file").map(Path::to_path_buf),
    }
}

/// The files of [kafka.tls] in use that cannot be read, each with its key. OpenSSL's own message
/// names neither file nor key.
pub fn unreadable(kafka: &KafkaOptions) -> Vec<String> {
    let option = |name: &str| kafka.options.get(name).map(String::as_str);
    let files = [
        ("ca_file", kafka.security.ca_file.as_deref()),
        ("certificate_file", option("ssl.certificate.location")),
        ("key_file", option("ssl.key.location")),
    ];
    let fault = |(key, path): (&str, Option<&str>)| {
        let (path, error) = (path?, File::open(path?).err()?);
        Some(format!(
            "[kafka.tls] {key}: cannot read {path}: {error}; name a file that this user can read"
        ))
    };
    files.into_iter().filter_map(fault).collect()
}
