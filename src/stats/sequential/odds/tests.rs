//! Which slope bets are cut, rows, and bets towards a probability.

use super::super::mixture::CELL_AMPLITUDES;
use super::*;
use crate::axis::Axis;

#[test]
fn cell_bets_are_intercept_bets_of_the_same_amplitude() {
    for j in 0..LEARNT {
        assert_eq!(CELL_AMPLITUDES[j], AMPLITUDES[j + CELL_OFFSET]);
    }
}

#[test]
fn slope_bets_are_cut_only_far_out_and_only_at_the_largest_amplitude() {
    let odds = Odds::new(Grid::new(Axis::Linear, 12), 0.0);
    for (span, row) in spans(odds.grid).iter().zip(&odds.rows) {
        let z = 0.5 * (span.edges.0 + span.edges.1);
        for (i, beta) in row.beta.iter().enumerate() {
            let whole = 0.5 * AMPLITUDE[i] * logit_clipped(z);
            let cut = (whole - beta).abs() > 1e-12;
            let far = z.min(1.0 - z) < 0.007;
            assert!(!cut || far && i >= DIRECTED - 2, "{z} {whole} {beta}");
        }
    }
}

#[test]
fn rows_cover_the_cells_and_only_the_middle_is_put_together() {
    let odds = Odds::new(Grid::new(Axis::Linear, 12), 0.05);
    assert_eq!(odds.row_of.len(), 4096);
    assert!(odds.row_of.is_sorted() && odds.row_of[4095] as usize == odds.rows.len() - 1);
    assert!(odds.rows.len() < 1850, "{}", odds.rows.len());
    assert_eq!(odds.row_of[511] + 1, odds.row_of[512]);
    assert_eq!(odds.bytes(), Odds::bytes_of(odds.grid()));
    let finer = Odds::new(Grid::new(Axis::Linear, 14), 0.05);
    assert_eq!(finer.row_of[3], finer.row_of[0]);
    assert_eq!(finer.rows.len(), odds.rows.len());
}

#[test]
fn bets_towards_a_probability_keep_off_what_is_tolerated() {
    let bet = |b, z| excess(b, 0.05, z);
    assert_eq!(bet(mixture::Bet::Noise(0.01), 0.5), 0.0);
    assert!((bet(mixture::Bet::Shift(0.1), 0.5) - (logit(0.6) - 0.05)).abs() < 1e-12);
    assert!(bet(mixture::Bet::Shift(-0.1), 0.5) < 0.0);
    assert_eq!(bet(mixture::Bet::Shift(0.1), 0.95), TOWARDS_MAX);
    assert_eq!(bet(mixture::Bet::Shift(-0.1), 0.05), -TOWARDS_MAX);
}
