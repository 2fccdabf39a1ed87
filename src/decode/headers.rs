//! Messages about the header of a table that lacks a wanted column.

/// Most column names to show in a message, and most characters of each.
const NAMES_SHOWN: usize = 10;
const NAME_SHOWN: usize = 40;

/// A message for a header that is not one: a JSON array, or a table with another separator.
pub(super) fn not_a_table(names: &[&str]) -> Option<String> {
    let first = names.first()?;
    if first.starts_with('[') {
        return Some(JSON_ARRAY.to_owned());
    }
    let other = [(';', "`;`"), ('\t', "tabs"), ('|', "`|`")];
    let found = other.iter().find(|(c, _)| first.contains(*c));
    let (_, by) = found.filter(|_| names.len() == 1)?;
    Some(format!(
        "the columns are separated by {by}; separate them by `,`"
    ))
}

/// The message for a file that is one JSON array.
pub(super) const JSON_ARRAY: &str =
    "the file is a JSON array; write one object a line (`jq -c '.[]'`)";

/// The message for two columns of the same name.
pub(super) fn twice(wanted: &str) -> String {
    format!("there are two columns named '{wanted}'; rename or drop one")
}

/// The message for a missing column, with the existing ones and the one that may be meant.
pub(super) fn lacking(wanted: &str, names: &[&str]) -> String {
    let short = |name: &&str| -> String {
        let mut characters = name.chars();
        let text: String = characters.by_ref().take(NAME_SHOWN).collect();
        text + if characters.next().is_some() {
            "…"
        } else {
            ""
        }
    };
    let mut shown: Vec<String> = names.iter().take(NAMES_SHOWN).map(short).collect();
    if names.len() > NAMES_SHOWN {
        shown.push(format!("and {} more", names.len() - NAMES_SHOWN));
    }
    let likeness = |name: &&&str| {
        let (a, b) = (wanted.to_lowercase(), name.to_lowercase());
        strsim::normalized_damerau_levenshtein(&a, &b)
    };
    let near = names.iter().filter(|name| likeness(name) >= 0.6);
    let near = near.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let near = near.map_or(String::new(), |near| {
        format!(" (did you mean '{}'?)", short(near))
    });
    format!(
        "no column named '{wanted}' among [{}]{near}",
        shown.join(", ")
    )
}

/// The name of a column without a byte order mark.
pub(super) fn bare(name: &str) -> &str {
    name.trim_start_matches('\u{feff}')
}
