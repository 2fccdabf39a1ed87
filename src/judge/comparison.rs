//! Comparisons of the versions of a model, from the pairs of sealed panes.
//!
//! There is one comparison for each model, view and pair of versions, from their first pair on.
//! [`crate::stats::sequential::paired`] has the statistic and its guarantee. Only the views
//! `binary` and `class:k` are compared, because their outcome does not depend on the version. The
//! outcome of `top_label` is whether the version itself was right, so two versions are not scored
//! on the same outcome there.
//!
//! If partitions move between processes, each partition pairs and learns separately, and a process
//! reports the sum over its partitions. For the Brier score and in the large this sum equals, to
//! the bit, that of a process that has read all partitions. For calibration it uses one
//! recalibrator per partition. The guarantee holds for a fixed set of partitions. When the set
//! changes, for reasons that do not depend on outcomes, a new sequence begins.
//!
//! Always: at most [`COMPARISONS_MAX`] for each plan of models; another takes the place of the one
//! whose last pair is oldest.

use crate::collect::pairing::MatchedPairs;
use crate::stats::axis::Grid;
use crate::stats::sequential::drift::{Drift, Squares};
use crate::stats::sequential::paired::{CELLS, Side};
use crate::stats::sequential::{Compared, Paired};
use crate::stats::stored::checked;
use crate::stats::view::View;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most comparisons of a plan of models: 4 MB.
pub const COMPARISONS_MAX: usize = 1000;

/// How versions are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareOptions {
    /// The version to which all others are compared; `None`: each to each.
    pub champion: Option<String>,
    /// How far apart in event time two versions may score one id.
    pub wait_ms: i64,
    /// Most rows held.
    pub rows_max: usize,
    /// One minus the confidence of each interval.
    pub alpha: f64,
}

impl CompareOptions {
    /// Whether two versions have the same outcome in a view.
    pub fn takes(view: View) -> bool {
        matches!(view, View::Binary | View::Class(_))
    }
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComparisonId {
    /// Name of the model.
    pub model: String,
    /// View.
    pub view: View,
    /// The version that the other one is compared to.
    pub champion: String,
    /// The version that is compared.
    pub challenger: String,
}

/// The report of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonReport {
    /// What is compared.
    pub id: ComparisonId,
    /// Start of the first pane with a pair.
    pub since_ms: i64,
    /// Start of the last pane with a pair.
    pub last_ms: i64,
    /// Confidence of each interval.
    pub confidence: f64,
    /// The differences.
    pub compared: Compared,
}

#[derive(Debug, Clone, PartialEq)]
struct Comparison {
    since_ms: i64,
    last_ms: i64,
    paired: Paired,
}

/// All comparisons of one plan of models.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparisons(BTreeMap<ComparisonId, Comparison>);

impl Comparisons {
    /// Takes the pairs of a sealed pane.
    pub fn observe(&mut self, view: View, m: &MatchedPairs<'_>, grid: Grid) {
        let id = ComparisonId {
            model: m.model.to_owned(),
            view,
            champion: m.champion.to_owned(),
            challenger: m.challenger.to_owned(),
        };
        self.make_room(&id);
        let comparison = self.0.entry(id).or_insert_with(|| Comparison {
            since_ms: m.start_ms,
            last_ms: m.start_ms,
            paired: Paired::default(),
        });
        comparison.last_ms = m.start_ms;
        comparison.paired.observe(m.pairs, grid);
    }

    /// Adds the comparisons of another stream of pairs, of the same models.
    pub fn merge(&mut self, other: &Comparisons) {
        for (id, theirs) in &other.0 {
            if let Some(ours) = self.0.get_mut(id) {
                ours.since_ms = ours.since_ms.min(theirs.since_ms);
                ours.last_ms = ours.last_ms.max(theirs.last_ms);
                ours.paired.merge(&theirs.paired);
            } else {
                self.make_room(id);
                self.0.insert(id.clone(), theirs.clone());
            }
        }
    }

    /// Removes the comparison whose last pair is oldest, if there is no room for this one.
    fn make_room(&mut self, id: &ComparisonId) {
        if self.0.len() >= COMPARISONS_MAX && !self.0.contains_key(id) {
            let oldest = self.0.iter().min_by_key(|(id, c)| (c.last_ms, *id));
            if let Some(id) = oldest.map(|(id, _)| id.clone()) {
                self.0.remove(&id);
            }
        }
    }

    /// The report of each comparison, at confidence 1 − `alpha`.
    pub fn reports(&self, alpha: f64) -> impl Iterator<Item = ComparisonReport> {
        self.0.iter().filter_map(move |(id, c)| {
            Some(ComparisonReport {
                id: id.clone(),
                since_ms: c.since_ms,
                last_ms: c.last_ms,
                confidence: 1.0 - alpha,
                compared: c.paired.compared(alpha)?,
            })
        })
    }

    /// All state.
    pub fn states(&self) -> Vec<ComparisonState> {
        self.0.iter().map(ComparisonState::of).collect()
    }

    /// Restores a state; `false` if it is not sound.
    #[must_use]
    pub fn restore(&mut self, states: Vec<ComparisonState>) -> bool {
        for state in states {
            let Some((id, comparison)) = state.into_comparison() else {
                return false;
            };
            self.0.insert(id, comparison);
        }
        true
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        // Twice, for the tree; the cells of both sides are beside it.
        let cells = 2 * CELLS * size_of::<(u64, i128)>();
        let each = |id: &ComparisonId| {
            let names = id.model.len() + id.champion.len() + id.challenger.len();
            2 * size_of::<(ComparisonId, Comparison)>() + cells + names
        };
        self.0.keys().map(each).sum()
    }
}

/// A comparison in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonState {
    model: String,
    view: String,
    champion: String,
    challenger: String,
    #[serde(deserialize_with = "checked")]
    since_ms: i64,
    #[serde(deserialize_with = "checked")]
    last_ms: i64,
    #[serde(deserialize_with = "checked")]
    n: u64,
    #[serde(deserialize_with = "checked")]
    positives: u64,
    sides: Vec<Side>,
    /// Of score, rate and gain: Σg² and Σx² of each class.
    #[serde(deserialize_with = "checked")]
    drifts: Vec<Vec<(u128, u128)>>,
}

impl ComparisonState {
    /// Name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    fn of((id, c): (&ComparisonId, &Comparison)) -> ComparisonState {
        let p = &c.paired;
        let drift = |d: &Drift| d.classes.iter().map(|s| (s.weight, s.increment)).collect();
        ComparisonState {
            model: id.model.clone(),
            view: id.view.to_string(),
            champion: id.champion.clone(),
            challenger: id.challenger.clone(),
            since_ms: c.since_ms,
            last_ms: c.last_ms,
            n: p.n,
            positives: p.positives,
            sides: p.sides.to_vec(),
            drifts: [p.score, p.rate, p.gain].iter().map(drift).collect(),
        }
    }

    fn into_comparison(self) -> Option<(ComparisonId, Comparison)> {
        if self.sides.iter().any(|side| side.cells.len() != CELLS) {
            return None;
        }
        let drift = |classes: &Vec<(u128, u128)>| {
            let squares = |&(weight, increment): &(u128, u128)| Squares { weight, increment };
            let classes: Vec<Squares> = classes.iter().map(squares).collect();
            Some(Drift {
                classes: classes.try_into().ok()?,
            })
        };
        let drifts: Option<Vec<Drift>> = self.drifts.iter().map(drift).collect();
        let [score, rate, gain] = drifts?.try_into().ok()?;
        let id = ComparisonId {
            model: self.model,
            view: self.view.parse().ok()?,
            champion: self.champion,
            challenger: self.challenger,
        };
        let comparison = Comparison {
            since_ms: self.since_ms,
            last_ms: self.last_ms,
            paired: Paired {
                n: self.n,
                positives: self.positives,
                sides: self.sides.try_into().ok()?,
                score,
                rate,
                gain,
            },
        };
        Some((id, comparison))
    }
}
