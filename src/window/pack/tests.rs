use super::*;
use crate::stats::axis::Axis;
use crate::stats::sums::Cell;
use crate::window::sums_of;
use proptest::prelude::*;

fn random(seed: u64) -> impl Iterator<Item = (f64, bool)> {
    let mut x = seed;
    std::iter::repeat_with(move || {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let z = (x >> 11) as f64 / (1u64 << 53) as f64;
        (
            z,
            (x.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as f64 / (1u64 << 31) as f64 <= z,
        )
    })
}

const LOGIT: Axis = Axis::Logit {
    low: 1e-5,
    high: 0.5,
};

#[test]
fn a_cell_packs_into_five_to_eleven_bytes() {
    let grid = Grid::new(Axis::Linear, 12);
    for (each, most) in [(2, 8.0), (20, 10.0), (600, 12.0)] {
        let sums = sums_of(grid, random(1).take(4096 * each));
        let start = std::time::Instant::now();
        let packed = Packed::new(&sums);
        let mid = std::time::Instant::now();
        let back = packed.unpack(grid).unwrap();
        let size = packed.bytes() as f64 / sums.occupied().count() as f64;
        println!(
            "{each} events a cell: {size:.2} bytes a cell, pack {:?}, unpack {:?}",
            mid - start,
            mid.elapsed()
        );
        assert_eq!(back, sums);
        assert!(size < most, "{size}");
    }
}

proptest! {
    #[test]
    fn packing_is_exact(
        seed: u64, n in 0usize..3000, level in 1u32..=16, power in 1i32..9, logit: bool, coarse: bool
    ) {
        let grid = Grid::new(if logit { LOGIT } else { Axis::Linear }, level);
        let round = |z: f64| if coarse { (z * 50.0).round() / 50.0 } else { z };
        let sums = sums_of(grid, random(seed).take(n).map(|(z, y)| (round(z.powi(power)), y)));
        let packed = Packed::new(&sums);
        prop_assert_eq!(packed.n(), sums.n());
        prop_assert_eq!(packed.unpack(grid).unwrap(), sums.clone());
        prop_assert_eq!(Packed::from_bytes(packed.as_bytes()).unwrap().unpack(grid).unwrap(), sums);
    }

    #[test]
    fn damaged_bytes_are_refused_or_give_other_sums_but_never_panic(
        seed: u64, n in 1usize..300, at: usize, bit in 0u32..8, cut: bool
    ) {
        let grid = Grid::new(Axis::Linear, 8);
        let packed = Packed::new(&sums_of(grid, random(seed).take(n)));
        let mut bytes = packed.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        if cut {
            bytes.truncate(at);
        }
        if let Ok(packed) = Packed::from_bytes(&bytes) {
            let _ = packed.unpack(grid);
        }
    }
}

#[test]
fn cells_at_the_end_of_their_integers_survive() {
    let grid = Grid::new(Axis::Linear, 1);
    let big = Cell {
        n: u64::MAX / 4,
        y: u64::MAX / 8,
        z: u64::MAX - 5,
        yz: u64::MAX / 3,
        z2: u64::MAX - 7,
        v2: u64::MAX,
    };
    let logs = LogSums {
        loss: i128::MAX,
        u_logit: i128::MIN,
        v_logit: -1,
        v_logit2: 0,
    };
    let (none, mut whole) = (Distinct::from_counts(None), Sums::new(grid));
    whole
        .merge_parts([(1, big)], &logs, &none, &Repeats::default())
        .unwrap();
    assert_eq!(Packed::new(&whole).unpack(grid).unwrap(), whole);
}
