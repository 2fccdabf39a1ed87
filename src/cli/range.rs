//! `--from`, `--to` and `--last`: the range of the configuration's topics to read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::app::clock;
use crate::app::replay::FileInput;
use crate::app::replay::topics::Range;
use crate::decode::parse_time;
use crate::kafka::Bound;

/// The input: files, or a range of the configuration's topics.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Files in JSON lines or CSV, which may be compressed (gzip, zstd), Parquet or Arrow, read in
    /// this order; `-` for standard input
    #[arg(
        value_name = "FILE",
        conflicts_with_all = ["from", "to", "last"]
    )]
    pub files: Vec<PathBuf>,
    /// A file of separate outcomes, for a source with [source.outcomes]; may be repeated
    #[arg(long, value_name = "FILE", requires = "files")]
    pub outcomes: Vec<PathBuf>,
    /// The source of the configuration whose fields the files have [default: the first]
    #[arg(long, value_name = "NAME", requires = "files")]
    pub source: Option<String>,
    /// Sort the records of the files by event time first, in memory: a dump of a topic has one
    /// partition after the other
    #[arg(long, requires = "files")]
    pub sort: bool,
    /// Start of the range of topics: a time such as 2026-11-01T06:30Z, `earliest`, or offsets,
    /// `offset:1500` or `offset:clicks/0=1500,clicks/1=1732`
    #[arg(long, value_name = "WHEN", value_parser = bound, conflicts_with = "last")]
    pub from: Option<Bound>,
    /// End of the range, exclusive: as for --from, or `latest` [default: latest]
    #[arg(long, value_name = "WHEN", value_parser = bound)]
    pub to: Option<Bound>,
    /// Length of the range before --to, or before now: `7d`, `36h`
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub last: Option<Duration>,
    /// Continue even if retention has deleted the start of the range
    #[arg(long)]
    pub incomplete: bool,
}

impl Args {
    /// The files.
    pub fn file_input(&self) -> FileInput<'_> {
        FileInput {
            events: &self.files,
            outcomes: &self.outcomes,
            source: self.source.as_deref(),
            sort: self.sort,
        }
    }

    /// The requested range, if there is one; an error names contradictory options.
    pub fn range(&self) -> Result<Option<Range>, String> {
        let to = self.to.clone().unwrap_or(Bound::Latest);
        let from = match (&self.from, self.last) {
            (None, None) if self.to.is_some() => {
                return Err("--to needs --from or --last".to_owned());
            }
            (None, None) if self.files.is_empty() => {
                return Err(
                    "name a FILE, or a range of the configuration's topics with --from or --last"
                        .to_owned(),
                );
            }
            (None, None) => return Ok(None),
            (Some(from), _) => from.clone(),
            (None, Some(last)) => {
                let last = i64::try_from(last.as_millis()).unwrap_or(i64::MAX);
                let end_ms = match &to {
                    Bound::Time(ms) => *ms,
                    _ => clock::now_ms(),
                };
                Bound::Time(end_ms.saturating_sub(last))
            }
        };
        if let (Bound::Time(from), Bound::Time(to)) = (&from, &to)
            && from >= to
        {
            return Err("the range ends before it starts: swap --from and --to".to_owned());
        }
        if from == Bound::Latest || to == Bound::Earliest {
            return Err("the range is empty: use --from earliest or --to latest".to_owned());
        }
        Ok(Some(Range {
            from,
            to,
            incomplete: self.incomplete,
        }))
    }
}

fn bound(text: &str) -> Result<Bound, String> {
    match text {
        "earliest" => return Ok(Bound::Earliest),
        "latest" | "now" => return Ok(Bound::Latest),
        _ => {}
    }
    if let Some(offsets) = text.strip_prefix("offset:") {
        return offsets_of(offsets).ok_or_else(|| {
            "offsets are written `offset:1500`, or `offset:TOPIC/PARTITION=1500,...`".to_owned()
        });
    }
    parse_time(text).map(Bound::Time).ok_or_else(|| {
        "expected a time such as 2026-11-01 or 2026-11-01T06:30Z (UTC without a zone), earliest, latest or \
         offset:...; for a length of time use --last"
            .to_owned()
    })
}

fn offsets_of(text: &str) -> Option<Bound> {
    let sound = |offset: &str| offset.parse::<i64>().ok().filter(|&n| n >= 0);
    if let Some(offset) = sound(text) {
        return Some(Bound::Offset(offset));
    }
    let one = |part: &str| {
        let (name, offset) = part.trim().rsplit_once('=')?;
        let (topic, partition) = name.rsplit_once('/')?;
        let partition = partition.parse().ok().filter(|&p: &i32| p >= 0)?;
        Some(((topic.to_owned(), partition), sound(offset)?))
    };
    let all: Option<BTreeMap<_, _>> = text.split(',').map(one).collect();
    all.map(Bound::Offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(from: Option<&str>, to: Option<&str>, last_s: Option<u64>) -> Args {
        Args {
            files: Vec::new(),
            outcomes: Vec::new(),
            source: None,
            sort: false,
            from: from.map(|t| bound(t).unwrap()),
            to: to.map(|t| bound(t).unwrap()),
            last: last_s.map(Duration::from_secs),
            incomplete: false,
        }
    }

    #[test]
    fn bounds_are_times_offsets_or_the_ends_of_the_log() {
        assert_eq!(bound("2026-11-01"), Ok(Bound::Time(1_793_491_200_000)));
        assert_eq!(
            bound("2026-11-01T01:00+01:00"),
            Ok(Bound::Time(1_793_491_200_000))
        );
        assert_eq!(bound("2026-11-01T00:00Z"), bound("2026-11-01 00:00:00"));
        assert_eq!(bound("earliest"), Ok(Bound::Earliest));
        assert_eq!(bound("offset:15"), Ok(Bound::Offset(15)));
        let offsets = [(("a".to_owned(), 0), 5), (("b".to_owned(), 1), 7)];
        assert_eq!(
            bound("offset:a/0=5,b/1=7"),
            Ok(Bound::Offsets(offsets.into()))
        );
        for wrong in [
            "7d",
            "offset:",
            "offset:a=5",
            "offset:-3",
            "2026-13-01",
            "é",
        ] {
            assert!(bound(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_must_start_before_its_end() {
        let of_files = Args {
            files: vec![PathBuf::from("events.csv")],
            ..args(None, None, None)
        };
        assert_eq!(of_files.range(), Ok(None));
        let said = args(None, None, None).range().expect_err("no input");
        assert!(said.contains("name a FILE, or a range"), "{said}");
        let last = args(None, Some("2026-11-01"), Some(3600)).range();
        let from = last.unwrap().map(|r| r.from);
        assert_eq!(from, Some(Bound::Time(1_793_491_200_000 - 3_600_000)));
        for (from, to) in [
            (None, Some("2026-11-01")),
            (Some("2026-11-02"), Some("2026-11-01")),
            (Some("latest"), None),
            (Some("earliest"), Some("earliest")),
        ] {
            assert!(args(from, to, None).range().is_err(), "{from:?} {to:?}");
        }
    }
}
