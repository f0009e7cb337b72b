//! Who may ask: hosts, and the token.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::page;
use crate::query::Query;

/// Bytes of a token that the server makes.
const TOKEN_BYTES: usize = 24;

/// Who may ask.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    /// What clients have to know; `None` if they need nothing.
    token: Option<String>,
    cookie: String,
    /// What the header `Host` may say.
    hosts: Vec<String>,
    /// Whether clients come by TLS, through a proxy.
    has_tls: bool,
}

/// The password of a client that names a user, as those of HSDS do. Every user has the token for a password.
fn basic_password(header: &str) -> Option<String> {
    let (_, encoded) = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))?;
    let decoded = String::from_utf8(BASE64.decode(encoded.trim()).ok()?).ok()?;
    decoded.split_once(':').map(|(_, password)| password.to_owned())
}

/// A token that nobody can guess.
///
/// # Errors
/// If the system has no random numbers.
pub(crate) fn new_token() -> std::io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Access {
    pub fn new(token: Option<String>, at: SocketAddr, proxy_host: Option<&str>) -> Self {
        let port = at.port();
        let mut hosts =
            vec![at.to_string(), format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")];
        if port == 80 {
            hosts.extend([at.ip().to_string(), "localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()]);
        }
        hosts.extend(proxy_host.map(str::to_ascii_lowercase));
        Access { token, cookie: format!("h5live-token-{port}"), hosts, has_tls: proxy_host.is_some() }
    }

    /// The address to print, with what a client has to know.
    pub fn url(&self, at: SocketAddr) -> String {
        match &self.token {
            Some(token) => format!("http://{at}/?token={token}"),
            None => format!("http://{at}/"),
        }
    }

    /// Whether a client calls this server by one of its names.
    pub fn is_host_allowed(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        host.is_some_and(|host| self.hosts.contains(&host.to_ascii_lowercase()))
    }

    /// Whether a text is the token. Takes the same time for all texts of its length.
    fn is_token(&self, given: &str) -> bool {
        self.token.as_ref().is_none_or(|token| {
            token.len() == given.len() && token.bytes().zip(given.bytes()).fold(0, |bits, (a, b)| bits | (a ^ b)) == 0
        })
    }

    /// Whether a client has the token.
    pub fn is_allowed(&self, headers: &HeaderMap, query: &Query) -> bool {
        if self.token.is_none() {
            return true;
        }
        let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = header
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token"));
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut cookies = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        bearer.is_some_and(|(_, given)| self.is_token(given.trim()))
            || header.and_then(basic_password).is_some_and(|given| self.is_token(&given))
            || query.get("token").is_some_and(|given| self.is_token(given))
            || cookies.any(|(name, given)| name == self.cookie && self.is_token(given))
    }

    /// Sends a browser that came with the token in its address to the same place without it; it keeps the token.
    pub fn redirect(&self, request: &Request, query: &Query) -> Option<Response<Body>> {
        let token = query.get("token").filter(|_| self.token.is_some() && request.method() == Method::GET)?;
        if !page::is_wanted(request.headers()) {
            return None;
        }
        let pairs = request.uri().query()?.split('&').filter(|pair| !pair.starts_with("token="));
        let rest = pairs.collect::<Vec<_>>().join("&");
        let path = request.uri().path();
        // A path that begins with two slashes would be another host.
        let path = format!("/{}", path.trim_start_matches('/'));
        let to = if rest.is_empty() { path } else { format!("{path}?{rest}") };
        let secure = if self.has_tls { "; Secure" } else { "" };
        let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict{secure}", self.cookie);
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SEE_OTHER;
        response.headers_mut().insert(header::LOCATION, HeaderValue::from_str(&to).ok()?);
        response.headers_mut().insert(header::SET_COOKIE, HeaderValue::from_str(&cookie).ok()?);
        Some(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access::new(Some("secret".into()), "127.0.0.1:8080".parse().unwrap(), None)
    }

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn hosts_of_other_names_are_refused() {
        for host in ["127.0.0.1:8080", "LOCALHOST:8080", "[::1]:8080"] {
            assert!(access().is_host_allowed(&headers(header::HOST, host)), "{host}");
        }
        for host in ["evil.example:8080", "127.0.0.1", "127.0.0.1:80", "localhost:8080.evil.example", ""] {
            assert!(!access().is_host_allowed(&headers(header::HOST, host)), "{host}");
        }
        assert!(!access().is_host_allowed(&HeaderMap::new()));
    }

    #[test]
    fn the_token_comes_by_header_query_or_cookie() {
        let none = Query::default();
        for value in ["Bearer secret", "token secret", "bearer  secret", "Basic YW55OnNlY3JldA=="] {
            assert!(access().is_allowed(&headers(header::AUTHORIZATION, value), &none), "{value}");
        }
        for value in ["secret", "Bearer Secret", "Bearer secre", "Bearer ", "Basic secret", "Basic c2VjcmV0OmFueQ=="] {
            assert!(!access().is_allowed(&headers(header::AUTHORIZATION, value), &none), "{value}");
        }
        assert!(access().is_allowed(&headers(header::COOKIE, "a=b; h5live-token-8080=secret"), &none));
        assert!(!access().is_allowed(&headers(header::COOKIE, "h5live-token-8081=secret"), &none));
        assert!(access().is_allowed(&HeaderMap::new(), &Query::of(&"/?token=secret".parse().unwrap())));
        assert!(!access().is_allowed(&HeaderMap::new(), &none));
    }

    #[test]
    fn tokens_differ() {
        let (a, b) = (new_token().unwrap(), new_token().unwrap());
        assert!(a != b && a.len() == 2 * TOKEN_BYTES);
    }
}
