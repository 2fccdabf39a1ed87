//! The expected memory of a process with N streams that have R events per second together.
//!
//! The bound assumes that every possible stream has events in every cell of every pane. Here a pane
//! of m cells that gets n events has m·(1 − (1 − 1/m)ⁿ) occupied cells, as if scores were spread
//! evenly. The constants were measured on a process; a test compares its peak with the result.

use super::bounds::{Expected, FETCH_BYTES, MemoryBound, with_slack};
use super::{Config, Input, SourceOptions};
use crate::judge::ModelPlan;
use crate::window::Width;

/// A process that has read nothing.
const PROCESS_BYTES: u64 = 40 << 20;
/// A stream without its panes: names, reports, bookkeeping.
const STREAM_BYTES: f64 = 24_000.0;
/// A sealed pane without its cells.
const PANE_BYTES: f64 = 96.0;
/// A packed cell of a few events.
const CELL_BYTES: f64 = 8.0;
/// An event of a cluster: for long it is alone in its cell of a group.
const CLUSTERED_EVENT_BYTES: f64 = 10.0;

impl MemoryBound {
    /// The expected memory in bytes; at most the bound.
    pub fn estimate(&self, config: &Config, expected: Expected) -> u64 {
        let streams = expected.streams.min(self.streams_max).max(1);
        let rate = expected.rate / streams as f64;
        let stream = |m: &ModelPlan| stream_bytes(m, rate);
        let each = config.plan.models.iter().map(stream).fold(0.0, f64::max);
        let streams = with_slack((each * streams as f64) as u64);
        // During catch-up the queue is neither empty nor full all the time.
        let fetched = |s: &SourceOptions| {
            u64::from(s.kafka.queue_kbytes_max) * 1024 * 3 / 4 + FETCH_BYTES / 8
        };
        let read = config.sources.iter().filter(|s| s.input == Input::Kafka);
        let fetched = read.map(fetched).sum::<u64>();
        let beside = self.bets_bytes + PROCESS_BYTES + fetched;
        streams.saturating_add(beside).min(self.total())
    }
}

/// Memory of one stream with this many events per second.
fn stream_bytes(model: &ModelPlan, rate: f64) -> f64 {
    let pane = |ms: i64| pane_bytes(model, rate * ms as f64 / 1000.0);
    let windows = model.ladder.windows.iter().map(|w| match w.width {
        Width::Time { width_ms, slide_ms } => {
            (width_ms / slide_ms.max(1) + 1) as f64 * pane(slide_ms)
        }
        Width::Count { last } => {
            let panes = last as f64 / (rate * model.ladder.pane_ms as f64 / 1000.0).max(1.0);
            panes * pane(model.ladder.pane_ms)
        }
    });
    // A snapshot is written from a copy.
    let views = model.views.len().max(1) as f64;
    views * (STREAM_BYTES + 2.0 * windows.sum::<f64>())
}

/// Memory of a sealed pane with this many events.
fn pane_bytes(model: &ModelPlan, events: f64) -> f64 {
    let cells = f64::from(model.grid.cells());
    let occupied = |cells: f64| cells * (1.0 - (1.0 - 1.0 / cells).powf(events));
    let more = match model.grid.is_clustered() {
        true => events.min(4096.0) * CLUSTERED_EVENT_BYTES,
        false => 0.0,
    };
    PANE_BYTES + occupied(cells) * CELL_BYTES + more
}
