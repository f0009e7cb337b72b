//! An S3 server on the loopback of this machine: moto, of PyPI. It has its objects in memory.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the server has to start.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Whether the environment has keys, which are taken from nowhere else; if not, a line says so.
pub fn has_keys() -> bool {
    let has_keys = std::env::var_os("AWS_ACCESS_KEY_ID").is_some();
    if !has_keys {
        println!("skipped: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set (make test-slatedb sets them)");
    }
    has_keys
}

/// A server, which ends with this.
pub struct S3Server {
    process: Child,
    address: SocketAddr,
}

impl S3Server {
    /// Starts a server; `None`, with a line that says so, if moto is not installed.
    pub fn start() -> Option<Self> {
        if !has_keys() {
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
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let port = address.port().to_string();
            let arguments = ["-m", "moto.server", "-H", "127.0.0.1", "-p", &port];
            let process = Command::new(&python).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let mut server = S3Server { process: process.unwrap(), address };
            if server.is_ready() {
                return Some(server);
            }
        }
        panic!("moto does not start");
    }

    fn is_ready(&mut self) -> bool {
        let until = Instant::now() + START_LIMIT;
        while Instant::now() < until && self.process.try_wait().unwrap().is_none() {
            if TcpStream::connect(self.address).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// Its URL.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes a bucket.
    pub fn make_bucket(&self, name: &str) {
        assert_eq!(self.put(&format!("/{name}"), "", b""), 200);
    }

    /// Puts an object with a further header. Returns the status.
    pub fn put(&self, path: &str, header: &str, body: &[u8]) -> u16 {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let head = format!(
            "PUT {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: AWS4-HMAC-SHA256 Credential=test/20200101/us-east-1/s3/\
             aws4_request, SignedHeaders=host, Signature=0\r\n{header}Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = BufReader::new(stream);
        let mut status = String::new();
        answer.read_line(&mut status).unwrap();
        answer.read_to_end(&mut Vec::new()).unwrap();
        status.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
