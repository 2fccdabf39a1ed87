//! The upper distance to calibration of a few distinct scores.
//!
//! Upper distance: the least E|z − κ(z)| over maps κ of scores to scores that make them true; κ
//! groups distinct scores and sends each group to its rate. (Błasiok, Gopalan, Hu, Nakkiran 2023,
//! section 4.) It is a minimum over partitions of a set, found here over subsets in 3^m steps; no
//! fast way is known, so beyond [`ATOMS_MAX`] points the result is `None`; intCE then bounds it
//! from above, the lower distance from below.

use super::points::Points;

/// Most points that are tried: 3¹⁴ is five million steps.
pub const ATOMS_MAX: usize = 14;

/// The upper distance of raw scores; `None` with more than [`ATOMS_MAX`] distinct ones.
///
/// Two events, 0.3 with y = 1 and 0.5 with y = 0: together they go to 0.5 at a cost of 0.1; apart
/// 0.6.
pub fn upper(points: &Points) -> Option<f64> {
    // The least over set partitions of Σ N·|z − rate of its group|/n.
    let (atoms, n) = (points.atoms(), points.n());
    let m = atoms.len();
    if m == 0 || m > ATOMS_MAX {
        return None;
    }
    let full = (1usize << m) - 1;
    let members = |set: usize| {
        atoms
            .iter()
            .enumerate()
            .filter(move |(i, _)| set >> i & 1 == 1)
    };
    let cost = |set: usize| {
        let (count, positive) = members(set).fold((0.0, 0.0), |s, (_, a)| (s.0 + a.n, s.1 + a.y));
        let rate = positive / count;
        members(set)
            .map(|(_, a)| a.n * (a.z - rate).abs())
            .sum::<f64>()
            / n
    };
    let cost: Vec<f64> = (0..=full)
        .map(|s| if s == 0 { 0.0 } else { cost(s) })
        .collect();
    let mut best = vec![0.0; full + 1];
    for set in 1..=full {
        // The group of the lowest member, with any of the others.
        let lowest = set & set.wrapping_neg();
        let rest = set ^ lowest;
        let (mut least, mut with) = (f64::MAX, rest);
        loop {
            least = least.min(cost[with | lowest] + best[rest ^ with]);
            if with == 0 {
                break;
            }
            with = (with - 1) & rest;
        }
        best[set] = least;
    }
    Some(best[full])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_events_give_the_number_of_the_documentation() {
        let sample = [(0.3, true), (0.5, false)];
        let p = Points::from_scores(&sample).unwrap();
        assert!((upper(&p).unwrap() - 0.1).abs() < 1e-15);
    }

    #[test]
    fn too_many_scores_are_not_tried() {
        let sample: Vec<_> = (0..15).map(|i| (f64::from(i) / 15.0, true)).collect();
        assert_eq!(upper(&Points::from_scores(&sample).unwrap()), None);
    }
}
