//! Reads Protobuf messages with the `.proto` file of the registry.
//!
//! The file and its imports are compiled here (protox). Messages are decoded with its descriptors
//! (prost-reflect) and not with generated code, because they are known only at run time. A wanted
//! path is a list of field names of the file.
//!
//! Protobuf does not write a field with its default value unless the field has *presence*
//! (`optional`, messages, members of a `oneof`, all of proto2). A score of 0.0 is thus zero bytes.
//! So an absent field with presence is missing, and an absent field without presence has its
//! default, 0, "" or `false`: the author of the file chose between the two. A producer whose
//! outcomes may be "not yet known" uses `optional`, so that they differ from negative ones.
//!
//! Well-known types follow the JSON mapping of Protobuf: a `Timestamp` is RFC 3339 text (use
//! `time_unit = "rfc3339"`), and a wrapper is its content. Enums are the names of their values.
//!
//! A record has no more messages and values than bytes, and nesting stops at 100 (prost). The text
//! written for them has a budget.

use super::frame::{SchemaText, message_indexes};
use super::path::{Paths, Target};
use super::sink::{self, NOT_TEXT, Sink, TOO_MUCH_TEXT, text_budget};
use super::time;
use super::value::Kind;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use protox::prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind as Type, MapKey, MessageDescriptor,
    ReflectMessage, Value,
};
use std::collections::HashMap;

/// The name under which the schema itself is compiled.
const ROOT: &str = "trueline/schema.proto";

/// A compiled file, and the wanted fields of its messages.
pub(super) struct Program {
    pool: DescriptorPool,
    /// The wanted fields by message indexes; bounded by the number of messages in the file.
    plans: HashMap<Vec<usize>, Plan>,
}

struct Plan {
    message: MessageDescriptor,
    wants: Vec<Want>,
}

/// A wanted field, or a field that contains wanted fields.
struct Want {
    field: FieldDescriptor,
    what: What,
}

enum What {
    Slot(usize),
    Message(Vec<Want>),
    /// Slots of the values under the wanted keys of a map of scalars.
    Map(Vec<(MapKey, usize)>),
}

type Read<T> = Result<T, String>;

impl Program {
    /// Compiles the file.
    pub fn new(schema: &SchemaText) -> Read<Program> {
        let mut resolver = ChainFileResolver::new();
        resolver.add(Texts(schema.clone()));
        resolver.add(GoogleFileResolver::new());
        let mut compiler = protox::Compiler::with_file_resolver(resolver);
        compiler.include_imports(true);
        compiler.open_file(ROOT).map_err(|e| e.to_string())?;
        Ok(Program {
            pool: compiler.descriptor_pool(),
            plans: HashMap::new(),
        })
    }

    /// Reads one message, which follows its indexes.
    pub fn read(&mut self, bytes: &[u8], paths: &Paths, sink: &mut Sink<'_>) -> Read<()> {
        let Some((indexes, bytes)) = message_indexes(bytes) else {
            return Err("the indexes of the message do not end".into());
        };
        if !self.plans.contains_key(&indexes) {
            let message = self.message(&indexes);
            let message = message.ok_or_else(|| {
                format!("the schema has no message {indexes:?}, counted from 0, outermost first")
            })?;
            let wants = wants(&message, paths, 0);
            self.plans.insert(indexes.clone(), Plan { message, wants });
        }
        let Some(plan) = self.plans.get(&indexes) else {
            return Ok(());
        };
        let message = DynamicMessage::decode(plan.message.clone(), bytes);
        let message = message.map_err(|e| e.to_string())?;
        Writer(text_budget(bytes)).keep(&message, &plan.wants, sink)
    }

    fn message(&self, indexes: &[usize]) -> Option<MessageDescriptor> {
        let file = self.pool.get_file_by_name(ROOT)?;
        let (first, inner) = indexes.split_first()?;
        let mut message = file.messages().nth(*first)?;
        for index in inner {
            let child = message.child_messages().nth(*index)?;
            message = child;
        }
        Some(message)
    }
}

/// The schema and its references by name, as files.
struct Texts(SchemaText);

impl FileResolver for Texts {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let mut references = self.0.references.iter();
        let text = match references.find(|(known, _)| known == name) {
            Some((_, text)) => text,
            None if name == ROOT => &self.0.text,
            None => return Err(protox::Error::file_not_found(name)),
        };
        File::from_source(name, text)
    }
}

/// The wanted fields of a message, under `node` of the paths.
fn wants(message: &MessageDescriptor, paths: &Paths, node: usize) -> Vec<Want> {
    let mut all = Vec::new();
    for child in &paths.nodes[node] {
        let Some(field) = message.get_field_by_name(Paths::key(child)) else {
            continue;
        };
        let what = match (child.target, field.kind()) {
            (Target::Slot(slot), _) => What::Slot(slot),
            (Target::Node(node), Type::Message(entry)) if field.is_map() => {
                let key = entry.map_entry_key_field().kind();
                let keys = paths.nodes[node].iter().filter_map(|c| match c.target {
                    Target::Slot(slot) => Some((map_key(&key, Paths::key(c))?, slot)),
                    Target::Node(_) => None,
                });
                What::Map(keys.collect())
            }
            (Target::Node(node), Type::Message(inner)) if !field.is_list() => {
                What::Message(wants(&inner, paths, node))
            }
            _ => continue,
        };
        all.push(Want { field, what });
    }
    all
}

fn map_key(kind: &Type, text: &str) -> Option<MapKey> {
    Some(match kind {
        Type::String => MapKey::String(text.to_owned()),
        Type::Bool => MapKey::Bool(text.parse().ok()?),
        Type::Int32 | Type::Sint32 | Type::Sfixed32 => MapKey::I32(text.parse().ok()?),
        Type::Int64 | Type::Sint64 | Type::Sfixed64 => MapKey::I64(text.parse().ok()?),
        Type::Uint32 | Type::Fixed32 => MapKey::U32(text.parse().ok()?),
        Type::Uint64 | Type::Fixed64 => MapKey::U64(text.parse().ok()?),
        _ => return None,
    })
}

/// Whether a field with presence is missing.
fn absent(message: &DynamicMessage, field: &FieldDescriptor) -> bool {
    field.supports_presence() && !message.has_field(field)
}

/// The kind of the values of a map of this kind.
fn value_kind(map: &Type) -> Type {
    match map {
        Type::Message(entry) => entry.map_entry_value_field().kind(),
        other => other.clone(),
    }
}

/// Writes the wanted values of a message, with this budget of text.
struct Writer(usize);

impl Writer {
    fn keep(&self, message: &DynamicMessage, wants: &[Want], sink: &mut Sink<'_>) -> Read<()> {
        for want in wants.iter().filter(|w| !absent(message, &w.field)) {
            let value = message.get_field(&want.field);
            match (&want.what, value.as_ref()) {
                (What::Slot(slot), value) => {
                    sink.put(*slot, |text| {
                        self.write(value, &want.field.kind(), text, false)
                    })?;
                }
                (What::Message(wants), Value::Message(inner)) => self.keep(inner, wants, sink)?,
                (What::Map(keys), Value::Map(map)) => {
                    let kind = value_kind(&want.field.kind());
                    for (key, slot) in keys {
                        if let Some(value) = map.get(key) {
                            sink.put(*slot, |text| self.write(value, &kind, text, false))?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes a value in JSON notation. Nested text has quotes.
    fn write(&self, value: &Value, kind: &Type, text: &mut String, quoted: bool) -> Read<Kind> {
        if text.len() > self.0 {
            return Err(TOO_MUCH_TEXT.into());
        }
        Ok(match value {
            Value::Bool(b) => sink::truth(*b, text),
            Value::I32(i) => sink::integer(*i, text),
            Value::I64(i) => sink::integer(*i, text),
            Value::U32(i) => sink::integer(*i, text),
            Value::U64(i) => sink::integer(*i, text),
            Value::F32(x) => sink::float(f64::from(*x), text),
            Value::F64(x) => sink::float(*x, text),
            Value::String(s) => sink::string(s, quoted, text),
            Value::Bytes(b) => sink::bytes(b, quoted, text).ok_or(NOT_TEXT)?,
            Value::EnumNumber(n) => match kind {
                Type::Enum(e) => match e.get_value(*n) {
                    Some(value) => sink::string(value.name(), quoted, text),
                    None => sink::integer(*n, text),
                },
                _ => sink::integer(*n, text),
            },
            Value::Message(message) => return self.write_message(message, text, quoted),
            Value::List(items) => {
                text.push('[');
                for item in items {
                    sink::comma(text);
                    self.write(item, kind, text, true)?;
                }
                text.push(']');
                Kind::Array
            }
            Value::Map(map) => {
                let kind = value_kind(kind);
                text.push('{');
                // Sorted, because the order of a map is random and the same error must be reported
                // each time.
                let mut members: Vec<_> = map.iter().collect();
                members.sort_unstable_by_key(|(key, _)| *key);
                for (key, value) in members {
                    sink::key(&key_text(key), text);
                    self.write(value, &kind, text, true)?;
                }
                text.push('}');
                Kind::Object
            }
        })
    }

    fn write_message(
        &self,
        message: &DynamicMessage,
        text: &mut String,
        quoted: bool,
    ) -> Read<Kind> {
        let descriptor = message.descriptor();
        match descriptor.full_name() {
            "google.protobuf.Timestamp" => {
                let part = |name| message.get_field_by_name(name);
                let seconds = part("seconds").and_then(|v| v.as_i64()).unwrap_or(0);
                let nanos = part("nanos").and_then(|v| v.as_i32()).unwrap_or(0);
                return match time::to_rfc3339(seconds, nanos) {
                    Some(time) => Ok(sink::string(&time, quoted, text)),
                    None => Err("a timestamp outside the years 1 to 9999".into()),
                };
            }
            name if is_wrapper(name) => {
                if let Some(field) = descriptor.get_field_by_name("value") {
                    return self.write(&message.get_field(&field), &field.kind(), text, quoted);
                }
            }
            _ => {}
        }
        text.push('{');
        for field in descriptor.fields().filter(|f| !absent(message, f)) {
            sink::key(field.name(), text);
            self.write(&message.get_field(&field), &field.kind(), text, true)?;
        }
        text.push('}');
        Ok(Kind::Object)
    }
}

fn is_wrapper(name: &str) -> bool {
    let inner = name.strip_prefix("google.protobuf.");
    let inner = inner.and_then(|name| name.strip_suffix("Value"));
    let kinds = [
        "Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes",
    ];
    inner.is_some_and(|kind| kinds.contains(&kind))
}

fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(b) => b.to_string(),
        MapKey::I32(i) => i.to_string(),
        MapKey::I64(i) => i.to_string(),
        MapKey::U32(i) => i.to_string(),
        MapKey::U64(i) => i.to_string(),
        MapKey::String(s) => s.clone(),
    }
}
