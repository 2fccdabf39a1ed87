//! The lower distance to calibration: the least change of the scores that could make them true.
//!
//! inf over couplings (u, z, y), (z, y) as observed and E[y | u] = u, of E|u − z| (Błasiok,
//! Gopalan, Hu, Nakkiran 2023, section 5). It is the largest distance that scores and outcomes
//! alone can prove: the true distance, which sees the features, is at least this and at most 6√ of
//! this (Theorems 5.2 and 6.2).
//!
//! Its dual is a linear programme over functions of all u in [0, 1]; [`super::program`] solves it
//! on finite nodes. Nodes that contain every score, 0 and 1 give a value at least the true one and,
//! with h the largest gap between them, at most h²/2 above (derived: a mass inside a gap is sent to
//! the gap's ends with probabilities that keep E[y|u] = u, at a mean cost of at most 2λ(1−λ)h²; the
//! paper has 2h). But the bound need not be trusted either. Between nodes a and b the least
//! function that the Lipschitz bound allows is max(r(a) − (u−a), r(b) − (b−u)); the constraint
//! (1−u)r₀ + u·r₁ of these is piecewise quadratic, so its largest value q in the gap is known in
//! closed form, and r − q is feasible everywhere. Hence a certificate value − q on the continuum,
//! and a better node: cutting planes add the worst u of every violated gap until q is negligible,
//! one to twenty rounds.
//!
//! Always: low ≤ the lower distance of the points ≤ high. Cost: O(nodes) per Newton step, some
//! twenty steps a round. From cells the distance is off by at most [`Points::shift`] (compose the
//! couplings).
//!
//! Scores nearer than [`MERGE`] share a node, because the programme loses its digits where a
//! Lipschitz bound is that tight; what this moves is part of the error (compose the couplings
//! again).

use super::points::Points;
use super::program::{self, Pair, Solution};

/// How precisely [`lower`] computes the distance.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Effort {
    /// Gap between the proved bounds that is small enough.
    pub tolerance: f64,
    /// Rounds of cutting planes at most; at least 1.
    pub rounds_max: u32,
    /// Gaps between nodes wider than this are filled evenly before the first round; 1 fills none.
    pub gap_max: f64,
}

impl Effort {
    /// For an offline sample: to the last digits that double precision proves.
    pub const EXACT: Effort = Effort {
        tolerance: 1e-11,
        rounds_max: 60,
        gap_max: 1.0,
    };
    /// For a window: the cells' own error is some 10⁻⁵ to 10⁻⁴, so 4·10⁻⁶ is enough, and nodes 2⁻⁹
    /// apart make the first round nearly always the last (h²/2 = 2·10⁻⁶).
    pub const WINDOW: Effort = Effort {
        tolerance: 4e-6,
        rounds_max: 3,
        gap_max: 1.0 / 512.0,
    };
}

/// The lower distance with proved bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lower {
    /// The value on the last round's nodes; between the bounds.
    pub value: f64,
    /// At most the lower distance of the points; at least 0.
    pub low: f64,
    /// At least the lower distance of the points.
    pub high: f64,
    /// How far the distance of the raw scores may be off that of the points; 0 from raw scores.
    pub error: f64,
    /// Nodes of the last round.
    pub nodes: usize,
    /// Rounds of cutting planes.
    pub rounds: u32,
    /// Newton steps over all rounds.
    pub steps: u32,
}

/// The lower distance of the points.
///
/// All events at 0.5 and six of ten positive: 0.1. One event is at distance |y − z|.
pub fn lower(points: &Points, effort: Effort) -> Lower {
    let mut nodes = first_nodes(points, effort.gap_max);
    let (mut low, mut high, mut rounds, mut steps) = (0f64, f64::MAX, 0, 0);
    loop {
        rounds += 1;
        let (mass, moved) = masses(points, &nodes);
        let solution = program::solve(&nodes, &mass, 0.5 * effort.tolerance);
        let (worst, cuts) = violations(&nodes, &solution.r, 0.1 * effort.tolerance);
        steps += solution.steps;
        high = high.min(solution.high);
        low = low.max(solution.low - worst);
        let value = middle(&solution).clamp(low.min(high), high);
        let last = high - low <= effort.tolerance || cuts.is_empty() || rounds >= effort.rounds_max;
        if last {
            return Lower {
                value,
                low: low.max(0.0),
                high: high.max(0.0),
                error: points.shift() + moved,
                nodes: nodes.len(),
                rounds,
                steps,
            };
        }
        nodes.extend(cuts);
        nodes.sort_by(f64::total_cmp);
    }
}

fn middle(s: &Solution) -> f64 {
    (0.5 * (s.low + s.high)).max(0.0)
}

fn first_nodes(points: &Points, gap_max: f64) -> Vec<f64> {
    let mut nodes = vec![0.0];
    let inner = points.atoms().iter().map(|a| a.z);
    for z in inner.filter(|&z| z > 0.0 && z <= 1.0 - MERGE).chain([1.0]) {
        let from = nodes[nodes.len() - 1];
        if z - from < MERGE {
            continue;
        }
        let parts = ((z - from) / gap_max).ceil().max(1.0) as usize;
        let between = (1..parts).map(|k| from + (z - from) * k as f64 / parts as f64);
        nodes.extend(between.filter(|&u| u > from && u < z));
        nodes.push(z);
    }
    nodes
}

/// The mass of each node by outcome, and how far scores were moved to their nodes on average: a
/// score that shares a node goes to the nearest.
fn masses(points: &Points, nodes: &[f64]) -> (Vec<Pair>, f64) {
    let mut mass = vec![[0.0; 2]; nodes.len()];
    let (mut next, mut moved) = (0, 0.0);
    for a in points.atoms() {
        while nodes[next] < a.z && next + 1 < nodes.len() {
            next += 1;
        }
        let left = next > 0 && a.z - nodes[next - 1] < (nodes[next] - a.z).abs();
        let at = if left { next - 1 } else { next };
        moved += a.n / points.n() * (nodes[at] - a.z).abs();
        mass[at][0] += (a.n - a.y) / points.n();
        mass[at][1] += a.y / points.n();
    }
    (mass, moved)
}

/// Scores nearer than this share a node.
pub const MERGE: f64 = 1e-9;

/// Nodes nearer than this are one: scores are multiples of 2⁻³² at best.
const NODE_GAP: f64 = 1e-13;

/// The largest value of the constraint anywhere, and a new node in every gap where it is above
/// `tolerance`.
fn violations(nodes: &[f64], r: &[Pair], tolerance: f64) -> (f64, Vec<f64>) {
    let (mut worst, mut cuts) = (0f64, Vec::new());
    for (u, r) in nodes.windows(2).zip(r.windows(2)) {
        let (value, at) = worst_in_gap(u[0], u[1], r[0], r[1]);
        worst = worst.max(value);
        if value > tolerance && at - u[0] > NODE_GAP && u[1] - at > NODE_GAP {
            cuts.push(at);
        }
    }
    (worst, cuts)
}

/// Maximum over u in [a, b] of (1−u)·s₀(u) + u·s₁(u), s_y(u) = max(r_y(a) − (u−a), r_y(b) − (b−u)),
/// and where.
///
/// Each s_y has one kink. Only between the kinks, where the slopes differ, may the function have a
/// peak; elsewhere its maximum is at the ends of the pieces.
fn worst_in_gap(a: f64, b: f64, left: Pair, right: Pair) -> (f64, f64) {
    let kink = |y: usize| (0.5 * (a + b + left[y] - right[y])).clamp(a, b);
    let least = |u: f64, y: usize| (left[y] - (u - a)).max(right[y] - (b - u));
    let value = |u: f64| (1.0 - u) * least(u, 0) + u * least(u, 1);
    let kinks = [kink(0), kink(1)];
    let (low, high) = (kinks[0].min(kinks[1]), kinks[0].max(kinks[1]));
    let mut best = (value(a), a);
    let mut consider = |u: f64| {
        let v = value(u);
        if v > best.0 {
            best = (v, u);
        }
    };
    consider(b);
    consider(low);
    consider(high);
    // Between the kinks s₀ rises and s₁ falls (or the reverse); a peak needs slope₁ < slope₀.
    if high > low && kinks[0] < kinks[1] {
        let middle = 0.5 * (low + high);
        let (c0, c1) = (least(middle, 0) - middle, least(middle, 1) + middle);
        let peak = (1.0 - c0 + c1) / 4.0;
        if low < peak && peak < high {
            consider(peak);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_score_is_as_far_off_as_its_rate() {
        for (sample, want) in [
            (vec![(0.3, true)], 0.7),
            (
                vec![(0.5, true), (0.5, true), (0.5, false), (0.5, false)],
                0.0,
            ),
            (
                vec![(0.5, true), (0.5, true), (0.5, true), (0.5, false)],
                0.25,
            ),
            (vec![(0.0, false), (1.0, true)], 0.0),
        ] {
            let p = Points::from_scores(&sample).unwrap();
            for effort in [Effort::EXACT, Effort::WINDOW] {
                let l = lower(&p, effort);
                assert!(
                    l.low <= want + 1e-12 && want <= l.high + 1e-12,
                    "{l:?} {want}"
                );
                assert!((l.value - want).abs() < 5e-6, "{l:?} {want}");
            }
        }
    }

    #[test]
    fn scores_that_crowd_at_the_ends_have_bounds_that_meet() {
        let mut rng = crate::rng::Rng::new(2);
        for power in [2.0, 4.0, 8.0] {
            let draw = |_| {
                let f: f64 = rng.uniform();
                let (a, b) = (f.powf(power), (1.0 - f).powf(power));
                (a / (a + b), rng.uniform() < f)
            };
            let sample: Vec<(f64, bool)> = (0..1000).map(draw).collect();
            let p = Points::from_scores(&sample).unwrap();
            for effort in [
                Effort::WINDOW,
                Effort {
                    tolerance: 1e-7,
                    ..Effort::EXACT
                },
            ] {
                let l = lower(&p, effort);
                assert!(l.high - l.low < 1e-3 && l.value < 0.3, "{power} {l:?}");
                assert!(l.error < MERGE, "{l:?}");
            }
        }
    }

    #[test]
    fn the_closed_form_of_a_gap_is_its_maximum_on_a_fine_lattice() {
        let mut rng = crate::rng::Rng::new(9);
        for _ in 0..500 {
            let (a, d) = (rng.uniform() * 0.8, 0.01 + rng.uniform() * 0.19);
            let mut pair = || [rng.uniform() - 0.5, rng.uniform() - 0.5];
            let left = pair();
            let step = pair();
            let right = [left[0] + 2.0 * d * step[0], left[1] + 2.0 * d * step[1]];
            let (got, at) = worst_in_gap(a, a + d, left, right);
            assert!((a..=a + d).contains(&at));
            for k in 0..=1000 {
                let u = a + d * f64::from(k) / 1000.0;
                let least = |y: usize| (left[y] - (u - a)).max(right[y] - (a + d - u));
                assert!((1.0 - u) * least(0) + u * least(1) <= got + 1e-12);
            }
        }
    }
}
