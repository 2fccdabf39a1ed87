//! The client of a member of a group.

use std::time::{Duration, Instant};

use rdkafka::error::KafkaResult;
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};
use trueline::kafka::{
    Events, Fetched, GroupClient, Headers, KafkaError, KafkaOptions, PartitionStats, Rebalance,
    Record,
};

use super::{Site, lock, timeout};
use crate::broker::{Broker, Entry, Fetch, TopicPartition, list};
use crate::clock;

/// A broker that has not responded for so long is no longer connected.
const DISCONNECTED: Duration = Duration::from_secs(10);
/// Time between two statistics.
const STATISTICS: Duration = Duration::from_secs(1);

/// A member of a group.
pub(super) struct Client {
    pub site: Site,
    pub id: u64,
    pub topics: Vec<String>,
}

/// A record on its way to the consumer.
struct Taken {
    topic: u16,
    partition: i32,
    offset: i64,
    /// `None` if the offset is out of range.
    entry: Option<Entry>,
}

impl Client {
    fn with<T>(&self, f: impl FnOnce(&mut Broker, u64) -> T) -> T {
        f(&mut lock(&self.site.broker), self.id)
    }

    /// What is ready now, of one partition after the other.
    fn fetch_now(&self, max: usize) -> Vec<Taken> {
        let now = clock::now();
        let mut broker = lock(&self.site.broker);
        let (host, topics) = (self.site.host, &self.topics);
        if !broker.reaches(host, now) {
            return Vec::new();
        }
        let first = (broker.rng.uniform() * 64.0) as usize;
        // Batches of librdkafka were seen to hold messages of an earlier fetch.
        let again = broker.rng.uniform() < 0.002;
        let many = 1 + (broker.rng.uniform() * 200.0) as usize;
        let Some(mut member) = broker.members.remove(&self.id) else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        let count = member.assigned.len().max(1);
        let partitions: Vec<TopicPartition> = member.assigned.keys().cloned().collect();
        for i in 0..partitions.len() {
            let (name, partition) = &partitions[(i + first) % count];
            let fetch = member.assigned.get_mut(&partitions[(i + first) % count]);
            let (Some(fetch), Some(topic)) = (
                fetch,
                topics
                    .iter()
                    .position(|t| t == name)
                    .and_then(|at| u16::try_from(at).ok()),
            ) else {
                continue;
            };
            let stable = broker.stable(name, *partition);
            let Some(log) = broker.log(name, *partition) else {
                continue;
            };
            if fetch.paused || fetch.stopped || log.away > now {
                continue;
            }
            fetch.end = Some(log.end());
            fetch.responded = now;
            if fetch.next < log.start || fetch.next > log.end() {
                fetch.stopped = true;
                taken.push(Taken {
                    topic,
                    partition: *partition,
                    offset: fetch.next,
                    entry: None,
                });
                continue;
            }
            let until = stable.min(fetch.next + many as i64);
            if again && fetch.next > log.start && taken.len() < max {
                let entry = &log.entries[fetch.next as usize - 1];
                if broker.is_seen(entry) {
                    let (offset, entry) = (fetch.next - 1, Some(entry.clone()));
                    taken.push(Taken {
                        topic,
                        partition: *partition,
                        offset,
                        entry,
                    });
                }
            }
            while fetch.next < until && taken.len() < max {
                let entry = &log.entries[fetch.next as usize];
                let after = fetch.next > 0 && log.entries[fetch.next as usize - 1].control;
                if broker.is_seen(entry) && !(broker.planted && after) {
                    let (offset, entry) = (fetch.next, Some(entry.clone()));
                    taken.push(Taken {
                        topic,
                        partition: *partition,
                        offset,
                        entry,
                    });
                }
                fetch.next += 1;
            }
        }
        for t in &taken {
            let words = [
                now.as_nanos() as u64,
                host as u64,
                t.partition as u64,
                t.offset as u64,
            ];
            broker.note(&words);
        }
        broker.members.insert(self.id, member);
        taken
    }
}

impl GroupClient for Client {
    fn serve(&mut self, _: &mut dyn FnMut(Record<'_>)) -> Events {
        let (now, at) = (clock::now(), Instant::now());
        let mut broker = lock(&self.site.broker);
        broker.refresh(now);
        let mut events = Events::default();
        let Some(mut member) = broker.members.remove(&self.id) else {
            return events;
        };
        if member.fenced && broker.reaches(self.site.host, now) {
            let text = "the instance is in use".to_owned();
            events.errors.push((Code::Fatal, text));
        }
        if member.events.front().is_some_and(|(due, ..)| *due <= now) {
            let (_, rebalance, lost) = member.events.pop_front().expect("it is there");
            member.lost = lost;
            if matches!(rebalance, Rebalance::Assign(_)) && member.group == "g" {
                broker.hosts[self.site.host].fenced = None;
            }
            events.rebalances.push_back(rebalance);
        }
        if member.statistics <= now {
            member.statistics = now + STATISTICS;
            events.connected = Some(broker.reaches(self.site.host, now));
            for ((topic, partition), fetch) in &member.assigned {
                let stable = broker.stable(topic, *partition);
                let fresh = fetch.end.filter(|_| !fetch.stopped);
                let silent = now.saturating_sub(fetch.responded);
                events.statistics.extend(fresh.map(|end| PartitionStats {
                    topic: topic.clone(),
                    partition: *partition,
                    end: Some(end),
                    stable: Some(stable.min(end)),
                    next: Some(fetch.next).filter(|_| !fetch.paused),
                    responded: at.checked_sub(silent).filter(|_| silent < DISCONNECTED),
                    unfetched: false,
                }));
            }
        }
        broker.members.insert(self.id, member);
        events
    }

    fn fatal_error(&self) -> Option<KafkaError> {
        let fenced = self.with(|broker, id| broker.members.get(&id).is_some_and(|m| m.fenced));
        fenced.then(|| KafkaError::Fenced("the instance is in use".to_owned()))
    }

    fn members(&self, group: &str, within: Duration) -> KafkaResult<Vec<(String, String)>> {
        if !self.site.reaches() {
            return timeout(within);
        }
        // Processes of this program share a group by a state topic here, or are alone.
        Ok(self.with(|broker, _| {
            let all = broker.strangers.iter();
            let here =
                all.filter(|(id, _)| broker.members.get(id).is_some_and(|m| m.group == group));
            here.map(|(_, client)| ("elsewhere".to_owned(), client.clone()))
                .collect()
        }))
    }

    fn fetch(&mut self, max: usize, timeout: Duration, batch: &mut dyn FnMut(&[Fetched<'_>])) {
        let mut taken = self.fetch_now(max);
        if taken.is_empty() && !timeout.is_zero() {
            clock::sleep(timeout);
            taken = self.fetch_now(max);
        }
        let messages = taken.iter().map(|t| {
            let entry = t.entry.as_ref();
            let record = Record {
                topic: t.topic,
                partition: t.partition,
                offset: t.offset,
                timestamp_ms: entry.map(|e| e.time_ms),
                key: entry.map(|e| e.key.as_slice()),
                payload: entry.and_then(|e| e.value.as_deref()).unwrap_or_default(),
                headers: Headers::default(),
            };
            let error = match entry {
                Some(_) => 0,
                None => Code::AutoOffsetReset as i32,
            };
            Fetched { record, error }
        });
        batch(&messages.collect::<Vec<_>>());
    }

    fn forward(&self, _: &str, _: i32) {}

    fn unforward(&self, _: &str, _: i32) {}

    fn end(&self, topic: &str, partition: i32) -> Option<i64> {
        let partition = (topic.to_owned(), partition);
        self.with(|broker, id| broker.members.get(&id)?.assigned.get(&partition)?.end)
    }

    fn position(&self) -> KafkaResult<TopicPartitionList> {
        self.with(|broker, id| {
            let mut list = TopicPartitionList::new();
            let assigned = broker.members.get(&id).map(|m| &m.assigned);
            for ((topic, partition), fetch) in assigned.into_iter().flatten() {
                list.add_partition_offset(topic, *partition, Offset::Offset(fetch.next))?;
            }
            Ok(list)
        })
    }

    fn assignment(&self) -> KafkaResult<TopicPartitionList> {
        self.with(|broker, id| {
            let assigned = broker.members.get(&id).map(|m| m.assigned.keys().cloned());
            Ok(list(&assigned.into_iter().flatten().collect::<Vec<_>>()))
        })
    }

    fn accept(&self, with_offsets: &TopicPartitionList) -> KafkaResult<()> {
        self.assign(with_offsets)
    }

    fn give_back(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        self.with(|broker, id| {
            for e in list.elements() {
                broker.give_back(id, &(e.topic().to_owned(), e.partition()));
            }
        });
        Ok(())
    }

    fn assign(&self, with_offsets: &TopicPartitionList) -> KafkaResult<()> {
        self.with(|broker, id| {
            for e in with_offsets.elements() {
                let partition = (e.topic().to_owned(), e.partition());
                let stored = |b: &Broker| {
                    let group = b
                        .members
                        .get(&id)
                        .map(|m| m.group.clone())
                        .unwrap_or_default();
                    b.committed(&group, &partition)
                        .map_or(0, |(offset, _)| offset)
                };
                let next = match e.offset() {
                    Offset::Offset(offset) => offset,
                    _ => stored(broker),
                };
                if let Some(member) = broker.members.get_mut(&id) {
                    let fetch = Fetch {
                        next,
                        ..Fetch::default()
                    };
                    member.assigned.insert(partition, fetch);
                }
            }
        });
        Ok(())
    }

    fn unassign(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        // A client that was replaced is dropped on a thread of its own, and when that runs no seed
        // says.
        if !clock::is_simulated() {
            return Ok(());
        }
        self.with(|broker, id| {
            let Some(member) = broker.members.get_mut(&id) else {
                return;
            };
            for e in list.elements() {
                member
                    .assigned
                    .remove(&(e.topic().to_owned(), e.partition()));
            }
        });
        Ok(())
    }

    fn assignment_lost(&self) -> bool {
        self.with(|broker, id| broker.members.get(&id).is_some_and(|m| m.lost))
    }

    fn pause(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        self.set_paused(list, true)
    }

    fn resume(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        self.set_paused(list, false)
    }

    fn commit(&self, offsets: &TopicPartitionList) -> KafkaResult<()> {
        if self.site.reaches() {
            self.with(|broker, id| broker.commit(id, offsets));
        }
        Ok(())
    }

    fn partitions(&self, topic: &str, within: Duration) -> KafkaResult<usize> {
        match self.site.reaches() {
            true => Ok(self.with(|broker, _| broker.topics.get(topic).map_or(0, Vec::len))),
            false => timeout(within),
        }
    }

    fn committed(
        &self,
        list: TopicPartitionList,
        within: Duration,
    ) -> KafkaResult<TopicPartitionList> {
        if !self.site.reaches() {
            return timeout(within);
        }
        self.with(|broker, id| {
            let group = broker
                .members
                .get(&id)
                .map(|m| m.group.clone())
                .unwrap_or_default();
            let mut found = TopicPartitionList::new();
            for e in list.elements() {
                let committed = broker.committed(&group, &(e.topic().to_owned(), e.partition()));
                let mut entry = found.add_partition(e.topic(), e.partition());
                if let Some((offset, metadata)) = committed {
                    entry.set_offset(Offset::Offset(offset))?;
                    if let Some(metadata) = metadata {
                        entry.set_metadata(metadata);
                    }
                }
            }
            Ok(found)
        })
    }

    fn committed_by_new_client(
        &self,
        _: &KafkaOptions,
        list: TopicPartitionList,
        within: Duration,
    ) -> Result<TopicPartitionList, KafkaError> {
        self.committed(list, within)
            .map_err(|error| KafkaError::Other(error.to_string()))
    }

    fn offsets_for_times(
        &self,
        times: TopicPartitionList,
        within: Duration,
    ) -> KafkaResult<TopicPartitionList> {
        let now = clock::now();
        let mut found = TopicPartitionList::new();
        for e in times.elements() {
            let time_ms = e.offset().to_raw().unwrap_or(0);
            let first = self.with(|broker, _| {
                let log = broker.log(e.topic(), e.partition());
                let log = log.filter(|log| log.away <= now)?;
                let left = log.entries.iter().enumerate().skip(log.start as usize);
                let first = left
                    .filter(|(_, e)| !e.control)
                    .find(|(_, e)| e.time_ms >= time_ms);
                Some(first.map_or(Offset::End, |(at, _)| Offset::Offset(at as i64)))
            });
            match first.filter(|_| self.site.reaches()) {
                Some(offset) => found.add_partition_offset(e.topic(), e.partition(), offset)?,
                None => return timeout(within),
            }
        }
        Ok(found)
    }

    fn offset_bounds(
        &self,
        topic: &str,
        partition: i32,
        within: Duration,
    ) -> KafkaResult<(i64, i64)> {
        let now = clock::now();
        let ends = self.with(|broker, _| {
            let log = broker.log(topic, partition).filter(|log| log.away <= now);
            log.map(|log| (log.start, log.end()))
        });
        match ends.filter(|_| self.site.reaches()) {
            Some(ends) => Ok(ends),
            None => timeout(within),
        }
    }

    fn close(&self) {}
}

impl Client {
    fn set_paused(&self, list: &TopicPartitionList, paused: bool) -> KafkaResult<()> {
        self.with(|broker, id| {
            let Some(member) = broker.members.get_mut(&id) else {
                return;
            };
            for e in list.elements() {
                let partition = (e.topic().to_owned(), e.partition());
                if let Some(fetch) = member.assigned.get_mut(&partition) {
                    fetch.paused = paused;
                }
            }
        });
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !clock::is_simulated() {
            return;
        }
        let in_order = !*lock(&self.site.killed) && self.site.reaches();
        self.with(|broker, id| broker.leave(id, in_order));
    }
}
