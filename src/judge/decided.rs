//! The error that was compared with the tolerance.
//!
//! It is the ℓ2-ECE; for a kernel view, the kernel calibration error; for rare events, the ratio of
//! observed to expected outcomes ([`crate::stats::tolerance`]). Every verdict is shown with this
//! error, because another one may seem to contradict it.

use super::verdict::Numbers;
use crate::stats::evaluation::{Conclusion, Evaluation};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// The ℓ2-ECE.
    EceL2,
    /// The kernel calibration error.
    Kce,
    /// Observed divided by expected outcomes, of the rarer kind.
    ObservedExpected,
}

impl Quantity {
    /// Its name in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::EceL2 => "l2-ECE",
            Quantity::Kce => "KCE",
            Quantity::ObservedExpected => "observed/expected",
        }
    }

    /// Its short name.
    pub fn short(self) -> &'static str {
        match self {
            Quantity::EceL2 => "ECE",
            Quantity::Kce => "KCE",
            Quantity::ObservedExpected => "O/E",
        }
    }
}

/// An error with its interval and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DecidedError {
    /// What it is.
    pub quantity: Quantity,
    /// Estimate; for the ℓ2-ECE the debiased one, 0 if the estimate of its square is negative.
    pub estimate: f64,
    /// Lower end of the interval.
    pub lower: f64,
    /// Upper end of the interval.
    pub upper: f64,
    /// Whether 0 is in the interval.
    pub contains_zero: bool,
    /// Its confidence.
    pub confidence: f64,
    /// Most that is tolerated; the inverse of a ratio may be at most this, too. `None` if it is not
    /// known here, as for vectors.
    pub most: Option<f64>,
}

impl DecidedError {
    /// The error of the numbers of a window.
    pub fn of(numbers: &Numbers) -> DecidedError {
        let estimate = match numbers {
            Numbers::Scores(e) => return DecidedError::of_scores(e),
            Numbers::Cells(e) => e.interval.estimate_squared.max(0.0).sqrt(),
            Numbers::Kernel(e) => e.kce,
        };
        DecidedError {
            quantity: match numbers.kernel() {
                Some(_) => Quantity::Kce,
                None => Quantity::EceL2,
            },
            estimate,
            lower: numbers.lower(),
            upper: numbers.upper(),
            contains_zero: numbers.contains_zero(),
            confidence: numbers.confidence(),
            most: None,
        }
    }

    /// The error of single scores. It is the ratio if that decided, or is still to decide. It is
    /// the ℓ2-ECE if that has shown what the ratio could not, or is all that can show it.
    pub fn of_scores(e: &Evaluation) -> DecidedError {
        let (i, t) = (&e.interval, &e.tolerance);
        let ratio = t.ratio.filter(|r| match t.conclusion {
            Conclusion::Miscalibrated => r.is_off(),
            Conclusion::Calibrated => i.upper > t.tolerance,
            _ => !(e.reject && r.within),
        });
        match ratio {
            Some(r) => DecidedError {
                quantity: Quantity::ObservedExpected,
                estimate: r.estimate(),
                lower: r.lower,
                upper: r.upper,
                contains_zero: r.lower <= 0.0,
                confidence: i.confidence,
                most: Some(r.most),
            },
            None => DecidedError {
                quantity: Quantity::EceL2,
                estimate: i.estimate_squared.max(0.0).sqrt(),
                lower: i.lower,
                upper: i.upper,
                contains_zero: i.contains_zero,
                confidence: i.confidence,
                most: Some(t.tolerance),
            },
        }
    }

    /// Whether the ratio of observed to expected outcomes decides.
    pub fn is_ratio(&self) -> bool {
        self.quantity == Quantity::ObservedExpected
    }

    /// Formats a value: two digits for a ratio, otherwise four.
    pub fn digits(&self, x: f64) -> String {
        match self.is_ratio() {
            true => format!("{x:.2}"),
            false => format!("{x:.4}"),
        }
    }

    /// `[0.0010, 0.0300]`; the bracket is `(` if the lower end is 0 and 0 is outside.
    pub fn interval(&self) -> String {
        let closed = self.contains_zero || self.lower > 0.0;
        let (open, upper) = (if closed { '[' } else { '(' }, self.digits(self.upper));
        format!("{open}{}, {upper}]", self.digits(self.lower))
    }

    /// What is tolerated, if that is known: a bound, or both bounds of a ratio.
    pub fn tolerated(&self) -> Option<String> {
        let most = self.digits(self.most?);
        Some(match self.is_ratio() {
            true => format!("{} to {most}", self.digits(1.0 / self.most?)),
            false => most,
        })
    }

    /// The interval; for a ratio also what is tolerated, because nobody knows its limits by heart.
    pub fn brief(&self) -> String {
        match self.tolerated().filter(|_| self.is_ratio()) {
            Some(tolerated) => format!("{}, tolerated {tolerated}", self.interval()),
            None => self.interval(),
        }
    }
}

impl fmt::Display for DecidedError {
    /// "observed/expected 1.98 [1.79, 2.18], tolerated 0.83 to 1.20".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, estimate) = (self.quantity.name(), self.digits(self.estimate));
        write!(f, "{name} {estimate} {}", self.interval())?;
        match self.tolerated() {
            Some(tolerated) => write!(f, ", tolerated {tolerated}"),
            None => Ok(()),
        }
    }
}
