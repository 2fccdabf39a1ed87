//! The demo's models: a law of scores, a law of outcomes, and therefore a truth.
//!
//! Each model draws a log-odds, turns it into the score that it *says* and the probability that is
//! *true*, and draws the outcome from the latter. Where the two agree the model is calibrated by
//! construction, whatever the distribution of its scores; where they differ, the size of the error is
//! known, and is far above the tolerance in the demo's configuration, so that a wrong verdict is a
//! fault of the program and not a matter of taste.

use std::fmt::Write;

use super::chance::Chance;

/// When the drifting model starts to drift, milliseconds after the demo's start.
pub const DRIFT_AFTER_MS: i64 = 20_000;
/// Classes of the multi-class models.
pub const CLASSES: [&str; 5] = ["cat", "dog", "horse", "owl", "whale"];

/// Where a model's records go: one topic a shape of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One probability, topic [`SCORES`](super::config::SCORES).
    Score,
    /// One probability a class, topic [`CLASSES`](super::config::CLASSES).
    Vector,
}

/// How what a model says and what is true hang together. `l` is the log-odds of the truth.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Law {
    /// Says logistic(temper · l): calibrated at 1, over-confident above, under-confident below.
    Binary { mean: f64, sd: f64, temper: f64 },
    /// Says logistic(l); from the drift on logistic(l + shift) is true.
    Drifting { mean: f64, sd: f64, shift: f64 },
    /// Says logistic(l), true is that times `factor`.
    Rare { mean: f64, sd: f64, factor: f64 },
    /// Says softmax(temper · g), true is softmax(g), g normal with that spread.
    Classes { spread: f64, temper: f64 },
}

/// One synthetic model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// Name, as in the records.
    pub name: &'static str,
    /// The truth in words, for the table.
    pub truth: &'static str,
    law: Law,
}

/// All models, in the order of the table.
pub const MODELS: [Model; 7] = [
    Model {
        name: "credit_default",
        truth: "calibrated",
        law: Law::Binary {
            mean: -1.0,
            sd: 1.2,
            temper: 1.0,
        },
    },
    Model {
        name: "churn",
        truth: "over-confident",
        law: Law::Binary {
            mean: 0.0,
            sd: 1.2,
            temper: 2.0,
        },
    },
    Model {
        name: "readmission",
        truth: "under-confident",
        law: Law::Binary {
            mean: 0.0,
            sd: 2.0,
            temper: 0.5,
        },
    },
    Model {
        name: "clicks",
        truth: "good, drifts at 20 s",
        law: Law::Drifting {
            mean: -0.5,
            sd: 1.0,
            shift: 0.8,
        },
    },
    // Mean score 1 %: exp(-4.9 + 0.75²/2) = 0.0099.
    Model {
        name: "card_fraud",
        truth: "1 % said, 2 % true",
        law: Law::Rare {
            mean: -4.9,
            sd: 0.75,
            factor: 2.0,
        },
    },
    Model {
        name: "animals",
        truth: "over-confident",
        law: Law::Classes {
            spread: 1.0,
            temper: 2.0,
        },
    },
    Model {
        name: "animals_tempered",
        truth: "calibrated",
        law: Law::Classes {
            spread: 1.5,
            temper: 1.0,
        },
    },
];

/// What the verdict on a model has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Calibrated.
    Calibrated,
    /// Miscalibrated.
    Miscalibrated,
    /// The window holds events from both sides of the drift, or the two windows of grace run.
    Either,
}

impl Model {
    /// Which topic the model's records go to.
    pub fn shape(&self) -> Shape {
        match self.law {
            Law::Classes { .. } => Shape::Vector,
            _ => Shape::Score,
        }
    }

    /// Whether the model is good at first and drifts later.
    pub fn drifts(&self) -> bool {
        matches!(self.law, Law::Drifting { .. })
    }

    /// What a verdict must be on a window of that width that ends `end_ms` after the demo's start.
    pub fn expected(&self, end_ms: i64, width_ms: i64) -> Expected {
        match self.law {
            Law::Binary { temper, .. } | Law::Classes { temper, .. } if temper == 1.0 => {
                Expected::Calibrated
            }
            Law::Drifting { .. } if end_ms <= DRIFT_AFTER_MS => Expected::Calibrated,
            Law::Drifting { .. } if end_ms < DRIFT_AFTER_MS + 2 * width_ms => Expected::Either,
            _ => Expected::Miscalibrated,
        }
    }

    /// Appends one event, as a JSON object, that happens `since_ms` after the demo's start at `time_ms`.
    pub fn event(&self, since_ms: i64, time_ms: i64, chance: &mut Chance, out: &mut String) {
        let name = self.name;
        // Writing to a String cannot fail.
        let _ = write!(out, r#"{{"model":"{name}","version":"1","ts":{time_ms},"#);
        match self.law {
            Law::Classes { spread, temper } => classes(spread, temper, chance, out),
            law => {
                let (said, happened) = binary(law, since_ms, chance);
                let _ = write!(out, r#""score":{said:.7},"outcome":{}}}"#, happened as u8);
            }
        }
    }
}

/// The score that is said and the outcome that happens.
fn binary(law: Law, since_ms: i64, chance: &mut Chance) -> (f64, bool) {
    let (said, truth) = match law {
        Law::Binary { mean, sd, temper } => {
            let l = chance.normal(mean, sd);
            (logistic(temper * l), logistic(l))
        }
        Law::Drifting { mean, sd, shift } => {
            let l = chance.normal(mean, sd);
            let moved = if since_ms < DRIFT_AFTER_MS {
                l
            } else {
                l + shift
            };
            (logistic(l), logistic(moved))
        }
        Law::Rare { mean, sd, factor } => {
            let l = chance.normal(mean, sd);
            (logistic(l), (factor * logistic(l)).min(1.0))
        }
        // Has no single score; a fair coin that says so keeps the function total.
        Law::Classes { .. } => (0.5, 0.5),
    };
    (said, chance.coin(truth))
}

/// The rest of a multi-class record: the probabilities that are said, and the class that happens.
fn classes(spread: f64, temper: f64, chance: &mut Chance, out: &mut String) {
    let odds: [f64; CLASSES.len()] = std::array::from_fn(|_| chance.normal(0.0, spread));
    let said = softmax(odds.map(|g| temper * g));
    let happened = CLASSES[chance.choose(&softmax(odds))];
    out.push_str(r#""probabilities":["#);
    for (index, p) in said.iter().enumerate() {
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
        let mut chance = Chance::new(3);
        let (mut said, mut happened) = (0.0, 0.0);
        for _ in 0..100_000 {
            let (z, y) = binary(model.law, since_ms, &mut chance);
            said += z;
            happened += f64::from(y);
        }
        (said / 1e5, happened / 1e5)
    }

    #[test]
    fn the_rare_event_model_says_one_percent_and_two_happen() {
        let (said, happened) = mean_of("card_fraud", 0);
        assert!((said - 0.01).abs() < 0.001, "{said}");
        assert!((happened / said - 2.0).abs() < 0.15, "{happened} {said}");
    }

    #[test]
    fn the_drifting_model_is_good_until_it_drifts() {
        let (said, happened) = mean_of("clicks", DRIFT_AFTER_MS - 1);
        assert!((happened - said).abs() < 0.006, "{happened} {said}");
        let (said, happened) = mean_of("clicks", DRIFT_AFTER_MS);
        assert!(happened - said > 0.1, "{happened} {said}");
    }

    #[test]
    fn every_model_makes_json_with_its_fields() {
        for model in MODELS {
            let mut text = String::new();
            model.event(5, 1_700_000_000_123, &mut Chance::new(9), &mut text);
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
    fn the_drifting_model_has_two_windows_of_grace() {
        let clicks = MODELS.iter().find(|m| m.drifts()).unwrap();
        assert_eq!(clicks.expected(20_000, 10_000), Expected::Calibrated);
        assert_eq!(clicks.expected(22_000, 10_000), Expected::Either);
        assert_eq!(clicks.expected(38_000, 10_000), Expected::Either);
        assert_eq!(clicks.expected(40_000, 10_000), Expected::Miscalibrated);
    }
}
