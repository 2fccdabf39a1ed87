//! A monitor that compares its streams only if something changed reports the same as one that
//! always does.

use super::*;
use crate::collect::{Disposition, Event, Origin, PartitionId, Segmenting};
use crate::judge::{DetectorOptions, JudgeOptions, StreamReport};
use crate::monitor::shard::Shard;
use crate::stats::axis::{Axis, Grid};
use crate::stats::rng::Rng;
use crate::stats::view::{Outcome, Prediction, View};
use crate::window::{Ladder, WindowSpec};
use std::iter::once;

pub(super) const BEGIN_MS: i64 = 1_700_000_064_000;

pub(super) fn plan() -> Plan {
    let windows = vec![WindowSpec::time("6s", 6_000)];
    let budget = "1 per 1h".parse().expect("a budget");
    let model = ModelPlan {
        name: "*".to_owned(),
        segmenting: Segmenting::default(),
        views: vec![View::Class(0), View::Class(1)],
        classes: ["no", "yes"].map(str::to_owned).to_vec(),
        ladder: Ladder::new(windows, 1_000).expect("a ladder"),
        grid: Grid::new(Axis::Linear, 6),
        judge: JudgeOptions {
            min_events: 10,
            detector: Some(DetectorOptions {
                streams: 8.0,
                ..DetectorOptions::alone(budget, 0.05)
            }),
            ..JudgeOptions::plain()
        },
    };
    let mut plan = Plan {
        models: vec![model],
        ..Plan::default()
    };
    plan.caps.expire_after_ms = 10_000;
    plan
}

/// Takes the deltas of a shard as its monitor does; each must fit.
struct Fitting<'m>(&'m mut Monitor);

impl DeltaSink for Fitting<'_> {
    fn begin(&mut self, shard: &Shard) {
        self.0.begin(shard);
    }

    fn take(&mut self, delta: Delta) -> u64 {
        self.0.apply(delta).expect("it fits")
    }

    fn advance(&mut self, model: usize, until_ms: i64) {
        self.0.advance(model, until_ms);
    }

    fn end(&mut self) {
        self.0.end();
    }
}

/// A shard and a monitor, which compares its streams after each record; `always`: as if something
/// had changed.
struct Pair {
    shard: Shard,
    monitor: Monitor,
    always: bool,
}

impl Pair {
    fn new(always: bool) -> Pair {
        let mut shard = Shard::new(plan());
        shard.assign(PartitionId {
            source: 0,
            partition: 0,
        });
        let monitor = Monitor::new(plan());
        Pair {
            shard,
            monitor,
            always,
        }
    }

    fn take(&mut self, origin: Origin, event: &Event<'_>) {
        let end = self.shard.observe(origin, event);
        assert_eq!(end, Disposition::Observed);
        self.shard.drain_into(&mut Fitting(&mut self.monitor));
        self.compare();
    }

    fn compare(&mut self) {
        self.monitor.moved |= self.always;
        self.monitor.compare_streams();
    }

    fn tick(&mut self, now_ms: i64) {
        let shard = self.shard.view();
        let activity = (shard.activity(), shard.vector_activity());
        self.monitor.observe(shard.due_ms(), once(activity));
        self.shard.tick(now_ms);
        self.monitor.tick(now_ms, false, true);
        self.compare();
    }

    /// Reports with the streams that are called, and what was judged.
    fn said(&mut self) -> (Vec<StreamReport>, String, u64) {
        self.monitor.take_changes();
        let reports = self.monitor.view().reports();
        let reports = reports.map(|r| StreamReport::clone(r)).collect();
        let ledger = format!("{:?}", self.monitor.view().ledger());
        (reports, ledger, self.monitor.counts.evaluations)
    }
}

#[test]
fn streams_compared_where_something_changed_are_as_if_always_compared() {
    let mut pairs = [false, true].map(Pair::new);
    let (mut rng, mut called) = (Rng::new(3), 0);
    for i in 0..20_000i64 {
        let z = 0.05 + 0.9 * rng.uniform();
        // Streams come and go; some of them are wrong.
        let version = (i / 3_000 + i % 3).to_string();
        let wrong = (i / 3_000 + i % 3) % 3 == 0;
        let yes = rng.uniform() < if wrong { z * z } else { z };
        let event = Event {
            model: "m",
            version: &version,
            segment: "",
            id: b"",
            time_ms: BEGIN_MS + i * 5,
            arrival_ms: None,
            prediction: Prediction::Vector(&[1.0 - z, z]),
            outcome: Some(Outcome::Class(u32::from(yes))),
            weight: None,
            cluster: None,
        };
        let origin = Origin {
            source: 0,
            partition: 0,
            offset: i,
        };
        for pair in &mut pairs {
            pair.take(origin, &event);
            if i % 700 == 0 {
                pair.tick(i);
            }
            if i % 5_000 == 4_999 {
                pair.monitor.start_over(|id| id.version == version, None);
                pair.compare();
            }
        }
        if i % 50 == 0 {
            let [a, b] = &mut pairs;
            let (ours, theirs) = (a.said(), b.said());
            assert!(ours == theirs, "{i}");
            let accounts = a.monitor.view().ledger();
            called += accounts.iter().map(|a| a.called.len()).sum::<usize>();
        }
    }
    assert!(called > 0 && pairs[0].monitor.counts.streams_expired > 0);
}
