//! Claims that other processes write while this one holds a partition.
//!
//! A judge ignores checkpoints under any claim but the last one. So an owner must notice a claim
//! that follows its own. Such a claim comes from a process that was assigned the partition and gave
//! up, arrived late, or was written by hand. The broker numbers the records of a partition without
//! gaps and returns the numbers of our records. A missing number is a record of another process,
//! and only these records are read back.

use crate::kafka::ReadState;
use crate::store::checkpoint::claim_key;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long reading back may take.
const READ: Duration = Duration::from_secs(10);

/// A claim of another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenClaim {
    /// The partition of the topic of state in which it lies.
    pub(super) state_partition: i32,
    pub(super) key: String,
    pub(super) offset: i64,
    pub(super) by: String,
}

pub(super) struct ForeignClaims {
    state: Box<dyn ReadState>,
    /// By partition of the topic of state, the offset up to which claims were looked for.
    next: BTreeMap<i32, i64>,
}

impl ForeignClaims {
    pub(super) fn new(state: Box<dyn ReadState>) -> ForeignClaims {
        ForeignClaims {
            state,
            next: BTreeMap::new(),
        }
    }

    /// Finds claims up to the records that were written at these offsets. In partitions without
    /// such records it looks up to the end, because a process with nothing to write may be
    /// superseded too. `epochs` has our own first claim in each partition. A broker that does not
    /// answer is asked again with the next batch. After one failed answer no ends are requested, so
    /// a batch without records waits for at most one answer.
    pub(super) fn find(
        &mut self,
        epochs: &BTreeMap<i32, i64>,
        mut written: BTreeMap<i32, Vec<i64>>,
    ) -> Vec<SeenClaim> {
        let (mut found, mut answers) = (Vec::new(), true);
        for (&state_partition, epoch) in epochs {
            let mut ours = written.remove(&state_partition).unwrap_or_default();
            ours.sort_unstable();
            let first = epoch + 1;
            let next = self.next.get(&state_partition).copied();
            let next = next.unwrap_or(first).max(first);
            let until = ours.last().copied();
            if until.is_none() && !answers {
                continue;
            }
            let from = match until {
                Some(_) => first_gap(next, &ours),
                None => Some(next),
            };
            let mut last = until.unwrap_or(next - 1);
            let mut each = |offset: i64, key: &[u8], by: Option<&[u8]>| {
                last = last.max(offset);
                let key = String::from_utf8_lossy(key);
                if let (true, Some(by)) = (key.ends_with(&claim_key("/")), by) {
                    found.push(SeenClaim {
                        state_partition,
                        key: key.into_owned(),
                        offset,
                        by: String::from_utf8_lossy(by).into_owned(),
                    });
                }
            };
            let state = &self.state;
            let read = from.map_or(Ok(()), |from| {
                state.read_after(state_partition, from, until, READ, &mut each)
            });
            match read {
                Ok(()) => drop(self.next.insert(state_partition, last + 1)),
                Err(error) => {
                    crate::warn_limited!(%error, "claims of others are not known");
                    answers = false;
                }
            }
        }
        found
    }
}

/// The first offset from `next` on and before the last of `ours`, in order, that is not among them.
fn first_gap(next: i64, ours: &[i64]) -> Option<i64> {
    let ours = ours.iter().filter(|&&offset| offset >= next);
    let mut expected = next..;
    ours.zip(&mut expected)
        .find(|(ours, expected)| *ours != expected)
        .map(|(_, expected)| expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_another_is_a_gap_among_ours() {
        assert_eq!(first_gap(5, &[]), None);
        assert_eq!(first_gap(5, &[5, 6, 7]), None);
        assert_eq!(first_gap(5, &[6, 7]), Some(5));
        assert_eq!(first_gap(5, &[5, 6, 9]), Some(7));
        // Our own earlier records.
        assert_eq!(first_gap(5, &[3, 4, 5, 7]), Some(6));
    }
}
