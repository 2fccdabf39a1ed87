//! The rows of a table for `evaluate`: CSV with a header, JSON lines, Parquet or Arrow.
//!
//! A row gives the text of the columns that were looked up. Of JSON lines, a column is a key of the
//! object, or a path such as `prediction.score`; `true` and numbers are their texts. Tables in
//! columns have such paths too ([`super::columnar`]). An invalid line ends the reading, because a
//! sample with gaps is another sample.

#[cfg(feature = "columnar")]
use super::columnar::{Batches, Column, Opened};
use super::line_ends::LineEnds;
use super::scores_error::{ScoresError, broken, empty};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};

/// Enough for the header of ten thousand classes.
const HEADER_BYTES: usize = 1 << 17;

/// Rows of a table. See the module.
pub struct Rows<'r> {
    name: String,
    kind: Kind<'r>,
}

enum Kind<'r> {
    Csv {
        reader: Box<csv::Reader<Box<dyn Read + 'r>>>,
        header: csv::StringRecord,
        row: csv::StringRecord,
    },
    Json {
        input: Box<dyn BufRead + 'r>,
        /// Columns that were looked up, and their texts in the current row.
        columns: Vec<String>,
        cells: Vec<String>,
        /// Columns that were looked up and that the first object has not.
        missing: Vec<String>,
        /// The current line; the first one is read before it is asked for.
        object: Value,
        line: u64,
        waits: bool,
    },
    #[cfg(feature = "columnar")]
    Columnar(Box<Columnar>),
}

/// Rows of a table in columns.
#[cfg(feature = "columnar")]
struct Columnar {
    /// The file, until the first row is asked for.
    file: Option<Opened>,
    batches: Option<Batches>,
    batch: Vec<Column>,
    row: usize,
    /// Columns that were looked up, and their texts in the current row.
    columns: Vec<String>,
    cells: Vec<String>,
    /// Names of the columns of the file.
    names: Vec<String>,
}

#[cfg(feature = "columnar")]
impl Columnar {
    fn advance(&mut self) -> Result<bool, String> {
        if let Some(file) = self.file.take() {
            self.batches = Some(file.read(&self.columns)?);
            self.cells = vec![String::new(); self.columns.len()];
        }
        let Some(batches) = &mut self.batches else {
            return Ok(false);
        };
        self.row += 1;
        if self.row >= batches.rows() {
            let Some(batch) = batches.advance()? else {
                return Ok(false);
            };
            (self.batch, self.row) = (batch, 0);
        }
        for (column, cell) in self.batch.iter().zip(&mut self.cells) {
            column.cell(self.row, cell);
        }
        Ok(true)
    }

    fn find(&mut self, wanted: &str) -> Option<usize> {
        self.file.as_ref().filter(|file| file.has(wanted))?;
        self.columns.push(wanted.to_owned());
        Some(self.columns.len() - 1)
    }
}

impl<'r> Rows<'r> {
    /// Reads the header of a table; `name` is the name of the file in messages.
    pub fn open(name: &str, input: impl Read + 'r) -> Result<Rows<'r>, ScoresError> {
        let mut input = BufReader::with_capacity(HEADER_BYTES, input);
        // A file that cannot be read says so when its lines are.
        let start = input.fill_buf().unwrap_or_default();
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        if start.trim_ascii_start().first() == Some(&b'{') {
            return Rows::json(name, Box::new(input));
        }
        let input = Box::new(LineEnds::new(input)) as Box<dyn Read>;
        let mut reader = csv::Reader::from_reader(input);
        let mut header = reader.headers().map_err(|e| broken(name, &e))?.clone();
        // Cells are trimmed when they are read: the crate would copy each row to trim it.
        header.trim();
        if header.is_empty() {
            return Err(empty(name));
        }
        Ok(Rows {
            name: name.to_owned(),
            kind: Kind::Csv {
                reader: Box::new(reader),
                header,
                row: csv::StringRecord::new(),
            },
        })
    }

    /// The rows of a table in columns.
    #[cfg(feature = "columnar")]
    pub fn columnar(name: &str, file: Opened) -> Rows<'r> {
        let names = file.names().into_iter().map(str::to_owned).collect();
        Rows {
            name: name.to_owned(),
            kind: Kind::Columnar(Box::new(Columnar {
                file: Some(file),
                batches: None,
                batch: Vec::new(),
                row: 0,
                columns: Vec::new(),
                cells: Vec::new(),
                names,
            })),
        }
    }

    fn json(name: &str, input: Box<dyn BufRead + 'r>) -> Result<Rows<'r>, ScoresError> {
        let mut rows = Rows {
            name: name.to_owned(),
            kind: Kind::Json {
                input,
                columns: Vec::new(),
                cells: Vec::new(),
                missing: Vec::new(),
                object: Value::Null,
                line: 0,
                waits: false,
            },
        };
        let found = rows.advance()?;
        if let Kind::Json { waits, .. } = &mut rows.kind {
            *waits = found;
        }
        Ok(rows)
    }

    /// Names of the columns: of the header, or the keys of the first object.
    pub fn names(&self) -> Vec<&str> {
        match &self.kind {
            Kind::Csv { header, .. } => header.iter().map(bare).collect(),
            Kind::Json { object, .. } => match object.as_object() {
                Some(object) => object.keys().map(String::as_str).collect(),
                None => Vec::new(),
            },
            #[cfg(feature = "columnar")]
            Kind::Columnar(table) => table.names.iter().map(String::as_str).collect(),
        }
    }

    /// The place of a column in [`Rows::cell`].
    pub fn find(&mut self, wanted: &str) -> Option<usize> {
        match &mut self.kind {
            Kind::Csv { header, .. } => header.iter().position(|h| bare(h) == wanted),
            Kind::Json {
                object,
                columns,
                missing,
                ..
            } => {
                if value(object, wanted).is_none() {
                    missing.push(wanted.to_owned());
                    return None;
                }
                columns.push(wanted.to_owned());
                Some(columns.len() - 1)
            }
            #[cfg(feature = "columnar")]
            Kind::Columnar(table) => table.find(wanted),
        }
    }

    /// The same of a column that must be there.
    pub fn need(&mut self, wanted: &str) -> Result<usize, ScoresError> {
        self.find(wanted).ok_or_else(|| {
            ScoresError(format!(
                "{}:1: no column named '{wanted}' among [{}]; name the columns score and label, or say what they are \
                 called with --score and --label",
                self.name,
                self.names().join(", ")
            ))
        })
    }

    /// Whether a column holds lists, of the probabilities of all classes.
    pub fn is_list(&self, column: &str) -> bool {
        match &self.kind {
            #[cfg(feature = "columnar")]
            Kind::Columnar(table) => table.file.as_ref().is_some_and(|file| file.is_list(column)),
            _ => false,
        }
    }

    /// How many items the first list of a column has; `None` where it holds none.
    pub fn items(&self, column: &str) -> Result<Option<usize>, ScoresError> {
        match &self.kind {
            #[cfg(feature = "columnar")]
            Kind::Columnar(table) => match &table.file {
                Some(file) => file.items(column).map_err(ScoresError),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Advances to the next row; `false` at the end.
    pub fn advance(&mut self) -> Result<bool, ScoresError> {
        let name = &self.name;
        match &mut self.kind {
            Kind::Csv { reader, row, .. } => reader.read_record(row).map_err(|e| broken(name, &e)),
            Kind::Json {
                input,
                columns,
                cells,
                missing,
                object,
                line,
                waits,
            } => {
                if !std::mem::take(waits) {
                    let Some((number, read)) = next_object(name, input.as_mut(), *line)? else {
                        return Ok(false);
                    };
                    (*line, *object) = (number, read);
                    if let Some(column) = missing.iter().find(|c| value(object, c).is_some()) {
                        return Err(ScoresError(format!(
                            "{name}:{line}: '{column}' is in this object and not in the first one; write it in each, \
                             or in none"
                        )));
                    }
                }
                *cells = columns.iter().map(|c| text(value(object, c))).collect();
                Ok(true)
            }
            #[cfg(feature = "columnar")]
            Kind::Columnar(table) => table.advance().map_err(ScoresError),
        }
    }

    /// The text of a column in the current row.
    pub fn cell(&self, column: usize) -> &str {
        match &self.kind {
            Kind::Csv { row, .. } => row.get(column).map_or("", str::trim),
            Kind::Json { cells, .. } => cells.get(column).map_or("", String::as_str),
            #[cfg(feature = "columnar")]
            Kind::Columnar(table) => table.cells.get(column).map_or("", String::as_str),
        }
    }

    /// A fault in the current row.
    pub fn fault(&self, what: String) -> ScoresError {
        let line = match &self.kind {
            Kind::Csv { row, .. } => row.position().map_or(0, csv::Position::line),
            Kind::Json { line, .. } => *line,
            #[cfg(feature = "columnar")]
            Kind::Columnar(table) => {
                let batches = table.batches.as_ref();
                let row = batches.map_or(0, |batches| batches.number(table.row));
                return ScoresError(format!("{}: row {row}: {what}", self.name));
            }
        };
        ScoresError(format!("{}:{line}: {what}", self.name))
    }
}

/// The name of a column without a byte order mark.
fn bare(name: &str) -> &str {
    name.trim_start_matches('\u{feff}')
}

/// The next line that is not empty, as an object, with its number.
fn next_object(
    name: &str,
    input: &mut dyn BufRead,
    mut line: u64,
) -> Result<Option<(u64, Value)>, ScoresError> {
    let mut text = String::new();
    loop {
        text.clear();
        line += 1;
        let n = input.read_line(&mut text).map_err(|e| {
            ScoresError(format!(
                "{name}:{line}: reading failed ({e}); check that the file is whole"
            ))
        })?;
        if n == 0 {
            return Ok(None);
        }
        let trimmed = bare(&text).trim();
        if trimmed.is_empty() {
            continue;
        }
        return match serde_json::from_str(trimmed) {
            Ok(object @ Value::Object(_)) => Ok(Some((line, object))),
            Ok(_) => Err(ScoresError(format!(
                "{name}:{line}: not an object; write one JSON object a line"
            ))),
            Err(e) => Err(ScoresError(format!(
                "{name}:{line}: not JSON ({e}); correct the line"
            ))),
        };
    }
}

/// The value of a key, or of a path of keys.
fn value<'v>(object: &'v Value, column: &str) -> Option<&'v Value> {
    let path = || column.split('.').try_fold(object, |at, key| at.get(key));
    object.get(column).or_else(path)
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
