//! A request, as HSDS takes it.

use axum::http::{HeaderMap, Uri, header};
use serde_json::Value as Json;

use super::faults::bad_request;
use crate::fault::Fault;
use crate::query::Query;

/// The header that names the domain, for clients that do not name it as a parameter.
pub(super) const DOMAIN_HEADER: &str = "x-hdf-domain";
const BINARY: &str = "application/octet-stream";

/// A request.
#[derive(Debug, Clone, Default)]
pub(super) struct Call {
    pub query: Query,
    domain: Option<String>,
    /// The user that the client says it is.
    pub user: Option<String>,
    /// The path of the address, without what the API stands below.
    pub path: String,
    /// What addresses in answers begin with.
    base: String,
    pub is_binary: bool,
    pub is_binary_body: bool,
    pub body: Vec<u8>,
    /// The object, or the user.
    pub id: Option<String>,
    /// The link, or the attribute.
    pub name: Option<String>,
}

/// The domain that a request names.
pub(super) fn domain_of(query: &Query, headers: &HeaderMap) -> Option<String> {
    let header = headers.get(DOMAIN_HEADER).and_then(|value| value.to_str().ok());
    query.get("domain").or(header).map(str::to_owned)
}

impl Call {
    pub fn new(uri: &Uri, headers: &HeaderMap, body: Vec<u8>) -> Self {
        let text =
            |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let query = Query::of(uri);
        let domain = domain_of(&query, headers);
        let (prefix, path) = match uri.path().strip_prefix("/hsds") {
            Some(path) if path.is_empty() || path.starts_with('/') => ("/hsds", path),
            _ => ("", uri.path()),
        };
        Call {
            domain,
            path: path.to_owned(),
            user: crate::access::basic_user(headers),
            base: format!("http://{}{prefix}", text(header::HOST)),
            is_binary: text(header::ACCEPT).contains(BINARY),
            is_binary_body: text(header::CONTENT_TYPE).starts_with(BINARY),
            body,
            query,
            ..Call::default()
        }
    }

    /// The domain, as a path.
    ///
    /// # Errors
    /// If none is named.
    pub fn domain(&self) -> Result<&str, Fault> {
        match self.domain.as_deref() {
            Some(domain) if domain.starts_with('/') => Ok(domain),
            Some(domain) => Err(bad_request(format!("Invalid domain: {domain}"))),
            None => Err(bad_request("No domain: name it with the parameter domain, or the header X-Hdf-domain")),
        }
    }

    /// The domain, if one is named.
    pub fn given_domain(&self) -> Option<&str> {
        self.domain.as_deref()
    }

    pub fn object_id(&self) -> Result<&str, Fault> {
        self.id.as_deref().ok_or_else(|| bad_request("Missing id"))
    }

    /// The name of the link or the attribute in the address; empty if there is none.
    pub fn link_or_attribute_name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// A truth value, as HSDS reads it.
    pub fn flag(&self, name: &str) -> bool {
        let given = self.query.get(name).map(str::to_ascii_lowercase);
        !matches!(given.as_deref(), None | Some("" | "0" | "false" | "f" | "no"))
    }

    /// A number.
    ///
    /// # Errors
    /// If it is none.
    pub fn number(&self, name: &str) -> Result<Option<usize>, Fault> {
        let given = self.query.get(name).filter(|text| !text.is_empty());
        given.map(|text| text.parse().map_err(|_| bad_request(format!("{name} is a number")))).transpose()
    }

    /// The body, in JSON.
    ///
    /// # Errors
    /// If it is none.
    pub fn json_body(&self) -> Result<Json, Fault> {
        serde_json::from_slice(&self.body).map_err(|_| bad_request("Unable to load JSON body"))
    }

    /// An address in the same domain, which it names if the address of the request does.
    pub fn href(&self, path: &str) -> String {
        self.href_in(path, self.query.get("domain"))
    }

    /// An address in a domain.
    pub fn href_in(&self, path: &str, domain: Option<&str>) -> String {
        let mut text = format!("{}{path}", self.base);
        if let Some(domain) = domain {
            text.push_str("?domain=");
            text.extend(form_urlencoded::byte_serialize(domain.as_bytes()));
        }
        text
    }

    /// Addresses of what belongs to an answer.
    pub fn hrefs(&self, rels_and_paths: &[(&str, &str)]) -> Json {
        rels_and_paths.iter().map(|(rel, path)| serde_json::json!({ "rel": rel, "href": self.href(path) })).collect()
    }
}
