//! By topic and partition, the lowest offset that may come next.

use crate::kafka::Partition;

/// Entry of a partition that is not assigned.
const UNASSIGNED: i64 = -1;

/// Entry of a partition that is assigned but suspended: no record has such an offset.
pub(super) const SUSPENDED: i64 = i64::MAX;

/// The consumer checks each record against this table, at the cost of one look-up: librdkafka has
/// had bugs with messages of revoked partitions in batches (issue 3093).
pub(super) struct NextOffsets(Vec<Vec<i64>>);

impl NextOffsets {
    /// A table without assigned partitions, for this number of topics.
    pub fn new(topics: usize) -> NextOffsets {
        NextOffsets(vec![Vec::new(); topics])
    }

    /// Admits a record at or after the next offset, and moves the next offset past it. Returns
    /// whether it was admitted.
    #[inline]
    pub fn admit(&mut self, topic: u16, partition: i32, offset: i64) -> bool {
        match self.0[usize::from(topic)].get_mut(partition as usize) {
            Some(n) if *n != UNASSIGNED && offset >= *n => {
                *n = offset + 1;
                true
            }
            _ => false,
        }
    }

    /// Moves the next offset to this one, if it is lower. Returns whether it was.
    pub fn skip_to(&mut self, p: Partition, offset: i64) -> bool {
        let skips = self.readable(p).is_some_and(|next| next < offset);
        if skips {
            self.set(p, offset);
        }
        skips
    }

    /// The entry of a partition that is assigned.
    pub fn get(&self, p: Partition) -> Option<i64> {
        let entry = self.0.get(usize::from(p.topic))?.get(p.partition as usize);
        entry.copied().filter(|&n| n != UNASSIGNED)
    }

    /// The next offset of a partition that is assigned and not suspended.
    pub fn readable(&self, p: Partition) -> Option<i64> {
        self.get(p).filter(|&n| n != SUSPENDED)
    }

    /// Assigns a partition from this offset on.
    pub fn set(&mut self, p: Partition, offset: i64) {
        let Ok(number) = usize::try_from(p.partition) else {
            return;
        };
        let topic = &mut self.0[usize::from(p.topic)];
        if topic.len() <= number {
            topic.resize(number + 1, UNASSIGNED);
        }
        topic[number] = offset;
    }

    /// Marks a partition as no longer assigned.
    pub fn remove(&mut self, p: Partition) {
        self.set(p, UNASSIGNED);
    }

    /// Number of assigned partitions.
    pub fn count(&self) -> usize {
        let entries = self.0.iter().flatten();
        entries.filter(|&&n| n != UNASSIGNED).count()
    }

    /// All assigned partitions.
    pub fn assigned(&self) -> Vec<Partition> {
        let mut all = Vec::new();
        for (topic, next) in (0u16..).zip(&self.0) {
            for (partition, &offset) in (0i32..).zip(next) {
                if offset != UNASSIGNED {
                    all.push(Partition { topic, partition });
                }
            }
        }
        all
    }
}
