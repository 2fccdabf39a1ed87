//! Tokens for OAUTHBEARER, from a file.
//!
//! The environment keeps a bearer token in a file and renews it, for example a projected
//! service-account token of Kubernetes, a sidecar or a timer. librdkafka requests a token at the
//! start and again before the current one expires; each request reads the file. librdkafka's own
//! OpenID Connect client needs libcurl, which this build omits.

use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::prelude::Engine as _;
use rdkafka::client::OAuthToken;
use serde_json::Value;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Assumed lifetime of a token without an expiry. It is read again after four fifths of it.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);

/// RFC 4648, section 5, without padding; bits that are left over do not matter.
const BASE64_URL: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

#[derive(Debug, Clone, Default)]
pub(super) struct TokenFile(pub Option<PathBuf>);

impl TokenFile {
    /// The current token.
    pub fn token(&self) -> Result<OAuthToken, Box<dyn Error>> {
        let Some(path) = &self.0 else {
            return Err("no token file; set `token_file` in [kafka.sasl]".into());
        };
        read(path).map_err(|e| format!("token file {}: {e}", path.display()).into())
    }
}

fn read(path: &Path) -> Result<OAuthToken, Box<dyn Error>> {
    let token = std::fs::read_to_string(path)?.trim().to_owned();
    if token.is_empty() {
        return Err("it is empty".into());
    }
    let claims = claims(&token).unwrap_or_default();
    let text = |key: &str| claims.get(key).and_then(Value::as_str);
    let until = claims.get("exp").and_then(Value::as_f64);
    let assumed = SystemTime::now() + DEFAULT_LIFETIME;
    let assumed = assumed.duration_since(UNIX_EPOCH)?.as_secs_f64();
    Ok(OAuthToken {
        principal_name: text("sub").unwrap_or("trueline").to_owned(),
        // Whole milliseconds of this century are exact in a double.
        lifetime_ms: (until.unwrap_or(assumed) * 1000.0) as i64,
        token,
    })
}

/// The claims of a JSON Web Token; `None` for an opaque token. The broker verifies it, not this
/// function.
fn claims(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1)?.trim_end_matches('=');
    serde_json::from_slice(&BASE64_URL.decode(payload).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_yields_its_subject_and_lifetime() {
        // {"alg":"none"} and {"sub":"w?","exp":1900000000.5}
        let jwt = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ3PyIsImV4cCI6MTkwMDAwMDAwMC41fQ.";
        let file = tempfile::NamedTempFile::with_prefix("trueline-token-").unwrap();
        let path = file.path().to_path_buf();
        std::fs::write(&path, format!("{jwt}\n")).unwrap();
        let read = || TokenFile(Some(path.clone())).token();
        let token = read().unwrap();
        assert_eq!(
            (token.principal_name.as_str(), token.lifetime_ms),
            ("w?", 1_900_000_000_500)
        );
        assert_eq!(token.token, jwt);
        std::fs::write(&path, "opaque").unwrap();
        assert!(read().unwrap().lifetime_ms > 1_700_000_000_000);
        std::fs::write(&path, "").unwrap();
        let error = read().err().unwrap().to_string();
        assert!(
            error.contains("it is empty") && error.contains("trueline-token"),
            "{error}"
        );
        file.close().unwrap();
        assert!(read().is_err());
    }
}
