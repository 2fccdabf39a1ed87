//! Lists the files of a state directory, each with its size, format and error. Changes nothing.

use super::file::{Loaded, format_of, is_refused, is_snapshot, load_with_journals, paths, read};
use super::format::{FormatError, StoreError, at};
use super::{event_log, history, journal};
use crate::files::REFUSED;
use std::fs;
use std::path::{Path, PathBuf};

/// The purpose of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::AsRefStr)]
#[strum(serialize_all = "snake_case")]
pub enum FileRole {
    /// A snapshot.
    Snapshot,
    /// A segment of a join journal.
    Journal,
    /// A snapshot or a journal of alerts that a start refused and kept.
    Refused,
    /// A part of a snapshot whose writing was interrupted; it is never read.
    Part,
    /// The journal of notifications.
    Alerts,
    /// The history of windows.
    History,
    /// A segment of a log of posted events.
    Events,
    /// The lock of the running process.
    Lock,
    /// A file of another program.
    Unknown,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Its path.
    pub path: PathBuf,
    /// Its purpose.
    pub role: FileRole,
    /// Its length.
    pub bytes: u64,
    /// Version of its format, if it has one.
    pub format: Option<u32>,
    /// Why it cannot be used.
    pub fault: Option<FormatError>,
    /// For a snapshot, the first journal that it needs and that cannot be used, with its fault.
    pub needs: Option<(PathBuf, FormatError)>,
}

/// A state directory.
#[derive(Debug)]
pub struct Inspection {
    /// Its files in the order of their names, the journals last.
    pub files: Vec<FileReport>,
    /// The snapshot that a start would restore, or why there is none.
    pub newest: Result<Option<Loaded>, StoreError>,
}

impl FileRole {
    fn of(path: &Path) -> FileRole {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        match name {
            "lock" => FileRole::Lock,
            "alerts.journal" => FileRole::Alerts,
            history::FILE => FileRole::History,
            history::REFUSED => FileRole::Refused,
            _ if is_snapshot(path) => FileRole::Snapshot,
            _ if is_refused(path) => FileRole::Refused,
            _ if name.starts_with("alerts.journal") && name.ends_with(REFUSED) => FileRole::Refused,
            _ if journal::is_segment(path) => FileRole::Journal,
            _ if name.starts_with("snapshot-") && name.ends_with(".part") => FileRole::Part,
            _ => FileRole::Unknown,
        }
    }
}

/// Inspects every file of `dir`.
pub fn inspect(dir: &Path) -> Result<Inspection, StoreError> {
    let newest = load_with_journals(dir);
    let mut all = paths(dir)?;
    all.retain(|path| !path.is_dir());
    let folder = dir.join(journal::FOLDER);
    if folder.is_dir() {
        all.extend(paths(&folder)?);
    }
    let mut files = all.into_iter().map(report).collect::<Result<Vec<_>, _>>()?;
    let logs = dir.join(event_log::FOLDER);
    if logs.is_dir() {
        for log in paths(&logs)?.into_iter().filter(|path| path.is_dir()) {
            for path in paths(&log)? {
                let role = FileRole::Events;
                files.push(FileReport {
                    role,
                    ..report(path)?
                });
            }
        }
    }
    // Journals contain no checksum; the snapshots that mark them do.
    let refused = match &newest {
        Ok(Some(loaded)) => loaded.refused.as_slice(),
        Err(StoreError::Refused(refused)) => refused.as_slice(),
        _ => &[],
    };
    for (path, fault) in refused {
        if let Some(file) = files.iter_mut().find(|f| f.path == *path) {
            file.fault = Some(fault.clone());
        } else {
            files.push(FileReport {
                path: path.clone(),
                role: FileRole::of(path),
                bytes: 0,
                format: None,
                fault: Some(fault.clone()),
                needs: None,
            });
        }
    }
    Ok(Inspection { files, newest })
}

fn report(path: PathBuf) -> Result<FileReport, StoreError> {
    let meta = fs::metadata(&path).map_err(at("reading", &path))?;
    let role = FileRole::of(&path);
    let (mut format, mut fault, mut needs) = (None, None, None);
    if role == FileRole::Snapshot {
        let bytes = fs::read(&path).map_err(at("reading snapshot", &path))?;
        format = format_of(&bytes);
        let dir = path.parent().unwrap_or(&path);
        match read(&bytes) {
            Ok(snapshot) => {
                let mut joins = snapshot.joins.iter();
                needs = joins.find_map(|join| journal::check(dir, join).err());
            }
            Err(why) => fault = Some(why),
        }
    }
    Ok(FileReport {
        role,
        bytes: meta.len(),
        format,
        fault,
        needs,
        path,
    })
}
