//! The bytes of the sums by cluster of a pane.
//!
//! ```text
//! varint buckets · (varint index delta · 2 varints: direction sums · varint cells ·
//!     (varint index delta · varint n · varint y · varint z)*)*
//! ```
//!
//! Always: reading gives back the sums to the last bit; bytes that are not those of any sums are
//! refused. Cost: 8 bytes for an occupied cell of a bucket with two events, 15 with half a million;
//! there are at most 4096 and no more than events.

use super::bits::{
    Corrupt, read_count, read_number, read_varint, unzigzag_wide, write_varint, zigzag_wide,
};
use super::pack_error::PackError;
use crate::stats::axis::Grid;
use crate::stats::clusters::{Bucket, BucketSums, ClusterCell, ClusterSums};

pub(super) fn write(bytes: &mut Vec<u8>, sums: &ClusterSums) {
    write_varint(bytes, sums.occupied().count() as u128);
    let mut next = 0;
    for (bucket, sums) in sums.occupied() {
        write_varint(bytes, u128::from(bucket.index() - next));
        next = bucket.index() + 1;
        for sum in sums.directions {
            write_varint(bytes, zigzag_wide(sum.into()));
        }
        let occupied = || (0u64..).zip(&sums.cells).filter(|(_, c)| c.n > 0);
        write_varint(bytes, occupied().count() as u128);
        let mut next = 0;
        for (index, cell) in occupied() {
            for x in [index - next, cell.n, cell.y, cell.z] {
                write_varint(bytes, u128::from(x));
            }
            next = index + 1;
        }
    }
}

/// Reads the sums of a grid, and advances past them.
pub(super) fn read(rest: &mut &[u8], grid: Grid) -> Result<ClusterSums, PackError> {
    let mut sums = ClusterSums::default();
    let mut index = 0u32;
    for _ in 0..read_varint(rest)? {
        index = index.checked_add(read_number(rest)?).ok_or(Corrupt)?;
        let bucket = Bucket::from_index(index).ok_or(Corrupt)?;
        index += 1;
        sums.merge_bucket(bucket, &read_bucket(rest, grid)?)?;
    }
    Ok(sums)
}

fn read_bucket(rest: &mut &[u8], grid: Grid) -> Result<BucketSums, PackError> {
    let mut sums = BucketSums::default();
    for sum in &mut sums.directions {
        *sum = i64::try_from(unzigzag_wide(read_varint(rest)?)).map_err(|_| Corrupt)?;
    }
    let most = 1usize << ClusterSums::level_of(grid);
    let count = read_varint(rest)?;
    if count == 0 || count > most as u128 {
        return Err(PackError::Corrupt);
    }
    for _ in 0..count {
        let empty: usize = read_number(rest)?;
        let index = sums.cells.len().checked_add(empty).ok_or(Corrupt)?;
        if index >= most {
            return Err(PackError::Corrupt);
        }
        sums.cells.resize(index, ClusterCell::default());
        let cell = ClusterCell {
            n: read_count(rest)?,
            y: read_count(rest)?,
            z: read_number(rest)?,
        };
        if cell.n == 0 || cell.y > cell.n || u128::from(cell.z) > u128::from(cell.n) << 32 {
            return Err(PackError::Corrupt);
        }
        sums.cells.push(cell);
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use crate::stats::attribute::Attribute;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::clusters::Bucket;
    use crate::stats::fixed::Score;
    use crate::stats::sums::Sums;
    use crate::window::Packed;
    use proptest::prelude::*;

    fn sums(grid: Grid, events: &[(f64, bool, u64)]) -> Sums {
        let mut sums = Sums::new(grid);
        for &(z, y, cluster) in events {
            let bucket = Bucket::of(&cluster.to_le_bytes());
            sums.observe_with(Score::new(z).unwrap(), y, Attribute::Cluster(bucket))
                .unwrap();
        }
        sums
    }

    proptest! {
        #[test]
        fn packing_is_exact_and_damaged_bytes_never_panic(
            events in prop::collection::vec((0.0..=1.0, any::<bool>(), 0u64..100), 0..200),
            level in 1u32..=12, at: usize, bit in 0u32..8,
        ) {
            let grid = Grid::new(Axis::Linear, level).clustered();
            let sums = sums(grid, &events);
            let packed = Packed::new(&sums);
            prop_assert_eq!(packed.unpack(grid).unwrap(), sums.clone());
            let mut bytes = packed.as_bytes().to_vec();
            prop_assert_eq!(Packed::from_bytes(&bytes).unwrap().unpack(grid).unwrap(), sums);
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            if let Ok(packed) = Packed::from_bytes(&bytes) {
                let _ = packed.unpack(grid);
            }
        }
    }
}
