//! One level of a vector view: its occupied cells with the sums that estimators and null laws need.
//!
//! Per cell, N events with points z and residuals u in R^k: ΣU, Σ‖U‖², Σz, and Σ_{a≠b} tr(S_a S_b),
//! the null variance of Σ_{a≠b} U_a·U_b over 2 (S = diag(z) − zzᵀ). The last is a sum over pairs or
//! a matrix: with A = Σz, Q = Σz² and M = Σzzᵀ, Σ_{a,b} tr(S_a S_b) = ‖A‖² − 2A·Q + ‖M‖², and the
//! cheaper of N²k and Nk² is taken; beyond [`EXACT_STEPS`] steps the cell's mean vector stands for
//! each z.
//!
//! Cells are sparse: those that events meet, in order of their names. Built from the events,
//! offline; the scalar views, which are the hot path, have integer sums of their own.

use super::cell::Name;
use super::events::{Events, NONE};
use std::collections::BTreeMap;

/// One occupied cell.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorCell {
    /// Name of the cell.
    pub name: Name,
    /// N; of weighted events Σw, and in what follows wU for U and w²S for S.
    pub n: f64,
    /// Number of events.
    pub count: f64,
    /// Σw²; N without weights.
    pub w2: f64,
    /// Σw⁴; N without weights.
    pub w4: f64,
    /// ΣU, U = e_y − z.
    pub u: Vec<f64>,
    /// Σ‖U‖².
    pub u2: f64,
    /// Σ(e·U)² with e = ΣU/N, for the interval.
    pub along: f64,
    /// Σw²e·U.
    pub along_u: f64,
    /// Σz.
    pub z: Vec<f64>,
    /// Σz(1 − z), with w² of weighted events.
    pub v: Vec<f64>,
    /// Σ_{a≠b} tr(S_a S_b).
    pub pairs: f64,
    /// Σ_{a≠b≠c} tr(S_a S_b S_c); beyond [`THIRD_EXACT`] coordinates at the cell's mean vector,
    /// scaled.
    pub triples: f64,
    /// Σ_{a≠b} E(U_a·U_b)³ under the null, likewise.
    pub cubes: f64,
}

/// The occupied cells of one level.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorLevel {
    /// m: slices of an axis, or the root of the number of simplices.
    pub slices: u32,
    /// n; of weighted events Σw.
    pub n: f64,
    /// Number of events.
    pub count: f64,
    /// Effective number of events, where they have weights: (Σw)²/Σw².
    pub effective: Option<f64>,
    /// Occupied cells in the order of their names.
    pub cells: Vec<VectorCell>,
}

/// Multiplications that one cell's pair sum may cost. A cell that would cost more, as 1001 events
/// of 1000 classes would, has the variance of its mean vector, which is too large where its
/// predictions differ much.
pub const EXACT_STEPS: f64 = 1e9;

impl VectorLevel {
    /// 1 − max_k Σz_k/n, at most ½: the mean probability of all coordinates but the commonest.
    pub fn rare_mean(&self) -> f64 {
        let coordinates = self.cells.first().map_or(0, |c| c.z.len());
        let sum = |k: usize| self.cells.iter().map(|c| c.z[k]).sum::<f64>();
        let most = (0..coordinates).map(sum).fold(0.0, f64::max);
        (1.0 - most / self.n).clamp(0.0, 0.5)
    }

    /// Cuts the events into cells of `slices` slices, 1 to [`super::cell::SLICES_MAX`].
    pub fn of(events: &Events, slices: u32) -> VectorLevel {
        let mut groups: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
        for i in 0..events.len() {
            groups
                .entry(Name::of(events, i, slices))
                .or_default()
                .push(i);
        }
        let cells = groups
            .into_iter()
            .map(|(name, group)| VectorCell::of(events, name, &group));
        VectorLevel {
            slices,
            n: events.total(),
            count: events.len() as f64,
            effective: events.effective(),
            cells: cells.collect(),
        }
    }
}

impl VectorCell {
    fn of(events: &Events, name: Name, group: &[usize]) -> VectorCell {
        let k = events.dimension;
        let (mut u, mut z, mut mean, mut u2) = (vec![0.0; k], vec![0.0; k], vec![0.0; k], 0.0);
        let mut v = vec![0.0; k];
        let (mut n, mut powers) = (0.0, [0.0; 4]);
        for &i in group {
            let (p, w) = (events.point(i), events.weight(i));
            let w2 = w * w;
            n += w;
            powers = std::array::from_fn(|k| powers[k] + [w2, w2 * w, w2 * w2, w2 * w2 * w2][k]);
            let norm: f64 = p.iter().map(|p| p * p).sum();
            for c in 0..k {
                z[c] += w * p[c];
                mean[c] += w2 * p[c];
                u[c] -= w * p[c];
                v[c] += w2 * p[c] * (1.0 - p[c]);
            }
            u2 += w2 * norm;
            if events.label(i) != NONE {
                let y = events.label(i) as usize;
                u[y] += w;
                u2 += w2 * (1.0 - 2.0 * p[y]);
            }
        }
        let (mut along, mut along_u) = (0.0, 0.0);
        for &i in group {
            let dot: f64 = events.point(i).iter().zip(&u).map(|(p, u)| p * u).sum();
            let hit = u.get(events.label(i) as usize).copied().unwrap_or(0.0);
            let (w, moved) = (events.weight(i), (hit - dot) / n);
            along += (w * moved).powi(2);
            along_u += w * w * moved;
        }
        mean.iter_mut().for_each(|z| *z /= powers[0]);
        let law = Law::of(&mean);
        let tuples = match events.is_weighted() {
            true => Tuples::of_powers(powers),
            false => Tuples::of_count(n),
        };
        let pairs = pairs(events, group, &law, &tuples);
        let (triples, cubes) = if group.len() < 2 {
            (0.0, 0.0)
        } else if k <= THIRD_EXACT {
            thirds(events, group)
        } else {
            law.thirds(&mean, &tuples, pairs)
        };
        VectorCell {
            pairs,
            triples,
            cubes,
            name,
            n,
            count: group.len() as f64,
            w2: powers[0],
            w4: powers[2],
            u,
            u2,
            along,
            along_u,
            z,
            v,
        }
    }

    /// Σ_{a≠b} U_a·U_b = ‖ΣU‖² − Σ‖U‖²; exactly 0 for one event.
    pub fn pairs_u(&self) -> f64 {
        if self.count < 2.0 {
            return 0.0;
        }
        self.u.iter().map(|u| u * u).sum::<f64>() - self.u2
    }
}

/// Sums over ordered tuples of different events of powers of their weights.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tuples {
    /// Σ_{a≠b}w_a²w_b².
    squares: f64,
    /// Σ_{a≠b}w_a³w_b³.
    cubes: f64,
    /// Σ_{a≠b≠c}w_a²w_b²w_c².
    triples: f64,
}

impl Tuples {
    /// The sums over n events without weights.
    pub fn of_count(n: f64) -> Tuples {
        let pairs = n * (n - 1.0);
        Tuples {
            squares: pairs,
            cubes: pairs,
            triples: pairs * (n - 2.0),
        }
    }

    /// The sums from Σw², Σw³, Σw⁴ and Σw⁶ of two events or more.
    pub fn of_powers([w2, w3, w4, w6]: [f64; 4]) -> Tuples {
        Tuples {
            squares: (w2 * w2 - w4).max(0.0),
            cubes: (w3 * w3 - w6).max(0.0),
            triples: (w2 * w2 * w2 - 3.0 * w2 * w4 + 2.0 * w6).max(0.0),
        }
    }
}

fn pairs(events: &Events, group: &[usize], mean: &Law, tuples: &Tuples) -> f64 {
    let (n, k) = (group.len() as f64, events.dimension as f64);
    if group.len() < 2 {
        0.0
    } else if n * k * n.min(k) > EXACT_STEPS {
        tuples.squares * mean.trace2()
    } else if n <= k {
        let mut sum = 0.0;
        for (at, &i) in group.iter().enumerate() {
            for &j in &group[..at] {
                let (mut dot, mut cross) = (0.0, 0.0);
                for (a, b) in events.point(i).iter().zip(events.point(j)) {
                    dot += a * b;
                    cross += a * b * (1.0 - a - b);
                }
                let both = events.weight(i) * events.weight(j);
                sum += 2.0 * both * both * (cross + dot * dot);
            }
        }
        sum
    } else {
        pairs_by_matrix(events, group)
    }
}

/// Coordinates up to which third moments are exact: k³ steps an event.
pub const THIRD_EXACT: usize = 12;

/// Σ_{a≠b≠c} tr(S_a S_b S_c) = tr(ΣS)³ − 3tr(ΣS·ΣS²) + 2Σtr S³, at least 0 (it can be less of three
/// events), and Σ_{a≠b} E(U_a·U_b)³ = ‖ΣT‖² − Σ‖T‖², T the tensor of third central moments: T_ijl =
/// [i=j=l]z_i − [i=j]z_i z_l − [i=l]z_i z_j − [j=l]z_i z_j + 2z_i z_j z_l.
fn thirds(events: &Events, group: &[usize]) -> (f64, f64) {
    let k = events.dimension;
    let (mut s, mut s2, mut t) = (vec![0.0; k * k], vec![0.0; k * k], vec![0.0; k * k * k]);
    let (mut own3, mut own_cube) = (0.0, 0.0);
    for &i in group {
        let (z, w) = (events.point(i), events.weight(i));
        let (law, w2) = (Law::of(z), w * w);
        let (w3, w4, w6) = (w2 * w, w2 * w2, w2 * w2 * w2);
        own3 += w6 * law.trace3();
        own_cube += w6 * law.cube(z);
        for (at, (s, s2)) in s.iter_mut().zip(&mut s2).enumerate() {
            let (r, c) = (at / k, at % k);
            let both = z[r] * z[c];
            *s -= w2 * both;
            *s2 += w4 * both * (law.s2 - z[r] - z[c]);
            if r == c {
                *s += w2 * z[r];
                *s2 += w4 * z[r] * z[r];
            }
            for (l, t) in t[at * k..(at + 1) * k].iter_mut().enumerate() {
                *t += w3 * 2.0 * both * z[l];
            }
            // [r = c] z_r z_l for each l, and the two like it.
            t[(r * k + r) * k + c] -= w3 * both;
            t[(r * k + c) * k + r] -= w3 * both;
            t[(c * k + r) * k + r] -= w3 * both;
        }
        for (r, z) in z.iter().enumerate() {
            t[(r * k + r) * k + r] += w3 * z;
        }
    }
    let (mut cube, mut mixed) = (0.0, 0.0);
    for r in 0..k {
        for c in 0..k {
            let square: f64 = (0..k).map(|l| s[r * k + l] * s[l * k + c]).sum();
            cube += square * s[c * k + r];
            mixed += s[r * k + c] * s2[c * k + r];
        }
    }
    let triples = cube - 3.0 * mixed + 2.0 * own3;
    let norm: f64 = t.iter().map(|t| t * t).sum();
    let triples = if group.len() < 3 {
        0.0
    } else {
        triples.max(0.0)
    };
    (triples, norm - own_cube)
}

fn pairs_by_matrix(events: &Events, group: &[usize]) -> f64 {
    let k = events.dimension;
    let (mut a, mut q, mut m) = (vec![0.0; k], vec![0.0; k], vec![0.0; k * k]);
    let mut own = 0.0;
    for &i in group {
        let (p, w2) = (events.point(i), events.weight(i).powi(2));
        own += w2 * w2 * Law::of(p).trace2();
        for (r, &x) in p.iter().enumerate() {
            a[r] += w2 * x;
            q[r] += w2 * x * x;
            for (m, y) in m[r * k..].iter_mut().zip(p) {
                *m += w2 * x * y;
            }
        }
    }
    let plain: f64 = a.iter().zip(&q).map(|(a, q)| a * a - 2.0 * a * q).sum();
    (plain + m.iter().map(|m| m * m).sum::<f64>() - own).max(0.0)
}

/// Power sums of a vector, from which the traces of powers of S = diag(z) − zzᵀ follow.
pub(super) struct Law {
    s1: f64,
    s2: f64,
    s3: f64,
    s4: f64,
}

impl Law {
    pub(super) fn of(z: &[f64]) -> Law {
        let power = |k: i32| z.iter().map(|z| z.powi(k)).sum();
        Law {
            s1: power(1),
            s2: power(2),
            s3: power(3),
            s4: power(4),
        }
    }

    /// Σ_{a≠b≠c} tr(S_a S_b S_c) and Σ_{a≠b} E(U_a·U_b)³ of a cell as if its events, of these
    /// tuples, were at its mean vector `z`, scaled: the pairs are exact and say how much the mean
    /// vector overstates.
    pub(super) fn thirds(&self, z: &[f64], tuples: &Tuples, pairs: f64) -> (f64, f64) {
        if tuples.squares <= 0.0 {
            return (0.0, 0.0);
        }
        let scale = (pairs / (tuples.squares * self.trace2()).max(f64::MIN_POSITIVE)).sqrt();
        let triples = tuples.triples * self.trace3() * scale.powi(3);
        (triples, tuples.cubes * self.cube(z) * scale * scale)
    }

    /// tr S².
    pub(super) fn trace2(&self) -> f64 {
        (self.s2 - 2.0 * self.s3 + self.s2 * self.s2).max(0.0)
    }

    /// tr S³.
    fn trace3(&self) -> f64 {
        self.s3 - 3.0 * self.s4 + 3.0 * self.s2 * self.s3 - self.s2.powi(3)
    }

    /// E(U·U′)³ of two independent residuals at z: U·U′ = 1[y = y′] + a_y + a_y′, a_y = ‖z‖²/2 −
    /// z_y, and where no label happened a = ‖z‖²/2 and no indicator.
    fn cube(&self, z: &[f64]) -> f64 {
        let a = |p: f64| 0.5 * self.s2 - p;
        let rest = (1.0 - self.s1).max(0.0);
        let moment =
            |k: i32| z.iter().map(|&p| p * a(p).powi(k)).sum::<f64>() + rest * a(0.0).powi(k);
        let same = |p: f64| p * p * (12.0 * a(p) * a(p) + 6.0 * a(p) + 1.0);
        2.0 * moment(3) + 6.0 * moment(2) * moment(1) + z.iter().map(|&p| same(p)).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_moments_of_a_vector_are_those_of_all_outcomes() {
        for z in [vec![0.5, 0.3, 0.2], vec![0.4, 0.25], vec![0.9, 0.1]] {
            let law = Law::of(&z);
            let k = z.len();
            let s = |i: usize, j: usize| {
                if i == j {
                    z[i] * (1.0 - z[i])
                } else {
                    -z[i] * z[j]
                }
            };
            let (mut two, mut three) = (0.0, 0.0);
            for a in 0..k {
                for b in 0..k {
                    two += s(a, b) * s(b, a);
                    three += (0..k).map(|c| s(a, b) * s(b, c) * s(c, a)).sum::<f64>();
                }
            }
            assert!((law.trace2() - two).abs() < 1e-15 && (law.trace3() - three).abs() < 1e-15);
            let chance = |y: usize| z.get(y).copied().unwrap_or(1.0 - law.s1);
            let u = |y: usize, c: usize| f64::from(u8::from(c == y)) - z[c];
            let mut cube = 0.0;
            for y in 0..=k {
                for x in 0..=k {
                    let dot: f64 = (0..k).map(|c| u(y, c) * u(x, c)).sum();
                    cube += chance(y) * chance(x) * dot.powi(3);
                }
            }
            assert!((law.cube(&z) - cube).abs() < 1e-14, "{z:?}");
        }
    }
}
