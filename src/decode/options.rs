//! The configured shape of a record: the path of each field of an event.
//!
//! A path is a dotted list of object keys, such as `prediction.score`; a dot inside a key is
//! written `a\.b`. Paths do not reach into arrays, with one exception: if a record contains several
//! events, [`Packing::rows`] names the array, and the paths of fields within it start with its own.

/// Origin of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldOrConst {
    /// The string (or number) at this path of each record.
    Field(String),
    /// The same name for every record of the source.
    Const(String),
}

/// Origin of the id of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdField {
    /// The Kafka message key; a record without one is rejected as `empty_key`.
    Key,
    /// The string or number at this path.
    Path(String),
}

/// Format of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::AsRefStr)]
#[strum(serialize_all = "snake_case")]
pub enum TimeUnit {
    /// Milliseconds since 1970.
    #[default]
    Milliseconds,
    /// Seconds since 1970, fractions allowed.
    Seconds,
    /// Microseconds since 1970.
    Microseconds,
    /// Text such as `2026-11-21T14:30:00.5Z` or with `+02:00`.
    Rfc3339,
}

/// Path and format of the event time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeField {
    /// Path of the time.
    pub path: String,
    /// The unit or format.
    pub unit: TimeUnit,
    /// Time zone of a text without an offset, in seconds east of UTC; `None` rejects such a text.
    pub zone_s: Option<i64>,
}

/// Path and form of the prediction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PredictionField {
    /// One probability of the positive outcome.
    Score(String),
    /// An array of probabilities, one per class, in the order of `classes`.
    Vector(String),
    /// An object from class name to probability; needs `classes`.
    ClassMap(String),
}

/// Format of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Format {
    /// One JSON object, alone or behind the frame of a schema registry.
    #[default]
    Json,
    /// Avro's binary encoding behind the frame of a schema registry.
    Avro,
    /// A Protobuf message behind the frame of a schema registry.
    Protobuf,
}

impl Format {
    /// The name of the format in the configuration.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Envelope of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Envelope {
    /// No envelope.
    #[default]
    None,
    /// CloudEvents 1.0, structured (a JSON object with the data under `data`) or binary (the value
    /// is the data, attributes are headers). Each record shows which of the two it is; the field
    /// `ce_NAME` is the attribute `NAME`.
    CloudEvents,
}

/// Format, envelope and rows of a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packing {
    /// The format.
    pub format: Format,
    /// The envelope.
    pub envelope: Envelope,
    /// Path of an array of objects that are one event each; `None` if a record is one event.
    /// Paths of fields below the array begin with its path, like `rows.score`; all others are
    /// common to its events.
    pub rows: Option<String>,
}

impl Packing {
    /// Whether a record is one plain JSON object and one event.
    pub fn is_plain(&self) -> bool {
        *self == Packing::default()
    }
}

/// The shape of the records of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeOptions {
    /// Name of the model.
    pub model: FieldOrConst,
    /// Version of the model; the empty string when `None`.
    pub version: Option<FieldOrConst>,
    /// Paths of the fields that split a model into segments; the path is the segment's key.
    pub segments: Vec<String>,
    /// Id of the event, for joins and for dropping duplicates; empty when `None`.
    pub id: Option<IdField>,
    /// Event time; the record's Kafka timestamp when `None`.
    pub time: Option<TimeField>,
    /// The prediction.
    pub prediction: PredictionField,
    /// Path of the outcome: a boolean, 0 or 1, a class name or a class index. A record without it,
    /// or with `null`, is an event whose outcome is not yet known.
    pub outcome: String,
    /// Path of the weight of the event, a number above 0; events have none when `None`.
    pub weight: Option<String>,
    /// Path of the name of the cluster whose outcomes depend on each other: a user, a session, a
    /// household; events are independent when `None`.
    pub cluster: Option<String>,
    /// Maps texts and numbers of outcomes to the name or the index of a class. It is looked up
    /// first.
    pub outcome_map: Vec<(String, String)>,
    /// Names of the classes in index order; may be empty when outcomes are booleans or indices. If
    /// all names are whole numbers, an outcome that is a number names a class; otherwise it is an
    /// index. With a single score and two names, the second is the positive one.
    pub classes: Vec<String>,
    /// Longest record to decode; longer ones are rejected as `too_large`.
    pub record_bytes_max: usize,
    /// How far an event time may lie after the Kafka timestamp of the record. One event from the
    /// future would advance the watermark and make all others late. `None` accepts any time.
    pub ahead_ms_max: Option<i64>,
    /// Format, envelope and rows.
    pub packing: Packing,
}

/// The shape of separate outcomes, which are joined with predictions by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeOptions {
    /// Path of the name of the model, if ids are unique only within a model.
    pub model: Option<String>,
    /// Id of the prediction.
    pub id: IdField,
    /// Event time of the outcome; the record's Kafka timestamp when `None`.
    pub time: Option<TimeField>,
    /// Path of the outcome: a boolean, 0 or 1, a class name or a class index. It is required.
    pub outcome: String,
    /// Maps texts and numbers of outcomes to the name or the index of a class. It is looked up
    /// first.
    pub outcome_map: Vec<(String, String)>,
    /// Names of the classes in index order; may be empty when outcomes are booleans or indices. If
    /// all names are whole numbers, an outcome that is a number names a class; otherwise it is an
    /// index.
    pub classes: Vec<String>,
    /// Longest record to decode.
    pub record_bytes_max: usize,
    /// How far an event time may lie after the record's Kafka timestamp.
    pub ahead_ms_max: Option<i64>,
    /// Format, envelope and rows.
    pub packing: Packing,
}

/// 1 MiB, the broker's own default of `message.max.bytes`.
pub const RECORD_BYTES_MAX: usize = 1 << 20;
/// One day: more than any time zone mistaken for UTC.
pub const AHEAD_MS_MAX: i64 = 86_400_000;

impl Default for DecodeOptions {
    /// Flat records `{"model", "time_ms", "score", "outcome"}`.
    fn default() -> DecodeOptions {
        DecodeOptions {
            model: FieldOrConst::Field("model".into()),
            version: None,
            segments: Vec::new(),
            id: None,
            time: Some(TimeField {
                path: "time_ms".into(),
                unit: TimeUnit::Milliseconds,
                zone_s: None,
            }),
            prediction: PredictionField::Score("score".into()),
            outcome: "outcome".into(),
            weight: None,
            cluster: None,
            outcome_map: Vec::new(),
            classes: Vec::new(),
            record_bytes_max: RECORD_BYTES_MAX,
            ahead_ms_max: Some(AHEAD_MS_MAX),
            packing: Packing::default(),
        }
    }
}

/// Why [`DecodeOptions`] cannot be compiled; the text names the field and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeOptionsError(pub String);
