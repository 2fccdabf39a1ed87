//! Maps a text or a number to a class: the same rule for records, cells and the labels of
//! `evaluate`.

/// Whether there are names and all of them are whole numbers. If so, a number is a name and not an
/// index, even if the names are written like `01`.
pub(crate) fn are_numbers<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> bool {
    let is_number = |name: S| name.as_ref().parse::<i64>().is_ok();
    let mut numbers = names.into_iter().map(is_number).peekable();
    numbers.peek().is_some() && numbers.all(|is_number| is_number)
}

/// The text of an integral number such as `1.0`, written as an integer.
pub(super) fn integer(t: &str) -> Option<String> {
    let x: f64 = t.parse().ok()?;
    // The cast is exact: an integer below 2⁵³.
    let whole = x.fract() == 0.0 && x.abs() < 9_007_199_254_740_992.0;
    whole.then(|| (x as i64).to_string())
}

/// A class index: digits, or an integral number such as `1.0`.
#[inline]
pub(super) fn index(t: &str) -> Option<u32> {
    match t {
        "0" => Some(0),
        "1" => Some(1),
        _ => t.parse().ok().or_else(|| {
            let x: f64 = t.parse().ok()?;
            // The cast is exact: an integer below 2³².
            (x.fract() == 0.0 && (0.0..4_294_967_296.0).contains(&x)).then_some(x as u32)
        }),
    }
}

/// The class index in a cell; with two classes a truth value is one too.
pub(super) fn of_cell(t: &str, two: bool) -> Option<u32> {
    let t = t.trim();
    if two && t.eq_ignore_ascii_case("true") {
        Some(1)
    } else if two && t.eq_ignore_ascii_case("false") {
        Some(0)
    } else {
        index(t)
    }
}
