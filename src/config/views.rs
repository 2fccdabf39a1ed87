//! The classes of a model, and its views.

use super::document::Record;
use super::feeds::feeds;
use super::problem::Problems;
use super::vectors;
use crate::judge::ANY_MODEL as ANY;
use crate::stats::view::View;

/// If a model has no `classes`, it takes those of its sources, if they are all equal. If they
/// differ and one source has three or more, the default view would reject all its records, so this
/// is a problem, unless each record names its model, and some model has views or classes of its
/// own.
pub fn settle_classes(root: &mut Record, problems: &mut Problems<'_>) {
    let mut found = Vec::new();
    for (i, model) in root.all("model").iter().enumerate() {
        if model.entry("classes").given {
            continue;
        }
        let entry = |s: &Record| s.entry("classes").clone();
        let sources: Vec<&Record> = feeds(model, root).collect();
        let Some(first) = sources.iter().map(|s| entry(s)).find(|e| e.given) else {
            continue;
        };
        let named = |s: &&Record| s.strings("classes");
        if sources
            .windows(2)
            .all(|pair| named(&pair[0]) == named(&pair[1]))
        {
            found.push((i, first));
            continue;
        }
        let own = |m: &Record| m.entry("classes").given || m.entry("views").given;
        let served = root.all("model").iter().any(own);
        let mut many = sources.iter().filter(|s| named(s).len() > 2);
        let many = many.find(|s| s.text("model").is_some() || !served);
        if let Some(source) = many.filter(|_| !model.entry("views").given) {
            let name = model.text("name").unwrap_or(ANY);
            let own = source.text("model").unwrap_or("the model's name");
            let what = format!(
                "the sources of model `{name}` differ in `classes`, and it has none itself, so all records of these would \
                 be rejected"
            );
            let remedy = format!("add a [[model]] with `name = \"{own}\"` and these `classes`");
            problems.add(source.entry("classes").at, what, remedy);
        }
    }
    let models = root.children.entry("model").or_default();
    for (i, classes) in found {
        models[i].entries.insert("classes", classes);
    }
}

/// The views of a model; the default depends on the number of its classes.
pub fn views(record: &Record, classes: &[String], problems: &mut Problems<'_>) -> Vec<View> {
    let mut views = Vec::new();
    if !record.entry("views").given {
        return vec![match classes.len() {
            0..=2 => View::Binary,
            _ => View::TopLabel,
        }];
    }
    for item in record.list("views") {
        match view(&item.value, classes) {
            Ok(view) if views.contains(&view) => {
                let what = format!("view `{}` is named twice", item.value);
                problems.add(item.at, what, "remove one");
            }
            Ok(view) => views.push(view),
            Err((what, remedy)) => problems.add(item.at, what, remedy),
        }
    }
    if record.list("views").is_empty() {
        let what = "`views` is empty, so nothing would be tested";
        let remedy = "write `views = [\"binary\"]`";
        problems.add(record.entry("views").at, what, remedy);
    }
    views
}

/// A view by its name. A class is given by its number or its name; only by its name if a class is
/// named by a number.
fn view(text: &str, classes: &[String]) -> Result<View, (String, String)> {
    let Some(class) = text.strip_prefix("class:") else {
        let parsed = text.parse().map_err(|_| {
            (
                format!("`{text}` is not a view"),
                "write `binary`, `top_label`, `class:` with a number or a name, `top_k:` with a count, `full` or `kernel`"
                    .to_owned(),
            )
        });
        return match parsed {
            Ok(View::Binary) if classes.len() > 2 => Err((
                format!(
                    "view `binary` is of scores and two classes, and there are {}",
                    classes.len()
                ),
                "write `top_label`, or `class:` with a number or a name".to_owned(),
            )),
            parsed => parsed.and_then(|view| vectors::fits(view, text, classes)),
        };
    };
    let by_name = classes.iter().position(|c| c == class);
    let index = by_name.and_then(|i| u32::try_from(i).ok());
    let number_as_name = classes.iter().find(|c| c.parse::<i64>().is_ok());
    match (index, class.parse::<u32>()) {
        (Some(k), _) => Ok(View::Class(k)),
        (None, Ok(_)) if let Some(name) = number_as_name => Err((
            format!("view `{text}`: `classes` has numbers for names, and none is `{class}`"),
            format!("name the class as in `classes`, such as `class:{name}`"),
        )),
        (None, Ok(k)) if classes.is_empty() || (k as usize) < classes.len() => Ok(View::Class(k)),
        (None, Ok(k)) => Err((
            format!(
                "view `{text}`: there are {} classes, numbered from 0",
                classes.len()
            ),
            format!("write a number below {}, not {k}", classes.len()),
        )),
        (None, Err(_)) => Err((
            format!("view `{text}`: `{class}` is none of the model's `classes`"),
            match super::value::nearest(class, classes.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `class:{near}`?"),
                None => "list it in `classes` of this [[model]], or write the number of the class"
                    .to_owned(),
            },
        )),
    }
}
