//! Files of events through the engine, in event time.
//!
//! Files are one partition of one source, each read to its end before the next: windows seal as the files' own
//! times pass. Outcomes that came apart are read where the configuration's first source says so: from files of their
//! own, merged with those of the predictions by event time, or from among the predictions, where a row without a
//! prediction is an outcome.

use std::path::{Path, PathBuf};

use super::session::{Progress, STRIDE, conclude};
use super::stats::{Tally, Witness};
use crate::app::engine::Engine;
use crate::app::fault::Fault;
use crate::collect::{Disposition, Origin};
use crate::config::{Config, SourceOptions};
use crate::decode::{Content, DecodeOptions, FileError, FileReader, LabelOptions, Rejection, Row};
use crate::judge::Change;

/// Replays files, read with the fields of the configuration's first source.
pub(super) fn replay(
    config: Config,
    events: &[PathBuf],
    outcomes: &[PathBuf],
    told: &mut dyn FnMut(&Change),
    progress: Progress<'_>,
) -> Result<(Engine, Tally), Fault> {
    let Some(source) = config.sources.first() else {
        let why = "the configuration has no [[source]] to take the fields from";
        return Err(Fault::Config(why.to_owned()));
    };
    let labels = source.join.as_ref().map(|join| &join.labels);
    if labels.is_none() && !outcomes.is_empty() {
        let why = "the configuration's first source has no [source.outcomes] that says how outcomes are read";
        return Err(Fault::Config(why.to_owned()));
    }
    let size = |f: &PathBuf| f.metadata().map_or(0, |m| m.len());
    let total = events.iter().chain(outcomes).map(size).sum();
    let joins = &config.plan.joins;
    let join = joins.iter().find(|j| j.predictions == 0);
    let mut pass = Pass {
        outcomes: join.map_or(0, |j| j.outcomes),
        engine: Engine::new(config.plan.clone()),
        witness: Witness::default(),
        records: 0,
    };
    pass.run(source, events, outcomes, told, &|done| {
        progress(done, total)
    })?;
    conclude(&mut pass.engine, pass.witness.outcomes > 0, told);
    let tally = Tally::of(pass.engine.counters(), pass.witness);
    Ok((pass.engine, tally))
}

/// A replay of files on its way.
struct Pass {
    engine: Engine,
    /// Number of the source of outcomes.
    outcomes: u16,
    witness: Witness,
    records: u64,
}

impl Pass {
    fn run(
        &mut self,
        source: &SourceOptions,
        events: &[PathBuf],
        outcomes: &[PathBuf],
        told: &mut dyn FnMut(&Change),
        progress: &dyn Fn(u64),
    ) -> Result<(), Fault> {
        let labels = source.join.as_ref().map(|join| &join.labels);
        let mut one = Queue::new(events, Some(&source.decode), labels);
        let mut other = Queue::new(outcomes, None, labels);
        self.engine.assign(0, 0);
        if !outcomes.is_empty() {
            self.engine.assign(self.outcomes, 0);
        }
        one.advance()?;
        other.advance()?;
        loop {
            let mine = match (one.live(), other.live()) {
                (false, false) => break,
                // Rows are decoded twice where there is something to merge.
                (true, true) => one.time_ms() <= other.time_ms(),
                (mine, _) => mine,
            };
            let queue = if mine { &mut one } else { &mut other };
            self.take(queue);
            let went_on = queue.advance()?;
            if !went_on {
                let source = if mine { 0 } else { self.outcomes };
                self.engine.end_of_partition(source, 0);
            }
            if self.records.is_multiple_of(STRIDE) {
                let newest_ms = self.witness.newest_ms.unwrap_or(i64::MIN);
                self.engine.tick(newest_ms).iter().for_each(&mut *told);
                progress(one.bytes() + other.bytes());
            }
        }
        // Those that stood among the predictions.
        if self.witness.outcomes > 0 {
            self.engine.end_of_partition(self.outcomes, 0);
        }
        Ok(())
    }

    fn take(&mut self, queue: &mut Queue<'_>) {
        let Some((row, path)) = queue.row() else {
            return;
        };
        // Offsets count over all files, so that none is taken for a record read before.
        let offset = i64::try_from(self.records).unwrap_or(i64::MAX);
        self.records += 1;
        let origin = |source| Origin {
            source,
            partition: 0,
            offset,
        };
        let (disposition, detail) = match row.content {
            Ok(Content::Event(event)) => {
                self.witness.event(event.time_ms);
                (self.engine.observe(origin(0), &event), String::new())
            }
            Ok(Content::Outcome(label)) => {
                self.witness.outcome(label.time_ms);
                let end = self.engine.label(origin(self.outcomes), &label);
                (end, String::new())
            }
            Err(Rejection { reason, detail }) => (self.engine.reject(origin(0), reason), detail),
        };
        if let Disposition::Rejected(reason) = disposition {
            let place = || format!("{}:{}", path.display(), row.line);
            self.witness.rejected(reason, &detail, place);
        }
    }
}

/// Files one after the other, one row at a time.
struct Queue<'a> {
    paths: std::slice::Iter<'a, PathBuf>,
    events: Option<&'a DecodeOptions>,
    labels: Option<&'a LabelOptions>,
    now: Option<(FileReader, &'a Path)>,
    /// Bytes of the files that were read to their ends.
    before: u64,
}

impl<'a> Queue<'a> {
    fn new(
        paths: &'a [PathBuf],
        events: Option<&'a DecodeOptions>,
        labels: Option<&'a LabelOptions>,
    ) -> Queue<'a> {
        Queue {
            paths: paths.iter(),
            events,
            labels,
            now: None,
            before: 0,
        }
    }

    /// Goes to the next row; `false` at the end of the last file.
    fn advance(&mut self) -> Result<bool, Fault> {
        let failed = |e: FileError| Fault::Data(e.to_string());
        loop {
            if let Some((reader, _)) = &mut self.now {
                if reader.advance().map_err(failed)? {
                    return Ok(true);
                }
                self.before += reader.bytes_read();
                self.now = None;
            }
            let Some(path) = self.paths.next() else {
                return Ok(false);
            };
            let reader = FileReader::open(path, self.events, self.labels).map_err(failed)?;
            self.now = Some((reader, path));
        }
    }

    fn live(&self) -> bool {
        self.now.is_some()
    }

    fn row(&mut self) -> Option<(Row<'_>, &Path)> {
        let (reader, path) = self.now.as_mut()?;
        Some((reader.row(), path))
    }

    /// Event time of the row; of one that cannot be read, before all others.
    fn time_ms(&mut self) -> i64 {
        let content = self.row().map(|(row, _)| row.content);
        match content {
            Some(Ok(content)) => content.time_ms(),
            _ => i64::MIN,
        }
    }

    fn bytes(&self) -> u64 {
        self.before + self.now.as_ref().map_or(0, |(r, _)| r.bytes_read())
    }
}
