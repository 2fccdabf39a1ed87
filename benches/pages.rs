//! Time of pages, of the API and of a scrape with five hundred streams, and of the text of a scrape
//! with a thousand. Prints figures; asserts none.
//!
//! Run: `cargo bench --bench pages`. Each path in turn with `/live`, which computes nothing, over a
//! new connection of loopback each; the ratio is the median over the turns, with the quarter of
//! turns below and above.

use std::time::{Duration, Instant};

use trueline::telemetry::published::Limits;
use trueline::telemetry::scrape;

#[path = "../tests/support/many_streams.rs"]
mod many_streams;
#[path = "../tests/support/published.rs"]
mod published;
#[path = "../tests/support/server.rs"]
mod server;

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TURNS: usize = 41;

fn main() {
    pages();
    scrapes();
}

/// The text of `/metrics` of a thousand streams, without and with their cells.
fn scrapes() {
    println!("\n1000 streams, 3 windows each; {TURNS} turns\n");
    println!(
        "{:<20}{:>10}{:>12}{:>22}{:>22}",
        "scrape", "series", "bytes", "ms", "times copying it"
    );
    for (name, cell_streams_max) in [("without cells", 0), ("with cells", 1000)] {
        let limits = Limits {
            cell_streams_max,
            series_max: usize::MAX,
            ..Limits::default()
        };
        let published = many_streams::many_streams(1000, limits);
        let (mut times, mut ratios, mut size) = (Vec::new(), Vec::new(), (0, 0));
        for _ in 0..TURNS {
            let begun = Instant::now();
            let text = scrape::text(&published).expect("a text");
            let took = begun.elapsed();
            let begun = Instant::now();
            let copy = std::hint::black_box(text.clone());
            ratios.push(took.as_secs_f64() / begun.elapsed().as_secs_f64());
            times.push(took.as_secs_f64() * 1e3);
            let series = copy
                .split(|b| *b == b'\n')
                .filter(|l| !l.is_empty() && l[0] != b'#');
            size = (series.count(), text.len());
        }
        times.sort_by(f64::total_cmp);
        ratios.sort_by(f64::total_cmp);
        let at = |all: &[f64], share: f64| all[(share * (TURNS - 1) as f64) as usize];
        println!(
            "{name:<20}{:>10}{:>12}{:>8.1} ({:.1} to {:.1}){:>10.0}",
            size.0,
            size.1,
            at(&times, 0.5),
            at(&times, 0.25),
            at(&times, 0.75),
            at(&ratios, 0.5)
        );
    }
}

fn pages() {
    let server = server::Server::start(many_streams::many_streams(500, Limits::default()));
    let time = |path: &str| -> (Duration, usize) {
        let begun = Instant::now();
        let answer = server.get(path);
        let took = begun.elapsed();
        assert_eq!(answer.status, 200, "{path}");
        (took, answer.body.len())
    };
    println!("500 streams, 3 windows each; {TURNS} turns\n");
    println!(
        "{:<62}{:>10}{:>10}{:>22}",
        "path", "bytes", "ms", "times /live"
    );
    let paths = [
        "/",
        "/?q=model-07",
        "/?by=model",
        "/?state=firing",
        "/alerts",
        "/api/v1/streams",
        "/streams/recommendation-model-000/2026-11-01/country=0/binary",
        "/metrics",
    ];
    for path in paths {
        let mut ratios = Vec::new();
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..TURNS {
            let (base, _) = time("/live");
            let (took, length) = time(path);
            ratios.push(took.as_secs_f64() / base.as_secs_f64());
            times.push(took.as_secs_f64() * 1e3);
            bytes = length;
        }
        ratios.sort_by(f64::total_cmp);
        times.sort_by(f64::total_cmp);
        let at = |all: &[f64], share: f64| all[(share * (TURNS - 1) as f64) as usize];
        println!(
            "{path:<62}{bytes:>10}{:>10.2}{:>8.1} ({:.1} to {:.1})",
            at(&times, 0.5),
            at(&ratios, 0.5),
            at(&ratios, 0.25),
            at(&ratios, 0.75)
        );
    }
}
