//! What is in a state directory, without changing it: every file with its size, format and fault.

use super::file::{Fault, Loaded, StoreError, at, format_of, is_snapshot, load_named, read};
use super::journal;
use std::fs;
use std::path::{Path, PathBuf};

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A snapshot.
    Snapshot,
    /// A segment of a join journal.
    Journal,
    /// What a crash left of a snapshot that was being written; nobody reads it.
    Part,
    /// What was told of alerts.
    Alerts,
    /// The lock of the running process.
    Lock,
    /// Not ours.
    Unknown,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Its path.
    pub path: PathBuf,
    /// What it is for.
    pub role: Role,
    /// Its length.
    pub bytes: u64,
    /// Version of its format, where it says one.
    pub format: Option<u32>,
    /// Why it cannot be used.
    pub fault: Option<Fault>,
}

/// A state directory.
#[derive(Debug)]
pub struct Inspection {
    /// Its files in the order of their names, the journals last.
    pub files: Vec<FileReport>,
    /// The snapshot from which a start would go on, or why there is none.
    pub newest: Result<Option<Loaded>, StoreError>,
}

impl Role {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Snapshot => "snapshot",
            Role::Journal => "journal",
            Role::Part => "part",
            Role::Alerts => "alerts",
            Role::Lock => "lock",
            Role::Unknown => "unknown",
        }
    }

    fn of(path: &Path) -> Role {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        match name {
            "lock" => Role::Lock,
            "alerts.journal" => Role::Alerts,
            _ if is_snapshot(path) => Role::Snapshot,
            _ if journal::is_segment(path) => Role::Journal,
            _ if name.starts_with("snapshot-") && name.ends_with(".part") => Role::Part,
            _ => Role::Unknown,
        }
    }
}

/// Looks at every file of `dir`.
pub fn inspect(dir: &Path) -> Result<Inspection, StoreError> {
    let newest = load_named(dir);
    let mut files: Vec<FileReport> = Vec::new();
    for path in paths(dir)? {
        if path.is_dir() {
            continue;
        }
        files.push(report(path)?);
    }
    let folder = dir.join(journal::FOLDER);
    if folder.is_dir() {
        for path in paths(&folder)? {
            files.push(report(path)?);
        }
    }
    // Journals say nothing of themselves; the snapshots that mark them do.
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
                role: Role::of(path),
                bytes: 0,
                format: None,
                fault: Some(fault.clone()),
            });
        }
    }
    Ok(Inspection { files, newest })
}

fn paths(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let listing = "listing the state directory";
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(at(listing, dir))? {
        paths.push(entry.map_err(at(listing, dir))?.path());
    }
    paths.sort();
    Ok(paths)
}

fn report(path: PathBuf) -> Result<FileReport, StoreError> {
    let meta = fs::metadata(&path).map_err(at("reading", &path))?;
    let role = Role::of(&path);
    let (mut format, mut fault) = (None, None);
    if role == Role::Snapshot {
        let bytes = fs::read(&path).map_err(at("reading snapshot", &path))?;
        format = format_of(&bytes);
        fault = read(&bytes).err();
    }
    Ok(FileReport {
        role,
        bytes: meta.len(),
        format,
        fault,
        path,
    })
}
