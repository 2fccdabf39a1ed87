//! Replays files of events in event time.
//!
//! The files are one partition of one source, and each is read to its end before the next, so panes
//! are sealed by the event times of the files. Outcomes in records of their own come from separate
//! files, merged with the predictions by event time, or are among the predictions: a row without a
//! prediction is an outcome.

use std::path::{Path, PathBuf};

use super::session::{Listeners, Progress, Session, Tally};
use crate::app::error::AppError;
use crate::app::ingest::models::Models;
use crate::app::ingest::record::{self, RecordResult};
use crate::app::replay::stats::ReplayStats;
use crate::collect::PartitionId;
use crate::config::{Config, SourceOptions};
use crate::decode::{Content, DecodeOptions, FileError, FileReader, OutcomeOptions, Row};
use crate::monitor::{Engine, PartitionEvent, RecordSink};

/// Files that are replayed.
#[derive(Debug, Clone, Copy)]
pub struct FileInput<'a> {
    /// Files of predictions, or of both kinds of records.
    pub events: &'a [PathBuf],
    /// Files of outcomes alone.
    pub outcomes: &'a [PathBuf],
    /// Name of the source whose fields they have; `None` means the first of the configuration.
    pub source: Option<&'a str>,
    /// Sort the records by event time first, in memory.
    pub sort: bool,
}

/// Replays files, read with the fields of a source.
pub(super) fn replay(
    config: Config,
    input: &FileInput<'_>,
    listeners: Listeners<'_>,
    progress: Progress<'_>,
) -> Result<(Engine, Tally), AppError> {
    let FileInput {
        events, outcomes, ..
    } = *input;
    let (source, number) = source_of(&config, input.source)?;
    let labels = source.join.as_ref().map(|join| &join.outcomes);
    if labels.is_none() && !outcomes.is_empty() {
        let why = format!(
            "source {} of the configuration has no [source.outcomes] that says how outcomes are read",
            source.name
        );
        return Err(AppError::Config(why));
    }
    let size = |f: &PathBuf| f.metadata().map_or(0, |m| m.len());
    let total = events.iter().chain(outcomes).map(size).sum();
    let joins = &config.plan.joins;
    let join = joins.iter().find(|j| j.predictions == number);
    let id = (join.map_or(number, |j| j.outcomes), 0).into();
    let mut session = Session::new(config.plan.clone(), config.threads, listeners)?;
    session.engine.assign((number, 0).into());
    if !outcomes.is_empty() {
        session.engine.assign(id);
    }
    let mut replay = FileReplay {
        session,
        predictions: (number, 0).into(),
        outcomes: id,
        models: Models::new(&source.models),
        stats: ReplayStats::default(),
    };
    let mut predictions = FileQueue::new(events, Some(&source.decode), labels);
    let mut labels = FileQueue::new(outcomes, None, labels);
    if input.sort {
        predictions.sort()?;
        labels.sort()?;
    }
    replay.run(&mut predictions, &mut labels, &|done| progress(done, total))?;
    Ok(replay.session.finish(replay.stats))
}

/// The source with this name, or the first source if there is no name; and the number of its first
/// topic.
fn source_of<'c>(
    config: &'c Config,
    name: Option<&str>,
) -> Result<(&'c SourceOptions, u16), AppError> {
    let mut number = 0;
    for source in &config.sources {
        if name.is_none_or(|name| source.name == name) {
            return Ok((source, number));
        }
        number += source.topic_count();
    }
    let names: Vec<&str> = config.sources.iter().map(|s| s.name.as_str()).collect();
    Err(AppError::Config(match name {
        None => "the configuration has no [[source]] to take the fields from".to_owned(),
        Some(name) => format!(
            "there is no source `{name}`; there are {}",
            names.join(", ")
        ),
    }))
}

struct FileReplay<'a> {
    session: Session<'a>,
    predictions: PartitionId,
    outcomes: PartitionId,
    models: Models,
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
                // Decodes each row twice, as only a merge must.
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
                self.end(if first {
                    self.predictions
                } else {
                    self.outcomes
                });
            }
            if self.session.due() {
                self.session.tick(self.stats.newest_ms);
                progress(predictions.bytes() + labels.bytes());
            }
        }
        // For the outcomes among the predictions.
        if self.stats.outcomes > 0 {
            self.end(self.outcomes);
        }
        Ok(())
    }

    fn end(&mut self, id: PartitionId) {
        let engine = &mut self.session.engine;
        engine.on_partition(id, PartitionEvent::Ended);
    }

    fn take(&mut self, queue: &mut FileQueue<'_>) {
        let Some((mut row, path)) = queue.row() else {
            return;
        };
        // Offsets count over all files, so that no row is mistaken for one that was read before.
        let offset = i64::try_from(self.session.records).unwrap_or(i64::MAX);
        self.session.records += 1;
        let id = match &row.content {
            Ok(Content::Outcome(_)) => self.outcomes,
            Ok(Content::Event(_)) | Err(_) => self.predictions,
        };
        let (engine, stats) = (&mut self.session.engine, &mut self.stats);
        let result = record::dispatch(engine, Some(stats), id.at(offset), None, &mut row.content);
        match result {
            RecordResult::Rejected(rejection) => {
                let rejection = self.models.name(rejection, &row.content);
                let place = || format!("{}:{}", path.display(), row.line);
                self.stats.rejected(&rejection, place);
            }
            RecordResult::Refused(cap) => {
                let line = i64::try_from(row.line).unwrap_or(i64::MAX);
                record::refused(cap, path.display(), 0, line, &row.content);
            }
            RecordResult::Counted | RecordResult::Replayed => {}
        }
    }
}

/// Files, read row by row: one after the other, or merged by event time.
struct FileQueue<'a> {
    paths: std::slice::Iter<'a, PathBuf>,
    events: Option<&'a DecodeOptions>,
    labels: Option<&'a OutcomeOptions>,
    /// The file that has the current row; when sorted, all files that still have rows.
    open: Vec<OpenFile<'a>>,
    /// Index of the file of the current row.
    current: usize,
    /// All files are sorted and merged.
    sorted: bool,
    /// Bytes of the files that were read to their end.
    done: u64,
}

struct OpenFile<'a> {
    reader: FileReader,
    path: &'a Path,
    /// Event time of its current row, if files are merged.
    time_ms: i64,
}

impl OpenFile<'_> {
    /// Moves to the next row of a sorted file. A row that cannot be read has the time of the
    /// previous row.
    fn advance_sorted(&mut self) -> Result<bool, AppError> {
        let found = self.reader.advance().map_err(failed)?;
        if found && let Ok(content) = self.reader.row().content {
            self.time_ms = content.time_ms();
        }
        Ok(found)
    }
}

impl<'a> FileQueue<'a> {
    fn new(
        paths: &'a [PathBuf],
        events: Option<&'a DecodeOptions>,
        labels: Option<&'a OutcomeOptions>,
    ) -> FileQueue<'a> {
        FileQueue {
            paths: paths.iter(),
            events,
            labels,
            open: Vec::new(),
            current: 0,
            sorted: false,
            done: 0,
        }
    }

    /// Opens and sorts all files, and merges them from now on.
    fn sort(&mut self) -> Result<(), AppError> {
        self.sorted = true;
        while self.open_next()? {}
        for mut file in std::mem::take(&mut self.open) {
            file.reader.sort().map_err(failed)?;
            if file.advance_sorted()? {
                self.open.push(file);
            }
        }
        // Each file is at its first row, and none is current yet.
        self.current = self.open.len();
        Ok(())
    }

    fn open_next(&mut self) -> Result<bool, AppError> {
        let Some(path) = self.paths.next() else {
            return Ok(false);
        };
        if path != Path::new("-")
            && let Err(e) = path.metadata()
        {
            let why = format!("cannot open {} ({e}); check the path", path.display());
            return Err(AppError::NoInput(why));
        }
        let opened = FileReader::open(path, self.events, self.labels);
        let reader = opened.map_err(|e| match path.metadata() {
            Ok(m) if m.is_file() && m.len() == 0 => {
                AppError::Data(format!("{} is empty", path.display()))
            }
            _ => failed(e),
        })?;
        self.open.push(OpenFile {
            reader,
            path,
            time_ms: i64::MIN,
        });
        Ok(true)
    }

    /// Moves to the next row; `false` at the end of the last file.
    fn advance(&mut self) -> Result<bool, AppError> {
        if self.sorted {
            return self.advance_sorted();
        }
        loop {
            if let Some(file) = self.open.first_mut() {
                if file.reader.advance().map_err(failed)? {
                    return Ok(true);
                }
                self.done += file.reader.bytes_read();
                self.open.clear();
            }
            if !self.open_next()? {
                return Ok(false);
            }
        }
    }

    /// Moves to the earliest row of all files.
    fn advance_sorted(&mut self) -> Result<bool, AppError> {
        if let Some(file) = self.open.get_mut(self.current)
            && !file.advance_sorted()?
        {
            self.done += file.reader.bytes_read();
            self.open.remove(self.current);
        }
        let files = self.open.iter().enumerate();
        let first = files.min_by_key(|(_, file)| file.time_ms);
        self.current = first.map_or(0, |(at, _)| at);
        Ok(self.has_row())
    }

    fn has_row(&self) -> bool {
        !self.open.is_empty()
    }

    fn row(&mut self) -> Option<(Row<'_>, &Path)> {
        let file = self.open.get_mut(self.current)?;
        Some((file.reader.row(), file.path))
    }

    /// Event time of the current row; a row that cannot be read comes first.
    fn time_ms(&mut self) -> i64 {
        let content = self.row().map(|(row, _)| row.content);
        match content {
            Some(Ok(content)) => content.time_ms(),
            _ => i64::MIN,
        }
    }

    /// Bytes read so far.
    fn bytes(&self) -> u64 {
        self.done + self.open.iter().map(|f| f.reader.bytes_read()).sum::<u64>()
    }
}

fn failed(e: FileError) -> AppError {
    AppError::Data(e.to_string())
}
