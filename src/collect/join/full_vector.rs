//! A whole vector among the entries that are kept of a prediction that waits.
//!
//! The kernel view compares vectors and not cells, so all probabilities wait, as doubles: rounding them would save half of
//! that and move what a window says by as much as was rounded, while now it is to the bit what it says of events that came
//! with their outcomes, and what `trueline evaluate` says of the same rows. An [entry](super::RowLayout) is a score and a
//! class, twelve bytes; three doubles take two entries, the halves of the third in the classes:
//!
//! ```text
//!   rank    (high half as the bits of a score │ low half)
//!   row     (z₀ │ high half of z₂) (z₁ │ low half of z₂) (z₃ │ …
//! ```
//! So a vector of K takes 12·(1 + ⌈2K/3⌉) bytes, and cohorts, journals and stores need not know of it. A half that no third
//! has is [`PAD`], so that a vector of other classes is not taken for one of these.
//!
//! The rank goes with it because it is a hash of an id that is not kept; it knows nothing of the vector, and two predictions
//! that differ in it alone are the same.

use crate::stats::fixed::Score;
use crate::stats::multiclass::ranked::ABSENT;

/// In the place of a half of a number that there is not; no probability has it.
const PAD: u32 = u32::MAX - 1;

/// SpillEntries of a rank and a vector of `classes`.
pub fn entries(classes: usize) -> usize {
    1 + (2 * classes).div_ceil(3)
}

/// Adds a rank and its vector, whose numbers are scores, to entries.
pub fn pack(rank: u64, row: &[f64], to: &mut Vec<(Score, u32)>) {
    let score = |z: f64| Score::new(z).unwrap_or(Score::ZERO);
    // The bits of a number below 2⁻¹⁰⁴².
    to.push((score(f64::from_bits(rank >> 32)), rank as u32));
    for three in row.chunks(3) {
        let third = three.get(2).map(|z| z.to_bits());
        let halves = third.map_or([PAD; 2], |bits| [(bits >> 32) as u32, bits as u32]);
        let both = three.iter().zip(halves);
        to.extend(both.map(|(z, half)| (score(*z), half)));
    }
}

/// Puts a vector of `classes` into `row`; answers its rank, or `None` where none is in these entries.
pub fn unpack(scores: &[f64], halves: &[u32], classes: usize, row: &mut Vec<f64>) -> Option<u64> {
    row.clear();
    let ((high, scores), (low, halves)) = (scores.split_first()?, halves.split_first()?);
    for (z, half) in scores.chunks(2).zip(halves.chunks(2)) {
        row.extend_from_slice(z);
        match *half {
            [PAD] | [PAD, PAD] => {}
            [ABSENT] | [ABSENT, _] | [PAD, _] | [_, PAD] => return None,
            [high, low] => row.push(f64::from_bits(u64::from(high) << 32 | u64::from(low))),
            _ => return None,
        }
    }
    (row.len() == classes).then_some(high.to_bits() << 32 | u64::from(*low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vector_comes_back_to_the_bit_and_only_as_one_of_as_many_classes() {
        let numbers = [
            1.0 / 3.0,
            0.0,
            1.0,
            f64::from_bits(1),
            0.1,
            1.0 - f64::EPSILON / 2.0,
            1e-300,
        ];
        for rank in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
            for classes in 2..8 {
                let row = &numbers[..classes];
                let mut packed = Vec::new();
                pack(rank, row, &mut packed);
                assert_eq!(packed.len(), entries(classes));
                let scores: Vec<f64> = packed.iter().map(|(z, _)| z.value()).collect();
                let halves: Vec<u32> = packed.iter().map(|(_, k)| *k).collect();
                let mut back = Vec::new();
                // Of three and two classes there are as many entries.
                for other in (2..8).filter(|k| entries(*k) == entries(classes)) {
                    let found = unpack(&scores, &halves, other, &mut back);
                    let same = (other == classes).then_some(rank);
                    assert_eq!(found, same, "{classes} {other}");
                }
                assert_eq!(unpack(&scores, &halves, classes, &mut back), Some(rank));
                let bits = |all: &[f64]| all.iter().map(|z| z.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&back), bits(row));
            }
        }
        let absent = vec![ABSENT; entries(4)];
        assert_eq!(
            unpack(&vec![0.0; entries(4)], &absent, 4, &mut Vec::new()),
            None
        );
        assert_eq!(unpack(&[], &[], 2, &mut Vec::new()), None);
    }
}
