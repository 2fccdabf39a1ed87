//! The changes that time alone makes: verdicts become stale or stalled, and unused streams expire.
//!
//! The clock withdraws values. Stale values come back with the next slide after a new pane of the
//! stream or a new prediction that waits, stalled ones as soon as the watermark moves. Event time
//! decides which streams expire: those whose newest event is at least `stream_expiry` before the
//! watermark, and at least the longest window with its slide; and only while every partition is
//! read.

use super::{Monitor, Stream};
use crate::collect::{LastSeen, SegmentKind};
use crate::judge::Change;
use crate::monitor::views::{VersionName, scalars};

impl Monitor {
    /// Advances the clock to `now_ms`: withdraws stale values, or all values if the watermark is
    /// `stalled`. If all partitions are read (`whole`), expires unused streams. Returns all changes
    /// since the last call.
    pub fn tick(&mut self, now_ms: i64, stalled: bool, whole: bool) -> Vec<Change> {
        self.observe_rollups();
        for slot in 0..self.streams.len() {
            self.tick_stream(slot, now_ms, stalled, whole);
        }
        if whole {
            self.expire_rollups(now_ms);
        }
        let (plan, sealed_until_ms) = (&self.plan, &self.sealed_until_ms);
        let least_ms = plan.caps.expire_after_ms;
        let expired = |m: usize, newest_ms| {
            whole
                && plan.models[m]
                    .ladder
                    .is_past(newest_ms, sealed_until_ms[m], least_ms)
        };
        self.vectors
            .tick(plan, now_ms, stalled, expired, &mut self.changes);
        self.take_changes()
    }

    /// Whether the watermark is as far past the newest event of the stream as streams are kept.
    fn is_expired(&self, stream: &Stream) -> bool {
        let sealed_until_ms = self.sealed_until_ms[stream.model];
        let ladder = &self.plan.models[stream.model].ladder;
        ladder.is_past(
            stream.last.newest_ms,
            sealed_until_ms,
            self.plan.caps.expire_after_ms,
        )
    }

    fn tick_stream(&mut self, slot: usize, now_ms: i64, stalled: bool, whole: bool) {
        let Some(stream) = self.streams.get_mut(slot) else {
            return;
        };
        let came = stream.last.seen;
        let without_event_ms = stream.last.tick(now_ms);
        let (model, waits) = (stream.model, stream.waiting > 0);
        let unused = self.streams.get(slot).is_some_and(|s| self.is_expired(s));
        if whole && unused && !waits && self.may_expire(slot) {
            self.expire(slot, now_ms);
            return;
        }
        self.make_judges(slot);
        let due_ms = self.due_ms[model].filter(|_| waits);
        let Some(stream) = self.streams.get_mut(slot) else {
            return;
        };
        if let Some(due_ms) = due_ms {
            let name = VersionName::of_key(&stream.key);
            self.vectors.await_until(&self.plan, name, due_ms);
        }
        let options = &self.plan.models[model].judge;
        for judge in &mut stream.judges {
            judge.set_due_ms(due_ms);
            if came {
                judge.note_event();
            }
            let stale = without_event_ms >= options.stale_after_ms;
            judge.tick(now_ms, stale, stalled, options, &mut self.changes);
        }
    }

    /// Counts the segments of each roll-up, and merges what they have seen and wait for.
    fn observe_rollups(&mut self) {
        let rollups = self.streams.iter_mut();
        for (_, rollup) in rollups.filter(|(_, s)| s.kind == SegmentKind::RollUp) {
            (rollup.waiting, rollup.segments) = (0, 0);
        }
        for slot in 0..self.streams.len() {
            let Some(rollup) = self.rollup_of(slot) else {
                continue;
            };
            let said = self.streams.get(slot);
            let said = said.map(|s| (s.last, s.waiting));
            if let (Some((last, waiting)), Some(rollup)) = (said, self.streams.get_mut(rollup)) {
                // A roll-up has ticks of its own.
                rollup.last.merge(LastSeen {
                    seen_ms: None,
                    ..last
                });
                rollup.waiting += waiting;
                rollup.segments += 1;
            }
        }
    }

    /// Whether a stream may expire: a roll-up only without segments.
    fn may_expire(&self, slot: usize) -> bool {
        self.streams.get(slot).is_none_or(|s| s.segments == 0)
    }

    /// Expires roll-ups whose last segment has just gone: shards no longer keep room for them.
    fn expire_rollups(&mut self, now_ms: i64) {
        let unused = |s: &Stream| s.waiting == 0 && self.is_expired(s);
        let rollups = self
            .streams
            .iter()
            .filter(|(_, s)| s.kind == SegmentKind::RollUp);
        let unused = rollups.filter(|(_, s)| unused(s)).map(|(slot, _)| slot);
        for slot in unused.collect::<Vec<_>>() {
            if self.may_expire(slot) {
                self.expire(slot, now_ms);
            }
        }
    }

    /// Removes a stream; what its detectors staked stays in the ledger.
    fn expire(&mut self, slot: usize, now_ms: i64) {
        let rollup = self.rollup_of(slot);
        if let Some(rollup) = rollup.and_then(|slot| self.streams.get_mut(slot)) {
            rollup.segments -= 1;
        }
        let Some(stream) = self.streams.remove(slot) else {
            return;
        };
        self.moved = true;
        let plan = &self.plan.models[stream.model];
        self.counts.streams_expired += scalars(plan).count() as u64;
        for mut judge in stream.judges {
            judge.leave(now_ms, &plan.judge, &mut self.changes);
            if let Some(detector) = judge.detector() {
                self.ledger.keep(&detector.state());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BEGIN_MS, plan};
    use super::*;
    use crate::collect::Key;
    use crate::monitor::activity::Activity;
    use crate::stats::rng::Rng;
    use std::collections::BTreeSet;
    use std::iter::{empty, once};

    type Text = [String; 3];

    fn text(stream: &Stream) -> Text {
        stream.key.names().text().map(str::to_owned)
    }

    /// The names of the streams that a tick leaves: those that are recent or wait, and the roll-ups
    /// of these.
    fn kept(monitor: &Monitor) -> BTreeSet<Text> {
        let stays = |s: &Stream| s.waiting > 0 || !monitor.is_expired(s);
        let version = |s: &Stream| [s.key.model().to_owned(), s.key.version().to_owned()];
        let streams = || monitor.streams.iter().map(|(_, s)| s);
        let segments = streams().filter(|s| s.kind.is_rolled_up() && stays(s));
        let rolled_up: BTreeSet<_> = segments.map(version).collect();
        let needed = |s: &&Stream| s.kind == SegmentKind::RollUp && rolled_up.contains(&version(s));
        let kept = streams().filter(|s| stays(s) || needed(s));
        kept.map(text).collect()
    }

    #[test]
    fn a_roll_up_goes_with_its_last_segment_as_by_a_scan_of_all_streams() {
        let mut plan = plan();
        plan.models[0].segmenting.rollup = true;
        let (mut monitor, mut rng) = (Monitor::new(plan), Rng::new(4));
        let (mut gone, mut held) = (0, 0);
        for i in 0..600i64 {
            let now_ms = BEGIN_MS + i * 1_000;
            monitor.sealed_until_ms[0] = now_ms;
            let mut below = |n: f64| (rng.uniform() * n) as i64;
            let names = (0..12).map(|_| {
                let segment = ["", "other", "k=a", "k=b", "k=c"][below(5.0) as usize];
                let version = (i / 20 + below(12.0)).to_string();
                let key = Key::new("m", &version, segment);
                // A prediction that waits may be long past.
                let waits = below(3.0) == 0;
                (key, waits, below(if waits { 900_000.0 } else { 9_000.0 }))
            });
            let names: Vec<_> = names.collect();
            let activity = names.iter().map(|(key, waits, before_ms)| Activity {
                of: key,
                last: LastSeen::before(now_ms - before_ms),
                pending: u64::from(*waits),
                begins: true,
            });
            monitor.observe(vec![None], once((activity, empty())));
            monitor.observe_rollups();
            let (before, kept) = (monitor.streams.iter().count(), kept(&monitor));
            let whole = i % 7 > 0;
            monitor.tick(now_ms, false, whole);
            let all = || monitor.streams.iter().map(|(_, s)| s);
            let left: BTreeSet<_> = all().map(text).collect();
            if !whole {
                assert_eq!(left.len(), before);
                continue;
            }
            assert_eq!(left, kept, "{i}");
            gone += before - left.len();
            for rollup in all().filter(|s| s.kind == SegmentKind::RollUp) {
                let version = rollup.key.version();
                let mine = all().filter(|s| s.key.version() == version);
                let segments = mine.filter(|s| s.kind.is_rolled_up()).count();
                assert_eq!(rollup.segments, segments as u64, "{i}: {version}");
                held += u32::from(monitor.is_expired(rollup));
            }
        }
        assert!(gone > 1_000 && held > 0, "{gone} {held}");
    }
}
