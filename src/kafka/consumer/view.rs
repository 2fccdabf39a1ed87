//! What a consumer says of itself.

use super::super::Partition;
use super::super::partition_ends::Hidden;
use super::Consumer;
use std::time::Duration;

impl Consumer {
    /// The partitions whose next records an open transaction hides.
    pub fn hidden(&self) -> impl Iterator<Item = (Partition, Hidden)> {
        self.ends.hidden()
    }

    /// For how long no broker has been connected.
    pub fn cut_off(&self) -> Option<Duration> {
        self.contact.cut_off()
    }

    /// The partitions that are read and whose leader is not connected, each with for how long.
    pub fn leaderless(&self) -> impl Iterator<Item = (Partition, Duration)> {
        self.contact.leaderless()
    }

    /// Whether the group has ever responded with an assignment, even an empty one.
    pub fn joined(&self) -> bool {
        self.joined
    }

    /// The subscribed topics whose partitions this member does not have all: how many it has, and
    /// how many there are. Not those that are missing, which nobody has; so none from the moment
    /// when a broker says that one is until the topics are counted again.
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

    /// Whether a partition does not exist: two answers in a row about its topic, or about the one
    /// along with which it is assigned, were without it.
    pub fn is_gone(&self, p: Partition) -> bool {
        self.counts.is_gone(self.topics.lead(p), p.partition)
    }

    /// The topics without a partition when they were last counted: they do not exist, or may not be
    /// read.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let all = self.missing.iter();
        all.map(|number| self.topics.names[usize::from(*number)].as_str())
    }

    /// Whether partitions were counted since this was last asked: some may be
    /// [gone](Consumer::is_gone).
    pub fn take_recounted(&mut self) -> bool {
        std::mem::take(&mut self.was_recounted)
    }

    /// The partitions that are assigned now.
    pub fn assignment(&self) -> Vec<Partition> {
        self.next.assigned()
    }

    /// For each assigned partition, the number of records that the broker had at the latest
    /// statistics and that are not handed over yet. Nothing is known of those that are denied, or
    /// were since.
    pub fn lag(&self) -> Vec<(Partition, i64)> {
        let read = self.ends.end_offsets();
        let lag = |(p, end): (Partition, i64)| Some((p, (end - self.next.readable(p)?).max(0)));
        read.filter_map(lag).collect()
    }
}
