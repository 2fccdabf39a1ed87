//! Vector views where the work is shared: of a lane, what is sealed is laid out ([`PouredVector`]); a union takes it, and the
//! windows of lanes that come, as [`crate::app::engine`] does for scores. Caps hold for each lane, and for the union.

use super::*;
use crate::window::Pane;

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
    /// Its events.
    pub pane: Pane,
}

impl Vectors {
    /// Lays out from now on what it seals.
    pub fn lane(&mut self) {
        self.poured.get_or_insert_default();
    }

    /// What was sealed since the last call.
    pub fn take_poured(&mut self) -> Vec<PouredVector> {
        self.poured.as_mut().map(std::mem::take).unwrap_or_default()
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
        version.advance(poured.newest_ms);
        let (line_ms, pane) = (line_of(version.model), &poured.pane);
        let mut views = version.views.iter_mut();
        if let Some(view) = views.find(|v| v.judge.report().id.view == poured.view) {
            if pane.start_ms >= line_ms {
                view.open.merge(pane);
            } else {
                // Sums of another shape stay out.
                let _ = view.judge.place(pane, line_ms);
            }
        }
    }

    /// Takes in the windows of a lane, none of whose lines is beyond ours.
    pub fn absorb(&mut self, plan: &Plan, lane: &Vectors, line_of: impl Fn(usize) -> i64) {
        for theirs in &lane.streams {
            let Some(at) = self.named(plan, Of::version(theirs)) else {
                continue;
            };
            let version = &mut self.streams[at];
            version.advance(theirs.newest_ms);
            version.seen_ms = version.seen_ms.max(theirs.seen_ms);
            let line_ms = line_of(version.model);
            for (ours, theirs) in version.views.iter_mut().zip(&theirs.views) {
                // Sums of another shape stay out.
                let _ = ours.judge.absorb(theirs.judge.windows(), line_ms);
            }
        }
    }

    /// What a lane's versions have seen since the last tick.
    pub fn hear(&mut self, plan: &Plan, lane: &Vectors) {
        for theirs in lane.streams.iter().filter(|v| v.seen) {
            if let Some(at) = self.named(plan, Of::version(theirs)) {
                let version = &mut self.streams[at];
                version.seen = true;
                version.advance(theirs.newest_ms);
            }
        }
    }

    /// The same of a lane as a parcel holds it.
    pub fn hear_parcel(&mut self, lane: &Vectors) {
        for theirs in &lane.streams {
            let same = |v: &&mut Version| v.name == theirs.name && v.version == theirs.version;
            if let Some(ours) = self.streams.iter_mut().find(same) {
                ours.seen_ms = ours.seen_ms.max(theirs.seen_ms);
                ours.advance(theirs.newest_ms);
            }
        }
    }

    /// The same of a lane, whose slots are others.
    pub fn revise_named(&mut self, plan: &Plan, key: &Key, late: &LateVector) {
        if let Some(at) = self.named(plan, Of::key(key)) {
            self.streams[at].revise(late);
        }
    }
}
