//! The headers of a record. They are parsed only if they are read.

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
    Owned(&'a [(String, Vec<u8>)]),
}

impl<'a> Headers<'a> {
    pub(super) fn of_message(message: Message<'a>) -> Headers<'a> {
        Headers(Kind::Message(message))
    }

    /// Copied headers.
    pub fn of_owned(headers: &'a [(String, Vec<u8>)]) -> Headers<'a> {
        Headers(Kind::Owned(headers))
    }

    /// All headers in order. A null value is empty, and so is a name that is no UTF-8.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        (0..).map_while(move |i| match self.0 {
            Kind::None => None,
            Kind::Message(message) => message.header(i),
            Kind::Owned(headers) => headers.get(i).map(|(k, v)| (k.as_str(), v.as_slice())),
        })
    }

    /// The last value of this name, which is the effective one.
    pub fn get(self, name: &str) -> Option<&'a [u8]> {
        self.iter()
            .filter(|(n, _)| *n == name)
            .last()
            .map(|(_, v)| v)
    }
}

impl fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
