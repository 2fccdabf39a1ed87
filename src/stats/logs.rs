//! The sums that need a logarithm of each score: for log loss and the Cox score test.

use super::algebra::Overflow;
use super::fixed::{CLIP, ONE, SHIFTED_ZERO, Score, to_shifted};
use super::ln::ln;

/// The sums that need ℓ = log(z/(1−z)) of each score, z clipped to [2⁻³², 1−2⁻³²] for these alone;
/// in units of 2⁻³², rounded per event. For log loss and the Cox score test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LogSums {
    /// −Σ[y log z + (1−y) log(1−z)], nats.
    pub loss: i128,
    /// Σ(y−z)ℓ.
    pub u_logit: i128,
    /// Σvℓ.
    pub v_logit: i128,
    /// Σvℓ².
    pub v_logit2: i128,
}

impl LogSums {
    /// Combines each two sums by `f`; fails if `f` returns `None` for any.
    pub fn zip(
        &self,
        o: &LogSums,
        f: impl Fn(i128, i128) -> Option<i128>,
    ) -> Result<LogSums, Overflow> {
        let g = |a, b| f(a, b).ok_or(Overflow);
        Ok(LogSums {
            loss: g(self.loss, o.loss)?,
            u_logit: g(self.u_logit, o.u_logit)?,
            v_logit: g(self.v_logit, o.v_logit)?,
            v_logit2: g(self.v_logit2, o.v_logit2)?,
        })
    }

    /// Whether `n` events can have these sums.
    pub(crate) fn is_bounded(&self, n: u64) -> bool {
        let most = u128::from(n) * u128::from(LOG_TERM_MAX);
        let parts = [self.loss, self.u_logit, self.v_logit, self.v_logit2];
        parts.iter().all(|part| part.unsigned_abs() <= most)
    }
}

/// Most that one event adds to a log sum: |ℓ| ≤ 32·ln 2 < 23 at the clip.
const LOG_TERM_MAX: u64 = 23 * ONE;

/// The log sums of at most 2²⁰ events, see [`LOG_TERM_MAX`], each with `n` times [`SHIFTED_ZERO`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogBatch {
    n: i64,
    /// Negative: Σ[y log z + (1−y) log(1−z)]. Rounding is symmetric.
    gain: i64,
    u_logit: i64,
    v_logit: i64,
    v_logit2: i64,
}

impl LogBatch {
    /// Adds an event.
    #[inline]
    pub(crate) fn observe(&mut self, score: Score, outcome: bool) {
        let z = score.value().clamp(CLIP, 1.0 - CLIP);
        let (a, b) = (ln(z), ln(1.0 - z));
        let (l, v) = (a - b, z * (1.0 - z));
        let (gain, y) = if outcome { (a, 1.0) } else { (b, 0.0) };
        self.n = self.n.wrapping_add(1);
        self.gain = self.gain.wrapping_add(to_shifted(gain));
        self.u_logit = self.u_logit.wrapping_add(to_shifted((y - z) * l));
        self.v_logit = self.v_logit.wrapping_add(to_shifted(v * l));
        self.v_logit2 = self.v_logit2.wrapping_add(to_shifted(v * l * l));
    }

    /// The sums of all events that were added.
    pub(crate) fn sums(self) -> LogSums {
        let zeros = self.n.wrapping_mul(SHIFTED_ZERO);
        let sum = |shifted: i64| i128::from(shifted.wrapping_sub(zeros));
        LogSums {
            loss: -sum(self.gain),
            u_logit: sum(self.u_logit),
            v_logit: sum(self.v_logit),
            v_logit2: sum(self.v_logit2),
        }
    }
}

/// The log sums of one event.
pub(crate) fn log_terms(score: Score, outcome: bool) -> LogSums {
    let mut logs = LogBatch::default();
    logs.observe(score, outcome);
    logs.sums()
}
