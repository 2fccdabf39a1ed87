//! A snapshot whose windows are not those of the configuration any more.
//!
//! New windows of scores take over the panes that the old windows hold
//! ([`crate::window::carry_over`]). A window that existed before keeps its verdict and its alert; a
//! new one is judged at its next slide. Detectors, open panes and pending predictions do not depend
//! on windows and stay.

use super::snapshot::{ModelState, Snapshot};
use crate::alert::Alert;
use crate::judge::{JudgeState, Plan, Undecided, Verdict, WindowVerdict};
use crate::stats::axis::Grid;
use crate::window::{Ladder, PackError, PaneSums, Windows};

impl Snapshot {
    /// Fits the windows to those of the plan where nothing else of a model has changed.
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
                    let ladders = (&before.ladder, &after.ladder);
                    carry_over(judge, ladders, *grid, before.sealed_until_ms)?;
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
}

fn carry_over(
    judge: &mut JudgeState,
    (before, after): (&Ladder, &Ladder),
    grid: Grid,
    line_ms: i64,
) -> Result<(), PackError> {
    if judge.rings.is_empty() {
        return Ok(());
    }
    let mut old = Windows::new(before, PaneSums::Scores(grid));
    old.restore(std::mem::take(&mut judge.rings))?;
    let mut new = Windows::new(after, PaneSums::Scores(grid));
    new.carry_over(&old, line_ms)?;
    judge.rings = new.state();
    let place = |window| before.windows.iter().position(|w| w == window);
    let places = after.windows.iter().map(place);
    let places: Vec<Option<usize>> = places.collect();
    let verdict = |at: &Option<usize>| at.and_then(|at| judge.verdicts.get(at).copied());
    let verdicts = places.iter().map(|at| verdict(at).unwrap_or_else(unknown));
    let verdicts = verdicts.collect();
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
    }
}
