//! Standard input with Parquet or Arrow, copied to a file because both are read from the end.
//!
//! The file is in the folder for temporary files (`TMPDIR`) and only this user can access it. It is
//! unlinked once open, so it disappears however the process ends. It is kept until then: standard
//! input can be read once, and the same file may be opened again.

use super::container::Container;
use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, BufRead};
#[cfg(feature = "columnar")]
use std::io::{Seek, SeekFrom};

/// The copy, once made, and its kind.
static COPY: Mutex<Option<(Container, File)>> = Mutex::new(None);

/// The kind of file on standard input, by its first bytes, which are not consumed; `None` for text.
pub(super) fn container() -> Option<Container> {
    let copy = COPY.lock();
    match &*copy {
        Some((container, _)) => Some(*container),
        None => Container::of_start(io::stdin().lock().fill_buf().ok()?),
    }
}

/// A copy of all standard input, positioned at its start. Its handles share one position.
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
