//! Widmann, Lindsten, Zachariah (2019), Figures 1 and 2, networks on CIFAR-10 (83, 84) and times
//! (85).
//!
//! A data set has n = 250 predictions from Dirichlet(0.1) over ten classes. M1 is calibrated, M2
//! sets half of the outcomes to class 1, and the outcomes of M3 are uniform. The tests use the
//! total variation kernel with the median heuristic, a binned error with 10 cells per class, and
//! 1000 bootstrap resamples (200 in a quick run). Published are means and rejection rates at 0.05
//! over 10⁴ data sets.

use super::draw;
use super::{Cell, Effort, Job, Row, Table, grid, published};
use crate::stats::kernel::asymptotic::{Matrix, block_test};
use crate::stats::kernel::binned_tests::{Partition, consistency_p};
use crate::stats::kernel::conditional::{self, draw as draw_class};
use crate::stats::kernel::{Blocks, Kernel, Quadratic, Vectors, binned, distribution_free, phi};
use crate::stats::rng::Rng;
use std::path::Path;

const N: usize = 250;
const ALPHA: f64 = 0.05;

/// The figures; those of networks only if the data folder is given. If a part of the grid is
/// chosen, only that part.
pub fn jobs(effort: &Effort) -> Vec<Job> {
    if effort.grid.is_some() {
        return grid::jobs(effort);
    }
    let mut jobs = vec![
        Job::of("kernel paper, Figures 1 and 2", figures).long(),
        Job::reading("kernel paper, Figures 83 and 84", |effort| {
            match &effort.data {
                Some(data) => networks(&data.join("cifar10_multiclass"), effort),
                None => Ok(Vec::new()),
            }
        }),
        Job::of("kernel paper, Figure 85", |effort| vec![times(effort)]),
    ];
    jobs.extend(grid::jobs(effort));
    jobs
}

fn figures(effort: &Effort) -> Vec<Table> {
    let sets = effort.sets(1000, 160);
    let resamples = if effort.quick { 200 } else { 1000 };
    let (mut means, mut rates) = (Vec::new(), Vec::new());
    let known = published::rows("estimates").zip(published::rows("rejections"));
    for (model, (estimates, rejections)) in known.enumerate() {
        let mut rng = Rng::new(effort.seed ^ ((model as u64) << 40));
        let mut drawn: [Vec<f64>; 4] = Default::default();
        let mut rejected = [0usize; 6];
        for set in 0..sets {
            let (done, all) = (model * sets as usize + set as usize, 3 * sets as usize);
            effort.progress.of(done, all);
            let one = data_set(&mut rng, model, resamples, u64::from(set));
            drawn.iter_mut().zip(one.0).for_each(|(d, v)| d.push(v));
            rejected
                .iter_mut()
                .zip(one.1)
                .for_each(|(r, p)| *r += usize::from(p <= ALPHA));
        }
        let digits = [5e-6, 5e-7, 2e-6, 5e-5];
        let mean = drawn.iter().zip(estimates.numbers.iter().zip(digits));
        let mean = mean.map(|(d, (&p, digit))| {
            let mean = Cell::mean(d);
            let error = mean.error * (f64::from(sets) / 1e4).sqrt();
            mean.beside(p, digit).drawn(error)
        });
        means.push(Row::of(estimates.name, mean.collect()));
        let share = |k: usize| Cell::share(k, sets as usize);
        let beside = rejected.iter().zip(&rejections.numbers).map(|(&k, &p)| {
            let error = (p * (1.0 - p) / 1e4_f64).sqrt();
            share(k).beside(p, 5e-4).drawn(error)
        });
        let cells = beside.chain([share(rejected[5])]).collect();
        rates.push(Row::of(estimates.name, cells));
    }
    let note = format!("n = {N}, {sets} data sets; beside: means over 10⁴ data sets");
    vec![
        table(
            "Figure 1: estimates",
            &note,
            &["binned ECE", "SKCE biased", "SKCE unbiased", "SKCE linear"],
            means,
        ),
        table(
            "Figure 2: rejection rates at 0.05",
            &format!("{note}; the last column is ours, given the predictions"),
            &["D_b", "D_uq", "D_ul", "A_uq", "A_l", "conditional"],
            rates,
        ),
    ]
}

fn table(title: &str, note: &str, columns: &[&'static str], rows: Vec<Row>) -> Table {
    Table {
        title: format!("Kernel paper, {title}"),
        note: note.to_owned(),
        x: "model",
        columns: columns.to_vec(),
        rows,
        ..Table::default()
    }
}

/// Estimates and p-values of one data set, in the order of the columns.
fn data_set(rng: &mut Rng, model: usize, resamples: u32, seed: u64) -> ([f64; 4], [f64; 6]) {
    let mut v = Vectors::new(10);
    let mut row = [0.0; 10];
    while v.len() < N {
        draw::dirichlet(rng, 0.1, &mut row);
        let y = match model {
            1 if rng.uniform() < 0.5 => 0,
            2 => (rng.uniform() * 10.0) as u32,
            _ => draw_class(&row, rng.uniform()),
        };
        // Dirichlet rows sum to 1 within rounding, so no row is refused.
        let _ = v.push(&row, y);
    }
    let nu = phi::median_bandwidth(&v).unwrap_or(1.0);
    let kernel = Kernel::TotalVariation { nu };
    let (q, pairs) = (Quadratic::of(&v, kernel), Blocks::of(&v, kernel, 2));
    let unbiased = q.unbiased().unwrap_or(0.0);
    let linear = pairs.estimate().unwrap_or(0.0);
    let p_values = [
        distribution_free::biased_p_value(q.biased(), q.n),
        distribution_free::unbiased_p_value(unbiased, N),
        distribution_free::unbiased_p_value(linear, N),
        Matrix::of(&v, kernel)
            .p_value(resamples, seed)
            .unwrap_or(1.0),
        // The published test divides by the number of pairs.
        block_test(&pairs, 0.0).map_or(1.0, |t| t.1),
        conditional::biased_p_value(&q).unwrap_or(1.0),
    ];
    let ece = binned::ece(&v, &binned::uniform(&v, 10));
    ([ece, q.biased(), unbiased, linear], p_values)
}

fn networks(folder: &Path, effort: &Effort) -> Result<Vec<Table>, String> {
    let resamples = if effort.quick { 20 } else { 200 };
    let (mut estimates, mut tests) = (Vec::new(), Vec::new());
    let known = published::rows("network estimates").zip(published::rows("network tests"));
    for (values, p_values) in known {
        let name = values.name;
        let v = network(folder, name)?;
        let nu = phi::median_bandwidth(&v).unwrap_or(1.0);
        let kernel = Kernel::TotalVariation { nu };
        let (q, pairs) = (Quadratic::of(&v, kernel), Blocks::of(&v, kernel, 2));
        let (unbiased, linear) = (q.unbiased().unwrap_or(0.0), pairs.estimate().unwrap_or(0.0));
        let ours = [
            binned::ece(&v, &binned::uniform(&v, 10)),
            binned::ece(&v, &binned::median_variance(&v, 100)),
            q.biased(),
            unbiased,
            linear,
        ];
        let cell = |(o, p): (f64, &f64)| Cell::plain(o).beside(*p, 1e-9 * p.abs());
        let cells = ours.into_iter().zip(&values.numbers).map(cell);
        estimates.push(Row::of(name, cells.collect()));
        let half = (v.len() / 2) as f64;
        let ours = [
            consistency_p(&v, Partition::Uniform(10), resamples, effort.seed),
            consistency_p(&v, Partition::MedianVariance(100), resamples, effort.seed),
            distribution_free::biased_p_value(q.biased(), q.n),
            // The published values apply the bound to negative estimates too.
            distribution_free::tail(unbiased, half),
            distribution_free::tail(linear, half),
            block_test(&pairs, 0.0).map_or(1.0, |t| t.1),
        ];
        let mut cells: Vec<Cell> = ours.into_iter().zip(&p_values.numbers).map(cell).collect();
        cells.push(Cell::plain(conditional::biased_p_value(&q).unwrap_or(1.0)));
        tests.push(Row::of(name, cells));
    }
    let columns = [
        "ECE uniform",
        "ECE dynamic",
        "SKCE biased",
        "SKCE unbiased",
        "SKCE linear",
    ];
    let note = "10⁴ images, nothing is drawn; beside: the stored values that the figure draws; marked beyond 1e-9 \
                relative; four of its\nfourteen networks";
    let test_note = format!(
        "10⁴ images, {resamples} resamples of C; beside: the stored values that the figure draws, with 1000; marked beyond 1e-9 \
         relative. A_uq\nneeds the matrix of all pairs, 800 MB, and is left out; its published p-values are 0. Last: ours, given \
         the predictions"
    );
    Ok(vec![
        table(
            "Figure 83: estimates of networks on CIFAR-10",
            note,
            &columns,
            estimates,
        ),
        table(
            "Figure 84: p-values of networks on CIFAR-10",
            &test_note,
            &[
                "C uniform",
                "C dynamic",
                "D_b",
                "D_uq",
                "D_ul",
                "A_l",
                "conditional",
            ],
            tests,
        ),
    ])
}

fn network(folder: &Path, name: &str) -> Result<Vectors, String> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|e| format!("cannot read {} ({e})", path.display()))
    };
    let (labels, text) = (read("labels.csv")?, read(&format!("{name}.csv"))?);
    let mut v = Vectors::new(10);
    for (i, (row, label)) in text.lines().zip(labels.lines()).enumerate() {
        let row: Result<Vec<f64>, _> = row.split(',').map(str::parse).collect();
        let label = label.trim().parse::<f64>().map(|l| l as u32);
        let pushed = match (row, label) {
            (Ok(row), Ok(label)) if label >= 1 => v.push(&row, label - 1).is_ok(),
            _ => false,
        };
        if !pushed {
            return Err(format!(
                "{name}.csv:{}: no vector of ten classes with its label",
                i + 1
            ));
        }
    }
    Ok(v)
}

/// Figure 85: time of the estimators at n = 1000 on the machine that runs this.
fn times(effort: &Effort) -> Table {
    let n = if effort.quick { 100 } else { 1000 };
    let mut rng = Rng::new(effort.seed ^ 0x8500);
    let mut rows = Vec::new();
    for (classes, printed) in grid::CLASSES.into_iter().zip(published::rows("seconds")) {
        let classes = classes as usize;
        if effort.quick && classes > 100 {
            continue;
        }
        let mut v = Vectors::new(classes);
        let mut row = vec![0.0; classes];
        while v.len() < n {
            draw::dirichlet(&mut rng, 1.0, &mut row);
            // Dirichlet rows sum to 1 within rounding, so no row is refused.
            let _ = v.push(&row, draw_class(&row, rng.uniform()));
        }
        let kernel = |v: &Vectors| Kernel::TotalVariation {
            nu: phi::median_bandwidth(v).unwrap_or(1.0),
        };
        let fixed = kernel(&v);
        let estimators: [&dyn Fn() -> f64; 5] = [
            &|| binned::ece(&v, &binned::uniform(&v, 10)),
            &|| binned::ece(&v, &binned::median_variance(&v, 5)),
            &|| Quadratic::of(&v, kernel(&v)).biased(),
            &|| Quadratic::of(&v, kernel(&v)).unbiased().unwrap_or(0.0),
            &|| Blocks::of(&v, fixed, 2).estimate().unwrap_or(0.0),
        ];
        // The paper's times are of another machine, so they are shown but not compared.
        let cell = |(f, paper): (&&dyn Fn() -> f64, &f64)| {
            Cell::plain(shortest(f)).beside(*paper, f64::INFINITY)
        };
        let cells = estimators.iter().zip(&printed.numbers).map(cell);
        rows.push(Row::of(printed.name, cells.collect()));
    }
    let names = ["ECE uniform", "ECE dynamic", "SKCE_b", "SKCE_uq", "SKCE_ul"];
    table(
        "Figure 85: seconds an estimate",
        &format!(
            "shortest of three runs on one data set of {n} events, on this machine; beside: the paper's, at n = 1000 on another \
             machine.\nSKCE_b and SKCE_uq include the median bandwidth, SKCE_ul does not"
        ),
        &names,
        rows,
    )
}

/// Duration in seconds of the fastest of three runs.
fn shortest(f: &dyn Fn() -> f64) -> f64 {
    let one = |_| {
        let begun = std::time::Instant::now();
        std::hint::black_box(f());
        begun.elapsed().as_secs_f64()
    };
    (0..3).map(one).fold(f64::MAX, f64::min)
}
