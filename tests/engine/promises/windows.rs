//! A window is judged from its first seal on, is empty after a gap, and takes a bounded amount of
//! memory.

use super::{BEGIN_MS, Record, feed, plan, stream, window};
use trueline::monitor::Engine;
use trueline::stats::axis::{Axis, Grid};
use trueline::window::{Ladder, Width, WindowSpec};

#[test]
fn a_wide_window_is_judged_from_the_first_seal_on_and_says_since_when_it_has_data() {
    let mut engine = Engine::new(plan());
    // The 72s window slides by 12 s, gathering from the 36s window's slides of 6 s, those from 1 s.
    let begin = BEGIN_MS + 5_000;
    assert_eq!(BEGIN_MS % 12_000, 8_000);
    stream(&mut engine, 5..10, 100, true);
    let young = window(&engine, "36s");
    assert_eq!((young.since_ms, young.n), (begin, 200));
    assert_eq!(young.end_ms, begin + 2_000);
    assert!(young.scores().is_some(), "{young:?}");
    // Nothing has come to the widest window through the one between yet.
    assert_eq!(window(&engine, "72s").n, 0);
    // The one between slides at second 10, and the widest is judged in the middle of its slide.
    stream(&mut engine, 10..13, 100, true);
    let young = window(&engine, "72s");
    assert_eq!((young.since_ms, young.n), (begin, 500));
    assert_eq!(young.end_ms, begin + 5_000);
    assert!(young.scores().is_some(), "{young:?}");
    // Afterwards it is judged at its own slides, as ever.
    stream(&mut engine, 13..19, 100, true);
    assert_eq!(window(&engine, "72s").end_ms, BEGIN_MS + 16_000);
    assert_eq!(window(&engine, "72s").n, 1_100);
    stream(&mut engine, 19..28, 100, true);
    assert_eq!(window(&engine, "72s").end_ms, BEGIN_MS + 16_000);
}

#[test]
fn a_gap_of_years_is_skipped_and_empties_the_windows() {
    let mut engine = Engine::new(plan());
    stream(&mut engine, 0..20, 100, false);
    let start = std::time::Instant::now();
    let ten_years = 10 * 365 * 86_400;
    stream(&mut engine, ten_years..ten_years + 5, 3, false);
    assert!(start.elapsed().as_secs() < 5);
    let n: Vec<u64> = engine
        .reports()
        .next()
        .unwrap()
        .windows
        .iter()
        .map(|w| w.n)
        .collect();
    assert!(n.iter().take(3).all(|&n| n < 20), "{n:?}");
}

#[test]
fn state_of_three_windows_with_4096_cells_is_under_1100_kilobytes() {
    let bytes = most_bytes(u64::MAX);
    assert!(bytes < 1_100_000, "{bytes}");
    // Windows that are judged keep unpacked sums too. All streams share 128 MiB for these.
    let judged = most_bytes(1_000);
    println!("state of one stream, three windows, 4096 cells: {bytes} bytes, judged {judged}");
    assert!(judged < bytes + 3 * 4096 * 56 + 100_000, "{judged}");
}

/// Most bytes of a stream whose windows are judged if they have so many events.
fn most_bytes(min_events: u64) -> usize {
    let minute = 60_000;
    let windows = vec![
        WindowSpec::time("5m", 5 * minute),
        WindowSpec::time("1h", 60 * minute),
        WindowSpec::time("24h", 24 * 60 * minute),
    ];
    assert!(matches!(
        windows[0].width,
        Width::Time {
            slide_ms: 50_000,
            ..
        }
    ));
    let mut plan = plan();
    plan.models.truncate(1);
    plan.models[0].ladder = Ladder::new(windows, 10_000).unwrap();
    plan.models[0].grid = Grid::new(Axis::Linear, 12);
    plan.models[0].judge.min_events = min_events;
    let mut engine = Engine::new(plan);
    let mut x = 1u64;
    // Full windows need 24 hours and a pane of 4 hours more; 2000 events a base pane.
    let (mut offset, mut most) = (0, 0);
    for pane in 0..(28 * 72) {
        // Dense enough at the end for every base pane to have all cells.
        let n = if pane < 27 * 72 { 2_000 } else { 40_000 };
        for i in 0..n {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let record = Record {
                model: 0,
                time_ms: BEGIN_MS + pane * 50_000 + i * 50_000 / n,
                delay_ms: 0,
                score: (x >> 11) as f64 / (1u64 << 53) as f64,
                outcome: x >> 5 & 1 == 1,
                partition: 0,
            };
            feed(&mut engine, 0, offset, &record);
            offset += 1;
            if i == n / 10 || i == n - 1 {
                most = most.max(engine.bytes());
            }
        }
    }
    most
}
