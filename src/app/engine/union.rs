//! Engines that share the work: those of single partitions tell what they seal, one sums it up and judges.
//!
//! A *lane* is an engine that reads one partition and never judges ([`Engine::lane`]). What it seals, and
//! what it corrects in sealed panes, it also lays out ([`Engine::take_poured`]). A *union*
//! ([`Engine::union`]) reads no record: lanes are poured into it, and it seals and judges up to the line
//! that all of them have passed. Roll-ups are made in the union alone, of the segments' panes.
//!
//! Sums are integers, so the union's windows are to the bit those of one engine that had read all
//! partitions. A lane that is behind the union, as one that has just come from elsewhere may be, is merged
//! into the panes that the union holds already ([`crate::window::place`]).
//!
//! Always: what a lane laid out was merged into the union once, or is in the rings that
//! [`Engine::absorb`] takes. The union keeps nothing that the lanes do not have but verdicts and alerts, so
//! it is made anew whenever a lane comes or goes.

use super::state::{come_back, keep, model_state};
use super::*;
use crate::app::vectors::PouredVector;
use crate::collect::{LateVector, PaneDelta};

/// What a lane has sealed or corrected.
#[derive(Debug, Clone)]
pub enum Poured {
    /// A sealed pane.
    Pane {
        /// Whose.
        key: Key,
        /// Index of the model's plan.
        model: usize,
        /// Newest event time of the subject.
        newest_ms: i64,
        /// Its sums.
        delta: PaneDelta,
    },
    /// A correction of a pane that was sealed before, one for each view.
    Correction {
        /// Whose.
        key: Key,
        /// What changes.
        corrections: Vec<Correction>,
    },
    /// A sealed pane of a vector view.
    Vector(Box<PouredVector>),
    /// A late outcome, for vector views.
    Late {
        /// Whose.
        key: Key,
        /// What changes.
        late: LateVector,
    },
}

pub use crate::store::parcel::MemoryState as Remembered;

impl Plan {
    /// The plan of a lane: the same sums, and no judgement.
    pub fn of_lane(&self) -> Plan {
        let mut plan = self.clone();
        for model in &mut plan.models {
            model.judge = JudgeOptions {
                // Versions are paired where their records are.
                compare: model.judge.compare.take(),
                ..model.judge.silent()
            };
            model.segmenting.rollup = false;
        }
        plan
    }
}

impl Engine {
    /// Lays out from now on what it seals. It is to be made by a plan [`of_lane`](Plan::of_lane).
    pub fn lane(mut self) -> Engine {
        self.poured = Some(Vec::new());
        self.vectors.lane();
        self
    }

    /// An engine that is poured into: no join, since what it is given is joined already.
    pub fn union(plan: &Plan) -> Engine {
        let mut engine = Engine::new(Plan {
            joins: Vec::new(),
            ..plan.clone()
        });
        engine.due_ms = Some(vec![None; plan.models.len()]);
        engine
    }

    /// A union anew of the windows of lanes, in place of `old`, with what is remembered. It stands at the furthest
    /// line of all and judges on from the next slides; until then it shows what was judged last.
    pub fn union_of<'e>(
        plan: &Plan,
        old: &Engine,
        lanes: impl Iterator<Item = &'e Engine> + Clone,
        memories: &[Remembered],
    ) -> Engine {
        let mut union = Engine::union(plan);
        union.inherit(old);
        if let Some(stopwatch) = old.stopwatch {
            union.time_by(stopwatch);
        }
        let lines = lanes.clone().map(Engine::lines).chain([old.lines()]);
        let furthest = |all: Vec<i64>, one: Vec<i64>| {
            let pairs = all.into_iter().zip(one);
            pairs.map(|(a, b)| a.max(b)).collect()
        };
        let lines = lines.reduce(furthest).unwrap_or_default();
        union.stand_at(&lines);
        lanes.for_each(|lane| union.absorb(lane));
        union.remember(memories);
        union
    }

    /// A union that goes on from its snapshot.
    pub fn union_from(plan: &Plan, snapshot: Snapshot) -> Result<Engine, RestoreError> {
        let plan = Plan {
            joins: Vec::new(),
            ..plan.clone()
        };
        let mut engine = Engine::restore(plan, snapshot)?;
        engine.due_ms = Some(vec![None; engine.plan.models.len()]);
        Ok(engine)
    }

    /// What was sealed and corrected since the last call, in that order.
    pub fn take_poured(&mut self) -> Vec<Poured> {
        self.poured.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Lays out a sealed pane, if this is a lane.
    pub(super) fn lay_out(&mut self, slot: usize, delta: PaneDelta) {
        if let (Some(poured), Some(subject)) = (&mut self.poured, self.collector.subject(slot)) {
            poured.push(Poured::Pane {
                key: subject.key.clone(),
                model: subject.model,
                newest_ms: subject.newest_ms,
                delta,
            });
        }
    }

    /// Lays out sealed panes of vector views, if this is a lane.
    pub(super) fn lay_out_vectors(&mut self) {
        if let (true, Some(poured)) = (self.vectors.wanted(), &mut self.poured) {
            let panes = self.vectors.take_poured().into_iter();
            poured.extend(panes.map(|pane| Poured::Vector(Box::new(pane))));
        }
    }

    /// Lays out corrections, if this is a lane.
    pub(super) fn lay_out_corrections(&mut self, slot: usize, corrections: Vec<Correction>) {
        if let (Some(poured), Some(subject)) = (&mut self.poured, self.collector.subject(slot)) {
            let key = subject.key.clone();
            poured.push(Poured::Correction { key, corrections });
        }
    }

    /// Takes what a lane has laid out.
    pub fn pour(&mut self, poured: Poured) {
        match poured {
            Poured::Pane {
                key,
                model,
                newest_ms,
                delta,
            } => {
                let slot = self.collector.subject_named(model, &key);
                let closed_ms = self.collector.closed_ms(model);
                let grid = self.plan.models[model].grid;
                if let Some(subject) = self.collector.subject_mut(slot) {
                    subject.seen = true;
                    subject.newest_ms = subject.newest_ms.max(newest_ms);
                    if delta.start_ms >= closed_ms {
                        subject.late += delta.late;
                        // What does not fit its integers makes its window undecided, as in roll-ups.
                        if subject.pour(&delta, grid).is_err() {
                            let n = delta.views.first().map_or(0, |p| p.n());
                            subject.late = subject.late.saturating_add(n.saturating_mul(2));
                        }
                        return;
                    }
                }
                self.pour_behind(slot, &delta, closed_ms);
            }
            Poured::Correction { key, corrections } => self.pour_corrections(&key, &corrections),
            Poured::Vector(pane) => {
                let collector = &self.collector;
                let line_of = |model| collector.closed_ms(model);
                self.vectors.pour(&self.plan, &pane, line_of);
            }
            Poured::Late { key, late } => self.vectors.revise_named(&self.plan, &key, &late),
        }
    }

    /// A pane that the line has passed goes where its stretch is held.
    fn pour_behind(&mut self, slot: usize, delta: &PaneDelta, closed_ms: i64) {
        for slot in [Some(slot), self.collector.rollup_of(slot)]
            .into_iter()
            .flatten()
        {
            let newest_ms = self
                .collector
                .subject(slot)
                .map_or(i64::MIN, |s| s.newest_ms);
            self.make_judges(slot, newest_ms);
            for (view, judge) in self.judges[slot].iter_mut().enumerate() {
                // Sums that do not fit stay out, as those of a pane that no window holds.
                let _ = judge.place(&pane_of(delta, view), closed_ms);
            }
        }
    }

    fn pour_corrections(&mut self, key: &Key, corrections: &[Correction]) {
        let Some(slot) = self.collector.slot_named(key) else {
            return;
        };
        let Some(subject) = self.collector.subject_mut(slot) else {
            return;
        };
        let model = subject.model;
        let start_ms = corrections.first().map_or(i64::MIN, |c| c.start_ms);
        let grid = self.plan.models[model].grid;
        if start_ms >= self.collector.closed_ms(model) {
            if let Some(subject) = self.collector.subject_mut(slot) {
                let _ = subject.correct(corrections, grid);
            }
            return;
        }
        self.correct_judges(slot, corrections);
    }

    /// What a lane's stream has seen since the last tick, and whether predictions wait in it.
    pub fn hear(&mut self, lane: &Engine) {
        for slot in 0..lane.collector.slots_len() {
            let Some(theirs) = lane.collector.subject(slot) else {
                continue;
            };
            let slot = match self.collector.slot_named(&theirs.key) {
                Some(slot) => slot,
                None if theirs.seen => self.collector.subject_named(theirs.model, &theirs.key),
                None => continue,
            };
            if let Some(ours) = self.collector.subject_mut(slot) {
                ours.seen |= theirs.seen;
                ours.newest_ms = ours.newest_ms.max(theirs.newest_ms);
                ours.pending += theirs.pending;
            }
        }
        self.vectors.hear(&self.plan, &lane.vectors);
    }

    /// The same of a lane as a parcel holds it, whose last tick was elsewhere. A stream that nobody has used for as long
    /// as streams are kept is not begun again.
    pub fn hear_parcel(&mut self, lane: &Engine, now_ms: i64) {
        for slot in 0..lane.collector.slots_len() {
            let Some(theirs) = lane.collector.subject(slot) else {
                continue;
            };
            let quiet_ms = now_ms.saturating_sub(theirs.seen_ms.unwrap_or(now_ms));
            let slot = match self.collector.slot_named(&theirs.key) {
                Some(slot) => slot,
                None if quiet_ms < self.plan.caps.expire_after_ms => {
                    self.collector.subject_named(theirs.model, &theirs.key)
                }
                None => continue,
            };
            if let Some(ours) = self.collector.subject_mut(slot) {
                ours.seen_ms = ours.seen_ms.max(theirs.seen_ms);
                ours.newest_ms = ours.newest_ms.max(theirs.newest_ms);
                ours.pending += theirs.pending;
            }
        }
        self.vectors.hear_parcel(&lane.vectors);
    }

    /// Predictions that wait for outcomes, by slot of their subject.
    pub fn waiting(&self) -> Vec<(u32, u64)> {
        let slots = 0..self.collector.slots_len();
        let waits = |slot: usize| {
            let pending = self.collector.subject(slot)?.pending;
            (pending > 0).then_some((u32::try_from(slot).ok()?, pending))
        };
        slots.filter_map(waits).collect()
    }

    /// Lets predictions wait that are held elsewhere.
    pub fn let_wait(&mut self, waiting: &[(u32, u64)]) {
        for &(slot, pending) in waiting {
            if let Some(subject) = self.collector.subject_mut(slot as usize) {
                subject.pending = pending;
            }
        }
    }

    /// Under what shape it keeps the sums of each model.
    pub fn shapes(&self) -> Vec<ModelState> {
        let models = self.plan.models.iter();
        models.map(|m| model_state(m, 0)).collect()
    }

    /// Forgets what lanes wait for, before they are all [heard](Engine::hear) again; `due_ms` says for each
    /// model when the oldest prediction of any lane is mature.
    pub fn listen(&mut self, due_ms: Vec<Option<i64>>) {
        for slot in 0..self.collector.slots_len() {
            if let Some(subject) = self.collector.subject_mut(slot) {
                subject.pending = 0;
            }
        }
        self.due_ms = Some(due_ms);
    }

    /// When the oldest prediction that waits is mature, for each model.
    pub fn dues_ms(&self) -> Vec<Option<i64>> {
        let models = 0..self.plan.models.len();
        models.map(|m| self.collector.due_ms(m)).collect()
    }

    /// Up to where each model's panes are sealed.
    pub fn lines(&self) -> Vec<i64> {
        let models = 0..self.plan.models.len();
        models.map(|m| self.collector.closed_ms(m)).collect()
    }

    /// Whether all of its partitions are read to their ends, so that it holds no other back.
    pub fn is_idle(&self) -> bool {
        self.collector.partitions().states().all(|p| p.idle)
    }

    /// What was judged since the last call or tick.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Seals and judges each model up to its line.
    pub fn advance(&mut self, lines: &[i64]) {
        for (model, &line) in lines.iter().enumerate() {
            if line > self.collector.closed_ms(model) {
                self.seal_model(model, line);
            }
        }
        self.count_evaluations();
    }

    /// Moves the lines without sealing, in a union that holds nothing yet.
    pub fn stand_at(&mut self, lines: &[i64]) {
        for (model, &line) in lines.iter().enumerate() {
            self.collector.close(model, line);
        }
    }

    /// Takes in the windows of a lane, none of whose lines is beyond ours.
    pub fn absorb(&mut self, lane: &Engine) {
        for slot in 0..lane.collector.slots_len() {
            let Some(theirs) = lane.collector.subject(slot) else {
                continue;
            };
            let judges = lane.judges.get(slot).map_or(&[][..], Vec::as_slice);
            let (model, newest_ms) = (theirs.model, theirs.newest_ms);
            let line_ms = self.collector.closed_ms(model);
            let ours = self.collector.subject_named(model, &theirs.key);
            if let Some(subject) = self.collector.subject_mut(ours) {
                subject.newest_ms = subject.newest_ms.max(newest_ms);
                subject.seen_ms = subject.seen_ms.max(theirs.seen_ms);
            }
            for slot in [Some(ours), self.collector.rollup_of(ours)]
                .into_iter()
                .flatten()
            {
                let newest_ms = self
                    .collector
                    .subject(slot)
                    .map_or(newest_ms, |s| s.newest_ms);
                self.make_judges(slot, newest_ms);
                for (ours, theirs) in self.judges[slot].iter_mut().zip(judges) {
                    // Sums that do not fit stay out, as above.
                    let _ = ours.absorb(theirs.windows(), line_ms);
                }
            }
        }
        let collector = &self.collector;
        let line_of = |model| collector.closed_ms(model);
        self.vectors.absorb(&self.plan, &lane.vectors, line_of);
    }

    /// Verdicts, alerts and detectors of all streams; of those that the lane serves, where one is given.
    pub fn remembered(&self, of: Option<&Engine>) -> Vec<Remembered> {
        let serves = |id: &StreamId| {
            of.is_none_or(|lane| {
                let slots =
                    (0..lane.collector.slots_len()).filter_map(|s| lane.collector.subject(s));
                let mut slots = slots.filter(|s| s.key.model() == id.model);
                // A roll-up goes with any of its segments.
                slots.any(|s| s.key.version() == id.version)
            })
        };
        let judges = self.judges.iter().flatten().chain(self.vectors.judges());
        let mine = judges.filter(|j| serves(&j.report().id));
        let remembered = |j: &Judge| Remembered {
            stream: j.report().id.clone(),
            windows: j.verdicts(),
            detector: j.detector().map(Detector::state),
            alert: j.alert(),
            told: None,
        };
        mine.map(remembered).collect()
    }

    /// Goes on with the ledger of the union before this one: what was staked is not forgotten.
    pub fn inherit(&mut self, before: &Engine) {
        let models = &self.plan.models;
        self.ledger.restore(models, &before.ledger.state(models));
    }

    /// Takes over verdicts, alerts and detectors, of each the later one where two are given, for the
    /// streams that there are.
    pub fn remember(&mut self, all: &[Remembered]) {
        for slot in 0..self.judges.len() {
            let Some(subject) = self.collector.subject(slot) else {
                continue;
            };
            let model = subject.model;
            let latest = |judge: &Judge| {
                let mine = all.iter().filter(|m| m.stream == judge.report().id);
                mine.cloned().reduce(later)
            };
            let latest: Vec<_> = self.judges[slot].iter().map(latest).collect();
            let detector = latest.iter().flatten().find_map(|m| m.detector.as_ref());
            if let Some(before) = detector {
                self.renumber(slot, model, before);
            }
            let options = &self.plan.models[model].judge;
            for (judge, latest) in self.judges[slot].iter_mut().zip(latest) {
                let Some(latest) = latest else { continue };
                // Of another ladder, they say nothing about these windows.
                let _ = judge.restore_verdicts(&latest.windows, latest.alert, options);
                if let Ok(Some(other)) = judge.restore_detector(latest.detector, options) {
                    keep(&mut self.ledger, &other);
                }
            }
        }
        for (judge, options) in self.vectors.judges_mut(&self.plan) {
            let mine = all.iter().filter(|m| m.stream == judge.report().id);
            if let Some(latest) = mine.cloned().reduce(later) {
                let _ = judge.restore_verdicts(&latest.windows, latest.alert, options);
            }
        }
        (0..self.plan.models.len()).for_each(|model| self.tell_families(model));
    }

    /// Lets the detectors of a subject begin under the number that they had, while it is free.
    fn renumber(&mut self, slot: usize, model: usize, before: &DetectorState) {
        let plan = &self.plan.models[model];
        let mut watched = self.judges[slot].iter().filter_map(Judge::detector);
        let (Some(odds), Some(options), Some(now)) =
            (&self.odds[model], &plan.judge.detector, watched.next())
        else {
            return;
        };
        self.ledger.close(model, now.number());
        let number = come_back(&mut self.ledger, options, model, before);
        let share = stake_of(options, plan, number);
        for judge in &mut self.judges[slot] {
            judge.watch_by(Detector::new(odds.clone(), options.clone(), number, share));
        }
    }
}

/// Of each window, and of the detector, what was judged later.
fn later(a: Remembered, b: Remembered) -> Remembered {
    let newest_ms = |m: &Remembered| m.windows.iter().map(|w| w.end_ms).max();
    let alert = match newest_ms(&b) > newest_ms(&a) {
        true => b.alert,
        false => a.alert,
    };
    let later_of = |(a, b): (WindowVerdict, WindowVerdict)| if b.end_ms > a.end_ms { b } else { a };
    let windows = match a.windows.len() == b.windows.len() {
        true => a.windows.into_iter().zip(b.windows).map(later_of).collect(),
        false => a.windows,
    };
    let at_ms = |d: &Option<DetectorState>| d.as_ref().map(|d| d.at_ms);
    let detector = match at_ms(&b.detector) > at_ms(&a.detector) {
        true => b.detector,
        false => a.detector,
    };
    Remembered {
        stream: a.stream,
        windows,
        detector,
        alert,
        // Nobody is told by a union.
        told: None,
    }
}
