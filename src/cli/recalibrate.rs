//! `trueline evaluate --recalibrate`: scores mended by a map of another file.
//!
//! The three maps are fitted to the raw scores of `--fit` and judged on the file, as a window's are on the
//! next; the evaluation is then of the file's scores as the chosen map mends them.

use std::fmt::Write;
use std::path::PathBuf;

use super::exit::Exit;
use crate::report::recalibration as words;
use crate::stats::evaluation::Options;
use crate::stats::recalibration::{Cut, Fits, Judgement, Measures, Method, Point, table};
use serde_json::{Value, json};

/// Which map mends the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Recalibrate {
    /// Intercept and slope on the log-odds (Platt scaling, Cox)
    Logistic,
    /// Beta calibration: the two ends of the scale bend apart
    Beta,
    /// Any rising function
    Isotonic,
    /// The one that is advised on these files; the scores as they are where none is
    Advised,
}

/// How scores are mended.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Mend the scores first by a map fitted to the file of --fit, and say what that brings
    #[arg(
        long,
        value_enum,
        value_name = "MAP",
        requires = "fit",
        conflicts_with = "test"
    )]
    pub recalibrate: Option<Recalibrate>,
    /// File to which maps are fitted; it must share no event with FILE
    #[arg(long, value_name = "FILE", requires = "recalibrate")]
    pub fit: Option<PathBuf>,
    /// Write the map as a small table for scorers (CSV: score, mended score; parameters in its first line)
    #[arg(long, value_name = "FILE", requires = "recalibrate")]
    pub map: Option<PathBuf>,
}

/// Scores that were mended, and by what.
pub struct Mended {
    fits: Fits,
    judgement: Judgement,
    applied: Option<Method>,
}

/// Fits and judges; the map asked for mends `sample`.
pub fn mend(
    args: &Args,
    wanted: Recalibrate,
    fit: &[(f64, bool)],
    sample: &mut [(f64, bool)],
    options: &Options,
) -> Result<Mended, (Exit, String)> {
    let fits = Fits::of(&Point::of_scores(fit));
    let judged = Judgement::of(&fits, &Point::of_scores(sample), &Cut::Scores, options);
    let Some(judgement) = judged else {
        return Err((
            Exit::Data,
            "there are no events to judge the maps on".into(),
        ));
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
            let text = format!("the file of --fit gives no {name} map: {why}; fit more events");
            (Exit::Data, text)
        })?;
        for (z, _) in sample.iter_mut() {
            *z = map.rate(*z);
        }
        if let Some(path) = &args.map {
            std::fs::write(path, table::csv(map)).map_err(|e| {
                let text = format!("cannot write {} ({e}); check its folder", path.display());
                (Exit::Unavailable, text)
            })?;
        }
    } else if args.map.is_some() {
        eprintln!("trueline evaluate: no map is advised, so no table was written");
    }
    Ok(Mended {
        fits,
        judgement,
        applied,
    })
}

/// As JSON, beside the evaluation.
pub fn json(m: &Mended) -> Value {
    json!({
        "applied": m.applied.map(Method::as_str),
        "advice": words::advice(Some((&m.judgement, &m.fits))),
        "fitted": words::fits(&m.fits),
        "judged": words::judgement(&m.judgement),
    })
}

/// A table of the maps, the advice, and whose evaluation follows.
pub fn render(m: &Mended) -> String {
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
    line(&mut out, "none", &m.judgement.unmended, "");
    for method in Method::ALL {
        let name = method.as_str();
        match (m.judgement.trial(method), &m.fits.maps[method as usize]) {
            (Some(t), _) => {
                let g = &t.log_loss;
                let gain = format!("{:+.5} ({:.5})", g.mean, g.standard_error);
                line(&mut out, name, &t.mended, &gain);
            }
            (None, Err(why)) => {
                // Writing to a string cannot fail.
                let _ = writeln!(out, "{name:<12}none: {}", why.words());
            }
            (None, Ok(_)) => {}
        }
    }
    let what = m.applied.map_or("as they are".to_owned(), |a| {
        format!("mended by the {} map", a.as_str())
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
