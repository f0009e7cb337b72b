//! What a server is to do.

use std::net::{Ipv4Addr, SocketAddr};
#[cfg(unix)]
use std::path::PathBuf;
use std::time::Duration;

use h5live::{Location, Options};

#[cfg(feature = "tls")]
use crate::tls::TlsConfig;
use crate::users::Users;

/// What a server is to do.
#[derive(Debug, Clone)]
pub struct Config {
    /// Folders, and locations of files and stores, which clients see. Nothing else is served.
    pub roots: Vec<Location>,
    /// Where it listens. Port 0 is any free port.
    pub bind: SocketAddr,
    /// A socket of the file system, at which it listens in place of `bind`. Only the user of this process can connect.
    #[cfg(unix)]
    pub socket: Option<PathBuf>,
    /// What clients have to know; `None` makes a new one, unless there are users.
    pub fixed_token: Option<String>,
    /// Who may read, beside those who know the token.
    pub users: Option<Users>,
    /// Whether clients need no token. Allowed on loopback only.
    pub without_authentication: bool,
    /// The name and port, as clients have it, of a proxy that does TLS in front of this server, if there is one. Without
    /// one, and without TLS of its own, the server listens on loopback only.
    pub tls_proxy_host: Option<String>,
    /// Origins whose pages may read what is served, as `https://lab.example`. They have to show the token.
    pub allowed_origins: Vec<String>,
    /// TLS of the server itself.
    #[cfg(feature = "tls")]
    pub tls: Option<TlsConfig>,
    /// How files are opened.
    pub open_options: Options,
    /// The limits.
    pub limits: ServerLimits,
    /// How requests are logged on standard error; `None`: not at all.
    pub request_log: Option<LogFormat>,
}

impl Config {
    /// A server of these folders and locations on the port 8080 of the loopback device.
    pub fn new(roots: impl IntoIterator<Item = Location>) -> Self {
        Config {
            roots: roots.into_iter().collect(),
            bind: (Ipv4Addr::LOCALHOST, 8080).into(),
            #[cfg(unix)]
            socket: None,
            fixed_token: None,
            users: None,
            without_authentication: false,
            tls_proxy_host: None,
            allowed_origins: Vec::new(),
            #[cfg(feature = "tls")]
            tls: None,
            open_options: Options::default(),
            limits: ServerLimits::default(),
            request_log: None,
        }
    }
}

/// How requests are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// A line of words.
    Text,
    /// A line of JSON.
    Json,
}

/// What one client, and all together, may take.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Bytes of one answer.
    pub max_answer_bytes: u64,
    /// Bytes of all answers that are in memory.
    pub max_total_answer_bytes: u64,
    /// Requests that read at the same time.
    pub max_concurrent_reads: usize,
    /// Requests that wait for it. One more is told to come again.
    pub max_waiting_reads: usize,
    /// Connections.
    pub max_connections: usize,
    /// Clients of events.
    pub max_event_clients: usize,
    /// Files that are watched for events at the same time.
    pub max_watches: usize,
    /// Objects that one watch looks at.
    pub max_objects_per_watch: usize,
    /// How long a request may take until its answer begins.
    pub answer_start_timeout: Duration,
    /// How long a client may take for the head of a request, and let the server wait with an answer. What it takes gives it
    /// more: a second for 64 KiB.
    pub slow_client_timeout: Duration,
    /// Open files that are kept.
    pub max_kept_file_sessions: usize,
    /// Entries of a listing.
    pub max_listed_entries: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        ServerLimits {
            max_answer_bytes: 256 << 20,
            max_total_answer_bytes: 1 << 30,
            max_concurrent_reads: 2 * threads,
            max_waiting_reads: 256,
            max_connections: 2048,
            max_event_clients: 1024,
            max_watches: 64,
            max_objects_per_watch: 4096,
            answer_start_timeout: Duration::from_secs(30),
            slow_client_timeout: Duration::from_secs(30),
            max_kept_file_sessions: 64,
            max_listed_entries: 10_000,
        }
    }
}
