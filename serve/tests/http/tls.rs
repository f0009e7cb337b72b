//! TLS of the server itself. The certificate is for `localhost`, signed by itself, and lasts for a hundred years.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use h5live_serve::{Config, Server, TlsConfig};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

#[cfg(feature = "tls-tests")]
use crate::client::make;
use crate::client::{connect, head};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn client() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(data("localhost.pem")).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots).with_no_client_auth()
}

#[test]
fn a_server_with_tls_listens_everywhere_and_hides_what_is_secret() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new([folder.path().into()]);
    config.bind = "0.0.0.0:0".parse().unwrap();
    config.fixed_token = Some("secret".into());
    config.limits.slow_client_timeout = Duration::from_millis(500);
    let tls = TlsConfig::from_pem_files(&data("localhost.pem"), &data("localhost.key.pem"), "localhost:8443");
    config.tls = Some(tls.unwrap());
    let server = Server::start(config).unwrap();
    assert_eq!(server.url_with_token(), "https://localhost:8443/?token=secret");
    let at = ([127, 0, 0, 1], server.address().unwrap().port()).into();
    let ask = |target: &str| {
        let connection = ClientConnection::new(Arc::new(client()), "localhost".try_into().unwrap()).unwrap();
        let mut stream = StreamOwned::new(connection, connect(at));
        stream.write_all(head(at, "GET", target, &[("host", "localhost:8443")]).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask("/api/files?token=secret").starts_with("HTTP/1.1 200"));
    assert!(ask("/api/files").starts_with("HTTP/1.1 401"));
    // Who does not speak TLS, or says nothing, is left.
    for said in ["GET /healthz HTTP/1.1\r\n\r\n", ""] {
        let mut plain: TcpStream = connect(at);
        plain.write_all(said.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP"), "{said:?}");
    }
}

#[test]
fn files_that_are_no_certificates_are_told() {
    let made = |certificate: &str, key: &str| TlsConfig::from_pem_files(&data(certificate), &data(key), "localhost");
    for (certificate, key, told) in [
        ("none.pem", "localhost.key.pem", "none.pem"),
        ("localhost.pem", "localhost.pem", "localhost.pem"),
        ("localhost.key.pem", "localhost.key.pem", "cannot be used"),
    ] {
        let said = made(certificate, key).unwrap_err().to_string();
        assert!(said.contains(told), "{said}");
    }
}

/// A server with TLS of a folder with a file that is followed, and another to which that leads.
#[cfg(feature = "tls-tests")]
fn served_file() -> (tempfile::TempDir, Server, h5live::File, String) {
    let folder = tempfile::tempdir().unwrap();
    make(&folder.path().join("other.h5"), |file| file.new_dataset::<u8>().create("far")?.write_scalar(&9u8));
    let live = h5live::File::create(folder.path().join("live.h5")).unwrap();
    live.new_dataset::<u32>().unlimited_rows(&[]).create("rows").unwrap().append(&[1u32, 2, 3]).unwrap();
    live.root().link_external("far", "other.h5", "/far").unwrap();
    live.start_swmr().unwrap();
    let mut config = Config::new([folder.path().into()]);
    config.bind.set_port(0);
    config.fixed_token = Some("secret".into());
    let tls = TlsConfig::from_pem_files(&data("localhost.pem"), &data("localhost.key.pem"), "localhost");
    config.tls = Some(tls.unwrap());
    let server = Server::start(config).unwrap();
    let at = format!("h5live+https://localhost:{}/live.h5?token=secret", server.address().unwrap().port());
    (folder, server, live, at)
}

#[cfg(feature = "tls-tests")]
#[test]
fn a_client_follows_by_tls_whom_it_trusts_and_nobody_else() {
    let (_folder, _server, live, at) = served_file();
    let options = || h5live::Options::default().swmr_read();
    for (parameter, told) in [
        ("", "certificate=FILE"),
        ("&certificate=none.pem", "none.pem"),
        (
            &*format!("&certificate={}", data("localhost.key.pem").display()),
            "localhost.key.pem: there is no certificate",
        ),
    ] {
        let error = options().open(&*format!("{at}{parameter}")).unwrap_err();
        let said = format!("{error:#}");
        assert!(said.contains(told) && !said.contains("secret"), "{said}");
    }
    let file = options().open(&*format!("{at}&certificate={}", data("localhost.pem").display())).unwrap();
    let rows = file.dataset("rows").unwrap();
    assert_eq!(rows.read::<u32>().unwrap(), [1, 2, 3]);
    // A file of the same server is trusted as this one.
    assert_eq!(file.dataset("far").unwrap().read_scalar::<u8>().unwrap(), 9);
    // Spawned before the rows are written that it is to be told of.
    let follower = rows.follow::<u32>();
    let followed = std::thread::spawn(move || follower.collect::<Result<Vec<_>, _>>());
    let written = live.dataset("rows").unwrap();
    written.append(&[4u32]).unwrap();
    written.flush().unwrap();
    drop(written);
    live.close().unwrap();
    assert_eq!(followed.join().unwrap().unwrap().concat(), [1, 2, 3, 4]);
}
