//! Who may ask.

use h5live_serve::{Config, Server, StartError};

use crate::client::{Served, make, request};

fn served_with_token() -> Served {
    let served = Served::with(|config| {
        config.without_authentication = false;
        config.fixed_token = Some("secret".into());
    });
    make(&served.file("a.h5"), |_| Ok(()));
    served
}

#[test]
fn the_token_is_asked_for() {
    let served = served_with_token();
    let address = served.address();
    assert_eq!(served.server.url_with_token(), format!("http://{address}/?token=secret"));
    for path in [
        "/",
        "/meta?file=a.h5",
        "/meta?file=a.h5&token=wrong",
        "/api/files",
        "/events?file=a.h5",
        "/metrics",
        "/assets/page.js",
    ] {
        let refused = served.get(path);
        assert_eq!(refused.status, 401, "{path}");
        assert!(refused.json()["message"].as_str().unwrap().contains("token"));
    }
    assert_eq!(served.get("/healthz").text(), "ok");
    assert_eq!(served.get("/meta?file=a.h5&token=secret").status, 200);
    assert_eq!(served.get_with("/meta?file=a.h5", &[("authorization", "Bearer secret")]).status, 200);
    let metrics = served.get_with("/metrics", &[("authorization", "Bearer secret")]).text();
    assert!(metrics.contains("h5live_requests_total{status=\"4xx\"} 7"), "{metrics}");
}

#[test]
fn a_browser_keeps_the_token_as_a_cookie() {
    let served = served_with_token();
    let html = ("accept", "text/html,*/*");
    let without = served.get_with("/?file=a.h5", &[html]);
    assert!(without.status == 401 && without.text().contains("needs the token"), "{}", without.text());
    let first = served.get_with("/?file=a.h5&token=secret", &[html]);
    assert_eq!((first.status, &*first.headers["location"]), (303, "/?file=a.h5"));
    let cookie = &first.headers["set-cookie"];
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    let page = served.get_with("/?file=a.h5", &[html, ("cookie", pair)]);
    assert_eq!((page.status, &*page.headers["content-type"]), (200, "text/html; charset=utf-8"));
    assert_eq!(served.get_with("//evil.example/?token=secret", &[html]).headers["location"], "/evil.example/");
}

#[test]
fn other_hosts_and_methods_are_refused() {
    let served = Served::new();
    make(&served.file("a.h5"), |_| Ok(()));
    for host in ["evil.example", "evil.example:80", "127.0.0.1"] {
        assert_eq!(served.get_with("/meta?file=a.h5", &[("host", host)]).status, 421, "{host}");
    }
    let port = served.address().port();
    assert_eq!(served.get_with("/meta?file=a.h5", &[("host", &format!("localhost:{port}"))]).status, 200);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let refused = request(served.address(), method, "/meta?file=a.h5", &[("origin", "http://evil.example")]);
        assert_eq!(refused.status, 405, "{method}");
        assert!(!refused.headers.contains_key("access-control-allow-origin"));
    }
    let answer = served.get_with("/meta?file=a.h5", &[("origin", "http://evil.example")]);
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
    assert_eq!(answer.headers["x-content-type-options"], "nosniff");
}

#[test]
fn nobody_else_is_served_without_tls() {
    let folder = tempfile::tempdir().unwrap();
    let config = || {
        let mut config = Config::new([folder.path().into()]);
        config.bind = "0.0.0.0:0".parse().unwrap();
        config
    };
    assert!(matches!(Server::start(config()), Err(StartError::TlsRequired(_))));
    let open = Config { without_authentication: true, tls_proxy_host: Some("data.example".into()), ..config() };
    assert!(matches!(Server::start(open), Err(StartError::AuthenticationRequired)));
    let proxied = Server::start(Config { tls_proxy_host: Some("data.example".into()), ..config() }).unwrap();
    let at = ([127, 0, 0, 1], proxied.address().unwrap().port()).into();
    assert_eq!(request(at, "GET", "/healthz", &[("host", "data.example")]).status, 200);
}

#[test]
fn roots_that_are_not_there_are_told() {
    let error = Server::start(Config::new(["/nowhere/at/all".into()])).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

#[test]
fn pages_of_named_origins_may_read() {
    let served = Served::with(|config| {
        config.without_authentication = false;
        config.fixed_token = Some("secret".into());
        config.allowed_origins = vec!["https://lab.example".into()];
    });
    make(&served.file("a.h5"), |_| Ok(()));
    let bearer = ("authorization", "Bearer secret");
    let named = ("origin", "https://lab.example");
    let asks = ("access-control-request-method", "GET");
    let allowed = |answer: &crate::client::Response| answer.headers.get("access-control-allow-origin").cloned();
    let answer = served.get_with("/meta?file=a.h5", &[bearer, named]);
    assert_eq!((answer.status, allowed(&answer).as_deref()), (200, Some(named.1)));
    assert!(answer.headers["vary"].contains("origin"));
    assert!(!answer.headers.contains_key("access-control-allow-credentials"));
    // It is told why, and reads nothing.
    let answer = served.get_with("/meta?file=a.h5", &[named]);
    assert_eq!((answer.status, allowed(&answer).as_deref()), (401, Some(named.1)));
    let answer = request(served.address(), "OPTIONS", "/meta?file=a.h5", &[named, asks]);
    assert_eq!((answer.status, allowed(&answer).as_deref()), (204, Some(named.1)));
    assert!(answer.headers["access-control-allow-headers"].contains("authorization"));
    for other in ["https://evil.example", "https://lab.example:444", "http://lab.example", "null"] {
        let answer = served.get_with("/meta?file=a.h5", &[bearer, ("origin", other)]);
        assert_eq!((answer.status, allowed(&answer)), (200, None), "{other}");
        let answer = request(served.address(), "OPTIONS", "/meta?file=a.h5", &[bearer, ("origin", other), asks]);
        assert_eq!((answer.status, allowed(&answer)), (405, None), "{other}");
    }
    let mut config = Config::new([served.root().into()]);
    config.bind.set_port(0);
    config.allowed_origins = vec!["*".into()];
    assert!(matches!(Server::start(config), Err(StartError::InvalidOrigin(_))));
}
