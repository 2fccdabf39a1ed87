//! Events as a vector view sees them: a point z in R^k and which of its k labels happened, if any.
//!
//! `full`: z is the whole probability vector, k = K, and some label always happened. `top_k:k`: z
//! holds the k largest probabilities in descending order and the labels are those k classes, so
//! none may have happened (Sun, Chaudhari, Barnett, Dobriban 2024, section 2.1). In both u = e_y −
//! z (−z where none happened), and given z under the null Cov u = S = diag(z) − zzᵀ. A tie is
//! broken for the class that comes first.

use crate::kernel::Vectors;
pub use crate::view::VectorView;

/// No label happened.
pub const NONE: u32 = u32::MAX;

/// n points of k coordinates with their labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Events {
    /// The view.
    pub view: VectorView,
    /// K, the number of classes.
    pub classes: usize,
    /// k, the number of coordinates of a point.
    pub dimension: usize,
    points: Vec<f64>,
    labels: Vec<u32>,
    /// One weight for each event; empty without weights.
    weights: Vec<f64>,
}

impl Events {
    /// The events of a sample; k of `top_k` is cut to K.
    pub fn of(sample: &Vectors, view: VectorView) -> Events {
        let classes = sample.classes();
        let dimension = match view {
            VectorView::Full => classes,
            VectorView::TopK(k) => k.clamp(1, classes),
        };
        let (mut points, mut labels) = (Vec::new(), Vec::new());
        let mut order: Vec<u32> = Vec::with_capacity(classes);
        for (row, y) in sample.events() {
            if view == VectorView::Full {
                points.extend_from_slice(row);
                labels.push(y);
                continue;
            }
            by_rank(row, &mut order);
            points.extend(order[..dimension].iter().map(|&c| row[c as usize]));
            let place = order[..dimension].iter().position(|&c| c == y);
            labels.push(place.map_or(NONE, |p| p as u32));
        }
        Events {
            view,
            classes,
            dimension,
            points,
            labels,
            weights: Vec::new(),
        }
    }

    /// The events of a sample with weights above 0, one an event.
    pub fn weighted(sample: &Vectors, view: VectorView, weights: &[f64]) -> Events {
        assert_eq!(weights.len(), sample.len(), "one weight an event");
        Events {
            weights: weights.to_vec(),
            ..Events::of(sample, view)
        }
    }

    /// Whether events have weights.
    pub fn is_weighted(&self) -> bool {
        !self.weights.is_empty()
    }

    /// Weight of event `i`; 1 without weights.
    pub fn weight(&self, i: usize) -> f64 {
        self.weights.get(i).copied().unwrap_or(1.0)
    }

    /// Σw; without weights n.
    pub fn total(&self) -> f64 {
        match self.is_weighted() {
            true => self.weights.iter().sum(),
            false => self.len() as f64,
        }
    }

    /// Effective number of events, (Σw)²/Σw², where they have weights.
    pub fn effective(&self) -> Option<f64> {
        let squares: f64 = self.weights.iter().map(|w| w * w).sum();
        self.is_weighted().then(|| self.total().powi(2) / squares)
    }

    /// n, the number of events.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The point z of event `i` < n.
    pub fn point(&self, i: usize) -> &[f64] {
        &self.points[i * self.dimension..(i + 1) * self.dimension]
    }

    /// Label of event `i`, an index of its point, or [`NONE`].
    pub fn label(&self, i: usize) -> u32 {
        self.labels[i]
    }

    /// d, the dimension that cells divide: k for cubes, K − 1 for simplices, whose points lie in a
    /// plane.
    pub fn free_dimension(&self) -> usize {
        match self.view {
            VectorView::Full => (self.dimension - 1).max(1),
            VectorView::TopK(_) => self.dimension,
        }
    }
}

/// The classes of a vector in falling order of their entries.
pub(super) fn by_rank(entries: &[f64], order: &mut Vec<u32>) {
    order.clear();
    order.extend(0..entries.len() as u32);
    // Stable, so that equal probabilities keep the order of classes.
    order.sort_by(|&a, &b| entries[b as usize].total_cmp(&entries[a as usize]));
}
