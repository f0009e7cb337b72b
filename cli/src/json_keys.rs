//! Keys that an object of JSON has twice, of which parsers keep the last one only.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// The first key that an object in a text of JSON has twice, with those that lead to it: `object.key`. What is no JSON has
/// none.
pub fn repeated_key(json: &[u8]) -> Option<String> {
    let mut found = None;
    let walk = KeyWalk { prefix: "", found: &mut found };
    // What is wrong with the text is told by who parses it.
    let _ = walk.deserialize(&mut serde_json::Deserializer::from_slice(json));
    found
}

/// A look at all objects in a value.
struct KeyWalk<'a> {
    prefix: &'a str,
    found: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for KeyWalk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeyWalk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while elements.next_element_seed(KeyWalk { prefix: self.prefix, found: self.found })?.is_some() {}
        Ok(())
    }

    /// A long number comes as an object with one key, so that none of its digits is lost.
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            let path = format!("{}{key}", self.prefix);
            if !keys.insert(key) {
                self.found.get_or_insert_with(|| path.clone());
            }
            members.next_value_seed(KeyWalk { prefix: &format!("{path}."), found: self.found })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_there_twice_is_found_wherever_it_is() {
        let found = |json: &str| repeated_key(json.as_bytes());
        assert_eq!(found("{\"a\": 1, \"b\": null, \"a\": 2}").as_deref(), Some("a"));
        assert_eq!(found("{\"a\": {\"x\": true, \"x\": true}}").as_deref(), Some("a.x"));
        assert_eq!(found("[1, {\"b\": [{\"\\u0061\": \"\", \"a\": 1e400}]}]").as_deref(), Some("b.a"));
        for json in [
            "",
            "{",
            "7",
            "[1, 1]",
            "{\"a\": 1, \"b\": {\"a\": 18446744073709551616, \"c\": -0.5}}",
            "[{\"a\": 1}, {\"a\": 1}]",
        ] {
            assert_eq!(found(json), None, "{json}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(found(&deep), None);
    }
}
