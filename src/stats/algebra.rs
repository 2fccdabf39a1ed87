//! The algebra of sums: the laws that every kind of sums obeys, so that panes, partitions and
//! processes can be added up in any order.
//!
//! There are two traits, each with its laws. [`Merge`] is a commutative monoid: sums of disjoint
//! sets of events add up to the sums of their union. [`Retract`] adds the inverse: events that were
//! merged can be taken out again. Equality is equality of all integers, not closeness, because
//! every sum here is a sum of integers; statistics in floating point begin above them.
//!
//! | sums | [`Merge`] | [`Retract`] |
//! |---|---|---|
//! | scalar ([`Sums`](super::sums::Sums)), weighted ([`WeightedSums`](super::weighted::WeightedSums)), by cluster ([`ClusterSums`](super::clusters::ClusterSums)) | yes | yes |
//! | vector cells ([`VectorSums`](super::multiclass::sums::VectorSums)) | yes | yes |
//! | random features ([`Features`](super::kernel::features::Features)) | yes | yes |
//! | kernel ([`KernelSums`](super::kernel::sums::KernelSums)) | yes | no: an event that its bounded sample dropped cannot come back |
//!
//! The laws hold while no bound is reached. A bound that is reached is always visible: the sums
//! fail with [`Overflow`], count events as refused, or discard a list permanently (as distinct
//! scores beyond [`DISTINCT_MAX`](super::sums::DISTINCT_MAX)).

/// A sum left the range of its integer, or events were to be taken out that it never held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

/// A commutative monoid of sums.
///
/// For all sums `a`, `b`, `c` of one shape (grid, view, options):
///
/// * identity: `a + a.empty() = a`;
/// * commutativity: `a + b = b + a`;
/// * associativity: `(a + b) + c = a + (b + c)`.
///
/// It is an error to merge sums of two shapes.
pub trait Merge: Sized {
    /// The sums of no events, of the same shape.
    fn empty(&self) -> Self;

    /// Adds the sums of other events. After an error the sums are unusable. Sums that count events
    /// as refused where they cannot add them never fail.
    fn merge(&mut self, other: &Self) -> Result<(), Overflow>;
}

/// Sums with subtraction: `(a + b) − b = a`.
pub trait Retract: Merge {
    /// Takes out sums that were merged before. Fails if they evidently were not; these sums are
    /// then unusable.
    fn retract(&mut self, other: &Self) -> Result<(), Overflow>;
}

#[cfg(test)]
mod tests;
