//! The kernel paper's Figures 3 to 82: estimates and test errors over a grid of set-ups.
//!
//! A data set has n = 250 predictions from the symmetric Dirichlet(α) over K classes. An outcome is
//! drawn from β with probability π, else from the prediction. Set-ups are α ∈ {1, 0.1} times β
//! uniform or all on the first class.
//!
//! * Figures 3 to 34: eight estimators by four set-ups, each over K ∈ {2, 10, 100, 1000} and π ∈ {0,
//!   ¼, ½, ¾, 1}: histograms with a line at the mean, which is the number beside ours.
//! * Figures 35 to 82: twelve tests by four set-ups, each over K ∈ {2, 10} and π ∈ {0, ½, 1}: curves
//!   of the test error against the level; here at level 0.05.
//!
//! Figure 3 + 4·e + s has estimator e at set-up s, and Figure 35 + 4·t + s test t at set-up s, in the
//! order of [`ESTIMATORS`], [`TESTS`] and [`SETUPS`]. Estimators with the median take the median
//! total variation distance as bandwidth, those with the mean its expectation 2B(Kα, Kα)/(α·B(α,
//! α)·B((K−1)α, (K−1)α)). Binned errors have ten bins a class, or bins by median and variance of at
//! least five events.

use super::grid_published::{ERRORS, MEANS};
use super::{Cell, Choice, Effort, Job, Row, Table, draw};
use crate::stats::kernel::asymptotic::{Matrix, block_test};
use crate::stats::kernel::binned_tests::{Partition, consistency_p};
use crate::stats::kernel::conditional::draw as draw_class;
use crate::stats::kernel::{Blocks, Kernel, Quadratic, Vectors, binned, distribution_free, phi};
use crate::stats::rng::Rng;

const N: usize = 250;
const LEVEL: f64 = 0.05;

/// Numbers of classes.
pub const CLASSES: [u32; 4] = [2, 10, 100, 1000];

/// Set-ups: α, and whether β is all on the first class.
pub const SETUPS: [&str; 4] = ["flat-uniform", "sharp-uniform", "flat-first", "sharp-first"];

/// Estimators.
pub const ESTIMATORS: [&str; 8] = [
    "ece-uniform",
    "ece-dynamic",
    "skce-b-median",
    "skce-b-mean",
    "skce-uq-median",
    "skce-uq-mean",
    "skce-ul-median",
    "skce-ul-mean",
];

/// Tests.
pub const TESTS: [&str; 12] = [
    "c-uniform",
    "c-dynamic",
    "d-b-median",
    "d-b-mean",
    "d-uq-median",
    "d-uq-mean",
    "d-ul-median",
    "d-ul-mean",
    "a-uq-median",
    "a-uq-mean",
    "a-ul-median",
    "a-ul-mean",
];

/// Whether a figure of these classes and this setup is chosen.
fn takes(chosen: &Choice, classes: u32, setup: usize) -> bool {
    chosen.classes.is_none_or(|k| k == classes)
        && chosen.setup.as_deref().is_none_or(|s| s == SETUPS[setup])
}

/// The chosen figures.
pub fn jobs(effort: &Effort) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (setup, named) in SETUPS.iter().enumerate() {
        for (at, classes) in CLASSES.into_iter().enumerate() {
            if !takes(&effort.grid, classes, setup) || (effort.quick && classes > 10) {
                continue;
            }
            let name = format!("kernel paper, Figures 3 to 34, {named}, K = {classes}");
            jobs.push(Job::of(name, move |e| vec![estimates(e, setup, at)]));
            if at < 2 && effort.grid.estimator.is_none() {
                let name = format!("kernel paper, Figures 35 to 82, {named}, K = {classes}");
                jobs.push(Job::of(name, move |e| vec![errors(e, setup, at)]));
            }
        }
    }
    jobs
}

/// One cell of the grid.
#[derive(Clone, Copy)]
struct Setup {
    classes: usize,
    alpha: f64,
    first: bool,
    pi: f64,
}

impl Setup {
    fn new(setup: usize, at: usize, pi: f64) -> Setup {
        Setup {
            classes: CLASSES[at] as usize,
            alpha: if setup.is_multiple_of(2) { 1.0 } else { 0.1 },
            first: setup >= 2,
            pi,
        }
    }

    fn sample(&self, rng: &mut Rng) -> Vectors {
        let mut v = Vectors::new(self.classes);
        let mut row = vec![0.0; self.classes];
        while v.len() < N {
            draw::dirichlet(rng, self.alpha, &mut row);
            let y = if rng.uniform() >= self.pi {
                draw_class(&row, rng.uniform())
            } else if self.first {
                0
            } else {
                (rng.uniform() * self.classes as f64) as u32
            };
            // Dirichlet rows sum to 1 within rounding, so none is refused.
            let _ = v.push(&row, y);
        }
        v
    }

    /// Median and mean bandwidth.
    fn kernels(&self, v: &Vectors) -> [Kernel; 2] {
        let mean = phi::mean_distance(self.classes, self.alpha);
        let median = phi::median_bandwidth(v).unwrap_or(1.0);
        [median, mean].map(|nu| Kernel::TotalVariation { nu })
    }
}

/// The estimates of a data set, in the order of [`ESTIMATORS`].
fn all_estimates(setup: &Setup, v: &Vectors) -> [f64; 8] {
    let kernels = setup.kernels(v);
    let q = kernels.map(|k| Quadratic::of(v, k));
    let linear = kernels.map(|k| Blocks::of(v, k, 2).estimate().unwrap_or(0.0));
    let unbiased = |q: &Quadratic| q.unbiased().unwrap_or(0.0);
    [
        binned::ece(v, &binned::uniform(v, 10)),
        binned::ece(v, &binned::median_variance(v, 5)),
        q[0].biased(),
        q[1].biased(),
        unbiased(&q[0]),
        unbiased(&q[1]),
        linear[0],
        linear[1],
    ]
}

fn sets(effort: &Effort, classes: u32) -> u32 {
    match (effort.grid.long, effort.quick, classes) {
        (true, ..) => effort.data_sets,
        (_, true, _) => 60,
        (.., 1000) => effort.share_of_sets(50),
        (.., 100) => effort.share_of_sets(20),
        _ => effort.share_of_sets(10),
    }
}

fn seeded(effort: &Effort, part: u64, setup: usize, at: usize, pi: usize) -> Rng {
    Rng::new(effort.seed ^ (part << 32) ^ ((setup as u64) << 16) ^ ((at as u64) << 8) ^ pi as u64)
}

fn estimates(effort: &Effort, setup: usize, at: usize) -> Table {
    let sets = sets(effort, CLASSES[at]);
    let chosen = effort.grid.estimator.as_deref();
    let chosen = chosen.and_then(|name| ESTIMATORS.iter().position(|e| *e == name));
    let mut rows = Vec::new();
    for (p, pi) in [0.0, 0.25, 0.5, 0.75, 1.0].into_iter().enumerate() {
        let cell = Setup::new(setup, at, pi);
        let mut rng = seeded(effort, 3, setup, at, p);
        let all: Vec<[f64; 8]> = (0..sets)
            .map(|_| all_estimates(&cell, &cell.sample(&mut rng)))
            .collect();
        let of = |e: usize| -> Vec<f64> { all.iter().map(|v| v[e]).collect() };
        let mean = |e: usize| {
            let mean = Cell::mean(&of(e));
            // The published means have five digits and the noise of 10⁴ data sets.
            let published = MEANS[e][setup][at][p];
            let noise = 3.0 * mean.error * (f64::from(sets) / 1e4).sqrt();
            mean.beside(published, noise + 1e-5 * published.abs())
        };
        let cells = match chosen {
            None => (0..8).map(mean).collect(),
            Some(e) => {
                let mut sorted = of(e);
                sorted.sort_by(f64::total_cmp);
                let quantile =
                    |q: f64| Cell::plain(sorted[(q * (sorted.len() - 1) as f64).round() as usize]);
                vec![
                    mean(e),
                    quantile(0.05),
                    quantile(0.25),
                    quantile(0.5),
                    quantile(0.75),
                    quantile(0.95),
                ]
            }
        };
        rows.push(Row {
            label: format!("{pi}"),
            cells,
        });
    }
    let (figures, columns) = match chosen {
        None => ("Figures 3 to 34".to_owned(), ESTIMATORS.to_vec()),
        Some(e) => (
            format!("Figure {}, {}", 3 + 4 * e + setup, ESTIMATORS[e]),
            vec!["mean", "5 %", "25 %", "50 %", "75 %", "95 %"],
        ),
    };
    Table {
        title: format!(
            "Kernel paper, {figures}: {}, K = {}",
            SETUPS[setup], CLASSES[at]
        ),
        note: format!(
            "means over {sets} data sets of {N} events; {}; beside: the lines at the means of the paper's figures, 10⁴ data sets",
            words(setup)
        ),
        x: "π",
        columns,
        rows,
        ..Table::default()
    }
}

fn words(setup: usize) -> String {
    let alpha = if setup.is_multiple_of(2) { "1" } else { "0.1" };
    let beta = if setup < 2 {
        "uniform"
    } else {
        "the first class"
    };
    format!("α = {alpha}, β is {beta}")
}

/// The p-values of a data set, in the order of [`TESTS`].
fn p_values(setup: &Setup, v: &Vectors, resamples: u32, seed: u64) -> [f64; 12] {
    let kernels = setup.kernels(v);
    let two = kernels.map(|kernel| {
        let (q, pairs) = (Quadratic::of(v, kernel), Blocks::of(v, kernel, 2));
        let (uq, ul) = (q.unbiased().unwrap_or(0.0), pairs.estimate().unwrap_or(0.0));
        [
            distribution_free::biased_p_value(q.biased(), q.n),
            distribution_free::unbiased_p_value(uq, N),
            distribution_free::unbiased_p_value(ul, N),
            Matrix::of(v, kernel)
                .p_value(resamples, seed)
                .unwrap_or(1.0),
            // The published test divides by the number of pairs.
            block_test(&pairs, 0.0).map_or(1.0, |t| t.1),
        ]
    });
    let mut all = [
        consistency_p(v, Partition::Uniform(10), resamples, seed),
        consistency_p(v, Partition::MedianVariance(5), resamples, seed),
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
    ];
    for k in 0..5 {
        all[2 + 2 * k] = two[0][k];
        all[3 + 2 * k] = two[1][k];
    }
    all
}

fn errors(effort: &Effort, setup: usize, at: usize) -> Table {
    let sets = if effort.quick {
        10
    } else {
        sets(effort, CLASSES[at])
    };
    let resamples = match (effort.grid.long, effort.quick) {
        (true, _) => 1000,
        (_, true) => 60,
        _ => 200,
    };
    let mut rows = Vec::new();
    for p in 0..3 {
        let pi = f64::from(p) / 2.0;
        let cell = Setup::new(setup, at, pi);
        let mut rng = seeded(effort, 35, setup, at, p as usize);
        let mut wrong = [0usize; 12];
        for set in 0..sets {
            let v = cell.sample(&mut rng);
            let all = p_values(&cell, &v, resamples, effort.seed ^ u64::from(set));
            for (wrong, value) in wrong.iter_mut().zip(all) {
                // Where π = 0 a rejection is wrong, elsewhere an acceptance.
                *wrong += usize::from((value <= LEVEL) == (p == 0));
            }
        }
        let one = |(t, &k): (usize, &usize)| {
            let published = ERRORS[t][setup][at][p as usize];
            let noise = 3.0 * (published * (1.0 - published) / 1e4).sqrt();
            Cell::share(k, sets as usize).beside(published, noise + 1e-4)
        };
        rows.push(Row {
            label: format!("{pi}"),
            cells: wrong.iter().enumerate().map(one).collect(),
        });
    }
    Table {
        title: format!(
            "Kernel paper, Figures 35 to 82: {}, K = {}",
            SETUPS[setup], CLASSES[at]
        ),
        note: format!(
            "test errors at level {LEVEL}: type I where π = 0, type II elsewhere; {sets} data sets of {N} events, {resamples} \
             resamples;\n{}; beside: the paper's curves, 10⁴ data sets and 1000 resamples",
            words(setup)
        ),
        x: "π",
        columns: TESTS.to_vec(),
        rows,
        ..Table::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_draws_what_it_names_and_nothing_else() {
        let mut effort = Effort::full(1);
        assert_eq!(jobs(&effort).len(), 16 + 8);
        effort.grid.classes = Some(10);
        effort.grid.setup = Some("sharp-first".to_owned());
        assert_eq!(jobs(&effort).len(), 2);
        effort.grid.estimator = Some("skce-uq-median".to_owned());
        effort.data_sets = 200;
        let tables = jobs(&effort)[0].run(&effort).unwrap();
        assert!(
            tables[0].title.contains("Figure 22,"),
            "{}",
            tables[0].title
        );
        // Three errors of twenty data sets at five points.
        assert_eq!(tables[0].far(), 0, "{}", tables[0].text());
    }
}
