//! What servers say of failures.

/// Of the text of an answer, what it says in its XML, if it has some.
pub fn xml_error_or_text(text: &str) -> String {
    let element = |name: &str| {
        let (_, after) = text.split_once(&format!("<{name}>"))?;
        after.split_once(&format!("</{name}>")).map(|(inner, _)| inner.trim().to_owned())
    };
    match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code,
        _ => text.to_owned(),
    }
}
