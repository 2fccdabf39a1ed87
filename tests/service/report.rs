//! `evaluate --report` and `replay --report` as a process: one whole page that asks for nothing, or
//! none.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use trueline::stats::rng::Rng;

/// An empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a folder");
    path
}

fn trueline(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trueline"));
    let command = command.args(args).env_remove("TRUELINE_CONFIG");
    command.output().expect("the binary starts")
}

/// A file of scores whose outcomes come with the square of the score, or with the score.
fn scores(folder: &Path, name: &str, square: bool, column: &str) -> String {
    drawn(7, folder, name, square, column)
}

/// The same of other draws.
fn drawn(seed: u64, folder: &Path, name: &str, square: bool, column: &str) -> String {
    let mut draws = Rng::new(seed);
    let mut text = format!("score,label{}\n", if column.is_empty() { "" } else { "," });
    text = text.replace(",\n", &format!(",{column}\n"));
    for i in 0..6000 {
        let score = draws.uniform();
        let rate = if square { score * score } else { score };
        let _ = write!(text, "{score},{}", u8::from(draws.uniform() < rate));
        match column {
            "" => text.push('\n'),
            "weight" => text.push_str(if i % 2 == 0 { ",1.5\n" } else { ",0.5\n" }),
            _ => {
                let _ = writeln!(text, ",user-{}", i / 3);
            }
        }
    }
    let path = folder.join(name);
    fs::write(&path, text).expect("a file");
    path.display().to_string()
}

/// The page, which is checked to be one.
fn page(args: &[&str], path: &Path) -> String {
    let out = trueline(&[args, &["--report", &path.display().to_string()]].concat());
    assert!(out.status.success(), "{out:?}");
    let page = fs::read_to_string(path).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</main></html>\n"));
    assert!(page.contains("default-src 'none'") && page.contains("prefers-color-scheme:dark"));
    assert!(page.contains("@media print") && page.contains("name=viewport"));
    for word in [
        "http:", "https:", "src=", "url(\"", "@import", "<script", "<link", "NaN", ">inf",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    // Links stay on the page.
    let links = page.split("href=\"").skip(1);
    assert!(links.into_iter().all(|link| link.starts_with('#')));
    assert!(tags_close(&page), "an element is left open");
    page
}

/// Whether what must be closed is closed as often as it is opened.
fn tags_close(page: &str) -> bool {
    [
        "section", "svg", "table", "figure", "details", "div", "span", "g", "title",
    ]
    .iter()
    .all(|tag| {
        let opened = [" ", ">"].map(|end| page.matches(&format!("<{tag}{end}")).count());
        opened[0] + opened[1] == page.matches(&format!("</{tag}>")).count()
    })
}

#[test]
fn a_page_of_scores_says_the_verdict_first_and_holds_everything() {
    let folder = folder("scores");
    let bad = scores(&folder, "over & above.csv", true, "");
    let text = page(&["evaluate", &bad], &folder.join("bad.html"));
    let body = text.split_once("<main>").expect("a body").1;
    assert!(
        body.starts_with(
            "<h1>Are these probabilities true? <span class=\"badge full\">miscalibrated"
        )
    );
    assert!(body.contains("over &amp; above.csv") && !body.contains("over & above"));
    for part in [
        "aria-label=\"reliability diagram\"",
        "class=corp",
        "class=band",
        "class=map",
        "Levels of T-Cal",
        "the worst first",
        "What to say instead",
        "(advised)",
        "AUC",
        "accuracy at ½",
        "Brier score",
        "· resolution",
        "Spiegelhalter",
        "Kolmogorov–Smirnov",
    ] {
        assert!(body.contains(part), "{part}");
    }
    let good = scores(&folder, "good.csv", false, "");
    let text = page(
        &["evaluate", "--tolerance", "0.05", &good],
        &folder.join("good.html"),
    );
    assert!(text.contains("badge good\">calibrated") && !text.contains("What to say instead"));
    // Nothing else was left in the folder.
    let mut left: Vec<_> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|e| e.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(
        left,
        ["bad.html", "good.csv", "good.html", "over & above.csv"]
    );
    // The same events have the same page.
    let first = fs::read(folder.join("bad.html")).expect("a page");
    page(&["evaluate", &bad], &folder.join("bad.html"));
    assert_eq!(first, fs::read(folder.join("bad.html")).expect("a page"));
}

#[test]
fn weights_clusters_axes_and_fitted_maps_have_their_pages() {
    let folder = folder("kinds");
    let to = folder.join("r.html");
    let weighted = scores(&folder, "w.csv", true, "weight");
    let text = page(&["evaluate", &weighted], &to);
    assert!(text.contains("effective number") && text.contains("No map is fitted"));
    let clustered = scores(&folder, "c.csv", true, "cluster");
    let text = page(&["evaluate", &clustered], &to);
    assert!(text.contains("groups of clusters") && text.contains("No map is fitted"));
    let plain = scores(&folder, "p.csv", true, "");
    let text = page(&["evaluate", "--axis", "logit", &plain], &to);
    assert!(text.contains("by log-odds"));
    // A map is not fitted to the events that it is judged on.
    let other = drawn(8, &folder, "q.csv", true, "");
    let text = page(
        &["evaluate", "--recalibrate", "beta", "--fit", &other, &plain],
        &to,
    );
    assert!(text.contains("recalibrated by a map that was fitted to another file"));
    assert!(!text.contains("What to say instead"));
}

#[test]
fn vectors_have_pages_of_classes_and_of_their_top_label() {
    let folder = folder("vectors");
    let mut draws = Rng::new(3);
    let mut csv = String::from("p0,p1,p2,label\n");
    for _ in 0..3000 {
        let (a, b) = (draws.uniform(), draws.uniform());
        let (low, high) = (a.min(b), a.max(b));
        // Class 0 happens where it was said, and then in a third of the other cases.
        let x = draws.uniform();
        let said = if x < low { 0 } else { 1 + u8::from(x >= high) };
        let label = if draws.uniform() < 0.3 { 0 } else { said };
        let _ = writeln!(csv, "{low},{},{},{label}", high - low, 1.0 - high);
    }
    let path = folder.join("v.csv");
    fs::write(&path, csv).expect("a file");
    let (file, to) = (path.display().to_string(), folder.join("r.html"));
    let text = page(&["evaluate", "--view", "classes", &file], &to);
    for part in [
        "calibration rejected",
        "Class 0 against the rest",
        "AUC",
        "Brier 1950",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let text = page(&["evaluate", &file], &to);
    assert!(text.contains("view top_label") && text.contains("likeliest class happened"));
    assert!(!text.contains("accuracy at ½"));
    let text = page(&["evaluate", "--view", "top_k:2", &file], &to);
    assert!(text.contains("view top_k:2") && text.contains("coordinates"));
    let place = to.display().to_string();
    let out = trueline(&["evaluate", "--view", "kernel", "--report", &place, &file]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        out.status.code() == Some(64) && said.contains("choose another --view"),
        "{said}"
    );
}

#[test]
fn a_page_of_a_replay_has_each_stream_and_window_with_its_past() {
    let folder = folder("replay");
    let mut draws = Rng::new(5);
    let mut lines = String::new();
    for i in 0..60_000 {
        let score = draws.uniform();
        for (model, rate) in [("sound<1>", score), ("over", 0.5 + 0.6 * (score - 0.5))] {
            let _ = writeln!(
                lines,
                "{{\"model\":\"{model}\",\"time\":{},\"score\":{score},\"outcome\":{}}}",
                1_700_000_000_000_i64 + i * 200,
                u8::from(draws.uniform() < rate)
            );
        }
    }
    let path = folder.join("events.jsonl");
    fs::write(&path, lines).expect("a file");
    let file = path.display().to_string();
    let text = page(&["replay", &file], &folder.join("r.html"));
    let body = text.split_once("<main>").expect("a body").1;
    assert!(
        body.contains("events: 1 miscalibrated in some window, "),
        "{body}"
    );
    assert!(body.contains("sound&lt;1&gt;") && !body.contains("sound<1>"));
    let over = body
        .find("<h2 id=\"stream-0\">over")
        .expect("the worst first");
    assert!(over < body.find("<h2 id=\"stream-1\">sound").expect("the other"));
    for part in [
        "Over time",
        "error and verdicts over time; ",
        "Alerts and detector",
        "AUC",
        "from cells",
        "aria-label=\"reliability diagram\"",
    ] {
        assert!(body.contains(part), "{part}");
    }
    // The table has the alert of the stream, not that of a window.
    assert!(body.contains("<span class=\"badge full\">alert firing</span>"));
    assert!(body.contains("<td data-k=\"alert\">firing"), "{body}");
    // What is printed stays the same.
    let plain = trueline(&["replay", "--json", &file]);
    let place = folder.join("again.html").display().to_string();
    let with = trueline(&["replay", "--json", "--report", &place, &file]);
    assert_eq!(plain.stdout, with.stdout);
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_work_and_leaves_nothing() {
    let folder = folder("refused");
    let file = scores(&folder, "s.csv", true, "");
    let at = |name: &str| folder.join(name).display().to_string();
    let cases = [
        (at("missing/r.html"), "there is no directory"),
        (folder.display().to_string(), "is a directory"),
        (file.clone(), "is the input"),
        ("-".to_owned(), "is no file"),
    ];
    for verb in ["evaluate", "replay"] {
        for (place, said) in &cases {
            let out = trueline(&[verb, "--report", place, &file]);
            let text = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(
                out.status.code() == Some(64) && text.contains(said),
                "{text}"
            );
            assert!(out.stdout.is_empty());
        }
    }
    let clash = trueline(&[
        "evaluate",
        "--test",
        "composite",
        "--report",
        "r.html",
        &file,
    ]);
    assert_eq!(clash.status.code(), Some(64));
    // A file that cannot be read leaves the report of before.
    let old = at("r.html");
    fs::write(&old, "before").expect("a file");
    let out = trueline(&["evaluate", "--report", &old, &at("none.csv")]);
    assert_eq!(out.status.code(), Some(66));
    assert_eq!(fs::read_to_string(&old).expect("it"), "before");
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 2);
}
