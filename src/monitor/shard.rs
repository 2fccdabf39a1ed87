//! The first stage: it counts the records of some partitions.
//!
//! A shard takes decoded records and hands out [`Delta`]s. It owns what is local to its partitions:
//! positions, event time, open panes, predictions that wait for outcomes, rows that wait to be
//! compared. It holds no window and judges nothing. All that it does depends on its records alone,
//! to the bit.
//!
//! ```text
//!   records ─► observe, observe_outcome, reject ─► open panes ─► drain_into ─► deltas ─► DeltaSink
//! ```
//!
//! Every holder of a shard takes records as a [`RecordSink`]: the shard counts a record, and one
//! comparison says whether the watermark has now passed the end of a pane. If so, the same call
//! seals pane after pane, until nothing is left. All holders seal by the same loop; they differ in
//! what takes the deltas. If the same process judges, that is the [monitor](super::Monitor).
//!
//! Always: every record is counted once; every event is in one delta, or in an open pane.

use super::delta::{Delta, PackedCorrection};
use super::vector_counts::VectorCounts;
use super::views::scalars;
use crate::collect::{Collector, Disposition, Event, Origin, OutcomeRecord, PartitionId, Reason};
use crate::judge::{Comparisons, Plan};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

mod persist;
mod shape;
mod upkeep;
mod view;

pub(super) use shape::{complete, model_shape};
pub use upkeep::ShardUpkeep;
pub use view::ShardView;

/// What happens to a partition, besides its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionEvent {
    /// It has no more records before this offset.
    Passed(i64),
    /// It has nothing more to read for now: it no longer holds others back.
    Ended,
    /// Its log has grown since its end was reached: it holds others back until it is read.
    Grown,
    /// It holds nobody back until its next record, though it was not read to its end.
    LeftOut,
    /// Its next record has this offset, though a later one was read.
    Rewound(i64),
    /// Its log ends here, before the next record: it is not read until it is rewound.
    Truncated(i64),
    /// It is no longer read here.
    Revoked,
    /// It no longer exists.
    Gone,
}

impl PartitionEvent {
    /// Whether others do not wait for the partition from now on, though it is still read here.
    pub fn lets_others_go(self) -> bool {
        matches!(self, PartitionEvent::Ended | PartitionEvent::LeftOut)
    }
}

/// See the module.
#[derive(Debug)]
pub struct Shard {
    plan: Plan,
    collector: Collector,
    /// Open panes of vector views.
    vectors: VectorCounts,
    /// Comparisons of versions, by model.
    comparisons: Vec<Comparisons>,
    /// Joins of the snapshot that were dropped, each with the reason.
    dropped: Vec<String>,
    /// Partitions of the snapshot that were not read since, and their positions.
    unread: BTreeMap<PartitionId, Option<i64>>,
    /// Up to where open panes were handed over, by model. See [`ShardUpkeep::hand_over`].
    handed_until_ms: Vec<i64>,
}

impl Shard {
    /// A shard that has counted nothing.
    pub fn new(plan: Plan) -> Shard {
        let models = plan.models.iter().map(|m| model_shape(m, &plan)).collect();
        Shard {
            collector: Collector::new(models, plan.caps, plan.joins.clone(), &plan.ids),
            vectors: VectorCounts::new(&plan),
            comparisons: vec![Comparisons::default(); plan.models.len()],
            dropped: Vec::new(),
            unread: BTreeMap::new(),
            handed_until_ms: vec![i64::MIN; plan.models.len()],
            plan,
        }
    }

    /// Takes a decoded record.
    #[inline]
    pub fn observe(&mut self, origin: Origin, event: &Event<'_>) -> Disposition {
        let end = self.collector.observe(origin, event);
        if self.vectors.wanted() {
            self.observe_vector(origin.partition_id().at(origin.offset), event, end);
        }
        end
    }

    /// Shows an event that the collector has taken to the vector views.
    #[cold]
    fn observe_vector(&mut self, origin: Origin, event: &Event<'_>, end: Disposition) {
        let slot = self.collector.streams().taken();
        match end {
            Disposition::Observed => {
                let at = (origin, self.collector.row_of(origin));
                let lost = self.vectors.observe(&self.plan, slot, at, event);
                self.count_no_cell(origin.source, lost);
            }
            Disposition::Late => self.vectors.miss(&self.plan, slot, event),
            Disposition::Pending => self.vectors.observe_pending(&self.plan, slot, event),
            _ => {}
        }
    }

    /// Counts predictions of a source for which vector views had no cell.
    fn count_no_cell(&mut self, source: u16, n: u64) {
        let counters = self.collector.counters_mut();
        counters.source_mut(source).no_cell += n;
    }

    /// Takes an outcome that came separately from its prediction.
    pub fn observe_outcome(&mut self, origin: Origin, record: &OutcomeRecord<'_>) -> Disposition {
        self.collector.observe_outcome(origin, record)
    }

    /// Takes a record that could not be decoded, and when it arrived.
    pub fn reject(
        &mut self,
        origin: Origin,
        arrival_ms: Option<i64>,
        reason: Reason,
    ) -> Disposition {
        self.collector.reject(origin, arrival_ms, reason)
    }

    /// The next event is one more row of the record at `origin`, the last record taken from its
    /// partition. It is an error to call this after a record that was replayed.
    pub fn next_row(&mut self, origin: Origin) {
        self.collector.next_row(origin);
    }

    /// Assigns a partition for reading; returns the offset to seek to, if one is known.
    pub fn assign(&mut self, at: PartitionId) -> Option<i64> {
        self.unread.remove(&at);
        self.collector.partitions_mut().assign(at)
    }

    /// Takes what happened to a partition.
    pub fn on_partition(&mut self, at: PartitionId, what: PartitionEvent) {
        let partitions = self.collector.partitions_mut();
        match what {
            PartitionEvent::Passed(offset) => partitions.skip_to(at, offset),
            PartitionEvent::Ended => {
                partitions.end(at);
            }
            PartitionEvent::Grown => partitions.wake(at),
            PartitionEvent::LeftOut => {
                partitions.leave_out(at);
            }
            PartitionEvent::Rewound(offset) => partitions.rewind(at, offset),
            PartitionEvent::Truncated(end) => partitions.truncate(at, end),
            PartitionEvent::Revoked => partitions.revoke(at),
            PartitionEvent::Gone => partitions.drop(at),
        }
        if matches!(what, PartitionEvent::Ended | PartitionEvent::Gone) {
            self.unread.remove(&at);
        }
        if what.lets_others_go() {
            self.handed_until_ms.fill(i64::MIN);
        }
    }

    /// Seals what the watermark has passed, and hands over what late outcomes change.
    #[cold]
    pub(super) fn drain_into(&mut self, sink: &mut impl DeltaSink) {
        sink.begin(self);
        while let Some((model, watermark_ms)) = self.watermark_ms() {
            self.seal(model, watermark_ms, sink);
        }
        self.correct(sink);
        sink.end();
    }

    /// Seals the panes of a model up to the watermark.
    pub(super) fn seal_until(
        &mut self,
        model: usize,
        watermark_ms: i64,
        sink: &mut impl DeltaSink,
    ) {
        let mut at_ms = i64::MIN;
        while at_ms < watermark_ms {
            at_ms = self.seal(model, watermark_ms, sink);
        }
    }

    /// A model whose watermark has moved, and its watermark.
    fn watermark_ms(&self) -> Option<(usize, i64)> {
        let mut models = 0..self.plan.models.len();
        models.find_map(|m| Some((m, self.collector.watermark_ms(m)?)))
    }

    /// One step of sealing `model` up to the watermark; returns how far it came. Late outcomes are
    /// of panes that were sealed earlier, so they go first.
    fn seal(&mut self, model: usize, watermark_ms: i64, sink: &mut impl DeltaSink) -> i64 {
        self.correct(sink);
        let joins = !self.plan.joins.is_empty();
        let until_ms = if joins {
            self.mature(model, watermark_ms)
        } else {
            watermark_ms
        };
        let until_ms = self.collector.next_end_ms(model, until_ms);
        self.take_panes(model, until_ms, sink);
        self.compare(model, until_ms);
        self.collector.close(model, until_ms);
        if joins && until_ms >= watermark_ms {
            self.collector.orphan();
        }
        sink.advance(model, until_ms);
        until_ms
    }

    /// Hands over the open panes of a model that begin before `until_ms`.
    fn take_panes(&mut self, model: usize, until_ms: i64, sink: &mut impl DeltaSink) {
        let mut deltas = Vec::new();
        self.collector.take_panes(model, until_ms, |stream, pane| {
            deltas.push(Delta::Pane {
                key: stream.key.clone(),
                newest_ms: stream.last.newest_ms,
                pane,
            });
        });
        if self.vectors.wanted() {
            self.vectors.take_panes(model, until_ms, &mut deltas);
        }
        self.give(deltas, sink);
    }

    /// Hands over deltas, and counts predictions for which the sink had no cell.
    fn give(&mut self, deltas: Vec<Delta>, sink: &mut impl DeltaSink) {
        for delta in deltas {
            let source = delta.source();
            let lost = sink.take(delta);
            if let Some(source) = source {
                self.count_no_cell(source, lost);
            }
        }
    }

    /// Counts predictions that are mature.
    fn mature(&mut self, model: usize, watermark_ms: i64) -> i64 {
        let (plan, vectors) = (&self.plan, &mut self.vectors);
        self.collector
            .mature(model, watermark_ms, &mut |r| vectors.mature(plan, r))
    }

    /// Compares the versions of a model on the ids that they share in sealed panes.
    fn compare(&mut self, model: usize, watermark_ms: i64) {
        let (plan, comparisons) = (&self.plan.models[model], &mut self.comparisons[model]);
        self.collector.pair_up(model, watermark_ms, |matches| {
            // The collector knows only the scalar views.
            if let Some(view) = scalars(plan).nth(matches.view) {
                comparisons.observe(view, &matches, plan.grid);
            }
        });
    }

    /// Hands over what late outcomes change in panes that were sealed.
    pub(super) fn correct(&mut self, sink: &mut impl DeltaSink) {
        let mut deltas = Vec::new();
        for (slot, corrections) in self.collector.take_corrections() {
            if let Some(stream) = self.collector.streams().get(slot) {
                deltas.push(Delta::Correction {
                    key: stream.key.clone(),
                    start_ms: corrections.first().map_or(i64::MIN, |c| c.start_ms),
                    views: corrections.iter().map(PackedCorrection::new).collect(),
                });
            }
        }
        if self.vectors.wanted() {
            for late in self.collector.take_late_vectors() {
                if let Some(stream) = self.collector.streams().get(late.slot) {
                    let key = stream.key.clone();
                    deltas.push(Delta::Late { key, late });
                }
            }
        }
        self.give(deltas, sink);
    }

    /// Advances the clock to `now_ms`: expires streams without recent events, by event time.
    /// Returns whether a stream, or a version with vector views, has expired.
    pub fn tick(&mut self, now_ms: i64) -> bool {
        if !self.unread.is_empty() {
            let positions = self.collector.partitions().positions();
            let now: BTreeMap<_, _> = positions
                .map(|o| (o.partition_id(), Some(o.offset)))
                .collect();
            self.unread.retain(|at, was| now.get(at) == Some(was));
        }
        let (whole, sealed_until_ms) = (self.view().is_whole(), self.view().sealed_until_ms());
        let (models, least_ms) = (&self.plan.models, self.plan.caps.expire_after_ms);
        let expired = |model: usize, newest_ms: i64| {
            let ladder = &models[model].ladder;
            whole && ladder.is_past(newest_ms, sealed_until_ms[model], least_ms)
        };
        let (vectors, mut left) = (&mut self.vectors, false);
        self.collector.tick(now_ms, expired, |slot| {
            vectors.forget(slot);
            left = true;
        });
        if vectors.wanted() {
            // Made only if a version is past its time.
            let waiting = LazyCell::new(|| {
                let waiting = self.collector.streams().iter().map(|(_, s)| s);
                let waiting = waiting.filter(|s| s.pending > 0);
                let names = waiting.map(|s| (s.key.model(), s.key.version()));
                names.collect::<BTreeSet<_>>()
            });
            left |= vectors.tick(&self.plan, now_ms, expired, |model, version| {
                waiting.contains(&(model, version))
            });
        }
        left
    }

    /// Takes over what may change in a plan at run time. See [`Plan::reload`].
    pub fn reload(&mut self, new: &Plan) {
        self.plan.reload(new);
        for (index, model) in self.plan.models.iter().enumerate() {
            let (max, other) = (model.segmenting.max, model.segmenting.other);
            self.collector.resegment(index, max, other);
        }
        self.collector.set_streams_max(self.plan.caps.streams_max);
    }
}

/// Takes the records of one partition, in order. Each record ends in exactly one disposition.
pub trait RecordSink {
    /// Takes a decoded record.
    fn observe(&mut self, origin: Origin, event: &Event<'_>) -> Disposition;
    /// Takes an outcome that came separately from its prediction.
    fn observe_outcome(&mut self, origin: Origin, record: &OutcomeRecord<'_>) -> Disposition;
    /// Takes a record that could not be decoded, and when it arrived.
    fn reject(&mut self, origin: Origin, arrival_ms: Option<i64>, reason: Reason) -> Disposition;
    /// Notes that the next event is one more of the record at `origin`. See [`Shard::next_row`].
    fn next_row(&mut self, origin: Origin);
    /// Takes what happened to the partition.
    fn on_partition(&mut self, at: PartitionId, what: PartitionEvent);
}

/// Takes what a shard seals: the monitor, or what is retained of a partition that may move.
pub(super) trait DeltaSink {
    /// Called before the shard is drained.
    fn begin(&mut self, _: &Shard) {}
    /// Takes a delta; returns how many vector views had no cell.
    fn take(&mut self, delta: Delta) -> u64;
    /// Called once all panes of a model before this time were taken.
    fn advance(&mut self, model: usize, until_ms: i64);
    /// Called once the shard is drained.
    fn end(&mut self) {}
}

/// The holder of a shard and of the sink that takes its deltas.
pub(super) trait ShardHolder {
    /// What takes its deltas.
    type Sink: DeltaSink;

    fn parts(&mut self) -> (&mut Shard, &mut Self::Sink);

    /// Called when others no longer wait for a partition.
    fn let_others_go(&mut self) {
        let (shard, sink) = self.parts();
        shard.drain_into(sink);
    }

    /// Seals what a record that ended as `end` has made due.
    #[inline]
    fn seal_after(&mut self, end: Disposition) -> Disposition {
        let (shard, sink) = self.parts();
        if shard.collector.due() {
            shard.drain_into(sink);
        }
        end
    }
}

impl<H: ShardHolder> RecordSink for H {
    #[inline]
    fn observe(&mut self, origin: Origin, event: &Event<'_>) -> Disposition {
        let end = self.parts().0.observe(origin, event);
        self.seal_after(end)
    }

    fn observe_outcome(&mut self, origin: Origin, record: &OutcomeRecord<'_>) -> Disposition {
        let end = self.parts().0.observe_outcome(origin, record);
        self.seal_after(end)
    }

    fn reject(&mut self, origin: Origin, arrival_ms: Option<i64>, reason: Reason) -> Disposition {
        let end = self.parts().0.reject(origin, arrival_ms, reason);
        self.seal_after(end)
    }

    fn next_row(&mut self, origin: Origin) {
        self.parts().0.next_row(origin);
    }

    fn on_partition(&mut self, at: PartitionId, what: PartitionEvent) {
        self.parts().0.on_partition(at, what);
        if what.lets_others_go() {
            self.let_others_go();
        }
    }
}
