//! Replays files of events in event time.
//!
//! The files are one partition of one source, and each is read to its end before the next, so windows seal
//! by the event times of the files. Outcomes in records of their own come from separate files, merged with
//! the predictions by event time, or from among the predictions: a row without a prediction is an outcome.

use std::path::{Path, PathBuf};

use super::session::{Progress, Session, Tally};
use crate::app::error::AppError;
use crate::app::ingest::entry::{self, Taken};
use crate::app::ingest::stats::ReplayStats;
use crate::collect::PartitionId;
use crate::config::Config;
use crate::decode::{Content, DecodeOptions, FileError, FileReader, LabelOptions, Row};
use crate::judge::Change;
use crate::monitor::Engine;

/// The partition of the predictions.
const EVENTS: PartitionId = PartitionId {
    source: 0,
    partition: 0,
};

/// Replays files, read with the fields of the configuration's first source.
pub(super) fn replay(
    config: Config,
    events: &[PathBuf],
    outcomes: &[PathBuf],
    on_change: &mut dyn FnMut(&Change),
    progress: Progress<'_>,
) -> Result<(Engine, Tally), AppError> {
    let Some(source) = config.sources.first() else {
        let why = "the configuration has no [[source]] to take the fields from";
        return Err(AppError::Config(why.to_owned()));
    };
    let labels = source.join.as_ref().map(|join| &join.labels);
    if labels.is_none() && !outcomes.is_empty() {
        let why = "the configuration's first source has no [source.outcomes] that says how outcomes are read";
        return Err(AppError::Config(why.to_owned()));
    }
    let size = |f: &PathBuf| f.metadata().map_or(0, |m| m.len());
    let total = events.iter().chain(outcomes).map(size).sum();
    let joins = &config.plan.joins;
    let join = joins.iter().find(|j| j.predictions == 0);
    let id = PartitionId {
        source: join.map_or(0, |j| j.outcomes),
        partition: 0,
    };
    let mut session = Session::new(config.plan.clone(), on_change);
    session.engine.assign(EVENTS.source, EVENTS.partition);
    if !outcomes.is_empty() {
        session.engine.assign(id.source, id.partition);
    }
    let mut replay = FileReplay {
        session,
        outcomes: id,
        stats: ReplayStats::default(),
    };
    let mut predictions = FileQueue::new(events, Some(&source.decode), labels);
    let mut labels = FileQueue::new(outcomes, None, labels);
    replay.run(&mut predictions, &mut labels, &|done| progress(done, total))?;
    Ok(replay.session.finish(replay.stats))
}

/// A replay of files.
struct FileReplay<'a> {
    session: Session<'a>,
    /// The partition of the outcomes.
    outcomes: PartitionId,
    stats: ReplayStats,
}

impl FileReplay<'_> {
    fn run<'f>(
        &mut self,
        predictions: &mut FileQueue<'f>,
        labels: &mut FileQueue<'f>,
        progress: &dyn Fn(u64),
    ) -> Result<(), AppError> {
        predictions.advance()?;
        labels.advance()?;
        loop {
            let first = match (predictions.has_row(), labels.has_row()) {
                (false, false) => break,
                // A merge decodes each row twice.
                (true, true) => predictions.time_ms() <= labels.time_ms(),
                (first, _) => first,
            };
            let queue = if first {
                &mut *predictions
            } else {
                &mut *labels
            };
            self.take(queue);
            if !queue.advance()? {
                self.end(if first { EVENTS } else { self.outcomes });
            }
            if self.session.due() {
                self.session.tick(self.stats.newest_ms);
                progress(predictions.bytes() + labels.bytes());
            }
        }
        // The outcomes among the predictions.
        if self.stats.outcomes > 0 {
            self.end(self.outcomes);
        }
        Ok(())
    }

    fn end(&mut self, id: PartitionId) {
        let engine = &mut self.session.engine;
        engine.end_of_partition(id.source, id.partition);
    }

    fn take(&mut self, queue: &mut FileQueue<'_>) {
        let Some((row, path)) = queue.row() else {
            return;
        };
        // Offsets count over all files, so that no row is mistaken for one that was read before.
        let offset = i64::try_from(self.session.records).unwrap_or(i64::MAX);
        self.session.records += 1;
        let id = match &row.content {
            Ok(Content::Outcome(_)) => self.outcomes,
            Ok(Content::Event(_)) | Err(_) => EVENTS,
        };
        let (engine, stats) = (&mut self.session.engine, &mut self.stats);
        let taken = entry::take(engine, Some(stats), (id.at(offset), None), row.content);
        if let Taken::Rejected(rejection) = taken {
            let place = || format!("{}:{}", path.display(), row.line);
            self.stats.rejected(&rejection, place);
        }
    }
}

/// Files in order, read row by row.
struct FileQueue<'a> {
    paths: std::slice::Iter<'a, PathBuf>,
    events: Option<&'a DecodeOptions>,
    labels: Option<&'a LabelOptions>,
    current: Option<(FileReader, &'a Path)>,
    /// Bytes of the files that are complete.
    done: u64,
}

impl<'a> FileQueue<'a> {
    fn new(
        paths: &'a [PathBuf],
        events: Option<&'a DecodeOptions>,
        labels: Option<&'a LabelOptions>,
    ) -> FileQueue<'a> {
        FileQueue {
            paths: paths.iter(),
            events,
            labels,
            current: None,
            done: 0,
        }
    }

    /// Moves to the next row; `false` at the end of the last file.
    fn advance(&mut self) -> Result<bool, AppError> {
        let failed = |e: FileError| AppError::Data(e.to_string());
        loop {
            if let Some((reader, _)) = &mut self.current {
                if reader.advance().map_err(failed)? {
                    return Ok(true);
                }
                self.done += reader.bytes_read();
                self.current = None;
            }
            let Some(path) = self.paths.next() else {
                return Ok(false);
            };
            let reader = FileReader::open(path, self.events, self.labels).map_err(failed)?;
            self.current = Some((reader, path));
        }
    }

    fn has_row(&self) -> bool {
        self.current.is_some()
    }

    fn row(&mut self) -> Option<(Row<'_>, &Path)> {
        let (reader, path) = self.current.as_mut()?;
        Some((reader.row(), path))
    }

    /// Event time of the row; a row that cannot be read comes first.
    fn time_ms(&mut self) -> i64 {
        let content = self.row().map(|(row, _)| row.content);
        match content {
            Some(Ok(content)) => content.time_ms(),
            _ => i64::MIN,
        }
    }

    /// Bytes read so far.
    fn bytes(&self) -> u64 {
        self.done + self.current.as_ref().map_or(0, |(r, _)| r.bytes_read())
    }
}
