//! The slots of streams, and their search by names.

use super::*;
use crate::stats::axis::{Axis, Grid};
use crate::stats::sampling::Sampling;
use crate::stats::view::View;
use std::collections::BTreeMap;

impl Named for Key {
    fn key(&self) -> &Key {
        self
    }
}

#[test]
fn a_stream_takes_the_first_vacant_slot_and_is_found_whatever_came_and_went() {
    let mut slots: Slots<Key> = Slots::default();
    let mut rng = crate::stats::rng::Rng::new(3);
    for n in 0..4000 {
        let slot = (rng.uniform() * slots.len() as f64) as usize;
        match rng.uniform() < 0.45 {
            true => {
                let gone = slots.remove(slot);
                assert!(gone.is_none_or(|key| slots.find(&key.names()).is_none()));
            }
            false => {
                let vacant = (0..slots.len()).find(|slot| slots.get(*slot).is_none());
                let first = vacant.unwrap_or(slots.len());
                assert_eq!(slots.insert(Key::new(&n.to_string(), "", "")), first);
            }
        }
        if n % 1000 == 500 {
            // A restart puts streams back into slots behind vacant ones.
            assert!(slots.insert_at(slots.len() + 3, Key::new("back", &n.to_string(), "")));
            let found = |(slot, key): (usize, &Key)| slots.find(&key.names()) == Some(slot);
            assert!(slots.iter().all(found));
        }
    }
}

/// A model of single scores whose segments beyond `max` go to `other`.
fn shape(max: usize) -> ModelShape {
    let other = max < usize::MAX;
    ModelShape {
        name: "*".to_owned(),
        views: vec![View::Binary],
        depth: 0,
        sampled: None,
        classes: 0,
        pane_ms: 1000,
        lateness_ms: 0,
        grid: Grid::new(Axis::Linear, 1),
        maturity_ms: 0,
        retention_ms: 1000,
        segmenting: Segmenting {
            rollup: false,
            max,
            other,
        },
        sampling: Sampling::default(),
        compare: None,
    }
}

#[test]
fn a_search_by_digest_finds_what_a_map_finds_whatever_came_and_went() {
    // Names that differ in their first, middle or last bytes, or in length alone.
    let texts = [
        "",
        "a",
        "ab",
        "aXb",
        "aYb",
        "abcd",
        "abXcd",
        "fraud-eu-model-1",
        "fraud-us-model-1",
    ];
    let long = "a-name-of-more-than-sixteen-bytes";
    let texts: Vec<String> = (texts.iter().map(|t| (*t).to_owned()))
        .chain((0..30).flat_map(|i| [format!("m{i}"), format!("{i}{long}"), format!("{long}{i}")]))
        .collect();
    let mut rng = crate::stats::rng::Rng::new(5);
    let (mut streams, shape) = (Streams::default(), shape(usize::MAX));
    let mut known: BTreeMap<[&str; 3], usize> = BTreeMap::new();
    let mut at = [0; 3];
    for _ in 0..200_000 {
        // Runs of one stream, and streams that take turns.
        if rng.uniform() < 0.4 {
            at = at.map(|_| (rng.uniform().powi(3) * texts.len() as f64) as usize);
        }
        let text = at.map(|i| texts[i].as_str());
        let names = Names::new(text[0], text[1], text[2]);
        let found = streams.find(&names);
        assert_eq!(found, known.get(&text).copied(), "{text:?}");
        match (found, rng.uniform()) {
            (None, u) if u < 0.5 => {
                let slot = streams.begin(&names, 0, &shape, usize::MAX).expect("room");
                known.insert(text, slot);
            }
            (Some(slot), u) if u < 0.02 => {
                streams.remove(slot);
                known.remove(&text);
            }
            _ => {}
        }
    }
    assert!(known.len() > 1000, "{}", known.len());
}

#[test]
fn no_record_finds_the_stream_of_excess_segments_in_a_slot_that_another_had() {
    let (mut streams, shape) = (Streams::default(), shape(1));
    let named = |segment| Names::new("m", "1", segment);
    let gone = Names::new("gone", "1", "k=a");
    streams.begin(&named("k=a"), 0, &shape, 9).expect("room");
    let slot = streams.begin(&gone, 0, &shape, 9).expect("room");
    for _ in 0..2 * RUN_MIN {
        assert_eq!(streams.find(&gone), Some(slot));
    }
    streams.remove(slot);
    assert_eq!(streams.begin(&named("k=b"), 0, &shape, 9), Some(slot));
    assert_eq!(streams.get(slot).map(|s| s.kind), Some(SegmentKind::Other));
    for names in [named(OTHER), named("k=b"), gone] {
        assert_eq!(streams.find(&names), None);
    }
}
