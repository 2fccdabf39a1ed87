//! What a pending prediction costs: time to hold it, to give it its outcome, to let it go; bytes in
//! memory and in the journal; and time to come back after a restart.
//!
//! Ten million pending unless the first argument says otherwise. Beside it, in the same run, a
//! baseline: the same keys into the standard hash map with 32 bytes each.
//!
//! `cargo bench --bench join -- 10000000`

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;
use trueline::collect::join::{
    JoinPlan, Joiner, Key, MaturityEvent, Missing, NewPrediction, OutcomeResult, Repeated,
    RowLayout,
};
use trueline::stats::fixed::Score;

// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PANE_MS: i64 = 60_000;

fn plan() -> JoinPlan {
    JoinPlan {
        predictions: 0,
        outcomes: 1,
        maturity_ms: 7 * 86_400_000,
        missing: Missing::Drop,
        repeated: Repeated::First,
        revise: false,
        by_model: true,
        model: None,
        pending_max: usize::MAX,
        pending_memory: usize::MAX,
    }
}

/// An id as services make them: 36 characters.
fn id(i: u64) -> String {
    let x = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{:08x}-{:04x}-4000-8000-{:012x}", x >> 32, x & 0xffff, i)
}

fn report(what: &str, n: u64, start: Instant) {
    let each = start.elapsed().as_nanos() as f64 / n as f64;
    println!(
        "{what:<44} {each:8.1} ns each, {:.2} s",
        start.elapsed().as_secs_f64()
    );
}

fn main() {
    let given = std::env::args().nth(1).and_then(|a| a.parse().ok());
    let n: u64 = given.unwrap_or(10_000_000);
    let plan = plan();
    let z = Score::new(0.25).expect("a score");
    // Spread over seven days, as a week's horizon would have them.
    let step = 7 * 86_400_000 / n as i64;

    let start = Instant::now();
    let mut baseline: HashMap<[u64; 2], [u64; 4]> = HashMap::new();
    for i in 0..n {
        baseline.insert(Key::new(Some("m"), id(i).as_bytes()).0, [i; 4]);
    }
    report("baseline: standard hash map, 48 bytes", n, start);
    black_box(&baseline);
    drop(baseline);

    let mut joiner = Joiner::default();
    let (mut segments, mut written) = (Vec::<Vec<u8>>::new(), 0);
    let mut drain = |joiner: &mut Joiner, segments: &mut Vec<Vec<u8>>| {
        for delta in joiner.take_journal(0, 0, |_| i64::MIN) {
            written += delta.bytes.len();
            segments.resize(segments.len().max(delta.segment as usize + 1), Vec::new());
            segments[delta.segment as usize].extend(delta.bytes);
        }
        written
    };
    let start = Instant::now();
    for i in 0..n {
        let time_ms = i as i64 * step;
        let start_ms = time_ms - time_ms.rem_euclid(PANE_MS);
        let expect = NewPrediction {
            key: Key::new(Some("m"), id(i).as_bytes()),
            model: 0,
            slot: 0,
            start_ms,
            time_ms,
            due_ms: i64::MAX,
            views: &[(z, 1)],
            full_vector: (0, 0),
            classes: 2,
        };
        black_box(joiner.predict(&plan, &expect, 0, 0));
        if i % 1_000_000 == 0 {
            drain(&mut joiner, &mut segments);
        }
    }
    report("predictions held", n, start);
    let start = Instant::now();
    for i in (0..n).rev().step_by(4) {
        let key = Key::new(Some("m"), id(i).as_bytes());
        let end = joiner.observe_outcome(&plan, key, None, i64::MAX / 2, 1, &[2], 0, |_| ());
        assert_eq!(end, OutcomeResult::Matched);
    }
    report("outcomes matched, newest first", n / 4, start);
    let bytes = drain(&mut joiner, &mut segments);
    println!(
        "{:<44} {:8.1} bytes each in memory, {:.1} in the journal",
        "pending",
        joiner.bytes() as f64 / n as f64,
        bytes as f64 / n as f64
    );

    let marks = joiner.marks();
    let start = Instant::now();
    let read = marks.iter().zip(segments.iter().map(Vec::as_slice));
    let back = Joiner::restore(
        read,
        &[RowLayout::scores(1)],
        |_| i64::MIN,
        |_| i64::MIN,
        |_, _| i64::MAX,
    );
    report("back after a restart", n, start);
    let back = back.expect("a sound journal");
    assert_eq!(back.pending(), joiner.pending());
    drop(back);

    let start = Instant::now();
    let mut matured = 0u64;
    joiner.mature((&plan, 1024), 0, i64::MAX, &[2], None, |event| {
        matured += u64::from(matches!(event, MaturityEvent::Matured(_)));
    });
    report("matured", n, start);
    assert_eq!((matured, joiner.pending()), (n, 0));
}
