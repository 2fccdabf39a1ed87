//! The membership of a consumer in its group: when it reads and is ready, which partitions it gives
//! up, what it commits, and how it is recreated and closed.

use std::time::{Duration, Instant};

use super::{Hold, RECREATE_AFTER, SourceConsumer, SourceReader};
use crate::app::cluster::topology::Topology;
use crate::app::setup::part;
use crate::app::worker::spawn;
use crate::collect::Origin;
use crate::kafka::{Consumer, Partition};
use crate::telemetry::Published;

/// How long leaving the group may take. A client that was closed during a rebalance once waited for
/// its metadata forever. All state is on disk by then, and the group notices after a session
/// timeout.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);

impl SourceConsumer {
    /// Pauses reading while the disk is behind, while something must be stored first (`unsaved`),
    /// or while the schema queue is full. Resumes afterwards.
    pub fn pause_or_resume(&mut self, disk_behind: bool, unsaved: bool) {
        let queue = &self.source.queue;
        let schemas_behind = match self.schemas_behind {
            Some(_) => !queue.is_empty(),
            None => queue.is_full(),
        };
        self.schemas_behind =
            schemas_behind.then(|| self.schemas_behind.unwrap_or_else(Instant::now));
        let paused = disk_behind || unsaved || schemas_behind;
        if paused == self.paused || self.recreate_at.is_some() {
            return;
        }
        self.paused = paused;
        let topics = self.source.records.topics().join(",");
        if disk_behind || schemas_behind {
            self.pause_logged = true;
            tracing::warn!(topics, disk_behind, schemas_behind, "reading is paused");
        } else if paused {
            // This takes a moment at each first start, and is frequent while a worker catches up.
            tracing::debug!(topics, "reading waits until state is stored");
        } else if std::mem::take(&mut self.pause_logged) {
            tracing::info!(topics, "reading goes on");
        }
        let done = if paused {
            self.consumer.pause()
        } else {
            self.consumer.resume()
        };
        if let Err(error) = done {
            tracing::error!(%error, "consumer could not be paused or resumed");
        }
    }

    /// Publishes whether the source is ready: the group has made an assignment, even an empty one.
    /// Until then `/ready` shows the last error. Returns whether the assignment changed.
    pub fn publish_readiness(&mut self, topology: &mut Topology, published: &Published) -> bool {
        let changed = std::mem::take(&mut self.source.assignment_changed);
        let error = self.source.last_error.take().map(|e| e.to_string());
        if changed | self.consumer.take_recounted() {
            self.release_unassigned(topology);
        }
        let lost = self.source.lost_since.is_some();
        let joined = self.consumer.joined() && !lost;
        if joined && (changed || (!self.ready && error.is_none())) {
            self.ready = true;
            published.ready(&part(&self.options));
        } else if let Some(error) = error.as_ref().filter(|_| !self.ready) {
            published.not_ready(&part(&self.options), error);
        }
        self.trouble = error.or(self.trouble.take()).filter(|_| lost);
        changed
    }

    /// Releases partitions of the snapshot that the group assigned to another member, because they
    /// would hold the watermark back. Partitions that no longer exist are dropped.
    fn release_unassigned(&mut self, topology: &mut Topology) {
        let assigned = self.consumer.assignment();
        self.source.gone.retain(|p| self.consumer.is_gone(*p));
        for origin in topology.positions() {
            let id = origin.partition_id();
            if let Some(partition) = self.source.records.partition(id)
                && !assigned.contains(&partition)
            {
                if self.consumer.is_gone(partition) {
                    self.source.drop_gone(partition, topology);
                } else {
                    self.source.release(partition, topology, true);
                }
            }
        }
    }

    /// Gives up all partitions of a consumer that cannot continue.
    pub(super) fn give_up(&mut self, topology: &mut Topology) {
        let all = self.consumer.assignment();
        self.source.releasing(&all, topology);
        for partition in all {
            self.source.release(partition, topology, true);
            self.source.queue.clear(partition);
        }
        // The next owner finds out for itself.
        self.source.stopped.clear();
        self.source.lose();
        self.source.assignment_changed = true;
    }

    pub(super) fn recreate(&mut self, topology: &mut Topology) {
        self.give_up(topology);
        match Consumer::new(&self.options.kafka, self.brokers.as_ref()) {
            Ok(consumer) => {
                let old = std::mem::replace(&mut self.consumer, consumer);
                // Leaving may take forever.
                let _ = spawn("consumer", move || drop(old));
                self.paused = false;
                self.recreate_at = None;
            }
            Err(error) => {
                tracing::error!(%error, "kafka consumer could not be created");
                self.trouble = Some(error.to_string());
                self.recreate_at = Some(Instant::now() + RECREATE_AFTER);
            }
        }
    }

    /// Commits those of these positions that are of assigned partitions. All records before them
    /// are stored.
    pub fn commit(&mut self, positions: &[Origin]) {
        let records = &self.source.records;
        let stored: Vec<(Partition, i64)> = positions
            .iter()
            .filter_map(|origin| Some((records.partition(origin.partition_id())?, origin.offset)))
            .collect();
        self.source.stored.extend(stored.iter().copied());
        if let Err(error) = self.consumer.commit(&stored) {
            crate::warn_limited!(%error, "offsets not committed; restarts do not need them");
        }
    }

    /// Sends the remaining dead letters within this time.
    pub fn flush(&self, within: Duration) {
        if let Some(dead_letters) = &self.source.records.dead_letters
            && !dead_letters.flush(within)
        {
            tracing::error!("some dead letters could not be sent in time");
        }
    }
}

impl SourceReader {
    /// Releases a partition that is no longer assigned. A group may assign partitions in two rounds
    /// and give the same ones back. If no other process can count the partition, it holds the
    /// others back for a while. Otherwise its remaining records would be late when it comes back.
    pub(super) fn release(&mut self, partition: Partition, topology: &mut Topology, lost: bool) {
        let id = self.records.partition_id(partition);
        if self.unassigned.contains_key(&partition) {
            return;
        }
        if topology.await_partition(id) {
            self.unassigned.insert(partition, Hold::For(Duration::ZERO));
        } else {
            topology.revoke(id, lost);
        }
    }

    /// Stops waiting for a partition that no longer exists; its sums stay.
    fn drop_gone(&mut self, partition: Partition, topology: &mut Topology) {
        self.unassigned.insert(partition, Hold::Over);
        topology.drop_gone(self.records.partition_id(partition));
        if !self.gone.insert(partition) {
            return;
        }
        let (topic, partition) = self.name_of(partition);
        tracing::error!(
            topic,
            partition,
            "partition no longer exists: its topic was made again with fewer; nothing waits for it"
        );
    }

    /// Notes that all partitions are lost, until the group assigns some again.
    pub(super) fn lose(&mut self) {
        self.lost_since.get_or_insert_with(Instant::now);
    }

    /// Announces that these partitions are released next.
    pub(super) fn releasing(&self, all: &[Partition], topology: &mut Topology) {
        topology.revoking(all.iter().map(|p| self.records.partition_id(*p)));
    }

    /// Adds the time that has passed to each partition that holds the others back, and releases
    /// those that have done so for `after`.
    pub(super) fn release_overdue(
        &mut self,
        topology: &mut Topology,
        passed: Duration,
        after: Duration,
    ) {
        for (partition, held) in &mut self.unassigned {
            let Hold::For(time) = held else {
                continue;
            };
            *time += passed;
            if *time >= after {
                *held = Hold::Over;
                topology.revoke(self.records.partition_id(*partition), true);
            }
        }
    }
}

/// Closes the members of groups, within a bounded time.
pub fn close(members: impl Send + 'static) {
    let (done, closed) = std::sync::mpsc::channel();
    // Leaving may take forever.
    let started = spawn("leave", move || {
        drop(members);
        let _ = done.send(());
    });
    if started.is_ok() && closed.recv_timeout(LEAVE_WITHIN).is_err() {
        tracing::warn!(
            "leaving the group took too long; it reassigns the partitions after a session timeout"
        );
    }
}
