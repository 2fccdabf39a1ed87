//! The reports of a process that watches as many streams as a page must bear.

use std::sync::Arc;

use super::published::{id, now_ms, sample, window};
use trueline::alert::{Alert, AlertState, Severity};
use trueline::judge::{Numbers, StreamReport, Undecided, Verdict};
use trueline::stats::view::View;
use trueline::telemetry::Published;
use trueline::telemetry::published::Limits;

/// Streams, five a model, with three windows each; every seventh is miscalibrated, and of these
/// every other one pages.
pub fn many_streams(streams: usize, limits: Limits) -> Arc<Published> {
    let published = Arc::new(Published::new(limits));
    let good = Arc::new(sample(20_000, |u| u, |z| z));
    let bad = Arc::new(sample(20_000, |u| u, |z| 0.5 + 0.6 * (z - 0.5)));
    let blank = |name: &str, verdict, alert| window(name, verdict, alert, None);
    for i in 0..streams {
        let (verdict, evaluation) = match i % 7 {
            0 => (Verdict::Miscalibrated, Some(&bad)),
            1 => (Verdict::Undecided(Undecided::TooFew), None),
            _ => (Verdict::Calibrated, Some(&good)),
        };
        let mut windows = Vec::new();
        for name in ["5m", "1h", "24h"] {
            let mut one = blank(name, verdict, AlertState::Inactive);
            one.numbers = evaluation.map(|e| Numbers::Scores(Arc::clone(e)));
            one.n = 20_000;
            one.recalibration = None;
            windows.push(one);
        }
        let name = format!("recommendation-model-{:03}", i / 5);
        let id = id(
            &name,
            "2026-11-01",
            &format!("country={}", i % 5),
            View::Binary,
        );
        published.publish(&Arc::new(StreamReport {
            id,
            last_event_ms: now_ms(),
            due_ms: None,
            overdispersion: None,
            detector: None,
            alert: Alert {
                state: match i % 14 {
                    0 => AlertState::Firing,
                    _ => AlertState::Inactive,
                },
                since_ms: Some(now_ms()),
                severity: Severity::Page,
                ..Alert::default()
            },
            windows,
        }));
    }
    published.ready("engine");
    published
}
