//! Many clients that are slow, that vanish, or that send without end, while another one follows a file.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use h5live::File;
use serde_json::{Value as Json, json};

use crate::client::{Events, Served, connect, head, make, shape_in};

/// How many clients there are of all kinds; `make attack-serve` has more.
const CLIENTS: usize = 200;
/// How long the server waits for a client here.
const CLIENT_TIME: Duration = Duration::from_secs(1);
/// No client that the server is to leave stays so long.
const MAX_STAY: Duration = Duration::from_secs(60);

fn number_of(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// What a client does to the server.
#[derive(Debug, Clone, Copy)]
enum Conduct {
    /// The head of a request, a byte at a time.
    SlowHead,
    /// Headers without end.
    HeaderFlood,
    /// The body that was announced, a byte at a time.
    SlowBody,
    /// A body of parts, without end.
    EndlessBody,
    /// Takes a large answer a byte at a time.
    SlowReader,
    /// Asks for a large answer, and goes.
    VanishingReader,
    /// Listens to events, and goes.
    VanishingListener,
    /// Begins a request, and goes.
    VanishingHead,
}

const CONDUCTS: [Conduct; 8] = [
    Conduct::SlowHead,
    Conduct::HeaderFlood,
    Conduct::SlowBody,
    Conduct::EndlessBody,
    Conduct::SlowReader,
    Conduct::VanishingReader,
    Conduct::VanishingListener,
    Conduct::VanishingHead,
];

const LARGE: &str = "/data?file=large.h5&path=/data&format=bin";
const EVENTS: &str = "/events?file=live.h5";

/// A client that means no good.
struct HostileClient {
    conduct: Conduct,
    stream: TcpStream,
    /// What it sends, as far as it is not yet sent; the last byte again and again.
    unsent: Vec<u8>,
}

impl HostileClient {
    fn new(conduct: Conduct, at: SocketAddr) -> Self {
        let mut stream = connect(at);
        let posted = |headers: &[(&str, &str)]| head(at, "POST", "/groups/x/links?domain=/live.h5", headers);
        let (sent, unsent) = match conduct {
            Conduct::SlowHead => (String::new(), head(at, "GET", &format!("/meta?file={}", "x".repeat(9999)), &[])),
            Conduct::HeaderFlood => ("GET /healthz HTTP/1.1\r\n".into(), "x-y: z\r\n".repeat(20_000)),
            Conduct::SlowBody => (posted(&[("content-length", "1000000")]), "[".repeat(1_000_000)),
            Conduct::EndlessBody => (posted(&[("transfer-encoding", "chunked")]), "1\r\n[\r\n".repeat(20_000)),
            Conduct::SlowReader | Conduct::VanishingReader => (head(at, "GET", LARGE, &[]), String::new()),
            Conduct::VanishingListener => (head(at, "GET", EVENTS, &[]), String::new()),
            Conduct::VanishingHead => ("GET /meta?fi".into(), String::new()),
        };
        stream.write_all(sent.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        HostileClient { conduct, stream, unsent: unsent.into_bytes() }
    }

    /// Whether the server is to leave it, and it learns nothing of that: much that was sent waits in the system.
    fn stays(&self) -> bool {
        matches!(self.conduct, Conduct::SlowReader)
    }

    /// Does a little. Returns whether it is still there.
    fn go_on(&mut self) -> bool {
        let stays = |done: std::io::Result<usize>| match done {
            Ok(bytes) => bytes > 0,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
        let part = match self.conduct {
            Conduct::VanishingReader | Conduct::VanishingListener | Conduct::VanishingHead => return false,
            Conduct::SlowReader => {
                let _ = self.stream.read(&mut [0]);
                return true;
            }
            Conduct::SlowHead | Conduct::SlowBody => 1,
            Conduct::HeaderFlood | Conduct::EndlessBody => 4096,
        };
        let part = part.min(self.unsent.len());
        let sent = self.stream.write(&self.unsent[..part]);
        self.unsent.drain(..*sent.as_ref().unwrap_or(&0));
        // Its answer tells it that the server has had enough; the end of the connection does, too.
        !self.unsent.is_empty() && stays(sent) && !matches!(self.stream.read(&mut [0; 4096]), Ok(0))
    }
}

fn gauge(served: &Served, name: &str) -> u64 {
    let text = served.get("/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("h5live_{name} ")));
    line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
}

/// An answer in JSON. Asks again while the server has no room, as it says.
fn patient_json(served: &Served, path: &str) -> Json {
    loop {
        let response = served.get(path);
        if response.status != 503 {
            assert_eq!(response.status, 200, "{path}: {}", response.text());
            return response.json();
        }
    }
}

#[test]
fn hostile_clients_leave_nothing_behind_and_stop_nobody() {
    let count = number_of("H5LIVE_ATTACK_CLIENTS", CLIENTS);
    let served = Served::with(|config| {
        config.limits.slow_client_timeout = CLIENT_TIME;
        config.limits.max_connections = count + 100;
        config.limits.max_total_answer_bytes = 64 << 20;
    });
    make(&served.file("large.h5"), |file| {
        file.new_dataset::<u8>().shape(&[16 << 20]).create("data")?.write(&vec![1u8; 16 << 20])
    });
    let file = File::create(served.file("live.h5")).unwrap();
    let rows = file.new_dataset::<u64>().unlimited_rows(&[]).create("rows").unwrap();
    file.start_swmr().unwrap();
    let mut events = Events::of(&served, "file=live.h5", None);
    events.next().unwrap();
    let (address, begun) = (served.address(), Instant::now());
    let new = |n: usize| HostileClient::new(CONDUCTS[n % CONDUCTS.len()], address);
    let mut clients: Vec<_> = (0..count).map(new).collect();
    let mut number = 0;
    // The follower, and the connection that asks.
    let rest = [("connections", 2), ("event_clients", 1), ("answer_bytes_in_memory", 0)];
    let is_over = || rest.iter().all(|(name, number)| gauge(&served, name) == *number);
    while !clients.iter().all(HostileClient::stays) || !is_over() {
        let left = || clients.iter().map(|client| client.conduct).collect::<Vec<_>>();
        assert!(begun.elapsed() < MAX_STAY, "still there: {:?}\n{}", left(), served.get("/metrics").text());
        // Who follows the file sees each flush, and reads what it announces.
        rows.append(&[number * 3]).unwrap();
        rows.flush().unwrap();
        events.wait_for(|message| shape_in(message, "/rows") == Some(vec![number + 1]));
        assert_eq!(
            patient_json(&served, &format!("/data?file=live.h5&path=/rows&selection={number}")),
            json!(number * 3)
        );
        number += 1;
        clients.retain_mut(HostileClient::go_on);
    }
    assert_eq!(gauge(&served, "watched_files"), 1);
    println!("{count} clients, {number} flushes followed meanwhile, {} ms", begun.elapsed().as_millis());
}

#[test]
fn a_connection_that_asks_nothing_more_is_closed() {
    let served = Served::with(|config| config.limits.slow_client_timeout = Duration::from_millis(300));
    let mut stream = connect(served.address());
    let asked = head(served.address(), "GET", "/healthz", &[]).replace("connection: close\r\n", "");
    stream.write_all(asked.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nok"), "{answer}");
}
