//! `trueline replay --report`: keeps the changes of alerts, and writes the page at the end.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use crate::alert::AlertState;
use crate::cli::report_file;
use crate::judge::{Change, Step, StreamId};
use crate::monitor::Engine;
use crate::report::page::replay::{ChangeLine, StreamPart, page};
use crate::telemetry::history::History;

/// Most changes to keep of one stream; the oldest are dropped first.
const CHANGES_MAX: usize = 60;

/// The changes of alerts during a replay, by stream.
#[derive(Default)]
pub struct Changes(HashMap<StreamId, StreamChanges>);

#[derive(Default)]
struct StreamChanges {
    kept: VecDeque<ChangeLine>,
    dropped: usize,
}

impl Changes {
    /// Takes a change of a stream's alert or detector; the history has the verdicts of windows.
    pub fn take(&mut self, change: &Change) {
        if !matches!(
            change.step,
            Step::Stream { .. } | Step::Detector { again: false, .. }
        ) {
            return;
        }
        let changes = self.0.entry(change.stream.clone()).or_default();
        changes.kept.push_back(ChangeLine {
            at_ms: change.at_ms,
            sentence: change.sentence.clone(),
            began: matches!(change.step, Step::Stream { from, to }
                if from.state != AlertState::Firing && to.state == AlertState::Firing),
        });
        if changes.kept.len() > CHANGES_MAX {
            changes.kept.pop_front();
            changes.dropped += 1;
        }
    }
}

/// Writes the page of what the engine says at the end.
pub fn write(
    path: &Path,
    name: &str,
    counts: &str,
    engine: &Engine,
    history: &History,
    mut changes: Changes,
) -> Result<(), String> {
    let mut streams: Vec<_> = engine.reports().collect();
    streams.sort_by(|a, b| a.id.cmp(&b.id));
    let mut parts = Vec::with_capacity(streams.len());
    for report in streams {
        let past = history.stream(&report.id).unwrap_or_default().windows;
        let changes = changes.0.remove(&report.id).unwrap_or_default();
        parts.push(StreamPart {
            report,
            past: past
                .into_iter()
                .map(|(name, points)| (name, points.into()))
                .collect(),
            changes: changes.kept.into(),
            more_changes: changes.dropped,
        });
    }
    report_file::write("--report", path, &page(name, counts, parts))
}
