//! Inspects a state topic without changing it: for each partition the last claim, the writer, the
//! age and the size of the checkpoint that a process would restore, and every error by key.
//!
//! All records of a source partition lie in one partition of the state topic ([`super::checkpoint`]
//! has the keys). A [`TopicReport`] takes all records of one partition of that topic, then those of
//! the next, in the order of offsets.

use super::format::FormatError;
use super::reader::{CheckpointReader, FoundCheckpoint};
use std::collections::{BTreeMap, BTreeSet};

/// A claim in the topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Its offset, which is the epoch of the claimant's checkpoints.
    pub epoch: i64,
    /// Instance, process id and time in milliseconds since 1970, as the claimant wrote them.
    pub by: String,
    /// The record's timestamp.
    pub at_ms: Option<i64>,
}

/// The state of one source partition in the topic.
#[derive(Debug)]
pub struct PartitionReport {
    /// `GROUP/TOPIC/PARTITION`.
    pub name: String,
    /// Number of records.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// The last claim.
    pub claim: Option<Claim>,
    /// The claim under which the newest checkpoint was written, if the topic still has it.
    pub writer: Option<Claim>,
    /// When the newest checkpoint was written, by the timestamp of its head.
    pub written_ms: Option<i64>,
    /// The checkpoint that a process would restore, `None` if none was ever written; or the keys
    /// that prevent it, each with its error.
    pub found: Result<Option<FoundCheckpoint>, Vec<(String, FormatError)>>,
}

#[derive(Debug, Default)]
struct PartitionRecords {
    reader: CheckpointReader,
    records: u64,
    claims: Vec<Claim>,
    heads_ms: BTreeMap<String, Option<i64>>,
}

/// Collects the records of a state topic into reports.
#[derive(Debug, Default)]
pub struct TopicReport {
    all: BTreeMap<String, PartitionRecords>,
    /// Keys that belong to no partition, as long as they have a value.
    foreign: BTreeSet<String>,
}

impl TopicReport {
    /// Takes one record; an absent value deletes its key.
    pub fn take(&mut self, offset: i64, at_ms: Option<i64>, key: &[u8], value: Option<&[u8]>) {
        let text = String::from_utf8_lossy(key);
        let Some((prefix, rest)) = self.split(&text) else {
            match value {
                Some(_) => self.foreign.insert(text.into_owned()),
                None => self.foreign.remove(&*text),
            };
            return;
        };
        let new = || PartitionRecords {
            reader: CheckpointReader::new(prefix.clone()),
            ..PartitionRecords::default()
        };
        let of = self.all.entry(prefix.clone()).or_insert_with(new);
        of.records += 1;
        of.reader.read(key, value);
        match (rest.as_str(), value) {
            ("claim", Some(by)) => of.claims.push(Claim {
                epoch: offset,
                by: String::from_utf8_lossy(by).into_owned(),
                at_ms,
            }),
            (rest, Some(_)) if rest.contains("/head/") => {
                of.heads_ms.insert(text.into_owned(), at_ms);
            }
            _ => {}
        }
    }

    /// Splits a key into the prefix of its partition and the rest, by the form of the key or by a
    /// known prefix.
    fn split(&self, key: &str) -> Option<(String, String)> {
        let parts: Vec<&str> = key.split('/').collect();
        let n = parts.len();
        let at = |back: usize, word: &str| n > back && parts[n - back] == word;
        let after = match () {
            () if at(1, "claim") => 1,
            () if at(2, "head") => 3,
            () if at(3, "body") || at(3, "journal") || at(3, "notified") => 4,
            () => {
                let known = self.all.keys().find(|prefix| key.starts_with(*prefix))?;
                return Some((known.clone(), key[known.len()..].to_owned()));
            }
        };
        let (prefix, rest) = parts.split_at(n.checked_sub(after)?);
        // Group, topic, partition.
        let valid = prefix.len() >= 3 && prefix.last().is_some_and(|p| p.parse::<i32>().is_ok());
        valid.then(|| (prefix.join("/") + "/", rest.join("/")))
    }

    /// The report of each partition by name, and the keys that belong to no partition.
    pub fn reports(self) -> (Vec<PartitionReport>, Vec<String>) {
        let reports = self.all.into_iter().map(|(prefix, of)| {
            let found = of.reader.newest();
            let head = found
                .as_ref()
                .ok()
                .and_then(|f| f.as_ref())
                .map(|f| &f.head);
            let epoch =
                head.and_then(|head| head.strip_prefix(&prefix)?.split('/').next()?.parse().ok());
            let writer = of.claims.iter().find(|c| Some(c.epoch) == epoch).cloned();
            PartitionReport {
                name: prefix.trim_end_matches('/').to_owned(),
                records: of.records,
                bytes: of.reader.bytes(),
                written_ms: head.and_then(|head| of.heads_ms.get(head).copied().flatten()),
                claim: of.claims.last().cloned(),
                writer,
                found,
            }
        });
        (reports.collect(), self.foreign.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::checkpoint::{PartitionCheckpoint, claim_key, prefix, records};

    /// Writes a checkpoint under an epoch.
    fn checkpoint(report: &mut TopicReport, prefix: &str, epoch: i64, number: u64) {
        let (body, head) = records(&PartitionCheckpoint::default(), prefix, epoch, number).unwrap();
        for (i, (key, value)) in (0..).zip(body.into_iter().chain([head])) {
            report.take(
                epoch + 1 + i,
                Some(1_000 + epoch),
                key.as_bytes(),
                value.as_deref(),
            );
        }
    }

    #[test]
    fn each_partition_says_who_has_it_and_who_wrote_what_would_be_taken() {
        let mut report = TopicReport::default();
        let (a, b) = (prefix("team/fraud", "clicks", 0), prefix("g", "clicks", 1));
        report.take(7, Some(1), claim_key(&a).as_bytes(), Some(b"one 11 5"));
        checkpoint(&mut report, &a, 7, 3);
        report.take(20, Some(2), claim_key(&a).as_bytes(), Some(b"two 22 9"));
        report.take(21, Some(3), claim_key(&b).as_bytes(), Some(b"one 11 5"));
        let (all, foreign) = report.reports();
        assert!(foreign.is_empty());
        let names: Vec<&str> = all.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["g/clicks/1", "team/fraud/clicks/0"]);
        assert!(matches!(all[0].found, Ok(None)) && all[0].writer.is_none());
        let by = |c: &Option<Claim>| c.as_ref().map(|c| c.by.clone());
        assert_eq!(by(&all[1].claim).as_deref(), Some("two 22 9"));
        assert_eq!(by(&all[1].writer).as_deref(), Some("one 11 5"));
        assert_eq!(all[1].written_ms, Some(1_007));
    }

    #[test]
    fn what_is_foreign_or_torn_is_named() {
        let mut report = TopicReport::default();
        let a = prefix("g", "clicks", 0);
        checkpoint(&mut report, &a, 7, 3);
        let head = format!("{a}7/head/1");
        report.take(30, None, head.as_bytes(), Some(b"TRUEPARC"));
        report.take(31, None, b"notes", Some(b"hello"));
        report.take(32, None, b"more notes", Some(b"hello"));
        report.take(33, None, b"more notes", None);
        let (all, foreign) = report.reports();
        assert_eq!(foreign, ["notes"]);
        let faults = all[0].found.as_ref().err().unwrap();
        assert_eq!(
            (faults[0].0.as_str(), &faults[0].1),
            (head.as_str(), &FormatError::Torn)
        );
    }
}
