//! What can be read from a shard.

use super::Shard;
use crate::collect::join::{Joins, SpillError};
use crate::collect::{Counters, Key, PairCounts, Partitions, Stream};
use crate::judge::Comparisons;
use crate::monitor::activity::{Activity, StreamActivity, Unjudged};
use crate::monitor::views::{VersionName, scalars};
use crate::monitor::watchdog::Frontier;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct ShardView<'a>(pub(super) &'a Shard);

impl<'a> ShardView<'a> {
    /// How far each of its partitions was read, and how far event time has come in them.
    pub fn partitions(self) -> &'a Partitions {
        self.0.collector.partitions()
    }

    /// Whether all partitions are read here, as far as is known; otherwise no stream expires.
    pub fn is_whole(self) -> bool {
        self.0.unread.is_empty() && self.0.collector.partitions().are_read()
    }

    /// The frontier of its partitions.
    pub fn frontier(self) -> Frontier {
        let partitions = self.0.collector.partitions();
        Frontier {
            time_ms: partitions.frontier_ms(),
            ..Frontier::of([(partitions, true)].into_iter())
        }
    }

    /// Up to where each model's panes are sealed.
    pub fn sealed_until_ms(self) -> Vec<i64> {
        let models = 0..self.0.plan.models.len();
        models
            .map(|m| self.0.collector.sealed_until_ms(m))
            .collect()
    }

    /// Up to where event time has come for each model, uncounted records included; not before what
    /// is sealed. Until then, others need not wait for this shard.
    pub fn reached_ms(self) -> Vec<i64> {
        let reach_ms = self.0.collector.partitions().reach_ms();
        let models = 0..self.0.plan.models.len();
        let watermark_ms = |m| reach_ms.map_or(i64::MIN, |ms| self.0.collector.watermark_at(m, ms));
        models
            .map(|m| watermark_ms(m).max(self.0.collector.sealed_until_ms(m)))
            .collect()
    }

    /// The watermark of `model` after the last event, for the end of the input: the end of the
    /// newest pane, but no further than what is mature at `newest_ms`.
    pub fn last_watermark_ms(self, model: usize, newest_ms: i64) -> i64 {
        let mature = self.0.collector.mature_until_ms(model, newest_ms);
        self.0.collector.last_watermark_ms(model).min(mature)
    }

    /// When the oldest waiting prediction is mature, for each model.
    pub fn due_ms(self) -> Vec<Option<i64>> {
        let models = 0..self.0.plan.models.len();
        models.map(|m| self.0.collector.due_ms(m)).collect()
    }

    /// Whether predictions of `model` wait in a pane that ends by `watermark_ms`.
    pub fn waits_before(self, model: usize, watermark_ms: i64) -> bool {
        let collector = &self.0.collector;
        let due_ms = collector.due_ms(model);
        due_ms.is_some_and(|ms| collector.watermark_at(model, ms) <= watermark_ms)
    }

    /// What its streams have seen and what they wait for.
    pub fn activity(self) -> impl Iterator<Item = StreamActivity<'a>> + use<'a> {
        self.0.collector.streams().iter().map(|(_, s)| Activity {
            of: &s.key,
            last: s.last,
            pending: s.pending,
            // A stream whose events were all refused or repeated is not shown.
            begins: s.last.seen && s.last.newest_ms > i64::MIN,
        })
    }

    /// What versions with vector views have seen and what they wait for.
    pub fn vector_activity(self) -> impl Iterator<Item = Activity<VersionName<'a>>> + use<'a> {
        self.0.vectors.activity()
    }

    /// Predictions that wait for outcomes, by slot of their stream.
    pub fn pending(self) -> Vec<(u32, u64)> {
        let streams = self.0.collector.streams().iter();
        let pending = streams.filter(|(_, s)| s.pending > 0);
        pending
            .filter_map(|(slot, s)| Some((u32::try_from(slot).ok()?, s.pending)))
            .collect()
    }

    /// What waits in open panes of the streams that `of` names.
    pub fn unsealed(self, of: impl Fn(&Key) -> bool) -> Vec<Unjudged> {
        let streams = self.0.collector.streams().iter().map(|(_, s)| s);
        let waits = |s: &Stream| {
            let ladder = &self.0.plan.models.get(s.model)?.ladder;
            let seals = |oldest_ms: i64| oldest_ms + ladder.pane_ms + ladder.lateness_ms;
            let until_ms = s.oldest_ms().map(seals);
            (until_ms.is_some() || s.late > 0).then(|| Unjudged {
                model: s.key.model().to_owned(),
                version: s.key.version().to_owned(),
                segment: s.key.segment().to_owned(),
                events: s.unsealed(),
                until_ms,
                late: s.late,
            })
        };
        streams.filter(|s| of(&s.key)).filter_map(waits).collect()
    }

    /// Whether it counts a stream of this model and version.
    pub fn serves(self, model: &str, version: &str) -> bool {
        let mut streams = self.0.collector.streams().iter();
        streams.any(|(_, s)| (s.key.model(), s.key.version()) == (model, version))
    }

    /// Where every record went.
    pub fn counters(self) -> &'a Counters {
        self.0.collector.counters()
    }

    /// Comparisons of versions, by model of the plan.
    pub fn comparisons(self) -> &'a [Comparisons] {
        &self.0.comparisons
    }

    /// Where rows of pairs went, by name of the model's plan, with how many wait.
    pub fn pair_counts(self) -> Vec<(String, PairCounts, usize)> {
        let models = self.0.plan.models.iter().enumerate();
        let counts = models.filter_map(|(i, m)| {
            let pairing = self.0.collector.pairing(i)?;
            Some((m.name.clone(), pairing.counts(), pairing.rows()))
        });
        counts.collect()
    }

    /// Open panes over all streams and views.
    pub fn panes(self) -> usize {
        let views = |s: &Stream| scalars(&self.0.plan.models[s.model]).count();
        let streams = self.0.collector.streams().iter();
        let open: usize = streams.map(|(_, s)| s.open_len() * views(s)).sum();
        open + self.0.vectors.panes()
    }

    /// Heap bytes of all state.
    pub fn bytes(self) -> usize {
        let compared = self.0.comparisons.iter().map(Comparisons::bytes);
        self.0.collector.bytes() + self.0.vectors.bytes() + compared.sum::<usize>()
    }

    /// Predictions that are retained for their outcomes, or for revisions.
    pub fn retained(self) -> usize {
        self.0.collector.retained()
    }

    /// Number of retained predictions that have spilled, and bytes of the others.
    pub fn spilled(self) -> (usize, usize) {
        let joins = self.0.collector.joins();
        (joins.spilled(), joins.memory())
    }

    /// All joins.
    pub fn joins(self) -> &'a Joins {
        self.0.collector.joins()
    }

    /// Why the store of spilled predictions failed, if it did. From then on the shard lacks
    /// predictions: nothing of it may be stored or shown.
    pub fn fault(self) -> Option<&'a SpillError> {
        self.0.collector.joins().fault()
    }

    /// Whether it writes any journals.
    pub fn has_journals(self) -> bool {
        !self.0.collector.join_states().is_empty()
    }

    /// Bytes of the journals of joins and of ids that were not taken.
    pub fn journal_bytes(self) -> usize {
        self.0.collector.journal_bytes()
    }

    /// Joins of the snapshot that the plan no longer has, each with the reason.
    pub fn dropped(self) -> &'a [String] {
        &self.0.dropped
    }
}

impl Shard {
    /// A view of the shard.
    pub fn view(&self) -> ShardView<'_> {
        ShardView(self)
    }
}
