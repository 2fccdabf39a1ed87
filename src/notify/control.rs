//! The handle for people: silences, acknowledgements and deployments.

use super::dispatch::Dispatcher;
use super::journal::{AlertJournal, Entry};
use crate::alert::{Ack, Deployment, Matcher, Silence, SilenceError, Silences};
use std::sync::Arc;

/// Changes silences, acknowledgements and deployments. Each change is on disk when its call
/// returns.
#[derive(Clone)]
pub struct AlertControl(pub(super) Arc<Dispatcher>);

impl AlertControl {
    /// Silences and acknowledgements.
    pub fn silences(&self) -> Arc<Silences> {
        self.0.silences()
    }

    /// Adds a silence.
    pub fn silence(
        &self,
        matchers: Vec<Matcher>,
        span_ms: (i64, i64),
        by: &str,
        note: &str,
    ) -> Result<Silence, String> {
        let mut journal = self.0.journal.lock();
        let draft = journal.state().silences.draft(matchers, span_ms, by, note);
        let silence = draft.map_err(|e: SilenceError| e.to_string())?;
        self.append(&mut journal, &Entry::Silenced(silence.clone()))?;
        Ok(silence)
    }

    /// Lifts a silence. Returns whether it existed.
    pub fn lift(&self, id: u64) -> Result<bool, String> {
        let mut journal = self.0.journal.lock();
        let known = journal.state().silences.silences.iter().any(|s| s.id == id);
        if known {
            self.append(&mut journal, &Entry::Lifted { id })?;
        }
        Ok(known)
    }

    /// Acknowledges the alert with this fingerprint.
    pub fn acknowledge(&self, fingerprint: &str, ack: Ack) -> Result<(), String> {
        let mut journal = self.0.journal.lock();
        let acceptable = journal.state().silences.acceptable(&ack);
        acceptable.map_err(|e| e.to_string())?;
        let entry = Entry::Acknowledged {
            fingerprint: fingerprint.to_owned(),
            ack,
        };
        self.append(&mut journal, &entry)
    }

    /// Enters a deployment.
    pub fn deploy(&self, deployment: Deployment) -> Result<(), String> {
        let entry = Entry::Deployed(deployment);
        self.append(&mut self.0.journal.lock(), &entry)
    }

    fn append(&self, journal: &mut AlertJournal, entry: &Entry) -> Result<(), String> {
        let written = journal.append(entry, true);
        self.0.publish(journal);
        written.map_err(|e| format!("it is in force but not on disk; a restart would lose it: {e}"))
    }
}
