//! Detects the kind of a file by its first bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A kind of file that holds columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Container {
    Parquet,
    /// Arrow IPC with a footer, as Feather is since version 2.
    ArrowFile,
    /// Arrow IPC without a footer.
    ArrowStream,
}

impl Container {
    /// The kind of a file. `None` for text, for a file that cannot be opened, and for a named pipe,
    /// whose bytes can be read only once.
    pub fn of(path: &Path) -> Option<Container> {
        if !path.metadata().ok()?.is_file() {
            return None;
        }
        let mut start = [0; 6];
        File::open(path).ok()?.read_exact(&mut start).ok()?;
        Container::of_start(&start)
    }

    /// The kind of a file that begins with these bytes.
    pub fn of_start(start: &[u8]) -> Option<Container> {
        match start {
            [b'P', b'A', b'R', b'1', ..] => Some(Container::Parquet),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(Container::ArrowFile),
            // The marker before each message of a stream; no UTF-8 text begins like this.
            [0xff, 0xff, 0xff, 0xff, ..] => Some(Container::ArrowStream),
            _ => None,
        }
    }
}

/// The name of a file in messages.
pub(in super::super) fn shown(path: &Path) -> String {
    match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// The message for a file that this binary cannot read.
#[cfg(not(feature = "columnar"))]
pub(in super::super) fn refusal(path: &Path) -> String {
    format!(
        "{} is Parquet or Arrow, which this binary was built without; build it with the feature `columnar`, or write CSV",
        shown(path)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_say_what_it_is() {
        assert_eq!(Container::of_start(b"PAR1\x15"), Some(Container::Parquet));
        assert_eq!(
            Container::of_start(b"ARROW1\0\0"),
            Some(Container::ArrowFile)
        );
        let stream = [0xff, 0xff, 0xff, 0xff, 0x10, 0];
        assert_eq!(Container::of_start(&stream), Some(Container::ArrowStream));
        for text in [&b"score,label"[..], b"{\"score\":1}", b"", &[0x1f, 0x8b]] {
            assert_eq!(Container::of_start(text), None);
        }
    }
}
