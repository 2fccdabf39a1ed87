//! What a pane keeps of its events for the kernel test: a bounded sample, and sums.
//!
//! [`super::window`] explains the choice and the test. With all options, a merge is exact and does
//! not depend on order; refused and late events are counted; sums rebuilt from their parts have the
//! same bits.
//!
//! An outcome that comes after its event was counted, or left out, is corrected exactly
//! ([`KernelSums::revise`]). In the sums, the old term is taken out and the new one added; both are
//! integers. In the sample, membership does not depend on the outcome: an event in the sample gets
//! its class there, and an event that was left out is offered as if it had come in time. Only
//! linear and block sums are not revised, because the neighbours of an event in a closed pane are
//! no longer known. They keep the outcomes of the time of closing, and later corrections are
//! counted ([`KernelSums::outdated`]).

use super::features::{BlockSums, FeatureParts, Features};
use super::{Kernel, Vectors};
use crate::algebra::{Merge, Overflow};
use crate::stored::Stored;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Most events: sums of features in units of 2⁻³² stay within 63 bits.
pub const EVENTS_MAX: u64 = (1 << 31) - 1;

/// Sizes of the blocks that add up over panes: pairs for the linear estimator, and 16, whose
/// estimator has 1/√15 of the linear one's null deviation (2/(n(B − 1))·E h²) for 7.5 kernel values
/// an event.
pub const BLOCKS: [usize; 2] = [2, 16];

/// Number of equal cells of the largest probability in which events are counted, for a comparison
/// with predictions without outcome.
pub const TOPS: usize = 16;

/// What a window keeps for the kernel test.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KernelOptions {
    /// Most events of the sample; at least 2.
    pub sample: usize,
    /// ν; `None`: the median distance of each window's sample, for which there can be no features.
    pub nu: Option<f64>,
    /// Number of random features; 0 for none.
    pub features: usize,
    /// Seed of ranks and frequencies.
    pub seed: u64,
}

impl Default for KernelOptions {
    /// 512 events: 131 thousand pairs a test. Bandwidth by the median; no features, which are the
    /// one thing here that costs an event more than a hash.
    fn default() -> KernelOptions {
        KernelOptions {
            sample: 512,
            nu: None,
            features: 0,
            seed: 0,
        }
    }
}

impl KernelOptions {
    /// Heap bytes of a pane of vectors of `classes`, at most.
    pub fn pane_bytes(&self, classes: usize) -> usize {
        let event = size_of::<SampleRow>() + 8 * classes;
        // A heap grows by doubling.
        self.sample * (event + size_of::<SampleRow>()) + self.features * classes * 32
    }
}

/// One event of a sample.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SampleRow {
    /// The rank of the event.
    pub rank: u64,
    /// The class that happened.
    pub class: u32,
    /// Its probabilities, summing to 1.
    pub row: Box<[f64]>,
}

impl SampleRow {
    fn order(&self, rank: u64, class: u32, row: impl Iterator<Item = f64>) -> Ordering {
        // Class and row only break ties of the rank, so that the order is total.
        let rows = || {
            let both = self.row.iter().zip(row);
            let unlike = both.map(|(a, b)| a.total_cmp(&b)).find(|o| o.is_ne());
            unlike.unwrap_or(Ordering::Equal)
        };
        self.rank
            .cmp(&rank)
            .then(self.class.cmp(&class))
            .then_with(rows)
    }
}

impl Eq for SampleRow {}

impl Ord for SampleRow {
    fn cmp(&self, other: &SampleRow) -> Ordering {
        self.order(other.rank, other.class, other.row.iter().copied())
    }
}

impl PartialOrd for SampleRow {
    fn partial_cmp(&self, other: &SampleRow) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The sums of a pane or a window.
#[derive(Debug, Clone)]
pub struct KernelSums {
    classes: usize,
    options: KernelOptions,
    /// Whether events are taken at all.
    room: bool,
    /// Whether blocks were added up, here or in what was merged.
    closed: bool,
    n: u64,
    refused: u64,
    late: u64,
    /// The highest rank on top.
    sample: BinaryHeap<SampleRow>,
    features: Option<Features>,
    /// Sums of the blocks of [`BLOCKS`] over the panes that were closed.
    blocks: [BlockSums; 2],
    /// Outcomes that the blocks do not contain.
    outdated: u64,
    /// Events by their largest probability.
    tops: [u64; TOPS],
    /// Scratch: an event's probabilities.
    point: Vec<f64>,
}

impl PartialEq for KernelSums {
    fn eq(&self, other: &KernelSums) -> bool {
        (self.classes, self.options, self.counts())
            == (other.classes, other.options, other.counts())
            && self.ranked() == other.ranked()
            && self.features == other.features
            && (self.blocks, self.outdated, self.tops) == (other.blocks, other.outdated, other.tops)
    }
}

/// The parts of [`KernelSums`], for storage.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KernelParts {
    /// n, the number of events.
    pub n: u64,
    /// Events that were refused.
    pub refused: u64,
    /// The sample, by rank.
    pub sample: Vec<SampleRow>,
    /// Sums of features, where there are any.
    pub features: Option<FeatureParts>,
    /// Whether blocks were added up.
    pub closed: bool,
    /// Sums of blocks.
    pub blocks: [BlockSums; 2],
    /// Outcomes that the blocks do not contain.
    pub outdated: u64,
    /// Events by their largest probability.
    pub tops: [u64; TOPS],
}

impl KernelSums {
    /// No events; `None` for fewer than two classes, a sample of fewer than two, or features
    /// without a bandwidth.
    pub fn new(classes: usize, options: KernelOptions) -> Option<KernelSums> {
        let sound = classes >= 2 && options.sample >= 2 && options.nu.is_none_or(|nu| nu > 0.0);
        let features = match (options.features, options.nu) {
            (0, _) => None,
            (count, Some(nu)) => Some(Features::new(classes, nu, count, options.seed)),
            (_, None) => return None,
        };
        sound.then(|| KernelSums {
            classes,
            options,
            room: true,
            closed: false,
            n: 0,
            refused: 0,
            late: 0,
            sample: BinaryHeap::new(),
            features,
            blocks: [BlockSums::default(); 2],
            outdated: 0,
            tops: [0; TOPS],
            point: Vec::new(),
        })
    }

    fn counts(&self) -> (u64, u64, u64) {
        (self.n, self.refused, self.late)
    }

    /// Number of events, without refused ones.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Events that were not taken.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Number of events that came too late to be counted.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Counts events that came too late.
    pub fn add_late(&mut self, late: u64) {
        self.late = self.late.saturating_add(late);
    }

    /// Sets whether events are taken from now on.
    pub fn admit(&mut self, room: bool) {
        self.room = room;
    }

    /// Whether events are taken.
    pub fn has_room(&self) -> bool {
        self.room
    }

    /// K, the number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Sums of blocks of panes that were closed.
    pub fn blocks(&self) -> [BlockSums; 2] {
        self.blocks
    }

    /// Number of outcomes that came after blocks were added up: all sums but blocks contain them.
    pub fn outdated(&self) -> u64 {
        self.outdated
    }

    /// The middle of each cell of the largest probability, and its number of events.
    pub fn tops(&self) -> impl Iterator<Item = (f64, u64)> {
        let middle = |(i, n): (usize, &u64)| ((i as f64 + 0.5) / TOPS as f64, *n);
        self.tops.iter().enumerate().map(middle)
    }

    /// What is kept, and how.
    pub fn options(&self) -> KernelOptions {
        self.options
    }

    /// Adds an event: a vector of K probabilities, to be divided by `sum`, the class that happened,
    /// and its rank, which must not depend on the class. It is an error to call this with another
    /// number of entries or an unknown class; such an event is refused. Returns whether it was
    /// taken.
    pub fn observe(&mut self, rank: u64, entries: &[f64], sum: f64, class: u32) -> bool {
        let fits = entries.len() == self.classes && (class as usize) < entries.len();
        if !fits || !self.room || self.n >= EVENTS_MAX {
            return self.refuse();
        }
        self.n += 1;
        let value = value_of(sum);
        let top = entries.iter().map(value).fold(0.0, f64::max);
        self.tops[((top * TOPS as f64) as usize).min(TOPS - 1)] += 1;
        if let Some(features) = &mut self.features {
            self.point.clear();
            self.point.extend(entries.iter().map(value));
            features.observe(&self.point, class);
        }
        self.offer(rank, class, entries.iter().map(value));
        true
    }

    /// Corrects the class of an event (see [`KernelSums::observe`]), or adds it if it had none
    /// `before`. Except for blocks, the sums are then the same, to the bit, as with the class `now`
    /// at first. If events were refused, this may be one of them; then nothing changes, because
    /// such sums get no verdict. Returns whether there was room for it.
    pub fn revise(&mut self, rank: u64, row: &[f64], before: Option<u32>, now: u32) -> bool {
        if self.refused > 0 {
            return true;
        }
        let blocks = self.closed && self.options.nu.is_some();
        self.outdated += u64::from(blocks && before != Some(now));
        let Some(before) = before else {
            return self.observe(rank, row, 1.0, now);
        };
        let known = |class: u32| (class as usize) < self.classes;
        if row.len() != self.classes || !known(before) || !known(now) {
            return self.refuse();
        }
        if let Some(features) = &mut self.features {
            features.revise(row, before, now);
        }
        let is = |kept: &SampleRow| {
            let same = || kept.row.iter().eq(row.iter());
            (kept.rank, kept.class) == (rank, before) && same()
        };
        if self.sample.iter().any(is) {
            let mut all = std::mem::take(&mut self.sample).into_vec();
            if let Some(kept) = all.iter_mut().find(|kept| is(kept)) {
                kept.class = now;
            }
            self.sample = all.into();
        }
        true
    }

    /// Counts an event as refused; returns false.
    fn refuse(&mut self) -> bool {
        self.refused += 1;
        false
    }

    /// Keeps an event if its rank is low enough.
    fn offer(&mut self, rank: u64, class: u32, row: impl Iterator<Item = f64> + Clone) {
        if self.sample.len() < self.options.sample {
            let row = row.collect();
            self.sample.push(SampleRow { rank, class, row });
            return;
        }
        let Some(mut last) = self.sample.peek_mut() else {
            return;
        };
        if last.order(rank, class, row.clone()).is_gt() {
            // In its place, so that nothing is allocated.
            (last.rank, last.class) = (rank, class);
            last.row.iter_mut().zip(row).for_each(|(a, b)| *a = b);
        }
    }

    /// Adds up the blocks of a base pane, which takes no more events, before it is merged with
    /// others. Does nothing without a fixed ν, or if blocks were added up before, here or in merged
    /// sums: where partitions move, blocks are of the events of each part.
    pub fn close(&mut self) {
        let Some(nu) = self.options.nu.filter(|_| !self.closed) else {
            return;
        };
        self.closed = true;
        let pane = self.vectors();
        for (sums, size) in self.blocks.iter_mut().zip(BLOCKS) {
            sums.observe(&pane, Kernel::TotalVariation { nu }, size);
        }
    }

    fn ranked(&self) -> Vec<&SampleRow> {
        let mut all: Vec<&SampleRow> = self.sample.iter().collect();
        all.sort_unstable();
        all
    }

    /// The sample, by rank.
    pub fn vectors(&self) -> Vectors {
        let mut all = Vectors::new(self.classes);
        for kept in self.ranked() {
            // Checked when it came, or when it was put back.
            let _ = all.push(&kept.row, kept.class);
        }
        all
    }

    /// The random features.
    pub fn features(&self) -> Option<&Features> {
        self.features.as_ref()
    }

    /// The parts of the sums, without the number of late events.
    pub fn parts(&self) -> KernelParts {
        KernelParts {
            n: self.n,
            refused: self.refused,
            sample: self.ranked().into_iter().cloned().collect(),
            features: self.features.as_ref().map(Features::parts),
            closed: self.closed,
            blocks: self.blocks,
            outdated: self.outdated,
            tops: self.tops,
        }
    }

    /// Sums with these options from `parts`; `None` where the parts contradict themselves or the
    /// options.
    pub fn with_parts(&self, parts: KernelParts) -> Option<KernelSums> {
        let mut sums = KernelSums {
            n: parts.n,
            refused: parts.refused,
            late: 0,
            sample: BinaryHeap::new(),
            closed: parts.closed,
            blocks: parts.blocks,
            outdated: parts.outdated,
            tops: parts.tops,
            ..self.clone()
        };
        let most = (self.options.sample as u64).min(parts.n);
        let possible = |b: &BlockSums| {
            b.count.is_possible() && [b.sum, b.squares, b.null_variance].is_possible()
        };
        if !parts.blocks.iter().all(possible) {
            return None;
        }
        let counted = parts.tops.iter().try_fold(0u64, |a, n| a.checked_add(*n));
        if parts.sample.len() as u64 != most || parts.n > EVENTS_MAX || counted != Some(parts.n) {
            return None;
        }
        let mut check = Vectors::new(self.classes);
        for kept in parts.sample {
            check.push(&kept.row, kept.class).ok()?;
            sums.sample.push(kept);
        }
        sums.features = match (&self.features, parts.features) {
            (None, None) => None,
            (Some(ours), Some(theirs)) if theirs.n == parts.n => Some(ours.with_parts(theirs)?),
            _ => return None,
        };
        Some(sums)
    }

    /// Heap bytes held, without the frequencies of features, which panes share.
    pub fn bytes(&self) -> usize {
        self.sample.capacity() * size_of::<SampleRow>()
            + self.sample.len() * 8 * self.classes
            + self.features.as_ref().map_or(0, Features::bytes)
    }
}

impl Merge for KernelSums {
    fn empty(&self) -> KernelSums {
        KernelSums {
            closed: false,
            n: 0,
            refused: 0,
            late: 0,
            sample: BinaryHeap::new(),
            features: self.features.as_ref().map(Features::empty),
            blocks: [BlockSums::default(); 2],
            outdated: 0,
            tops: [0; TOPS],
            point: Vec::new(),
            ..*self
        }
    }

    /// Adds the sums of other events with the same options. Never fails: where integers would
    /// overflow, the events are refused.
    fn merge(&mut self, other: &KernelSums) -> Result<(), Overflow> {
        self.add_late(other.late);
        self.refused = self.refused.saturating_add(other.refused);
        if self.n + other.n > EVENTS_MAX {
            self.refused = self.refused.saturating_add(other.n);
            return Ok(());
        }
        self.n += other.n;
        self.closed |= other.closed;
        for kept in &other.sample {
            self.offer(kept.rank, kept.class, kept.row.iter().copied());
        }
        if let (Some(ours), Some(theirs)) = (&mut self.features, &other.features) {
            ours.merge(theirs)?;
        }
        for (ours, theirs) in self.blocks.iter_mut().zip(&other.blocks) {
            ours.merge(theirs)?;
        }
        self.outdated = self.outdated.saturating_add(other.outdated);
        for (ours, theirs) in self.tops.iter_mut().zip(other.tops) {
            *ours += theirs;
        }
        Ok(())
    }
}

/// An entry as it is kept: divided by the sum of its vector; −0.0 is 0, as in scores.
#[inline]
pub fn value_of(sum: f64) -> impl Fn(&f64) -> f64 + Copy {
    move |z| (z / sum).min(1.0) + 0.0
}
