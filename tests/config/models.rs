//! What a source and the section of its model make of each other: classes, clusters, windows,
//! memory.

use crate::{MINIMAL, parse};
use trueline::config::Config;
use trueline::config::bounds::MemoryBound;
use trueline::window::Width;

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
fn a_source_that_names_no_model_has_the_classes_that_its_predictions_can_be_of() {
    let text = |field: &str, second: &str| {
        format!(
            "version = 1\n[kafka]\nbrokers = \"b:9092\"\n[[source]]\ntopics = [\"t\"]\n[source.fields]\n\
             model = \"m\"\n{field}\noutcome = \"y\"\n\
             [[source]]\ntopics = [\"i\"]\nmodel = \"images\"\n[source.fields]\nprobabilities = \"p\"\n\
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
             id = \"id\"\nversion = \"v\"\nscore = \"p\"\noutcome = \"y\"\nweight = \"w\"\n\
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

/// Each of them is valid alone and would do nothing, or not what it says.
#[test]
fn a_setting_without_effect_is_refused_and_one_that_a_model_switches_off_is_not() {
    let text = |brokers: &str, fields: &str, more: &str| {
        format!(
            "version = 1\n[kafka]\nbrokers = \"{brokers}\"\n[[source]]\ntopics = [\"t\"]\n[source.fields]\n\
             score = \"p\"\nid = \"id\"\n{fields}\n{more}"
        )
    };
    let compared = "[[model]]\nname = \"*\"\n[model.compare]\nenabled = true\n";
    let champion = format!("{compared}champion = \"1\"\n");
    let off = "[[model]]\nname = \"m\"\n[model.compare]\nenabled = false\n";
    let one = "[[model]]\nname = \"m\"\nclasses = [\"a\"]\n";
    let version = "version = \"v\"";
    let streams = |budget: &str| format!("[detector]\nstreams = 10\nbudget = \"{budget}\"\n");
    for (brokers, fields, more, what) in [
        ("b:1", "", compared, "has versions"),
        (
            "b:1",
            version,
            champion.replace("enabled = true\n", "").as_str(),
            "`champion` is set",
        ),
        (
            "b:1",
            "",
            streams("5% ever").as_str(),
            "`streams` divides a budget of time",
        ),
        (
            "b:1",
            "",
            streams("2000000 events").as_str(),
            "`streams` divides a budget of time, and `budget` is not one",
        ),
        (
            "b:1",
            "segments = [\"a\", \"b\", \"a\"]",
            "",
            "segment `a` is named twice",
        ),
        ("b:1", "", one, "two classes, not 1"),
        ("a:1 b:1", "", "", "has a space within a broker"),
        ("a:1,b:99999", "", "", "`99999` is no port of a broker"),
        ("a:", "", "", "`` is no port of a broker"),
    ] {
        let found = parse(&text(brokers, fields, more)).expect_err(what);
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        let said = found[0].to_string();
        assert!(said.contains(what), "{what}: {said}");
    }
    for (brokers, fields, more) in [
        ("a:1, b:1,", version, compared),
        ("a, [::1], [::1]:9092, SSL://c:1", "", ""),
        ("b:1", version, format!("{champion}{off}").as_str()),
        (
            "b:1",
            "segments = [\"a\", \"b\"]",
            streams("1 per 30d").as_str(),
        ),
        ("b:1", "", streams("none").as_str()),
    ] {
        let read = parse(&text(brokers, fields, more));
        assert!(read.is_ok(), "{more}: {:?}", read.err());
    }
    let fixed = text("b:1", "", compared)
        .replace("[source.fields]", "model_version = \"1\"\n[source.fields]");
    assert!(parse(&fixed).is_ok());
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
fn the_memory_bound_of_the_default_is_a_gigabyte_for_a_thousand_streams() {
    let bound = MemoryBound::of(&parse(MINIMAL).unwrap());
    assert_eq!(bound.streams_max, 1000);
    assert!(bound.stream_bytes < 3 << 20, "{bound:?}");
    assert!(bound.total() > bound.queue_bytes);
}

#[test]
fn a_window_longer_than_the_expiry_of_streams_is_sound() {
    let text = format!("{MINIMAL}[[model]]\nname = \"*\"\nwindows = [\"30d\"]\n");
    let config = parse(&text).expect("a stream stays as long as its longest window");
    let ladder = &config.plan.models[0].ladder;
    let expire_after_ms = config.plan.caps.expire_after_ms;
    let day = 86_400_000;
    assert!(!ladder.is_past(0, 30 * day, expire_after_ms));
}
