//! Sums that are kept from slide to slide.

use super::*;
use crate::stats::axis::{Axis, Grid};
use crate::stats::rng::Rng;
use crate::window::sums_of;
use crate::window::{Correction, WindowSpec};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;

const BASE: i64 = 10;

/// Events of a base pane: some many, some none, of few distinct scores or of any.
fn events(rng: &mut Rng, coarse: bool) -> Vec<(f64, bool)> {
    let n = match (rng.uniform() * 4.0) as u32 {
        0 => 0,
        1 => 400,
        some => 10 * some,
    };
    (0..n)
        .map(|_| {
            let z = rng.uniform().powi(2);
            let z = if coarse { (z * 20.0).round() / 20.0 } else { z };
            (z, rng.uniform() < z)
        })
        .collect()
}

fn pane(grid: Grid, start_ms: i64, events: &[(f64, bool)]) -> Pane {
    let sums = sums_of(grid, events.iter().copied());
    Pane::of_scores(start_ms, start_ms + BASE, &sums)
}

// Against windows that add up packed panes at each slide, with panes of other partitions that
// come late, outcomes that change after their pane was sealed, room that comes and goes, and
// restarts.
#[test]
fn kept_sums_are_those_of_the_panes_to_the_bit() {
    let (kept_in_all, unpacked_in_all) = (Cell::new(0), Cell::new(0));
    let inputs = (any::<u64>(), 3u32..12, any::<bool>(), any::<bool>());
    let config = ProptestConfig {
        source_file: Some(file!()),
        ..ProptestConfig::with_cases(24)
    };
    let result = TestRunner::new(config).run(&inputs, |(seed, level, coarse, logit)| {
        let mut rng = Rng::new(seed);
        let axis = match logit {
            true => Axis::Logit {
                low: 1e-3,
                high: 0.9,
            },
            false => Axis::Linear,
        };
        let grid = Grid::new(axis, level);
        let specs = vec![
            WindowSpec::time("60", 60),
            WindowSpec::time("360", 360),
            WindowSpec::time("1440", 1_440),
            WindowSpec::last(700),
        ];
        let ladder = Ladder::new(specs, 0).unwrap();
        let mut windows = Windows::new(&ladder, PaneSums::Scores(grid));
        let mut scratch = windows.clone();
        windows.set_running_bytes_max(usize::MAX);
        let (mut past, mut kept, mut unpacked) = (Vec::new(), 0, 0);
        for i in 0..260 {
            let (start_ms, end_ms) = (i * BASE, (i + 1) * BASE);
            let new = events(&mut rng, coarse);
            let mut sealed = (!new.is_empty()).then(|| pane(grid, start_ms, &new));
            scratch.seal(sealed.as_ref(), end_ms).unwrap();
            // As a monitor does; some panes come packed, as those of a record do.
            if let Some(PaneSums::Scores(sums)) = sealed.as_mut().map(|p| &mut p.sums)
                && i % 3 > 0
            {
                sums.unpack_beside(grid).unwrap();
            }
            windows.seal(sealed.as_ref(), end_ms).unwrap();
            for index in 0..4 {
                if windows.due(index, end_ms, sealed.is_some()) || windows.young(index) {
                    let got = windows.next_total(index, end_ms).unwrap();
                    prop_assert_eq!(got, scratch.total(index, end_ms).unwrap());
                    kept += usize::from(windows.running[index].is_some());
                }
            }
            windows.drop_unpacked();
            let under_way = windows.rings.iter().flat_map(|ring| &ring.gathering);
            unpacked += under_way
                .filter(|pane| pane.sums.unpacked_bytes() > 0)
                .count();
            past.extend(sealed.map(|_| (start_ms, new)));
            let mut chance = |p: f64| rng.uniform() < p;
            if chance(0.1)
                && let Some((start_ms, events)) = past.last().cloned()
            {
                // The first event comes again with the other outcome.
                let (z, y) = events[0];
                let correction = Correction {
                    start_ms,
                    minus: sums_of(grid, [(z, y)]),
                    plus: sums_of(grid, [(z, !y)]),
                    labelled: Vec::new(),
                };
                windows.correct(&correction).unwrap();
                scratch.correct(&correction).unwrap();
                past.pop();
            }
            if chance(0.1) {
                let behind = start_ms - BASE * (rng.uniform() * 20.0) as i64;
                let more = events(&mut rng, coarse);
                for windows in [&mut windows, &mut scratch] {
                    windows
                        .place(&pane(grid, behind.max(0), &more), end_ms)
                        .unwrap();
                }
            }
            match (rng.uniform() * 40.0) as u32 {
                0 => {
                    let state = windows.state();
                    windows = Windows::new(&ladder, PaneSums::Scores(grid));
                    windows.restore(state).unwrap();
                    windows.set_running_bytes_max(usize::MAX);
                }
                1 => windows.set_running_bytes_max((rng.uniform() * 100_000.0) as usize),
                2 | 3 => windows.set_running_bytes_max(usize::MAX),
                _ => {}
            }
        }
        kept_in_all.set(kept_in_all.get() + kept);
        unpacked_in_all.set(unpacked_in_all.get() + unpacked);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    // Of a single input, room may be scarce nearly all of the time.
    let (kept, unpacked) = (kept_in_all.get(), unpacked_in_all.get());
    assert!(kept > 24 * 100 && unpacked > 24 * 5, "{kept} {unpacked}");
}
