//! Determines which sources feed which section of models.

use super::document::Record;
use crate::judge::ANY_MODEL as ANY;

/// The sources whose events a section of models may get: those that name its model, those that read
/// a model's name from each record, and for `*` those that name a model without a section of its
/// own.
pub fn feeds<'r>(model: &Record, root: &'r Record) -> impl Iterator<Item = &'r Record> {
    let name = model.text("name").map(str::to_owned);
    root.all("source").iter().filter(move |source| {
        let fixed = source.text("model");
        let own = |fixed: &str| {
            root.all("model")
                .iter()
                .any(|m| m.text("name") == Some(fixed))
        };
        match fixed {
            None => true,
            Some(fixed) if name.as_deref() == Some(ANY) => !own(fixed),
            Some(_) => fixed == name.as_deref(),
        }
    })
}
