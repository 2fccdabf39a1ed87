//! Values from outside the file, and the effective configuration, which reads back and shows no
//! secret.

use crate::{MINIMAL, parse};
use std::fs;
use std::path::{Path, PathBuf};
use trueline::config::Config;
use trueline::config::value::Outside;

/// Reads a text as the file of a directory.
fn parse_in(directory: &Path, text: &str) -> Config {
    let outside = Outside {
        variable: &|_| None,
        directory: directory.to_path_buf(),
    };
    let config = Config::parse(text, "t.toml", &outside);
    config.unwrap_or_else(|problems| panic!("{text}\n{problems:#?}"))
}

#[test]
fn the_effective_configuration_reads_back_to_the_same_plan_and_shows_no_secret() {
    let text = "version = 1\n[kafka]\nbrokers = \"b:1\"\noptions = { \"ssl.key.password\" = \"hunter2\", \
                \"client.id\" = \"a$${b}\" }\n[kafka.sasl]\nmechanism = \"PLAIN\"\nusername = \"u\"\n\
                password = \"hunter2\"\n[[source]]\ntopics = \"t\"\n[source.fields]\nscore = \"s\"\n\
                [[model]]\nname = \"m\"\nwindows = [{ width = \"10m\", slide = \"2m\" }, { last = 900 }]\n";
    let parse = |text: &str| parse_in(Path::new("/etc/trueline"), text);
    let config = parse(text);
    let effective = config.effective();
    assert!(!effective.contains("hunter2"), "{effective}");
    assert!(!format!("{config:?}").contains("hunter2"));
    let again = parse(&effective);
    assert_eq!(again.plan, config.plan);
    assert_eq!(again.effective(), effective);
    assert_eq!(again.sources[0].kafka.options["client.id"], "a${b}");
}

#[test]
fn a_secret_without_quotes_is_refused_and_not_shown() {
    for secret in ["12345678", "0xbc614e", "1234.5678", "1979-05-27"] {
        let text = format!("{MINIMAL}[http]\ntoken = {secret}\n");
        let problems = parse(&text).expect_err(secret);
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let said = said.join("\n");
        assert!(
            said.contains("`token` is a") && said.contains("in quotes"),
            "{said}"
        );
        assert!(
            !said.contains(secret) && !said.contains("12345678"),
            "{said}"
        );
    }
}

#[test]
fn variables_reach_numbers_and_texts_alike() {
    let text = format!(
        "{MINIMAL}[limits]\nstreams_max = \"${{N}}\"\n[http]\nlisten = \"${{L:-[::1]:5}}\"\n"
    );
    let outside = Outside {
        variable: &|name| (name == "N").then(|| "77".to_owned()),
        directory: PathBuf::new(),
    };
    let config = Config::parse(&text, "t.toml", &outside).unwrap();
    assert_eq!(config.plan.caps.streams_max, 77);
    assert_eq!(config.http.listen.to_string(), "[::1]:5");
}

#[test]
fn a_secret_may_come_from_a_file_beside_the_configuration() {
    let folder = tempfile::TempDir::with_prefix("trueline-secret-").unwrap();
    let directory = folder.path();
    fs::write(directory.join("password"), "hunter2\n").unwrap();
    let text = format!(
        "{MINIMAL}[kafka.sasl]\nmechanism = \"PLAIN\"\nusername = \"u\"\npassword_file = \"password\"\n"
    );
    let config = parse_in(directory, &text);
    let security = &config.sources[0].kafka.security;
    assert_eq!(security.password.as_deref(), Some("hunter2"));
    assert_eq!(security.protocol.as_deref(), Some("sasl_plaintext"));
    assert_eq!(config.state.directory, directory.join("trueline-state"));
}

#[test]
fn relative_paths_start_at_the_directory_of_the_file() {
    let text = format!(
        "{MINIMAL}[kafka.tls]\nenabled = false\n[kafka.sasl]\nmechanism = \"OAUTHBEARER\"\ntoken_file = \"token\"\n\
         [registry]\nurl = \"http://r\"\nca_file = \"r.pem\"\n\
         [[sink]]\nname = \"a\"\nkind = \"webhook\"\nurl = \"http://a\"\nca_file = \"/a.pem\"\n\
         [[sink]]\nname = \"b\"\nkind = \"webhook\"\nurl = \"http://b\"\nca_file = \"b.pem\"\n"
    );
    let config = parse_in(Path::new("/etc/trueline"), &text);
    let token = config.sources[0].kafka.security.token_file.clone();
    let mut found = vec![token, config.registry.and_then(|r| r.ca_file)];
    found.extend(config.notify.sinks.into_iter().map(|s| s.ca_file));
    found.push(Some(config.state.directory));
    let expected = [
        "/etc/trueline/token",
        "/etc/trueline/r.pem",
        "/a.pem",
        "/etc/trueline/b.pem",
        "/etc/trueline/trueline-state",
    ];
    assert_eq!(found, expected.map(|path| Some(PathBuf::from(path))));
}
