//! What matchers of alerts mean to the models of a plan.
//!
//! A class has a name in the configuration and a number in the labels of alerts, so a matcher that
//! names a class is resolved to its number. A matcher on a model or a view that no model of the
//! plan can have is wrong: people would believe that it means something.

use super::plan::{ANY_MODEL, ModelPlan, Plan};
use crate::alert::Matcher;
use crate::alert::matcher::near;
use crate::stats::view::View;

const CLASS: &str = "class:";

impl Plan {
    /// Resolves one matcher of a list to the number of the class that it names; or says why no
    /// alert can have the value and, after the last semicolon, what to do. A pattern with a `*`
    /// stays as it is.
    pub fn resolve_matcher(&self, matcher: &Matcher, list: &[Matcher]) -> Result<Matcher, String> {
        match matcher.exact() {
            Some(("model", name)) => self.knows(name).map(|()| matcher.clone()),
            Some(("view", view)) => {
                let view = view_of(view, &self.models_of(list))?;
                Ok(view.map_or_else(|| matcher.clone(), |view| matcher.on(view.to_string())))
            }
            _ => Ok(matcher.clone()),
        }
    }

    /// Resolves a whole list. See [`Plan::resolve_matcher`].
    pub fn resolve_matchers(&self, list: &[Matcher]) -> Result<Vec<Matcher>, String> {
        list.iter().map(|m| self.resolve_matcher(m, list)).collect()
    }

    fn knows(&self, name: &str) -> Result<(), String> {
        if self.serves(name).is_some() {
            return Ok(());
        }
        let names = || self.models.iter().map(|m| m.name.as_str());
        Err(format!(
            "no configured model is called `{name}`; {}",
            remedy(near(name, names()), names().next())
        ))
    }

    /// The models that a list of matchers is about.
    fn models_of(&self, list: &[Matcher]) -> Vec<&ModelPlan> {
        let named = |model: &&ModelPlan| {
            let name = model.name.as_str();
            // `*` serves the models without a section of their own.
            name == ANY_MODEL || list.iter().all(|m| m.admits("model", name))
        };
        let one = list.iter().find_map(|m| {
            let (label, name) = m.exact()?;
            (label == "model" && m.admits(label, name)).then_some(name)
        });
        match one.and_then(|name| self.serving(name)) {
            Some(model) => vec![model],
            None => self.models.iter().filter(named).collect(),
        }
    }
}

impl ModelPlan {
    /// A view with the name of its class, if it has one: `class:2 (malignant)`.
    pub fn in_words(&self, view: View) -> String {
        match self.class_of(view) {
            Some(class) => format!("{view} ({class})"),
            None => view.to_string(),
        }
    }

    fn class_of(&self, view: View) -> Option<&str> {
        let View::Class(k) = view else { return None };
        self.classes.get(k as usize).map(String::as_str)
    }
}

/// The view of the class that a text names; `None` if it names a view as labels do.
fn view_of(text: &str, models: &[&ModelPlan]) -> Result<Option<View>, String> {
    let shown = |model: &&&ModelPlan| model.views.iter().any(|v| v.to_string() == text);
    if models.is_empty() || models.iter().any(|model| shown(&model)) {
        return Ok(None);
    }
    let mut found: Option<(&ModelPlan, View)> = None;
    let class = text.strip_prefix(CLASS);
    for model in models {
        let number = class.and_then(|class| model.classes.iter().position(|c| c == class));
        let view = number.and_then(|k| u32::try_from(k).ok()).map(View::Class);
        let Some(view) = view.filter(|view| model.views.contains(view)) else {
            continue;
        };
        match found {
            Some((first, before)) if before != view => {
                return Err(format!(
                    "`{text}` is `{before}` of model `{}` and `{view}` of model `{}`; write one of the two, with the \
                     model",
                    first.name, model.name
                ));
            }
            _ => found = Some((model, view)),
        }
    }
    if let Some((_, view)) = found {
        return Ok(Some(view));
    }
    let names: Vec<String> = models.iter().flat_map(|model| names(model)).collect();
    let names = || names.iter().map(String::as_str);
    Err(format!(
        "no model that is meant has the view `{text}`; {}",
        remedy(near(text, names()), names().next())
    ))
}

/// The views of a model as labels name them, and by the names of its classes.
fn names(model: &ModelPlan) -> impl Iterator<Item = String> {
    model.views.iter().flat_map(|view| {
        let class = model.class_of(*view);
        let class = class.map(|name| format!("{CLASS}{name}"));
        std::iter::once(view.to_string()).chain(class)
    })
}

fn remedy(near: Option<&str>, first: Option<&str>) -> String {
    match (near, first) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, Some(first)) => format!("write one that is configured, such as `{first}`"),
        (None, None) => "leave it out".to_owned(),
    }
}
