//! Where the frontier stands, by what happened to the partitions.

use super::*;

const HOUR: i64 = 3_600_000;

fn id(partition: i32) -> PartitionId {
    PartitionId {
        source: 0,
        partition,
    }
}

fn at(partition: i32, offset: i64) -> Origin {
    Origin {
        source: 0,
        partition,
        offset,
    }
}

/// Two partitions that were assigned.
fn two() -> Partitions {
    let mut p = Partitions::default();
    p.assign(id(0));
    p.assign(id(1));
    p
}

fn event(p: &mut Partitions, partition: i32, offset: i64, time_ms: i64) -> Option<i64> {
    assert!(p.advance(at(partition, offset)));
    p.observe(time_ms, None, HOUR);
    p.frontier_ms()
}

#[test]
fn the_slowest_live_partition_holds_the_frontier() {
    let mut p = two();
    assert_eq!(event(&mut p, 0, 0, 100), None);
    assert_eq!(event(&mut p, 1, 0, 40), Some(40));
    assert_eq!(event(&mut p, 0, 1, 200), Some(40));
    assert_eq!(event(&mut p, 1, 1, 50), Some(50));
    assert!(p.end(id(1)));
    assert_eq!(p.frontier_ms(), Some(200));
    // Live again and behind: the frontier does not go back.
    assert_eq!(event(&mut p, 1, 2, 60), Some(200));
    assert_eq!(event(&mut p, 1, 3, 250), Some(200));
    assert_eq!(event(&mut p, 0, 2, 220), Some(220));
}

#[test]
fn partitions_that_are_all_revoked_and_given_back_leave_the_frontier_where_it_was() {
    let mut p = two();
    event(&mut p, 0, 0, 100);
    event(&mut p, 1, 0, 9000);
    p.revoke(id(0));
    p.revoke(id(1));
    p.assign(id(0));
    p.assign(id(1));
    assert_eq!(event(&mut p, 1, 1, 9001), Some(100));
    assert_eq!(event(&mut p, 0, 1, 200), Some(200));
    // Taken for good, it holds nobody back from the next event on.
    p.revoke(id(0));
    assert_eq!(event(&mut p, 1, 2, 9002), Some(9002));
}

#[test]
fn a_partition_that_no_longer_exists_holds_nobody_back_and_keeps_its_position() {
    let mut p = two();
    assert_eq!(event(&mut p, 0, 0, 100), None);
    assert_eq!(event(&mut p, 1, 0, 40), Some(40));
    p.drop(id(1));
    assert!(p.are_read());
    // A restart before the next event; the mark is not stored.
    let mut restored = Partitions {
        revoked: false,
        ..p.clone()
    };
    restored.resume();
    assert_eq!(event(&mut restored, 0, 1, 200), Some(200));
    assert_eq!(event(&mut p, 0, 1, 200), Some(200));
    // The same holds after a restart.
    p.resume();
    assert_eq!(event(&mut p, 0, 2, 300), Some(300));
    assert_eq!(p.assign(id(1)), Some(1));
}

#[test]
fn when_all_are_idle_the_newest_event_is_the_frontier() {
    let mut p = Partitions::default();
    event(&mut p, 0, 0, 100);
    p.assign(id(1));
    event(&mut p, 1, 0, 70);
    p.end(id(0));
    p.end(id(1));
    assert_eq!(p.frontier_ms(), Some(100));
}

#[test]
fn the_first_event_of_a_partition_is_compared_with_the_others() {
    let mut p = Partitions::default();
    let mut offset = 0;
    let mut aside = |p: &mut Partitions, partition: i32, time_ms: i64| {
        offset += 1;
        assert!(p.advance(at(partition, offset)));
        p.observe(time_ms, Some(1000 * HOUR), HOUR)
    };
    assert!(!aside(&mut p, 0, 100), "the first event of all is believed");
    assert!(aside(&mut p, 1, 500 * HOUR));
    assert_eq!(p.newest_ms(), Some(100));
    // A time near the others' is believed, and so is the third in a row that is not.
    assert!(!aside(&mut p, 1, HOUR));
    for (time_ms, is_aside) in [(500, true), (502, true), (501, false)] {
        assert_eq!(aside(&mut p, 2, time_ms * HOUR), is_aside);
    }
    assert_eq!(p.newest_ms(), Some(500 * HOUR));
}

#[test]
fn an_offset_below_the_position_was_read_before() {
    let mut p = Partitions::default();
    assert!(p.advance(at(3, 10)));
    assert!(!p.advance(at(3, 10)));
    assert!(p.advance(at(3, 12)));
    assert_eq!(p.assign(id(3)), Some(13));
    assert_eq!(p.positions().collect::<Vec<_>>(), [at(3, 13)]);
    p.rewind(id(3), 0);
    assert!(p.advance(at(3, 0)) && !p.advance(at(3, 0)));
}

#[test]
fn partitions_that_are_not_read_here_are_not_waited_for() {
    let mut p = Partitions::default();
    event(&mut p, 0, 0, 100);
    event(&mut p, 1, 0, 70);
    p.end(id(0));
    assert!(!p.are_idle());
    p.revoke(id(1));
    assert!(p.are_idle());
    p.assign(id(1));
    assert!(!p.are_idle());
    // The topic of both goes, and another comes.
    p.renumber(|source| (source + 1, false));
    assert!(p.are_idle());
    event(&mut p, 0, 0, 110);
    assert!(!p.are_idle());
    p.end(id(0));
    assert!(p.are_idle());
}

#[test]
fn a_record_that_is_in_no_sum_leaves_what_was_heard_and_an_event_out_of_order_does_not() {
    let mut p = Partitions::default();
    let mut offset = 0;
    let mut heard = |p: &mut Partitions, counted: bool| {
        for (arrival_ms, time_ms) in [(1_000, 10), (2_000, 20), (3_000, 30)] {
            offset += 1;
            assert!(p.advance(at(1, offset)));
            match counted && arrival_ms == 2_000 {
                true => p.observe(time_ms, Some(arrival_ms), HOUR),
                false => p.observe_uncounted(time_ms, Some(arrival_ms), HOUR),
            };
            p.hear(arrival_ms);
        }
        p.states().last().and_then(|p| p.reach_ms)
    };
    assert!(p.advance(at(1, 0)));
    p.observe(100, Some(100), HOUR);
    assert_eq!(heard(&mut p, true), Some(100));
    assert_eq!(heard(&mut p, false), Some(1_000));
}

#[test]
fn a_backfill_of_a_partition_says_nothing_of_the_delay_of_its_later_records() {
    let mut p = Partitions::default();
    let arrives = |p: &mut Partitions, at: Origin, hour: i64, arrival: i64| {
        assert!(p.advance(at));
        assert!(!p.observe(hour * HOUR, Some(arrival * HOUR), HOUR));
        p.frontier_ms()
    };
    p.assign(id(0));
    p.assign(id(1));
    p.end(id(1));
    assert_eq!(arrives(&mut p, at(0, 0), 100, 100), Some(100 * HOUR));
    // The first event of the other partition is ninety hours old.
    assert_eq!(arrives(&mut p, at(1, 0), 10, 100), Some(100 * HOUR));
    for (offset, hour) in [(1, 101), (2, 102), (3, 103)] {
        assert!(p.advance(at(1, offset)));
        p.hear(hour * HOUR);
    }
    assert_eq!(p.slowest(), Some((id(0), Some(100 * HOUR))));
    assert_eq!(arrives(&mut p, at(0, 1), 101, 101), Some(101 * HOUR));
}

#[test]
fn that_a_log_was_too_short_stays_with_the_position_until_it_is_rewound() {
    let mut p = two();
    event(&mut p, 0, 999, 100);
    event(&mut p, 1, 999, 100);
    p.truncate(id(0), 300);
    // As a snapshot or a checkpoint stores it, for any process that reads it.
    let stored = postcard::to_allocvec(&p).expect("bytes");
    let mut p: Partitions = postcard::from_bytes(&stored).expect("partitions");
    p.renumber(|source| (source, true));
    p.resume();
    assert_eq!(p.assign(id(0)), Some(1000));
    p.revoke(id(0));
    p.assign(id(0));
    assert_eq!(
        (p.truncated_at(id(0)), p.truncated_at(id(1))),
        (Some(300), None)
    );
    p.reset(50);
    assert_eq!(p.truncated_at(id(0)), Some(300));
    p.rewind(id(0), 0);
    assert_eq!((p.truncated_at(id(0)), p.assign(id(0))), (None, Some(0)));
}
