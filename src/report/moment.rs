//! Moments as text, in UTC (RFC 3339).
//!
//! In that format a year has four digits, and `humantime` prints no others. So a moment outside the
//! years 1970 to 9999 stays a number of milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The start of the year 10000, in milliseconds since 1970.
pub const YEAR_10000_MS: i64 = 253_402_300_800_000;

/// Formats a moment to the second.
pub fn rfc3339(ms: i64) -> String {
    text(ms, |at| humantime::format_rfc3339_seconds(at).to_string())
}

/// Formats a moment to the millisecond.
pub fn rfc3339_millis(ms: i64) -> String {
    text(ms, |at| humantime::format_rfc3339_millis(at).to_string())
}

/// Formats date and time without the zone.
pub fn clock(ms: i64) -> String {
    rfc3339(ms).replace('T', " ").replace('Z', "")
}

fn text(ms: i64, format: fn(SystemTime) -> String) -> String {
    match u64::try_from(ms) {
        Ok(since) if ms < YEAR_10000_MS => format(UNIX_EPOCH + Duration::from_millis(since)),
        _ => format!("{ms} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_years_1970_to_9999_have_a_date() {
        for (ms, date, seconds) in [
            (0, "1970-01-01", "00:00:00"),
            (951_868_799_999, "2000-02-29", "23:59:59"),
            (YEAR_10000_MS - 1, "9999-12-31", "23:59:59"),
        ] {
            let rest = ms % 1000;
            assert_eq!(rfc3339(ms), format!("{date}T{seconds}Z"));
            assert_eq!(rfc3339_millis(ms), format!("{date}T{seconds}.{rest:03}Z"));
            assert_eq!(clock(ms), format!("{date} {seconds}"));
        }
        for ms in [-1, i64::MIN, YEAR_10000_MS, i64::MAX] {
            let number = format!("{ms} ms");
            assert_eq!(
                [rfc3339(ms), rfc3339_millis(ms), clock(ms)],
                [&number[..]; 3]
            );
        }
    }
}
