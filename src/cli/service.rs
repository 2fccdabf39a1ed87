//! The address of a running trueline, for the verbs that ask one.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::config::Config;
use crate::http::client::Server;

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
    /// The trueline to ask. An error says what is wrong with its configuration file. Without a file
    /// the token is that of `TRUELINE_TOKEN`.
    pub fn server(&self) -> Result<Server, String> {
        let token = std::env::var("TRUELINE_TOKEN").ok();
        let Some(file) = &self.config else {
            let url = self.url.clone().unwrap_or_else(|| DEFAULT.to_owned());
            return Ok(Server { url, token });
        };
        let config = Config::load(file).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            lines.join("\n")
        })?;
        Ok(Server {
            url: format!("http://{}", reachable(config.http.listen)),
            token: config.http.door.token.or(token),
        })
    }
}

/// Where a server that listens there is reached from its machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    match listen.ip().is_unspecified() {
        true => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), listen.port()),
        false => listen,
    }
}
