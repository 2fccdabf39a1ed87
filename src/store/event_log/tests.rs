//! Tests of the log: acknowledged events stay, whatever happens to the process or to the file.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

use super::frame::FRAME_BYTES_MAX;
use super::*;
use crate::store::file::KEEP;

const LIMITS: LogLimits = LogLimits {
    bytes_max: 64 << 20,
    keep_ms: 1 << 40,
};

/// Little room, and every segment counts as old.
const SHORT: LogLimits = LogLimits {
    bytes_max: 64 << 10,
    keep_ms: -1,
};

fn events(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|i| format!("{{\"id\":{i}}}")).collect()
}

fn append(
    log: &EventLog,
    range: std::ops::Range<u64>,
    key: Option<&str>,
) -> Result<Receipt, Refusal> {
    let digest = range.start * 1000 + range.end;
    log.append(key.map(str::to_owned), digest, events(range))
}

/// All events with their offsets, starting at this one.
fn read(log: &EventLog, from: u64) -> Vec<(u64, String)> {
    let mut reader = log.reader();
    reader.seek(from);
    let mut all = Vec::new();
    let mut each = |offset, _: i64, text: &[u8]| {
        all.push((offset, String::from_utf8(text.to_vec()).expect("UTF-8")));
    };
    while reader.read(3, &mut each).expect("it reads") > 0 {}
    all
}

fn numbered(range: std::ops::Range<u64>) -> Vec<(u64, String)> {
    range.clone().zip(events(range)).collect()
}

fn only_file(directory: &Path) -> PathBuf {
    segment::path(directory, 0)
}

fn opened(directory: &Path, limits: LogLimits) -> EventLog {
    EventLog::open(directory, limits).expect("it opens")
}

/// A log in a folder of its own.
fn begun(limits: LogLimits) -> (TempDir, EventLog) {
    let folder = TempDir::with_prefix("trueline-log-").expect("a folder");
    let log = opened(folder.path(), limits);
    (folder, log)
}

/// Appends events from this offset on until the log has 8 KiB; returns its end.
fn fill(log: &EventLog, mut end: u64) -> u64 {
    while log.facts().bytes < 8 << 10 {
        append(log, end..end + 10, None).expect("there is room");
        end += 10;
    }
    end
}

#[test]
fn what_is_acknowledged_is_read_in_order_from_any_offset_after_any_number_of_starts() {
    let folder = TempDir::with_prefix("trueline-log-order-").expect("a folder");
    let directory = folder.path().join("events");
    let mut end = 0;
    for start in 0..4 {
        let log = opened(&directory, LIMITS);
        assert_eq!(log.facts().end, end);
        for n in 1..=start + 3 {
            let receipt = append(&log, end..end + n, None).expect("there is room");
            assert_eq!((receipt.offset, receipt.events), (end, n));
            end += n;
        }
        for from in 0..=end {
            assert_eq!(read(&log, from), numbered(from..end), "from {from}");
        }
    }
}

#[test]
fn requests_of_many_threads_share_frames_and_keep_their_events_together() {
    let (_folder, log) = begun(LIMITS);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let log = &log;
            scope.spawn(move || {
                for i in 0..25u64 {
                    let from = (thread * 100 + i) * 10;
                    append(log, from..from + 10, None).expect("there is room");
                }
            });
        }
    });
    let all = read(&log, 0);
    assert_eq!(all.len(), 2000);
    for (i, ten) in all.chunks(10).enumerate() {
        assert!(
            ten.iter()
                .map(|e| e.0)
                .eq(i as u64 * 10..i as u64 * 10 + 10)
        );
        let first: u64 = ten[0].1[6..ten[0].1.len() - 1].parse().expect("a number");
        let texts: Vec<String> = ten.iter().map(|e| e.1.clone()).collect();
        assert_eq!(texts, events(first..first + 10));
    }
}

#[test]
fn a_torn_tail_is_cut_off_at_every_byte_and_nothing_before_it() {
    let (folder, log) = begun(LIMITS);
    append(&log, 0..3, None).expect("there is room");
    let kept = log.facts().bytes as usize;
    append(&log, 3..5, None).expect("there is room");
    drop(log);
    let whole = fs::read(only_file(folder.path())).expect("the file");
    assert!(whole.len() > kept);
    for length in kept..whole.len() {
        fs::write(only_file(folder.path()), &whole[..length]).expect("written");
        let log = opened(folder.path(), LIMITS);
        assert_eq!(read(&log, 0), numbered(0..3), "{length} bytes");
        let receipt = append(&log, 3..4, None).expect("there is room");
        assert_eq!(receipt.offset, 3);
        assert_eq!(read(&log, 0), numbered(0..4), "{length} bytes");
    }
    // A file system may also leave zeros in place of data.
    let mut zeros = whole.clone();
    zeros[kept..].fill(0);
    fs::write(only_file(folder.path()), &zeros).expect("written");
    let log = opened(folder.path(), LIMITS);
    assert_eq!(read(&log, 0), numbered(0..3));
}

#[test]
fn damage_before_acknowledged_events_stops_the_start_and_says_where() {
    let (folder, log) = begun(LIMITS);
    let mut ends = vec![log.facts().bytes as usize];
    for i in 0..3 {
        append(&log, i..i + 1, None).expect("there is room");
        ends.push(log.facts().bytes as usize);
    }
    drop(log);
    let whole = fs::read(only_file(folder.path())).expect("the file");
    for byte in ends[0]..ends[2] {
        let mut damaged = whole.clone();
        damaged[byte] ^= 0x40;
        fs::write(only_file(folder.path()), &damaged).expect("written");
        let error = EventLog::open(folder.path(), LIMITS).expect_err("it is damaged");
        let frame = ends.iter().rfind(|&&end| end <= byte).expect("a frame");
        let place = format!("is damaged at byte {frame}, ");
        assert!(error.to_string().contains(&place), "{byte}: {error}");
        assert_eq!(
            fs::read(only_file(folder.path())).expect("the file"),
            damaged
        );
    }
}

#[test]
fn a_key_appends_once_also_after_a_restart_and_refuses_other_events() {
    let (folder, log) = begun(LIMITS);
    let first = append(&log, 0..3, Some("a")).expect("there is room");
    append(&log, 3..4, None).expect("there is room");
    let again = Receipt {
        duplicate: true,
        ..first
    };
    assert_eq!(append(&log, 0..3, Some("a")), Ok(again));
    drop(log);
    let log = opened(folder.path(), LIMITS);
    assert_eq!(append(&log, 0..3, Some("a")), Ok(again));
    assert_eq!(append(&log, 0..2, Some("a")), Err(Refusal::KeyReused));
    assert_eq!(read(&log, 0), numbered(0..4));
    let facts = log.facts();
    assert_eq!(
        (facts.duplicates, facts.keys, facts.refused),
        (1, 1, [0, 0, 1, 0, 0, 0])
    );
}

#[test]
fn one_key_from_many_threads_at_once_appends_once() {
    let (_folder, log) = begun(LIMITS);
    let fresh: usize = std::thread::scope(|scope| {
        let posts: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| append(&log, 0..3, Some("a")).expect("there is room")))
            .collect();
        let receipts = posts.into_iter().map(|p| p.join().expect("no panic"));
        receipts.filter(|r| !r.duplicate).count()
    });
    assert_eq!((fresh, read(&log, 0)), (1, numbered(0..3)));
}

#[test]
fn a_full_log_refuses_until_events_are_read_and_deletes_only_what_was() {
    let limits = LogLimits {
        bytes_max: 64 << 10,
        ..LIMITS
    };
    let (folder, log) = begun(limits);
    let mut end = 0;
    while append(&log, end..end + 10, None).is_ok() {
        end += 10;
    }
    assert_eq!(append(&log, end..end + 10, None), Err(Refusal::Full));
    assert!(log.facts().bytes <= 64 << 10 && log.facts().bytes > 60 << 10);
    assert_eq!(read(&log, 0), numbered(0..end));
    // A third was read, which makes room for a third; the rest stays.
    let mut reader = log.reader();
    log.consume(end / 3).expect("stored");
    assert_eq!(reader.range().0, 0, "there was no need to delete");
    let before = end;
    while append(&log, end..end + 10, None).is_ok() {
        end += 10;
    }
    let (first, last) = reader.range();
    assert!(
        first <= before / 3 && first > before / 6,
        "{first} of {before}"
    );
    assert_eq!(last, end);
    assert!(end - before > before / 6, "{end} after {before}");
    assert_eq!(read(&log, first), numbered(first..end));
    reader.seek(0);
    assert!(matches!(
        reader.read(1, &mut |_, _, _| ()),
        Err(LogError::OutOfRange(0))
    ));
    // Old segments that were read are deleted, except the one that grows.
    drop(log);
    let log = opened(folder.path(), SHORT);
    assert_eq!(log.reader().consumed(), Some(before / 3));
    for _ in 0..KEEP {
        log.consume(end).expect("stored");
    }
    let facts = log.facts();
    assert!(
        facts.first < facts.end && facts.bytes < 6 << 10,
        "{facts:?}"
    );
    assert_eq!(append(&log, end..end + 1, None).map(|r| r.offset), Ok(end));
}

/// A snapshot that cannot be used is replaced by an older one, which needs the events after its own
/// offset.
#[test]
fn old_events_stay_as_long_as_a_snapshot_that_is_kept_needs_them() {
    let (folder, log) = begun(SHORT);
    let end = fill(&log, 0);
    let (reader, third) = (log.reader(), end / 3);
    let snapshots = [third, 2 * third, end, end, end];
    let firsts = snapshots.map(|offset| {
        log.consume(offset).expect("stored");
        reader.range().0
    });
    assert_eq!(firsts[..2], [0, 0], "fewer than are kept are known");
    for (first, needed) in firsts[2..].iter().zip(snapshots) {
        assert!(*first <= needed, "{firsts:?}");
    }
    assert!(0 < firsts[2] && firsts[2] < firsts[3] && firsts[3] < firsts[4]);
    // After a start only one snapshot is known.
    drop((reader, log));
    let log = opened(folder.path(), SHORT);
    let first = log.facts().first;
    let end = fill(&log, end);
    log.consume(end).expect("stored");
    assert_eq!(log.facts().first, first);
}

#[test]
fn events_before_an_empty_segment_are_not_old() {
    let (folder, log) = begun(LIMITS);
    append(&log, 0..2, Some("key")).expect("there is room");
    drop(log);
    // A failed write that had begun a segment leaves it empty.
    segment::Segment::create(folder.path(), 2).expect("a file");
    let log = opened(folder.path(), LIMITS);
    for _ in 0..KEEP {
        log.consume(2).expect("stored");
    }
    assert_eq!(log.facts().first, 0);
    let again = append(&log, 0..2, Some("key")).expect("it is known");
    assert!(again.duplicate);
}

#[test]
fn a_file_that_does_not_say_how_far_the_log_was_read_says_the_least() {
    let (folder, log) = begun(SHORT);
    assert_eq!(log.reader().consumed(), None);
    let end = fill(&log, 0);
    for _ in 0..KEEP {
        log.consume(end).expect("stored");
    }
    let first = log.facts().first;
    assert!(first > 0);
    drop(log);
    let open = |text: &str| {
        fs::write(folder.path().join("consumed"), text).expect("written");
        let log = opened(folder.path(), SHORT);
        log.reader().consumed()
    };
    assert_eq!(open(&format!("{end}\n")), Some(end));
    for broken in ["", "\0\0\0", "7 7"] {
        assert_eq!(open(broken), Some(first), "{broken:?}");
    }
}

#[test]
fn the_first_event_since_a_time_is_found() {
    let (_folder, log) = begun(LIMITS);
    let mut times = Vec::new();
    for i in 0..4 {
        append(&log, i * 2..i * 2 + 2, None).expect("there is room");
        let mut reader = log.reader();
        reader.seek(i * 2);
        reader
            .read(1, &mut |_, at_ms, _| times.push(at_ms))
            .expect("it reads");
        std::thread::sleep(std::time::Duration::from_millis(3));
    }
    let reader = log.reader();
    for (i, at_ms) in times.iter().enumerate() {
        let found = reader.first_since(*at_ms).expect("it reads");
        assert_eq!(found, Some(i as u64 * 2));
    }
    assert_eq!(reader.first_since(0).expect("it reads"), Some(0));
    assert_eq!(reader.first_since(times[3] + 1).expect("it reads"), None);
}

#[test]
fn a_clock_that_was_ahead_once_dates_no_later_event() {
    let (folder, log) = begun(LIMITS);
    append(&log, 0..1, None).expect("there is room");
    drop(log);
    let file = only_file(folder.path());
    let bytes = fs::read(&file).expect("it is there");
    let magic = segment::MAGIC.len();
    let (mut frame, _) = frame::at(&bytes, magic).expect("a frame");
    frame.at_ms += 5 * 3_600_000;
    let ahead_ms = frame.at_ms;
    let dated = [&bytes[..magic], &frame.write().expect("it fits")].concat();
    fs::write(&file, dated).expect("written");
    let log = opened(folder.path(), LIMITS);
    append(&log, 1..2, None).expect("there is room");
    let mut times = Vec::new();
    let mut each = |_, at_ms: i64, _: &[u8]| times.push(at_ms);
    let mut reader = log.reader();
    while reader.read(1, &mut each).expect("it reads") > 0 {}
    assert_eq!(times[0], ahead_ms);
    assert!(times[1] < ahead_ms - 4 * 3_600_000, "{times:?}");
}

#[test]
fn a_log_that_was_deleted_under_the_process_acknowledges_nothing() {
    let (folder, log) = begun(LIMITS);
    append(&log, 0..1, None).expect("there is room");
    fs::remove_dir_all(folder.path()).expect("it is there");
    for _ in 0..2 {
        let refused = append(&log, 1..2, None).expect_err("it is gone");
        assert!(
            matches!(&refused, Refusal::Disk(why) if why.contains("deleted")),
            "{refused:?}"
        );
    }
    assert!(log.facts().fault.is_some());
    assert_eq!(log.facts().end, 1);
}

#[test]
fn a_request_that_no_reader_could_read_is_refused_and_the_log_goes_on() {
    let limits = LogLimits {
        bytes_max: 1 << 40,
        ..LIMITS
    };
    let (folder, log) = begun(limits);
    append(&log, 0..2, None).expect("there is room");
    let bytes = log.facts().bytes;
    let long = vec!["1".repeat(FRAME_BYTES_MAX)];
    assert_eq!(log.append(None, 0, long), Err(Refusal::TooLong));
    assert_eq!(log.facts().bytes, bytes);
    append(&log, 2..4, None).expect("there is room");
    drop(log);
    assert_eq!(read(&opened(folder.path(), limits), 0), numbered(0..4));
}

/// The start may have refused the newest snapshot, which is the one that the file describes.
#[test]
fn events_that_the_snapshot_in_use_needs_make_no_room() {
    let limits = LogLimits {
        bytes_max: 64 << 10,
        ..LIMITS
    };
    let (folder, log) = begun(limits);
    let end = fill(&log, 0);
    log.consume(end).expect("stored");
    log.consume(end + 1).expect("another log's, and ignored");
    drop(log);
    let full = |restored: Option<u64>| {
        let log = opened(folder.path(), limits);
        if let Some(offset) = restored {
            log.restored(offset);
        }
        let mut next = log.facts().end;
        while append(&log, next..next + 10, None).is_ok() {
            next += 10;
        }
        assert_eq!(log.reader().consumed(), Some(end));
        log.facts().first
    };
    // An offset after the end belongs to another log.
    for restored in [None, Some(0), Some(1 << 40)] {
        assert_eq!(full(restored), 0, "{restored:?}");
    }
    let first = full(Some(end / 2));
    assert!((1..=end / 2).contains(&first), "{first} of {end}");
    // The process was killed before the file was written.
    let first = full(Some(2 * end));
    assert!((end / 2..=end).contains(&first), "{first} of {end}");
}

#[test]
fn a_segment_that_cannot_be_deleted_stays_in_the_log() {
    let (folder, log) = begun(SHORT);
    let end = fill(&log, 0);
    fs::remove_file(only_file(folder.path())).expect("it is there");
    fs::create_dir(only_file(folder.path())).expect("created");
    let known = log.facts();
    let consumed: Result<(), LogError> = (0..KEEP).try_for_each(|_| log.consume(end));
    consumed.expect_err("a folder is no file");
    assert_eq!((log.facts().first, log.facts().bytes), (0, known.bytes));
}
