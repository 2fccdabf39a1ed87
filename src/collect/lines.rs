//! How records move event time, and up to which lines the panes of models can be sealed.

use super::collector::Collector;
use super::event::Disposition;
use super::shape::ModelShape;

impl Collector {
    /// A record that is in no sum moves its partition too: a refused one, whose time is believed, as an
    /// event does; others by their arrival.
    #[cold]
    pub(super) fn pass(
        &mut self,
        source: u16,
        end: Disposition,
        time_ms: i64,
        arrival_ms: Option<i64>,
    ) {
        match (end, arrival_ms) {
            (Disposition::Refused(_), _) => self.reach(source, time_ms, arrival_ms),
            (
                Disposition::Rejected(_)
                | Disposition::Duplicate
                | Disposition::Conflict
                | Disposition::Late,
                Some(arrival_ms),
            ) => self.partitions.hear(arrival_ms),
            _ => {}
        }
    }

    /// The partition of the record at hand has come to this time.
    #[inline]
    pub(super) fn reach(&mut self, source: u16, time_ms: i64, arrival_ms: Option<i64>) {
        let ahead_max_ms = self.bounds.future_max_ms;
        if self.partitions.observe(time_ms, arrival_ms, ahead_max_ms) {
            self.counters.source_mut(source).ahead += 1;
        }
    }

    /// Whether a pane of some model can be sealed.
    #[inline]
    pub fn due(&self) -> bool {
        self.partitions
            .frontier_ms()
            .is_some_and(|frontier| frontier >= self.due_ms)
    }

    /// The line before which `model`'s panes can be sealed, if it has moved.
    pub fn line(&self, model: usize) -> Option<i64> {
        let line = self.line_at(model, self.partitions.frontier_ms()?);
        (line > self.sealed_until_ms[model]).then_some(line)
    }

    /// The line of `model` where event time has come to `time_ms`.
    pub fn line_at(&self, model: usize, time_ms: i64) -> i64 {
        self.models[model].line_at(time_ms)
    }

    /// The line of `model` after the newest event of all, for the end of input. It does not depend on
    /// which partition had the event, nor on how far the line has come.
    pub fn last_line(&self, model: usize) -> i64 {
        let pane_ms = self.models[model].pane_ms;
        // Outcomes come after the last prediction; nothing is judged for their sake.
        let newest = match self.joins.plans() {
            [] => self.partitions.newest_ms(),
            _ => self.streams.iter().map(|(_, s)| s.newest_ms).max(),
        };
        let end = newest.map(|t| t - t.rem_euclid(pane_ms) + pane_ms);
        end.map_or(self.sealed_until_ms[model], |end| {
            end.max(self.sealed_until_ms[model])
        })
    }

    /// The line of `model` before which everything is mature at this event time; not before the present one.
    pub fn mature_line(&self, model: usize, now_ms: i64) -> i64 {
        let shape = &self.models[model];
        let at = now_ms.saturating_sub(shape.maturity_ms);
        let line = at.saturating_sub(at.rem_euclid(shape.pane_ms));
        line.max(self.sealed_until_ms[model])
    }

    /// The line of `model` up to which everything is sealed.
    pub fn sealed_until_ms(&self, model: usize) -> i64 {
        self.sealed_until_ms[model]
    }

    /// Moves `model`'s line. The caller has taken all panes before it.
    pub fn close(&mut self, model: usize, line_ms: i64) {
        self.sealed_until_ms[model] = self.sealed_until_ms[model].max(line_ms);
        let due = |(shape, closed): (&ModelShape, &i64)| {
            closed.saturating_add(shape.pane_ms + shape.lateness_ms + shape.maturity_ms)
        };
        let all = self.models.iter().zip(&self.sealed_until_ms).map(due);
        self.due_ms = all.min().unwrap_or(i64::MAX);
    }
}
