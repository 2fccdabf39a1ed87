//! The past verdicts of windows, and the last alerts of each stream.
//!
//! A page that shows only the present cannot show whether a model drifts or was always
//! miscalibrated. So every judgement of a window is kept as one point, and points are thinned with
//! age: the newest [`RECENT`] are all kept, then one per [`DAY_STEP_MS`] of a day, then one per
//! [`MONTH_STEP_MS`] of 30 days. Each step keeps the numbers of its worst point: a miscalibrated
//! point before others, otherwise the one with the highest lower end of the interval. So a short
//! fault is still visible a month later. It also counts all its verdicts, because the worst of many
//! says little about the rest: a test of a calibrated model rejects now and then. Times are event
//! times, and age counts from the newest point of the window, so the same judgements give the same
//! history. A judgement repeated after a restart replaces itself.
//!
//! The history is derived: it is written by the engine's loop and read by requests, and no verdict
//! depends on it.
//!
//! Bounds: at most [`SERIES_POINTS_MAX`] points for a window and [`POINTS_MAX`] in all; at most
//! [`ALERTS_MAX`] alerts of a stream, for at most [`STREAMS_MAX`] streams. When all points are
//! taken, the windows with the most points lose their oldest, until a hundredth is free. Points and
//! alerts without room are counted. [`bytes_max`] bounds the memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dashmap::DashMap;
use serde::{Deserialize, Serialize};

use crate::judge::{HistoryPoint, StreamId, Verdict};

/// Newest points of a window that are all kept.
pub const RECENT: usize = 120;
/// For a day, one point per step of this length is kept.
pub const DAY_STEP_MS: i64 = 600_000;
/// For 30 days, one point per step of this length is kept.
pub const MONTH_STEP_MS: i64 = 3 * 3_600_000;
/// Older points are dropped.
pub const AGE_MS_MAX: i64 = 30 * DAY_MS;
/// Most points of one window, between two thinnings.
pub const SERIES_POINTS_MAX: usize = RECENT + 145 + 241 + SLACK;
/// Most points of all windows: 64 MB.
pub const POINTS_MAX: usize = 1_000_000;
/// Most alerts of one stream; the oldest go first.
pub const ALERTS_MAX: usize = 12;
/// Most streams: as many as may be monitored.
pub const STREAMS_MAX: usize = 10_000;
/// Longest sentence of an alert.
const SENTENCE_BYTES_MAX: usize = 400;

const DAY_MS: i64 = 86_400_000;
/// Points above the kept ones that trigger the next thinning.
const SLACK: usize = 64;

/// Most memory for this many streams with this many windows each.
pub fn bytes_max(streams: u64, windows: u64) -> u64 {
    // A deque may be half empty.
    let point = 2 * size_of::<HistoryPoint>() as u64;
    let points = streams.saturating_mul(windows);
    let points = points.saturating_mul(SERIES_POINTS_MAX as u64);
    let streams = streams.min(STREAMS_MAX as u64);
    let alerts = streams * (ALERTS_MAX * (SENTENCE_BYTES_MAX + size_of::<HistoryAlert>())) as u64;
    points.min(POINTS_MAX as u64) * point + alerts
}

/// A change of a stream's alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryAlert {
    /// Time of the change, in ms since 1970.
    pub at_ms: i64,
    /// The state that it entered.
    pub state: String,
    /// Its severity.
    pub severity: String,
    /// The facts known then, in words.
    pub sentence: String,
}

/// The history of one stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamHistory {
    /// Windows with their points, the oldest first.
    pub windows: Vec<(String, VecDeque<HistoryPoint>)>,
    /// Alerts, the oldest first.
    pub alerts: VecDeque<HistoryAlert>,
}

/// The histories of all streams.
#[derive(Debug)]
pub struct History {
    streams: DashMap<StreamId, StreamHistory>,
    points: AtomicUsize,
    /// Cap on all points, [`POINTS_MAX`] except in tests.
    points_max: usize,
    refused: AtomicU64,
}

impl Default for History {
    fn default() -> History {
        History::of_at_most(POINTS_MAX)
    }
}

impl History {
    fn of_at_most(points_max: usize) -> History {
        History {
            streams: DashMap::new(),
            points: AtomicUsize::new(0),
            points_max,
            refused: AtomicU64::new(0),
        }
    }

    /// Takes a judgement, and returns whether it changed the history.
    pub fn observe(&self, stream: &StreamId, window: &str, point: HistoryPoint) -> bool {
        if self.points() >= self.points_max {
            self.make_room();
        }
        if !self.admits(stream, self.points() < self.points_max) {
            return false;
        }
        let mut entry = self.streams.entry(stream.clone()).or_default();
        let known = entry.windows.iter().position(|(name, _)| name == window);
        let at = known.unwrap_or_else(|| {
            entry.windows.push((window.to_owned(), VecDeque::new()));
            entry.windows.len() - 1
        });
        let points = &mut entry.windows[at].1;
        let before = points.len();
        let changed = insert(points, point);
        if points.len() >= SERIES_POINTS_MAX {
            thin(points);
        }
        let after = points.len();
        self.points.fetch_add(after, Ordering::Relaxed);
        self.points.fetch_sub(before, Ordering::Relaxed);
        changed
    }

    /// Takes a change of a stream's alert, and returns whether it is new.
    pub fn alert(&self, stream: &StreamId, mut alert: HistoryAlert) -> bool {
        if !self.admits(stream, true) {
            return false;
        }
        if alert.sentence.len() > SENTENCE_BYTES_MAX {
            let ends = alert.sentence.char_indices().map(|(at, _)| at);
            let end = ends.take_while(|at| *at <= SENTENCE_BYTES_MAX - 3).last();
            alert.sentence.truncate(end.unwrap_or(0));
            alert.sentence.push('…');
        }
        let mut entry = self.streams.entry(stream.clone()).or_default();
        let same = |a: &HistoryAlert| a.at_ms == alert.at_ms && a.state == alert.state;
        if entry.alerts.iter().any(same) {
            return false;
        }
        entry.alerts.push_back(alert);
        while entry.alerts.len() > ALERTS_MAX {
            entry.alerts.pop_front();
        }
        true
    }

    /// Drops the oldest points of the windows with the most points, so that a hundredth of all is
    /// free. It visits all windows, so it must not run for each point.
    fn make_room(&self) {
        let kept = self.points_max - self.points_max.div_ceil(100);
        let mut lengths = Vec::new();
        self.each(|_, history| lengths.extend(history.windows.iter().map(|(_, p)| p.len())));
        let total = |level: usize| lengths.iter().map(|n| level.min(*n)).sum::<usize>();
        // The highest number of points that every window may keep.
        let (mut level, mut above) = (1, SERIES_POINTS_MAX);
        while above - level > 1 {
            let middle = level.midpoint(above);
            match total(middle) <= kept {
                true => level = middle,
                false => above = middle,
            }
        }
        for mut history in self.streams.iter_mut() {
            for (_, points) in &mut history.windows {
                let surplus = points.len().saturating_sub(level);
                points.drain(..surplus);
                self.points.fetch_sub(surplus, Ordering::Relaxed);
            }
        }
    }

    /// Whether a stream may grow, given whether there is `room` for a point. Counts refusals.
    fn admits(&self, stream: &StreamId, room: bool) -> bool {
        let admits =
            room && (self.streams.len() < STREAMS_MAX || self.streams.contains_key(stream));
        if !admits {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        admits
    }

    /// Removes all entries later than `to_ms`, and returns how many points they were.
    pub fn cut(&self, to_ms: i64) -> usize {
        let before = self.points();
        self.streams.retain(|_, history| {
            for (_, points) in &mut history.windows {
                let all = points.len();
                points.retain(|p| p.end_ms <= to_ms);
                self.points.fetch_sub(all - points.len(), Ordering::Relaxed);
            }
            history.windows.retain(|(_, points)| !points.is_empty());
            history.alerts.retain(|a| a.at_ms <= to_ms);
            !history.windows.is_empty() || !history.alerts.is_empty()
        });
        before - self.points()
    }

    /// Removes streams that are not alive and whose last entry is older than [`AGE_MS_MAX`].
    pub fn forget(&self, now_ms: i64, alive: impl Fn(&StreamId) -> bool) {
        self.streams.retain(|id, history| {
            let last = history.last_ms();
            let keep = alive(id) || now_ms.saturating_sub(last) <= AGE_MS_MAX;
            if !keep {
                let points: usize = history.windows.iter().map(|(_, p)| p.len()).sum();
                self.points.fetch_sub(points, Ordering::Relaxed);
            }
            keep
        });
    }

    /// The history of one stream.
    pub fn stream(&self, id: &StreamId) -> Option<StreamHistory> {
        self.streams.get(id).map(|entry| entry.value().clone())
    }

    /// Visits all streams, one after another.
    pub fn each(&self, mut visit: impl FnMut(&StreamId, &StreamHistory)) {
        self.streams.iter().for_each(|e| visit(e.key(), e.value()));
    }

    /// Number of points of all windows.
    pub fn points(&self) -> usize {
        self.points.load(Ordering::Relaxed)
    }

    /// Number of judgements and alerts that found no room.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl StreamHistory {
    /// Time of the newest point or alert.
    fn last_ms(&self) -> i64 {
        let points = self.windows.iter().filter_map(|(_, p)| p.back());
        let alerts = self.alerts.back().map(|a| a.at_ms);
        let last = points.map(|p| p.end_ms).chain(alerts).max();
        last.unwrap_or(i64::MIN)
    }
}

/// Inserts a point by time. It replaces a point of the same time; one that was thinned out stays
/// out.
fn insert(points: &mut VecDeque<HistoryPoint>, point: HistoryPoint) -> bool {
    match points.binary_search_by_key(&point.end_ms, |p| p.end_ms) {
        Ok(at) => {
            let besides = points[at].besides;
            let point = HistoryPoint { besides, ..point };
            std::mem::replace(&mut points[at], point) != point
        }
        Err(at) if at == points.len() => {
            points.push_back(point);
            true
        }
        Err(_) => false,
    }
}

/// Keeps the newest points and, of older ones, the worst of each step with the verdicts of all.
fn thin(points: &mut VecDeque<HistoryPoint>) {
    let Some(newest) = points.back().map(|p| p.end_ms) else {
        return;
    };
    let mut kept: Vec<HistoryPoint> = Vec::with_capacity(points.len());
    let mut step = None;
    for (i, &point) in points.iter().rev().enumerate() {
        let age = newest.saturating_sub(point.end_ms);
        let width = match (i < RECENT, age <= DAY_MS, age <= AGE_MS_MAX) {
            (true, _, _) => {
                kept.push(point);
                continue;
            }
            (_, true, _) => DAY_STEP_MS,
            (_, _, true) => MONTH_STEP_MS,
            _ => break,
        };
        let now = Some((width, point.end_ms.div_euclid(width)));
        match kept.last_mut() {
            Some(last) if now == step => {
                let (better, mut kept) = match worse(&point, last) {
                    true => (*last, point),
                    false => (point, *last),
                };
                kept.besides += better.verdicts();
                *last = kept;
            }
            _ => kept.push(point),
        }
        step = now;
    }
    *points = kept.into_iter().rev().collect();
}

/// Whether the first point is worse, so that it stays rather than the second.
fn worse(a: &HistoryPoint, b: &HistoryPoint) -> bool {
    let bad = |p: &HistoryPoint| p.verdict == Verdict::Miscalibrated;
    let lower = |p: &HistoryPoint| p.error.map_or(-1.0, |e| e.lower);
    (bad(a), lower(a)) > (bad(b), lower(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{HistoryError, Verdicts};
    use crate::stats::view::View;

    fn id(model: &str) -> StreamId {
        StreamId {
            model: model.to_owned(),
            version: String::new(),
            segment: String::new(),
            view: View::Binary,
        }
    }

    fn point(end_ms: i64, verdict: Verdict) -> HistoryPoint {
        HistoryPoint {
            end_ms,
            n: 1,
            verdict,
            error: Some(HistoryError {
                estimate: 0.01,
                lower: 0.0,
                upper: 0.02,
            }),
            ratio: None,
            besides: Verdicts::default(),
        }
    }

    #[test]
    fn a_month_of_minutes_is_bounded_and_a_fault_of_one_minute_stays_visible() {
        let history = History::default();
        let minutes = 40 * 24 * 60;
        let fault = minutes - 20 * 24 * 60;
        for minute in 0..minutes {
            let verdict = match minute == fault {
                true => Verdict::Miscalibrated,
                false => Verdict::Calibrated,
            };
            assert!(history.observe(&id("m"), "5m", point(minute * 60_000, verdict)));
        }
        let stream = history.stream(&id("m")).expect("it was observed");
        let points = &stream.windows[0].1;
        assert!(points.len() < SERIES_POINTS_MAX && points.len() > 400);
        assert_eq!(history.points(), points.len());
        let bad = points.iter().find(|p| p.verdict == Verdict::Miscalibrated);
        assert_eq!(bad.map(|p| p.end_ms), Some(fault * 60_000));
        assert!(
            points
                .iter()
                .zip(points.iter().skip(1))
                .all(|(a, b)| a.end_ms < b.end_ms)
        );
        // The steps count all verdicts, so the fault remains one of many.
        let mut all = Verdicts::default();
        points.iter().for_each(|p| all += p.verdicts());
        assert_eq!((all.undecided, all.miscalibrated), (0, 1));
        assert!((29 * 1440..31 * 1440).contains(&all.calibrated), "{all:?}");
        let (first, last) = (points[0].end_ms, points[points.len() - 1].end_ms);
        assert!(last - first > 29 * DAY_MS && last - first <= AGE_MS_MAX + 2 * MONTH_STEP_MS);
    }

    #[test]
    fn what_is_later_than_a_reset_is_forgotten_and_what_comes_after_it_is_not_refused() {
        let history = History::default();
        for (model, end_ms) in [("m", 1_000), ("m", 9_000), ("gone", 9_000)] {
            assert!(history.observe(&id(model), "5m", point(end_ms, Verdict::Calibrated)));
        }
        let next = || history.observe(&id("m"), "5m", point(2_000, Verdict::Calibrated));
        assert!(!next(), "it is older than the last one");
        assert_eq!(history.cut(1_500), 2);
        assert_eq!(history.points(), 1);
        assert!(history.stream(&id("gone")).is_none());
        assert!(next());
    }

    #[test]
    fn a_judgement_that_comes_again_changes_nothing() {
        let history = History::default();
        let again = [
            (1000, true),
            (2000, true),
            (3000, true),
            (2000, false),
            (1500, false),
        ];
        for (end_ms, new) in again {
            let taken = history.observe(&id("m"), "5m", point(end_ms, Verdict::Calibrated));
            assert_eq!(taken, new, "{end_ms}");
        }
        assert_eq!(history.points(), 3);
        let corrected = point(2000, Verdict::Miscalibrated);
        assert!(history.observe(&id("m"), "5m", corrected));
        assert!(!history.observe(&id("m"), "5m", corrected));
        assert_eq!(history.points(), 3);
    }

    #[test]
    fn when_all_points_are_taken_the_longest_windows_lose_their_oldest_and_the_newest_stay() {
        const MAX: usize = 1000;
        let history = History::of_at_most(MAX);
        let minute = |m: i64| point(m * 60_000, Verdict::Calibrated);
        for m in 0..10 {
            assert!(history.observe(&id("short"), "5m", minute(m)));
        }
        let models = ["a", "b", "c", "d", "e"];
        for m in 0..3000 {
            for model in models {
                assert!(history.observe(&id(model), "5m", minute(m)), "{model} {m}");
                assert!(history.points() <= MAX);
            }
        }
        assert_eq!(history.refused(), 0);
        let points = |model: &str| {
            let stream = history.stream(&id(model)).expect("it was observed");
            stream.windows[0].1.clone()
        };
        assert_eq!(points("short").len(), 10);
        for model in models {
            let points = points(model);
            assert!(points.len() > 150, "{model}: {}", points.len());
            assert_eq!(points.back().map(|p| p.end_ms), Some(2999 * 60_000));
        }
        let all = models.iter().map(|m| points(m).len()).sum::<usize>();
        assert_eq!(history.points(), all + 10);
        // A new stream finds room too.
        assert!(history.observe(&id("new"), "5m", minute(3000)));
        assert_eq!(points("new").len(), 1);
    }

    #[test]
    fn the_last_alerts_are_kept_each_once() {
        let history = History::default();
        for i in 0..30 {
            let alert = HistoryAlert {
                at_ms: i,
                state: "firing".to_owned(),
                severity: "page".to_owned(),
                sentence: "ü".repeat(1000),
            };
            assert!(history.alert(&id("m"), alert.clone()));
            assert!(!history.alert(&id("m"), alert));
        }
        let alerts = history.stream(&id("m")).expect("it has alerts").alerts;
        assert_eq!((alerts.len(), alerts[0].at_ms), (ALERTS_MAX, 18));
        assert!(
            alerts
                .iter()
                .all(|a| a.sentence.len() <= SENTENCE_BYTES_MAX && a.sentence.ends_with('…'))
        );
    }

    #[test]
    fn streams_that_are_gone_are_forgotten_after_a_month() {
        let history = History::default();
        for (model, end_ms) in [("old", 0), ("alive", 0), ("new", AGE_MS_MAX)] {
            history.observe(&id(model), "5m", point(end_ms, Verdict::Calibrated));
        }
        history.forget(AGE_MS_MAX + 1, |id| id.model == "alive");
        assert!(history.stream(&id("old")).is_none());
        assert!(history.stream(&id("alive")).is_some() && history.stream(&id("new")).is_some());
        assert_eq!(history.points(), 2);
    }
}
