//! A value of a column as JSON text.
//!
//! Numbers are exact: a 32-bit float becomes the double that it equals, and a decimal keeps its
//! digits. A dictionary key becomes its value. A time becomes RFC 3339 text: with `Z` if the type
//! has a time zone, otherwise without an offset. Lists and structs are arrays and objects. Bytes
//! are text if they are UTF-8.

use crate::decode::sink;
use crate::decode::value::Kind;
use crate::report::moment::{YEAR_10000_MS, rfc3339_millis};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};

/// Whether values of this type can be read.
pub(super) fn is_known(kind: &DataType) -> bool {
    match kind {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            is_known(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().all(|f| is_known(f.data_type())),
        DataType::Dictionary(_, values) => is_known(values),
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale) => *scale >= 0,
        DataType::Null
        | DataType::Boolean
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
        | DataType::Timestamp(..)
        | DataType::Date32
        | DataType::Date64 => true,
        other => other.is_integer() || other.is_floating(),
    }
}

/// Writes the value at a place; text has quotes inside an array or object. `Missing` for an unknown
/// type.
pub(super) fn write(values: &ArrayRef, at: usize, quoted: bool, text: &mut String) -> Kind {
    if values.is_null(at) {
        return sink::null(text);
    }
    match values.data_type() {
        DataType::Boolean => sink::truth(values.as_boolean().value(at), text),
        DataType::Int8 => sink::integer(value::<Int8Type>(values, at), text),
        DataType::Int16 => sink::integer(value::<Int16Type>(values, at), text),
        DataType::Int32 => sink::integer(value::<Int32Type>(values, at), text),
        DataType::Int64 => sink::integer(value::<Int64Type>(values, at), text),
        DataType::UInt8 => sink::integer(value::<UInt8Type>(values, at), text),
        DataType::UInt16 => sink::integer(value::<UInt16Type>(values, at), text),
        DataType::UInt32 => sink::integer(value::<UInt32Type>(values, at), text),
        DataType::UInt64 => sink::integer(value::<UInt64Type>(values, at), text),
        DataType::Float16 => sink::float(value::<Float16Type>(values, at).to_f64(), text),
        DataType::Float32 => sink::float(value::<Float32Type>(values, at).into(), text),
        DataType::Float64 => sink::float(value::<Float64Type>(values, at), text),
        DataType::Decimal32(_, scale) => {
            decimal(value::<Decimal32Type>(values, at).into(), *scale, text)
        }
        DataType::Decimal64(_, scale) => {
            decimal(value::<Decimal64Type>(values, at).into(), *scale, text)
        }
        DataType::Decimal128(_, scale) => {
            decimal(value::<Decimal128Type>(values, at), *scale, text)
        }
        DataType::Utf8 => sink::string(values.as_string::<i32>().value(at), quoted, text),
        DataType::LargeUtf8 => sink::string(values.as_string::<i64>().value(at), quoted, text),
        DataType::Utf8View => sink::string(values.as_string_view().value(at), quoted, text),
        DataType::Binary => bytes(values.as_binary::<i32>().value(at), quoted, text),
        DataType::LargeBinary => bytes(values.as_binary::<i64>().value(at), quoted, text),
        DataType::BinaryView => bytes(values.as_binary_view().value(at), quoted, text),
        DataType::FixedSizeBinary(_) => {
            bytes(values.as_fixed_size_binary().value(at), quoted, text)
        }
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
            let time = time_ms(values, at).map(|(ms, zoned)| rfc3339(ms, zoned));
            let time = time.unwrap_or_default();
            sink::string(&time, quoted, text)
        }
        DataType::List(_) => items(&values.as_list::<i32>().value(at), text),
        DataType::LargeList(_) => items(&values.as_list::<i64>().value(at), text),
        DataType::FixedSizeList(..) => items(&values.as_fixed_size_list().value(at), text),
        DataType::Struct(fields) => {
            let all = values.as_struct();
            text.push('{');
            for (i, field) in fields.iter().enumerate() {
                sink::key(field.name(), text);
                write(all.column(i), at, true, text);
            }
            text.push('}');
            Kind::Object
        }
        DataType::Dictionary(..) => match values.as_any_dictionary_opt() {
            Some(d) => write(d.values(), d.normalized_keys()[at], quoted, text),
            None => Kind::Missing,
        },
        _ => Kind::Missing,
    }
}

fn value<T: ArrowPrimitiveType>(values: &ArrayRef, at: usize) -> T::Native {
    values.as_primitive::<T>().value(at)
}

fn decimal(unscaled: i128, scale: i8, text: &mut String) -> Kind {
    sink::decimal(unscaled, usize::try_from(scale).unwrap_or_default(), text)
}

fn items(items: &ArrayRef, text: &mut String) -> Kind {
    text.push('[');
    for i in 0..items.len() {
        sink::comma(text);
        write(items, i, true, text);
    }
    text.push(']');
    Kind::Array
}

/// Writes bytes. Bytes that are not text become an array of numbers, which every check refuses and
/// shows.
fn bytes(bytes: &[u8], quoted: bool, text: &mut String) -> Kind {
    match std::str::from_utf8(bytes) {
        Ok(s) => sink::string(s, quoted, text),
        Err(_) => {
            text.push_str(&format!("{bytes:?}"));
            Kind::Array
        }
    }
}

/// Milliseconds since 1970 of a time, and whether the type has a time zone; `None` for other types.
pub(super) fn time_ms(values: &ArrayRef, at: usize) -> Option<(i64, bool)> {
    let (ms, zoned) = match values.data_type() {
        DataType::Timestamp(unit, zone) => {
            let ms = match unit {
                TimeUnit::Second => value::<TimestampSecondType>(values, at).saturating_mul(1000),
                TimeUnit::Millisecond => value::<TimestampMillisecondType>(values, at),
                TimeUnit::Microsecond => {
                    value::<TimestampMicrosecondType>(values, at).div_euclid(1000)
                }
                TimeUnit::Nanosecond => {
                    value::<TimestampNanosecondType>(values, at).div_euclid(1_000_000)
                }
            };
            (ms, zone.is_some())
        }
        DataType::Date32 => {
            let days = value::<Date32Type>(values, at);
            (i64::from(days) * 86_400_000, false)
        }
        DataType::Date64 => (value::<Date64Type>(values, at), false),
        _ => return None,
    };
    Some((ms, zoned))
}

/// A time as text; one outside the years 1970 to 9999 stays a number, which no check of a text time
/// accepts.
pub(super) fn rfc3339(ms: i64, zoned: bool) -> String {
    if !(0..YEAR_10000_MS).contains(&ms) {
        return ms.to_string();
    }
    let text = rfc3339_millis(ms);
    match zoned {
        true => text,
        false => text.trim_end_matches('Z').to_owned(),
    }
}
