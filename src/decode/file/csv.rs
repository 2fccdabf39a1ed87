//! A file of CSV with a header.

use super::super::headers::{lacking, not_a_table};
use super::super::options::{DecodeOptions, OutcomeOptions};
use super::super::quotes::LEFT_OPEN;
use super::super::rejection::Rejection;
use super::super::row_limit::RowLimit;
use super::super::scores_error::{NOT_UTF8, broken};
use super::super::value::Value;
use super::places::Places;
use super::row::{FileError, Row, Rows, failed};
use crate::collect::Reason;
use std::io::Read;
use std::path::Path;

pub(super) struct Csv {
    input: csv::Reader<RowLimit<Box<dyn Read>>>,
    row: csv::StringRecord,
    /// Columns of the header.
    width: usize,
    /// Line of the current row, and why it cannot be read, if so.
    at: (u64, Option<String>),
    places: Places,
    /// Kept rows, each with its line and why it cannot be read, if so.
    kept: Vec<((u64, Option<String>), csv::StringRecord)>,
}

impl Csv {
    pub(super) fn new(
        input: Box<dyn Read>,
        path: &Path,
        events: Option<&DecodeOptions>,
        outcomes: Option<&OutcomeOptions>,
    ) -> Result<Csv, FileError> {
        let mut builder = csv::ReaderBuilder::new();
        let mut input = builder.flexible(true).from_reader(RowLimit::new(input));
        let header = match input.headers() {
            Ok(header) => header.clone(),
            Err(e) => {
                let why = broken(&path.display().to_string(), &e);
                return Err(FileError::Io(why.to_string()));
            }
        };
        if input.get_ref().left_open() {
            return Err(failed(path, 1, &LEFT_OPEN));
        }
        let mut twice = None;
        let mut column = |name: &str| {
            let mut named = (0..header.len()).filter(|&at| header[at].trim() == name);
            let first = named.next();
            if named.next().is_some() {
                twice = Some(name.to_owned());
            }
            first
        };
        let missing = |name: &str| {
            let known: Vec<&str> = header.iter().map(str::trim).collect();
            let why = not_a_table(&known).unwrap_or_else(|| lacking(name, &known));
            format!("{}:1: {why}", path.display())
        };
        let places = Places::new(events, outcomes, &mut column, &missing)?;
        if let Some(name) = twice {
            let why = format!("the header has the column `{name}` twice; rename or drop one");
            return Err(failed(path, 1, &why));
        }
        Ok(Csv {
            input,
            row: csv::StringRecord::new(),
            width: header.len(),
            at: (0, None),
            places,
            kept: Vec::new(),
        })
    }
}

impl Rows for Csv {
    fn advance(&mut self, path: &Path) -> Result<bool, FileError> {
        let line = self.input.position().line();
        self.input.get_mut().begin_row();
        let read = self.input.read_record(&mut self.row);
        if self.input.get_ref().left_open() {
            let line = self.row.position().map_or(line, csv::Position::line);
            return Err(failed(path, line, &LEFT_OPEN));
        }
        self.at = match read {
            Ok(true) => {
                let (cells, columns) = (self.row.len(), self.width);
                let longer = (cells > columns).then(|| {
                    format!(
                        "the row has {cells} cells and the header {columns}; quote a cell that has \
                         a comma within"
                    )
                });
                (self.row.position().map_or(line, |p| p.line()), longer)
            }
            Ok(false) => return Ok(false),
            Err(e) => match e.into_kind() {
                csv::ErrorKind::Utf8 { pos, .. } => {
                    (pos.map_or(line, |p| p.line()), Some(NOT_UTF8.to_owned()))
                }
                csv::ErrorKind::Io(e) => return Err(failed(path, line, &e)),
                other => return Err(failed(path, line, &format!("{other:?}"))),
            },
        };
        Ok(true)
    }

    fn row(&mut self) -> Row<'_> {
        let row = &self.row;
        let content = match &self.at.1 {
            Some(why) => Err(Rejection::new(Reason::Malformed, why.clone())),
            // Trimmed like the header, and like cells in `evaluate`: many programs write `, `
            // between cells.
            None => self
                .places
                .content(|column| match row.get(column).map(str::trim) {
                    None | Some("") => Value::Missing,
                    Some(cell) => Value::Cell(cell),
                }),
        };
        Row {
            line: self.at.0,
            content,
        }
    }

    fn keep(&mut self) {
        self.kept.push((self.at.clone(), self.row.clone()));
    }

    fn recall(&mut self, kept: usize) {
        (self.at, self.row) = std::mem::take(&mut self.kept[kept]);
    }
}
