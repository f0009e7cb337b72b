//! An S3 server on the loopback of this machine: moto, of PyPI. It has its objects in memory.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::ObjectOptions;

/// How long the server has to start.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Whether the environment has keys, which are taken from nowhere else; if not, a line says so.
pub fn has_aws_env_credentials() -> bool {
    let has_keys = std::env::var_os("AWS_ACCESS_KEY_ID").is_some();
    if !has_keys {
        println!(
            "skipped: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set (make test-objects and make test-slatedb set them)"
        );
    }
    has_keys
}

/// A server, which ends with this.
#[derive(Debug)]
pub struct S3Server {
    process: Child,
    address: SocketAddr,
}

impl S3Server {
    /// Starts a server; `None`, with a line that says so, if moto is not installed or the environment has no keys.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_if_available() -> Option<Self> {
        if !has_aws_env_credentials() {
            return None;
        }
        let python = std::env::var("H5LIVE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let has_moto = Command::new(&python).args(["-c", "import moto.server"]).stderr(Stdio::null()).status();
        if !has_moto.is_ok_and(|status| status.success()) {
            println!("skipped: {python} has no moto[server] (tests/requirements.txt)");
            return None;
        }
        // Another process may take the port in between; then the server says so and ends.
        for _ in 0..5 {
            let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).ok()?;
            let port = address.port().to_string();
            let arguments = ["-m", "moto.server", "-H", "127.0.0.1", "-p", &port];
            let process = Command::new(&python).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let mut server = S3Server { process: process.ok()?, address };
            if server.is_ready() {
                return Some(server);
            }
        }
        panic!("moto does not start");
    }

    fn is_ready(&mut self) -> bool {
        let until = Instant::now() + START_LIMIT;
        while Instant::now() < until && matches!(self.process.try_wait(), Ok(None)) {
            if TcpStream::connect(self.address).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How it is reached.
    pub fn client_options(&self) -> ObjectOptions {
        options_for(self.endpoint())
    }

    /// Makes a bucket.
    ///
    /// # Panics
    /// If the server refuses.
    pub fn make_bucket(&self, name: &str) {
        assert_eq!(self.put_with_header(&format!("/{name}"), "", b""), 200);
    }

    /// Puts an object with a further header, by a request of its own making. Returns the status.
    ///
    /// # Panics
    /// If the connection fails.
    pub fn put_with_header(&self, path: &str, raw_header_lines: &str, body: &[u8]) -> u16 {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        let head = format!(
            "PUT {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: AWS4-HMAC-SHA256 Credential=test/20200101/us-east-1/s3/\
             aws4_request, SignedHeaders=host, Signature=0\r\n{raw_header_lines}Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("the server reads");
        let mut answer = BufReader::new(stream);
        let mut status = String::new();
        answer.read_line(&mut status).and_then(|_| answer.read_to_end(&mut Vec::new())).expect("the server answers");
        status.split_ascii_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }
}

/// How an S3 server at a URL is reached.
pub(super) fn options_for(endpoint: String) -> ObjectOptions {
    ObjectOptions { endpoint, region: "us-east-1".to_owned(), allow_http: true, ..ObjectOptions::default() }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
