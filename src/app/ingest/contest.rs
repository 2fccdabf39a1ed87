//! Decides which of two processes continues where only one may run.
//!
//! A group without a state topic has room for one process, and an `instance` names one process. A
//! second process is a mistake, or it is about to replace the first, as in a rolling restart. So
//! neither stops during a grace period, longer than the session after which a dead process leaves
//! the group. During that time, neither is ready. Then the process that started later stops. If the
//! start of the other process is unknown, this process stops if they share an `instance`, but not
//! if they share only a group.
//!
//! A process learns that its `instance` is used twice when the broker fences it; the broker fences
//! the older member. The fenced process takes the name back after the grace period if it started
//! first. The other is then fenced, finds that it started later, and stops at once. The broker may
//! also fence a process that is alone, when a network failure loses the answer to its join and it
//! joins a second time. Then no other process appears, and it also takes the name back.

use std::time::{Duration, Instant};

use crate::kafka::{Peer, ProcessStart};

/// Time between two requests for the members of the group.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// Time after a request that was not answered, because the engine has waited for it.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// The grace period minus a session.
const BEYOND_SESSION: Duration = Duration::from_secs(10);

/// What only one process may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// A group without a state topic.
    Group,
    /// An `instance`.
    Instance,
}

/// How long another process may take to end, in a group that waits this long for a silent member.
pub fn grace(session: Duration) -> Duration {
    session + BEYOND_SESSION
}

/// What this process does about another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Wait: the other process may be ending, or must end.
    Wait,
    /// Take the name back.
    Return,
    /// Stop, because of this other process.
    Stop(Peer),
}

/// A contest between processes. Only one of them may run.
#[derive(Debug)]
pub struct Contest {
    /// What they all claim.
    pub claim: Claim,
    /// The others, as far as they are known.
    pub others: Vec<Peer>,
    /// The brokers have answered the last request. Until they do, other processes may come and go
    /// unseen.
    pub reached: bool,
    grace: Duration,
    since: Instant,
    asked: Option<Instant>,
}

impl Contest {
    /// A contest that begins now, in a group that waits this long for a silent member.
    pub fn new(claim: Claim, session: Duration) -> Contest {
        Contest {
            claim,
            others: Vec::new(),
            reached: true,
            grace: grace(session),
            since: Instant::now(),
            asked: None,
        }
    }

    /// Whether it is time to ask for the others again.
    pub fn asks(&mut self) -> bool {
        let pause = if self.reached { ASK_EVERY } else { ASK_AGAIN };
        let due = self.asked.is_none_or(|at| at.elapsed() >= pause);
        if due {
            self.asked = Some(Instant::now());
        }
        due
    }

    /// Takes the members that the group names; returns what to do.
    pub fn decide(&mut self, others: Vec<Peer>) -> Decision {
        self.others = others;
        self.reached = true;
        let over = self.since.elapsed() >= self.grace;
        let ours = ProcessStart::of_this_process();
        decide(self.claim, ours, &self.others, over)
    }

    /// Whether the contest cannot be decided: no other process in the group says when it started.
    pub fn is_undecidable(&self) -> bool {
        let unknown = self.others.iter().all(|m| m.start.is_none());
        self.claim == Claim::Group && !self.others.is_empty() && unknown
    }

    /// The rest of the grace period.
    pub fn left(&self) -> Duration {
        self.grace.saturating_sub(self.since.elapsed())
    }

    /// The others by name.
    pub fn named(&self) -> String {
        if self.others.is_empty() {
            return "another process".to_owned();
        }
        let all: Vec<String> = self.others.iter().map(ToString::to_string).collect();
        all.join(", ")
    }
}

/// What a process that started at `ours` does; `over` says whether the grace period is over.
fn decide(claim: Claim, ours: ProcessStart, others: &[Peer], over: bool) -> Decision {
    let earlier = others.iter().find(|m| m.start.is_some_and(|s| s < ours));
    let unknown = others.iter().find(|m| m.start.is_none());
    match (claim, earlier, unknown) {
        // The other process had waited for the grace period before it took the name back.
        (Claim::Instance, Some(first), _) => Decision::Stop(first.clone()),
        (Claim::Instance, None, Some(other)) if over => Decision::Stop(other.clone()),
        (Claim::Instance, None, None) if over => Decision::Return,
        (Claim::Group, Some(first), _) if over => Decision::Stop(first.clone()),
        _ => Decision::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(at_ms: u64, nonce: u32) -> ProcessStart {
        ProcessStart { at_ms, nonce }
    }

    fn member(start: Option<ProcessStart>) -> Peer {
        Peer { host: None, start }
    }

    #[test]
    fn of_two_starts_one_stops_whatever_the_clocks_say() {
        for (a, b) in [
            (start(5, 1), start(9, 0)),
            (start(5, 1), start(5, 2)),
            // A clock ten years ahead makes a start later for both.
            (start(5, 1), start(300_000_000_000, 1)),
        ] {
            for claim in [Claim::Group, Claim::Instance] {
                let first = decide(claim, a, &[member(Some(b))], true);
                let second = decide(claim, b, &[member(Some(a))], true);
                assert!(!matches!(first, Decision::Stop(_)), "{first:?}");
                assert_eq!(second, Decision::Stop(member(Some(a))));
            }
        }
    }

    #[test]
    fn within_the_grace_nobody_stops_but_who_was_sent_back() {
        let (early, late) = (start(5, 1), start(9, 1));
        let of = |claim, ours, other| decide(claim, ours, &[member(other)], false);
        assert_eq!(of(Claim::Group, late, Some(early)), Decision::Wait);
        assert_eq!(of(Claim::Instance, early, Some(late)), Decision::Wait);
        assert_eq!(of(Claim::Instance, early, None), Decision::Wait);
        let back = of(Claim::Instance, late, Some(early));
        assert_eq!(back, Decision::Stop(member(Some(early))));
        // The process that took the name may not have committed yet, or may be gone.
        assert_eq!(decide(Claim::Instance, early, &[], false), Decision::Wait);
        assert_eq!(decide(Claim::Instance, early, &[], true), Decision::Return);
    }

    #[test]
    fn a_start_that_is_not_known_gives_way_for_a_name_and_waits_for_a_group() {
        let of = |claim| decide(claim, start(5, 1), &[member(None)], true);
        assert_eq!(of(Claim::Instance), Decision::Stop(member(None)));
        assert_eq!(of(Claim::Group), Decision::Wait);

        let mut contest = Contest::new(Claim::Group, Duration::ZERO);
        assert!(!contest.is_undecidable(), "nobody was named yet");
        contest.others = vec![member(None)];
        assert!(contest.is_undecidable());
        contest.others.push(member(Some(start(9, 1))));
        assert!(!contest.is_undecidable());
    }
}
