//! The result of the test at one level.

/// The result at one level.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
    /// Whether the level takes no part: no law of its estimate can be trusted at so few positives
    /// or negatives. Its p-value is then 1.
    pub left_out: bool,
}
