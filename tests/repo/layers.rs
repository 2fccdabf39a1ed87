//! The layers of the crate, checked by reading its source.
//!
//! Modules lie in layers and import downwards only. The order is what makes the core testable
//! without a broker and the mathematics readable without the core, and it erodes one convenient
//! `use` at a time; so it is read off the source here rather than remembered. Read as text, not
//! through the compiler: a path written in full inside a function counts as an import too, and the
//! check needs no build. The price is a small scanner that blanks comments and strings before it
//! looks; it is tested below, as is that each rule bites.
//!
//! | layer | module |
//! |---|---|
//! | 0 | `stats` |
//! | 1 | `window`, `alert` |
//! | 2 | `collect`, `judge`, `monitor` |
//! | 3 | `files`, `http_client`, `report`, `kafka`, `decode`, `store`, `http`, `notify`, `registry`, `telemetry` |
//! | 4 | `config` |
//! | 5 | `app`, `cli`, `demo`, `reproduce` |
//!
//! Rules: no import upwards; none sideways in layers 1 and 3, except of `files`, `http_client`,
//! `report` and `telemetry` by their neighbours (so that an edge can be replaced alone); no clock,
//! thread, async runtime, log or broker in layers 0 to 2 (so that the same input gives the same
//! bits), but for the threads that `judge/runtime.rs` lends to judges and whose results it keeps in
//! order; `stats` depends on statrs and serde alone, which its manifest says; outside tests no
//! `unwrap()`, `panic!`, `todo!` or `unimplemented!` in layers 0 to 4; `unsafe` only where its
//! argument is written, in `kafka/native.rs`; no file replaced but through `files.rs`, which syncs
//! it and its directory.

use crate::source::{
    blank_comments_and_strings, blank_tests, identifier, is_test_file, line_of, sources, words,
};
use std::path::Path;

/// Module name and layer.
const LAYERS: &[(&str, u32)] = &[
    ("stats", 0),
    ("window", 1),
    ("alert", 1),
    ("collect", 2),
    ("judge", 2),
    ("monitor", 2),
    ("files", 3),
    ("http_client", 3),
    ("report", 3),
    ("kafka", 3),
    ("decode", 3),
    ("store", 3),
    ("http", 3),
    ("notify", 3),
    ("registry", 3),
    ("telemetry", 3),
    ("config", 4),
    ("app", 5),
    ("cli", 5),
    ("demo", 5),
    ("reproduce", 5),
];

/// What code outside tests must not mention: up to which layer, what, and the reason for whoever
/// wrote it.
const BANS: &[(u32, &str, &str)] = &[
    (2, "Instant", "`now` is an argument of the core"),
    (2, "SystemTime", "`now` is an argument of the core"),
    (2, "std::thread", "the core runs on its caller's thread"),
    (2, "std::net", "the core opens no socket"),
    (2, "std::fs", "the core reads and writes no file"),
    (2, "tokio::", "the core is not async"),
    (
        2,
        "tracing::",
        "the core returns what happened instead of logging it",
    ),
    (
        2,
        "warn_limited!",
        "the core returns what happened instead of logging it",
    ),
    (
        2,
        "println!",
        "the core returns what happened instead of printing it",
    ),
    (
        2,
        "eprintln!",
        "the core returns what happened instead of printing it",
    ),
    (2, "rdkafka::", "the core knows no broker"),
    (2, "serde_json::", "`report` presents what the core returns"),
    (2, "dashmap::", "the core shares nothing between threads"),
    (2, "thread_rng", "a seed is an argument of the core"),
    (
        4,
        ".unwrap()",
        "return the error, or `expect` with why it cannot happen",
    ),
    (4, "panic!", "return the error, or assert a named invariant"),
    (4, "todo!", "finish it or leave it out"),
    (4, "unimplemented!", "finish it or leave it out"),
];

/// The one file whose `unsafe` carries its safety argument.
const UNSAFE_FILE: &str = "kafka/native.rs";

/// The files that rename others: what replaces a file is synced in `files.rs`.
const RENAMING_FILES: [&str; 2] = ["files.rs", "app/outputs/state_dir.rs"];

/// The one file of the core that uses threads, which its caller lends.
const THREADS_FILE: &str = "judge/runtime.rs";

#[test]
fn every_import_goes_downwards_and_the_core_touches_nothing_outside() {
    let mut faults = Vec::new();
    let sources = sources();
    assert!(!sources.is_empty(), "no source files found");
    for (path, text) in &sources {
        faults.extend(check(path, text));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// The three types through which the two stages are fed and changed are narrow, each by itself. The
/// views that read them off, `ShardView` and `MonitorView`, may be wide and are not counted.
#[test]
fn each_type_that_changes_a_stage_has_at_most_fifteen_methods() {
    for stage in ["Shard", "ShardUpkeep<'_>", "Monitor"] {
        let methods: usize = sources().iter().map(|(_, text)| methods(stage, text)).sum();
        assert!((5..=15).contains(&methods), "{stage} has {methods} methods");
    }
    let text = "impl Shard {\n    pub fn a() {}\n    pub(super) fn b() {}\n    fn c() {}\n}\n\nimpl Shards {\n    pub fn d() {}\n}\n";
    assert_eq!(methods("Shard", text), 2);
}

/// Methods of a type in a file that other files can call.
fn methods(of: &str, text: &str) -> usize {
    let code = blank_tests(&blank_comments_and_strings(text));
    let head = format!("impl {of} {{");
    let blocks = code.split(&head).skip(1);
    let bodies = blocks.map(|block| block.split("\n}").next().unwrap_or(block));
    let called = |line: &&str| line.starts_with("    pub") && line.contains(" fn ");
    bodies.map(|body| body.lines().filter(called).count()).sum()
}

#[test]
fn every_top_level_module_has_a_layer() {
    for (path, _) in sources() {
        let module = module_of(&path);
        let known = matches!(module, "lib" | "main") || layer_of(module).is_some();
        assert!(
            known,
            "src/{path}: module `{module}` has no layer; give it one in tests/repo/layers.rs"
        );
    }
}

#[test]
fn an_upward_import_is_found_however_it_is_written() {
    let cases = [
        ("stats/x.rs", "use crate::window::Ladder;"),
        ("stats/x.rs", "fn f() -> crate::judge::Verdict { g() }"),
        ("window/x.rs", "pub(crate) use crate :: collect::Event;"),
        (
            "collect/x.rs",
            "use crate::{stats::sums::Sums, app::engine::Engine};",
        ),
        (
            "judge/x.rs",
            "use crate::{\n    stats::{sums, axis},\n    http::serve,\n};",
        ),
        ("judge.rs", "use crate::kafka;"),
        ("config/x.rs", "use crate::cli::Args;"),
        (
            "stats/x.rs",
            "#[cfg(test)] mod tests { use crate::window::Ladder; }",
        ),
    ];
    for (path, text) in cases {
        assert_eq!(
            check(path, text).len(),
            1,
            "{path}: {text}: {:?}",
            check(path, text)
        );
    }
}

#[test]
fn a_sideways_import_between_edges_is_found_and_one_of_telemetry_is_not() {
    assert_eq!(check("kafka/x.rs", "use crate::decode::Decoder;").len(), 1);
    assert_eq!(check("window/x.rs", "use crate::alert::Rule;").len(), 1);
    assert_eq!(check("telemetry/x.rs", "use crate::http::serve;").len(), 1);
    assert!(check("http/x.rs", "use crate::telemetry::Published;").is_empty());
    assert!(
        check(
            "http/x.rs",
            "use crate::http::route; use crate::judge::Verdict;"
        )
        .is_empty()
    );
    assert!(check("demo/x.rs", "use crate::app::run; use crate::stats::axis;").is_empty());
}

#[test]
fn a_clock_a_thread_or_a_log_in_the_core_is_found() {
    let cases = [
        "let t = std::time::Instant::now();",
        "use std::time::{Duration, SystemTime};",
        "std::thread::spawn(f);",
        "tokio::spawn(f);",
        "tracing::info!(\"x\");",
        "use rdkafka::Message;",
        "use rayon::prelude::*;",
    ];
    for text in cases {
        assert_eq!(check("collect/x.rs", text).len(), 1, "{text}");
        assert_eq!(check("monitor/x.rs", text).len(), 1, "{text}");
        assert!(check("app/x.rs", text).is_empty(), "{text}");
    }
    assert!(check(THREADS_FILE, "use rayon::prelude::*;").is_empty());
}

/// `stats` is a crate of its own, so the compiler keeps all else out of it.
#[test]
fn the_mathematics_depends_on_statrs_and_optionally_on_serde_alone() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/stats/Cargo.toml");
    let text = std::fs::read_to_string(manifest).expect("the manifest can be read");
    let (_, dependencies) = text
        .split_once("[dependencies]")
        .expect("it has dependencies");
    let lines = dependencies.lines().skip(1);
    let found: Vec<&str> = lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split(' ').next().unwrap_or(line))
        .collect();
    assert_eq!(found, ["serde", "statrs"]);
    let serde = dependencies.lines().find(|line| line.starts_with("serde"));
    assert!(serde.is_some_and(|line| line.contains("optional = true")));
    for section in ["[dev-dependencies]", "[build-dependencies]", "[target."] {
        assert!(!text.contains(section), "{section}");
    }
}

#[test]
fn an_unwrap_or_unsafe_is_found_outside_tests_and_forgiven_inside() {
    for path in ["monitor/x.rs", "judge/x.rs", "decode/x.rs"] {
        assert_eq!(check(path, "fn f() { g().unwrap() }").len(), 1);
    }
    assert_eq!(check("store/x.rs", "fn f() { todo!() }").len(), 1);
    assert!(
        check(
            "decode/x.rs",
            "#[cfg(test)]\nmod tests { fn f() { g().unwrap() } }"
        )
        .is_empty()
    );
    let after = "#[cfg(test)]\nmod tests { fn f() { g().unwrap() } }\nfn h() { i().unwrap() }";
    assert_eq!(check("decode/x.rs", after).len(), 1);
    assert_eq!(check("decode/x.rs", "unsafe { g() }").len(), 1);
    assert!(check("kafka/native.rs", "unsafe { g() }").is_empty());
    assert!(check("kafka/x.rs", "#![deny(unsafe_code)]").is_empty());
}

#[test]
fn a_file_that_is_renamed_without_a_sync_is_found() {
    let text = "fn f() { std::fs::rename(a, b) }";
    assert_eq!(check("cli/x.rs", text).len(), 1);
    assert!(check("files.rs", text).is_empty());
}

#[test]
fn words_in_comments_and_strings_are_not_code() {
    let text = r##"
        //! panic! and crate::app are words here.
        /* unsafe /* nested */ todo! */
        const A: &str = "use crate::app; .unwrap() \" panic!";
        const B: &str = r#"unsafe " todo!"#;
        const C: char = '"';
        fn f<'a>(x: &'a str) -> &'a str { x }
        const D: char = '\'';
    "##;
    assert_eq!(check("stats/x.rs", text), Vec::<String>::new());
    let code_after = format!("{text}\nfn f() {{ g().unwrap() }}");
    assert_eq!(check("stats/x.rs", &code_after).len(), 1);
}

/// All faults of one file; `path` is relative to `src`.
fn check(path: &str, text: &str) -> Vec<String> {
    let code = blank_comments_and_strings(text);
    let module = module_of(path);
    let Some(layer) = layer_of(module) else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    for (line, target) in crate_imports(&code) {
        if let Some(why) = import_fault(module, layer, &target) {
            faults.push(format!(
                "src/{path}:{line}: `{module}` imports `{target}`: {why}"
            ));
        }
    }
    let outside_tests = if is_test_file(path) {
        String::new()
    } else {
        blank_tests(&code)
    };
    let only = "only kafka/native.rs may, with its safety argument";
    let everywhere = (u32::MAX, "unsafe", only);
    let lent = (
        2,
        "rayon",
        "streams are judged beside each other by `Runtime::map`",
    );
    let synced = "`files::replace_with` syncs the file and its directory";
    let renamed = (u32::MAX, "fs::rename", synced);
    let bans = BANS
        .iter()
        .chain(
            [&renamed]
                .into_iter()
                .filter(|_| !RENAMING_FILES.contains(&path)),
        )
        .chain([&everywhere].into_iter().filter(|_| path != UNSAFE_FILE))
        .chain([&lent].into_iter().filter(|_| path != THREADS_FILE));
    for (_, word, why) in bans.filter(|(top, ..)| layer <= *top) {
        for line in lines_with(&outside_tests, word) {
            faults.push(format!("src/{path}:{line}: `{word}`: {why}"));
        }
    }
    faults
}

/// Why `module` may not import `target`, or None when it may.
fn import_fault(module: &str, layer: u32, target: &str) -> Option<&'static str> {
    let target_layer = layer_of(target)?;
    if target == module {
        return None;
    }
    if target_layer > layer {
        return Some("imports go downwards only");
    }
    // Layer 2 is the two stages and layer 5 the wiring: neighbours there belong together.
    let sideways = target_layer == layer
        && matches!(layer, 1 | 3)
        && !matches!(target, "files" | "http_client" | "report" | "telemetry");
    sideways.then_some("neighbours in this layer do not know one another")
}

fn layer_of(module: &str) -> Option<u32> {
    LAYERS.iter().find(|l| l.0 == module).map(|l| l.1)
}

/// `stats/axis.rs` and `stats.rs` belong to `stats`.
fn module_of(path: &str) -> &str {
    path.split('/')
        .next()
        .unwrap_or(path)
        .trim_end_matches(".rs")
}

/// First segments of all `crate::…` paths and `crate::{…}` groups, with their lines.
fn crate_imports(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in words(code, "crate") {
        let Some(rest) = code[at + 5..].trim_start().strip_prefix("::") else {
            continue;
        };
        let rest = rest.trim_start();
        let line = line_of(code, at);
        if let Some(group) = rest.strip_prefix('{') {
            found.extend(group_heads(group).into_iter().map(|head| (line, head)));
        } else {
            found.push((line, identifier(rest)));
        }
    }
    found
}

/// `stats::{a, b}, app::c}` gives `stats` and `app`.
fn group_heads(group: &str) -> Vec<String> {
    let (mut depth, mut heads, mut at_head) = (0, Vec::new(), true);
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_head = true,
            c if at_head && depth == 0 && (c.is_alphabetic() || c == '_') => {
                heads.push(identifier(&group[i..]));
                at_head = false;
            }
            _ => {}
        }
    }
    heads
}

fn lines_with(code: &str, word: &str) -> Vec<usize> {
    words(code, word).map(|(at, _)| line_of(code, at)).collect()
}
