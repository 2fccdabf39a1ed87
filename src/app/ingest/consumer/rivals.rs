//! Detects other processes where only one may run.

use std::time::{Duration, Instant};

use super::SourceConsumer;
use crate::app::ingest::contest::{Claim, Contest, Decision};

/// How long the broker may take to name the members of a group.
const MEMBERS_WITHIN: Duration = Duration::from_secs(2);

impl SourceConsumer {
    /// Looks for other processes where only one may run: under the same `instance`, or in a group
    /// without a state topic (`alone`). Decides which of them continues.
    pub fn contend(&mut self, alone: bool) {
        if self.returning && (self.recreate_at.is_some() || !self.consumer.joined()) {
            // Until then the partitions belong to the other process.
            return;
        }
        self.returning = false;
        let claim = match self.fenced {
            true => Some(Claim::Instance),
            false if alone && !self.consumer.shared().is_empty() => Some(Claim::Group),
            false => None,
        };
        let kafka = &self.options.kafka;
        let session = Duration::from_millis(kafka.session_ms());
        if self.contest.as_ref().map(|c| c.claim) != claim {
            self.contest = claim.map(|claim| Contest::new(claim, session));
        }
        let Some(contest) = self.contest.as_mut().filter(|_| self.displaced.is_none()) else {
            return;
        };
        if !contest.asks() {
            return;
        }
        let instance = kafka.instance.as_deref();
        let instance = instance.filter(|_| contest.claim == Claim::Instance);
        let group = &kafka.group;
        let others = match contest.claim {
            Claim::Instance => self.consumer.other_committers(kafka, MEMBERS_WITHIN),
            Claim::Group => self.consumer.other_members(group, MEMBERS_WITHIN),
        };
        match others.map(|others| contest.decide(others)) {
            Ok(Decision::Wait) => {}
            Ok(Decision::Return) => {
                tracing::warn!(group, instance, "taking the `instance` back");
                self.returning = true;
                self.fenced = false;
                self.recreate_at = Some(Instant::now());
            }
            Ok(Decision::Stop(first)) => {
                let what = match instance {
                    Some(name) => format!("`instance` {name} of group {group}"),
                    None => format!("group {group} without a state topic"),
                };
                self.displaced = Some(format!(
                    "{what} is in use by {first}, which was there first, so this process stops. Give each process \
                     an `instance` of its own, or set `topic` in [state], with which a group may have any number"
                ));
            }
            Err(error) => {
                contest.reached = false;
                crate::warn_limited!(%error, "the members of the group are not known");
            }
        }
    }

    /// Why this process must stop, if another one was first.
    pub fn displaced(&self) -> Option<&str> {
        self.displaced.as_deref()
    }

    /// The contest with another process. A process that has lost all partitions counts another one
    /// only if the group names it, because a broker that does not answer takes partitions away too.
    fn rivalry(&self) -> Option<&Contest> {
        let lost = self.source.lost_since.is_some();
        let is_known = |c: &&Contest| {
            !lost || c.claim == Claim::Instance || (c.reached && !c.others.is_empty())
        };
        self.contest.as_ref().filter(is_known)
    }

    /// Number of other processes where only one may run.
    pub fn other_members(&self) -> usize {
        self.rivalry().map_or(0, |c| c.others.len().max(1))
    }

    /// The parts that another process claims too, each with the consequence.
    pub fn contested(&self) -> Vec<(String, String)> {
        let Some(contest) = self.rivalry() else {
            return Vec::new();
        };
        let (group, named) = (&self.options.kafka.group, contest.named());
        let seconds = contest.left().as_secs();
        match contest.claim {
            Claim::Instance => {
                let name = self.options.kafka.instance.as_deref().unwrap_or_default();
                let why = match &contest.others[..] {
                    [] => format!(
                        "the broker has given the `instance` of this process in group {group} to a newer member: \
                         another process, or this one when it came back from a network failure. This process reads \
                         nothing. It takes the `instance` back in {seconds} s unless a process is found that started earlier"
                    ),
                    _ => format!(
                        "{named} has taken the `instance` of this process in group {group}, and this one reads nothing. \
                         Give each its own. The one that started later stops; in {seconds} s this process decides"
                    ),
                };
                vec![(format!("instance {name}"), why)]
            }
            Claim::Group => {
                let ends = match contest.is_undecidable() {
                    true => "Who started first is not known here, so this process does not stop: end all but one"
                        .to_owned(),
                    false => format!(
                        "The one that started later stops; in {seconds} s this process decides"
                    ),
                };
                let shared = self.consumer.shared().into_iter();
                let shared = shared.map(|(topic, ours, all)| {
                    let why = format!(
                        "this process reads {ours} of {all} partitions, and another process of group {group} the others: \
                         {named}. Verdicts are about a part. Stop one of them, or set `topic` in [state], with which a group may \
                         have any number. {ends}"
                    );
                    (format!("group of {topic}"), why)
                });
                shared.collect()
            }
        }
    }
}
