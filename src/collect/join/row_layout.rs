//! Which numbers a pending prediction keeps, and in which order.
//!
//! A prediction is a list of entries, each a score and a class in 12 bytes:
//!
//! ```text
//!   views …        score of the view │ class that makes its outcome true
//!   depth …        largest probabilities, for views of cells │ their classes
//!   full vector …  all probabilities, for a kernel view (see full_vector)
//!   attribute      a score of 0 │ the weight in fixed point, or the bucket of the cluster
//! ```
//! A model keeps only what its views need. A vector of a thousand probabilities is not kept unless
//! a kernel view asks for it.

use crate::stats::attribute::Attribute;
use crate::stats::fixed::Score;
use crate::stats::multiclass::ranked::ABSENT;

/// Number of entries of each kind that the predictions of a model keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowLayout {
    /// Views of single scores.
    pub views: usize,
    /// Largest probabilities, for views of cells.
    pub depth: usize,
    /// Entries of the [full vector](super::full_vector), for a kernel view.
    pub full_vector: usize,
    /// Whether there is a weight or a cluster.
    pub attribute: bool,
}

impl RowLayout {
    /// The layout of a model without vector views and attributes.
    pub fn scores(views: usize) -> RowLayout {
        RowLayout {
            views,
            ..RowLayout::default()
        }
    }

    /// Entries of a prediction.
    pub fn entries(&self) -> usize {
        self.views + self.depth + self.full_vector + usize::from(self.attribute)
    }

    /// Index of the first entry of the full vector, and the number of its entries.
    pub fn full_vector(&self) -> (usize, usize) {
        (self.views + self.depth, self.full_vector)
    }

    /// Converts entries that were written under another layout; `full_vector` of them hold a full
    /// vector.
    ///
    /// Probabilities that were not kept become absent. Probabilities that no view needs any more
    /// are removed.
    pub fn convert(&self, entries: &mut Vec<(Score, u32)>, full_vector: usize) {
        if (entries.len(), full_vector) == (self.entries(), self.full_vector) {
            return;
        }
        let attribute = if self.attribute { entries.pop() } else { None };
        let mut vector = entries.split_off(entries.len() - full_vector.min(entries.len()));
        if vector.len() != self.full_vector {
            vector = vec![(Score::ZERO, ABSENT); self.full_vector];
        }
        entries.resize(self.views + self.depth, (Score::ZERO, ABSENT));
        entries.extend(vector);
        entries.extend(attribute);
    }
}

/// The last entry of a prediction that has an attribute.
pub fn attribute_view(attribute: Attribute) -> Option<(Score, u32)> {
    match attribute {
        Attribute::None => None,
        Attribute::Weight(weight) => Some((Score::ZERO, weight.fixed())),
        Attribute::Cluster(bucket) => Some((Score::ZERO, bucket.index())),
    }
}
