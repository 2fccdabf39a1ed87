//! A snapshot whose windows differ from those of the configuration.
//!
//! New windows of scores take over the panes that the old windows hold
//! ([`crate::window::carry_over`]). A window that existed before keeps its verdict and its alert; a
//! new one is judged at its next slide. Detectors, open panes and pending predictions do not depend
//! on windows and stay.

use super::snapshot::{ModelState, Snapshot, VerdictState};
use crate::alert::Alert;
use crate::judge::{JudgeState, Plan, Undecided, Verdict, WindowVerdict};
use crate::stats::axis::Grid;
use crate::window::{Ladder, PackError, PaneSums, Windows};

impl Snapshot {
    /// Fits the windows to those of the plan, for models without any other change.
    pub fn carry_over(&mut self, plan: &Plan) -> Result<(), PackError> {
        let now = plan.models.iter().map(|m| (ModelState::new(m, 0), m.grid));
        let now: Vec<(ModelState, Grid)> = now.collect();
        for index in 0..self.models.len() {
            let before = self.models[index].clone();
            if now.iter().any(|(m, _)| m.fits(&before)) {
                continue;
            }
            let Some((after, grid)) = now.iter().find(|(m, _)| m.fits_other_windows(&before))
            else {
                continue;
            };
            for stream in self
                .streams
                .iter_mut()
                .filter(|s| s.model as usize == index)
            {
                for judge in &mut stream.judges {
                    let (old, new) = (&before.ladder, &after.ladder);
                    carry_over(judge, old, new, *grid, before.sealed_until_ms)?;
                }
            }
            for version in self
                .vectors
                .iter_mut()
                .filter(|v| v.model as usize == index)
            {
                for view in &mut version.views {
                    view.judge = JudgeState::default();
                }
            }
            self.models[index].ladder = after.ladder.clone();
        }
        Ok(())
    }

    /// [`Snapshot::carry_over`] for verdicts that are stored beside the snapshot; call this first.
    pub fn carry_over_verdicts(&self, plan: &Plan, verdicts: &mut [VerdictState]) {
        for state in verdicts {
            let Some(model) = plan.serving(&state.stream.model) else {
                continue;
            };
            let after = ModelState::new(model, 0);
            let before = self.models.iter().find(|m| m.name == after.name);
            let Some(before) = before.filter(|m| m.ladder != after.ladder) else {
                continue;
            };
            // Windows of vectors begin empty, like those that are cut differently.
            let keeps = !state.stream.view.is_vector() && after.fits_other_windows(before);
            state.windows = match keeps {
                true => carried(&state.windows, &places(&before.ladder, &after.ladder)),
                false => Vec::new(),
            };
        }
    }
}

/// For each window, its place among the old ones.
fn places(before: &Ladder, after: &Ladder) -> Vec<Option<usize>> {
    let place = |window| before.windows.iter().position(|w| w == window);
    after.windows.iter().map(place).collect()
}

/// The verdicts of windows that existed before, in their new places.
fn carried(verdicts: &[WindowVerdict], places: &[Option<usize>]) -> Vec<WindowVerdict> {
    let verdict = |at: &Option<usize>| at.and_then(|at| verdicts.get(at).copied());
    let all = places.iter().map(|at| verdict(at).unwrap_or_else(unknown));
    all.collect()
}

fn carry_over(
    judge: &mut JudgeState,
    before: &Ladder,
    after: &Ladder,
    grid: Grid,
    sealed_until_ms: i64,
) -> Result<(), PackError> {
    if judge.rings.is_empty() {
        return Ok(());
    }
    let mut old = Windows::new(before, PaneSums::Scores(grid));
    old.restore(std::mem::take(&mut judge.rings))?;
    let mut new = Windows::new(after, PaneSums::Scores(grid));
    new.carry_over(&old, sealed_until_ms)?;
    judge.rings = new.state();
    let places = places(before, after);
    let verdicts = carried(&judge.verdicts, &places);
    let fits = places
        .iter()
        .map(|at| judge.recalibrations.get((*at)?).cloned()?);
    let fits = fits.collect();
    (judge.verdicts, judge.recalibrations) = (verdicts, fits);
    Ok(())
}

/// The verdict of a window that was never judged.
fn unknown() -> WindowVerdict {
    WindowVerdict {
        alert: Alert::default(),
        start_ms: 0,
        end_ms: 0,
        since_ms: 0,
        n: 0,
        verdict: Verdict::Undecided(Undecided::TooFew),
        overdispersion: None,
    }
}
