//! The verb `check`: its exit code says whether the file or what it names is at fault.

use crate::{MINIMAL, root};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Runs `trueline check` and answers with its exit code and what it wrote to both outputs.
fn check(config: &Path, more: &[&str]) -> (Option<i32>, String) {
    trueline("check", config, more)
}

/// The same with another verb.
fn trueline(verb: &str, config: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trueline"));
    command.arg(verb).arg("--config").arg(config).args(more);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TRUELINE_")) {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let both = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(both).unwrap())
}

#[test]
fn check_ends_with_78_for_a_bad_file_and_0_for_a_good_one() {
    let (code, said) = check(&root().join("tests/config/bad/tolerance_above_1.toml"), &[]);
    assert_eq!(code, Some(78), "{said}");
    assert!(
        said.contains("tolerance_above_1.toml:16:13: `tolerance` is 1.5"),
        "{said}"
    );
    let (code, said) = check(&root().join("config/fraud.toml"), &["--no-environment"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("memory: at most"), "{said}");
}

#[test]
fn check_says_which_models_raise_no_alert_and_which_links_would_be_refused() {
    let directory = TempDir::with_prefix("trueline-alerts-").unwrap();
    let file = directory.path().join("trueline.toml");
    let said = |more: &str| {
        fs::write(&file, MINIMAL.to_owned() + more).unwrap();
        let (code, said) = check(&file, &["--no-environment"]);
        assert_eq!(code, Some(0), "{said}");
        said
    };
    let weighted = "weight = \"w\"\n[[model]]\nname = \"*\"\nwindows = [\"5m\"]\n";
    let words = "no detector, since events have weights: no alert; set `window_alerts = true`";
    assert!(said(weighted).contains(words));
    let by_windows = format!("{weighted}[model.alert]\nwindow_alerts = true\n");
    for with_alerts in ["", &by_windows] {
        assert!(!said(with_alerts).contains("no detector"));
    }
    let none = said("[detector]\nbudget = \"none\"\n");
    assert!(
        none.contains("no detector, since `budget` is \"none\""),
        "{none}"
    );
    let links = |more: &str| {
        let url = "[notify]\nexternal_url = \"https://u@trueline.example:9464/x\"\n";
        said(&format!("{url}{more}")).contains("refuses requests for that name")
    };
    assert!(links(""));
    assert!(!links("[http]\nhosts = [\"trueline.example\"]\n"));
    let (_, said) = check(&root().join("config/alerting.toml"), &["--no-environment"]);
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn check_warns_where_alerts_of_several_processes_are_one_to_a_receiver() {
    let directory = TempDir::with_prefix("trueline-divided-").unwrap();
    let file = directory.path().join("trueline.toml");
    let warns = |more: &str| {
        let sink = "[[sink]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"http://127.0.0.1:1/\"\n";
        fs::write(&file, format!("{MINIMAL}{sink}{more}")).unwrap();
        let (code, said) = check(&file, &["--no-environment"]);
        assert_eq!(code, Some(0), "{said}");
        said.contains("the first that ends closes it")
    };
    assert!(!warns(""));
    let topic = "[state]\ntopic = \"trueline-state\"\n";
    assert!(warns(topic));
    assert!(!warns(&format!("{topic}verdicts = \"all\"\n")));
}

#[test]
fn check_says_where_the_order_of_outcomes_matters() {
    let join = |name: &str, more: &str| {
        format!(
            "[[source]]\ntopics = \"{name}\"\n{more}\n[source.fields]\nscore = \"s\"\nid = \"i\"\n\
             [source.outcomes]\ntopics = \"{name}-outcomes\"\nmaturity = \"1h\"\n"
        )
    };
    let head = "version = 1\n[kafka]\nbrokers = \"b:1\"\n";
    let directory = TempDir::with_prefix("trueline-order-").unwrap();
    let file = directory.path().join("trueline.toml");
    let mut said = Vec::new();
    for text in [
        join("t", ""),
        join("t", "") + "repeated = \"last\"\nrevise = true\n",
        join("t", "") + "repeated = \"last\"\n",
        join("t", "") + &join("u", "model = \"fraud\""),
    ] {
        fs::write(&file, head.to_owned() + &text).unwrap();
        let (code, text) = check(&file, &["--no-environment"]);
        assert_eq!(code, Some(0), "{text}");
        let lines = text.lines().filter(|l| l.starts_with("  outcomes: "));
        said.push(lines.map(str::to_owned).collect::<Vec<_>>());
    }
    let lines: Vec<usize> = said.iter().map(Vec::len).collect();
    assert_eq!(lines, [0, 0, 1, 1], "{said:?}");
    assert!(said[2][0].contains("hides one in time"), "{said:?}");
    assert!(said[3][0].contains("predictions of fraud"), "{said:?}");
}

#[test]
fn a_sample_of_posted_events_is_a_mistake_of_the_command_line() {
    let directory = TempDir::with_prefix("trueline-posted-").unwrap();
    let file = directory.path().join("trueline.toml");
    let text = "version = 1\n[[source]]\ninput = \"http\"\ntopics = \"t\"\n[source.fields]\nscore = \"s\"\n\
                [http]\nlisten = \"127.0.0.1:0\"\n";
    fs::write(&file, text).unwrap();
    let (code, said) = check(&file, &["--sample"]);
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("`?dry_run=1`"), "{said}");
}

/// OpenSSL says that something failed, and does not name the file.
#[cfg(any(feature = "tls", feature = "tls-vendored"))]
#[test]
fn a_file_of_tls_that_cannot_be_read_is_named_with_its_key() {
    let directory = TempDir::with_prefix("trueline-tls-").unwrap();
    let file = directory.path().join("trueline.toml");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let files = format!(
        "ca_file = '{}'\ncertificate_file = '{}'\nkey_file = '{}'\n",
        path("ca.pem"),
        path("no.pem"),
        path("no.key")
    );
    let text = MINIMAL.replace("b:1", "127.0.0.1:1");
    let rest = format!("[kafka.tls]\nenabled = true\n{files}[http]\nlisten = \"127.0.0.1:0\"\n");
    fs::write(&file, text + &rest).unwrap();
    fs::write(path("ca.pem"), "").unwrap();
    let (code, said) = check(&file, &["--timeout", "2s"]);
    assert_eq!(code, Some(69), "{said}");
    let named = |key, name| format!("[kafka.tls] {key}: cannot read {}", path(name));
    assert!(
        said.contains(&named("certificate_file", "no.pem")),
        "{said}"
    );
    assert!(said.contains(&named("key_file", "no.key")), "{said}");
    assert!(!said.contains("[kafka.tls] ca_file"), "{said}");
    let (code, said) = trueline("run", &file, &[]);
    assert_eq!(code, Some(78), "{said}");
    assert!(
        said.contains(&named("certificate_file", "no.pem")),
        "{said}"
    );
}

#[test]
fn check_ends_with_69_and_names_the_broker_the_directory_and_the_address_that_fail() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // A port that nobody listens on: bound for a moment, then let go.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let broker = closed.local_addr().unwrap();
    drop(closed);
    let directory = TempDir::with_prefix("trueline-check-").unwrap();
    let file = directory.path().join("trueline.toml");
    let text = MINIMAL.replace("b:1", &broker.to_string());
    let listen = taken.local_addr().unwrap();
    let rest = format!("[http]\nlisten = \"{listen}\"\n[state]\ndirectory = \"trueline.toml/x\"\n");
    fs::write(&file, text + &rest).unwrap();
    let (code, said) = check(&file, &["--timeout", "2s"]);
    assert_eq!(code, Some(69), "{said}");
    assert!(
        said.contains(&format!("no kafka broker answers at `{broker}`")),
        "{said}"
    );
    assert!(
        said.contains(&format!("cannot listen on {listen}")),
        "{said}"
    );
    assert!(
        said.contains("[state] directory: cannot write in"),
        "{said}"
    );
}
