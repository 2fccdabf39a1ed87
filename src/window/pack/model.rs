//! How each sum of a cell is predicted, the same for packing and unpacking. See [`super`] for the
//! table.

use crate::stats::axis::{Axis, Grid};
use crate::stats::fixed::ONE;
use crate::stats::sums::Cell;
use crate::window::bits::{Corrupt, Reader, unzigzag, zigzag};

/// Coded numbers of a cell.
pub(super) const FIELDS: usize = 7;

/// In place of a Rice parameter: the field is 0 in all cells and not written. The index is such a
/// field if all cells are occupied.
pub(super) const ALL_ZERO: u32 = 64;

/// The cells of packed sums, one after the other.
pub(in crate::window) struct Cells<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) model: Model,
    pub(super) ks: [u32; FIELDS],
    pub(in crate::window) left: usize,
    /// Whether a cell did not decode; the cells end there.
    pub(in crate::window) corrupt: bool,
}

impl Cells<'_> {
    /// The next cell; `None` after the last cell or a corrupt one.
    #[inline]
    fn decode(&mut self) -> Option<(u32, Cell)> {
        self.left = self.left.checked_sub(1)?;
        // A copy, which is in registers.
        let mut reader = self.reader;
        let cell = self.model.decode(&mut reader, &self.ks);
        self.reader = reader;
        if cell.is_err() {
            self.corrupt = true;
            self.left = 0;
        }
        cell.ok()
    }

    /// Passes all cells that are left, up to an error.
    #[inline]
    pub(super) fn each<E>(
        &mut self,
        mut f: impl FnMut(u32, &Cell) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some((index, cell)) = self.decode() {
            f(index, &cell)?;
        }
        Ok(())
    }
}

impl Iterator for Cells<'_> {
    type Item = (u32, Cell);

    fn next(&mut self) -> Option<(u32, Cell)> {
        self.decode()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

/// The residuals of a cell.
pub(super) struct Residuals {
    values: [u64; FIELDS],
    /// The cell has several events.
    several: bool,
    /// Their outcomes differ.
    mixed: bool,
}

impl Residuals {
    /// Passes the values that are written, with their fields.
    #[inline]
    pub(super) fn each(&self, mut f: impl FnMut(usize, u64)) {
        // A single call, which the compiler can inline.
        for field in 0..if self.several { FIELDS } else { 4 } {
            if field != 5 || self.mixed {
                f(field, self.values[field]);
            }
        }
    }
}

/// The predictions; the same walk for packing and unpacking.
pub(super) struct Model {
    cells: u32,
    level: u32,
    linear: bool,
    /// w²/12 in units of 2⁻⁴⁸; 0 on a logit axis.
    spread: u64,
    next: u32,
    before: Cell,
    /// Divides by the number of events of the cell before, if there are several.
    by_before: Divisor,
}

impl Model {
    pub(super) fn new(grid: Grid) -> Model {
        let linear = matches!(grid.axis(), Axis::Linear);
        Model {
            cells: grid.cells(),
            level: grid.level(),
            linear,
            // w is 2^(32−b) in units of 2⁻³², so w²/12 is 2^(32−2b)/12, kept with 16 more bits.
            spread: match linear {
                true => (1 << (48 - 2 * grid.level())) / 12,
                false => 0,
            },
            next: 0,
            before: Cell::default(),
            by_before: Divisor::ONE,
        }
    }

    #[inline]
    fn step(&mut self, index: u32, cell: Cell, by_n: Divisor) {
        (self.next, self.before, self.by_before) = (index + 1, cell, by_n);
    }

    /// The residuals of a cell.
    #[inline]
    pub(super) fn encode(&mut self, index: u32, cell: &Cell) -> Residuals {
        let residual = |actual: u64, predicted: u64| zigzag(actual.wrapping_sub(predicted) as i64);
        let Cell { n, y, z, .. } = *cell;
        let mut values = [0; FIELDS];
        values[0] = u64::from(index - self.next);
        values[1] = residual(n, self.before.n);
        values[2] = residual(y, self.y(n));
        values[3] = residual(z, self.z(index, n));
        let mixed = 0 < y && y < n;
        let mut by_n = Divisor::ONE;
        if n > 1 {
            by_n = Divisor::new(n);
            let mean = Mean::of(by_n, z);
            values[4] = residual(cell.z2, self.z2(&mean));
            if mixed {
                values[5] = residual(cell.yz, mean.times(y) as u64);
            }
            values[6] = residual(cell.v2, v2(&mean, cell.z2));
        }
        self.step(index, *cell, by_n);
        Residuals {
            values,
            several: n > 1,
            mixed,
        }
    }

    /// The next cell, from its residuals.
    #[inline]
    fn decode(&mut self, r: &mut Reader<'_>, ks: &[u32; FIELDS]) -> Result<(u32, Cell), Corrupt> {
        // Most cells have one event: their fields are held together.
        r.fill();
        let mut coded = |field: usize| match ks[field] {
            ALL_ZERO => Ok(0),
            k => {
                if field > 3 {
                    r.fill();
                }
                r.rice(k)
            }
        };
        let ahead = u32::try_from(coded(0)?).map_err(|_| Corrupt)?;
        let index = self.next.checked_add(ahead).ok_or(Corrupt)?;
        if index >= self.cells {
            return Err(Corrupt);
        }
        let mut next = |field: usize, predicted: u64| {
            let residual = unzigzag(coded(field)?);
            Ok(predicted.wrapping_add(residual as u64))
        };
        let n = next(1, self.before.n)?;
        if n == 0 {
            return Err(Corrupt);
        }
        let y = next(2, self.y(n))?;
        let z = next(3, self.z(index, n))?;
        let mut by_n = Divisor::ONE;
        let cell = if n == 1 {
            single(y, z).ok_or(Corrupt)?
        } else {
            by_n = Divisor::new(n);
            let mean = Mean::of(by_n, z);
            let z2 = next(4, self.z2(&mean))?;
            let yz = match y {
                0 => 0,
                _ if y == n => z,
                _ => next(5, mean.times(y) as u64)?,
            };
            let v2 = next(6, v2(&mean, z2))?;
            // Each event adds 1 at most.
            let most = z.max(yz).max(z2).max(v2);
            if y > n || most.saturating_sub(1) >> 32 >= n {
                return Err(Corrupt);
            }
            Cell {
                n,
                y,
                z,
                yz,
                z2,
                v2,
            }
        };
        self.step(index, cell, by_n);
        Ok((index, cell))
    }

    #[inline]
    fn y(&self, n: u64) -> u64 {
        match self.before.n {
            0 => n / 2,
            // As between most cells, which have one event.
            before if before == n => self.before.y,
            _ => self.by_before.share(n, self.before.y),
        }
    }

    #[inline]
    fn z(&self, index: u32, n: u64) -> u64 {
        if self.linear {
            // The middle of cell i of 2^b is (2i + 1)·2^(32−b−1); b is at most 16.
            let middle = (2 * u64::from(index) + 1) << (31 - self.level);
            n.wrapping_mul(middle)
        } else {
            match self.before.n {
                0 => 0,
                _ => self.by_before.share(n, self.before.z),
            }
        }
    }

    fn z2(&self, mean: &Mean) -> u64 {
        let spread = u128::from(mean.by_n.n - 1).wrapping_mul(self.spread.into()) >> 16;
        mean.square.wrapping_add(spread as u64)
    }
}

/// A divisor of many numbers: it divides once and then multiplies. This makes unpacking a tenth
/// faster, and packing no slower.
#[derive(Clone, Copy)]
struct Divisor {
    n: u64,
    /// ⌊(2⁶⁴ − 1)/n⌋.
    inverse: u64,
}

impl Divisor {
    const ONE: Divisor = Divisor {
        n: 1,
        inverse: u64::MAX,
    };

    /// `n` is not 0.
    #[inline]
    fn new(n: u64) -> Divisor {
        Divisor {
            n,
            inverse: u64::MAX / n,
        }
    }

    /// ⌊a/n⌋ and the remainder.
    #[inline]
    fn divide(&self, a: u64) -> (u64, u64) {
        // The inverse is at least 2⁶⁴/n − 1, and a less than 2⁶⁴: it is at most 1 too small.
        let quotient = ((u128::from(a) * u128::from(self.inverse)) >> 64) as u64;
        // Nothing wraps; without checks it takes less time.
        let left = a.wrapping_sub(quotient.wrapping_mul(self.n));
        let is_more = left >= self.n;
        let rest = if is_more {
            left.wrapping_sub(self.n)
        } else {
            left
        };
        (quotient.wrapping_add(u64::from(is_more)), rest)
    }

    /// ⌊a·b/n⌋, modulo 2⁶⁴. Division of 128 bits takes several times as long as one of 64.
    #[inline]
    fn share(&self, a: u64, b: u64) -> u64 {
        match a.checked_mul(b) {
            Some(product) => self.divide(product).0,
            None => (u128::from(a) * u128::from(b) / u128::from(self.n)) as u64,
        }
    }
}

/// Σz of n events, as n·`each` + `rest`; `rest` is less than n.
struct Mean {
    by_n: Divisor,
    each: u64,
    rest: u64,
    /// (Σz)²/n in units of 2⁻³².
    square: u64,
}

impl Mean {
    #[inline]
    fn of(by_n: Divisor, z: u64) -> Mean {
        let (each, rest) = by_n.divide(z);
        let mut mean = Mean {
            by_n,
            each,
            rest,
            square: 0,
        };
        mean.square = (mean.times(z) >> 32) as u64;
        mean
    }

    /// ⌊x·Σz/n⌋. `rest` adds less than x.
    #[inline]
    fn times(&self, x: u64) -> u128 {
        let rest = self.by_n.share(x, self.rest);
        u128::from(x) * u128::from(self.each) + u128::from(rest)
    }
}

#[inline]
fn v2(mean: &Mean, z2: u64) -> u64 {
    const BITS: u32 = 48;
    const ONE: u64 = 1 << BITS;
    // For sums that events can have, nothing wraps: V is at most ¼, and the spread of one event
    // too.
    let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> BITS) as u64;
    // The mean has 16 more bits than the sums; otherwise its rounding, times n, would show.
    let each = mean.times(1 << (BITS - 32)) as u64;
    let v = times(each, ONE.wrapping_sub(each));
    let f = times(v, v);
    let first = (u128::from(f) * u128::from(mean.by_n.n)) >> (BITS - 32);
    let spread = z2.wrapping_sub(mean.square) as i64;
    let curve = ONE.wrapping_sub(v.wrapping_mul(6)) as i64;
    let second = (i128::from(curve) * i128::from(spread)) >> BITS;
    (first as u64).wrapping_add(second as u64)
}

/// A cell of one event, as `Cell::of` makes it.
fn single(y: u64, z: u64) -> Option<Cell> {
    if y > 1 || z > ONE {
        return None;
    }
    Some(Cell::of(z, y == 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_divisor_divides(a: u64, n: u64, shift in 0u32..64, near in 0u64..3) {
            let n = (n >> shift).max(1);
            // Multiples, and numbers just below them, are the hardest.
            let multiple = (a / n * n).saturating_sub(near);
            for a in [a, multiple, a >> shift, u64::MAX] {
                prop_assert_eq!(Divisor::new(n).divide(a), (a / n, a % n));
                prop_assert_eq!(Divisor::new(n).share(a, n), a);
            }
        }
    }
}
