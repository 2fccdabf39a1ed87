//! The exact form, event by event (`sequential.md` §3): every bet with each event's own score. Slow
//! and plain; what the product computes from cell sums is held against it.

use trueline::stats::sequential::likelihood::Likelihoods;
use trueline::stats::sequential::mixture::{
    AMPLITUDES, CELL_AMPLITUDES, DIRECTED, SCALES, Scale, logit_clipped,
};

/// The null: odds within e^±`tolerance` of the score's, then ± `delta` in probability.
#[derive(Debug, Clone, Copy)]
pub struct Null {
    pub tolerance: f64,
    pub delta: f64,
}

/// lo(z) and hi(z).
pub fn bounds(z: f64, null: Null) -> (f64, f64) {
    let e = null.tolerance.exp();
    let hi = z * e / (1.0 - z + z * e) + null.delta;
    let lo = z / (z + (1.0 - z) * e) - null.delta;
    (lo.max(0.0), hi.min(1.0))
}

/// log of e^(βy)/(1 − p + p·e^β) at the worst p.
pub fn log_tilt(y: f64, (lo, hi): (f64, f64), beta: f64) -> f64 {
    let p = if beta > 0.0 { hi } else { lo };
    beta * y - (1.0 - p + p * beta.exp()).ln()
}

/// The likelihood ratios of a batch.
pub fn likelihoods(events: &[(f64, f64)], null: Null) -> Likelihoods {
    let mut all = Likelihoods::default();
    for &(z, y) in events {
        let edges = bounds(z, null);
        let h = logit_clipped(z);
        for (j, b) in AMPLITUDES.into_iter().enumerate() {
            for (sign, i) in [(b, 2 * j), (-b, 2 * j + 1)] {
                all.directed[i] += log_tilt(y, edges, sign);
                all.directed[DIRECTED + i] += log_tilt(y, edges, 0.5 * sign * h);
            }
        }
        for k in 0..SCALES {
            let scale = Scale::of(k);
            let cell = &mut all.cells[scale.first + scale.cell_of(z)];
            for (j, c) in CELL_AMPLITUDES.into_iter().enumerate() {
                cell.plus[j] += log_tilt(y, edges, c);
                cell.minus[j] += log_tilt(y, edges, -c);
            }
            cell.variance += z * (1.0 - z);
            cell.n += 1;
        }
        all.n += 1;
    }
    all
}
