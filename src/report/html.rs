//! Formats numbers and text for HTML pages, and holds their style.

use crate::judge::DecidedError;

/// The style of all pages.
pub const STYLE: &str = include_str!("style.css");

/// The text, or a dash if it is empty.
pub fn or_none(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

/// A number with four significant digits, in scientific notation below 0.0001.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if size < 1e-4 {
        format!("{value:.2e}")
    } else if size < 1.0 {
        format!("{value:.4}")
    } else {
        format!("{value:.3}")
    }
}

/// Formats both ends of a range.
pub fn range(low: f64, high: f64) -> String {
    format!("{} to {}", number(low), number(high))
}

/// Formats the interval of an error; for a ratio, with its tolerated range.
pub fn error_range(e: &DecidedError) -> String {
    match e.is_ratio() {
        true => format!("{} {}", e.quantity.name(), e.brief()),
        false => range(e.lower, e.upper),
    }
}

/// Formats a p-value. A very small one is given as a bound, because no p-value is 0.
pub fn significance(p: f64) -> String {
    if p < 1e-99 {
        "&lt; 1e-99".to_owned()
    } else {
        number(p)
    }
}

/// Formats an integer with thousands separators.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The text with a capital first letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// Escapes a text for elements and quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits_and_small_ones_their_exponent() {
        assert_eq!(number(0.0), "0");
        assert_eq!(number(0.012_345), "0.0123");
        assert_eq!(number(1.2e-9), "1.20e-9");
        assert_eq!(number(-0.5), "-0.5000");
        assert_eq!(significance(0.0), "&lt; 1e-99");
        assert_eq!(significance(0.25), "0.2500");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(999), "999");
    }

    #[test]
    fn names_from_outside_cannot_become_markup() {
        assert_eq!(escape("<b a='\"&"), "&lt;b a=&#39;&quot;&amp;");
    }
}
