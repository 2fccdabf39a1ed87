//! The composite null: an ℓ2-ECE of at most τ, not of exactly 0.
//!
//! T-Cal Remark 3 rejects when T_d ≥ (K/√α)·√(2·min(m^d/n², m^{−d}) + 5τ²·min(1/n, m^{−d})), d = K
//! − 1, with τ² = c₀²·n^{−4s/(4s+K−1)}. That threshold holds the spread of T_d but not its mean,
//! which is up to τ²: at n = 5000, s = 0.6, α = 0.05 and c₀ = 10 it is 0.14 where τ² is 0.24, so a
//! model that is off by τ is rejected always. (It is sound while c₀² is well below √2·K/√α.) It is
//! reported as `paper_threshold`; what decides here is
//!
//! T_d ≥ τ² + √(V·(1−α)/α), V = ½·min(m^d, n)/n² + 4τ²/n, and for scores of one class V = ⅛·min(m,
//! n)/n² + 2τ²/n.
//!
//! Proof. Write e(z) = E(U|z), S(z) = Cov(U|z). Given the scores, Var T_d = (1/n²)Σ
//! N⁻²\[2Σ_{a≠b}tr(S_aS_b) + 4Σ_a g_aᵀS_a g_a\], g_a = Σ_{b≠a}e_b, over cells. tr(S_aS_b) ≤ ¼
//! (scalar: 1/16), a cell of one event adds nothing, and there are at most min(m^d, n) occupied
//! cells: the first part is at most V's first. S ≤ ½ (scalar: ¼) and ‖g_a‖² ≤ (N−1)Σ‖e_b‖², so the
//! second is at most 2/n (scalar: 1/n) times M = (1/n)Σ‖e‖², whose mean is the squared ℓ2-ECE. And
//! E(T_d|z) = (1/n)ΣN⁻¹Σ_{a≠b}e_a·e_b ≤ M, Var M ≤ 2τ²/n (scalar: τ²/n) since ‖e‖² ≤ 2 (scalar: 1).
//! So T_d is at most a variable of mean τ² and variance V; Cantelli's inequality ends it. It holds
//! for every law of scores and every m.
//!
//! Conservative like all Chebyshev bounds; the product's default is the interval's lower end
//! against τ ([`crate::evaluation`]), which has the power of a normal limit.

/// Outcome of the composite test.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Composite {
    /// m, cells of an axis.
    pub slices: u64,
    /// T_d.
    pub debiased: f64,
    /// τ.
    pub tolerance: f64,
    /// The threshold that decides.
    pub threshold: f64,
    /// The paper's threshold, which leaves out the mean.
    pub paper_threshold: f64,
    /// Whether T_d reaches the paper's threshold.
    pub paper_reject: bool,
    /// Cantelli's bound V/(V + (T_d − τ²)²), 1 where T_d ≤ τ².
    pub p_value: f64,
}

/// The test of T_d over `m` cells an axis of `d` axes, `classes` classes. With d = 1 and two
/// classes T_d is that of the scalar residual.
pub fn composite(
    debiased: f64,
    n: usize,
    m: u64,
    d: usize,
    classes: usize,
    tolerance: f64,
    alpha: f64,
) -> Composite {
    let (n, k, square) = (n as f64, classes as f64, tolerance * tolerance);
    // m^d may be beyond any float; its logarithm is not.
    let power = d as f64 * (m as f64).ln();
    let cells = power.min(n.ln()).exp();
    let scalar = if classes == 2 && d == 1 { 1.0 } else { 0.0 };
    let variance = (0.5 - 0.375 * scalar) * cells / (n * n) + (4.0 - 2.0 * scalar) * square / n;
    let spread = 2.0 * (power - 2.0 * n.ln()).min(-power).exp()
        + 5.0 * square * (1.0 / n).min((-power).exp());
    let paper_threshold = k / alpha.sqrt() * spread.sqrt();
    let over = debiased - square;
    Composite {
        slices: m,
        debiased,
        tolerance,
        threshold: square + (variance * (1.0 - alpha) / alpha).sqrt(),
        paper_threshold,
        paper_reject: debiased >= paper_threshold,
        p_value: if over > 0.0 {
            variance / (variance + over * over)
        } else {
            1.0
        },
    }
}
