//! One HTTP POST, and whether its response permits a retry.

use super::options::SinkOptions;
use super::receiver::Failure;
use crate::http_client;
use std::time::Duration;

/// Most bytes of a response body that are read.
const BODY_MAX: u64 = 64 << 10;

/// An HTTP client for the address of one sink.
pub struct Post {
    agent: ureq::Agent,
    url: String,
    authorization: Option<String>,
}

impl Post {
    /// A client for this address.
    pub fn new(options: &SinkOptions, url: String) -> Result<Post, String> {
        let config = http_client::config()
            .timeout_global(Some(options.timeout.max(Duration::from_millis(1))))
            // A redirected POST would become a GET.
            .max_redirects(0)
            .max_redirects_will_error(false);
        Ok(Post {
            agent: http_client::agent(config, options.ca_file.as_deref())?,
            url,
            authorization: options.authorization.clone(),
        })
    }

    /// Posts JSON. Returns the response in one line.
    pub fn json(&self, body: &str, headers: &[(&str, &str)]) -> Result<String, Failure> {
        self.json_at("", body, headers)
    }

    /// Posts JSON to a path below the address.
    pub fn json_at(
        &self,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Result<String, Failure> {
        let mut request = self.agent.post(format!("{}{path}", self.url));
        request = request.header("content-type", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        // The error omits the address: that of a Slack hook is a secret.
        let temporary = |e: ureq::Error| Failure::Temporary(e.to_string());
        let mut response = request.send(body).map_err(temporary)?;
        let status = response.status().as_u16();
        let pause = response.headers().get("retry-after");
        let pause = pause.and_then(|v| v.to_str().ok()?.trim().parse().ok());
        let pause = pause.map(Duration::from_secs);
        let text = response.body_mut().with_config().limit(BODY_MAX);
        let text = text.read_to_string().unwrap_or_default();
        let text: String = text.chars().take(200).collect();
        let line = format!("{status} {}", text.trim().replace('\n', " "));
        outcome(status, line, pause)
    }
}

/// The meaning of a status. An invalid notification (400, 413, 415, 422) stays invalid and must not
/// delay the ones behind it. Anything else, including wrong credentials and addresses, can be
/// corrected at the receiver and is retried; after 429 and 503, with the pause that `retry-after`
/// asks for.
fn outcome(status: u16, line: String, pause: Option<Duration>) -> Result<String, Failure> {
    Err(match (status, pause) {
        (200..=299, _) => return Ok(line),
        (400 | 413 | 415 | 422, _) => Failure::Permanent(line),
        (404, _) => Failure::NotFound(line),
        (429 | 503, Some(pause)) => Failure::Busy(line, pause),
        _ => Failure::Temporary(line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_invalid_notification_is_given_up() {
        let pause = Duration::from_secs(60);
        for asked in [None, Some(pause)] {
            let of = |status| outcome(status, String::new(), asked);
            assert!(of(200).is_ok() && of(202).is_ok());
            for status in [400, 413, 422] {
                assert!(matches!(of(status), Err(Failure::Permanent(_))), "{status}");
            }
            for status in [301, 401, 403, 408, 500] {
                assert!(matches!(of(status), Err(Failure::Temporary(_))), "{status}");
            }
            assert!(matches!(of(404), Err(Failure::NotFound(_))));
            let busy = asked.map_or(Failure::Temporary(String::new()), |pause| {
                Failure::Busy(String::new(), pause)
            });
            for status in [429, 503] {
                assert_eq!(of(status), Err(busy.clone()), "{status}");
            }
        }
    }
}
