//! The configuration from outside: every sample loads, every bad file is refused with exactly the
//! messages that stand beside it in `tests/config/bad/NAME.txt`, and whatever is generated from the
//! table of keys (the sample with every key, the reference in `config/README.md`, the JSON Schema) is current.
//!
//! `TRUELINE_BLESS=1 cargo test --test config` writes the generated files and the messages anew; read
//! the difference before committing it.

mod command_line;
mod mistakes;

use std::fs;
use std::path::{Path, PathBuf};

use trueline::config::bounds::MemoryBound;
use trueline::config::document;
use trueline::config::problem::Problems;
use trueline::config::schema::{Kind, Preset};
use trueline::config::value::{Outside, Value};
use trueline::config::{Config, Problem, TLS_BUILT, keys, reference};
use trueline::decode::{FieldOrConst, PredictionField};
use trueline::stats::axis::Axis;
use trueline::stats::tolerance::Tolerance;
use trueline::stats::view::View;
use trueline::window::Width;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Reads a text without any variable defined.
fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    let outside = Outside {
        variable: &|_| None,
        directory: PathBuf::from("tests/config"),
    };
    Config::parse(text, "trueline.toml", &outside)
}

fn sample(name: &str) -> Config {
    let text = fs::read_to_string(root().join("config").join(name)).unwrap();
    parse(&text).unwrap_or_else(|problems| panic!("{name}: {problems:#?}"))
}

/// Compares with a file of the repository, or writes it when blessing.
fn same_as_file(path: &Path, now: &str) {
    if std::env::var_os("TRUELINE_BLESS").is_some() {
        fs::write(path, now).unwrap();
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        kept,
        now,
        "{} is not current; see the head of tests/config/main.rs",
        path.display()
    );
}

const MINIMAL: &str = "version = 1\n[kafka]\nbrokers = \"b:1\"\n[[source]]\ntopics = \"t\"\n\
                       [source.fields]\nscore = \"s\"\n";

#[test]
fn every_sample_loads() {
    for entry in fs::read_dir(root().join("config")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".toml") {
            sample(&name);
        }
    }
}

/// Ratings with their classes at the source and no section of a model.
#[test]
fn the_classes_of_a_source_are_those_of_models_that_have_none() {
    let text = |models: &str| {
        format!(
            "version = 1\n[kafka]\nbrokers = \"b:1\"\n[[source]]\ntopics = [\"stars\"]\nmodel = \"stars\"\n\
             classes = [\"1\", \"2\", \"3\"]\n[source.fields]\nprobabilities = \"p\"\n{models}"
        )
    };
    let views = |models: &str| {
        let config = parse(&text(models)).unwrap();
        let model = &config.plan.models[0];
        assert_eq!(model.classes, ["1", "2", "3"], "{models}");
        let views: Vec<String> = model.views.iter().map(ToString::to_string).collect();
        views.join(" ")
    };
    assert_eq!(views(""), "top_label");
    assert_eq!(views("[[model]]\nname = \"stars\"\n"), "top_label");
    let vectors = "[[model]]\nname = \"*\"\nviews = [\"top_label\", \"top_k:2\", \"class:3\"]\n";
    assert_eq!(views(vectors), "top_label top_k:2 class:2");
}

#[test]
fn every_bad_file_gets_exactly_the_messages_beside_it() {
    let directory = root().join("tests/config/bad");
    let mut names: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    names.sort();
    assert!(names.len() >= 10, "bad files are missing");
    for path in names {
        let text = fs::read_to_string(&path).unwrap();
        let Err(problems) = parse(&text) else {
            panic!("{} was accepted", path.display());
        };
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        same_as_file(&path.with_extension("txt"), &(lines.join("\n") + "\n"));
    }
}

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

#[test]
fn the_sample_with_every_key_is_what_the_table_of_keys_makes_of_it() {
    same_as_file(&root().join("config/everything.toml"), &reference::sample());
}

#[test]
fn the_json_schema_is_what_the_table_of_keys_makes_of_it() {
    let schema = format!("{:#}\n", reference::json_schema());
    same_as_file(&root().join("config/trueline.schema.json"), &schema);
}

#[test]
fn the_sample_with_every_key_gives_every_key_its_true_default() {
    let text = fs::read_to_string(root().join("config/everything.toml")).unwrap();
    let outside = Outside {
        variable: &|_| None,
        directory: PathBuf::new(),
    };
    let mut problems = Problems::new("everything.toml", &text);
    let document = document::read(&text, &outside, &mut problems);
    assert!(problems.is_empty());
    for section in keys::SECTIONS {
        let mut record = &document;
        let mut path = String::new();
        for part in section.path.split('.').filter(|p| !p.is_empty()) {
            path = [path.as_str(), part].join(if path.is_empty() { "" } else { "." });
            record = record.child(&path);
        }
        for key in section.keys {
            let entry = record.entry(key.name);
            let shown = text.contains(&format!("\n{} = ", key.name))
                || text.contains(&format!("\n# {} = ", key.name));
            assert!(shown, "{} {} is not shown", section.path, key.name);
            match (key.preset, key.kind) {
                (Preset::Unset(_), _) if keys::CHOSEN.contains(&(section.path, key.name)) => {
                    assert!(entry.given);
                }
                (Preset::Unset(_), _) => assert_eq!(entry.value, Value::Absent),
                // Places differ between the default and the file.
                (_, Kind::List | Kind::Map | Kind::Windows) => assert!(entry.given),
                _ => assert_eq!(entry.value, document::default_of(key), "{}", key.name),
            }
        }
    }
    // Lists and windows, without their places: what binding makes of them.
    assert_eq!(sample("everything.toml").plan, parse(MINIMAL).unwrap().plan);
}

#[test]
fn the_reference_page_is_what_the_table_of_keys_makes_of_it() {
    const BEGIN: &str = "<!-- config reference: trueline check --reference -->\n";
    const END: &str = "<!-- end of config reference -->";
    let path = root().join("config/README.md");
    let readme = fs::read_to_string(&path).expect("config/README.md is there");
    let (before, rest) = readme
        .split_once(BEGIN)
        .expect("it has the marker at which the reference begins");
    let (_, after) = rest
        .split_once(END)
        .expect("the reference has an end marker");
    let current = format!("{before}{BEGIN}\n{}\n{END}{after}", reference::markdown());
    same_as_file(&path, &current);
}

#[test]
fn the_effective_configuration_reads_back_to_the_same_plan_and_shows_no_secret() {
    let text = "version = 1\n[kafka]\nbrokers = \"b:1\"\noptions = { \"ssl.key.password\" = \"hunter2\", \
                \"client.id\" = \"a$${b}\" }\n[kafka.sasl]\nmechanism = \"PLAIN\"\nusername = \"u\"\n\
                password = \"hunter2\"\n[[source]]\ntopics = \"t\"\n[source.fields]\nscore = \"s\"\n\
                [[model]]\nname = \"m\"\nwindows = [{ width = \"10m\", slide = \"2m\" }, { last = 900 }]\n";
    let config = parse(text).unwrap();
    let effective = config.effective();
    assert!(!effective.contains("hunter2"), "{effective}");
    assert!(!format!("{config:?}").contains("hunter2"));
    let again = parse(&effective).unwrap_or_else(|p| panic!("{effective}\n{p:#?}"));
    assert_eq!(again.plan, config.plan);
    assert_eq!(again.effective(), effective);
    assert_eq!(again.sources[0].kafka.options["client.id"], "a${b}");
}

#[test]
fn the_fraud_sample_says_what_its_comments_say() {
    let config = sample("fraud.toml");
    let model = &config.plan.models[0];
    assert_eq!(model.name, "fraud");
    let axis = Axis::Logit {
        low: 1e-6,
        high: 0.5,
    };
    assert_eq!(model.grid.axis(), axis);
    assert_eq!(model.judge.evaluation.tolerance, Tolerance::absolute(0.002));
    assert_eq!(model.judge.pending_ms, 3_600_000);
    let names: Vec<&str> = model
        .ladder
        .windows
        .iter()
        .map(|w| w.name.as_str())
        .collect();
    assert_eq!(names, ["6h", "24h", "7d", "last:200000"]);
    assert_eq!(model.ladder.pane_ms, 1_800_000);
}

#[test]
fn a_named_model_takes_from_the_star_what_it_leaves_out() {
    let config = sample("multiclass.toml");
    let pets = config
        .plan
        .models
        .iter()
        .find(|m| m.name == "pets")
        .unwrap();
    let classes = (0..3).map(View::Class);
    let views: Vec<View> = [View::TopLabel].into_iter().chain(classes).collect();
    assert_eq!(
        pets.views,
        [views, vec![View::TopK(2), View::Kernel]].concat()
    );
    assert_eq!(pets.judge.kernel.sample, 400);
    assert_eq!(pets.judge.evaluation.tolerance, Tolerance::absolute(0.01));
    assert_eq!(pets.judge.min_events, 1_000);
    let images = &config.sources[0];
    assert_eq!(images.decode.model, FieldOrConst::Const("pets".into()));
    assert_eq!(images.decode.classes, ["cat", "dog", "bird"]);
    assert_eq!(
        images.decode.prediction,
        PredictionField::ClassMap("p".into())
    );
    assert_eq!(images.kafka.group, "trueline", "the first source keeps it");
    let second = &config.sources[1];
    assert_eq!(second.kafka.group, format!("trueline.{}", second.name));
}

#[test]
fn a_source_that_names_no_model_has_the_classes_that_its_predictions_can_be_of() {
    let text = |field: &str, second: &str| {
        format!(
            "version = 1\n[kafka]\nbrokers = \"b:9092\"\n[[source]]\ntopics = [\"t\"]\n[source.fields]\n\
             model = \"m\"\n{field}\noutcome = \"y\"\n\
             [[model]]\nname = \"fraud\"\n{second}\n[[model]]\nname = \"images\"\nviews = [\"top_label\"]\nclasses = [\"a\", \"b\", \"c\"]\n"
        )
    };
    let classes = |field: &str, second: &str| {
        let config = parse(&text(field, second)).unwrap();
        config.sources[0].decode.classes.clone()
    };
    let (score, vector) = ("score = \"p\"", "probabilities = \"p\"");
    let two = "classes = [\"no\", \"yes\"]";
    assert_eq!(classes(score, ""), [""; 0]);
    assert_eq!(classes(score, two), ["no", "yes"]);
    assert_eq!(classes(vector, ""), ["a", "b", "c"]);
    let problems = parse(&text(vector, two)).unwrap_err();
    assert!(problems[0].to_string().contains("different `classes`"));
}

#[test]
fn a_source_with_a_fixed_model_is_checked_against_the_section_that_serves_it() {
    let text = |model: &str| {
        format!(
            "version = 1\n[kafka]\nbrokers = \"b:9092\"\n[[source]]\ntopics = [\"t\"]\nmodel = \"{model}\"\n[source.fields]\n\
             id = \"id\"\nscore = \"p\"\noutcome = \"y\"\nweight = \"w\"\n\
             [[model]]\nname = \"own\"\n[[model]]\nname = \"*\"\n[model.compare]\nenabled = true\n"
        )
    };
    // `own` takes `compare` from `*`; of another model the section `*` is the one that is served.
    for model in ["own", "other"] {
        let found = parse(&text(model)).expect_err("weighted events are not compared");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].to_string().contains("events are weighted"),
            "{}",
            found[0]
        );
    }
}

#[test]
fn clusters_go_with_what_can_be_tested_by_cluster_and_are_counted_in_the_bound() {
    let text = |fields: &str, model: &str| {
        format!(
            "version = 1\n[kafka]\nbrokers = \"b:9092\"\n[[source]]\ntopics = [\"t\"]\nmodel = \"m\"\n[source.fields]\n\
             id = \"id\"\nscore = \"p\"\noutcome = \"y\"\n{fields}\n[[model]]\nname = \"m\"\n{model}"
        )
    };
    let cluster = "cluster = \"user\"";
    let clustered = parse(&text(cluster, "")).expect("a sound configuration");
    let plain = parse(&text("", "")).expect("a sound configuration");
    assert!(clustered.plan.models[0].grid.is_clustered());
    assert!(clustered.plan.models[0].judge.detector.is_some());
    assert_eq!(clustered.sources[0].decode.cluster.as_deref(), Some("user"));
    assert!(plain.plan.models[0].grid.is_plain());
    let bound = |config: &Config| MemoryBound::of(config).total();
    // A thousand streams, each with more than one pane of 4096 cells of 16 bytes.
    assert!(bound(&clustered) > bound(&plain) + 1_000 * 4_096 * 16);
    let refused = [
        (
            "cluster = \"user\"\nweight = \"w\"",
            "",
            "together with `weight`",
        ),
        (
            cluster,
            "classes = [\"a\", \"b\"]\nviews = [\"top_label\", \"full\"]",
            "whole vectors",
        ),
        (
            cluster,
            "[model.test]\ncritical = \"theorem\"",
            "`critical` is \"theorem\"",
        ),
        (
            cluster,
            "[model.test]\ndecide_by = \"paper\"",
            "`decide_by` is \"paper\"",
        ),
        (
            cluster,
            "[model.compare]\nenabled = true",
            "events are clustered",
        ),
    ];
    for (fields, model, what) in refused {
        let found = parse(&text(fields, model)).expect_err(what);
        let said: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|s| s.contains(what)), "{what}: {said:?}");
    }
}

#[test]
fn windows_without_a_slide_get_one_that_fits_the_shortest() {
    for (windows, pane_ms) in [
        ("[\"10s\", \"5m\"]", 1_250),
        ("[\"5m\", \"1h\", \"24h\", \"7d\"]", 50_000),
        ("[{ width = \"1m\", slide = \"5s\" }, \"7m\"]", 5_000),
        ("[{ last = 1000 }]", 10_000),
        ("[\"15s\", \"10s\"]", 1_250),
    ] {
        let text = format!("{MINIMAL}[[model]]\nname = \"*\"\nwindows = {windows}\n");
        let config = parse(&text).unwrap_or_else(|p| panic!("{windows}: {p:#?}"));
        let ladder = &config.plan.models[0].ladder;
        assert_eq!(ladder.pane_ms, pane_ms, "{windows}");
        for window in &ladder.windows {
            if let Width::Time { width_ms, slide_ms } = window.width {
                assert_eq!(width_ms % slide_ms, 0, "{windows}");
                assert_eq!(slide_ms % ladder.pane_ms, 0, "{windows}");
            }
        }
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
    let directory = std::env::temp_dir().join(format!("trueline-secret-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("password"), "hunter2\n").unwrap();
    let text = format!(
        "{MINIMAL}[kafka.sasl]\nmechanism = \"PLAIN\"\nusername = \"u\"\npassword_file = \"password\"\n"
    );
    let outside = Outside {
        variable: &|_| None,
        directory: directory.clone(),
    };
    let config = Config::parse(&text, "t.toml", &outside).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    let security = &config.sources[0].kafka.security;
    assert_eq!(security.password.as_deref(), Some("hunter2"));
    assert_eq!(security.protocol.as_deref(), Some("sasl_plaintext"));
    assert_eq!(config.state.directory, directory.join("trueline-state"));
}

#[test]
fn the_memory_bound_of_the_default_is_a_gigabyte_for_a_thousand_streams() {
    let bound = MemoryBound::of(&parse(MINIMAL).unwrap());
    assert_eq!(bound.streams_max, 1000);
    assert!(bound.stream_bytes < 3 << 20, "{bound:?}");
    assert!(bound.total() > bound.queue_bytes);
}

#[test]
fn arbitrary_text_is_refused_or_read_and_never_panics() {
    use proptest::prelude::*;
    let words = prop::sample::select(vec![
        "version = 1\n",
        "[kafka]\n",
        "[[source]]\n",
        "[source.fields]\n",
        "[[model]]\n",
        "name",
        " = ",
        "\"",
        "${",
        "}",
        "[",
        "]",
        "{",
        "windows",
        "last",
        "9223372036854775808",
        "-1",
        "1e999",
        "nan",
        "5m",
        "ä",
        "\n",
        ",",
        "brokers",
        "options",
        "\\u0000",
        "topics",
        "level",
        "'",
    ]);
    let text = prop::collection::vec(words, 0..40).prop_map(|v| v.concat());
    proptest!(ProptestConfig::with_cases(2000), |(text in text)| {
        if let Err(problems) = parse(&text) {
            prop_assert!(!problems.is_empty());
            for p in problems {
                prop_assert!(p.at.line >= 1 && p.at.column >= 1);
                prop_assert!(!p.what.is_empty() && !p.remedy.is_empty());
            }
        }
    });
}

/// Runs `trueline check` and answers with its exit code and what it wrote to both outputs.
fn check(config: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trueline"));
    command.arg("check").arg("--config").arg(config).args(more);
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
fn check_ends_with_69_and_names_the_broker_the_directory_and_the_address_that_fail() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // A port that nobody listens on: bound for a moment, then let go.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let broker = closed.local_addr().unwrap();
    drop(closed);
    let directory = std::env::temp_dir().join(format!("trueline-check-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join("trueline.toml");
    let text = MINIMAL.replace("b:1", &broker.to_string());
    let listen = taken.local_addr().unwrap();
    let rest = format!("[http]\nlisten = \"{listen}\"\n[state]\ndirectory = \"trueline.toml/x\"\n");
    fs::write(&file, text + &rest).unwrap();
    let (code, said) = check(&file, &["--timeout", "2s"]);
    fs::remove_dir_all(&directory).unwrap();
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
