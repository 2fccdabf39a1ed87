//! The ledger of false alarms: who may stake how much, what was staked, and what that promises.
//!
//! A budget is kept by an *account*, not by a stream: that of the fleet, and one for each model
//! with a budget of its own. Streams stake out of their account, and the guarantee of the detector
//! adds up: at any time the expected false alarms of all streams of an account are at most the
//! capital that they have staked, over A, however the streams depend on one another. So all there
//! is to see to is that they never stake more than the budget hands out.
//!
//! | budget | hands out | a stream stakes |
//! |---|---|---|
//! | `1 per 30d` | a second each second | its share of the seconds of its panes; shares of streams that live at once sum to at most 1 |
//! | `2000000 events` | 1 for each event | 1 an event, divided by the streams that an event reaches: the views, twice with a roll-up |
//! | `5% ever` | 1 in all | its share of the schedule; shares of all streams that ever lived sum to at most 1 |
//!
//! *Shares* of time and of `ever` are fixed when a stream begins, as number i = 0, 1, … of its
//! model, by a series that sums to 1 whatever the number of streams (views of one subject divide
//! its share):
//!
//! ```text
//!   γᵢ = ⅕ Σ_S S/((i + S)(i + S + 1)),     S = 1, 8, 64, 512, 4096
//! ```
//!
//! Each term telescopes to 1 and is flat up to i = S. Nobody has to say how many streams there will
//! be, and what that costs is the logarithm of a share: against equal shares of a number known
//! beforehand at most 3 in log A, for any number up to 10,000, where log A is 15 and more (tested
//! below). A number is free again when its stream is let go; under `ever` never. Models of one
//! account divide it by weight; a weight of events is that over the largest. Parts follow the
//! configuration from the next stake on; under `ever` those that were staked before stay staked, so
//! where models come and go each should have a budget of its own.
//!
//! *Calls.* An alarm is M ≥ A of a stream alone. Beside it stands e-BH over the streams of an
//! account: the k largest are *called*, k the largest number with the k-th worth at least A/k,
//! where a stream whose alarm is not over counts as worth A. Of the streams called at any time the
//! expected share of false ones is at most what was staked, over A, since a called stream has 1/k ≤
//! M/A ([`crate::stats::sequential::fleet`]). So a fault of the whole fleet is seen sooner than in
//! each stream. Calls are shown and raise no alarm: their number is not bounded by the budget.
//!
//! What is staked is never taken back: it stays in the account when a stream is let go or starts
//! over under other terms. An account starts over when its budget changes. Each process has a
//! ledger of its own; where several share the partitions, each keeps the budget for its own
//! streams.
//!
//! Source: `sequential.md` §§2, 7.

use super::detector::{Detector, DetectorOptions};
use super::plan::ModelPlan;
use super::stream::StreamId;
use crate::stats::sequential::{Budget, fleet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// S of the series of shares.
const SCALES: [f64; 5] = [1.0, 8.0, 64.0, 512.0, 4096.0];

/// Share of stream number `i` of a model.
pub fn share_of(i: u64) -> f64 {
    let i = i as f64;
    let term = |s: f64| s / ((i + s) * (i + s + 1.0));
    SCALES.into_iter().map(term).sum::<f64>() / SCALES.len() as f64
}

/// What a stream of `model` with this number stakes of what its account's budget hands out.
pub fn stake_of(options: &DetectorOptions, model: &ModelPlan, number: u64) -> f64 {
    // Vector views have no detector.
    let scalar = model.views.iter().filter(|v| !v.is_vector());
    let views = scalar.count().max(1) as f64;
    let part = options.part / views;
    match options.budget {
        Budget::RunLength { .. } if model.segmenting.rollup => part / 2.0,
        Budget::RunLength { .. } => part,
        Budget::PerTime { .. } | Budget::Ever { .. } => part * share_of(number),
    }
}

/// One account.
#[derive(Debug, Clone, PartialEq)]
struct Account {
    name: String,
    budget: Budget,
    /// Staked by streams that are gone.
    staked: f64,
    /// Alarms of streams that are gone.
    alarms: u64,
}

/// Numbers of the streams of a model.
#[derive(Debug, Clone, Default, PartialEq)]
struct Numbers {
    /// Those of living streams.
    used: BTreeSet<u64>,
    /// Above all that were ever given.
    next: u64,
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    accounts: Vec<Account>,
    /// By model: its account.
    of_model: Vec<Option<usize>>,
    /// By model.
    numbers: Vec<Numbers>,
}

/// A ledger in a snapshot: what is not said by the detectors of the streams.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LedgerState {
    /// Name, budget, and what streams that are gone have staked, with their alarms.
    accounts: Vec<(String, String, f64, u64)>,
    /// By name of the model's plan the number above all that were given.
    next: Vec<(String, u64)>,
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
    /// Sum of what they stake of what the budget hands out; of events, the mean.
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
    /// Most false alarms to expect of what was staked so far, and the largest expected share of
    /// false ones among the streams called now.
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
        let mut ledger = Ledger {
            numbers: vec![Numbers::default(); models.len()],
            ..Ledger::default()
        };
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

    /// A number for a stream that begins, the least that is free.
    pub fn open(&mut self, model: usize) -> u64 {
        let ever = self.is_ever(model);
        let numbers = &mut self.numbers[model];
        let free = (0..).zip(&numbers.used).find(|&(i, &used)| i != used);
        let number = match (ever, free) {
            (true, _) => numbers.next,
            (false, Some((i, _))) => i,
            (false, None) => numbers.used.len() as u64,
        };
        numbers.used.insert(number);
        numbers.next = numbers.next.max(number + 1);
        number
    }

    /// Gives a stream that comes back its number, or another where that is taken.
    pub fn reopen(&mut self, model: usize, number: u64) -> u64 {
        let numbers = &mut self.numbers[model];
        if !numbers.used.insert(number) {
            return self.open(model);
        }
        numbers.next = numbers.next.max(number + 1);
        number
    }

    /// A stream that starts over under other terms: it keeps its number, but under `ever` pays with
    /// a new one.
    pub fn renew(&mut self, model: usize, number: u64) -> u64 {
        if !self.is_ever(model) {
            return number;
        }
        self.numbers[model].used.remove(&number);
        self.open(model)
    }

    fn is_ever(&self, model: usize) -> bool {
        let account = self.of_model[model].map(|a| &self.accounts[a]);
        account.is_some_and(|a| matches!(a.budget, Budget::Ever { .. }))
    }

    /// A stream is let go; its number is free.
    pub fn close(&mut self, model: usize, number: u64) {
        self.numbers[model].used.remove(&number);
    }

    /// Keeps what a detector that is no more has staked and raised, in the account of that name and
    /// budget, if there is one.
    pub fn keep(&mut self, account: &str, budget: &str, staked: f64, alarms: u64) {
        let mut all = self.accounts.iter_mut();
        let same = |a: &&mut Account| a.name == account && a.budget.to_string() == budget;
        if let Some(account) = all.find(same) {
            account.staked += staked;
            account.alarms += alarms;
        }
    }

    /// For a snapshot.
    pub fn state(&self, models: &[ModelPlan]) -> LedgerState {
        let account = |a: &Account| (a.name.clone(), a.budget.to_string(), a.staked, a.alarms);
        let next = models.iter().zip(&self.numbers);
        LedgerState {
            accounts: self.accounts.iter().map(account).collect(),
            next: next.map(|(m, n)| (m.name.clone(), n.next)).collect(),
        }
    }

    /// Puts back what a snapshot kept, before its streams come back.
    pub fn restore(&mut self, models: &[ModelPlan], state: &LedgerState) {
        for (name, budget, staked, alarms) in &state.accounts {
            self.keep(name, budget, *staked, *alarms);
        }
        for (model, numbers) in models.iter().zip(&mut self.numbers) {
            let next = state.next.iter().find(|(name, _)| *name == model.name);
            numbers.next = next.map_or(0, |(_, next)| *next);
        }
    }

    /// Which of these streams are called, in their order.
    pub fn called(&self, entries: &[Entry<'_>]) -> Vec<bool> {
        let mut all = vec![false; entries.len()];
        for (index, account) in self.accounts.iter().enumerate() {
            let log_a = account.budget.log_threshold();
            let of = self.members(index, entries);
            let worth = |&i: &usize| {
                let detector = entries[i].detector;
                let least = match detector.alarm() {
                    Some(_) => log_a,
                    None => f64::NEG_INFINITY,
                };
                detector.log_worth().max(least)
            };
            let worths: Vec<f64> = of.iter().map(worth).collect();
            for i in fleet::shared(&worths, log_a) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_one_and_cost_little_against_equal_ones() {
        let all: f64 = (0..2_000_000).map(share_of).sum();
        assert!(all < 1.0 && all > 0.998, "{all}");
        for n in [1u64, 2, 5, 10, 30, 100, 300, 1000, 3000, 10_000] {
            let worst = share_of(n - 1) * n as f64;
            assert!(-worst.ln() < 3.0, "{n}: {}", -worst.ln());
        }
    }
}
