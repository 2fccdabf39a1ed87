//! The demo's models, whose truth is known.
//!
//! Each model draws log-odds, computes from them the *predicted* score and the *true* probability,
//! and draws the outcome from the latter. If the two agree, the model is calibrated by
//! construction, whatever the distribution of its scores. If they differ, the size of the error is
//! known. It is far above the tolerance in the demo's configuration, so a wrong verdict is a bug.

use std::fmt::Write;

use crate::stats::kernel::conditional::draw as draw_class;
use crate::stats::rng::Rng;

/// When the drifting model starts to drift, milliseconds after the demo's start.
pub const DRIFT_AFTER_MS: i64 = 20_000;
/// Classes of the multi-class models.
pub const CLASSES: [&str; 5] = ["cat", "dog", "horse", "owl", "whale"];

/// The shape of a model's records; each shape has a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One probability, topic [`SCORES`](super::config::SCORES).
    Score,
    /// One probability per class, topic [`CLASSES`](super::config::CLASSES).
    Vector,
}

/// The relation between a model's prediction and the truth. `l` are the true log-odds, normal with
/// the first two numbers as mean and standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Law {
    /// (mean, sd, temper): predicts logistic(temper · l), which is calibrated at 1, over-confident
    /// above and under-confident below.
    Binary(f64, f64, f64),
    /// (mean, sd, shift): predicts logistic(l); the truth is logistic(l + shift) once the drift has
    /// started.
    Drifting(f64, f64, f64),
    /// (mean, sd, factor): predicts logistic(l); the truth is `factor` times that.
    Rare(f64, f64, f64),
    /// (spread, temper): predicts softmax(temper · g); the truth is softmax(g), where g is normal
    /// with mean 0 and standard deviation `spread`.
    Classes(f64, f64),
}

/// One synthetic model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// Name in the records.
    pub name: &'static str,
    /// The truth in words, for the table.
    pub truth: &'static str,
    law: Law,
}

const fn model(name: &'static str, truth: &'static str, law: Law) -> Model {
    Model { name, truth, law }
}

/// All models, in the order of the table.
pub const MODELS: [Model; 7] = [
    model("credit_default", "calibrated", Law::Binary(-1.0, 1.2, 1.0)),
    model("churn", "over-confident", Law::Binary(0.0, 1.2, 2.0)),
    model("readmission", "under-confident", Law::Binary(0.0, 2.0, 0.5)),
    model(
        "clicks",
        "good, drifts at 20 s",
        Law::Drifting(-0.5, 1.0, 0.8),
    ),
    // Mean score 1 %: exp(-4.9 + 0.75²/2) = 0.0099.
    model(
        "card_fraud",
        "1 % predicted, 2 % true",
        Law::Rare(-4.9, 0.75, 2.0),
    ),
    model("animals", "over-confident", Law::Classes(1.0, 2.0)),
    model("animals_tempered", "calibrated", Law::Classes(1.5, 1.0)),
];

/// The right verdict on a model at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Calibrated.
    Calibrated,
    /// Miscalibrated.
    Miscalibrated,
    /// Any verdict is accepted: the window has events from both sides of the drift, or two windows
    /// after the drift are not over yet.
    Either,
}

impl Model {
    /// The shape of the model's records.
    pub fn shape(&self) -> Shape {
        match self.law {
            Law::Classes(..) => Shape::Vector,
            _ => Shape::Score,
        }
    }

    /// Whether the model is calibrated at first and drifts later.
    pub fn drifts(&self) -> bool {
        matches!(self.law, Law::Drifting(..))
    }

    /// The right verdict on a window of this width that ends `end_ms` after the start of the demo.
    pub fn expected(&self, end_ms: i64, width_ms: i64) -> Expected {
        match self.law {
            Law::Binary(.., temper) | Law::Classes(_, temper) if temper == 1.0 => {
                Expected::Calibrated
            }
            Law::Drifting(..) if end_ms <= DRIFT_AFTER_MS => Expected::Calibrated,
            Law::Drifting(..) if end_ms < DRIFT_AFTER_MS + 2 * width_ms => Expected::Either,
            _ => Expected::Miscalibrated,
        }
    }

    /// Appends one event as a JSON object; it happens at `time_ms`, `since_ms` after the start of
    /// the demo.
    pub fn event(&self, since_ms: i64, time_ms: i64, draws: &mut Rng, out: &mut String) {
        let name = self.name;
        // Writing to a String cannot fail.
        let _ = write!(out, r#"{{"model":"{name}","version":"1","ts":{time_ms},"#);
        match self.law {
            Law::Classes(spread, temper) => classes(spread, temper, draws, out),
            law => {
                let (predicted, happened) = binary(law, since_ms, draws);
                let _ = write!(
                    out,
                    r#""score":{predicted:.7},"outcome":{}}}"#,
                    happened as u8
                );
            }
        }
    }
}

/// The predicted score, and the outcome.
fn binary(law: Law, since_ms: i64, draws: &mut Rng) -> (f64, bool) {
    let (predicted, truth) = match law {
        Law::Binary(mean, sd, temper) => {
            let l = mean + sd * draws.normal();
            (logistic(temper * l), logistic(l))
        }
        Law::Drifting(mean, sd, shift) => {
            let l = mean + sd * draws.normal();
            let moved = if since_ms < DRIFT_AFTER_MS {
                l
            } else {
                l + shift
            };
            (logistic(l), logistic(moved))
        }
        Law::Rare(mean, sd, factor) => {
            let l = mean + sd * draws.normal();
            (logistic(l), (factor * logistic(l)).min(1.0))
        }
        // This model has no single score; a fair coin keeps the function total.
        Law::Classes(..) => (0.5, 0.5),
    };
    (predicted, draws.uniform() < truth)
}

/// Appends the rest of a multi-class record: the predicted probabilities, and the class of the
/// outcome.
fn classes(spread: f64, temper: f64, draws: &mut Rng, out: &mut String) {
    let odds: [f64; CLASSES.len()] = std::array::from_fn(|_| spread * draws.normal());
    let predicted = softmax(odds.map(|g| temper * g));
    let happened = CLASSES[draw_class(&softmax(odds), draws.uniform()) as usize];
    out.push_str(r#""probabilities":["#);
    for (index, p) in predicted.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(out, "{comma}{p:.7}");
    }
    let _ = write!(out, r#"],"outcome":"{happened}"}}"#);
}

fn logistic(l: f64) -> f64 {
    1.0 / (1.0 + (-l).exp())
}

fn softmax<const K: usize>(logits: [f64; K]) -> [f64; K] {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights = logits.map(|g| (g - largest).exp());
    let sum: f64 = weights.iter().sum();
    weights.map(|w| w / sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(name: &str, since_ms: i64) -> (f64, f64) {
        let model = MODELS.iter().find(|m| m.name == name).unwrap();
        let mut draws = Rng::new(3);
        let (mut said, mut happened) = (0.0, 0.0);
        for _ in 0..100_000 {
            let (z, y) = binary(model.law, since_ms, &mut draws);
            said += z;
            happened += f64::from(y);
        }
        (said / 1e5, happened / 1e5)
    }

    #[test]
    fn the_rare_event_model_predicts_one_percent_and_two_happen() {
        let (said, happened) = mean_of("card_fraud", 0);
        assert!((said - 0.01).abs() < 0.001, "{said}");
        assert!((happened / said - 2.0).abs() < 0.15, "{happened} {said}");
    }

    #[test]
    fn the_drifting_model_is_calibrated_until_it_drifts() {
        let (said, happened) = mean_of("clicks", DRIFT_AFTER_MS - 1);
        assert!((happened - said).abs() < 0.006, "{happened} {said}");
        let (said, happened) = mean_of("clicks", DRIFT_AFTER_MS);
        assert!(happened - said > 0.1, "{happened} {said}");
    }

    #[test]
    fn every_model_writes_json_with_its_fields() {
        for model in MODELS {
            let mut text = String::new();
            model.event(5, 1_700_000_000_123, &mut Rng::new(9), &mut text);
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["model"], model.name);
            assert_eq!(value["ts"], 1_700_000_000_123_i64);
            match model.shape() {
                Shape::Score => assert!(value["score"].is_f64() && value["outcome"].is_u64()),
                Shape::Vector => {
                    let p = value["probabilities"].as_array().unwrap();
                    let sum: f64 = p.iter().filter_map(serde_json::Value::as_f64).sum();
                    assert!(p.len() == CLASSES.len() && (sum - 1.0).abs() < 1e-5);
                    assert!(CLASSES.contains(&value["outcome"].as_str().unwrap()));
                }
            }
        }
    }

    #[test]
    fn any_verdict_is_right_for_two_windows_after_the_drift() {
        let clicks = MODELS.iter().find(|m| m.drifts()).unwrap();
        assert_eq!(clicks.expected(20_000, 10_000), Expected::Calibrated);
        assert_eq!(clicks.expected(22_000, 10_000), Expected::Either);
        assert_eq!(clicks.expected(38_000, 10_000), Expected::Either);
        assert_eq!(clicks.expected(40_000, 10_000), Expected::Miscalibrated);
    }
}
