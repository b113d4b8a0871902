//! JSON in which no name occurs twice in an object; serde_json alone would keep the last and say nothing.

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// A JSON value read strictly.
#[derive(Debug)]
pub struct StrictJson(pub Value);

impl<'de> Deserialize<'de> for StrictJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Strict).map(StrictJson)
    }
}

struct Strict;

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(StrictJson(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if map.contains_key(&name) {
                return Err(A::Error::custom(format!("the field {name:?} is given twice")));
            }
            let StrictJson(value) = entries.next_value()?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_serde_json_reads_but_for_repeated_names() {
        for text in [r#"{"a":[1,-2,0.5,1e300,null,true,"x"],"b":{"a":18446744073709551615}}"#, "3", "\"\\u00e9\"", "[]"] {
            let StrictJson(strict) = serde_json::from_str(text).expect("valid");
            assert_eq!(strict, serde_json::from_str::<Value>(text).expect("valid"));
        }
        for text in [r#"{"komi":0.5,"komi":1.5}"#, r#"[{"a":{"rows":[],"b":1,"rows":[]}}]"#] {
            let error = serde_json::from_str::<StrictJson>(text).expect_err("a name twice").to_string();
            assert!(error.contains("twice"), "{error}");
        }
        assert!(serde_json::from_str::<StrictJson>(&"[".repeat(100_000)).is_err(), "the depth is limited");
    }
}
