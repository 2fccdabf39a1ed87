//! What the command line gives to packages and reports of faults.

use std::process::Command;

fn said(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(arguments)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_long_version_names_commit_features_and_state_formats() {
    let said = said(&["--version"]);
    let tls = if trueline::config::TLS_BUILT {
        "yes"
    } else {
        "no"
    };
    let format = trueline::store::format::VERSION;
    for words in [
        format!("trueline {}\n", env!("CARGO_PKG_VERSION")),
        "commit: ".to_owned(),
        format!("tls: {tls}\n"),
        format!("snapshots of format {format}, checkpoints of format "),
    ] {
        assert!(said.contains(&words), "{words:?}: {said}");
    }
}

/// Nothing is asked of a running trueline, whose answers name the JSON of its API.
#[test]
fn a_silence_without_a_unit_or_with_no_matcher_is_refused_in_words_of_the_command_line() {
    for (arguments, word) in [
        (["model=fraud", "--for", "2"], "unit needed"),
        (["fraud", "--for", "2h"], "write `model=fraud`"),
        (["severity=loud", "--for", "2h"], "severity"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(["alert", "silence", "--url", "http://127.0.0.1:1"])
            .args(arguments)
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains(word) && !said.contains('{'), "{said}");
    }
}

#[test]
fn completions_offer_every_verb_and_there_is_a_manual_page_for_each() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let completions = said(&["completions", shell]);
        for verb in ["evaluate", "backtest", "completions", "--sample"] {
            let verb = verb.trim_start_matches('-');
            assert!(completions.contains(verb), "{verb} for {shell}");
        }
    }
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("manual");
    said(&["man", &directory.display().to_string()]);
    for page in ["trueline.1", "trueline-check.1", "trueline-state.1"] {
        let text = std::fs::read_to_string(directory.join(page)).expect(page);
        assert!(
            text.starts_with(".ie") && text.contains("SYNOPSIS"),
            "{page}"
        );
    }
    let check = std::fs::read_to_string(directory.join("trueline-check.1")).expect("a page");
    assert!(check.contains("\\-\\-sample"), "{check}");
}

#[test]
fn check_says_before_an_upgrade_or_a_rollback_that_the_state_is_of_another_format() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("other-format");
    let state = directory.join("trueline-state");
    std::fs::create_dir_all(&state).expect("a folder");
    let config = directory.join("trueline.toml");
    let text = "version = 1\n[kafka]\nbrokers = \"127.0.0.1:1\"\n[[source]]\ntopics = [\"t\"]\n\
                [source.fields]\nscore = \"score\"\n[http]\nlisten = \"127.0.0.1:0\"\n";
    std::fs::write(&config, text).expect("a file");
    let now = trueline::store::format::VERSION;
    for (format, remedy) in [(now - 1, "start with"), (now + 1, "upgrade it")] {
        let mut bytes = b"TRUELINE".to_vec();
        bytes.extend(format.to_le_bytes());
        std::fs::write(state.join("snapshot-00000000000000000000.trueline"), &bytes)
            .expect("a file");
        let output = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(["check", "--timeout", "1s", "--config"])
            .arg(&config)
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(69), "{said}");
        let expected = format!("format {format}, this program reads {now}; {remedy}");
        assert!(said.contains(&expected), "{said}");
        // It has ended.
        assert!(said.contains("no kafka broker answers"), "{said}");
        assert!(!said.contains("still trying"), "{said}");
    }
    // What is expected comes before what is allowed.
    let output = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args([
            "check",
            "--no-environment",
            "--streams",
            "40",
            "--rate",
            "10",
            "--config",
        ])
        .arg(&config)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let place = |what: &str| said.find(what).unwrap_or_else(|| panic!("{what}: {said}"));
    assert!(place("for 40 streams") < place("memory: at most"), "{said}");
}
