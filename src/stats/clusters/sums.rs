//! The additive sums by cluster: only what the tests of dependent outcomes need.
//!
//! A stream may have any number of clusters, so one sum per cluster would need unbounded memory.
//! Instead, a hash of its name assigns each cluster to one of [`BUCKETS`] *buckets*. A bucket is a
//! union of whole clusters, so buckets are as independent of each other as clusters are. A bucket
//! holds three integers for each of at most 64 cells, and the two sums of the score test that need
//! a logarithm of each score.
//!
//! Always: exact, in any order; what is taken out leaves no trace. Cost: a bucket grows to its
//! highest occupied cell, 1.6 kB at most, so [`ClusterSums::BYTES_MAX`] in all; 40 ns an event.

use super::super::algebra::{Merge, Overflow, Retract};
use super::super::axis::Grid;
use super::super::fixed::{CLIP, ONE, Score, to_fixed};
use super::super::ln::ln;

/// Number of buckets: as many as a word has bits. Sign flips of 40 clusters or more have nearly the
/// power that any number has.
pub const BUCKETS: usize = 64;

/// Finest level that is kept by bucket.
pub const LEVEL_MAX: u32 = 6;

/// The bucket of a cluster, in 0..[`BUCKETS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket(u8);

impl Bucket {
    /// The bucket of the cluster of this name: the same in every process and version.
    #[inline]
    pub fn of(name: &[u8]) -> Bucket {
        // FNV-1a, and the finalizer of MurmurHash3, for names that differ in their last byte.
        let hash = name.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
            (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
        });
        let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Bucket((hash >> 58) as u8)
    }

    /// The bucket of this number, if there is one.
    pub fn from_index(index: u32) -> Option<Bucket> {
        let index = u8::try_from(index).ok()?;
        (usize::from(index) < BUCKETS).then_some(Bucket(index))
    }

    /// Its number.
    pub fn index(self) -> u32 {
        u32::from(self.0)
    }
}

/// The events of one bucket in one cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClusterCell {
    /// Number of events.
    pub n: u64,
    /// Σy.
    pub y: u64,
    /// Σz in units of 2⁻³².
    pub z: u64,
}

impl ClusterCell {
    fn zip(
        &self,
        o: &ClusterCell,
        f: fn(u64, u64) -> Option<u64>,
    ) -> Result<ClusterCell, Overflow> {
        let g = |a, b| f(a, b).ok_or(Overflow);
        Ok(ClusterCell {
            n: g(self.n, o.n)?,
            y: g(self.y, o.y)?,
            z: g(self.z, o.z)?,
        })
    }

    /// ΣU.
    pub fn u(&self) -> f64 {
        let u = (i128::from(self.y) << 32) - i128::from(self.z);
        u as f64 / ONE as f64
    }
}

/// The events of one bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BucketSums {
    /// ΣU ln z and −ΣU ln(1−z), z clipped to [2⁻³², 1−2⁻³²], in units of 2⁻³².
    pub directions: [i64; 2],
    /// By cell, up to the last occupied one.
    pub cells: Vec<ClusterCell>,
}

impl BucketSums {
    /// Number of events.
    pub fn n(&self) -> u64 {
        self.cells.iter().map(|c| c.n).sum()
    }

    /// Makes room for `len` cells, at most 64.
    fn grow(&mut self, len: usize) {
        if self.cells.len() < len {
            let room = len.next_power_of_two();
            self.cells.reserve_exact(room - self.cells.len());
            self.cells.resize(len, ClusterCell::default());
        }
    }

    fn add(&mut self, o: &BucketSums) -> Result<(), Overflow> {
        self.grow(o.cells.len());
        for (ours, theirs) in self.cells.iter_mut().zip(&o.cells) {
            *ours = ours.zip(theirs, u64::checked_add)?;
        }
        self.direct(o.directions, i64::checked_add)
    }

    fn take(&mut self, o: &BucketSums) -> Result<(), Overflow> {
        if self.cells.len() < o.cells.len() {
            return Err(Overflow);
        }
        for (ours, theirs) in self.cells.iter_mut().zip(&o.cells) {
            *ours = ours.zip(theirs, u64::checked_sub)?;
        }
        while self.cells.last().is_some_and(|c| c.n == 0) {
            self.cells.pop();
        }
        self.direct(o.directions, i64::checked_sub)
    }

    fn direct(&mut self, by: [i64; 2], f: fn(i64, i64) -> Option<i64>) -> Result<(), Overflow> {
        for (ours, theirs) in self.directions.iter_mut().zip(by) {
            *ours = f(*ours, theirs).ok_or(Overflow)?;
        }
        Ok(())
    }
}

/// The additive sums of clustered events, by bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterSums {
    /// By bucket; empty, or all of them.
    buckets: Vec<BucketSums>,
}

impl ClusterSums {
    /// Most heap bytes held.
    pub const BYTES_MAX: usize =
        BUCKETS * (size_of::<BucketSums>() + (1 << LEVEL_MAX) * size_of::<ClusterCell>());

    /// The finest level of a grid that is kept by bucket.
    pub fn level_of(grid: Grid) -> u32 {
        grid.level().min(LEVEL_MAX)
    }

    /// Adds an event.
    pub fn observe(
        &mut self,
        grid: &Grid,
        score: Score,
        outcome: bool,
        bucket: Bucket,
    ) -> Result<(), Overflow> {
        let index = grid.cell_of(score.value()) >> (grid.level() - ClusterSums::level_of(*grid));
        let one = ClusterCell {
            n: 1,
            y: u64::from(outcome),
            z: score.fixed(),
        };
        let z = score.value().clamp(CLIP, 1.0 - CLIP);
        let u = if outcome { 1.0 - z } else { -z };
        let terms = [u * ln(z), -u * ln(1.0 - z)].map(to_fixed);
        self.add(bucket, index as usize, &one, terms)
    }

    /// The sums of whole cells of the kept level, each with its bucket and its sums of the score
    /// test.
    pub(super) fn of_cells(
        cells: impl Iterator<Item = (Bucket, usize, ClusterCell, [i64; 2])>,
    ) -> Result<ClusterSums, Overflow> {
        let mut all = ClusterSums::default();
        for (bucket, index, cell, terms) in cells {
            all.add(bucket, index, &cell, terms)?;
        }
        Ok(all)
    }

    fn add(
        &mut self,
        bucket: Bucket,
        index: usize,
        cell: &ClusterCell,
        terms: [i64; 2],
    ) -> Result<(), Overflow> {
        let sums = self.bucket_mut(bucket);
        sums.grow(index + 1);
        sums.cells[index] = sums.cells[index].zip(cell, u64::checked_add)?;
        sums.direct(terms, i64::checked_add)
    }

    fn bucket_mut(&mut self, bucket: Bucket) -> &mut BucketSums {
        self.buckets.resize(BUCKETS, BucketSums::default());
        &mut self.buckets[bucket.0 as usize]
    }

    /// Adds the sums of one bucket. On overflow the sums are unusable.
    pub fn merge_bucket(&mut self, bucket: Bucket, sums: &BucketSums) -> Result<(), Overflow> {
        self.bucket_mut(bucket).add(sums)
    }

    /// Occupied buckets, ascending.
    pub fn occupied(&self) -> impl Iterator<Item = (Bucket, &BucketSums)> {
        let all = (0..).zip(&self.buckets);
        all.filter(|(_, b)| !b.cells.is_empty())
            .map(|(i, b)| (Bucket(i), b))
    }

    /// Number of events.
    pub fn n(&self) -> u64 {
        self.buckets.iter().map(BucketSums::n).sum()
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let cells = self.buckets.iter().map(|b| b.cells.capacity());
        self.buckets.capacity() * size_of::<BucketSums>()
            + cells.sum::<usize>() * size_of::<ClusterCell>()
    }
}

impl Merge for ClusterSums {
    fn empty(&self) -> ClusterSums {
        ClusterSums::default()
    }

    fn merge(&mut self, other: &ClusterSums) -> Result<(), Overflow> {
        for (bucket, sums) in other.occupied() {
            self.merge_bucket(bucket, sums)?;
        }
        Ok(())
    }
}

impl Retract for ClusterSums {
    fn retract(&mut self, other: &ClusterSums) -> Result<(), Overflow> {
        for (bucket, sums) in other.occupied() {
            self.bucket_mut(bucket).take(sums)?;
        }
        if self.buckets.iter().all(|b| b.cells.is_empty()) {
            self.buckets.clear();
        }
        Ok(())
    }
}
