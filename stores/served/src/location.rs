//! Where a served file is.

use h5live_model::{Location, OpenError, Url};

/// The scheme without TLS, and the one with it.
pub(crate) const SCHEME: &str = "h5live+http";
pub(crate) const TLS_SCHEME: &str = "h5live+https";

/// A file of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServedLocation {
    pub is_tls: bool,
    /// The host, and the port where one is named.
    pub authority: String,
    pub host: String,
    pub port: u16,
    /// The name and the password of a user, with a colon between them.
    pub user: Option<String>,
    /// The file, as the server names it.
    pub name: String,
}

impl ServedLocation {
    /// What a location names.
    ///
    /// # Errors
    /// [`OpenError::InvalidLocation`] if it names no file of a server.
    pub fn of(at: &Location) -> Result<Self, OpenError> {
        let Location::Url(url) = at else {
            return Err(OpenError::InvalidLocation(format!(
                "a path is no file of a server: {SCHEME}://host:8080/run.h5 is one"
            )));
        };
        let wrong = || {
            OpenError::InvalidLocation(format!(
                "a file of a server has a host and a name: {}://host:8080/run.h5",
                url.scheme()
            ))
        };
        let decoded = String::from_utf8(url.decoded_hier_part()?).map_err(|_| wrong())?;
        // A host has no escapes; in what stands before it, an escape may be anything.
        let raw = url.encoded_hier_part().strip_prefix("//").ok_or_else(wrong)?;
        let authority = raw.split('/').next().unwrap_or_default();
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user.to_owned()), authority),
            None => (None, authority),
        };
        let name = decoded.strip_prefix("//").and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?.1.to_owned();
        let is_tls = url.scheme() == TLS_SCHEME;
        let (host, port) = split_port(authority).ok_or_else(wrong)?;
        let port = port.unwrap_or(if is_tls { 443 } else { 80 });
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        if host.is_empty() || !authority.chars().all(is_host) || name.trim_matches('/').is_empty() {
            return Err(wrong());
        }
        let host = host.trim_matches(['[', ']']).to_owned();
        Ok(ServedLocation { is_tls, authority: authority.to_owned(), host, port, user, name })
    }

    /// The server.
    pub fn server_origin(&self) -> String {
        let scheme = if self.is_tls { TLS_SCHEME } else { SCHEME };
        format!("{scheme}://{}:{}", self.host, self.port)
    }

    /// The file of this name beside it; `None` if there can be none.
    pub fn sibling_url(&self, name: &str) -> Option<Url> {
        if name.is_empty() || name.starts_with('/') {
            return None;
        }
        let folder = self.name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut parts = Vec::new();
        for part in folder.split('/').chain(name.split('/')) {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()?),
                part => parts.push(part),
            }
        }
        let scheme = if self.is_tls { TLS_SCHEME } else { SCHEME };
        Some(Url::literal(scheme, &format!("//{}/{}", self.authority, parts.join("/"))))
    }
}

/// The host of an authority, and its port. `None` if the port is no number.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => Some((host, Some(port.parse().ok()?))),
        _ => Some((authority, None)),
    }
}

/// A text as the value of a parameter.
pub(crate) fn percent_encode(text: &str) -> String {
    let keeps = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes().map(|byte| if keeps(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<ServedLocation, OpenError> {
        ServedLocation::of(&Location::from(text))
    }

    #[test]
    fn a_location_has_a_host_and_a_name() {
        let found = of("h5live+http://127.0.0.1:8080/2026/a%20b.h5?token=x").unwrap();
        assert_eq!((found.host.as_str(), found.port, found.name.as_str()), ("127.0.0.1", 8080, "2026/a b.h5"));
        let found = of("h5live+https://ann:s%40cret@[::1]/run.h5").unwrap();
        assert_eq!((found.host.as_str(), found.port, found.authority.as_str()), ("::1", 443, "[::1]"));
        assert_eq!(found.user.as_deref(), Some("ann:s%40cret"));
        assert!(!found.server_origin().contains("cret"));
        for text in [
            "h5live+http:run.h5",
            "h5live+http://",
            "h5live+http://host",
            "h5live+http://host/",
            "h5live+http:///run.h5",
            "h5live+http://host:x/run.h5",
            "h5live+http://ho st/run.h5",
            "run.h5",
        ] {
            assert!(matches!(of(text), Err(OpenError::InvalidLocation(_))), "{text}");
        }
    }

    #[test]
    fn a_linked_file_lies_beside_the_one_that_names_it() {
        let beside = |name: &str| {
            of("h5live+http://h:1/runs/one.h5?token=x").unwrap().sibling_url(name).map(|url| url.to_string())
        };
        assert_eq!(beside("two.h5").as_deref(), Some("h5live+http://h:1/runs/two.h5"));
        assert_eq!(beside("../x/./two.h5").as_deref(), Some("h5live+http://h:1/x/two.h5"));
        assert_eq!((beside("../../etc"), beside("/etc/passwd"), beside("")), (None, None, None));
    }
}
