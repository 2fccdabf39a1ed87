//! Standard input with Parquet or Arrow: copied to a file, because both are read from their ends.
//!
//! The file is in the folder for temporary files (`TMPDIR`), belongs to this user alone, and has no
//! name as soon as it is open, so nothing is left of it however the process ends. It is kept for
//! the life of the process: standard input can be read once, and the same file may be opened again.

use super::container::Container;
use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, BufRead};
#[cfg(feature = "columnar")]
use std::io::{Seek, SeekFrom};

/// The copy, once there is one, and its kind.
static COPY: Mutex<Option<(Container, File)>> = Mutex::new(None);

/// The kind of what comes from standard input, read off its first bytes, which stay to be read;
/// `None` of text.
pub(super) fn container() -> Option<Container> {
    let copy = COPY.lock();
    match &*copy {
        Some((container, _)) => Some(*container),
        None => Container::of_start(io::stdin().lock().fill_buf().ok()?),
    }
}

/// A copy of all that comes from standard input, at its start. Handles of it share one position.
#[cfg(feature = "columnar")]
pub(super) fn file(container: Container) -> io::Result<File> {
    let mut copy = COPY.lock();
    let (_, file) = match copy.take() {
        Some(known) => copy.insert(known),
        None => copy.insert((container, copied()?)),
    };
    file.seek(SeekFrom::Start(0))?;
    file.try_clone()
}

#[cfg(feature = "columnar")]
fn copied() -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    Ok(file)
}
