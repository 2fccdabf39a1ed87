//! What the columns of a table for `evaluate` are called, and what its labels mean.

/// Names of the columns. See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The score.
    pub score: String,
    /// The outcome.
    pub label: String,
    /// The weight; `None`: `weight`, if there is such a column.
    pub weight: Option<String>,
    /// The cluster; `None`: `cluster`, if there is such a column.
    pub cluster: Option<String>,
    /// The class and the column of its probability, in the order of the classes; empty: `p0`, `p1`,
    /// …
    pub classes: Vec<(String, String)>,
    /// The label that counts as positive; `None`: 1 and true.
    pub positive: Option<String>,
}

impl Default for Columns {
    fn default() -> Columns {
        Columns {
            score: "score".to_owned(),
            label: "label".to_owned(),
            weight: None,
            cluster: None,
            classes: Vec::new(),
            positive: None,
        }
    }
}

/// Reads `class=column`, or a column that is called like its class.
pub fn class_column(text: &str) -> (String, String) {
    let (class, column) = text.split_once('=').unwrap_or((text, text));
    (class.trim().to_owned(), column.trim().to_owned())
}

/// Reads the labels of one sample.
#[derive(Debug, Clone)]
pub struct Labels<'c> {
    columns: &'c Columns,
    /// The label other than the positive one, once it was seen.
    negative: Option<String>,
}

impl<'c> Labels<'c> {
    /// Labels as these columns say.
    pub fn new(columns: &'c Columns) -> Labels<'c> {
        Labels {
            columns,
            negative: None,
        }
    }

    /// Whether the label is the positive one.
    pub fn outcome(&mut self, text: &str) -> Result<bool, String> {
        let Some(positive) = &self.columns.positive else {
            return binary(text);
        };
        if text == positive {
            return Ok(true);
        }
        if text.is_empty() {
            return Err("the label is empty; leave out events without an outcome".to_owned());
        }
        let negative = self.negative.get_or_insert_with(|| text.to_owned());
        if text == negative {
            return Ok(false);
        }
        Err(format!(
            "label '{text}' is a third one beside '{positive}' and '{negative}'; give the label of one class against \
             the rest"
        ))
    }

    /// The index of the class that happened, among `classes`.
    pub fn class(&self, text: &str, classes: usize) -> Result<u32, String> {
        let names = &self.columns.classes;
        // One class may be called as the column of another.
        let named = names.iter().position(|(class, _)| class == text);
        let named = named.or_else(|| names.iter().position(|(_, column)| column == text));
        if let Some(class) = named.and_then(|class| u32::try_from(class).ok()) {
            return Ok(class);
        }
        // Where the names of all classes are numbers, a number is a name.
        let numbers =
            !names.is_empty() && names.iter().all(|(class, _)| class.parse::<u32>().is_ok());
        match text.parse::<u32>() {
            Ok(class) if (class as usize) < classes && !numbers => Ok(class),
            _ => Err(format!(
                "label '{text}' is no class; write the index of the class that happened, 0 to {}, or its name as \
                 --classes gives it",
                classes - 1
            )),
        }
    }
}

fn binary(text: &str) -> Result<bool, String> {
    match text {
        "0" | "0.0" => Ok(false),
        "1" | "1.0" => Ok(true),
        _ if text.eq_ignore_ascii_case("false") => Ok(false),
        _ if text.eq_ignore_ascii_case("true") => Ok(true),
        _ => Err(format!(
            "label '{text}' is neither 0 nor 1; say which one is positive with --positive, or, for several classes, \
             give the label of one class against the rest"
        )),
    }
}
