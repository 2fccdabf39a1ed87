//! What needs TLS is named with its line, and refused by a binary without it.

use crate::{parse, sample};
use trueline::config::TLS_BUILT;

/// A file in which whatever can need TLS does; each such line ends with `# TLS`.
const ENCRYPTED: &str = r#"version = 1
[kafka]
brokers = "localhost:9092"
[kafka.options]
"security.protocol" = "sasl_ssl" # TLS
"sasl.mechanisms" = "SCRAM-SHA-256" # TLS
"ssl.cipher.suites" = "DEFAULT" # TLS
"socket.keepalive.enable" = "true"
[kafka.tls]
enabled = true # TLS
[kafka.sasl]
mechanism = "SCRAM-SHA-512" # TLS
username = "u"
password = "p"
[registry]
url = "https://registry.internal" # TLS
[[source]]
topics = ["t"]
[source.fields]
score = "score"
[[sink]]
name = "slack"
kind = "slack"
url = "https://hooks.example/x" # TLS
[[sink]] # TLS
name = "pagerduty"
kind = "pagerduty"
secret = "k"
[[sink]] # TLS
name = "opsgenie"
kind = "opsgenie"
secret = "k"
[[sink]]
name = "inside"
kind = "webhook"
url = "http://hook.internal"
"#;

#[test]
fn whatever_needs_tls_is_named_with_its_line_and_refused_by_a_binary_without_it() {
    let marked = |(line, text): (usize, &str)| text.ends_with("# TLS").then_some(line + 1);
    let expected: Vec<usize> = ENCRYPTED.lines().enumerate().filter_map(marked).collect();
    assert_eq!(expected.len(), 9);
    let mut found: Vec<usize> = match parse(ENCRYPTED) {
        Ok(config) => {
            let with_tls = TLS_BUILT;
            assert!(with_tls);
            config.needs_tls().iter().map(|(at, _)| at.line).collect()
        }
        Err(problems) => {
            let with_tls = TLS_BUILT;
            assert!(!with_tls, "{problems:?}");
            for problem in &problems {
                assert!(problem.what.contains("built without TLS"), "{problem}");
                assert!(problem.remedy.contains("--features tls"), "{problem}");
            }
            problems.iter().map(|problem| problem.at.line).collect()
        }
    };
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn files_of_tls_are_used_where_an_option_encrypts_and_not_where_they_are_switched_off() {
    let ca_file = |protocol: &str, enabled: &str| {
        let text = format!(
            "version = 1\n[kafka]\nbrokers = \"b:1\"\n[kafka.options]\n\"security.protocol\" = \"{protocol}\"\n\
             [kafka.tls]\n{enabled}ca_file = \"/ca.pem\"\ncertificate_file = \"/c.pem\"\n\
             [[source]]\ntopics = \"t\"\n[source.fields]\nscore = \"s\"\n"
        );
        let config = parse(&text).unwrap_or_else(|problems| panic!("{problems:?}"));
        let kafka = &config.sources[0].kafka;
        let certificate = kafka.options.get("ssl.certificate.location");
        assert_eq!(certificate.is_some(), kafka.security.ca_file.is_some());
        kafka.security.ca_file.clone()
    };
    if TLS_BUILT {
        for protocol in ["ssl", "SASL_SSL"] {
            assert_eq!(ca_file(protocol, "").as_deref(), Some("/ca.pem"));
            assert_eq!(ca_file(protocol, "enabled = false\n"), None);
        }
    }
}

#[test]
fn what_needs_no_tls_is_accepted_by_every_binary() {
    for name in [
        "minimal.toml",
        "fraud.toml",
        "late-outcomes.toml",
        "posted.toml",
    ] {
        assert!(sample(name).needs_tls().is_empty(), "{name}");
    }
}
