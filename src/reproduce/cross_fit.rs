//! T-Cal, Figure 10: plug-in test, sample splitting and cross-fitting.
//!
//! The set-up of Figure 7: n = 20,000, alternatives with m bumps, s = 0.6 and ρ = 100, or s = 0.8
//! and ρ = 200. Splitting keeps the outcomes of the first half, draws those of the second from the
//! scores, and compares shares of positives cell by cell; cross-fitting is the mean of that
//! statistic and the one with the halves exchanged. Critical values are the 50th largest of 1000
//! null draws of an oracle; a point has 250 data sets in each repetition, where the paper has 1000.
//! All is repeated ten times; the error is that of the mean over repetitions, so it includes the
//! error of critical values. The paper says that cross-fitting gains nothing notable.

use super::alternatives::{ALPHA, Curve};
use super::{Cell, Effort, Row, Table, published};
use crate::stats::estimator::debiased;
use crate::stats::levels::{Level, LevelCell};
use crate::stats::offline::slices;
use crate::stats::rng::Rng;

const N: usize = 20_000;
const REPETITIONS: usize = 10;

/// Counts of one half in one cell: events, ΣU, ΣU², positives, and drawn positives.
type Half = [f64; 5];

/// The three statistics of one data set, drawn and counted in one pass.
struct Drawer {
    curve: Curve,
    m: usize,
    halves: [Vec<Half>; 2],
}

impl Drawer {
    fn new(curve: Curve, m: u64) -> Drawer {
        let m = m as usize;
        Drawer {
            curve,
            m,
            halves: [vec![[0.0; 5]; m], vec![[0.0; 5]; m]],
        }
    }

    fn statistics(&mut self, rng: &mut Rng) -> [f64; 3] {
        let (curve, m) = (self.curve, self.m);
        for half in &mut self.halves {
            half.fill([0.0; 5]);
            for _ in 0..N / 2 {
                let z = rng.uniform();
                let y = f64::from(u8::from(rng.uniform() < curve.truth(z)));
                let pseudo = f64::from(u8::from(rng.uniform() < z));
                let u = y - z;
                let cell = &mut half[((z * m as f64) as usize).min(m - 1)];
                let more = [1.0, u, u * u, y, pseudo];
                cell.iter_mut().zip(more).for_each(|(c, x)| *c += x);
            }
        }
        let [first, second] = &self.halves;
        let both = (0..).zip(first.iter().zip(second));
        let cell = |(index, (a, b)): (u64, (&Half, &Half))| LevelCell {
            index,
            n: a[0] + b[0],
            count: a[0] + b[0],
            u: a[1] + b[1],
            u2: a[2] + b[2],
            ..LevelCell::default()
        };
        let level = Level {
            cells: m as u64,
            occupied: both.map(cell).filter(|c| c.n > 0.0).collect(),
            ..Level::default()
        };
        let split = two_samples(first, second);
        let crossed = 0.5 * (split + two_samples(second, first));
        [debiased(&level), split, crossed]
    }
}

/// Σ(share of the positives of one half − share of the drawn positives of the other)².
fn two_samples(kept: &[Half], drawn: &[Half]) -> f64 {
    let a: f64 = kept.iter().map(|c| c[3]).sum::<f64>().max(1.0);
    let b: f64 = drawn.iter().map(|c| c[4]).sum::<f64>().max(1.0);
    let gap = |(v, w): (&Half, &Half)| (v[3] / a - w[4] / b).powi(2);
    kept.iter().zip(drawn).map(gap).sum()
}

/// One panel: `at` = 0 is (a), 1 is (b).
pub fn run(effort: &Effort, at: usize) -> Vec<Table> {
    let (s, rho) = [(0.6, 100.0), (0.8, 200.0)][at];
    let m_star = slices(N, s, 2);
    let sets = effort.sets(250, 20) as usize;
    let (draws, points): (usize, Vec<usize>) = match effort.quick {
        true => (100, vec![0, 5, 10, 20]),
        false => (1000, (0..21).collect()),
    };
    let mut rng = Rng::new(effort.seed ^ 0xA000 ^ at as u64);
    let mut missed = vec![[const { Vec::new() }; 3]; points.len()];
    for repetition in 0..REPETITIONS {
        effort.progress.of(repetition, REPETITIONS);
        let mut null = Drawer::new(Curve::new(0.0, s, rho), m_star);
        let all: Vec<[f64; 3]> = (0..draws).map(|_| null.statistics(&mut rng)).collect();
        let critical: [f64; 3] = std::array::from_fn(|k| {
            let mut one: Vec<f64> = all.iter().map(|t| t[k]).collect();
            one.sort_by(|a, b| b.total_cmp(a));
            one[(ALPHA * draws as f64) as usize - 1]
        });
        for (point, missed) in points.iter().zip(&mut missed) {
            let m = 40.0 + 10.0 * *point as f64;
            let mut drawer = Drawer::new(Curve::new(m, s, rho), m_star);
            let mut below = [0usize; 3];
            for _ in 0..sets {
                let seen = drawer.statistics(&mut rng);
                for (k, b) in below.iter_mut().enumerate() {
                    *b += usize::from(seen[k] < critical[k]);
                }
            }
            for (missed, below) in missed.iter_mut().zip(below) {
                missed.push(below as f64 / sets as f64);
            }
        }
    }
    let columns = ["plug-in", "splitting", "cross-fitting"];
    let row = |(point, missed): (&usize, &[Vec<f64>; 3])| {
        let m = 40.0 + 10.0 * *point as f64;
        let cell = |k: usize| {
            let mean = Cell::mean(&missed[k]);
            let all = sets * REPETITIONS;
            let floor = Cell::share((mean.ours * all as f64) as usize, all);
            let cell = mean.with_error(mean.error.max(floor.error));
            let known = published::number("splitting", &format!("s = {s}, {}", columns[k]), *point);
            // The published curves of Figure 7 use one critical value, whose error is √10 times
            // ours.
            known.map_or(cell, |p| {
                let critical = REPETITIONS as f64 * mean.error * mean.error;
                let spread = (critical + p * (1.0 - p) / 1e4).sqrt();
                cell.beside(p, 0.0).drawn(spread)
            })
        };
        Row::of(Curve::new(m, s, rho).label(), (0..3).map(cell).collect())
    };
    vec![Table {
        title: format!("T-Cal, Figure 10: splitting and cross-fitting, s = {s}, ρ = {rho}"),
        note: format!(
            "type II error, n = {N}, {sets} data sets a point in each of {REPETITIONS} repetitions, m* = {m_star} cells, critical \
             values of {draws} draws;\nbeside: the curves of Figure 7, whose set-up is the same; each rests on one critical value, whose error moves all its \
             points together;\nthe paper's dashed line is at 0.95"
        ),
        x: "m (ℓ2-ECE)",
        columns: columns.to_vec(),
        rows: points.iter().zip(&missed).map(row).collect(),
        ..Table::default()
    }]
}
