//! The options of a record, field by field through serde's remote derive, so that a field that is
//! added to them and not here does not compile.

use crate::stats::axis::{Axis, Grid};
use crate::stats::discrete::DiscreteMode;
use crate::stats::distance::Extent;
use crate::stats::evaluation::{DecideBy, NullReach, Options, Sampling, Tolerance};
use crate::stats::overdispersion::Overdispersion;
use crate::stats::tcal::{Critical, Sharing, TCalOptions};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Critical", rename_all = "snake_case")]
enum CriticalDef {
    Theorem,
    MonteCarlo { replicates: u32 },
    Moments,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Sharing", rename_all = "snake_case")]
enum SharingDef {
    Bonferroni,
    Joint,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "NullReach", rename_all = "snake_case")]
enum NullReachDef {
    Conditional,
    Paper { lower_support: f64 },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DiscreteMode", rename_all = "snake_case")]
enum DiscreteModeDef {
    Auto,
    On,
    Off,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Extent", rename_all = "snake_case")]
enum ExtentDef {
    Off,
    Cheap,
    All,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DecideBy", rename_all = "snake_case")]
enum DecideByDef {
    Combined,
    Tcal,
    Paper,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Tolerance")]
struct ToleranceDef {
    absolute: Option<f64>,
    relative: Option<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TCalOptions")]
struct TCalOptionsDef {
    alpha: f64,
    #[serde(with = "CriticalDef")]
    critical: Critical,
    #[serde(with = "SharingDef")]
    sharing: Sharing,
    seed: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Options")]
pub(super) struct OptionsDef {
    #[serde(with = "DecideByDef")]
    decide_by: DecideBy,
    #[serde(with = "TCalOptionsDef")]
    tcal: TCalOptions,
    family: u32,
    interval_cells: Option<u64>,
    confidence: f64,
    #[serde(with = "NullReachDef")]
    null_reach: NullReach,
    #[serde(with = "ToleranceDef")]
    tolerance: Tolerance,
    #[serde(with = "DiscreteModeDef")]
    discrete: DiscreteMode,
    reliability_level: u32,
    #[serde(with = "ExtentDef")]
    distances: Extent,
    #[serde(with = "sampling")]
    sampling: Sampling,
    overdispersion: Option<Overdispersion>,
    correct_overdispersion: bool,
}

/// Rates of sampling, which a constructor checks.
mod sampling {
    use crate::stats::evaluation::Sampling;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(sampling: &Sampling, s: S) -> Result<S::Ok, S::Error> {
        (sampling.kept(), sampling.trained()).serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Sampling, D::Error> {
        let (kept, trained) = <(f64, f64)>::deserialize(d)?;
        Sampling::new(kept, trained).map_err(D::Error::custom)
    }
}

/// Cells, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Cells {
    level: u32,
    /// Clips of a logit axis; `None` for a linear one.
    clips: Option<(f64, f64)>,
    /// Whether events are clustered.
    #[serde(default)]
    clustered: bool,
    /// Whether events are weighted.
    #[serde(default)]
    weighted: bool,
}

impl Cells {
    pub(super) fn of(grid: Grid) -> Cells {
        Cells {
            level: grid.level(),
            clips: match grid.axis() {
                Axis::Linear => None,
                Axis::Logit { low, high } => Some((low, high)),
            },
            clustered: grid.is_clustered(),
            weighted: grid.is_weighted(),
        }
    }

    /// The grid; `None` where the numbers are none of a grid.
    pub(super) fn grid(&self) -> Option<Grid> {
        let level = (1..=crate::stats::axis::LEVEL_MAX).contains(&self.level);
        let axis = match self.clips {
            None => Axis::Linear,
            Some((low, high)) if 0.0 < low && low < high && high < 1.0 => Axis::Logit { low, high },
            Some(_) => return None,
        };
        let grid = level.then(|| Grid::new(axis, self.level))?;
        Some(match (self.clustered, self.weighted) {
            (true, _) => grid.clustered(),
            (false, true) => grid.weighted(),
            (false, false) => grid,
        })
    }
}
