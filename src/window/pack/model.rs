//! What each sum of a cell is predicted by, the same for packing and unpacking. See [`super`] for
//! the table.

use crate::stats::axis::{Axis, Grid};
use crate::stats::fixed::ONE;
use crate::stats::sums::Cell;
use crate::window::bits::{Corrupt, Reader, unzigzag, zigzag};

/// Coded numbers of a cell.
pub(super) const FIELDS: usize = 7;

/// In place of a Rice parameter: the field is 0 in all cells and not written. So is the index where
/// all cells are occupied.
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

impl Iterator for Cells<'_> {
    type Item = (u32, Cell);

    fn next(&mut self) -> Option<(u32, Cell)> {
        self.left = self.left.checked_sub(1)?;
        let cell = self.model.decode(&mut self.reader, &self.ks);
        if cell.is_err() {
            self.corrupt = true;
            self.left = 0;
        }
        cell.ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

/// The predictions; the same walk for packing and unpacking.
pub(super) struct Model {
    cells: u32,
    level: u32,
    linear: bool,
    next: u32,
    before: Cell,
}

impl Model {
    pub(super) fn new(grid: Grid) -> Model {
        Model {
            cells: grid.cells(),
            level: grid.level(),
            linear: matches!(grid.axis(), Axis::Linear),
            next: 0,
            before: Cell::default(),
        }
    }

    fn step(&mut self, index: u32, cell: Cell) {
        self.next = index + 1;
        self.before = cell;
    }

    /// The residuals of a cell.
    pub(super) fn encode(&mut self, index: u32, cell: &Cell) -> [Option<u64>; FIELDS] {
        let residual = |actual: u64, predicted: u64| zigzag(actual.wrapping_sub(predicted) as i64);
        let Cell { n, y, z, .. } = *cell;
        let mut out = [
            Some(u64::from(index - self.next)),
            Some(residual(n, self.before.n)),
            Some(residual(y, self.y(n))),
            Some(residual(z, self.z(index, n))),
            None,
            None,
            None,
        ];
        if n > 1 {
            out[4] = Some(residual(cell.z2, self.z2(n, z)));
            if 0 < y && y < n {
                out[5] = Some(residual(cell.yz, yz(n, y, z)));
            }
            out[6] = Some(residual(cell.v2, v2(n, z, cell.z2)));
        }
        self.step(index, *cell);
        out
    }

    /// The next cell, from its residuals.
    fn decode(&mut self, r: &mut Reader<'_>, ks: &[u32; FIELDS]) -> Result<(u32, Cell), Corrupt> {
        let mut coded = |field: usize| match ks[field] {
            ALL_ZERO => Ok(0),
            k => r.rice(k),
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
        let cell = if n == 1 {
            single(y, z).ok_or(Corrupt)?
        } else {
            let z2 = next(4, self.z2(n, z))?;
            let yz = match y {
                0 => 0,
                _ if y == n => z,
                _ => next(5, yz(n, y, z))?,
            };
            let v2 = next(6, v2(n, z, z2))?;
            Cell {
                n,
                y,
                z,
                yz,
                z2,
                v2,
            }
        };
        self.step(index, cell);
        Ok((index, cell))
    }

    fn y(&self, n: u64) -> u64 {
        match self.before.n {
            0 => n / 2,
            before => (u128::from(n) * u128::from(self.before.y) / u128::from(before)) as u64,
        }
    }

    fn z(&self, index: u32, n: u64) -> u64 {
        if self.linear {
            // The middle of cell i of 2^b is (2i + 1)·2^(32−b−1); b is at most 16.
            let middle = (2 * u64::from(index) + 1) << (31 - self.level);
            n.wrapping_mul(middle)
        } else {
            match self.before.n {
                0 => 0,
                before => {
                    let product = u128::from(n).wrapping_mul(u128::from(self.before.z));
                    (product / u128::from(before)) as u64
                }
            }
        }
    }

    fn z2(&self, n: u64, z: u64) -> u64 {
        let spread = if self.linear {
            // w²/12 in units of 2⁻³², w = 2^(32−b) units: 2^(32−2b)/12, kept with 16 more bits.
            let each = (1u128 << (48 - 2 * self.level)) / 12;
            u128::from(n - 1).wrapping_mul(each) >> 16
        } else {
            0
        };
        (square_over_n(n, z).wrapping_add(spread)) as u64
    }
}

/// (Σz)²/n in units of 2⁻³².
fn square_over_n(n: u64, z: u64) -> u128 {
    (u128::from(z).wrapping_mul(u128::from(z)) / u128::from(n)) >> 32
}

fn yz(n: u64, y: u64, z: u64) -> u64 {
    (u128::from(y).wrapping_mul(u128::from(z)) / u128::from(n)) as u64
}

fn v2(n: u64, z: u64, z2: u64) -> u64 {
    const BITS: u32 = 48;
    // The mean with 16 more bits than the sums, lest its rounding times n be seen.
    let mean = ((u128::from(z) << (BITS - 32)) / u128::from(n)) as i128;
    let v = mean.wrapping_mul((1i128 << BITS).wrapping_sub(mean)) >> BITS;
    let f = v.wrapping_mul(v) >> BITS;
    let first = f.wrapping_mul(i128::from(n)) >> (BITS - 32);
    let spread = i128::from(z2).wrapping_sub(square_over_n(n, z) as i128);
    let curve = (1i128 << BITS).wrapping_sub(v.wrapping_mul(6));
    let second = curve.wrapping_mul(spread) >> BITS;
    first.wrapping_add(second) as u64
}

/// A cell of one event, as `Cell::of` makes it.
fn single(y: u64, z: u64) -> Option<Cell> {
    if y > 1 || z > ONE {
        return None;
    }
    Some(Cell::of(z, y == 1))
}
