//! Numbers for people.

/// A number without the noise of its last bits: twelve significant digits, as it prints.
pub(crate) fn short(x: f64) -> f64 {
    format!("{x:.11e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_goes_and_digits_stay() {
        for (x, said) in [
            (100.0 * 0.07, "7"),
            (100.0 * 0.29, "29"),
            (100.0 * 0.005, "0.5"),
            (0.1 + 0.2, "0.3"),
            (1234.5678, "1234.5678"),
            (0.0, "0"),
        ] {
            assert_eq!(short(x).to_string(), said);
        }
    }
}
