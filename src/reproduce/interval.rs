//! Sun, Chaudhari, Barnett, Dobriban (2024): coverage and power of the 90 % interval (Figures 3 and
//! 5). [`super::lengths`] compares its length with other intervals.
//!
//! The settings are those of the authors' program, n = 1000.
//!
//! * Settings 1 and 2 have two classes. The class-0 probability p is uniform, or Beta(5, ½) for a
//!   class chosen evenly. Its true probability is σ(β logit p), so β = 1 is calibrated. The view is
//!   the top label with 50 cells. Versions of the program before August 2024, with which the
//!   figures were made, have an intercept of 1.
//! * Setting 3 has ten classes, uniform on the simplex. The true probability is β less for the
//!   largest class and β more for the second. The view is the top two with 20 slices.
//!
//! The true squared error is 2β² in setting 3. In the others it is an integral of (q(c) − c)² over
//! the confidence c, because both classes have the same confidences. An error of 0 is covered if
//! the interval contains 0.

use super::draw;
use super::{Cell, Effort, Job, Row, Table};
use crate::stats::estimate::Estimate;
use crate::stats::evaluation::Options;
use crate::stats::interval::{SquaredEnds, squared_ends};
use crate::stats::kernel::Vectors;
use crate::stats::kernel::conditional::draw as draw_class;
use crate::stats::levels::{Level, Levels};
use crate::stats::multiclass::{self, Events, VectorView};
use crate::stats::rng::Rng;
use crate::stats::tcal::{TCalOptions, tcal};

pub(super) const N: usize = 1000;
pub(super) const CONFIDENCE: f64 = 0.9;

/// The tables of coverages.
pub fn jobs() -> Vec<Job> {
    let job = |setting| {
        let name = format!("interval paper, Figures 3 and 5, setting {setting}");
        Job::of(name, move |effort| vec![coverages(effort, setting)])
    };
    (1..=3).map(job).collect()
}

/// Number of steps of β.
pub(super) fn steps(effort: &Effort) -> u32 {
    if effort.quick { 5 } else { 20 }
}

/// β at a step of a setting: from 0 to 1, or to 0.1 in setting 3.
pub(super) fn beta_at(setting: u32, step: u32, steps: u32) -> f64 {
    let share = f64::from(step) / f64::from(steps);
    if setting == 3 { 0.1 * share } else { share }
}

fn coverages(effort: &Effort, setting: u32) -> Table {
    let steps = steps(effort);
    let sets = effort.sets(1000, 200);
    let row = |step| {
        effort.progress.of(step as usize, steps as usize + 1);
        let beta = beta_at(setting, step, steps);
        match setting {
            3 => two_of_ten(effort.seed, beta, sets),
            _ => scalar(effort.seed, setting, beta, sets),
        }
    };
    let rows = (0..=steps).map(row).collect();
    let columns: &[_] = match setting {
        3 => &["coverage", "0 left out"],
        _ => &["coverage", "0 left out", "T-Cal rejects"],
    };
    table(setting, columns, rows, sets)
}

fn table(setting: u32, columns: &[&'static str], rows: Vec<Row>, sets: u32) -> Table {
    Table {
        title: format!("Interval paper, Figures 3 and 5, setting {setting}: the 90 % interval"),
        note: format!(
            "n = {N}, {sets} data sets a point; beside: the nominal level; more is no fault"
        ),
        x: "β (true ℓ2-ECE)",
        columns: columns.to_vec(),
        rows,
        ..Table::default()
    }
}

/// A coverage with the nominal one; only a lower coverage counts as a difference.
fn coverage(hits: usize, sets: u32) -> Cell {
    let cell = Cell::share(hits, sets as usize);
    cell.against(CONFIDENCE, (cell.ours - CONFIDENCE).max(0.0))
}

fn truth(beta: f64, p: f64) -> f64 {
    1.0 / (1.0 + (-beta * (p / (1.0 - p)).ln()).exp())
}

fn first_class(rng: &mut Rng, setting: u32) -> f64 {
    let p = if setting == 1 {
        rng.uniform()
    } else {
        let top = draw::beta(rng, 5.0, 0.5);
        if rng.uniform() < 0.5 { top } else { 1.0 - top }
    };
    p.clamp(1e-12, 1.0 - 1e-12)
}

/// The ℓ2-ECE, by quadrature over p, or over t = √(1−x) for x ~ Beta(5, ½), whose density is smooth
/// in t.
pub(super) fn true_error(setting: u32, beta: f64) -> f64 {
    let off = |c: f64| (truth(beta, c) - c).powi(2);
    let (steps, mut sum, mut mass) = (20_000, 0.0, 0.0);
    for i in 0..steps {
        let t = (f64::from(i) + 0.5) / f64::from(steps);
        let (x, weight) = if setting == 1 {
            (t, 1.0)
        } else {
            (1.0 - t * t, (1.0 - t * t).powi(4))
        };
        sum += weight * off(x.max(1.0 - x));
        mass += weight;
    }
    (sum / mass).sqrt()
}

/// Whether an interval covers the true error; for an error of 0 its own flag decides.
pub(super) fn covers(ends: std::ops::RangeInclusive<f64>, contains_zero: bool, error: f64) -> bool {
    if error < 1e-9 {
        contains_zero
    } else {
        ends.contains(&error)
    }
}

/// The interval as published, with the null given the scores.
pub(super) fn algorithm_1(level: &Level) -> SquaredEnds {
    let (e, alpha) = (Estimate::of(level, N as f64), 1.0 - CONFIDENCE);
    squared_ends(&e, N as f64, alpha, e.null_p_value() > alpha)
}

fn scalar(seed: u64, setting: u32, beta: f64, sets: u32) -> Row {
    let mut rng = Rng::new(seed ^ (u64::from(setting) << 32) ^ (beta * 1000.0) as u64);
    let error = true_error(setting, beta);
    let mut hits = [0; 3];
    let options = TCalOptions {
        alpha: 1.0 - CONFIDENCE,
        ..Options::default().tcal
    };
    for _ in 0..sets {
        let sample = scalar_sample(&mut rng, setting, beta);
        let level = Level::from_scores(&sample, 50);
        let i = algorithm_1(&level);
        let rejects = tcal(&Levels::from_scores(&sample, 12), &options).reject;
        let seen = [
            covers(i.lower.sqrt()..=i.upper.sqrt(), i.contains_zero, error),
            !i.contains_zero,
            rejects,
        ];
        hits.iter_mut()
            .zip(seen)
            .for_each(|(hit, s)| *hit += usize::from(s));
    }
    let share = |k: usize| Cell::share(k, sets as usize);
    let cells = vec![coverage(hits[0], sets), share(hits[1]), share(hits[2])];
    Row::of(format!("{beta:.2} ({error:.4})"), cells)
}

pub(super) fn scalar_sample(rng: &mut Rng, setting: u32, beta: f64) -> Vec<(f64, bool)> {
    let mut one = || {
        let p = first_class(rng, setting);
        let first = rng.uniform() < truth(beta, p);
        (p.max(1.0 - p), first == (p >= 0.5))
    };
    (0..N).map(|_| one()).collect()
}

fn two_of_ten(seed: u64, beta: f64, sets: u32) -> Row {
    let mut rng = Rng::new(seed ^ (3 << 32) ^ (beta * 10_000.0) as u64);
    let error = beta * std::f64::consts::SQRT_2;
    let mut hits = [0; 2];
    for _ in 0..sets {
        let events = vector_events(&mut rng, beta);
        let Some(i) = multiclass::interval(&events, 20, CONFIDENCE) else {
            continue;
        };
        hits[0] += usize::from(covers(i.lower..=i.upper, i.contains_zero, error));
        hits[1] += usize::from(!i.contains_zero);
    }
    let cells = vec![coverage(hits[0], sets), Cell::share(hits[1], sets as usize)];
    Row::of(format!("{beta:.3} ({error:.4})"), cells)
}

/// A data set of setting 3, reduced to the top two classes.
pub(super) fn vector_events(rng: &mut Rng, beta: f64) -> Events {
    let mut sample = Vectors::new(10);
    let mut row = [0.0; 10];
    while sample.len() < N {
        draw::dirichlet(rng, 1.0, &mut row);
        let mut order: Vec<usize> = (0..10).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        let mut truth = row;
        truth[order[0]] -= beta;
        truth[order[1]] += beta;
        let y = draw_class(&truth, rng.uniform());
        // Dirichlet rows sum to 1 within rounding, so no row is refused.
        let _ = sample.push(&row, y);
    }
    Events::of(&sample, VectorView::TopK(2))
}
