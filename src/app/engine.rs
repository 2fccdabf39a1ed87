//! The engine: records in, changes and reports out; no clock, no thread, no file.
//!
//! It joins the two stages in one thread: a [`Collector`] that turns records into pane sums, and one
//! [`Judge`] per stream. Whenever the watermark passes the end of panes, inside the call that moved it,
//! those panes are sealed and judged, one pane after the other even if many are due; so what is judged,
//! and late, depends on the records alone and not on when anyone calls [`Engine::tick`]. The clock, as
//! `now_ms` of `tick`, does two things only: withdraws the values of streams without events, and lets
//! streams go that nobody uses.
//!
//! Always, after every call: records read equal the sum of the dispositions; all panes of a model before
//! its line are sealed and judged; a snapshot taken now, restored and fed what comes after its offsets
//! gives what this engine will give, bit for bit.

use super::vectors::{Vectors, scalars};
use crate::collect::join::{JoinPlan, JoinState, JournalDelta, JournalError, SpillError, Spills};
use crate::collect::{
    Bounds, Collector, Counters, Disposition, Event, Key, Label, ModelShape, Origin, Pair,
    PairCounts, PairShape, Part, PartitionState, ROLL_UP, Reason, Ripened, Subject,
};
use crate::judge::family;
use crate::judge::ledger::{Entry, stake_of};
use crate::judge::{
    AccountReport, Change, CompareOptions, ComparisonReport, Comparisons, Detector,
    DetectorOptions, DetectorState, Judge, JudgeOptions, Ledger, Stopwatch, StreamId, StreamReport,
    WindowReport, WindowVerdict, pane_of,
};
use crate::stats::multiclass::ranked::depth;
use crate::stats::sequential::Odds;
use crate::stats::sums::Sums;
use crate::stats::view::View;
use crate::store::snapshot::{ComparedState, ModelState, SubjectState, VersionState};
use crate::window::{Correction, PackError, Packed, Total};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

mod state;
mod union;

pub use crate::judge::{Caps, ModelPlan, Plan};
pub use crate::store::Snapshot;
pub use state::{RestoreError, SegmentOf};
pub use union::{Poured, Remembered};

/// The engine. See the module.
#[derive(Debug)]
pub struct Engine {
    plan: Plan,
    collector: Collector,
    /// Judges by slot of the subject, then by view.
    judges: Vec<Vec<Judge>>,
    /// Vector views of versions.
    vectors: Vectors,
    changes: Vec<Change>,
    /// Streams and joins of the snapshot that were dropped, each with the reason.
    dropped: Vec<String>,
    /// What the detectors may stake.
    ledger: Ledger,
    /// Versions against each other, by model.
    comparisons: Vec<Comparisons>,
    /// Bets of the detectors, by model.
    odds: Vec<Option<Arc<Odds>>>,
    stopwatch: Option<Stopwatch>,
    /// What was sealed and corrected and not taken yet, in a lane. See [`union`].
    poured: Option<Vec<Poured>>,
    /// In a union, when the oldest predictions of its lanes are mature, by model.
    due_ms: Option<Vec<Option<i64>>>,
}

impl Engine {
    /// An engine without state.
    pub fn new(plan: Plan) -> Engine {
        let bounds = Bounds {
            streams_max: plan.caps.streams_max,
            open_panes_max: plan.caps.open_panes_max,
            future_max_ms: plan.caps.future_max_ms,
        };
        let vectors = Vectors::new(&plan);
        Engine {
            collector: Collector::new(
                plan.models.iter().map(|m| shape(m, &plan)).collect(),
                bounds,
                plan.joins.clone(),
            ),
            ledger: Ledger::new(&plan.models),
            comparisons: vec![Comparisons::default(); plan.models.len()],
            odds: plan.models.iter().map(odds).collect(),
            plan,
            judges: Vec::new(),
            vectors,
            changes: Vec::new(),
            dropped: Vec::new(),
            stopwatch: None,
            poured: None,
            due_ms: None,
        }
    }

    /// Takes a decoded record.
    #[inline]
    pub fn observe(&mut self, origin: Origin, event: &Event<'_>) -> Disposition {
        let end = self.collector.observe(origin, event);
        if self.vectors.wanted() {
            self.show(origin, event, end);
        }
        if self.collector.due() {
            self.seal();
        }
        end
    }

    /// Shows an event that the collector has taken to the vector views.
    #[cold]
    fn show(&mut self, origin: Origin, event: &Event<'_>, end: Disposition) {
        let slot = self.collector.last_slot();
        match end {
            Disposition::Observed => {
                let (plan, row) = (&self.plan, self.collector.row_of(origin));
                let lost = self.vectors.observe(plan, slot, (origin, row), event);
                let counters = self.collector.counters_mut();
                counters.source_mut(origin.source).uncelled += lost;
            }
            Disposition::Late => self.vectors.miss(&self.plan, slot, event),
            Disposition::Pending => self.vectors.expect(&self.plan, slot, event),
            _ => {}
        }
    }

    /// Takes an outcome that came apart from its prediction.
    pub fn label(&mut self, origin: Origin, label: &Label<'_>) -> Disposition {
        let end = self.collector.label(origin, label);
        if self.collector.due() {
            self.seal();
        }
        end
    }

    /// Takes a record that could not be decoded.
    pub fn reject(&mut self, origin: Origin, reason: Reason) -> Disposition {
        self.collector.reject(origin, reason)
    }

    /// What is taken next is one more event of the record at `origin`, the last that was taken of its
    /// partition. It is an error to call this of a record that was replayed.
    pub fn next_row(&mut self, origin: Origin) {
        self.collector.next_row(origin);
    }

    /// The partition has nothing more to read for now: it no longer holds others back.
    pub fn end_of_partition(&mut self, source: u16, partition: i32) {
        self.collector.partitions_mut().end(source, partition);
        self.seal();
    }

    /// A partition is to be read; returns the offset to seek to, where one is known.
    pub fn assign(&mut self, source: u16, partition: i32) -> Option<i64> {
        self.collector.partitions_mut().assign(source, partition)
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

    /// Tells the time: withdraws what is stale, lets go of what expired. Returns all changes since
    /// the last call.
    pub fn tick(&mut self, now_ms: i64) -> Vec<Change> {
        self.collector.tell_rollups();
        for slot in 0..self.collector.slots_len() {
            let Some(subject) = self.collector.subject_mut(slot) else {
                continue;
            };
            if std::mem::take(&mut subject.seen) || subject.seen_ms.is_none() {
                subject.seen_ms = Some(now_ms);
            }
            let quiet = now_ms.saturating_sub(subject.seen_ms.unwrap_or(now_ms));
            let (model, newest_ms) = (subject.model, subject.newest_ms);
            let waits = subject.pending > 0;
            let unused = quiet >= self.plan.caps.expire_after_ms && !waits;
            if unused && self.collector.may_expire(slot) {
                self.collector.expire(slot);
                self.vectors.forget(slot);
                self.let_go(model, slot, now_ms);
                continue;
            }
            self.make_judges(slot, newest_ms);
            let due_ms = match &self.due_ms {
                None => self.collector.due_ms(model),
                Some(told) => told[model],
            };
            let due_ms = due_ms.filter(|_| waits);
            if let (true, Some(due_ms)) = (self.vectors.wanted(), due_ms) {
                self.vectors_await(slot, due_ms);
            }
            self.judges[slot].iter_mut().for_each(|j| j.awaits(due_ms));
            let options = &self.plan.models[model].judge;
            if quiet >= options.stale_after_ms {
                for judge in &mut self.judges[slot] {
                    judge.withdraw(now_ms, options, &mut self.changes);
                }
            }
        }
        self.vectors.tick(&self.plan, now_ms, &mut self.changes);
        self.tell();
        std::mem::take(&mut self.changes)
    }

    /// Tells the vector views of a subject that predictions of it wait.
    #[cold]
    fn vectors_await(&mut self, slot: usize, due_ms: i64) {
        if let Some(subject) = self.collector.subject(slot) {
            self.vectors.awaits(&self.plan, slot, &subject.key, due_ms);
        }
    }

    /// Forgets the judges of a subject that expired; what they staked stays in the ledger.
    fn let_go(&mut self, model: usize, slot: usize, now_ms: i64) {
        let options = &self.plan.models[model].judge;
        let judges = self.judges.get_mut(slot).map(std::mem::take);
        for mut judge in judges.unwrap_or_default() {
            judge.leave(now_ms, options, &mut self.changes);
            if let Some(d) = judge.detector() {
                let budget = d.options().budget.to_string();
                self.ledger
                    .keep(&d.options().account, &budget, d.staked(), d.alarms());
                self.ledger.close(model, d.number());
            }
        }
    }

    /// Lets all reports say what the detectors say now.
    fn tell(&mut self) {
        self.judges
            .iter_mut()
            .flatten()
            .for_each(Judge::report_detector);
    }

    /// The input has ended: seals and judges everything. Returns all changes since the last tick.
    pub fn finish(&mut self) -> Vec<Change> {
        self.finish_by(i64::MAX)
    }

    /// The same where outcomes come apart and what came of them may not be all: what would not be mature at
    /// the newest event of all stays pending.
    pub fn finish_mature(&mut self) -> Vec<Change> {
        let newest_ms = self.collector.partitions().newest_ms();
        self.finish_by(newest_ms.unwrap_or(i64::MIN))
    }

    fn finish_by(&mut self, newest_ms: i64) -> Vec<Change> {
        self.correct();
        for model in 0..self.plan.models.len() {
            let line = self.collector.last_line(model);
            let line = line.min(self.collector.mature_line(model, newest_ms));
            self.seal_model(model, line);
            for (slot, newest_ms) in self.slots_of(model) {
                self.make_judges(slot, newest_ms);
                let options = &self.plan.models[model].judge;
                for judge in &mut self.judges[slot] {
                    judge.finish(line, options, &mut self.changes);
                }
            }
            self.vectors
                .finish(&self.plan, model, line, &mut self.changes);
            self.tell_families(model);
        }
        self.count_evaluations();
        self.call();
        self.tell();
        std::mem::take(&mut self.changes)
    }

    /// The accounts of false alarms.
    pub fn ledger(&self) -> Vec<AccountReport> {
        self.ledger.report(&self.entries())
    }

    /// The streams that have a detector, as the ledger sees them.
    fn entries(&self) -> Vec<Entry<'_>> {
        let mut all = Vec::new();
        for (slot, judges) in self.judges.iter().enumerate() {
            let Some(subject) = self.collector.subject(slot) else {
                continue;
            };
            let watched = judges.iter().filter_map(|j| Some((j, j.detector()?)));
            all.extend(watched.map(|(judge, detector)| Entry {
                model: subject.model,
                id: &judge.report().id,
                detector,
            }));
        }
        all
    }

    /// Looks which streams are called among their fleet.
    fn call(&mut self) {
        let entries = self.entries();
        let newest_ms = entries.iter().filter_map(|e| e.detector.at_ms()).max();
        let called = self.ledger.called(&entries);
        let Some(at_ms) = newest_ms else { return };
        let mut called = called.into_iter();
        for (slot, judges) in self.judges.iter_mut().enumerate() {
            // The streams of the entries, in their order.
            if self.collector.subject(slot).is_none() {
                continue;
            }
            let watched = judges.iter_mut().filter(|j| j.detector().is_some());
            for (judge, called) in watched.zip(&mut called) {
                judge.call(called, at_ms);
            }
        }
    }

    /// The latest report of each stream.
    pub fn reports(&self) -> impl Iterator<Item = &StreamReport> {
        let scalars = self.judges.iter().flatten().map(Judge::report);
        scalars.chain(self.vectors.reports())
    }

    /// The sums of the panes that every window of every stream of scores holds, with its report; less than the
    /// report's where a pane was dropped after the judgement.
    pub fn totals(&self) -> impl Iterator<Item = (&StreamId, &WindowReport, Sums)> {
        self.judges.iter().flatten().flat_map(|judge| {
            let id = &judge.report().id;
            (0..judge.report().windows.len()).filter_map(move |i| match judge.total(i) {
                Ok((report, Total::Scores(sums))) => Some((id, report, sums)),
                _ => None,
            })
        })
    }

    /// Where every record went.
    pub fn counters(&self) -> &Counters {
        self.collector.counters()
    }

    /// What is monitored.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Takes over what may change in a plan while it is at work: tests, tolerances and hold times from the
    /// next judgement of each window on, caps at once. What else differs is left as it was.
    pub fn live(&mut self, new: &Plan) {
        for (index, model) in self.plan.models.iter_mut().enumerate() {
            if let Some(theirs) = new.models.iter().find(|m| m.name == model.name) {
                let (max, other) = (theirs.segmenting.max, theirs.segmenting.other);
                let sampling = model.judge.evaluation.sampling;
                model.judge = JudgeOptions {
                    detector: model.judge.detector.take(),
                    compare: model.judge.compare.take(),
                    kernel: model.judge.kernel,
                    ..theirs.judge.clone()
                };
                // The sums hold scores that were carried by it.
                model.judge.evaluation.sampling = sampling;
                model.segmenting.max = max;
                model.segmenting.other = other;
                self.collector.segment_anew(index, max, other);
            }
        }
        self.plan.caps.vector_versions_max = new.caps.vector_versions_max;
        self.plan.caps.streams_max = new.caps.streams_max;
        self.plan.caps.expire_after_ms = new.caps.expire_after_ms;
        self.collector.streams_max(new.caps.streams_max);
    }

    /// Gives room for so many pairs of prediction and outcome until the next call; see
    /// [`Collector::tap`].
    pub fn tap(&mut self, room: usize) -> (Vec<Pair>, u64) {
        self.collector.tap(room)
    }

    /// Streams that the snapshot had and the plan no longer fits, each with the reason.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// Times every evaluation from now on; see [`Engine::take_nanos`].
    pub fn time_by(&mut self, stopwatch: Stopwatch) {
        self.stopwatch = Some(stopwatch);
        let judges = self.judges.iter_mut().flatten();
        judges.for_each(|judge| judge.time_by(Some(stopwatch)));
        self.vectors.time_by(stopwatch);
    }

    /// How long each evaluation since the last call took, in nanoseconds; nothing without a stopwatch.
    pub fn take_nanos(&mut self) -> Vec<u64> {
        let mut all = Vec::new();
        if self.stopwatch.is_some() {
            let judges = self.judges.iter_mut().flatten();
            judges.for_each(|judge| judge.take_nanos(&mut all));
            self.vectors.take_nanos(&mut all);
        }
        all
    }

    /// How far each partition was read.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionState> {
        self.collector.partitions().states()
    }

    /// The lateness of the model that allows most: what is older than a partition's newest event by more
    /// is complete for every model.
    pub fn lateness_ms(&self) -> i64 {
        let lateness = self.plan.models.iter().map(|m| m.ladder.lateness_ms);
        lateness.max().unwrap_or(0)
    }

    /// Panes held over all streams, open and sealed; one that two windows share counts for each.
    pub fn panes(&self) -> usize {
        let subjects = (0..self.collector.slots_len()).filter_map(|s| self.collector.subject(s));
        let views = |s: &Subject| scalars(&self.plan.models[s.model]).count();
        let open: usize = subjects.map(|s| s.open_len() * views(s)).sum();
        let sealed = self.judges.iter().flatten().map(|j| j.windows().panes());
        open + sealed.sum::<usize>() + self.vectors.panes()
    }

    /// Event time up to which nothing more is expected, lateness not yet taken off; `None` before
    /// every live partition has had an event.
    pub fn frontier_ms(&self) -> Option<i64> {
        self.collector.partitions().frontier_ms()
    }

    /// The next offset of each partition that was read.
    pub fn positions(&self) -> Vec<Origin> {
        self.collector.partitions().positions().collect()
    }

    /// Heap bytes of all state.
    pub fn bytes(&self) -> usize {
        let judges = self
            .judges
            .iter()
            .flatten()
            .map(Judge::bytes)
            .sum::<usize>();
        let odds = self.odds.iter().flatten().map(|o| o.bytes());
        self.collector.bytes()
            + self
                .comparisons
                .iter()
                .map(Comparisons::bytes)
                .sum::<usize>()
            + self.vectors.bytes()
            + judges
            + odds.sum::<usize>()
            + self.judges.capacity() * size_of::<Vec<Judge>>()
    }

    /// Seals and judges what the watermark has passed.
    #[cold]
    fn seal(&mut self) {
        self.correct();
        for model in 0..self.plan.models.len() {
            if let Some(line) = self.collector.line(model) {
                self.seal_model(model, line);
            }
        }
        self.count_evaluations();
        self.call();
    }

    /// Seals up to the line, one pending pane after the other, so that few are open at once.
    fn seal_model(&mut self, model: usize, line_ms: i64) {
        let mut at_ms = i64::MIN;
        while at_ms < line_ms {
            let (plan, vectors) = (&self.plan, &mut self.vectors);
            let mut show = |ripe: &Ripened<'_>| vectors.ripen(plan, ripe);
            at_ms = self.collector.mature(model, line_ms, &mut show);
            at_ms = self.collector.next_pour(model, at_ms);
            let from_ms = self.collector.closed_ms(model);
            for (slot, newest_ms) in self.slots_of(model) {
                self.make_judges(slot, newest_ms);
                self.seal_subject(model, slot, from_ms, at_ms);
            }
            self.compare(model, at_ms);
            self.vectors
                .seal(&self.plan, model, (from_ms, at_ms), &mut self.changes);
            self.lay_out_vectors();
            self.collector.close(model, at_ms);
            // Late outcomes that were there already.
            self.correct();
        }
        self.tell_families(model);
        self.collector.orphan();
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

    /// What can be said of versions that scored the same ids.
    pub fn comparisons(&self) -> Vec<ComparisonReport> {
        let all = self.plan.models.iter().zip(&self.comparisons);
        let compared = all.filter_map(|(m, c)| Some((m.judge.compare.as_ref()?, c)));
        compared.flat_map(|(o, c)| c.reports(o.alpha)).collect()
    }

    /// The same before it is said, by model of the plan, to be added to others'.
    pub fn compared_by_model(&self) -> &[Comparisons] {
        &self.comparisons
    }

    /// Where rows of pairs went, by name of the model's plan, with how many are held.
    pub fn pair_counts(&self) -> Vec<(String, PairCounts, usize)> {
        let models = self.plan.models.iter().enumerate();
        let counts = models.filter_map(|(i, m)| {
            let pairing = self.collector.pairing(i)?;
            Some((m.name.clone(), pairing.counts(), pairing.rows()))
        });
        counts.collect()
    }

    /// Adjusts the p-values of class views for each other.
    fn tell_families(&mut self, model: usize) {
        let plan = &self.plan.models[model];
        let classes = plan.views.iter().filter(|v| matches!(v, View::Class(_)));
        if classes.count() < 2 {
            return;
        }
        let alpha = plan.judge.evaluation.tcal.alpha;
        let slots: Vec<usize> = self.collector.slots(model).map(|(slot, _)| slot).collect();
        for slot in slots {
            if let Some(judges) = self.judges.get_mut(slot) {
                family::adjust_all(judges, alpha);
            }
        }
    }

    /// Corrects sealed panes by the outcomes that came after their predictions were mature.
    fn correct(&mut self) {
        for (slot, corrections) in self.collector.take_corrections() {
            self.correct_judges(slot, &corrections);
            self.lay_out_corrections(slot, corrections);
        }
        if self.vectors.wanted() {
            self.revise_vectors();
        }
    }

    /// The same of vector views.
    #[cold]
    fn revise_vectors(&mut self) {
        for late in self.collector.take_late_vectors() {
            let Some(subject) = self.collector.subject(late.slot) else {
                continue;
            };
            let key = subject.key.clone();
            let lost = self.vectors.revise(&self.plan, &key, &late);
            let counters = self.collector.counters_mut();
            counters.source_mut(late.source).uncelled += lost;
            if let Some(poured) = &mut self.poured {
                poured.push(Poured::Late { key, late });
            }
        }
    }

    fn correct_judges(&mut self, slot: usize, corrections: &[Correction]) {
        let rollup = self.collector.rollup_of(slot);
        for slot in [Some(slot), rollup].into_iter().flatten() {
            let judges = self.judges.get_mut(slot).into_iter().flatten();
            for (judge, correction) in judges.zip(corrections) {
                // A pane that cannot be corrected belongs to no window any more.
                let _ = judge.correct(correction);
            }
        }
    }

    /// Walks the panes from `from_ms` to `line_ms`. A stretch without open panes is walked too while
    /// windows empty themselves in it, and skipped once they are empty.
    fn seal_subject(&mut self, model: usize, slot: usize, from_ms: i64, line_ms: i64) {
        let mut at_ms = from_ms;
        while at_ms < line_ms {
            let plan = &self.plan.models[model];
            let judges = &mut self.judges[slot];
            if !judges.iter().any(Judge::moves) {
                let subject = self.collector.subject(slot);
                match subject.and_then(Subject::oldest_ms) {
                    Some(oldest) if oldest < line_ms => at_ms = oldest,
                    _ => break,
                }
            }
            let end_ms = at_ms + plan.ladder.pane_ms;
            let delta = self.collector.seal(slot, end_ms);
            if let Some(delta) = &delta {
                self.collector.pour(slot, delta);
            }
            for (view, judge) in judges.iter_mut().enumerate() {
                let pane = delta.as_ref().map(|d| pane_of(d, view));
                judge.seal(pane.as_ref(), end_ms, &plan.judge, &mut self.changes);
            }
            if let Some(delta) = delta {
                self.lay_out(slot, delta);
            }
            at_ms = end_ms;
        }
    }

    /// Slots of a model with their newest event time, roll-ups last: they seal what the others poured.
    fn slots_of(&self, model: usize) -> Vec<(usize, i64)> {
        let of = |rollups: bool| {
            let slots = self.collector.slots(model);
            let wanted = slots.filter(move |(_, s)| (s.part == Part::RollUp) == rollups);
            wanted.map(|(slot, s)| (slot, s.newest_ms))
        };
        of(false).chain(of(true)).collect()
    }

    /// The judges of a subject, made on first use, told of its newest event.
    fn make_judges(&mut self, slot: usize, newest_ms: i64) {
        if slot >= self.judges.len() {
            self.judges.resize_with(slot + 1, Vec::new);
        }
        let judges = &mut self.judges[slot];
        if judges.is_empty()
            && let Some(subject) = self.collector.subject(slot)
        {
            let model = subject.model;
            let odds = self.odds[model].as_ref();
            let number = odds.map_or(0, |_| self.ledger.open(model));
            *judges = judges_for(&self.plan.models[model], odds, subject, number);
            for judge in judges.iter_mut() {
                judge.time_by(self.stopwatch);
            }
        }
        judges.iter_mut().for_each(|j| j.seen(newest_ms));
    }

    fn count_evaluations(&mut self) {
        let judges = self.judges.iter_mut().flatten();
        let made: u64 = judges.map(Judge::take_evaluations).sum();
        let made = made + self.vectors.take_evaluations();
        self.collector.counters_mut().evaluations += made;
    }

    /// What happened in joins since the last call, to be written to their journals before the snapshot
    /// that is taken next: without it the snapshot cannot be restored.
    pub fn take_journals(&mut self) -> Vec<JournalDelta> {
        self.correct();
        self.collector.take_journals()
    }

    /// Whether there is anything that it writes journals of.
    pub fn has_journals(&self) -> bool {
        !self.collector.join_states().is_empty()
    }

    /// Predictions that are held for their outcomes, or for revisions.
    pub fn held(&self) -> usize {
        self.collector.held()
    }

    /// From now on pending predictions spill that memory has no room for; the memory that the plan allows is
    /// shared by so many engines.
    pub fn spill_to(&mut self, spills: Arc<dyn Spills>, shared_by: usize) {
        self.collector.joins_mut().spill_to(spills, shared_by);
    }

    /// How many engines share the memory that the plan allows pending predictions.
    pub fn share_memory(&mut self, by: usize) {
        self.collector.joins_mut().share(by);
    }

    /// Moves some of the predictions out of memory that there is no more room for since it is shared by more; answers
    /// whether there were any.
    pub fn tend(&mut self) -> bool {
        self.collector.joins_mut().tend()
    }

    /// Why the store of predictions that memory has no room for failed, if it did. From then on the engine
    /// knows less than it was told: nothing of it may be kept or shown.
    pub fn fault(&self) -> Option<&SpillError> {
        self.collector.joins().fault()
    }

    /// Held predictions that are not in memory, and bytes that those take which are.
    pub fn spilled(&self) -> (usize, usize) {
        let joins = self.collector.joins();
        (joins.spilled(), joins.memory())
    }
}

fn shape(m: &ModelPlan, plan: &Plan) -> ModelShape {
    let feeds = |j: &&JoinPlan| {
        let name = j.model.as_deref();
        name.is_none_or(|name| plan.serving(name).is_some_and(|p| p.name == m.name))
    };
    let maturity = plan.joins.iter().filter(feeds).map(|j| j.maturity_ms);
    ModelShape {
        maturity_ms: maturity.max().unwrap_or(0),
        held_ms: m.ladder.held_ms(),
        segmenting: m.segmenting,
        sampling: m.judge.evaluation.sampling,
        compare: m.judge.compare.as_ref().and_then(|o| pair_shape(m, o)),
        name: m.name.clone(),
        views: scalars(m).collect(),
        depth: depth(m.views.iter().filter_map(|v| v.cells()), m.classes.len()),
        sampled: m.samples().then_some(m.judge.kernel.seed),
        classes: m.classes.len(),
        pane_ms: m.ladder.pane_ms,
        lateness_ms: m.ladder.lateness_ms,
        grid: m.grid,
    }
}

/// How versions are paired; `None` where there is nothing to pair.
fn pair_shape(m: &ModelPlan, o: &CompareOptions) -> Option<PairShape> {
    let views = scalars(m).enumerate();
    let views = views.filter(|(_, view)| CompareOptions::takes(*view));
    let views: Vec<usize> = views.map(|(at, _)| at).collect();
    (!views.is_empty() && !m.grid.is_weighted()).then(|| PairShape {
        views,
        wait_ms: o.wait_ms,
        rows_max: o.rows_max,
        champion: o.champion.clone(),
    })
}

fn odds(m: &ModelPlan) -> Option<Arc<Odds>> {
    m.judge.detector.as_ref().map(|d| d.odds(m.grid))
}

fn judges_for(
    plan: &ModelPlan,
    odds: Option<&Arc<Odds>>,
    subject: &Subject,
    number: u64,
) -> Vec<Judge> {
    let judge = |view: View| {
        let id = StreamId {
            model: subject.key.model().to_owned(),
            version: subject.key.version().to_owned(),
            segment: subject.key.segment().to_owned(),
            view,
        };
        let mut judge = Judge::new(id, &plan.ladder, plan.grid);
        if let (Some(odds), Some(options)) = (odds, &plan.judge.detector) {
            let share = stake_of(options, plan, number);
            judge.watch_by(Detector::new(odds.clone(), options.clone(), number, share));
        }
        judge
    };
    scalars(plan).map(judge).collect()
}
