//! The headers of a record, and whether its value is null. Headers are parsed only if they are
//! read.

use super::native::Message;
use std::fmt;

/// Names and values, borrowed like the other parts of the record.
#[derive(Clone, Copy, Default)]
pub struct Headers<'a>(Kind<'a>);

#[derive(Clone, Copy, Default)]
enum Kind<'a> {
    #[default]
    None,
    Message(Message<'a>),
    Owned(&'a Parts),
}

/// Copied headers, with other data that few readers need.
#[derive(Debug)]
pub(super) struct Parts {
    /// Names and values.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// The value of the record is null.
    pub tombstone: bool,
}

impl<'a> Headers<'a> {
    pub(super) fn of_message(message: Message<'a>) -> Headers<'a> {
        Headers(Kind::Message(message))
    }

    pub(super) fn of_owned(parts: &'a Parts) -> Headers<'a> {
        Headers(Kind::Owned(parts))
    }

    /// A copy that outlives the record.
    pub(super) fn copied(self) -> Parts {
        let headers = self.iter();
        Parts {
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.map(<[u8]>::to_vec)))
                .collect(),
            tombstone: self.is_tombstone(),
        }
    }

    /// Whether the value of the record is known to be null, and not only empty.
    pub fn is_tombstone(self) -> bool {
        match self.0 {
            Kind::None => false,
            Kind::Message(message) => message.is_tombstone(),
            Kind::Owned(parts) => parts.tombstone,
        }
    }

    /// All headers in order. A value may be null. A name that is not UTF-8 is empty.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Option<&'a [u8]>)> {
        (0..).map_while(move |i| match self.0 {
            Kind::None => None,
            Kind::Message(message) => message.header(i),
            Kind::Owned(parts) => {
                let header = parts.headers.get(i);
                header.map(|(name, value)| (name.as_str(), value.as_deref()))
            }
        })
    }

    /// The last value of this name, which is the effective one; empty if it is null.
    pub fn get(self, name: &str) -> Option<&'a [u8]> {
        let named = self.iter().filter(|(n, _)| *n == name);
        named.last().map(|(_, value)| value.unwrap_or_default())
    }
}

impl fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
