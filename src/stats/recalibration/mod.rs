//! The map that would mend a miscalibration: fitted on one window, judged on the next.
//!
//! Three families, from stiff to free, each fitted to the cell sums of a window at the cells' mean
//! scores, so that a live window needs nothing but the sums it has; from raw scores each event (or
//! tie) is a point:
//!
//! | map | law | parameters |
//! |---|---|---|
//! | [`logistic`] | logit q = a + b·logit z | Cox, Biometrika 45 (1958); Platt (1999) |
//! | [`beta`] | logit q = a·ln z − b·ln(1−z) + c, a, b ≥ 0 | Kull, Silva Filho, Flach, EJS 11 (2017) |
//! | [`isotonic`] | q any rising function | Barlow et al. (1972); Zadrozny & Elkan, KDD (2002) |
//!
//! A fit looks better on its own events than it is, the freer the more; so [`trial`] judges it on a
//! window that shares no event with them, and [`advice`] says which to apply there, or why none.
//! Nothing here is on the way of an event: a fit costs some twenty passes over the occupied cells,
//! a trial four times T-Cal.
//!
//! Always: a map never falls with the score (one that would is [`Unfit`]), so it turns no ranking
//! round; it says neither 0 nor 1; maximum likelihood makes its mean on the fitted events their
//! event rate (but for isotonic blocks at the ends without any, or nothing but, events). What cells
//! cost: a cell's events share one recalibrated score, that of their mean, so what differs from the map
//! of raw scores is what logit z varies within cells. On six networks, 2000 events fitted into 4096
//! cells, recalibrated scores differ by at most 0.01 (root mean square) and log loss by 0.002
//! (`tests/golden/recalibration.rs`).

pub mod advice;
pub mod beta;
pub mod isotonic;
pub mod logistic;
pub mod map;
pub mod measures;
mod newton;
pub mod point;
pub mod table;
pub mod trial;
pub mod unfit;

pub use advice::Advice;
pub use map::{Fits, Map, Method};
pub use measures::{Cut, Gain, Measures, Trial};
pub use point::Point;
pub use trial::Judgement;
pub use unfit::Unfit;
