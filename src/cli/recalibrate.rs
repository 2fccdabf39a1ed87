//! `trueline evaluate --recalibrate`: recalibrates scores by a map that is fitted to another file.
//!
//! Three maps are fitted to the raw scores of `--fit` and compared on FILE, like the maps of a
//! window on the next one. Then the chosen map is applied to the scores of FILE, and the result is
//! evaluated.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::exit::{self, Exit, Failure};
use super::report_file;
use crate::report::recalibration as words;
use crate::stats::evaluation::Options;
use crate::stats::recalibration::{Cut, Fits, Judgement, Measures, Method, Point, table};
use serde_json::{Value, json};

/// Which map recalibrates the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Recalibrate {
    /// Intercept and slope on the log-odds (Platt scaling, Cox)
    Logistic,
    /// Beta calibration: the two ends of the scale bend independently
    Beta,
    /// Isotonic regression: any increasing function
    Isotonic,
    /// The map that is advised for these files; the raw scores if none is
    Advised,
}

/// Options of recalibration.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Recalibrate the scores first by a map fitted to the file of --fit, and report the gain
    #[arg(
        long,
        value_enum,
        value_name = "MAP",
        requires = "fit",
        conflicts_with = "test"
    )]
    pub recalibrate: Option<Recalibrate>,
    /// File to fit the maps to; it must share no event with FILE
    #[arg(long, value_name = "FILE", requires = "recalibrate")]
    pub fit: Option<PathBuf>,
    /// Write the map as CSV (score, recalibrated score; parameters in the first line)
    #[arg(long, value_name = "FILE", requires = "recalibrate")]
    pub map: Option<PathBuf>,
}

impl Args {
    /// Errs where the maps would be fitted to the events that they are judged on.
    pub fn check(&self, file: &Path) -> Result<(), String> {
        let Some(fit) = self.fit.as_deref().filter(|fit| is_same(fit, file)) else {
            return Ok(());
        };
        Err(format!(
            "--fit: {} has the events of {}; fit the map to others, or it is judged on what it has seen",
            fit.display(),
            file.display()
        ))
    }
}

/// Whether two paths are one file, or two of equal content.
fn is_same(a: &Path, b: &Path) -> bool {
    if a == b || report_file::is_same(a, b) {
        return true;
    }
    // Pipes have no length, and what is read of them is gone.
    let length = |path: &Path| {
        let file = path.metadata().ok().filter(|m| m.is_file());
        file.map(|m| m.len())
    };
    let equal = length(a).zip(length(b)).is_some_and(|(a, b)| a == b);
    equal && equal_content(a, b).unwrap_or(false)
}

fn equal_content(a: &Path, b: &Path) -> io::Result<bool> {
    let (mut a, mut b) = (
        BufReader::new(File::open(a)?),
        BufReader::new(File::open(b)?),
    );
    loop {
        let (left, right) = (a.fill_buf()?, b.fill_buf()?);
        let n = left.len().min(right.len());
        if left[..n] != right[..n] {
            return Ok(false);
        }
        if n == 0 {
            return Ok(left.len() == right.len());
        }
        a.consume(n);
        b.consume(n);
    }
}

/// How scores were recalibrated.
pub struct Recalibrated {
    /// The maps.
    pub fits: Fits,
    /// What they bring.
    pub judgement: Judgement,
    /// The one that was applied.
    pub applied: Option<Method>,
}

/// Fits and compares the maps, and applies the wanted one to `sample`.
pub fn apply(
    args: &Args,
    wanted: Recalibrate,
    fit: &[(f64, bool)],
    sample: &mut [(f64, bool)],
    options: &Options,
) -> Result<Recalibrated, Failure> {
    let fits = Fits::of(&Point::of_scores(fit));
    let judged = Judgement::of(&fits, &Point::of_scores(sample), &Cut::Scores, options);
    let Some(judgement) = judged else {
        let why = "there are no events to compare the maps on";
        return Err((Exit::Data, why.to_owned()));
    };
    let applied = match wanted {
        Recalibrate::Logistic => Some(Method::Logistic),
        Recalibrate::Beta => Some(Method::Beta),
        Recalibrate::Isotonic => Some(Method::Isotonic),
        Recalibrate::Advised => judgement.advice.method(),
    };
    if let Some(method) = applied {
        let map = fits.maps[method as usize].as_ref().map_err(|why| {
            let (name, why) = (method.as_str(), why.words());
            let text =
                format!("no {name} map can be fitted to the file of --fit: {why}; use more events");
            (Exit::Data, text)
        })?;
        for (z, _) in sample.iter_mut() {
            *z = map.rate(*z);
        }
        if let Some(path) = &args.map {
            report_file::write("--map", path, &table::csv(map))
                .map_err(|why| (Exit::Unavailable, why))?;
        }
    } else if args.map.is_some() {
        exit::eprint_line(format_args!("no map is advised, so no table was written"));
    }
    Ok(Recalibrated {
        fits,
        judgement,
        applied,
    })
}

/// The JSON beside the evaluation.
pub fn json(m: &Recalibrated) -> Value {
    json!({
        "applied": m.applied.map(Method::as_str),
        "advice": words::advice(Some((&m.judgement, &m.fits))),
        "fitted": words::fits(&m.fits),
        "judged": words::judgement(&m.judgement),
    })
}

/// A table of the maps, the advice, and which scores are evaluated below.
pub fn render(m: &Recalibrated) -> String {
    let mut out = format!(
        "recalibration, fitted to {} events and judged on {}\n{:<12}{:>10}{:>22}{:>10}{:>10}{:>10}\n",
        m.fits.n,
        m.judgement.n,
        "map",
        "log loss",
        "gain (std. error)",
        "Brier",
        "ECE l1",
        "ECE l2"
    );
    line(&mut out, "none", &m.judgement.original, "");
    for method in Method::ALL {
        let name = method.as_str();
        match (m.judgement.trial(method), &m.fits.maps[method as usize]) {
            (Some(t), _) => {
                let g = &t.log_loss;
                let gain = format!("{:+.5} ({:.5})", g.mean, g.standard_error);
                line(&mut out, name, &t.recalibrated, &gain);
            }
            (None, Err(why)) => {
                // Writing to a string cannot fail.
                let _ = writeln!(out, "{name:<12}none: {}", why.words());
            }
            (None, Ok(_)) => {}
        }
    }
    let what = m.applied.map_or("as they are".to_owned(), |a| {
        format!("recalibrated by the {} map", a.as_str())
    });
    let _ = writeln!(
        out,
        "{}\n\nevaluation of the scores {what}",
        words::words(&m.judgement, &m.fits)
    );
    out
}

fn line(out: &mut String, name: &str, m: &Measures, gain: &str) {
    let _ = writeln!(
        out,
        "{name:<12}{:>10.5}{gain:>22}{:>10.5}{:>10.5}{:>10.5}",
        m.log_loss,
        m.brier,
        m.ece_l1,
        m.ece_l2()
    );
}
