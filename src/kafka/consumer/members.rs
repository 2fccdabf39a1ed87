//! The other processes in a consumer group.
//!
//! The coordinator of a group reports the client ids of its members, which say when each
//! [started](super::super::process_start).

use super::super::process_start::ProcessStart;
use super::super::{KafkaError, KafkaOptions, Partition, Peer};
use super::Consumer;
use std::collections::BTreeSet;
use std::time::Duration;

impl Consumer {
    /// Asks the broker for the other processes in the group.
    pub fn other_members(&self, group: &str, within: Duration) -> Result<Vec<Peer>, KafkaError> {
        let members = self.client.members(group, within)?.into_iter();
        let members = members.map(|(host, client)| Peer {
            start: ProcessStart::of_client(&client),
            host: Some(host),
        });
        Ok(others(members))
    }

    /// Asks who has committed offsets of the partitions of this consumer since it was fenced. The
    /// list of members does not help: the coordinator keeps the client id of the first process of
    /// an `instance`.
    pub fn other_committers(
        &self,
        options: &KafkaOptions,
        within: Duration,
    ) -> Result<Vec<Peer>, KafkaError> {
        let list = self.topics.list(&self.assignment());
        let offsets = self.client.committed_by_new_client(options, list, within)?;
        let starts = offsets.elements().into_iter().filter_map(|e| {
            let id = e.metadata().split_whitespace().last()?;
            ProcessStart::of_client(id)
        });
        let starts: BTreeSet<ProcessStart> = starts.collect();
        let members = starts.into_iter().map(|start| Peer {
            host: None,
            start: Some(start),
        });
        Ok(others(members))
    }

    /// Commits the stored positions of assigned partitions, so that another process with the same
    /// `instance` learns of this one.
    pub(super) fn announce(&self, positions: &[(Partition, i64)]) {
        if let Err(error) = self.commit(positions) {
            tracing::debug!(%error, "positions not committed at the assignment");
        }
    }
}

/// The members that are not of this process.
fn others(members: impl Iterator<Item = Peer>) -> Vec<Peer> {
    let ours = ProcessStart::of_this_process();
    members.filter(|m| m.start != Some(ours)).collect()
}
