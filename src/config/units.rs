//! Numbers with a unit: durations and sizes.

use super::value::Fault;

/// Milliseconds of `5m`, `1h 30m`.
pub(super) fn duration(text: &str) -> Result<i64, Fault> {
    let fault = |what: &str| {
        Err((
            format!("is \"{text}\", {what}"),
            "write a number with its unit, such as \"30s\", \"5m\" or \"24h\"".to_owned(),
        ))
    };
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) && text != "0" {
        return fault("a duration without a unit");
    }
    // humantime would take it for months.
    if text.contains('M') {
        return fault("whose unit \"M\" could be minutes or months");
    }
    let Ok(duration) = humantime::parse_duration(text) else {
        return fault("which is not a duration");
    };
    if duration.subsec_nanos() % 1_000_000 != 0 {
        return fault("finer than a millisecond");
    }
    match i64::try_from(duration.as_millis()) {
        // A hundred years are far from overflow in any sum of times.
        Ok(ms) if ms <= 3_155_760_000_000 => Ok(ms),
        _ => fault("longer than a hundred years"),
    }
}

/// Bytes of `65536`, `64KiB`, `1MB`.
pub(super) fn bytes(text: &str) -> Result<u64, Fault> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: Option<u64> = match unit.trim() {
        "" | "B" => Some(1),
        "kB" | "KB" => Some(1_000),
        "MB" => Some(1_000_000),
        "GB" => Some(1_000_000_000),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        _ => None,
    };
    let number: Option<u64> = plain(number).parse().ok();
    number
        .zip(factor)
        .and_then(|(n, f)| n.checked_mul(f))
        .filter(|n| (1..=1 << 40).contains(n))
        .ok_or_else(|| {
            (
                format!("is {text}, which is not a size from 1 byte to 1024 GiB"),
                "write a number of bytes or one with its unit, such as \"64KiB\"".to_owned(),
            )
        })
}

/// A number without the underscores that TOML allows.
pub(super) fn plain(text: &str) -> String {
    text.trim().replace('_', "")
}
