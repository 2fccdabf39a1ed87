//! The rows of a table for `evaluate`: CSV with a header, JSON lines, Parquet or Arrow.
//!
//! A row gives the text of the columns that were looked up. In JSON lines, a column is a key of the
//! object, or a path such as `prediction.score` or `scores.0`; `true` and numbers become their
//! text. Parquet and Arrow have such paths too ([`super::columnar`]). An invalid line ends the
//! reading, because a sample with gaps is another sample; so does a line of more than 1 MiB.

mod objects;

#[cfg(feature = "columnar")]
use super::columnar::{Batches, Opened};
use super::headers::{bare, lacking, not_a_table, twice};
use super::quotes::LEFT_OPEN;
use super::row_limit::{RowLimit, too_long};
use super::scores_error::{ScoresError, broken, empty};
use objects::{items, next_object, text, value};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};

/// Enough for a header with ten thousand classes.
const HEADER_BYTES: usize = 1 << 17;

/// The rows of a table, read one at a time.
pub struct Rows<'r> {
    name: String,
    kind: Kind<'r>,
}

enum Kind<'r> {
    Csv {
        reader: Box<csv::Reader<RowLimit<Box<dyn Read + 'r>>>>,
        header: csv::StringRecord,
        row: csv::StringRecord,
    },
    Json {
        input: Box<dyn BufRead + 'r>,
        /// The columns looked up, and their texts in the current row.
        columns: Vec<String>,
        cells: Vec<String>,
        /// Columns that were looked up but are absent from the first object.
        missing: Vec<String>,
        /// The column of lists, if any.
        list: Option<String>,
        /// The current object; the first line is read on opening.
        object: Value,
        line: u64,
        waits: bool,
    },
    #[cfg(feature = "columnar")]
    Columnar(Box<Columnar>),
}

/// Rows of a Parquet or Arrow table.
#[cfg(feature = "columnar")]
#[derive(Default)]
struct Columnar {
    /// The file, until its first row is read.
    file: Option<Opened>,
    batches: Option<Batches>,
    /// The columns looked up, and their texts in the current row.
    columns: Vec<String>,
    cells: Vec<String>,
    /// The place of the column of lists, which has no text.
    list: Option<usize>,
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
        let Some((columns, row)) = batches.next_row()? else {
            return Ok(false);
        };
        for (at, (column, cell)) in columns.iter().zip(&mut self.cells).enumerate() {
            if self.list != Some(at) {
                column.cell(row, cell);
            }
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
        // A read error is reported when lines are read.
        let start = input.fill_buf().unwrap_or_default();
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        if start.trim_ascii_start().first() == Some(&b'{') {
            return Rows::json(name, Box::new(input));
        }
        let input = Box::new(input) as Box<dyn Read>;
        let mut reader = csv::Reader::from_reader(RowLimit::new(input));
        let mut header = match reader.headers() {
            Ok(header) => header.clone(),
            Err(e) => return Err(failed(name, 1, &e, reader.get_ref())),
        };
        if reader.get_ref().left_open() {
            return Err(ScoresError(format!("{name}:1: {LEFT_OPEN}")));
        }
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

    /// Opens a Parquet or Arrow table.
    #[cfg(feature = "columnar")]
    pub fn columnar(name: &str, file: Opened) -> Rows<'r> {
        let names = file.names().into_iter().map(str::to_owned).collect();
        Rows {
            name: name.to_owned(),
            kind: Kind::Columnar(Box::new(Columnar {
                file: Some(file),
                names,
                ..Columnar::default()
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
                list: None,
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

    /// Names of the columns: those of the header, or the keys of the first object.
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

    /// The place of a column for [`Rows::cell`], if it exists; an error if a header has it twice.
    pub fn find(&mut self, wanted: &str) -> Result<Option<usize>, ScoresError> {
        Ok(match &mut self.kind {
            Kind::Csv { header, .. } => {
                let mut named = (0..header.len()).filter(|&at| bare(&header[at]) == wanted);
                let first = named.next();
                if named.next().is_some() {
                    let why = twice(wanted);
                    return Err(ScoresError(format!("{}:1: {why}", self.name)));
                }
                first
            }
            Kind::Json {
                object,
                columns,
                missing,
                ..
            } => {
                if value(object, wanted).is_none() {
                    missing.push(wanted.to_owned());
                    return Ok(None);
                }
                columns.push(wanted.to_owned());
                Some(columns.len() - 1)
            }
            #[cfg(feature = "columnar")]
            Kind::Columnar(table) => table.find(wanted),
        })
    }

    /// The place of a column for [`Rows::cell`]; an error if it is missing.
    pub fn need(&mut self, wanted: &str) -> Result<usize, ScoresError> {
        self.find(wanted)?.ok_or_else(|| {
            let (name, names) = (&self.name, self.names());
            let why = not_a_table(&names).unwrap_or_else(|| {
                lacking(wanted, &names)
                    + "; name the columns score and label, or say what they are called with --score, \
                       --label, --weight, --cluster or --classes"
            });
            ScoresError(format!("{name}:1: {why}"))
        })
    }

    /// Whether a column holds lists, such as the probabilities of all classes.
    pub fn is_list(&self, column: &str) -> bool {
        match &self.kind {
            Kind::Csv { .. } => false,
            Kind::Json { object, .. } => value(object, column).is_some_and(Value::is_array),
            #[cfg(feature = "columnar")]
            Kind::Columnar(table) => table.file.as_ref().is_some_and(|file| file.is_list(column)),
        }
    }

    /// The length of the first list in a column; `None` if it holds none. [`Rows::items`] then
    /// counts the lists of this column.
    pub fn first_items(&mut self, column: &str) -> Result<Option<usize>, ScoresError> {
        match &mut self.kind {
            Kind::Csv { .. } => Ok(None),
            Kind::Json { object, list, .. } => {
                *list = Some(column.to_owned());
                Ok(items(object, column))
            }
            #[cfg(feature = "columnar")]
            Kind::Columnar(table) => match &table.file {
                Some(file) if file.is_list(column) => {
                    let first = file.items(column).map_err(ScoresError)?;
                    table.list = table.find(column);
                    Ok(first)
                }
                _ => Ok(None),
            },
        }
    }

    /// The length of the current row's list, in the column given to [`Rows::first_items`].
    pub fn items(&self) -> Option<usize> {
        match &self.kind {
            Kind::Csv { .. } => None,
            Kind::Json { object, list, .. } => items(object, list.as_deref()?),
            #[cfg(feature = "columnar")]
            Kind::Columnar(table) => {
                let (columns, row) = table.batches.as_ref()?.current();
                columns.get(table.list?)?.items(row)
            }
        }
    }

    /// Advances to the next row; `false` at the end.
    pub fn advance(&mut self) -> Result<bool, ScoresError> {
        let name = &self.name;
        match &mut self.kind {
            Kind::Csv { reader, row, .. } => {
                let begin = reader.position().line();
                reader.get_mut().begin_row();
                let read = reader.read_record(row);
                if reader.get_ref().left_open() {
                    let line = row.position().map_or(1, csv::Position::line);
                    return Err(ScoresError(format!("{name}:{line}: {LEFT_OPEN}")));
                }
                read.map_err(|e| failed(name, begin, &e, reader.get_ref()))
            }
            Kind::Json {
                input,
                columns,
                cells,
                missing,
                object,
                line,
                waits,
                ..
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

    /// An error about the current row.
    pub fn fault(&self, what: String) -> ScoresError {
        let line = match &self.kind {
            Kind::Csv { row, .. } => row.position().map_or(0, csv::Position::line),
            Kind::Json { line, .. } => *line,
            #[cfg(feature = "columnar")]
            Kind::Columnar(table) => {
                let batches = table.batches.as_ref();
                let row = batches.map_or(0, |batches| batches.number(batches.current().1));
                return ScoresError(format!("{}: row {row}: {what}", self.name));
            }
        };
        ScoresError(format!("{}:{line}: {what}", self.name))
    }
}

/// Why the row of CSV that begins at this line cannot be read.
fn failed<R: Read>(name: &str, line: u64, e: &csv::Error, input: &RowLimit<R>) -> ScoresError {
    match input.is_over() {
        true => ScoresError(format!("{name}:{line}: {}", too_long())),
        false => broken(name, e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::options::RECORD_BYTES_MAX;

    fn told(text: &str, wanted: &str) -> String {
        let mut rows = Rows::open("s.csv", text.as_bytes()).expect("rows");
        rows.need(wanted).map_or_else(|e| e.0, |at| at.to_string())
    }

    #[test]
    fn what_is_no_table_of_commas_is_told_in_a_line() {
        let array: String = (0..900).map(|i| format!("{{\"score\":0.{i}}},")).collect();
        let said = told(&format!("[{array}]"), "score");
        assert!(
            said.contains("a JSON array; write one object a line"),
            "{said}"
        );
        assert!(said.len() < 200, "{said}");
        for (text, by) in [("score;label\n", "`;`"), ("score\tlabel\n", "tabs")] {
            let said = told(text, "score");
            assert!(said.contains(&format!("separated by {by}")), "{said}");
        }
    }

    #[test]
    fn a_missing_column_is_told_with_few_names_and_the_nearest() {
        let many: Vec<String> = (0..50).map(|i| format!("{i}{}", "x".repeat(60))).collect();
        let said = told(&(many.join(",") + ",wieght\n"), "weight");
        assert!(
            said.contains("no column named 'weight' among [0xxx"),
            "{said}"
        );
        assert!(
            said.contains("and 41 more") && said.contains("did you mean 'wieght'?"),
            "{said}"
        );
        assert!(said.contains("--weight") && said.len() < 800, "{said}");
    }

    #[test]
    fn a_column_that_is_there_twice_is_refused_where_it_is_wanted() {
        let said = told("score,label,score\n", "score");
        assert!(said.starts_with("s.csv:1: there are two columns"), "{said}");
        assert_eq!(told("x,score,x\n", "score"), "1");
    }

    #[test]
    fn a_quote_that_is_never_closed_ends_the_reading_with_the_number_of_its_row() {
        for (text, line) in [
            ("a,\"b\n1,2\n3,4\n", 1),
            ("a,b\n1,\"2\n3,4\n5,6\n", 2),
            ("a,b\n1,2\n\"3,4\n5,6\n", 3),
            ("a,b\n1,2\n3,\"4", 3),
        ] {
            let read = Rows::open("s.csv", text.as_bytes()).and_then(|mut rows| {
                while rows.advance()? {}
                Ok(())
            });
            let said = read.expect_err(text).to_string();
            let start = format!("s.csv:{line}: a quote is opened here and never closed");
            assert!(said.starts_with(&start), "{text:?}: {said}");
        }
        let mut rows = Rows::open("s.csv", &b"a,b\n\"1\n\"\"\",5\" screen\n"[..]).expect("rows");
        assert_eq!((rows.advance(), rows.cell(0)), (Ok(true), "1\n\""));
        assert_eq!(rows.advance(), Ok(false));
    }

    #[test]
    fn a_row_of_more_than_a_mebibyte_ends_the_reading_with_its_place() {
        let long = "x".repeat(2 * RECORD_BYTES_MAX);
        let lines = |line: &str| format!("{{\"a\":1}}\n{{\"a\":\"{line}\"}}\n");
        let table = format!("a,b\n1,2\n\"{long}");
        for (text, place) in [(table, "s:3: a row"), (lines(&long), "s:2: a line")] {
            let mut rows = Rows::open("s", text.as_bytes()).expect("a header");
            assert_eq!(rows.advance(), Ok(true));
            let said = rows.advance().expect_err("too long").to_string();
            assert!(said.starts_with(&format!("{place} of more than")), "{said}");
        }
        let said = Rows::open("s", long.as_bytes()).err().expect("too long").0;
        assert!(said.starts_with("s:1: a row of more than"), "{said}");
        let fits = lines(&"x".repeat(RECORD_BYTES_MAX - "{\"a\":\"\"}".len()));
        let mut rows = Rows::open("s", fits.as_bytes()).expect("an object");
        assert_eq!((rows.advance(), rows.advance()), (Ok(true), Ok(true)));
    }

    #[test]
    fn a_key_that_is_written_twice_ends_the_reading_with_the_number_of_its_line() {
        let good = r#"{"score":0.5,"label":1}"#;
        let twice = r#"{"score":0.5,"label":1,"score":0.9}"#;
        let text = format!("{good}\n\n{twice}\n{good}\n");
        let mut rows = Rows::open("s.jsonl", text.as_bytes()).expect("a first object");
        assert_eq!(rows.find("score"), Ok(Some(0)));
        assert_eq!(rows.advance(), Ok(true));
        let said = rows.advance().expect_err("a key appears twice").to_string();
        assert!(
            said.starts_with("s.jsonl:3: key `score` appears twice"),
            "{said}"
        );
        let first = Rows::open("s.jsonl", twice.as_bytes()).err();
        let said = first.expect("a key appears twice").to_string();
        assert!(said.starts_with("s.jsonl:1: "), "{said}");
    }
}
