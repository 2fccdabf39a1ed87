//! How many partitions the subscribed topics have, and which partitions are gone.
//!
//! A broker that lags may report too few. So a partition is gone only once two answers in a row do
//! not have it.

use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Counts(BTreeMap<u16, Count>);

/// The answers about one topic.
struct Count {
    latest: usize,
    /// The previous answer; the largest number if there is none.
    before: usize,
    most: usize,
    /// The latest answer at the last assignment.
    shared: usize,
}

impl Counts {
    /// Takes an answer. An answer of 0 is ignored: a missing topic may come back with all
    /// partitions.
    pub fn take(&mut self, topic: u16, count: usize) {
        if count == 0 {
            return;
        }
        let known = self.0.entry(topic).or_insert(Count {
            latest: usize::MAX,
            before: usize::MAX,
            most: 0,
            shared: 0,
        });
        known.before = std::mem::replace(&mut known.latest, count);
        known.most = known.most.max(count);
    }

    /// Whether the latest two answers about a topic differ, or there is only one.
    pub fn is_unconfirmed(&self) -> bool {
        self.0.values().any(|c| c.latest != c.before)
    }

    /// Notes that the group has assigned as many partitions as the latest answers say.
    pub fn share(&mut self) {
        self.0.values_mut().for_each(|c| c.shared = c.latest);
    }

    /// How many partitions of each topic the group has assigned to its members.
    pub fn shared(&self) -> impl Iterator<Item = (u16, usize)> {
        self.0.iter().map(|(&topic, c)| (topic, c.shared))
    }

    /// The latest answer about a topic.
    pub fn of(&self, topic: u16) -> Option<usize> {
        self.0.get(&topic).map(|c| c.latest)
    }

    /// Whether a partition is gone: the latest two answers about its topic do not have it.
    pub fn is_gone(&self, topic: u16, partition: i32) -> bool {
        let is_beyond = |c: &Count| at(partition) >= Some(c.latest.max(c.before));
        self.0.get(&topic).is_some_and(is_beyond)
    }

    /// Whether any answer about a topic had this partition.
    pub fn had(&self, topic: u16, partition: i32) -> bool {
        let had = |c: &Count| at(partition) < Some(c.most);
        self.0.get(&topic).is_some_and(had)
    }
}

fn at(partition: i32) -> Option<usize> {
    usize::try_from(partition).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_gone_after_two_answers_without_it_and_had_if_one_was_with_it() {
        let mut counts = Counts::default();
        assert!(!counts.is_unconfirmed());
        // Answer; whether partitions 2 and 4 are gone; whether the count is unconfirmed.
        let answers = [
            (0, [false, false], false),
            (2, [false, false], true),
            (5, [false, false], true),
            (5, [false, false], false),
            // A broker lags.
            (2, [false, false], true),
            (5, [false, false], true),
            (5, [false, false], false),
            // The topic is missing, and then recreated.
            (0, [false, false], false),
            (3, [false, false], true),
            (0, [false, false], true),
            (3, [false, true], false),
            (3, [false, true], false),
            (1, [false, true], true),
            (1, [true, true], false),
            // Partitions are added: the first answer counts.
            (5, [false, false], true),
        ];
        for (i, (count, gone, unconfirmed)) in answers.into_iter().enumerate() {
            counts.take(7, count);
            assert_eq!([2, 4].map(|p| counts.is_gone(7, p)), gone, "{i}");
            assert_eq!(counts.is_unconfirmed(), unconfirmed, "{i}");
        }
        assert_eq!([4, 5].map(|p| counts.had(7, p)), [true, false]);
        assert_eq!([counts.of(7), counts.of(0)], [Some(5), None]);
        assert!(!counts.is_gone(0, 9) && !counts.had(0, 0));
        // The group has not assigned them yet.
        assert_eq!(counts.shared().next(), Some((7, 0)));
        counts.share();
        assert_eq!(counts.shared().next(), Some((7, 5)));
    }
}
