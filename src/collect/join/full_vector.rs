//! A full vector of probabilities among the entries of a pending prediction.
//!
//! The kernel view compares vectors, not cells, so all probabilities wait, as doubles. Rounding
//! would save half the bytes but shift the result by as much. Unrounded, a window gives the same
//! bits as for events that arrive with their outcomes, and as `trueline evaluate` does for the same
//! rows.
//!
//! An [entry](super::RowLayout) is a score and a class, twelve bytes. Three doubles take two
//! entries; the classes hold the halves of the third:
//!
//! ```text
//!   rank    (high half as the bits of a score │ low half)
//!   row     (z₀ │ high half of z₂) (z₁ │ low half of z₂) (z₃ │ …
//! ```
//! A vector of K probabilities takes 12·(1 + ⌈2K/3⌉) bytes, and cohorts, journals and stores treat
//! it like other entries. Where there is no third number, the halves are [`PAD`], so that a vector
//! of another length is not mistaken for this one.
//!
//! The rank is stored because it is a hash of the id, and the id is not kept. It is independent of
//! the vector: two predictions that differ only in rank are the same.

use crate::stats::fixed::Score;
use crate::stats::multiclass::ranked::ABSENT;

/// Half of a number that is missing. No probability has it as its high half; its low half may be
/// any.
const PAD: u32 = u32::MAX - 1;

/// Number of entries of a rank and a vector of `classes`.
pub fn entries(classes: usize) -> usize {
    1 + (2 * classes).div_ceil(3)
}

/// Appends a rank and a vector of scores to entries.
pub fn pack(rank: u64, row: &[f64], to: &mut Vec<(Score, u32)>) {
    let score = |z: f64| Score::new(z).unwrap_or(Score::ZERO);
    // These bits are a number below 2⁻¹⁰⁴², hence a score.
    to.push((score(f64::from_bits(rank >> 32)), rank as u32));
    for three in row.chunks(3) {
        let third = three.get(2).map(|z| z.to_bits());
        let halves = third.map_or([PAD; 2], |bits| [(bits >> 32) as u32, bits as u32]);
        let both = three.iter().zip(halves);
        to.extend(both.map(|(z, half)| (score(*z), half)));
    }
}

/// Decodes a vector of `classes` into `row`; returns its rank, or `None` if these entries hold no
/// such vector.
pub fn unpack(scores: &[f64], halves: &[u32], classes: usize, row: &mut Vec<f64>) -> Option<u64> {
    row.clear();
    let ((high, scores), (low, halves)) = (scores.split_first()?, halves.split_first()?);
    for (z, half) in scores.chunks(2).zip(halves.chunks(2)) {
        row.extend_from_slice(z);
        match *half {
            [PAD] | [PAD, PAD] => {}
            [ABSENT] | [ABSENT, _] | [PAD, _] => return None,
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
    fn every_vector_is_decoded_to_the_bit_and_only_with_its_number_of_classes() {
        let numbers = [
            1.0 / 3.0,
            0.0,
            // Its low half is that of a number that is missing.
            1.0 - f64::EPSILON,
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
                // Vectors of three and of two classes have the same number of entries.
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
