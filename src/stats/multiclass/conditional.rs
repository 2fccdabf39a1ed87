//! The law of vector statistics given the predictions, where outcomes are few.
//!
//! As for scalars ([`crate::conditional`]): the Pearson law of a level is trusted from a shape
//! 4κ₂³/κ₃² of ¼ on, and where the information is at least ten,
//!
//! ```text
//!   ΣV = Σ_events ½·Σ_c p_c(1 − p_c)   over all outcomes c, that of no label of the view included
//! ```
//!
//! For two classes this is z(1 − z). It is computed with the mean vector of each cell, so it is too
//! large if predictions within a cell differ much. Of weighted events it is (Σw²V)²/Σw⁴V: as many
//! outcomes of equal weight as they rest on. If a level is not trusted and ΣV is at most 100,
//! outcomes are drawn, and more of them where α is so small that no p-value of the first could
//! reject; above 100, levels that are not trusted are left out. Events with different weights are
//! never drawn, and below ten no level takes part.
//!
//! The cells of the finest level stand for their events by their mean vector. In each the likeliest
//! outcome t is taken to happen, and the others are hits ([`crate::conditional::hits`]). A hit
//! of class c in a cell with D = ΣU changes, with p the mean vector of its leaf,
//!
//! ```text
//!   ‖D‖² by 2(D_c − D_t) + 2,   Σ‖U‖² by 2(p_t − p_c)
//! ```
//!
//! without the terms of an outcome that is no label. The observed statistics are computed by the
//! same steps, so ties are exact.
//!
//! If predictions of one cell differ much, as sure and even ones may in a cell of two slices, their
//! outcomes vary less than the mean vector says. The test then rejects calibrated models less often
//! than α, and finds errors less often.
//!
//! Always: the same levels give the same p-values. Cost: a replicate takes about 2ΣV steps a level.

use super::cell::Name;
use super::level::{VectorCell, VectorLevel};
use crate::conditional::{
    INFORMATION_DRAWN, INFORMATION_MIN, hits::Hits, in_family, rank::Ranks, replicates, trusts,
};
use crate::null::Moments;
use crate::rng::Rng;
use std::collections::BTreeMap;

/// Seed of the draws.
const SEED: u64 = 0;

/// The null of nested levels of a vector view: by formulas, or by drawn outcomes.
#[derive(Debug)]
pub(super) struct Null {
    trusted: Vec<bool>,
    information: f64,
    /// The ranks of each level's statistic, then of the interval's, if there is one.
    drawn: Option<Ranks>,
    with_interval: bool,
}

/// ΣV of a level; of weighted events (Σw²V)²/Σw⁴V.
pub(super) fn information(level: &VectorLevel) -> f64 {
    let (mut second, mut fourth) = (0.0, 0.0);
    for c in &level.cells {
        let p = means(c);
        let rest = (1.0 - p.iter().sum::<f64>()).clamp(0.0, 1.0);
        let all = p.iter().map(|p| p * (1.0 - p)).sum::<f64>() + rest * (1.0 - rest);
        second += c.w2 * 0.5 * all;
        fourth += c.w4 * 0.5 * all;
    }
    if second > 0.0 {
        second * (second / fourth)
    } else {
        0.0
    }
}

impl Null {
    /// The null of levels, coarse to fine, with these moments; `interval` is the position of the
    /// interval's level.
    pub fn of(
        levels: &[VectorLevel],
        moments: &[Moments],
        interval: Option<usize>,
        alpha: f64,
    ) -> Null {
        let trusted: Vec<bool> = moments.iter().map(trusts).collect();
        let leaves = levels.last();
        let information = leaves.map_or(0.0, information);
        let silent = |m: &Moments| m.variance <= 0.0;
        let sound = moments.iter().zip(&trusted).all(|(m, &t)| t || silent(m));
        let draws = information > 0.0
            && (information < INFORMATION_MIN || (!sound && information <= INFORMATION_DRAWN));
        let drawn = leaves.filter(|l| draws && is_plain(l)).map(|finest| {
            let draw = |count: usize| drawn(levels, finest, interval, count);
            let (first, all) = (draw(replicates(alpha)), in_family(alpha, 1));
            match first.are_too_few(all) {
                true => draw(all),
                false => first,
            }
        });
        Null {
            trusted,
            information,
            drawn,
            with_interval: interval.is_some(),
        }
    }

    /// Number of replicates; `None` where formulas serve.
    pub fn replicates(&self) -> Option<u32> {
        self.drawn.as_ref().map(|d| d.replicates() as u32)
    }

    /// Whether a level takes part: its law is drawn or trusted.
    pub fn speaks(&self, level: usize) -> bool {
        self.drawn.is_some() || (self.trusted[level] && self.information >= INFORMATION_MIN)
    }

    /// p-value of a level that takes part, and has variance.
    pub fn level_p_value(&self, level: usize, formula: impl FnOnce() -> f64) -> f64 {
        match &self.drawn {
            Some(drawn) => drawn.p_value(level, |observed| observed),
            None => formula(),
        }
    }

    /// Joint p-value of these levels by the draws; `None` where formulas serve.
    pub fn drawn_joint_p_value(&self, levels: &[usize]) -> Option<f64> {
        let drawn = self.drawn.as_ref()?;
        Some(drawn.joint_p_value(levels.iter().map(|&b| (b, 0.0))))
    }

    /// p-value of the unbiased estimate at the interval's level, of these moments; `None` where no
    /// law is known for it.
    pub fn zero_p_value(&self, m: &Moments, t: f64) -> Option<f64> {
        if m.variance <= 0.0 {
            return Some(m.survival(t));
        }
        match &self.drawn {
            Some(drawn) => {
                let at = self.trusted.len();
                let known = self.with_interval;
                known.then(|| drawn.p_value(at, |observed| observed))
            }
            None => (trusts(m) && self.information >= INFORMATION_MIN).then(|| m.survival(t)),
        }
    }
}

/// Whether all weights are equal.
fn is_plain(level: &VectorLevel) -> bool {
    let effective = level.effective.unwrap_or(level.count);
    (effective - level.count).abs() <= 1e-9 * level.count
}

/// The mean vector of a cell.
fn means(c: &VectorCell) -> Vec<f64> {
    c.z.iter().map(|z| (z / c.n).clamp(0.0, 1.0)).collect()
}

/// A cell of the finest level: its likeliest outcome and its mean vector.
struct Leaf {
    top: Option<usize>,
    p: Vec<f64>,
    /// Probability of all other outcomes.
    rare: f64,
}

impl Leaf {
    fn of(c: &VectorCell) -> Leaf {
        let p = means(c);
        let none = 1.0 - p.iter().sum::<f64>();
        let top = (0..p.len()).max_by(|&a, &b| p[a].total_cmp(&p[b]).then(b.cmp(&a)));
        let top = top.filter(|&t| p[t] >= none);
        let likely = top.map_or(none, |t| p[t]);
        Leaf {
            top,
            p,
            rare: (1.0 - likely).clamp(0.0, 1.0),
        }
    }

    /// The outcome of a hit, by a uniform number; `None`: no label of the view.
    fn outcome(&self, uniform: f64) -> Option<usize> {
        let mut left = uniform * self.rare;
        for (c, p) in self.p.iter().enumerate() {
            if Some(c) == self.top {
                continue;
            }
            if left < *p {
                return Some(c);
            }
            left -= p;
        }
        match self.top {
            // What rounding leaves.
            None => (0..self.p.len()).rfind(|&c| self.p[c] > 0.0),
            Some(_) => None,
        }
    }

    fn p(&self, outcome: Option<usize>) -> f64 {
        outcome.map_or(0.0, |c| self.p[c])
    }

    /// 1 for a label of the view, 0 for none.
    fn square(outcome: Option<usize>) -> f64 {
        f64::from(u8::from(outcome.is_some()))
    }
}

/// One level: ΣU of its cells without a hit, and the cell of each leaf.
struct Tier {
    u: Vec<Vec<f64>>,
    weights: Vec<f64>,
    of_leaf: Vec<usize>,
    base: f64,
}

impl Tier {
    fn of(
        level: &VectorLevel,
        leaves: &[Leaf],
        finest: &VectorLevel,
        weight: impl Fn(f64) -> f64,
    ) -> Tier {
        let index: BTreeMap<&Name, usize> = level
            .cells
            .iter()
            .zip(0..)
            .map(|(c, i)| (&c.name, i))
            .collect();
        let k = finest.cells.first().map_or(0, |c| c.z.len());
        let mut tier = Tier {
            u: vec![vec![0.0; k]; level.cells.len()],
            weights: (level.cells.iter())
                .map(|c| if c.count >= 2.0 { weight(c.count) } else { 0.0 })
                .collect(),
            of_leaf: Vec::with_capacity(leaves.len()),
            base: 0.0,
        };
        let steps = (finest.slices / level.slices.max(1)).max(1).ilog2();
        let mut squares = vec![0.0; level.cells.len()];
        for (leaf, c) in leaves.iter().zip(&finest.cells) {
            let name = (0..steps).fold(c.name.clone(), |name, _| name.parent());
            // Levels nest, so the ancestor is occupied.
            let at = index.get(&name).copied().unwrap_or(0);
            for (u, p) in tier.u[at].iter_mut().zip(&leaf.p) {
                *u -= c.count * p;
            }
            if let Some(t) = leaf.top {
                tier.u[at][t] += c.count;
            }
            let norm: f64 = leaf.p.iter().map(|p| p * p).sum();
            squares[at] += c.count * (norm + Leaf::square(leaf.top) - 2.0 * leaf.p(leaf.top));
            tier.of_leaf.push(at);
        }
        let cells = tier.u.iter().zip(&squares).zip(&tier.weights);
        let cell =
            |((u, q), w): ((&Vec<f64>, &f64), &f64)| (u.iter().map(|u| u * u).sum::<f64>() - q) * w;
        tier.base = cells.map(cell).sum();
        tier
    }

    fn statistic(&mut self, leaves: &[Leaf], hits: &[(usize, Option<usize>)]) -> f64 {
        let mut t = self.base;
        for &(leaf, outcome) in hits {
            let (at, leaf) = (self.of_leaf[leaf], &leaves[leaf]);
            let change = self.step(at, outcome, 1.0) + self.step(at, leaf.top, -1.0);
            let squares = Leaf::square(outcome)
                - Leaf::square(leaf.top)
                - 2.0 * (leaf.p(outcome) - leaf.p(leaf.top));
            t += self.weights[at] * (change - squares);
        }
        for &(leaf, outcome) in hits {
            let at = self.of_leaf[leaf];
            self.step(at, outcome, -1.0);
            self.step(at, leaves[leaf].top, 1.0);
        }
        t
    }

    /// Moves ΣU of a cell along an outcome; returns how much its square grows.
    fn step(&mut self, cell: usize, outcome: Option<usize>, by: f64) -> f64 {
        let Some(c) = outcome else { return 0.0 };
        let u = &mut self.u[cell][c];
        let before = *u;
        *u += by;
        2.0 * by * before + 1.0
    }
}

/// Draws `replicates` sets of outcomes, and ranks the statistics of all levels.
fn drawn(
    levels: &[VectorLevel],
    finest: &VectorLevel,
    interval: Option<usize>,
    replicates: usize,
) -> Ranks {
    let leaves: Vec<Leaf> = finest.cells.iter().map(Leaf::of).collect();
    let tier = |l: &VectorLevel, w: fn(f64) -> f64| Tier::of(l, &leaves, finest, w);
    let mut tiers: Vec<Tier> = levels.iter().map(|l| tier(l, |n| 1.0 / n)).collect();
    tiers.extend(interval.map(|at| tier(&levels[at], |n| 1.0 / (n - 1.0))));
    let mut all = |hits: &[(usize, Option<usize>)], out: &mut Vec<f64>| {
        let tiers = tiers.iter_mut();
        out.extend(tiers.map(|tier| tier.statistic(&leaves, hits)));
    };
    let mut observed = Vec::new();
    all(&observed_hits(&leaves, finest), &mut observed);
    let rare = (leaves.iter().zip(&finest.cells)).map(|(l, c)| (l.rare, c.count));
    let (mut rng, mut places) = (Rng::new(SEED), Hits::of(rare, 1.0));
    let mut hits = Vec::new();
    Ranks::of(observed, replicates, |out| {
        hits.clear();
        hits.extend(places.next(&mut rng).iter().map(|&at| (at as usize, None)));
        for (at, outcome) in &mut hits {
            *outcome = leaves[*at].outcome(rng.uniform());
        }
        all(&hits, out);
    })
}

/// The outcomes that were not the likeliest of their cell, with its position.
fn observed_hits(leaves: &[Leaf], finest: &VectorLevel) -> Vec<(usize, Option<usize>)> {
    let mut hits = Vec::new();
    for (at, (leaf, c)) in leaves.iter().zip(&finest.cells).enumerate() {
        let mut labelled = 0;
        for (class, (u, z)) in c.u.iter().zip(&c.z).enumerate() {
            let count = ((u + z) * c.count / c.n).round().max(0.0) as usize;
            labelled += count;
            if Some(class) != leaf.top {
                hits.extend(std::iter::repeat_n((at, Some(class)), count));
            }
        }
        if leaf.top.is_some() {
            let none = (c.count as usize).saturating_sub(labelled);
            hits.extend(std::iter::repeat_n((at, None), none));
        }
    }
    hits
}
