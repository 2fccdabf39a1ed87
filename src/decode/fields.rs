//! Finds the wanted fields of a record, whatever its format and envelope.
//!
//! ```text
//!  frame ──► format ──────────► envelope ──────────► rows
//!  schema    JSON: scanned      CloudEvents: paths   each object of an array: scanned
//!  id        else: wanted       under `data`, or     again, for the slots below it
//!            values as text     headers
//! ```
//!
//! All of them produce the same table: one [`Found`] per slot over one text. The text is the record
//! itself if it is JSON, otherwise the output of [`super::sink`]. [`Shape`](super::shape::Shape)
//! reads that table and does not know the format.
//!
//! Each envelope is a rewriting of the paths, made once. A structured CloudEvent is the same record
//! under `data`; the row of an array is the same record without the path of the array. Slots keep
//! their numbers.
//!
//! Invariant: a record is checked as a whole before its first row. A row is checked alone, so that
//! a malformed row affects only its own event.

use super::avro::{self, Program as Avro};
use super::avro_schema::Schema;
use super::frame::{FRAME, SchemaText, json_start, schema_id, unframed};
use super::layout::{Layouts, Match};
use super::options::{DecodeOptionsError, Envelope, Format, Packing};
use super::path::Paths;
use super::protobuf::Program as Protobuf;
use super::rejection::Rejection;
use super::scan::{ANYWHERE, Scanner, unescape};
use super::sink::Sink;
use super::value::{Found, Kind, Slots};
use crate::collect::Reason;
use std::collections::HashMap;

/// A record as it was read.
#[derive(Clone, Copy)]
pub struct Raw<'a> {
    /// The value of the record.
    pub payload: &'a [u8],
    /// The key, if the record has one.
    pub key: Option<&'a [u8]>,
    /// The timestamp in ms since 1970.
    pub timestamp_ms: Option<i64>,
    /// The headers.
    pub headers: &'a dyn HeaderMap,
}

/// Access to headers by name.
pub trait HeaderMap {
    /// The value of a header.
    fn header(&self, name: &str) -> Option<&[u8]>;
}

/// No headers.
impl HeaderMap for () {
    fn header(&self, _: &str) -> Option<&[u8]> {
        None
    }
}

/// The compiled paths, and the fields of the current record.
pub(super) struct Fields {
    pub packing: Packing,
    /// The data without an envelope.
    data: Paths,
    /// The data within a structured CloudEvent.
    wrapped: Option<Paths>,
    /// Slots of attributes, and their headers in a binary CloudEvent.
    attributes: Vec<(usize, String)>,
    rows: Option<Rows>,
    /// Slot of the prediction.
    lenient: usize,
    /// The layouts of plain records that hold one event.
    pub layouts: Layouts,
    pub found: Vec<Found>,
    /// Unescaped strings, one per slot; filled only if the string had escapes.
    unescaped: Vec<String>,
    /// Output of the readers of other formats.
    scratch: String,
    programs: HashMap<u32, Program>,
    /// Start of the text of the current record in its payload; `None` if it is the scratch text.
    start: Option<usize>,
    record_bytes_max: usize,
}

/// The array of events.
struct Rows {
    /// Its slot in the record.
    slot: usize,
    /// Paths within a row.
    inner: Paths,
    /// Slots within a row.
    slots: Vec<usize>,
    /// Positions of the rows of the current record in its text.
    spans: Vec<(usize, usize)>,
}

enum Program {
    Avro(Box<Avro>),
    Protobuf(Box<Protobuf>),
    /// Why records of this schema cannot be read.
    Useless(String),
}

/// Most schemas to keep; a topic has a handful. With more, all are requested again.
const PROGRAMS_MAX: usize = 1024;

impl Fields {
    /// Compiles the wanted `paths` of records in this packing, with the slot of the prediction and
    /// a bit for each slot of a name.
    pub fn new(
        paths: Paths,
        prediction: usize,
        name_slots: u64,
        packing: &Packing,
        record_bytes_max: usize,
    ) -> Result<Fields, DecodeOptionsError> {
        let n = paths.names.len();
        let is_event = packing.envelope == Envelope::CloudEvents;
        let array = packing.rows.as_deref();
        let attribute = |name: &str| is_event && name.starts_with("ce_");
        let within = |name: &str| array.and_then(|rows| below(name, rows).map(str::to_owned));
        let outer = |name: &str| within(name).is_none();
        let mut all = paths;
        if let Some(rows) = array {
            // Its slot comes last, so that those of the shape keep their numbers.
            all.names.push(rows.to_owned());
        }
        let here = |name: &str| (outer(name) && !attribute(name)).then(|| name.to_owned());
        let data = all.rewritten(here)?;
        let wrapped = match is_event {
            false => None,
            true => Some(all.rewritten(|name| match attribute(name) {
                true => Some(name["ce_".len()..].to_owned()),
                false => outer(name).then(|| format!("data.{name}")),
            })?),
        };
        let rows = |rows: &str| {
            let slots: Vec<usize> = (0..n)
                .filter(|&s| within(&all.names[s]).is_some())
                .collect();
            if slots.is_empty() {
                return Err(DecodeOptionsError(format!(
                    "no field lies within `rows`, `{rows}`; write the paths of what a row holds as `{rows}.score`"
                )));
            }
            Ok(Rows {
                slot: n,
                inner: all.rewritten(within)?,
                slots,
                spans: Vec::new(),
            })
        };
        let rows = array.map(rows).transpose()?;
        let names = all.names.iter().enumerate();
        Ok(Fields {
            attributes: names
                .filter(|(_, name)| attribute(name))
                .map(|(slot, name)| (slot, name.clone()))
                .collect(),
            packing: packing.clone(),
            found: vec![Found::MISSING; all.names.len()],
            unescaped: vec![String::new(); all.names.len()],
            data,
            wrapped,
            rows,
            lenient: prediction,
            layouts: Layouts::new(name_slots),
            scratch: String::new(),
            programs: HashMap::new(),
            start: Some(0),
            record_bytes_max,
        })
    }

    /// Id of the schema that this record needs and that was not learned yet.
    pub fn lacks(&self, payload: &[u8]) -> Option<u32> {
        if self.packing.format == Format::Json || payload.len() > self.record_bytes_max {
            return None;
        }
        schema_id(payload).filter(|id| !self.programs.contains_key(id))
    }

    /// Stores a schema. An unusable one is stored too, and its records are rejected.
    pub fn learn(&mut self, id: u32, schema: &SchemaText) {
        if self.programs.len() >= PROGRAMS_MAX {
            self.programs.clear();
        }
        let program = self.compile(schema).unwrap_or_else(Program::Useless);
        self.programs.insert(id, program);
    }

    fn compile(&self, schema: &SchemaText) -> Result<Program, String> {
        if schema.format != self.packing.format {
            return Err(format!(
                "it is of {} and the source's `format` is \"{}\"",
                schema.format.as_str(),
                self.packing.format.as_str()
            ));
        }
        if schema.format == Format::Protobuf {
            return Ok(Program::Protobuf(Box::new(Protobuf::new(schema)?)));
        }
        let references = schema.references.iter().map(|(_, text)| text.as_str());
        let schema = Schema::parse(&schema.text, references)?;
        Ok(Program::Avro(Box::new(Avro::new(schema, &self.data))))
    }

    /// Checks a JSON record that is one event, with or without a frame, and finds the values of the
    /// slots in the text that it returns. A shortcut with the same result as [`Fields::open`].
    #[inline]
    pub fn find<'a>(&mut self, payload: &'a [u8]) -> Result<(Match, &'a [u8]), Rejection> {
        self.check_size(payload)?;
        let start = json_start(payload);
        let bytes = &payload[start..];
        let matched = self.layouts.find(bytes, self.lenient, &mut self.found);
        let Some(matched) = matched else {
            self.scan_and_learn(payload, start)?;
            return Ok((Match::default(), bytes));
        };
        if !bytes.is_ascii() {
            check_utf8(bytes, start)?;
        }
        if matched.unusual {
            self.undo_escapes(bytes);
        }
        Ok((matched, bytes))
    }

    /// [`Fields::find`] for a record that has no known layout.
    #[inline(never)]
    fn scan_and_learn(&mut self, payload: &[u8], start: usize) -> Result<(), Rejection> {
        let bytes = &payload[start..];
        check_utf8(bytes, start)?;
        self.found.fill(Found::MISSING);
        Scanner::record(bytes, &mut self.data, self.lenient, &mut self.found)
            .map_err(|f| Rejection::fault(f.behind(start), payload))?;
        self.layouts.learn(bytes, &self.found);
        self.undo_escapes(bytes);
        Ok(())
    }

    /// Checks a record as a whole. Returns the number of its rows, 1 if it is one event.
    pub fn open(&mut self, raw: &Raw<'_>) -> Result<usize, Rejection> {
        self.check_size(raw.payload)?;
        self.found.fill(Found::MISSING);
        self.scratch.clear();
        self.start = None;
        let structured = self.packing.envelope == Envelope::CloudEvents
            && raw.headers.header("ce_specversion").is_none();
        match self.packing.format {
            Format::Avro | Format::Protobuf if !structured => self.read(raw.payload)?,
            Format::Json => self.scan(raw.payload, structured)?,
            _ => {
                return Err(Rejection::new(
                    Reason::Malformed,
                    "no header `ce_specversion`; a CloudEvent whose data are not JSON must be in binary \
                     mode, with its attributes in headers"
                        .to_owned(),
                ));
            }
        }
        if !structured {
            self.attributes(raw);
        }
        self.find_rows(raw.payload)
    }

    /// The values of the slots for one row of the opened record.
    pub fn row<'a>(&'a mut self, payload: &'a [u8], row: usize) -> Result<Slots<'a>, Rejection> {
        if self.rows.is_some() {
            self.scan_row(payload, row)?;
        }
        let bytes = text_of(payload, self.start, &self.scratch);
        Ok(self.slots(bytes))
    }

    /// The values of the slots in `bytes`.
    #[inline(always)]
    pub fn slots<'a>(&'a self, bytes: &'a [u8]) -> Slots<'a> {
        Slots {
            found: &self.found,
            unescaped: &self.unescaped,
            bytes,
        }
    }

    /// Lets the layout of the last match remember the names of its record, which is in `bytes`.
    pub fn remember(&mut self, bytes: &[u8], names: [String; 3]) {
        self.layouts.remember(bytes, &self.found, names);
    }

    #[inline(always)]
    fn check_size(&self, payload: &[u8]) -> Result<(), Rejection> {
        let fits = payload.len() <= self.record_bytes_max;
        fits.then_some(()).ok_or_else(|| self.too_large(payload))
    }

    #[cold]
    fn too_large(&self, payload: &[u8]) -> Rejection {
        let (bytes, most) = (payload.len(), self.record_bytes_max);
        let why = format!(
            "the record has {bytes} bytes, more than `record_bytes_max` = {most}; shorten it or raise the limit"
        );
        Rejection::new(Reason::TooLarge, why)
    }

    /// Scans a JSON record.
    fn scan(&mut self, payload: &[u8], structured: bool) -> Result<(), Rejection> {
        let start = json_start(payload);
        let bytes = &payload[start..];
        check_utf8(bytes, start)?;
        let paths = match &mut self.wrapped {
            Some(wrapped) if structured => wrapped,
            _ => &mut self.data,
        };
        let lenient = match &self.rows {
            Some(rows) => rows.slot,
            None => self.lenient,
        };
        Scanner::record(bytes, paths, lenient, &mut self.found)
            .map_err(|f| Rejection::fault(f.behind(start), payload))?;
        self.start = Some(start);
        self.undo_escapes(bytes);
        Ok(())
    }

    /// Reads a record in a binary format.
    fn read(&mut self, payload: &[u8]) -> Result<(), Rejection> {
        let Some(id) = schema_id(payload) else {
            return Err(unframed(payload, self.packing.format));
        };
        let mut sink = Sink {
            found: &mut self.found,
            text: &mut self.scratch,
        };
        let bytes = &payload[FRAME..];
        let (reason, why) = match self.programs.get_mut(&id) {
            Some(Program::Avro(program)) => match program.read(bytes, &mut sink) {
                Ok(()) => return Ok(()),
                Err(avro::Fault { at, what }) => {
                    let at = FRAME + at;
                    let why = format!("byte {at}: {what}, so this is not a record of schema {id}");
                    (Reason::Malformed, why)
                }
            },
            Some(Program::Protobuf(program)) => match program.read(bytes, &self.data, &mut sink) {
                Ok(()) => return Ok(()),
                Err(why) => {
                    let why = format!("not a message of schema {id}: {why}");
                    (Reason::Malformed, why)
                }
            },
            Some(Program::Useless(why)) => {
                let why = format!("schema {id} cannot be used: {why}");
                (Reason::UnknownSchema, why)
            }
            None => {
                let why = "is not known; register it before sending records of it";
                (Reason::UnknownSchema, format!("schema {id} {why}"))
            }
        };
        Err(Rejection::new(reason, why))
    }

    /// Takes the attributes of a binary CloudEvent from the headers.
    fn attributes(&mut self, raw: &Raw<'_>) {
        for (slot, name) in &self.attributes {
            let value = raw
                .headers
                .header(name)
                .and_then(|v| std::str::from_utf8(v).ok());
            if let Some(value) = value {
                self.found[*slot].kind = Kind::EscapedText;
                self.unescaped[*slot].clear();
                self.unescaped[*slot].push_str(value);
            }
        }
    }

    /// Finds the positions of the rows in the record.
    fn find_rows(&mut self, payload: &[u8]) -> Result<usize, Rejection> {
        let Some(rows) = &mut self.rows else {
            return Ok(1);
        };
        rows.spans.clear();
        let array = self.found[rows.slot];
        let name = self.packing.rows.as_deref().unwrap_or_default();
        match array.kind {
            Kind::Array => {}
            Kind::Missing | Kind::Null => {
                return Err(Rejection::missing(name, "its rows"));
            }
            _ => {
                let shown = text_of(payload, self.start, &self.scratch);
                let shown = String::from_utf8_lossy(&shown[array.start..array.end]);
                let remedy = "`rows` must be the path of an array of objects";
                return Err(Rejection::value(Reason::WrongShape, name, &shown, remedy));
            }
        }
        let mut s = Scanner {
            bytes: &text_of(payload, self.start, &self.scratch)[..array.end],
            at: array.start + 1,
        };
        s.each(b']', |s| -> Result<(), Rejection> {
            let start = s.at;
            let item = s.value(true, 0);
            item.map_err(|f| Rejection::fault(f, s.bytes))?;
            rows.spans.push((start, s.at));
            Ok(())
        })?;
        if rows.spans.is_empty() {
            let (shown, remedy) = ("an empty array", "send no record when there are no rows");
            return Err(Rejection::value(Reason::MissingField, name, shown, remedy));
        }
        Ok(rows.spans.len())
    }

    fn scan_row(&mut self, payload: &[u8], row: usize) -> Result<(), Rejection> {
        let Some(rows) = &mut self.rows else {
            return Ok(());
        };
        for &slot in &rows.slots {
            self.found[slot] = Found::MISSING;
        }
        let Some(&(start, end)) = rows.spans.get(row) else {
            return Ok(());
        };
        let bytes = &text_of(payload, self.start, &self.scratch)[start..end];
        // Text made from another format may hold NaN anywhere.
        let lenient = match self.start {
            Some(_) => self.lenient,
            None => ANYWHERE,
        };
        Scanner::record(bytes, &mut rows.inner, lenient, &mut self.found)
            .map_err(|f| Rejection::fault(f, bytes))?;
        for &slot in &rows.slots {
            let found = &mut self.found[slot];
            if found.kind == Kind::EscapedText {
                self.unescaped[slot] = unescape(&bytes[found.start..found.end]);
            }
            if found.kind != Kind::Missing {
                found.start += start;
                found.end += start;
            }
        }
        Ok(())
    }

    #[inline]
    fn undo_escapes(&mut self, bytes: &[u8]) {
        for (found, plain) in self.found.iter().zip(&mut self.unescaped) {
            if found.kind == Kind::EscapedText {
                *plain = unescape(&bytes[found.start..found.end]);
            }
        }
    }
}

/// The text that the positions of the slots refer to.
fn text_of<'a>(payload: &'a [u8], start: Option<usize>, scratch: &'a str) -> &'a [u8] {
    match start {
        Some(start) => payload.get(start..).unwrap_or_default(),
        None => scratch.as_bytes(),
    }
}

/// Checks the bytes of a record from `start` on.
#[inline]
fn check_utf8(bytes: &[u8], start: usize) -> Result<(), Rejection> {
    let checked = std::str::from_utf8(bytes).map(|_| ());
    checked.map_err(|e| Rejection::not_utf8(start + e.valid_up_to()))
}

/// The part of `name` below `rows`.
fn below<'n>(name: &'n str, rows: &str) -> Option<&'n str> {
    name.strip_prefix(rows)?.strip_prefix('.')
}
