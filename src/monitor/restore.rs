//! The parts of a snapshot that still fit the plan, and the reasons why a snapshot cannot be
//! restored.
//!
//! Restoring checks every part against the plan. A stream that no longer fits is dropped and named.
//! Data that this program cannot have written is an error; numbers that no events make are refused
//! before, where they are decoded ([`crate::stats::stored`]).

use super::snapshot::{ModelState, Snapshot, StreamState, VersionState};
use crate::collect::SegmentKind;
use crate::collect::join::{JoinState, JournalError, SpillError};
use crate::judge::Plan;
use crate::window::PackError;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Reads a segment of a snapshot's journals, by its place among the marks.
pub type SegmentOf<'s, 'f> = &'f dyn Fn(&JoinState, usize) -> Segment<'s>;

/// A segment of a journal, or why it cannot be read.
pub type Segment<'s> = Result<Cow<'s, [u8]>, JournalError>;

/// Why a snapshot cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// A part of the snapshot contradicts another, or the packed sums of a stream do not unpack.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// The store of spilled predictions failed.
    #[error(transparent)]
    Spill(SpillError),
}

impl RestoreError {
    /// The panes of windows do not unpack.
    pub fn windows(_: PackError) -> RestoreError {
        RestoreError::Corrupt("the panes of windows".to_owned())
    }
}

/// Which parts of a snapshot fit a plan.
#[derive(Debug, Clone, Default)]
pub struct Fit {
    /// Where each model of the snapshot is in the plan, if its shape is the same.
    models: Vec<Option<usize>>,
    /// Models and versions that have something a roll-up counts.
    rolled_up: BTreeSet<(String, String)>,
    /// Streams that are dropped, each with the reason.
    pub dropped: Vec<String>,
    /// Number of dropped streams, each view counted.
    pub streams_dropped: u64,
}

impl Fit {
    /// Compares a snapshot with a plan.
    pub fn new(plan: &Plan, s: &Snapshot) -> Result<Fit, RestoreError> {
        check_watermarks(s)?;
        let now: Vec<ModelState> = plan.models.iter().map(|m| ModelState::new(m, 0)).collect();
        let index_of = |state: &ModelState| now.iter().position(|m| m.fits(state));
        let rolled_up = s
            .streams
            .iter()
            .filter(|s| SegmentKind::of(&s.segment).is_rolled_up());
        let mut fit = Fit {
            models: s.models.iter().map(index_of).collect(),
            rolled_up: rolled_up.map(version_of).collect(),
            ..Fit::default()
        };
        for stream in &s.streams {
            let before = s.models.get(stream.model as usize).ok_or_else(|| {
                RestoreError::Corrupt(format!("model {} of {}", stream.model, stream.name))
            })?;
            if fit.model_of(plan, stream).is_none() {
                fit.streams_dropped += before.views.len() as u64;
                let serving = plan.serves(&stream.name);
                let why = match (
                    SegmentKind::of(&stream.segment),
                    serving.and_then(|m| now.get(m)),
                ) {
                    (SegmentKind::RollUp, _) if !fit.has_segments(stream) => {
                        "the version has no segments, so this repeats its only stream".to_owned()
                    }
                    (_, None) => "no [[model]] watches it any more".to_owned(),
                    (_, Some(now)) => changes(before, now),
                };
                fit.dropped.push(format!("{}: {why}", stream.title()));
            }
        }
        for version in &s.vectors {
            if fit.model_of_version(plan, version).is_none() {
                fit.streams_dropped += version.views.len() as u64;
                fit.dropped.push(version.of_another_shape());
            }
        }
        Ok(fit)
    }

    /// Where a model of the snapshot is in the plan.
    pub fn model(&self, model: u32) -> Option<usize> {
        self.models.get(model as usize).copied().flatten()
    }

    /// The model of a stream, if the stream fits. Since the snapshot, its model may have gained or
    /// lost a plan of its own or a roll-up. Earlier builds gave versions without segments a roll-up
    /// too.
    pub fn model_of(&self, plan: &Plan, s: &StreamState) -> Option<usize> {
        let serving = plan.serves(&s.name);
        let rolls = |m: &usize| plan.models[*m].segmenting.rollup && self.has_segments(s);
        let is_rollup = SegmentKind::of(&s.segment) == SegmentKind::RollUp;
        let serving = serving.filter(|m| !is_rollup || rolls(m));
        self.model(s.model).filter(|&m| Some(m) == serving)
    }

    /// Whether the version of a stream has anything that a roll-up counts.
    fn has_segments(&self, s: &StreamState) -> bool {
        self.rolled_up.contains(&version_of(s))
    }

    /// The model of a version with vector views, if the version fits.
    pub fn model_of_version(&self, plan: &Plan, v: &VersionState) -> Option<usize> {
        self.model(v.model)
            .filter(|&m| Some(m) == plan.serves(&v.name))
    }

    /// Up to where models are sealed that the plan and the snapshot both have.
    pub fn sealed_until_ms(&self, s: &Snapshot) -> Vec<(usize, i64)> {
        let models = s.models.iter().zip(&self.models);
        models
            .filter_map(|(m, at)| Some(((*at)?, m.sealed_until_ms)))
            .collect()
    }
}

/// Windows hold only what the watermark has passed. If they held later panes, the walk from the
/// watermark to those would judge full windows at every slide, for years perhaps.
fn check_watermarks(s: &Snapshot) -> Result<(), RestoreError> {
    let streams = s.streams.iter();
    let streams = streams.flat_map(|s| s.judges.iter().map(|j| (s.model, j)));
    let versions = s.vectors.iter();
    let versions = versions.flat_map(|v| v.views.iter().map(|view| (v.model, &view.judge)));
    for (model, judge) in streams.chain(versions) {
        let Some(model) = s.models.get(model as usize) else {
            continue;
        };
        let rings = judge.rings.iter();
        let mut panes = rings.flat_map(|r| r.panes.iter().chain(&r.gathering));
        if panes.any(|pane| pane.start_ms >= model.sealed_until_ms) {
            let why = format!("panes of {} after its watermark", model.name);
            return Err(RestoreError::Corrupt(why));
        }
    }
    Ok(())
}

/// What changed of a model, so that its sums do not fit.
fn changes(before: &ModelState, now: &ModelState) -> String {
    let changed = before.differences(now);
    match changed.is_empty() {
        false => format!("changed: {}", changed.join(", ")),
        true if before.name != now.name => format!("[[model]] \"{}\" watches it now", now.name),
        true => "the model has no roll-up any more".to_owned(),
    }
}

fn version_of(s: &StreamState) -> (String, String) {
    (s.name.clone(), s.version.clone())
}

#[cfg(test)]
mod tests;
