//! Why a file of scores cannot be read.

/// Why the sample cannot be read. The text names file, line and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScoresError(pub(super) String);

pub(super) fn empty(name: &str) -> ScoresError {
    ScoresError(format!(
        "{name}: no events; the file needs at least one row of scores"
    ))
}

/// The message for bytes that are not text.
pub(super) const NOT_UTF8: &str = "not text in UTF-8; write the file as UTF-8";

pub(super) fn broken(name: &str, e: &csv::Error) -> ScoresError {
    let line = e.position().map_or(1, csv::Position::line);
    match e.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => ScoresError(format!(
            "{name}:{line}: {len} fields where the header has {expected_len}; complete or drop the line"
        )),
        csv::ErrorKind::Utf8 { .. } => ScoresError(format!("{name}:{line}: {NOT_UTF8}")),
        csv::ErrorKind::Io(e) => ScoresError(format!(
            "{name}: reading failed ({e}); check that the file is whole"
        )),
        _ => ScoresError(format!("{name}:{line}: {e}; correct the line")),
    }
}
