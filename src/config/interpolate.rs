//! `${VAR}` and `${VAR:-default}` inside string values.
//!
//! Variables are replaced after TOML is parsed and only inside strings, so a value can never change
//! the structure of the file, and a comment that contains `${X}` needs no X. An undefined variable
//! without a default is an error: it is better not to start than to start with an empty list of
//! brokers. As in the shell, the default of `:-` also replaces an empty variable. `$${` is a
//! literal `${`. There is no nesting: a default is plain text up to the first `}`.

/// What went wrong in one string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The variable is not defined and has no default.
    Undefined(String),
    /// `${` without `}`.
    Unclosed,
    /// The name is empty or has a character other than letters, digits and underscores.
    BadName(String),
}

impl Fault {
    /// The problem and its remedy.
    pub fn words(&self) -> (String, String) {
        match self {
            Fault::Undefined(name) => (
                format!("environment variable `{name}` is not defined"),
                format!("define it, or give a default: `${{{name}:-value}}`"),
            ),
            Fault::Unclosed => (
                "`${` without a closing `}`".to_owned(),
                "close it, or write `$${` for a literal `${`".to_owned(),
            ),
            Fault::BadName(name) => (
                format!("`{name}` is not the name of an environment variable"),
                "use letters, digits and underscores, or write `$${` for a literal `${`".to_owned(),
            ),
        }
    }
}

/// The text with every variable replaced; `None` when there was nothing to replace.
pub fn interpolate(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, Fault> {
    if !text.contains("${") {
        return Ok(None);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            out.push_str(&rest[..at - 1]);
            out.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        let body = &rest[at + 2..];
        let end = body.find('}').ok_or(Fault::Unclosed)?;
        out.push_str(&resolve(&body[..end], variable)?);
        rest = &body[end + 1..];
    }
    out.push_str(rest);
    Ok(Some(out))
}

/// The value of `NAME` or `NAME:-default`.
fn resolve(body: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, Fault> {
    let (name, default) = match body.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (body, None),
    };
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(legal) {
        return Err(Fault::BadName(name.to_owned()));
    }
    match (variable(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(Fault::Undefined(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("kafka-1".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn variables_defaults_and_escapes_are_replaced_as_in_the_shell() {
        for (text, want) in [
            ("${HOST}:9092", "kafka-1:9092"),
            ("${PORT:-9092}", "9092"),
            ("${EMPTY:-x}${EMPTY}", "x"),
            ("${HOST}/${HOST}", "kafka-1/kafka-1"),
            ("$${HOST}", "${HOST}"),
            ("${NONE:-}", ""),
        ] {
            assert_eq!(interpolate(text, &environment), Ok(Some(want.to_owned())));
        }
        assert_eq!(interpolate("plain $5 {x}", &environment), Ok(None));
    }

    #[test]
    fn undefined_unclosed_and_malformed_variables_are_faults() {
        assert_eq!(
            interpolate("${NONE}", &environment),
            Err(Fault::Undefined("NONE".to_owned()))
        );
        assert_eq!(interpolate("${HOST", &environment), Err(Fault::Unclosed));
        assert_eq!(
            interpolate("${a b}", &environment),
            Err(Fault::BadName("a b".to_owned()))
        );
    }
}
