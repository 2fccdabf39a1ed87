//! The address of a running trueline, for the verbs that query one.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::exit::{Exit, Failure};
use crate::config::Config;
use crate::http::client::{self, Server};
use crate::judge::DecidedError;

const DEFAULT: &str = "http://127.0.0.1:9464";

/// Options shared by all verbs that ask a running trueline.
#[derive(Debug, Default, clap::Args)]
pub struct Service {
    /// Address of the running trueline; without it and `--config`, http://127.0.0.1:9464
    #[arg(long, env = "TRUELINE_URL", value_name = "URL")]
    url: Option<String>,
    /// The configuration file of a trueline on this machine, for its address and token; takes
    /// precedence over `--url`
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Service {
    /// The trueline to ask. An error names the fault of its address or configuration file. Without
    /// a file the token comes from `TRUELINE_TOKEN`.
    pub fn server(&self) -> Result<Server, Failure> {
        let token = std::env::var("TRUELINE_TOKEN").ok();
        let Some(file) = &self.config else {
            let url = self.url.clone().unwrap_or_else(|| DEFAULT.to_owned());
            client::authority(&url).map_err(|why| (Exit::Usage, why))?;
            return Ok(Server { url, token });
        };
        let config = Config::load(file).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            (Exit::Config, lines.join("\n"))
        })?;
        Ok(Server {
            url: format!("http://{}", reachable(config.http.listen)),
            token: config.http.access.token.or(token),
        })
    }
}

/// The exit code and message for an answer whose status is not 200.
pub fn refusal(server: &Server, status: u16, body: &str) -> Failure {
    let answer: Value = serde_json::from_str(body).unwrap_or_default();
    let text = |key: &str| answer[key].as_str().unwrap_or("-");
    if answer["error"].is_null() {
        let url = &server.url;
        let why = format!("{url} is not a trueline: it responds with status {status}");
        return (Exit::Unavailable, why);
    }
    let (error, hint) = (text("error"), text("hint"));
    match status {
        401 => {
            let remedy = "set TRUELINE_TOKEN, or name its configuration file with --config";
            (Exit::NotPermitted, format!("{error}; {remedy}"))
        }
        403 => (Exit::NotPermitted, format!("{error}; {hint}")),
        404 => (Exit::Verdict, format!("{error}; {hint}")),
        400 | 422 => (Exit::Usage, format!("{error}; {hint}")),
        _ => (Exit::Unavailable, format!("{error}; {hint}")),
    }
}

/// The answer, or an error if the process does not judge, which says whom to ask.
pub fn judged(answer: Value) -> Result<Value, Failure> {
    match answer["judges"] == false {
        true => {
            let hint = answer["hint"].as_str().unwrap_or("-");
            Err((Exit::Unavailable, hint.to_owned()))
        }
        false => Ok(answer),
    }
}

/// The error value of a window in an answer.
pub fn error(window: &Value) -> Option<DecidedError> {
    DecidedError::deserialize(&window["error"]).ok()
}

/// The address at which a local client reaches a server that listens on `listen`.
fn reachable(listen: SocketAddr) -> SocketAddr {
    match listen.ip().is_unspecified() {
        true => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), listen.port()),
        false => listen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> Failure {
        let server = Server {
            url: "http://x:1".to_owned(),
            token: None,
        };
        refusal(&server, status, body)
    }

    #[test]
    fn each_refusal_has_its_code_and_says_what_to_do_on_a_command_line() {
        let body = r#"{"error": "the token is missing", "hint": "send `authorization`"}"#;
        let (exit, why) = refused(401, body);
        assert_eq!(exit, Exit::NotPermitted);
        assert!(
            why.contains("TRUELINE_TOKEN") && !why.contains("authorization"),
            "{why}"
        );
        for (status, exit) in [
            (400, Exit::Usage),
            (404, Exit::Verdict),
            (422, Exit::Usage),
            (503, Exit::Unavailable),
        ] {
            assert_eq!(refused(status, body).0, exit, "{status}");
        }
        assert!(refused(404, "<html>").1.contains("is not a trueline"));
    }

    #[test]
    fn an_answer_of_a_process_that_does_not_judge_is_a_failure() {
        let of = |text: &str| judged(serde_json::from_str(text).expect("JSON"));
        let none = of(r#"{"judges": false, "hint": "ask the judge", "alerts": []}"#);
        assert_eq!(none, Err((Exit::Unavailable, "ask the judge".to_owned())));
        // Earlier versions do not say.
        for text in [r#"{"judges": true}"#, r#"{"alerts": []}"#] {
            assert!(of(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn an_address_without_a_port_is_a_fault_of_the_command_line() {
        let service = Service {
            url: Some("foo".to_owned()),
            config: None,
        };
        assert_eq!(
            service.server().map(|_| ()).map_err(|e| e.0),
            Err(Exit::Usage)
        );
    }
}
