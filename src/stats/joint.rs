//! The law of the smallest p-value over the levels: how the error α is shared without waste.
//!
//! The levels of one sample are correlated, so giving each α/B (Bonferroni) spends too little. Each
//! level's p-value is turned into a normal score; the scores are taken as jointly normal with the
//! exact null correlation of neighbouring levels, and as a Markov chain along the levels, which
//! they nearly are: T of a finer level is T of the coarser one plus a nearly independent increment.
//! Then P(max Z > t) needs only one-dimensional integrals, one after another:
//!
//! ```text
//! f₁ = φ on (−∞, t],   f_{b+1}(y) = ∫ f_b(x) φ((y − ρx)/s)/s dx,   s² = 1 − ρ²
//! P(max Z > t) = P(Z₁ > t) + Σ_b ∫ f_b(x) P(N > (t − ρx)/s) dx
//! ```
//!
//! The second line adds what crosses t at each step, instead of subtracting what stays below from
//! 1, so small probabilities keep their digits. Integrals are Gauss–Legendre sums on [−7, t]; of
//! the 10⁻¹² below −7 hardly any ever crosses t.
//!
//! A level whose correlation with the last level that stays exceeds 0.999 is one statistic with it
//! and is merged: the kernel would be narrower than the nodes are apart. Rare-event scores on a
//! linear axis do this.
//!
//! Always: the result lies between the smallest p-value and B times it, and is the same for the
//! same input. Cost: nodes × neighbours × levels exponentials, and an eighth of them where few
//! nodes are enough ([`Wide`]): about 6 µs at 12 levels of continuous scores and twenty times that
//! where all correlations are near 1. Nodes are computed once per process, and the exponentials are
//! short series of our own. The recursion is the classical one for first passage of a Gaussian
//! Markov sequence.

use super::exp::exp;
use super::null::{normal_survival, normal_upper_quantile};
use std::f64::consts::PI;
use std::sync::OnceLock;

/// Levels with a correlation above this are one statistic.
pub const CORRELATION_ONE: f64 = 0.999;

/// Left end of the integrals: the normal law has 10⁻¹² below it.
const LEFT: f64 = -7.0;

/// P(min over levels of the p-value ≤ `smallest`) under the null, given the correlations of
/// neighbouring levels (one fewer than levels), each in [0, 1].
pub fn min_p_value(smallest: f64, correlations: &[f64]) -> f64 {
    let chain = merged(correlations);
    let bound = (smallest * (chain.len() + 1) as f64).min(1.0);
    let t = normal_upper_quantile(smallest);
    // Beyond ±6.5 bounds and truth agree to 10⁻⁹, or to a factor that decides nothing.
    if !(-6.5..=6.5).contains(&t) {
        return bound.max(smallest);
    }
    crossing(t, &chain).clamp(smallest, bound)
}

/// The correlations of the levels that stay: a level is merged into the last one that stays while
/// its correlation with that one, the product along the chain, exceeds [`CORRELATION_ONE`].
fn merged(correlations: &[f64]) -> Vec<f64> {
    let (mut chain, mut product) = (Vec::with_capacity(correlations.len()), 1.0);
    for r in correlations {
        product *= r;
        if product <= CORRELATION_ONE {
            chain.push(std::mem::replace(&mut product, 1.0));
        }
    }
    chain
}

/// P(max Z > t) of a Gaussian Markov chain with these adjacent correlations.
fn crossing(t: f64, correlations: &[f64]) -> f64 {
    let narrowest = correlations
        .iter()
        .map(|r| (1.0 - r * r).sqrt())
        .fold(1.0, f64::min);
    let rule = rule_for((t - LEFT) / narrowest);
    let half = 0.5 * (t - LEFT);
    let (u, w): (Vec<f64>, Vec<f64>) = rule.iter().map(|(u, w)| (u, w * half)).unzip();
    let x: Vec<f64> = u.iter().map(|u| LEFT + half * (u + 1.0)).collect();
    let mut f: Vec<f64> = x.iter().zip(&w).map(|(&x, &w)| w * density(x)).collect();
    let mut out = normal_survival(t);
    let (mut next, mut far, mut slope) = (f.clone(), f.clone(), f.clone());
    let wide = Wide::of(&u, t, half);
    for (step, &r) in correlations.iter().enumerate() {
        let s = (1.0 - r * r).sqrt();
        // From the first node within reach of t on.
        let near = x.partition_point(|from| (t - r * from) / s >= REACH);
        let (far, slope) = (&mut far[near..], &mut slope[near..]);
        for ((far, slope), from) in far.iter_mut().zip(&mut *slope).zip(&x[near..]) {
            *far = (t - r * from) / s;
            *slope = short_exp(-0.5 * *far * *far);
        }
        for ((mass, far), slope) in f[near..].iter().zip(&*far).zip(&*slope) {
            // P(N > d) ≤ ½·exp(−d²/2) for d ≥ 0; the survival function is expensive.
            if *far < 0.0 || mass * slope > SLIGHT * out {
                out += mass * normal_survival(*far);
            }
        }
        if step + 1 < correlations.len() {
            match &wide {
                Some(wide) => wide.spread(&f, &w, r, s, &mut next),
                None => spread(&f, &x, &w, r, s, &mut next),
            }
            std::mem::swap(&mut f, &mut next);
        }
    }
    out
}

/// Share of the result below which a node's part of it is left out: of some thousand nodes all
/// together 10⁻⁷.
const SLIGHT: f64 = 1e-10;

/// Mass at a node below which it changes no digit that is reported.
const NEGLIGIBLE: f64 = 1e-16;

/// Deviations beyond which a step is not taken: φ is below 10⁻¹³ there.
const REACH: f64 = 7.5;

/// Mass of each node after one step of the chain.
fn spread(f: &[f64], x: &[f64], w: &[f64], r: f64, s: f64, next: &mut [f64]) {
    let (inverse, scale) = (1.0 / s, 1.0 / (s * (2.0 * PI).sqrt()));
    next.fill(0.0);
    // Nodes that the kernel reaches; both ends only go up.
    let (mut first, mut last) = (0, 0);
    for (&mass, &from) in f.iter().zip(x) {
        let centre = r * from;
        let (low, high) = (centre - REACH * s, centre + REACH * s);
        first += x[first..].iter().take_while(|&&y| y < low).count();
        last += x[last..].iter().take_while(|&&y| y <= high).count();
        if mass <= NEGLIGIBLE {
            continue;
        }
        for (y, out) in x[first..last].iter().zip(&mut next[first..last]) {
            let d = (y - centre) * inverse;
            *out += mass * short_exp(-0.5 * d * d);
        }
    }
    next.iter_mut().zip(w).for_each(|(n, w)| *n *= w * scale);
}

fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// Steps by a kernel that is wide, among few nodes. From the node c + hu to c + hv it is
///
/// ```text
/// exp(−(y − ρx)²/2s²) = A(v)·B(u)·exp(κuv),   κ = ρh²/s²
/// ```
///
/// Nodes come in pairs ±u and uv is vu, so an exponential and its inverse serve eight pairs of
/// nodes.
struct Wide<'a> {
    /// c, the middle of the nodes, and h, half their range.
    middle: f64,
    half: f64,
    nodes: &'a [f64],
    /// uv of the nodes above 0, tile by tile, of all tiles with rows up to their columns.
    products: [Tile; TILES],
}

/// Rows u and u′, columns v and v′.
type Tile = [[f64; 2]; 2];

/// Number of pairs of nodes above 0, and of tiles of such pairs.
const PAIRS: usize = SIZES[0] / 4;
const TILES: usize = PAIRS * (PAIRS + 1) / 2;

/// Greatest t for a wide kernel: up to it, no digit changes because the kernel does not end at
/// [`REACH`].
const WIDE_T: f64 = 4.0;

impl Wide<'_> {
    /// The products of these nodes; `None` where there are too many nodes, or t is above
    /// [`WIDE_T`].
    fn of(nodes: &[f64], t: f64, half: f64) -> Option<Wide<'_>> {
        if nodes.len() != SIZES[0] || t > WIDE_T {
            return None;
        }
        let above = nodes[nodes.len() / 2..].as_chunks::<2>().0;
        let mut products = [Tile::default(); TILES];
        let tiles = (0..PAIRS).flat_map(|i| (i..PAIRS).map(move |j| (i, j)));
        for (tile, (i, j)) in products.iter_mut().zip(tiles) {
            *tile = above[i].map(|u| above[j].map(|v| u * v));
        }
        Some(Wide {
            middle: t - half,
            half,
            nodes,
            products,
        })
    }

    /// Mass of each node after one step of the chain.
    fn spread(&self, f: &[f64], w: &[f64], r: f64, s: f64, next: &mut [f64]) {
        let (offset, inverse) = (self.middle * (1.0 - r), 1.0 / (s * s));
        let kappa = r * self.half * self.half * inverse;
        let (mut up, mut down) = (self.products, self.products);
        let both = up.as_flattened_mut().as_flattened_mut().iter_mut();
        for (up, down) in both.zip(down.as_flattened_mut().as_flattened_mut()) {
            *up = exp(kappa * *up);
            *down = 1.0 / *up;
        }
        let mut sources = [0.0; SIZES[0]];
        for ((source, mass), u) in sources.iter_mut().zip(f).zip(self.nodes) {
            let q = r * self.half * u;
            *source = mass * exp(q * (offset - 0.5 * q) * inverse);
        }
        let (below, above) = sources.split_at(2 * PAIRS);
        let below: [f64; 2 * PAIRS] = std::array::from_fn(|i| below[2 * PAIRS - 1 - i]);
        let (high, low) = (above.as_chunks::<2>().0, below.as_chunks::<2>().0);
        let (mut highs, mut lows) = ([[0.0; 2]; PAIRS], [[0.0; 2]; PAIRS]);
        let mut tiles = up.iter().zip(&down);
        for i in 0..PAIRS {
            // What columns bring to these rows, beside what rows bring to columns.
            let (mut own_high, mut own_low) = (Tile::default(), Tile::default());
            for j in i..PAIRS {
                let Some((up, down)) = tiles.next() else {
                    break;
                };
                for row in 0..2 {
                    for column in 0..2 {
                        let (up, down) = (up[row][column], down[row][column]);
                        highs[j][column] += high[i][row] * up + low[i][row] * down;
                        lows[j][column] += high[i][row] * down + low[i][row] * up;
                    }
                }
                if i < j {
                    for row in 0..2 {
                        for column in 0..2 {
                            let (up, down) = (up[row][column], down[row][column]);
                            own_high[row][column] += high[j][column] * up + low[j][column] * down;
                            own_low[row][column] += high[j][column] * down + low[j][column] * up;
                        }
                    }
                }
            }
            for row in 0..2 {
                highs[i][row] += own_high[row][0] + own_high[row][1];
                lows[i][row] += own_low[row][0] + own_low[row][1];
            }
        }
        let (below, above) = next.split_at_mut(2 * PAIRS);
        above.copy_from_slice(highs.as_flattened());
        let lows = lows.as_flattened().iter().rev();
        below.iter_mut().zip(lows).for_each(|(to, low)| *to = *low);
        let scale = 1.0 / (s * (2.0 * PI).sqrt());
        for ((next, w), v) in next.iter_mut().zip(w).zip(self.nodes) {
            let p = offset + self.half * v;
            *next *= w * scale * exp(-0.5 * p * p * inverse);
        }
    }
}

/// eˣ for x in [−32, 0] as the 256th power of e^(x/256), which five terms of its series give: to
/// 10⁻⁹ of itself from −10 on and 10⁻⁶ at the end. Of additions and multiplications alone, so that
/// a loop over nodes becomes vector code; the library's is a call.
#[inline]
fn short_exp(x: f64) -> f64 {
    let y = x * (1.0 / 256.0);
    let tail = 1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0));
    let mut e = 1.0 + y * (1.0 + y * (0.5 + y * tail));
    for _ in 0..8 {
        e *= e;
    }
    e
}

type Rule = Vec<(f64, f64)>;

/// Sizes of the quadrature rules; the work goes with the square.
const SIZES: [usize; 15] = [
    24, 28, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 232, 288, 384,
];

/// The smallest rule that resolves `widths` kernel widths. In the middle of the range its nodes are
/// π/2 times farther apart than on average; a Gaussian sum with nodes 1.2 widths apart is good to
/// 10⁻⁵, so 1.3 nodes a width are enough.
fn rule_for(widths: f64) -> &'static Rule {
    static RULES: [OnceLock<Rule>; SIZES.len()] = [const { OnceLock::new() }; SIZES.len()];
    let wanted = 1.3 * widths;
    let at = SIZES.partition_point(|&size| (size as f64) < wanted);
    let at = at.min(SIZES.len() - 1);
    RULES[at].get_or_init(|| gauss_legendre(SIZES[at]))
}

/// Nodes and weights of Gauss–Legendre quadrature on [−1, 1], ascending, by Newton's method.
fn gauss_legendre(n: usize) -> Rule {
    let size = n as f64;
    let mut rule: Rule = (0..n)
        .map(|i| {
            let mut x = (PI * (i as f64 + 0.75) / (size + 0.5)).cos();
            let mut slope = 1.0;
            for _ in 0..12 {
                let (mut before, mut now) = (1.0, x);
                for k in 2..=n {
                    let k = k as f64;
                    (before, now) = (now, ((2.0 * k - 1.0) * x * now - (k - 1.0) * before) / k);
                }
                slope = size * (x * now - before) / (x * x - 1.0);
                x -= now / slope;
            }
            (x, 2.0 / ((1.0 - x * x) * slope * slope))
        })
        .collect();
    rule.reverse();
    rule
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn quadrature_integrates_polynomials_exactly() {
        let rule = gauss_legendre(24);
        let sum: f64 = rule.iter().map(|(x, w)| w * x.powi(6)).sum();
        assert!((sum - 2.0 / 7.0).abs() < 1e-13);
        assert!((rule.iter().map(|(_, w)| w).sum::<f64>() - 2.0).abs() < 1e-13);
    }

    #[test]
    fn a_wide_kernel_steps_as_any_other() {
        let (rule, t) = (rule_for(1.0), 2.5);
        let half = 0.5 * (t - LEFT);
        let (u, w): (Vec<f64>, Vec<f64>) = rule.iter().map(|(u, w)| (u, w * half)).unzip();
        let x: Vec<f64> = u.iter().map(|u| LEFT + half * (u + 1.0)).collect();
        let f: Vec<f64> = x.iter().zip(&w).map(|(&x, &w)| w * density(x)).collect();
        let wide = Wide::of(&u, t, half).unwrap();
        let (mut by_wide, mut by_any) = (f.clone(), f.clone());
        for r in [0.0, 0.3, 0.7, 0.85] {
            let s = f64::sqrt(1.0 - r * r);
            wide.spread(&f, &w, r, s, &mut by_wide);
            spread(&f, &x, &w, r, s, &mut by_any);
            let off = |(a, b): (&f64, &f64)| (a - b).abs() > 1e-9 * b + 1e-13;
            assert!(
                !by_wide.iter().zip(&by_any).any(off),
                "{by_wide:?} {by_any:?}"
            );
        }
    }

    #[test]
    fn the_short_exponential_agrees_with_the_library() {
        for i in 0..=30_000 {
            let x = -f64::from(i) * 1e-3;
            let bound = if x < -10.0 { 2e-6 } else { 2e-9 };
            assert!((short_exp(x) / x.exp() - 1.0).abs() < bound, "{x}");
        }
    }

    #[test]
    fn one_level_and_equal_levels_give_the_p_value_back() {
        for p in [1e-12, 1e-4, 0.03, 0.5, 0.99] {
            assert!((min_p_value(p, &[]) / p - 1.0).abs() < 1e-6, "{p}");
            assert!((min_p_value(p, &[0.9995, 1.0]) / p - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn independent_levels_give_the_product_law() {
        for p in [1e-6, 1e-3, 0.02, 0.3] {
            let expected = 1.0 - (1.0f64 - p).powi(5);
            assert!(
                (min_p_value(p, &[0.0; 4]) / expected - 1.0).abs() < 1e-6,
                "{p}"
            );
        }
    }

    #[test]
    fn the_recursion_agrees_with_simulated_chains() {
        let chains: [&[f64]; 5] = [
            &[0.9992; 11],
            &[0.9999; 11],
            &[0.7; 11],
            &[0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7],
            &[0.998, 0.99, 0.5, 0.2],
        ];
        let draws = 200_000;
        for (seed, chain) in chains.iter().enumerate() {
            let mut rng = Rng::new(seed as u64);
            let mut counts = [0u32; 3];
            let ts = [1.5, 2.3, 2.9];
            for _ in 0..draws {
                let mut z = rng.normal();
                let mut top = z;
                for r in *chain {
                    z = r * z + (1.0 - r * r).sqrt() * rng.normal();
                    top = top.max(z);
                }
                (0..3).for_each(|i| counts[i] += u32::from(top > ts[i]));
            }
            for (t, count) in ts.iter().zip(counts) {
                let (got, p) = (
                    min_p_value(normal_survival(*t), chain),
                    f64::from(count) / f64::from(draws),
                );
                let noise = 4.0 * (p / f64::from(draws)).sqrt();
                assert!(
                    (got - p).abs() < noise,
                    "chain {seed} t {t}: {got} against {p}"
                );
            }
        }
    }
}
