//! The faults of a scenario: how each begins and ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{SETTLED, TOPIC, World};
use crate::broker::{Entry, Transaction};
use crate::client::lock;
use crate::directed::Circumstance;
use crate::oracle::STRAY;
use crate::scenario::{Fault, Fleet};
use crate::{clock, disk};

#[derive(Clone, Copy)]
pub(super) enum Later {
    End {
        transaction: u32,
        log: i32,
        commits: bool,
    },
    Hung {
        transaction: u32,
        log: i32,
    },
    Disk {
        host: usize,
    },
    Room {
        host: usize,
    },
    Clock {
        host: usize,
    },
    State {
        host: usize,
    },
    Stranger {
        member: u64,
    },
}

impl World<'_> {
    pub(super) fn fail(&mut self) {
        let fault = self.scenario.faults[self.next_fault].1;
        self.next_fault += 1;
        self.faults += 1;
        let now = self.now;
        if let Fault::Sink {
            sink,
            trouble,
            time,
        } = fault
        {
            lock(&self.receivers).trouble(sink, trouble, now + time);
            return;
        }
        if let Fault::Registry { trouble, time } = fault {
            lock(&self.registry).trouble(trouble, now + time);
            return;
        }
        // The owner of a partition finds the claim of a stray when it next writes, which may be
        // after another fault, and claims again a session later.
        let strays = self.scenario.faults[..self.next_fault].iter();
        let strays = strays.filter(|(_, f)| matches!(f, Fault::Stray { .. }));
        let mut settled = SETTLED * if strays.count() > 0 { 2 } else { 1 };
        let circumstance = self.scenario.circumstance;
        if matches!(
            circumstance,
            Some(Circumstance::Hidden | Circumstance::Frozen)
        ) {
            // What holds verdicts ends with the next checkpoint; that may be after another fault.
            settled += Duration::from_secs(self.scenario.interval_s);
        }
        self.healthy = self.healthy.max(now + fault.lasts() + settled);
        // What the fetchers knew before.
        lock(&self.broker).refresh(now);
        match fault {
            Fault::Kill { host, down } => self.kill(host, down, false),
            Fault::Power { host, down } => self.kill(host, down, true),
            Fault::Stop { host, down } => {
                self.stop(host);
                let p = &mut self.processes[host];
                p.free = p.free.max(now + down);
            }
            Fault::Freeze { host, time } => {
                let host = &mut lock(&self.broker).hosts[host];
                host.frozen = host.frozen.max(now + time);
            }
            Fault::Cut { host, time } => {
                let host = &mut lock(&self.broker).hosts[host];
                host.cut = host.cut.max(now + time);
            }
            Fault::Clock {
                host,
                ahead_ms,
                time,
            } => {
                self.processes[host].ahead_ms = ahead_ms;
                self.later.push((now + time, Later::Clock { host }));
            }
            Fault::Move { log } => {
                let (topic, partition) = self.scenario.place(log);
                lock(&self.broker).ask_back(topic, partition, now);
            }
            Fault::Away { log, time } => {
                let (topic, partition) = self.scenario.place(log);
                if let Some(log) = lock(&self.broker).log_mut(topic, partition) {
                    log.away = log.away.max(now + time);
                }
            }
            Fault::Transaction { log, time, commits } => {
                if !self.transactions.contains_key(&log) {
                    let transaction = self.begin();
                    self.transactions.insert(log, transaction);
                    let end = Later::End {
                        transaction,
                        log,
                        commits,
                    };
                    self.later.push((now + time, end));
                }
            }
            Fault::Hang { log, time } => {
                let transaction = self.begin();
                let entry = Entry {
                    time_ms: clock::wall_ms(now),
                    appended: now,
                    key: u64::MAX.to_le_bytes().to_vec(),
                    value: Some(Vec::new()),
                    transaction: Some(transaction),
                    control: false,
                    compacted: false,
                };
                self.append(log, entry);
                self.later
                    .push((now + time, Later::Hung { transaction, log }));
            }
            Fault::Retain => self.retain(),
            Fault::Compact => self.compact(),
            Fault::SlowDisk { host, time } => {
                lock(&self.processes[host].site.jobs).slow = Duration::from_secs(3);
                self.later.push((now + time, Later::Disk { host }));
            }
            Fault::NoState { host, time } => {
                let p = &mut self.processes[host];
                let there = trueline::store::load(&p.folder).is_ok_and(|found| found.is_some());
                if p.gone.is_none() && there && p.engine.is_some() {
                    std::fs::rename(&p.folder, aside(&p.folder)).expect("a folder in memory");
                    p.gone = Some(now);
                    self.later.push((now + time, Later::State { host }));
                }
            }
            Fault::Stranger { earlier, time } => {
                let mut broker = lock(&self.broker);
                let topics = [TOPIC.to_owned()];
                let member = broker.join(self.scenario.hosts, "g", &topics, now);
                let at_ms = if earlier { 1 } else { 4_000_000_000_000_i64 };
                let client = format!("trueline-{at_ms}-00000001");
                broker.strangers.insert(member, client);
                self.later.push((now + time, Later::Stranger { member }));
            }
            Fault::Twin { earlier, time } => {
                let at_ms = if earlier { 1 } else { 4_000_000_000_000_i64 };
                let client = format!("trueline-{at_ms}-00000001");
                let hosts = (0, self.scenario.hosts);
                let member = lock(&self.broker).fence(hosts, &client, now);
                if let Some(member) = member {
                    self.later.push((now + time, Later::Stranger { member }));
                }
            }
            Fault::Stray { log } => self.claim(log),
            Fault::Taken { time } => {
                let member = lock(&self.broker).take_all(self.scenario.hosts, now);
                if let Some(member) = member {
                    self.later.push((now + time, Later::Stranger { member }));
                }
            }
            Fault::Sink { .. } | Fault::Registry { .. } => {}
            Fault::FullDisk { host, time } => {
                self.processes[host].room = 3000;
                lock(&self.processes[host].site.parts).full = true;
                self.later.push((now + time, Later::Room { host }));
            }
        }
    }

    fn begin(&mut self) -> u32 {
        let transaction = self.next_transaction;
        self.next_transaction += 1;
        lock(&self.broker)
            .transactions
            .insert(transaction, Transaction::Open);
        transaction
    }

    pub(super) fn mend(&mut self) {
        let due = self.later.iter().position(|(at, _)| *at <= self.now);
        let (_, what) = self.later.swap_remove(due.expect("one is due"));
        match what {
            Later::End {
                transaction,
                log,
                commits,
            } => {
                self.transactions.remove(&log);
                let ended = if commits {
                    Transaction::Committed
                } else {
                    Transaction::Aborted
                };
                lock(&self.broker).transactions.insert(transaction, ended);
                self.marker(log);
            }
            Later::Hung { transaction, log } => {
                lock(&self.broker)
                    .transactions
                    .insert(transaction, Transaction::Aborted);
                self.marker(log);
            }
            Later::Disk { host } => lock(&self.processes[host].site.jobs).slow = Duration::ZERO,
            Later::Room { host } => self.processes[host].room = usize::MAX,
            Later::Clock { host } => self.processes[host].ahead_ms = 0,
            Later::State { host } => {
                self.kill(host, Duration::ZERO, false);
                let p = &mut self.processes[host];
                let _ = std::fs::remove_dir_all(&p.folder);
                std::fs::rename(aside(&p.folder), &p.folder).expect("a folder in memory");
                p.gone = None;
            }
            Later::Stranger { member } => {
                let mut broker = lock(&self.broker);
                broker.leave(member, true);
                broker.strangers.remove(&member);
            }
        }
    }

    /// Somebody claims a partition and does nothing with it.
    fn claim(&mut self, log: i32) {
        let now = self.now;
        let (topic, partition) = self.scenario.place(log);
        let end = format!("/{topic}/{partition}/claim");
        let mut broker = lock(&self.broker);
        for log in broker.topics.get_mut("state").into_iter().flatten() {
            let theirs = log.entries.iter().rev();
            let mut theirs = theirs.filter(|e| e.key.ends_with(end.as_bytes()));
            if let Some(last) = theirs.next().cloned() {
                log.entries.push(Entry {
                    time_ms: clock::wall_ms(now),
                    appended: now,
                    value: Some(STRAY.to_vec()),
                    compacted: false,
                    ..last
                });
            }
        }
    }

    /// Removes what no restart needs any more.
    fn retain(&mut self) {
        if self.scenario.fleet != Fleet::Single {
            return;
        }
        let p = &self.processes[0];
        let folder = p.gone.map_or(p.folder.clone(), |_| aside(&p.folder));
        let Ok(Some(snapshot)) = trueline::store::load(&folder) else {
            return;
        };
        let mut broker = lock(&self.broker);
        for o in snapshot.partitions.positions() {
            let topic = self.scenario.topics()[usize::from(o.source)];
            if let Some(log) = broker.log_mut(topic, o.partition) {
                log.start = log.start.max(o.offset.min(log.end()));
            }
        }
    }

    /// Of each key the state topic keeps the newest record, but for the newest ones of all.
    fn compact(&mut self) {
        let mut broker = lock(&self.broker);
        let Some(logs) = broker.topics.get_mut("state") else {
            return;
        };
        for log in logs {
            let clean = log.entries.len() * 3 / 4;
            let mut newest: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
            for (at, e) in log.entries.iter().enumerate() {
                newest.insert(e.key.clone(), at);
            }
            for (at, e) in log.entries.iter_mut().enumerate().take(clean) {
                e.compacted |= newest[&e.key] != at;
            }
        }
    }

    pub(super) fn kill(&mut self, host: usize, down: Duration, power: bool) {
        let now = self.now;
        let share = lock(&self.broker).rng.uniform();
        let p = &mut self.processes[host];
        if p.ended {
            return;
        }
        if power {
            // In the middle of what is being written.
            disk::room((5000.0 * share) as usize);
            clock::set(now, p.ahead_ms);
            p.site.work(now + Duration::from_secs(60));
        }
        lock(&p.site.jobs).take();
        *lock(&p.site.killed) = true;
        clock::set(now, p.ahead_ms);
        p.site.forget(power);
        drop(p.engine.take());
        if power {
            disk::lose(&p.folder, share);
        }
        p.free = p.free.max(now + down);
        p.watermark = None;
        p.heard.clear();
    }

    pub(super) fn stop(&mut self, host: usize) {
        let now = self.now;
        let frozen = lock(&self.broker).hosts[host].frozen > now;
        let p = &mut self.processes[host];
        if frozen || p.ended {
            return;
        }
        if let Some(engine) = p.engine.take() {
            clock::set(now.max(p.free), p.ahead_ms);
            disk::room(p.room);
            let _ = engine.end();
            p.site.leave(true, None);
            p.site.work(clock::now() + Duration::from_secs(60));
            p.free = p.free.max(clock::now());
            p.site.forget(false);
            lock(&p.site.jobs).take();
            p.watermark = None;
            p.heard.clear();
        }
    }
}

/// Where a state directory is while it is gone.
pub(super) fn aside(folder: &Path) -> PathBuf {
    folder.with_extension("aside")
}
