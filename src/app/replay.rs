//! Files of events through the engine, in event time.
//!
//! The engine knows no clock but the one it is told; here it is told the newest event time, so that a
//! replay of last month says what `run` would have said last month. Each file is one partition of one
//! source, read to its end before the next: windows seal as the files' own times pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::engine::{Engine, Plan};
use super::fault::Fault;
use crate::collect::{Disposition, Origin};
use crate::decode::{DecodeOptions, FileReader};
use crate::judge::Change;

/// Records between two ticks of the engine and of the progress.
const STRIDE: u64 = 4096;

/// What went through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records read.
    pub records: u64,
    /// Records that count in a window.
    pub observed: u64,
    /// All other records, by what became of them.
    pub others: BTreeMap<&'static str, u64>,
    /// Least and greatest event time of the records that could be read.
    pub times_ms: Option<(i64, i64)>,
    /// The first record that was rejected: file, line, reason.
    pub first_rejected: Option<String>,
}

/// Replays `files` in order. Changes go to `told` as they come; `progress` hears of the bytes read.
pub fn replay(
    plan: Plan,
    decode: &DecodeOptions,
    files: &[PathBuf],
    told: &mut dyn FnMut(&Change),
    progress: &dyn Fn(u64),
) -> Result<(Engine, Tally), Fault> {
    let mut engine = Engine::new(plan);
    let mut tally = Tally::default();
    engine.assign(0, 0);
    let mut before = 0;
    for path in files {
        let read = one(&mut engine, decode, path, &mut tally, told, &|bytes| {
            progress(before + bytes)
        })?;
        before += read;
    }
    engine.end_of_partition(0, 0);
    for change in engine.finish() {
        told(&change);
    }
    Ok((engine, tally))
}

/// One file to its end; answers its bytes.
fn one(
    engine: &mut Engine,
    decode: &DecodeOptions,
    path: &Path,
    tally: &mut Tally,
    told: &mut dyn FnMut(&Change),
    progress: &dyn Fn(u64),
) -> Result<u64, Fault> {
    let mut reader = FileReader::open(path, decode).map_err(|e| Fault::Data(e.to_string()))?;
    let mut newest_ms = i64::MIN;
    loop {
        // Offsets count over all files, so that none is taken for a record read before.
        let origin = Origin {
            source: 0,
            partition: 0,
            offset: i64::try_from(tally.records).unwrap_or(i64::MAX),
        };
        let Some(row) = reader.read().map_err(|e| Fault::Data(e.to_string()))? else {
            break;
        };
        let line = row.line;
        let (disposition, detail) = match row.event {
            Ok(event) => {
                newest_ms = newest_ms.max(event.time_ms);
                tally.time(event.time_ms);
                (engine.observe(origin, &event), String::new())
            }
            Err(bad) => (engine.reject(origin, bad.reason), bad.detail),
        };
        tally.count(disposition, path, line, &detail);
        if tally.records.is_multiple_of(STRIDE) {
            for change in engine.tick(newest_ms) {
                told(&change);
            }
            progress(reader.bytes_read());
        }
    }
    Ok(reader.bytes_read())
}

impl Tally {
    fn time(&mut self, ms: i64) {
        let (first, last) = self.times_ms.unwrap_or((ms, ms));
        self.times_ms = Some((first.min(ms), last.max(ms)));
    }

    fn count(&mut self, disposition: Disposition, path: &Path, line: u64, detail: &str) {
        self.records += 1;
        if disposition == Disposition::Observed {
            self.observed += 1;
            return;
        }
        let name = match disposition {
            Disposition::Rejected(reason) => reason.as_str(),
            other => other.as_str(),
        };
        *self.others.entry(name).or_default() += 1;
        if self.first_rejected.is_none() && matches!(disposition, Disposition::Rejected(_)) {
            let comma = if detail.is_empty() { "" } else { ", " };
            self.first_rejected = Some(format!("{}:{line}: {name}{comma}{detail}", path.display()));
        }
    }
}
