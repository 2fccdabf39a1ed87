//! Błasiok, Gopalan, Hu, Nakkiran (2023), section 10: the measures on a family of known
//! miscalibration.
//!
//! f is uniform, y ~ Bernoulli(f), and the prediction is f^β/(f^β + (1−f)^β) with T = 1/β. It is
//! over-confident below T = 1, calibrated at 1 and under-confident above. The paper has only plots.
//! The numbers beside ours are means of three trials of an independent program (numpy, HiGHS), with
//! four digits; their error equals that of three of our trials.

use super::{Cell, Effort, Job, Row, Table};
use crate::stats::distance::{Extent, binned, of_scores};
use crate::stats::estimator::ece_l1;
use crate::stats::levels::Level;
use crate::stats::rng::Rng;

/// T, with smCE, kCE, SintCE, the binned error of 20 cells and the lower distance at N = 10⁴.
const REFERENCE: [(f64, [f64; 5]); 5] = [
    (0.25, [0.0718, 0.0811, 0.1761, 0.1651, 0.0747]),
    (0.5, [0.0368, 0.0422, 0.1076, 0.0955, 0.0388]),
    (1.0, [0.0046, 0.0043, 0.0411, 0.0155, 0.0043]),
    (2.0, [0.0197, 0.0320, 0.1088, 0.0987, 0.0259]),
    (10.0, [0.0121, 0.0379, 0.2232, 0.2186, 0.0186]),
];

/// Sizes of Figure 2: top row, bottom row.
const SIZES: [usize; 2] = [10_000, 1000];

/// The measures at both sizes.
pub fn jobs() -> Vec<Job> {
    let job = |n| Job::of(format!("distance paper, N = {n}"), move |e| vec![run(e, n)]);
    SIZES.map(job).into()
}

fn run(effort: &Effort, n: usize) -> Table {
    let trials = u64::from(effort.sets(50, 10));
    let mut rng = Rng::new(effort.seed ^ ((n as u64) << 20));
    let mut rows = Vec::new();
    for (at, (t, published)) in REFERENCE.into_iter().enumerate() {
        effort.progress.of(at, REFERENCE.len());
        let mut drawn: [Vec<f64>; 7] = Default::default();
        for trial in 0..trials {
            let sample = sample(&mut rng, t, n);
            let Some(d) = of_scores(&sample, Extent::All) else {
                continue;
            };
            let terms = binned::sampled(&sample, 1.0, 10 * n, effort.seed ^ trial);
            let binned = ece_l1(&Level::from_scores(&sample, 20));
            let values = [
                d.smooth,
                d.laplace.error(),
                d.surrogate,
                binned,
                d.lower.map_or(0.0, |l| l.value),
                binned + 0.05,
                terms.squared.max(0.0).sqrt(),
            ];
            drawn.iter_mut().zip(values).for_each(|(d, v)| d.push(v));
        }
        let cell = |(at, d): (usize, &Vec<f64>)| {
            let mean = Cell::mean(d);
            let known = published.get(at).filter(|_| n == SIZES[0]);
            let error = mean.error * (d.len() as f64 / 3.0).sqrt();
            known.map_or(mean, |p| mean.against(*p, 5e-5).drawn(error))
        };
        rows.push(Row::of(t, drawn.iter().enumerate().map(cell).collect()));
    }
    let names = [
        "smooth",
        "Laplace kernel",
        "surrogate interval",
        "binned, 20 cells",
        "lower distance",
        "binned with width",
        "kernel, 10N terms",
    ];
    let row = if n == SIZES[0] { "top" } else { "bottom" };
    Table {
        title: format!("Distance paper, Figure 2, {row} row: measures of the family D_β, N = {n}"),
        note: format!(
            "N = {n}, {trials} trials; beside, where N = 10⁴: an independent program, three trials (the paper has plots only); the sampled \
             kernel\nerror is the root of the mean of 10N random terms, 0 where that is negative"
        ),
        x: "temperature T = 1/β",
        columns: names.to_vec(),
        rows,
        ..Table::default()
    }
}

fn sample(rng: &mut Rng, t: f64, n: usize) -> Vec<(f64, bool)> {
    let mut one = || {
        let f = rng.uniform();
        let (a, b) = (f.powf(1.0 / t), (1.0 - f).powf(1.0 / t));
        (a / (a + b), rng.uniform() < f)
    };
    (0..n).map(|_| one()).collect()
}
