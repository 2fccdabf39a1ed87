//! JSON lines: the objects of a table and their values.

use super::super::headers::bare;
use super::super::options::RECORD_BYTES_MAX;
use super::super::scores_error::{NOT_UTF8, ScoresError};
use super::super::unique;
use serde_json::Value;
use std::io::{BufRead, Read};

/// The next line that is not empty, as an object, with its number.
pub(super) fn next_object(
    name: &str,
    input: &mut dyn BufRead,
    mut line: u64,
) -> Result<Option<(u64, Value)>, ScoresError> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        line += 1;
        let wrong = |why: String| ScoresError(format!("{name}:{line}: {why}"));
        // Two bytes more than allowed: a line that just fits may end with a line feed.
        let limit = RECORD_BYTES_MAX + 2;
        let read = (&mut *input)
            .take(limit as u64)
            .read_until(b'\n', &mut bytes);
        let n = read.map_err(|e| {
            wrong(format!(
                "reading failed ({e}); check that the file is whole"
            ))
        })?;
        if n == 0 {
            return Ok(None);
        }
        if n == limit {
            let most = RECORD_BYTES_MAX;
            return Err(wrong(format!(
                "a line of more than {most} bytes; write one JSON object a line"
            )));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| wrong(NOT_UTF8.to_owned()))?;
        let trimmed = bare(text).trim();
        if trimmed.is_empty() {
            continue;
        }
        return match unique::parse(trimmed) {
            Ok(object @ Value::Object(_)) => Ok(Some((line, object))),
            Ok(_) => Err(ScoresError(format!(
                "{name}:{line}: not an object; write one JSON object a line"
            ))),
            Err(e) if e.is_data() => Err(ScoresError(format!("{name}:{line}: {e}; write it once"))),
            Err(e) => Err(ScoresError(format!(
                "{name}:{line}: not JSON ({e}); correct the line"
            ))),
        };
    }
}

/// The value at a key, or at a path of keys and places in arrays.
pub(super) fn value<'v>(object: &'v Value, column: &str) -> Option<&'v Value> {
    let step = |at: &'v Value, key: &str| match at {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    };
    let path = || column.split('.').try_fold(object, step);
    object.get(column).or_else(path)
}

/// The length of an array.
pub(super) fn items(object: &Value, column: &str) -> Option<usize> {
    value(object, column)?.as_array().map(Vec::len)
}

/// The text of a value; empty for null and for no value.
pub(super) fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
