//! The names of the configured models, for messages about events of unknown models.

use crate::collect::Reason;
use crate::config::value::nearest;
use crate::decode::{Content, Rejection};
use crate::report::table::printable;
use std::collections::BTreeMap;

/// Most characters of a name in a message.
const SHOWN: usize = 80;

/// Most names that are compared with those of the configuration: a topic may carry any number of
/// models that are not watched.
const COMPARED_MAX: usize = 100;

/// The names of the configured models, and hints for unknown ones.
#[derive(Debug, Default)]
pub struct Models {
    names: Vec<String>,
    /// By unknown name, the hint at the configured name that may be meant.
    meant: BTreeMap<String, String>,
}

impl Models {
    /// The models with these names.
    pub fn new(names: &[String]) -> Models {
        Models {
            names: names.to_vec(),
            meant: BTreeMap::new(),
        }
    }

    /// Adds to the rejection of an event of an unknown model the name of that model, and of the one
    /// that may be meant.
    pub fn name(
        &mut self,
        mut rejection: Rejection,
        decoded: &Result<Content<'_>, Rejection>,
    ) -> Rejection {
        if let (Reason::UnknownModel, Ok(Content::Event(event))) = (rejection.reason, decoded) {
            let shown = shown(event.model);
            let near = self.meant(event.model);
            rejection.detail = format!("model `{shown}`{near}: {}", rejection.detail);
        }
        rejection
    }

    fn meant(&mut self, name: &str) -> &str {
        if !self.meant.contains_key(name) && self.meant.len() < COMPARED_MAX {
            let near = nearest(name, self.names.iter().map(String::as_str));
            let words = near.map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
            self.meant.insert(name.to_owned(), words);
        }
        self.meant.get(name).map_or("", String::as_str)
    }
}

/// The beginning of a name, for a message; control characters are written out.
pub fn shown(name: &str) -> String {
    let beginning: String = name.chars().take(SHOWN).collect();
    printable(&beginning).into_owned()
}
