//! `trueline evaluate --report`: writes the page of the results.

use super::args::Args;
use crate::cli::exit::{Exit, Failure};
use crate::cli::recalibrate::Recalibrated;
use crate::cli::report_file;
use crate::report::page::evaluation::{self, Maps, Sample};
use crate::stats::discrimination::Discrimination;
use crate::stats::evaluation::{Evaluation, Sampling};
use crate::stats::recalibration::{Cut, Fits, Judgement, Point};
use crate::stats::rng::Rng;
use crate::stats::view::View;

/// Events without the attributes that maps do not support.
pub enum Raw<'a> {
    /// Scores and outcomes, which may be recalibrated.
    Plain(&'a [(f64, bool)]),
    /// Weighted events.
    Weighted(&'a [(f64, bool, f64)]),
    /// Clustered events.
    Clustered(&'a [(f64, bool)]),
    /// Sums over cells only.
    Cells,
}

/// Writes the page of single scores, if one is requested.
pub fn scores(
    args: &Args,
    e: &Evaluation,
    raw: Raw<'_>,
    view: View,
    recalibrated: Option<&Recalibrated>,
) -> Result<(), Failure> {
    if args.report.is_none() {
        return Ok(());
    }
    let discrimination = match raw {
        _ if args.as_window => Discrimination::of_cells(&e.curve),
        Raw::Cells => None,
        Raw::Plain(sample) | Raw::Clustered(sample) => Discrimination::of_scores(sample),
        Raw::Weighted(sample) => Discrimination::of_weighted(sample),
    };
    let halves = match (recalibrated, &raw) {
        (None, Raw::Plain(sample)) if args.sampling() == Sampling::default() && !args.as_window => {
            halves(args, sample)
        }
        _ => None,
    };
    let maps = match (recalibrated, &halves) {
        (Some(r), _) => Ok(Maps {
            fits: &r.fits,
            judgement: &r.judgement,
            applied: r.applied.is_some(),
            how: match r.applied {
                Some(_) => {
                    "The scores of this page are recalibrated by a map that was fitted to another file."
                }
                None => "The maps were fitted to another file; none is applied.",
            },
        }),
        (None, Some((fits, judgement))) => Ok(Maps {
            fits,
            judgement,
            applied: false,
            how: "A random half of the events was held back, so that no map is judged on events that it has seen.",
        }),
        (None, None) => Err(match raw {
            _ if args.as_window => {
                "Maps are fitted to one part of the events and judged on another, which sums over cells do not tell apart."
            }
            Raw::Plain(_) | Raw::Cells => {
                "Maps apply to the scores as the model says them, not to those of sampled negatives."
            }
            Raw::Weighted(_) | Raw::Clustered(_) => {
                "No map is fitted: what one gains is only known of events that are independent and count alike."
            }
        }),
    };
    let name = args.file.display().to_string();
    let sample = Sample {
        name: &name,
        view,
        discrimination: discrimination.as_ref(),
        maps,
    };
    write(args, || evaluation::page(e, &sample))
}

/// Maps fitted to a random half and judged on the other; `None` if a half is empty.
fn halves(args: &Args, sample: &[(f64, bool)]) -> Option<(Fits, Judgement)> {
    let mut rng = Rng::new(args.seed);
    let (fit, rest): (Vec<_>, Vec<_>) = sample.iter().partition(|_| rng.uniform() < 0.5);
    let fits = Fits::of(&Point::of_scores(&fit));
    let points = Point::of_scores(&rest);
    let judgement = Judgement::of(&fits, &points, &Cut::Scores, &args.options())?;
    Some((fits, judgement))
}

/// Writes a page, if one is requested.
pub fn write(args: &Args, page: impl FnOnce() -> String) -> Result<(), Failure> {
    match &args.report {
        Some(path) => {
            report_file::write("--report", path, &page()).map_err(|why| (Exit::Unavailable, why))
        }
        None => Ok(()),
    }
}
