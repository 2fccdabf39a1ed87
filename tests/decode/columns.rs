//! Parquet and Arrow: the rows of a file have the values of the same rows as text, to the bit.
//!
//! The files in `columnar/` were written by pandas, pyarrow and polars (`columnar/make.py`), beside
//! the same rows as CSV or JSON lines.

use std::fs;
use std::path::{Path, PathBuf};

use trueline::decode::columns::Columns;
use trueline::decode::scores::Sample;
use trueline::decode::vectors::{self, Table, plain_columns};
use trueline::decode::{
    Content, DecodeOptions, FieldOrConst, FileReader, IdField, PredictionField, TimeField, TimeUnit,
};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/decode/columnar")
        .join(name)
}

fn columnar(name: &str, columns: &Columns) -> Result<Table, String> {
    let read = vectors::read_columnar(&path(name), columns).expect("a file of columns");
    read.map_err(|e| e.to_string())
}

fn text(name: &str, columns: &Columns) -> Table {
    let bytes = fs::read(path(name)).expect("a file");
    vectors::read(name, &bytes[..], columns).expect("a sample")
}

const PLAIN: [&str; 5] = [
    "plain.parquet",
    "plain.zstd.parquet",
    "plain.feather",
    "plain.arrows",
    "plain.polars.arrow",
];

#[test]
fn every_writer_and_container_gives_the_sample_of_the_csv() {
    let columns = Columns::default();
    let wanted = text("plain.csv", &columns);
    assert!(matches!(&wanted, Table::Scores(Sample::Plain(sample)) if sample.len() == 60));
    for name in PLAIN {
        assert_eq!(columnar(name, &columns), Ok(wanted.clone()), "{name}");
        // The same by columns of numbers, in batches.
        let mut plain = plain_columns(&path(name), &columns)
            .expect("plain columns")
            .expect("it opens");
        let mut sample = Vec::new();
        while let Some((scores, labels)) = plain.advance().expect("sound") {
            sample.extend(scores.iter().copied().zip(labels.iter().copied()));
        }
        assert_eq!(Table::Scores(Sample::Plain(sample)), wanted, "{name}");
    }
    assert!(vectors::read_columnar(&path("plain.csv"), &columns).is_none());
}

#[test]
fn categories_decimals_weights_and_lists_are_what_their_text_says() {
    let columns = Columns {
        positive: Some("spam".to_owned()),
        ..Columns::default()
    };
    let wanted = text("words.csv", &columns);
    assert!(matches!(&wanted, Table::Scores(Sample::Weighted(_))));
    assert_eq!(columnar("words.parquet", &columns), Ok(wanted));
    let listed = Columns {
        score: "probs".to_owned(),
        ..Columns::default()
    };
    let wanted = text("vectors.csv", &Columns::default());
    assert!(matches!(&wanted, Table::Vectors(_, None)));
    assert_eq!(columnar("vectors.parquet", &listed), Ok(wanted));
    let said = columnar("uneven.parquet", &Columns::default()).expect_err("three items");
    let words = "uneven.parquet: row 3: the list has 3 items and the first one 2";
    assert!(said.contains(words), "{said}");
    // An element of a list is a column too.
    let first = Columns {
        score: "probs.0".to_owned(),
        ..Columns::default()
    };
    let said = columnar("vectors.parquet", &first).expect_err("three labels");
    assert!(said.contains("vectors.parquet: row 3: label '2'"), "{said}");
}

#[test]
fn a_column_that_is_not_there_and_a_value_that_is_none_name_their_place() {
    let named = |score: &str, label: &str| Columns {
        score: score.to_owned(),
        label: label.to_owned(),
        ..Columns::default()
    };
    let said = columnar("plain.parquet", &named("y_prob", "label")).expect_err("no such column");
    assert!(
        said.contains("no column named 'y_prob' among [score, label]"),
        "{said}"
    );
    let said = columnar("events.parquet", &named("payload.score", "happened")).expect_err("a null");
    let words = "events.parquet: row 4: there is no score";
    assert!(said.contains(words), "{said}");
    let said = columnar("plain.parquet", &named("label", "score")).expect_err("swapped");
    assert!(said.contains("plain.parquet: row 1: label '0."), "{said}");
}

fn options() -> DecodeOptions {
    DecodeOptions {
        model: FieldOrConst::Field("model".to_owned()),
        id: Some(IdField::Path("payload.user".to_owned())),
        time: Some(TimeField {
            path: "at".to_owned(),
            unit: TimeUnit::Rfc3339,
            zone_s: None,
        }),
        prediction: PredictionField::Score("payload.score".to_owned()),
        outcome: "happened".to_owned(),
        ..DecodeOptions::default()
    }
}

/// All rows: what they hold, or why they are rejected.
fn rows(name: &str, sort: bool) -> Vec<String> {
    rows_of(&path(name), sort)
}

fn rows_of(path: &Path, sort: bool) -> Vec<String> {
    let mut reader = FileReader::open(path, Some(&options()), None).expect("it opens");
    if sort {
        reader.sort().expect("sorted");
    }
    let mut all = Vec::new();
    while reader.advance().expect("a row") {
        let row = reader.row();
        all.push(match row.content {
            Ok(Content::Event(event)) => format!("{}: {event:?}", row.line),
            Ok(Content::Outcome(label)) => format!("{}: {label:?}", row.line),
            Err(rejection) => format!("{}: {rejection:?}", row.line),
        });
    }
    all
}

#[test]
fn events_with_nested_fields_dictionaries_and_times_are_those_of_json_lines() {
    let wanted = rows("events.jsonl", false);
    assert_eq!(wanted.len(), 60);
    assert!(
        wanted[3].starts_with("4: ") && wanted[3].contains("MissingField"),
        "{}",
        wanted[3]
    );
    assert_eq!(rows("events.parquet", false), wanted);
    assert_eq!(rows("events.parquet", true), wanted);
    let options = DecodeOptions {
        outcome: "happened".to_owned(),
        prediction: PredictionField::Score("payload.p".to_owned()),
        ..options()
    };
    let opened = FileReader::open(&path("events.parquet"), Some(&options), None);
    let said = opened.err().expect("no such field").to_string();
    assert!(
        said.contains("no column `payload.p`; the file has model, payload, at, happened"),
        "{said}"
    );
}

#[test]
fn a_byte_order_mark_before_json_lines_costs_no_event() {
    let bytes = fs::read(path("events.jsonl")).expect("a file");
    let marked = Path::new(env!("CARGO_TARGET_TMPDIR")).join("marked.jsonl");
    fs::write(&marked, [b"\xef\xbb\xbf".as_slice(), &bytes].concat()).expect("a file");
    for sort in [false, true] {
        assert_eq!(rows_of(&marked, sort), rows("events.jsonl", sort));
    }
}

/// A file that ends early is an error with a remedy wherever it ends, or it is whole.
#[test]
fn a_file_that_is_cut_off_is_an_error() {
    let whole = text("plain.csv", &Columns::default());
    let cut = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut");
    for name in PLAIN {
        let bytes = fs::read(path(name)).expect("a file");
        for end in (8..bytes.len()).step_by(37) {
            fs::write(&cut, &bytes[..end]).expect("a file");
            let read = vectors::read_columnar(&cut, &Columns::default()).expect("its start");
            match read {
                Err(e) => assert!(
                    e.to_string().contains("check that the file is whole")
                        || e.to_string().contains("no column"),
                    "{name}:{end}: {e}"
                ),
                // A stream may end between two batches.
                Ok(Table::Scores(Sample::Plain(part))) => {
                    let Table::Scores(Sample::Plain(all)) = &whole else {
                        panic!()
                    };
                    assert!(
                        name == "plain.arrows" && all.starts_with(&part),
                        "{name}:{end}"
                    );
                }
                Ok(other) => panic!("{name}:{end}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_compression_that_is_not_read_is_named_where_its_column_is_wanted() {
    let mut bytes = fs::read(path("plain.zstd.parquet")).expect("a file");
    // The name of the column and then its codec, as Thrift writes them: zstd is 6, brotli 4.
    let codec = b"\x05score\x15\x0c";
    let places = bytes.windows(codec.len()).enumerate();
    let places: Vec<usize> = places
        .filter(|(_, w)| w == codec)
        .map(|(at, _)| at)
        .collect();
    assert_eq!(places.len(), 4, "one in each row group");
    for at in places {
        bytes[at + codec.len() - 1] = 0x08;
    }
    let brotli = Path::new(env!("CARGO_TARGET_TMPDIR")).join("brotli.parquet");
    fs::write(&brotli, &bytes).expect("a file");
    let read = |score: &str| {
        let columns = Columns {
            score: score.to_owned(),
            ..Columns::default()
        };
        let read = vectors::read_columnar(&brotli, &columns).expect("a file of columns");
        read.map_err(|e| e.to_string())
    };
    let said = read("score").expect_err("brotli");
    let words = "brotli.parquet: is compressed with brotli; snappy, gzip, zstd and lz4 are read";
    assert!(said.ends_with(words), "{said}");
    assert!(matches!(read("label"), Ok(Table::Scores(_))));
}

/// Files, what makes a size in them large, and how far apart their sizes may lie: the greatest of
/// 32 bits as Thrift writes it anywhere, and 2^50 and 2^34 in words of Arrow.
const DAMAGE: [(&[&str], &[u8], usize); 3] = [
    (
        &["plain.parquet", "plain.zstd.parquet", "words.parquet"],
        &[0xfe, 0xff, 0xff, 0xff, 0x0f],
        1,
    ),
    (&ARROW, &[0, 0, 0, 0, 0, 0, 4, 0], 4),
    (&ARROW, &[0, 0, 0, 0, 4, 0, 0, 0], 4),
];

const ARROW: [&str; 3] = ["plain.feather", "plain.arrows", "plain.polars.arrow"];

/// Wherever a damaged file claims a size, reading ends, with the rows or an error, and never asks
/// for the memory. A size that is asked for in vain ends the process, and with it this test.
#[test]
fn a_damaged_size_never_takes_the_memory() {
    let damaged = Path::new(env!("CARGO_TARGET_TMPDIR")).join("damaged");
    let (mut read, mut refused) = (0, 0);
    for (names, large, step) in DAMAGE {
        for name in names {
            let whole = fs::read(path(name)).expect("a file");
            for at in (8..whole.len()).step_by(step) {
                let mut bytes = whole.clone();
                let end = bytes.len().min(at + large.len());
                bytes[at..end].copy_from_slice(&large[..end - at]);
                fs::write(&damaged, &bytes).expect("a file");
                let table = vectors::read_columnar(&damaged, &Columns::default());
                let table = table.expect("its start");
                read += 1;
                refused += usize::from(table.is_err_and(|e| e.to_string().contains("is said to")));
            }
        }
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|l| l.trim().strip_suffix(" kB")?.parse().ok());
    let peak_mib = peak.unwrap_or(0u64) >> 10;
    println!("{refused} of {read} files refused for a size; peak {peak_mib} MiB");
    assert!(refused > 20, "{refused}");
    assert!(peak_mib < 1024, "{peak_mib} MiB");
}
