//! `trueline evaluate --recalibrate`: recalibrates scores by a map fitted to another file.
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
    /// Returns an error if the maps would be fitted to the events on which they are judged.
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

/// Whether two paths are the same file, or files of equal content.
fn is_same(a: &Path, b: &Path) -> bool {
    if a == b || report_file::is_same(a, b) {
        return true;
    }
    // Pipes have no length and can be read only once.
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

/// Only scores with more decimals than this unit (10⁻⁶) can reveal shared events.
const COARSE: f64 = 1e6;
/// Distinct scores at or below which repetitions reveal nothing.
const DISTINCT_MIN: usize = 64;

/// The reason, if the rows show that the maps would be fitted to the events on which they are
/// judged.
///
/// Continuous scores do not repeat by chance, neither within a file nor in another. So if nearly
/// all long scores of each file are distinct, a score with the same outcome in both files is the
/// same event. Scores that repeat, such as those of a tree, reveal nothing.
fn shared(fit: &[(f64, bool)], sample: &[(f64, bool)]) -> Option<String> {
    let sorted = |rows: &[(f64, bool)]| {
        let mut bits: Vec<(u64, bool)> = rows.iter().map(|&(z, y)| (z.to_bits(), y)).collect();
        bits.sort_unstable();
        bits
    };
    let (ours, theirs) = (sorted(fit), sorted(sample));
    if ours == theirs {
        return Some("both files hold the same events, in another order".to_owned());
    }
    let long = |(bits, _): &(u64, bool)| {
        let z = f64::from_bits(*bits);
        (z * COARSE).round() / COARSE != z
    };
    let long_scores = |rows: &[(u64, bool)]| {
        let mut scores: Vec<u64> = rows.iter().filter(|r| long(r)).map(|r| r.0).collect();
        let all = scores.len();
        scores.dedup();
        (scores.len(), all)
    };
    let continuous = [&ours, &theirs].iter().all(|rows| {
        let (distinct, all) = long_scores(rows);
        distinct > DISTINCT_MIN && distinct * 10 >= all * 9
    });
    let is_shared = |row: &&(u64, bool)| long(row) && theirs.binary_search(row).is_ok();
    let both = ours.iter().filter(is_shared).count();
    (continuous && 2 * both > ours.len()).then(|| {
        let all = ours.len();
        format!("{both} of its {all} events have the score and the outcome of an event of FILE")
    })
}

/// The result of recalibrating scores.
pub struct Recalibrated {
    /// The maps.
    pub fits: Fits,
    /// The gain of each map.
    pub judgement: Judgement,
    /// The map that was applied, if any.
    pub applied: Option<Method>,
}

/// Fits and compares the maps, and applies the requested one to `sample`.
pub fn apply(
    args: &Args,
    wanted: Recalibrate,
    fit: &[(f64, bool)],
    sample: &mut [(f64, bool)],
    options: &Options,
) -> Result<Recalibrated, Failure> {
    if let Some(why) = shared(fit, sample) {
        let name = args.fit.as_deref().unwrap_or(Path::new("")).display();
        let text = format!(
            "--fit: {name}: {why}; split the events into two files that share none, or the map is judged on what it \
             has seen"
        );
        return Err((Exit::Data, text));
    }
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

/// The JSON of the recalibration, which is added to that of the evaluation.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Events with the scores of a low-discrepancy sequence, starting at index `begin`.
    fn events(begin: u32, n: u32) -> Vec<(f64, bool)> {
        let score = |i: u32| (f64::from(i) * 0.618_033_988_75).fract();
        (begin..begin + n).map(|i| (score(i), i % 3 == 0)).collect()
    }

    #[test]
    fn shared_events_are_found_in_any_order() {
        let sample = events(0, 1000);
        let mut fit = sample.clone();
        fit.reverse();
        assert!(shared(&fit, &sample).is_some_and(|why| why.contains("in another order")));
        fit.truncate(998);
        fit.extend(events(5000, 2));
        let why = shared(&fit, &sample).expect("they share events");
        assert!(why.starts_with("998 of its 1000 events"), "{why}");
        assert_eq!(shared(&events(600, 1000), &sample), None, "less than half");
        assert_eq!(shared(&events(1000, 1000), &sample), None);
    }

    #[test]
    fn scores_that_repeat_tell_nothing() {
        let coarse = |rows: Vec<(f64, bool)>| {
            let rows = rows.into_iter();
            rows.map(|(z, y)| ((z * 1e3).round() / 1e3, y)).collect()
        };
        let rounded: [Vec<_>; 2] = [coarse(events(0, 1000)), coarse(events(0, 999))];
        assert_eq!(shared(&rounded[1], &rounded[0]), None);
        // The leaves of a tree, each with both outcomes.
        let leaves = |n: u32| -> Vec<(f64, bool)> {
            let leaf = |i: u32| (f64::from(i % 100) / 300.0, i % 7 < 3);
            (0..n).map(leaf).collect()
        };
        assert_eq!(shared(&leaves(1000), &leaves(3000)), None);
        assert_eq!(shared(&leaves(90), &leaves(3000)), None);
    }
}
