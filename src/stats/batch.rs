//! Sums that take events: a buffer before the cells.
//!
//! The cells of a stream take 128 KiB. With a thousand streams each event costs one cache miss, and
//! each miss is waited for in turn. So events are first buffered in a list, eight bytes each, and
//! are added to their cells a hundred at a time: the misses then overlap, and the logarithms run in
//! one tight loop. Nothing else changes: the sums equal those of adding the events one by one, to
//! the last bit, however they are split into batches (a test below compares them with
//! [`Sums::observe`]).
//!
//! All views of a stream share one buffer, in rows of one entry for each view, so an event counts
//! for all of them or for none.
//!
//! Sums are accessible only through [`BatchedSums::flush`] or [`BatchedSums::into_sums`], so
//! buffered events cannot be forgotten.
//!
//! Always: at most [`EVENTS_MAX`] events, buffered ones included; more are refused before anything
//! changes.

use super::algebra::Overflow;
use super::axis::Grid;
use super::fixed::Scored;
use super::sums::{EVENTS_MAX, Sums};

/// Most buffered events: 1 KiB a view and open pane. A thousand streams took a twentieth longer
/// with 64, because of misses in the cells, and with 256, because of misses in the lists.
const WAITING_MAX: u64 = 128;

/// Rows that are allocated at first.
const FIRST: usize = 8;

/// The sums of all views of a stream, with a buffer of events that are not yet added to them.
#[derive(Debug, Clone)]
pub struct BatchedSums {
    /// Buffered rows of one entry for each view, and room for more.
    rows: Vec<Scored>,
    /// Number of buffered entries.
    used: usize,
    /// Sums of each view: at least one view, all with the same number of events.
    sums: Vec<Sums>,
}

impl BatchedSums {
    /// Sums without events for `views` views, at least one.
    pub fn new(grid: Grid, views: usize) -> BatchedSums {
        BatchedSums::of(vec![Sums::new(grid); views.max(1)])
    }

    /// Continues from the sums of each view. Fails if their numbers of events differ, or if the
    /// sums are impossible for that number.
    pub fn from_sums(mut sums: Vec<Sums>) -> Result<BatchedSums, Overflow> {
        let n = sums.first().ok_or(Overflow)?.n();
        if sums.iter().all(|s| s.n() == n && s.is_bounded()) {
            sums.iter_mut().for_each(Sums::compact_dense);
            Ok(BatchedSums::of(sums))
        } else {
            Err(Overflow)
        }
    }

    fn of(sums: Vec<Sums>) -> BatchedSums {
        BatchedSums {
            rows: Vec::new(),
            used: 0,
            sums,
        }
    }

    /// Adds one event, with one entry for each view; an event without entries changes nothing.
    #[inline]
    pub fn observe(&mut self, event: &[Scored]) -> Result<(), Overflow> {
        debug_assert!(event.is_empty() || event.len() == self.sums.len());
        let end = self.used + event.len();
        if end > self.rows.len() {
            return self.observe_in_room(event);
        }
        self.rows[self.used..end].copy_from_slice(event);
        self.used = end;
        Ok(())
    }

    /// [`BatchedSums::observe`] for a single view.
    #[inline]
    pub fn observe_one(&mut self, event: Scored) -> Result<(), Overflow> {
        debug_assert_eq!(1, self.sums.len());
        match self.rows.get_mut(self.used) {
            Some(row) => *row = event,
            None => return self.observe_in_room(&[event]),
        }
        self.used += 1;
        Ok(())
    }

    /// Number of events, buffered ones included.
    pub fn n(&self) -> u64 {
        let views = self.sums.len().max(1);
        self.sums.first().map_or(0, Sums::n) + (self.used / views) as u64
    }

    /// Adds the buffered events to the sums; returns the sums of each view.
    pub fn flush(&mut self) -> &[Sums] {
        let (views, waiting) = (self.sums.len(), &self.rows[..self.used]);
        if let [sums] = &mut self.sums[..] {
            sums.observe_all(waiting);
        } else {
            let mut column = Vec::with_capacity(waiting.len() / views);
            for (view, sums) in self.sums.iter_mut().enumerate() {
                column.clear();
                column.extend(waiting.iter().skip(view).step_by(views));
                sums.observe_all(&column);
            }
        }
        self.used = 0;
        self.rows.truncate(self.most());
        &self.sums
    }

    /// Adds the buffered events, drops the buffer and returns the sums of each view.
    pub fn into_sums(mut self) -> Vec<Sums> {
        self.flush();
        self.sums
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let sums = |s: &Sums| size_of::<Sums>() + s.bytes();
        self.rows.capacity() * size_of::<Scored>() + self.sums.iter().map(sums).sum::<usize>()
    }

    #[cold]
    fn observe_in_room(&mut self, event: &[Scored]) -> Result<(), Overflow> {
        if self.used >= self.most() {
            self.flush();
        }
        let more = (2 * self.rows.len()).max(FIRST * self.sums.len());
        let room = more.min(self.most());
        if room == 0 {
            return Err(Overflow);
        }
        self.rows.resize(room, event[0]);
        self.observe(event)
    }

    /// Most entries that may be buffered, given how many events the sums hold.
    fn most(&self) -> usize {
        let rows = WAITING_MAX.min(EVENTS_MAX - self.sums[0].n());
        rows as usize * self.sums.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::axis::Axis;
    use super::super::fixed::Score;
    use super::super::repeats::Repeats;
    use super::super::rng::Rng;
    use super::super::sums::{Cell, Distinct, LogSums};
    use super::*;

    const LOGIT: Axis = Axis::Logit {
        low: 1e-5,
        high: 0.5,
    };

    /// Scores of every kind: even, crowded at both ends, of few values, the smallest there is.
    fn score(rng: &mut Rng) -> f64 {
        let z = rng.uniform();
        match rng.bits() % 5 {
            0 => z,
            1 => z.powi(9),
            2 => 1.0 - z.powi(9),
            3 => (z * 65.0).floor() / 64.0,
            _ => f64::MIN_POSITIVE / 3.0,
        }
    }

    #[test]
    fn any_split_into_batches_gives_the_sums_of_single_events() {
        for seed in 0..120u64 {
            let mut rng = Rng::new(seed);
            let level = 1 + (seed % 12) as u32;
            let views = 1 + (rng.bits() % 3) as usize;
            let axis = if seed % 2 == 0 { LOGIT } else { Axis::Linear };
            let grid = Grid::new(axis, level);
            let mut one_by_one = vec![Sums::new(grid); views];
            let mut pending = BatchedSums::new(grid, views);
            for _ in 0..rng.bits() % 4000 {
                let (z, y) = (score(&mut rng), rng.bits() & 1 == 1);
                let mut row = Vec::new();
                for (view, sums) in one_by_one.iter_mut().enumerate() {
                    let z = Score::new(z / (view + 1) as f64).unwrap();
                    let y = y ^ (view == 1);
                    sums.observe(z, y).unwrap();
                    row.push(Scored::new(z, y));
                }
                pending.observe(&row).unwrap();
                match rng.bits() % 300 {
                    0 => assert_eq!(pending.flush(), &one_by_one, "seed {seed}"),
                    1 => pending = BatchedSums::from_sums(pending.into_sums()).unwrap(),
                    _ => {}
                }
            }
            assert_eq!(pending.into_sums(), one_by_one, "seed {seed}");
        }
    }

    #[test]
    fn cells_of_more_events_than_their_words_hold_lose_none() {
        for level in [1, 4, 6, 12] {
            let grid = Grid::new(Axis::Linear, level);
            let (mut sums, mut pending) = (Sums::new(grid), BatchedSums::new(grid, 1));
            let mut seed = 1u64;
            for i in 0..300_000u64 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let wide = (seed >> 11) as f64 / (1u64 << 53) as f64;
                // Two events in three in one cell of ones, or in the five at the lower end.
                let z = [1.0, wide * 5.0 / 64.0, wide][(i % 3) as usize];
                let (z, y) = (Score::new(z).unwrap(), seed >> 9 & 1 == 1);
                sums.observe(z, y).unwrap();
                pending.observe_one(Scored::new(z, y)).unwrap();
                if i == 200_000 {
                    pending = BatchedSums::from_sums(pending.into_sums()).unwrap();
                }
            }
            // The cells, and samples of scores beside them.
            assert!(pending.bytes() <= grid.cells() as usize * 48 + 32_768);
            assert_eq!(pending.flush()[0], sums);
        }
    }

    fn of_cell(cell: Cell) -> Result<BatchedSums, Overflow> {
        let grid = Grid::new(Axis::Linear, 1);
        let none = Distinct::from_counts(None);
        let mut sums = Sums::new(grid);
        sums.merge_parts([(1, cell)], &LogSums::default(), &none, &Repeats::default())?;
        BatchedSums::from_sums(vec![sums])
    }

    #[test]
    fn the_event_above_the_cap_is_refused_and_the_others_stay() {
        let n = EVENTS_MAX - 2;
        let full = |z| Cell {
            n,
            y: n,
            z,
            yz: z,
            z2: z,
            v2: 0,
        };
        let mut pending = of_cell(full(n << 32)).unwrap();
        let one = [Scored::new(Score::new(1.0).unwrap(), true)];
        assert_eq!(pending.observe(&one), Ok(()));
        assert_eq!(pending.observe(&one), Ok(()));
        assert_eq!(pending.observe(&one), Err(Overflow));
        assert_eq!(pending.flush()[0].n(), EVENTS_MAX);
        assert_eq!(pending.observe(&one), Err(Overflow));
        let sums = pending.into_sums().remove(0);
        let (_, cell) = sums.occupied().next().unwrap();
        assert_eq!((cell.n, cell.z), (EVENTS_MAX, EVENTS_MAX << 32));
        assert!(of_cell(full((n << 32) + 1)).is_err());
    }
}
