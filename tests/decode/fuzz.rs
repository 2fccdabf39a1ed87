//! The fuzz targets without libFuzzer: seeds, mutated at random from a fixed seed, for a few
//! seconds.
//!
//! `TRUELINE_FUZZ_RUNS=1000000` makes it longer. The coverage-guided form of the same bodies is in
//! `tests/fuzz` and needs a nightly compiler. A failure prints the input.

#[path = "../fuzz/bodies.rs"]
mod bodies;

use std::fs;
use std::path::Path;

use trueline::stats::rng::Rng;

/// Mutations of a target, unless `TRUELINE_FUZZ_RUNS` says otherwise: about two seconds.
const RUNS: u64 = 20_000;

/// Pieces with a meaning to one of the parsers.
const PIECES: [&str; 30] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\\u00",
    "\\ud800",
    ":",
    ",",
    "null",
    "true",
    "-0",
    "1e999",
    "1e-400",
    "0.1",
    "NaN",
    "9223372036854775808",
    "\u{feff}",
    "é",
    "\0",
    "\n",
    "# ",
    " = ",
    "${SET}",
    "${",
    "[[model]]\n",
    "'''",
    "5m",
    "\"score\":",
];

fn below(rng: &mut Rng, n: usize) -> usize {
    ((rng.uniform() * n as f64) as usize).min(n.saturating_sub(1))
}

/// One to four changes: a byte, a piece put in, a stretch taken out, doubled, or taken from another
/// seed.
fn mutate(rng: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[below(rng, seeds.len())].clone();
    for _ in 0..=below(rng, 4) {
        let at = below(rng, bytes.len() + 1);
        let to = (at + below(rng, 24)).min(bytes.len());
        match below(rng, 6) {
            0 if at < bytes.len() => bytes[at] = below(rng, 256) as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << below(rng, 8),
            2 => drop(bytes.drain(at..to)),
            3 => {
                let again = bytes[at..to].to_vec();
                bytes.splice(at..at, again);
            }
            4 => {
                let other = &seeds[below(rng, seeds.len())];
                let from = below(rng, other.len() + 1);
                let until = (from + below(rng, 64)).min(other.len());
                bytes.splice(at..to, other[from..until].iter().copied());
            }
            _ => {
                let piece = PIECES[below(rng, PIECES.len())];
                bytes.splice(at..at, piece.bytes());
            }
        }
    }
    bytes
}

fn hold(seeds: &[Vec<u8>], body: fn(&[u8])) {
    let runs = std::env::var("TRUELINE_FUZZ_RUNS");
    let runs = runs.ok().and_then(|r| r.parse().ok()).unwrap_or(RUNS);
    let mut rng = Rng::new(11);
    let mutated = (0..runs).map(|_| mutate(&mut rng, seeds));
    for input in seeds.iter().cloned().chain(mutated) {
        let held = std::panic::catch_unwind(|| body(&input));
        assert!(held.is_ok(), "input: {:?}", String::from_utf8_lossy(&input));
    }
}

#[test]
fn the_decoder_holds_what_it_promises_on_mutated_records() {
    let seeds = [
        r#"{"model":"m","time_ms":1700000000000,"score":0.25,"outcome":1}"#,
        r#"{"outcome":"b","p":{"a":0.25,"b":0.75},"time_ms":1700000000000,"model":"m","x":[1,{"y":null}]}"#,
        r#"{"model":"m","time_ms":1.7e12,"p":[0.5,0.25,0.25],"outcome":2,"score":"0.7"}"#,
        "{\"model\":\"\\u00e9\\ud83d\\ude00\",\"time_ms\":-1,\"score\":1e-7,\"outcome\":false}",
        "",
        "[]",
    ];
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|s| s.as_bytes().to_vec()).collect();
    hold(&seeds, bodies::decode);
}

#[test]
fn a_decoder_makes_the_same_of_a_record_whatever_it_has_read_before() {
    let line = |i: usize| {
        let (model, z, y) = (i / 3 % 2, i * 7919 % 10_007, i.is_multiple_of(2));
        let digits = [4, 16, 17, 19][i % 4];
        let score = format!("0.{z:0digits$}");
        format!(
            r#"{{"model":"m{model}","version":"v","country":"de","user":{{"plan":"é"}},"id":"i{i}","time_ms":{},"at":"2026-11-21T14:30:{:02}Z","score":{score},"outcome":{y},"host":"h","note":"{}"}}"#,
            1_700_000_000_000u64 + i as u64,
            i % 60,
            "x".repeat(i % 20),
        )
    };
    let stream = |from: usize| {
        let lines: Vec<String> = (from..from + 8).map(line).collect();
        let mut bytes = lines.join("\n").into_bytes();
        // The last is the first again, and the one that is mutated may be any.
        bytes.push(b'\n');
        bytes.extend_from_slice(lines[0].as_bytes());
        bytes
    };
    let seeds: Vec<Vec<u8>> = (0..12).map(|i| stream(5 * i)).collect();
    hold(&seeds, bodies::layouts);
}

#[test]
fn the_configuration_holds_what_it_promises_on_mutated_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seeds = Vec::new();
    for folder in ["config", "tests/config/bad"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "toml") {
                seeds.push(fs::read(path).unwrap());
            }
        }
    }
    seeds.sort();
    assert!(seeds.len() > 10);
    hold(&seeds, bodies::config);
}
