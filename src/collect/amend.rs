//! What late outcomes change about predictions that were counted or left out at maturity.
//!
//! Changes of scores are gathered by stream and pane, as sums to subtract and sums to add; changes
//! of vectors are a list in the order in which outcomes came. The holder of the sealed panes takes
//! both and applies them exactly.

use super::join::{JoinPlan, Revision};
use super::shape::ModelShape;
use crate::stats::attribute::Attribute;
use crate::stats::fixed::Score;
use crate::stats::multiclass::ranked::Ranked;
use crate::stats::stored::checked;
use crate::stats::sums::Sums;
use crate::stats::weight::Weight;
use crate::window::Correction;
use crate::window::{FullVector, RetainedVector};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A mature prediction that gets an outcome late, for one view.
#[derive(Debug, Clone, Copy)]
struct Amended {
    score: Score,
    before: Option<bool>,
    now: bool,
    /// Whether `before` is an implied outcome.
    implied: bool,
    attribute: Attribute,
}

/// Amended predictions.
#[derive(Debug, Clone, Default)]
pub(super) struct Amendments {
    /// One list for each slot and pane; the views of a prediction are adjacent.
    scores: BTreeMap<(usize, i64), Vec<Amended>>,
    vectors: Vec<LateVector>,
}

/// A late outcome of a prediction with vector views.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LateVector {
    /// Slot of its stream.
    #[serde(skip)]
    pub slot: usize,
    /// Source of the prediction.
    pub source: u16,
    /// Event time of the prediction.
    #[serde(deserialize_with = "checked")]
    pub time_ms: i64,
    /// Its largest probabilities.
    values: Vec<f64>,
    classes: Vec<u32>,
    /// Its rank and all of its probabilities, if they are kept.
    whole: Option<(u64, Vec<f64>)>,
    /// Its weight, if events have weights.
    #[serde(with = "fixed")]
    weight: Option<Weight>,
    /// The class with which the prediction was counted, if it was.
    pub before: Option<u32>,
    /// Whether `before` was implied.
    pub implied: bool,
    /// The class that happened.
    pub now: u32,
}

/// A weight as its number of units.
mod fixed {
    use super::Weight;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(weight: &Option<Weight>, to: S) -> Result<S::Ok, S::Error> {
        weight.map(Weight::fixed).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Weight>, D::Error> {
        let fixed: Option<u32> = Option::deserialize(from)?;
        Ok(fixed.and_then(Weight::from_fixed))
    }
}

impl LateVector {
    /// Bytes, approximately.
    pub fn bytes(&self) -> usize {
        let whole = self.whole.as_ref().map_or(0, |(_, row)| row.len());
        12 * self.values.len() + 8 * whole
    }

    /// Its vector.
    pub fn vector(&self) -> RetainedVector<'_> {
        RetainedVector {
            ranked: Ranked {
                values: &self.values,
                classes: &self.classes,
            },
            whole: (self.whole.as_ref()).map(|(rank, row)| FullVector { rank: *rank, row }),
            weight: self.weight,
        }
    }
}

impl Amendments {
    /// Takes out the changes to sealed panes, by slot, one correction for each view.
    pub(super) fn take_corrections<'m>(
        &mut self,
        shape_of: impl Fn(usize) -> Option<&'m ModelShape>,
    ) -> Vec<(usize, Vec<Correction>)> {
        let all = std::mem::take(&mut self.scores).into_iter();
        let correct = |((slot, start_ms), amended): ((usize, i64), Vec<Amended>)| {
            let shape = shape_of(slot)?;
            let views = shape.views.len();
            let correction = |view| {
                let mine = amended.iter().skip(view).step_by(views);
                correction(start_ms, mine, Sums::new(shape.grid))
            };
            Some((slot, (0..views).map(correction).collect()))
        };
        all.filter_map(correct).collect()
    }

    /// Takes out the late outcomes of vector views, in the order in which they came.
    pub(super) fn take_vectors(&mut self) -> Vec<LateVector> {
        std::mem::take(&mut self.vectors)
    }

    pub(super) fn add(&mut self, plan: &JoinPlan, r: Revision<'_>, models: &[ModelShape]) {
        let Some(shape) = models.get(usize::from(r.now.model)) else {
            return;
        };
        let attribute = shape.attribute_kept(&r.now);
        let implied = plan.missing.class().filter(|_| r.before.is_none());
        let before = r.before.or(implied);
        let now = r.now.outcome.unwrap_or_default();
        let old = r.now.against(before.unwrap_or(now));
        if shape.has_vectors() {
            let (ranked, mut row) = (r.now.ranked(shape.row_layout()), Vec::new());
            let whole = r
                .now
                .full_vector(shape.row_layout(), shape.classes, &mut row);
            let rank = whole.map(|w| w.rank);
            self.vectors.push(LateVector {
                slot: r.now.slot as usize,
                source: plan.predictions,
                time_ms: r.now.time_ms,
                values: ranked.values.to_vec(),
                classes: ranked.classes.to_vec(),
                whole: rank.map(|rank| (rank, row)),
                weight: attribute.weight(),
                before,
                implied: implied.is_some(),
                now,
            });
        }
        let list = self
            .scores
            .entry((r.now.slot as usize, r.now.start_ms))
            .or_default();
        let both = r.now.against(now).zip(old).take(shape.views.len());
        for ((score, now), (_, was)) in both {
            list.push(Amended {
                score,
                before: before.map(|_| was),
                now,
                implied: implied.is_some(),
                attribute,
            });
        }
    }
}

fn correction<'a>(
    start_ms: i64,
    amended: impl Iterator<Item = &'a Amended>,
    empty: Sums,
) -> Correction {
    let (mut minus, mut plus, mut labelled) = (empty.clone(), empty, Vec::new());
    for a in amended {
        // These sums hold no more events than the pane, which did not overflow.
        let add = |sums: &mut Sums, outcome| sums.observe_with(a.score, outcome, a.attribute);
        let _ = add(&mut plus, a.now);
        match a.before {
            Some(before) => {
                let _ = add(&mut minus, before);
                if a.implied {
                    labelled.push((a.score.value(), true));
                }
            }
            None => labelled.push((a.score.value(), false)),
        }
    }
    Correction {
        start_ms,
        minus,
        plus,
        labelled,
    }
}
