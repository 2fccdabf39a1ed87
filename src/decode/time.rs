//! Converts event times to milliseconds since 1970.

use super::number::Number;
use super::options::TimeUnit;

/// Milliseconds of a number in `unit`; `None` if it is not a number or out of range. Fractions of a
/// millisecond are rounded down.
#[inline]
pub(super) fn from_number(number: Number<'_>, unit: TimeUnit) -> Option<i64> {
    if let Some(n) = number.whole() {
        return match unit {
            TimeUnit::Milliseconds => Some(n),
            TimeUnit::Seconds => n.checked_mul(1000),
            TimeUnit::Microseconds => Some(n.div_euclid(1000)),
            TimeUnit::Rfc3339 => None,
        };
    }
    let x = number.value()?;
    let ms = match unit {
        TimeUnit::Milliseconds => x,
        // Round to the microsecond first: the double of 1700000000.123 is a little less.
        TimeUnit::Seconds => (x * 1e6).round() / 1e3,
        TimeUnit::Microseconds => x / 1e3,
        TimeUnit::Rfc3339 => return None,
    };
    // 2⁵³ ms is the year 287396; beyond it floats skip milliseconds.
    (ms.abs() < 9.0e15).then(|| ms.floor() as i64)
}

/// Milliseconds of an RFC 3339 time, `2026-11-21T14:30:00.5+02:00`; a space may stand for the `T`,
/// and the offset may lack its colon.
pub(super) fn from_rfc3339(text: &str) -> Option<i64> {
    from_text(text, None)
}

/// Milliseconds of an RFC 3339 time. A text without an offset has the zone `zone_s`, in seconds
/// east of UTC.
pub(super) fn from_text(text: &str, zone_s: Option<i64>) -> Option<i64> {
    let b = text.as_bytes();
    if b.len() < 19 || b[4] != b'-' || b[7] != b'-' || b[13] != b':' || b[16] != b':' {
        return None;
    }
    if !matches!(b[10], b'T' | b't' | b' ') {
        return None;
    }
    let n = |r: std::ops::Range<usize>| digits(&b[r]);
    let (year, month, day) = (n(0..4)?, n(5..7)?, n(8..10)?);
    let (hour, minute, second) = (n(11..13)?, n(14..16)?, n(17..19)?);
    // A leap second counts as the first second of the next minute.
    if !(1..=12).contains(&month) || day < 1 || day > month_days(year, month) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (ms, zone) = fraction(&b[19..])?;
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let offset = if zone.is_empty() {
        zone_s
    } else {
        offset_seconds(zone)
    };
    Some((seconds - offset?) * 1000 + ms)
}

/// Whether a text would be a time if it had an offset.
pub(super) fn lacks_offset(text: &str) -> bool {
    from_text(text, None).is_none() && from_text(text, Some(0)).is_some()
}

/// Seconds east of UTC of `UTC`, `Z`, or an offset such as `+02:00`.
pub fn offset(text: &str) -> Option<i64> {
    match text {
        "UTC" | "utc" => Some(0),
        _ => offset_seconds(text.as_bytes()),
    }
}

/// Milliseconds since 1970 of a time as people write it: RFC 3339, or a shorter form such as
/// `2026-11-21`, `2026-11-21T14:30` or `2026-11-21 14:30:05+01:00`. What is left out means the
/// start of the day or minute, or UTC.
pub fn parse(text: &str) -> Option<i64> {
    let (clock, zone) = match text.get(10..) {
        None | Some("") => return from_rfc3339(&format!("{text}T00:00:00Z")),
        Some(rest) => match rest.find(['Z', 'z', '+', '-']) {
            Some(at) => text.split_at(10 + at),
            None => (text, "Z"),
        },
    };
    match clock.len() {
        16 => from_rfc3339(&format!("{clock}:00{zone}")),
        _ => from_rfc3339(&format!("{clock}{zone}")),
    }
}

/// Milliseconds of an optional `.ddd…`, and the rest of the text.
fn fraction(b: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.', rest)) = b.split_first() else {
        return Some((0, b));
    };
    let len = rest.iter().take_while(|c| c.is_ascii_digit()).count();
    if len == 0 {
        return None;
    }
    let ms = (0..3).fold(0, |ms, i| {
        let d = if i < len {
            i64::from(rest[i] - b'0')
        } else {
            0
        };
        ms * 10 + d
    });
    Some((ms, &rest[len..]))
}

fn offset_seconds(zone: &[u8]) -> Option<i64> {
    match zone {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, m1, m2] => {
            offset_seconds(&[*sign, *h1, *h2, b':', *m1, *m2])
        }
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (h, m) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
            if h > 23 || m > 59 {
                return None;
            }
            let s = h * 3600 + m * 60;
            Some(if *sign == b'-' { -s } else { s })
        }
        _ => None,
    }
}

fn digits(b: &[u8]) -> Option<i64> {
    b.iter().try_fold(0, |n, d| {
        d.is_ascii_digit().then(|| n * 10 + i64::from(d - b'0'))
    })
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01, with years that begin in March, so that the leap day comes last (Hinnant,
/// chrono-Compatible Low-Level Date Algorithms, `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

/// RFC 3339 of seconds and nanoseconds since 1970, in the years 1 to 9999.
pub(super) fn to_rfc3339(seconds: i64, nanos: i32) -> Option<String> {
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The first guess is never too late: years after 1970 are not longer than assumed, years before
    // not shorter.
    let mut year = 1970 + day.div_euclid(if day < 0 { 365 } else { 366 });
    if !(-10..=9999).contains(&year) || !(0..1_000_000_000).contains(&nanos) {
        return None;
    }
    while days(year + 1, 1, 1) <= day {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days(year, month + 1, 1) <= day {
        month += 1;
    }
    let date = day - days(year, month, 1) + 1;
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    (1..=9999)
        .contains(&year)
        .then(|| format!("{year:04}-{month:02}-{date:02}T{h:02}:{m:02}:{s:02}.{nanos:09}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_leave_out_of_a_time_is_its_beginning_in_utc() {
        let full = from_rfc3339("2026-11-21T14:30:00Z");
        assert!(full.is_some());
        for text in [
            "2026-11-21T14:30",
            "2026-11-21 14:30:00",
            "2026-11-21T14:30Z",
            "2026-11-21T15:30+01:00",
            "2026-11-21T09:30:00-05:00",
        ] {
            assert_eq!(parse(text), full, "{text}");
        }
        assert_eq!(parse("2026-11-21"), from_rfc3339("2026-11-21T00:00:00Z"));
        for text in [
            "",
            "2026-11-21T",
            "2026-11-21T14",
            "2026-1-21",
            "14:30",
            "äääääää",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn times_written_are_read_again() {
        for i in -2000..9000i64 {
            let (s, nanos) = (i * 28_315_569 + i % 86_400, 123_456_789);
            let text = to_rfc3339(s, nanos);
            let ms = text.as_deref().and_then(from_rfc3339);
            match text {
                Some(text) => assert_eq!(ms, Some(s * 1000 + 123), "{text}"),
                None => assert!(!(-62_000_000_000..=253_000_000_000).contains(&s), "{s}"),
            }
        }
        assert_eq!(
            to_rfc3339(1_795_264_200, 0).as_deref(),
            Some("2026-11-21T12:30:00.000000000Z")
        );
        assert_eq!(to_rfc3339(i64::MAX, 0), None);
        assert_eq!(to_rfc3339(0, -1), None);
    }

    #[test]
    fn rfc3339_agrees_with_times_known_otherwise() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59.999Z", 951_868_799_999),
            ("2026-11-21T14:30:00.5+02:00", 1_795_264_200_500),
            ("1969-12-31T23:59:59.25-00:00", -750),
        ] {
            assert_eq!(from_rfc3339(text), Some(ms), "{text}");
        }
        let known = from_rfc3339("2026-11-21T14:30:00+02:00");
        assert_eq!(from_rfc3339("2026-11-21T14:30:00+0200"), known);
        assert_eq!(from_text("2026-11-21 14:30:00", offset("+02:00")), known);
        assert_eq!(from_text("2026-11-21T12:30:00.0", offset("UTC")), known);
        assert!(lacks_offset("2026-11-21T14:30:00") && !lacks_offset("2026-11-21"));
        assert_eq!(offset("Europe/Paris"), None);
        for bad in [
            "",
            "2026-11-21",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-11-21T14:30:00",
            "2026-11-21T24:30:00Z",
            "2026-11-21T14:30:00.Z",
            "é026-11-21T14:30:0Z",
        ] {
            assert_eq!(from_rfc3339(bad), None, "{bad}");
        }
    }

    #[test]
    fn rfc3339_agrees_with_humantime_over_two_centuries() {
        for i in 0..20_000u64 {
            let s = i * 315_569 + i % 86_400;
            let t = std::time::UNIX_EPOCH + std::time::Duration::from_secs(s);
            let text = humantime::format_rfc3339_millis(t).to_string();
            assert_eq!(from_rfc3339(&text), Some(s as i64 * 1000), "{text}");
        }
    }

    #[test]
    fn each_unit_becomes_milliseconds() {
        let from_number = |text: &str, unit| from_number(Number::new(text.as_bytes(), None), unit);
        for (text, unit, ms) in [
            (
                "1700000000123",
                TimeUnit::Milliseconds,
                Some(1_700_000_000_123),
            ),
            ("1700000000.123", TimeUnit::Seconds, Some(1_700_000_000_123)),
            ("1700000000", TimeUnit::Seconds, Some(1_700_000_000_000)),
            (
                "1700000000123999",
                TimeUnit::Microseconds,
                Some(1_700_000_000_123),
            ),
            ("1e300", TimeUnit::Seconds, None),
            ("9223372036854775807", TimeUnit::Seconds, None),
        ] {
            assert_eq!(from_number(text, unit), ms, "{text}");
        }
    }
}
