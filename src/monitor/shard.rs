//! The first stage: what is counted of the records of some partitions.
//!
//! A shard takes decoded records and hands out [`Delta`]s. It owns what is local to its partitions:
//! positions, event time, open panes, predictions that wait for outcomes, rows that wait to be compared.
//! It holds no window and judges nothing. All that it does depends on its records alone, to the bit.
//!
//! ```text
//!   records ─► observe, label, reject ─► open panes ─► drain ─► Batch { deltas, sealed }
//! ```
//!
//! [`Shard::due`] says after each record, with one comparison, whether the watermark has passed the end of
//! a pane. The caller then drains the shard until nothing is left. One batch seals the panes of one model
//! up to one moment; late outcomes of panes that were sealed before come first, so that a batch is to be
//! applied before the next one is drained.
//!
//! Always: every record is counted once; every event is in one delta, or in an open pane.

use super::activity::{Activity, StreamActivity};
use super::delta::{Delta, PackedCorrection};
use super::vector_counts::VectorCounts;
use super::views::{VersionName, scalars};
use super::watchdog::Watermark;
use crate::collect::join::JournalDelta;
use crate::collect::{
    Bounds, Collector, Counters, Disposition, Event, Label, Origin, Pair, PairCounts,
    PartitionState, Partitions, Reason, Stream,
};
use crate::judge::{Comparisons, Plan};
use std::collections::BTreeMap;

mod ahead;
mod memory;
mod persist;
mod shape;
mod unsealed;

pub(super) use shape::{complete, model_shape};

/// What one step of sealing took out of a shard.
#[derive(Debug, Default)]
pub struct Batch {
    /// Corrections and sealed panes, in order.
    pub deltas: Vec<Delta>,
    /// The model that was sealed, and up to where.
    pub sealed: Option<(usize, i64)>,
}

/// See the module.
#[derive(Debug)]
pub struct Shard {
    plan: Plan,
    collector: Collector,
    /// Open panes of vector views.
    vectors: VectorCounts,
    /// Versions against each other, by model.
    comparisons: Vec<Comparisons>,
    /// Joins of the snapshot that were dropped, each with the reason.
    dropped: Vec<String>,
    /// Partitions of the snapshot that were not read since, and their positions.
    unread: BTreeMap<(u16, i32), Option<i64>>,
    /// Up to where open panes were handed over, by model. See [`Shard::hand_over`].
    handed_until_ms: Vec<i64>,
}

impl Shard {
    /// A shard that has counted nothing.
    pub fn new(plan: Plan) -> Shard {
        let bounds = Bounds {
            streams_max: plan.caps.streams_max,
            open_panes_max: plan.caps.open_panes_max,
            open_bytes_max: plan.caps.open_bytes_max,
            future_max_ms: plan.caps.future_max_ms,
            ids_max: plan.caps.ids_max,
        };
        let models = plan.models.iter().map(|m| model_shape(m, &plan)).collect();
        Shard {
            collector: Collector::new(models, bounds, plan.joins.clone(), &plan.ids),
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
            self.observe_vector(origin, event, end);
        }
        end
    }

    /// Shows an event that the collector has taken to the vector views.
    #[cold]
    fn observe_vector(&mut self, origin: Origin, event: &Event<'_>, end: Disposition) {
        let slot = self.collector.streams().last();
        match end {
            Disposition::Observed => {
                let at = (origin, self.collector.row_of(origin));
                let lost = self.vectors.observe(&self.plan, slot, at, event);
                self.count_no_cell(origin.source, lost);
            }
            Disposition::Late => self.vectors.miss(&self.plan, slot, event),
            Disposition::Pending => self.vectors.expect(&self.plan, slot, event),
            _ => {}
        }
    }

    /// Counts predictions of a source for which vector views had no cell.
    pub fn count_no_cell(&mut self, source: u16, n: u64) {
        let counters = self.collector.counters_mut();
        counters.source_mut(source).no_cell += n;
    }

    /// Takes an outcome that came separately from its prediction.
    pub fn label(&mut self, origin: Origin, label: &Label<'_>) -> Disposition {
        self.collector.label(origin, label)
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

    /// What is taken next is one more event of the record at `origin`, the last that was taken of its
    /// partition. It is an error to call this of a record that was replayed.
    pub fn next_row(&mut self, origin: Origin) {
        self.collector.next_row(origin);
    }

    /// The partition has nothing more to read for now: it no longer holds others back.
    pub fn end_of_partition(&mut self, source: u16, partition: i32) {
        self.unread.remove(&(source, partition));
        self.collector.partitions_mut().end(source, partition);
        self.handed_until_ms.fill(i64::MIN);
    }

    /// The log of the partition has grown since its end was reached: it holds others back until it is read.
    pub fn wake(&mut self, source: u16, partition: i32) {
        self.collector.partitions_mut().wake(source, partition);
    }

    /// The partition holds nobody back until its next record, though it was not read to its end.
    pub fn leave_out(&mut self, source: u16, partition: i32) {
        self.collector.partitions_mut().leave_out(source, partition);
        self.handed_until_ms.fill(i64::MIN);
    }

    /// A partition is to be read; returns the offset to seek to, where one is known.
    pub fn assign(&mut self, source: u16, partition: i32) -> Option<i64> {
        self.unread.remove(&(source, partition));
        self.collector.partitions_mut().assign(source, partition)
    }

    /// See [`Partitions::resume`](crate::collect::Partitions::resume).
    pub fn resume(&mut self) {
        self.collector.partitions_mut().resume();
    }

    /// See [`Partitions::rewind`](crate::collect::Partitions::rewind).
    pub fn rewind(&mut self, source: u16, partition: i32, offset: i64) {
        let partitions = self.collector.partitions_mut();
        partitions.rewind(source, partition, offset);
    }

    /// A partition is no longer read here.
    pub fn revoke(&mut self, source: u16, partition: i32) {
        self.collector.partitions_mut().revoke(source, partition);
    }

    /// Whether a pane of some model can be sealed.
    #[inline]
    pub fn due(&self) -> bool {
        self.collector.due()
    }

    /// Takes out what late outcomes change, and the panes of one model that the watermark has passed;
    /// `None` once nothing is left. See the module.
    pub fn drain(&mut self) -> Option<Batch> {
        let models = 0..self.plan.models.len();
        let mut lines = models.filter_map(|m| Some((m, self.collector.line(m)?)));
        if let Some((model, line_ms)) = lines.next() {
            return Some(self.seal(model, line_ms));
        }
        let deltas = self.take_corrections();
        (!deltas.is_empty()).then_some(Batch {
            deltas,
            sealed: None,
        })
    }

    /// One step of sealing `model` up to the line; [`Batch::sealed`] says how far it came.
    pub fn seal(&mut self, model: usize, line_ms: i64) -> Batch {
        let mut deltas = self.take_corrections();
        let until_ms = self.mature(model, line_ms);
        let until_ms = self.collector.next_end_ms(model, until_ms);
        self.take_panes(model, until_ms, &mut deltas);
        self.compare(model, until_ms);
        self.collector.close(model, until_ms);
        if until_ms >= line_ms {
            self.collector.orphan();
        }
        Batch {
            deltas,
            sealed: Some((model, until_ms)),
        }
    }

    /// Takes out the open panes of a model that begin before `until_ms`.
    fn take_panes(&mut self, model: usize, until_ms: i64, deltas: &mut Vec<Delta>) {
        self.collector.take_panes(model, until_ms, |stream, pane| {
            deltas.push(Delta::Pane {
                key: stream.key.clone(),
                newest_ms: stream.newest_ms,
                pane,
            });
        });
        if self.vectors.wanted() {
            self.vectors.take_panes(model, until_ms, deltas);
        }
    }

    /// Counts predictions that are mature.
    fn mature(&mut self, model: usize, line_ms: i64) -> i64 {
        let (plan, vectors) = (&self.plan, &mut self.vectors);
        self.collector
            .mature(model, line_ms, &mut |r| vectors.mature(plan, r))
    }

    /// Compares the versions of a model on the ids that they share in sealed panes.
    fn compare(&mut self, model: usize, line_ms: i64) {
        let (plan, comparisons) = (&self.plan.models[model], &mut self.comparisons[model]);
        self.collector.pair_up(model, line_ms, |matches| {
            // The collector knows the scalar views alone.
            if let Some(view) = scalars(plan).nth(matches.view) {
                comparisons.observe(view, &matches, plan.grid);
            }
        });
    }

    /// What late outcomes change in panes that were sealed.
    pub fn take_corrections(&mut self) -> Vec<Delta> {
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
        deltas
    }

    /// The line of `model` after the last event, for the end of the input: the end of the newest pane, but
    /// no further than what is mature at `newest_ms`.
    pub fn last_line_ms(&self, model: usize, newest_ms: i64) -> i64 {
        let mature = self.collector.mature_line(model, newest_ms);
        self.collector.last_line(model).min(mature)
    }

    /// The newest event time of any partition.
    pub fn newest_ms(&self) -> Option<i64> {
        self.collector.partitions().newest_ms()
    }

    /// Whether all partitions are read here, as far as is known: no stream of another one is let go.
    pub fn is_whole(&self) -> bool {
        self.unread.is_empty() && self.collector.partitions().are_read()
    }

    /// Takes the time: lets streams go that had no event for long, by event time.
    pub fn tick(&mut self, now_ms: i64) {
        if !self.unread.is_empty() {
            let positions = self.collector.partitions().positions();
            let now: BTreeMap<_, _> = positions
                .map(|o| ((o.source, o.partition), Some(o.offset)))
                .collect();
            self.unread.retain(|at, was| now.get(at) == Some(was));
        }
        let expires = self.is_whole().then_some(self.plan.caps.expire_after_ms);
        let vectors = &mut self.vectors;
        self.collector
            .tick(now_ms, expires, |slot| vectors.forget(slot));
        if self.vectors.wanted() {
            let streams = self.collector.streams();
            let lines: Vec<i64> = (0..self.plan.models.len())
                .map(|m| self.collector.sealed_until_ms(m))
                .collect();
            let expired = |model: usize, newest_ms: i64| {
                expires.is_some_and(|after| lines[model].saturating_sub(newest_ms) >= after)
            };
            self.vectors
                .tick(&self.plan, now_ms, expired, |model, version| {
                    let mut pending = streams.iter().filter(|(_, s)| s.pending > 0);
                    pending.any(|(_, s)| (s.key.model(), s.key.version()) == (model, version))
                });
        }
    }

    /// What its streams have seen and what they wait for.
    pub fn activity(&self) -> impl Iterator<Item = StreamActivity<'_>> {
        self.collector.streams().iter().map(|(_, s)| Activity {
            of: &s.key,
            newest_ms: s.newest_ms,
            seen: s.seen,
            seen_ms: s.seen_ms,
            pending: s.pending,
            begins: s.seen,
        })
    }

    /// The same of versions with vector views.
    pub fn vector_activity(&self) -> impl Iterator<Item = Activity<VersionName<'_>>> {
        self.vectors.activity()
    }

    /// Predictions that wait for outcomes, by slot of their stream.
    pub fn pending(&self) -> Vec<(u32, u64)> {
        let streams = self.collector.streams().iter();
        let pending = streams.filter(|(_, s)| s.pending > 0);
        pending
            .filter_map(|(slot, s)| Some((u32::try_from(slot).ok()?, s.pending)))
            .collect()
    }

    /// When the oldest prediction that waits is mature, for each model.
    pub fn due_ms(&self) -> Vec<Option<i64>> {
        let models = 0..self.plan.models.len();
        models.map(|m| self.collector.due_ms(m)).collect()
    }

    /// Up to where each model's panes are sealed.
    pub fn sealed_until_ms(&self) -> Vec<i64> {
        let models = 0..self.plan.models.len();
        models.map(|m| self.collector.sealed_until_ms(m)).collect()
    }

    /// Whether none of its partitions holds others back: all are read to their ends, or left out.
    pub fn is_idle(&self) -> bool {
        let mut all = self.collector.partitions().states();
        all.all(|p| p.idle || p.left_out)
    }

    /// Up to where event time has come for each model, by records that are not counted too; not before what
    /// is sealed. Others need not wait for this shard until then.
    pub fn reached_ms(&self) -> Vec<i64> {
        let reach_ms = self.collector.partitions().reach_ms();
        let models = 0..self.plan.models.len();
        let line = |m| reach_ms.map_or(i64::MIN, |ms| self.collector.line_at(m, ms));
        models
            .map(|m| line(m).max(self.collector.sealed_until_ms(m)))
            .collect()
    }

    /// The watermark of its partitions.
    pub fn watermark(&self) -> Watermark {
        let partitions = self.collector.partitions();
        Watermark {
            time_ms: partitions.frontier_ms(),
            ..Watermark::of([(partitions, true)].into_iter())
        }
    }

    /// Where every record went.
    pub fn counters(&self) -> &Counters {
        self.collector.counters()
    }

    /// How far event time has come in its partitions.
    pub fn event_time(&self) -> &Partitions {
        self.collector.partitions()
    }

    /// How far each partition was read.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionState> {
        self.collector.partitions().states()
    }

    /// Event time up to which nothing more is expected, before the lateness is taken off; `None` until
    /// every live partition has had an event.
    pub fn frontier_ms(&self) -> Option<i64> {
        self.collector.partitions().frontier_ms()
    }

    /// The next offset of each partition that was read.
    pub fn positions(&self) -> Vec<Origin> {
        self.collector.partitions().positions().collect()
    }

    /// Versions against each other, by model of the plan.
    pub fn comparisons(&self) -> &[Comparisons] {
        &self.comparisons
    }

    /// Where rows of pairs went, by name of the model's plan, with how many wait.
    pub fn pair_counts(&self) -> Vec<(String, PairCounts, usize)> {
        let models = self.plan.models.iter().enumerate();
        let counts = models.filter_map(|(i, m)| {
            let pairing = self.collector.pairing(i)?;
            Some((m.name.clone(), pairing.counts(), pairing.rows()))
        });
        counts.collect()
    }

    /// Takes over what may change in a plan at run time: caps, and how segments are kept.
    pub fn reload(&mut self, new: &Plan) {
        for (index, model) in self.plan.models.iter_mut().enumerate() {
            if let Some(theirs) = new.models.iter().find(|m| m.name == model.name) {
                let (max, other) = (theirs.segmenting.max, theirs.segmenting.other);
                (model.segmenting.max, model.segmenting.other) = (max, other);
                self.collector.resegment(index, max, other);
            }
        }
        self.plan.caps.vector_versions_max = new.caps.vector_versions_max;
        self.plan.caps.streams_max = new.caps.streams_max;
        self.plan.caps.expire_after_ms = new.caps.expire_after_ms;
        self.plan.caps.stalled_after_ms = new.caps.stalled_after_ms;
        self.collector.set_streams_max(new.caps.streams_max);
    }

    /// Gives room for so many pairs of prediction and outcome until the next call; see
    /// [`Collector::tap`].
    pub fn tap(&mut self, room: usize) -> (Vec<Pair>, u64) {
        self.collector.tap(room)
    }

    /// What happened in joins and what ids came since the last call, to be written to their journals before the snapshot that
    /// is taken next. It is an error to call this before [`Shard::take_corrections`] were applied.
    pub fn take_journals(&mut self) -> Vec<JournalDelta> {
        self.collector.take_journals()
    }

    /// Whether there is anything that it writes journals of.
    pub fn has_journals(&self) -> bool {
        !self.collector.join_states().is_empty()
    }

    /// Predictions that are retained for their outcomes, or for revisions.
    pub fn retained(&self) -> usize {
        self.collector.retained()
    }

    /// Bytes of the journals of joins that were not taken.
    pub fn journal_bytes(&self) -> usize {
        self.collector.journal_bytes()
    }

    /// Whether it counts a stream of this model and version.
    pub fn serves(&self, model: &str, version: &str) -> bool {
        let mut streams = self.collector.streams().iter();
        streams.any(|(_, s)| (s.key.model(), s.key.version()) == (model, version))
    }

    /// Open panes over all streams and views.
    pub fn panes(&self) -> usize {
        let views = |s: &Stream| scalars(&self.plan.models[s.model]).count();
        let streams = self.collector.streams().iter();
        let open: usize = streams.map(|(_, s)| s.open_len() * views(s)).sum();
        open + self.vectors.panes()
    }

    /// Heap bytes of all state.
    pub fn bytes(&self) -> usize {
        let compared = self.comparisons.iter().map(Comparisons::bytes);
        self.collector.bytes() + self.vectors.bytes() + compared.sum::<usize>()
    }

    /// Joins of the snapshot that the plan no longer has, each with the reason.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }
}
