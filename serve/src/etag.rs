//! Tags of what an answer says: equal on every server and after every restart, for they follow from its bytes.

use axum::http::{HeaderMap, HeaderValue, header};
use twox_hash::XxHash3_64;

/// The tag of an answer of this type and these bytes.
pub(crate) fn etag_of(content_type: &str, bytes: &[u8]) -> String {
    let of_type = XxHash3_64::oneshot(content_type.as_bytes());
    format!("\"{:016x}\"", XxHash3_64::oneshot_with_seed(of_type, bytes))
}

/// Whether a client has the answer of this tag.
pub(crate) fn client_has(headers: &HeaderMap, etag: &str) -> bool {
    let given = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    given
        .flat_map(|tags| tags.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// The tag as the value of a header.
pub(crate) fn header_value(etag: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(etag).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_follows_from_type_and_bytes() {
        let tag = etag_of("text/csv", b"1");
        assert_eq!(tag, etag_of("text/csv", b"1"));
        assert!(tag != etag_of("text/csv", b"2") && tag != etag_of("application/json", b"1"));
        let mut headers = HeaderMap::new();
        assert!(!client_has(&headers, &tag));
        headers.insert(header::IF_NONE_MATCH, HeaderValue::from_str(&format!("\"x\", W/{tag}")).unwrap());
        assert!(client_has(&headers, &tag));
    }
}
