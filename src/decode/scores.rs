//! Reads files of scored outcomes for `evaluate`: CSV or JSON lines with the columns `score`,
//! `label` and optionally `weight` or `cluster`, or the names given on the command line.
//!
//! The file is one sample. So an invalid line is not skipped as in a stream but ends the reading
//! with file, line and remedy, because a sample with gaps is a different sample. Nothing is clamped
//! or guessed. Other columns and any order of columns are allowed; gzip and zstd are decompressed.

use super::columns::{Columns, Labels};
use super::number;
use super::rejection::{outside, shorten};
use super::rows::Rows;
use super::scores_error::{ScoresError, empty};
use crate::stats::clusters::Bucket;
use crate::stats::weighted::WeightedEvent;
use std::io::{self, BufRead, BufReader, Read};

/// The text of a file, decompressed if it begins like gzip or zstd; an error if it, compressed or
/// not, begins like a kind of file that is not text. `name` is its name in messages.
pub fn unpack<'a>(name: &str, raw: impl Read + 'a) -> Result<Box<dyn BufRead + 'a>, String> {
    let failed =
        |e: io::Error| format!("{name}: reading failed ({e}); check that the file is whole");
    let mut raw = BufReader::new(raw);
    let start = raw.fill_buf().map_err(failed)?;
    let packed: Box<dyn Read + 'a> = match start {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(raw)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = zstd::stream::read::Decoder::with_buffer(raw);
            Box::new(decoder.map_err(failed)?)
        }
        _ => {
            return match unread(start) {
                Some(why) => Err(format!("{name} {why}")),
                None => Ok(Box::new(raw)),
            };
        }
    };
    let mut unpacked = BufReader::new(packed);
    match unread(unpacked.fill_buf().map_err(failed)?) {
        Some(why) => Err(format!("{name}, decompressed, {why}")),
        None => Ok(Box::new(unpacked)),
    }
}

/// The message for a file that begins like a kind that is not text.
fn unread(start: &[u8]) -> Option<&'static str> {
    match start {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            Some("is compressed with xz; gzip and zstd are read")
        }
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
            Some("is compressed with bz2; gzip and zstd are read")
        }
        [b'P', b'K', 3, 4, ..] => Some("is compressed with zip; gzip and zstd are read"),
        // A CSV header may begin with a column named FEA1; the file pads its magic with zeros.
        [b'F', b'E', b'A', b'1', 0, ..] => Some("is Feather of version 1; write version 2"),
        [b'O', b'b', b'j', 1, ..] => {
            Some("is an Avro file; write Parquet, Arrow, CSV or JSON lines")
        }
        // A text table has a second column.
        [b'O', b'R', b'C', 0..=0x1f, ..] => {
            Some("is an ORC file; write Parquet, Arrow, CSV or JSON lines")
        }
        // Files and standard input were checked before; only compressed data and pipes come here.
        [b'P', b'A', b'R', b'1', ..]
        | [b'A', b'R', b'R', b'O', b'W', b'1', ..]
        | [0xff, 0xff, 0xff, 0xff, ..] => {
            Some("is Parquet or Arrow; give it as it is, in a file or as standard input")
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("is text in UTF-16; write it as UTF-8"),
        _ if start.get(257..262) == Some(b"ustar") => {
            Some("is a tar archive; take the files out of it")
        }
        _ => None,
    }
}

/// A whole sample, weighted if the file has a column of weights, clustered if it names clusters.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// Scores and outcomes.
    Plain(Vec<(f64, bool)>),
    /// Scores, outcomes and weights.
    Weighted(Vec<WeightedEvent>),
    /// Scores, outcomes and clusters.
    Clustered(Vec<(f64, bool, Bucket)>),
}

impl Sample {
    /// Scores and outcomes of a sample without weights and clusters.
    pub fn plain(self) -> Option<Vec<(f64, bool)>> {
        match self {
            Sample::Plain(sample) => Some(sample),
            Sample::Weighted(_) | Sample::Clustered(_) => None,
        }
    }
}

/// Reads a sample with the columns `score` and `label`; `name` is the name of the file in messages.
/// An empty sample is an error.
pub fn read(name: &str, input: impl Read) -> Result<Sample, ScoresError> {
    read_rows(name, &mut Rows::open(name, input)?, &Columns::default())
}

/// Reads the whole sample of a table.
pub(super) fn read_rows(
    name: &str,
    rows: &mut Rows<'_>,
    columns: &Columns,
) -> Result<Sample, ScoresError> {
    let (score, label) = (rows.need(&columns.score)?, rows.need(&columns.label)?);
    let (weight, cluster) = attributes(rows, columns)?;
    if weight.is_some() && cluster.is_some() {
        return Err(ScoresError(format!(
            "{name}:1: the columns weight and cluster are not supported together; name the one that counts with \
             --weight or --cluster"
        )));
    }
    let mut labels = Labels::new(columns);
    let (mut sample, mut weighted, mut clustered) = (Vec::new(), Vec::new(), Vec::new());
    while rows.advance()? {
        let place = |what: String| rows.fault(what);
        let z = parse_score(rows.cell(score)).map_err(place)?;
        let y = labels.outcome(rows.cell(label)).map_err(place)?;
        match (weight, cluster) {
            (Some(column), _) => {
                weighted.push((z, y, parse_weight(rows.cell(column)).map_err(place)?));
            }
            (None, Some(column)) if rows.cell(column).is_empty() => {
                let what = "the cluster is empty; an event that shares none names itself";
                return Err(place(what.to_owned()));
            }
            (None, Some(column)) => {
                clustered.push((z, y, Bucket::of(rows.cell(column).as_bytes())));
            }
            (None, None) => sample.push((z, y)),
        }
    }
    if sample.is_empty() && weighted.is_empty() && clustered.is_empty() {
        return Err(empty(name));
    }
    Ok(match (weight, cluster) {
        (Some(_), _) => Sample::Weighted(weighted),
        (None, Some(_)) => Sample::Clustered(clustered),
        (None, None) => Sample::Plain(sample),
    })
}

/// The columns of weights and of clusters. If one was named, the other is not looked for by its
/// usual name.
pub(super) fn attributes(
    rows: &mut Rows<'_>,
    columns: &Columns,
) -> Result<(Option<usize>, Option<usize>), ScoresError> {
    let mut attribute = |own: &Option<String>, other: &Option<String>, usual: &str| match own {
        Some(name) => rows.need(name).map(Some),
        None if other.is_some() => Ok(None),
        None => rows.find(usual),
    };
    Ok((
        attribute(&columns.weight, &columns.cluster, "weight")?,
        attribute(&columns.cluster, &columns.weight, "cluster")?,
    ))
}

/// Between these bounds, the sixth power of a weight and a sum of such powers fit a double.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-12..=1e12;

pub(super) fn parse_weight(text: &str) -> Result<f64, String> {
    let Some(w) = number::checked(text) else {
        return Err(format!(
            "weight '{}' is not a number; write a number above 0, or drop the column",
            shorten(text)
        ));
    };
    if WEIGHTS.contains(&w) {
        return Ok(w);
    }
    let text = shorten(text);
    Err(match w {
        w if w <= 0.0 => {
            format!("weight {text} is not above 0; leave out events that stand for nothing")
        }
        w if w.is_finite() => {
            format!("weight {text} is not between 1e-12 and 1e12; divide all by their mean")
        }
        _ => format!("weight {text} is not finite; write a number above 0"),
    })
}

pub(super) fn parse_score(text: &str) -> Result<f64, String> {
    if text.is_empty() {
        return Err("there is no score; leave out events without one".to_owned());
    }
    let Some(z) = number::checked(text) else {
        return Err(match text.starts_with(['[', '{']) {
            true => "the score is a list or an object; name a column for each class, such as \
                     --classes cat=score.cat,dog=score.dog"
                .to_owned(),
            false => {
                let shown = shorten(text);
                format!("score '{shown}' is not a number; write a probability between 0 and 1")
            }
        });
    };
    let shown = || shorten(text);
    if !z.is_finite() {
        return Err(format!(
            "score {} is not finite; leave out events without a score",
            shown()
        ));
    }
    if !(0.0..=1.0).contains(&z) {
        return Err(format!(
            "score {} is outside [0, 1]; {}",
            shown(),
            outside(z)
        ));
    }
    Ok(z + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        match read("s.csv", text.as_bytes()) {
            Ok(sample) => format!("read {sample:?}"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn columns_stand_in_any_order_beside_others() {
        let [anna, other] = [&b"anna"[..], b"17"].map(Bucket::of);
        for (text, sample) in [
            (
                "\u{feff}id, label ,score\na,1,0.25\nb,false,1\n",
                Sample::Plain(vec![(0.25, true), (1.0, false)]),
            ),
            (
                "weight,score,label\n2.5,0.25,1\n1e-3,1,0\n",
                Sample::Weighted(vec![(0.25, true, 2.5), (1.0, false, 1e-3)]),
            ),
            (
                "cluster,score,label\nanna,0.25,1\n17,1,0\n",
                Sample::Clustered(vec![(0.25, true, anna), (1.0, false, other)]),
            ),
        ] {
            assert_eq!(read("s.csv", text.as_bytes()), Ok(sample));
        }
        let e = fault("score,label,cluster\n0.5,1,\n");
        assert!(e.starts_with("s.csv:2: the cluster is empty"), "{e}");
        let e = fault("score,label,cluster,weight\n0.5,1,a,2\n");
        assert!(e.contains("not supported together"), "{e}");
        let both = "score,label,cluster,weight\n0.5,1,a,2\n";
        let named = Columns {
            weight: Some("weight".to_owned()),
            ..Columns::default()
        };
        let mut rows = Rows::open("s.csv", both.as_bytes()).expect("rows");
        let weighted = read_rows("s.csv", &mut rows, &named);
        assert_eq!(weighted, Ok(Sample::Weighted(vec![(0.5, true, 2.0)])));
        for (weight, said) in [
            ("0", "weight 0 is not above 0"),
            ("-1", "weight -1 is not above 0"),
            ("NaN", "weight NaN is not finite"),
            ("inf", "weight inf is not finite"),
            ("1e13", "weight 1e13 is not between"),
            ("1e-13", "weight 1e-13 is not between"),
            ("", "weight '' is not a number"),
        ] {
            let e = fault(&format!("score,label,weight\n0.5,1,{weight}\n"));
            assert!(
                e.starts_with(&format!("s.csv:2: {said}")) && e.contains(';'),
                "{e}"
            );
        }
    }

    #[test]
    fn every_fault_names_its_line_and_remedy() {
        let start = "score,label\n0.5,1\n";
        for (line, said) in [
            ("NaN,1", "s.csv:3: score NaN is not finite"),
            ("1.2,1", "s.csv:3: score 1.2 is outside [0, 1]"),
            ("-0.1,1", "s.csv:3: score -0.1 is outside [0, 1]"),
            ("high,1", "s.csv:3: score 'high' is not a number"),
            ("[0.4 0.6],1", "s.csv:3: the score is a list or an object"),
            ("0.2,2", "s.csv:3: label '2' is neither 0 nor 1"),
            ("0.2", "s.csv:3: 1 fields where the header has 2"),
        ] {
            let e = fault(&format!("{start}{line}\n"));
            assert!(e.starts_with(said) && e.contains(';'), "{e}");
        }
        assert!(fault("score,y\n0.5,1\n").starts_with("s.csv:1: no column named 'label'"));
        assert!(fault("").starts_with("s.csv: no events"));
        let said = fault("score,label\n");
        assert!(said.starts_with("s.csv: no events"), "{said}");
        assert!(!said.contains("column"), "they are there: {said}");
    }

    #[test]
    fn packed_files_are_unpacked_by_their_first_bytes() {
        use std::io::Write;
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(b"score,label\n0.5,1\n").unwrap();
        let bytes = gz.finish().unwrap();
        let zstd = zstd::encode_all(&b"score,label\n0.5,0\n"[..], 1).unwrap();
        for (packed, outcome) in [(bytes, true), (zstd, false)] {
            let input = unpack("s", packed.as_slice()).unwrap();
            let sample = Sample::Plain(vec![(0.5, outcome)]);
            assert_eq!(read("s.csv", input), Ok(sample));
        }
        let said = |bytes: &[u8]| unpack("s", bytes).err().unwrap_or_default();
        let packed = zstd::encode_all(&b"PAR1\x15"[..], 1).unwrap();
        let of_parquet = "s, decompressed, is Parquet or Arrow; ";
        assert!(said(&packed).starts_with(of_parquet), "{}", said(&packed));
        assert!(said(b"\xff\xfes\0").starts_with("s is text in UTF-16; "));
        assert!(said(b"Obj\x01\x04").starts_with("s is an Avro file; "));
        assert!(said(b"\x1f\x8b\x08\x00oops").starts_with("s: reading failed ("));
        assert_eq!(said(b"ORCHARD,Objects\n"), "");
    }
}
