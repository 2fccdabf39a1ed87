//! What pending predictions cost that memory has no room for: memory, disk, time to hold, match,
//! mature and come back, beside the same without a cap.
//!
//! Ten million pending under a cap of 200 MiB unless the arguments say otherwise. Ids are 36
//! characters, spread over seven days in panes of a minute; nine outcomes in ten come within the
//! newest tenth of what is pending, the others for any. Journals go to disk as in the daemon.
//!
//! `cargo bench --bench spill -- 10000000 200`

use std::borrow::Cow;
use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use trueline::collect::join::{
    JoinPlan, Joins, Key, MaturityEvent, Missing, NewPrediction, OutcomeResult, Repeated, RowLayout,
};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::store::journal;
use trueline::store::spill::SpillStore;

const PANE_MS: i64 = 60_000;
const WEEK_MS: i64 = 7 * 86_400_000;

fn plan(pending_memory: usize) -> JoinPlan {
    JoinPlan {
        predictions: 0,
        outcomes: 1,
        maturity_ms: WEEK_MS,
        missing: Missing::Drop,
        repeated: Repeated::First,
        revise: false,
        by_model: true,
        model: None,
        pending_max: usize::MAX,
        pending_memory,
    }
}

/// An id as services make them: 36 characters.
fn key(i: u64) -> Key {
    let x = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let id = format!("{:08x}-{:04x}-4000-8000-{:012x}", x >> 32, x & 0xffff, i);
    Key::new(Some("m"), id.as_bytes())
}

/// Memory of this process, MiB: now, and at most so far.
fn memory() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |what: &str| {
        let line = status.lines().find(|l| l.starts_with(what));
        let kib = line.and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok());
        kib.unwrap_or(0) / 1024
    };
    (of("VmRSS"), of("VmHWM"))
}

fn report(what: &str, n: u64, start: Instant, store: &SpillStore, joins: &Joins) {
    let s = start.elapsed().as_secs_f64();
    let (now, most) = memory();
    println!(
        "{what:<34} {:7.2} us each, {s:7.2} s; {now:5} MiB resident, {most:5} at most; {:5} MiB on disk; {:8} spilled",
        s * 1e6 / n as f64,
        store.bytes() >> 20,
        joins.spilled(),
    );
}

/// Holds, labels, matures, all at once: a feed in its steady state.
struct Feed {
    joins: Joins,
    rng: Rng,
    step: i64,
    n: u64,
}

impl Feed {
    fn predict(&mut self, i: u64) {
        let time_ms = i as i64 * self.step;
        let start_ms = time_ms - time_ms.rem_euclid(PANE_MS);
        let expect = NewPrediction {
            key: key(i),
            model: 0,
            slot: 0,
            start_ms,
            time_ms,
            due_ms: i64::MAX,
            views: &[(Score::new(0.25).expect("a score"), 1)],
            full_vector: (0, 0),
            classes: 2,
        };
        black_box(self.joins.predict(0, 0, &expect));
    }

    /// An outcome for one of those pending up to `i`.
    fn observe_outcome(&mut self, i: u64) -> OutcomeResult {
        let reach = if self.rng.uniform() < 0.9 {
            self.n / 10
        } else {
            self.n
        };
        let back = (self.rng.uniform() * reach.min(i) as f64) as u64;
        let key = key(i - back);
        self.joins
            .observe_outcome(0, 0, key, None, i64::MAX / 2, 1, &[2], |_, _| ())
    }

    fn mature(&mut self, watermark_ms: i64) -> u64 {
        let mut matured = 0;
        self.joins.mature(0, watermark_ms, &[2], |_, event| {
            matured += u64::from(matches!(event, MaturityEvent::Matured(_)));
        });
        matured
    }
}

fn run(n: u64, cap: usize) {
    let folder = tempfile::TempDir::with_prefix("trueline-spill-bench-").expect("a folder");
    let directory = folder.path();
    let store = Arc::new(SpillStore::new(directory).expect("a store"));
    let joins = |store: &Arc<SpillStore>| {
        let mut joins = Joins::new(vec![plan(cap)]);
        joins.spill_to(Arc::clone(store) as _, 1);
        joins
    };
    let mut feed = Feed {
        joins: joins(&store),
        rng: Rng::new(1),
        step: WEEK_MS / n as i64,
        n,
    };
    let keep = |joins: &mut Joins| {
        let deltas = joins.take_journals(|_, _| i64::MIN);
        journal::append(directory, &deltas).expect("journals");
    };
    let start = Instant::now();
    for i in 0..n {
        feed.predict(i);
        if i % 500_000 == 0 {
            keep(&mut feed.joins);
        }
    }
    report("held", n, start, &store, &feed.joins);
    let start = Instant::now();
    for i in 0..n / 10 {
        black_box(feed.observe_outcome(n - 1));
        if i % 500_000 == 0 {
            keep(&mut feed.joins);
        }
    }
    report(
        "matched, a tenth of them",
        n / 10,
        start,
        &store,
        &feed.joins,
    );
    let start = Instant::now();
    let more = n / 10;
    for i in n..n + more {
        feed.predict(i);
        black_box(feed.observe_outcome(i));
        if i % 1000 == 0 {
            feed.mature((i - n) as i64 * feed.step);
        }
        if i % 500_000 == 0 {
            keep(&mut feed.joins);
        }
    }
    report(
        "one held, labelled and matured",
        more,
        start,
        &store,
        &feed.joins,
    );
    keep(&mut feed.joins);
    let watermark_ms = more as i64 * feed.step;
    let states = feed.joins.states();
    feed.joins = joins(&store);
    let start = Instant::now();
    for state in &states {
        let segment = |mark: usize| {
            let bytes = journal::segment(directory, state, &state.marks[mark]);
            Ok(Cow::Owned(bytes.expect("a sound segment")))
        };
        let restored = feed.joins.restore(
            state,
            segment,
            &[RowLayout::scores(1)],
            |_| watermark_ms,
            |_| watermark_ms,
            |_, _| i64::MAX,
        );
        restored.expect("a sound journal");
    }
    let held = feed.joins.retained() as u64;
    report("back after a restart", held, start, &store, &feed.joins);
    let start = Instant::now();
    let matured = feed.mature(i64::MAX);
    report("matured", matured, start, &store, &feed.joins);
    assert_eq!((matured, feed.joins.retained()), (held, 0));
    assert_eq!(feed.joins.fault(), None);
}

fn main() {
    let mut given = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse::<u64>().ok());
    let n = given.next().unwrap_or(10_000_000);
    let cap = given.next().unwrap_or(200);
    println!("{n} predictions, {cap} MiB");
    run(n, (cap as usize) << 20);
    println!("{n} predictions, no cap");
    run(n, usize::MAX);
}
