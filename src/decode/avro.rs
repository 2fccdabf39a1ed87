//! Reads the wanted fields of Avro's binary encoding with the schema of the writer.
//!
//! Avro data contain neither names nor types. They can only be read with the schema of their
//! writer, which the registry stores under the id in the frame. There is no reader's schema to
//! resolve, because nothing is read into a type: a wanted path is looked up once in the writer's
//! schema, and each record is read along the resulting [`Step`]s. So fields that were added, moved
//! or dropped cost nothing. A wanted field that the schema does not have is missing, as it would be
//! in JSON.
//!
//! A union has the type of its branch, so that `["null", "double"]` is a number that may be null.
//! Enums are the names of their symbols, decimals are numbers, and bytes are text if they are
//! UTF-8. A record with bytes left over is rejected, because it was not written with this schema.
//!
//! Limits: a count of items may not exceed the remaining bytes (a record of zero bytes could
//! otherwise be repeated 2⁶³ times), and nesting stops at [`DEPTH_MAX`]. Nodes visited and text
//! written have a budget that grows with the bytes of the record. Encoding: Apache Avro 1.12
//! specification, "Binary Encoding".

use super::avro_schema::{Node, Schema};
use super::frame::varint;
use super::path::{Paths, Target};
use super::scan::DEPTH_MAX;
use super::sink::{self, NOT_TEXT, Sink, TOO_MUCH_TEXT, text_budget};
use super::value::Kind;

/// What to do with the next value.
enum Step {
    /// Skip a value of this node.
    Skip(usize),
    /// Store a value of this node in this slot.
    Take(usize, usize),
    Record(Vec<Step>),
    Union(Vec<Step>),
    /// Node of the values, and what to do with those under wanted keys.
    Map(usize, Vec<(String, Step)>),
}

/// A schema with the steps to the wanted fields.
pub(super) struct Program {
    schema: Schema,
    way: Step,
}

/// Where and why a record does not match its schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub at: usize,
    pub what: &'static str,
}

type Read<T> = Result<T, Fault>;

impl Program {
    /// The steps to the slots of `paths`.
    pub fn new(schema: Schema, paths: &Paths) -> Program {
        let way = way(&schema, paths, schema.root, Target::Node(0));
        Program { schema, way }
    }

    /// Reads one record into `sink`.
    pub fn read(&self, bytes: &[u8], sink: &mut Sink<'_>) -> Read<()> {
        let mut walk = Walk {
            nodes: &self.schema.nodes,
            bytes,
            at: 0,
            steps: STEPS_FREE.saturating_add(bytes.len().saturating_mul(4)),
            text_budget: text_budget(bytes),
        };
        walk.step(&self.way, sink)?;
        if walk.at < bytes.len() {
            return walk.fault("bytes after the end of the record");
        }
        Ok(())
    }
}

fn way(schema: &Schema, paths: &Paths, node: usize, target: Target) -> Step {
    let tree = match (target, &schema.nodes[node]) {
        // A union nested in a union could recurse without end; the specification forbids them.
        (_, Node::Union(branches)) => {
            let flat = |&b: &usize| !matches!(schema.nodes[b], Node::Union(_));
            let branches = branches.iter().map(|b| match flat(b) {
                true => way(schema, paths, *b, target),
                false => Step::Skip(*b),
            });
            return Step::Union(branches.collect());
        }
        (Target::Slot(slot), _) => return Step::Take(node, slot),
        (Target::Node(tree), _) => tree,
    };
    match &schema.nodes[node] {
        Node::Record(fields) => {
            let step = |(name, node): &(String, usize)| match paths.child(tree, name) {
                Some(target) => way(schema, paths, *node, target),
                None => Step::Skip(*node),
            };
            Step::Record(fields.iter().map(step).collect())
        }
        Node::Map(value) => {
            let wanted = paths.nodes[tree].iter().map(|child| {
                let way = way(schema, paths, *value, child.target);
                (Paths::key(child).to_owned(), way)
            });
            Step::Map(*value, wanted.collect())
        }
        _ => Step::Skip(node),
    }
}

/// A position in a record.
struct Walk<'a> {
    nodes: &'a [Node],
    bytes: &'a [u8],
    at: usize,
    /// Nodes that may still be visited.
    steps: usize,
    /// Bytes of text that values may take.
    text_budget: usize,
}

/// Free budget of visits for each record, beside four per byte. Records without fields take no
/// bytes, so a schema of a few kilobytes could ask for 2^100 visits.
const STEPS_FREE: usize = 100_000;

impl<'a> Walk<'a> {
    /// Counts the visit of a node.
    #[inline]
    fn visit(&mut self, depth: u32) -> Read<()> {
        if depth >= DEPTH_MAX {
            return self.fault("nested too deeply");
        }
        let Some(left) = self.steps.checked_sub(1) else {
            return self.fault("a schema that visits far more nodes than the record has bytes");
        };
        self.steps = left;
        Ok(())
    }

    fn step(&mut self, step: &Step, sink: &mut Sink<'_>) -> Read<()> {
        match step {
            Step::Skip(node) => self.skip(*node, 0),
            Step::Take(node, slot) => sink.put(*slot, |text| self.value(*node, text, false, 0)),
            Step::Record(fields) => fields.iter().try_for_each(|f| self.step(f, sink)),
            Step::Union(branches) => {
                let branch = self.choice(branches.len())?;
                self.step(&branches[branch], sink)
            }
            Step::Map(value, wanted) => {
                while let Some(count) = self.block()? {
                    for _ in 0..count {
                        let key = self.text()?;
                        match wanted.iter().find(|(name, _)| name == key) {
                            Some((_, step)) => self.step(step, sink)?,
                            None => self.skip(*value, 0)?,
                        }
                    }
                }
                Ok(())
            }
        }
    }

    /// Writes a value in JSON notation. Nested text has quotes.
    fn value(&mut self, node: usize, text: &mut String, quoted: bool, depth: u32) -> Read<Kind> {
        self.visit(depth)?;
        if text.len() > self.text_budget {
            return self.fault(TOO_MUCH_TEXT);
        }
        Ok(match &self.nodes[node] {
            Node::Null => sink::null(text),
            Node::Boolean => sink::truth(self.truth()?, text),
            Node::Long => sink::integer(self.long()?, text),
            Node::Float => sink::float(f64::from(f32::from_le_bytes(self.array()?)), text),
            Node::Double => sink::float(f64::from_le_bytes(self.array()?), text),
            Node::Text => sink::string(self.text()?, quoted, text),
            Node::Bytes(scale) => {
                let n = self.length()?;
                self.raw(n, *scale, text, quoted)?
            }
            Node::Fixed(n, scale) => self.raw(*n, *scale, text, quoted)?,
            Node::Enum(symbols) => {
                let symbol = self.choice(symbols.len())?;
                sink::string(&symbols[symbol], quoted, text)
            }
            Node::Union(branches) => {
                let branch = self.choice(branches.len())?;
                return self.value(branches[branch], text, quoted, depth + 1);
            }
            Node::Array(item) => {
                text.push('[');
                while let Some(count) = self.block()? {
                    for _ in 0..count {
                        sink::comma(text);
                        self.value(*item, text, true, depth + 1)?;
                    }
                }
                text.push(']');
                Kind::Array
            }
            Node::Map(value) => {
                text.push('{');
                while let Some(count) = self.block()? {
                    for _ in 0..count {
                        sink::key(self.text()?, text);
                        self.value(*value, text, true, depth + 1)?;
                    }
                }
                text.push('}');
                Kind::Object
            }
            Node::Record(fields) => {
                text.push('{');
                for (name, node) in fields {
                    sink::key(name, text);
                    self.value(*node, text, true, depth + 1)?;
                }
                text.push('}');
                Kind::Object
            }
        })
    }

    /// Bytes: a decimal if there is a scale, otherwise text.
    fn raw(
        &mut self,
        n: usize,
        scale: Option<usize>,
        text: &mut String,
        quoted: bool,
    ) -> Read<Kind> {
        let at = self.at;
        let bytes = self.take(n)?;
        let Some(scale) = scale else {
            return sink::bytes(bytes, quoted, text).ok_or(Fault { at, what: NOT_TEXT });
        };
        let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 16];
        let what = "a decimal of more than 16 bytes";
        let start = wide.len().checked_sub(n).ok_or(Fault { at, what })?;
        wide[start..].copy_from_slice(bytes);
        Ok(sink::decimal(i128::from_be_bytes(wide), scale, text))
    }

    fn skip(&mut self, node: usize, depth: u32) -> Read<()> {
        self.visit(depth)?;
        match &self.nodes[node] {
            Node::Null => Ok(()),
            Node::Boolean => self.truth().map(|_| ()),
            Node::Long => self.long().map(|_| ()),
            Node::Enum(symbols) => self.choice(symbols.len()).map(|_| ()),
            Node::Float => self.take(4).map(|_| ()),
            Node::Double => self.take(8).map(|_| ()),
            Node::Text | Node::Bytes(_) => {
                let n = self.length()?;
                self.take(n).map(|_| ())
            }
            Node::Fixed(n, _) => self.take(*n).map(|_| ()),
            Node::Union(branches) => {
                let branch = self.choice(branches.len())?;
                self.skip(branches[branch], depth + 1)
            }
            Node::Record(fields) => fields
                .iter()
                .try_for_each(|(_, node)| self.skip(*node, depth + 1)),
            Node::Array(item) => self.skip_blocks(*item, false, depth),
            Node::Map(value) => self.skip_blocks(*value, true, depth),
        }
    }

    fn skip_blocks(&mut self, item: usize, keys: bool, depth: u32) -> Read<()> {
        while let Some(count) = self.block()? {
            for _ in 0..count {
                if keys {
                    self.text()?;
                }
                self.skip(item, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Number of items in the next block of an array or map; `None` at its end.
    fn block(&mut self) -> Read<Option<usize>> {
        let mut count = self.long()?;
        if count < 0 {
            // The size of the block in bytes, for readers that skip it.
            self.long()?;
            count = count.checked_neg().unwrap_or(i64::MAX);
        }
        match usize::try_from(count) {
            Ok(0) => Ok(None),
            Ok(n) if n <= self.bytes.len() - self.at => Ok(Some(n)),
            _ => self.fault("more items than bytes are left"),
        }
    }

    fn choice(&mut self, choices: usize) -> Read<usize> {
        let at = self.at;
        let what = "a branch or symbol that its schema does not have";
        let choice = usize::try_from(self.long()?).ok();
        choice.filter(|c| *c < choices).ok_or(Fault { at, what })
    }

    fn text(&mut self) -> Read<&'a str> {
        let n = self.length()?;
        let at = self.at;
        let what = "text that is not UTF-8";
        std::str::from_utf8(self.take(n)?).map_err(|_| Fault { at, what })
    }

    fn truth(&mut self) -> Read<bool> {
        match self.array::<1>()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => self.fault("a boolean that is neither 0 nor 1"),
        }
    }

    fn length(&mut self) -> Read<usize> {
        let n = usize::try_from(self.long()?);
        n.or_else(|_| self.fault("a negative length"))
    }

    #[inline]
    fn long(&mut self) -> Read<i64> {
        let (at, what) = (self.at, "an integer that does not end");
        varint(self.bytes, &mut self.at).ok_or(Fault { at, what })
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    #[inline]
    fn take(&mut self, n: usize) -> Read<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let Some(bytes) = rest.get(..n) else {
            return self.fault("the record ends within a value");
        };
        self.at += n;
        Ok(bytes)
    }

    #[cold]
    fn fault<T>(&self, what: &'static str) -> Read<T> {
        Err(Fault { at: self.at, what })
    }
}
