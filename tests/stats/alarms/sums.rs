//! The sums that the engine makes of events, against the events: for every bet of the mixture the
//! log-likelihood ratio from them is never above the exact one and within 10⁻⁶ an event, at 4096
//! cells.

use super::feed::{BEGIN_MS, event, plan};
use crate::support::oracle::{Null, bounds, log_tilt};
use crate::support::streams::{LAWS, score};
use trueline::monitor::Engine;
use trueline::stats::rng::Rng;
use trueline::stats::sequential::Odds;
use trueline::stats::sequential::mixture::DIRECTED;

#[test]
fn what_the_detector_is_shown_is_a_lower_bound_within_a_millionth_an_event() {
    let mut worst = 0.0f64;
    for tolerance in [0.0, 0.05, 0.3] {
        for (seed, (_, law)) in (0..).zip(LAWS) {
            let plan = plan("1 per 30d", tolerance, u64::MAX);
            let odds = Odds::new(plan.models[0].grid, tolerance);
            let null = Null {
                tolerance,
                delta: 0.0,
            };
            let (mut engine, mut rng) = (Engine::new(plan), Rng::new(50 + seed));
            let (n, mut exact) = (20_000, [0.0; 2 * DIRECTED]);
            for i in 0..n {
                let z = score(law, &mut rng);
                // Any outcomes: what holds does so for each of them.
                let y = rng.uniform() < 0.3 + 0.4 * z;
                event(&mut engine, "", i, BEGIN_MS + i / 20_000, (z, Some(y)));
                let (edges, cell) = (bounds(z, null), odds.grid().cell_of(z));
                for bet in 0..DIRECTED {
                    for (bets, family) in odds.bets(cell, bet).into_iter().zip([0, DIRECTED]) {
                        exact[family + bet] += log_tilt(f64::from(u8::from(y)), edges, bets.beta);
                    }
                }
            }
            engine.finish();
            let (_, _, sums) = engine.monitor().totals().next().expect("one window");
            let found = odds.likelihoods(&sums);
            assert_eq!(found.n, n as u64);
            for (found, exact) in found.directed.iter().zip(exact) {
                let loss = (exact - found) / n as f64;
                // 10⁻¹³: rounding of the exact sum itself.
                assert!(loss >= -1e-13 * (1.0 + exact.abs()), "above by {}", -loss);
                assert!(loss <= 1e-6, "loses {loss} an event");
                worst = worst.max(loss);
            }
        }
    }
    println!("loses at most {worst:.1e} an event");
}
