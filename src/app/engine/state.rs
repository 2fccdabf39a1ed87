//! What an engine keeps of itself, and an engine made of that.
//!
//! A snapshot holds all that the offsets in it have led to. Restoring checks every part against the plan: a
//! stream that no longer fits is dropped and named ([`Engine::dropped`]), and what cannot be a snapshot of this program is an
//! error; nothing is taken for something else.

use super::*;

/// Reads a segment of a snapshot's journals, by its place among the marks.
pub type SegmentOf<'s, 'f> = &'f dyn Fn(&JoinState, usize) -> Result<Cow<'s, [u8]>, JournalError>;

/// Highest slot of a subject that a snapshot may name: far above any cap on streams, and no danger to
/// memory.
const SLOT_MAX: usize = 1 << 24;

/// Why a snapshot cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreError {
    /// A part of the snapshot contradicts another, or the packed sums of a subject do not unpack.
    Corrupt(String),
    /// The store of predictions that memory has no room for failed.
    Spill(SpillError),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Corrupt(what) => write!(
                f,
                "snapshot is corrupt: {what}; move it away to use an older one"
            ),
            RestoreError::Spill(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RestoreError {}

impl Engine {
    /// All state, to be restored by [`Engine::restore`]; where outcomes come apart, together with the
    /// journals. See [`Engine::take_journals`].
    pub fn snapshot(&self) -> Snapshot {
        let models = self.plan.models.iter().enumerate();
        let slots = (0..self.collector.slots_len()).filter_map(|slot| {
            let judges = self.judges.get(slot).map_or(&[][..], Vec::as_slice);
            Some(subject_state(slot, self.collector.subject(slot)?, judges))
        });
        Snapshot {
            topics: Vec::new(),
            partitions: self.collector.partitions().clone(),
            counters: self.collector.counters().clone(),
            models: models
                .map(|(i, m)| model_state(m, self.collector.closed_ms(i)))
                .collect(),
            subjects: slots.collect(),
            joins: self.collector.join_states(),
            ledger: self.ledger.state(&self.plan.models),
            compared: self.compared(),
            vectors: self.vectors.state(),
            followed: None,
        }
    }

    fn compared(&self) -> Vec<ComparedState> {
        let models = (0u32..).zip(&self.comparisons);
        let state = |(model, comparisons): (u32, &Comparisons)| {
            Some(ComparedState {
                model,
                pairing: self.collector.pairing(model as usize)?.state(),
                comparisons: comparisons.states(),
            })
        };
        models.filter_map(state).collect()
    }

    /// An engine that goes on from a snapshot. Streams whose views, cells or windows are not the plan's
    /// any more are dropped, counted in `streams_dropped` and listed by [`Engine::dropped`].
    pub fn restore(plan: Plan, s: Snapshot) -> Result<Engine, RestoreError> {
        Engine::restore_joined(plan, s, &[])
    }

    /// The same with the journal segments that the snapshot marks, for each of its joins.
    pub fn restore_joined(
        plan: Plan,
        s: Snapshot,
        segments: &[Vec<Vec<u8>>],
    ) -> Result<Engine, RestoreError> {
        if segments.len() != s.joins.len() {
            return Err(RestoreError::Corrupt(
                "its join journals are missing".into(),
            ));
        }
        let joins: Vec<JoinState> = s.joins.clone();
        let segment = |state: &JoinState, mark: usize| {
            let index = joins.iter().position(|j| j == state);
            let bytes = index.and_then(|i| segments[i].get(mark));
            let bytes = bytes.ok_or(JournalError::Torn)?;
            Ok(Cow::Borrowed(bytes.as_slice()))
        };
        Engine::restore_spilling(plan, s, &segment, None)
    }

    /// The same with segments that are read one after the other, a place for the predictions that memory has
    /// no room for, and the number of engines that share the memory. See [`Engine::spill_to`].
    pub fn restore_spilling<'s>(
        plan: Plan,
        s: Snapshot,
        segment: SegmentOf<'s, '_>,
        spills: Option<(Arc<dyn Spills>, usize)>,
    ) -> Result<Engine, RestoreError> {
        let mut engine = Engine::new(plan);
        if let Some((spills, shared_by)) = spills {
            engine.spill_to(spills, shared_by);
        }
        let now = engine.plan.models.iter().map(|m| model_state(m, 0));
        let now: Vec<ModelState> = now.collect();
        let index_of = |state: &ModelState| {
            let same = |m: &ModelState| {
                ModelState {
                    closed_ms: 0,
                    ..state.clone()
                } == *m
            };
            now.iter().position(same)
        };
        let kept: Vec<Option<usize>> = s.models.iter().map(index_of).collect();
        let lines = s.models.iter().zip(&kept);
        let lines: Vec<(usize, i64)> = lines
            .filter_map(|(m, kept)| Some(((*kept)?, m.closed_ms)))
            .collect();
        engine.collector.restore(s.partitions, s.counters, &lines);
        engine.ledger.restore(&engine.plan.models, &s.ledger);
        for subject in s.subjects {
            let before = s.models.get(subject.model as usize).ok_or_else(|| {
                RestoreError::Corrupt(format!("model {} of {}", subject.model, subject.name))
            })?;
            // A model may have got a plan of its own, or lost it, since; or its roll-up.
            let serving = engine.plan.serves(&subject.name);
            let rolls = |m: &usize| engine.plan.models[*m].segmenting.rollup;
            let serving = serving.filter(|m| subject.segment != ROLL_UP || rolls(m));
            match kept[subject.model as usize].filter(|&m| Some(m) == serving) {
                Some(model) => engine.put_back(model, subject)?,
                None => {
                    let gone = subject.judges.iter().filter_map(|j| j.detector.as_ref());
                    gone.for_each(|d| keep(&mut engine.ledger, d));
                    let streams = before.views.len() as u64;
                    engine.collector.counters_mut().streams_dropped += streams;
                    engine.dropped.push(format!(
                        "{}/{}/{}: views, cells, windows, lateness, sampling or roll-up of the model changed",
                        subject.name, subject.version, subject.segment
                    ));
                }
            }
        }
        engine.put_back_vectors(s.vectors, &kept);
        engine.collector.settle_groups();
        engine.put_back_compared(s.compared, &kept)?;
        engine.put_back_joins(&s.joins, &s.topics, segment, &s.models, &kept)?;
        (0..engine.plan.models.len()).for_each(|model| engine.tell_families(model));
        Ok(engine)
    }

    /// Puts back pairs and comparisons of models that are as they were, and whose versions are still compared.
    fn put_back_compared(
        &mut self,
        states: Vec<ComparedState>,
        kept: &[Option<usize>],
    ) -> Result<(), RestoreError> {
        for state in states {
            let model = kept.get(state.model as usize).copied().flatten();
            let Some(model) = model.filter(|&m| self.collector.pairing(m).is_some()) else {
                continue;
            };
            let sound = self.collector.put_back_pairing(model, state.pairing);
            if !sound || !self.comparisons[model].restore(state.comparisons) {
                let name = &self.plan.models[model].name;
                return Err(RestoreError::Corrupt(format!("comparison of {name}")));
            }
        }
        Ok(())
    }

    /// Puts back the vector views of versions; those of a model that changed, or whose classes did, are dropped.
    fn put_back_vectors(&mut self, states: Vec<VersionState>, kept: &[Option<usize>]) {
        for state in states {
            let name = format!("{}/{}", state.name, state.version);
            let streams = state.views.len() as u64;
            let model = kept.get(state.model as usize).copied().flatten();
            let serving = self.plan.serves(&state.name);
            let restored = model
                .filter(|m| Some(*m) == serving)
                .and_then(|model| self.vectors.restore(&self.plan, model, state));
            if restored.is_none() {
                self.collector.counters_mut().streams_dropped += streams;
                self.dropped.push(format!(
                    "{name}: vector views of the model changed, or its classes"
                ));
            }
        }
    }

    /// Puts back the joiners, and counts as expired or orphaned what was open in joins or models that the plan no
    /// longer has. `kept` says which models of the snapshot are where.
    fn put_back_joins(
        &mut self,
        states: &[JoinState],
        topics: &[String],
        segment: SegmentOf<'_, '_>,
        models: &[ModelState],
        kept: &[Option<usize>],
    ) -> Result<(), RestoreError> {
        let before = models.len() as u16;
        let same = |m: u16| kept.get(usize::from(m)).copied().flatten() == Some(usize::from(m));
        self.collector.joins_mut().number_journals(states);
        for state in states {
            let (join, partition) = (state.join, state.partition);
            let restored =
                self.collector
                    .put_back_joiner(state, |mark| segment(state, mark), before, same);
            let restored = restored.map_err(|e| {
                RestoreError::Corrupt(format!("journal {join} of partition {partition} {e}"))
            })?;
            if !restored {
                let topic = topics.get(usize::from(state.predictions));
                let topic = topic.map_or("", String::as_str);
                self.dropped.push(format!(
                    "predictions of {topic}/{partition} that waited for outcomes: they are no longer joined, or with \
                     another topic"
                ));
            }
        }
        self.collector.settle_joins();
        match self.fault() {
            Some(error) => Err(RestoreError::Spill(error.clone())),
            None => Ok(()),
        }
    }

    fn put_back(&mut self, model: usize, s: SubjectState) -> Result<(), RestoreError> {
        let name = format!("{}/{}/{}", s.name, s.version, s.segment);
        let corrupt = |_: PackError| RestoreError::Corrupt(format!("sums of {name}"));
        let plan = &self.plan.models[model];
        let mut subject = Subject::new(model, Key::new(&s.name, &s.version, &s.segment));
        subject.newest_ms = s.newest_ms;
        subject.seen_ms = s.seen_ms;
        subject.late = s.late;
        let open: Result<Vec<_>, PackError> = s.open.iter().map(unpacked).collect();
        let views = scalars(plan).count();
        subject
            .restore(open.map_err(corrupt)?, views, plan.grid)
            .map_err(corrupt)?;
        subject.restore_unlabelled(s.open_unlabelled.clone());
        let number = number_of(&mut self.ledger, plan, model, &s);
        let mut judges = judges_for(plan, self.odds[model].as_ref(), &subject, number);
        if !s.judges.is_empty() {
            if s.judges.len() != views {
                return Err(RestoreError::Corrupt(format!("views of {name}")));
            }
            for (judge, state) in judges.iter_mut().zip(s.judges) {
                if let Some(other) = judge.restore(state, &plan.judge).map_err(corrupt)? {
                    keep(&mut self.ledger, &other);
                }
                judge.seen(s.newest_ms);
            }
        }
        let slot = s.slot as usize;
        if slot > SLOT_MAX || !self.collector.put_back(slot, subject) {
            return Err(RestoreError::Corrupt(format!("slot of {name}")));
        }
        if slot >= self.judges.len() {
            self.judges.resize_with(slot + 1, Vec::new);
        }
        self.judges[slot] = judges;
        Ok(())
    }
}

/// The number in the ledger of a subject that comes back.
fn number_of(ledger: &mut Ledger, plan: &ModelPlan, model: usize, s: &SubjectState) -> u64 {
    let Some(options) = &plan.judge.detector else {
        return 0;
    };
    let Some(before) = s.judges.iter().find_map(|j| j.detector.as_ref()) else {
        return ledger.open(model);
    };
    come_back(ledger, options, model, before)
}

/// The number of detectors that were `before`: their own while it is free and their terms are the same.
pub(super) fn come_back(
    ledger: &mut Ledger,
    options: &DetectorOptions,
    model: usize,
    before: &DetectorState,
) -> u64 {
    let number = ledger.reopen(model, before.number);
    if before.terms == options.terms() {
        number
    } else {
        ledger.renew(model, number)
    }
}

/// What a detector that is no more has staked stays in its account.
pub(super) fn keep(ledger: &mut Ledger, d: &DetectorState) {
    ledger.keep(&d.account, &d.budget, d.staked, d.alarms);
}

pub(super) fn model_state(m: &ModelPlan, closed_ms: i64) -> ModelState {
    ModelState {
        name: m.name.clone(),
        views: scalars(m).map(|v| v.to_string()).collect(),
        ladder: m.ladder.clone(),
        grid: m.grid.into(),
        sampling: m.judge.evaluation.sampling.bits(),
        closed_ms,
    }
}

fn subject_state(slot: usize, s: &Subject, judges: &[Judge]) -> SubjectState {
    let bytes = |p: &Packed| p.as_bytes().to_vec();
    let pane = |(start, views): (i64, Vec<Packed>)| (start, views.iter().map(bytes).collect());
    SubjectState {
        model: s.model as u32,
        name: s.key.model().to_owned(),
        version: s.key.version().to_owned(),
        segment: s.key.segment().to_owned(),
        newest_ms: s.newest_ms,
        seen_ms: s.seen_ms,
        late: s.late,
        slot: slot as u32,
        open: s.packed().into_iter().map(pane).collect(),
        open_unlabelled: s.unlabelled(),
        judges: judges.iter().map(Judge::state).collect(),
    }
}

fn unpacked((start, views): &(i64, Vec<Vec<u8>>)) -> Result<(i64, Vec<Packed>), PackError> {
    let views: Result<_, _> = views.iter().map(|b| Packed::from_bytes(b)).collect();
    Ok((*start, views?))
}
