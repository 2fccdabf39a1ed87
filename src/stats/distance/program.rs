//! The linear programme of the lower distance to calibration on given nodes, by an interior point
//! method.
//!
//! Nodes u_1 < … < u_m contain every score and 0 and 1; mass g_y(u) = share of events with score u
//! and outcome y. The programme is the dual (21) of Błasiok, Gopalan, Hu, Nakkiran (2023) with its
//! third function eliminated (r₀ ≤ −u·s and r₁ ≤ (1−u)·s hold for some s exactly if (1−u)r₀ + u·r₁
//! ≤ 0):
//!
//! maximise Σ g₀(u) r₀(u) + g₁(u) r₁(u)
//! subject to |r_y(u_{i+1}) − r_y(u_i)| ≤ u_{i+1} − u_i and (1−u) r₀(u) + u·r₁(u) ≤ 0.
//!
//! A general solver would do, at seconds for thousands of nodes. Here each row touches one node or
//! two neighbours, so the normal equations AᵀDA are block tridiagonal with 2×2 blocks and a Newton
//! step costs O(m). Mehrotra's predictor and corrector (SIAM J. Optim. 2, 1992) needs 15 to 30
//! steps; a plain log barrier took 90.
//!
//! Always: the primal point is feasible (it starts strictly inside, at r ≡ −¼, and steps keep the
//! slacks positive); so its value is a lower bound. The multipliers λ ≥ 0 give an upper bound even
//! while they miss Aᵀλ = g by some e: λᵀb + Σ|e|, since an optimal r lies in [−1, 1]. The two
//! bounds are returned, so the method need not be trusted.

/// One node's two functions r₀, r₁.
pub type Pair = [f64; 2];

/// One node's rows: r₀ up, r₁ up, r₀ down, r₁ down towards the next node, and the node's own mean
/// row. The last node has only the last.
type Rows = [f64; 5];

/// An optimum with its certificate.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// r₀ and r₁ at every node, feasible.
    pub r: Vec<Pair>,
    /// Value of `r`; at most the optimum.
    pub low: f64,
    /// Value of the multipliers; at least the optimum.
    pub high: f64,
    /// Newton steps taken.
    pub steps: u32,
}

/// Most Newton steps; after them the bounds are returned as they are.
const STEPS_MAX: u32 = 80;

/// Steps without halving the gap after which double precision is exhausted.
const STEPS_IDLE: u32 = 8;

/// Share of the way to the boundary that a step takes.
const NEAR: f64 = 0.995;

/// Solves to a gap of `tolerance` between the bounds, or as near as double precision comes. `nodes`
/// must ascend strictly from 0 to 1, with the masses of both outcomes at each.
pub fn solve(nodes: &[f64], mass: &[Pair], tolerance: f64) -> Solution {
    let mut p = Point::start(nodes, mass);
    let mut best = p.solution(0);
    // The gap when it was last halved, and when.
    let mut halved = (best.high - best.low, 0);
    for step in 1..=STEPS_MAX {
        let gap = best.high - best.low;
        if gap < 0.5 * halved.0 {
            halved = (gap, step);
        }
        if gap <= tolerance || step - halved.1 > STEPS_IDLE || !p.advance() {
            break;
        }
        let now = p.solution(step);
        // Rounding can spoil the last steps; bounds that were proved stay proved.
        let high = now.high.min(best.high);
        if now.low > best.low {
            best = now;
        }
        best.high = high;
        best.steps = step;
    }
    best
}

struct Point<'a> {
    nodes: &'a [f64],
    mass: &'a [Pair],
    x: Vec<Pair>,
    slack: Vec<Rows>,
    dual: Vec<Rows>,
    /// 1/s and λ/s of the current step.
    inverse: Vec<Rows>,
    ratio: Vec<Rows>,
}

impl<'a> Point<'a> {
    fn start(nodes: &'a [f64], mass: &'a [Pair]) -> Point<'a> {
        let m = nodes.len();
        let gap = |i: usize| {
            if i + 1 < m {
                nodes[i + 1] - nodes[i]
            } else {
                1.0
            }
        };
        let slack = |i| [gap(i), gap(i), gap(i), gap(i), 0.25];
        let slack: Vec<Rows> = (0..m).map(slack).collect();
        // Complementarity λ·s the same in every row, in the scale of the objective (at most 1).
        let mu = 1.0 / (5 * m) as f64;
        let dual = slack.iter().enumerate().map(|(i, s)| {
            let mut row = s.map(|s| mu / s);
            if i + 1 == m {
                row[..4].fill(0.0);
            }
            row
        });
        Point {
            nodes,
            mass,
            x: vec![[-0.25; 2]; m],
            dual: dual.collect(),
            slack,
            inverse: Vec::with_capacity(m),
            ratio: Vec::with_capacity(m),
        }
    }

    /// The indices of the rows of node i.
    fn rows(&self, i: usize) -> std::ops::Range<usize> {
        if i + 1 < self.nodes.len() { 0..5 } else { 4..5 }
    }

    fn weights(&self, i: usize) -> Pair {
        [1.0 - self.nodes[i], self.nodes[i]]
    }

    /// A·x.
    fn apply(&self, x: &[Pair]) -> Vec<Rows> {
        let row = |i: usize| {
            let a = self.weights(i);
            let next = x.get(i + 1).unwrap_or(&x[i]);
            let up = [next[0] - x[i][0], next[1] - x[i][1]];
            let mean = a[0] * x[i][0] + a[1] * x[i][1];
            [up[0], up[1], -up[0], -up[1], mean]
        };
        (0..x.len()).map(row).collect()
    }

    /// Aᵀ·l.
    fn transpose(&self, l: &[Rows]) -> Vec<Pair> {
        let mut before = [0.0; 2];
        let column = |(i, l): (usize, &Rows)| {
            let a = self.weights(i);
            let flow = [l[0] - l[2], l[1] - l[3]];
            let out = [0, 1].map(|y| before[y] - flow[y] + a[y] * l[4]);
            before = flow;
            out
        };
        l.iter().enumerate().map(column).collect()
    }

    fn solution(&self, steps: u32) -> Solution {
        let (mut low, mut high) = (0.0, 0.0);
        let back = self.transpose(&self.dual);
        for (i, l) in self.dual.iter().enumerate() {
            let (mass, x, back) = (self.mass[i], self.x[i], back[i]);
            low += mass[0] * x[0] + mass[1] * x[1];
            high += (mass[0] - back[0]).abs() + (mass[1] - back[1]).abs();
            if let Some(next) = self.nodes.get(i + 1) {
                high += (next - self.nodes[i]) * l[..4].iter().sum::<f64>();
            }
        }
        Solution {
            r: self.x.clone(),
            low,
            high,
            steps,
        }
    }

    /// One predictor and corrector step; false where double precision is exhausted.
    fn advance(&mut self) -> bool {
        let (m, mu) = (self.nodes.len(), self.complementarity(None));
        let missed: Vec<Pair> = (self.transpose(&self.dual).iter().zip(self.mass))
            .map(|(b, g)| [g[0] - b[0], g[1] - b[1]])
            .collect();
        self.inverse.clear();
        self.inverse
            .extend(self.slack.iter().map(|s| s.map(|s| 1.0 / s)));
        self.ratio.clear();
        self.ratio
            .extend(self.dual.iter().zip(&self.inverse).map(|(l, i)| {
                [
                    l[0] * i[0],
                    l[1] * i[1],
                    l[2] * i[2],
                    l[3] * i[3],
                    l[4] * i[4],
                ]
            }));
        let Some(factor) = Factor::of(self) else {
            return false;
        };
        let plain = |i: usize, k: usize| -self.dual[i][k] * self.slack[i][k];
        let predictor = self.direction(&factor, &missed, plain);
        let (far, far_dual) = self.reach(&predictor);
        let ahead = self.complementarity(Some((&predictor, far, far_dual)));
        let centre = mu * (ahead / mu).powi(3);
        // Short predictors promise too much: their second order is taken only as far as they reach.
        // Without this the steps shrink near the optimum of a calibrated sample, and it takes half
        // as many again.
        let weight = far * far_dual;
        let corrected = |i: usize, k: usize| {
            centre
                - self.dual[i][k] * self.slack[i][k]
                - weight * predictor.slack[i][k] * predictor.dual[i][k]
        };
        let d = self.direction(&factor, &missed, corrected);
        let (far, far_dual) = self.reach(&d);
        let (far, far_dual) = ((NEAR * far).min(1.0), (NEAR * far_dual).min(1.0));
        if !(far.is_finite() && far_dual.is_finite() && far.max(far_dual) > 1e-12) {
            return false;
        }
        for i in 0..m {
            self.x[i][0] += far * d.x[i][0];
            self.x[i][1] += far * d.x[i][1];
            for k in self.rows(i) {
                self.slack[i][k] += far * d.slack[i][k];
                self.dual[i][k] += far_dual * d.dual[i][k];
            }
        }
        true
    }

    /// Mean of λ·s, now or after a step.
    fn complementarity(&self, step: Option<(&Direction, f64, f64)>) -> f64 {
        let mut sum = 0.0;
        for i in 0..self.nodes.len() {
            for k in self.rows(i) {
                let (mut s, mut l) = (self.slack[i][k], self.dual[i][k]);
                if let Some((d, far, far_dual)) = step {
                    s += far * d.slack[i][k];
                    l += far_dual * d.dual[i][k];
                }
                sum += s * l;
            }
        }
        sum / (5 * self.nodes.len() - 4) as f64
    }

    /// The Newton step that meets Aᵀ(λ+Δλ) = g and changes λ·s by `wanted` to first order.
    fn direction(
        &self,
        factor: &Factor,
        missed: &[Pair],
        wanted: impl Fn(usize, usize) -> f64,
    ) -> Direction {
        let m = self.nodes.len();
        let mut pull = vec![[0.0; 5]; m];
        for (i, row) in pull.iter_mut().enumerate() {
            for k in self.rows(i) {
                row[k] = wanted(i, k) * self.inverse[i][k];
            }
        }
        let mut x = self.transpose(&pull);
        for (x, missed) in x.iter_mut().zip(missed) {
            *x = [missed[0] - x[0], missed[1] - x[1]];
        }
        factor.solve(&mut x);
        let mut slack = self.apply(&x);
        let mut dual = pull;
        for i in 0..m {
            for k in self.rows(i) {
                dual[i][k] += self.ratio[i][k] * slack[i][k];
                slack[i][k] = -slack[i][k];
            }
        }
        Direction { x, slack, dual }
    }

    /// How far the step may go before a slack, or a multiplier, reaches 0.
    fn reach(&self, d: &Direction) -> (f64, f64) {
        // The largest share of a slack that the whole step would take.
        let (mut share, mut share_dual) = (0f64, 0f64);
        for i in 0..self.nodes.len() {
            for k in self.rows(i) {
                share = share.max(-d.slack[i][k] * self.inverse[i][k]);
                if d.dual[i][k] < 0.0 {
                    share_dual = share_dual.max(-d.dual[i][k] / self.dual[i][k]);
                }
            }
        }
        ((1.0 / share).min(1.0), (1.0 / share_dual).min(1.0))
    }
}

struct Direction {
    x: Vec<Pair>,
    slack: Vec<Rows>,
    dual: Vec<Rows>,
}

/// AᵀDA, D = λ/s, factored by elimination from the first node to the last.
///
/// Near the optimum rows that hold with equality weigh 10¹⁵ times those that do not, and the plain
/// elimination C ← D_i − H·C⁻¹·H subtracts such numbers from each other. Two changes leave no
/// subtraction. First, coordinates (α, β), r₀ = α − uβ and r₁ = α + (1−u)β: the mean row weighs α
/// alone, and from node to node they change by the shear α ← α + gap·β, which keeps determinants.
/// Second, what node i leaves to the next is the parallel sum S∥H = (S⁻¹ + H⁻¹)⁻¹, which for 2×2
/// blocks is (|H|·S + |S|·H)/|S + H|.
struct Factor {
    /// Per node: C = S + H as (αα, αβ/αα, |C|/αα), that is LDLᵀ.
    pivots: Vec<[f64; 3]>,
    /// Per node: u, and the weights of r₀ and r₁ towards the next.
    nodes: Vec<[f64; 3]>,
}

/// A symmetric positive 2×2 block in (α, β): αα, αβ and the determinant, from which ββ follows.
#[derive(Clone, Copy)]
struct Block {
    aa: f64,
    ab: f64,
    det: f64,
}

impl Block {
    fn bb(&self) -> f64 {
        if self.aa > 0.0 {
            (self.det + self.ab * self.ab) / self.aa
        } else {
            0.0
        }
    }

    /// |self + other|, a sum of positive terms; both with αα > 0.
    fn det_of_sum(&self, o: &Block) -> f64 {
        let slant = self.ab / self.aa - o.ab / o.aa;
        self.det
            + o.det
            + self.aa * o.det / o.aa
            + o.aa * self.det / self.aa
            + self.aa * o.aa * slant * slant
    }
}

impl Factor {
    fn of(p: &Point) -> Option<Factor> {
        let m = p.nodes.len();
        let (mut pivots, mut nodes) = (Vec::with_capacity(m), Vec::with_capacity(m));
        // What earlier nodes leave, in this node's coordinates.
        let mut carried = Block {
            aa: 0.0,
            ab: 0.0,
            det: 0.0,
        };
        for (i, &u) in p.nodes.iter().enumerate() {
            let ratio = |k: usize| p.ratio[i][k];
            let w = ratio(4);
            let s = Block {
                aa: carried.aa + w,
                ab: carried.ab,
                det: carried.det + w * carried.bb(),
            };
            let Some(next) = p.nodes.get(i + 1) else {
                pivots.push([s.aa, s.ab / s.aa, s.det / s.aa]);
                nodes.push([u, 0.0, 0.0]);
                break;
            };
            let h = [ratio(0) + ratio(2), ratio(1) + ratio(3)];
            let coupling = Block {
                aa: h[0] + h[1],
                ab: (1.0 - u) * h[1] - u * h[0],
                det: h[0] * h[1],
            };
            let (aa, ab, det) = (
                s.aa + coupling.aa,
                s.ab + coupling.ab,
                s.det_of_sum(&coupling),
            );
            pivots.push([aa, ab / aa, det / aa]);
            nodes.push([u, h[0], h[1]]);
            let (share, rest) = (coupling.det / det, s.det / det);
            let aa = share * s.aa + rest * coupling.aa;
            carried = Block {
                aa,
                ab: share * s.ab + rest * coupling.ab - (next - u) * aa,
                det: share * s.det,
            };
        }
        let sound = |p: &[f64; 3]| p[0] > 0.0 && p[2] > 0.0 && p[0].is_finite() && p[2].is_finite();
        pivots.iter().all(sound).then_some(Factor { pivots, nodes })
    }

    /// C⁻¹·g at node i, both in (r₀, r₁).
    fn times_inverse(&self, i: usize, g: Pair) -> Pair {
        let ([aa, slant, d], u) = (self.pivots[i], self.nodes[i][0]);
        let (g_a, g_b) = (g[0] + g[1], (1.0 - u) * g[1] - u * g[0]);
        let b = (g_b - slant * g_a) / d;
        let a = g_a / aa - slant * b;
        [a - u * b, a + (1.0 - u) * b]
    }

    /// Solves AᵀDA·y = x by forward and back substitution; overwrites x with y.
    fn solve(&self, x: &mut [Pair]) {
        for i in 1..x.len() {
            let (h, before) = (self.nodes[i - 1], self.times_inverse(i - 1, x[i - 1]));
            x[i][0] += h[1] * before[0];
            x[i][1] += h[2] * before[1];
        }
        let mut next = [0.0; 2];
        for i in (0..x.len()).rev() {
            let h = self.nodes[i];
            let rhs = [x[i][0] + h[1] * next[0], x[i][1] + h[2] * next[1]];
            next = self.times_inverse(i, rhs);
            x[i] = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_score_that_is_wrong_by_a_tenth_is_a_tenth_from_calibration() {
        // All events at 0.5, six of ten positive: the coupling sends 0.5 to 0.6.
        let s = solve(
            &[0.0, 0.5, 0.6, 1.0],
            &[[0.0; 2], [0.4, 0.6], [0.0; 2], [0.0; 2]],
            1e-10,
        );
        assert!(s.high - s.low <= 1e-10 && s.low <= s.high + 1e-15, "{s:?}");
        assert!((s.low - 0.1).abs() < 1e-9, "{s:?}");
    }
}
