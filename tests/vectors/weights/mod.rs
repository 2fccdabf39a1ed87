//! Vector views of weighted events: the null is the law of all outcomes, the tests keep their level
//! and have power under uneven weights, and windows, files, joins and restarts give one and the
//! same answer.
//!
//! `TRUELINE_DATA_SETS=4000` runs level and coverage at the size of the bars themselves.

mod evaluations;
mod levels;
mod windows;

use crate::support::random::vector;
use trueline::stats::kernel::Vectors;
use trueline::stats::kernel::conditional::draw;
use trueline::stats::multiclass::sums::Shape;
use trueline::stats::multiclass::{Evaluation, VectorSums, VectorView, evaluate_sums};
use trueline::stats::rng::Rng;
use trueline::stats::weight::Weight;

/// Events of some classes with weights.
#[derive(Clone)]
struct Sample {
    all: Vectors,
    weights: Vec<f64>,
}

/// The weight of an event that is kept, or `None`: given the prediction it has nothing to do with
/// what happens.
type Law = fn(&mut Rng, &[f64]) -> Option<f64>;

/// Log-normal, coefficient of variation 1.3, whatever the prediction.
fn heavy(rng: &mut Rng, _: &[f64]) -> Option<f64> {
    Some(rng.normal().exp())
}

/// Where class 0 is likely one in ten is kept, and has ten times the weight.
fn tiers(rng: &mut Rng, p: &[f64]) -> Option<f64> {
    let chance = if p[0] > 0.4 { 0.1 } else { 1.0 };
    (rng.uniform() < chance).then_some(0.2 / chance)
}

const LAWS: [(&str, Law); 2] = [("log-normal", heavy), ("tiers", tiers)];

/// Names a class when a prediction was made.
type Truth = fn(&mut Rng, &[f64]) -> u32;

fn calibrated(rng: &mut Rng, p: &[f64]) -> u32 {
    draw(p, rng.uniform())
}

/// Where class 0 is likely a share of what would have been it is class 1.
fn moved(rng: &mut Rng, p: &[f64], share: f64) -> u32 {
    let y = draw(p, rng.uniform());
    let moves = p[0] > 0.4 && y == 0 && rng.uniform() < share;
    if moves { 1 } else { y }
}

fn overdone(rng: &mut Rng, p: &[f64]) -> u32 {
    moved(rng, p, 0.2)
}

fn overdone_by_half(rng: &mut Rng, p: &[f64]) -> u32 {
    moved(rng, p, 0.5)
}

fn sample(classes: usize, n: usize, law: Law, truth: Truth, seed: u64) -> Sample {
    let mut rng = Rng::new(seed);
    let mut out = Sample {
        all: Vectors::new(classes),
        weights: Vec::new(),
    };
    while out.weights.len() < n {
        let p = vector(&mut rng, classes);
        let Some(w) = law(&mut rng, &p) else { continue };
        let y = truth(&mut rng, &p);
        out.all.push(&p, y).unwrap();
        // On the grid of the window's resolution, so that all forms see the same.
        out.weights.push(Weight::new(w).unwrap().value());
    }
    out
}

fn shape(classes: usize, view: VectorView, weighted: bool) -> Shape {
    Shape {
        view,
        classes,
        cells_max: 4096,
        weighted,
    }
}

fn sums(s: &Sample, view: VectorView, order: impl Iterator<Item = usize>) -> VectorSums {
    let mut sums = VectorSums::new(shape(s.all.classes(), view, true)).unwrap();
    for i in order {
        let weight = Weight::new(s.weights[i]).ok();
        assert!(sums.observe(s.all.row(i), 1.0, s.all.outcome(i), weight));
    }
    sums
}

fn live(s: &Sample, view: VectorView) -> Evaluation {
    evaluate_sums(&sums(s, view, 0..s.weights.len()), 0.05, 0.9).unwrap()
}

const VIEWS: [(usize, VectorView); 3] = [
    (3, VectorView::Full),
    (5, VectorView::TopK(2)),
    (4, VectorView::TopK(3)),
];
