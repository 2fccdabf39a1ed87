//! The groups of the simulated broker: who has joined, what each member owns, and what was
//! committed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rdkafka::{Offset, TopicPartitionList};
use trueline::kafka::Rebalance;

use super::{Broker, Member, SESSION, TopicPartition, is_first, list};
use crate::clock;

/// The client id of a consumer of another program, which does not say when it started.
const OTHER: &str = "consumer-1";

/// Begins the metadata of a commit of the program.
const PARTITIONS: &str = "partitions=";

/// Within this a judge has recorded that a sink has answered.
const RECORDED: Duration = Duration::from_millis(500);

/// A group.
#[derive(Debug, Default)]
pub(super) struct Group {
    owners: BTreeMap<TopicPartition, u64>,
    /// Asked back from the owner.
    asked: BTreeSet<TopicPartition>,
    committed: BTreeMap<TopicPartition, (i64, Option<String>)>,
}

impl Broker {
    /// A new member, which the group learns of at its next turn.
    pub fn join(&mut self, host: usize, group: &str, topics: &[String], now: Duration) -> u64 {
        let id = self.next_member;
        self.next_member += 1;
        let rejoins = Some(now + self.delay(50, 1500));
        let member = Member {
            host,
            group: group.to_owned(),
            topics: topics.to_vec(),
            alive: true,
            joined: false,
            heard: now,
            rejoins,
            assigned: BTreeMap::new(),
            events: VecDeque::new(),
            lost: false,
            statistics: now,
            welcomed: false,
            fenced: false,
        };
        self.members.insert(id, member);
        id
    }

    /// A member of another program takes the `instance` of the members of a host, and what they
    /// own, and commits there. Answers its number, if there is somebody to take it from.
    pub fn fence(
        &mut self,
        (host, by): (usize, usize),
        client: &str,
        now: Duration,
    ) -> Option<u64> {
        let of = |m: &&mut Member| m.host == host && m.alive && m.group == "g";
        let member = self.members.values_mut().find(of)?;
        if std::mem::replace(&mut member.fenced, true) {
            return None;
        }
        let (topics, fenced) = (member.topics.clone(), host);
        // It asks who has committed there.
        let assigned: BTreeSet<TopicPartition> = member.assigned.keys().cloned().collect();
        member.joined = false;
        let id = self.join(by, "g", &topics, now);
        self.strangers.insert(id, client.to_owned());
        if let Some(member) = self.members.get_mut(&id) {
            (member.joined, member.rejoins, member.welcomed) = (true, None, true);
        }
        let theirs = self.members.iter();
        let theirs = theirs.filter(|(_, m)| m.host == fenced && m.group == "g");
        let theirs: BTreeSet<u64> = theirs.map(|(id, _)| *id).collect();
        let group = self.groups.entry("g".to_owned()).or_default();
        let mut commits = false;
        for (partition, owner) in &mut group.owners {
            if theirs.contains(owner) {
                commits |= assigned.contains(partition);
                *owner = id;
                group.asked.remove(partition);
                let start = self.topics[&partition.0][partition.1 as usize].start;
                let before = group.committed.get(partition).cloned();
                let (offset, _) = before.unwrap_or((start, None));
                let count = self.topics[&partition.0].len();
                let says = format!("{PARTITIONS}{count} {client}");
                group
                    .committed
                    .insert(partition.clone(), (offset, Some(says)));
            }
        }
        // Who has committed nothing there has not said when it started.
        self.hosts[fenced].fenced = Some((now, commits && is_first(client)));
        Some(id)
    }

    /// A consumer of another program takes all partitions of the group. Answers its number.
    pub fn take_all(&mut self, host: usize, now: Duration) -> Option<u64> {
        let of = |m: &&Member| m.alive && m.group == "g";
        let topics = self.members.values().find(of)?.topics.clone();
        let theirs = self.members.iter().filter(|(_, m)| m.group == "g");
        for id in theirs.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.remove(id);
        }
        let id = self.join(host, "g", &topics, now);
        self.strangers.insert(id, OTHER.to_owned());
        if let Some(member) = self.members.get_mut(&id) {
            (member.joined, member.rejoins, member.welcomed) = (true, None, true);
        }
        let group = self.groups.entry("g".to_owned()).or_default();
        for topic in topics {
            let count = self.topics.get(&topic).map_or(0, Vec::len) as i32;
            let all = (0..count).map(|p| ((topic.clone(), p), id));
            group.owners.extend(all);
        }
        Some(id)
    }

    /// Whoever joins with an `instance` takes it from members of another program; not for a second
    /// time from one that was there first.
    pub fn unfence(&mut self, host: usize) {
        let first = matches!(self.hosts[host].fenced, Some((_, true)));
        if first && !self.strangers.is_empty() {
            self.wrong = Some("it takes its `instance` back from a process that was there first");
        }
        for id in self.strangers.keys().copied().collect::<Vec<_>>() {
            self.leave(id, true);
            self.strangers.remove(&id);
        }
    }

    /// The client is gone; in order it leaves the group at once.
    pub fn leave(&mut self, id: u64, in_order: bool) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        member.alive = false;
        let (host, now) = (member.host, clock::now());
        if !in_order {
            self.unsettle(host, now, now);
        }
        if in_order && let Some(member) = self.members.remove(&id) {
            self.release(&member.group, id);
        }
    }

    /// Who takes over from a host at this time goes on from what it had recorded.
    fn unsettle(&mut self, host: usize, from: Duration, until: Duration) {
        let mut logs = self.topics.values().flatten();
        let from = match logs.any(|log| log.away + RECORDED > from) {
            true => Duration::ZERO,
            false => from.saturating_sub(RECORDED),
        };
        self.hosts[host].unsettled.push((from, until));
    }

    fn release(&mut self, group: &str, id: u64) {
        if let Some(group) = self.groups.get_mut(group) {
            let gone: Vec<TopicPartition> = group
                .owners
                .iter()
                .filter(|(_, o)| **o == id)
                .map(|(p, _)| p.clone())
                .collect();
            for partition in gone {
                group.owners.remove(&partition);
                group.asked.remove(&partition);
            }
        }
    }

    /// A member gives a partition back.
    pub fn give_back(&mut self, id: u64, partition: &TopicPartition) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        member.assigned.remove(partition);
        let (host, now, name) = (member.host, clock::now(), member.group.clone());
        // A sink may be about to answer.
        self.unsettle(host, now, now + SESSION);
        let group = self.groups.entry(name).or_default();
        if group.owners.get(partition) == Some(&id) && group.asked.remove(partition) {
            group.owners.remove(partition);
        }
    }

    /// The group asks a partition back, which it gives to whom it likes; the only member it
    /// removes.
    pub fn ask_back(&mut self, topic: &str, partition: i32, now: Duration) {
        let partition = (topic.to_owned(), partition);
        let owners = self.groups.values().flat_map(|g| g.owners.get(&partition));
        for id in owners.copied().collect::<Vec<_>>() {
            let group = self.members[&id].group.clone();
            if self.members.values().filter(|m| m.group == group).count() > 1 {
                self.ask(id, std::slice::from_ref(&partition), now);
            } else {
                self.remove(id);
            }
        }
    }

    /// The session of a member ends; its client learns of it later.
    fn remove(&mut self, id: u64) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        (member.joined, member.rejoins, member.welcomed) = (false, None, false);
        let (host, heard, group) = (member.host, member.heard, member.group.clone());
        // Its client learns of it later.
        self.unsettle(host, heard, Duration::MAX);
        self.release(&group, id);
    }

    fn ask(&mut self, id: u64, partitions: &[TopicPartition], now: Duration) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        let group = self.groups.entry(member.group.clone()).or_default();
        let new = partitions
            .iter()
            .filter(|p| group.asked.insert((*p).clone()));
        let new: Vec<TopicPartition> = new.cloned().collect();
        if !new.is_empty() {
            member
                .events
                .push_back((now, Rebalance::Revoke(list(&new)), false));
        }
    }

    pub fn commit(&mut self, id: u64, offsets: &TopicPartitionList) {
        let Some(member) = self.members.get(&id).filter(|m| m.joined) else {
            return;
        };
        let group = self.groups.entry(member.group.clone()).or_default();
        for e in offsets.elements() {
            let partition = (e.topic().to_owned(), e.partition());
            let besides = !member.topics.contains(&partition.0);
            if let Offset::Offset(offset) = e.offset()
                && (besides || group.owners.get(&partition) == Some(&id))
            {
                let metadata = Some(e.metadata().to_owned()).filter(|m| !m.is_empty());
                group.committed.insert(partition, (offset, metadata));
            }
        }
    }

    pub fn committed(
        &self,
        group: &str,
        partition: &TopicPartition,
    ) -> Option<(i64, Option<String>)> {
        self.groups.get(group)?.committed.get(partition).cloned()
    }

    /// What the coordinator of the groups does: sessions, and who reads what.
    pub fn coordinate(&mut self, now: Duration) {
        let ids: Vec<u64> = self.members.keys().copied().collect();
        for id in ids {
            self.hear(id, now);
        }
        self.live_as_strangers(now);
        let groups: BTreeSet<String> = self.members.values().map(|m| m.group.clone()).collect();
        for group in groups {
            self.share(&group, now);
        }
    }

    /// Strangers read nothing; those of this program give back what they are asked for.
    fn live_as_strangers(&mut self, now: Duration) {
        let ours = self.strangers.iter().filter(|(_, client)| *client != OTHER);
        for id in ours.map(|(id, _)| *id).collect::<Vec<_>>() {
            let due = |m: &mut Member| {
                let due = m.events.front().is_some_and(|(at, ..)| *at <= now);
                due.then(|| m.events.pop_front()).flatten()
            };
            while let Some((_, event, _)) = self.members.get_mut(&id).and_then(due) {
                if let Rebalance::Revoke(list) = event {
                    for e in list.elements() {
                        self.give_back(id, &(e.topic().to_owned(), e.partition()));
                    }
                }
            }
        }
        let owners = self.groups.values().flat_map(|g| g.owners.values());
        let theirs = owners.filter(|id| self.strangers.contains_key(id)).count();
        self.shared = (theirs > 0).then(|| self.shared.unwrap_or(now));
    }

    fn hear(&mut self, id: u64, now: Duration) {
        let notice = self.delay(0, 2000);
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        let host = &mut self.hosts[member.host];
        let speaks = member.alive && host.cut <= now && host.frozen <= now;
        if speaks {
            member.heard = now;
            if !member.joined && !member.fenced {
                let rejoins = *member.rejoins.get_or_insert(now + notice);
                if rejoins <= now {
                    member.joined = true;
                    member.rejoins = None;
                    for (_, until) in &mut host.unsettled {
                        *until = (*until).min(now + SESSION);
                    }
                    // The group knows nothing of partitions that the client has taken besides.
                    let had = member.assigned.keys();
                    let had = had.filter(|(topic, _)| member.topics.contains(topic));
                    let had: Vec<TopicPartition> = had.cloned().collect();
                    member.events.clear();
                    if !had.is_empty() {
                        member
                            .events
                            .push_back((now, Rebalance::Revoke(list(&had)), true));
                    }
                }
            }
        } else if now.saturating_sub(member.heard) >= SESSION {
            let (was, alive) = (member.joined, member.alive);
            if was {
                self.remove(id);
            }
            if !alive {
                self.members.remove(&id);
            }
        }
    }

    fn share(&mut self, name: &str, now: Duration) {
        let of = |m: &&u64| self.members[*m].group == name && self.members[*m].joined;
        let ids: Vec<u64> = self.members.keys().filter(of).copied().collect();
        let Some(first) = ids.first() else { return };
        // A round waits for every member, until its session has run out.
        if ids.iter().any(|id| self.members[id].heard < now) {
            return;
        }
        let mut partitions: Vec<TopicPartition> = Vec::new();
        for topic in &self.members[first].topics {
            let count = self.topics.get(topic).map_or(0, Vec::len) as i32;
            partitions.extend((0..count).map(|p| (topic.clone(), p)));
        }
        let mut load: BTreeMap<u64, Vec<TopicPartition>> =
            ids.iter().map(|id| (*id, Vec::new())).collect();
        let group = self.groups.entry(name.to_owned()).or_default();
        for (partition, owner) in &group.owners {
            if let Some(partitions) = load
                .get_mut(owner)
                .filter(|_| !group.asked.contains(partition))
            {
                partitions.push(partition.clone());
            }
        }
        let mut given: BTreeMap<u64, Vec<TopicPartition>> = BTreeMap::new();
        for partition in partitions {
            if group.owners.contains_key(&partition) {
                continue;
            }
            let Some(id) = ids.iter().min_by_key(|id| (load[*id].len(), **id)) else {
                continue;
            };
            group.owners.insert(partition.clone(), *id);
            load.get_mut(id).expect("a member").push(partition.clone());
            given.entry(*id).or_default().push(partition);
        }
        let most = ids
            .iter()
            .max_by_key(|id| load[*id].len())
            .copied()
            .unwrap_or(*first);
        let least = load.values().map(Vec::len).min().unwrap_or(0);
        let moved = (load[&most].len() > least + 1).then(|| load[&most][0].clone());
        for id in ids {
            let mine = given.remove(&id).unwrap_or_default();
            let delay = self.delay(20, 800);
            let member = self.members.get_mut(&id).expect("a member");
            if !mine.is_empty() || !member.welcomed {
                member.welcomed = true;
                // Never before what was asked back is known.
                let after = member.events.back().map_or(now, |(at, ..)| *at);
                let at = after.max(now + delay);
                member
                    .events
                    .push_back((at, Rebalance::Assign(list(&mine)), false));
            }
        }
        if let Some(partition) = moved {
            self.ask(most, &[partition], now);
        }
    }
}
