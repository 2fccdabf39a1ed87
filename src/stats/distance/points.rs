//! The empirical law that every distance is a functional of: scores with the outcomes seen at them.
//!
//! [`Points`] lists distinct scores in ascending order, each with its count, its positives and its
//! residual. From raw scores nothing is lost: equal scores are pooled, and no distance
//! distinguishes them. From the cells of a window each cell becomes one point at the *mean* of its
//! scores. The obvious other place is the cell's centre; the mean is better for two reasons: the
//! point's residual ΣU = Σy − Nz̄ is then that of a genuine law of (z, y), so every inequality
//! between distances holds for the values reported too, and the scores move less.
//!
//! What the move can change is known, from the cell's sums alone. With x = |z − z̄|, by
//! Cauchy–Schwarz, Σ|U|x ≤ √(ΣU²·Σx²) and Σx ≤ √(N·Σx²), where Σx² = Σz² − (Σz)²/N is at most
//! N(width/2)² (Popoviciu 1935). The sums over cells, divided by n, are [`Points::spread`] and
//! [`Points::shift`]; each distance computes its error bar from them. Both are 0 for raw scores.
//!
//! Always: scores ascend strictly, counts are positive, |ΣU| ≤ N. Cost: one pass over a level, or
//! one sort of the scores. Error bars: Błasiok, Gopalan, Hu, Nakkiran, *A unifying theory of
//! distance from calibration* (2023), for the Lipschitz properties; the cell bars are derived here.

use crate::levels::{Level, ascending};

/// One distinct score, or one cell at the mean of its scores.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Atom {
    /// The score, in [0, 1].
    pub z: f64,
    /// N, the number of events, positive.
    pub n: f64,
    /// Σy.
    pub y: f64,
    /// ΣU, U = y − z; positive where scores are too low.
    pub u: f64,
    /// ΣU².
    pub u2: f64,
    /// ΣV, V = z(1−z).
    pub v: f64,
    /// ΣV².
    pub v2: f64,
    /// Least score pooled here: the score itself, or the cell's lower edge.
    pub low: f64,
    /// Largest score pooled here: the score itself, or the cell's upper edge.
    pub high: f64,
}

impl Atom {
    fn of(z: f64, y: f64) -> Atom {
        let (u, v) = (y - z, z * (1.0 - z));
        Atom {
            z,
            n: 1.0,
            y,
            u,
            u2: u * u,
            v,
            v2: v * v,
            low: z,
            high: z,
        }
    }

    fn add(&mut self, o: &Atom) {
        self.n += o.n;
        self.y += o.y;
        self.u += o.u;
        self.u2 += o.u2;
        self.v += o.v;
        self.v2 += o.v2;
    }
}

/// The empirical law of scores and outcomes: distinct scores, or cells, with their sums.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    n: f64,
    atoms: Vec<Atom>,
    spread: f64,
    shift: f64,
}

/// Rounding of scores to 2⁻³² moves each by at most 2⁻³³ and its residual as much; both bars carry
/// this for laws that come from sums.
const ROUNDING: f64 = 1.0 / (1u64 << 31) as f64;

impl Points {
    /// From raw scores in [0, 1] and their outcomes; `None` without events.
    pub fn from_scores(sample: &[(f64, bool)]) -> Option<Points> {
        Points::of_ascending(&ascending(sample))
    }

    /// From raw scores in ascending order and their outcomes; `None` without events.
    pub(in super::super) fn of_ascending(sample: &[(f64, bool)]) -> Option<Points> {
        let rises = sample.windows(2).filter(|pair| pair[0].0 < pair[1].0);
        let mut atoms: Vec<Atom> = Vec::with_capacity(1 + rises.count());
        for &(z, y) in sample {
            let one = Atom::of(z, f64::from(u8::from(y)));
            match atoms.last_mut() {
                Some(last) if last.z >= z => last.add(&one),
                _ => atoms.push(one),
            }
        }
        Points::new(atoms, 0.0, 0.0)
    }

    /// From the cells of a level; `edges` gives the scores between which cell `index` lies. `None`
    /// without events.
    pub fn from_level(level: &Level, edges: impl Fn(u64) -> (f64, f64)) -> Option<Points> {
        let (mut spread, mut shift) = (0.0, 0.0);
        let mut atoms: Vec<Atom> = Vec::with_capacity(level.occupied.len());
        for c in level.occupied.iter() {
            let (low, high) = edges(c.index);
            let z = (c.z / c.n).clamp(low, high);
            // Σz² = Σz − ΣV; the sums of a narrow cell cancel, and Popoviciu's bound caps what they
            // lose.
            let half = (z - low).max(high - z).min(high - low);
            let deviation = (c.z - c.v - c.z * z + c.n * ROUNDING).clamp(0.0, c.n * half * half);
            spread += (c.u2.max(0.0) * deviation).sqrt();
            shift += (c.n * deviation).sqrt();
            let atom = Atom {
                z,
                n: c.n,
                y: c.y,
                u: c.u,
                u2: c.u2,
                v: c.v,
                v2: c.v2,
                low,
                high,
            };
            match atoms.last_mut() {
                // Two means on one edge: one point.
                Some(last) if last.z >= z => {
                    last.add(&atom);
                    last.high = high;
                }
                _ => atoms.push(atom),
            }
        }
        let n: f64 = atoms.iter().map(|a| a.n).sum();
        Points::new(atoms, spread / n + ROUNDING, shift / n + ROUNDING)
    }

    /// From atoms in strictly ascending order of score, with their error bars.
    pub fn new(atoms: Vec<Atom>, spread: f64, shift: f64) -> Option<Points> {
        let n: f64 = atoms.iter().map(|a| a.n).sum();
        (n > 0.0).then_some(Points {
            n,
            atoms,
            spread,
            shift,
        })
    }

    /// n, the number of events.
    pub fn n(&self) -> f64 {
        self.n
    }

    /// The points, ascending by score.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// Upper bound of the mean of |U|·|z − z′|, z′ the point that stands for z; 0 for raw scores.
    pub fn spread(&self) -> f64 {
        self.spread
    }

    /// Upper bound of the mean of |z − z′|; 0 for raw scores.
    pub fn shift(&self) -> f64 {
        self.shift
    }

    /// √(mean U²), an upper bound of the mean of |U|.
    pub fn residual_rms(&self) -> f64 {
        let squares: f64 = self.atoms.iter().map(|a| a.u2).sum();
        (squares / self.n).max(0.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_are_pooled_and_cells_stand_at_their_mean() {
        let sample = [(0.5, true), (0.1, false), (0.5, false), (0.3, true)];
        let p = Points::from_scores(&sample).unwrap();
        let z: Vec<f64> = p.atoms().iter().map(|a| a.z).collect();
        assert_eq!(z, [0.1, 0.3, 0.5]);
        assert_eq!((p.atoms()[2].n, p.atoms()[2].u, p.shift()), (2.0, 0.0, 0.0));
        let level = Level::from_scores(&sample, 2);
        let c = Points::from_level(&level, |i| (i as f64 / 2.0, (i + 1) as f64 / 2.0)).unwrap();
        assert_eq!(c.atoms().len(), 2);
        assert!((c.atoms()[0].z - 0.2).abs() < 1e-15);
        // Two scores moved by 0.1, two not at all: the mean is 0.05.
        assert!((c.shift() - 0.05).abs() < 2e-5, "{}", c.shift());
        assert_eq!(Points::from_scores(&[]), None);
    }
}
