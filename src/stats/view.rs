//! Views: the part of an observation that is tested.
//!
//! An observation is a prediction and its outcome. A scalar view turns it into a score z and a
//! binary outcome y: `binary` takes the score of the positive class, `top_label` the largest
//! probability and whether its class was right, `class:k` one class against the rest. All
//! statistics work on this pair and know nothing else of classes.
//!
//! A vector of probabilities is checked before any view is taken: each entry a score, the sum
//! within [`SUM_TOLERANCE`] of 1. A smaller offset, as an f32 softmax leaves, is divided out (the
//! observation is then *renormalised*, and the collector counts it). Nothing is clamped.

use super::fixed::{Score, ScoreError};
use std::fmt;
use std::str::FromStr;

/// Largest distance of a vector's sum from 1 that is divided out rather than refused: far above
/// what f32 or f16 softmax leave, far below any real fault.
pub const SUM_TOLERANCE: f64 = 1e-3;

/// Offsets below this are the rounding of f64 addition and left alone.
const SUM_NOISE: f64 = 1e-9;

/// A view of an observation: scalar ones, which project to a score and an outcome, and vector
/// views, which [`super::multiclass`] and [`super::kernel`] test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum View {
    /// z = score of the positive class; y = it happened.
    Binary,
    /// z = largest probability; y = its class was the right one. A tie goes to the first class.
    TopLabel,
    /// z = probability of class k; y = k was the right class.
    Class(u32),
    /// The k largest probabilities, sorted.
    TopK(u32),
    /// The whole vector.
    Full,
    /// The whole vector, by the kernel test.
    Kernel,
}

impl View {
    /// Whether the view is of a vector, and has no single score.
    pub fn is_vector(self) -> bool {
        match self {
            View::TopK(_) | View::Full | View::Kernel => true,
            View::Binary | View::TopLabel | View::Class(_) => false,
        }
    }

    /// The vector view, if this view is one that is tested by cells.
    pub fn cells(self) -> Option<VectorView> {
        match self {
            View::TopK(k) => Some(VectorView::TopK(k as usize)),
            View::Full => Some(VectorView::Full),
            View::Binary | View::TopLabel | View::Class(_) | View::Kernel => None,
        }
    }
}

/// Which vector of the prediction is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum VectorView {
    /// The whole vector.
    Full,
    /// The k largest probabilities, 1 ≤ k ≤ K.
    TopK(usize),
}

impl std::fmt::Display for VectorView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            VectorView::Full => f.write_str("full"),
            VectorView::TopK(k) => write!(f, "top_k:{k}"),
        }
    }
}

/// The prediction of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prediction<'a> {
    /// Probability of the positive class.
    Score(f64),
    /// Probability of each class, in the order of the model's classes.
    Vector(&'a [f64]),
}

/// The outcome of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The positive class, or not.
    Binary(bool),
    /// Index of the class.
    Class(u32),
}

impl Outcome {
    /// The class that happened; a binary outcome is of the two classes 0 and 1.
    #[inline]
    pub fn class(self) -> u32 {
        match self {
            Outcome::Binary(y) => u32::from(y),
            Outcome::Class(class) => class,
        }
    }
}

/// Why no view can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewError {
    /// A score or an entry of the vector is NaN or infinite.
    NotFinite,
    /// A score or an entry of the vector is below 0 or above 1.
    OutOfRange,
    /// The vector's sum is off 1 by more than [`SUM_TOLERANCE`].
    VectorSum,
    /// The vector has fewer than two entries, or not as many as the view needs.
    VectorLength,
    /// The outcome's class is not among the vector's.
    UnknownClass,
    /// The view needs the other kind of prediction or outcome.
    Shape,
}

impl From<ScoreError> for ViewError {
    fn from(e: ScoreError) -> ViewError {
        match e {
            ScoreError::NotFinite => ViewError::NotFinite,
            ScoreError::OutOfRange => ViewError::OutOfRange,
        }
    }
}

/// A checked prediction, from which any number of views can be taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Checked<'a> {
    /// Probability of the positive class.
    Score(Score),
    /// Probability of each class, to be divided by `sum`.
    Vector {
        /// The entries as they came, each a score.
        entries: &'a [f64],
        /// What the entries are divided by; exactly 1 where nothing is to be done.
        sum: f64,
    },
}

impl<'a> Checked<'a> {
    /// Checks every number of the prediction once.
    #[inline]
    pub fn new(prediction: Prediction<'a>) -> Result<Checked<'a>, ViewError> {
        Ok(match prediction {
            Prediction::Score(z) => Checked::Score(Score::new(z)?),
            Prediction::Vector(entries) => Checked::Vector {
                entries,
                sum: check_vector(entries)?,
            },
        })
    }

    /// Whether the vector's sum was off 1 and is divided out.
    #[inline]
    pub fn renormalised(&self) -> bool {
        matches!(self, Checked::Vector { sum, .. } if *sum != 1.0)
    }

    /// The score and outcome that `view` tests.
    #[inline]
    pub fn project(&self, view: View, outcome: Outcome) -> Result<(Score, bool), ViewError> {
        match (*self, view) {
            (Checked::Score(z), View::Binary) => Ok((z, positive(outcome)?)),
            (Checked::Score(_), _) => Err(ViewError::Shape),
            (Checked::Vector { entries, sum }, _) => project_vector(entries, sum, view, outcome),
        }
    }
}

impl Checked<'_> {
    /// The score that `view` tests, and the class that makes its outcome true: for outcomes that
    /// are not known yet. Of a binary outcome the classes are 0 and 1.
    #[inline]
    pub fn project_pending(&self, view: View) -> Result<(Score, u32), ViewError> {
        match (*self, view) {
            (Checked::Score(z), View::Binary) => Ok((z, 1)),
            (Checked::Score(_), _) => Err(ViewError::Shape),
            (Checked::Vector { entries, sum }, _) => {
                let class = match view {
                    View::Binary => 1,
                    View::TopLabel => top_label(entries) as u32,
                    View::Class(k) => k,
                    View::TopK(_) | View::Full | View::Kernel => return Err(ViewError::Shape),
                };
                // Any class will do: the score does not depend on what happened.
                let any = Outcome::Class(0);
                Ok((project_vector(entries, sum, view, any)?.0, class))
            }
        }
    }
}

fn project_vector(
    p: &[f64],
    sum: f64,
    view: View,
    outcome: Outcome,
) -> Result<(Score, bool), ViewError> {
    // A rounding above 1 can only come from the division: an entry of 1 and others of 0 sum to 1.
    let score = |z: f64| Score::new((z / sum).min(1.0));
    match view {
        View::Binary if p.len() == 2 => Ok((score(p[1])?, positive(outcome)?)),
        View::Binary => Err(ViewError::Shape),
        View::TopLabel => {
            let top = top_label(p);
            Ok((score(p[top])?, class_of(outcome, p)? == top))
        }
        View::Class(k) => {
            let z = *p.get(k as usize).ok_or(ViewError::VectorLength)?;
            Ok((score(z)?, class_of(outcome, p)? == k as usize))
        }
        View::TopK(_) | View::Full | View::Kernel => Err(ViewError::Shape),
    }
}

/// The score and outcome that `view` tests; see [`Checked`] for several views of one observation.
pub fn project(
    view: View,
    prediction: &Prediction<'_>,
    outcome: Outcome,
) -> Result<(Score, bool), ViewError> {
    Checked::new(*prediction)?.project(view, outcome)
}

/// The number to divide the entries by; exactly 1 where nothing is to be done.
fn check_vector(p: &[f64]) -> Result<f64, ViewError> {
    if p.len() < 2 {
        return Err(ViewError::VectorLength);
    }
    let mut sum = 0.0;
    for &z in p {
        Score::new(z)?;
        sum += z;
    }
    let off = (sum - 1.0).abs();
    if off > SUM_TOLERANCE {
        Err(ViewError::VectorSum)
    } else if off > SUM_NOISE {
        Ok(sum)
    } else {
        Ok(1.0)
    }
}

fn top_label(p: &[f64]) -> usize {
    let mut top = 0;
    for (i, z) in p.iter().enumerate() {
        if *z > p[top] {
            top = i;
        }
    }
    top
}

fn class_of(outcome: Outcome, p: &[f64]) -> Result<usize, ViewError> {
    let class = match outcome {
        Outcome::Class(k) => k as usize,
        Outcome::Binary(y) if p.len() == 2 => usize::from(y),
        Outcome::Binary(_) => return Err(ViewError::Shape),
    };
    if class < p.len() {
        Ok(class)
    } else {
        Err(ViewError::UnknownClass)
    }
}

/// Whether the positive class happened.
#[inline]
pub fn positive(outcome: Outcome) -> Result<bool, ViewError> {
    match outcome {
        Outcome::Binary(y) => Ok(y),
        Outcome::Class(0) => Ok(false),
        Outcome::Class(1) => Ok(true),
        Outcome::Class(_) => Err(ViewError::UnknownClass),
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            View::Binary => f.write_str("binary"),
            View::TopLabel => f.write_str("top_label"),
            View::Class(k) => write!(f, "class:{k}"),
            View::TopK(k) => write!(f, "top_k:{k}"),
            View::Full => f.write_str("full"),
            View::Kernel => f.write_str("kernel"),
        }
    }
}

/// A word that names no view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownView(pub String);

impl fmt::Display for UnknownView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown view {:?}: use binary, top_label, class:<index>, top_k:<count>, full or kernel",
            self.0
        )
    }
}

impl std::error::Error for UnknownView {}

impl FromStr for View {
    type Err = UnknownView;

    fn from_str(s: &str) -> Result<View, UnknownView> {
        match s {
            "binary" => Ok(View::Binary),
            "top_label" => Ok(View::TopLabel),
            "full" => Ok(View::Full),
            "kernel" => Ok(View::Kernel),
            _ => {
                let number = |prefix: &str| s.strip_prefix(prefix).and_then(|k| k.parse().ok());
                let top_k = number("top_k:").filter(|k| *k > 0).map(View::TopK);
                let view = number("class:").map(View::Class).or(top_k);
                view.ok_or_else(|| UnknownView(s.to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_print_and_parse_back() {
        for view in [
            View::Binary,
            View::TopLabel,
            View::Class(17),
            View::TopK(2),
            View::Full,
            View::Kernel,
        ] {
            assert_eq!(view.to_string().parse(), Ok(view));
        }
        assert!("class:x".parse::<View>().is_err() && "top_k:0".parse::<View>().is_err());
    }

    #[test]
    fn a_vector_is_seen_by_its_top_label_and_by_each_class() {
        let p = [0.2, 0.5, 0.3];
        let see = |view, k| {
            let (z, y) = project(view, &Prediction::Vector(&p), Outcome::Class(k)).unwrap();
            (z.value(), y)
        };
        assert_eq!(see(View::TopLabel, 1), (0.5, true));
        assert_eq!(see(View::TopLabel, 0), (0.5, false));
        assert_eq!(see(View::Class(2), 2), (0.3, true));
        assert_eq!(see(View::Class(2), 1), (0.3, false));
    }

    #[test]
    fn bad_vectors_and_outcomes_are_refused_by_name() {
        let see = |p: &[f64], k| {
            project(View::TopLabel, &Prediction::Vector(p), Outcome::Class(k)).map(|_| ())
        };
        assert_eq!(see(&[0.6, 0.6], 0), Err(ViewError::VectorSum));
        assert_eq!(see(&[f64::NAN, 0.6], 0), Err(ViewError::NotFinite));
        assert_eq!(see(&[-0.1, 1.1], 0), Err(ViewError::OutOfRange));
        assert_eq!(see(&[0.4, 0.6], 2), Err(ViewError::UnknownClass));
        assert_eq!(see(&[1.0], 0), Err(ViewError::VectorLength));
        assert_eq!(
            project(View::TopLabel, &Prediction::Score(0.5), Outcome::Class(0)),
            Err(ViewError::Shape)
        );
    }

    #[test]
    fn a_sum_slightly_off_one_is_divided_out() {
        let p = [0.3, 0.6995];
        let checked = Checked::new(Prediction::Vector(&p)).unwrap();
        assert!(checked.renormalised());
        let (z, _) = checked
            .project(View::Binary, Outcome::Binary(true))
            .unwrap();
        assert_eq!(z.value(), 0.6995 / 0.9995);
    }
}
