//! Newton's method for the likelihood of a logistic model of few parameters.
//!
//! The log-likelihood L(θ) = Σ [y·η − n·ln(1+e^η)], η = x·θ, is concave, so Newton's step (by
//! Cholesky) is uphill; where it overshoots it is halved until L no longer falls. Convergence: the
//! Newton decrement gᵀH⁻¹g, twice what L can still gain, is at most [`DECREMENT`]; the parameters
//! are then within √DECREMENT, a millionth, of their standard errors, and the step that showed it
//! is still taken. A likelihood without maximum (outcomes that a threshold separates) is refused
//! before (`point::mixed`).

use super::unfit::Unfit;

/// Twice the gain in log-likelihood that may be left.
const DECREMENT: f64 = 1e-12;

/// Steps before the method gives up; from a start anywhere near, five to ten do.
const STEPS_MAX: u32 = 60;

/// Halvings of a step before it counts as none.
const HALVINGS_MAX: u32 = 40;

/// Greatest change of any row's log odds by a step that cannot lower L. Where no η moves by more
/// than r, the curvature along the way is at most eʳ times that at its start (the third derivative
/// of ln(1 + e^η) is no larger than the second; Bach, EJS 4, 2010), so a step of Newton's gains at
/// least (1 − (eʳ − 1 − r)/r²) times its decrement: more than 0 up to r = 1.79.
const STRIDE_SURE: f64 = 1.5;

/// Least share of its column that a pivot may keep. Below it two parameters cannot be separated:
/// log-odds of constant scores differ by rounding alone.
const PIVOT_MIN: f64 = 1e-8;

/// Events with the same regressors.
pub struct Row<const D: usize> {
    /// Regressors.
    pub x: [f64; D],
    /// Number of events.
    pub n: f64,
    /// Σy.
    pub y: f64,
}

/// The θ of greatest likelihood, by Newton's method from `start`.
pub fn maximise<const D: usize>(rows: &[Row<D>], start: [f64; D]) -> Result<[f64; D], Unfit> {
    let mut theta = start;
    for _ in 0..STEPS_MAX {
        let (gradient, information) = slopes(rows, &theta);
        let step = solve(information, gradient)?;
        let decrement = dot(&step, &gradient);
        if !decrement.is_finite() {
            return Err(Unfit::Unsettled);
        }
        if decrement <= DECREMENT {
            // So near the top a step does not overshoot.
            return Ok(along(&theta, &step, 1.0));
        }
        if rows.iter().all(|r| dot(&r.x, &step).abs() <= STRIDE_SURE) {
            theta = along(&theta, &step, 1.0);
        } else {
            theta = shortened(rows, &theta, &step);
        }
    }
    Err(Unfit::Unsettled)
}

/// Takes a step, or as much of it as does not lower the likelihood.
fn shortened<const D: usize>(rows: &[Row<D>], theta: &[f64; D], step: &[f64; D]) -> [f64; D] {
    let here = likelihood(rows, theta);
    // A rounding of L is no fall.
    let floor = here - 1e-12 * here.abs();
    let mut share = 1.0;
    for _ in 0..HALVINGS_MAX {
        let next = along(theta, step, share);
        if likelihood(rows, &next) >= floor {
            return next;
        }
        share /= 2.0;
    }
    *theta
}

fn along<const D: usize>(theta: &[f64; D], step: &[f64; D], share: f64) -> [f64; D] {
    std::array::from_fn(|i| theta[i] + share * step[i])
}

fn dot<const D: usize>(a: &[f64; D], b: &[f64; D]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn likelihood<const D: usize>(rows: &[Row<D>], theta: &[f64; D]) -> f64 {
    let one = |r: &Row<D>| {
        let eta = dot(&r.x, theta);
        // ln(1 + e^η) without overflow.
        r.y * eta - r.n * (eta.max(0.0) + (-eta.abs()).exp().ln_1p())
    };
    rows.iter().map(one).sum()
}

/// Gradient and negative Hessian.
fn slopes<const D: usize>(rows: &[Row<D>], theta: &[f64; D]) -> ([f64; D], [[f64; D]; D]) {
    let (mut g, mut h) = ([0.0; D], [[0.0; D]; D]);
    for r in rows {
        let q = 1.0 / (1.0 + (-dot(&r.x, theta)).exp());
        let (u, v) = (r.y - r.n * q, r.n * q * (1.0 - q));
        for (i, row) in h.iter_mut().enumerate() {
            g[i] += u * r.x[i];
            for (entry, x) in row.iter_mut().zip(&r.x).take(i + 1) {
                *entry += v * r.x[i] * x;
            }
        }
    }
    (g, h)
}

/// Solves h·x = g by Cholesky; only the lower half of `h` is read.
fn solve<const D: usize>(mut h: [[f64; D]; D], g: [f64; D]) -> Result<[f64; D], Unfit> {
    for i in 0..D {
        let whole = h[i][i];
        for j in 0..=i {
            let done: f64 = (0..j).map(|k| h[i][k] * h[j][k]).sum();
            let rest = h[i][j] - done;
            if i != j {
                h[i][j] = rest / h[j][j];
            } else if rest > PIVOT_MIN * whole {
                h[i][i] = rest.sqrt();
            } else {
                return Err(Unfit::Alike);
            }
        }
    }
    let mut x = g;
    for i in 0..D {
        let done: f64 = (0..i).map(|k| h[i][k] * x[k]).sum();
        x[i] = (x[i] - done) / h[i][i];
    }
    for i in (0..D).rev() {
        let done: f64 = (i + 1..D).map(|k| h[k][i] * x[k]).sum();
        x[i] = (x[i] - done) / h[i][i];
    }
    Ok(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_parameter_finds_the_log_odds_of_the_rate() {
        let rows = [Row {
            x: [1.0],
            n: 10.0,
            y: 3.0,
        }];
        for start in [-20.0, 0.0, 20.0] {
            let found = maximise(&rows, [start]).unwrap()[0];
            assert!((found - (0.3f64 / 0.7).ln()).abs() < 1e-9, "{start}");
        }
    }

    #[test]
    fn two_columns_that_are_one_are_refused() {
        let row = |x: f64, y: f64| Row {
            x: [1.0, x],
            n: 5.0,
            y,
        };
        let rows = [row(0.7, 1.0), row(0.7 + 1e-9, 3.0)];
        assert_eq!(maximise(&rows, [0.0, 1.0]), Err(Unfit::Alike));
    }
}
