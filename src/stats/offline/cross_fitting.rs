//! Cross-fitting: the two-sample statistic of both orders of the halves.
//!
//! Sample splitting ([`super::splitting`]) keeps the outcomes of one half and draws pseudo-outcomes
//! ỹ ~ Cat(z) for the other. Cross-fitting computes the statistic a second time with the halves
//! exchanged and takes the mean. With V the events of class k in the half that keeps its outcomes,
//! W those whose pseudo-outcome is k in the other half, and N_V, N_W their numbers in a cell,
//!
//! S = Σ_k Σ_cells (N_V/|V| − N_W/|W|)²,
//!
//! summed over all classes, or over the positive one for scores of one class (Lee, Huang, Hassani,
//! Dobriban 2022, the statistic of Figures 7 and 10, at m\* cells an axis).
//!
//! The paper takes critical values from an oracle that knows the law of the scores. Here the
//! outcomes are redrawn from the predictions: under the null and given the predictions, the
//! observed outcomes and each redrawn set are exchangeable, also together with fresh
//! pseudo-outcomes. So (1 + #{S\* ≥ S})/(R + 1) is an exact p-value for any n.
//!
//! It sees shapes, not rates: a constant factor on all true probabilities leaves N_V/|V| as it was.
//! `trueline reproduce tcal` compares its power with splitting and with T-Cal.
//!
//! Cost: (R + 1)·n draws.

use crate::conditional::rank::reaches;
use crate::kernel::Vectors;
use crate::kernel::conditional::draw;
use crate::multiclass::cell::Name;
use crate::rng::Rng;
use std::collections::BTreeMap;

/// The test.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CrossFitting {
    /// m\*, cells of an axis.
    pub slices: u64,
    /// S with the outcomes of the first half, and with those of the second.
    pub halves: [f64; 2],
    /// Their mean.
    pub statistic: f64,
    /// Redrawn sets of outcomes.
    pub replicates: u32,
    /// (1 + #{S\* ≥ S})/(R + 1).
    pub p_value: f64,
}

/// Redrawn sets of outcomes.
const REPLICATES: u32 = 999;

/// Tests scores of one class; `None` with fewer than two events.
pub fn of_scores(sample: &[(f64, bool)], slices: u64, seed: u64) -> Option<CrossFitting> {
    let rows = Vectors::of_scores(sample).ok()?;
    let last = slices.max(1) as u32 - 1;
    let cell = |&(z, _): &(f64, bool)| ((z * slices as f64) as u32).min(last);
    let cells = sample.iter().map(cell).collect();
    run(
        &rows,
        Cells {
            of: cells,
            count: last + 1,
        },
        1,
        slices,
        seed,
    )
}

/// Tests whole vectors; cells are the simplices of equal volume; `None` with fewer than two events.
pub fn of_vectors(sample: &Vectors, slices: u32, seed: u64) -> Option<CrossFitting> {
    let mut numbers: BTreeMap<Name, u32> = BTreeMap::new();
    let number = |i: usize| {
        let next = numbers.len() as u32;
        let name = Name::simplex(sample.row(i), slices);
        *numbers.entry(name).or_insert(next)
    };
    let of: Vec<u32> = (0..sample.len()).map(number).collect();
    let count = numbers.len() as u32;
    run(sample, Cells { of, count }, 0, u64::from(slices), seed)
}

/// The cell of each event.
struct Cells {
    of: Vec<u32>,
    count: u32,
}

fn run(
    rows: &Vectors,
    cells: Cells,
    first_class: u32,
    slices: u64,
    seed: u64,
) -> Option<CrossFitting> {
    let (n, k) = (rows.len(), rows.classes() as u32);
    if n < 2 {
        return None;
    }
    let mut rng = Rng::new(seed ^ 0x5EED_CF17);
    let mut order: Vec<usize> = (0..n).collect();
    rng.choose(&mut order, n);
    let redraw = |rng: &mut Rng| -> Vec<u32> {
        let one = |i| draw(rows.row(i), rng.uniform());
        (0..n).map(one).collect()
    };
    let (first, second) = order.split_at(n / 2);
    let both = |outcomes: &[u32], pseudo: &[u32]| {
        [(first, second), (second, first)].map(|(kept, drawn)| {
            let class = |c| half(&cells, (kept, outcomes), (drawn, pseudo), c);
            (first_class..k).map(class).sum::<f64>()
        })
    };
    let seen: Vec<u32> = (0..n).map(|i| rows.outcome(i)).collect();
    let halves = both(&seen, &redraw(&mut rng));
    let total = halves[0] + halves[1];
    let mut above = 0;
    for _ in 0..REPLICATES {
        let (outcomes, pseudo) = (redraw(&mut rng), redraw(&mut rng));
        let drawn = both(&outcomes, &pseudo);
        above += u32::from(reaches(drawn[0] + drawn[1], total));
    }
    Some(CrossFitting {
        slices,
        halves,
        statistic: 0.5 * total,
        replicates: REPLICATES,
        p_value: (1.0 + f64::from(above)) / (1.0 + f64::from(REPLICATES)),
    })
}

/// Σ over cells of the squared difference of shares of one class. A half without the class has
/// shares of 0.
fn half(
    cells: &Cells,
    (kept, outcomes): (&[usize], &[u32]),
    (drawn, pseudo): (&[usize], &[u32]),
    class: u32,
) -> f64 {
    let count = |events: &[usize], labels: &[u32]| {
        let mut counts = vec![0.0; cells.count as usize];
        let mut total = 0.0f64;
        for &i in events.iter().filter(|i| labels[**i] == class) {
            counts[cells.of[i] as usize] += 1.0;
            total += 1.0;
        }
        (counts, total.max(1.0))
    };
    let ((v, a), (w, b)) = (count(kept, outcomes), count(drawn, pseudo));
    v.iter().zip(&w).map(|(x, y)| (x / a - y / b).powi(2)).sum()
}
