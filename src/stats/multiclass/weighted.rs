//! Vector events with weights: the estimators and their null, and the integers of a cell.
//!
//! Record a has a weight w_a > 0, known when its prediction was made. What [`crate::weighted`] says
//! of scores holds of vectors with the same steps, squares being squared norms; U = e_y − z in R^k,
//! S = Cov U = diag(z) − zzᵀ given z, W_i = Σw over cell i, W over all:
//!
//! * **Debiased** T_d = (1/W) Σ_i [‖ΣwU‖² − Σw²‖U‖²]/W_i, the sum over pairs of different events of
//!   w_a w_b U_a·U_b; under the null each wU has mean 0 and events are independent, so T_d has mean
//!   0, exactly.
//! * **Null**, given predictions and weights. E(wU·w′U′)² = w²w′² tr(SS′), so the formulas of
//!   [`super::estimate`] hold with S → w²S and 1/N → 1/W: variance (1/W²) Σ_i 2 Σ_{a≠b} w_a²w_b²
//!   tr(S_aS_b)/W_i². With A = Σw²z and M = Σw²zzᵀ, Σw²S = diag(A) − M, hence the pairs are
//!   tr((Σw²S)²) − Σw⁴ tr S² = ‖A‖² − 2Σ_c A_c M_cc + ‖M‖² − Σw⁴ tr S², exactly. Third cumulant
//!   (1/W³) Σ_i {8 Σ_{a≠b≠c} w_a²w_b²w_c² tr(S_aS_bS_c) + 4 Σ_{a≠b} w_a³w_b³ E(U_a·U_b)³}/W_i³, in
//!   sums at the cell's mean vector A/Σw², scaled by the exact pairs, with the weights' own
//!   [`Tuples`]. Two levels have the covariance (1/W²) Σ 2 pairs/(W_i W_parent) over the finer
//!   one's cells.
//! * **Unbiased** T = (1/W) Σ_i [‖ΣwU‖² − Σw²‖U‖²]/(W_i − Σw²/W_i): with one residual e for the
//!   cell the pairs have the mean ‖e‖²(W_i² − Σw²).
//! * **Off the null**, by the delta method on the ratios, an event of cell i moves T by ψ = [2w
//!   e_i·U − w(‖e_i‖² + θ)]/w̄, e_i = ΣwU/W_i, θ = Σ(W_i/W)‖e_i‖²; σ̂₁² = (n/W²) Σ_i [4Σw²(e_i·U)²
//!   − 4(‖e_i‖² + θ)Σw²e_i·U + (‖e_i‖² + θ)²Σw²]. For weights of 1 it is that of
//!   [`super::interval`](mod@super::interval).
//! * Where a number of events chooses something (levels, cells of the interval) it is the effective
//!   one, (Σw)²/Σw² (Kish 1965, §11.7). The bound of T-Cal's Theorem 3.1 is for equal weights and
//!   is not given.
//!
//! The null assumes that given the prediction an outcome does not depend on the weight, as for
//! scores. Scaling all weights changes nothing, and weights that are all equal give the same as no
//! weights, except for rounding in the third cumulants.
//!
//! **A cell** has words of 64 bits, those of wider numbers with the low one first; w in units of
//! 2⁻¹⁶, z and its products in units of 2⁻³²:
//!
//! ```text
//! n │ Σw │ two words each: Σw² │ Σw³ │ Σwe_y k │ Σwz k │ Σw²e_y k │ Σw²z k │ Σw²e_y zᵀ k² │ Σw²zzᵀ k(k+1)/2
//!        │ four words each: Σw⁴ │ Σw⁴ tr S² │ Σw⁶
//! ```
//! With w < 2³² and below [`EVENTS_MAX`](super::sums::EVENTS_MAX) events Σw²zzᵀ stays under 2¹²⁷
//! and Σw⁶ under 2²²³, so nothing overflows; merging and taking back are exact. 384 bytes for k = 2
//! where [`plain`](super::plain) has 104.

use super::cell::Name;
use super::level::{Law, Tuples, VectorCell};
use super::plain::pair;
use crate::fixed::to_fixed;
use crate::weight::{UNIT_16, UNIT_32, UNIT_48, UNIT_64, UNIT_96, Weight, Wide, halves};

/// Where the two-word numbers of a cell of k coordinates are.
#[derive(Debug, Clone, Copy)]
struct Places {
    k: usize,
}

impl Places {
    const W2: usize = 2;
    const W3: usize = 4;

    fn double(self, index: usize) -> usize {
        6 + 2 * index
    }

    /// Place of Σwe_y.
    fn we(self, y: usize) -> usize {
        self.double(y)
    }

    /// Place of Σwz.
    fn wz(self, i: usize) -> usize {
        self.double(self.k + i)
    }

    /// Place of Σw²e_y.
    fn w2e(self, y: usize) -> usize {
        self.double(2 * self.k + y)
    }

    /// Place of Σw²z.
    fn w2z(self, i: usize) -> usize {
        self.double(3 * self.k + i)
    }

    /// Place of Σw²e_y z_i.
    fn hits(self, y: usize, i: usize) -> usize {
        self.double(4 * self.k + y * self.k + i)
    }

    /// Place of Σw²z_i z_j, j ≤ i.
    fn both(self, i: usize, j: usize) -> usize {
        self.double(4 * self.k + self.k * self.k + pair(i, j))
    }

    /// Place of a four-word number: 0 is Σw⁴, 1 is Σw⁴ tr S², 2 is Σw⁶, 3 is the end.
    fn wide(self, index: usize) -> usize {
        let k = self.k;
        self.double(4 * k + k * k + k * (k + 1) / 2) + 4 * index
    }
}

/// Number of words of a cell of k coordinates.
pub(super) fn width(k: usize) -> usize {
    Places { k }.wide(3)
}

/// Adds an event.
pub(super) fn add(c: &mut [i64], z: &[f64], label: u32, weight: Weight) {
    let at = Places { k: z.len() };
    let w = u128::from(weight.fixed());
    let (w2, w3) = (w * w, w * w * w);
    c[0] += 1;
    c[1] += i64::from(weight.fixed());
    put(c, Places::W2, w2);
    put(c, Places::W3, w3);
    add_label(c, z, label, w, put);
    for (i, &x) in z.iter().enumerate() {
        let fixed = to_fixed(x) as u128;
        put(c, at.wz(i), w * fixed);
        put(c, at.w2z(i), w2 * fixed);
        for (j, &y) in z[..=i].iter().enumerate() {
            put(c, at.both(i, j), w2 * to_fixed(x * y) as u128);
        }
    }
    let own = to_fixed(Law::of(z).trace2()) as u128;
    let wide = [
        Wide::product(w2, w2),
        Wide::product(w2 * w2, own),
        Wide::product(w3, w3),
    ];
    for (i, Wide(limbs)) in wide.iter().enumerate() {
        carry(&mut c[at.wide(i)..][..4], limbs, u64::overflowing_add);
    }
}

/// Adds an event's label, or takes it back.
fn add_label(c: &mut [i64], z: &[f64], label: u32, w: u128, by: fn(&mut [i64], usize, u128)) {
    let (at, y) = (Places { k: z.len() }, label as usize);
    if y < z.len() {
        by(c, at.we(y), w);
        by(c, at.w2e(y), w * w);
        for (i, &x) in z.iter().enumerate() {
            by(c, at.hits(y, i), w * w * to_fixed(x) as u128);
        }
    }
}

/// Moves an event from one label to another, if the cell has enough weight of the first.
pub(super) fn move_label(c: &mut [i64], z: &[f64], from: u32, to: u32, weight: Weight) {
    let (at, y) = (Places { k: z.len() }, from as usize);
    let w = u128::from(weight.fixed());
    let labelled: u128 = (0..z.len()).map(|y| double(c, at.we(y))).sum();
    let held = match y < z.len() {
        true => double(c, at.we(y)),
        false => (c[1] as u128).saturating_sub(labelled),
    };
    if held >= w {
        add_label(c, z, from, w, take);
        add_label(c, z, to, w, put);
    }
}

/// Adds the sums of another cell.
pub(super) fn merge(ours: &mut [i64], theirs: &[i64]) {
    ours[0] += theirs[0];
    ours[1] += theirs[1];
    combine_wide(ours, theirs, u64::overflowing_add);
}

/// Takes out the sums of another cell.
pub(super) fn retract(ours: &mut [i64], theirs: &[i64]) {
    ours[0] -= theirs[0];
    ours[1] -= theirs[1];
    combine_wide(ours, theirs, u64::overflowing_sub);
}

fn combine_wide(ours: &mut [i64], theirs: &[i64], f: fn(u64, u64) -> (u64, bool)) {
    let wide = ours.len() - 12;
    let limbs = |words: &[i64]| -> [u64; 4] {
        std::array::from_fn(|i| words.get(i).map_or(0, |w| *w as u64))
    };
    let groups = (2..wide).step_by(2).map(|at| (at, 2));
    for (at, len) in groups.chain((0..3).map(|i| (wide + 4 * i, 4))) {
        let other = limbs(&theirs[at..at + len]);
        carry(&mut ours[at..at + len], &other, f);
    }
}

/// Adds to a number, or subtracts from it.
fn carry(words: &mut [i64], limbs: &[u64], f: fn(u64, u64) -> (u64, bool)) {
    let mut over = false;
    for (word, limb) in words.iter_mut().zip(limbs) {
        let (part, first) = f(*word as u64, *limb);
        let (part, second) = f(part, u64::from(over));
        *word = part as i64;
        over = first || second;
    }
}

fn put(c: &mut [i64], at: usize, x: u128) {
    carry(&mut c[at..at + 2], &halves(x), u64::overflowing_add);
}

fn take(c: &mut [i64], at: usize, x: u128) {
    carry(&mut c[at..at + 2], &halves(x), u64::overflowing_sub);
}

fn double(c: &[i64], at: usize) -> u128 {
    u128::from(c[at] as u64) | u128::from(c[at + 1] as u64) << 64
}

/// Σw and Σw².
pub(super) fn weights(c: &[i64]) -> (f64, f64) {
    (
        c[1] as f64 * UNIT_16,
        double(c, Places::W2) as f64 * UNIT_32,
    )
}

/// The weighted mean of the largest coordinate of its events, to within the cell.
pub(super) fn top(c: &[i64], k: usize) -> f64 {
    let at = Places { k };
    let most = (0..k).map(|i| double(c, at.wz(i))).max().unwrap_or(0);
    most as f64 * UNIT_48 / (c[1] as f64 * UNIT_16)
}

/// A cell's floats from its integers.
pub(super) fn cell(name: &Name, c: &[i64], k: usize) -> VectorCell {
    let at = Places { k };
    let float = |at: usize, unit: f64| double(c, at) as f64 * unit;
    // Differences wrap on the way and end in range.
    let less = |a: usize, b: usize| (double(c, a) << 32).wrapping_sub(double(c, b)) as i128 as f64;
    let (w, w2) = weights(c);
    let u: Vec<f64> = (0..k).map(|i| less(at.we(i), at.wz(i)) * UNIT_48).collect();
    let w2u: Vec<f64> = (0..k)
        .map(|i| less(at.w2e(i), at.w2z(i)) * UNIT_64)
        .collect();
    let hits = |y: usize, i: usize| float(at.hits(y, i), UNIT_64);
    let both = |i: usize, j: usize| float(at.both(i.max(j), i.min(j)), UNIT_64);
    let (mut u2, mut along) = (0.0, 0.0);
    for i in 0..k {
        let label = float(at.w2e(i), UNIT_32);
        u2 += both(i, i) + label - 2.0 * hits(i, i);
        for j in 0..k {
            let own = if i == j { label } else { 0.0 };
            along += u[i] * u[j] * (own - hits(i, j) - hits(j, i) + both(i, j));
        }
    }
    let wide = |i: usize, unit: f64| {
        let limbs = &c[at.wide(i)..][..4];
        Wide(std::array::from_fn(|j| limbs[j] as u64)).value() * unit
    };
    let mut pairs = -wide(1, UNIT_96);
    for i in 0..k {
        let z = float(at.w2z(i), UNIT_64);
        pairs += z * z - 2.0 * z * both(i, i);
        pairs += (0..k).map(|j| both(i, j) * both(i, j)).sum::<f64>();
    }
    let pairs = if c[0] < 2 { 0.0 } else { pairs.max(0.0) };
    let mean: Vec<f64> = (0..k).map(|i| float(at.w2z(i), UNIT_64) / w2).collect();
    let tuples = match c[0] {
        0 | 1 => Tuples::default(),
        _ => Tuples::of_powers([
            w2,
            float(Places::W3, UNIT_48),
            wide(0, UNIT_64),
            wide(2, UNIT_96),
        ]),
    };
    let (triples, cubes) = Law::of(&mean).thirds(&mean, &tuples, pairs);
    VectorCell {
        name: name.clone(),
        n: w,
        count: c[0] as f64,
        w2,
        w4: wide(0, UNIT_64),
        along: (along / (w * w)).max(0.0),
        along_u: u.iter().zip(&w2u).map(|(u, v)| u * v).sum::<f64>() / w,
        u,
        u2,
        z: (0..k).map(|i| float(at.wz(i), UNIT_48)).collect(),
        v: (0..k)
            .map(|i| (float(at.w2z(i), UNIT_64) - both(i, i)).max(0.0))
            .collect(),
        pairs,
        triples,
        cubes,
    }
}
