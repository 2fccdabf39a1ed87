//! Isotonic recalibration: the rising function that fits best.
//!
//! Pool adjacent violators: from left to right, a point whose rate is not above that of the block
//! before joins it, until rates rise. This is the maximum of the likelihood, and the minimum of the
//! Brier score, over all rising functions (Barlow, Bartholomew, Bremner, Brunk, *Statistical
//! inference under order restrictions*, 1972, §1.2 and §1.5). The map is a block's rate over the
//! block's scores, and straight between blocks, as scikit-learn has it; beyond the outermost it is
//! theirs.
//!
//! Two things are added. A block of n events that never (or always) happened does not get the rate
//! 0 (or 1), because the first surprise would have unbounded log loss. It gets (y + ½)/(n + 1), or
//! the next block's rate where that is nearer, so that the map still rises. And at most
//! [`BLOCKS_MAX`] blocks are kept, by merging the neighbours whose rates differ least, so that a
//! map has a bound in bytes: with 256 blocks such neighbours differ by less than the rates' own
//! errors.

use super::point::Point;
use super::unfit::Unfit;

/// Most blocks of a map: 6 KiB.
pub const BLOCKS_MAX: usize = 256;

/// Neighbouring points with one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Block {
    /// Least score.
    pub low: f64,
    /// Greatest score.
    pub high: f64,
    /// Rate, inside (0, 1).
    pub rate: f64,
}

/// A rising function of the score.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Isotonic {
    /// Blocks by rising score and rate; at least one.
    pub blocks: Vec<Block>,
}

/// A block with its sums, before it is bounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pool {
    /// Least score.
    pub low: f64,
    /// Greatest score.
    pub high: f64,
    /// Number of events.
    pub n: f64,
    /// Σy.
    pub y: f64,
}

impl Pool {
    /// Event rate.
    pub fn rate(&self) -> f64 {
        self.y / self.n
    }

    fn join(&mut self, right: &Pool) {
        self.high = right.high;
        self.n += right.n;
        self.y += right.y;
    }
}

/// Pools adjacent violators of points in ascending order.
pub fn pool(points: &[Point]) -> Vec<Pool> {
    let mut pools: Vec<Pool> = Vec::new();
    for p in points {
        let mut last = Pool {
            low: p.z,
            high: p.z,
            n: p.n,
            y: p.y,
        };
        // Cross products compare rates of counts without rounding.
        while let Some(before) = pools.last()
            && before.y * last.n >= last.y * before.n
        {
            let mut joined = *before;
            joined.join(&last);
            last = joined;
            pools.pop();
        }
        pools.push(last);
    }
    pools
}

impl Isotonic {
    /// Fits points in ascending order.
    pub fn fit(points: &[Point]) -> Result<Isotonic, Unfit> {
        let mut pools = pool(points);
        if pools.len() < 2 {
            return Err(Unfit::Reversed);
        }
        while pools.len() > BLOCKS_MAX {
            let apart = |i: &usize| pools[*i + 1].rate() - pools[*i].rate();
            let nearest = (0..pools.len() - 1).min_by(|i, j| apart(i).total_cmp(&apart(j)));
            let at = nearest.unwrap_or(0);
            let right = pools.remove(at + 1);
            pools[at].join(&right);
        }
        let rate = |i: usize| {
            let p = &pools[i];
            let inner = (p.y + 0.5) / (p.n + 1.0);
            match (p.y <= 0.0, p.y >= p.n) {
                (true, _) => pools
                    .get(i + 1)
                    .map_or(inner, |next| inner.min(next.rate())),
                (_, true) if i > 0 => inner.max(pools[i - 1].rate()),
                _ => p.rate(),
            }
        };
        let block = |(i, p): (usize, &Pool)| Block {
            low: p.low,
            high: p.high,
            rate: rate(i),
        };
        Ok(Isotonic {
            blocks: pools.iter().enumerate().map(block).collect(),
        })
    }

    /// The recalibrated score.
    pub fn rate(&self, z: f64) -> f64 {
        let at = self.blocks.partition_point(|b| b.high < z);
        match (
            at.checked_sub(1).map(|i| self.blocks[i]),
            self.blocks.get(at),
        ) {
            (_, Some(b)) if b.low <= z => b.rate,
            (Some(left), Some(right)) => {
                let share = (z - left.high) / (right.low - left.high);
                left.rate + share * (right.rate - left.rate)
            }
            (None, Some(first)) => first.rate,
            (Some(last), None) => last.rate,
            (None, None) => z,
        }
    }

    /// The corners of the map: between two neighbours it is straight.
    pub fn corners(&self) -> impl Iterator<Item = f64> {
        self.blocks.iter().flat_map(|b| [b.low, b.high])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rates: &[(f64, f64)]) -> Vec<Point> {
        let one = |(i, &(n, y)): (usize, &(f64, f64))| Point {
            z: (i as f64 + 0.5) / rates.len() as f64,
            n,
            y,
        };
        rates.iter().enumerate().map(one).collect()
    }

    #[test]
    fn violators_are_pooled_as_by_hand() {
        // Rates 0.1, 0.5, 0.3, 0.2, 0.9: the three in the middle violate.
        let pools = pool(&points(&[
            (10.0, 1.0),
            (10.0, 5.0),
            (10.0, 3.0),
            (10.0, 2.0),
            (10.0, 9.0),
        ]));
        let rates: Vec<f64> = pools.iter().map(Pool::rate).collect();
        assert_eq!(rates, [0.1, 10.0 / 30.0, 0.9]);
        assert_eq!((pools[1].low, pools[1].high), (0.3, 0.7));
    }

    #[test]
    fn between_blocks_the_map_is_straight_and_beyond_them_flat() {
        let map = Isotonic::fit(&points(&[(10.0, 2.0), (10.0, 6.0)])).unwrap();
        for (z, rate) in [(0.0, 0.2), (0.25, 0.2), (0.5, 0.4), (0.75, 0.6), (1.0, 0.6)] {
            assert!((map.rate(z) - rate).abs() < 1e-12, "{z}");
        }
    }

    #[test]
    fn a_block_without_surprise_leaves_room_for_one_and_the_map_still_rises() {
        let map = Isotonic::fit(&points(&[(1.0, 0.0), (99.0, 1.0), (9.0, 9.0)])).unwrap();
        let rates: Vec<f64> = map.blocks.iter().map(|b| b.rate).collect();
        assert_eq!(rates, [1.0 / 99.0, 1.0 / 99.0, 0.95]);
    }

    #[test]
    fn no_map_has_more_blocks_than_the_bound() {
        let rising: Vec<(f64, f64)> = (0..1000).map(|i| (1000.0, f64::from(i))).collect();
        let map = Isotonic::fit(&points(&rising)).unwrap();
        assert_eq!(map.blocks.len(), BLOCKS_MAX);
        assert!(map.blocks.windows(2).all(|w| w[0].rate < w[1].rate));
    }
}
