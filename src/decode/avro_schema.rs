//! An Avro schema as a table of nodes that refer to each other by number.
//!
//! Named types may refer to themselves, which a tree of owned boxes cannot express. Only what is
//! needed to read data with the writer's schema is stored. Defaults, documentation and aliases are
//! not, because there is no reader's schema; paths take its place. (Apache Avro 1.12 specification,
//! "Schema Declaration" and "Names".)

use serde_json::Value;
use std::collections::HashMap;

/// One type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Null,
    Boolean,
    /// `int` and `long`, whose encoding is the same.
    Long,
    Float,
    Double,
    /// The scale of a decimal.
    Bytes(Option<usize>),
    Text,
    /// Bytes, and the scale of a decimal.
    Fixed(usize, Option<usize>),
    Enum(Vec<String>),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    Record(Vec<(String, usize)>),
}

/// The types of one schema and of the schemas that it references.
#[derive(Debug, Default)]
pub(super) struct Schema {
    pub nodes: Vec<Node>,
    pub root: usize,
    /// Full names.
    names: HashMap<String, usize>,
}

/// Largest scale of a decimal; a double has fewer digits.
const SCALE_MAX: u64 = 38;

type Parsed<T> = Result<T, String>;

impl Schema {
    /// Reads the schemas of `references`, in that order, and then `text`.
    pub fn parse<'t>(
        text: &'t str,
        references: impl IntoIterator<Item = &'t str>,
    ) -> Parsed<Schema> {
        let mut schema = Schema::default();
        for text in references.into_iter().chain([text]) {
            let json: Value = match serde_json::from_str(text) {
                Ok(json) => json,
                // A primitive type may be written without quotes.
                Err(_) if text.chars().all(|c| c.is_ascii_alphabetic()) => Value::from(text),
                Err(e) => return Err(format!("not JSON: {e}")),
            };
            schema.root = schema.node(&json, "")?;
        }
        Ok(schema)
    }

    fn push(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The node of a declaration within `space`.
    fn node(&mut self, json: &Value, space: &str) -> Parsed<usize> {
        match json {
            Value::String(name) => self.named(name, space),
            Value::Array(branches) => {
                let branches = branches.iter().map(|b| self.node(b, space));
                let branches = branches.collect::<Parsed<Vec<usize>>>()?;
                Ok(self.push(Node::Union(branches)))
            }
            Value::Object(o) => match o.get("type") {
                Some(Value::String(kind)) => self.complex(kind, json, space),
                Some(inner) => self.node(inner, space),
                None => Err("a type without `type`".into()),
            },
            _ => Err(format!("{json} is no type")),
        }
    }

    /// A primitive type, or a type that was already declared.
    fn named(&mut self, name: &str, space: &str) -> Parsed<usize> {
        let node = match name {
            "null" => Node::Null,
            "boolean" => Node::Boolean,
            "int" | "long" => Node::Long,
            "float" => Node::Float,
            "double" => Node::Double,
            "bytes" => Node::Bytes(None),
            "string" => Node::Text,
            _ => {
                let known = self.names.get(&full(name, space));
                let known = known.or_else(|| self.names.get(name));
                return known
                    .copied()
                    .ok_or_else(|| format!("type `{name}` is not declared"));
            }
        };
        Ok(self.push(node))
    }

    fn complex(&mut self, kind: &str, json: &Value, space: &str) -> Parsed<usize> {
        let inner = |key: &str| {
            let inner = json.get(key);
            inner.ok_or_else(|| format!("`{kind}` without `{key}`"))
        };
        match kind {
            "array" => {
                let items = self.node(inner("items")?, space)?;
                Ok(self.push(Node::Array(items)))
            }
            "map" => {
                let values = self.node(inner("values")?, space)?;
                Ok(self.push(Node::Map(values)))
            }
            "bytes" => {
                let scale = scale(json)?;
                Ok(self.push(Node::Bytes(scale)))
            }
            "fixed" => {
                let size = inner("size")?
                    .as_u64()
                    .and_then(|n| usize::try_from(n).ok());
                let size = size.ok_or("`fixed` with a `size` that is no length")?;
                self.declare(json, space, Node::Fixed(size, scale(json)?))
            }
            "enum" => {
                let symbols = inner("symbols")?.as_array().ok_or("`symbols` is no list")?;
                let symbols = symbols.iter().filter_map(Value::as_str).map(str::to_owned);
                let symbols = symbols.collect();
                self.declare(json, space, Node::Enum(symbols))
            }
            "record" | "error" => self.record(json, space),
            name => self.named(name, space),
        }
    }

    fn record(&mut self, json: &Value, space: &str) -> Parsed<usize> {
        // Declared before its fields, which may refer to it.
        let node = self.declare(json, space, Node::Record(Vec::new()))?;
        let name = name_of(json, space)?;
        let space = name.rsplit_once('.').map_or("", |(space, _)| space);
        let fields = json.get("fields").and_then(Value::as_array);
        let fields = fields.ok_or_else(|| format!("record `{name}` without `fields`"))?;
        let mut types = Vec::new();
        for field in fields {
            let (key, kind) = (field.get("name").and_then(Value::as_str), field.get("type"));
            let (Some(key), Some(kind)) = (key, kind) else {
                return Err(format!("record `{name}` has a field without name or type"));
            };
            types.push((key.to_owned(), self.node(kind, space)?));
        }
        self.nodes[node] = Node::Record(types);
        Ok(node)
    }

    fn declare(&mut self, json: &Value, space: &str, node: Node) -> Parsed<usize> {
        let name = name_of(json, space)?;
        let node = self.push(node);
        self.names.insert(name, node);
        Ok(node)
    }
}

fn scale(json: &Value) -> Parsed<Option<usize>> {
    if json.get("logicalType").and_then(Value::as_str) != Some("decimal") {
        return Ok(None);
    }
    let scale = json.get("scale").map_or(Some(0), Value::as_u64);
    match scale.filter(|s| *s <= SCALE_MAX) {
        Some(scale) => Ok(Some(scale as usize)),
        None => Err(format!(
            "a decimal whose scale is not from 0 to {SCALE_MAX}"
        )),
    }
}

/// The full name of a declaration.
fn name_of(json: &Value, space: &str) -> Parsed<String> {
    let name = json.get("name").and_then(Value::as_str);
    let name = name.ok_or("a named type without `name`")?;
    let own = json.get("namespace").and_then(Value::as_str);
    Ok(full(name, own.unwrap_or(space)))
}

fn full(name: &str, space: &str) -> String {
    if space.is_empty() || name.contains('.') {
        name.to_owned()
    } else {
        format!("{space}.{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_in_their_namespace() {
        let text = r#"{"type":"record","name":"a.R","fields":[
            {"name":"next","type":["null","R"]},
            {"name":"e","type":{"type":"enum","name":"E","symbols":["x"]}},
            {"name":"f","type":"a.E"},{"name":"g","type":"b.F"}]}"#;
        let reference = r#"{"type":"fixed","name":"F","namespace":"b","size":3}"#;
        let s = Schema::parse(text, [reference]).unwrap();
        let Node::Record(fields) = &s.nodes[s.root] else {
            panic!()
        };
        assert_eq!(s.nodes[fields[0].1], Node::Union(vec![2, s.root]));
        assert_eq!(fields[1].1, fields[2].1);
        assert_eq!(s.nodes[fields[3].1], Node::Fixed(3, None));
    }

    #[test]
    fn what_is_no_schema_says_why() {
        for (text, why) in [
            ("{", "not JSON"),
            ("\"Lost\"", "`Lost` is not declared"),
            (r#"{"type":"array"}"#, "without `items`"),
            (r#"{"type":"record","name":"R"}"#, "without `fields`"),
            (r#"{"type":"record","fields":[]}"#, "without `name`"),
            (r#"{"type":"fixed","name":"F","size":-1}"#, "no length"),
            ("3", "is no type"),
            (
                r#"{"type":"bytes","logicalType":"decimal","scale":99}"#,
                "scale",
            ),
        ] {
            let error = Schema::parse(text, []).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
