//! The integers of a cell of vector events without weights.
//!
//! For k coordinates and label indicators e_y (0 where none of the k happened), in units of 2⁻³²:
//!
//! | sum | integers | gives |
//! |---|---|---|
//! | n, Σe_y | 1 + k | N and label counts |
//! | Σz | k | ΣU = Σe_y − Σz |
//! | Σe_y zᵀ | k² | Σ‖U‖², with Σzzᵀ; the covariance of U, for the interval |
//! | Σzzᵀ | k(k+1)/2 | Σ_{a≠b}tr(S_aS_b) = ‖Σz‖² − 2Σz·Σz² + ‖Σzzᵀ‖² − Σtr S², the null variance, exactly |
//! | Σtr S² | 1 | the same |

use super::cell::Name;
use super::level::{Law, Tuples, VectorCell};
use crate::fixed::{from_fixed, to_fixed};

/// Number of integers of a cell of k coordinates.
pub(super) fn width(k: usize) -> usize {
    2 + 2 * k + k * k + k * (k + 1) / 2
}

/// Place of (i, j), j ≤ i, in a triangle.
pub(super) fn pair(i: usize, j: usize) -> usize {
    i * (i + 1) / 2 + j
}

pub(super) fn add(c: &mut [i64], z: &[f64], label: u32) {
    let k = z.len();
    c[0] += 1;
    add_label(c, z, label, 1);
    let sums = &mut c[1 + k..1 + 2 * k];
    sums.iter_mut().zip(z).for_each(|(a, z)| *a += to_fixed(*z));
    for i in 0..k {
        for j in 0..=i {
            c[1 + 2 * k + k * k + pair(i, j)] += to_fixed(z[i] * z[j]);
        }
    }
    c[width(k) - 1] += to_fixed(Law::of(z).trace2());
}

/// Adds an event's label, or takes it back.
fn add_label(c: &mut [i64], z: &[f64], label: u32, sign: i64) {
    let (k, y) = (z.len(), label as usize);
    if y < k {
        c[1 + y] += sign;
        let row = &mut c[1 + 2 * k + y * k..][..k];
        row.iter_mut()
            .zip(z)
            .for_each(|(a, z)| *a += sign * to_fixed(*z));
    }
}

/// Moves an event from one label to another, if the cell has an event of the first.
pub(super) fn move_label(c: &mut [i64], z: &[f64], from: u32, to: u32) {
    let (k, y) = (z.len(), from as usize);
    let labelled: i64 = c[1..1 + k].iter().sum();
    let held = if y < k { c[1 + y] } else { c[0] - labelled };
    if held > 0 {
        add_label(c, z, from, -1);
        add_label(c, z, to, 1);
    }
}

/// Adds the sums of another cell.
pub(super) fn merge(ours: &mut [i64], theirs: &[i64]) {
    ours.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
}

/// Takes out the sums of another cell.
pub(super) fn retract(ours: &mut [i64], theirs: &[i64]) {
    ours.iter_mut().zip(theirs).for_each(|(a, b)| *a -= b);
}

/// The mean of the largest coordinate of its events, to within the cell.
pub(super) fn top(c: &[i64], k: usize) -> f64 {
    let most = c[1 + k..1 + 2 * k].iter().copied().max().unwrap_or(0);
    from_fixed(i128::from(most)) / c[0] as f64
}

/// A cell's floats from its integers.
pub(super) fn cell(name: &Name, c: &[i64], k: usize) -> VectorCell {
    let float = |x: i64| from_fixed(i128::from(x));
    let n = c[0] as f64;
    let counts = &c[1..1 + k];
    let z: Vec<f64> = c[1 + k..1 + 2 * k].iter().map(|&x| float(x)).collect();
    let hits = |y: usize, i: usize| float(c[1 + 2 * k + y * k + i]);
    let both = |i: usize, j: usize| float(c[1 + 2 * k + k * k + pair(i.max(j), i.min(j))]);
    // In integers first: counts and Σz are as large as n.
    let u: Vec<f64> = (0..k)
        .map(|i| float((counts[i] << 32) - c[1 + k + i]))
        .collect();
    let mut u2 = 0.0;
    let mut along = 0.0;
    for i in 0..k {
        u2 += both(i, i) + counts[i] as f64 - 2.0 * hits(i, i);
        for j in 0..k {
            let own = if i == j { counts[i] as f64 } else { 0.0 };
            along += u[i] * u[j] * (own - hits(i, j) - hits(j, i) + both(i, j));
        }
    }
    let mut pairs = -float(c[width(k) - 1]);
    for (i, z) in z.iter().enumerate() {
        pairs += z * z - 2.0 * z * both(i, i);
        pairs += (0..k).map(|j| both(i, j) * both(i, j)).sum::<f64>();
    }
    let pairs = if n < 2.0 { 0.0 } else { pairs.max(0.0) };
    let mean: Vec<f64> = z.iter().map(|z| z / n).collect();
    let (triples, cubes) = Law::of(&mean).thirds(&mean, &Tuples::of_count(n), pairs);
    let e2 = u.iter().map(|u| u * u).sum::<f64>() / n;
    VectorCell {
        name: name.clone(),
        n,
        count: n,
        w2: n,
        w4: n,
        u,
        u2,
        along_u: e2,
        along: (along / (n * n)).max(0.0),
        v: (0..k).map(|i| (z[i] - both(i, i)).max(0.0)).collect(),
        z,
        pairs,
        triples,
        cubes,
    }
}
