//! What the evidence of a detector says: how strong, of what kind, about which scores, since when.
//!
//! Every component holds a share weight_c·M_c/M of the evidence. Added up by family and sign they
//! tell the kind: odds or probabilities of all scores that are off, a slope, noise, one range of
//! scores, or cells that go their own ways. The largest single component is the *best bet*, which
//! says how much. The signs of the scale with the largest share tell which scores are off and to
//! which side: a cell's *lean* is 2w − 1, by worth over amplitudes, +1 where outcomes are surely
//! more frequent than the scores say.
//!
//! *Direction* is the evidence in plain words. A flatter slope raises scores below ½ and lowers
//! those above, so of scores that all lie on one side it says that they are too low, or too high;
//! so does a range that holds all of the scores. A bet counts as one-sided from nine tenths on of
//! Σz(1 − z) of the scores since the last restart.
//!
//! Shares sum to 1 from the first pane on; before an alarm they say little, since without evidence
//! the mixture's weights show through. The direction is the largest share's, so it is a
//! description, not a test.

use super::detector::{Detector, SPREAD, StreamPosition};
use super::mixture::{BETS, Bet, LEARNT, SCALES, Scale, component};
use crate::direction::Direction;

/// Most cells that are reported.
const CELLS_MAX: usize = 3;

/// A cell is reported from this lean on: odds of three to one for its sign.
const LEAN_MIN: f64 = 0.5;

/// Share of the scores from which on a bet is about all of them.
const ALL_MIN: f64 = 0.9;

/// Shares of the evidence, 1 in all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Shares {
    /// Intercept up: odds higher than all scores say.
    pub intercept_up: f64,
    /// Intercept down.
    pub intercept_down: f64,
    /// Slope up: outcomes more decided than the scores.
    pub slope_up: f64,
    /// Slope down: outcomes less decided than the scores.
    pub slope_down: f64,
    /// Shift up: probabilities higher than all scores say.
    pub shift_up: f64,
    /// Shift down.
    pub shift_down: f64,
    /// A share of the outcomes flipped.
    pub noise: f64,
    /// One range of scores.
    pub bumps: f64,
    /// Each scale of cells.
    pub scales: [f64; SCALES],
}

impl Shares {
    /// The share of all scales of cells together.
    pub fn cells(&self) -> f64 {
        self.scales.iter().sum()
    }

    /// The share of each kind, with its name.
    pub fn named(&self) -> [(&'static str, f64); 9] {
        [
            ("intercept_up", self.intercept_up),
            ("intercept_down", self.intercept_down),
            ("slope_up", self.slope_up),
            ("slope_down", self.slope_down),
            ("shift_up", self.shift_up),
            ("shift_down", self.shift_down),
            ("noise", self.noise),
            ("bump", self.bumps),
            ("cells", self.cells()),
        ]
    }

    fn add(&mut self, component: usize, share: f64) {
        let to = match BETS[component] {
            Bet::Intercept(b) if b > 0.0 => &mut self.intercept_up,
            Bet::Intercept(_) => &mut self.intercept_down,
            Bet::Slope(b) if b > 0.0 => &mut self.slope_up,
            Bet::Slope(_) => &mut self.slope_down,
            Bet::Shift(d) if d > 0.0 => &mut self.shift_up,
            Bet::Shift(_) => &mut self.shift_down,
            Bet::Noise(_) => &mut self.noise,
            Bet::Bump { .. } => &mut self.bumps,
            Bet::Cells(_) => {
                &mut self.scales[(component - super::mixture::component(0, 0)) / LEARNT]
            }
        };
        *to += share;
    }
}

/// The component with the largest share.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Best {
    /// Index of the component.
    pub component: u16,
    /// Its share of the evidence.
    pub share: f64,
}

impl Best {
    /// What it bets on.
    pub fn bet(&self) -> Option<Bet> {
        BETS.get(usize::from(self.component)).copied()
    }
}

/// A range of scores whose outcomes go one way.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Leaning {
    /// Least score.
    pub low: f64,
    /// Largest score.
    pub high: f64,
    /// −1 to 1; above 0 outcomes are more frequent than the scores say.
    pub lean: f64,
}

/// What the evidence of a detector shows.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Evidence {
    /// log M; an alarm needs at least log A.
    pub log_worth: f64,
    /// Shares of the evidence by kind of bet.
    pub shares: Shares,
    /// The kind with the largest share, as a person would say it.
    pub direction: Direction,
    /// The best bet.
    pub best: Best,
    /// The scores that lean most, at the scale with the largest share.
    pub cells: Vec<Leaning>,
    /// Posterior mean of the moment of the change.
    pub onset: StreamPosition,
}

impl Evidence {
    /// The evidence of `detector`; `None` before its first pane.
    pub fn of(detector: &Detector) -> Option<Evidence> {
        let log_worth = detector.log_worth();
        if log_worth == f64::NEG_INFINITY {
            return None;
        }
        let of: Vec<f64> = detector.worths().map(|w| (w - log_worth).exp()).collect();
        let mut shares = Shares::default();
        (0..).zip(&of).for_each(|(c, share)| shares.add(c, *share));
        let largest = (0u16..).zip(&of).max_by(|a, b| a.1.total_cmp(b.1))?;
        Some(Evidence {
            log_worth,
            direction: direction(detector, &of),
            best: Best {
                component: largest.0,
                share: *largest.1,
            },
            cells: leanings(detector, &of, &shares),
            onset: onset(detector, &of),
            shares,
        })
    }
}

/// The direction with the largest share, where each bet counts for the direction that it has on the
/// scores seen.
fn direction(detector: &Detector, of: &[f64]) -> Direction {
    const ALL: [Direction; 5] = [
        Direction::TooLow,
        Direction::TooHigh,
        Direction::UnderConfident,
        Direction::OverConfident,
        Direction::Local,
    ];
    let spread = &detector.variance;
    let mut shares = [0.0; ALL.len()];
    for (c, (bet, share)) in BETS.iter().zip(of).enumerate() {
        let kind = match bet {
            Bet::Cells(scale) => cells_direction(detector, spread, *scale, c),
            bet => bet_direction(spread, *bet),
        };
        let slot = ALL.iter().zip(&mut shares).find(|(d, _)| **d == kind);
        if let Some((_, sum)) = slot {
            *sum += share;
        }
    }
    let largest = ALL
        .into_iter()
        .zip(shares)
        .max_by(|a, b| a.1.total_cmp(&b.1));
    largest.map_or(Direction::None, |(direction, _)| direction)
}

/// Share of the scores from `low` to `high`, edges of cells of the spread.
fn part(spread: &[f64; SPREAD], low: f64, high: f64) -> f64 {
    let at = |x: f64| (x * SPREAD as f64) as usize;
    let whole: f64 = spread.iter().sum();
    spread[at(low)..at(high)].iter().sum::<f64>() / whole
}

fn bet_direction(spread: &[f64; SPREAD], bet: Bet) -> Direction {
    let shift = |up| match up {
        true => Direction::TooLow,
        false => Direction::TooHigh,
    };
    let below = part(spread, 0.0, 0.5);
    // Flatter: scores below the middle are too low, those above too high.
    let slope = |flatter| match flatter {
        _ if below >= ALL_MIN => shift(flatter),
        _ if below <= 1.0 - ALL_MIN => shift(!flatter),
        true => Direction::OverConfident,
        false => Direction::UnderConfident,
    };
    match bet {
        Bet::Intercept(b) | Bet::Shift(b) => shift(b > 0.0),
        Bet::Slope(b) => slope(b < 0.0),
        Bet::Noise(_) => slope(true),
        Bet::Bump { low, high, beta } if part(spread, low, high) >= ALL_MIN => shift(beta > 0.0),
        Bet::Bump { .. } | Bet::Cells(_) => Direction::Local,
    }
}

/// The direction of the bets on cells: one way if nine tenths of the scores lean so; finer cells
/// than those of the spread, and those of u, count as local.
fn cells_direction(
    detector: &Detector,
    spread: &[f64; SPREAD],
    scale: Scale,
    at: usize,
) -> Direction {
    if scale.warped || scale.cells > SPREAD {
        return Direction::Local;
    }
    let signs = &detector.signs[scale.first..scale.first + scale.cells];
    let each = SPREAD / scale.cells;
    let j = (at - component(0, 0)) % LEARNT;
    let whole: f64 = spread.iter().sum();
    let sums = signs.iter().zip(spread.chunks(each));
    let lean: f64 = sums
        .map(|(w, part)| (2.0 * w[j] - 1.0) * part.iter().sum::<f64>())
        .sum();
    if lean >= ALL_MIN * whole {
        Direction::TooLow
    } else if lean <= -ALL_MIN * whole {
        Direction::TooHigh
    } else {
        Direction::Local
    }
}

/// Mean onset of the components by worth.
fn onset(detector: &Detector, of: &[f64]) -> StreamPosition {
    let mut mean = StreamPosition::default();
    for (c, share) in detector.components.iter().zip(of) {
        mean.event += share * c.onset.event;
        mean.ms += share * c.onset.ms;
    }
    // The shares sum to 1 but for rounding, which a time since 1970 shows by the millisecond.
    let whole: f64 = of.iter().sum();
    StreamPosition {
        event: mean.event / whole,
        ms: mean.ms / whole,
    }
}

/// The range of the bump with the largest share.
fn best_bump(of: &[f64]) -> Option<Leaning> {
    let bumps = BETS.iter().zip(of).filter_map(|(bet, share)| match bet {
        Bet::Bump { low, high, beta } => Some((share, (*low, *high, beta.signum()))),
        _ => None,
    });
    let (_, (low, high, lean)) = bumps.max_by(|a, b| a.0.total_cmp(b.0))?;
    Some(Leaning { low, high, lean })
}

fn leanings(detector: &Detector, of: &[f64], shares: &Shares) -> Vec<Leaning> {
    if shares.bumps > shares.cells() {
        return best_bump(of).into_iter().collect();
    }
    let largest = (0..SCALES).max_by(|&a, &b| shares.scales[a].total_cmp(&shares.scales[b]));
    let k = largest.unwrap_or(0);
    let (scale, whole) = (Scale::of(k), shares.scales[k]);
    let signs = &detector.signs[scale.first..scale.first + scale.cells];
    let lean = |(cell, w): (usize, &[f64; LEARNT])| {
        let sum: f64 = (0..LEARNT)
            .map(|j| of[component(k, j)] * (2.0 * w[j] - 1.0))
            .sum();
        let (low, high) = scale.edges(cell);
        Leaning {
            low,
            high,
            lean: if whole > 0.0 { sum / whole } else { 0.0 },
        }
    };
    let mut all: Vec<Leaning> = signs.iter().enumerate().map(lean).collect();
    all.retain(|l| l.lean.abs() >= LEAN_MIN);
    all.sort_by(|a, b| b.lean.abs().total_cmp(&a.lean.abs()));
    all.truncate(CELLS_MAX);
    all
}
