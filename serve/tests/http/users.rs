//! Users, sockets of the file system, and what may listen beyond this machine.

use std::io::{BufReader, Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use h5live_serve::{Config, Server, StartError, Users};

use crate::client::{Served, make};

/// The password is "pass".
const PASSWORD: &str = "$2y$04$abcdefghijklmnopqrstuufznL8bkzdtHwLhca4To/v9Lo9bA7fR6";
/// The SHA-256 of "a token".
const TOKEN: &str = "sha256:e3316e2bafebb6103a3418e8778c0adc960d40213a03a7e7f4fcd3426ed807bf";

fn users() -> Users {
    Users::parse(&format!("ann:{PASSWORD}\nrobot:{TOKEN}\n")).unwrap()
}

#[test]
fn users_are_let_in_by_password_and_by_token() {
    let served = Served::with(|config| (config.without_authentication, config.users) = (false, Some(users())));
    make(&served.file("a.h5"), |_| Ok(()));
    let status = |authorization: &str| served.get_with("/meta?file=a.h5", &[("authorization", authorization)]).status;
    let basic = |text: &str| format!("Basic {}", BASE64.encode(text));
    assert_eq!(status(&basic("ann:pass")), 200);
    assert_eq!(status(&basic("robot:a token")), 200);
    assert_eq!(status("Bearer a token"), 200);
    assert_eq!(served.get("/meta?file=a.h5&token=a%20token").status, 200);
    for refused in [&*basic("ann:other"), &basic("ann:"), &basic("bob:pass"), "Bearer pass", "Bearer ", "Basic x", ""] {
        assert_eq!(status(refused), 401, "{refused}");
    }
    // The address that is printed has no token, and a browser asks for the name and the password.
    assert!(served.server.url_with_token().ends_with('/'), "{}", served.server.url_with_token());
    let browser = served.get_with("/", &[("accept", "text/html")]);
    assert_eq!(
        (browser.status, &*browser.headers["www-authenticate"]),
        (401, "Basic realm=\"h5live\", charset=\"UTF-8\"")
    );
}

#[test]
fn passwords_do_not_leave_this_machine_without_tls() {
    let folder = tempfile::tempdir().unwrap();
    let config =
        Config { bind: "0.0.0.0:0".parse().unwrap(), users: Some(users()), ..Config::new([folder.path().into()]) };
    assert!(matches!(Server::start(config.clone()), Err(StartError::TlsRequired(_))));
    Server::start(Config { tls_proxy_host: Some("data.example".into()), ..config }).unwrap().stop();
}

#[cfg(unix)]
#[test]
fn a_socket_of_the_file_system_is_for_this_user_and_is_taken_away() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{UnixListener, UnixStream};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.sock");
    let start = || {
        let mut config = Config::new([folder.path().into()]);
        (config.without_authentication, config.socket) = (true, Some(path.clone()));
        Server::start(config)
    };
    // One that a server has left.
    drop(UnixListener::bind(&path).unwrap());
    let server = start().unwrap();
    assert_eq!((server.address(), server.url_with_token()), (None, "http://localhost/"));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
    let second = start().unwrap_err().to_string();
    assert!(second.contains("server.sock"), "{second}");
    server.stop();
    assert!(!path.exists());
    // Nothing else is replaced.
    std::fs::write(&path, "mine").unwrap();
    assert!(start().is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}
