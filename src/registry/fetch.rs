//! Fetches one schema with its references over HTTP.

use crate::http_client;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Longest response to read; schemas are kilobytes.
pub const BODY_MAX: u64 = 4 << 20;
/// Most references of a schema, direct and indirect.
pub const REFERENCES_MAX: usize = 256;

/// Address and credentials of the registry.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryOptions {
    /// `http://host:port`, with an optional path.
    pub url: String,
    /// User of basic authentication.
    pub user: Option<String>,
    /// Password of basic authentication.
    pub password: Option<String>,
    /// PEM file of the certificate authority; `None` means those of the system.
    pub ca_file: Option<PathBuf>,
    /// How long one request may take.
    pub timeout: Duration,
}

impl fmt::Debug for RegistryOptions {
    /// Formats the options without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryOptions")
            .field("url", &self.url)
            .field("user", &self.user)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Format of the data that a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "UPPERCASE")]
pub enum SchemaKind {
    /// Avro, the registry's default.
    Avro,
    /// JSON Schema.
    Json,
    /// A `.proto` file.
    Protobuf,
}

/// A schema of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Its format.
    pub kind: SchemaKind,
    /// Its text.
    pub text: String,
    /// Names and texts of its references, each after its own references.
    pub references: Vec<(String, String)>,
}

/// Why there is no schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub enum FetchError {
    /// The registry says that it has no schema with this id.
    Absent(String),
    /// The request for this id was refused: 4xx, except the statuses that concern all requests.
    Refused(String),
    /// 403, 5xx, or an answer that is not a schema. The cause may be the credentials, the registry
    /// as a whole, or this id alone.
    Doubtful(String),
    /// No answer, or one that asks for patience (408, 429). The cause may be the registry as a
    /// whole, or this id alone.
    Unanswered(String),
    /// Any other error; a retry may succeed.
    Failed(String),
}

impl FetchError {
    /// The error for a schema whose reference `name` has this error.
    fn of_reference(self, name: &str) -> FetchError {
        let of = |why: String| format!("reference {name}: {why}");
        match self {
            FetchError::Absent(why) => FetchError::Absent(of(why)),
            FetchError::Refused(why) => FetchError::Refused(of(why)),
            FetchError::Doubtful(why) => FetchError::Doubtful(of(why)),
            FetchError::Unanswered(why) => FetchError::Unanswered(of(why)),
            FetchError::Failed(why) => FetchError::Failed(of(why)),
        }
    }
}

/// Checks that the server responds like a schema registry.
pub fn probe(options: &RegistryOptions) -> Result<(), FetchError> {
    Fetch::new(options, Box::new(Http::new(options)?)).probe()
}

/// A connection to a registry.
pub trait Connection {
    /// Status and body of the answer to a GET, or why there is none.
    fn get(&self, url: &str) -> Result<(u16, String), String>;
}

/// Makes requests to one registry.
pub(super) struct Fetch {
    connection: Box<dyn Connection>,
    url: String,
}

/// A connection over HTTP.
pub(super) struct Http {
    agent: ureq::Agent,
    authorization: Option<String>,
}

type Fetched<T> = Result<T, FetchError>;

impl Http {
    pub fn new(options: &RegistryOptions) -> Fetched<Http> {
        let config = http_client::config()
            .timeout_global(Some(options.timeout))
            .max_redirects(3);
        let agent = http_client::agent(config, options.ca_file.as_deref());
        let user = options.user.as_deref();
        Ok(Http {
            agent: agent.map_err(FetchError::Failed)?,
            authorization: user.map(|user| {
                let password = options.password.as_deref().unwrap_or_default();
                format!(
                    "Basic {}",
                    BASE64_STANDARD.encode(format!("{user}:{password}"))
                )
            }),
        })
    }
}

impl Connection for Http {
    fn get(&self, url: &str) -> Result<(u16, String), String> {
        let mut request = self.agent.get(url).header("Accept", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let mut response = request.call().map_err(|e| e.to_string())?;
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(BODY_MAX);
        let body = body.read_to_string().map_err(|e| e.to_string())?;
        Ok((status, body))
    }
}

impl Fetch {
    pub fn new(options: &RegistryOptions, connection: Box<dyn Connection>) -> Fetch {
        Fetch {
            connection,
            url: options.url.trim_end_matches('/').to_owned(),
        }
    }

    pub fn probe(&self) -> Fetched<()> {
        match self.get("/schemas/types") {
            Ok(_) | Err(FetchError::Absent(_)) => Ok(()),
            // Old registries lack this path.
            Err(FetchError::Refused(_)) => self.get("/config").map(drop),
            Err(error) => Err(error),
        }
    }

    /// Like [`Fetch::probe`], and also checks that the registry can answer from its store, without
    /// which it still lists the kinds of schemas. A 4xx counts as an answer: a user may lack the
    /// right to see this.
    pub fn probe_all(&self) -> Fetched<()> {
        self.probe()?;
        self.probe_store()
    }

    fn probe_store(&self) -> Fetched<()> {
        let url = format!("{}/config", self.url);
        match self.connection.get(&url) {
            Ok((status, _)) if status < 500 => Ok(()),
            Ok((status, _)) => Err(FetchError::Failed(format!("{url}: status {status}"))),
            Err(why) => Err(FetchError::Failed(format!("{url}: {why}"))),
        }
    }

    /// Fetches the schema of an id.
    pub fn schema(&self, id: u32) -> Fetched<Schema> {
        let response = self.get(&format!("/schemas/ids/{id}"))?;
        let kind = response.get("schemaType").and_then(Value::as_str);
        let kind = kind.unwrap_or("AVRO");
        let unknown = |_| format!("schema {id} has the unknown type {kind:?}");
        let kind: SchemaKind = kind
            .parse()
            .map_err(unknown)
            .map_err(FetchError::Doubtful)?;
        let mut references = Vec::new();
        self.references(&response, &mut references)?;
        Ok(Schema {
            kind,
            text: text_of(&response)?,
            references,
        })
    }

    /// Fetches the references of a response and adds each after its own references.
    fn references(&self, response: &Value, all: &mut Vec<(String, String)>) -> Fetched<()> {
        let list = response.get("references").and_then(Value::as_array);
        for reference in list.into_iter().flatten() {
            let part = |key: &str| reference.get(key).and_then(Value::as_str);
            let version = reference.get("version").and_then(Value::as_i64);
            let (Some(name), Some(subject), Some(version)) =
                (part("name"), part("subject"), version)
            else {
                let why = format!("a reference without name, subject or version: {reference}");
                return Err(FetchError::Doubtful(why));
            };
            if all.iter().any(|(known, _)| known == name) {
                continue;
            }
            if all.len() >= REFERENCES_MAX {
                let why = format!("more than {REFERENCES_MAX} references");
                return Err(FetchError::Doubtful(why));
            }
            // The name is added first, so that a cycle ends; then it moves behind its own
            // references.
            all.push((name.to_owned(), String::new()));
            let path = format!("/subjects/{}/versions/{version}", escaped(subject));
            let response = self.get(&path).map_err(|error| error.of_reference(name))?;
            self.references(&response, all)?;
            all.retain(|(known, _)| known != name);
            all.push((name.to_owned(), text_of(&response)?));
        }
        Ok(())
    }

    fn get(&self, path: &str) -> Fetched<Value> {
        let url = format!("{}{path}", self.url);
        let answer = self.connection.get(&url);
        let unanswered = |why| FetchError::Unanswered(format!("{url}: {why}"));
        let (status, body) = answer.map_err(unanswered)?;
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
            (200, None) => Err(FetchError::Doubtful(format!(
                "{url}: the response is not JSON; is this a schema registry?"
            ))),
            (401 | 403, _) => {
                let why = format!(
                    "{url}: {status}, credentials refused; see `user` and `password` in [registry]"
                );
                Err(match status {
                    401 => FetchError::Failed(why),
                    _ => FetchError::Doubtful(why),
                })
            }
            (status, _) => {
                let why = format!("{url}: {status} {}", shorten(&body));
                Err(match status {
                    408 | 429 => FetchError::Unanswered(why),
                    400..=499 => FetchError::Refused(why),
                    500..=599 => FetchError::Doubtful(why),
                    _ => FetchError::Failed(why),
                })
            }
        }
    }
}

/// The registry's error code "schema not found".
const NO_SCHEMA: i64 = 40_403;

fn code(response: &Value) -> Option<i64> {
    response.get("error_code").and_then(Value::as_i64)
}

fn text_of(response: &Value) -> Fetched<String> {
    let text = response.get("schema").and_then(Value::as_str);
    let none = "a response without `schema`; is this a schema registry?";
    text.map(str::to_owned)
        .ok_or_else(|| FetchError::Doubtful(none.to_owned()))
}

/// The part of a response to show in messages.
fn shorten(body: &str) -> String {
    body.chars().take(200).collect()
}

/// The unreserved characters of RFC 3986, which are not escaped in a path segment.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Escapes a subject for use as a path segment.
fn escaped(subject: &str) -> String {
    utf8_percent_encode(subject, SEGMENT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_one_segment_of_a_path() {
        assert_eq!(escaped("a/b é-._~:"), "a%2Fb%20%C3%A9-._~%3A");
    }
}
