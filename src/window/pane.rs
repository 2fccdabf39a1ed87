//! Sealed sums of a stretch of event time, and what late outcomes change in them.
//!
//! A pane holds one of two kinds of sums: scores ([`ScoreSums`]) or vectors ([`ViewSums`]).
//! Both add up exactly and in any order, so windows treat them alike. Cloning a pane shares its
//! sums; a pane that several windows hold is copied when one of them changes it.

use super::late_outcomes::LateOutcomes;
use super::pack::Packed;
use super::pack_error::PackError;
use super::running::RunningSums;
use super::score_sums::ScoreSums;
use super::unlabelled::Unlabelled;
use super::view_sums::{RetainedVector, ViewSums, ViewSumsState};
use crate::stats::algebra::{Merge, Retract};
use crate::stats::axis::Grid;
use crate::stats::stored::checked;
use crate::stats::sums::Sums;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The sums of a pane. `S` is the form of the sums of scores.
#[derive(Debug, Clone, PartialEq)]
pub enum PaneSums<S = ScoreSums> {
    /// Sums of single scores.
    Scores(S),
    /// Sums of vectors.
    Vector(Arc<ViewSums>),
}

/// The sums of a whole window, unpacked.
pub type Total = PaneSums<Sums>;

/// Sums of no events; they show which kind of sums the panes of a stream hold.
pub type EmptySums = PaneSums<Grid>;

/// How sums of panes are merged.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergeOptions<'a> {
    /// Sums of their kind, without events.
    pub empty: &'a EmptySums,
    /// Whether merged sums of scores stay unpacked.
    pub unpacked: bool,
}

impl<'a> MergeOptions<'a> {
    /// The merged sums are packed.
    pub fn packed(empty: &'a EmptySums) -> MergeOptions<'a> {
        MergeOptions {
            empty,
            unpacked: false,
        }
    }
}

impl<S> PaneSums<S> {
    /// The sums, if they are of scores.
    pub fn scores(&self) -> Option<&S> {
        match self {
            PaneSums::Scores(sums) => Some(sums),
            PaneSums::Vector(_) => None,
        }
    }

    /// The sums, if they are of vectors.
    pub fn vector(&self) -> Option<&ViewSums> {
        match self {
            PaneSums::Scores(_) => None,
            PaneSums::Vector(sums) => Some(sums),
        }
    }

    /// Events that found no room. Sums of scores have room for all.
    pub fn refused(&self) -> u64 {
        self.vector().map_or(0, ViewSums::refused)
    }
}

impl PaneSums {
    /// Number of events, without those refused.
    pub fn n(&self) -> u64 {
        match self {
            PaneSums::Scores(sums) => sums.n(),
            PaneSums::Vector(sums) => sums.n(),
        }
    }

    /// Adds the sums of other events. Sums of scores are packed once, or stay unpacked. Vectors in
    /// cells beyond the cap are refused.
    fn merge_all<'a>(
        &mut self,
        others: impl ExactSizeIterator<Item = &'a PaneSums>,
        by: MergeOptions<'_>,
    ) -> Result<(), PackError> {
        if others.len() == 0 {
            return Ok(());
        }
        match (self, by.empty) {
            (PaneSums::Scores(ours), PaneSums::Scores(grid)) => {
                let theirs = others.map(|o| o.scores().ok_or(PackError::Corrupt));
                let theirs = theirs.collect::<Result<Vec<_>, _>>()?;
                match (ours.unpacked(), &theirs[..]) {
                    (Some(_), [one]) => ours.merge(one, *grid)?,
                    _ => {
                        let all = [&[&*ours], &theirs[..]].concat();
                        *ours = merge(&all, *grid)?.into();
                    }
                }
                if !by.unpacked {
                    ours.drop_unpacked();
                }
                Ok(())
            }
            (PaneSums::Vector(ours), _) => {
                for theirs in others {
                    // The panes of one stream are of one kind.
                    let theirs = theirs.vector().ok_or(PackError::Corrupt)?;
                    Arc::make_mut(ours).merge_capped(theirs);
                }
                Ok(())
            }
            _ => Err(PackError::Corrupt),
        }
    }

    /// Heap bytes of sums of scores that are unpacked.
    pub(super) fn unpacked_bytes(&self) -> usize {
        self.scores().map_or(0, ScoreSums::unpacked_bytes)
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            PaneSums::Scores(sums) => sums.bytes(),
            PaneSums::Vector(sums) => size_of::<ViewSums>() + sums.bytes(),
        }
    }
}

/// The merge of all these sums.
fn merge(all: &[&ScoreSums], grid: Grid) -> Result<Sums, PackError> {
    if grid.is_plain() {
        return RunningSums::default().total(all, grid, 0);
    }
    let mut sums = Sums::new(grid);
    all.iter().try_for_each(|one| one.merge_into(&mut sums))?;
    Ok(sums)
}

impl Total {
    /// Adds the sums of a pane. After an error the total is unusable.
    pub(super) fn add(&mut self, pane: &PaneSums) -> Result<(), PackError> {
        match (self, pane) {
            (PaneSums::Scores(sums), PaneSums::Scores(pane)) => pane.merge_into(sums),
            (PaneSums::Vector(sums), PaneSums::Vector(pane)) => {
                Arc::make_mut(sums).merge(pane);
                Ok(())
            }
            _ => Err(PackError::Corrupt),
        }
    }

    /// The sums as a pane keeps them.
    pub fn pack(self) -> PaneSums {
        match self {
            PaneSums::Scores(sums) => PaneSums::Scores(Packed::new(&sums).into()),
            PaneSums::Vector(sums) => PaneSums::Vector(sums),
        }
    }
}

impl EmptySums {
    /// The total of no panes.
    pub(super) fn total(&self) -> Total {
        match self {
            PaneSums::Scores(grid) => PaneSums::Scores(Sums::new(*grid)),
            PaneSums::Vector(blank) => PaneSums::Vector(blank.clone()),
        }
    }

    /// A pane of another owner, reduced to what there is room for here.
    pub(super) fn admit(&self, pane: &Pane) -> Result<Pane, PackError> {
        let mut admitted = pane.clone();
        admitted.drop_unpacked();
        if let PaneSums::Vector(blank) = self {
            admitted.sums = PaneSums::Vector(blank.clone());
            let sums = std::iter::once(&pane.sums);
            admitted.sums.merge_all(sums, MergeOptions::packed(self))?;
        }
        Ok(admitted)
    }
}

/// Sealed sums of a stretch of event time.
#[derive(Debug, Clone, PartialEq)]
pub struct Pane {
    /// Start.
    pub start_ms: i64,
    /// End, exclusive.
    pub end_ms: i64,
    /// Events that came too late since the previous pane was sealed.
    pub late: u64,
    /// The sums.
    pub sums: PaneSums,
    /// Predictions whose outcome never came: by score, or for vectors by their largest probability.
    pub unlabelled: Unlabelled,
    /// Late outcomes of older predictions that came while the pane matured; windows do not keep
    /// them.
    pub late_outcomes: LateOutcomes,
}

/// What late outcomes change in a sealed pane of scores: the same events are taken out and put in
/// with other outcomes, or put in for the first time.
#[derive(Debug, Clone)]
pub struct Correction {
    /// Start of the base pane.
    pub start_ms: i64,
    /// What is taken out.
    pub minus: Sums,
    /// What is put in.
    pub plus: Sums,
    /// Scores whose outcome has come, and whether one had been implied.
    pub labelled: Vec<(f64, bool)>,
}

/// A late outcome of a vector that was counted, or left out because it had no outcome.
#[derive(Debug, Clone, Copy)]
pub struct VectorCorrection<'a> {
    /// Event time of the prediction.
    pub time_ms: i64,
    /// Its vector.
    pub vector: RetainedVector<'a>,
    /// The class it was counted with.
    pub before: Option<u32>,
    /// Whether `before` was implied.
    pub implied: bool,
    /// The class that happened.
    pub now: u32,
}

impl Pane {
    /// Predictions with an outcome (implied ones included), and those that were left out because
    /// they had none.
    pub fn outcomes(&self) -> (u64, u64) {
        (self.sums.n(), self.unlabelled.dropped().iter().sum())
    }

    /// Packs sums of scores, and drops the unpacked ones.
    pub(super) fn drop_unpacked(&mut self) {
        if let PaneSums::Scores(sums) = &mut self.sums {
            sums.drop_unpacked();
        }
    }

    /// Whether an event time lies in the pane.
    pub(super) fn holds(&self, time_ms: i64) -> bool {
        (self.start_ms..self.end_ms).contains(&time_ms)
    }

    /// Adds another pane; the pane then spans both.
    pub(super) fn merge(&mut self, other: &Pane, empty: &EmptySums) -> Result<(), PackError> {
        self.merge_all(std::slice::from_ref(other), MergeOptions::packed(empty))
    }

    /// Adds other panes; the pane then spans all. Sums of scores stay unpacked if `by` says so.
    pub(super) fn merge_all(
        &mut self,
        others: &[Pane],
        by: MergeOptions<'_>,
    ) -> Result<(), PackError> {
        self.sums.merge_all(others.iter().map(|o| &o.sums), by)?;
        for other in others {
            self.unlabelled.merge(&other.unlabelled);
            self.start_ms = self.start_ms.min(other.start_ms);
            self.end_ms = self.end_ms.max(other.end_ms);
            self.late = self.late.saturating_add(other.late);
        }
        Ok(())
    }

    pub(super) fn correct(&mut self, c: &Correction, grid: Grid) -> Result<(), PackError> {
        let PaneSums::Scores(ours) = &mut self.sums else {
            return Err(PackError::Corrupt);
        };
        // On a copy: a correction that does not fit changes nothing.
        let mut corrected = ours.clone();
        c.apply(corrected.unpacked_mut(grid)?)?;
        if ours.unpacked().is_none() {
            corrected.drop_unpacked();
        }
        *ours = corrected;
        c.uncount(&mut self.unlabelled);
        Ok(())
    }

    /// Takes a late outcome; returns whether there was room for it.
    pub(super) fn revise(&mut self, r: &VectorCorrection<'_>) -> bool {
        match &mut self.sums {
            PaneSums::Scores(_) => false,
            PaneSums::Vector(sums) => r.apply(Arc::make_mut(sums), &mut self.unlabelled),
        }
    }

    /// Heap bytes held.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Pane>() + self.sums.bytes() + self.unlabelled.bytes()
    }
}

impl Correction {
    /// Changes the sums of the pane.
    pub fn apply(&self, sums: &mut Sums) -> Result<(), PackError> {
        // Events that were never there cannot be taken out; the pane is then another's. `plus` is
        // put in first: an event that changed twice is in both.
        sums.merge(&self.plus).map_err(|_| PackError::Corrupt)?;
        sums.retract(&self.minus).map_err(|_| PackError::Corrupt)
    }

    /// Removes the predictions whose outcome has come from those without one.
    pub fn uncount(&self, unlabelled: &mut Unlabelled) {
        for &(z, implied) in &self.labelled {
            unlabelled.uncount(z, implied);
        }
    }
}

impl VectorCorrection<'_> {
    /// Changes what a pane holds; returns whether there was room for it.
    pub fn apply(&self, sums: &mut ViewSums, unlabelled: &mut Unlabelled) -> bool {
        if self.before.is_none() || self.implied {
            unlabelled.uncount(self.vector.top(), self.implied);
        }
        sums.revise(self.vector, self.before, self.now)
    }
}

/// The sums of events.
#[cfg(test)]
pub(crate) fn sums_of(grid: Grid, events: impl IntoIterator<Item = (f64, bool)>) -> Sums {
    let mut sums = Sums::new(grid);
    for (z, y) in events {
        let score = crate::stats::fixed::Score::new(z).expect("a score");
        sums.observe(score, y).expect("room");
    }
    sums
}

#[cfg(test)]
impl Pane {
    /// A pane of scores without late events and late outcomes.
    pub fn of_scores(start_ms: i64, end_ms: i64, sums: &Sums) -> Pane {
        Pane {
            start_ms,
            end_ms,
            late: 0,
            sums: PaneSums::Scores(Packed::new(sums).into()),
            unlabelled: Unlabelled::default(),
            late_outcomes: LateOutcomes::default(),
        }
    }
}

/// A pane in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaneState {
    /// Start.
    #[serde(deserialize_with = "checked")]
    pub start_ms: i64,
    /// End, exclusive.
    #[serde(deserialize_with = "checked")]
    pub end_ms: i64,
    /// Late events that go with it.
    #[serde(deserialize_with = "checked")]
    pub late: u64,
    /// Its sums.
    pub sums: SumsState,
    /// Predictions whose outcome never came.
    pub unlabelled: Unlabelled,
}

/// The sums of a pane in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SumsState {
    /// Packed sums of scores.
    Scores(Packed),
    /// Sums of vectors.
    Vector(ViewSumsState),
}

impl From<&PaneSums> for SumsState {
    fn from(sums: &PaneSums) -> SumsState {
        match sums {
            PaneSums::Scores(sums) => SumsState::Scores(sums.packed().clone()),
            PaneSums::Vector(sums) => SumsState::Vector(sums.state()),
        }
    }
}

impl From<&Pane> for PaneState {
    fn from(p: &Pane) -> PaneState {
        PaneState {
            start_ms: p.start_ms,
            end_ms: p.end_ms,
            late: p.late,
            sums: SumsState::from(&p.sums),
            unlabelled: p.unlabelled.clone(),
        }
    }
}

impl PaneState {
    /// The pane; an error if it is not of the kind and shape of `empty`.
    pub fn restore(self, empty: &EmptySums) -> Result<Pane, PackError> {
        let sums = match (self.sums, empty) {
            (SumsState::Scores(packed), PaneSums::Scores(grid)) => {
                packed.unpack(*grid)?;
                PaneSums::Scores(packed.into())
            }
            (SumsState::Vector(state), PaneSums::Vector(blank)) => {
                let sums = blank.restored(state).ok_or(PackError::Corrupt)?;
                PaneSums::Vector(Arc::new(sums))
            }
            _ => return Err(PackError::Corrupt),
        };
        Ok(Pane {
            start_ms: self.start_ms,
            end_ms: self.end_ms,
            late: self.late,
            sums,
            unlabelled: self.unlabelled,
            late_outcomes: LateOutcomes::default(),
        })
    }

    /// Bytes, approximately.
    pub fn bytes(&self) -> usize {
        match &self.sums {
            SumsState::Scores(packed) => packed.as_bytes().len(),
            SumsState::Vector(state) => state.bytes(),
        }
    }
}
