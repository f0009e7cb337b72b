//! A proxy in front of a server that fails as networks and servers do, by a seed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::s3_server::options_for;
use crate::ObjectOptions;

/// Most bytes of a head.
const MAX_HEAD_BYTES: u64 = 64 << 10;
/// Most ranges of bytes that are kept.
const MAX_RANGES: usize = 1000;

/// How requests fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProxyFaults {
    /// Of a thousand requests, so many fail.
    pub per_mille: u64,
    /// Which ones, and how.
    pub seed: u64,
    /// How much later each answer comes.
    pub latency: Duration,
    /// Whether the server does not hear of the conditions of writes, as one that does not keep them.
    pub drops_write_conditions: bool,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    /// The status 500.
    InternalError,
    /// The status 503, as S3 says that it is asked too often.
    SlowDown,
    /// The connection breaks, and the server never hears of the request.
    Lost,
    /// The server does what it was asked, and the connection breaks.
    AnswerLost,
    /// The connection breaks within the answer: within its body, or within its head if it has no body.
    HalfAnswer,
}

const FAILURES: [Fate; 5] = [Fate::InternalError, Fate::SlowDown, Fate::Lost, Fate::AnswerLost, Fate::HalfAnswer];

/// A proxy on the loopback, which ends with this.
#[derive(Debug)]
pub struct FaultyProxy {
    address: SocketAddr,
    shared: Arc<ProxyState>,
}

#[derive(Debug)]
struct ProxyState {
    server: SocketAddr,
    faults: ProxyFaults,
    requests: AtomicU64,
    failures: AtomicU64,
    /// When requests for ranges of bytes came, and the ranges as they were asked for.
    ranges: Mutex<Vec<(Instant, String)>>,
    /// Connections of clients that are open.
    connections: AtomicU64,
    is_ended: AtomicBool,
}

/// A message of HTTP: its head with the blank line, and its body.
struct Message {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Message {
    /// What is never a whole message. Otherwise the client would keep the connection, and lose its next request on it.
    fn first_half(&self) -> Vec<u8> {
        match self.body.len() {
            0 => self.head[..self.head.len() / 2].to_vec(),
            bytes => [&self.head, &self.body[..bytes / 2]].concat(),
        }
    }
}

impl FaultyProxy {
    /// Starts a proxy in front of a server.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(server: SocketAddr, faults: ProxyFaults) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ProxyState {
            server,
            faults,
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            ranges: Mutex::default(),
            connections: AtomicU64::new(0),
            is_ended: AtomicBool::new(false),
        });
        let state = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if state.is_ended.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(client), state) = (client, state.clone()) else { continue };
                state.connections.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || {
                    // Its end is the end of the connection.
                    let _ = state.serve(client);
                    state.connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Ok(FaultyProxy { address, shared })
    }

    /// Its URL.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How the S3 server behind it is reached.
    pub fn client_options(&self) -> ObjectOptions {
        options_for(self.endpoint())
    }

    /// Requests so far.
    pub fn request_count(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// The ranges of bytes that were asked for since this was last called, the first thousand, and when: `bytes=0-99`.
    pub fn take_range_headers(&self) -> Vec<(Instant, String)> {
        std::mem::take(&mut *self.shared.ranges.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until nothing is under way of clients, all of which have ended: what they have sent has reached the server, and
    /// the server has answered.
    ///
    /// # Errors
    /// Those of the system.
    pub fn wait_for_all_disconnects(&self) -> io::Result<()> {
        // Connections are accepted in their order. So when this one has ended, all earlier ones are counted.
        let mut last = TcpStream::connect(self.address)?;
        last.shutdown(Shutdown::Write)?;
        last.read_to_end(&mut Vec::new())?;
        while self.shared.connections.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Requests that have failed.
    pub fn injected_failure_count(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }
}

impl Drop for FaultyProxy {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::Relaxed);
        // The thread that waits for connections gets a last one.
        let _ = TcpStream::connect(self.address);
    }
}

/// A number that looks random, and depends on the two alone.
fn mix(seed: u64, number: u64) -> u64 {
    let mut x = seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for _ in 0..3 {
        x ^= x >> 30;
        x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^= x >> 27;
    }
    x
}

impl ProxyState {
    fn fate(&self) -> Fate {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let random = mix(self.faults.seed, number);
        if random % 1000 >= self.faults.per_mille {
            return Fate::Answered;
        }
        self.failures.fetch_add(1, Ordering::Relaxed);
        FAILURES[(random / 1000 % FAILURES.len() as u64) as usize]
    }

    fn keep_range(&self, request: &Message) {
        let head = String::from_utf8_lossy(&request.head);
        let range = head.split("\r\n").find(|line| is_field(line, "range")).and_then(|line| line.split_once(':'));
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, range)) = range
            && ranges.len() < MAX_RANGES
        {
            ranges.push((Instant::now(), range.trim().to_owned()));
        }
    }

    /// Answers the requests of a connection until it ends.
    fn serve(&self, client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut reader = BufReader::new(client.try_clone()?);
        let mut client = client;
        while let Some(request) = read_request(&mut reader, &mut client)? {
            let fate = self.fate();
            self.keep_range(&request);
            std::thread::sleep(self.faults.latency);
            let answer = match fate {
                Fate::InternalError => failure("500 Internal Server Error", "InternalError"),
                Fate::SlowDown => failure("503 Slow Down", "SlowDown"),
                Fate::Lost => return Ok(()),
                Fate::Answered | Fate::AnswerLost | Fate::HalfAnswer => self.ask(&request)?,
            };
            match fate {
                Fate::AnswerLost => return Ok(()),
                Fate::HalfAnswer => return client.write_all(&answer.first_half()),
                _ => {
                    client.write_all(&answer.head)?;
                    client.write_all(&answer.body)?;
                }
            }
        }
        Ok(())
    }

    /// What the server answers.
    fn ask(&self, request: &Message) -> io::Result<Message> {
        let mut server = TcpStream::connect(self.server)?;
        server.set_nodelay(true)?;
        let head = String::from_utf8_lossy(&request.head).into_owned();
        let drops_conditions = self.faults.drops_write_conditions && head.starts_with("PUT ");
        let is_kept = |line: &&str| {
            let is_condition = is_field(line, "if-match") || is_field(line, "if-none-match");
            !(is_field(line, "connection") || is_field(line, "expect") || drops_conditions && is_condition)
        };
        let lines = head.trim_end().split("\r\n").filter(is_kept);
        let head = lines.chain(["Connection: close"]).collect::<Vec<_>>().join("\r\n");
        server.write_all(format!("{head}\r\n\r\n").as_bytes())?;
        server.write_all(&request.body)?;
        let mut reader = BufReader::new(server);
        let head = read_head(&mut reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut body = Vec::new();
        reader.read_to_end(&mut body)?;
        let text = String::from_utf8_lossy(&head).into_owned();
        // The connection to the client stays, so the length is said. An answer to HEAD has the length of another body.
        let is_head = request.head.starts_with(b"HEAD ");
        let kept = |line: &&str| {
            !is_field(line, "connection")
                && !is_field(line, "transfer-encoding")
                && (is_head || !is_field(line, "content-length"))
        };
        if text.split("\r\n").any(|line| is_field(line, "transfer-encoding")) {
            body = without_chunks(&body);
        }
        let mut lines: Vec<String> = text.trim_end().split("\r\n").filter(kept).map(str::to_owned).collect();
        if !is_head && !text.starts_with("HTTP/1.1 304") && !text.starts_with("HTTP/1.1 204") {
            lines.push(format!("Content-Length: {}", body.len()));
        }
        Ok(Message { head: format!("{}\r\n\r\n", lines.join("\r\n")).into_bytes(), body })
    }
}

fn failure(status: &str, code: &str) -> Message {
    let body = format!("<Error><Code>{code}</Code><Message>please try again</Message></Error>").into_bytes();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {}\r\n\r\n", body.len());
    Message { head: head.into_bytes(), body }
}

pub(super) fn is_field(line: &str, name: &str) -> bool {
    line.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name))
}

/// The next head, with its blank line; `None` at the end of the connection.
pub(super) fn read_head(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    let mut limited = reader.take(MAX_HEAD_BYTES);
    while !head.ends_with(b"\r\n\r\n") {
        if limited.read_until(b'\n', &mut head)? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(head))
}

fn read_request(reader: &mut impl BufRead, client: &mut TcpStream) -> io::Result<Option<Message>> {
    let Some(head) = read_head(reader)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&head).into_owned();
    let value = |name: &str| text.split("\r\n").find(|line| is_field(line, name)).and_then(|line| line.split_once(':'));
    if value("expect").is_some() {
        client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let len = value("content-length").and_then(|(_, len)| len.trim().parse::<u64>().ok()).unwrap_or(0);
    let mut body = Vec::new();
    reader.take(len).read_to_end(&mut body)?;
    Ok(Some(Message { head, body }))
}

/// A body that comes in chunks, put together.
fn without_chunks(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|pair| pair == b"\r\n") {
        let size = String::from_utf8_lossy(&body[..end]);
        let Ok(size) = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16) else { break };
        let Some(chunk) = body.get(end + 2..end + 2 + size) else { break };
        if size == 0 {
            break;
        }
        whole.extend_from_slice(chunk);
        body = body.get(end + 4 + size..).unwrap_or_default();
    }
    whole
}
