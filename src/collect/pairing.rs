//! Pairs: the same id scored by two versions of a model.
//!
//! Each counted observation of a model whose versions are compared leaves a *row*: id, version, score, outcome. A row lies
//! with its pane until that seals, and then waits for its partner for [`PairShape::wait_ms`] of event time. Nothing is
//! paired before its pane is sealed: which rows there are, which of two of one version counts, and in which pane
//! a pair falls then depends on event times alone, not on the order of arrival.
//!
//! Of several rows of one version and id the earliest in event time counts (then the lowest score); what comes again
//! within the wait is counted as a duplicate. Records of two versions that disagree about the outcome are no pair, and
//! counted. Segments do not matter: two versions may put one id in two segments.
//!
//! Which of two versions is the champion: the one that is configured, and then pairs without it are not formed; else
//! the one whose first row is older, and of two that began in one pane the one whose name comes first.
//!
//! A late outcome that revises its prediction's windows (`revise = true`) does not revise its pairs, and is counted
//! ([`PairCounts::unrevised`]). What is said of pairs is valid at all times because each outcome is added once, and what is
//! learnt of the panes before is used on the panes after: another outcome would have taught every later pane
//! something else, and to replace outcomes as they come after one has looked, positives first as they mostly do, is to choose
//! increments by their outcome. So an interval is about outcomes as they are known at maturity.
//!
//! Where partitions move between processes, each pairs its own rows: both records of an id lie in one where ids are keys.
//!
//! Always: rows held are at most the cap, and what it refuses is counted; every row taken ends as paired, alone, duplicate or
//! contradicted. Cost: 32 bytes a row in an open pane, 40 while it waits; a sort of the rows that wait, nearly
//! sorted already, at each pane.

use super::join::Key;
use crate::stats::fixed::Scored;
use crate::stats::sequential::Pair;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Versions, over all models of a plan, that are known by name; beyond, those go that were not seen for longest.
const VERSIONS_MAX: usize = 4096;

/// The outcome in a row's score.
const POSITIVE: u64 = 1 << 63;

/// How the versions of a model are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairShape {
    /// Which of the model's views.
    pub views: Vec<usize>,
    /// How far apart in event time the rows of a pair may be.
    pub wait_ms: i64,
    /// Most rows held.
    pub rows_max: usize,
    /// The version to which all others are compared; else each to each.
    pub champion: Option<String>,
}

/// A row of an open pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    key: [u64; 2],
    /// Slot of its subject.
    slot: u32,
    /// Event time after the begin of the pane.
    offset_ms: u32,
    /// Score in units of 2⁻³², with the outcome.
    scored: u64,
}

/// A row of a sealed pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    key: [u64; 2],
    time_ms: i64,
    scored: u64,
    /// Number of its version.
    version: u32,
    /// It was here when the last pane was sealed.
    old: bool,
    /// It is in a pair.
    paired: bool,
}

/// A version that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Version {
    model: String,
    name: String,
    /// Begin of the first pane and of the last that has rows of it.
    first_ms: i64,
    last_ms: i64,
}

/// Where rows went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairCounts {
    /// Rows taken, one for each view.
    pub taken: u64,
    /// Rows that are in a pair.
    pub paired: u64,
    /// Rows that waited in vain.
    pub alone: u64,
    /// Rows of an id and version that was there already.
    pub duplicate: u64,
    /// Pairs that disagreed about the outcome, and were not formed.
    pub contradicted: u64,
    /// Rows that the cap refused.
    pub refused: u64,
    /// Observations without id.
    pub nameless: u64,
    /// Outcomes, one for each view, that came after maturity and are in no pair, or are another one there.
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

    /// Adds others.
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
    /// Rows of open panes: begin, place of the view, rows.
    open: Vec<(i64, u32, Vec<Row>)>,
    /// Rows of sealed panes, by view.
    waiting: Vec<Vec<Held>>,
    versions: Vec<Version>,
    counts: PairCounts,
}

/// Pairs of one pane.
#[derive(Debug, Clone, Copy)]
pub struct Matches<'a> {
    /// Begin of the pane in which the later row of each lies.
    pub start_ms: i64,
    /// Index of the model's view.
    pub view: usize,
    /// Name of the model.
    pub model: &'a str,
    /// The version compared to.
    pub champion: &'a str,
    /// The version compared.
    pub challenger: &'a str,
    /// In no order.
    pub pairs: &'a [Pair],
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Pairing {
    shape: PairShape,
    open: BTreeMap<(i64, u32), Vec<Row>>,
    waiting: Vec<Vec<Held>>,
    versions: Vec<Version>,
    counts: PairCounts,
    /// Rows held.
    rows: usize,
}

impl Pairing {
    /// Nothing yet.
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

    /// Takes an observation of a subject in the pane from `start_ms`; `seen` has all views of the model.
    pub fn take(&mut self, start_ms: i64, time_ms: i64, slot: usize, key: Key, seen: &[Scored]) {
        for (place, &view) in (0u32..).zip(&self.shape.views) {
            let Some(one) = seen.get(view) else { continue };
            if self.rows >= self.shape.rows_max {
                self.counts.refused += 1;
                continue;
            }
            let outcome = if one.outcome() { POSITIVE } else { 0 };
            self.rows += 1;
            self.counts.taken += 1;
            self.open.entry((start_ms, place)).or_default().push(Row {
                key: key.any_version().0,
                slot: slot as u32,
                offset_ms: u32::try_from(time_ms - start_ms).unwrap_or(u32::MAX),
                scored: one.score().fixed() | outcome,
            });
        }
    }

    /// Counts an observation without id.
    pub fn pass(&mut self) {
        self.counts.nameless += 1;
    }

    /// Counts a late outcome; `changed` says for each view of the model whether it would have changed a pair.
    pub fn miss(&mut self, changed: impl Iterator<Item = bool>) {
        let of = |(view, changed): (usize, bool)| changed && self.shape.views.contains(&view);
        self.counts.unrevised += changed.enumerate().filter(|c| of(*c)).count() as u64;
    }

    /// Forgets the rows of open panes of subjects for which `keep` says no: their slots may be another's next.
    pub fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        for rows in self.open.values_mut() {
            let before = rows.len();
            rows.retain(|r| keep(r.slot));
            self.rows -= before - rows.len();
            self.counts.alone += (before - rows.len()) as u64;
        }
    }

    /// Pairs what lies in panes that end at or before `line_ms`, one pane after the other. `name` tells model and
    /// version of a slot.
    pub fn seal<'n>(
        &mut self,
        line_ms: i64,
        pane_ms: i64,
        name: impl Fn(u32) -> Option<(&'n str, &'n str)>,
        mut each: impl FnMut(Matches<'_>),
    ) {
        while let Some(entry) = self.open.first_entry()
            && entry.key().0 + pane_ms <= line_ms
        {
            let ((start_ms, place), rows) = entry.remove_entry();
            self.rows -= rows.len();
            let fresh = self.named(start_ms, &rows, &name);
            self.match_up(start_ms, place as usize, fresh, &mut each);
        }
    }

    /// Rows with their versions.
    fn named<'n>(
        &mut self,
        start_ms: i64,
        rows: &[Row],
        name: impl Fn(u32) -> Option<(&'n str, &'n str)>,
    ) -> Vec<Held> {
        let mut known: BTreeMap<u32, Option<u32>> = BTreeMap::new();
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            let version = *known
                .entry(row.slot)
                .or_insert_with(|| self.version(start_ms, name(row.slot)?));
            match version {
                Some(version) => all.push(Held {
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
        // Not one that may have rows: a pane is an hour at most, and waits are added to it.
        let gone = oldest.last_ms + 2 * self.shape.wait_ms + 86_400_000 < start_ms;
        gone.then(|| {
            *oldest = fresh;
            at as u32
        })
    }

    fn match_up(
        &mut self,
        start_ms: i64,
        place: usize,
        fresh: Vec<Held>,
        each: &mut impl FnMut(Matches<'_>),
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
        // Two runs that are sorted or nearly so: the sort is linear in them.
        all.sort_by_key(|h| (h.key, h.version, !h.old, h.time_ms, h.scored));
        let before = all.len();
        all.dedup_by_key(|h| (h.key, h.version));
        counts.duplicate += (before - all.len()) as u64;
        let mut found: BTreeMap<(u32, u32), Vec<Pair>> = BTreeMap::new();
        for kin in all.chunk_by_mut(|a, b| a.key == b.key) {
            for i in 1..kin.len() {
                for j in 0..i {
                    self.meet(kin, j, i, &mut found);
                }
            }
            kin.iter_mut().for_each(|h| h.old = true);
        }
        self.rows += all.len();
        self.waiting[place] = all;
        for (&(champion, challenger), pairs) in &found {
            let [champion, challenger] = [champion, challenger].map(|v| &self.versions[v as usize]);
            each(Matches {
                start_ms,
                view: self.shape.views[place],
                model: &champion.model,
                champion: &champion.name,
                challenger: &challenger.name,
                pairs,
            });
        }
    }

    /// Makes a pair of two rows of one id, if they are one.
    fn meet(
        &mut self,
        kin: &mut [Held],
        i: usize,
        j: usize,
        found: &mut BTreeMap<(u32, u32), Vec<Pair>>,
    ) {
        let (a, b) = (kin[i], kin[j]);
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
            self.counts.paired += u64::from(!kin[at].paired);
            kin[at].paired = true;
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
    fn sides(&self, a: Held, b: Held) -> Option<(Held, Held)> {
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

    /// Where rows went.
    pub fn counts(&self) -> PairCounts {
        self.counts
    }

    /// Rows held.
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

    /// Puts back a state; `false`, and nothing is put back, where it is not one of this shape.
    #[must_use]
    pub fn restore(&mut self, s: PairingState) -> bool {
        let views = self.shape.views.len();
        let known = |h: &Held| (h.version as usize) < s.versions.len();
        let sound = s.waiting.len() == views
            && s.open.iter().all(|(_, place, _)| (*place as usize) < views)
            && s.waiting.iter().flatten().all(known);
        if sound {
            let open = s.open.into_iter();
            self.open = open.map(|(ms, view, r)| ((ms, view), r)).collect();
            self.waiting = s.waiting;
            self.versions = s.versions;
            self.counts = s.counts;
            let waiting: usize = self.waiting.iter().map(Vec::len).sum();
            self.rows = self.open.values().map(Vec::len).sum::<usize>() + waiting;
        }
        sound
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let open = self.open.values().map(|r| r.capacity() * size_of::<Row>());
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|w| w.capacity() * size_of::<Held>());
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
        assert_eq!((size_of::<Row>(), size_of::<Held>()), (32, 40));
    }
}
