//! Whatever number of a snapshot is changed, it is refused or an engine works with it.

use crate::collect::join::{JoinPlan, JoinState, JournalError, Missing, Repeated};
use crate::collect::{Event, IdPlan, Origin, OutcomeRecord, Segmenting};
use crate::judge::{CompareOptions, DetectorOptions, JudgeOptions, ModelPlan, Plan};
use crate::monitor::delta_log::DeltaBatch;
use crate::monitor::restore::Fit;
use crate::monitor::{Engine, RecordSink, Snapshot};
use crate::stats::axis::{Axis, Grid};
use crate::stats::rng::Rng;
use crate::stats::sequential::sequences::Bin;
use crate::stats::stored::COUNT_MAX;
use crate::stats::view::{Outcome, Prediction, View};
use crate::window::{Ladder, Packed, WindowSpec};
use serde::{Serialize, de::DeserializeOwned};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const BEGIN_MS: i64 = 1_700_000_064_000;

/// Events before the snapshot, and after it.
const EVENTS: i64 = 240;

/// Event time from one to the next.
const STEP_MS: i64 = 50;

/// Numbers that are changed.
const CHANGED: usize = 150;

type Journals = BTreeMap<(u16, i32, u64), Vec<u8>>;

/// Scores, classes and vectors by cells and kernel, with detector, joined and compared; and
/// clustered ones with ids.
fn plan() -> Plan {
    let budget = "1 per 1h".parse().expect("a budget");
    let windows = || vec![WindowSpec::time("3s", 3_000), WindowSpec::last(100)];
    let judge = JudgeOptions {
        min_events: 10,
        detector: Some(DetectorOptions::alone(budget, 0.05)),
        ..JudgeOptions::plain()
    };
    let model = |name: &str, views: &[View], grid: Grid, judge: JudgeOptions| ModelPlan {
        name: name.to_owned(),
        segmenting: Segmenting {
            rollup: true,
            ..Segmenting::default()
        },
        views: views.to_vec(),
        classes: ["no", "yes"].map(str::to_owned).to_vec(),
        ladder: Ladder::new(windows(), 1_000).expect("a ladder"),
        grid,
        judge,
    };
    let grid = Grid::new(Axis::Linear, 5);
    let mut compared = judge.clone();
    compared.kernel.sample = 8;
    compared.compare = Some(CompareOptions {
        champion: None,
        wait_ms: 2_000,
        rows_max: 1_000,
        alpha: 0.05,
    });
    let joined = [View::TopLabel, View::Class(1), View::Full, View::Kernel];
    Plan {
        models: vec![
            model("joined", &joined, grid, compared),
            model("clustered", &[View::Binary], grid.clustered(), judge),
        ],
        joins: vec![JoinPlan {
            predictions: 0,
            outcomes: 1,
            maturity_ms: 1_000,
            missing: Missing::Drop,
            repeated: Repeated::First,
            revise: true,
            by_model: false,
            model: None,
            pending_max: 10_000,
            pending_memory: usize::MAX,
        }],
        ids: vec![IdPlan {
            source: 2,
            horizon_ms: 2_000,
        }],
        ..Plan::default()
    }
}

/// Feeds `EVENTS` steps from `from` on: two versions that score one id, the outcome of an earlier
/// one, and a clustered event.
fn feed(engine: &mut Engine, from: i64) {
    let mut rng = Rng::new(from as u64 + 1);
    let origin = |source, offset| Origin {
        source,
        partition: 0,
        offset,
    };
    for i in from..from + EVENTS {
        let time_ms = BEGIN_MS + i * STEP_MS;
        let (id, early) = (i.to_le_bytes(), (i - rng.below(40) as i64).to_le_bytes());
        let event = Event {
            model: "joined",
            version: "1",
            segment: ["k=a", "k=b"][i as usize % 2],
            id: &id,
            time_ms,
            arrival_ms: Some(time_ms + 5),
            prediction: Prediction::Score(0.5),
            outcome: None,
            weight: None,
            cluster: None,
        };
        for (version, offset) in [("1", 2 * i), ("2", 2 * i + 1)] {
            let score = rng.uniform();
            let vector = [1.0 - score, score];
            let prediction = Prediction::Vector(&vector);
            let event = Event {
                version,
                prediction,
                ..event
            };
            engine.observe(origin(0, offset), &event);
        }
        let outcome = OutcomeRecord {
            model: None,
            id: &early,
            time_ms,
            arrival_ms: None,
            outcome: Outcome::Class(u32::from(rng.uniform() < 0.5)),
        };
        engine.observe_outcome(origin(1, i), &outcome);
        let cluster = (i % 30).to_le_bytes();
        let clustered = Event {
            model: "clustered",
            prediction: Prediction::Score(rng.uniform()),
            outcome: Some(Outcome::Binary(rng.uniform() < 0.9)),
            cluster: Some(crate::stats::clusters::Bucket::of(&cluster)),
            ..event
        };
        engine.observe(origin(2, i), &clustered);
    }
}

/// The snapshot, as it is stored, and its journals.
fn stored() -> (Vec<u8>, Journals) {
    let mut engine = Engine::new(plan());
    feed(&mut engine, 0);
    let mut journals = Journals::new();
    for d in engine.take_journals() {
        let segment = (d.join, d.partition, d.segment);
        journals.entry(segment).or_default().extend(d.bytes);
    }
    let bytes = postcard::to_stdvec(&engine.snapshot()).expect("to be stored");
    (bytes, journals)
}

/// Reads a snapshot, continues with it, and takes all its reports; `false` if it is refused.
fn works(bytes: &[u8], journals: &Journals) -> bool {
    works_from(EVENTS, bytes, journals)
}

/// The same from a later step on.
fn works_from(from: i64, bytes: &[u8], journals: &Journals) -> bool {
    let Ok(snapshot) = postcard::from_bytes::<Snapshot>(bytes) else {
        return false;
    };
    let segment = |j: &JoinState, mark: usize| {
        let at = (j.join, j.partition, j.marks[mark].segment);
        let bytes = journals.get(&at).ok_or(JournalError::Torn)?;
        Ok(Cow::Borrowed(bytes.as_slice()))
    };
    let Ok(mut engine) = Engine::restore_spilling(plan(), snapshot, &segment, None) else {
        return false;
    };
    feed(&mut engine, from);
    engine.tick(BEGIN_MS);
    postcard::to_stdvec(&engine.snapshot()).expect("to be stored");
    engine.finish();
    let said = (engine.ledger(), engine.comparisons(), engine.pair_counts());
    assert!(engine.reports().count() > 0, "{said:?}");
    true
}

fn varint(mut x: u128) -> Vec<u8> {
    let mut bytes = Vec::new();
    while x >= 0x80 {
        bytes.push(x as u8 | 0x80);
        x >>= 7;
    }
    bytes.push(x as u8);
    bytes
}

/// What takes the place of a number: the ends of its integers, and the largest that is accepted.
fn extremes() -> Vec<Vec<u8>> {
    let max = u128::from(u64::MAX);
    let varints = [1 << 31, 1 << 48, 1 << 63, max - 1, max, u128::MAX].map(varint);
    let floats = [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN].map(|x| x.to_le_bytes().to_vec());
    varints.into_iter().chain(floats).collect()
}

#[test]
fn a_snapshot_with_a_changed_number_is_refused_or_works() {
    let (bytes, journals) = stored();
    assert!(works(&bytes, &journals));
    let (mut rng, extremes) = (Rng::new(7), extremes());
    let (mut worked, mut panicked) = (0, Vec::new());
    for _ in 0..CHANGED {
        let at = rng.below(bytes.len());
        let extreme = &extremes[rng.below(extremes.len())];
        let end = match extreme.len() {
            8 => (at + 8).min(bytes.len()),
            _ => at + 1 + bytes[at..].iter().take_while(|b| **b >= 0x80).count(),
        };
        let changed = [&bytes[..at], &extreme[..], &bytes[end.min(bytes.len())..]].concat();
        match catch_unwind(AssertUnwindSafe(|| works(&changed, &journals))) {
            Ok(is_working) => worked += usize::from(is_working),
            Err(_) => panicked.push((at, extreme)),
        }
    }
    assert!(panicked.is_empty(), "{panicked:?}");
    assert!(worked > 0);
}

/// Whether it is read again as it was stored.
fn reads<T: Serialize + DeserializeOwned>(stored: &T) -> bool {
    let bytes = postcard::to_stdvec(stored).expect("to be stored");
    postcard::from_bytes::<T>(&bytes).is_ok()
}

#[test]
fn a_count_that_no_events_make_is_refused_where_it_is_read() {
    let (bytes, _) = stored();
    let mut snapshot: Snapshot = postcard::from_bytes(&bytes).expect("as it was stored");
    for (late, is_read) in [(COUNT_MAX, true), (u64::MAX, false)] {
        let judges = snapshot.streams.iter_mut().flat_map(|s| &mut s.judges);
        let mut panes = judges.flat_map(|j| &mut j.rings).flat_map(|r| &mut r.panes);
        panes.next().expect("a pane").late = late;
        assert_eq!(reads(&snapshot), is_read, "{late}");
        let bin = Bin {
            n: late,
            ..Bin::default()
        };
        assert_eq!(reads(&bin), is_read, "{late}");
        let deltas = DeltaBatch {
            from: late,
            ..DeltaBatch::default()
        };
        assert_eq!(reads(&deltas), is_read, "{late}");
        let packed = [varint(late.into()), vec![0; 3]].concat();
        assert_eq!(Packed::from_bytes(&packed).is_ok(), is_read, "{late}");
    }
}

const TEN_YEARS_MS: i64 = 10 * 365 * 86_400_000;

#[test]
fn a_watermark_before_the_panes_of_windows_is_refused() {
    let (bytes, _) = stored();
    let snapshot: Snapshot = postcard::from_bytes(&bytes).expect("as it was stored");
    let restored = |change: &dyn Fn(&mut Snapshot)| {
        let mut snapshot = snapshot.clone();
        change(&mut snapshot);
        Fit::new(&plan(), &snapshot).map(drop)
    };
    assert_eq!(restored(&|_| ()), Ok(()));
    let back = |s: &mut Snapshot| {
        let models = s.models.iter_mut();
        models.for_each(|m| m.sealed_until_ms -= TEN_YEARS_MS);
    };
    for without_streams in [false, true] {
        let refused = restored(&|s| {
            back(s);
            if without_streams {
                s.streams.clear();
            }
        });
        let why = refused.expect_err("a walk of ten years").to_string();
        assert!(why.contains("after its watermark"), "{why}");
    }
}

/// A walk over ten years of base panes takes minutes.
#[test]
fn a_snapshot_of_years_ago_is_caught_up_with_in_no_time() {
    let (bytes, journals) = stored();
    let begun = Instant::now();
    assert!(works_from(TEN_YEARS_MS / STEP_MS, &bytes, &journals));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
}
