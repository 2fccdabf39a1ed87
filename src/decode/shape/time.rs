//! The checks of an event time.

use super::super::number::Number;
use super::super::options::TimeUnit;
use super::super::rejection::Rejection;
use super::super::time;
use super::super::value::{Value, Values};
use super::{Checked, Shape, TimeSlot};
use crate::collect::Reason;

impl Shape {
    /// The event time in ms since 1970.
    #[inline]
    pub(super) fn time<'a>(
        &self,
        values: &impl Values<'a>,
        timestamp_ms: Option<i64>,
    ) -> Checked<i64> {
        let (time_ms, field) = match self.time {
            None => match timestamp_ms {
                Some(t) => (t, "the Kafka timestamp"),
                None => {
                    return Err(Rejection::new(
                        Reason::BadTime,
                        "the record has no timestamp; name the field with the event time"
                            .to_string(),
                    ));
                }
            },
            Some(time) => (
                self.time_field(time, values.value(time.slot))?,
                self.names[time.slot].as_str(),
            ),
        };
        if !(self.time_earliest_ms..=self.time_latest_ms).contains(&time_ms) {
            return Err(self.time_outside(field, time_ms));
        }
        match (self.ahead_ms_max, timestamp_ms) {
            // A timestamp of 0 is not a real one.
            (Some(max), Some(arrival)) if arrival > 0 && time_ms - arrival > max => {
                Err(Rejection::new(
                    Reason::TimeOutOfRange,
                    format!(
                        "field `{field}` is {} s after the record's own timestamp; check the producer's clock, time zone and unit",
                        (time_ms - arrival) / 1000
                    ),
                ))
            }
            _ => Ok(time_ms),
        }
    }

    #[inline]
    fn time_field(&self, time: TimeSlot, value: Value<'_>) -> Checked<i64> {
        let TimeSlot { slot, unit, zone_s } = time;
        let time = match (value, unit) {
            (Value::Missing | Value::Null, _) => {
                return Err(Rejection::missing(&self.names[slot], "its time"));
            }
            (Value::Text(t), TimeUnit::Rfc3339) => time::from_text(t.as_str(), zone_s),
            (Value::Cell(t), TimeUnit::Rfc3339) => time::from_text(t, zone_s),
            (Value::Number(n), _) => time::from_number(n, unit),
            (Value::Cell(t), _) => time::from_number(Number::new(t.as_bytes(), None), unit),
            _ => None,
        };
        time.ok_or_else(|| {
            let shown = value.shown();
            let is_date = || time::from_text(shown, Some(0)).is_some();
            let remedy = match unit {
                TimeUnit::Milliseconds | TimeUnit::Seconds | TimeUnit::Microseconds
                    if is_date() =>
                {
                    "it is a date: set `time_unit = \"rfc3339\"`"
                }
                TimeUnit::Milliseconds => {
                    "write a number of milliseconds since 1970, or set `time_unit`"
                }
                TimeUnit::Seconds => "write a number of seconds since 1970, or set `time_unit`",
                TimeUnit::Microseconds => {
                    "write a number of microseconds since 1970, or set `time_unit`"
                }
                TimeUnit::Rfc3339 if time::lacks_offset(shown) => {
                    "it has no time zone; write an offset or Z, or set `time_zone`"
                }
                TimeUnit::Rfc3339 if shown.bytes().all(|b| b.is_ascii_digit()) => {
                    "it is a number: set `time_unit` to \"s\" or \"ms\", or write RFC 3339, such as \
                     \"2026-11-21T14:30:00Z\""
                }
                TimeUnit::Rfc3339 => "write RFC 3339, such as \"2026-11-21T14:30:00Z\"",
            };
            Rejection::value(Reason::BadTime, &self.names[slot], shown, remedy)
        })
    }

    #[cold]
    fn time_outside(&self, field: &str, time_ms: i64) -> Rejection {
        let accepted = |ms: i64| (self.time_earliest_ms..=self.time_latest_ms).contains(&ms);
        let unit = match self.time.as_ref().map(|time| time.unit) {
            // Read as if each number were this unit, a thousand times too long or too short.
            Some(TimeUnit::Milliseconds) if accepted(time_ms.saturating_mul(1000)) => "seconds",
            Some(TimeUnit::Milliseconds) if accepted(time_ms / 1000) => "microseconds",
            Some(TimeUnit::Seconds) if accepted(time_ms / 1000) => "milliseconds",
            Some(TimeUnit::Microseconds) if accepted(time_ms.saturating_mul(1000)) => {
                "milliseconds"
            }
            _ => "",
        };
        let side = match time_ms < self.time_earliest_ms {
            true => "before the earliest",
            false => "after the latest",
        };
        let remedy = match unit {
            "" => format!("{side} accepted time; check the producer's clock and `time_unit`"),
            unit => format!("{side} accepted time; it looks like {unit}: set `time_unit`"),
        };
        Rejection::value(
            Reason::TimeOutOfRange,
            field,
            &format!("{time_ms} ms since 1970"),
            &remedy,
        )
    }
}
