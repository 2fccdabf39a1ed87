//! What may be changed of a monitor while it runs, what it runs on, and what is taken from it.

use super::Monitor;
use crate::judge::{Change, Judge, Plan, Runtime, StreamId, WindowJudgement};

impl Monitor {
    /// Takes over what may change in a plan at run time. See [`Plan::reload`].
    pub fn reload(&mut self, new: &Plan) {
        self.plan.reload(new);
    }

    /// Makes the alerts of these streams depend only on data from now on. With `close` it also ends
    /// the alerts that fire. Returns the number of streams.
    pub fn start_over(&mut self, of: impl Fn(&StreamId) -> bool, close: Option<&str>) -> usize {
        self.moved = true;
        let Monitor {
            streams,
            vectors,
            plan,
            sealed_until_ms,
            changes,
            ..
        } = self;
        let judges = streams.iter_mut();
        let judges = judges.flat_map(|(_, s)| s.judges.iter_mut().map(|j| (s.model, j)));
        let mut found = 0;
        for (model, judge) in judges.chain(vectors.judges_of_models()) {
            if of(&judge.report().id) {
                let (at_ms, options) = (sealed_until_ms[model], &plan.models[model].judge);
                judge.start_over(at_ms, close, options, changes);
                found += 1;
            }
        }
        found
    }

    /// Judges with the stopwatch and threads that the process lends, from now on.
    pub fn run_on(&mut self, runtime: Runtime) {
        let stopwatch = runtime.stopwatch;
        self.judges_mut().for_each(|j| j.time_by(stopwatch));
        self.vectors.time_by(stopwatch);
        self.runtime = runtime;
    }

    /// What happened since the last call or tick.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.judges_mut().for_each(Judge::report_detector);
        std::mem::take(&mut self.changes)
    }

    /// The judgements since the last call; empty without a stopwatch.
    pub fn take_judgements(&mut self) -> Vec<WindowJudgement> {
        let mut all = std::mem::take(&mut self.judgements);
        if self.runtime.stopwatch.is_some() {
            self.judges_mut().for_each(|j| j.take_judgements(&mut all));
            self.vectors.take_judgements(&mut all);
        }
        all
    }
}
