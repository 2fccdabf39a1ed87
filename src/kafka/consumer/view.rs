//! The state of a consumer, for its caller.

use super::super::Partition;
use super::super::partition_ends::Hidden;
use super::Consumer;
use std::time::Duration;

impl Consumer {
    /// The partitions whose next records an open transaction hides.
    pub fn hidden(&self) -> impl Iterator<Item = (Partition, Hidden)> {
        self.ends.hidden()
    }

    /// How long no broker has been connected and answering; `None` if one is.
    pub fn cut_off(&self) -> Option<Duration> {
        self.contact.cut_off()
    }

    /// The read partitions whose leader is not connected or does not answer, each with how long.
    pub fn leaderless(&self) -> impl Iterator<Item = (Partition, Duration)> {
        self.contact.leaderless()
    }

    /// Whether the group has ever responded with an assignment, even an empty one.
    pub fn joined(&self) -> bool {
        self.joined
    }

    /// The subscribed topics of whose partitions this member has only a part: how many it has, and
    /// how many there are. Missing topics are left out. So the list is empty after a broker has
    /// reported a missing topic, until the topics are counted again.
    pub fn shared(&self) -> Vec<(&str, usize, usize)> {
        if self.missing_topic_reported {
            return Vec::new();
        }
        let assigned = self.assignment();
        let of = |(topic, all): (u16, usize)| {
            let ours = assigned.iter().filter(|p| p.topic == topic);
            let ours = ours.filter(|p| !self.is_gone(**p)).count();
            (self.topics.names[usize::from(topic)].as_str(), ours, all)
        };
        let topics = self.counts.shared();
        let topics = topics.filter(|(topic, _)| !self.missing.contains(topic));
        let topics = topics.map(of);
        topics.filter(|(_, ours, all)| ours < all).collect()
    }

    /// Whether a partition no longer exists: the latest two answers about its topic, or about the
    /// topic with which it is assigned, do not have it.
    pub fn is_gone(&self, p: Partition) -> bool {
        self.counts.is_gone(self.topics.lead(p), p.partition)
    }

    /// The topics that had no partition at the last count: they do not exist, or may not be read.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let all = self.missing.iter();
        all.map(|number| self.topics.names[usize::from(*number)].as_str())
    }

    /// Whether partitions were counted since the last call: some may be [gone](Consumer::is_gone).
    pub fn take_recounted(&mut self) -> bool {
        std::mem::take(&mut self.was_recounted)
    }

    /// The partitions that are assigned now.
    pub fn assignment(&self) -> Vec<Partition> {
        self.next.assigned()
    }

    /// For each assigned partition, how many records of the broker, as of the latest statistics,
    /// are not handed over yet. Partitions that are denied, or were since then, are left out.
    pub fn lag(&self) -> Vec<(Partition, i64)> {
        let read = self.ends.end_offsets();
        let lag = |(p, end): (Partition, i64)| Some((p, (end - self.next.readable(p)?).max(0)));
        read.filter_map(lag).collect()
    }
}
