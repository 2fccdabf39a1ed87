//! What lies in a topic of parcels, without changing it: whose partitions, who wrote last, how old, how large, and what is
//! wrong by name.
//!
//! All records of a partition of any group lie in one partition of the topic ([`super::parcel`] has their keys). [`Shelves`] is
//! to be given the records of one partition of the topic at a time, in the order of their offsets.

use super::file::Fault;
use super::parcel::{Found, Shelf};
use std::collections::BTreeMap;

/// A claim as it lies in the topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Its offset, by which the claimant's parcels are known.
    pub epoch: i64,
    /// Instance, process id and moment in milliseconds since 1970, as the claimant wrote them.
    pub by: String,
    /// The record's timestamp.
    pub at_ms: Option<i64>,
}

/// What lies there of one partition.
#[derive(Debug)]
pub struct ShelfReport {
    /// `GROUP/TOPIC/PARTITION`.
    pub name: String,
    /// Records, and the bytes of their keys and values.
    pub records: u64,
    /// See there.
    pub bytes: u64,
    /// The last claim.
    pub claim: Option<Claim>,
    /// The claim under which the parcel was written that would be taken, where it is still there.
    pub writer: Option<Claim>,
    /// When that parcel was written, by its head's timestamp.
    pub written_ms: Option<i64>,
    /// The parcel that would be taken; `None` where none was ever written. Or every key that stands in the way.
    pub found: Result<Option<Found>, Vec<(String, Fault)>>,
}

/// What is gathered of one partition.
#[derive(Debug, Default)]
struct Gathered {
    shelf: Shelf,
    records: u64,
    claims: Vec<Claim>,
    heads_ms: BTreeMap<String, Option<i64>>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Shelves {
    all: BTreeMap<String, Gathered>,
    /// Keys that are under no partition.
    strange: Vec<String>,
}

impl Shelves {
    /// Takes one record; an absent value takes its key away.
    pub fn take(&mut self, offset: i64, at_ms: Option<i64>, key: &[u8], value: Option<&[u8]>) {
        let text = String::from_utf8_lossy(key);
        let Some((prefix, rest)) = self.parted(&text) else {
            if value.is_some() {
                self.strange.push(text.into_owned());
            }
            return;
        };
        let fresh = || Gathered {
            shelf: Shelf::new(prefix.clone()),
            ..Gathered::default()
        };
        let of = self.all.entry(prefix.clone()).or_insert_with(fresh);
        of.records += 1;
        of.shelf.take(key, value);
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

    /// The partition's prefix and what follows it: by the form of the key, or that of one seen before.
    fn parted(&self, key: &str) -> Option<(String, String)> {
        let parts: Vec<&str> = key.split('/').collect();
        let n = parts.len();
        let at = |back: usize, word: &str| n > back && parts[n - back] == word;
        let after = match () {
            () if at(1, "claim") => 1,
            () if at(2, "head") => 3,
            () if at(3, "body") || at(3, "journal") => 4,
            () => {
                let known = self.all.keys().find(|prefix| key.starts_with(*prefix))?;
                return Some((known.clone(), key[known.len()..].to_owned()));
            }
        };
        let (prefix, rest) = parts.split_at(n.checked_sub(after)?);
        // Group, topic, partition.
        let sound = prefix.len() >= 3 && prefix.last().is_some_and(|p| p.parse::<i32>().is_ok());
        sound.then(|| (prefix.join("/") + "/", rest.join("/")))
    }

    /// What was found, by name, and keys that belong to no partition.
    pub fn reports(self) -> (Vec<ShelfReport>, Vec<String>) {
        let reports = self.all.into_iter().map(|(prefix, of)| {
            let found = of.shelf.open();
            let head = found
                .as_ref()
                .ok()
                .and_then(|f| f.as_ref())
                .map(|f| &f.head);
            let epoch =
                head.and_then(|head| head.strip_prefix(&prefix)?.split('/').next()?.parse().ok());
            let writer = of.claims.iter().find(|c| Some(c.epoch) == epoch).cloned();
            ShelfReport {
                name: prefix.trim_end_matches('/').to_owned(),
                records: of.records,
                bytes: of.shelf.bytes(),
                written_ms: head.and_then(|head| of.heads_ms.get(head).copied().flatten()),
                claim: of.claims.last().cloned(),
                writer,
                found,
            }
        });
        (reports.collect(), self.strange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::parcel::{Parcel, claim_key, prefix, records};

    /// Writes a parcel under an epoch.
    fn parcel(shelves: &mut Shelves, prefix: &str, epoch: i64, number: u64) {
        let (body, head) = records(&Parcel::default(), prefix, epoch, number).unwrap();
        for (i, (key, value)) in (0..).zip(body.into_iter().chain([head])) {
            shelves.take(
                epoch + 1 + i,
                Some(1_000 + epoch),
                key.as_bytes(),
                value.as_deref(),
            );
        }
    }

    #[test]
    fn each_partition_says_who_has_it_and_who_wrote_what_would_be_taken() {
        let mut shelves = Shelves::default();
        let (a, b) = (prefix("team/fraud", "clicks", 0), prefix("g", "clicks", 1));
        shelves.take(7, Some(1), claim_key(&a).as_bytes(), Some(b"one 11 5"));
        parcel(&mut shelves, &a, 7, 3);
        shelves.take(20, Some(2), claim_key(&a).as_bytes(), Some(b"two 22 9"));
        shelves.take(21, Some(3), claim_key(&b).as_bytes(), Some(b"one 11 5"));
        let (all, strange) = shelves.reports();
        assert!(strange.is_empty());
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
        let mut shelves = Shelves::default();
        let a = prefix("g", "clicks", 0);
        parcel(&mut shelves, &a, 7, 3);
        let head = format!("{a}7/head/1");
        shelves.take(30, None, head.as_bytes(), Some(b"TRUEPARC"));
        shelves.take(31, None, b"notes", Some(b"hello"));
        let (all, strange) = shelves.reports();
        assert_eq!(strange, ["notes"]);
        let faults = all[0].found.as_ref().err().unwrap();
        assert_eq!(
            (faults[0].0.as_str(), &faults[0].1),
            (head.as_str(), &Fault::Torn)
        );
    }
}
