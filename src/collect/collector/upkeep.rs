//! What the holder of a collector does with it, besides giving it records and taking out sealed
//! panes.

use super::Collector;
use crate::collect::amend::LateVector;
use crate::collect::counters::Counters;
use crate::collect::event::Origin;
use crate::collect::pairing::Pairing;
use crate::collect::partition::Partitions;
use crate::collect::segment::Segmenting;
use crate::collect::shape::ModelShape;
use crate::collect::stream::Stream;
use crate::collect::streams::Streams;
use crate::window::Correction;
use std::collections::BTreeSet;

impl Collector {
    /// Restores a stream to its slot; returns `false` if the slot is taken.
    pub fn restore_stream(&mut self, slot: usize, stream: Stream) -> bool {
        let shape = &self.models[stream.model];
        let bytes = stream.packed_bytes();
        let done = self.streams.restore(slot, stream, shape);
        self.open_bytes += if done { bytes } else { 0 };
        done
    }

    /// Restores positions, counts and sealed times of a snapshot.
    pub fn restore(&mut self, partitions: Partitions, counters: Counters, sealed: &[(usize, i64)]) {
        self.partitions = partitions;
        self.counters = counters;
        for &(model, until_ms) in sealed {
            self.close(model, until_ms);
        }
    }

    /// Advances the clock to `now_ms`. Expires streams that wait for nothing, if `expired` accepts
    /// their model and newest event time. Hands each of them to `gone`.
    pub fn tick(
        &mut self,
        now_ms: i64,
        expired: impl Fn(usize, i64) -> bool,
        mut gone: impl FnMut(usize),
    ) {
        let mut unused: BTreeSet<usize> = BTreeSet::new();
        for (slot, stream) in self.streams.iter_mut() {
            stream.last.tick(now_ms);
            let waits = stream.pending > 0 || stream.open_len() > 0;
            if !waits && expired(stream.model, stream.last.newest_ms) {
                unused.insert(slot);
            }
        }
        if unused.is_empty() {
            return;
        }
        let stays = |slot: u32| !unused.contains(&(slot as usize));
        self.joins.retain_given_up(|_, slot| stays(slot));
        let pairings = self.pairings.iter_mut().flatten();
        pairings.for_each(|pairing| pairing.retain(stays));
        for slot in unused {
            self.joins.end_stream(slot as u32);
            self.streams.remove(slot);
            gone(slot);
        }
    }

    /// The watermark of `model` after the newest event of all, for the end of input. It does not
    /// depend on which partition had the event, or on how far the watermark has come.
    pub fn last_watermark_ms(&self, model: usize) -> i64 {
        let shape = &self.models[model];
        // Outcomes may come after the last prediction, when nothing is left to judge.
        let newest = match self.joins.plans() {
            [] => self.partitions.newest_ms(),
            _ => self.streams.iter().map(|(_, s)| s.last.newest_ms).max(),
        };
        let end = newest.map(|t| shape.start_of(t) + shape.pane_ms);
        end.map_or(self.sealed_until_ms[model], |end| {
            end.max(self.sealed_until_ms[model])
        })
    }

    /// Up to where everything of `model` is mature at event time `now_ms`; never before what is
    /// sealed.
    pub fn mature_until_ms(&self, model: usize, now_ms: i64) -> i64 {
        let shape = &self.models[model];
        let at = now_ms.saturating_sub(shape.maturity_ms);
        let until_ms = at.saturating_sub(at.rem_euclid(shape.pane_ms));
        until_ms.max(self.sealed_until_ms[model])
    }

    /// Takes out the changes to sealed panes, one correction for each view.
    pub fn take_corrections(&mut self) -> Vec<(usize, Vec<Correction>)> {
        let (streams, models) = (&self.streams, &self.models);
        self.amendments
            .take_corrections(|slot| Some(&models[streams.get(slot)?.model]))
    }

    /// Takes out the late outcomes of vector views, in the order in which they came.
    pub fn take_late_vectors(&mut self) -> Vec<LateVector> {
        self.amendments.take_vectors()
    }

    /// Up to where all panes of `model` are sealed.
    pub fn sealed_until_ms(&self, model: usize) -> i64 {
        self.sealed_until_ms[model]
    }

    /// All streams.
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Which row of its record the event at `origin` is.
    pub fn row_of(&self, origin: Origin) -> u32 {
        self.rows.of(origin)
    }

    /// Partitions, for assignment and snapshots.
    pub fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// Partitions, to assign, end and revoke them.
    pub fn partitions_mut(&mut self) -> &mut Partitions {
        &mut self.partitions
    }

    /// Where every record went.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counts of what happens to streams outside the collector.
    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// With `Some`, opens no more panes ahead of these times, by model, to which all partitions
    /// have come; `None` allows it again.
    pub fn hold_ahead(&mut self, common_ms: Option<Vec<i64>>) {
        self.common_ms = common_ms;
    }

    /// Changes the cap on streams; those above it stay until they expire.
    pub fn set_streams_max(&mut self, streams_max: usize) {
        self.caps.streams_max = streams_max;
    }

    /// Changes how the segments of a model are kept from now on; streams that exist stay.
    pub fn resegment(&mut self, model: usize, max: usize, other: bool) {
        let segmenting = &mut self.models[model].segmenting;
        *segmenting = Segmenting {
            max,
            other,
            ..*segmenting
        };
        self.streams.resegment(model, *segmenting);
    }

    /// The models' shapes.
    pub fn models(&self) -> &[ModelShape] {
        &self.models
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.streams.bytes()
            + self.partitions.bytes()
            + self.joins.bytes()
            + self.deduplication.bytes()
            + self
                .pairings
                .iter()
                .flatten()
                .map(Pairing::bytes)
                .sum::<usize>()
    }
}
