//! The collector's side of comparisons: observations of the versions of a model, paired by id.

use super::Collector;
use crate::collect::event::Event;
use crate::collect::join;
use crate::collect::pairing::{MatchedPairs, Pairing, PairingState};
use crate::stats::fixed::Scored;

impl Collector {
    /// Keeps an observation for the other versions of its model.
    #[inline(never)]
    pub(super) fn pair(&mut self, slot: usize, event: &Event<'_>, only: Option<Scored>) {
        let model = self.streams.get(slot).map(|s| s.model);
        let Some((model, Some(pairing))) = model.map(|m| (m, &mut self.pairings[m])) else {
            return;
        };
        if event.id.is_empty() {
            pairing.count_nameless();
            return;
        }
        let start_ms = self.models[model].start_of(event.time_ms);
        let one = only.map(|one| [one]);
        let seen = one.as_ref().map_or(self.seen.as_slice(), |one| one);
        let key = join::Key::new(None, event.id);
        pairing.observe(start_ms, event.time_ms, slot, key, seen);
    }

    /// Calls `each` with the pairs of `model` in panes that end at or before `watermark_ms`.
    pub fn pair_up(&mut self, model: usize, watermark_ms: i64, each: impl FnMut(MatchedPairs<'_>)) {
        let Some(mut pairing) = self.pairings[model].take() else {
            return;
        };
        let name = |slot: u32| {
            let stream = self.streams.get(slot as usize)?;
            Some((stream.key.model(), stream.key.version()))
        };
        pairing.seal(watermark_ms, self.models[model].pane_ms, name, each);
        self.pairings[model] = Some(pairing);
    }

    /// The ids that versions of `model` share, if these are compared.
    pub fn pairing(&self, model: usize) -> Option<&Pairing> {
        self.pairings.get(model)?.as_ref()
    }

    /// Restores the rows of a snapshot, except those of streams that no longer exist; the streams
    /// must be restored first. Returns `false` if the rows are of another shape.
    pub fn restore_pairing(&mut self, model: usize, state: PairingState) -> bool {
        let Some(mut pairing) = self.pairings[model].take() else {
            return true;
        };
        let sound = pairing.restore(state);
        let here = |slot: u32| {
            let stream = self.streams.get(slot as usize);
            stream.is_some_and(|s| s.model == model)
        };
        pairing.retain(here);
        self.pairings[model] = Some(pairing);
        sound
    }
}
