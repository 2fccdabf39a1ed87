//! Records by the formats' own libraries, in the frame of a schema registry.

// Each binary that includes this file uses a part of it.
#![allow(dead_code)]

use apache_avro::Schema;
use apache_avro::types::Value as Avro;
use protox::prost_reflect::prost::Message as _;
use protox::prost_reflect::{DescriptorPool, DynamicMessage, Value as Proto};
use serde_json::{Value as Json, json};

/// What a record says.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// `model`.
    pub model: String,
    /// `meta.version`.
    pub version: i64,
    /// `meta.country`.
    pub country: String,
    /// `id`.
    pub id: String,
    /// `time_ms`.
    pub time_ms: i64,
    /// `score`.
    pub score: f64,
    /// `outcome`.
    pub outcome: Option<bool>,
}

/// The Avro schema of [`Facts`], with fields that nobody wants.
pub const AVRO: &str = r#"{"type":"record","name":"Prediction","namespace":"shop","fields":[
  {"name":"features","type":{"type":"array","items":"float"}},
  {"name":"model","type":"string"},
  {"name":"meta","type":{"type":"record","name":"Meta","fields":[
    {"name":"country","type":"string"},
    {"name":"tags","type":{"type":"map","values":["null","string","long"]}},
    {"name":"version","type":"long"}]}},
  {"name":"id","type":"string"},
  {"name":"time_ms","type":{"type":"long","logicalType":"timestamp-millis"}},
  {"name":"score","type":"double"},
  {"name":"hash","type":{"type":"fixed","name":"Hash","size":4}},
  {"name":"outcome","type":["null","boolean"]}]}"#;

/// The same as a `.proto` file; the message is the second one within the second.
pub const PROTO: &str = r#"
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Unused { string nothing = 1; }
message Outer {
  message Other { bytes nothing = 1; }
  message Prediction {
    message Meta { string country = 2; int64 version = 7; map<string, string> tags = 1; }
    repeated float features = 1;
    string model = 2;
    Meta meta = 3;
    string id = 4;
    sint64 time_ms = 5;
    double score = 6;
    optional bool outcome = 7;
    google.protobuf.Timestamp at = 8;
  }
}"#;

/// Message indexes of `Prediction`: two of them, 1 and 1.
pub const INDEXES: &[u8] = &[4, 2, 2];

/// The frame and what is behind it.
pub fn frame(id: u32, data: &[u8]) -> Vec<u8> {
    [&[0][..], &id.to_be_bytes(), data].concat()
}

/// As JSON.
pub fn as_json(f: &Facts) -> Json {
    json!({
        "features": [0.5, null], "model": f.model, "time_ms": f.time_ms, "score": f.score,
        "meta": {"version": f.version, "country": f.country},
        "id": f.id, "outcome": f.outcome,
    })
}

/// A datum of any schema.
pub fn avro(schema: &str, value: Avro) -> Vec<u8> {
    let schema = Schema::parse_str(schema).expect("a sound schema");
    let value = value.resolve(&schema).expect("a value of the schema");
    let writer = apache_avro::writer::datum::GenericDatumWriter::builder(&schema).build();
    writer
        .and_then(|w| w.write_value_to_vec(value))
        .expect("a value that can be written")
}

/// As Avro, without frame.
pub fn as_avro(f: &Facts) -> Vec<u8> {
    let text = |s: &str| Avro::String(s.to_owned());
    let field = |name: &str, value| (name.to_owned(), value);
    let tags = [
        (
            "a".to_owned(),
            Avro::Union(2, Box::new(Avro::Long(1 << 40))),
        ),
        ("b".to_owned(), Avro::Union(1, Box::new(text("\"")))),
    ];
    let outcome = match f.outcome {
        None => Avro::Union(0, Box::new(Avro::Null)),
        Some(y) => Avro::Union(1, Box::new(Avro::Boolean(y))),
    };
    let record = vec![
        field(
            "features",
            Avro::Array(vec![Avro::Float(0.1), Avro::Float(f32::NAN)]),
        ),
        field("model", text(&f.model)),
        field(
            "meta",
            Avro::Record(vec![
                field("country", text(&f.country)),
                field("tags", Avro::Map(tags.into())),
                field("version", Avro::Long(f.version)),
            ]),
        ),
        field("id", text(&f.id)),
        field("time_ms", Avro::TimestampMillis(f.time_ms)),
        field("score", Avro::Double(f.score)),
        field("hash", Avro::Fixed(4, vec![0xff; 4])),
        field("outcome", outcome),
    ];
    avro(AVRO, Avro::Record(record))
}

/// The descriptors of a `.proto` file.
pub fn pool(text: &str) -> DescriptorPool {
    use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
    struct One(String);
    impl FileResolver for One {
        fn open_file(&self, name: &str) -> Result<File, protox::Error> {
            match name {
                "one.proto" => File::from_source(name, &self.0),
                _ => Err(protox::Error::file_not_found(name)),
            }
        }
    }
    let mut resolver = ChainFileResolver::new();
    resolver.add(One(text.to_owned()));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    compiler.open_file("one.proto").expect("a sound file");
    compiler.descriptor_pool()
}

/// A message of a file, its fields set.
pub fn message(pool: &DescriptorPool, name: &str, fields: Vec<(&str, Proto)>) -> DynamicMessage {
    let descriptor = pool
        .get_message_by_name(name)
        .expect("a message of the file");
    let mut message = DynamicMessage::new(descriptor);
    for (name, value) in fields {
        message.set_field_by_name(name, value);
    }
    message
}

/// As Protobuf, with message indexes, without frame.
pub fn as_protobuf(pool: &DescriptorPool, f: &Facts) -> Vec<u8> {
    let text = |s: &str| Proto::String(s.to_owned());
    let meta = vec![
        ("country", text(&f.country)),
        ("version", Proto::I64(f.version)),
    ];
    let meta = message(pool, "shop.Outer.Prediction.Meta", meta);
    let mut fields = vec![
        (
            "features",
            Proto::List(vec![Proto::F32(0.1), Proto::F32(f32::NAN)]),
        ),
        ("model", text(&f.model)),
        ("meta", Proto::Message(meta)),
        ("id", text(&f.id)),
        ("time_ms", Proto::I64(f.time_ms)),
        ("score", Proto::F64(f.score)),
    ];
    fields.extend(f.outcome.map(|y| ("outcome", Proto::Bool(y))));
    let message = message(pool, "shop.Outer.Prediction", fields);
    [INDEXES, &message.encode_to_vec()].concat()
}
