//! Pairs that the engine finds are those of a search over all records, under disorder, repeats,
//! restarts and a cap.

use super::{
    ALPHA, BEGIN_MS, PANE_MS, Record, WAIT_MS, arrival, fixed, grid, observe, plan, records, said,
};
use crate::support::records::{EVENT, origin};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use trueline::collect::{Event, PairCounts};
use trueline::monitor::{Engine, RecordSink, Snapshot};
use trueline::stats::sequential::{Compared, Pair, Paired};
use trueline::stats::view::{Outcome, Prediction};
use trueline::store::{save, transfer};

/// From scratch: by champion and challenger, what there is to say.
fn oracle(records: &[Record], champion: Option<&str>) -> BTreeMap<(String, String), Compared> {
    let mut first: BTreeMap<(u32, &str), Record> = BTreeMap::new();
    for r in records {
        let held = first.entry((r.id, r.version)).or_insert(*r);
        if (r.time_ms, r.score) < (held.time_ms, held.score) {
            *held = *r;
        }
    }
    let pane = |r: &Record| r.time_ms - r.time_ms.rem_euclid(PANE_MS);
    let mut panes: BTreeMap<(String, String), BTreeMap<i64, Vec<Pair>>> = BTreeMap::new();
    for ((id, version), a) in &first {
        for other in ["1", "2", "3"].into_iter().filter(|o| o > version) {
            let Some(b) = first.get(&(*id, other)) else {
                continue;
            };
            if (a.time_ms - b.time_ms).abs() > WAIT_MS || a.happened != b.happened {
                continue;
            }
            let (a, b) = match champion {
                Some(c) if b.version == c => (b, a),
                Some(c) if a.version != c => continue,
                _ => (a, b),
            };
            let names = (a.version.to_owned(), b.version.to_owned());
            let pane = panes.entry(names).or_default().entry(pane(a).max(pane(b)));
            pane.or_default().push(Pair {
                champion: fixed(a.score),
                challenger: fixed(b.score),
                outcome: a.happened,
            });
        }
    }
    let compared = |panes: BTreeMap<i64, Vec<Pair>>| {
        let mut paired = Paired::default();
        panes
            .values()
            .for_each(|pairs| paired.observe(pairs, grid()));
        paired.compared(ALPHA).expect("pairs")
    };
    panes
        .into_iter()
        .map(|(names, p)| (names, compared(p)))
        .collect()
}

#[test]
fn comparisons_equal_their_recomputation_under_disorder_repeats_and_restarts() {
    let all = records(6_000, 11);
    for champion in [None, Some("2")] {
        let expected = oracle(&all, champion);
        assert_eq!(expected.len(), if champion.is_none() { 3 } else { 2 });
        assert!(expected.values().all(|c| c.n > 2_000), "the test bites");
        for seed in [1, 2, 3] {
            let mut engine = Engine::new(plan(champion, 1_000_000, Vec::new()));
            engine.assign((0, 0).into());
            let mut c = PairCounts::default();
            for (i, r) in (0..).zip(arrival(&all, seed)) {
                observe(&mut engine, i, &r);
                if i % 1_777 == 1_776 {
                    let before = said(&engine);
                    c.add(&engine.pair_counts()[0].1);
                    let bytes = postcard::to_stdvec(&engine.snapshot()).expect("as bytes");
                    let snapshot = postcard::from_bytes(&bytes).expect("a snapshot");
                    engine = Engine::restore(engine.plan().clone(), snapshot).expect("sound");
                    assert_eq!(said(&engine), before);
                }
            }
            engine.finish();
            assert_eq!(said(&engine), expected, "champion {champion:?} seed {seed}");
            carried(&engine.snapshot());
            let (_, last, held) = engine.pair_counts().remove(0);
            c.add(&last);
            assert!(
                c.duplicate > 100 && c.contradicted > 20 && c.alone > 100,
                "{c:?}"
            );
            assert!(c.paired > 5_000 && c.refused == 0, "{c:?}");
            assert!(
                (held as u64) < c.taken / 10,
                "{held} rows are held at the end"
            );
        }
    }
}

/// A snapshot goes through a directory and through the file of an export, and is the same.
fn carried(snapshot: &Snapshot) {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("comparison");
    let _ = fs::remove_dir_all(&root);
    let [from, to] = ["from", "to"].map(|name| root.join(name));
    for dir in [&from, &to] {
        fs::create_dir_all(dir).expect("a directory");
    }
    save(&from, snapshot).expect("saved");
    let file = root.join("state.jsonl");
    let mut out = fs::File::create(&file).expect("a file");
    transfer::export(&from, || Ok(None), &mut out).expect("exported");
    let loaded = transfer::import(&file, &to, |_| Ok(())).expect("imported");
    assert!(!snapshot.compared.is_empty() && loaded.snapshot == *snapshot);
}

#[test]
fn the_cap_on_rows_refuses_and_counts_and_streams_go_on() {
    let all = arrival(&records(3_000, 5), 1);
    let mut engine = Engine::new(plan(None, 200, Vec::new()));
    engine.assign((0, 0).into());
    for (i, r) in (0..).zip(&all) {
        observe(&mut engine, i, r);
        assert!(engine.pair_counts()[0].2 <= 200);
    }
    engine.finish();
    let (_, c, _) = engine.pair_counts().remove(0);
    assert!(c.refused > 100 && c.paired > 100, "{c:?}");
    assert_eq!(c.refused + c.taken, all.len() as u64);
    let counters = engine.counters().source(0);
    assert_eq!(counters.observed, all.len() as u64);
}

#[test]
fn without_ids_nothing_is_paired_and_models_are_kept_apart() {
    let mut engine = Engine::new(plan(None, 1_000, Vec::new()));
    engine.assign((0, 0).into());
    for (i, (model, version, id)) in (0..).zip([
        ("a", "1", &b"x"[..]),
        ("b", "2", b"x"),
        ("a", "2", b""),
        ("a", "1", b""),
        ("b", "1", b"y"),
        ("b", "2", b"y"),
    ]) {
        let event = Event {
            model,
            version,
            id,
            time_ms: BEGIN_MS + i,
            prediction: Prediction::Score(0.5),
            outcome: Some(Outcome::Binary(true)),
            ..EVENT
        };
        let origin = origin(0, 0, i);
        engine.observe(origin, &event);
    }
    engine.finish();
    let reports = engine.comparisons();
    assert_eq!(reports.len(), 1);
    assert_eq!(
        (reports[0].id.model.as_str(), reports[0].compared.n),
        ("b", 1)
    );
    assert_eq!(engine.pair_counts()[0].1.nameless, 2);
}
