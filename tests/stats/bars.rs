//! The bars themselves: binomial sums that can be had by hand, and bars that cannot be met.

use crate::support::bars::{Bar, RIGHT_PASSES, WRONG_PASSES};

/// Ten tosses of a fair coin: 11 of 1024 outcomes have at most one head.
#[test]
fn a_bar_counts_the_outcomes_of_ten_tosses() {
    let bar = Bar::new(10, 0.5..=0.5, &[]);
    assert_eq!(bar.passes(), 0..=10);
    assert_eq!(bar.probability(0.5), 1.0);
    let bar = Bar::new(20, 0.5..=0.5, &[0.02]);
    // 1 + 20 + 190 of 2^20 outcomes have fewer than three heads, and as many more than 17.
    assert_eq!(bar.passes(), 3..=17);
    let passes = 1.0 - 2.0 * 211.0 / f64::from(1 << 20);
    assert!((bar.probability(0.5) - passes).abs() < 1e-12);
}

#[test]
fn an_open_side_of_a_bar_lets_every_count_pass() {
    assert_eq!(*Bar::new(800, 0.0..=0.05, &[0.1]).passes().start(), 0);
    assert_eq!(*Bar::new(900, 0.87..=1.0, &[0.8]).passes().end(), 900);
}

#[test]
#[should_panic(expected = "too few")]
fn a_bar_over_too_few_data_sets_is_refused() {
    Bar::new(150, 0.03..=0.055, &[0.1]);
}

#[test]
fn bars_keep_their_promise_over_every_number_of_data_sets() {
    for data_sets in [1200, 1700, 4000, 10_000] {
        let bar = Bar::new(data_sets, 0.03..=0.055, &[0.005, 0.1]);
        assert!(bar.probability(0.03) >= RIGHT_PASSES && bar.probability(0.055) >= RIGHT_PASSES);
        assert!(bar.probability(0.1) <= WRONG_PASSES && bar.probability(0.005) <= WRONG_PASSES);
        // Wider by nothing: the next count on either side would be one too many.
        let (least, most) = bar.passes().into_inner();
        assert!(least as f64 / (data_sets as f64) < 0.03);
        assert!(most as f64 / (data_sets as f64) > 0.055);
    }
}
