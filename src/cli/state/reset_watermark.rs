//! `trueline state reset-watermark`: sets event time back in the snapshot, the journal of
//! notifications and the history.

use std::io;
use std::path::Path;

use crate::app::clock;
use crate::app::outputs::state_dir::StateDir;
use crate::cli::exit::{Exit, Failure};
use crate::decode::parse_time;
use crate::notify::{AlertJournal, JOURNAL};
use crate::report::moment::rfc3339;
use crate::store;
use crate::store::history::{self, HistoryFile};
use crate::telemetry::history::History;

pub(super) fn run(directory: &Path, to: Option<&str>) -> Result<String, Failure> {
    let unavailable = |why: String| (Exit::Unavailable, why);
    let to_ms = match to {
        None => clock::now_ms(),
        Some(text) => parse_time(text).ok_or_else(|| {
            let why = format!("`{text}` is not a time; write 2026-11-21T14:30:00Z");
            (Exit::Usage, why)
        })?,
    };
    if !directory.is_dir() {
        let why = format!("{} is not a directory", directory.display());
        return Err((Exit::NoInput, why));
    }
    // Locked until the end, so that no trueline starts in the directory meanwhile.
    let ours = StateDir::open(directory).map_err(|f| unavailable(f.to_string()))?;
    let loaded = ours.load().map_err(|f| unavailable(f.to_string()))?;
    let loaded = loaded.ok_or_else(|| {
        let why = format!("{} has no snapshot", directory.display());
        (Exit::NoInput, why)
    })?;
    let mut snapshot = loaded.snapshot;
    let sealed = snapshot.models.iter().any(|m| m.sealed_until_ms > to_ms);
    let reset = snapshot.reset_watermark(to_ms);
    let is_ahead = sealed || reset.panes + reset.verdicts > 0;
    if !is_ahead && reset.was_ms.is_none_or(|was_ms| was_ms <= to_ms) {
        let was = reset.was_ms.map_or("nothing".to_owned(), rfc3339);
        let why = format!(
            "event time has come to {was} only, which is not after {}; nothing is changed",
            rfc3339(to_ms)
        );
        return Err((Exit::Usage, why));
    }
    let refused = loaded.refused.iter().map(|(path, _)| path);
    for refused in refused.chain(&loaded.without_journal) {
        store::keep_refused(refused).map_err(|f| unavailable(f.to_string()))?;
    }
    let (alerts, points) = cut_others(directory, to_ms).map_err(|f| unavailable(f.to_string()))?;
    let path = store::save(directory, &snapshot).map_err(|f| unavailable(f.to_string()))?;
    Ok(format!(
        "event time had come to {}; set to {} in {}: {} panes, {} verdicts and {points} points of history after it are \
         gone, and {alerts} alerts count as notified until then",
        reset.was_ms.map_or("nothing".to_owned(), rfc3339),
        rfc3339(to_ms),
        path.display(),
        reset.panes,
        reset.verdicts
    ))
}

/// Cuts the journal of notifications and the history at this time. Returns how many alerts and
/// points were later.
fn cut_others(directory: &Path, to_ms: i64) -> io::Result<(usize, usize)> {
    let mut cut = (0, 0);
    if directory.join(JOURNAL).exists() {
        cut.0 = AlertJournal::open(directory)?.0.cut(to_ms)?;
    }
    if directory.join(history::FILE).exists() {
        let kept = History::default();
        let mut file = HistoryFile::open(directory, &kept)?;
        cut.1 = kept.cut(to_ms);
        if cut.1 > 0 {
            file.rewrite(&kept)?;
        }
    }
    Ok(cut)
}
