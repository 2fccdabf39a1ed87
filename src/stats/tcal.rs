//! Adaptive T-Cal: the test of calibration over all dyadic levels at once.

/// Where the critical values of a level come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Critical {
    /// The bound of T-Cal Theorem 3.1: valid always, conservative.
    Theorem,
    /// Outcomes redrawn from the scores.
    MonteCarlo {
        /// Number of redrawn samples R.
        replicates: u32,
    },
    /// Pearson type III law with the three exact cumulants of the null.
    Moments,
}

/// How the error α is shared over the levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// α/B each, as the paper does.
    Bonferroni,
    /// By the joint law of the levels' smallest p-value.
    Joint,
}

/// Options of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TCalOptions {
    /// Level of the test, in (0, 1).
    pub alpha: f64,
    /// Source of the critical values.
    pub critical: Critical,
    /// Sharing of the error over levels.
    pub sharing: Sharing,
    /// Seed of the redrawn samples; the same seed gives the same answer.
    pub seed: u64,
}

/// One level's part in the test.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelResult {
    /// m, the number of cells.
    pub cells: u64,
    /// Plug-in estimate T_b of the squared ℓ2-ECE.
    pub plug_in: f64,
    /// Debiased plug-in estimate T_d; may be negative.
    pub debiased: f64,
    /// Standard deviation of T_d under the null given the scores.
    pub null_sd: f64,
    /// The level's own p-value, not adjusted for the number of levels.
    pub p_value: f64,
    /// Whether this level rejects after sharing α.
    pub reject: bool,
    /// Index of the cell that contributes most to T_d.
    pub worst_cell: u64,
}

/// Outcome of the adaptive test.
#[derive(Debug, Clone, PartialEq)]
pub struct TCal {
    /// Calibration is rejected at α.
    pub reject: bool,
    /// p-value of the whole test, adjusted for the number of levels.
    pub p_value: f64,
    /// B, the number of levels tested.
    pub scales: u32,
    /// The levels, coarse to fine.
    pub levels: Vec<LevelResult>,
    /// Position in `levels` of the one with the smallest p-value, when the test rejects.
    pub rejecting_level: Option<usize>,
    /// The decision hangs by less than the Monte Carlo noise.
    pub borderline: bool,
}
