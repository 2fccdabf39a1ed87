//! Which of two processes goes on where there may be only one.
//!
//! A group without a state topic has room for one process, and an `instance` names one process. A
//! second one is a mistake, or it is about to replace the first: a rolling restart overlaps for a
//! while. So nothing happens for a grace period, longer than the session after which a dead process
//! leaves the group. Both processes are not ready during that time. Then the one that started later
//! stops. If the other does not say when it started, this process stops if they share an
//! `instance`, but not if they share only a group.
//!
//! A process learns that its `instance` is used twice when the broker fences it; the broker fences
//! the older member. The fenced process takes the name back after the grace period if it started
//! first. The other is then fenced, finds that it started later, and stops at once. The broker may
//! also fence a process that is alone, when a network failure loses the answer to its join and it
//! joins a second time. No other process shows up then, and it takes the name back too.

use std::time::{Duration, Instant};

use crate::kafka::{Peer, ProcessStart};

/// How often the members of the group are asked for.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// The same after a question that was not answered, for which the engine has waited.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// What the grace period has beyond a session.
const BEYOND_SESSION: Duration = Duration::from_secs(10);

/// What there may be one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// A process of a group without a state topic.
    Group,
    /// A process of an `instance`.
    Instance,
}

/// How long another process may take to end, in a group that waits this long for a silent member.
pub fn grace(session: Duration) -> Duration {
    session + BEYOND_SESSION
}

/// What a process does about another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Wait: the other may be ending, or must end.
    Wait,
    /// Take the name back.
    Return,
    /// Stop, because of this process.
    Stop(Peer),
}

/// Two processes where there may be one.
#[derive(Debug)]
pub struct Contest {
    /// What both claim.
    pub claim: Claim,
    /// The others, as far as they are known.
    pub others: Vec<Peer>,
    /// The brokers have answered the last question. Until they do, others may come and go unseen.
    pub reached: bool,
    grace: Duration,
    since: Instant,
    asked: Option<Instant>,
}

impl Contest {
    /// One that begins now, in a group that waits this long for a silent member.
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

    /// Takes an answer of the group; says what to do.
    pub fn decide(&mut self, others: Vec<Peer>) -> Decision {
        self.others = others;
        self.reached = true;
        let over = self.since.elapsed() >= self.grace;
        let ours = ProcessStart::of_this_process();
        decide(self.claim, ours, &self.others, over)
    }

    /// Whether this process never stops: those that share the group do not say when they started.
    pub fn is_undecidable(&self) -> bool {
        let unknown = self.others.iter().all(|m| m.start.is_none());
        self.claim == Claim::Group && !self.others.is_empty() && unknown
    }

    /// What is left of the grace period.
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

/// What a process that started at `ours` does; `over`: the grace period is.
fn decide(claim: Claim, ours: ProcessStart, others: &[Peer], over: bool) -> Decision {
    let earlier = others.iter().find(|m| m.start.is_some_and(|s| s < ours));
    let unknown = others.iter().find(|m| m.start.is_none());
    match (claim, earlier, unknown) {
        // Who took the name back had waited for as long.
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
            // A clock ten years ahead is later for both.
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
        // Who took the name may not have committed anything yet, or may be gone.
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
