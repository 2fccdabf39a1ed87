//! Sun, Chaudhari, Barnett, Dobriban (2024): coverage and power of the 90 % interval (Figures 3 and
//! 5), and the coverage of other intervals, whose lengths are the paper's Figure 4.
//!
//! The settings are those of the authors' program, n = 1000.
//!
//! * Settings 1 and 2 have two classes. The class-0 probability p is uniform, or Beta(5, ½) for a
//!   class chosen evenly. Its true probability is σ(β logit p), so β = 1 is calibrated. The view is
//!   the top label with 50 cells. Versions of the program before August 2024, when the figures were
//!   made, have an intercept of 1.
//! * Setting 3 has ten classes, uniform on the simplex. The true probability is β less for the
//!   largest class and β more for the second. The view is the top two with 20 slices.
//!
//! The true squared error is 2β² in setting 3. In the others it is an integral of (q(c) − c)² over
//! the confidence c, since both classes have the same confidences. Where the error is 0, the
//! interval covers it if it contains 0.

use super::draw;
use super::{Cell, Effort, Row, Table};
use crate::stats::comparison::intervals::Cut;
use crate::stats::evaluation::Options;
use crate::stats::interval::{self, NullReach};
use crate::stats::kernel::Vectors;
use crate::stats::kernel::conditional::draw as draw_class;
use crate::stats::levels::{Level, Levels};
use crate::stats::multiclass::{self, Events, VectorView};
use crate::stats::rng::Rng;
use crate::stats::tcal::{TCalOptions, tcal};

const N: usize = 1000;
const CONFIDENCE: f64 = 0.9;

/// The tables of coverages.
pub fn run(effort: &Effort) -> Vec<Table> {
    let steps: u32 = if effort.quick { 5 } else { 20 };
    let sets = effort.data_sets * if effort.quick { 5 } else { 1 };
    let mut tables = Vec::new();
    for setting in 1..=2 {
        let mut rows = Vec::new();
        for step in 0..=steps {
            let beta = f64::from(step) / f64::from(steps);
            rows.push(scalar(effort.seed, setting, beta, sets));
        }
        let columns = ["coverage", "0 left out", "T-Cal rejects"];
        tables.push(table(setting, &columns, rows, sets));
    }
    tables.push(compared(effort));
    let mut rows = Vec::new();
    for step in 0..steps {
        rows.push(two_of_ten(
            effort.seed,
            0.1 * f64::from(step) / f64::from(steps),
            sets,
        ));
    }
    tables.push(table(3, &["coverage"], rows, sets));
    tables
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
    }
}

/// A coverage beside the nominal one; only a lower coverage counts as a difference.
fn coverage(hits: usize, sets: u32) -> Cell {
    let cell = Cell::share(hits, sets as usize);
    cell.beside(CONFIDENCE, (cell.ours - CONFIDENCE).max(0.0))
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
fn true_error(setting: u32, beta: f64) -> f64 {
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
fn covers(ends: std::ops::RangeInclusive<f64>, contains_zero: bool, error: f64) -> bool {
    if error < 1e-9 {
        contains_zero
    } else {
        ends.contains(&error)
    }
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
        let i = interval::interval(&level, N as f64, CONFIDENCE, NullReach::Conditional);
        let rejects = tcal(&Levels::from_scores(&sample, 12), &options).reject;
        let seen = [
            covers(i.lower..=i.upper, i.contains_zero, error),
            !i.contains_zero,
            rejects,
        ];
        hits.iter_mut()
            .zip(seen)
            .for_each(|(hit, s)| *hit += usize::from(s));
    }
    let share = |k: usize| Cell::share(k, sets as usize);
    Row {
        label: format!("{beta:.2} ({error:.4})"),
        cells: vec![coverage(hits[0], sets), share(hits[1]), share(hits[2])],
    }
}

/// Coverage of the intervals of the paper's Figure 4, which compares their lengths, in setting 1.
fn compared(effort: &Effort) -> Table {
    let sets = if effort.quick { effort.data_sets } else { 300 };
    let (bootstraps, subsets) = if effort.quick { (100, 200) } else { (200, 500) };
    let mut rows = Vec::new();
    for step in 0..=4 {
        let beta = f64::from(step) / 4.0;
        let mut rng = Rng::new(effort.seed ^ (4 << 32) ^ step as u64);
        let error = true_error(1, beta);
        let mut hits = [0; 4];
        for _ in 0..sets {
            let sample = scalar_sample(&mut rng, 1, beta);
            let level = Level::from_scores(&sample, 50);
            let own = interval::interval(&level, N as f64, CONFIDENCE, NullReach::Conditional);
            let Some(cut) = Cut::new(&sample, 50) else {
                continue;
            };
            let seen = [
                covers(own.lower..=own.upper, own.contains_zero, error),
                cut.bootstrap(bootstraps, CONFIDENCE, &mut rng)
                    .contains(error),
                cut.subsampling(subsets, CONFIDENCE, &mut rng)
                    .contains(error),
                cut.hulc(subsets, CONFIDENCE, &mut rng).contains(error),
            ];
            hits.iter_mut()
                .zip(seen)
                .for_each(|(hit, s)| *hit += usize::from(s));
        }
        let others = hits[1..].iter().map(|&h| Cell::share(h, sets as usize));
        let cells = [coverage(hits[0], sets)]
            .into_iter()
            .chain(others)
            .collect();
        rows.push(Row {
            label: format!("{beta:.2} ({error:.4})"),
            cells,
        });
    }
    let columns = ["ours", "bootstrap", "subsampling", "HulC"];
    Table {
        title: "Interval paper, setting 1: coverage of the 90 % interval and of others".to_owned(),
        note: format!(
            "n = {N}, {sets} data sets a point; beside: the nominal level. The paper's Figure 4 compares the same \
             intervals\nby length and by ratio of lengths, in three settings; this is their coverage in one"
        ),
        ..table(1, &columns, rows, sets)
    }
}

fn scalar_sample(rng: &mut Rng, setting: u32, beta: f64) -> Vec<(f64, bool)> {
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
    let mut hits = 0;
    for _ in 0..sets {
        let mut sample = Vectors::new(10);
        let mut row = [0.0; 10];
        while sample.len() < N {
            draw::dirichlet(&mut rng, 1.0, &mut row);
            let mut order: Vec<usize> = (0..10).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
            let mut truth = row;
            truth[order[0]] -= beta;
            truth[order[1]] += beta;
            let y = draw_class(&truth, rng.uniform());
            // Dirichlet rows sum to 1 within rounding, so none is refused.
            let _ = sample.push(&row, y);
        }
        let events = Events::of(&sample, VectorView::TopK(2));
        let covers = multiclass::interval(&events, 20, CONFIDENCE)
            .is_some_and(|i| covers(i.lower..=i.upper, i.contains_zero, error));
        hits += usize::from(covers);
    }
    Row {
        label: format!("{beta:.3} ({error:.4})"),
        cells: vec![coverage(hits, sets)],
    }
}
