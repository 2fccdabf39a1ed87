//! One schema over HTTP, with all that it refers to.

use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Longest answer that is read: schemas are kilobytes.
pub const BODY_MAX: u64 = 4 << 20;
/// Most schemas that one refers to, directly or through others.
pub const REFERENCES_MAX: usize = 256;

/// Where the registry is, and as whom to ask it.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryOptions {
    /// `http://host:port`, with a path where it has one.
    pub url: String,
    /// User of basic authentication.
    pub user: Option<String>,
    /// Password of basic authentication.
    pub password: Option<String>,
    /// PEM file of the authority that signed its certificate; the system's when `None`.
    pub ca_file: Option<PathBuf>,
    /// How long one request may take.
    pub timeout: Duration,
}

impl fmt::Debug for RegistryOptions {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryOptions")
            .field("url", &self.url)
            .field("user", &self.user)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaKind {
    /// Avro, the registry's default.
    Avro,
    /// JSON Schema.
    Json,
    /// A `.proto` file.
    Protobuf,
}

/// A schema as the registry has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// What it describes.
    pub kind: SchemaKind,
    /// The schema itself.
    pub text: String,
    /// Names and texts of what it refers to, those first that others need.
    pub references: Vec<(String, String)>,
}

/// Why there is no schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchError {
    /// The registry says that it has none under this id.
    Absent(String),
    /// Anything else; it may be otherwise at the next try.
    Failed(String),
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (FetchError::Absent(why) | FetchError::Failed(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for FetchError {}

/// Whether the registry answers as one.
pub fn probe(options: &RegistryOptions) -> Result<(), FetchError> {
    let fetch = Fetch::new(options)?;
    match fetch.get("/schemas/types") {
        // An old one knows no types.
        Ok(_) | Err(FetchError::Absent(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What makes requests.
pub(super) struct Fetch {
    agent: ureq::Agent,
    url: String,
    authorization: Option<String>,
}

type Fetched<T> = Result<T, FetchError>;

impl Fetch {
    pub fn new(options: &RegistryOptions) -> Fetched<Fetch> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(options.timeout))
            .http_status_as_error(false)
            .max_redirects(3)
            .user_agent(concat!("trueline/", env!("CARGO_PKG_VERSION")));
        let config = with_tls(config, options)?;
        let user = options.user.as_deref();
        Ok(Fetch {
            agent: config.build().into(),
            url: options.url.trim_end_matches('/').to_owned(),
            authorization: user.map(|user| {
                let password = options.password.as_deref().unwrap_or_default();
                format!("Basic {}", base64(format!("{user}:{password}").as_bytes()))
            }),
        })
    }

    /// The schema of an id.
    pub fn schema(&self, id: u32) -> Fetched<Schema> {
        let answer = self.get(&format!("/schemas/ids/{id}"))?;
        let kind = match answer.get("schemaType").and_then(Value::as_str) {
            None | Some("AVRO") => SchemaKind::Avro,
            Some("JSON") => SchemaKind::Json,
            Some("PROTOBUF") => SchemaKind::Protobuf,
            Some(other) => return Err(failed(format!("schema {id} is of the type {other:?}"))),
        };
        let mut references = Vec::new();
        self.references(&answer, &mut references)?;
        Ok(Schema {
            kind,
            text: text_of(&answer)?,
            references,
        })
    }

    /// What `answer` refers to, after what that refers to.
    fn references(&self, answer: &Value, all: &mut Vec<(String, String)>) -> Fetched<()> {
        let list = answer.get("references").and_then(Value::as_array);
        for reference in list.into_iter().flatten() {
            let part = |key: &str| reference.get(key).and_then(Value::as_str);
            let version = reference.get("version").and_then(Value::as_i64);
            let (Some(name), Some(subject), Some(version)) =
                (part("name"), part("subject"), version)
            else {
                return Err(failed(format!(
                    "a reference without name, subject or version: {reference}"
                )));
            };
            if all.iter().any(|(known, _)| known == name) {
                continue;
            }
            if all.len() >= REFERENCES_MAX {
                return Err(failed(format!("more than {REFERENCES_MAX} references")));
            }
            // Its place is taken first, so that a circle ends; it goes behind what it needs.
            all.push((name.to_owned(), String::new()));
            let path = format!("/subjects/{}/versions/{version}", escaped(subject));
            let answer = self
                .get(&path)
                .map_err(|e| failed(format!("reference {name}: {e}")))?;
            self.references(&answer, all)?;
            all.retain(|(known, _)| known != name);
            all.push((name.to_owned(), text_of(&answer)?));
        }
        Ok(())
    }

    fn get(&self, path: &str) -> Fetched<Value> {
        let url = format!("{}{path}", self.url);
        let mut request = self.agent.get(&url).header("Accept", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let said = |e: ureq::Error| failed(format!("{url}: {e}"));
        let mut answer = request.call().map_err(said)?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(BODY_MAX);
        let body = body.read_to_string().map_err(said)?;
        let json: Option<Value> = serde_json::from_str(&body).ok();
        match (status, json) {
            (200, Some(json)) => Ok(json),
            (404, Some(json)) if code(&json) == Some(NO_SCHEMA) => {
                Err(FetchError::Absent(format!(
                    "the schema registry has none: {}",
                    json.get("message")
                        .and_then(Value::as_str)
                        .unwrap_or("not found")
                )))
            }
            (401 | 403, _) => Err(failed(format!(
                "{url}: {status}, credentials refused; see `user` and `password` in [registry]"
            ))),
            (200, None) => Err(failed(format!(
                "{url}: the answer is not JSON; is this a schema registry?"
            ))),
            (status, _) => Err(failed(format!("{url}: {status} {}", shorten(&body)))),
        }
    }
}

/// "Schema not found", of the registry's own codes.
const NO_SCHEMA: i64 = 40_403;

fn code(answer: &Value) -> Option<i64> {
    answer.get("error_code").and_then(Value::as_i64)
}

fn failed(why: String) -> FetchError {
    FetchError::Failed(why)
}

fn text_of(answer: &Value) -> Fetched<String> {
    let text = answer.get("schema").and_then(Value::as_str);
    text.map(str::to_owned)
        .ok_or_else(|| failed("an answer without `schema`; is this a schema registry?".to_owned()))
}

/// What of an answer is shown.
fn shorten(body: &str) -> String {
    body.chars().take(200).collect()
}

/// A subject as a part of a path.
fn escaped(subject: &str) -> String {
    let mut out = String::new();
    for b in subject.bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(b.into())
            }
            _ => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

/// RFC 4648, with padding; of credentials, so never much.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let digit = (word >> (18 - 6 * i)) & 63;
            out.push(if i > chunk.len() {
                '='
            } else {
                DIGITS[digit as usize].into()
            });
        }
    }
    out
}

type Building = ureq::config::ConfigBuilder<ureq::typestate::AgentScope>;

#[cfg(any(feature = "tls", feature = "tls-vendored"))]
fn with_tls(config: Building, options: &RegistryOptions) -> Fetched<Building> {
    use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
    let roots = match &options.ca_file {
        None => RootCerts::PlatformVerifier,
        Some(path) => {
            let said = |e: &dyn fmt::Display| failed(format!("{}: {e}", path.display()));
            let pem = std::fs::read(path).map_err(|e| said(&e))?;
            let authority = Certificate::from_pem(&pem).map_err(|e| said(&e))?;
            RootCerts::new_with_certs(&[authority])
        }
    };
    let tls = TlsConfig::builder()
        .provider(TlsProvider::NativeTls)
        .root_certs(roots)
        .build();
    Ok(config.tls_config(tls))
}

#[cfg(not(any(feature = "tls", feature = "tls-vendored")))]
fn with_tls(config: Building, _: &RegistryOptions) -> Fetched<Building> {
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_written_as_rfc_4648_shows() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("Aladdin:open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }

    #[test]
    fn a_subject_is_one_part_of_a_path() {
        assert_eq!(escaped("a/b é-value"), "a%2Fb%20%C3%A9-value");
    }
}
