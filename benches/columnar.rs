//! From a Parquet file of ten million rows to cells, beside the crate alone decoding the same
//! columns. Prints figures; asserts none.
//!
//! Run: `cargo bench --bench columnar`. Best of five on one thread. Most memory is that of the
//! process so far, so the file is written before and the cells come first.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use trueline::decode::columns::Columns;
use trueline::decode::vectors::plain_columns;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::batch::BatchedSums;
use trueline::stats::fixed::{Score, Scored};
use trueline::stats::rng::Rng;

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS: usize = 10_000_000;
const CHUNK: usize = 100_000;

fn write(path: &Path) {
    let mut rng = Rng::new(7);
    let mut writer = None;
    for _ in 0..ROWS / CHUNK {
        let scores: Vec<f64> = (0..CHUNK).map(|_| rng.uniform()).collect();
        let happened = |z: &f64| i64::from(rng.uniform() < *z);
        let labels: Vec<i64> = scores.iter().map(happened).collect();
        let columns: [(&str, ArrayRef); 2] = [
            ("score", Arc::new(Float64Array::from(scores))),
            ("label", Arc::new(Int64Array::from(labels))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let writer = writer.get_or_insert_with(|| {
            let file = File::create(path).expect("a file");
            ArrowWriter::try_new(file, batch.schema(), None).expect("a writer")
        });
        writer.write(&batch).expect("written");
    }
    writer.expect("rows").close().expect("closed");
}

/// The columns alone, without cells; then into the cells of a window.
fn ours(path: &Path, cells: bool) -> u64 {
    let plain = plain_columns(path, &Columns::default()).expect("columns");
    let mut plain = plain.expect("it opens");
    let mut sums = BatchedSums::new(Grid::new(Axis::Linear, 12), 1);
    let mut rows = 0;
    while let Some((scores, labels)) = plain.advance().expect("sound") {
        rows += scores.len() as u64;
        for (&z, &y) in scores.iter().zip(labels).filter(|_| cells) {
            let score = Score::new(z).expect("a score");
            sums.observe_one(Scored::new(score, y)).expect("room");
        }
    }
    assert!(!cells || sums.flush()[0].n() == rows);
    rows
}

fn crate_alone(path: &Path) -> u64 {
    let file = File::open(path).expect("a file");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let reader = builder.with_batch_size(16_384).build().expect("a reader");
    reader.map(|b| b.expect("a batch").num_rows() as u64).sum()
}

fn best(name: &str, mut f: impl FnMut() -> u64) {
    let seconds = (0..5).map(|_| {
        let start = Instant::now();
        assert_eq!(f(), ROWS as u64);
        start.elapsed().as_secs_f64()
    });
    let best = seconds.fold(f64::MAX, f64::min);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find(|l| l.starts_with("VmHWM"));
    let rate = ROWS as f64 / best / 1e6;
    println!(
        "{name:<30}{best:>8.3} s {rate:>8.1} million rows a second, {}",
        most.unwrap_or_default()
    );
}

fn main() {
    let file = tempfile::NamedTempFile::with_prefix("trueline-columnar-").expect("a file");
    let path = file.path();
    write(path);
    best("columns to cells", || ours(path, true));
    best("columns", || ours(path, false));
    best("the crate alone", || crate_alone(path));
}
