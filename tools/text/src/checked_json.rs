//! JSON, and whether an object in it has a key twice: parsers keep the last one of them only.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

/// The only key of the object as which serde_json hands a number on that is not an integer of 64 bits, so that none of its
/// digits is lost.
const NUMBER_KEY: &str = "$serde_json::private::Number";

/// A value of JSON.
#[derive(Debug, PartialEq)]
pub struct DuplicateCheckedJson {
    /// The value.
    pub value: Json,
    /// The first key that an object in it has twice, with those that lead to it: `object.key`.
    pub repeated_key_path: Option<String>,
}

impl From<Json> for DuplicateCheckedJson {
    fn from(value: Json) -> Self {
        DuplicateCheckedJson { value, repeated_key_path: None }
    }
}

impl<'de> Deserialize<'de> for DuplicateCheckedJson {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(CheckedVisitor)
    }
}

struct CheckedVisitor;

impl<'de> Visitor<'de> for CheckedVisitor {
    type Value = DuplicateCheckedJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<DuplicateCheckedJson, E> {
        Ok(Json::Null.into())
    }

    fn visit_bool<E>(self, truth: bool) -> Result<DuplicateCheckedJson, E> {
        Ok(Json::from(truth).into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<DuplicateCheckedJson, E> {
        Ok(Json::from(number).into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<DuplicateCheckedJson, E> {
        Ok(Json::from(number).into())
    }

    fn visit_str<E>(self, text: &str) -> Result<DuplicateCheckedJson, E> {
        Ok(Json::from(text).into())
    }

    fn visit_string<E>(self, text: String) -> Result<DuplicateCheckedJson, E> {
        Ok(Json::from(text).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<DuplicateCheckedJson, A::Error> {
        let (mut values, mut repeated_key) = (Vec::new(), None);
        while let Some(element) = elements.next_element::<DuplicateCheckedJson>()? {
            repeated_key = repeated_key.or(element.repeated_key_path);
            values.push(element.value);
        }
        Ok(DuplicateCheckedJson { value: Json::Array(values), repeated_key_path: repeated_key })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<DuplicateCheckedJson, A::Error> {
        let (mut values, mut repeated_key) = (Map::new(), None);
        while let Some(key) = members.next_key::<String>()? {
            if key == NUMBER_KEY {
                let number: Number = members.next_value::<String>()?.parse().map_err(A::Error::custom)?;
                return Ok(Json::Number(number).into());
            }
            let member = members.next_value::<DuplicateCheckedJson>()?;
            let within = || member.repeated_key_path.as_ref().map(|inner| format!("{key}.{inner}"));
            repeated_key = repeated_key.or_else(within).or_else(|| values.contains_key(&key).then(|| key.clone()));
            values.insert(key, member.value);
        }
        Ok(DuplicateCheckedJson { value: Json::Object(values), repeated_key_path: repeated_key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(json: &str) -> DuplicateCheckedJson {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_key_that_is_there_twice_is_found_wherever_it_is() {
        let found = |json: &str| checked(json).repeated_key_path;
        assert_eq!(found("{\"a\": 1, \"b\": null, \"a\": 2}").as_deref(), Some("a"));
        assert_eq!(found("{\"a\": {\"x\": true, \"x\": true}}").as_deref(), Some("a.x"));
        assert_eq!(found("[1, {\"b\": [{\"\\u0061\": \"\", \"a\": 1e400}]}]").as_deref(), Some("b.a"));
    }

    #[test]
    fn values_are_those_of_the_parser() {
        for json in [
            "7",
            "-7",
            "18446744073709551616",
            "-0.0",
            "1e400",
            "0.10000000000000000001",
            "null",
            "\"\\u00e4\\n\"",
            "[1, 1.5, [], {}]",
            "{\"b\": 1, \"a\": {\"b\": -2.5e-3, \"c\": [true, \"\"]}}",
        ] {
            assert_eq!(checked(json), serde_json::from_str::<Json>(json).unwrap().into(), "{json}");
        }
        assert!(serde_json::from_str::<DuplicateCheckedJson>("{\"a\" 1}").is_err());
        assert!(serde_json::from_str::<DuplicateCheckedJson>(&"[".repeat(100_000)).is_err());
    }
}
