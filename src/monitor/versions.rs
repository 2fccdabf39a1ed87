//! All versions with vector views of one holder, in the order in which they began.
//!
//! There may be as many versions as streams, and each tick and each sealed pane looks versions up.
//! So a hash table of places finds a version by its borrowed name, and the number of versions with
//! cells is kept.

use super::version::Version;
use super::views::{VersionName, vectors};
use crate::judge::{ModelPlan, Plan};
use crate::stats::view::View;
use crate::window::EmptySums;
use hashbrown::HashTable;
use std::ops::{Deref, Index, IndexMut};

/// See the module.
#[derive(Debug, Clone)]
pub struct Versions<S> {
    all: Vec<Version<S>>,
    /// Places of the versions, by name; of two with one name the first.
    table: HashTable<usize>,
    /// Versions that have cells.
    with_cells: usize,
}

impl<S> Default for Versions<S> {
    fn default() -> Versions<S> {
        Versions {
            all: Vec::new(),
            table: HashTable::new(),
            with_cells: 0,
        }
    }
}

impl<S> Deref for Versions<S> {
    type Target = [Version<S>];

    fn deref(&self) -> &[Version<S>] {
        &self.all
    }
}

impl<S> Index<usize> for Versions<S> {
    type Output = Version<S>;

    fn index(&self, at: usize) -> &Version<S> {
        &self.all[at]
    }
}

/// To change what a version holds. The slice is not lent: in another order the table would be
/// wrong.
impl<S> IndexMut<usize> for Versions<S> {
    fn index_mut(&mut self, at: usize) -> &mut Version<S> {
        &mut self.all[at]
    }
}

impl<S> Versions<S> {
    /// The same of a place that may be vacant.
    pub fn get_mut(&mut self, at: usize) -> Option<&mut Version<S>> {
        self.all.get_mut(at)
    }

    /// All versions, in order, to change what they hold.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Version<S>> {
        self.all.iter_mut()
    }

    /// The place of the version of a name.
    pub fn find(&self, name: VersionName<'_>) -> Option<usize> {
        let is = |at: &usize| self.all[*at].name() == name;
        self.table.find(name.hash(), is).copied()
    }

    /// Adds a version after all others; returns its place.
    pub fn push(&mut self, version: Version<S>) -> usize {
        self.all.push(version);
        self.enter(self.all.len() - 1);
        self.all.len() - 1
    }

    /// Begins a version whose name is new, if its model has vector views; without cells if the cap
    /// on versions is reached.
    pub fn begin(
        &mut self,
        plan: &Plan,
        name: VersionName<'_>,
        sink: impl Fn(&ModelPlan, View, EmptySums) -> S,
    ) -> Option<usize> {
        let model = plan.serves(name.model)?;
        vectors(&plan.models[model]).next()?;
        let cells_max = match self.cells_left(plan) {
            0 => 0,
            _ => plan.caps.vector_cells_max,
        };
        Some(self.push(Version::new(plan, model, name, cells_max, sink)))
    }

    /// Keeps the versions for which `keep` returns `true`; returns whether one has gone.
    pub fn retain(&mut self, keep: impl FnMut(&mut Version<S>) -> bool) -> bool {
        let before = self.all.len();
        self.all.retain_mut(keep);
        let left = self.all.len() < before;
        if left {
            self.table.clear();
            self.with_cells = 0;
            (0..self.all.len()).for_each(|at| self.enter(at));
        }
        left
    }

    /// Gives cells to versions that began when none were left.
    pub fn admit(&mut self, plan: &Plan, cap: impl Fn(&mut S, usize)) {
        let left = self.cells_left(plan);
        let without = self.all.iter_mut().filter(|v| !v.has_cells());
        for version in without.take(left) {
            for view in &mut version.views {
                view.panes.set_cells_max(plan.caps.vector_cells_max);
                cap(&mut view.sink, plan.caps.vector_cells_max);
            }
            self.with_cells += usize::from(version.has_cells());
        }
    }

    /// Enters the version of a place into the table, and counts it.
    fn enter(&mut self, at: usize) {
        let name = |at: &usize| self.all[*at].name();
        let ours = name(&at);
        let is = |other: &usize| name(other) == ours;
        let hash_of = |other: &usize| name(other).hash();
        self.table.entry(ours.hash(), is, hash_of).or_insert(at);
        self.with_cells += usize::from(self.all[at].has_cells());
    }

    /// How many more versions may have cells.
    fn cells_left(&self, plan: &Plan) -> usize {
        let most = plan.caps.vector_versions_max;
        most.saturating_sub(self.with_cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::{LastSeen, Segmenting};
    use crate::judge::JudgeOptions;
    use crate::monitor::activity::Activity;
    use crate::monitor::vectors::Vectors;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::rng::Rng;
    use crate::window::{Ladder, WindowSpec};

    /// `m` has vector views, `s` has none, and no other model is watched.
    fn plan() -> Plan {
        let model = |name: &str, views| ModelPlan {
            name: name.to_owned(),
            segmenting: Segmenting::default(),
            views,
            classes: ["a", "b", "c"].map(str::to_owned).to_vec(),
            ladder: Ladder::new(vec![WindowSpec::time("6s", 6_000)], 0).expect("a ladder"),
            grid: Grid::new(Axis::Linear, 2),
            judge: JudgeOptions::plain(),
        };
        Plan {
            models: vec![
                model("m", vec![View::TopLabel, View::Full, View::Kernel]),
                model("s", vec![View::TopLabel]),
            ],
            ..Plan::default()
        }
    }

    /// Names of all lengths; most are of the model with vector views.
    fn name(version: &str, u: f64) -> VersionName<'_> {
        VersionName {
            model: match u {
                u if u < 0.05 => "s",
                u if u < 0.1 => "none",
                _ => "m",
            },
            version,
            segmented: u > 0.5,
        }
    }

    #[test]
    fn versions_are_found_and_come_to_cells_as_by_a_scan_whatever_came_and_went() {
        let texts = ["", "7", "1.2.0", "a-version-of-more-than-sixteen-bytes"];
        let texts = texts
            .iter()
            .flat_map(|t| (0..40).map(move |i| format!("{t}{i}")));
        let texts: Vec<String> = texts.collect();
        let (mut plan, mut rng) = (plan(), Rng::new(7));
        let mut versions: Versions<()> = Versions::default();
        // The names in order, each with whether it has cells.
        let mut scanned: Vec<(VersionName<'_>, bool)> = Vec::new();
        let (mut capped, mut admitted) = (0, 0);
        for n in 0..6_000 {
            let name = name(&texts[n * 7 % texts.len()], rng.uniform());
            let place = scanned.iter().position(|(other, _)| *other == name);
            assert_eq!(versions.find(name), place, "{name:?}");
            let with_cells = scanned.iter().filter(|(_, cells)| *cells).count();
            assert_eq!(versions.with_cells, with_cells);
            if place.is_none() {
                let cells = with_cells < plan.caps.vector_versions_max;
                let begun = versions.begin(&plan, name, |_, _, _| ());
                assert_eq!(begun, (name.model == "m").then_some(scanned.len()));
                scanned.extend(begun.map(|_| (name, cells)));
                capped += u32::from(!cells);
            }
            if rng.uniform() < 0.02 {
                let share = rng.uniform().powi(3);
                let stays = scanned.iter().map(|_| rng.uniform() >= share);
                let stays: Vec<bool> = stays.collect();
                let (mut ours, mut theirs) = (stays.iter(), stays.iter());
                let left = versions.retain(|_| *ours.next().expect("as many"));
                scanned.retain(|_| *theirs.next().expect("as many"));
                assert_eq!(left, stays.contains(&false));
                // A plan that is loaded again may have another cap.
                plan.caps.vector_versions_max = (rng.uniform() * 80.0) as usize;
                versions.admit(&plan, |(), _| ());
                let with_cells = scanned.iter().filter(|(_, cells)| *cells).count();
                let room = plan.caps.vector_versions_max.saturating_sub(with_cells);
                for (_, cells) in scanned.iter_mut().filter(|v| !v.1).take(room) {
                    *cells = true;
                    admitted += 1;
                }
            }
            let all = versions.iter().map(|v| (v.name(), v.has_cells()));
            assert!(all.eq(scanned.iter().copied()), "{n}");
        }
        assert!(capped > 100 && admitted > 100, "{capped} {admitted}");
    }

    #[test]
    fn no_caller_can_change_the_order() {
        /// Answers by the inherent constant where there is one.
        struct Lends<T>(std::marker::PhantomData<T>);
        impl<T: std::ops::DerefMut> Lends<T> {
            const SLICE: bool = true;
        }
        trait Otherwise {
            const SLICE: bool = false;
        }
        impl<T> Otherwise for Lends<T> {}
        let lent = [Lends::<Vec<()>>::SLICE, Lends::<Versions<()>>::SLICE];
        assert_eq!(lent, [true, false]);
    }

    #[test]
    fn what_a_monitor_adds_to_a_snapshot_follows_what_the_shard_has() {
        let plan = plan();
        let texts: Vec<String> = (0..9).map(|i| i.to_string()).collect();
        let (mut shard, mut monitor) = (Versions::<()>::default(), Vectors::default());
        for i in [5, 1, 8, 3] {
            shard.begin(&plan, name(&texts[i], 1.0), |_, _, _| ());
        }
        for i in [0, 1, 2, 3, 4, 5] {
            let begins = Activity {
                of: name(&texts[i], 1.0),
                last: LastSeen::before(0),
                pending: 0,
                begins: true,
            };
            monitor.observe(&plan, &begins);
        }
        let mut states: Vec<_> = shard.iter().map(Version::state).collect();
        monitor.save_to(&mut states);
        let saved = states.iter().map(|s| (s.version.as_str(), s.views.len()));
        let order = ["5", "1", "8", "3", "0", "2", "4"];
        let order = order.map(|version| (version, if version == "8" { 0 } else { 2 }));
        assert_eq!(saved.collect::<Vec<_>>(), order);
    }
}
