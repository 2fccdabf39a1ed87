//! The union of what others have counted: one seat for each partition, filled by its newest parcel.
//!
//! Workers count and lay out what they seal; their parcels bring it here ([`super::laid`]). A seat holds the partition's
//! state as the newest parcel says, which nobody here adds to. What was laid out since the parcel before is poured into the union
//! as if the lane were in this process, and the union seals and judges slide after slide, up to the line that all
//! seats have passed that must be waited for. Who must is told from outside ([`Panel::pass`]); so nothing here knows a clock or a broker.
//!
//! ```text
//!   parcel of partition 0 ─► seat ─┐ items since the parcel before
//!   parcel of partition 1 ─► seat ─┼──────────────────────────────► union ─► windows, verdicts, alerts
//!   parcel of partition 2 ─► seat ─┘
//! ```
//!
//! Where items are missing (parcels were gone before they were read, or were written by a process that judged
//! itself) the union is made anew of the seats' windows: sums are exact at once, and the slides up to the furthest line are not
//! judged. They are [counted](Panel::skipped).
//!
//! Always: an item was poured once, or is in the windows of which the union was made. What was judged depends on the parcels and on who was
//! waited for, not on when they were read. A panel restored from its snapshot goes on at the item that comes next of each partition.

use super::engine::{Engine, Plan, RestoreError, Snapshot};
use super::laid::poured_of;
use super::lanes::{compared, fold};
use crate::collect::{Counters, Origin};
use crate::judge::{Change, ComparisonReport, Stopwatch};
use crate::store::laid::Mark;
use crate::store::reader::FoundCheckpoint;
use crate::store::snapshot::{FollowedState, ModelState};
use std::collections::BTreeMap;

/// Number of a topic, and partition.
pub type At = (u16, i32);

/// The state of one partition.
#[derive(Debug, Default)]
struct Seat {
    /// As its newest parcel says; missing between a restart and the first parcel.
    engine: Option<Engine>,
    /// How much of what it laid out was taken in; missing where the parcel had no items.
    mark: Option<Mark>,
    /// Verdicts do not wait for it.
    passed: bool,
    /// When the oldest prediction that waits there is mature, by model.
    dues_ms: Vec<Option<i64>>,
}

/// See the module.
pub struct Panel {
    plan: Plan,
    topics: Vec<String>,
    seats: BTreeMap<At, Seat>,
    union: Engine,
    /// The union lacks something that the windows of its seats have.
    stale: bool,
    changes: Vec<Change>,
    /// What unions counted that are gone.
    before: Counters,
    nanos: Vec<u64>,
    skipped: u64,
}

impl Panel {
    /// Without parcels; `topics` are the names of the topics by number.
    pub fn new(plan: Plan, topics: Vec<String>) -> Panel {
        Panel {
            union: Engine::union(&plan),
            plan,
            topics,
            seats: BTreeMap::new(),
            stale: false,
            changes: Vec::new(),
            before: Counters::default(),
            nanos: Vec::new(),
            skipped: 0,
        }
    }

    /// One that goes on from its snapshot.
    pub fn restore(
        plan: Plan,
        topics: Vec<String>,
        snapshot: Snapshot,
    ) -> Result<Panel, RestoreError> {
        let followed = snapshot.followed.clone().unwrap_or_default();
        let seat = |(topic, partition, mark): (String, i32, Mark)| {
            let source = topics.iter().position(|t| *t == topic)?;
            let seat = Seat {
                mark: Some(mark),
                ..Seat::default()
            };
            Some(((u16::try_from(source).ok()?, partition), seat))
        };
        let seats = followed.seats.into_iter().filter_map(seat).collect();
        let union = Engine::union_from(&plan, snapshot)?;
        Ok(Panel {
            union,
            seats,
            ..Panel::new(plan, topics)
        })
    }

    /// The union with how far each partition was taken in; offsets of the topic are added by who reads it.
    pub fn snapshot(&self) -> Snapshot {
        let seat = |(at, seat): (&At, &Seat)| {
            let topic = self.topics.get(usize::from(at.0))?.clone();
            Some((topic, at.1, seat.mark?))
        };
        Snapshot {
            followed: Some(FollowedState {
                homes: Vec::new(),
                seats: self.seats.iter().filter_map(seat).collect(),
            }),
            topics: self.topics.clone(),
            ..self.union.snapshot()
        }
    }

    /// The plan of its seats: no join, no judgement.
    fn plan_of_seat(&self) -> Plan {
        Plan {
            joins: Vec::new(),
            ..self.plan.of_lane()
        }
    }

    /// Takes the newest parcel of a partition. An error says why it cannot be used.
    pub fn take(&mut self, at: At, found: FoundCheckpoint) -> Result<(), String> {
        let (epoch, laid) = (found.epoch, found.checkpoint.laid);
        let mut snapshot = found.checkpoint.snapshot;
        self.fits(&snapshot.models)?;
        let due = |name: &str| {
            let theirs = snapshot.models.iter().position(|m| m.name == name)?;
            laid.as_ref()?.dues_ms.get(theirs).copied().flatten()
        };
        let dues_ms = self.plan.models.iter().map(|m| due(&m.name)).collect();
        snapshot.rebind(&self.topics);
        // What waits for outcomes waits where it is counted.
        snapshot.joins.clear();
        let engine = Engine::restore(self.plan_of_seat(), snapshot).map_err(|e| e.to_string())?;
        let mut engine = engine.lane();
        if let Some(laid) = &laid {
            engine.let_wait(&laid.waiting);
        }
        let seat = self.seats.entry(at).or_default();
        let mark = laid.as_ref().map(|laid| Mark {
            epoch,
            upto: laid.upto(),
        });
        // Read again after a restart, from before the snapshot.
        let behind = |a: Mark, b: Mark| (a.epoch, a.upto) < (b.epoch, b.upto);
        if let (Some(mark), Some(read)) = (mark, seat.mark)
            && behind(mark, read)
        {
            return Ok(());
        }
        let known = laid.as_ref().and_then(|laid| laid.known(epoch, seat.mark));
        (seat.engine, seat.mark, seat.dues_ms) = (Some(engine), mark, dues_ms);
        match (known, laid) {
            (Some(known), Some(laid)) => {
                for item in laid.items.into_iter().skip(known) {
                    let ours = self.plan.serves(item.model()).is_some();
                    match poured_of(item, &self.plan) {
                        Some(poured) => self.union.pour(poured),
                        // What it says is in the windows of the seat too.
                        None => self.stale |= ours,
                    }
                }
            }
            _ => self.stale = true,
        }
        Ok(())
    }

    /// Whether sums under these shapes can be added to ours.
    fn fits(&self, theirs: &[ModelState]) -> Result<(), String> {
        let ours = self.union.shapes();
        let same = |m: &ModelState| {
            let other = theirs.iter().find(|t| t.name == m.name);
            other.is_some_and(|t| {
                ModelState {
                    closed_ms: 0,
                    ..t.clone()
                } == *m
            })
        };
        match ours.iter().find(|m| !same(m)) {
            None => Ok(()),
            Some(model) => Err(format!(
                "it was counted under another configuration of model {}: its views, cells, windows, lateness or \
                 sampling differ from this process'; give both the same file",
                model.name
            )),
        }
    }

    /// Says whether verdicts wait for a partition.
    pub fn pass(&mut self, at: At, passed: bool) {
        self.seats.entry(at).or_default().passed = passed;
    }

    /// Judges what all have passed that are waited for.
    pub fn settle(&mut self) {
        if std::mem::take(&mut self.stale) {
            self.make_union();
        }
        self.union.advance(&self.lines());
    }

    /// Up to where each model can be judged: the least line of those who are waited for; where nobody is, the furthest.
    fn lines(&self) -> Vec<i64> {
        let n = self.plan.models.len();
        let lines = |s: &Seat| match &s.engine {
            Some(engine) => engine.lines(),
            // Nothing is known of it.
            None => vec![i64::MIN; n],
        };
        let mut waited = self.seats.values().filter(|s| !s.passed).peekable();
        match waited.peek() {
            Some(_) => fold(waited.map(lines), n, i64::MAX, i64::min),
            None => fold(self.seats.values().map(lines), n, i64::MIN, i64::max),
        }
    }

    fn engines_of_seats(&self) -> impl Iterator<Item = &Engine> + Clone {
        self.seats.values().filter_map(|s| s.engine.as_ref())
    }

    fn make_union(&mut self) {
        let memories = self.union.remembered(None);
        let union = Engine::union_of(&self.plan, &self.union, self.engines_of_seats(), &memories);
        let models = self.plan.models.iter();
        for ((model, was), is) in models.zip(self.union.lines()).zip(union.lines()) {
            // A model that was never judged misses nothing.
            if was > i64::MIN {
                let panes = (is - was) / model.ladder.pane_ms;
                self.skipped += panes.unsigned_abs();
            }
        }
        let mut old = std::mem::replace(&mut self.union, union);
        self.before.evaluations += old.counters().evaluations;
        self.before.streams_expired += old.counters().streams_expired;
        self.changes.extend(old.take_changes());
        self.nanos.extend(old.take_nanos());
    }

    /// See [`Engine::tick`].
    pub fn tick(&mut self, now_ms: i64) -> Vec<Change> {
        let due = |model: usize| {
            let seats = self.seats.values();
            seats
                .filter_map(|s| s.dues_ms.get(model).copied().flatten())
                .min()
        };
        let dues = (0..self.plan.models.len()).map(due).collect();
        self.union.listen(dues);
        for engine in self.seats.values().filter_map(|s| s.engine.as_ref()) {
            self.union.hear_parcel(engine, now_ms);
        }
        self.changes.extend(self.union.tick(now_ms));
        std::mem::take(&mut self.changes)
    }

    /// The union.
    pub fn union(&self) -> &Engine {
        &self.union
    }

    /// All engines.
    pub fn engines(&self) -> impl Iterator<Item = &Engine> {
        self.engines_of_seats().chain([&self.union])
    }

    /// What was judged here; records are counted where they are read.
    pub fn counters(&self) -> Counters {
        let mut counters = self.before.clone();
        counters.evaluations += self.union.counters().evaluations;
        counters.streams_expired += self.union.counters().streams_expired;
        counters.streams_dropped += self.union.counters().streams_dropped;
        counters
    }

    /// Base panes of models at whose ends nothing was judged, because items were missing.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Versions that scored the same ids, over all partitions.
    pub fn comparisons(&self) -> Vec<ComparisonReport> {
        compared(&self.plan, self.engines_of_seats())
    }

    /// The next offset of each partition in the parcels in use.
    pub fn positions(&self) -> Vec<Origin> {
        self.engines_of_seats()
            .flat_map(Engine::positions)
            .collect()
    }

    /// Whether a partition's parcel says that it was read to its end; `None` where there is no parcel.
    pub fn idle(&self, at: At) -> Option<bool> {
        Some(self.seats.get(&at)?.engine.as_ref()?.is_idle())
    }

    /// See [`Engine::live`].
    pub fn live(&mut self, new: &Plan) {
        self.union.live(new);
        let now = self.union.plan();
        self.plan.models.clone_from(&now.models);
        self.plan.caps = now.caps.clone();
    }

    /// See [`Engine::time_by`].
    pub fn time_by(&mut self, stopwatch: Stopwatch) {
        self.union.time_by(stopwatch);
    }

    /// See [`Engine::take_nanos`].
    pub fn take_nanos(&mut self) -> Vec<u64> {
        let mut all = std::mem::take(&mut self.nanos);
        all.extend(self.union.take_nanos());
        all
    }
}
