//! Silences and acknowledgements of alerts.
//!
//! A silence suppresses the notifications of the alerts that it matches, until it expires or is
//! lifted. It does not touch the alert itself, whose state moves and is shown. Anyone who was
//! notified that an alert fires is notified of its end, silence or not, because an alert that is
//! never closed stays on a pager. If an alert still fires when its silence ends, the notification
//! is sent then.
//!
//! An acknowledgement says who looks after a firing alert. It belongs to that one firing,
//! identified by the moment at which it began, and is void once the alert ends.
//!
//! A deployment says when a model was replaced or fixed. Alerts rest on data from then on only, and
//! notifications name it.
//!
//! Always: ids are never used twice. At most [`SILENCES_MAX`] silences and [`ACKS_MAX`]
//! acknowledgements are kept; more are refused, and nothing is dropped to make room. Time is an
//! argument.

use super::matcher::{Labels, Matcher};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most silences at once: more than people make, and few enough to be tried on every alert.
pub const SILENCES_MAX: usize = 1_000;
/// Most acknowledgements at once.
pub const ACKS_MAX: usize = 10_000;
/// Most deployments to keep; the oldest make room.
pub const DEPLOYMENTS_MAX: usize = 1_000;
/// Longest silence, 90 days: a permanent one belongs in the configuration.
pub const SILENCE_MS_MAX: i64 = 90 * 86_400_000;
/// Longest name and note.
pub const TEXT_BYTES_MAX: usize = 2_000;

/// Suppresses notifications for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// Its number.
    pub id: u64,
    /// It matches the alerts that satisfy all of these; at least one.
    pub matchers: Vec<Matcher>,
    /// When it was made.
    pub from_ms: i64,
    /// When it expires.
    pub until_ms: i64,
    /// Who made it.
    pub by: String,
    /// Why.
    pub note: String,
}

/// Says who looks after an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// Who.
    pub by: String,
    /// What they say.
    pub note: String,
    /// When they said so.
    pub at_ms: i64,
    /// Start of the firing that it belongs to.
    pub since_ms: i64,
}

/// Says that a model was replaced or fixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployment {
    /// The model.
    pub model: String,
    /// The version, or all of them.
    pub version: Option<String>,
    /// When it was said, by the clock, in ms since 1970.
    pub at_ms: i64,
    /// Who said it.
    pub by: String,
    /// What they said.
    pub note: String,
}

/// Why a silence or acknowledgement is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SilenceError {
    /// It would match every alert.
    #[error(
        "a silence without matcher would keep everything back; write `model=*` if that is meant"
    )]
    NoMatcher,
    /// It would have expired already.
    #[error("the silence would be over already; give it an end in the future")]
    Expired,
    /// Longer than [`SILENCE_MS_MAX`].
    #[error("a silence lasts at most 90 days; leave the model out of the sink's `match` instead")]
    TooLong,
    /// Name or note beyond [`TEXT_BYTES_MAX`], or no name.
    #[error("say who you are, and keep name and note under 2000 bytes")]
    BadText,
    /// There are too many.
    #[error("there are too many already; lift some")]
    Full,
}

/// Everything that was said and still holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silences {
    /// Silences in the order in which they were made.
    pub silences: Vec<Silence>,
    /// Acknowledgements by fingerprint of the alert.
    pub acks: BTreeMap<String, Ack>,
    /// Number of the newest silence.
    pub last: u64,
    /// Deployments, the oldest first.
    #[serde(default)]
    pub deployments: Vec<Deployment>,
}

impl Silences {
    /// A silence as it would be entered, or why it would be refused.
    pub fn draft(
        &self,
        matchers: Vec<Matcher>,
        (from_ms, until_ms): (i64, i64),
        by: &str,
        note: &str,
    ) -> Result<Silence, SilenceError> {
        let alive = self.silences.iter().filter(|s| s.until_ms > from_ms);
        if matchers.is_empty() {
            return Err(SilenceError::NoMatcher);
        } else if until_ms <= from_ms {
            return Err(SilenceError::Expired);
        } else if until_ms.saturating_sub(from_ms) > SILENCE_MS_MAX {
            return Err(SilenceError::TooLong);
        }
        Silences::acceptable_words(by, note)?;
        if alive.count() >= SILENCES_MAX {
            return Err(SilenceError::Full);
        }
        Ok(Silence {
            id: self.last + 1,
            matchers,
            from_ms,
            until_ms,
            by: by.to_owned(),
            note: note.to_owned(),
        })
    }

    /// Enters a silence, and forgets those that are over.
    pub fn enter(&mut self, silence: Silence) {
        self.silences.retain(|s| s.until_ms > silence.from_ms);
        self.last = self.last.max(silence.id);
        self.silences.push(silence);
    }

    /// Lifts a silence; returns whether there was one.
    pub fn lift(&mut self, id: u64) -> bool {
        let before = self.silences.len();
        self.silences.retain(|s| s.id != id);
        self.silences.len() < before
    }

    /// The silence that suppresses an alert with these labels.
    pub fn silence_of(&self, labels: &Labels, now_ms: i64) -> Option<&Silence> {
        let mut alive = self.silences.iter().filter(|s| s.until_ms > now_ms);
        alive.find(|s| Matcher::all(&s.matchers, labels))
    }

    /// Whether an acknowledgement would be taken.
    pub fn acceptable(&self, ack: &Ack) -> Result<(), SilenceError> {
        Silences::acceptable_words(&ack.by, &ack.note)?;
        match self.acks.len() < ACKS_MAX {
            true => Ok(()),
            false => Err(SilenceError::Full),
        }
    }

    /// Enters an acknowledgement in place of one before it.
    pub fn acknowledge(&mut self, fingerprint: String, ack: Ack) {
        self.acks.insert(fingerprint, ack);
    }

    /// Whether name and note of a person would be taken.
    pub fn acceptable_words(by: &str, note: &str) -> Result<(), SilenceError> {
        match !by.trim().is_empty() && by.len().max(note.len()) <= TEXT_BYTES_MAX {
            true => Ok(()),
            false => Err(SilenceError::BadText),
        }
    }

    /// Enters a deployment.
    pub fn deploy(&mut self, deployment: Deployment) {
        let over = (self.deployments.len() + 1).saturating_sub(DEPLOYMENTS_MAX);
        self.deployments.drain(..over);
        self.deployments.push(deployment);
    }

    /// The newest deployment of a version of a model.
    pub fn deployment_of(&self, model: &str, version: &str) -> Option<&Deployment> {
        let of =
            |d: &&Deployment| d.model == model && d.version.as_ref().is_none_or(|v| v == version);
        self.deployments.iter().rev().find(of)
    }

    /// Who looks after the alert that has fired since then.
    pub fn ack_of(&self, fingerprint: &str, since_ms: Option<i64>) -> Option<&Ack> {
        let ack = self.acks.get(fingerprint)?;
        (Some(ack.since_ms) == since_ms).then_some(ack)
    }

    /// Forgets who looked after an alert that has ended.
    pub fn ended(&mut self, fingerprint: &str) {
        self.acks.remove(fingerprint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(model: &str) -> Labels {
        [model, "", "", "binary", "page"].map(str::to_owned)
    }

    fn matcher(text: &str) -> Vec<Matcher> {
        vec![text.parse().expect("a matcher")]
    }

    #[test]
    fn a_silence_holds_until_it_expires_or_is_lifted() {
        let mut silences = Silences::default();
        let first = silences.draft(matcher("model=a"), (10, 20), "ann", "deploy");
        silences.enter(first.expect("sound"));
        assert!(silences.silence_of(&labels("a"), 19).is_some());
        assert!(silences.silence_of(&labels("b"), 19).is_none());
        assert!(silences.silence_of(&labels("a"), 20).is_none());
        let second = silences.draft(matcher("model=*"), (30, 40), "ann", "");
        silences.enter(second.expect("sound"));
        assert_eq!(silences.silences.len(), 1, "what is over is forgotten");
        assert_eq!(silences.silences[0].id, 2, "a number is not used twice");
        assert!(silences.lift(2) && !silences.lift(2));
        assert!(silences.silence_of(&labels("a"), 31).is_none());
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let silences = Silences::default();
        let draft = |m: Vec<Matcher>, until, by: &str| silences.draft(m, (0, until), by, "");
        assert_eq!(draft(Vec::new(), 5, "a"), Err(SilenceError::NoMatcher));
        for (until, by, error) in [
            (0, "a", SilenceError::Expired),
            (SILENCE_MS_MAX + 1, "a", SilenceError::TooLong),
            (5, " ", SilenceError::BadText),
        ] {
            assert_eq!(draft(matcher("model=a"), until, by), Err(error));
        }
    }

    #[test]
    fn an_acknowledgement_is_of_one_firing() {
        let mut silences = Silences::default();
        let ack = Ack {
            by: "ann".to_owned(),
            note: "rolling back".to_owned(),
            at_ms: 7,
            since_ms: 5,
        };
        assert!(silences.acceptable(&ack).is_ok());
        silences.acknowledge("f".to_owned(), ack);
        assert!(silences.ack_of("f", Some(5)).is_some());
        assert!(silences.ack_of("f", Some(9)).is_none(), "it fired again");
        silences.ended("f");
        assert!(silences.ack_of("f", Some(5)).is_none());
    }
}
