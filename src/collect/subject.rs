//! One segment of one version of a model, with its open panes.
//!
//! All views of a subject share its key and its panes, so an event is looked up once and lands in one
//! pane; each view has sums of its own there.
//!
//! Open panes are few while partitions go along together: the newest, and those within the lateness.
//! When one partition is read hours ahead of another there are hundreds. So only [`HOT_MAX`] panes are
//! *hot*, that is unpacked; the others are parked, packed like sealed ones, and unpacked again when an
//! event lands in them. A cap on open panes bounds the rest.

use super::event::Refusal;
use crate::stats::axis::Grid;
use crate::stats::fixed::Score;
use crate::stats::sums::Sums;
use crate::window::{PackError, Packed};

/// Hot panes of a subject. Disorder across a pane's boundary touches two; a third absorbs a straggler.
pub const HOT_MAX: usize = 3;

#[derive(Debug, Clone)]
enum Body {
    Hot(Vec<Sums>),
    Parked(Vec<Packed>),
}

/// A pane that still takes events.
#[derive(Debug, Clone)]
pub struct OpenPane {
    /// Begin; it ends one pane later.
    pub start_ms: i64,
    /// When it was last turned to, in turns of the subject.
    turn: u64,
    body: Body,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Index of the model's plan.
    pub model: usize,
    /// Name of the model as it came, which differs from the plan's for the default plan.
    pub name: String,
    /// Version of the model.
    pub version: String,
    /// Segment.
    pub segment: String,
    /// Newest event time.
    pub newest_ms: i64,
    /// Whether an event came since the last tick.
    pub seen: bool,
    /// The tick at which an event was last seen.
    pub seen_ms: Option<i64>,
    /// Events that came too late since a pane was last sealed.
    pub late: u64,
    /// Ascending by start.
    open: Vec<OpenPane>,
    /// Index of the pane that took the last event.
    current: usize,
    turn: u64,
}

impl Subject {
    /// A subject without events.
    pub fn new(model: usize, name: &str, version: &str, segment: &str) -> Subject {
        Subject {
            model,
            name: name.to_owned(),
            version: version.to_owned(),
            segment: segment.to_owned(),
            newest_ms: i64::MIN,
            seen: false,
            seen_ms: None,
            late: 0,
            open: Vec::new(),
            current: 0,
            turn: 0,
        }
    }

    /// Whether this is the subject of these names.
    #[inline]
    pub fn is(&self, name: &str, version: &str, segment: &str) -> bool {
        self.name == name && self.version == version && self.segment == segment
    }

    /// Begin of the current pane, if the time lies in it.
    #[inline]
    pub fn current_pane(&self, time_ms: i64, pane_ms: i64) -> Option<i64> {
        let start = self.open.get(self.current)?.start_ms;
        (start <= time_ms && time_ms - start < pane_ms).then_some(start)
    }

    /// Adds an event, one score and outcome for each view, to the pane that begins at `start_ms`.
    #[inline]
    pub fn observe(
        &mut self,
        start_ms: i64,
        seen: &[(Score, bool)],
        grid: Grid,
        open_max: usize,
    ) -> Result<(), Refusal> {
        let ready = self
            .open
            .get(self.current)
            .is_some_and(|p| p.start_ms == start_ms);
        if !ready {
            self.turn_to(start_ms, seen.len(), grid, open_max)?;
        }
        let Body::Hot(sums) = &mut self.open[self.current].body else {
            return Err(Refusal::Panes);
        };
        for (view, &(score, outcome)) in seen.iter().enumerate() {
            if sums[view].observe(score, outcome).is_err() {
                // Takes back what the views before have: an event counts for all of them or none.
                for (sums, &(score, outcome)) in sums[..view].iter_mut().zip(seen) {
                    let mut one = Sums::new(grid);
                    let _ = one
                        .observe(score, outcome)
                        .and_then(|()| sums.retract(&one));
                }
                return Err(Refusal::Sums);
            }
        }
        Ok(())
    }

    /// Makes the pane that begins at `start_ms` the current one, and hot.
    #[cold]
    fn turn_to(
        &mut self,
        start_ms: i64,
        views: usize,
        grid: Grid,
        open_max: usize,
    ) -> Result<(), Refusal> {
        self.turn += 1;
        match self.open.binary_search_by_key(&start_ms, |p| p.start_ms) {
            Ok(at) => self.current = at,
            Err(_) if self.open.len() >= open_max => return Err(Refusal::Panes),
            Err(at) => {
                let pane = OpenPane {
                    start_ms,
                    turn: 0,
                    body: Body::Hot(vec![Sums::new(grid); views]),
                };
                self.open.insert(at, pane);
                self.current = at;
            }
        }
        let pane = &mut self.open[self.current];
        pane.turn = self.turn;
        if let Body::Parked(packed) = &pane.body {
            let sums: Result<Vec<Sums>, PackError> =
                packed.iter().map(|p| p.unpack(grid)).collect();
            // What was packed here unpacks; if it ever did not, the pane would take no more events.
            pane.body = Body::Hot(sums.map_err(|_| Refusal::Panes)?);
        }
        self.park();
        Ok(())
    }

    /// Packs the hot panes that were longest not turned to, down to [`HOT_MAX`].
    fn park(&mut self) {
        let hot = |p: &&mut OpenPane| matches!(p.body, Body::Hot(_));
        if self.open.iter_mut().filter(hot).count() > HOT_MAX
            && let Some(pane) = self.open.iter_mut().filter(hot).min_by_key(|p| p.turn)
            && let Body::Hot(sums) = &pane.body
        {
            pane.body = Body::Parked(sums.iter().map(Packed::new).collect());
        }
    }

    /// Begin of the oldest open pane.
    pub fn oldest_ms(&self) -> Option<i64> {
        self.open.first().map(|p| p.start_ms)
    }

    /// Number of open panes.
    pub fn open_len(&self) -> usize {
        self.open.len()
    }

    /// Begin of the newest open pane.
    pub fn newest_pane_ms(&self) -> Option<i64> {
        self.open.last().map(|p| p.start_ms)
    }

    /// Takes out the oldest pane, packed, one for each view.
    pub fn take_oldest(&mut self) -> Option<(i64, Vec<Packed>)> {
        if self.open.is_empty() {
            return None;
        }
        // Where the current pane goes, none is current: its neighbour may be parked.
        self.current = self.current.wrapping_sub(1);
        let pane = self.open.remove(0);
        Some((pane.start_ms, pane.body.packed()))
    }

    /// All open panes, packed, for a snapshot.
    pub fn packed(&self) -> Vec<(i64, Vec<Packed>)> {
        let pane = |p: &OpenPane| (p.start_ms, p.body.clone().packed());
        self.open.iter().map(pane).collect()
    }

    /// Puts back the open panes of a snapshot, checked: ascending, one sum for each of `views`.
    pub fn restore(
        &mut self,
        panes: Vec<(i64, Vec<Packed>)>,
        views: usize,
        grid: Grid,
    ) -> Result<(), PackError> {
        for (start_ms, packed) in panes {
            if packed.len() != views || self.newest_pane_ms() >= Some(start_ms) {
                return Err(PackError::Corrupt);
            }
            for one in &packed {
                one.unpack(grid)?;
            }
            self.open.push(OpenPane {
                start_ms,
                turn: 0,
                body: Body::Parked(packed),
            });
        }
        // No pane is current until an event turns to one, for the current one must be hot.
        self.current = usize::MAX;
        Ok(())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let sums = |s: &Sums| size_of::<Sums>() + s.bytes();
        let pane = |p: &OpenPane| match &p.body {
            Body::Hot(all) => all.iter().map(sums).sum::<usize>(),
            Body::Parked(all) => all.iter().map(Packed::bytes).sum(),
        };
        self.open.iter().map(pane).sum::<usize>()
            + self.open.capacity() * size_of::<OpenPane>()
            + self.name.capacity()
            + self.version.capacity()
            + self.segment.capacity()
            + size_of::<Subject>()
    }
}

impl Body {
    fn packed(self) -> Vec<Packed> {
        match self {
            Body::Hot(sums) => sums.iter().map(Packed::new).collect(),
            Body::Parked(packed) => packed,
        }
    }
}
