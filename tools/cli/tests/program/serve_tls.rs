//! `serve` with TLS, and commands that read from it by `h5live+https:`.
#![cfg(all(unix, feature = "serve-tls", feature = "served-tls"))]

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::common::{error, h5live, new_file, run_with, text};

/// The certificate is for `localhost`, signed by itself.
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../serve/tests/data/localhost.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../serve/tests/data/localhost.key.pem");

/// A server that ends with its test.
struct TlsServer(Child);

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server, and its port.
fn serve(folder: &str) -> (TlsServer, u16) {
    // Which port is free is only known when the server has it, so that its name is told a port that is never asked.
    let mut command = h5live();
    command.args(["serve", folder, "--bind", "127.0.0.1:0", "--log", "text", "--tls-host", "localhost:443"]);
    command.args(["--tls-certificate", CERTIFICATE, "--tls-key", KEY]).env("H5LIVE_TOKEN", "secret");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "https://localhost:443/?token=secret\n");
    let port = listening_port(child.id());
    (TlsServer(child), port)
}

/// The port at which a process listens, as the system has it.
fn listening_port(process: u32) -> u16 {
    let sockets: Vec<_> = std::fs::read_dir(format!("/proc/{process}/fd"))
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|link| link.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned))
        .collect();
    let table = std::fs::read_to_string(format!("/proc/{process}/net/tcp")).unwrap();
    let port = table.lines().skip(1).find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        // 0A: it listens.
        let is_ours = fields[3] == "0A" && sockets.iter().any(|socket| socket == fields[9]);
        is_ours.then(|| u16::from_str_radix(fields[1].split(':').nth(1)?, 16).ok())?
    });
    port.expect("a socket that listens")
}

#[test]
fn commands_read_by_tls_from_a_server_that_is_trusted() {
    let (folder, _, name) = new_file();
    text(&run_with(&["record", &name, "a"], b"v\n7\n"));
    let (_server, port) = serve(folder.path().to_str().unwrap());
    let at = format!("h5live+https://localhost:{port}/run.h5");
    // The option of the location, and the variable of the system.
    let by_option = format!("{at}?certificate={CERTIFICATE}");
    let said = |arguments: &[&str], variable: &str| {
        let mut command = h5live();
        command.args(arguments).env("H5LIVE_TOKEN", "secret").env("SSL_CERT_FILE", variable);
        command.output().unwrap()
    };
    for (at, variable) in [(&by_option, "/dev/null"), (&at, CERTIFICATE)] {
        assert!(text(&said(&["ls", at], variable)).contains('a'));
        assert!(text(&said(&["dump", at, "a"], variable)).contains('7'));
        let copy = folder.path().join("copy.h5");
        let copy = copy.to_str().unwrap();
        text(&said(&["copy", at, copy], variable));
        text(&said(&["diff", &name, copy], variable));
        std::fs::remove_file(copy).unwrap();
    }
    let refused = error(&said(&["ls", &at], "/dev/null"));
    assert!(refused.contains("certificate"), "{refused}");
}
