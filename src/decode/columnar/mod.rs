//! Tables in columns: Parquet, and Arrow IPC as a file (Feather) or a stream.
//!
//! A file is known by its first bytes, not by its name. It is read batch by batch, only the wanted
//! columns, so memory does not grow with the file: a batch of Parquet has [`BATCH_ROWS`] rows; one
//! of Arrow has the size that its writer chose.
//!
//! A wanted column is named by its own name, or by a path into structs (`payload.score`) and lists
//! (`probs.0`). A value becomes the text that JSON would have for it, by the same functions as
//! Avro's and Protobuf's values ([`value`]), so the same checks follow as for every other format.
//! Scores and labels that are plain numbers are read as slices, without text ([`plain`]).
//!
//! The crates that read these formats panic on some damaged files. Such a panic ends the reading
//! with an error like any other damage. [`bounds`] first refuses sizes that would ask for too much
//! memory.
//!
//! | file | reads |
//! |---|---|
//! | [`container`] | the kind of a file |
//! | [`standard_input`] | standard input, as a file |
//! | [`bounds`] | sizes that a damaged file claims |
//! | [`column`] | a column of a batch, by its path |
//! | [`value`] | a value as text |
//! | [`events`] | rows for `replay` |
//! | [`plain`] | scores and labels for `evaluate` |

pub(super) mod container;
mod standard_input;

use container::Container;
use std::path::Path;

#[cfg(feature = "columnar")]
mod bounds;
#[cfg(feature = "columnar")]
mod column;
#[cfg(feature = "columnar")]
pub(super) mod events;
#[cfg(feature = "columnar")]
pub(super) mod plain;
#[cfg(feature = "columnar")]
mod value;

/// The kind of a file or of standard input, which is `-`; `None` for text, or if it cannot be
/// opened.
pub(super) fn container_of(path: &Path) -> Option<Container> {
    match path == Path::new("-") {
        true => standard_input::container(),
        false => Container::of(path),
    }
}

#[cfg(feature = "columnar")]
pub(super) use open::{Batches, Opened};

#[cfg(feature = "columnar")]
mod open {
    use super::super::headers::twice;
    use super::bounds::{Checked, check_arrow};
    use super::column::Column;
    use super::container::{Container, shown};
    use super::standard_input;
    use arrow_array::RecordBatchReader;
    use arrow_ipc::reader::{FileReader, StreamReader};
    use arrow_schema::{DataType, SchemaRef};
    use parquet::arrow::ProjectionMask;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::basic::Compression;
    use parquet::file::metadata::ParquetMetaData;
    use std::fs::File;
    use std::path::{Path, PathBuf};

    /// Rows in a batch of Parquet.
    const BATCH_ROWS: usize = 16_384;

    /// An opened file with its schema.
    pub(in super::super) struct Opened {
        path: PathBuf,
        container: Container,
        schema: SchemaRef,
        /// Number of rows in all, if the file has it.
        pub rows: Option<u64>,
    }

    /// The wanted columns of a file, batch by batch.
    pub(in super::super) struct Batches {
        batches: Box<dyn RecordBatchReader>,
        columns: Vec<String>,
        name: String,
        /// Rows of the batches before the current one, and of the current one.
        done: u64,
        rows: usize,
        /// The batch that is read row by row, and its current row.
        batch: Vec<Column>,
        row: usize,
    }

    impl Opened {
        /// Opens a file and reads its schema.
        pub fn new(path: &Path, container: Container) -> Result<Opened, String> {
            guarded(path, || Opened::open(path, container))
        }

        fn open(path: &Path, container: Container) -> Result<Opened, String> {
            let (schema, rows) = match container {
                Container::Parquet => {
                    let builder = parquet_of(path, container)?;
                    let rows = builder.metadata().file_metadata().num_rows();
                    (builder.schema().clone(), u64::try_from(rows).ok())
                }
                Container::ArrowFile | Container::ArrowStream => {
                    let file = file(path, container)?;
                    check_arrow(&file, container).map_err(|e| damaged(path, &e))?;
                    (arrow_of(path, container, None)?.schema(), None)
                }
            };
            Ok(Opened {
                path: path.to_path_buf(),
                container,
                schema,
                rows,
            })
        }

        /// Names of the columns.
        pub fn names(&self) -> Vec<&str> {
            self.schema
                .fields()
                .iter()
                .map(|f| f.name().as_str())
                .collect()
        }

        /// Whether there is such a column, by its name or path.
        pub fn has(&self, path: &str) -> bool {
            Column::type_at(self.schema.fields(), path).is_some()
        }

        /// The type of a column.
        pub fn type_of(&self, path: &str) -> Option<DataType> {
            Column::type_at(self.schema.fields(), path)
        }

        /// Whether a column holds lists.
        pub fn is_list(&self, path: &str) -> bool {
            use DataType::{FixedSizeList, LargeList, List};
            matches!(
                self.type_of(path),
                Some(List(_) | LargeList(_) | FixedSizeList(..))
            )
        }

        /// Items of the first list of a column; `None` if it holds no lists, or no row has one.
        pub fn items(&self, path: &str) -> Result<Option<usize>, String> {
            if !self.is_list(path) {
                return Ok(None);
            }
            let mut batches = self.read(&[path.to_owned()])?;
            while let Some(columns) = batches.advance()? {
                let first = (0..batches.rows()).find_map(|row| columns[0].items(row));
                if first.is_some() {
                    return Ok(first);
                }
            }
            Ok(None)
        }

        /// Reads the wanted columns, which must exist, in this order.
        pub fn read(&self, columns: &[String]) -> Result<Batches, String> {
            let path = &self.path;
            for column in columns {
                if let Some(kind) = self.type_of(column).filter(|t| !super::value::is_known(t)) {
                    return Err(format!(
                        "{}: the column {column} is of the type {kind}, which is not read; convert it to a number or text",
                        shown(path)
                    ));
                }
            }
            let fields = self.schema.fields();
            let root = |column: &String| {
                let has = |name: &str| fields.iter().position(|f| f.name() == name);
                has(column).or_else(|| {
                    let ends = column.match_indices('.').map(|(at, _)| at);
                    ends.filter_map(|at| has(&column[..at])).next()
                })
            };
            let mut roots: Vec<usize> = columns.iter().filter_map(root).collect();
            for &at in &roots {
                let name = fields[at].name();
                if fields[at + 1..].iter().any(|f| f.name() == name) {
                    return Err(format!("{}: {}", shown(path), twice(name)));
                }
            }
            roots.sort_unstable();
            roots.dedup();
            let batches: Box<dyn RecordBatchReader> = match self.container {
                Container::Parquet => {
                    let builder = parquet_of(path, self.container)?;
                    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
                    check_compression(path, builder.metadata(), &mask)?;
                    let builder = builder.with_projection(mask);
                    let reader = builder.with_batch_size(BATCH_ROWS).build();
                    Box::new(reader.map_err(|e| damaged(path, &e))?)
                }
                container => arrow_of(path, container, Some(roots))?,
            };
            Ok(Batches {
                batches,
                columns: columns.to_vec(),
                name: shown(path),
                done: 0,
                rows: 0,
                batch: Vec::new(),
                row: 0,
            })
        }
    }

    impl Batches {
        /// The columns of the batch with the next row, and the row's place in it; `None` at the
        /// end.
        pub fn next_row(&mut self) -> Result<Option<(&[Column], usize)>, String> {
            self.row += 1;
            if self.row >= self.rows {
                let Some(batch) = self.advance()? else {
                    return Ok(None);
                };
                (self.batch, self.row) = (batch, 0);
            }
            Ok(Some(self.current()))
        }

        /// The columns of the batch with the current row, and the row's place in it.
        pub fn current(&self) -> (&[Column], usize) {
            (&self.batch, self.row)
        }

        /// The wanted columns of the next batch that has rows; `None` at the end.
        pub fn advance(&mut self) -> Result<Option<Vec<Column>>, String> {
            self.done += self.rows as u64;
            self.rows = 0;
            let failed = |e: &dyn std::fmt::Display| {
                let (name, done) = (&self.name, self.done);
                format!(
                    "{name}: reading failed after row {done} ({e}); check that the file is whole"
                )
            };
            while let Some(batch) = guarded(Path::new(&self.name), || {
                self.batches.next().transpose().map_err(|e| failed(&e))
            })? {
                if batch.num_rows() == 0 {
                    continue;
                }
                self.rows = batch.num_rows();
                let column = |path: &String| {
                    Column::of(&batch, path)
                        .ok_or_else(|| format!("{}: no column named '{path}'", self.name))
                };
                return self
                    .columns
                    .iter()
                    .map(column)
                    .collect::<Result<_, _>>()
                    .map(Some);
            }
            Ok(None)
        }

        /// Number of rows of the current batch.
        pub fn rows(&self) -> usize {
            self.rows
        }

        /// Number of a row of the current batch, from 1.
        pub fn number(&self, row: usize) -> u64 {
            self.done + row as u64 + 1
        }
    }

    /// Refuses a file whose wanted columns have an unsupported compression.
    fn check_compression(
        path: &Path,
        file: &ParquetMetaData,
        wanted: &ProjectionMask,
    ) -> Result<(), String> {
        let groups = file.row_groups().iter();
        let columns = groups.flat_map(|group| group.columns().iter().enumerate());
        for (_, column) in columns.filter(|(leaf, _)| wanted.leaf_included(*leaf)) {
            let name = match column.compression() {
                Compression::BROTLI(_) => "brotli",
                Compression::LZO => "lzo",
                _ => continue,
            };
            return Err(format!(
                "{}: is compressed with {name}; snappy, gzip, zstd and lz4 are read",
                shown(path)
            ));
        }
        Ok(())
    }

    /// Turns a panic of a reader on a damaged file into an error.
    fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
        read.unwrap_or_else(|_| Err(damaged(path, &"its parts contradict each other")))
    }

    /// Opens the file at its start.
    fn file(path: &Path, container: Container) -> Result<File, String> {
        if path == Path::new("-") {
            return standard_input::file(container).map_err(|e| {
                format!(
                    "cannot copy standard input to a temporary file ({e}); let TMPDIR name a folder with room, or name the file itself"
                )
            });
        }
        File::open(path).map_err(|e| format!("cannot open {} ({e})", path.display()))
    }

    fn parquet_of(
        path: &Path,
        container: Container,
    ) -> Result<ParquetRecordBatchReaderBuilder<Checked>, String> {
        let file = Checked(file(path, container)?);
        ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| damaged(path, &e))
    }

    /// Reads all columns of a file of Arrow, or those at these places.
    fn arrow_of(
        path: &Path,
        container: Container,
        columns: Option<Vec<usize>>,
    ) -> Result<Box<dyn RecordBatchReader>, String> {
        let file = file(path, container)?;
        let reader = match container {
            Container::ArrowStream => StreamReader::try_new_buffered(file, columns)
                .map(|reader| Box::new(reader) as Box<dyn RecordBatchReader>),
            _ => FileReader::try_new_buffered(file, columns).map(|reader| Box::new(reader) as _),
        };
        reader.map_err(|e| damaged(path, &e))
    }

    fn damaged(path: &Path, e: &dyn std::fmt::Display) -> String {
        format!(
            "{}: cannot be read as its first bytes say ({e}); check that the file is whole",
            shown(path)
        )
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use arrow_schema::{Field, Schema};

        #[test]
        fn a_column_that_is_there_twice_is_not_read() {
            let field = |name: &str| Field::new(name, DataType::Float64, false);
            let schema = Schema::new(["score", "label", "score"].map(field).to_vec());
            let opened = Opened {
                path: "no-such.parquet".into(),
                container: Container::Parquet,
                schema: schema.into(),
                rows: None,
            };
            let said = |name: &str| opened.read(&[name.to_owned()]).err().unwrap_or_default();
            let twice = said("score");
            assert!(twice.contains("two columns named 'score'"), "{twice}");
            // The other column is accepted, so opening the missing file fails.
            let once = said("label");
            assert!(once.contains("cannot open"), "{once}");
        }
    }
}
