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
    config.token = Some("secret".into());
    config.limits.client_time = Duration::from_millis(500);
    let tls = TlsConfig::from_pem_files(&data("localhost.pem"), &data("localhost.key.pem"), "localhost:8443");
    config.tls = Some(tls.unwrap());
    let server = Server::start(config).unwrap();
    assert_eq!(server.url(), "https://localhost:8443/?token=secret");
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
