//! JSON in which no object has a key twice.
//!
//! Readers differ in which of the two values they use, and serde_json silently takes the last.

use super::rejection::shorten;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::map::{Entry, Map};
use std::fmt;

/// Parses a text; an error if an object has a key twice.
pub(super) fn parse(text: &str) -> serde_json::Result<Value> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = Unique.deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

struct Unique;

macro_rules! scalars {
    ($($visit:ident: $kind:ty),*) => {
        $(fn $visit<E: Error>(self, value: $kind) -> Result<Value, E> {
            Ok(value.into())
        })*
    };
}

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(Unique)? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            match all.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(members.next_value_seed(Unique)?);
                }
                Entry::Occupied(place) => {
                    let twice = format!("key `{}` appears twice", shorten(place.key()));
                    return Err(A::Error::custom(twice));
                }
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_that_of_serde_json_unless_a_key_appears_twice() {
        for text in [
            r#"{"a":[1,-2,0.1,1e300,"x\n",null,true],"b":{"a":18446744073709551615}}"#,
            "[]",
            "-0.0",
            "{} {}",
            r#"{"a":1e999}"#,
            "{",
        ] {
            let expected = serde_json::from_str::<Value>(text).ok();
            assert_eq!(parse(text).ok(), expected, "{text}");
        }
        for text in [r#"{"a":1,"b":2,"a":1}"#, r#"[{"b":{"a":0,"\u0061":1}}]"#] {
            let error = parse(text).expect_err("a key appears twice");
            assert!(error.is_data(), "{error}");
            assert!(error.to_string().contains("key `a` appears twice"));
        }
    }
}
