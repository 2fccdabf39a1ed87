//! Every sample loads and says what its comments say.

use crate::{root, sample};
use std::fs;
use trueline::collect::join::Missing;
use trueline::config::bounds::MemoryBound;
use trueline::decode::{FieldOrConst, PredictionField};
use trueline::stats::axis::Axis;
use trueline::stats::tolerance::Tolerance;
use trueline::stats::view::View;

#[test]
fn every_sample_loads() {
    for entry in fs::read_dir(root().join("config")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".toml") {
            sample(&name);
        }
    }
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
    let tolerance = "20%".parse::<Tolerance>().unwrap();
    assert_eq!(model.judge.evaluation.tolerance, tolerance);
    assert_eq!(model.judge.pending_ms, 3_600_000);
    let names: Vec<&str> = model
        .ladder
        .windows
        .iter()
        .map(|w| w.name.as_str())
        .collect();
    assert_eq!(names, ["6h", "24h", "7d", "last:400000"]);
    assert_eq!(model.ladder.pane_ms, 1_800_000);
}

#[test]
fn the_samples_of_fraud_bound_memory_and_that_of_chargebacks_counts_what_is_not_sent() {
    for name in ["fraud.toml", "chargebacks.toml"] {
        let bound = MemoryBound::of(&sample(name)).total();
        assert!(bound < 16 << 30, "{name}: {bound}");
    }
    let config = sample("chargebacks.toml");
    let join = &config.plan.joins[0];
    assert_eq!(join.missing, Missing::Class(0));
    assert_eq!(join.maturity_ms, 30 * 86_400_000);
    assert!(config.plan.models[0].judge.detector.is_some());
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
    assert_eq!(
        pets.judge.evaluation.tolerance,
        "0.01 or 20%".parse().unwrap()
    );
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
