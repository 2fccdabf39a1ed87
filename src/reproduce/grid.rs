//! The kernel paper's Figures 3 to 82: estimates and test errors over a grid of set-ups.
//!
//! A data set has n = 250 predictions from the symmetric Dirichlet(α) over K classes. An outcome is
//! drawn from β with probability π, otherwise from the prediction. Set-ups are α ∈ {1, 0.1} times β
//! uniform or all on the first class.
//!
//! * Figures 3 to 34: eight estimators by four set-ups, each over K ∈ {2, 10, 100, 1000} and π ∈
//!   {0, ¼, ½, ¾, 1}: histograms with a line at the mean, with which ours is compared.
//! * Figures 35 to 82: twelve tests by four set-ups, each over K ∈ {2, 10} and π ∈ {0, ½, 1}:
//!   curves of the test error against the level, here at the [`LEVELS`].
//!
//! Figure 3 + 4·e + s has estimator e at set-up s, and Figure 35 + 4·t + s test t at set-up s, in
//! the order of [`ESTIMATORS`], [`TESTS`] and [`SETUPS`]. Estimators with the median use the median
//! total variation distance as bandwidth; those with the mean use its expectation 2B(Kα,
//! Kα)/(α·B(α, α)·B((K−1)α, (K−1)α)). Binned errors have ten bins per class, or bins of at least
//! five events split by variance at the median.

use super::{Cell, Choice, Effort, Job, Row, Table, draw, published};
use crate::stats::kernel::asymptotic::{Matrix, block_test};
use crate::stats::kernel::binned_tests::{Partition, consistency_p};
use crate::stats::kernel::conditional::draw as draw_class;
use crate::stats::kernel::{Blocks, Kernel, Quadratic, Vectors, binned, distribution_free, phi};
use crate::stats::rng::Rng;

const N: usize = 250;

/// Levels at which errors are drawn and compared with the paper's curves.
pub const LEVELS: [f64; 11] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9];

/// Column names of a test's figure, by π.
const BY_PI: [&str; 3] = ["π = 0", "π = 0.5", "π = 1"];

/// Numbers of classes.
pub const CLASSES: [u32; 4] = [2, 10, 100, 1000];

/// Set-ups: α (flat or sharp), and whether β is uniform or all on the first class.
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

/// Whether figures with this number of classes and this set-up are chosen.
fn takes(chosen: &Choice, classes: u32, setup: usize) -> bool {
    chosen.classes.is_none_or(|k| k == classes)
        && chosen.setup.as_deref().is_none_or(|s| s == SETUPS[setup])
}

/// The chosen figures.
pub fn jobs(effort: &Effort) -> Vec<Job> {
    let chosen = &effort.grid;
    let mut jobs = Vec::new();
    for (setup, named) in SETUPS.iter().enumerate() {
        for (at, classes) in CLASSES.into_iter().enumerate() {
            if !takes(chosen, classes, setup) || (effort.quick && classes > 10) {
                continue;
            }
            // Choosing an estimator omits the tests, and choosing a test omits the estimators.
            if chosen.test.is_none() || chosen.estimator.is_some() {
                let name = format!("kernel paper, Figures 3 to 34, {named}, K = {classes}");
                jobs.push(Job::of(name, move |e| estimates(e, setup, at)));
            }
            if at < 2 && (chosen.estimator.is_none() || chosen.test.is_some()) {
                let name = format!("kernel paper, Figures 35 to 82, {named}, K = {classes}");
                jobs.push(Job::of(name, move |e| errors(e, setup, at)));
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
            // Dirichlet rows sum to 1 within rounding, so no row is refused.
            let _ = v.push(&row, y);
        }
        v
    }

    /// The kernels with the median and the mean bandwidth.
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

/// Number of data sets in the paper's figures.
const OF_PAPER: u32 = 10_000;

fn sets(effort: &Effort, quick: u32) -> u32 {
    effort.sets(if effort.grid.long { OF_PAPER } else { 100 }, quick)
}

fn seeded(effort: &Effort, part: u64, setup: usize, at: usize, pi: usize) -> Rng {
    Rng::new(effort.seed ^ (part << 32) ^ ((setup as u64) << 16) ^ ((at as u64) << 8) ^ pi as u64)
}

fn estimates(effort: &Effort, setup: usize, at: usize) -> Vec<Table> {
    let sets = sets(effort, 60);
    let pis = [0.0, 0.25, 0.5, 0.75, 1.0];
    // For each π, the estimates of each data set.
    let mut drawn: Vec<Vec<[f64; 8]>> = Vec::new();
    for (p, pi) in pis.into_iter().enumerate() {
        let cell = Setup::new(setup, at, pi);
        let mut rng = seeded(effort, 3, setup, at, p);
        let one = |set| {
            let done = p * sets as usize + set as usize;
            effort.progress.of(done, pis.len() * sets as usize);
            all_estimates(&cell, &cell.sample(&mut rng))
        };
        drawn.push((0..sets).map(one).collect());
    }
    let of = |p: usize, e: usize| -> Vec<f64> { drawn[p].iter().map(|v| v[e]).collect() };
    let mean = |p: usize, e: usize| {
        let mean = Cell::mean(&of(p, e));
        // The published means have five digits and the noise of 10⁴ data sets.
        let noise = mean.error * (f64::from(sets) / f64::from(OF_PAPER)).sqrt();
        let name = format!("{}, {}", ESTIMATORS[e], place(setup, at));
        let known = published::number("means", &name, p);
        known.map_or(mean, |p| mean.beside(p, 1e-5 * p.abs()).drawn(noise))
    };
    let table = |figures: String,
                 what: &str,
                 columns: Vec<&'static str>,
                 cells: &dyn Fn(usize) -> Vec<Cell>| {
        let row = |(p, pi): (usize, &f64)| Row::of(pi, cells(p));
        Table {
            title: format!("Kernel paper, {figures}: {}", place(setup, at)),
            note: format!(
                "{what} over {sets} data sets of {N} events; {}; beside: the lines at the means of the paper's figures,\n10⁴ \
                 data sets",
                words(setup)
            ),
            x: "π",
            columns,
            rows: pis.iter().enumerate().map(row).collect(),
            ..Table::default()
        }
    };
    let distribution = |e: usize| {
        let cells = |p: usize| {
            let mut sorted = of(p, e);
            sorted.sort_by(f64::total_cmp);
            let quantiles = QUANTILES.iter().map(|q| Cell::quantile(&sorted, q.1));
            [mean(p, e)].into_iter().chain(quantiles).collect()
        };
        let figure = format!("Figure {}, {}", 3 + 4 * e + setup, ESTIMATORS[e]);
        let columns = ["mean"].into_iter().chain(QUANTILES.map(|q| q.0)).collect();
        table(figure, "mean and quantiles", columns, &cells)
    };
    let chosen = effort.grid.estimator.as_deref();
    if let Some(e) = chosen.and_then(|name| ESTIMATORS.iter().position(|e| *e == name)) {
        return vec![distribution(e)];
    }
    let means = |p: usize| (0..8).map(|e| mean(p, e)).collect();
    let figures = "Figures 3 to 34".to_owned();
    let mut tables = vec![table(figures, "means", ESTIMATORS.to_vec(), &means)];
    if effort.grid.long {
        tables.extend((0..8).map(distribution));
    }
    tables
}

/// Quantiles of a distribution.
const QUANTILES: [(&str, f64); 5] = [
    ("5 %", 0.05),
    ("25 %", 0.25),
    ("50 %", 0.5),
    ("75 %", 0.75),
    ("95 %", 0.95),
];

fn place(setup: usize, at: usize) -> String {
    format!("{}, K = {}", SETUPS[setup], CLASSES[at])
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
    let bins = [Partition::Uniform(10), Partition::MedianVariance(5)];
    std::array::from_fn(|t| match bins.get(t) {
        Some(&bins) => consistency_p(v, bins, resamples, seed),
        None => two[t % 2][t / 2 - 1],
    })
}

fn errors(effort: &Effort, setup: usize, at: usize) -> Vec<Table> {
    let sets = sets(effort, 10);
    let resamples = match (effort.grid.long, effort.quick) {
        (true, _) => 1000,
        (_, true) => 60,
        _ => 200,
    };
    // Numbers of wrong decisions, by π, level and test.
    let mut wrong = [[[0usize; 12]; LEVELS.len()]; 3];
    for (p, wrong) in wrong.iter_mut().enumerate() {
        let cell = Setup::new(setup, at, p as f64 / 2.0);
        let mut rng = seeded(effort, 35, setup, at, p);
        for set in 0..sets {
            let done = p * sets as usize + set as usize;
            effort.progress.of(done, 3 * sets as usize);
            let v = cell.sample(&mut rng);
            let all = p_values(&cell, &v, resamples, effort.seed ^ u64::from(set));
            for (wrong, level) in wrong.iter_mut().zip(LEVELS) {
                for (wrong, value) in wrong.iter_mut().zip(all) {
                    // For π = 0 a rejection is wrong, otherwise an acceptance.
                    *wrong += usize::from((value <= level) == (p == 0));
                }
            }
        }
    }
    let place = place(setup, at);
    let cell = |p: usize, l: usize, t: usize| {
        let share = Cell::share(wrong[p][l][t], sets as usize);
        let name = format!("{}, {place}, {}", TESTS[t], BY_PI[p]);
        let noise = |p: f64| (p * (1.0 - p) / f64::from(OF_PAPER)).sqrt();
        let known = published::number("errors", &name, l);
        known.map_or(share, |p| share.beside(p, 1e-4).drawn(noise(p)))
    };
    let table = |title: String, columns: Vec<&'static str>, cells: &dyn Fn(usize) -> Vec<Cell>| {
        let row = |(l, level): (usize, &f64)| Row::of(level, cells(l));
        Table {
            title,
            note: format!(
                "test errors by level: type I where π = 0, type II elsewhere; {sets} data sets of {N} events, {resamples} \
                 resamples;\n{}; beside: the paper's curves, 10⁴ data sets and 1000 resamples",
                words(setup)
            ),
            x: "level",
            columns,
            rows: LEVELS.iter().enumerate().map(row).collect(),
            ..Table::default()
        }
    };
    let chosen = effort.grid.test.as_deref();
    if let Some(t) = chosen.and_then(|name| TESTS.iter().position(|t| *t == name)) {
        let figure = 35 + 4 * t + setup;
        let title = format!("Kernel paper, Figure {figure}, {}: {place}", TESTS[t]);
        let by_pi = |l: usize| (0..3).map(|p| cell(p, l, t)).collect();
        return vec![table(title, BY_PI.to_vec(), &by_pi)];
    }
    let of = |p: usize| {
        let title = format!("Kernel paper, Figures 35 to 82: {place}, {}", BY_PI[p]);
        let by_test = |l: usize| (0..12).map(|t| cell(p, l, t)).collect();
        table(title, TESTS.to_vec(), &by_test)
    };
    (0..3).map(of).collect()
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
        effort.data_sets = Some(20);
        let tables = jobs(&effort)[0].run(&effort).unwrap();
        let title = &tables[0].title;
        assert!(title.contains("Figure 22,"), "{title}");
        assert!(tables[0].rows.iter().all(|row| row.cells[0].published));
        // Three errors cover the deviations of twenty data sets at five points.
        assert_eq!(tables[0].far(), 0, "{}", tables[0].text());
        // Quantiles have errors.
        assert!(tables[0].rows[2].cells[1..].iter().all(|c| c.error > 0.0));
    }

    #[test]
    fn a_chosen_test_is_drawn_at_every_level() {
        let mut effort = Effort::quick(1);
        effort.grid.classes = Some(2);
        effort.grid.setup = Some("sharp-first".to_owned());
        effort.data_sets = Some(10);
        let tables = jobs(&effort)[1].run(&effort).unwrap();
        assert_eq!(tables.len(), 3);
        effort.grid.test = Some("d-b-mean".to_owned());
        let jobs = jobs(&effort);
        let chosen = &jobs[0].run(&effort).unwrap()[0];
        assert_eq!(jobs.len(), 1);
        let title = &chosen.title;
        assert!(title.contains("Figure 50, d-b-mean"), "{title}");
        assert_eq!(chosen.rows.len(), LEVELS.len());
        // Type I errors rise with the level, and type II errors fall.
        for p in 0..3 {
            let at = |l: usize| chosen.rows[l].cells[p].ours;
            let mut steps = (1..LEVELS.len()).map(|l| at(l) - at(l - 1));
            assert!(steps.all(|d| if p == 0 { d >= 0.0 } else { d <= 0.0 }));
        }
        // Choosing a test does not change the data sets.
        for (l, row) in chosen.rows.iter().enumerate() {
            for (p, cell) in row.cells.iter().enumerate() {
                assert_eq!(*cell, tables[p].rows[l].cells[3]);
                assert!(cell.published);
            }
        }
    }

    #[test]
    fn a_long_run_has_the_distribution_of_every_estimator() {
        let mut effort = Effort::full(1);
        effort.grid.classes = Some(2);
        effort.grid.setup = Some("flat-uniform".to_owned());
        effort.grid.long = true;
        effort.data_sets = Some(5);
        let tables = jobs(&effort)[0].run(&effort).unwrap();
        assert_eq!(tables.len(), 1 + ESTIMATORS.len());
        let title = &tables[8].title;
        assert!(title.contains("Figure 31, skce-ul-mean"), "{title}");
    }
}
