//! Builds a [`Ladder`] from a list of windows, and reports the position of each window that does
//! not fit.
//!
//! A window without its own slide gets a slide that fits the others. Panes are as wide as the slide
//! of the shortest window, so the slide of a longer one is the greatest multiple of that pane that
//! divides its width and is at most a sixth of it. So only explicitly written slides can be wrong.

use std::collections::BTreeMap;

use crate::window::width::{COUNT_PANE_MS, PANES_MAX, PANES_PER_WINDOW};
use crate::window::{Ladder, Width, WindowSpec};

use super::document::Entry;
use super::problem::Problems;
use super::value::{Placed, Value, WindowValue};

/// Builds the ladder; after a problem, one with a single window.
pub fn ladder(entry: &Entry, lateness_ms: i64, problems: &mut Problems<'_>) -> Ladder {
    let stand_in = || Ladder {
        windows: Vec::new(),
        pane_ms: COUNT_PANE_MS,
        lateness_ms,
    };
    let Value::Windows(items) = &entry.value else {
        return stand_in();
    };
    let before = problems.len();
    if items.is_empty() {
        let what = "`windows` is empty, so nothing would be judged";
        let remedy = "write, for example, windows = [\"5m\", \"1h\"]";
        problems.add(entry.at, what, remedy);
    }
    alone(items, problems);
    twins(items, problems);
    let pane_ms = pane(items);
    let specs: Vec<WindowSpec> = items.iter().map(|i| spec(&i.value, pane_ms)).collect();
    if problems.len() > before {
        return stand_in();
    }
    together(items, &specs, pane_ms, problems);
    if problems.len() > before {
        return stand_in();
    }
    Ladder::new(specs, lateness_ms).unwrap_or_else(|error| {
        problems.add(entry.at, error.to_string(), "correct `windows`");
        stand_in()
    })
}

/// Reports problems of a single window.
fn alone(items: &[Placed<WindowValue>], problems: &mut Problems<'_>) {
    for item in items {
        let WindowValue::Time {
            name,
            width_ms,
            slide_ms: Some(slide_ms),
        } = &item.value
        else {
            continue;
        };
        if width_ms % slide_ms != 0 || width_ms < slide_ms {
            let what = format!("the slide of window `{name}` does not divide its width");
            let sixth = shown(default_slide(*width_ms, 1));
            let remedy = format!("write, for example, slide = \"{sixth}\"");
            problems.add(item.at, what, remedy);
        } else if width_ms / slide_ms > PANES_MAX {
            let what = format!("window `{name}` has more than {PANES_MAX} slides in its width");
            let remedy = format!("make the slide {} or longer", shown(width_ms / PANES_MAX));
            problems.add(item.at, what, remedy);
        }
    }
}

/// Reports two windows with the same length or count.
fn twins(items: &[Placed<WindowValue>], problems: &mut Problems<'_>) {
    let mut seen: BTreeMap<(bool, u64), String> = BTreeMap::new();
    for item in items {
        let (extent, name) = match &item.value {
            WindowValue::Time { name, width_ms, .. } => {
                ((true, width_ms.unsigned_abs()), name.clone())
            }
            WindowValue::Last(last) => ((false, *last), format!("last:{last}")),
        };
        if let Some(first) = seen.insert(extent, name.clone()) {
            let what = format!("windows `{first}` and `{name}` have one length");
            problems.add(item.at, what, "remove one of them");
        }
    }
}

/// Reports slides that are not a multiple of the pane.
fn together(
    items: &[Placed<WindowValue>],
    specs: &[WindowSpec],
    pane_ms: i64,
    problems: &mut Problems<'_>,
) {
    for (item, spec) in items.iter().zip(specs) {
        let Width::Time { width_ms, slide_ms } = spec.width else {
            continue;
        };
        if slide_ms % pane_ms != 0 {
            let what = format!(
                "the slide of window `{}`, {}, is not a multiple of the shortest slide, {}",
                spec.name,
                shown(slide_ms),
                shown(pane_ms)
            );
            let remedy = match width_ms % pane_ms {
                0 => format!(
                    "write slide = \"{}\"",
                    shown(default_slide(width_ms, pane_ms))
                ),
                _ => format!("make its width and slide multiples of {}", shown(pane_ms)),
            };
            problems.add(item.at, what, remedy);
        }
    }
}

/// Width of the panes: the shortest slide. Of the windows without a written slide, only the
/// shortest counts.
fn pane(items: &[Placed<WindowValue>]) -> i64 {
    let mut written = None;
    let mut shortest = None;
    for item in items {
        if let WindowValue::Time {
            width_ms, slide_ms, ..
        } = &item.value
        {
            let slot = match slide_ms {
                Some(_) => &mut written,
                None => &mut shortest,
            };
            let value = slide_ms.unwrap_or(*width_ms);
            *slot = Some(slot.map_or(value, |v: i64| v.min(value)));
        }
    }
    let derived = shortest.map(|width_ms| match written {
        Some(slide_ms) if width_ms % slide_ms == 0 => default_slide(width_ms, slide_ms),
        _ => default_slide(width_ms, 1),
    });
    match (written, derived) {
        (Some(a), Some(b)) => a.min(b),
        (a, b) => a.or(b).unwrap_or(COUNT_PANE_MS),
    }
}

fn spec(value: &WindowValue, pane_ms: i64) -> WindowSpec {
    match value {
        WindowValue::Last(last) => WindowSpec::last(*last),
        WindowValue::Time {
            name,
            width_ms,
            slide_ms,
        } => WindowSpec {
            name: name.clone(),
            width: Width::Time {
                width_ms: *width_ms,
                slide_ms: slide_ms.unwrap_or_else(|| default_slide(*width_ms, pane_ms)),
            },
        },
    }
}

/// The greatest slide of at most a sixth of the width that divides it and is a multiple of the
/// pane. If there is none, the least larger slide that does both; if there is none either, the
/// greatest of at most a sixth that divides the width.
fn default_slide(width_ms: i64, pane_ms: i64) -> i64 {
    let parts = PANES_PER_WINDOW..=PANES_MAX;
    let fits = |n: &i64, step: i64| width_ms % n == 0 && (width_ms / n) % step == 0;
    parts
        .clone()
        .find(|n| fits(n, pane_ms))
        .or_else(|| (1..PANES_PER_WINDOW).rev().find(|n| fits(n, pane_ms)))
        .or_else(|| parts.clone().find(|n| fits(n, 1)))
        .map_or(width_ms, |n| width_ms / n)
}

/// Milliseconds in the largest unit that keeps them whole.
pub fn shown(ms: i64) -> String {
    for (unit, name) in [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1000, "s"),
    ] {
        if ms % unit == 0 && ms != 0 {
            return format!("{}{name}", ms / unit);
        }
    }
    format!("{ms}ms")
}
