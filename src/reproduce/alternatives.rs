//! The alternatives of the T-Cal paper, curves with m bumps as in its (10), and the results of each
//! test on them.
//!
//! Scores are uniform. The true probability is z + a·ρ·m^{−s}·ζ(x) on [¼, ¾], where ζ(x) =
//! exp(−1/(x(1−x))), x is the fractional part of 2m(z − ¼), j its integer part, and a = (−1)^j. The
//! experiments are those of the authors' published program (`effect_of_debiasing`,
//! `tests_comparison`, `l1_vs_l2`, `splitting_vs_plugin`).
//!
//! Published numbers are read off the vector graphics that came with the program, so they have four
//! digits. They are shares of 10⁴ data sets beyond a critical value, which is the 50th largest of
//! 1000 draws. The error of that critical value shifts whole curves; [`noise`] allows for it.

use super::{Cell, Effort, Row, Table, published};
use crate::stats::classical::{Totals, cox};
use crate::stats::estimator::{debiased, ece_l1, plug_in};
use crate::stats::evaluation::Options;
use crate::stats::levels::{Level, Levels};
use crate::stats::null::normal_upper_quantile;
use crate::stats::offline::slices;
use crate::stats::rng::Rng;
use crate::stats::tcal::{scales, tcal};

/// Level of all tests.
pub const ALPHA: f64 = 0.05;

/// One curve; m = 0 is calibrated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    /// Number of bumps.
    pub m: f64,
    /// Smoothness.
    pub s: f64,
    /// Scale.
    pub rho: f64,
    /// All bumps below ½ go down and all above ½ go up, instead of alternating.
    pub halves: bool,
}

impl Curve {
    /// A curve with alternating bumps.
    pub fn new(m: f64, s: f64, rho: f64) -> Curve {
        Curve {
            m,
            s,
            rho,
            halves: false,
        }
    }

    /// The true probability at z.
    pub fn truth(&self, z: f64) -> f64 {
        if self.m == 0.0 || !(0.25..=0.75).contains(&z) {
            return z;
        }
        let at = 2.0 * self.m * (z - 0.25);
        let x = at - at.floor();
        if x <= 0.0 {
            return z;
        }
        let up = if self.halves {
            z > 0.5
        } else {
            at.floor() as i64 % 2 == 0
        };
        let bump = self.rho * self.m.powf(-self.s) * (-1.0 / (x * (1.0 - x))).exp();
        if up { z + bump } else { z - bump }
    }

    /// A label with the bumps and the ℓ2-ECE that they make.
    pub fn label(&self) -> String {
        let error = 0.0098 * self.rho * self.m.powf(-self.s);
        format!("{} ({error:.4})", self.m)
    }

    /// Draws n events.
    pub fn sample(&self, rng: &mut Rng, n: usize) -> Vec<(f64, bool)> {
        let mut one = || {
            let z = rng.uniform();
            (z, rng.uniform() < self.truth(z))
        };
        (0..n).map(|_| one()).collect()
    }
}

/// Whether the default test rejects, on twelve levels like a window.
pub fn rejects(sample: &[(f64, bool)]) -> bool {
    tcal(&Levels::from_scores(sample, 12), &Options::default().tcal).reject
}

/// T_d at all B scales: the statistics of the paper's adaptive procedure.
pub fn statistics(sample: &[(f64, bool)]) -> Vec<f64> {
    let levels = Levels::from_scores(sample, scales(sample.len() as f64));
    levels.as_slice().iter().map(debiased).collect()
}

/// The upper α/B quantile of each scale over calibrated samples. They are drawn once for all data
/// sets of one n, because the distribution of T_d hardly depends on which uniform scores were
/// drawn.
pub fn critical_values(rng: &mut Rng, n: usize, replicates: usize) -> Vec<f64> {
    let null = Curve::new(0.0, 0.0, 0.0);
    let draw = |_| statistics(&null.sample(rng, n));
    let all: Vec<Vec<f64>> = (0..replicates).map(draw).collect();
    let count = all.first().map_or(1, Vec::len);
    upper_quantiles(all, ALPHA / count as f64)
}

/// For each coordinate, the value that a share `tail` of the drawn vectors exceeds.
fn upper_quantiles(mut all: Vec<Vec<f64>>, tail: f64) -> Vec<f64> {
    let count = all.first().map_or(0, Vec::len);
    let rank = ((all.len() as f64 + 1.0) * tail).floor().max(1.0) as usize;
    let mut value = |b: usize| {
        all.sort_by(|x, y| y[b].total_cmp(&x[b]));
        all[rank - 1][b]
    };
    (0..count).map(&mut value).collect()
}

/// Standard error of a published type II error β compared with our draws. It covers the 10⁴
/// published data sets, and the critical values, drawn 1000 times there and `replicates` times
/// here. An error δ in the level shifts the critical value of a normal statistic by δ/φ(z_α).
fn noise(beta: f64, replicates: usize) -> f64 {
    let density = |z: f64| (-0.5 * z * z).exp();
    let level = (ALPHA * (1.0 - ALPHA) * (1e-3 + 1.0 / replicates as f64)).sqrt();
    let bound = level * (2.0 * std::f64::consts::PI).sqrt() / density(normal_upper_quantile(ALPHA));
    let near = beta.clamp(1e-4, 1.0 - 1e-4);
    let moved = bound * density(normal_upper_quantile(near)) / (2.0 * std::f64::consts::PI).sqrt();
    (moved * moved + near * (1.0 - near) / 1e4).sqrt()
}

/// Figure 2: means of the plug-in and the debiased estimator, under the null and with bumps.
pub fn debiasing(effort: &Effort) -> Table {
    let (n, s) = (10_000, 0.3);
    let m = slices(n, s, 2);
    let sets = effort.sets(1000, 40);
    let mut rng = Rng::new(effort.seed ^ 2);
    let mut draw = |curve: Curve| {
        let one = |_| {
            let level = Level::from_scores(&curve.sample(&mut rng, n), m);
            (plug_in(&level), debiased(&level))
        };
        (0..sets).map(one).unzip()
    };
    let null: (Vec<f64>, Vec<f64>) = draw(Curve::new(0.0, s, 100.0));
    let bumps: (Vec<f64>, Vec<f64>) = draw(Curve {
        halves: true,
        ..Curve::new((m / 2) as f64, s, 100.0)
    });
    let cell = |values: &[f64], known: Option<f64>| {
        let mean = Cell::mean(values);
        // The published means are over 1000 data sets.
        let noise = mean.error * (values.len() as f64 / 1000.0).sqrt();
        known.map_or(mean, |p| mean.beside(p, 5e-7).drawn(noise))
    };
    let row = |label: &str, a: &[f64], b: &[f64]| {
        let known = |column| published::number("debiasing", label, column);
        Row::of(label, vec![cell(a, known(0)), cell(b, known(1))])
    };
    Table {
        title: "T-Cal, Figure 2: the effect of debiasing".to_owned(),
        note: format!(
            "n = {n}, {m} cells, {sets} data sets; the plug-in estimator is larger for the calibrated scores; beside: means \
             over 1000\ndata sets"
        ),
        x: "mean of",
        columns: vec!["calibrated", "bumps"],
        rows: vec![
            row("plug-in", &null.0, &bumps.0),
            row("debiased", &null.1, &bumps.1),
        ],
        ..Table::default()
    }
}

/// Five statistics: debiased ℓ2, plug-in ℓ2 and ℓ1 with m\* cells, ℓ1 with 15 cells, and the score
/// test of logistic recalibration.
fn five(sample: &[(f64, bool)], m: u64) -> Vec<f64> {
    let level = Level::from_scores(sample, m);
    let fixed = Level::from_scores(sample, 15);
    let score = cox(&Totals::from_scores(sample, &fixed), &fixed).map_or(0.0, |c| c.score);
    vec![
        debiased(&level),
        plug_in(&level),
        ece_l1(&level),
        ece_l1(&fixed),
        score,
    ]
}

/// Figures 3 and 4 at one n: type II errors of the default test, the paper's adaptive procedure and
/// its other tests.
pub fn compared(effort: &Effort, at: usize) -> Table {
    let (s, rho) = (0.6, 100.0);
    let n = [2000, 5000, 10_000][at];
    let columns = [
        "default",
        "adaptive, paper's",
        "debiased ℓ2",
        "plug-in ℓ2",
        "plug-in ℓ1",
        "ℓ1, 15 cells",
        "logistic",
    ];
    let m_star = slices(n, s, 2);
    let sets = effort.sets(333, 40) as usize;
    let replicates = if effort.quick { 400 } else { 3000 };
    let mut rng = Rng::new(effort.seed ^ 0x3400 ^ n as u64);
    let null = Curve::new(0.0, s, rho);
    let draws = (0..replicates).map(|_| five(&null.sample(&mut rng, n), m_star));
    let critical = upper_quantiles(draws.collect(), ALPHA);
    let adaptive = critical_values(&mut rng, n, replicates);
    let mut rows = Vec::new();
    for (i, m) in (40..200).step_by(10).enumerate() {
        if effort.quick && i % 4 != 0 {
            continue;
        }
        let curve = Curve::new(f64::from(m), s, rho);
        let mut missed = [0usize; 7];
        for _ in 0..sets {
            let data = curve.sample(&mut rng, n);
            let beyond = statistics(&data).iter().zip(&adaptive).any(|(t, c)| t > c);
            let mut seen = vec![rejects(&data), beyond];
            seen.extend(
                five(&data, m_star)
                    .iter()
                    .zip(&critical)
                    .map(|(t, c)| t >= c),
            );
            missed
                .iter_mut()
                .zip(seen)
                .for_each(|(k, hit)| *k += usize::from(!hit));
        }
        let cell = |(&k, column): (&usize, &&str)| {
            let share = Cell::share(k, sets);
            let known = published::number("compared", &format!("n = {n}, {column}"), i);
            known.map_or(share, |p| share.beside(p, 0.0).drawn(noise(p, replicates)))
        };
        let cells = missed.iter().zip(&columns).map(cell).collect();
        rows.push(Row::of(curve.label(), cells));
        effort.progress.of(i + 1, 16);
    }
    Table {
        title: format!("T-Cal, Figures 3 and 4: type II error, n = {n}"),
        note: format!(
            "{sets} data sets a point; m* = {m_star} cells for the middle three; critical values of {replicates} draws; \
             beside: the paper's curves,\n10⁴ data sets and a critical value of 1000 draws for each curve, whose error moves all its points together"
        ),
        x: "m (ℓ2-ECE)",
        columns: columns.to_vec(),
        rows,
        ..Table::default()
    }
}

/// The authors' two-sample statistic over m cells, Σ(share of V − share of W)². V are the scores of
/// the positives in the first half, and W those of the drawn positives in the second.
fn split_statistic(sample: &[(f64, bool)], m: u64, rng: &mut Rng) -> f64 {
    let cell = |z: f64| ((z * m as f64) as usize).min(m as usize - 1);
    let (mut v, mut w) = (vec![0.0; m as usize], vec![0.0; m as usize]);
    let (first, second) = sample.split_at(sample.len() / 2);
    first
        .iter()
        .filter(|s| s.1)
        .for_each(|s| v[cell(s.0)] += 1.0);
    for &(z, _) in second {
        w[cell(z)] += f64::from(u8::from(rng.uniform() < z));
    }
    let (a, b): (f64, f64) = (v.iter().sum(), w.iter().sum());
    v.iter().zip(&w).map(|(x, y)| (x / a - y / b).powi(2)).sum()
}

/// Figure 7: T-Cal with known smoothness against sample splitting.
pub fn splitting(effort: &Effort, at: usize) -> Table {
    let (s, rho) = [(0.6, 100.0), (0.8, 200.0)][at];
    let columns = ["default", "plug-in", "splitting"];
    let n = 20_000;
    let m_star = slices(n, s, 2);
    let sets = effort.sets(333, 40) as usize;
    let replicates = if effort.quick { 300 } else { 2000 };
    let mut rng = Rng::new(effort.seed ^ 0x7000 ^ at as u64);
    let both = |data: &[(f64, bool)], rng: &mut Rng| {
        vec![
            debiased(&Level::from_scores(data, m_star)),
            split_statistic(data, m_star, rng),
        ]
    };
    let null = Curve::new(0.0, s, rho);
    let mut draws = Vec::new();
    for _ in 0..replicates {
        let data = null.sample(&mut rng, n);
        draws.push(both(&data, &mut rng));
    }
    let critical = upper_quantiles(draws, ALPHA);
    let mut rows = Vec::new();
    for (i, m) in (40..250).step_by(10).enumerate() {
        if effort.quick && i % 5 != 0 {
            continue;
        }
        let curve = Curve::new(f64::from(m), s, rho);
        let mut missed = [0usize; 3];
        for _ in 0..sets {
            let data = curve.sample(&mut rng, n);
            let mut seen = vec![rejects(&data)];
            seen.extend(
                both(&data, &mut rng)
                    .iter()
                    .zip(&critical)
                    .map(|(t, c)| t >= c),
            );
            missed
                .iter_mut()
                .zip(seen)
                .for_each(|(k, hit)| *k += usize::from(!hit));
        }
        let cell = |(&k, column): (&usize, &&str)| {
            let share = Cell::share(k, sets);
            let known = published::number("splitting", &format!("s = {s}, {column}"), i);
            known.map_or(share, |p| share.beside(p, 0.0).drawn(noise(p, replicates)))
        };
        let cells = missed.iter().zip(&columns).map(cell).collect();
        rows.push(Row::of(curve.label(), cells));
        effort.progress.of(i + 1, 21);
    }
    Table {
        title: format!("T-Cal, Figure 7: plug-in test and sample splitting, s = {s}, ρ = {rho}"),
        note: format!(
            "type II error, n = {n}, {sets} data sets a point, m* = {m_star} cells, critical values of {replicates} draws; \
             beside: the\npaper's curves, 10⁴ data sets and a critical value of 1000 draws for each curve, whose error moves all its points together"
        ),
        x: "m (ℓ2-ECE)",
        columns: columns.to_vec(),
        rows,
        ..Table::default()
    }
}

/// Least squares slope with its standard error.
pub fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let (mx, my) = (
        points.iter().map(|p| p.0).sum::<f64>() / n,
        points.iter().map(|p| p.1).sum::<f64>() / n,
    );
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    let slope = sxy / sxx;
    let rest: f64 = points
        .iter()
        .map(|p| (p.1 - my - slope * (p.0 - mx)).powi(2))
        .sum();
    (slope, (rest / (n - 2.0) / sxx).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_power_one_half_the_uncertainty_is_that_of_the_critical_value() {
        // A level drawn 1000 times is off by 0.0069, the bound by 0.067, and the middle of the
        // curve by 0.027.
        let far = noise(0.5, usize::MAX);
        assert!((far - 0.0272).abs() < 0.0004, "{far}");
        assert!(noise(0.0, 3000) < 0.0004 && noise(0.95, 3000) < far);
    }
}
