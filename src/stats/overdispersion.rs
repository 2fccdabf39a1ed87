//! How much more the outcomes of a stream vary than independent outcomes would.
//!
//! All tests of calibration assume that events are independent given their scores. Dependent
//! outcomes (events of one user, an incident that lasts an hour) make totals vary more, so every
//! test rejects more often than its level. If no field names the clusters, the stream shows the
//! dependence: under independence the residual totals of stretches of time vary as much as the
//! single residuals predict.
//!
//! **Estimate.** Base panes p = 1…P of at least [`PANE_EVENTS`] events and ΣV of [`PANE_VARIANCE`],
//! in order of event time; U_p = ΣU, V_p = ΣV, V = z(1−z). With δ_p = U_p/V_p,
//!
//! ```text
//! d_p = (δ_p − δ_{p+1})² / (1/V_p + 1/V_{p+1})
//! φ̂   = mean of the smallest four fifths of the d_p  ÷  c  ÷  (ΣU²/ΣV)
//! ```
//!
//! * Successive differences (von Neumann, *Distribution of the ratio of the mean square successive
//!   difference to the variance*, 1941) take out what changes slowly: a model that drifts, or is
//!   wrong by a constant, is not overdispersed. The second factor is the variance of single
//!   outcomes as a multiple of the one that the scores say; so a miscalibrated model has φ = 1 too
//!   if its outcomes are independent.
//! * A model that breaks or is repaired at one moment makes one difference as large as the error.
//!   This is not overdispersion, and counting it would hide the error from the tests. So the
//!   largest fifth of the differences (two at least) is left out. For normal totals d_p/φ is χ²
//!   with one degree, and the mean of those below its quantile q at 1−f is c = P(χ²₃ < q)/(1−f), f
//!   the share left out; c is 1 + 2.3/P larger in small series (simulated, P from 10 to 200).
//! * For normal totals of equal V, νφ̂/φ is about χ² with ν = 0.7·2(P−1)²/(3P−4) degrees of
//!   freedom: the first two moments of the mean of all, times the efficiency of the trimmed one
//!   (simulated: 0.64 to 0.71). [`PANE_VARIANCE`] makes totals normal enough where events are rare.
//! * A cluster that is longer than a pane shifts neighbours alike and cancels. So φ̂ is also
//!   estimated on wider panes while there are [`JOINED_MIN`] of them ([`Dispersion::scales`]).
//!   Among the significant scales the one with the largest φ̂ counts.
//! * A scale that is wider than a window says little about it: what shifts all of a window is an
//!   error of that window, and a model that is wrong every night varies between stretches of seven
//!   hours as if its outcomes were dependent. So a window takes only the scales up to its own
//!   width ([`Scales::within`]).
//!
//! **Use.** φ̂ counts only where its interval of 99 % lies above 1 ([`Overdispersion::gated`]): a
//! factor from noise would cost power.
//!
//! **State.** For each of [`WIDTHS`] widths, doubling from the sealed pane on, the sums of the
//! newest [`SLOTS`] stretches of event time, aligned to the epoch. They add up, and what late
//! outcomes change in a pane is added too. So the series of a stream is the same, to the bit, in
//! whatever order its panes come and whichever process counted them (of weighted events to within
//! the rounding of cells). Base panes are made of the narrowest width that gives [`PANES_MIN`] of
//! them, by joining neighbours where a slot has too few events.
//!
//! A slot whose sums leave their integers is left out: ΣV of weighted events is a sum of w²V, and
//! the integers hold 4.3·10⁹, that is 26,000 events of uniform scores and a weight of 1000. If that
//! happens to all slots of a stream, nothing is measured.
//!
//! Cost: 40 bytes a slot, 28 kB a stream; some microseconds to measure.

use super::null::normal_upper_quantile;
use super::sums::{Cell, Sums};
use std::collections::VecDeque;

/// Fewest events of a base pane.
pub const PANE_EVENTS: u64 = 100;

/// ΣV of a base pane, at least: below that the total of rare outcomes is far from normal.
pub const PANE_VARIANCE: u64 = 5;

/// Slots of one width that are kept.
pub const SLOTS: i64 = 100;

/// Number of widths: from one pane to 64.
pub const WIDTHS: u32 = 7;

/// Fewest base panes for a measurement.
pub const PANES_MIN: usize = 50;

/// Fewest panes of the widest scale.
pub const JOINED_MIN: usize = 10;

/// The normal quantile of an interval of 99 %.
const Z_99: f64 = 2.575_829_303_548_901;

/// Sums of one pane, all but the count in units of 2⁻³². Of weighted events they are sums of wU,
/// w²U² and w²V.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PaneTotals {
    /// Number of events.
    pub n: u64,
    /// ΣU, U = y − z.
    pub u: i64,
    /// ΣU².
    pub u2: u64,
    /// ΣV.
    pub v: u64,
}

/// ΣU² of a cell in units of 2⁻³², U = y − z.
pub(crate) fn residual_squares(c: &Cell) -> u128 {
    ((u128::from(c.y) << 32) + u128::from(c.z2)).saturating_sub(u128::from(c.yz) << 1)
}

impl PaneTotals {
    /// The totals of sums. If one leaves its integer, the pane is not used for dispersion.
    pub fn of(sums: &Sums) -> PaneTotals {
        let mut t = PaneTotals {
            n: sums.n(),
            ..PaneTotals::default()
        };
        if let Some(weighted) = sums.weighted() {
            for (_, c) in weighted.cells() {
                t.add(
                    ((i128::from(c.wy) << 32) - c.wz as i128) >> 16,
                    (((c.w2y << 32) + c.w2z2).saturating_sub(c.w2yz << 1)) >> 32,
                    c.w2z.saturating_sub(c.w2z2) >> 32,
                );
            }
            return t;
        }
        sums.each_occupied(|_, c| {
            t.add(
                (i128::from(c.y) << 32) - i128::from(c.z),
                residual_squares(c),
                u128::from(c.z.saturating_sub(c.z2)),
            );
        });
        t
    }

    fn add(&mut self, u: i128, u2: u128, v: u128) {
        let sum = |a: u64, b: u128| a.checked_add(u64::try_from(b).ok()?);
        let all = || {
            let u = self.u.checked_add(i64::try_from(u).ok()?)?;
            Some((u, sum(self.u2, u2)?, sum(self.v, v)?))
        };
        match all() {
            Some(all) if !self.is_full() => (self.u, self.u2, self.v) = all,
            _ => (self.u2, self.v) = (u64::MAX, u64::MAX),
        }
    }

    /// Whether a sum has left its integer, now or before: sums of w²V of weights of some thousands
    /// do.
    fn is_full(&self) -> bool {
        self.u2 == u64::MAX || self.v == u64::MAX
    }

    /// Adds another pane.
    fn join(&mut self, o: &PaneTotals) {
        self.n = self.n.saturating_add(o.n);
        self.add(o.u.into(), o.u2.into(), o.v.into());
    }

    /// The pane with `plus` and without `minus`; `None` if the events of `minus` are not in it.
    fn revised(mut self, minus: &PaneTotals, plus: &PaneTotals) -> Option<PaneTotals> {
        self.join(plus);
        if self.is_full() {
            return Some(self);
        }
        Some(PaneTotals {
            n: self.n.checked_sub(minus.n)?,
            u: self.u.checked_sub(minus.u)?,
            // The cells of weighted events are rounded, so it may lack a unit.
            u2: self.u2.saturating_sub(minus.u2),
            v: self.v.saturating_sub(minus.v),
        })
    }

    fn is_whole(&self) -> bool {
        self.n >= PANE_EVENTS && self.v >= PANE_VARIANCE << 32
    }
}

/// The totals of the newest panes of a stream, in slots of several widths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Dispersion {
    /// By width: number of the slot and its sums, ascending.
    widths: Vec<VecDeque<(i64, PaneTotals)>>,
}

impl Dispersion {
    /// Adds a pane; `number` counts panes of its width since the epoch.
    pub fn observe(&mut self, number: i64, pane: &PaneTotals) {
        self.revise(number, &PaneTotals::default(), pane);
    }

    /// Changes a pane that it has: the events of `minus` leave, and those of `plus` come.
    pub fn revise(&mut self, number: i64, minus: &PaneTotals, plus: &PaneTotals) {
        for width in 0..WIDTHS {
            self.add(width, number >> width, minus, plus);
        }
    }

    /// Drops every slot that holds the pane of this number or a later one.
    pub fn cut(&mut self, number: i64) {
        for (width, slots) in (0..WIDTHS).zip(&mut self.widths) {
            slots.retain(|(slot, _)| *slot < number >> width);
        }
    }

    /// Adds the panes of another series of the stream.
    pub fn merge(&mut self, other: &Dispersion) {
        for (width, slots) in (0..WIDTHS).zip(&other.widths) {
            for (number, pane) in slots {
                self.add(width, *number, &PaneTotals::default(), pane);
            }
        }
    }

    fn add(&mut self, width: u32, number: i64, minus: &PaneTotals, plus: &PaneTotals) {
        if plus.n == 0 {
            return;
        }
        self.widths.resize(WIDTHS as usize, VecDeque::new());
        let slots = &mut self.widths[width as usize];
        let newest = slots.back().map_or(number, |(last, _)| number.max(*last));
        if number <= newest.saturating_sub(SLOTS) {
            return;
        }
        let at = slots.binary_search_by_key(&number, |(n, _)| *n);
        let before = at.map_or(PaneTotals::default(), |at| slots[at].1);
        let Some(now) = before.revised(minus, plus) else {
            return;
        };
        match at {
            Ok(at) => slots[at].1 = now,
            Err(at) => slots.insert(at, (number, now)),
        }
        while slots
            .front()
            .is_some_and(|(n, _)| *n <= newest.saturating_sub(SLOTS))
        {
            slots.pop_front();
        }
    }

    /// The overdispersion over all scales, once there are [`PANES_MIN`] base panes.
    pub fn measure(&self) -> Option<Overdispersion> {
        self.scales().map(|scales| scales.within(f64::INFINITY))
    }

    /// φ̂ at each scale, once there are [`PANES_MIN`] base panes.
    pub fn scales(&self) -> Option<Scales> {
        let mut widths = (0..WIDTHS).zip(&self.widths).map(whole_panes);
        let base = widths.find(|(_, panes)| panes.len() >= PANES_MIN)?;
        let (single, panes) = (single_outcomes(&base.1)?, base.1.len());
        let wider = widths.filter(|(_, panes)| panes.len() >= JOINED_MIN);
        let mut all: Vec<(f64, Vec<PaneTotals>)> = std::iter::once(base).chain(wider).collect();
        while let Some((width, widest)) = all.last() {
            let joined = widest.rchunks_exact(2).rev().map(joined);
            let joined: Vec<PaneTotals> = joined.filter(|pane| !pane.is_full()).collect();
            if joined.len() < JOINED_MIN {
                break;
            }
            all.push((2.0 * width, joined));
        }
        let of = |(width, scale): (f64, Vec<PaneTotals>)| {
            (width, Overdispersion::of(&scale, single, panes))
        };
        Some(Scales(all.into_iter().map(of).collect()))
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let slots = self.widths.iter().map(VecDeque::capacity);
        slots.sum::<usize>() * size_of::<(i64, PaneTotals)>()
    }
}

/// φ̂ by the width of the stretches that it compares, in panes, ascending; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Scales(Vec<(f64, Overdispersion)>);

impl Scales {
    /// The largest significant φ̂ of stretches of at most `panes` panes, else that of base panes,
    /// which counts whatever their width.
    pub fn within(&self, panes: f64) -> Overdispersion {
        let mut found = self.0[0].1;
        for (_, one) in self.0[1..].iter().filter(|(width, _)| *width <= panes) {
            let is_larger = one.factor > found.factor || found.gated().is_none();
            if one.gated().is_some() && is_larger {
                found = *one;
            }
        }
        found
    }
}

/// How many panes the joined slots of a width span on average, and these slots: each is joined to
/// its successors until it has enough events and variance. An incomplete last one, and those that
/// have left their integers, are left out.
fn whole_panes((width, slots): (u32, &VecDeque<(i64, PaneTotals)>)) -> (f64, Vec<PaneTotals>) {
    let (mut all, mut open) = (Vec::new(), PaneTotals::default());
    for (_, pane) in slots {
        open.join(pane);
        if open.is_whole() {
            all.push(std::mem::take(&mut open));
        }
    }
    let joined = slots.len() as f64 / all.len().max(1) as f64;
    all.retain(|pane| !pane.is_full());
    (2f64.powi(width as i32) * joined, all)
}

fn joined(pair: &[PaneTotals]) -> PaneTotals {
    let mut both = PaneTotals::default();
    pair.iter().for_each(|p| both.join(p));
    both
}

/// ΣU²/ΣV: the variance of single outcomes as a multiple of what the scores say; `None` without
/// outcomes.
fn single_outcomes(panes: &[PaneTotals]) -> Option<f64> {
    let u2: f64 = panes.iter().map(|p| p.u2 as f64).sum();
    let v: f64 = panes.iter().map(|p| p.v as f64).sum();
    (u2 > 0.0 && v > 0.0).then(|| u2 / v)
}

/// The variance of the outcomes' totals as a multiple of that of independent outcomes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Overdispersion {
    /// φ̂, at least 0; independent outcomes have 1.
    pub factor: f64,
    /// Lower end of the interval of 99 % for φ.
    pub low: f64,
    /// Upper end of this interval.
    pub high: f64,
    /// Degrees of freedom ν of φ̂.
    pub degrees: f64,
    /// Base panes that it rests on.
    pub panes: usize,
}

impl Overdispersion {
    /// Measures the panes of one scale, at least two.
    fn of(scale: &[PaneTotals], single: f64, panes: usize) -> Overdispersion {
        let unit = 2f64.powi(-32);
        let term = |pair: &[PaneTotals]| {
            let [a, b] = [&pair[0], &pair[1]].map(|p| (p.u as f64 * unit, p.v as f64 * unit));
            (a.0 / a.1 - b.0 / b.1).powi(2) / (1.0 / a.1 + 1.0 / b.1)
        };
        let count = scale.len() as f64;
        let terms: Vec<f64> = scale.windows(2).map(term).collect();
        let factor = trimmed_mean(terms) / (1.0 + 2.3 / count) / single;
        let degrees = EFFICIENCY * 2.0 * (count - 1.0).powi(2) / (3.0 * count - 4.0);
        Overdispersion {
            factor,
            low: factor * degrees / chi_squared_quantile(degrees, Z_99),
            high: factor * degrees / chi_squared_quantile(degrees, -Z_99),
            degrees,
            panes,
        }
    }

    /// Factor and degrees of freedom, where the interval lies above 1.
    pub fn gated(&self) -> Option<(f64, f64)> {
        (self.low > 1.0).then_some((self.factor, self.degrees))
    }
}

/// Efficiency of the trimmed mean of χ² variables with one degree of freedom.
const EFFICIENCY: f64 = 0.7;

/// The mean of χ² variables with one degree of freedom, times their scale, from the smallest four
/// fifths of them.
fn trimmed_mean(mut terms: Vec<f64>) -> f64 {
    let all = terms.len();
    let out = all.div_ceil(5).max(2).min(all - 1);
    terms.sort_unstable_by(f64::total_cmp);
    let kept = &terms[..all - out];
    let share = out as f64 / all as f64;
    let z = normal_upper_quantile(0.5 * share);
    // P(χ²₃ < z²) = P(χ²₁ < z²) − 2zφ(z).
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let expected = (1.0 - share - 2.0 * z * density) / (1.0 - share);
    kept.iter().sum::<f64>() / kept.len() as f64 / expected
}

/// The quantile of χ² with ν ≥ 4.3 degrees of freedom ([`JOINED_MIN`] panes) at the normal quantile
/// z (Wilson, Hilferty, *The distribution of chi-square*, 1931): within 0.6 % for z from −1.3 to
/// 2.58. At z = −2.58 it is too small, by 21 % at ν = 4.4, 10 % at 6, 3 % at 10 and 0.5 % at 25,
/// and the upper end of the interval of few panes too large.
pub(crate) fn chi_squared_quantile(nu: f64, z: f64) -> f64 {
    let s = 2.0 / (9.0 * nu);
    nu * (1.0 - s + z * s.sqrt()).powi(3)
}

#[cfg(test)]
mod tests;
