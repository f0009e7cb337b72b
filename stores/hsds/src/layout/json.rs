//! JSON as the service writes it.

use serde_json::{Map, Value};

use super::error::{LayoutError, Result};

/// A JSON object: its members in their order.
pub type Members = Map<String, Value>;

/// Words that Python writes for numbers that JSON does not have.
const NO_NUMBERS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
/// What stands before such a word in a text that stands for it: a character that no text has.
pub const NON_FINITE_MARK: char = '\u{fdd0}';

/// The value that stands for such a word. It is written without quotes.
pub fn non_finite_to_json(number: f64) -> Value {
    let word = if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    };
    Value::String(format!("{NON_FINITE_MARK}{word}"))
}

/// Reads a JSON object. `NaN` and `Infinity`, which Python writes, become texts with a mark.
///
/// # Errors
/// [`LayoutError::Json`]; [`LayoutError::MissingOrInvalidMember`] if it is no object.
pub fn parse_json_object(bytes: &[u8]) -> Result<Members> {
    let parsed = serde_json::from_slice(bytes).or_else(|error| match quote_no_numbers(bytes) {
        Some(quoted) => serde_json::from_slice(&quoted),
        None => Err(error),
    });
    match parsed? {
        Value::Object(members) => Ok(members),
        _ => Err(LayoutError::MissingOrInvalidMember { member: "", expected: "an object" }),
    }
}

/// The same text with quotes around the words that are no JSON; `None` if there are none.
fn quote_no_numbers(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut quoted, mut rest, mut is_in_text, mut has_any) =
        (Vec::with_capacity(bytes.len() + 64), bytes, false, false);
    while let Some((first, after)) = rest.split_first() {
        if is_in_text && *first == b'\\' {
            let escape = rest.get(..2).unwrap_or(rest);
            quoted.extend_from_slice(escape);
            rest = rest.get(escape.len()..)?;
            continue;
        }
        if let Some(word) = NO_NUMBERS.iter().find(|word| !is_in_text && rest.starts_with(word.as_bytes())) {
            quoted.push(b'"');
            quoted.extend_from_slice(NON_FINITE_MARK.encode_utf8(&mut [0; 4]).as_bytes());
            quoted.extend_from_slice(word.as_bytes());
            quoted.push(b'"');
            (rest, has_any) = (rest.get(word.len()..)?, true);
            continue;
        }
        is_in_text ^= *first == b'"';
        quoted.push(*first);
        rest = after;
    }
    has_any.then_some(quoted)
}

/// The bytes of a JSON object. Texts that stand for `NaN` and the like are written as Python writes these.
pub fn json_to_bytes(members: &Members) -> Vec<u8> {
    // A map of texts always has a JSON text.
    let text = serde_json::to_string(members).unwrap_or_default();
    if !text.contains(NON_FINITE_MARK) {
        return text.into_bytes();
    }
    let unquoted = |text: String, word: &&str| text.replace(&format!("\"{NON_FINITE_MARK}{word}\""), word);
    NO_NUMBERS.iter().fold(text, unquoted).into_bytes()
}

/// Sets a member of a JSON object; any other value stays what it is.
pub fn set_member(json: &mut Value, member: &str, value: Value) {
    if let Some(members) = json.as_object_mut() {
        members.insert(member.to_owned(), value);
    }
}

/// A member that is a text.
///
/// # Errors
/// [`LayoutError::MissingOrInvalidMember`].
pub fn text_member<'a>(members: &'a Members, member: &'static str) -> Result<&'a str> {
    members
        .get(member)
        .and_then(Value::as_str)
        .ok_or(LayoutError::MissingOrInvalidMember { member, expected: "a text" })
}

/// A member that is an object.
///
/// # Errors
/// [`LayoutError::MissingOrInvalidMember`].
pub fn object_member<'a>(members: &'a Members, member: &'static str) -> Result<&'a Members> {
    members
        .get(member)
        .and_then(Value::as_object)
        .ok_or(LayoutError::MissingOrInvalidMember { member, expected: "an object" })
}

/// A member that is an object, which is made if it is not there.
///
/// # Errors
/// [`LayoutError::MissingOrInvalidMember`] if it is something else.
pub fn object_member_or_insert<'a>(members: &'a mut Members, member: &'static str) -> Result<&'a mut Members> {
    let found = members.entry(member).or_insert_with(|| Value::Object(Members::new()));
    found.as_object_mut().ok_or(LayoutError::MissingOrInvalidMember { member, expected: "an object" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_python_writes_for_numbers_become_texts() {
        let found =
            parse_json_object(br#"{"a \" NaN": [NaN, -Infinity, 1.5, "NaN", Infinity], "b": {"c": NaN}}"#).unwrap();
        let marked = |word: &str| format!("{NON_FINITE_MARK}{word}");
        let numbers = serde_json::json!([marked("NaN"), marked("-Infinity"), 1.5, "NaN", marked("Infinity")]);
        assert_eq!(found["a \" NaN"], numbers);
        assert_eq!(found["b"]["c"], non_finite_to_json(f64::NAN));
        assert_eq!(parse_json_object(&json_to_bytes(&found)).unwrap(), found);
        assert!(String::from_utf8(json_to_bytes(&found)).unwrap().contains(r#"{"c":NaN}"#));
        for bytes in [&b"{"[..], b"[1]", b"", b"{\"a\": \"\\", b"NaN"] {
            assert!(parse_json_object(bytes).is_err());
        }
    }
}
