//! Integer sums of a vector view over sparse cells: what a window keeps of events.
//!
//! As for scalars ([`crate::sums`]) every sum is of integers in units of 2⁻³², so that the sums of
//! a window are those of its panes and the same to the last bit in whatever order events came. The
//! sums that a cell keeps are those of [`super::plain`], and where events are weighted those of
//! [`super::weighted`].
//!
//! Third cumulants would need k³ sums; they are taken at the cell's mean vector and scaled by the
//! exact pairs, as the offline form does beyond [`super::level::THIRD_EXACT`] coordinates. All else
//! is what the offline form computes.
//!
//! Cells are those of one finest level; coarser levels are merges by [`Name::parent`]. With d free
//! dimensions there are 2^L slices an axis, L = max(1, ⌊12/d⌋), so at most 4096 cells up to d = 12,
//! which is also the most that is taken ([`DIMENSION_MAX`]): beyond, hardly any two events share a
//! cell, and `class:k`, `top_k` of fewer, or the kernel tests see more.
//!
//! Cells are capped, and an event that would begin one too many is refused and counted. What is
//! refused depends on the order of events, all else does not; a window with refusals gets no
//! verdict. Events beyond [`EVENTS_MAX`], where integers would overflow, are refused too.
//!
//! Cost: k² additions an event and a search among the cells; 8·(2 + 2k + k² + k(k+1)/2) bytes a
//! cell: 104 for k = 2; of weighted events two to four times that.

use super::cell::Name;
use super::events::{NONE, VectorView, by_rank};
use super::level::VectorLevel;
use super::ranked::Ranked;
use super::{plain, weighted};
use crate::algebra::{Merge, Overflow, Retract};
use crate::weight::Weight;
use std::collections::BTreeMap;

pub use super::shape::{DIMENSION_MAX, Shape};

/// Most events: Σz in units of 2⁻³² stays within 63 bits.
pub const EVENTS_MAX: u64 = (1 << 31) - 1;

/// The integer sums of a vector view, by cell.
#[derive(Debug, Clone)]
pub struct VectorSums {
    shape: Shape,
    k: usize,
    n: u64,
    refused: u64,
    late: u64,
    cells: BTreeMap<Name, Vec<i64>>,
    /// Scratch: coordinates of an event.
    point: Vec<f64>,
    order: Vec<u32>,
}

impl PartialEq for VectorSums {
    fn eq(&self, other: &VectorSums) -> bool {
        (self.shape, self.n, self.refused, self.late)
            == (other.shape, other.n, other.refused, other.late)
            && self.cells == other.cells
    }
}

/// Sums as rows, for a snapshot: the words of a cell's name and its integers.
pub type Rows = Vec<(Vec<u16>, Vec<i64>)>;

impl VectorSums {
    /// No events. `None` where the shape has no dimension.
    pub fn new(shape: Shape) -> Option<VectorSums> {
        Some(VectorSums {
            shape,
            k: shape.dimension()?,
            n: 0,
            refused: 0,
            late: 0,
            cells: BTreeMap::new(),
            point: Vec::new(),
            order: Vec::new(),
        })
    }

    /// Number of events, without refused ones.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Number of events that were refused.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Number of events that came too late to be counted.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Counts events that came too late.
    pub fn add_late(&mut self, late: u64) {
        self.late = self.late.saturating_add(late);
    }

    /// Changes the cap of cells for what is observed from now on.
    pub fn cap(&mut self, cells_max: usize) {
        self.shape.cells_max = cells_max;
    }

    /// The view, and the form in which it is kept.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Adds an event: a vector of K probabilities, to be divided by `sum`, and the class that
    /// happened. It is an error to call this with another number of entries or an unknown class;
    /// such an event is refused. So is one without a weight where events have weights. Returns
    /// whether it was taken.
    pub fn observe(
        &mut self,
        entries: &[f64],
        sum: f64,
        class: u32,
        weight: Option<Weight>,
    ) -> bool {
        let fits = entries.len() == self.shape.classes && (class as usize) < entries.len();
        if !fits || self.n >= EVENTS_MAX {
            self.refused += 1;
            return false;
        }
        let label = self.place(entries, sum, class);
        self.land(label, weight)
    }

    /// Adds an event whose largest entries are known, as many as [`Shape::dimension`] says. An
    /// event with fewer does not belong to this view and is left out.
    pub fn observe_ranked(
        &mut self,
        ranked: Ranked<'_>,
        class: u32,
        weight: Option<Weight>,
    ) -> bool {
        let Some(label) = self.place_ranked(ranked, class) else {
            return true;
        };
        if self.n >= EVENTS_MAX {
            self.refused += 1;
            return false;
        }
        self.land(label, weight)
    }

    /// Corrects the class of an event, or adds it if it had none `before`: the sums are then the
    /// same, to the bit, as with the class `now` at first. If events were refused, this may be one
    /// of them; then nothing changes, because such sums get no verdict. Returns whether there was a
    /// cell for it.
    pub fn revise(
        &mut self,
        ranked: Ranked<'_>,
        before: Option<u32>,
        now: u32,
        weight: Option<Weight>,
    ) -> bool {
        if self.refused > 0 {
            return true;
        }
        let Some(before) = before else {
            return self.observe_ranked(ranked, now, weight);
        };
        let labels = (
            self.place_ranked(ranked, before),
            self.place_ranked(ranked, now),
        );
        let (Some(from), Some(to)) = labels else {
            return true;
        };
        let name = self.name();
        let weight = self.weight_of(weight);
        match (self.cells.get_mut(&name), weight) {
            (Some(cell), Some(None)) => plain::move_label(cell, &self.point, from, to),
            (Some(cell), Some(Some(w))) => weighted::move_label(cell, &self.point, from, to, w),
            _ => {}
        }
        true
    }

    /// The cell of `point`.
    fn name(&self) -> Name {
        let slices = 1 << self.shape.level();
        match self.shape.view {
            VectorView::TopK(_) => Name::cube(&self.point, slices),
            VectorView::Full => Name::simplex(&self.point, slices),
        }
    }

    /// The weight to be used, if any; `None` where one is needed and missing.
    fn weight_of(&self, weight: Option<Weight>) -> Option<Option<Weight>> {
        match (self.shape.weighted, weight) {
            (false, _) => Some(None),
            (true, Some(weight)) => Some(Some(weight)),
            (true, None) => None,
        }
    }

    /// Adds an event whose coordinates are in `point`.
    fn land(&mut self, label: u32, weight: Option<Weight>) -> bool {
        let Some(weight) = self.weight_of(weight) else {
            self.refused += 1;
            return false;
        };
        let name = self.name();
        let room = self.cells.len() < self.shape.cells_max;
        let width = self.shape.width();
        let cell = match self.cells.get_mut(&name) {
            Some(cell) => cell,
            None if room => self.cells.entry(name).or_insert_with(|| vec![0; width]),
            None => {
                self.refused += 1;
                return false;
            }
        };
        self.n += 1;
        match weight {
            None => plain::add(cell, &self.point, label),
            Some(weight) => weighted::add(cell, &self.point, label, weight),
        }
        true
    }

    /// Puts the event's coordinates into `point`; returns its label there.
    fn place(&mut self, entries: &[f64], sum: f64, class: u32) -> u32 {
        self.point.clear();
        // −0.0 is 0, as in scores.
        let value = |z: &f64| (z / sum).min(1.0) + 0.0;
        if self.shape.view == VectorView::Full {
            self.point.extend(entries.iter().map(value));
            return class;
        }
        by_rank(entries, &mut self.order);
        let top = &self.order[..self.k];
        self.point
            .extend(top.iter().map(|&c| value(&entries[c as usize])));
        let place = top.iter().position(|&c| c == class);
        place.map_or(NONE, |p| p as u32)
    }

    /// Puts the coordinates of an event whose largest entries are known into `point`; returns its
    /// label there, or `None` if too few are known.
    fn place_ranked(&mut self, ranked: Ranked<'_>, class: u32) -> Option<u32> {
        let values = ranked.values.get(..self.k)?;
        let classes = ranked.classes.get(..self.k)?;
        let known = |c: &u32| (*c as usize) < self.shape.classes;
        if !classes.iter().all(known) || class as usize >= self.shape.classes {
            return None;
        }
        self.point.clear();
        if self.shape.view == VectorView::Full {
            self.point.resize(self.k, 0.0);
            for (&z, &c) in values.iter().zip(classes) {
                self.point[c as usize] = z;
            }
            return Some(class);
        }
        self.point.extend_from_slice(values);
        let place = classes.iter().position(|&c| c == class);
        Some(place.map_or(NONE, |p| p as u32))
    }

    /// For each cell the mean of its events' largest coordinate, to within the cell, and their
    /// number.
    pub fn tops(&self) -> impl Iterator<Item = (f64, u64)> {
        let top = match self.shape.weighted {
            true => weighted::top,
            false => plain::top,
        };
        let k = self.k;
        self.cells.values().map(move |c| (top(c, k), c[0] as u64))
    }

    /// Σw and Σw² of all events, where they have weights.
    pub fn weights(&self) -> Option<(f64, f64)> {
        let both = self.cells.values().map(|c| weighted::weights(c));
        let sum = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
        self.shape.weighted.then(|| both.fold((0.0, 0.0), sum))
    }

    /// [`Merge::merge`] for sums that are kept: the events of cells beyond the cap are refused.
    pub fn merge_capped(&mut self, other: &VectorSums) {
        self.merge_within(other, self.shape.cells_max);
    }

    fn merge_within(&mut self, other: &VectorSums, cells_max: usize) {
        let merge = self.shape.merge();
        self.add_late(other.late);
        self.refused = self.refused.saturating_add(other.refused);
        if self.n + other.n > EVENTS_MAX {
            self.refused = self.refused.saturating_add(other.n);
            return;
        }
        self.n += other.n;
        for (name, theirs) in &other.cells {
            let room = self.cells.len() < cells_max;
            match self.cells.get_mut(name) {
                Some(ours) => merge(ours, theirs),
                None if room => {
                    self.cells.insert(name.clone(), theirs.clone());
                }
                None => {
                    self.n -= theirs[0] as u64;
                    self.refused = self.refused.saturating_add(theirs[0] as u64);
                }
            }
        }
    }

    /// The cells of the finest level and the `count` − 1 above it at most, coarse to fine: 2, 4, …
    /// slices.
    pub fn levels(&self, count: u32) -> Vec<VectorLevel> {
        let finest = self.shape.level();
        let mut cells = self.cells.clone();
        let mut levels = Vec::new();
        let merge = self.shape.merge();
        let float = match self.shape.weighted {
            true => weighted::cell,
            false => plain::cell,
        };
        let weights = self.weights();
        for level in (1..=finest).rev() {
            if level <= count {
                levels.push(VectorLevel {
                    slices: 1 << level,
                    n: weights.map_or(self.n as f64, |(w, _)| w),
                    count: self.n as f64,
                    effective: weights.map(|(w, w2)| w * w / w2),
                    cells: cells
                        .iter()
                        .map(|(name, c)| float(name, c, self.k))
                        .collect(),
                });
            }
            let mut above: BTreeMap<Name, Vec<i64>> = BTreeMap::new();
            for (name, cell) in cells {
                match above.get_mut(&name.parent()) {
                    Some(sums) => merge(sums, &cell),
                    None => {
                        above.insert(name.parent(), cell);
                    }
                }
            }
            cells = above;
        }
        levels.reverse();
        levels
    }

    /// The sums as rows, for a snapshot.
    pub fn rows(&self) -> Rows {
        let row = |(name, sums): (&Name, &Vec<i64>)| {
            let words = match name {
                Name::Cube(slices) => slices.clone(),
                Name::Simplex(floors, order) => [floors.as_slice(), order].concat(),
            };
            (words, sums.clone())
        };
        self.cells.iter().map(row).collect()
    }

    /// From rows; `None` where they are not of the shape.
    pub fn from_rows(shape: Shape, rows: Rows, refused: u64) -> Option<VectorSums> {
        let mut sums = VectorSums::new(shape)?;
        sums.refused = refused;
        let (words, top) = (shape.words(), 1u16 << shape.level());
        for (name, cell) in rows {
            let floors = match shape.view {
                VectorView::TopK(_) => name.len(),
                VectorView::Full => name.len() / 2,
            };
            let sound = name.len() == words
                && cell.len() == shape.width()
                && cell[0] > 0
                && shape.bounds(&cell)
                && name[..floors].iter().all(|f| *f < top)
                && name[floors..].iter().all(|o| usize::from(*o) < floors);
            if !sound {
                return None;
            }
            sums.n = sums.n.checked_add(cell[0] as u64)?;
            let name = match shape.view {
                VectorView::TopK(_) => Name::Cube(name),
                VectorView::Full => Name::Simplex(name[..floors].to_vec(), name[floors..].to_vec()),
            };
            if sums.cells.insert(name, cell).is_some() {
                return None;
            }
        }
        (sums.n <= EVENTS_MAX).then_some(sums)
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.cells.len() * self.shape.cell_bytes()
    }
}

impl Merge for VectorSums {
    fn empty(&self) -> VectorSums {
        VectorSums {
            n: 0,
            refused: 0,
            late: 0,
            cells: BTreeMap::new(),
            point: Vec::new(),
            order: Vec::new(),
            ..*self
        }
    }

    /// Never fails: where integers would overflow, the events are refused. Cells beyond the cap are
    /// added too, for totals that are not kept.
    fn merge(&mut self, other: &VectorSums) -> Result<(), Overflow> {
        self.merge_within(other, usize::MAX);
        Ok(())
    }
}

impl Retract for VectorSums {
    fn retract(&mut self, other: &VectorSums) -> Result<(), Overflow> {
        let less = |a: u64, b: u64| a.checked_sub(b).ok_or(Overflow);
        self.n = less(self.n, other.n)?;
        self.refused = less(self.refused, other.refused)?;
        self.late = less(self.late, other.late)?;
        let retract = self.shape.retract();
        for (name, theirs) in &other.cells {
            let ours = self.cells.get_mut(name).ok_or(Overflow)?;
            if ours[0] < theirs[0] {
                return Err(Overflow);
            }
            retract(ours, theirs);
        }
        self.cells.retain(|_, cell| cell[0] > 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
