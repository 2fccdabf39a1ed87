//! The ledger of false alarms: who may stake how much, what was staked, and what that promises.
//!
//! An *account*, not a stream, has a budget: the fleet has one account, and each model with a
//! budget of its own has one. Streams stake capital from their account, and the guarantees of their
//! detectors add up: at any time the expected false alarms of all streams of an account are at most
//! the capital that they have staked, over A, however the streams depend on one another. So the
//! ledger only has to ensure that streams never stake more than the budget hands out.
//!
//! | budget | hands out | a stream stakes |
//! |---|---|---|
//! | `1 per 30d` | a second each second | the seconds of its panes, divided by the number of streams that there may be |
//! | `2000000 events` | 1 for each event | 1 an event, divided by the streams that an event reaches: the views, twice where a roll-up counts it too |
//! | `5% ever` | 1 to each stream | its schedule, whole: the promise is about each stream |
//!
//! *Shares* follow from the configuration alone. So the same events raise the same alarms in
//! whatever order streams appear, whichever process judges them, and however often a topic is read.
//! A share cannot depend on the actual number of streams, which is known only after all have come.
//! So an account declares how many there may be ([`DetectorOptions::streams`], for the fleet by
//! default the most that the engine holds). Each stream stakes an equal part, times its model's
//! weight over the largest weight. With `s_i` the shares and T any stopping time,
//!
//! ```text
//!   E[false alarms by T] ≤ Σᵢ E[staked by i]/A ≤ (Σᵢ sᵢ)·E[seconds by T]/A,   Σᵢ sᵢ ≤ 1
//! ```
//!
//! as long as no more streams live at once than declared. This holds under any dependence and needs
//! no communication: judges that divide streams between them keep one budget. If more streams live
//! than declared, the report shows Σsᵢ, and the bound grows with it. A late stream has the same
//! share as the first. Not knowing the number costs log(N declared/N) in log A: for one stream of
//! 1000 declared, 7 of some 22 nats.
//!
//! A model with a budget of its own gives it to each of its streams.
//!
//! *Calls.* A single stream raises an alarm when its M ≥ A. In addition, e-BH runs over the streams
//! of an account: it *calls* the k streams with the largest M, where k is the largest number such
//! that the k-th M is at least A·max(1, Σsᵢ)/k. A stream whose alarm is not over counts as reaching
//! that. At any time the expected share of false calls among the called streams is at most the
//! stakes over A, since a called stream has 1/k ≤ M/A
//! ([`crate::stats::sequential::multiple_testing`]). So a fault of the whole fleet shows sooner
//! than in each stream. Calls are shown and raise no alarm: the budget does not bound their number.
//!
//! Stakes are never returned: they stay in the account when a stream expires or starts over under
//! other terms. With `ever`, such a stream begins with a new schedule. An account starts over when
//! its budget changes.
//!
//! [`crate::stats::sequential`] proves both bounds.

use super::detector::{Detector, DetectorOptions};
use super::detector_state::DetectorState;
use super::plan::ModelPlan;
use super::stream::StreamId;
use crate::collect::SegmentKind;
use crate::stats::sequential::{Budget, multiple_testing};
use crate::stats::stored::checked;
use serde::{Deserialize, Serialize};

/// The share of its account's budget that each stream of `model` stakes; `kind` says which of the
/// version's streams it is.
pub fn stake_of(options: &DetectorOptions, model: &ModelPlan, kind: SegmentKind) -> f64 {
    // Vector views have no detector.
    let scalar = model.views.iter().filter(|v| !v.is_vector());
    let views = scalar.count().max(1) as f64;
    match options.budget {
        Budget::Ever { .. } => options.weight,
        Budget::PerTime { .. } => options.weight / options.streams,
        Budget::RunLength { .. } => {
            let twice = model.segmenting.rollup && kind != SegmentKind::Unsegmented;
            options.weight / views / if twice { 2.0 } else { 1.0 }
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Account {
    name: String,
    budget: Budget,
    /// Staked by streams that are gone.
    staked: f64,
    /// Alarms of streams that are gone.
    alarms: u64,
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    accounts: Vec<Account>,
    /// By model: its account.
    of_model: Vec<Option<usize>>,
}

/// A ledger in a snapshot: the part that the states of the detectors do not contain.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LedgerState {
    /// Name, budget, and what streams that are gone have staked, with their alarms.
    #[serde(deserialize_with = "checked")]
    accounts: Vec<(String, String, f64, u64)>,
}

/// One account as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct AccountReport {
    /// Its name: `fleet`, or `model:` and the model's.
    pub account: String,
    /// The budget.
    pub budget: Budget,
    /// Streams that live.
    pub streams: u64,
    /// Sum of their shares of the budget, above 1 if more streams live than declared; for a budget
    /// of events, the mean.
    pub share: f64,
    /// Capital staked by all streams that ever drew on it.
    pub staked: f64,
    /// Alarms of all of them.
    pub alarms: u64,
    /// Streams whose alarm is not over.
    pub alarmed: Vec<StreamId>,
    /// Streams that e-BH calls.
    pub called: Vec<StreamId>,
}

impl AccountReport {
    /// The accounts of several ledgers under the same budgets, each added up by name.
    pub fn add_up(all: impl Iterator<Item = AccountReport>) -> Vec<AccountReport> {
        let mut added: Vec<AccountReport> = Vec::new();
        for theirs in all {
            let same = |a: &&mut AccountReport| {
                (a.account.as_str(), a.budget) == (theirs.account.as_str(), theirs.budget)
            };
            let Some(ours) = added.iter_mut().find(same) else {
                added.push(theirs);
                continue;
            };
            ours.share = match ours.budget {
                Budget::RunLength { .. } => {
                    let weighted = |a: &AccountReport| a.share * a.streams as f64;
                    let streams = (ours.streams + theirs.streams).max(1) as f64;
                    (weighted(ours) + weighted(&theirs)) / streams
                }
                Budget::PerTime { .. } | Budget::Ever { .. } => ours.share + theirs.share,
            };
            ours.streams += theirs.streams;
            ours.staked += theirs.staked;
            ours.alarms += theirs.alarms;
            ours.alarmed.extend(theirs.alarmed);
            ours.called.extend(theirs.called);
        }
        added
    }

    /// Upper bound on the expected false alarms from all stakes so far, and on the expected share
    /// of false ones among the streams called now.
    pub fn expected_false_alarms(&self) -> f64 {
        self.staked / self.budget.log_threshold().exp()
    }
}

/// A stream as the ledger sees it.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Index of its model.
    pub model: usize,
    /// Its name.
    pub id: &'a StreamId,
    /// Its detector.
    pub detector: &'a Detector,
}

impl Ledger {
    /// The accounts of these models; nothing staked.
    pub fn new(models: &[ModelPlan]) -> Ledger {
        let mut ledger = Ledger::default();
        for model in models {
            let account = model.judge.detector.as_ref().map(|d| ledger.account(d));
            ledger.of_model.push(account);
        }
        ledger
    }

    fn account(&mut self, options: &DetectorOptions) -> usize {
        let known = self.accounts.iter().position(|a| a.name == options.account);
        known.unwrap_or_else(|| {
            self.accounts.push(Account {
                name: options.account.clone(),
                budget: options.budget,
                staked: 0.0,
                alarms: 0,
            });
            self.accounts.len() - 1
        })
    }

    /// Keeps what a detector that is gone has staked and raised, in the account of that name and
    /// budget, if there is one.
    pub fn keep(&mut self, gone: &DetectorState) {
        self.add(&gone.account, &gone.budget, gone.staked, gone.alarms);
    }

    fn add(&mut self, account: &str, budget: &str, staked: f64, alarms: u64) {
        let mut all = self.accounts.iter_mut();
        let same = |a: &&mut Account| a.name == account && a.budget.to_string() == budget;
        if let Some(account) = all.find(same) {
            account.staked += staked;
            account.alarms += alarms;
        }
    }

    /// What the states of detectors do not contain, for a snapshot.
    pub fn state(&self) -> LedgerState {
        let account = |a: &Account| (a.name.clone(), a.budget.to_string(), a.staked, a.alarms);
        LedgerState {
            accounts: self.accounts.iter().map(account).collect(),
        }
    }

    /// Restores what a snapshot kept, before its streams are restored.
    pub fn restore(&mut self, state: &LedgerState) {
        for (name, budget, staked, alarms) in &state.accounts {
            self.add(name, budget, *staked, *alarms);
        }
    }

    /// Which of these streams are called, in their order.
    pub fn called(&self, entries: &[Entry<'_>]) -> Vec<bool> {
        let mut all = vec![false; entries.len()];
        for (index, account) in self.accounts.iter().enumerate() {
            let of = self.members(index, entries);
            let shares: f64 = of.iter().map(|i| entries[*i].detector.share()).sum();
            let log_a = account.budget.log_threshold()
                + match account.budget {
                    Budget::RunLength { .. } => 0.0,
                    Budget::PerTime { .. } | Budget::Ever { .. } => shares.max(1.0).ln(),
                };
            let worth = |&i: &usize| {
                let detector = entries[i].detector;
                match detector.alarm() {
                    Some(_) => detector.log_worth().max(log_a),
                    None if detector.has_evidence() => detector.log_worth(),
                    None => f64::NEG_INFINITY,
                }
            };
            let worths: Vec<f64> = of.iter().map(worth).collect();
            for i in multiple_testing::shared(&worths, log_a) {
                all[of[i]] = true;
            }
        }
        all
    }

    fn members(&self, account: usize, entries: &[Entry<'_>]) -> Vec<usize> {
        let of = |i: &usize| self.of_model[entries[*i].model] == Some(account);
        (0..entries.len()).filter(of).collect()
    }

    /// The accounts as they stand.
    pub fn report(&self, entries: &[Entry<'_>]) -> Vec<AccountReport> {
        let report = |(index, account): (usize, &Account)| {
            let of = self.members(index, entries);
            let named = |wanted: &dyn Fn(&Detector) -> bool| {
                let all = of.iter().filter(|i| wanted(entries[**i].detector));
                all.map(|i| entries[*i].id.clone()).collect::<Vec<_>>()
            };
            let detectors = || of.iter().map(|i| entries[*i].detector);
            let shares: f64 = detectors().map(Detector::share).sum();
            AccountReport {
                account: account.name.clone(),
                budget: account.budget,
                streams: of.len() as u64,
                share: match account.budget {
                    Budget::RunLength { .. } => shares / of.len().max(1) as f64,
                    _ => shares,
                },
                staked: account.staked + detectors().map(Detector::staked).sum::<f64>(),
                alarms: account.alarms + detectors().map(Detector::alarms).sum::<u64>(),
                alarmed: named(&|d| d.alarm().is_some()),
                called: named(&|d| d.called_ms().is_some()),
            }
        };
        self.accounts.iter().enumerate().map(report).collect()
    }
}
