//! Recalibration of a window: maps that are fitted to a miscalibrated window, and judged on a later
//! one.
//!
//! ```text
//! miscalibrated   maps are fitted to the window's total and kept
//! … slides …
//! either          the first window that begins where the fitted one ended and has enough of each
//!                 outcome: the kept maps are judged on its total, and the result is kept
//! miscalibrated   the first such one that begins after the fitted window: its maps replace those
//! calibrated      everything is dropped: the served scores need no map, or one is applied already
//! ```
//!
//! "Either" is miscalibrated, or evaluated and undecided. A trial that waited for the next
//! *miscalibrated* window would show the gain on a window that was chosen because its error is
//! large, and so too large a gain. Some of this bias remains: if the first window is calibrated,
//! there is no trial.
//!
//! So maps are fitted and judged once per width of the window, not once per slide. The window on
//! which maps are judged shares no event with the window to which they were fitted. No pane is kept
//! for this: only the parameters are (at most 6 KiB per fit, two fits per window). A window that
//! was not evaluated changes nothing. If the number of events of the fitted window doubles before
//! the maps are judged, as happens while a stream is young, the fit is repeated.
//!
//! A model with down-sampled negatives has no recalibration: its cells hold scores on another
//! scale, to which a scorer cannot apply a map.
//!
//! The recalibration is a function of the sealed panes, like the verdict, and travels with
//! snapshots. Outcomes that are revised later do not change what was fitted or judged before.

use super::options::JudgeOptions;
use super::verdict::{Undecided, Verdict};
use crate::stats::evaluation::{Options, Sampling};
use crate::stats::levels::Level;
use crate::stats::overdispersion::Overdispersion;
use crate::stats::recalibration::advice::EACH_MIN;
use crate::stats::recalibration::{Advice, Cut, Fits, Judgement, Map, Point};
use crate::stats::stored::checked;
use crate::stats::sums::Sums;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Maps fitted to one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    /// Start of the window.
    #[serde(deserialize_with = "checked")]
    pub start_ms: i64,
    /// Its end.
    #[serde(deserialize_with = "checked")]
    pub end_ms: i64,
    /// The maps.
    pub fits: Fits,
}

/// Maps of one window, judged on a later one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The maps.
    pub fitted: Arc<Fitted>,
    /// Start of the window on which they were judged.
    #[serde(deserialize_with = "checked")]
    pub start_ms: i64,
    /// Its end.
    #[serde(deserialize_with = "checked")]
    pub end_ms: i64,
    /// The judgement of the maps on that window.
    pub judgement: Judgement,
}

/// The recalibration of one window. See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recalibration {
    /// The last maps. They wait for their trial, or to be replaced.
    pub fitted: Arc<Fitted>,
    /// The last trial.
    pub judged: Option<Arc<Judged>>,
}

/// A window with its verdict.
#[derive(Debug, Clone, Copy)]
pub struct JudgedWindow {
    /// Start.
    pub start_ms: i64,
    /// End.
    pub end_ms: i64,
    /// Number of events.
    pub n: u64,
    /// The verdict on it.
    pub verdict: Verdict,
    /// How much more its outcomes vary than independent ones.
    pub overdispersion: Option<Overdispersion>,
}

impl Recalibration {
    /// The recalibration after a judgement; `total` is called only if maps are fitted or judged.
    pub fn step<E>(
        before: Option<&Arc<Recalibration>>,
        window: JudgedWindow,
        options: &JudgeOptions,
        total: impl FnOnce() -> Result<Sums, E>,
    ) -> Result<Option<Arc<Recalibration>>, E> {
        let bad = match window.verdict {
            Verdict::Calibrated => return Ok(None),
            Verdict::Undecided(Undecided::Inconclusive | Undecided::FewOutcomes) => false,
            Verdict::Undecided(_) => return Ok(before.cloned()),
            Verdict::Miscalibrated => true,
        };
        if options.evaluation.sampling != Sampling::default() {
            return Ok(None);
        }
        let follows = before.is_some_and(|b| window.start_ms >= b.fitted.end_ms);
        let grown = before.is_some_and(|b| window.n >= b.fitted.fits.n.saturating_mul(2));
        let waits = follows && before.is_some_and(|b| !b.is_judged());
        let fits = bad && (before.is_none() || follows || grown);
        if !fits && (!waits || window.n < 2 * EACH_MIN) {
            return Ok(before.cloned());
        }
        let sums = total()?;
        // The standard errors of a trial ignore weights and clusters.
        if !sums.grid().is_plain() {
            return Ok(None);
        }
        let points = Point::of_cells(&Level::from_sums(&sums));
        let mut judged = before.and_then(|b| b.judged.clone());
        if let Some(before) = before.filter(|_| waits) {
            let wanted = Options {
                overdispersion: window.overdispersion,
                ..options.evaluation.clone()
            };
            let cut = Cut::Grid(sums.grid());
            let found = Judgement::of(&before.fitted.fits, &points, &cut, &wanted);
            // Unless its maps are replaced, a fit waits for enough outcomes.
            let found = found.filter(|j| fits || j.advice != Advice::TooFewToJudge);
            if found.is_none() && !fits {
                return Ok(Some(before.clone()));
            }
            judged = found.map(|judgement| {
                Arc::new(Judged {
                    fitted: before.fitted.clone(),
                    start_ms: window.start_ms,
                    end_ms: window.end_ms,
                    judgement,
                })
            });
        }
        let fitted = match before.filter(|_| !fits) {
            Some(before) => before.fitted.clone(),
            None => Arc::new(Fitted {
                start_ms: window.start_ms,
                end_ms: window.end_ms,
                fits: Fits::of(&points),
            }),
        };
        Ok(Some(Arc::new(Recalibration { fitted, judged })))
    }

    /// Whether its maps have had their trial.
    fn is_judged(&self) -> bool {
        let ends = |f: &Fitted| (f.start_ms, f.end_ms);
        let judged = self.judged.as_ref();
        judged.is_some_and(|j| ends(&j.fitted) == ends(&self.fitted))
    }

    /// The map that is advised, and the trial that says so.
    pub fn advised(&self) -> Option<(&Map, &Judged)> {
        let judged = self.judged.as_deref()?;
        let method = judged.judgement.advice.method()?;
        Some((judged.fitted.fits.map(method)?, judged))
    }

    /// Whether its maps are what a fit makes; those of a snapshot may be others.
    pub fn is_whole(&self) -> bool {
        let judged = self.judged.as_ref();
        self.fitted.fits.are_whole() && judged.is_none_or(|j| j.fitted.fits.are_whole())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let judged = self.judged.as_ref();
        let judged = judged.map_or(0, |j| size_of::<Judged>() + fitted_bytes(&j.fitted));
        size_of::<Recalibration>() + fitted_bytes(&self.fitted) + judged
    }
}

fn fitted_bytes(f: &Fitted) -> usize {
    size_of::<Fitted>() + f.fits.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::axis::{Axis, Grid};
    use crate::window::sums_of;

    /// Scores spread evenly whose true rate is z².
    fn total(n: u32) -> Result<Sums, ()> {
        let mut owed = 0.0;
        let event = |i: u32| {
            let z = f64::from(i * 7919 % 1000) / 1000.0;
            owed += z * z;
            let y = owed >= 1.0;
            owed -= f64::from(u8::from(y));
            (z, y)
        };
        Ok(sums_of(Grid::new(Axis::Linear, 8), (0..n).map(event)))
    }

    fn window(start_ms: i64, verdict: Verdict) -> JudgedWindow {
        JudgedWindow {
            start_ms,
            end_ms: start_ms + 60,
            n: 5000,
            verdict,
            overdispersion: None,
        }
    }

    fn step(
        before: Option<&Arc<Recalibration>>,
        window: JudgedWindow,
    ) -> Option<Arc<Recalibration>> {
        Recalibration::step(before, window, &JudgeOptions::plain(), || total(5000)).unwrap()
    }

    #[test]
    fn maps_are_judged_on_the_first_window_that_shares_nothing_with_theirs() {
        let bad = Verdict::Miscalibrated;
        let first = step(None, window(0, bad));
        let kept = first.as_ref().unwrap();
        assert_eq!((kept.fitted.end_ms, kept.judged.is_none()), (60, true));
        // Slides in between change nothing, and ask for no total.
        let between =
            Recalibration::step(Some(kept), window(50, bad), &JudgeOptions::plain(), || {
                Err("asked")
            });
        assert_eq!(between, Ok(first.clone()));
        let next = step(Some(kept), window(60, bad)).unwrap();
        assert_eq!((next.fitted.start_ms, next.fitted.end_ms), (60, 120));
        let (map, judged) = next.advised().unwrap();
        assert_eq!((judged.fitted.end_ms, judged.start_ms), (60, 60));
        assert!((map.rate(0.5) - 0.25).abs() < 0.05, "{map:?}");
        assert!(judged.judgement.original.ece_l2() > 0.1);
    }

    #[test]
    fn maps_are_judged_once_on_the_first_window_whatever_is_shown_there() {
        let first = step(None, window(0, Verdict::Miscalibrated));
        let open = Verdict::Undecided(Undecided::Inconclusive);
        // One that shares events with the fit says nothing, nor does one with few of an outcome.
        assert_eq!(step(first.as_ref(), window(50, open)), first);
        let few = Recalibration::step(
            first.as_ref(),
            window(60, open),
            &JudgeOptions::plain(),
            || total(250),
        );
        assert_eq!(few, Ok(first.clone()));
        let next = step(first.as_ref(), window(60, open)).unwrap();
        assert_eq!(Some(&next.fitted), first.as_ref().map(|f| &f.fitted));
        let (_, judged) = next.advised().unwrap();
        assert_eq!((judged.fitted.end_ms, judged.start_ms), (60, 60));
        // A later window of either kind is no second trial; a miscalibrated one has new maps.
        let undecided = Recalibration::step(
            Some(&next),
            window(70, open),
            &JudgeOptions::plain(),
            || Err("asked"),
        );
        assert_eq!(undecided, Ok(Some(next.clone())));
        let later = step(Some(&next), window(80, Verdict::Miscalibrated)).unwrap();
        assert_eq!((later.fitted.start_ms, &later.judged), (80, &next.judged));
    }

    #[test]
    fn a_calibrated_window_forgets_and_an_undecided_one_keeps() {
        let first = step(None, window(0, Verdict::Miscalibrated));
        let undecided = Verdict::Undecided(Undecided::TooFew);
        assert_eq!(step(first.as_ref(), window(60, undecided)), first);
        assert_eq!(step(first.as_ref(), window(60, Verdict::Calibrated)), None);
        assert_eq!(step(None, window(0, undecided)), None);
    }

    #[test]
    fn a_fit_is_repeated_when_its_window_has_doubled() {
        let first = step(None, window(0, Verdict::Miscalibrated)).unwrap();
        let grown = JudgedWindow {
            n: 10_000,
            ..window(10, Verdict::Miscalibrated)
        };
        let again = step(Some(&first), grown).unwrap();
        assert_eq!(again.fitted.end_ms, 70);
        assert!(again.judged.is_none());
    }

    #[test]
    fn a_mending_is_the_same_after_a_snapshot() {
        let first = step(None, window(0, Verdict::Miscalibrated)).unwrap();
        let next = step(Some(&first), window(60, Verdict::Miscalibrated)).unwrap();
        for recalibration in [first, next] {
            let text = serde_json::to_string(&recalibration).unwrap();
            let back: Recalibration = serde_json::from_str(&text).unwrap();
            assert!(back == *recalibration && back.is_whole());
            let mut swapped = back.fitted.as_ref().clone();
            swapped.fits.maps.reverse();
            let fitted = Arc::new(swapped);
            assert!(!Recalibration { fitted, ..back }.is_whole());
        }
    }
}
