//! Who may ask: hosts, and the token.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::page;
use crate::query::Query;
use crate::users::{Users, constant_time_eq};

/// Bytes of a token that the server makes.
const TOKEN_BYTES: usize = 24;

/// Who may ask.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    /// Whether clients need nothing.
    is_open: bool,
    token: Option<String>,
    users: Option<Users>,
    cookie: String,
    /// What the header `Host` may say.
    hosts: Vec<String>,
    /// Whether clients come by TLS, of this server or of a proxy.
    has_tls: bool,
}

/// Where a server is, for its clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerNames {
    /// Where it listens, if that is no socket of the file system.
    pub address: Option<SocketAddr>,
    /// The name and port of what does TLS: a proxy, or this server.
    pub tls_host: Option<String>,
    /// Whether it does TLS by itself.
    pub is_tls: bool,
}

/// The user and the password that a client names. Clients of HSDS name any user, with the token for a password.
fn basic_password(header: &str) -> Option<(String, String)> {
    let (_, encoded) = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))?;
    let decoded = String::from_utf8(BASE64.decode(encoded.trim()).ok()?).ok()?;
    decoded.split_once(':').map(|(name, password)| (name.to_owned(), password.to_owned()))
}

/// The user that a client says it is, with a name and a password.
pub(crate) fn basic_user(headers: &HeaderMap) -> Option<String> {
    basic_password(authorization(headers)?).map(|(name, _)| name).filter(|name| !name.is_empty())
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

fn authorization(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok())
}

impl ServerNames {
    /// What the header `Host` may say.
    fn hosts(&self) -> Vec<String> {
        let mut hosts = match self.address {
            Some(at) => {
                let port = at.port();
                vec![at.to_string(), format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")]
            }
            // What clients of such a socket say.
            None => vec!["localhost".to_owned()],
        };
        if let Some(at) = self.address.filter(|at| at.port() == if self.is_tls { 443 } else { 80 }) {
            hosts.extend([at.ip().to_string(), "localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()]);
        }
        hosts.extend(self.tls_host.as_deref().map(str::to_ascii_lowercase));
        hosts
    }

    /// The address of the server.
    fn base(&self) -> String {
        match (&self.tls_host, self.address) {
            (Some(host), _) if self.is_tls => format!("https://{host}"),
            (_, Some(at)) => format!("http://{at}"),
            (_, None) => "http://localhost".to_owned(),
        }
    }
}

impl Access {
    /// Lets in who knows the token or is one of the users; everybody if there is neither.
    pub fn new(token: Option<String>, users: Option<Users>, names: &ServerNames) -> Self {
        Access {
            is_open: token.is_none() && users.is_none(),
            token,
            users,
            cookie: format!("h5live-token-{}", names.address.map_or(0, |at| at.port())),
            hosts: names.hosts(),
            has_tls: names.tls_host.is_some(),
        }
    }

    /// The address to print, with what a client has to know.
    pub fn url_with_token(&self, names: &ServerNames) -> String {
        match &self.token {
            Some(token) => format!("{}/?token={token}", names.base()),
            None => format!("{}/", names.base()),
        }
    }

    /// Whether a browser is to ask for a name and a password.
    pub fn has_users(&self) -> bool {
        self.users.is_some()
    }

    /// Whether a client calls this server by one of its names.
    pub fn is_host_allowed(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        host.is_some_and(|host| self.hosts.contains(&host.to_ascii_lowercase()))
    }

    /// Whether a text is the token, or that of a user.
    fn is_token(&self, given: &str) -> bool {
        self.token.as_ref().is_some_and(|token| constant_time_eq(token.as_bytes(), given.as_bytes()))
            || self.users.as_ref().is_some_and(|users| users.has_token(given))
    }

    /// Whether a client has a token, or the password of a user.
    pub async fn is_authorized(&self, headers: &HeaderMap, query: &Query) -> bool {
        if self.is_open || self.has_token(headers, query) {
            return true;
        }
        match (&self.users, authorization(headers).and_then(basic_password)) {
            (Some(users), Some((name, password))) => users.has_password_or_token(&name, &password).await,
            _ => false,
        }
    }

    fn has_token(&self, headers: &HeaderMap, query: &Query) -> bool {
        let header = authorization(headers);
        let bearer = header
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token"));
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut cookies = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        bearer.is_some_and(|(_, given)| self.is_token(given.trim()))
            || header.and_then(basic_password).is_some_and(|(_, given)| self.is_token(&given))
            || query.get("token").is_some_and(|given| self.is_token(given))
            || cookies.any(|(name, given)| name == self.cookie && self.is_token(given))
    }

    /// Sends a browser that came with the token in its address to the same place without it; it keeps the token.
    pub fn redirect_token_to_cookie(&self, request: &Request, query: &Query) -> Option<Response<Body>> {
        let token = query.get("token").filter(|_| !self.is_open && request.method() == Method::GET)?;
        if !page::wants_html(request.headers()) {
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

    fn names() -> ServerNames {
        ServerNames { address: Some("127.0.0.1:8080".parse().unwrap()), ..ServerNames::default() }
    }

    fn access() -> Access {
        Access::new(Some("secret".into()), None, &names())
    }

    fn is_allowed(access: &Access, headers: &HeaderMap, query: &Query) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(access.is_authorized(headers, query))
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
            assert!(is_allowed(&access(), &headers(header::AUTHORIZATION, value), &none), "{value}");
        }
        for value in ["secret", "Bearer Secret", "Bearer secre", "Bearer ", "Basic secret", "Basic c2VjcmV0OmFueQ=="] {
            assert!(!is_allowed(&access(), &headers(header::AUTHORIZATION, value), &none), "{value}");
        }
        assert!(is_allowed(&access(), &headers(header::COOKIE, "a=b; h5live-token-8080=secret"), &none));
        assert!(!is_allowed(&access(), &headers(header::COOKIE, "h5live-token-8081=secret"), &none));
        assert!(is_allowed(&access(), &HeaderMap::new(), &Query::of(&"/?token=secret".parse().unwrap())));
        assert!(!is_allowed(&access(), &HeaderMap::new(), &none));
    }

    #[test]
    fn users_are_let_in_beside_the_token() {
        let users = Users::parse(&format!("ann:{}", bcrypt::hash("secret", 4).unwrap())).unwrap();
        let basic = |text: &str| headers(header::AUTHORIZATION, &format!("Basic {}", BASE64.encode(text)));
        for token in [None, Some("token".to_owned())] {
            let access = Access::new(token.clone(), Some(users.clone()), &names());
            assert!(is_allowed(&access, &basic("ann:secret"), &Query::default()));
            for refused in ["ann:", "ann:Secret", "bob:secret", "", "ann"] {
                assert!(!is_allowed(&access, &basic(refused), &Query::default()), "{refused}");
            }
            assert!(!is_allowed(&access, &HeaderMap::new(), &Query::default()));
            assert_eq!(is_allowed(&access, &basic("any:token"), &Query::default()), token.is_some());
        }
    }

    #[test]
    fn addresses_are_those_of_clients() {
        let of = |names: &ServerNames| access().url_with_token(names);
        assert_eq!(of(&names()), "http://127.0.0.1:8080/?token=secret");
        assert_eq!(of(&ServerNames::default()), "http://localhost/?token=secret");
        let tls_host = Some("Data.example:8443".to_owned());
        let tls = ServerNames { tls_host, is_tls: true, ..names() };
        assert_eq!(of(&tls), "https://Data.example:8443/?token=secret");
        assert!(tls.hosts().contains(&"data.example:8443".to_owned()));
    }

    #[test]
    fn tokens_differ() {
        let (a, b) = (new_token().unwrap(), new_token().unwrap());
        assert!(a != b && a.len() == 2 * TOKEN_BYTES);
    }
}
