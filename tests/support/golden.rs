//! Golden values of `tests/golden`, and published model outputs, which are not part of the
//! repository.

use std::path::{Path, PathBuf};

use serde_json::Value;
use trueline::stats::rng::Rng;

use super::skip;

/// A file of golden values.
pub fn json(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("golden values are JSON")
}

/// A file or folder of published model outputs below `TRUELINE_DATA` (a path from the project's
/// root), or `None` after saying that `test` is skipped. Where the variable is set, what lacks is a
/// failure.
pub fn published(test: &str, path: &str) -> Option<PathBuf> {
    let data = std::env::var("TRUELINE_DATA").unwrap_or_default();
    if data.is_empty() {
        skip(test, "set TRUELINE_DATA to the published model outputs");
        return None;
    }
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join(data).join(path);
    assert!(
        found.exists(),
        "TRUELINE_DATA: {} is missing",
        found.display()
    );
    Some(found)
}

/// A published file of two columns, scores and outcomes.
pub fn scores(path: &Path) -> Vec<(f64, bool)> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows = text.lines().skip(1).filter_map(|row| row.split_once(','));
    let rows = rows.map(|(z, y)| (z.trim().parse().unwrap(), y.trim().parse::<f64>().unwrap()));
    rows.map(|(z, y)| (z, y == 1.0)).collect()
}

/// The numbers of a list; none where there is no list.
pub fn numbers(list: &Value) -> Vec<f64> {
    let list = list.as_array().map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_f64).collect()
}

/// The cases of a file by name, with the tiny samples that stand in it.
pub fn tiny_cases() -> Vec<Case> {
    let mut all = cases("tcal_ci.json");
    all.retain(|(_, case)| case["z"].is_array());
    let sample = |(name, case): (String, Value)| {
        let outcomes = numbers(&case["y"]).into_iter().map(|y| y == 1.0);
        let sample = numbers(&case["z"]).into_iter().zip(outcomes).collect();
        (name, sample, case)
    };
    all.into_iter().map(sample).collect()
}

/// A name, a sample, and what is known of it.
pub type Case = (String, Vec<(f64, bool)>, Value);

fn cases(file: &str) -> Vec<(String, Value)> {
    let Value::Object(cases) = json(file) else {
        panic!("{file} holds cases by name");
    };
    cases.into_iter().collect()
}

/// The published networks of `tcal_ci.json`, or none after saying that `test` is skipped.
pub fn published_cases(test: &str) -> Vec<Case> {
    let Some(folder) = published(test, "tcal") else {
        return Vec::new();
    };
    let mut all = cases("tcal_ci.json");
    all.retain(|(_, case)| !case["z"].is_array());
    let sample = |(name, case): (String, Value)| {
        let sample = scores(&folder.join(format!("{name}.csv")));
        (name, sample, case)
    };
    all.into_iter().map(sample).collect()
}

/// Samples of 5000 to 50,000 events with the golden values of `seeded.json`, drawn as `tcal_ci.py`
/// drew them.
pub fn seeded_cases() -> Vec<Case> {
    let sample = |(name, case): (String, Value)| {
        let sample = seeded(&name, case["n"].as_u64().expect("a size") as usize);
        let sum_z: f64 = sample.iter().map(|(z, _)| z).sum();
        let sum_y = sample.iter().filter(|(_, y)| *y).count() as u64;
        let drawn = (
            case["drawn"]["sum_z"].as_f64(),
            case["drawn"]["sum_y"].as_u64(),
        );
        assert_eq!(
            (Some(sum_z), Some(sum_y)),
            drawn,
            "{name} is drawn otherwise"
        );
        (name, sample, case)
    };
    cases("seeded.json").into_iter().map(sample).collect()
}

/// Laws of nothing but products, sums and comparisons, so that every double is the same in numpy.
fn seeded(name: &str, n: usize) -> Vec<(f64, bool)> {
    fn same(z: f64) -> f64 {
        z
    }
    fn confidence(u: f64) -> f64 {
        1.0 - 0.9 * (u * u * u * u)
    }
    fn rare(u: f64) -> f64 {
        0.2 * (u * u * u * u * u * u)
    }
    type Map = fn(f64) -> f64;
    let (seed, score, truth): (u64, Map, Map) = match name {
        "confidences" => (1, confidence, same),
        "confidences_too_high" => (2, confidence, |z| z - 0.4 * (z * (1.0 - z))),
        "uniform" => (3, same, same),
        "uniform_bent" => (4, same, |z| z * z * (3.0 - 2.0 * z)),
        "rare" => (5, rare, same),
        "rare_too_low" => (6, rare, |z| 1.5 * z),
        "few_values" => (7, |u| (u * 33.0).floor() / 32.0, same),
        "cell_edges" => (8, |u| (u * 4097.0).floor() / 4096.0, |z| 0.1 + 0.8 * z),
        _ => panic!("no law is called {name}"),
    };
    let mut rng = Rng::new(seed);
    let draw = |_| {
        let z = score(rng.uniform());
        (z, rng.uniform() < truth(z))
    };
    (0..n).map(draw).collect()
}
