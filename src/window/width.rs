//! How long windows are, and how they are cut into panes.
//!
//! A time window of some width moves in steps, its *slide*; it is the union of width/slide sealed
//! panes of one slide each. All panes are aligned to the epoch. Events land in *base panes*, as
//! wide as the slide of the shortest time window; every wider slide is a whole number of base
//! panes, so each wider pane is a merge of base panes, and nothing is ever counted from raw events
//! twice.
//!
//! ```text
//! base panes   |--|--|--|--|--|--|--|--|--|--|--|--|
//! 5m           [--|--|--|--|--|--]                     slides by one base pane
//! 1h           [-----------|-----------|-- …           slides by twelve
//! ```
//!
//! A window by count (`last = N`) has no slide of its own: it moves with every base pane.

use serde::{Deserialize, Serialize};

/// Panes in a time window unless the slide is configured: each slide renews a sixth of the window,
/// so a change is seen within a sixth of the width, at six times the memory of one pane.
pub const PANES_PER_WINDOW: i64 = 6;

/// Most panes of one time window. More would make a window's total costly to take.
pub const PANES_MAX: i64 = 64;

/// Base pane of a ladder that has windows by count only.
pub const COUNT_PANE_MS: i64 = 10_000;

/// Extent of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Width {
    /// The newest `width_ms`, moving in steps of `slide_ms`.
    Time {
        /// Length; a multiple of the slide.
        width_ms: i64,
        /// Step.
        slide_ms: i64,
    },
    /// The newest base panes, as few as hold `last` events.
    Count {
        /// Number of events, at least 1.
        last: u64,
    },
}

/// A window with the name by which people and labels know it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WindowSpec {
    /// `5m`, `1h`, `last:10000`.
    pub name: String,
    /// Its extent.
    pub width: Width,
}

impl WindowSpec {
    /// A window by time with the default slide, a sixth of its width (at least 1 ms).
    pub fn time(name: &str, width_ms: i64) -> WindowSpec {
        let slide_ms = (width_ms / PANES_PER_WINDOW).max(1);
        WindowSpec {
            name: name.to_owned(),
            width: Width::Time { width_ms, slide_ms },
        }
    }

    /// A window by count, named `last:N`.
    pub fn last(last: u64) -> WindowSpec {
        WindowSpec {
            name: format!("last:{last}"),
            width: Width::Count { last },
        }
    }
}

/// The windows of a stream, checked to fit together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ladder {
    /// In the order of their slides, windows by count last.
    pub windows: Vec<WindowSpec>,
    /// Width of a base pane: the slide of the shortest time window.
    pub pane_ms: i64,
    /// How far an event may be behind the newest one and still be counted.
    pub lateness_ms: i64,
}

/// Why windows do not make a ladder. Each message names the window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LadderError {
    /// No window at all.
    #[error("no windows: configure at least one, such as \"5m\"")]
    Empty,
    /// Two windows of one name or one extent.
    #[error("window {0}: another has the same name or length; drop one")]
    Twice(String),
    /// A width, slide or count below 1, or a width that is not a multiple of its slide.
    #[error("window {0}: the width must be a positive multiple of the slide")]
    Width(String),
    /// More than [`PANES_MAX`] slides in the window.
    #[error("window {0}: more than {PANES_MAX} slides in the width; make the slide longer")]
    Panes(String),
    /// A slide that is not a multiple of the shortest window's.
    #[error("window {window}: the slide must be a multiple of the shortest window's, {pane_ms} ms")]
    Slide {
        /// The window.
        window: String,
        /// What its slide should be a multiple of.
        pane_ms: i64,
    },
    /// Negative lateness.
    #[error("lateness must not be negative")]
    Lateness,
}

impl Ladder {
    /// How long after its start a pane may still be in a window by time; a day if there is none.
    pub fn retention_ms(&self) -> i64 {
        let held = self.windows.iter().filter_map(|w| match w.width {
            Width::Time { width_ms, slide_ms } => Some(width_ms + slide_ms + self.pane_ms),
            Width::Count { .. } => None,
        });
        held.max().unwrap_or(86_400_000)
    }

    /// Whether the watermark is so far past the newest event of a stream that the stream expires,
    /// if streams are kept for `expire_after_ms`: no window by time holds a pane of it then. A
    /// stream without events expires as soon as there is a watermark.
    pub fn is_past(&self, newest_ms: i64, watermark_ms: i64, expire_after_ms: i64) -> bool {
        let after_ms = expire_after_ms.max(self.retention_ms() + self.pane_ms);
        watermark_ms.saturating_sub(newest_ms) >= after_ms
    }

    /// Checks the windows and sorts them by slide.
    pub fn new(mut windows: Vec<WindowSpec>, lateness_ms: i64) -> Result<Ladder, LadderError> {
        if windows.is_empty() {
            return Err(LadderError::Empty);
        }
        if lateness_ms < 0 {
            return Err(LadderError::Lateness);
        }
        for (i, w) in windows.iter().enumerate() {
            check_alone(w)?;
            let twice = |o: &WindowSpec| o.name == w.name || extent(&o.width) == extent(&w.width);
            if windows[..i].iter().any(twice) {
                return Err(LadderError::Twice(w.name.clone()));
            }
        }
        windows.sort_by_key(|w| slide_of(&w.width));
        let pane_ms = match windows[0].width {
            Width::Time { slide_ms, .. } => slide_ms,
            Width::Count { .. } => COUNT_PANE_MS,
        };
        for w in &windows {
            if let Width::Time { slide_ms, .. } = w.width
                && slide_ms % pane_ms != 0
            {
                return Err(LadderError::Slide {
                    window: w.name.clone(),
                    pane_ms,
                });
            }
        }
        Ok(Ladder {
            windows,
            pane_ms,
            lateness_ms,
        })
    }
}

fn check_alone(w: &WindowSpec) -> Result<(), LadderError> {
    match w.width {
        Width::Count { last: 0 } => Err(LadderError::Width(w.name.clone())),
        Width::Count { .. } => Ok(()),
        Width::Time { width_ms, slide_ms } => {
            if slide_ms < 1 || width_ms < slide_ms || width_ms % slide_ms != 0 {
                Err(LadderError::Width(w.name.clone()))
            } else if width_ms / slide_ms > PANES_MAX {
                Err(LadderError::Panes(w.name.clone()))
            } else {
                Ok(())
            }
        }
    }
}

/// Windows by count go last.
fn slide_of(w: &Width) -> (i64, i64) {
    match *w {
        Width::Time { width_ms, slide_ms } => (slide_ms, width_ms),
        Width::Count { last } => (i64::MAX, i64::try_from(last).unwrap_or(i64::MAX)),
    }
}

/// Windows of one length count as one, whatever their slides.
fn extent(w: &Width) -> (bool, u64) {
    match *w {
        Width::Time { width_ms, .. } => (true, width_ms.unsigned_abs()),
        Width::Count { last } => (false, last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    #[test]
    fn the_base_pane_is_the_slide_of_the_shortest_window() {
        let ladder = Ladder::new(
            vec![
                WindowSpec::time("1h", 60 * MINUTE),
                WindowSpec::last(10_000),
                WindowSpec::time("5m", 5 * MINUTE),
            ],
            0,
        )
        .unwrap();
        assert_eq!(ladder.pane_ms, 50_000);
        let names: Vec<_> = ladder.windows.iter().map(|w| w.name.as_str()).collect();
        assert_eq!(names, ["5m", "1h", "last:10000"]);
    }

    #[test]
    fn two_windows_of_one_length_are_refused_by_name() {
        let twice = vec![
            WindowSpec::time("5m", 5 * MINUTE),
            WindowSpec::time("300s", 5 * MINUTE),
        ];
        assert_eq!(
            Ladder::new(twice, 0),
            Err(LadderError::Twice("300s".to_owned()))
        );
    }

    #[test]
    fn slides_that_do_not_nest_are_refused() {
        let bad = vec![
            WindowSpec::time("5m", 5 * MINUTE),
            WindowSpec::time("7m", 7 * MINUTE),
        ];
        assert!(matches!(
            Ladder::new(bad, 0),
            Err(LadderError::Slide { .. })
        ));
    }
}
