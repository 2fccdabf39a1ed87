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
    let tls = if cfg!(feature = "tls") { "yes" } else { "no" };
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
