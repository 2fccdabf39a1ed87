//! Score test against smooth errors: shift, slope and noise at either end of the scale.
//!
//! Most errors of production models are smooth: all odds move (a new base rate), scores get too
//! bold or too shy (temperature), labels get noisy. All of these lie near the directions
//!
//! ```text
//! b(z) = (1, ln z, −ln(1−z))
//! ```
//!
//! the tangent space, at the diagonal, of beta calibration logit p = a·ln z − b·ln(1−z) + c (Kull,
//! Silva Filho, Flach, AISTATS 2017). Rao's score test of them is
//!
//! ```text
//! g = Σ U·b(z),   I = Σ V·b(z)b(z)ᵀ,   Q = gᵀ I⁺ g  ~  χ² with rank(I) degrees of freedom
//! ```
//!
//! under the null given the scores (Rao 1948). T-Cal looks for errors at an unknown scale and pays
//! for it; this test looks in three directions and finds those with a fraction of the events.
//!
//! b is taken at the mean score of each finest cell. The mean is a function of the scores alone, so
//! g has mean 0 and covariance I exactly, whatever the cells are; only the direction is rounded.
//!
//! The rank is that of I scaled to unit diagonal: scores of one value have one direction, scores of
//! two values two. A few scores near 0 among many in the middle have most of the information of a
//! direction, and few outcomes; χ² does not hold for it. So a row r of the factors, ΣV(r·b)² = 1,
//! is left out where 1/ΣV(r·b)⁴ is less than [`needed`]; the directions after it lose nothing. The
//! first row is that of the constant, which rests on all outcomes. Always: Q ≥ 0, p-value in [0,
//! 1]. Cost: two logarithms a cell, some 25 µs at 4096 cells.

use super::columns::{Columns, LANES, total};
use super::fixed::CLIP;
use super::levels::{Level, LevelCell};
use super::ln::{ln, ln_each};
use statrs::function::gamma::checked_gamma_ur;

/// Directions that the test looks in.
pub const DIRECTIONS: usize = 3;

/// The result of a score test.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ScoreTest {
    /// Q, χ² with `degrees` degrees of freedom under the null.
    pub statistic: f64,
    /// Rank of the information, 1 to 3, without directions that rest on too few outcomes.
    pub degrees: u32,
    /// Upper-tail p-value.
    pub p_value: f64,
}

/// Least effective number of outcomes behind a direction for its formula at α = .05.
const EFFECTIVE_MIN: f64 = 2.0;

/// Least effective number of outcomes behind each direction for formulas at level α of `family`
/// tests.
pub(super) fn needed(alpha: f64, family: u32) -> f64 {
    EFFECTIVE_MIN * (0.05 / alpha * f64::from(family.max(1))).powf(0.75)
}

/// The test on the finest cells, for a level of .05; `None` where no score has variance.
pub fn smooth(finest: &Level) -> Option<ScoreTest> {
    let form = Forms::of(finest)?.smooth.resting_on(needed(0.05, 1));
    form.map(|form| form.test())
}

/// b at the mean score of a cell; scores come no nearer to 0 and 1 than 2⁻³².
pub(super) fn direction(c: &LevelCell) -> [f64; DIRECTIONS] {
    let z = clipped(c.z / c.n);
    [1.0, ln(z), -ln(1.0 - z)]
}

#[inline]
fn clipped(z: f64) -> f64 {
    z.clamp(CLIP, 1.0 - CLIP)
}

/// P(χ² ≥ x) with `degrees` degrees of freedom.
pub(super) fn chi_squared_tail(x: f64, degrees: u32) -> f64 {
    let half = 0.5 * x.max(0.0);
    let tail = checked_gamma_ur(0.5 * f64::from(degrees), half);
    tail.unwrap_or(1.0).clamp(0.0, 1.0)
}

/// Cells whose logarithms are taken together.
const BLOCK: usize = 64;

/// ln z and ln(1−z) at the mean score of each cell: b without its 1, the second with the other
/// sign.
struct Logs {
    low: Vec<f64>,
    high: Vec<f64>,
}

impl Logs {
    fn of(cells: &Columns) -> Logs {
        let empty = || Vec::with_capacity(cells.len());
        let mut logs = Logs {
            low: empty(),
            high: empty(),
        };
        let (mut low, mut high) = ([0.5; BLOCK], [0.5; BLOCK]);
        for (n, z) in cells.n.chunks(BLOCK).zip(cells.z.chunks(BLOCK)) {
            for i in 0..n.len() {
                let mean = clipped(z[i] / n[i]);
                (low[i], high[i]) = (mean, 1.0 - mean);
            }
            ln_each(&mut low);
            ln_each(&mut high);
            logs.low.extend_from_slice(&low[..n.len()]);
            logs.high.extend_from_slice(&high[..n.len()]);
        }
        logs
    }
}

/// The sums of the quadratic form. They are added up in two loops, each with as many sums as there
/// are registers: one that goes through memory waits for it at every cell.
#[derive(Default)]
struct FormSums {
    information: [[f64; DIRECTIONS]; DIRECTIONS],
    g: [f64; DIRECTIONS],
    h: [f64; DIRECTIONS],
}

impl FormSums {
    fn of(finest: &Level, Logs { low, high }: &Logs) -> FormSums {
        let mut sums = FormSums::default();
        sums.add_information(&finest.occupied.v, (low, high));
        sums.add_scores(&finest.occupied.u, &finest.variance(), (low, high));
        sums
    }

    /// The quadratic form of these sums; `None` without variance.
    fn form(&self) -> Option<Quadratic> {
        let form = Quadratic::invert(self.information)?;
        Some(Quadratic {
            g: self.g,
            h: self.h,
            ..form
        })
    }

    #[inline(never)]
    fn add_scores(&mut self, u: &[f64], variance: &[f64], (low, high): (&[f64], &[f64])) {
        let ([mut g0, mut g1, mut g2], [mut h0, mut h1, mut h2]) = (self.g, self.h);
        for (((u, v), low), high) in u.iter().zip(variance).zip(low).zip(high) {
            g0 += u;
            g1 += u * low;
            g2 += u * -high;
            h0 += v;
            h1 += v * low;
            h2 += v * -high;
        }
        (self.g, self.h) = ([g0, g1, g2], [h0, h1, h2]);
    }

    #[inline(never)]
    fn add_information(&mut self, v: &[f64], (low, high): (&[f64], &[f64])) {
        let [
            [mut i00, ..],
            [mut i10, mut i11, _],
            [mut i20, mut i21, mut i22],
        ] = self.information;
        for ((v, low), high) in v.iter().zip(low).zip(high) {
            let (v_low, v_high) = (v * low, v * -high);
            i00 += v;
            i10 += v_low;
            i11 += v_low * low;
            i20 += v_high;
            i21 += v_high * low;
            i22 += v_high * -high;
        }
        self.information = [[i00, 0.0, 0.0], [i10, i11, 0.0], [i20, i21, i22]];
    }
}

/// The quadratic form gᵀ I⁺ g, by pivoted Cholesky factors of the scaled information.
#[derive(Debug, Clone)]
pub(super) struct Quadratic {
    /// Rows of L⁻¹ with the scaling in it: the statistic is the sum of squares of rows·g.
    rows: [[f64; DIRECTIONS]; DIRECTIONS],
    /// Rank of the information.
    pub rank: u32,
    /// Of each row, the number of outcomes of equal weight on which its product with g rests:
    /// 1/ΣV(row·b)⁴. Infinite where it is not computed.
    effective: [f64; DIRECTIONS],
    /// Σ U·b.
    g: [f64; DIRECTIONS],
    /// ΣV·b (times w), to which g moves where all odds are e times what the scores say, to first
    /// order.
    h: [f64; DIRECTIONS],
}

/// The forms of both score tests with the effective numbers of their rows.
#[derive(Debug, Clone)]
pub(super) struct Forms {
    /// Of the directions 1, ln z and −ln(1−z).
    pub smooth: Quadratic,
    /// Of Cox's directions; `None` without variance.
    pub cox: Option<Quadratic>,
}

impl Forms {
    /// The forms for the scores of these cells; `None` without variance.
    pub fn of(finest: &Level) -> Option<Forms> {
        let cells = &finest.occupied;
        let logs = Logs::of(cells);
        let sums = FormSums::of(finest, &logs);
        let mut smooth = sums.form()?;
        let (information, g) = (sums.information, sums.g);
        let [[one, ..], [i10, i11, _], [i20, i21, i22]] = information;
        let logit = [i10 + i20, i11 + 2.0 * i21 + i22];
        let cox = Quadratic::invert([[one, 0.0, 0.0], [logit[0], logit[1], 0.0], [0.0; 3]]);
        let mut cox = cox.map(|form| Quadratic {
            g: [g[0], g[1] + g[2], 0.0],
            ..form
        });
        let fourth = &finest.fourth()[..];
        smooth.effective = effective(&smooth.rows, fourth, &logs, |low, high| [1.0, low, -high]);
        if let Some(cox) = &mut cox {
            cox.effective = effective(&cox.rows, fourth, &logs, |low, high| [1.0, low - high, 0.0]);
        }
        Some(Forms { smooth, cox })
    }

    /// The fewest outcomes that a direction of either test rests on.
    pub fn least(&self) -> f64 {
        let both = self.cox.iter().chain([&self.smooth]);
        both.map(Quadratic::least).fold(f64::INFINITY, f64::min)
    }
}

/// The number of outcomes of equal weight on which Spiegelhalter's sum rests,
/// (Σw²(1−2z)²V)²/Σw⁴(1−2z)⁴V; 0 without variance.
pub(super) fn information_of_squares(finest: &Level) -> f64 {
    let cells = &finest.occupied;
    let mean = |(z, n): (&f64, &f64)| (1.0 - 2.0 * z / n).powi(2);
    let squares: Vec<f64> = cells.z.iter().zip(&cells.n).map(mean).collect();
    let (mut second, mut fourth) = (0.0, 0.0);
    for ((square, v), w4v) in squares.iter().zip(&cells.v).zip(&*finest.fourth()) {
        second += square * v;
        fourth += square * square * w4v;
    }
    if second > 0.0 {
        second * (second / fourth)
    } else {
        0.0
    }
}

/// 1/Σw⁴V(row·b)⁴ of each row. That of the constant is a sum of w⁴V alone.
fn effective(
    rows: &[[f64; DIRECTIONS]; DIRECTIONS],
    fourth: &[f64],
    Logs { low, high }: &Logs,
    b: impl Fn(f64, f64) -> [f64; DIRECTIONS],
) -> [f64; DIRECTIONS] {
    let of_row = |row: &[f64; DIRECTIONS]| {
        let power = |low: f64, high: f64| {
            let b = b(low, high);
            let along = row[0] * b[0] + row[1] * b[1] + row[2] * b[2];
            (along * along) * (along * along)
        };
        if row[1..] == [0.0; DIRECTIONS - 1] {
            return power(0.0, 0.0) * total(fourth);
        }
        let mut sums = [0.0; LANES];
        let (fours, rest) = fourth.as_chunks::<LANES>();
        let ((lows, low), (highs, high)) = (low.as_chunks::<LANES>(), high.as_chunks::<LANES>());
        for ((fourth, low), high) in fours.iter().zip(lows).zip(highs) {
            for lane in 0..LANES {
                sums[lane] += fourth[lane] * power(low[lane], high[lane]);
            }
        }
        for (((sum, fourth), low), high) in sums.iter_mut().zip(rest).zip(low).zip(high) {
            *sum += fourth * power(*low, *high);
        }
        sums.iter().sum()
    };
    rows.each_ref().map(|row| f64::recip(of_row(row)))
}

/// A pivot below this share of a direction's own information is rounding, not information.
const PIVOT_MIN: f64 = 1e-9;

impl Quadratic {
    /// The form for the scores of these cells; `None` without variance.
    pub fn of(finest: &Level) -> Option<Quadratic> {
        FormSums::of(finest, &Logs::of(&finest.occupied)).form()
    }

    /// The score test of the sample.
    pub fn test(&self) -> ScoreTest {
        let statistic = self.of_score(&self.g);
        ScoreTest {
            statistic,
            degrees: self.rank,
            p_value: chi_squared_tail(statistic, self.rank),
        }
    }

    /// The form of Cox's directions, 1 and ln z − ln(1−z); a score vector has them in this order.
    pub fn of_cox(finest: &Level) -> Option<Quadratic> {
        let mut information = [[0.0; DIRECTIONS]; DIRECTIONS];
        for c in finest.occupied.iter() {
            let [one, low, high] = direction(&c);
            let logit = low + high;
            information[0][0] += c.v * one;
            information[1][0] += c.v * logit;
            information[1][1] += c.v * logit * logit;
        }
        Quadratic::invert(information)
    }

    /// From the lower triangle of the information.
    fn invert(information: [[f64; DIRECTIONS]; DIRECTIONS]) -> Option<Quadratic> {
        let scale: [f64; DIRECTIONS] = std::array::from_fn(|i| {
            let own = information[i][i];
            if own > 0.0 { 1.0 / own.sqrt() } else { 0.0 }
        });
        let at = |i: usize, j: usize| information[i.max(j)][i.min(j)] * scale[i] * scale[j];
        let mut form = Quadratic {
            rows: [[0.0; DIRECTIONS]; DIRECTIONS],
            rank: 0,
            effective: [f64::INFINITY; DIRECTIONS],
            g: [0.0; DIRECTIONS],
            h: [0.0; DIRECTIONS],
        };
        // Gram–Schmidt in the metric of the information: each row is orthonormal to those before.
        let mut left: Vec<usize> = (0..DIRECTIONS).collect();
        for row in 0..DIRECTIONS {
            let rest = |i: usize, form: &Quadratic| {
                let seen = form.rows[..row].iter().map(|r| along(r, i, &at).powi(2));
                at(i, i) - seen.sum::<f64>()
            };
            // Scaled, all directions have the same length. The first row rests on all outcomes;
            // directions that rest on few scores are then in the rows after it.
            let best = match row {
                0 if at(0, 0) > PIVOT_MIN => 0,
                _ => (left.iter().copied())
                    .max_by(|&a, &b| rest(a, &form).total_cmp(&rest(b, &form)))?,
            };
            let pivot = rest(best, &form);
            if pivot <= PIVOT_MIN {
                break;
            }
            let mut fresh = [0.0; DIRECTIONS];
            fresh[best] = 1.0;
            for r in &form.rows[..row] {
                let part = along(r, best, &at);
                for (f, r) in fresh.iter_mut().zip(r) {
                    *f -= part * r;
                }
            }
            form.rows[row] = fresh.map(|f| f / pivot.sqrt());
            form.rank += 1;
            left.retain(|&i| i != best);
        }
        for row in &mut form.rows {
            for (r, s) in row.iter_mut().zip(scale) {
                *r *= s;
            }
        }
        (form.rank > 0).then_some(form)
    }

    /// The form without the rows that rest on fewer outcomes than `least`; `None` where none is
    /// left.
    pub fn resting_on(&self, least: f64) -> Option<Quadratic> {
        let mut form = Quadratic {
            rank: 0,
            ..self.clone()
        };
        for (row, effective) in self.rows().filter(|(_, effective)| *effective >= least) {
            let at = form.rank as usize;
            (form.rows[at], form.effective[at]) = (row, effective);
            form.rank += 1;
        }
        (form.rank > 0).then_some(form)
    }

    /// The fewest outcomes that a row rests on.
    fn least(&self) -> f64 {
        self.rows().map(|(_, e)| e).fold(f64::INFINITY, f64::min)
    }

    /// The rows, each with its effective number of outcomes.
    fn rows(&self) -> impl Iterator<Item = ([f64; DIRECTIONS], f64)> {
        let rows = self.rows.into_iter().zip(self.effective);
        rows.take(self.rank as usize)
    }

    /// The noncentrality of a change of all log-odds for each unit of its square, to first order;
    /// without weights ΣV, since the row of the constant alone sees it.
    pub fn of_odds(&self) -> f64 {
        self.of_score(&self.h)
    }

    /// The statistic of the score g.
    pub fn of_score(&self, g: &[f64; DIRECTIONS]) -> f64 {
        let rows = self.rows[..self.rank as usize].iter();
        rows.map(|r| {
            let dot = r[0] * g[0] + r[1] * g[1] + r[2] * g[2];
            dot * dot
        })
        .sum()
    }
}

/// The product of a row with column i of the scaled information.
fn along(row: &[f64; DIRECTIONS], i: usize, at: &impl Fn(usize, usize) -> f64) -> f64 {
    (0..DIRECTIONS).map(|j| row[j] * at(j, i)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::rng::Rng;
    use super::*;
    use crate::samples;

    #[test]
    fn one_value_has_one_direction_and_two_values_two() {
        let sample = |values: &[f64]| -> Vec<(f64, bool)> {
            (0..100)
                .map(|i| (values[i % values.len()], i % 3 == 0))
                .collect()
        };
        for (values, degrees) in [(&[0.3][..], 1), (&[0.3, 0.6], 2), (&[0.1, 0.3, 0.6], 3)] {
            let test = smooth(&Level::from_scores(&sample(values), 4096)).unwrap();
            assert_eq!(test.degrees, degrees);
        }
        // One value: the square of calibration in the large.
        let one = sample(&[0.3]);
        let (u, v) = (34.0 - 30.0, 100.0 * 0.3 * 0.7);
        let test = smooth(&Level::from_scores(&one, 4096)).unwrap();
        assert!((test.statistic - u * u / v).abs() < 1e-9, "{test:?}");
        assert_eq!(
            smooth(&Level::from_scores(&[(0.0, false), (1.0, true)], 16)),
            None
        );
    }

    #[test]
    fn the_statistic_is_the_textbook_quadratic_form() {
        let sample = samples::events(&mut Rng::new(3), 500, |u| u, |z| z * 0.9);
        // Cells so fine that each holds one score.
        let got = smooth(&Level::from_scores(&sample, 1 << 40)).unwrap();
        let (mut g, mut m) = ([0.0f64; 3], [[0.0f64; 3]; 3]);
        for &(z, y) in &sample {
            let b = [1.0, z.ln(), -(1.0 - z).ln()];
            for i in 0..3 {
                g[i] += (f64::from(u8::from(y)) - z) * b[i];
                for j in 0..3 {
                    m[i][j] += z * (1.0 - z) * b[i] * b[j];
                }
            }
        }
        // Cramer's rule for x = m⁻¹ g.
        let det = |m: &[[f64; 3]; 3]| {
            m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
                - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
                + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
        };
        let mut value = 0.0;
        for i in 0..3 {
            let mut with = m;
            for (row, g) in with.iter_mut().zip(g) {
                row[i] = g;
            }
            value += g[i] * det(&with) / det(&m);
        }
        assert!(
            (got.statistic / value - 1.0).abs() < 1e-9,
            "{got:?} {value}"
        );
        assert_eq!(got.degrees, 3);
    }
}
