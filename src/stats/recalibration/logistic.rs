//! Logistic recalibration: intercept and slope on the log-odds.
//!
//! ```text
//! logit q = a + b·logit z          a = 0, b = 1: the scores are true
//! ```
//!
//! a above 0 says that scores are too low, b below 1 that they are over-confident (1/b is the
//! temperature of Guo et al., ICML 2017, where a = 0). The fit is maximum likelihood, without
//! Platt's smoothed targets: with the required hundred outcomes of each kind they have no visible
//! effect, and without them Σq = Σy on the fitted events. Sources: Cox, *Two further applications
//! of a model for binary regression*, Biometrika 45 (1958); Platt, *Probabilistic outputs for
//! support vector machines* (1999).

use super::newton::{Row, maximise};
use super::point::{Point, expit, logs, mixed};
use super::unfit::Unfit;

/// logit P(y=1) = a + b·logit z.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Logistic {
    /// a; 0 when calibrated, above 0 when the scores are too low.
    pub intercept: f64,
    /// b; 1 when calibrated, below 1 when over-confident.
    pub slope: f64,
}

impl Logistic {
    /// The maximum of the likelihood, whatever the sign of its slope.
    pub fn fit(points: &[Point]) -> Result<Logistic, Unfit> {
        mixed(points)?;
        let row = |p: &Point| {
            let (a, b) = p.logs();
            Row {
                x: [1.0, a - b],
                n: p.n,
                y: p.y,
            }
        };
        let rows: Vec<Row<2>> = points.iter().map(row).collect();
        let [intercept, slope] = maximise(&rows, [0.0, 1.0])?;
        Ok(Logistic { intercept, slope })
    }

    /// The recalibrated score, in [2⁻³², 1 − 2⁻³²].
    pub fn rate(&self, z: f64) -> f64 {
        let (a, b) = logs(z);
        expit(self.intercept + self.slope * (a - b))
    }
}
