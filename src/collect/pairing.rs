//! Pairs of predictions: the same id scored by two versions of a model.
//!
//! Each counted observation of a model whose versions are compared leaves a *row*: id, version,
//! score and outcome. A row stays with its pane until that is sealed, and then waits for its
//! partner for [`PairShape::wait_ms`] of event time. Rows are paired only after their pane is
//! sealed. So the rows, the choice between two rows of one version, and the pane of a pair depend
//! on event times alone, not on the order of arrival.
//!
//! If several rows have one version and id, the earliest in event time counts, then the one with
//! the lowest score. Later ones within the wait count as duplicates. Two versions that disagree
//! about the outcome form no pair, which is counted too. Segments do not matter: two versions may
//! put one id into two segments.
//!
//! If a champion is configured, pairs without it are not formed. Otherwise the champion of two
//! versions is the one whose first row is older; if both began in one pane, it is the one whose
//! name comes first.
//!
//! A late outcome that revises windows (`revise = true`) does not revise pairs, and is counted
//! ([`PairCounts::unrevised`]). Results about pairs are valid at all times because each outcome is
//! added once, and the weights learnt from earlier panes are applied only to later ones. Another
//! outcome would have changed these weights for every later pane. Replacing outcomes afterwards,
//! mostly positives first, would select the increments by their outcomes. So an interval refers to
//! outcomes as they are known at maturity.
//!
//! If partitions move between processes, each process pairs its own rows. Both records of an id are
//! in one partition if ids are the record keys.
//!
//! Always: there are at most `rows_max` rows, and rows beyond are counted as refused; every row
//! ends as paired, alone or duplicate. A row that formed no pair because outcomes differ ends
//! as alone. Cost: 32 bytes for a row in an open pane, 40 while it waits; for each pane a sort
//! of the waiting rows, which are nearly sorted already.

use super::join::Key;
use crate::stats::fixed::{ONE, Scored};
use crate::stats::sequential::Pair;
use crate::stats::stored::{Stored, checked};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod reset;

/// Most versions that are known by name, over all models of a plan; beyond, the least recently seen
/// is replaced.
const VERSIONS_MAX: usize = 4096;

/// Bit of the outcome in the score of a row.
const POSITIVE: u64 = 1 << 63;

/// How the versions of a model are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairShape {
    /// Indexes of the model's views.
    pub views: Vec<usize>,
    /// Largest distance in event time between the rows of a pair.
    pub wait_ms: i64,
    /// Most rows.
    pub rows_max: usize,
    /// The version to which all others are compared; `None`: each to each.
    pub champion: Option<String>,
}

/// A row of an open pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRow {
    key: [u64; 2],
    /// Slot of the stream.
    slot: u32,
    /// Event time after the start of the pane.
    offset_ms: u32,
    /// Score in units of 2⁻³², with the outcome.
    scored: u64,
}

/// A row of a sealed pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct WaitingRow {
    key: [u64; 2],
    #[serde(deserialize_with = "checked")]
    time_ms: i64,
    scored: u64,
    /// Number of the version.
    version: u32,
    /// Whether it was here when the last pane was sealed.
    old: bool,
    paired: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Version {
    model: String,
    name: String,
    /// Starts of the first and the last pane with rows of this version.
    #[serde(deserialize_with = "checked")]
    first_ms: i64,
    #[serde(deserialize_with = "checked")]
    last_ms: i64,
}

/// What became of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairCounts {
    /// Observed rows, one for each view.
    #[serde(deserialize_with = "checked")]
    pub taken: u64,
    /// Rows that are in a pair.
    #[serde(deserialize_with = "checked")]
    pub paired: u64,
    /// Rows whose partner did not come.
    #[serde(deserialize_with = "checked")]
    pub alone: u64,
    /// Rows whose id and version had come before.
    #[serde(deserialize_with = "checked")]
    pub duplicate: u64,
    /// Pairs that were not formed because their outcomes differ.
    #[serde(deserialize_with = "checked")]
    pub contradicted: u64,
    /// Rows beyond the cap.
    #[serde(deserialize_with = "checked")]
    pub refused: u64,
    /// Observations without id.
    #[serde(deserialize_with = "checked")]
    pub nameless: u64,
    /// Outcomes, one for each view, that came after maturity and are missing from pairs or differ
    /// there.
    #[serde(deserialize_with = "checked")]
    pub unrevised: u64,
}

impl PairCounts {
    fn each(&mut self, o: &PairCounts, f: impl Fn(&mut u64, u64)) {
        f(&mut self.taken, o.taken);
        f(&mut self.paired, o.paired);
        f(&mut self.alone, o.alone);
        f(&mut self.duplicate, o.duplicate);
        f(&mut self.contradicted, o.contradicted);
        f(&mut self.refused, o.refused);
        f(&mut self.nameless, o.nameless);
        f(&mut self.unrevised, o.unrevised);
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &PairCounts) {
        self.each(other, |a, b| *a += b);
    }

    /// What was counted after `before`.
    pub fn since(mut self, before: &PairCounts) -> PairCounts {
        self.each(before, |a, b| *a = a.saturating_sub(b));
        self
    }
}

/// All state, for a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingState {
    /// Rows of open panes: start, index of the view, rows.
    open: Vec<(i64, u32, Vec<OpenRow>)>,
    /// Rows of sealed panes, by view.
    waiting: Vec<Vec<WaitingRow>>,
    versions: Vec<Version>,
    counts: PairCounts,
}

/// Pairs of two versions in one pane.
#[derive(Debug, Clone, Copy)]
pub struct MatchedPairs<'a> {
    /// Start of the pane of the later row of each pair.
    pub start_ms: i64,
    /// Index of the model's view.
    pub view: usize,
    /// Name of the model.
    pub model: &'a str,
    /// The version that the other one is compared to.
    pub champion: &'a str,
    /// The version that is compared.
    pub challenger: &'a str,
    /// In no order.
    pub pairs: &'a [Pair],
}

/// The rows of one model plan, and their pairs.
#[derive(Debug, Clone)]
pub struct Pairing {
    shape: PairShape,
    open: BTreeMap<(i64, u32), Vec<OpenRow>>,
    waiting: Vec<Vec<WaitingRow>>,
    versions: Vec<Version>,
    counts: PairCounts,
    rows: usize,
}

impl Pairing {
    /// A pairing without rows.
    pub fn new(shape: PairShape) -> Pairing {
        Pairing {
            waiting: vec![Vec::new(); shape.views.len()],
            shape,
            open: BTreeMap::new(),
            versions: Vec::new(),
            counts: PairCounts::default(),
            rows: 0,
        }
    }

    /// Adds an observation of a stream in the pane from `start_ms`; `seen` has all views of the
    /// model.
    pub fn observe(&mut self, start_ms: i64, time_ms: i64, slot: usize, key: Key, seen: &[Scored]) {
        for (place, &view) in (0u32..).zip(&self.shape.views) {
            let Some(one) = seen.get(view) else { continue };
            if self.rows >= self.shape.rows_max {
                self.counts.refused += 1;
                continue;
            }
            let outcome = if one.outcome() { POSITIVE } else { 0 };
            self.rows += 1;
            self.counts.taken += 1;
            self.open
                .entry((start_ms, place))
                .or_default()
                .push(OpenRow {
                    key: key.any_version().0,
                    slot: slot as u32,
                    offset_ms: u32::try_from(time_ms - start_ms).unwrap_or(u32::MAX),
                    scored: one.score().fixed() | outcome,
                });
        }
    }

    /// Counts an observation without id.
    pub fn count_nameless(&mut self) {
        self.counts.nameless += 1;
    }

    /// Counts a late outcome; `changed` says for each view of the model whether it would have
    /// changed a pair.
    pub fn count_unrevised(&mut self, changed: impl Iterator<Item = bool>) {
        let of = |(view, changed): (usize, bool)| changed && self.shape.views.contains(&view);
        self.counts.unrevised += changed.enumerate().filter(|c| of(*c)).count() as u64;
    }

    /// Keeps the rows of open panes only for the slots that `keep` picks, because slots are reused.
    pub fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        for rows in self.open.values_mut() {
            let before = rows.len();
            rows.retain(|r| keep(r.slot));
            self.rows -= before - rows.len();
            self.counts.alone += (before - rows.len()) as u64;
        }
    }

    /// Pairs the rows of panes that end at or before `sealed_until_ms`, pane by pane. `name`
    /// returns the model and version of a slot.
    pub fn seal<'n>(
        &mut self,
        sealed_until_ms: i64,
        pane_ms: i64,
        name: impl Fn(u32) -> Option<(&'n str, &'n str)>,
        mut each: impl FnMut(MatchedPairs<'_>),
    ) {
        while let Some(entry) = self.open.first_entry()
            && entry.key().0 + pane_ms <= sealed_until_ms
        {
            let ((start_ms, place), rows) = entry.remove_entry();
            self.rows -= rows.len();
            let rows = self.with_versions(start_ms, &rows, &name);
            self.pair_up(start_ms, place as usize, rows, &mut each);
        }
    }

    /// The rows with the numbers of their versions.
    fn with_versions<'n>(
        &mut self,
        start_ms: i64,
        rows: &[OpenRow],
        name: impl Fn(u32) -> Option<(&'n str, &'n str)>,
    ) -> Vec<WaitingRow> {
        let mut known: BTreeMap<u32, Option<u32>> = BTreeMap::new();
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            let version = *known
                .entry(row.slot)
                .or_insert_with(|| self.version(start_ms, name(row.slot)?));
            match version {
                Some(version) => all.push(WaitingRow {
                    key: row.key,
                    time_ms: start_ms + i64::from(row.offset_ms),
                    scored: row.scored,
                    version,
                    old: false,
                    paired: false,
                }),
                None => self.counts.alone += 1,
            }
        }
        all
    }

    /// The number of a version that has rows in the pane from `start_ms`.
    fn version(&mut self, start_ms: i64, (model, name): (&str, &str)) -> Option<u32> {
        let named = |v: &Version| v.name == name && v.model == model;
        if let Some(at) = self.versions.iter().position(named) {
            self.versions[at].last_ms = start_ms;
            return Some(at as u32);
        }
        let fresh = Version {
            model: model.to_owned(),
            name: name.to_owned(),
            first_ms: start_ms,
            last_ms: start_ms,
        };
        if self.versions.len() < VERSIONS_MAX {
            self.versions.push(fresh);
            return Some((self.versions.len() - 1) as u32);
        }
        let (at, oldest) = self
            .versions
            .iter_mut()
            .enumerate()
            .min_by_key(|(_, v)| v.last_ms)?;
        // Its rows have expired by then: they wait `wait_ms`, and a pane is at most an hour.
        let expired = oldest.last_ms + 2 * self.shape.wait_ms + 86_400_000 < start_ms;
        expired.then(|| {
            *oldest = fresh;
            at as u32
        })
    }

    /// Pairs new rows of a pane with the waiting ones and with each other.
    fn pair_up(
        &mut self,
        start_ms: i64,
        place: usize,
        fresh: Vec<WaitingRow>,
        each: &mut impl FnMut(MatchedPairs<'_>),
    ) {
        let Some(waiting) = self.waiting.get_mut(place) else {
            return;
        };
        let mut all = std::mem::take(waiting);
        self.rows -= all.len();
        let wait_ms = self.shape.wait_ms;
        let counts = &mut self.counts;
        all.retain(|h| {
            let waits = h.time_ms.saturating_add(wait_ms) >= start_ms;
            counts.alone += u64::from(!waits && !h.paired);
            waits
        });
        all.extend(fresh);
        // Both runs are nearly sorted, so the sort is about linear.
        all.sort_by_key(|h| (h.key, h.version, !h.old, h.time_ms, h.scored));
        let before = all.len();
        all.dedup_by_key(|h| (h.key, h.version));
        counts.duplicate += (before - all.len()) as u64;
        let mut found: BTreeMap<(u32, u32), Vec<Pair>> = BTreeMap::new();
        for siblings in all.chunk_by_mut(|a, b| a.key == b.key) {
            for i in 1..siblings.len() {
                for j in 0..i {
                    self.pair(siblings, j, i, &mut found);
                }
            }
            siblings.iter_mut().for_each(|h| h.old = true);
        }
        self.rows += all.len();
        self.waiting[place] = all;
        for (&(champion, challenger), pairs) in &found {
            let [champion, challenger] = [champion, challenger].map(|v| &self.versions[v as usize]);
            each(MatchedPairs {
                start_ms,
                view: self.shape.views[place],
                model: &champion.model,
                champion: &champion.name,
                challenger: &challenger.name,
                pairs,
            });
        }
    }

    /// Forms a pair of two rows of one id, if they qualify.
    fn pair(
        &mut self,
        siblings: &mut [WaitingRow],
        i: usize,
        j: usize,
        found: &mut BTreeMap<(u32, u32), Vec<Pair>>,
    ) {
        let (a, b) = (siblings[i], siblings[j]);
        let near = a.time_ms.abs_diff(b.time_ms) <= self.shape.wait_ms.unsigned_abs();
        if a.old && b.old || !near {
            return;
        }
        let Some((champion, challenger)) = self.sides(a, b) else {
            return;
        };
        if (a.scored ^ b.scored) & POSITIVE != 0 {
            self.counts.contradicted += 1;
            return;
        }
        for at in [i, j] {
            self.counts.paired += u64::from(!siblings[at].paired);
            siblings[at].paired = true;
        }
        let pairs = found
            .entry((champion.version, challenger.version))
            .or_default();
        pairs.push(Pair {
            champion: champion.scored & !POSITIVE,
            challenger: challenger.scored & !POSITIVE,
            outcome: a.scored & POSITIVE != 0,
        });
    }

    /// Champion and challenger of two rows, if their versions are to be compared.
    fn sides(&self, a: WaitingRow, b: WaitingRow) -> Option<(WaitingRow, WaitingRow)> {
        let [x, y] = [a, b].map(|h| &self.versions[h.version as usize]);
        if x.model != y.model {
            return None;
        }
        let first = match &self.shape.champion {
            Some(champion) if x.name == *champion => true,
            Some(champion) if y.name == *champion => false,
            Some(_) => return None,
            None => (x.first_ms, &x.name) < (y.first_ms, &y.name),
        };
        Some(if first { (a, b) } else { (b, a) })
    }

    /// What became of rows.
    pub fn counts(&self) -> PairCounts {
        self.counts
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All state.
    pub fn state(&self) -> PairingState {
        let open = self.open.iter();
        PairingState {
            open: open.map(|(&(ms, view), r)| (ms, view, r.clone())).collect(),
            waiting: self.waiting.clone(),
            versions: self.versions.clone(),
            counts: self.counts,
        }
    }

    /// Restores a state; `false`, without any change, if it does not fit this shape.
    #[must_use]
    pub fn restore(&mut self, s: PairingState) -> bool {
        let views = self.shape.views.len();
        let scored = |scored: u64| scored & !POSITIVE <= ONE;
        let known = |h: &WaitingRow| (h.version as usize) < s.versions.len() && scored(h.scored);
        let open = |(start_ms, place, rows): &(i64, u32, Vec<OpenRow>)| {
            start_ms.is_possible()
                && (*place as usize) < views
                && rows.iter().all(|row| scored(row.scored))
        };
        let valid = s.waiting.len() == views
            && s.open.iter().all(open)
            && s.waiting.iter().flatten().all(known);
        if valid {
            let open = s.open.into_iter();
            self.open = open.map(|(ms, view, r)| ((ms, view), r)).collect();
            self.waiting = s.waiting;
            self.versions = s.versions;
            self.counts = s.counts;
            let waiting: usize = self.waiting.iter().map(Vec::len).sum();
            self.rows = self.open.values().map(Vec::len).sum::<usize>() + waiting;
        }
        valid
    }

    /// Heap bytes.
    pub fn bytes(&self) -> usize {
        let open = self
            .open
            .values()
            .map(|r| r.capacity() * size_of::<OpenRow>());
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|w| w.capacity() * size_of::<WaitingRow>());
        let names = self.versions.iter();
        let names = names.map(|v| size_of::<Version>() + v.model.len() + v.name.len());
        open.chain(waiting).chain(names).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_as_large_as_the_module_says() {
        assert_eq!((size_of::<OpenRow>(), size_of::<WaitingRow>()), (32, 40));
    }
}
