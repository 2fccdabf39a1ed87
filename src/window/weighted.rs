//! The bytes of a pane of weighted events.
//!
//! Weights are arbitrary, so one cell predicts little of another. Its sums are written as they are,
//! except for a cell of one event, which is written as weight, score and outcome.
//!
//! ```text
//! varint n · varint cells · 4 varints: log sums · (varint index delta · varint N ·
//!     N = 1: varint y, w, z in their integers;  else: 17 varints)*
//! ```
//!
//! Always: reading gives back the sums to the last bit; bytes that no number of events makes are
//! refused. Cost: at most 282 bytes a cell, more for larger weights; at most 20 for a cell of one
//! event.

use super::bits::{Corrupt, read_logs, read_number, read_varint, write_logs, write_varint};
use super::pack_error::PackError;
use crate::stats::algebra::Overflow;
use crate::stats::fixed::ONE;
use crate::stats::weight::Weight;
use crate::stats::weighted::{NUMBERS, WeightedCell, WeightedSums};

pub(super) fn write(sums: &WeightedSums) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_varint(&mut bytes, u128::from(sums.n()));
    write_varint(&mut bytes, sums.cells().count() as u128);
    write_logs(&mut bytes, sums.logs());
    let mut next = 0;
    for (index, cell) in sums.cells() {
        write_varint(&mut bytes, u128::from(index - next));
        next = index + 1;
        if cell.n == 1 {
            let z = cell.wz / u128::from(cell.w);
            for x in [1, u128::from(cell.y), u128::from(cell.w), z] {
                write_varint(&mut bytes, x);
            }
        } else {
            cell.numbers()
                .iter()
                .for_each(|&x| write_varint(&mut bytes, x));
        }
    }
    bytes
}

/// Reads the sums of a grid of `cells_max` cells.
pub(super) fn read(mut rest: &[u8], cells_max: u32) -> Result<WeightedSums, PackError> {
    let n = read_varint(&mut rest)?;
    let count = read_varint(&mut rest)?;
    if count > u128::from(cells_max) {
        return Err(Corrupt.into());
    }
    let logs = read_logs(&mut rest)?;
    let mut cells = Vec::with_capacity(count as usize);
    let mut next = 0u32;
    for _ in 0..count {
        let ahead = read_number(&mut rest)?;
        let index = next.checked_add(ahead).filter(|&i| i < cells_max);
        let index = index.ok_or(Corrupt)?;
        next = index + 1;
        cells.push((index, read_cell(&mut rest)?));
    }
    let mut sums = WeightedSums::default();
    let merged = sums.merge_parts(cells, &logs);
    merged.map_err(|Overflow| PackError::Overflow)?;
    match u128::from(sums.n()) == n && rest.is_empty() {
        true => Ok(sums),
        false => Err(Corrupt.into()),
    }
}

fn read_cell(rest: &mut &[u8]) -> Result<WeightedCell, Corrupt> {
    let mut numbers = [0u128; NUMBERS];
    numbers[0] = read_varint(rest)?;
    if numbers[0] == 1 {
        let (y, w) = (read_varint(rest)?, read_number(rest)?);
        let z: u64 = read_number(rest)?;
        let weight = Weight::from_fixed(w).ok_or(Corrupt)?;
        return match y {
            0 | 1 if z <= ONE => Ok(WeightedCell::of(z, y == 1, weight)),
            _ => Err(Corrupt),
        };
    }
    for x in &mut numbers[1..] {
        *x = read_varint(rest)?;
    }
    WeightedCell::from_numbers(&numbers).ok_or(Corrupt)
}

#[cfg(test)]
mod tests {
    use super::super::Packed;
    use crate::stats::algebra::Retract;
    use crate::stats::attribute::Attribute;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::fixed::Score;
    use crate::stats::sums::Sums;
    use crate::stats::weight::Weight;
    use proptest::prelude::*;

    fn sums(events: &[(f64, bool, u32)]) -> Sums {
        let mut sums = Sums::new(Grid::new(Axis::Linear, 6).weighted());
        for &(z, y, w) in events {
            let (z, w) = (Score::new(z).unwrap(), Weight::from_fixed(w).unwrap());
            sums.observe_with(z, y, Attribute::Weight(w)).unwrap();
        }
        sums
    }

    fn events() -> impl Strategy<Value = Vec<(f64, bool, u32)>> {
        let weight = prop_oneof![1..=u32::MAX, Just(1), Just(u32::MAX), 1..200_000u32];
        proptest::collection::vec((0.0..=1.0f64, any::<bool>(), weight), 0..300)
    }

    proptest! {
        #[test]
        fn packing_is_exact(events in events(), split: usize) {
            let all = sums(&events);
            let packed = Packed::new(&all);
            prop_assert_eq!(packed.n(), all.n());
            prop_assert_eq!(&packed.unpack(all.grid()).unwrap(), &all);
            let (a, b) = events.split_at(split % (events.len() + 1));
            let (mut left, right) = (sums(a), sums(b));
            Packed::new(&right).merge_into(&mut left).unwrap();
            prop_assert_eq!(&left, &all);
            left.retract(&right).unwrap();
            prop_assert_eq!(&left, &sums(a));
        }

        #[test]
        fn damaged_bytes_are_refused_or_give_other_sums_but_never_panic(
            events in events(), at: usize, bit in 0u32..8, cut: bool
        ) {
            let all = sums(&events);
            let mut bytes = Packed::new(&all).as_bytes().to_vec();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            if cut {
                bytes.truncate(at);
            }
            if let Ok(packed) = Packed::from_bytes(&bytes)
                && let Ok(sums) = packed.unpack(all.grid())
            {
                let _ = crate::stats::evaluation::evaluate(&sums, &Default::default());
            }
        }
    }

    #[test]
    fn sums_of_two_kinds_never_meet() {
        let weighted = sums(&[(0.5, true, 1 << 16), (0.25, false, 7)]);
        let plain = Grid::new(Axis::Linear, 6);
        assert!(
            Packed::new(&Sums::new(plain))
                .unpack(weighted.grid())
                .is_err()
        );
        let mut bare = Sums::new(plain);
        let one = (Score::new(0.5).unwrap(), Weight::new(1.0).unwrap());
        assert!(
            bare.observe_with(one.0, true, Attribute::Weight(one.1))
                .is_err()
        );
    }
}
