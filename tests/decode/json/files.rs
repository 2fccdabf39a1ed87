//! Files of JSON lines and of CSV go through the same checks, with the numbers of their lines.

use super::{NOW, classes, flat, record};
use crate::support::file;
use std::io::Write;
use trueline::collect::Reason;
use trueline::decode::*;

/// Line and what became of it: the score or the reason.
fn read_all(path: &std::path::Path, o: &DecodeOptions) -> Vec<(u64, Result<String, Reason>)> {
    let mut r = FileReader::open(path, Some(o), None).unwrap();
    let mut all = Vec::new();
    while r.advance().unwrap() {
        let row = r.row();
        let event = row.content.map(|c| match c {
            Content::Event(e) => format!("{:?} {:?}", e.prediction, e.outcome),
            Content::Outcome(_) => panic!("no outcome is looked for"),
        });
        all.push((row.line, event.map_err(|r| r.reason)));
    }
    assert!(r.bytes_read() > 0);
    all
}

#[test]
fn json_lines_are_read_plain_gzip_and_zstd_with_their_line_numbers() {
    let mut text = record("0.25", "1") + "\n\n" + &record("1.5", "0") + "\r\n{\n";
    text += &format!("{{\"x\":\"{}\"}}\n", "x".repeat(2 << 20));
    text += &record("0.75", "null");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    let expected = vec![
        (1, Ok("Score(0.25) Some(Binary(true))".to_string())),
        (3, Err(Reason::ScoreOutOfRange)),
        (4, Err(Reason::Malformed)),
        (5, Err(Reason::TooLarge)),
        (6, Ok("Score(0.75) None".to_string())),
    ];
    for path in [
        file("a.jsonl", text.as_bytes()),
        file("a.jsonl.gz", &gz.finish().unwrap()),
        file(
            "a.jsonl.zst",
            &zstd::encode_all(text.as_bytes(), 1).unwrap(),
        ),
    ] {
        assert_eq!(read_all(&path, &flat()), expected, "{}", path.display());
    }
    let damaged = file("b.jsonl.gz", b"\x1f\x8b\x08\x00oops");
    let text = match FileReader::open(&damaged, Some(&flat()), None) {
        Ok(_) => String::new(),
        Err(e) => e.to_string(),
    };
    assert!(text.contains("b.jsonl.gz: reading failed ("), "{text}");
    let long = file("long.jsonl", "x".repeat(2 << 20).as_bytes());
    let mut reader = FileReader::open(&long, Some(&flat()), None).unwrap();
    assert!(reader.advance().unwrap());
    let said = reader.row().content.err().unwrap().detail;
    let words = "more than `record_bytes_max` = 1048576 bytes";
    assert!(said.contains(words), "{said}");
}

#[test]
fn csv_goes_through_the_same_checks_by_column_name() {
    let text = format!(
        "time_ms,outcome,model,score\n{NOW},1,m,0.25\n{NOW},,\"m,x\",0.5\n{NOW},true,m,1.2\n{NOW},0,m,abc\n\
         {NOW},0,,0.5\n5,0,m,0.5\n{NOW},0\n{NOW},False,m,nan\n"
    );
    assert_eq!(
        read_all(&file("a.csv", text.as_bytes()), &flat()),
        vec![
            (2, Ok("Score(0.25) Some(Binary(true))".to_string())),
            (3, Ok("Score(0.5) None".to_string())),
            (4, Err(Reason::ScoreOutOfRange)),
            (5, Err(Reason::ScoreNotNumber)),
            (6, Err(Reason::MissingField)),
            (7, Err(Reason::TimeOutOfRange)),
            (8, Err(Reason::MissingField)),
            (9, Err(Reason::ScoreNotFinite)),
        ]
    );
    let e = FileReader::open(&file("b.csv", b"time_ms,model,p\n"), Some(&flat()), None)
        .err()
        .unwrap();
    let words = "b.csv:1: no column named 'score' among [time_ms, model, p]";
    assert!(e.to_string().contains(words), "{e}");
    let o = classes(PredictionField::ClassMap("p".into()));
    let text = format!(
        "p.ox,model,p.cat,time_ms,outcome,p.dog\n0.25,m,0.25,{NOW},dog,0.5\n1,m,,{NOW},dog,0\n"
    );
    assert_eq!(
        read_all(&file("c.csv", text.as_bytes()), &o),
        vec![
            (
                2,
                Ok("Vector([0.25, 0.5, 0.25]) Some(Class(1))".to_string())
            ),
            (3, Err(Reason::ScoreNotNumber)),
        ]
    );
}

#[test]
fn a_row_of_csv_that_is_longer_than_the_header_is_rejected() {
    let text = format!("model,time_ms,score,outcome\nm,{NOW},0,1,1\nm,{NOW},0.5,1\n");
    let read = read_all(&file("longer.csv", text.as_bytes()), &flat());
    assert_eq!(
        read,
        [
            (2, Err(Reason::Malformed)),
            (3, Ok("Score(0.5) Some(Binary(true))".to_string())),
        ]
    );
}

#[test]
fn a_wanted_column_of_csv_that_is_named_twice_is_refused() {
    let of = |header: &str| {
        let path = file("twice.csv", format!("{header}\n").as_bytes());
        let opened = FileReader::open(&path, Some(&flat()), None);
        opened.err().map(|error| error.to_string())
    };
    let said = of("time_ms,score,outcome,model, score").unwrap_or_default();
    assert!(
        said.contains("twice.csv:1: ") && said.contains("`score` twice"),
        "{said}"
    );
    assert_eq!(of("time_ms,x,x,score,outcome,model"), None);
}

#[test]
fn spaces_around_a_cell_of_csv_are_no_part_of_it() {
    let text = format!(" model , time_ms, score, outcome\n m, {NOW} , 0.5 , 1\n  ,{NOW},0.5,1\n");
    let mut reader =
        FileReader::open(&file("spaces.csv", text.as_bytes()), Some(&flat()), None).unwrap();
    assert!(reader.advance().unwrap());
    let Ok(Content::Event(event)) = reader.row().content else {
        panic!("no event");
    };
    assert_eq!((event.model, event.time_ms), ("m", NOW));
    assert!(reader.advance().unwrap());
    let rejected = reader.row().content.err().map(|r| r.reason);
    assert_eq!(rejected, Some(Reason::MissingField));
}

#[test]
fn a_quote_that_is_never_closed_ends_the_file_before_its_row_counts() {
    let rest = format!("{NOW},0,m,0.5\n").repeat(20);
    let text =
        format!("time_ms,outcome,model,score,note\n{NOW},1,m,0.25,a\n{NOW},1,m,0.5,\"5 inch\n");
    let path = file("never.csv", (text + &rest).as_bytes());
    let mut reader = FileReader::open(&path, Some(&flat()), None).unwrap();
    assert!(reader.advance().unwrap());
    let said = reader.advance().err().map(|e| e.to_string());
    let said = said.unwrap_or_default();
    assert!(
        said.contains("never.csv:3: a quote is opened here and never closed"),
        "{said}"
    );
}

#[test]
fn a_file_whose_name_says_nothing_is_known_by_its_first_byte() {
    let line = record("0.25", "1");
    let csv = format!("time_ms,outcome,model,score\n{NOW},1,m,0.25\n");
    let score = || Ok::<_, Reason>("Score(0.25) Some(Binary(true))".to_string());
    for name in ["kind.txt", "kind", "kind.tsv"] {
        let json = read_all(&file(name, format!("\n{line}\n").as_bytes()), &flat());
        assert_eq!(json, [(2, score())], "{name}");
        let rows = read_all(&file(name, csv.as_bytes()), &flat());
        assert_eq!(rows, [(2, score())], "{name}");
    }
    let json = read_all(&file("kind.jsonl", b"nonsense\n"), &flat());
    assert_eq!(json, [(1, Err(Reason::Malformed))]);
}

#[test]
fn what_is_no_file_of_events_is_told_before_any_row() {
    let line = record("0.25", "1");
    let (array, first) = (format!("[{line},{line}]"), format!("[\n{line}\n]"));
    for (name, bytes, words) in [
        ("array.json", array.as_bytes(), "a JSON array"),
        ("array", first.as_bytes(), "a JSON array"),
        ("p.csv", &b"BZh91AY"[..], "compressed with bz2"),
        ("p.jsonl", b"PK\x03\x04rest", "compressed with zip"),
        ("old.feather", b"FEA1\0\0\0\0rest", "Feather of version 1"),
        ("x.avro", b"Obj\x01\x04", "is an Avro file; write"),
        ("wide.csv", b"\xff\xfes\0c\0", "is text in UTF-16; write"),
        ("latin.csv", b"time_ms,\xe9\n", "write the file as UTF-8"),
        (
            "semi.csv",
            b"time_ms;model;score;outcome\n",
            "separated by `;`",
        ),
        (
            "case.csv",
            b"time_ms,model,Score,outcome\n",
            "did you mean 'Score'?",
        ),
    ] {
        let opened = FileReader::open(&file(name, bytes), Some(&flat()), None);
        let said = opened.and_then(|mut reader| reader.advance()).err();
        let said = said.map(|e| e.to_string()).unwrap_or_default();
        assert!(
            said.contains(words) && said.contains(name),
            "{name}: {said}"
        );
    }
    let folder = file("x", b"").parent().expect("a folder").to_path_buf();
    let opened = FileReader::open(&folder, Some(&flat()), None);
    let said = opened.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(said.contains("is a directory"), "{said}");
}

#[test]
fn a_row_of_csv_that_never_ends_stops_at_a_mebibyte() {
    let open = format!("{NOW},1,\"{}\n", "x".repeat(3 << 20));
    let text = format!("time_ms,outcome,model,score\n{NOW},1,m,0.25\n{open}");
    let mut reader =
        FileReader::open(&file("open.csv", text.as_bytes()), Some(&flat()), None).unwrap();
    let said = loop {
        match reader.advance() {
            Ok(true) => {}
            Ok(false) => panic!("the row ended"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(
        said.contains("open.csv:3") && said.contains("is a quote open?"),
        "{said}"
    );
}
