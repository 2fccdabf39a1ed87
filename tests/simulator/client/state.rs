//! The client of the state topic.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use trueline::kafka::{Ends, FollowState, Followed, KafkaError, ReadState, WriteState};

use super::{IN_JOB, Site, away, lock};
use crate::broker::{Broker, Entry};
use crate::clock;

/// The state topic, for one reader or writer.
pub(super) struct State {
    site: Site,
    topic: String,
    /// Next offsets of a follower, and which ends it was told.
    next: Mutex<BTreeMap<i32, (i64, bool)>>,
}

impl State {
    pub fn new(site: Site, topic: &str) -> State {
        State {
            site,
            topic: topic.to_owned(),
            next: Mutex::default(),
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut Broker) -> T) -> T {
        f(&mut lock(&self.site.broker))
    }
}

impl ReadState for State {
    fn state_partition(&mut self, of: i32, sources: &[String]) -> Result<i32, KafkaError> {
        if !self.site.reaches() {
            return away(Duration::from_secs(10));
        }
        let topic = self.topic.clone();
        Ok(self.with(|broker| {
            let widest = sources
                .iter()
                .map(|s| broker.topics.get(s).map_or(0, Vec::len));
            let widest = widest.max().unwrap_or(0).max(1);
            let logs = broker.topics.entry(topic).or_default();
            if logs.is_empty() {
                logs.resize_with(widest, Default::default);
            }
            of.rem_euclid(logs.len() as i32)
        }))
    }

    fn partitions(&mut self, at_creation: i32) -> Result<i32, KafkaError> {
        if !self.site.reaches() {
            return away(Duration::from_secs(10));
        }
        let topic = self.topic.clone();
        Ok(self.with(|broker| {
            let logs = broker.topics.entry(topic).or_default();
            if logs.is_empty() {
                logs.resize_with(at_creation.unsigned_abs() as usize, Default::default);
            }
            logs.len() as i32
        }))
    }

    fn committed(
        &mut self,
        group: &str,
        topic: &str,
        partition: i32,
    ) -> Result<Option<i64>, KafkaError> {
        if !self.site.reaches() {
            return away(Duration::from_secs(10));
        }
        let partition = (topic.to_owned(), partition);
        Ok(self.with(|broker| {
            broker
                .committed(group, &partition)
                .map(|(offset, _)| offset)
        }))
    }

    fn read(
        &self,
        partition: i32,
        until: i64,
        within: Duration,
        _: &dyn Fn(),
        each: &mut dyn FnMut(&[u8], Option<&[u8]>),
    ) -> Result<(), KafkaError> {
        if !self.site.reaches() {
            return away(within);
        }
        clock::sleep(self.with(|broker| broker.delay(1, 100)));
        let entries = self.with(|broker| {
            let log = broker.log(&self.topic, partition).expect("it was made");
            log.entries[..=(until as usize)].to_vec()
        });
        for e in entries.iter().filter(|e| !e.compacted) {
            each(&e.key, e.value.as_deref());
        }
        Ok(())
    }

    fn read_after(
        &self,
        partition: i32,
        from: i64,
        until: Option<i64>,
        within: Duration,
        each: &mut dyn FnMut(i64, &[u8], Option<&[u8]>),
    ) -> Result<(), KafkaError> {
        if !self.site.reaches() {
            return away(within);
        }
        let entries = self.with(|broker| {
            let log = broker.log(&self.topic, partition).expect("it was made");
            let end = until.map_or(log.end(), |until| until + 1);
            log.entries[(from.min(end) as usize)..(end as usize)].to_vec()
        });
        for (offset, e) in (from..).zip(&entries).filter(|(_, e)| !e.compacted) {
            each(offset, &e.key, e.value.as_deref());
        }
        Ok(())
    }
}

impl WriteState for State {
    fn put(
        &self,
        records: &[(i32, &(String, Option<Vec<u8>>))],
        within: Duration,
        _: &dyn Fn(),
    ) -> Result<Vec<i64>, KafkaError> {
        let now = clock::now();
        if !self.site.reaches() {
            return away(within);
        }
        if !IN_JOB.get() {
            clock::sleep(self.with(|broker| broker.delay(1, 50)));
        }
        Ok(self.with(|broker| {
            let mut offsets = Vec::new();
            for (partition, (key, value)) in records {
                let size = value.as_ref().map_or(0, Vec::len) as u64;
                let offset = broker.append(
                    &self.topic,
                    *partition,
                    Entry {
                        time_ms: clock::wall_ms(now),
                        appended: now,
                        key: key.clone().into_bytes(),
                        value: value.clone(),
                        transaction: None,
                        control: false,
                        compacted: false,
                    },
                );
                // A claim names the process.
                let size = if key.ends_with("claim") || key.ends_with("judge") {
                    0
                } else {
                    size
                };
                broker.note(&[
                    now.as_nanos() as u64,
                    *partition as u64,
                    offset as u64,
                    size,
                ]);
                offsets.push(offset);
            }
            offsets
        }))
    }
}

impl FollowState for State {
    fn begin(&self, partitions: i32) -> Result<(), KafkaError> {
        *lock(&self.next) = (0..partitions).map(|p| (p, (0, false))).collect();
        Ok(())
    }

    fn poll(
        &self,
        within: Duration,
        each: &mut dyn FnMut(Followed<'_>),
    ) -> Result<bool, KafkaError> {
        let mut next = lock(&self.next);
        if self.site.reaches() {
            for (&state_partition, (offset, ended)) in next.iter_mut() {
                let found = self.with(|broker| {
                    let log = broker.log(&self.topic, state_partition)?;
                    let rest = log.entries.iter().enumerate().skip(*offset as usize);
                    let mut rest = rest.filter(|(_, e)| !e.compacted);
                    rest.next().map(|(at, e)| (at as i64, e.clone()))
                });
                if let Some((at, e)) = found {
                    (*offset, *ended) = (at + 1, false);
                    let (time, key, value) = (Some(e.time_ms), e.key, e.value);
                    each(Followed::Record {
                        state_partition,
                        offset: at,
                        at_ms: time,
                        key: &key,
                        value: value.as_deref(),
                    });
                    return Ok(true);
                }
                if !std::mem::replace(ended, true) {
                    each(Followed::End(state_partition));
                    return Ok(true);
                }
            }
        }
        clock::sleep(within);
        Ok(false)
    }

    fn partitions(&self, topic: &str) -> Result<Option<i32>, KafkaError> {
        if !self.site.reaches() {
            return away(Duration::from_secs(10));
        }
        Ok(self.with(|broker| broker.topics.get(topic).map(|logs| logs.len() as i32)))
    }

    fn ends(&self, of: &[(String, i32)], within: Duration) -> Result<Ends, KafkaError> {
        self.offsets(of, within, |broker, topic, p| {
            broker.log(topic, p).map_or(0, |log| log.end())
        })
    }

    fn stable_ends(&self, of: &[(String, i32)], within: Duration) -> Result<Ends, KafkaError> {
        self.offsets(of, within, |broker, topic, p| broker.stable(topic, p))
    }

    fn begins(&self, of: &[(String, i32)], within: Duration) -> Result<Ends, KafkaError> {
        self.offsets(of, within, |broker, topic, p| {
            broker.log(topic, p).map_or(0, |log| log.start)
        })
    }
}

impl State {
    fn offsets(
        &self,
        of: &[(String, i32)],
        within: Duration,
        which: impl Fn(&Broker, &str, i32) -> i64,
    ) -> Result<Ends, KafkaError> {
        if !self.site.reaches() {
            return away(within);
        }
        Ok(self.with(|broker| {
            let one = |(topic, p): &(String, i32)| ((topic.clone(), *p), which(broker, topic, *p));
            of.iter().map(one).collect()
        }))
    }
}
