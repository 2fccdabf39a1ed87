//! The joiner against an oracle that sees all records at once, in any order of arrival, with
//! replays of the journal in between.

use crate::support::records::JOIN;
use proptest::prelude::*;
use std::collections::BTreeMap;
use trueline::collect::join::{
    JoinPlan, Joiner, JournalDelta, Key, MaturityEvent, NewPrediction, OutcomeResult, Predicted,
    Repeated, RowLayout,
};
use trueline::stats::fixed::Score;

const PANE_MS: i64 = 1000;
const END_MS: i64 = 8000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Record {
    Prediction { id: u8, time_ms: i64, score: u8 },
    Outcome { id: u8, time_ms: i64, class: u32 },
}

fn plan(repeated: Repeated, revise: bool) -> JoinPlan {
    JoinPlan {
        repeated,
        revise,
        pending_max: 1000,
        ..JOIN
    }
}

fn record() -> impl Strategy<Value = Record> {
    let prediction = (0..12u8, 0..END_MS, 0..3u8)
        .prop_map(|(id, time_ms, score)| Record::Prediction { id, time_ms, score });
    let outcome = (0..12u8, 0..END_MS, 0..2u32).prop_map(|(id, time_ms, class)| Record::Outcome {
        id,
        time_ms,
        class,
    });
    prop_oneof![prediction, outcome]
}

/// Up to when outcomes of a pane are on time; without maturity all are.
fn due_ms(plan: &JoinPlan, start_ms: i64) -> i64 {
    match plan.maturity_ms {
        0 => i64::MAX,
        maturity_ms => start_ms + PANE_MS + maturity_ms,
    }
}

/// By id: time and score of its prediction, and the class that happened.
type Joined = BTreeMap<u8, (i64, u8, Option<u32>)>;

fn oracle(records: &[Record], plan: &JoinPlan) -> Joined {
    let mut joined = Joined::new();
    let mut outcomes: BTreeMap<u8, (i64, u32)> = BTreeMap::new();
    for record in records {
        match *record {
            Record::Prediction { id, time_ms, score } => {
                let held = joined.entry(id).or_insert((time_ms, score, None));
                *held = (*held).min((time_ms, score, None));
            }
            Record::Outcome { id, time_ms, class } => {
                let held = outcomes.entry(id).or_insert((time_ms, class));
                *held = match plan.repeated {
                    Repeated::Last => (*held).max((time_ms, class)),
                    _ => (*held).min((time_ms, class)),
                };
            }
        }
    }
    for (id, held) in &mut joined {
        let due_ms = due_ms(plan, held.0 - held.0.rem_euclid(PANE_MS));
        let outcome = outcomes.get(id).filter(|o| o.0 <= due_ms);
        held.2 = outcome.map(|o| o.1);
    }
    joined
}

/// A prediction of half and half.
fn predicted(id: u8, time_ms: i64) -> Record {
    let score = 2;
    Record::Prediction { id, time_ms, score }
}

/// The second class happened.
fn happened(id: u8, time_ms: i64) -> Record {
    let class = 1;
    Record::Outcome { id, time_ms, class }
}

/// Keys; every third has the same bits in the index, so only its row tells it apart.
fn key(id: u8) -> Key {
    Key([u64::from(id % 3) << 62, u64::from(id) << 6])
}

/// The score of a prediction of the second of two classes, in quarters.
fn quarters(score: u8) -> [(Score, u32); 1] {
    [(Score::new(f64::from(score) / 4.0).unwrap(), 1)]
}

fn new<'v>(
    plan: &JoinPlan,
    (key, slot): (Key, u32),
    time_ms: i64,
    views: &'v [(Score, u32)],
) -> NewPrediction<'v> {
    let start_ms = time_ms - time_ms.rem_euclid(PANE_MS);
    NewPrediction {
        key,
        model: 0,
        slot,
        start_ms,
        time_ms,
        due_ms: due_ms(plan, start_ms),
        views,
        full_vector: (0, 0),
        classes: 2,
    }
}

fn feed(joiner: &mut Joiner, plan: &JoinPlan, record: &Record) {
    match *record {
        Record::Prediction { id, time_ms, score } => {
            let views = quarters(score);
            let expect = new(plan, (key(id), id.into()), time_ms, &views);
            let held = joiner.pending() + joiner.matured();
            assert_ne!(
                joiner.predict(plan, &expect, held, joiner.waiting()),
                Predicted::Refused
            );
        }
        Record::Outcome { id, time_ms, class } => {
            let (key, waiting) = (key(id), joiner.waiting());
            joiner.observe_outcome(plan, key, None, time_ms, class, &[2], waiting, |_| ());
        }
    }
}

fn mature(joiner: &mut Joiner, plan: &JoinPlan, line_ms: i64) -> Joined {
    let mut out = Joined::new();
    joiner.mature((plan, 1024), 0, line_ms, &[2], None, |event| {
        let MaturityEvent::Matured(m) = event else {
            return;
        };
        let (z, _) = m.against(1).next().unwrap();
        let score = (z.value() * 4.0) as u8;
        let before = out.insert(m.slot as u8, (m.start_ms, score, m.outcome));
        assert_eq!(before, None, "one id matured twice");
    });
    out
}

/// Segments as a store would hold them.
#[derive(Default)]
struct Disk(BTreeMap<u64, Vec<u8>>);

impl Disk {
    fn append(&mut self, deltas: Vec<JournalDelta>) {
        for delta in deltas {
            let segment = self.0.entry(delta.segment).or_default();
            segment.truncate(delta.offset as usize);
            segment.extend(delta.bytes);
        }
    }

    fn replay(&self, joiner: &Joiner, plan: &JoinPlan, line_ms: i64, floor_ms: i64) -> Joiner {
        let marks = joiner.marks();
        let segments = marks.iter().map(|m| (m, self.0[&m.segment].as_slice()));
        Joiner::restore(
            segments,
            &[RowLayout::scores(1)],
            |_| line_ms,
            |_| floor_ms,
            |_, start_ms| due_ms(plan, start_ms),
        )
        .expect("a sound journal")
    }
}

/// A joiner that was fed these records, and the one that its journal gives.
fn fed(plan: &JoinPlan, records: &[Record]) -> [Joiner; 2] {
    let (mut joiner, mut disk) = (Joiner::default(), Disk::default());
    for record in records {
        feed(&mut joiner, plan, record);
    }
    disk.append(joiner.take_journal(0, 0, |_| i64::MIN));
    let back = disk.replay(&joiner, plan, i64::MIN, i64::MIN);
    [joiner, back]
}

proptest! {
    #[test]
    fn any_order_of_arrival_joins_the_same(
        records in proptest::collection::vec(record(), 0..60),
        last: bool,
        soon: bool,
        cuts in proptest::collection::vec(any::<bool>(), 60),
    ) {
        let repeated = if last { Repeated::Last } else { Repeated::First };
        // Of several outcomes on time for a later prediction alone, the last hides the others.
        let maturity_ms = if soon && !last { 2 * PANE_MS } else { 0 };
        let plan = JoinPlan { maturity_ms, ..plan(repeated, false) };
        let (mut joiner, mut disk) = (Joiner::default(), Disk::default());
        for (record, cut) in records.iter().zip(&cuts) {
            feed(&mut joiner, &plan, record);
            if *cut {
                disk.append(joiner.take_journal(0, 0, |_| i64::MIN));
                joiner = disk.replay(&joiner, &plan, i64::MIN, i64::MIN);
            }
        }
        let expected = oracle(&records, &plan);
        prop_assert_eq!(joiner.pending(), expected.len());
        let pane = |t: i64| t - t.rem_euclid(PANE_MS);
        let expected: Joined = expected
            .into_iter()
            .map(|(id, (t, z, y))| (id, (pane(t), z, y)))
            .collect();
        prop_assert_eq!(mature(&mut joiner, &plan, END_MS), expected);
        prop_assert_eq!(joiner.pending(), 0);
        joiner.orphan(|_| END_MS);
        prop_assert_eq!(joiner.waiting(), 0);
    }

    #[test]
    fn a_replayed_joiner_goes_on_as_the_one_that_wrote_the_journal(
        records in proptest::collection::vec(record(), 0..60),
        lines in proptest::collection::vec(0..8i64, 60),
        cut in 0..60usize,
        revise: bool,
    ) {
        let plan = plan(Repeated::First, revise);
        let (mut written, mut disk) = (Joiner::default(), Disk::default());
        let mut line_ms = i64::MIN;
        let mut twin: Option<Joiner> = None;
        for (i, (record, line)) in records.iter().zip(&lines).enumerate() {
            if i == cut {
                disk.append(written.take_journal(0, 0, |_| i64::MIN));
                let floor_ms = if revise { i64::MIN } else { line_ms };
                twin = Some(disk.replay(&written, &plan, line_ms, floor_ms));
            }
            // What comes for a mature pane is late, and never gets to the joiner.
            let late = matches!(record, Record::Prediction { time_ms, .. } if *time_ms < line_ms);
            line_ms = line_ms.max(line * PANE_MS - 4 * PANE_MS);
            for joiner in [Some(&mut written), twin.as_mut()].into_iter().flatten() {
                if !late {
                    feed(joiner, &plan, record);
                }
                joiner.orphan(|_| line_ms);
            }
            let matured = mature(&mut written, &plan, line_ms);
            if let Some(twin) = &mut twin {
                prop_assert_eq!(mature(twin, &plan, line_ms), matured);
                prop_assert_eq!(twin.pending(), written.pending());
                prop_assert_eq!(twin.matured(), written.matured());
                prop_assert_eq!(twin.waiting(), written.waiting());
            }
        }
    }
}

#[test]
fn an_outcome_that_is_late_for_the_earlier_of_two_predictions_waits_whichever_came_first() {
    let plan = JoinPlan {
        maturity_ms: 2 * PANE_MS,
        ..plan(Repeated::First, true)
    };
    let (early, late) = (predicted(7, 500), predicted(7, 2500));
    let outcome = happened(7, 4500);
    for order in [[early, late, outcome], [late, outcome, early]] {
        for mut joiner in fed(&plan, &order) {
            assert_eq!((joiner.pending(), joiner.waiting()), (1, 1), "{order:?}");
            let mut ends = Vec::new();
            joiner.mature((&plan, 1024), 0, END_MS, &[2], None, |event| {
                ends.push(match event {
                    MaturityEvent::Matured(m) => (m.outcome, None),
                    MaturityEvent::Revised(r) => (r.now.outcome, None),
                    MaturityEvent::Ended(end) => (None, Some(end)),
                });
            });
            let revised = (None, Some(OutcomeResult::Revised));
            assert_eq!(ends, [(None, None), (Some(1), None), revised], "{order:?}");
        }
    }
}

/// All orders of some records.
fn orders(records: &[Record]) -> Vec<Vec<Record>> {
    let [first, rest @ ..] = records else {
        return vec![Vec::new()];
    };
    let mut all = Vec::new();
    for order in orders(rest) {
        for at in 0..=order.len() {
            let mut one = order.clone();
            one.insert(at, *first);
            all.push(one);
        }
    }
    all
}

#[test]
fn a_repeat_that_is_late_hides_no_outcome_in_time_whatever_comes_first() {
    let plan = JoinPlan {
        maturity_ms: 2 * PANE_MS,
        ..plan(Repeated::Reject, false)
    };
    let predictions = [predicted(7, 500), predicted(7, 2500)];
    // The second outcome is late for the first prediction, and in time for the second one.
    let outcomes = [happened(7, 2900), happened(7, 4500)];
    for order in orders(&[predictions, outcomes].concat()) {
        for mut joiner in fed(&plan, &order) {
            let joined = mature(&mut joiner, &plan, END_MS);
            assert_eq!(joined, Joined::from([(7, (0, 2, Some(1)))]), "{order:?}");
        }
    }
}

#[test]
fn a_restart_orphans_no_outcome_that_waits_and_brings_none_back() {
    let plan = plan(Repeated::First, false);
    let (mut joiner, mut disk) = (Joiner::default(), Disk::default());
    feed(&mut joiner, &plan, &happened(1, 500));
    assert_eq!(joiner.orphan(|_| 2000), 1);
    // It is before the watermark, and waits until the next pane is sealed.
    feed(&mut joiner, &plan, &happened(2, 600));
    disk.append(joiner.take_journal(0, 0, |_| 2000));
    let mut back = disk.replay(&joiner, &plan, 2000, 2000);
    assert_eq!((back.waiting(), joiner.waiting()), (1, 1));
    assert_eq!(back.orphan(|_| 2000), 1);
}

#[test]
fn a_journal_puts_no_prediction_of_a_stream_that_expired_into_the_next_one_of_its_slot() {
    let plan = plan(Repeated::First, false);
    let (mut joiner, mut disk) = (Joiner::default(), Disk::default());
    for id in [1, 2] {
        feed(&mut joiner, &plan, &predicted(id, 500));
    }
    assert_eq!(mature(&mut joiner, &plan, 1000).len(), 2);
    joiner.end_stream(1);
    let views = quarters(2);
    joiner.predict(&plan, &new(&plan, (key(4), 1), 1500, &views), 0, 0);
    joiner.end_stream(3);
    disk.append(joiner.take_journal(0, 0, |_| i64::MIN));
    // The watermark is moved back to before the first two.
    let mut back = disk.replay(&joiner, &plan, i64::MIN, i64::MIN);
    let mut pending = BTreeMap::new();
    back.each_pending(|slot, n| *pending.entry(slot).or_insert(0) += n);
    assert_eq!(pending, BTreeMap::from([(1, 1), (2, 1)]));
    assert_eq!(back.pending(), 2);
    // The last operation of a journal may be the end of a stream.
    joiner.end_stream(1);
    disk.append(joiner.take_journal(0, 0, |_| i64::MIN));
    let back = disk.replay(&joiner, &plan, i64::MIN, i64::MIN);
    assert_eq!(back.pending(), 1);
}

#[test]
fn a_prediction_is_refused_if_the_outcome_of_the_later_one_would_wait_beyond_the_cap() {
    let plan = JoinPlan {
        maturity_ms: 2 * PANE_MS,
        pending_max: 1,
        ..plan(Repeated::First, false)
    };
    let mut joiner = Joiner::default();
    for record in [predicted(7, 2500), happened(7, 4500), happened(9, 4500)] {
        feed(&mut joiner, &plan, &record);
    }
    assert_eq!((joiner.pending(), joiner.waiting()), (1, 1));
    let views = quarters(2);
    let earlier = new(&plan, (key(7), 7), 500, &views);
    let end = joiner.predict(&plan, &earlier, 1, 1);
    assert_eq!(end, Predicted::Refused);
    assert_eq!((joiner.pending(), joiner.waiting()), (1, 1));
    // There is room again once the other outcome is gone.
    assert_eq!(joiner.orphan(|_| END_MS), 1);
    let end = joiner.predict(&plan, &earlier, 1, 0);
    let waits = matches!(end, Predicted::Pending { instead: Some(replaced), .. } if replaced.waits);
    assert!(waits, "{end:?}");
    assert_eq!((joiner.pending(), joiner.waiting()), (1, 1));
}

#[test]
fn an_outcome_after_maturity_revises_while_the_prediction_is_kept() {
    let plan = plan(Repeated::First, true);
    let mut joiner = Joiner::default();
    feed(&mut joiner, &plan, &predicted(7, 1500));
    assert_eq!(mature(&mut joiner, &plan, 2000)[&7], (1000, 2, None));
    assert_eq!((joiner.pending(), joiner.matured()), (0, 1));
    let key = key(7);
    let mut told = None;
    let end = joiner.observe_outcome(&plan, key, None, 9000, 1, &[2], 0, |r| {
        told = Some((r.before, r.now.outcome, r.now.start_ms));
    });
    assert_eq!(end, OutcomeResult::Revised);
    assert_eq!(told, Some((None, Some(1), 1000)));
    joiner.evict(0, 2000);
    assert_eq!(joiner.matured(), 0);
    let end = joiner.observe_outcome(&plan, key, None, 9100, 1, &[2], 0, |_| ());
    assert_eq!(end, OutcomeResult::Waiting);
}

#[test]
fn a_class_that_the_prediction_cannot_have_is_refused_before_and_after_it() {
    let plan = plan(Repeated::First, false);
    let mut joiner = Joiner::default();
    let (id, time_ms, class) = (1, 10, 5);
    feed(&mut joiner, &plan, &Record::Outcome { id, time_ms, class });
    let views = quarters(2);
    let expect = new(&plan, (key(1), 0), 5, &views);
    let met = Some(OutcomeResult::UnknownClass);
    assert_eq!(
        joiner.predict(&plan, &expect, 0, 0),
        Predicted::Pending { met, instead: None }
    );
    let end = joiner.observe_outcome(&plan, expect.key, None, 20, 2, &[2], 0, |_| ());
    assert_eq!(end, OutcomeResult::UnknownClass);
    assert_eq!(joiner.waiting(), 0);
}

#[test]
fn caps_refuse_and_are_told() {
    let plan = JoinPlan {
        pending_max: 2,
        pending_memory: usize::MAX,
        ..plan(Repeated::First, false)
    };
    let mut joiner = Joiner::default();
    for id in 0..2 {
        feed(&mut joiner, &plan, &predicted(id, 5));
    }
    let views = quarters(2);
    let expect = new(&plan, (key(9), 0), 5, &views);
    assert_eq!(joiner.predict(&plan, &expect, 2, 0), Predicted::Refused);
    let end = joiner.observe_outcome(&plan, key(10), None, 20, 1, &[2], 2, |_| ());
    assert_eq!(end, OutcomeResult::Refused);
}

#[test]
fn a_pending_prediction_takes_less_than_64_bytes() {
    let plan = JoinPlan {
        pending_max: usize::MAX,
        pending_memory: usize::MAX,
        ..plan(Repeated::First, false)
    };
    let views = quarters(1);
    for n in [200_000u64, 300_000] {
        let mut joiner = Joiner::default();
        for i in 0..n {
            let key = Key::new(None, &i.to_le_bytes());
            let expect = new(&plan, (key, 0), i as i64, &views);
            joiner.predict(&plan, &expect, 0, 0);
        }
        joiner.take_journal(0, 0, |_| i64::MIN);
        let each = joiner.bytes() as f64 / n as f64;
        println!("{each:.1} bytes a pending prediction, {n} of them");
        assert!(each < 64.0, "{each}");
    }
}
