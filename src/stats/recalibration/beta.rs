//! Beta calibration corrects scores that are beta distributed among events and among non-events.
//!
//! ```text
//! logit q = a·ln z − b·ln(1−z) + c,    a, b ≥ 0;    a = b: the logistic map
//! ```
//!
//! A logistic regression on (ln z, −ln(1−z)). Where a coefficient comes out negative it is set to 0
//! and the other fitted again, as the authors do, so that the map rises. It bends the two ends of
//! the scale apart, which a logistic map cannot. Source: Kull, Silva Filho, Flach, *Beyond
//! sigmoids: how to obtain well-calibrated probabilities from binary classifiers with beta
//! calibration*, EJS 11 (2017), §3 and §4.

use super::newton::{Row, maximise};
use super::point::{Point, expit, logs, mixed};
use super::unfit::Unfit;

/// logit P(y=1) = a·ln z − b·ln(1−z) + c.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Beta {
    /// Weight of ln z, at least 0.
    pub a: f64,
    /// Weight of −ln(1−z), at least 0.
    pub b: f64,
    /// Constant.
    pub c: f64,
}

impl Beta {
    /// The maximum of the likelihood over a, b ≥ 0.
    pub fn fit(points: &[Point]) -> Result<Beta, Unfit> {
        mixed(points)?;
        let rows: Vec<Row<3>> = (points.iter())
            .map(|p| {
                let (ln_z, ln_rest) = p.logs();
                Row {
                    x: [1.0, ln_z, -ln_rest],
                    n: p.n,
                    y: p.y,
                }
            })
            .collect();
        let [c, a, b] = maximise(&rows, [0.0, 1.0, 1.0])?;
        if a >= 0.0 && b >= 0.0 {
            return Ok(Beta { a, b, c });
        }
        let kept = if a < 0.0 { 2 } else { 1 };
        let fewer: Vec<Row<2>> = (rows.iter())
            .map(|r| Row {
                x: [1.0, r.x[kept]],
                n: r.n,
                y: r.y,
            })
            .collect();
        let [c, w] = maximise(&fewer, [0.0, 1.0])?;
        if w <= 0.0 {
            return Err(Unfit::Reversed);
        }
        let (a, b) = if kept == 2 { (0.0, w) } else { (w, 0.0) };
        Ok(Beta { a, b, c })
    }

    /// The recalibrated score, in [2⁻³², 1 − 2⁻³²].
    pub fn rate(&self, z: f64) -> f64 {
        let (ln_z, ln_rest) = logs(z);
        expit(self.a * ln_z - self.b * ln_rest + self.c)
    }
}
