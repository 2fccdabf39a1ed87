//! What the verbs do when their output cannot be written, and which command lines they refuse.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn trueline(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trueline"));
    command.args(args).env_remove("TRUELINE_TOKEN");
    command
}

fn said(args: &[&str]) -> (Option<i32>, String) {
    let out = trueline(args).output().expect("it starts");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    (out.status.code(), text)
}

fn file(name: &str, text: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("output-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("a file");
    path.display().to_string()
}

/// Scores that are right, a thousand of them.
fn scores(name: &str) -> String {
    let row = |i: u32| {
        format!(
            "{},{}\n",
            f64::from(i % 10) / 10.0,
            u8::from(i % 100 < 10 * (i % 10))
        )
    };
    let rows: String = (0..1000).map(row).collect();
    file(name, &format!("score,label\n{rows}"))
}

fn config(name: &str) -> String {
    let text = "version = 1\n[kafka]\nbrokers = \"127.0.0.1:1\"\n[[source]]\ntopics = [\"t\"]\n\
                [source.fields]\nscore = \"score\"\n";
    file(name, text)
}

#[test]
fn an_answer_that_a_full_disk_swallows_is_no_success() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        return;
    };
    let (scores, config) = (scores("full.csv"), config("full.toml"));
    for args in [
        &["evaluate", "--json", &scores][..],
        &["check", "--no-environment", "--config", &config],
        &["check", "--example"],
        &["demo", "--show-config"],
        &["evaluate", "--help"],
    ] {
        let full = full.try_clone().expect("a file");
        let out = trueline(args).stdout(full).output().expect("it starts");
        let why = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(69), "{args:?}: {why}");
        assert!(
            args.contains(&"--help") || why.contains("standard output"),
            "{args:?}: {why}"
        );
    }
}

/// Runs with a reader of one stream that has gone before anything is written.
fn unread(args: &[&str], errors: bool) -> Output {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = trueline(args);
    match errors {
        true => command.stdout(Stdio::null()).stderr(writer),
        false => command.stdout(writer).stderr(Stdio::piped()),
    };
    let mut child = command.spawn().expect("it starts");
    let mut stderr = Vec::new();
    if let Some(mut pipe) = child.stderr.take() {
        pipe.read_to_end(&mut stderr).expect("text");
    }
    Output {
        status: child.wait().expect("it ends"),
        stdout: Vec::new(),
        stderr,
    }
}

#[test]
fn a_reader_that_has_gone_is_no_failure_and_no_panic() {
    let (scores, config) = (scores("pipe.csv"), config("pipe.toml"));
    let row = |i: i64| {
        let (t, y) = (1_700_000_000_000 + 500 * i, i % 2);
        format!("{{\"model\":\"m\",\"time\":{t},\"score\":0.5,\"outcome\":{y}}}\n")
    };
    let events = file("pipe.jsonl", &(0..2000).map(row).collect::<String>());
    for args in [
        &["demo", "--show-config"][..],
        &["check", "--reference"],
        &["check", "--no-environment", "--config", &config],
        &[
            "check",
            "--no-environment",
            "--effective",
            "--config",
            &config,
        ],
        &["replay", &events],
        &["replay", "--json", &events],
        &["evaluate", &scores],
        &["completions", "bash"],
    ] {
        let out = unread(args, false);
        let why = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(0), "{args:?}: {why}");
        assert!(!why.contains("panicked"), "{args:?}: {why}");
    }
    for (args, code) in [
        (&["evaluate", "nothere.csv"][..], 66),
        (&["check", "--config", "nothere.toml"], 78),
        (&["replay", &events], 0),
        (&["explain", "nothere.json"], 66),
    ] {
        assert_eq!(unread(args, true).status.code(), Some(code), "{args:?}");
    }
}

#[test]
fn options_that_would_be_ignored_and_columns_that_are_two_things_are_refused() {
    let one = scores("ignored.csv");
    let rows: String = (0..30)
        .map(|i| format!("0.5,0.3,0.2,{}\n", i % 3))
        .collect();
    let three = file("ignored-3.csv", &format!("p0,p1,p2,label\n{rows}"));
    for (args, words) in [
        (&["--smoothness", "2", &one][..], "needs --test"),
        (
            &["--smoothness", "2", "--test", "splitting-adaptive", &one],
            "needs --test",
        ),
        (&["--lower-support", "0.1", &one], "--method paper"),
        (&["--kernel-width", "0.1", &one], "--view kernel"),
        (&["--kernel-events", "10", &one], "--view kernel"),
        (&["--kernel-bootstrap", "10", &one], "--view kernel"),
        (&["--score", "label", &one], "both name the column `label`"),
        (&["--weight", "score", &one], "both name the column `score`"),
        (
            &["--cluster", "label", &one],
            "both name the column `label`",
        ),
        (
            &["--classes", "p0,p1,label", &three],
            "both name the column `label`",
        ),
        (&["--positive", "1", &three], "is a label of one class"),
        (&["--view", "top_k:9", &three], "has 3 classes"),
        (&["--view", "top_k:3", &three], "has 3 classes"),
        (&["--confidence", "90", &one], "such as 0.9"),
    ] {
        let (code, why) = said(&[&["evaluate"][..], args].concat());
        assert_eq!(code, Some(64), "{args:?}: {why}");
        assert!(why.contains(words), "{args:?}: {why}");
    }
    let (code, why) = said(&["evaluate", "--view", "top_k:2", &three]);
    assert_eq!(code, Some(0), "{why}");
}

#[test]
fn an_option_that_the_test_or_view_does_not_use_is_refused_and_one_that_it_uses_is_not() {
    let one = scores("unused.csv");
    let rows: String = (0..60)
        .map(|i| format!("0.5,0.3,0.2,{}\n", i % 3))
        .collect();
    let three = file("unused-3.csv", &format!("p0,p1,p2,label\n{rows}"));
    let page = file("unused.html", "");
    // Each is given as it is by default: what counts is that it is given.
    let all = [
        ["--tolerance", "0.05"],
        ["--decide-by", "combined"],
        ["--method", "default"],
        ["--axis", "linear"],
        ["--confidence", "0.9"],
        ["--interval-cells", "16"],
        ["--discrete", "auto"],
    ];
    let report = ["--view", "classes", "--report", &page];
    for (file, mode, used) in [
        (&one, &["--seed", "0"][..], &[0, 1, 2, 3, 4, 5, 6][..]),
        (&one, &["--test", "consistency"], &[]),
        (&one, &["--test", "splitting"], &[]),
        (&one, &["--test", "known-smoothness"], &[2]),
        (&one, &["--test", "composite"], &[0]),
        (&three, &["--view", "top_label"], &[0, 1, 2, 3, 4, 5, 6]),
        (&three, &["--view", "full"], &[4, 5]),
        (&three, &["--view", "kernel"], &[]),
        (&three, &["--view", "classes"], &[1, 2, 6]),
        (&three, &report, &[0, 1, 2, 4, 5, 6]),
    ] {
        for (at, option) in all.iter().enumerate() {
            let (code, why) =
                said(&[&["evaluate"][..], mode, &option[..], &[file.as_str()]].concat());
            let expected = if used.contains(&at) { 0 } else { 64 };
            assert_eq!(code, Some(expected), "{mode:?} {option:?}: {why}");
            assert_eq!(why.contains("has no effect"), expected == 64, "{why}");
        }
    }
    for (tolerance, code) in [("10%", 64), ("0.05 or 2%", 64), ("0.05", 0)] {
        let composite = ["evaluate", "--test", "composite", "--tolerance"];
        let (found, why) = said(&[&composite[..], &[tolerance, &one]].concat());
        assert_eq!(found, Some(code), "{tolerance}: {why}");
        assert_eq!(why.contains("a number alone"), code == 64, "{why}");
    }
}

#[test]
fn a_pipe_by_its_name_is_read_from_its_first_byte() {
    let scores = std::fs::read(scores("piped.csv")).expect("a file");
    let row = |i: i64| {
        let (t, y) = (1_700_000_000_000 + 500 * i, i % 2);
        format!("{{\"model\":\"m\",\"time\":{t},\"score\":0.5,\"outcome\":{y}}}\n")
    };
    let events = (0..2000).map(row).collect::<String>();
    for (args, input, words) in [
        (
            &["evaluate", "--json", "/dev/stdin"][..],
            &scores[..],
            "\"n\": 1000",
        ),
        (
            &["evaluate", "--json", "--as-window", "/dev/stdin"],
            &scores,
            "\"n\": 1000",
        ),
        (
            &["replay", "/dev/stdin"],
            events.as_bytes(),
            "2000 records: 2000 observed",
        ),
    ] {
        let mut command = trueline(args);
        let command = command.env_remove("TRUELINE_CONFIG").stdin(Stdio::piped());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || pipe.write_all(&input));
        let out = child.wait_with_output().expect("it ends");
        let _ = writer.join();
        let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
        assert!(
            out.status.success() && said.contains(words),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn a_map_is_not_fitted_to_the_events_that_it_is_judged_on() {
    let (here, copy) = (scores("fit.csv"), scores("fit-copy.csv"));
    let other = file(
        "fit-other.csv",
        &std::fs::read_to_string(&here)
            .expect("text")
            .replace("0.5,", "0.4,"),
    );
    let run = |fit: &str| said(&["evaluate", "--recalibrate", "logistic", "--fit", fit, &here]);
    let around = PathBuf::from(&here);
    let name = around
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let dotted = around.with_file_name("./").join(name).display().to_string();
    for fit in [&here, &copy, &dotted] {
        let (code, why) = run(fit);
        assert_eq!(code, Some(64), "{fit}: {why}");
        assert!(why.contains("fit the map to others"), "{why}");
    }
    let (code, why) = run(&other);
    assert_eq!(code, Some(0), "{why}");
    let out = trueline(&[
        "evaluate",
        "--recalibrate",
        "advised",
        "--fit",
        &other,
        &here,
    ]);
    let out = { out }.output().expect("it starts");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(!text.contains("following"), "{text}");
}

#[test]
fn a_file_that_is_not_read_and_a_label_that_never_occurs_are_told() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (kind, start) in [
        ("xz", &b"\xfd7zXZ\0rest"[..]),
        ("bz2", b"BZh91AY"),
        ("zip", b"PK\x03\x04rest"),
    ] {
        let path = folder.join(format!("output-packed.{kind}"));
        std::fs::write(&path, start).expect("a file");
        let (code, why) = said(&["evaluate", &path.display().to_string()]);
        assert_eq!(code, Some(65), "{why}");
        let words = format!("compressed with {kind}; gzip and zstd are read");
        assert!(why.contains(&words), "{why}");
    }
    let lower = file("lower.csv", "score,label\n0.5,yes\n0.6,yes\n");
    let (code, why) = said(&["evaluate", "--positive", "Yes", &lower]);
    assert_eq!(code, Some(65), "{why}");
    assert!(why.contains("no label is `Yes`"), "{why}");
    let none = file("none.csv", "score,label\n0.5,0\n0.6,0\n");
    let (code, why) = said(&["evaluate", "--positive", "true", &none]);
    assert_eq!(code, Some(0), "{why}");
}

#[test]
fn each_fault_has_the_exit_code_of_the_table() {
    for (args, code, words) in [
        (
            &["state", "inspect"][..],
            64,
            "or a configuration with --config",
        ),
        (
            &["state", "import", "nothere", "there"],
            66,
            "cannot open nothere",
        ),
        (
            &["state", "export", "nothere", "x"],
            66,
            "nothere is not a directory",
        ),
        (&["replay", "nothere"], 66, "cannot open nothere"),
        (&["replay"], 64, "a range of the configuration's topics"),
        (&["explain", "nothere.json"], 66, "no such file"),
        (&["top", "--once", "--url", "foo"], 64, "names no port"),
        (&["tap", "--url", "foo"], 64, "names no port"),
        (&["alert", "list", "--url", "foo"], 64, "names no port"),
    ] {
        let (found, why) = said(args);
        assert_eq!(found, Some(code), "{args:?}: {why}");
        assert!(why.contains(words), "{args:?}: {why}");
    }
    assert!(
        !Path::new("there").exists(),
        "nothing is made for a file that is not there"
    );
}
