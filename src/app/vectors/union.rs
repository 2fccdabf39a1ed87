//! Vector views where the work is shared: of a lane, what is sealed is laid out ([`PouredVector`]); a union takes it, and the
//! windows of lanes that come, as [`crate::app::engine`] does for scores. Caps hold for each lane, and for the union.

use super::*;
use crate::window::sparse::VectorPane;

/// A base pane of a vector view that a lane has sealed.
#[derive(Debug, Clone)]
pub struct PouredVector {
    /// Name of the model as it came.
    pub name: String,
    /// Version.
    pub version: String,
    /// Whether its events have segments.
    pub segmented: bool,
    /// Newest event time.
    pub newest_ms: i64,
    /// The view.
    pub view: View,
    /// Begin.
    pub start_ms: i64,
    /// Its events.
    pub pane: VectorPane,
}

impl Vectors {
    /// Lays out from now on what it seals.
    pub fn lane(&mut self) {
        self.lane = true;
        let judges = self.streams.iter_mut().flat_map(|v| &mut v.judges);
        judges.for_each(|j| j.windows_mut().lane());
    }

    /// What was sealed since the last call.
    pub fn take_poured(&mut self) -> Vec<PouredVector> {
        let mut all = Vec::new();
        for v in &mut self.streams {
            for judge in &mut v.judges {
                let view = judge.report().id.view;
                let panes = judge.windows_mut().take_poured().into_iter();
                all.extend(panes.map(|(start_ms, pane)| PouredVector {
                    name: v.name.clone(),
                    version: v.version.clone(),
                    segmented: v.segmented,
                    newest_ms: v.newest_ms,
                    view,
                    start_ms,
                    pane,
                }));
            }
        }
        all
    }

    /// In a union: each model is sealed up to its line.
    pub fn stand_at(&mut self, lines: &[i64]) {
        self.stands = Some(lines.to_vec());
    }

    /// Takes what a lane has laid out.
    pub fn pour(&mut self, plan: &Plan, poured: &PouredVector, line_of: impl Fn(usize) -> i64) {
        let of = Of {
            model: &poured.name,
            version: &poured.version,
            segmented: poured.segmented,
        };
        let Some(at) = self.named(plan, of) else {
            return;
        };
        let version = &mut self.streams[at];
        version.seen = true;
        version.newest_ms = version.newest_ms.max(poured.newest_ms);
        let (newest_ms, line_ms) = (version.newest_ms, line_of(version.model));
        let mut judges = version.judges.iter_mut();
        if let Some(judge) = judges.find(|j| j.report().id.view == poured.view) {
            judge.seen(newest_ms);
            let windows = judge.windows_mut();
            windows.pour(poured.start_ms, &poured.pane, line_ms);
        }
    }

    /// Takes in the windows of a lane, none of whose lines is beyond ours.
    pub fn absorb(&mut self, plan: &Plan, lane: &Vectors, line_of: impl Fn(usize) -> i64) {
        for theirs in &lane.streams {
            let Some(at) = self.named(plan, Of::version(theirs)) else {
                continue;
            };
            let version = &mut self.streams[at];
            version.newest_ms = version.newest_ms.max(theirs.newest_ms);
            version.seen_ms = version.seen_ms.max(theirs.seen_ms);
            let (newest_ms, line_ms) = (version.newest_ms, line_of(version.model));
            for (ours, theirs) in version.judges.iter_mut().zip(&theirs.judges) {
                ours.seen(newest_ms);
                ours.windows_mut().absorb(theirs.windows(), line_ms);
            }
        }
    }

    /// What a lane's versions have seen since the last tick.
    pub fn hear(&mut self, plan: &Plan, lane: &Vectors) {
        for theirs in lane.streams.iter().filter(|v| v.seen) {
            if let Some(at) = self.named(plan, Of::version(theirs)) {
                let version = &mut self.streams[at];
                version.seen = true;
                version.newest_ms = version.newest_ms.max(theirs.newest_ms);
                let newest_ms = version.newest_ms;
                version.judges.iter_mut().for_each(|j| j.seen(newest_ms));
            }
        }
    }

    /// The same of a lane as a parcel holds it.
    pub fn hear_parcel(&mut self, lane: &Vectors) {
        for theirs in &lane.streams {
            let same = |v: &&mut Version| v.name == theirs.name && v.version == theirs.version;
            if let Some(ours) = self.streams.iter_mut().find(same) {
                ours.seen_ms = ours.seen_ms.max(theirs.seen_ms);
                ours.newest_ms = ours.newest_ms.max(theirs.newest_ms);
                let newest_ms = ours.newest_ms;
                ours.judges.iter_mut().for_each(|j| j.seen(newest_ms));
            }
        }
    }

    /// The same of a lane, whose slots are others.
    pub fn revise_named(&mut self, plan: &Plan, key: &Key, late: &LateVector) {
        if let Some(at) = self.named(plan, Of::key(key)) {
            revise(&mut self.streams[at], late);
        }
    }
}
