//! One POST of one body, and what the answer means for a retry.

use super::options::SinkOptions;
use super::receiver::Failure;
use std::time::Duration;

/// What of an answer's body is read and shown.
const BODY_MAX: u64 = 64 << 10;

/// What posts, for one sink.
pub struct Post {
    agent: ureq::Agent,
    url: String,
    authorization: Option<String>,
}

impl Post {
    /// One for this address.
    pub fn new(options: &SinkOptions, url: String) -> Result<Post, String> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(options.timeout.max(Duration::from_millis(1))))
            .http_status_as_error(false)
            // A redirected POST would become a GET.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("trueline/", env!("CARGO_PKG_VERSION")));
        Ok(Post {
            agent: with_tls(config, options)?.build().into(),
            url,
            authorization: options.authorization.clone(),
        })
    }

    /// Posts JSON; answers what came back in a line.
    pub fn json(&self, body: &str, headers: &[(&str, &str)]) -> Result<String, Failure> {
        let mut request = self.agent.post(&self.url);
        request = request.header("content-type", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        // The address is not told: that of a Slack hook is a secret.
        let later = |e: ureq::Error| Failure::Later(e.to_string());
        let mut answer = request.send(body).map_err(later)?;
        let status = answer.status().as_u16();
        let said = answer.body_mut().with_config().limit(BODY_MAX);
        let said = said.read_to_string().unwrap_or_default();
        let said: String = said.chars().take(200).collect();
        let line = format!("{status} {}", said.trim().replace('\n', " "));
        outcome(status, line)
    }
}

/// What a status means. What is wrong with this notice (400, 413, 415, 422) stays wrong and must not hold up those behind it; all else
/// may be mended at the receiver, credentials and addresses too, and is tried again.
fn outcome(status: u16, line: String) -> Result<String, Failure> {
    match status {
        200..=299 => Ok(line),
        400 | 413 | 415 | 422 => Err(Failure::Never(line)),
        _ => Err(Failure::Later(line)),
    }
}

type Building = ureq::config::ConfigBuilder<ureq::typestate::AgentScope>;

#[cfg(any(feature = "tls", feature = "tls-vendored"))]
fn with_tls(config: Building, options: &SinkOptions) -> Result<Building, String> {
    use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
    let roots = match &options.ca_file {
        None => RootCerts::PlatformVerifier,
        Some(path) => {
            let said = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
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
fn with_tls(config: Building, _: &SinkOptions) -> Result<Building, String> {
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_wrong_with_the_notice_is_given_up() {
        let of = |status| outcome(status, String::new());
        assert!(of(200).is_ok() && of(202).is_ok());
        for status in [400, 413, 422] {
            assert!(matches!(of(status), Err(Failure::Never(_))), "{status}");
        }
        for status in [301, 401, 403, 404, 408, 429, 500, 503] {
            assert!(matches!(of(status), Err(Failure::Later(_))), "{status}");
        }
    }
}
