//! A detector in a snapshot.
//!
//! Floats are stored bit for bit, so a restored detector continues exactly. Signs that are still
//! even, as in cells without events, are left out.
//!
//! A state carries the *terms* under which it was made. Under other terms it is dropped, and the
//! detector starts over.

use super::detector::{Detector, Hold, Missed};
use super::timeliness::Timeliness;
use crate::stats::clusters::RunningClusters;
use crate::stats::sequential::detector::{self, Component, StreamPosition};
use crate::stats::sequential::sequences::{Bin, Gain, Sequences};
use crate::stats::sequential::stream::Alarm;
use crate::stats::sequential::{StreamDetector, mixture};
use crate::stats::stored::checked;
use serde::{Deserialize, Serialize};

/// A state that contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrupt;

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DetectorState {
    /// Account on which it draws.
    pub account: String,
    /// Budget of the account, as text.
    pub budget: String,
    /// All terms under which it was made.
    pub terms: String,
    /// Capital staked since the stream began.
    pub staked: f64,
    /// Capital at stake since the restart.
    at_stake: f64,
    /// Alarms since the stream began.
    #[serde(deserialize_with = "checked")]
    pub alarms: u64,
    /// End of the newest pane taken.
    #[serde(deserialize_with = "checked")]
    pub at_ms: Option<i64>,
    missed: Missed,
    timeliness: Timeliness,
    hold: Option<Hold>,
    #[serde(deserialize_with = "checked")]
    waits_ms: Option<i64>,
    #[serde(deserialize_with = "checked")]
    called_ms: Option<i64>,
    /// Log worth (none before a stake: JSON has no −∞), onset by event and by time.
    components: Vec<(Option<f64>, f64, f64)>,
    /// Signs that are not even, by index of the cell.
    signs: Vec<(u16, [f64; mixture::LEARNT])>,
    #[serde(deserialize_with = "checked")]
    since_restart: u64,
    variance: Vec<f64>,
    bins: Vec<Bin>,
    gains: Vec<Gain>,
    #[serde(deserialize_with = "checked")]
    epoch: u64,
    #[serde(deserialize_with = "checked")]
    events: u64,
    alarm: Option<Alarm>,
    clusters: RunningClusters,
}

impl Detector {
    /// Its state, for a snapshot.
    pub fn state(&self) -> DetectorState {
        let (watch, bets) = (&self.watch, &self.watch.detector);
        let worth = |x: f64| (x != f64::NEG_INFINITY).then_some(x);
        let component = |c: &Component| (worth(c.log_worth), c.onset.event, c.onset.ms);
        let even = [0.5; mixture::LEARNT];
        let signs = (0u16..).zip(&bets.signs);
        let signs = signs.filter(|(_, w)| **w != even).map(|(i, w)| (i, *w));
        DetectorState {
            account: self.options.account.clone(),
            budget: self.options.budget.to_string(),
            terms: self.options.terms(),
            staked: watch.staked,
            at_stake: watch.at_stake,
            alarms: watch.alarms,
            at_ms: self.at_ms,
            missed: self.missed,
            timeliness: self.timeliness.clone(),
            hold: self.hold,
            waits_ms: self.waits_ms,
            called_ms: self.called_ms,
            components: bets.components.iter().map(component).collect(),
            signs: signs.collect(),
            since_restart: bets.events,
            variance: bets.variance.to_vec(),
            bins: watch.sequences.bins.clone(),
            gains: watch.sequences.gains.to_vec(),
            epoch: watch.sequences.epoch,
            events: watch.events,
            alarm: watch.alarm.clone(),
            clusters: watch.clusters.clone(),
        }
    }
}

impl DetectorState {
    fn watch(&self) -> Option<StreamDetector> {
        let component = |&(log_worth, event, ms): &(Option<f64>, f64, f64)| Component {
            log_worth: log_worth.unwrap_or(f64::NEG_INFINITY),
            onset: StreamPosition { event, ms },
        };
        let mut signs = vec![[0.5; mixture::LEARNT]; mixture::CELLS];
        for (index, w) in &self.signs {
            *signs.get_mut(usize::from(*index))? = *w;
        }
        let watch = StreamDetector {
            detector: detector::Detector {
                components: self.components.iter().map(component).collect(),
                signs,
                events: self.since_restart,
                variance: self.variance.as_slice().try_into().ok()?,
            },
            sequences: Sequences {
                bins: self.bins.clone(),
                gains: self.gains.as_slice().try_into().ok()?,
                epoch: self.epoch,
            },
            events: self.events,
            alarms: self.alarms,
            staked: self.staked,
            at_stake: self.at_stake,
            alarm: self.alarm.clone(),
            clusters: self.clusters.clone(),
        };
        watch.is_sound().then_some(watch)
    }
}

impl Detector {
    /// Restores a state; refuses one that contradicts itself. It is an error to call this with a
    /// state of other terms.
    pub fn restore(&mut self, state: &DetectorState) -> Result<(), Corrupt> {
        self.watch = state.watch().ok_or(Corrupt)?;
        self.log_worth = self.watch.log_worth();
        self.at_ms = state.at_ms;
        self.missed = state.missed;
        self.timeliness = state.timeliness.clone();
        self.hold = state.hold;
        self.waits_ms = state.waits_ms;
        self.called_ms = state.called_ms;
        Ok(())
    }
}
