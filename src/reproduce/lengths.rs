//! The interval paper's Figure 4, and the power of the other intervals of its Figure 5.
//!
//! For each setting and β the same data sets pass through four intervals: ours (Algorithm 1 with
//! the null given the scores), bootstrap, subsampling and HulC. Figure 4 has mean lengths on the
//! scale of the squared error, and their ratios to ours; a third table has coverage and the share
//! of intervals whose lower end is above 0, which is the power of Figure 5.
//!
//! The authors' program draws its subsets with replacement and adds the scaled quantiles to the
//! estimate; ours draw without replacement and subtract them, as Politis and Romano (1994) do.
//! Lengths have the same law, except for events that are drawn twice; coverage and power have not.

use super::interval::{
    CONFIDENCE, N, algorithm_1, beta_at, covers, scalar_sample, steps, true_error, vector_events,
};
use super::{Cell, Effort, Job, Row, Table};
use crate::stats::comparison::intervals::Cut;
use crate::stats::levels::Level;
use crate::stats::multiclass::{self, cell::Name};
use crate::stats::rng::Rng;
use std::collections::BTreeMap;

const COLUMNS: [&str; 4] = ["ours", "bootstrap", "subsampling", "HulC"];

/// Slices of the top two in setting 3; cells of the other settings.
const SLICES: u32 = 20;
const CELLS: u32 = 50;

/// One interval on the squared scale.
struct One {
    lower: f64,
    upper: f64,
    zero: bool,
}

/// Sums over data sets for one method.
#[derive(Default, Clone)]
struct Sums {
    lengths: Vec<f64>,
    covered: usize,
    powerful: usize,
}

/// The tables of all settings.
pub fn jobs() -> Vec<Job> {
    let job = |setting| {
        let name = format!("interval paper, Figure 4, setting {setting}");
        Job::of(name, move |effort| run(effort, setting))
    };
    (1..=3).map(job).collect()
}

/// The tables of a setting.
fn run(effort: &Effort, setting: u32) -> Vec<Table> {
    let sets = effort.sets(200, 10);
    let draws = if effort.quick { (60, 100) } else { (200, 500) };
    let steps = steps(effort);
    let mut rows = [Vec::new(), Vec::new(), Vec::new()];
    for step in (0..=steps).step_by(if effort.quick { 2 } else { 1 }) {
        effort.progress.of(step as usize, steps as usize + 1);
        let beta = beta_at(setting, step, steps);
        let error = match setting {
            3 => beta * std::f64::consts::SQRT_2,
            _ => true_error(setting, beta),
        };
        let mut rng =
            Rng::new(effort.seed ^ (4 << 32) ^ (u64::from(setting) << 16) ^ u64::from(step));
        let mut all = vec![Sums::default(); 4];
        for _ in 0..sets {
            let Some(found) = four(&mut rng, setting, beta, draws) else {
                continue;
            };
            for (sums, i) in all.iter_mut().zip(found) {
                sums.lengths.push(i.upper - i.lower);
                let ends = i.lower.max(0.0).sqrt()..=i.upper.max(0.0).sqrt();
                sums.covered += usize::from(covers(ends, i.zero, error));
                sums.powerful += usize::from(!i.zero);
            }
        }
        let label = format!("{beta:.3} ({error:.4})");
        let means: Vec<Cell> = all.iter().map(|s| Cell::mean(&s.lengths)).collect();
        let ratio = |c: &Cell| {
            let value = c.ours / means[0].ours;
            let relative = (c.error / c.ours).hypot(means[0].error / means[0].ours);
            Cell::plain(value).with_error(value * relative)
        };
        let ratios = means.iter().skip(1).map(ratio).collect();
        let sets = sets as usize;
        let covered = all.iter().map(|s| Cell::share(s.covered, sets));
        let powers = all.iter().map(|s| Cell::share(s.powerful, sets));
        let both = covered.chain(powers).collect();
        for (rows, cells) in rows.iter_mut().zip([means, ratios, both]) {
            rows.push(Row::of(&label, cells));
        }
    }
    let [lengths, ratios, both] = rows;
    let table = |what: &str, columns: &[&'static str], rows| Table {
        title: format!("Interval paper, {what}, setting {setting}"),
        note: format!(
            "n = {N}, {sets} data sets a point, 90 % intervals, {} resamples of the bootstrap and {} subsets; the paper's \
             figure\nhas no numbers to read; its program adds the quantiles of subsampling where ours subtracts them",
            draws.0, draws.1
        ),
        x: "β (true ℓ2-ECE)",
        columns: columns.to_vec(),
        rows,
        ..Table::default()
    };
    vec![
        table(
            "Figure 4: lengths of intervals for the squared error",
            &COLUMNS,
            lengths,
        ),
        table("Figure 4: lengths divided by ours", &COLUMNS[1..], ratios),
        table(
            "Figures 3 and 5 of other intervals: coverage and power",
            &[
                "coverage: ours",
                "bootstrap",
                "subsampling",
                "HulC",
                "power: ours",
                "bootstrap",
                "subsampling",
                "HulC",
            ],
            both,
        ),
    ]
}

/// The four intervals of one data set.
fn four(rng: &mut Rng, setting: u32, beta: f64, draws: (u32, u32)) -> Option<[One; 4]> {
    let (own, cut) = if setting == 3 {
        let events = vector_events(rng, beta);
        let i = multiclass::interval(&events, SLICES, CONFIDENCE)?;
        let mut numbers: BTreeMap<Name, u32> = BTreeMap::new();
        let (mut cells, mut residuals) = (Vec::new(), Vec::new());
        for e in 0..events.len() {
            let next = numbers.len() as u32;
            let name = Name::cube(events.point(e), SLICES);
            cells.push(*numbers.entry(name).or_insert(next));
            let label = events.label(e);
            residuals.extend(
                (0..)
                    .zip(events.point(e))
                    .map(|(k, z)| f64::from(u8::from(label == k)) - z),
            );
        }
        let cut = Cut::of_vectors(cells, residuals, events.dimension)?;
        let own = One {
            lower: i.lower * i.lower,
            upper: i.upper * i.upper,
            zero: i.contains_zero,
        };
        (own, cut)
    } else {
        let sample = scalar_sample(rng, setting, beta);
        let level = Level::from_scores(&sample, u64::from(CELLS));
        let i = algorithm_1(&level);
        let own = One {
            lower: i.lower,
            upper: i.upper,
            zero: i.contains_zero,
        };
        (own, Cut::new(&sample, CELLS)?)
    };
    let one = |(lower, upper): (f64, f64)| One {
        lower,
        upper,
        zero: lower <= 0.0,
    };
    Some([
        own,
        one(cut.bootstrap_squared(draws.0, CONFIDENCE, rng)),
        one(cut.subsampling_squared(draws.1, CONFIDENCE, rng)),
        one(cut.hulc_squared(draws.1, CONFIDENCE, rng)),
    ])
}
