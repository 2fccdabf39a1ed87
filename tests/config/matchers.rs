//! What matchers of sinks and silences mean to the models of the file.

use crate::parse;
use trueline::alert::Matcher;
use trueline::config::{Config, Problem};

const MODELS: &str = r#"
[[model]]
name = "triage"
classes = ["none", "benign", "malignant"]
views = ["class:malignant", "class:none", "top_label"]

[[model]]
name = "stars"
classes = ["1", "2", "3"]
views = ["class:3", "class:1"]

[[model]]
name = "pets"
classes = ["malignant", "dog", "none"]
views = ["class:malignant", "class:dog"]
"#;

/// Models with a source of their own each, and a sink.
fn with_sink(models: &str, matchers: &[&str]) -> Result<Config, Vec<Problem>> {
    let names = models
        .lines()
        .filter_map(|line| line.strip_prefix("name = "));
    let sources = names.map(|name| {
        let name = name.replace('*', "any");
        format!(
            "[[source]]\ntopics = {name}\nmodel = {name}\nfields = {{ probabilities = \"p\" }}\n"
        )
    });
    let sources: String = sources.collect();
    parse(&format!(
        "version = 1\n[kafka]\nbrokers = \"b:1\"\n{sources}{models}[[sink]]\nname = \"doctor\"\n\
         kind = \"webhook\"\nurl = \"http://b\"\nmatch = {matchers:?}\n"
    ))
}

fn kept(config: &Config) -> Vec<String> {
    let matchers = config.notify.sinks[0].matchers.iter();
    matchers.map(ToString::to_string).collect()
}

#[test]
fn a_class_in_a_matcher_is_the_number_that_alerts_show() {
    let cases: [(&[&str], &[&str]); 9] = [
        (
            &["model=triage", "view=class:malignant"],
            &["model=triage", "view=class:2"],
        ),
        (
            &["view!=class:malignant", "model=pets"],
            &["view!=class:0", "model=pets"],
        ),
        (
            &["model=tri*", "view=class:malignant"],
            &["model=tri*", "view=class:2"],
        ),
        (
            &["model!=pets", "view=class:malignant"],
            &["model!=pets", "view=class:2"],
        ),
        // `pets` has such a class, and no view of it.
        (&["view=class:none"], &["view=class:0"]),
        (&["view=class:dog"], &["view=class:1"]),
        // A number is the one that is shown, if one of them is.
        (
            &["model=stars", "view=class:2"],
            &["model=stars", "view=class:2"],
        ),
        (
            &["model=stars", "view=class:3"],
            &["model=stars", "view=class:2"],
        ),
        (
            &["view=class:*", "segment=class:malignant"],
            &["view=class:*", "segment=class:malignant"],
        ),
    ];
    for (written, meant) in cases {
        let config = with_sink(MODELS, written).unwrap_or_else(|p| panic!("{written:?}: {p:#?}"));
        assert_eq!(kept(&config), meant, "{written:?}");
        // A silence means the same.
        let list: Vec<Matcher> = written.iter().map(|m| m.parse().unwrap()).collect();
        let silence = config.plan.resolve_matchers(&list).unwrap();
        let silence: Vec<String> = silence.iter().map(ToString::to_string).collect();
        assert_eq!(silence, meant, "{written:?}");
    }
}

#[test]
fn the_default_model_may_have_any_name_and_its_classes() {
    let models =
        "[[model]]\nname = \"*\"\nclasses = [\"a\", \"b\", \"c\"]\nviews = [\"class:c\"]\n";
    let config = with_sink(models, &["model=anything", "view=class:c"]).unwrap();
    assert_eq!(kept(&config), ["model=anything", "view=class:2"]);
    let problems = with_sink(models, &["view=binary"]).unwrap_err();
    assert!(
        problems[0].what.contains("the view `binary`"),
        "{problems:?}"
    );
}

/// The models in force stay until the restart, and a sink that means a new one comes before.
#[test]
fn a_reload_takes_a_sink_of_a_model_that_needs_a_restart() {
    let in_force = with_sink(MODELS, &[]).unwrap().in_force();
    let more = format!("{MODELS}[[model]]\nname = \"new\"\n");
    let new = with_sink(&more, &["model=new"]).unwrap();
    let live = in_force.with_live(&new).unwrap();
    assert_eq!(kept(&live), ["model=new"]);
}
