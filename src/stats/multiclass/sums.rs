//! Integer sums of a vector view over sparse cells: what a window keeps of events.
//!
//! As for scalars ([`crate::sums`]) every sum is of integers in units of 2⁻³², so that the sums of a window are
//! those of its panes and the same to the last bit in whatever order events came. The sums that a cell keeps are
//! those of [`super::plain`], and where events are weighted those of [`super::weighted`].
//!
//! Third cumulants would need k³ sums; they are taken at the cell's mean vector and scaled by the exact pairs, as the
//! offline form does beyond [`super::level::THIRD_EXACT`] coordinates. All else is what the offline form computes.
//!
//! Cells are those of one finest level; coarser levels are merges by [`Name::parent`]. With d free dimensions there
//! are 2^L slices an axis, L = max(1, ⌊12/d⌋), so at most 4096 cells up to d = 12, which is also the most that is taken
//! ([`DIMENSION_MAX`]): beyond, hardly any two events share a cell, and `class:k`, `top_k` of fewer, or the kernel tests see more.
//!
//! Cells are capped, and an event that would begin one too many is refused and counted. What is refused depends on the
//! order of events, all else does not; a window with refusals gets no verdict. So are events beyond [`EVENTS_MAX`], where
//! integers would end.
//!
//! Cost: k² additions an event and a search among the cells; 8·(2 + 2k + k² + k(k+1)/2) bytes a cell: 104 for k = 2; of
//! weighted events two to four times that.

use super::cell::Name;
use super::events::{NONE, VectorView};
use super::level::VectorLevel;
use super::ranked::{Ranked, by_rank};
use super::{plain, weighted};
use crate::algebra::{Merge, Overflow, Retract};
use crate::weight::Weight;
use std::collections::BTreeMap;

/// Most coordinates of a view that is kept live.
pub const DIMENSION_MAX: usize = 12;

/// Most events: Σz in units of 2⁻³² stays within 63 bits.
pub const EVENTS_MAX: u64 = (1 << 31) - 1;

/// What is kept of which view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Shape {
    /// The view.
    pub view: VectorView,
    /// K.
    pub classes: usize,
    /// Most cells; more are refused.
    pub cells_max: usize,
    /// Whether its events have weights.
    pub weighted: bool,
}

impl Shape {
    /// k; `None` where a view needs more than [`DIMENSION_MAX`], more than there are classes, or fewer than two classes.
    pub fn dimension(&self) -> Option<usize> {
        let k = match self.view {
            VectorView::Full => self.classes,
            VectorView::TopK(k) => k,
        };
        let fits = (1..=DIMENSION_MAX).contains(&k) && k <= self.classes && self.classes >= 2;
        fits.then_some(k)
    }

    /// Most cells that can be occupied: the cap, or all there are.
    pub fn cells_most(&self) -> usize {
        let free = match self.view {
            VectorView::Full => self.classes.saturating_sub(1),
            VectorView::TopK(k) => k,
        };
        let all = 1usize.checked_shl(self.level().saturating_mul(free as u32));
        all.unwrap_or(usize::MAX).min(self.cells_max)
    }

    /// Heap bytes of a cell: a tree keeps its entries between half and wholly full nodes.
    pub fn cell_bytes(&self) -> usize {
        let k = self.dimension().unwrap_or(0);
        let words = match self.view {
            VectorView::TopK(_) => k,
            VectorView::Full => 2 * k.saturating_sub(1),
        };
        let entry = size_of::<Name>() + size_of::<Vec<i64>>();
        2 * entry + 2 * words + 8 * self.width()
    }

    /// Words of a cell.
    fn width(&self) -> usize {
        let k = self.dimension().unwrap_or(0);
        match self.weighted {
            true => weighted::width(k),
            false => plain::width(k),
        }
    }

    /// How the sums of two cells become one's.
    fn merge(&self) -> fn(&mut [i64], &[i64]) {
        match self.weighted {
            true => weighted::merge,
            false => plain::merge,
        }
    }

    /// How the sums of one cell are taken out of another's.
    fn retract(&self) -> fn(&mut [i64], &[i64]) {
        match self.weighted {
            true => weighted::retract,
            false => plain::retract,
        }
    }

    /// L: the finest level has 2^L slices.
    pub fn level(&self) -> u32 {
        let free = match self.view {
            VectorView::Full => self.classes.saturating_sub(1),
            VectorView::TopK(k) => k,
        };
        (12 / free.max(1) as u32).max(1)
    }
}

/// The sums.
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

    /// n, without those that were refused.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Events that found no cell.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Events that came too late to be in it.
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

    /// What is kept.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Occupied cells.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// Adds an event: a vector of K probabilities, to be divided by `sum`, and the class that happened. It is an error to
    /// call this with another number of entries or an unknown class; such an event is refused. So is one without a weight
    /// where events have weights. Answers whether it was taken.
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

    /// Adds an event of which the largest entries are known, as many as [`Shape::dimension`] says; one of which they are
    /// not is none of this view, and left out.
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

    /// Gives an event another class than it was counted with, or any where it was not counted: to the bit what it
    /// would have been in the first place. Where events were refused it is not known whether this was one of them; there
    /// nothing changes, for such sums get no verdict. Answers whether there was a cell for it.
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

    /// The weight that counts, if any does; `None` where one is missing.
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

    /// The same of an event of which the largest entries are known; `None` where not enough are.
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

    /// For each cell the mean of its events' largest coordinate, to within the cell, and their number.
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

    /// The cells of the finest level and the `count` − 1 above it at most, coarse to fine: 2, 4, … slices.
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

    /// As rows.
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
        let (words, top) = (sums.words(), 1u16 << shape.level());
        for (name, cell) in rows {
            let floors = match shape.view {
                VectorView::TopK(_) => name.len(),
                VectorView::Full => name.len() / 2,
            };
            let sound = name.len() == words
                && cell.len() == shape.width()
                && cell[0] > 0
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
            sums.cells.insert(name, cell);
        }
        (sums.n <= EVENTS_MAX).then_some(sums)
    }

    fn words(&self) -> usize {
        match self.shape.view {
            VectorView::TopK(_) => self.k,
            VectorView::Full => 2 * (self.k - 1),
        }
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

    /// Never fails: where the integers would end the events are refused. Cells come in whatever the cap
    /// says, for totals that are not kept.
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
mod tests {
    use super::super::{Events, evaluate, evaluate_sums};
    use super::*;
    use crate::kernel::Vectors;
    use crate::kernel::conditional::draw;
    use crate::rng::Rng;

    const CASES: [(usize, VectorView); 4] = [
        (3, VectorView::Full),
        (5, VectorView::TopK(2)),
        (12, VectorView::TopK(3)),
        (4, VectorView::Full),
    ];

    fn shape(classes: usize, view: VectorView) -> Shape {
        Shape {
            view,
            classes,
            cells_max: 4096,
            weighted: false,
        }
    }

    fn sample(classes: usize, n: usize, pushed: f64, seed: u64) -> Vectors {
        let mut rng = Rng::new(seed);
        let mut all = Vectors::new(classes);
        while all.len() < n {
            let mut p: Vec<f64> = (0..classes).map(|_| -(1.0 - rng.uniform()).ln()).collect();
            let sum: f64 = p.iter().sum();
            p.iter_mut().for_each(|p| *p /= sum);
            let y = if rng.uniform() < pushed {
                0
            } else {
                draw(&p, rng.uniform())
            };
            let _ = all.push(&p, y);
        }
        all
    }

    fn sums(all: &Vectors, view: VectorView) -> VectorSums {
        let mut sums = VectorSums::new(shape(all.classes(), view)).unwrap();
        all.events()
            .for_each(|(row, y)| assert!(sums.observe(row, 1.0, y, None)));
        sums
    }

    #[test]
    fn any_split_and_order_gives_the_same_integers_and_rows_give_them_back() {
        for (classes, view) in CASES {
            let all = sample(classes, 500, 0.2, 3);
            let whole = sums(&all, view);
            let mut back = VectorSums::new(whole.shape()).unwrap();
            for part in [all.pick((250..500).rev()), all.pick(0..250)] {
                back.merge(&sums(&part, view)).unwrap();
            }
            assert_eq!((back.rows(), back.n()), (whole.rows(), 500));
            let again = VectorSums::from_rows(whole.shape(), whole.rows(), 0).unwrap();
            assert_eq!((again.rows(), again.n()), (whole.rows(), 500));
            let mut bad = whole.rows();
            bad[0].0[0] = u16::MAX;
            assert!(VectorSums::from_rows(whole.shape(), bad, 0).is_none());
        }
    }

    #[test]
    fn the_sums_say_what_the_offline_form_says_of_the_same_events() {
        for (classes, view) in CASES {
            let all = sample(classes, 1000, 0.15, 4);
            let kept = sums(&all, view);
            let events = Events::of(&all, view);
            for level in kept.levels(12) {
                let exact = VectorLevel::of(&events, level.slices);
                let names =
                    |l: &VectorLevel| l.cells.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
                assert_eq!(names(&level), names(&exact));
                for (a, b) in level.cells.iter().zip(&exact.cells) {
                    let near = |x: f64, y: f64| (x - y).abs() <= 1e-6 * (1.0 + y.abs());
                    assert!(
                        near(a.u2, b.u2) && near(a.along, b.along) && near(a.pairs, b.pairs),
                        "{a:?} {b:?}"
                    );
                    assert!(a.u.iter().zip(&b.u).all(|(x, y)| near(*x, *y)));
                    if b.n >= 50.0 {
                        // The third cumulant shifts a p-value by a few hundredths of itself.
                        assert!(
                            (a.triples / b.triples - 1.0).abs() < 0.25,
                            "{} {}",
                            a.triples,
                            b.triples
                        );
                    }
                }
            }
            let live = evaluate_sums(&kept, 0.05, 0.9).unwrap();
            let offline = evaluate(&all, view, 0.05, 0.9, Some(live.interval.slices)).unwrap();
            assert!(
                (live.interval.estimate_squared - offline.interval.estimate_squared).abs() < 1e-6
            );
            assert!((live.interval.upper - offline.interval.upper).abs() < 1e-4);
            for (a, b) in live.tcal.levels.iter().zip(&offline.tcal.levels) {
                assert!(
                    (a.debiased - b.debiased).abs() < 1e-6
                        && (a.null_sd / b.null_sd - 1.0).abs() < 1e-5
                );
                assert!(
                    (a.p_value - b.p_value).abs() < 0.02,
                    "{} {}",
                    a.p_value,
                    b.p_value
                );
            }
        }
    }

    #[test]
    fn the_test_over_sums_keeps_its_level_and_finds_a_pushed_class() {
        let (mut hits, sets) = (0, 300);
        for seed in 0..sets {
            let kept = sums(&sample(3, 300, 0.0, 1000 + seed), VectorView::Full);
            hits += u32::from(evaluate_sums(&kept, 0.05, 0.9).unwrap().tcal.reject);
        }
        let level = f64::from(hits) / sets as f64;
        // Four binomial errors on both sides of 0.05.
        assert!(
            level < 0.05 + 4.0 * (0.0475 / sets as f64).sqrt() && level > 0.005,
            "{level}"
        );
        for (classes, view) in CASES {
            let kept = sums(&sample(classes, 3000, 0.3, 9), view);
            assert!(
                evaluate_sums(&kept, 0.05, 0.9).unwrap().tcal.reject,
                "{view}"
            );
        }
    }

    #[test]
    fn cells_beyond_the_cap_and_vectors_of_another_length_are_refused_and_counted() {
        let mut few = VectorSums::new(Shape {
            cells_max: 2,
            ..shape(3, VectorView::Full)
        })
        .unwrap();
        let all = sample(3, 200, 0.0, 5);
        let taken = all
            .events()
            .filter(|(row, y)| few.observe(row, 1.0, *y, None));
        assert_eq!(taken.count() as u64, few.n());
        assert_eq!((few.cells(), few.n() + few.refused()), (2, 200));
        assert!(few.refused() > 0);
        few.observe(&[0.5, 0.5], 1.0, 0, None);
        few.observe(&[0.5, 0.2, 0.3], 1.0, 3, None);
        assert_eq!(few.n() + few.refused(), 202);
        assert!(VectorSums::new(shape(13, VectorView::Full)).is_none());
        assert!(VectorSums::new(shape(3, VectorView::TopK(4))).is_none());
    }
}
