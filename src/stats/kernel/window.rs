//! What a window of a stream keeps for the kernel test, and the test of it.
//!
//! The quadratic estimator needs pairs of events, so no finite sum of events gives it. Two things are kept instead:
//!
//! * a *bounded sample*: the events of lowest rank, where a rank is a hash of what an event is called, drawn by a seed.
//!   The lowest of a union are the lowest of the lowest of its parts, so panes merge exactly, and which events are
//!   kept depends on no order, split or repeat. Ranks know nothing of outcomes: given the predictions, outcomes of the sample are as
//!   independent as those of all, so the tests given the predictions hold on it.
//! * where asked for, *random features* ([`super::features`]): sums over all events, exact for a kernel of their own. What
//!   they add is power: the noise of SKCE falls as 1/n.
//!
//! * where ν is fixed, *linear and block sums* ([`BlockSums`]): when a base pane is sealed, pairs and blocks of neighbours by rank in its
//!   own sample, in integers that add up over panes. Together they are of up to as many events a pane as the sample holds.
//!
//! [`evaluate`] of a window's sums is [`super::evaluate`] of its sample, in the order of ranks, with the linear and block
//! estimators over it; and of features beside. A pairing of all events by arrival, as the paper streams it
//! ([`super::features::Pairs`]), would depend on the order in which partitions are read; hence the pairing by rank.
//!
//! Features decide where they have seen more than the sample holds, else the sample. Their null variance has
//! Σ_{i≠j}φ_D² tr(S_i S_j), which is no sum over events: it is taken over the pairs of the sample, times how many more pairs there are.
//!
//! KCE is at most the ℓ2-ECE of the whole vector (φ ≤ 1), so a lower end of it is one of that (derived): given the predictions,
//! KCE_b = ‖n⁻¹Σφ(g_i)δ_i‖ moves by at most √2/n with one outcome, and its noise has mean norm at most √((1 − 1/K)/n); hence
//! KCE ≥ KCE_b − √((1 − 1/K)/n) − √(ln(1/α)/n) with probability 1 − α (McDiarmid). It is far from sharp, and needs no limit.
//!
//! Linear and block sums never decide: their noise falls as 1/√n only.
//!
//! Cost: an event is a hash and mostly one comparison, of D features 2DK + D sines; a pane m·(8K + 40) + 32·DK bytes
//! for a sample of m; a test m²/2 kernel values of O(K), twice that again where the bandwidth is the median.

use super::features::{BlockSums, FeatureParts, Features};
use super::skce::traces;
use super::{Evaluation, Kernel, Options, PValues, Vectors, block_p};
use crate::stats::distance::laplace::gamma_p_value;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Most events: sums of features in units of 2⁻³² stay within 63 bits.
pub const EVENTS_MAX: u64 = (1 << 31) - 1;

/// Events of the blocks that add up over panes: pairs for the linear estimator, and 16, whose estimator has 1/√15 of
/// the linear one's null deviation (2/(n(B − 1))·E h²) for 7.5 kernel values an event.
pub const BLOCKS: [usize; 2] = [2, 16];

/// How a window is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Keeping {
    /// Events of the sample at most, at least 2.
    pub sample: usize,
    /// ν; `None`: the median distance of each window's sample, for which there can be no features.
    pub nu: Option<f64>,
    /// Number of random features; 0 for none.
    pub features: usize,
    /// Seed of ranks and frequencies.
    pub seed: u64,
}

impl Default for Keeping {
    /// 512 events: 131 thousand pairs a test. Bandwidth by the median; no features, which are the one thing here that
    /// costs an event more than a hash.
    fn default() -> Keeping {
        Keeping {
            sample: 512,
            nu: None,
            features: 0,
            seed: 0,
        }
    }
}

impl Keeping {
    /// Heap bytes of a pane of vectors of `classes`, at most.
    pub fn pane_bytes(&self, classes: usize) -> usize {
        let event = size_of::<Kept>() + 8 * classes;
        // A heap grows by doubling.
        self.sample * (event + size_of::<Kept>()) + self.features * classes * 32
    }
}

/// One event of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// Its rank.
    pub rank: u64,
    /// The class that happened.
    pub class: u32,
    /// Its probabilities, summing to 1.
    pub row: Box<[f64]>,
}

impl Kept {
    fn order(&self, rank: u64, class: u32, row: impl Iterator<Item = f64>) -> Ordering {
        // Beyond the rank only so that there is one order at all.
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

impl Eq for Kept {}

impl Ord for Kept {
    fn cmp(&self, other: &Kept) -> Ordering {
        self.order(other.rank, other.class, other.row.iter().copied())
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Kept) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The sums of a pane or a window.
#[derive(Debug, Clone)]
pub struct KernelSums {
    classes: usize,
    keeping: Keeping,
    /// Whether events are taken at all.
    room: bool,
    /// Whether blocks were added up, here or in what was merged.
    closed: bool,
    n: u64,
    refused: u64,
    late: u64,
    /// The highest rank on top.
    sample: BinaryHeap<Kept>,
    features: Option<Features>,
    /// Sums of the blocks of [`BLOCKS`] over the panes that were closed.
    blocks: [BlockSums; 2],
    /// Scratch: an event's probabilities.
    point: Vec<f64>,
}

impl PartialEq for KernelSums {
    fn eq(&self, other: &KernelSums) -> bool {
        (self.classes, self.keeping, self.counts())
            == (other.classes, other.keeping, other.counts())
            && self.ranked() == other.ranked()
            && self.features == other.features
            && self.blocks == other.blocks
    }
}

/// Sums as they stand, to be kept elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelParts {
    /// n.
    pub n: u64,
    /// Events that were refused.
    pub refused: u64,
    /// The sample, by rank.
    pub sample: Vec<Kept>,
    /// Sums of features, where there are any.
    pub features: Option<FeatureParts>,
    /// Whether blocks were added up.
    pub closed: bool,
    /// Sums of blocks.
    pub blocks: [BlockSums; 2],
}

impl KernelSums {
    /// No events; `None` for fewer than two classes, a sample of fewer than two, or features without a bandwidth.
    pub fn new(classes: usize, keeping: Keeping) -> Option<KernelSums> {
        let sound = classes >= 2 && keeping.sample >= 2 && keeping.nu.is_none_or(|nu| nu > 0.0);
        let features = match (keeping.features, keeping.nu) {
            (0, _) => None,
            (count, Some(nu)) => Some(Features::new(classes, nu, count, keeping.seed)),
            (_, None) => return None,
        };
        sound.then(|| KernelSums {
            classes,
            keeping,
            room: true,
            closed: false,
            n: 0,
            refused: 0,
            late: 0,
            sample: BinaryHeap::new(),
            features,
            blocks: [BlockSums::default(); 2],
            point: Vec::new(),
        })
    }

    fn counts(&self) -> (u64, u64, u64) {
        (self.n, self.refused, self.late)
    }

    /// n, without those that were refused.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Events that were not taken.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Events that came too late to be in it.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Counts events that came too late.
    pub fn add_late(&mut self, late: u64) {
        self.late = self.late.saturating_add(late);
    }

    /// Whether events are taken from now on.
    pub fn admit(&mut self, room: bool) {
        self.room = room;
    }

    /// Whether events are taken.
    pub fn has_room(&self) -> bool {
        self.room
    }

    /// K.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// How it is kept.
    pub fn keeping(&self) -> Keeping {
        self.keeping
    }

    /// Adds an event: a vector of K probabilities, to be divided by `sum`, the class that happened, and its rank, which
    /// must not depend on the class. It is an error to call this with another number of entries or an unknown
    /// class; such an event is refused. Answers whether it was taken.
    pub fn observe(&mut self, rank: u64, entries: &[f64], sum: f64, class: u32) -> bool {
        let fits = entries.len() == self.classes && (class as usize) < entries.len();
        if !fits || !self.room || self.n >= EVENTS_MAX {
            return self.refuse();
        }
        self.n += 1;
        // −0.0 is 0, as in scores.
        let value = |z: &f64| (z / sum).min(1.0) + 0.0;
        if let Some(features) = &mut self.features {
            self.point.clear();
            self.point.extend(entries.iter().map(value));
            features.observe(&self.point, class);
        }
        self.offer(rank, class, entries.iter().map(value));
        true
    }

    /// Counts an event of which too little is known; answers that it was not taken.
    pub fn refuse(&mut self) -> bool {
        self.refused += 1;
        false
    }

    /// Keeps an event if its rank is low enough.
    fn offer(&mut self, rank: u64, class: u32, row: impl Iterator<Item = f64> + Clone) {
        if self.sample.len() < self.keeping.sample {
            let row = row.collect();
            self.sample.push(Kept { rank, class, row });
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

    /// Adds up the blocks of a base pane, which takes no more events, before it is merged with others. Nothing without a
    /// fixed ν, and nothing where that was done already, here or in what was merged: panes of lanes that a union takes, so that where partitions move blocks
    /// are of each one's events.
    pub fn close(&mut self) {
        let Some(nu) = self.keeping.nu.filter(|_| !self.closed) else {
            return;
        };
        self.closed = true;
        let pane = self.vectors();
        for (sums, size) in self.blocks.iter_mut().zip(BLOCKS) {
            sums.observe(&pane, Kernel::TotalVariation { nu }, size);
        }
    }

    /// Adds the sums of other events, kept alike; exact, in any order.
    pub fn merge(&mut self, other: &KernelSums) {
        self.add_late(other.late);
        self.refused = self.refused.saturating_add(other.refused);
        if self.n + other.n > EVENTS_MAX {
            self.refused = self.refused.saturating_add(other.n);
            return;
        }
        self.n += other.n;
        self.closed |= other.closed;
        for kept in &other.sample {
            self.offer(kept.rank, kept.class, kept.row.iter().copied());
        }
        if let (Some(ours), Some(theirs)) = (&mut self.features, &other.features) {
            ours.merge(theirs);
        }
        let blocks = self.blocks.iter_mut().zip(&other.blocks);
        blocks.for_each(|(ours, theirs)| ours.merge(theirs));
    }

    fn ranked(&self) -> Vec<&Kept> {
        let mut all: Vec<&Kept> = self.sample.iter().collect();
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

    /// As they stand, late events apart.
    pub fn parts(&self) -> KernelParts {
        KernelParts {
            n: self.n,
            refused: self.refused,
            sample: self.ranked().into_iter().cloned().collect(),
            features: self.features.as_ref().map(Features::parts),
            closed: self.closed,
            blocks: self.blocks,
        }
    }

    /// From parts, kept as these are; `None` where they contradict themselves or this.
    pub fn with_parts(&self, parts: KernelParts) -> Option<KernelSums> {
        let mut sums = KernelSums {
            n: parts.n,
            refused: parts.refused,
            late: 0,
            sample: BinaryHeap::new(),
            closed: parts.closed,
            blocks: parts.blocks,
            ..self.clone()
        };
        let most = (self.keeping.sample as u64).min(parts.n);
        if parts.sample.len() as u64 != most || parts.n > EVENTS_MAX {
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
        self.sample.capacity() * size_of::<Kept>()
            + self.sample.len() * 8 * self.classes
            + self.features.as_ref().map_or(0, Features::bytes)
    }
}

/// The test of random features over all events of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureTest {
    /// D.
    pub count: usize,
    /// SKCE_b of φ_D.
    pub biased: f64,
    /// SKCE_uq of φ_D.
    pub unbiased: f64,
    /// Mean of SKCE_b under the null given the predictions.
    pub null_mean: f64,
    /// Its standard deviation, from the pairs of the sample.
    pub null_sd: f64,
    /// p-value by the gamma law of these; `None` without variance.
    pub p_value: Option<f64>,
    /// McDiarmid's, valid at any n and without the sample.
    pub p_value_bound: f64,
}

/// The test of blocks over all panes of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockTest {
    /// Events of a block; 2 for the linear estimator.
    pub size: usize,
    /// Number of blocks.
    pub count: u64,
    /// The estimate.
    pub estimate: f64,
    /// Its p-values.
    pub p: PValues,
}

/// The kernel test of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowEvaluation {
    /// Events of the window.
    pub n: u64,
    /// K.
    pub classes: usize,
    /// Of the sample.
    pub sample: Evaluation,
    /// Of the features.
    pub features: Option<FeatureTest>,
    /// Of the blocks of [`BLOCKS`] over all panes; none without a fixed ν, or a block.
    pub blocks: Vec<BlockTest>,
    /// Whether the features decide.
    pub by_features: bool,
    /// p-value of what decides; `None` where the predictions are certain.
    pub p_value: Option<f64>,
    /// Calibration is rejected at α.
    pub reject: bool,
    /// √SKCE_b of what decides.
    pub kce: f64,
    /// Lower end of KCE, hence of the ℓ2-ECE of the whole vector, at `confidence` for a two-sided one.
    pub lower: f64,
    /// Confidence.
    pub confidence: f64,
}

/// The kernel test of a window; `None` with fewer than two events.
pub fn evaluate(sums: &KernelSums, alpha: f64, confidence: f64) -> Option<WindowEvaluation> {
    let part = sums.vectors();
    let options = Options {
        alpha,
        nu: sums.keeping.nu,
        quadratic_max: usize::MAX,
        replicates: 0,
        seed: sums.keeping.seed,
    };
    let sample = super::evaluate(&part, &options)?;
    let features = sums.features.as_ref().and_then(|f| feature_test(f, &part));
    let decides = features.as_ref().filter(|_| sums.n > part.len() as u64);
    let (biased, p_value, n) = match decides {
        Some(f) => (f.biased, f.p_value, sums.n as f64),
        None => (
            sample.biased,
            sample.biased_p.conditional,
            part.len() as f64,
        ),
    };
    let kce = biased.max(0.0).sqrt();
    let tail = 0.5 * (1.0 - confidence);
    let noise = ((1.0 - 1.0 / sums.classes as f64) / n).sqrt();
    Some(WindowEvaluation {
        n: sums.n,
        classes: sums.classes,
        by_features: decides.is_some(),
        // Predictions that are certain and still wrong cannot be calibrated.
        reject: p_value.map_or(biased > 0.0, |p| p <= alpha),
        p_value,
        kce,
        lower: (kce - noise - (-tail.ln() / n).sqrt()).max(0.0),
        confidence,
        blocks: block_tests(sums),
        sample,
        features,
    })
}

fn block_tests(sums: &KernelSums) -> Vec<BlockTest> {
    let test = |(sums, size): (&BlockSums, usize)| {
        let blocks = sums.blocks();
        Some(BlockTest {
            size,
            count: sums.count,
            estimate: blocks.estimate()?,
            p: block_p(&blocks, size * sums.count as usize, size),
        })
    };
    sums.blocks.iter().zip(BLOCKS).filter_map(test).collect()
}

/// The test of features; the sample gives the null variance.
fn feature_test(features: &Features, part: &Vectors) -> Option<FeatureTest> {
    let (biased, unbiased) = features.estimates()?;
    let (total, mean) = features.total();
    let n = features.parts().n as f64;
    let m = part.len() as f64;
    if m < 2.0 {
        return None;
    }
    let (own, pairs) = null_moments(features, part);
    let variance = own * n / m + 2.0 * pairs * (n * (n - 1.0)) / (m * (m - 1.0));
    let excess = (total.max(0.0).sqrt() - mean.max(0.0).sqrt()).max(0.0) / n;
    Some(FeatureTest {
        count: features.count(),
        biased,
        unbiased,
        null_mean: mean / (n * n),
        null_sd: variance.max(0.0).sqrt() / (n * n),
        p_value: gamma_p_value(total.max(0.0), mean, variance),
        p_value_bound: (-n * excess * excess).exp(),
    })
}

/// Σ Var h_ii and Σ_{i≠j} φ_D² tr(S_i S_j) of a sample.
fn null_moments(features: &Features, part: &Vectors) -> (f64, f64) {
    let waves: Vec<Vec<f64>> = part.events().map(|(g, _)| features.wave(g)).collect();
    let own = super::Quadratic::diagonal(part).null_diagonal_variance;
    let mut pairs = 0.0;
    for (i, a) in waves.iter().enumerate() {
        let mut row = 0.0;
        for (j, b) in waves[..i].iter().enumerate() {
            let phi: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            row += phi * phi * traces(part.row(i), part.row(j)).1;
        }
        pairs += 2.0 * row;
    }
    (own, pairs)
}

#[cfg(test)]
mod tests {
    use super::super::{Blocks, Quadratic, conditional, evaluate as offline};
    use super::*;
    use crate::stats::rng::Rng;

    const KEEPING: Keeping = Keeping {
        sample: 60,
        nu: Some(0.4),
        features: 16,
        seed: 7,
    };

    fn events(n: usize, classes: usize, pushed: f64, seed: u64) -> Vectors {
        let mut rng = Rng::new(seed);
        let mut all = Vectors::new(classes);
        while all.len() < n {
            let mut p: Vec<f64> = (0..classes).map(|_| -(1.0 - rng.uniform()).ln()).collect();
            let sum: f64 = p.iter().sum();
            p.iter_mut().for_each(|p| *p /= sum);
            let y = match rng.uniform() < pushed {
                true => 0,
                false => conditional::draw(&p, rng.uniform()),
            };
            let _ = all.push(&p, y);
        }
        all
    }

    fn ranks(n: usize, seed: u64) -> Vec<u64> {
        let mut rng = Rng::new(seed);
        (0..n).map(|_| rng.bits()).collect()
    }

    fn sums(all: &Vectors, ranks: &[u64], keeping: Keeping, order: &[usize]) -> KernelSums {
        let mut sums = KernelSums::new(all.classes(), keeping).unwrap();
        for &i in order {
            assert!(sums.observe(ranks[i], all.row(i), 1.0, all.outcome(i)));
        }
        sums
    }

    #[test]
    fn any_order_and_split_keeps_the_events_of_lowest_rank_and_parts_give_them_back() {
        let (all, ranks) = (events(500, 4, 0.2, 3), ranks(500, 4));
        let order: Vec<usize> = (0..500).collect();
        let whole = sums(&all, &ranks, KEEPING, &order);
        let mut want = order.clone();
        want.sort_by_key(|&i| ranks[i]);
        assert_eq!(whole.vectors(), all.pick(want[..60].iter().copied()));
        let parts = [&order[..10], &order[10..200], &order[200..]];
        let mut merged = KernelSums::new(4, KEEPING).unwrap();
        for part in parts.iter().rev() {
            let backwards: Vec<usize> = part.iter().rev().copied().collect();
            let pane = sums(&all, &ranks, KEEPING, &backwards);
            merged.merge(&whole.with_parts(pane.parts()).unwrap());
        }
        assert_eq!(merged, whole);
        assert_eq!(evaluate(&merged, 0.05, 0.9), evaluate(&whole, 0.05, 0.9));
        let mut broken = whole.parts();
        broken.sample.pop();
        assert!(whole.with_parts(broken).is_none());
        let mut broken = whole.parts();
        broken.sample[0].row[0] = 2.0;
        assert!(whole.with_parts(broken).is_none());
    }

    #[test]
    fn blocks_by_rank_add_up_over_panes_to_the_offline_ones_of_each_pane() {
        let (all, ranks) = (events(600, 4, 0.4, 12), ranks(600, 13));
        let kernel = Kernel::TotalVariation { nu: 0.4 };
        let mut total = KernelSums::new(4, KEEPING).unwrap();
        let mut want = [Blocks::default(); 2];
        for pane in 0..6 {
            let mut order: Vec<usize> = (pane * 100..pane * 100 + 100).rev().collect();
            let mut sums = sums(&all, &ranks, KEEPING, &order);
            sums.close();
            // Once is enough.
            sums.close();
            total.merge(&sums);
            order.sort_by_key(|&i| ranks[i]);
            let sample = all.pick(order.into_iter().take(60));
            for (want, size) in want.iter_mut().zip(BLOCKS) {
                want.merge(&Blocks::of(&sample, kernel, size));
            }
        }
        let e = evaluate(&total, 0.05, 0.9).unwrap();
        assert_eq!((e.blocks[0].count, e.blocks[1].count), (180, 18));
        for (got, want) in e.blocks.iter().zip(&want) {
            let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-8, "{a} {b}");
            near(got.estimate, want.estimate().unwrap());
            let p = conditional::block_p_value(want).unwrap();
            near(got.p.conditional.unwrap(), p);
        }
        // Without a fixed width there are none.
        let mut free = sums(&all, &ranks, Keeping::default(), &[0, 1, 2, 3]);
        free.close();
        assert!(evaluate(&free, 0.05, 0.9).unwrap().blocks.is_empty());
        assert_eq!(total.with_parts(total.parts()).as_ref(), Some(&total));
    }

    #[test]
    fn equal_ranks_have_one_order() {
        let all = events(40, 3, 0.0, 5);
        let keeping = Keeping {
            sample: 10,
            ..KEEPING
        };
        let forth: Vec<usize> = (0..40).collect();
        let back: Vec<usize> = (0..40).rev().collect();
        let same = [1; 40];
        let (a, b) = (
            sums(&all, &same, keeping, &forth),
            sums(&all, &same, keeping, &back),
        );
        assert_eq!(a, b);
    }

    #[test]
    fn a_window_says_what_its_sample_says_offline() {
        let (all, ranks) = (events(300, 5, 0.3, 6), ranks(300, 8));
        let order: Vec<usize> = (0..300).collect();
        for keeping in [
            Keeping::default(),
            Keeping {
                sample: 100,
                ..Keeping::default()
            },
        ] {
            let window = evaluate(&sums(&all, &ranks, keeping, &order), 0.05, 0.9).unwrap();
            let mut by_rank = order.clone();
            by_rank.sort_by_key(|&i| ranks[i]);
            let part = all.pick(by_rank.into_iter().take(keeping.sample));
            let options = Options {
                quadratic_max: usize::MAX,
                ..Options::default()
            };
            assert_eq!(Some(&window.sample), offline(&part, &options).as_ref());
            assert_eq!(window.p_value, window.sample.biased_p.conditional);
            assert_eq!((window.n, window.reject), (300, true));
        }
    }

    #[test]
    fn features_are_the_quadratic_form_of_their_own_kernel_and_its_null_moments() {
        let (all, ranks) = (events(60, 3, 0.3, 9), ranks(60, 1));
        let order: Vec<usize> = (0..60).collect();
        // The sample holds every event, so that the null variance is exact.
        let kept = sums(&all, &ranks, KEEPING, &order);
        let f = evaluate(&kept, 0.05, 0.9).unwrap().features.unwrap();
        let waves: Vec<Vec<f64>> = all
            .events()
            .map(|(g, _)| kept.features.as_ref().unwrap().wave(g))
            .collect();
        let phi = |i: usize, j: usize| -> f64 {
            waves[i].iter().zip(&waves[j]).map(|(a, b)| a * b).sum()
        };
        let (mut total, mut mean, mut variance) = (0.0, 0.0, 0.0);
        let flat = Kernel::TotalVariation { nu: f64::INFINITY };
        for i in 0..60 {
            for j in 0..60 {
                let (a, b) = ((all.row(i), all.outcome(i)), (all.row(j), all.outcome(j)));
                let pair = super::super::skce::pair(flat, a, b);
                total += phi(i, j) * pair.h;
                if i != j {
                    variance += 2.0 * phi(i, j) * phi(i, j) * pair.null_variance;
                }
            }
            let norm: f64 = all.row(i).iter().map(|p| p * p).sum();
            mean += 1.0 - norm;
        }
        variance += Quadratic::of(&all, flat).null_diagonal_variance;
        assert!((f.biased - total / 3600.0).abs() < 1e-8);
        assert!((f.null_mean - mean / 3600.0).abs() < 1e-8);
        assert!((f.null_sd - variance.sqrt() / 3600.0).abs() < 1e-8);
    }

    #[test]
    fn the_lower_end_is_seldom_above_the_error_and_at_last_above_nothing() {
        // Outcomes of class 0 with probability ½ whatever is said of three classes: ‖E(δ | g)‖ is ½‖e_0 − g‖.
        let mut above = 0;
        for seed in 0..50 {
            let all = events(4000, 3, 0.5, 100 + seed);
            let order: Vec<usize> = (0..4000).collect();
            let keeping = Keeping {
                sample: 400,
                ..KEEPING
            };
            let kept = sums(&all, &ranks(4000, seed), keeping, &order);
            let e = evaluate(&kept, 0.05, 0.9).unwrap();
            let size = |g: &[f64]| {
                let rest: f64 = g[1..].iter().map(|p| p * p).sum();
                0.25 * ((1.0 - g[0]).powi(2) + rest)
            };
            let squared: f64 = all.events().map(|(g, _)| size(g)).sum::<f64>() / 4000.0;
            above += u32::from(e.lower > squared.sqrt());
            assert!(e.by_features && e.reject && e.lower > 0.05, "{}", e.lower);
        }
        assert_eq!(above, 0);
    }

    #[test]
    fn both_tests_keep_their_levels_and_features_find_what_the_sample_does_not() {
        let run = |sets: u64, pushed: f64| {
            let mut hits = [0u32; 2];
            for set in 0..sets {
                let all = events(2000, 3, pushed, 500 + set);
                let order: Vec<usize> = (0..2000).collect();
                let kept = sums(&all, &ranks(2000, set), KEEPING, &order);
                let e = evaluate(&kept, 0.05, 0.9).unwrap();
                hits[0] += u32::from(e.sample.reject);
                hits[1] += u32::from(e.reject);
            }
            hits.map(|h| f64::from(h) / sets as f64)
        };
        let bar = 4.0 * (0.05f64 * 0.95 / 400.0).sqrt();
        let levels = run(400, 0.0);
        println!("levels {levels:?}");
        assert!(levels.iter().all(|l| (l - 0.05).abs() < bar), "{levels:?}");
        let powers = run(60, 0.12);
        println!("powers {powers:?}");
        assert!(powers[1] > 0.9 && powers[0] < 0.8, "{powers:?}");
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let none = |keeping| KernelSums::new(3, keeping).is_none();
        assert!(none(Keeping {
            nu: None,
            ..KEEPING
        }));
        assert!(none(Keeping {
            sample: 1,
            ..KEEPING
        }));
        assert!(KernelSums::new(1, KEEPING).is_none());
        let mut sums = KernelSums::new(3, KEEPING).unwrap();
        assert!(!sums.observe(1, &[0.5, 0.5], 1.0, 0));
        assert!(!sums.observe(1, &[0.5, 0.2, 0.3], 1.0, 3));
        sums.admit(false);
        assert!(!sums.observe(1, &[0.5, 0.2, 0.3], 1.0, 2));
        assert_eq!((sums.n(), sums.refused()), (0, 3));
        assert!(evaluate(&sums, 0.05, 0.9).is_none());
    }
}
