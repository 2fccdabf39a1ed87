//! An anytime-valid detector of miscalibration, run on sealed panes.
//!
//! A test at level 0.05 that is repeated on sliding windows raises a false alarm almost surely
//! within a day of traffic: T-Cal on windows of 1000 events, looked at every 500, rejected within
//! 100,000 calibrated events in 94 to 100 % of the streams. So windows only describe. Alarms come
//! from a detector whose false alarms are bounded over all time, however often one looks and
//! however the scores drift. Its only assumption is the hypothesis under test: given the past and
//! the score, the outcome has the probability that the score says, up to a tolerance in log-odds.
//!
//! | part | holds |
//! |---|---|
//! | [`mixture`] | the 287 components: what is bet on, with what weight |
//! | [`odds`] | log-likelihood ratios of all bets from the cell sums of a pane |
//! | [`likelihood`] | those of one pane |
//! | [`detector`] | the Shiryaev-Roberts recursion and its guarantee |
//! | [`evidence`] | what kind, which scores, since when |
//! | [`budget`] | thresholds from "1 per 30d", "2000000 events", "5% ever" |
//! | [`radius`], [`sequences`] | confidence sequences of the mean residual, of bins, below ECE² |
//! | [`drift`], [`paired`] | two versions on the same events: which scores better, which is calibrated better |
//! | [`multiple_testing`] | which of many streams to call |
//! | [`stream`] | all of it for one stream: alarm, restart, all-clear |
//!
//! The way of a pane: [`Sums`](crate::sums::Sums) → [`Odds::likelihoods`] → [`Detector::observe`] →
//! log M against log A; [`StreamDetector::observe`] does it all. No work per event.
//!
//! # Guarantee
//!
//! F_{t−1} is everything processed before step t, and z_t is known before y_t. A component c has a
//! multiplier e_t ≥ 0 with E[e_t | F_{t−1}, z_t] ≤ 1 if the scores are right, and a stake a_t ≥ 0
//! that may depend on F_{t−1} and on the time of arrival, but not on y_t:
//!
//! ```text
//!   M_t^c = e_t^c·(M_{t−1}^c + a_t),     M_t = Σ_c weight_c·M_t^c,     Σ weight_c = 1
//!   alarm when M_t ≥ A, then M_t := 0
//! ```
//!
//! **Theorem.** For every stopping time T, E[alarms up to T] ≤ E[Σ_{s≤T} a_s]/A.
//!
//! *Proof.* Let C_t = A·(alarms up to t) + M_t. Without an alarm E[C_t − C_{t−1} | F_{t−1}] ≤ a_t,
//! since E[M_t | F_{t−1}] ≤ M_{t−1} + a_t for each component and hence for the mixture. An alarm
//! exchanges M_t ≥ A for A and does not raise C_t. So C_t − Σ_{s≤t} a_s is a supermartingale from
//! 0; stop it at min(T, t), let t grow, and use M ≥ 0. ∎
//!
//! With a stake of 1 an event this reads: the average run length to a false alarm is at least A,
//! and the chance of one within n events is at most n/A. It is a bound: calibrated streams spend
//! less than half of it where errors are tolerated (`tests/stats/alarms`), and up to .64 where none
//! are (100 streams of 60,000 events, A = 10,000). With stakes that sum to 1 it reads P(ever a
//! false alarm) ≤ 1/A, which is Ville's inequality. Streams may share one A by shares of the stake,
//! since expectations add ([`budget`]). Bets, weights, cells and tolerances may depend on the past
//! in any way, and any rule of restarting is covered.
//!
//! M_t^c is the Shiryaev–Roberts statistic, the sum over all starts s of Π_{i=s..t} e_i. It is
//! pointwise at least the CUSUM statistic e·max(M, 1), which has the same guarantee and took 1.3 to
//! 1.8 times as long to find a change. (Shin, Ramdas, Rinaldo, *E-detectors: a nonparametric
//! framework for sequential change detection*, 2023; the recursion goes back to Shiryaev 1963 and
//! Roberts 1966.)
//!
//! # Bets
//!
//! A bet of log-odds β multiplies its stake by e^(βy)/(1 − p + p·e^β). For a binary y this is the
//! exact likelihood ratio of odds that are e^β times those of p, so its mean is 1 if p is
//! right; |log e| ≤ |β|, so no stake is ever lost at once, and it works at rates of 10⁻³ as at ½.
//! (Every e-value of a binary outcome is such a ratio: Henzi, Ziegel, *Valid sequential inference
//! on probability forecast performance*, Biometrika 2022.) [`mixture`] says what is bet on. With
//! signs learnt in each of m cells, log M grows like Σ_c β²(S_c² − V_c)/2, the statistic of T-Cal,
//! so evidence of m weak cells adds up like √m. A cell forgets its sign in units of β²·Σz(1 − z),
//! about three times the information that it needs to detect a change; otherwise the noise before
//! the change would be locked in.
//!
//! *Tolerance.* A score is accepted if its odds are right up to a factor e^±τ: p lies in [lo, hi]
//! with hi(z) = z·e^τ/(1 − z + z·e^τ) and lo(z) = z/(z + (1 − z)·e^τ). Bets upwards take p = hi,
//! bets downwards p = lo. The multiplier is monotone in the mean of y, so its mean is at most 1
//! everywhere in [lo, hi].
//!
//! # Panes as single steps
//!
//! For a pane the product of its events' multipliers is again a multiplier of mean at most 1. Log
//! multipliers of ±β add over events, so the order inside a pane is irrelevant and the shares of
//! partitions add up; only the signs must wait for the end of the pane. Alarms come at the ends of
//! panes. A pane keeps n, Σy and Σz of each finest cell. With f(z) = ln(1 + (e^β − 1)·p(z))
//! concave, the exact log multiplier Σ(βy − f(z)) is at least βΣy − n·f(z̄) by Jensen's inequality,
//! and at least the same with a tangent of f in place of f(z̄), which [`odds`] uses. A lower bound
//! of a fair bet is an unfavourable bet, so the guarantee holds whatever the scores inside a cell;
//! at 4096 cells the loss is at most 10⁻⁶ an event.
//!
//! # What breaks it
//!
//! * An outcome that is processed twice is bet on twice: remove duplicates before.
//! * Dropping events at random is harmless; dropping them by their outcome is not.
//! * Outcomes that arrive sooner when they are positive (a click at once, its absence after a
//!   timeout) raise false alarms if they are processed on arrival: 100 of 100 calibrated streams.
//!   Process events in the order of a *maturity* time that is fixed without looking at y; later
//!   outcomes join reports only.
//! * Outcomes that depend on each other inside the delay window (a day effect) need panes at least
//!   as long as the window, each averaged instead of multiplied: averages of interleaved products
//!   are not supermartingales step by step (corrigendum of Henzi, Ziegel 2022).
//! * Scores that were fitted on the monitored events depend on y and void every guarantee.
//!
//! Errors below 1/64 in log-odds, or narrower than 1/256 in z, are not seen; nor is an error that
//! averages to 0 in every cell. The null is about E[y | z, past]: errors that cancel between hidden
//! groups pass unless the groups are streams of their own.
//!
//! # Confidence sequences
//!
//! [`radius`] bounds a sum with increments x ≥ −c at all times at once: exp(λx − ψ(λ)x²) ≤ 1 + λx
//! with ψ(λ) = (−ln(1 − cλ) − cλ)/c² makes exp(λ(S − ΣE[x | past]) − ψ(λ)V) a supermartingale from
//! 1, and so is a mixture over λ; Ville's inequality does the rest. (Fan, Grama, Liu 2015, lemma
//! 4.1; Howard, Ramdas, McAuliffe, Sekhon 2021; the corresponding bets: Waudby-Smith, Ramdas 2024.)
//! [`sequences`] applies it to the mean residual, to bins, and to the gain in Brier score of an
//! online recalibration, whose mean is at most ECE². An upper bound of ECE² does not exist without
//! smoothness. In 400 streams of 100,000 events the 95 % sequence of the mean ever missed in 2 of
//! 400 calibrated ones, the lower bound in none.
//!
//! # Many streams
//!
//! A threshold A for each of N streams allows N false alarms; A·N (Bonferroni) allows one. e-BH
//! ([`multiple_testing`]) lies between them: sort M, take k* = max{k : M_(k) ≥ N·A/k} and call the
//! k* largest. A called stream i has 1/k* ≤ M_i/(N·A), so at any stopping time the expected share
//! of false ones is at most (1/N)·Σ_{calibrated} E\[stakes_i\]/A, under any dependence. (Wang,
//! Ramdas 2022; Dandapanthula, Ramdas 2025 for e-detectors, whose false discovery rate with a
//! finite run length is trivially 1 in the worst case, hence "per stake".)

pub mod budget;
pub mod detector;
pub mod drift;
pub mod evidence;
pub mod likelihood;
pub mod mixture;
pub mod multiple_testing;
pub mod odds;
pub mod paired;
pub mod radius;
pub mod sequences;
pub mod stream;

pub use budget::Budget;
pub use detector::Detector;
pub use evidence::Evidence;
pub use likelihood::Likelihoods;
pub use odds::Odds;
pub use paired::{Compared, Difference, Pair, Paired};
pub use stream::{Outcome, Rules, StreamDetector};
