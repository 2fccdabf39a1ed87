//! One engine under replay: its clock is the newest event time, and it ends with the input.

use std::collections::BTreeMap;

use crate::app::error::AppError;
use crate::app::pool::Pool;
use crate::app::replay::stats::ReplayStats;
use crate::collect::{Reason, Refusal};
use crate::judge::Change;
use crate::monitor::{Engine, Plan};
use crate::telemetry::history::History;

/// Records between two ticks of the engine, and between two reports of progress.
const STRIDE: u64 = 4096;

/// Receives the progress of a replay: what is done, and the total.
pub type Progress<'a> = &'a dyn Fn(u64, u64);

/// Receivers of the results of a replay while it runs.
pub struct Listeners<'a> {
    /// Receives the changes as they occur.
    pub on_change: &'a mut dyn FnMut(&Change),
    /// Keeps every judgement of a window, where a history is wanted.
    pub history: Option<&'a History>,
}

/// An engine under replay.
pub(super) struct Session<'a> {
    /// The engine.
    pub engine: Engine,
    /// Records read so far.
    pub records: u64,
    listeners: Listeners<'a>,
}

impl<'a> Session<'a> {
    /// A session without records; this many threads judge its streams.
    pub fn new(
        plan: Plan,
        threads: usize,
        listeners: Listeners<'a>,
    ) -> Result<Session<'a>, AppError> {
        let mut engine = Engine::new(plan);
        let mut runtime = Pool::start(threads)?.runtime();
        runtime.stopwatch = runtime.stopwatch.filter(|_| listeners.history.is_some());
        engine.run_on(runtime);
        Ok(Session {
            engine,
            records: 0,
            listeners,
        })
    }

    /// Whether a stride of records is complete, so that a tick is due.
    pub fn due(&self) -> bool {
        self.records > 0 && self.records.is_multiple_of(STRIDE)
    }

    /// Ticks the engine at the newest event time.
    pub fn tick(&mut self, newest_ms: Option<i64>) {
        let changes = self.engine.tick(newest_ms.unwrap_or(i64::MIN));
        self.report(&changes);
    }

    fn report(&mut self, changes: &[Change]) {
        changes.iter().for_each(&mut *self.listeners.on_change);
        if let Some(history) = self.listeners.history {
            for judged in self.engine.take_judgements() {
                history.observe(&judged.stream, &judged.window, judged.point);
            }
        }
    }

    /// Judges what is left at the end of the input. If outcomes have records of their own, only
    /// mature predictions count.
    pub fn finish(mut self, stats: ReplayStats) -> (Engine, Tally) {
        let changes = match stats.outcomes > 0 {
            true => self.engine.finish_mature(),
            false => self.engine.finish(),
        };
        self.report(&changes);
        let tally = Tally::new(&self.engine, stats);
        (self.engine, tally)
    }
}

/// What became of the records of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records read.
    pub records: u64,
    /// Records that count in a window.
    pub observed: u64,
    /// All other records, by what became of them.
    pub others: BTreeMap<&'static str, u64>,
    /// Smallest and largest event time of the decoded records.
    pub times_ms: Option<(i64, i64)>,
    /// The cap that refused most of the refused records.
    pub cap: Option<Refusal>,
    /// The first rejected record: its place and the reason.
    pub first_rejected: Option<String>,
    /// For topics, the offsets read of each partition: the first, and the one after the last.
    pub offsets: BTreeMap<String, (i64, i64)>,
    /// The parts of the range that retention has deleted.
    pub gaps: Vec<String>,
    /// Streams with late outcomes that came after the last slide of their windows, and how many.
    pub unseen_late: Vec<(String, u64)>,
}

impl Tally {
    fn new(engine: &Engine, stats: ReplayStats) -> Tally {
        let total = engine.counters().total();
        let mut others = BTreeMap::new();
        let mut count = |name, n| {
            if n > 0 {
                *others.entry(name).or_default() += n;
            }
        };
        for (name, n) in total.states() {
            if name != "observed" {
                count(name, n);
            }
        }
        count("pending", total.pending);
        count("waiting", total.waiting);
        for &reason in Reason::ALL {
            count(reason.as_str(), total.rejected(reason));
        }
        count("refused", total.refused.iter().sum());
        let unseen_late = engine.monitor().unseen_late();
        let caps = Refusal::ALL.iter().copied();
        let caps = caps.filter(|cap| total.refused(*cap) > 0);
        Tally {
            records: total.records,
            observed: total.observed,
            others,
            cap: caps.max_by_key(|cap| total.refused(*cap)),
            times_ms: stats.times_ms,
            first_rejected: stats.first_rejected,
            unseen_late: unseen_late.map(|(id, n)| (id.to_string(), n)).collect(),
            ..Tally::default()
        }
    }
}
