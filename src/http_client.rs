//! The HTTP client with which trueline asks other servers: a schema registry, receivers of
//! notifications.

use std::path::Path;

/// A client that is being configured.
type Building = ureq::config::ConfigBuilder<ureq::typestate::AgentScope>;

/// The start of a configuration: who asks, and every status is an answer.
pub fn config() -> Building {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .user_agent(concat!("trueline/", env!("CARGO_PKG_VERSION")))
}

/// A client that trusts the authorities of a file, or those of the system. An error names the file.
pub fn agent(config: Building, ca_file: Option<&Path>) -> Result<ureq::Agent, String> {
    Ok(with_tls(config, ca_file)?.build().into())
}

#[cfg(any(feature = "tls", feature = "tls-vendored"))]
fn with_tls(config: Building, ca_file: Option<&Path>) -> Result<Building, String> {
    use ureq::tls::{PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
    let roots = match ca_file {
        None => RootCerts::PlatformVerifier,
        Some(path) => {
            let said = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
            let pem = std::fs::read(path).map_err(|e| said(&e))?;
            // A file may have several, such as an old authority and the one that replaces it.
            let mut authorities = Vec::new();
            for item in parse_pem(&pem) {
                if let PemItem::Certificate(authority) = item.map_err(|e| said(&e))? {
                    authorities.push(authority);
                }
            }
            if authorities.is_empty() {
                return Err(said(&"no certificate is in this file"));
            }
            RootCerts::from(authorities)
        }
    };
    let tls = TlsConfig::builder()
        .provider(TlsProvider::NativeTls)
        .root_certs(roots)
        .build();
    Ok(config.tls_config(tls))
}

#[cfg(not(any(feature = "tls", feature = "tls-vendored")))]
fn with_tls(config: Building, _: Option<&Path>) -> Result<Building, String> {
    Ok(config)
}

#[cfg(all(test, any(feature = "tls", feature = "tls-vendored")))]
mod tests {
    use super::*;

    #[test]
    fn every_authority_of_a_file_is_known_and_one_without_any_is_named() {
        let authorities = |pem: &str| {
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), pem).expect("written");
            let agent = agent(config(), Some(file.path()))?;
            match agent.config().tls_config().root_certs() {
                ureq::tls::RootCerts::Specific(all) => Ok::<_, String>(all.len()),
                _ => Ok(0),
            }
        };
        let one = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(authorities(&format!("# old\n{one}# new\n{one}")), Ok(2));
        let none = authorities("no certificate").unwrap_err();
        assert!(none.contains("no certificate is in this file"), "{none}");
    }
}
