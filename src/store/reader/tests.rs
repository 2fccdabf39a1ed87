use super::*;
use crate::collect::join::{JoinState, JournalMark};
use crate::judge::StreamId;
use crate::stats::view::View;
use crate::store::checkpoint::{CHUNK_BYTES, VERSION, journal_key, records};

const PREFIX: &str = "g/t/3/";

/// A checkpoint of several chunks, identified by a number.
fn numbered(n: u64) -> PartitionCheckpoint {
    let mut checkpoint = PartitionCheckpoint::default();
    checkpoint.snapshot.counters.evaluations = n;
    checkpoint.snapshot.topics = (0..60_000).map(|i| format!("topic number {i}")).collect();
    checkpoint
}

fn put(reader: &mut CheckpointReader, checkpoint: &PartitionCheckpoint, epoch: i64, number: u64) {
    let (body, head) = records(checkpoint, PREFIX, epoch, number).expect("encoded");
    assert!(body.len() > 1);
    for (key, value) in body.into_iter().chain([head]) {
        assert!(value.as_ref().is_some_and(|v| v.len() <= CHUNK_BYTES + 8));
        reader.read(key.as_bytes(), value.as_deref());
    }
}

fn reader() -> CheckpointReader {
    CheckpointReader::new(PREFIX.to_owned())
}

fn evaluations(reader: &CheckpointReader) -> u64 {
    let found = reader.newest().expect("sound").expect("a checkpoint");
    found.checkpoint.snapshot.counters.evaluations
}

#[test]
fn the_highest_epoch_holds_and_in_it_the_highest_number() {
    let mut reader = reader();
    assert!(reader.newest().expect("sound").is_none());
    for (epoch, number, n) in [(5, 1, 10), (5, 2, 20), (9, 1, 30)] {
        put(&mut reader, &numbered(n), epoch, number);
        assert_eq!(evaluations(&reader), n);
    }
    // A frozen process continues under its old epoch.
    put(&mut reader, &numbered(40), 5, 3);
    assert_eq!(evaluations(&reader), 30);
    // Keys of other partitions are ignored.
    reader.read(b"g/t/33/9/head/0", Some(b"x"));
    reader.read(b"other", None);
    assert_eq!(evaluations(&reader), 30);
    assert!(
        reader
            .keys_of_other_epochs(9)
            .iter()
            .all(|key| key.starts_with("g/t/3/5/"))
    );
}

#[test]
fn a_checkpoint_that_was_cut_short_leaves_the_one_before() {
    let mut reader = reader();
    put(&mut reader, &numbered(1), 5, 1);
    // The next one is interrupted after each chunk, before its head.
    let (body, _) = records(&numbered(2), PREFIX, 5, 2).expect("encoded");
    for (key, value) in body {
        reader.read(key.as_bytes(), value.as_deref());
        assert_eq!(evaluations(&reader), 1);
    }
    // Overwriting the slot of a whole checkpoint destroys that one; the other stays usable.
    put(&mut reader, &numbered(2), 5, 2);
    let (body, _) = records(&numbered(4), PREFIX, 5, 4).expect("encoded");
    reader.read(body[0].0.as_bytes(), body[0].1.as_deref());
    let found = reader.newest().expect("sound").expect("a checkpoint");
    assert_eq!(found.checkpoint.snapshot.counters.evaluations, 1);
    assert_eq!(
        found.refused,
        [("g/t/3/5/head/0".to_owned(), FormatError::Torn)]
    );
}

#[test]
fn foreign_damaged_and_future_checkpoints_are_refused_by_name_and_never_a_fresh_start() {
    let (body, head) = records(&numbered(1), PREFIX, 5, 1).expect("encoded");
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut reader = reader();
        for (key, value) in &body {
            reader.read(key.as_bytes(), value.as_deref());
        }
        let mut bytes = head.1.clone().expect("a head");
        change(&mut bytes);
        reader.read(head.0.as_bytes(), Some(&bytes));
        reader.newest().expect_err("refused")
    };
    let key = head.0.clone();
    type Change<'a> = &'a dyn Fn(&mut Vec<u8>);
    let cases: [(Change<'_>, FormatError); 5] = [
        (&|b| b[0] ^= 1, FormatError::Foreign),
        (&|b| b.truncate(30), FormatError::Torn),
        (&|b| b[13] ^= 1, FormatError::Checksum),
        (&|b| b[11] = 1, FormatError::Future(VERSION | 1 << 24)),
        (&|b| b[8] -= 1, FormatError::Past(VERSION - 1)),
    ];
    for (change, fault) in cases {
        assert_eq!(with(change), [(key.clone(), fault)]);
    }
    let mut reader = reader();
    reader.read(b"g/t/3/notes", Some(b"x"));
    let named = [("g/t/3/notes".to_owned(), FormatError::Foreign)];
    assert_eq!(reader.newest().expect_err("refused"), named);
}

#[test]
fn what_people_were_notified_of_after_a_checkpoint_was_begun_goes_with_it() {
    let mut reader = reader();
    let notified = |stream: &str, text: &str| Notified {
        stream: StreamId {
            model: stream.to_owned(),
            version: "1".to_owned(),
            segment: String::new(),
            view: View::Binary,
        },
        text: text.to_owned(),
    };
    let record = |at: (i64, u64), of: &Notified| {
        checkpoint::notified_record(PREFIX, at, of).expect("it fits")
    };
    let texts = |reader: &CheckpointReader| -> Vec<String> {
        let found = reader.newest().expect("sound").expect("a checkpoint");
        assert_eq!(found.refused, []);
        let mut texts: Vec<_> = found.notified.into_iter().map(|n| n.text).collect();
        texts.sort();
        texts
    };
    for (at, stream, text) in [
        ((5, 1), "a", "in checkpoint 2"),
        ((5, 2), "b", "sent"),
        ((5, 2), "b", "sent and delivered"),
        ((5, 3), "c", "while 3 was written"),
    ] {
        let (key, value) = record(at, &notified(stream, text));
        reader.read(key.as_bytes(), value.as_deref());
    }
    assert!(reader.newest().expect("sound").is_none());
    put(&mut reader, &numbered(2), 5, 2);
    assert_eq!(
        texts(&reader),
        ["sent and delivered", "while 3 was written"]
    );
    // The next owner dies before its first checkpoint.
    let (key, value) = record((9, 0), &notified("c", "over"));
    reader.read(key.as_bytes(), value.as_deref());
    assert_eq!(texts(&reader), ["over", "sent and delivered"]);
    put(&mut reader, &numbered(3), 5, 3);
    assert_eq!(texts(&reader), ["over"]);
    assert!(reader.keys_of_other_epochs(5).contains(&key));
    reader.read(key.as_bytes(), None);
    assert_eq!(texts(&reader), ["while 3 was written"]);
    // A damaged notification is reported, and the checkpoint is used without it.
    reader.read(key.as_bytes(), Some(b"\xff"));
    let found = reader.newest().expect("sound").expect("a checkpoint");
    assert_eq!((found.notified.len(), &found.unreadable[0].0), (1, &key));
    assert_eq!(found.refused, []);
    put(&mut reader, &numbered(1), 9, 1);
    assert_eq!(texts(&reader), [""; 0]);
    let large = notified("a", &"x".repeat(CHUNK_BYTES));
    assert_eq!(checkpoint::notified_record(PREFIX, (5, 1), &large), None);
}

#[test]
fn a_foreign_key_that_is_deleted_does_not_matter_any_more() {
    let mut reader = reader();
    put(&mut reader, &numbered(1), 5, 1);
    let foreign: [&[u8]; 3] = [b"g/t/3/notes", b"g/t/3/\xff", b"g/t/3/\xfe"];
    for key in foreign {
        reader.read(key, Some(b"x"));
        reader.read(key, Some(b"y"));
    }
    for key in foreign {
        assert!(reader.newest().is_err());
        reader.read(key, None);
    }
    assert_eq!(evaluations(&reader), 1);
    // Deleting a key that was never there changes nothing.
    reader.read(b"g/t/3/other", None);
    assert_eq!(evaluations(&reader), 1);
}

#[test]
fn a_journal_is_read_as_the_epochs_of_the_checkpoint_wrote_it() {
    let mut reader = reader();
    let mut chunk = |segment: u64, offset: u64, epoch: i64, bytes: &[u8]| {
        let key = journal_key(PREFIX, (segment, offset, epoch));
        reader.read(key.as_bytes(), Some(bytes));
    };
    chunk(0, 0, 5, b"abc");
    chunk(0, 3, 5, b"def");
    // These bytes lie after the mark of the restored checkpoint.
    chunk(0, 6, 5, b"xxx");
    chunk(0, 6, 9, b"ghi");
    chunk(1, 0, 9, b"jkl");
    let whole: [&[u8]; 2] = [b"abcdefghi", b"jkl"];
    let mut checkpoint = numbered(1);
    checkpoint.snapshot.joins = vec![JoinState {
        partition: 3,
        outcomes: 1,
        marks: (0..)
            .zip(whole)
            .map(|(segment, bytes)| JournalMark {
                segment,
                len: bytes.len() as u64,
                crc: crc32fast::hash(bytes),
                until_ms: 0,
            })
            .collect(),
        ..JoinState::default()
    }];
    let range = |segment, offset, epoch| JournalRange {
        segment,
        offset,
        epoch,
    };
    checkpoint.epochs = vec![range(0, 0, 5), range(0, 6, 9)];
    put(&mut reader, &checkpoint, 9, 1);
    let found = reader.newest().expect("sound").expect("a checkpoint");
    assert_eq!(found.segments, whole);
    // A missing chunk is an error, not an empty journal.
    reader.read(journal_key(PREFIX, (0, 3, 5)).as_bytes(), None);
    let refused = reader.newest().expect_err("a chunk is missing");
    assert_eq!(refused[0].1, FormatError::Missing);
}
