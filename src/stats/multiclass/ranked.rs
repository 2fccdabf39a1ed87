//! The largest entries of a vector, with their classes: what vector views need of a prediction
//! whose outcome is to come.
//!
//! `top_k:k` needs the k largest in falling order, `full` all of them; where there are several
//! views the longest list serves all. Entries are ranked before they are divided by their sum,
//! equal ones in the order of classes, and divided once. So the list gives the same sums, to the
//! bit, as the vector itself.

use super::events::{VectorView, by_rank};
use super::shape::Shape;

/// The class of an entry that is not there: the prediction was no vector, or came before the view
/// was asked for.
pub const ABSENT: u32 = u32::MAX;

/// The largest entries of a vector, descending, with their classes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked<'a> {
    /// Probabilities, falling.
    pub values: &'a [f64],
    /// Their classes.
    pub classes: &'a [u32],
}

/// How many entries the views need together, over `classes` classes.
pub fn depth(views: impl Iterator<Item = VectorView>, classes: usize) -> usize {
    let of = |view| {
        let shape = Shape {
            view,
            classes,
            cells_max: 1,
            weighted: false,
        };
        shape.dimension().unwrap_or(0)
    };
    views.map(of).max().unwrap_or(0)
}

/// The `depth` largest entries of a vector, to be divided by `sum`, each with its class; if there
/// are fewer, the rest are 0 of class [`ABSENT`].
pub fn ranked<'a>(
    entries: &'a [f64],
    sum: f64,
    order: &'a mut Vec<u32>,
    depth: usize,
) -> impl Iterator<Item = (f64, u32)> + 'a {
    by_rank(entries, order);
    let known = order.iter().map(move |&c| {
        let z = entries.get(c as usize).copied().unwrap_or(0.0);
        ((z / sum).min(1.0), c)
    });
    known.chain(std::iter::repeat((0.0, ABSENT))).take(depth)
}
