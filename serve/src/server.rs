//! A running server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::access::{self, Access, ServerNames};
use crate::catalog::Catalog;
use crate::config::Config;
use crate::connections::Listening;
use crate::metrics::Metrics;
use crate::pool::{MemoryBudget, ReadPool};
use crate::sessions::FileSessions;
#[cfg(unix)]
use crate::socket::SocketListener;
use crate::state::AppState;
use crate::users::UsersParseError;
use crate::watches::Watches;
use crate::{connections, cors, routes};

/// How often it is looked for sessions that nobody uses.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);
/// How long the end waits for reads that have begun.
const END_TIME: Duration = Duration::from_secs(5);

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A folder or location cannot be served.
    #[error("{0}")]
    UnusableRoot(#[source] io::Error),
    /// It is no origin of a page.
    #[error(
        "{0:?} is no origin: https://lab.example is one, with a port where it is not the usual one, and without a path"
    )]
    InvalidOrigin(String),
    /// It cannot listen there.
    #[error("cannot listen at {at}: {source}")]
    Bind {
        /// The address, or the path of a socket.
        at: String,
        /// The cause.
        source: io::Error,
    },
    /// Others than this machine could listen to the token.
    #[error(
        "{0} is not an address of this machine alone: without TLS, others on the way could read passwords and tokens; let a \
         proxy in front of it do TLS (--behind-proxy HOST), or this server, if it is built with the feature serve-tls \
         (--tls-certificate)"
    )]
    TlsRequired(SocketAddr),
    /// A file with users cannot be read.
    #[error("{file}: {source}")]
    ReadUsersFile {
        /// The file.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// A file with users makes no sense.
    #[error("{file}: {source}")]
    ParseUsersFile {
        /// The file.
        file: String,
        /// The line, and why.
        source: UsersParseError,
    },
    /// The certificate or the key is of no use.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] crate::tls::TlsError),
    /// A server without a token, for more than this machine.
    #[error("a server without a token listens on loopback only")]
    AuthenticationRequired,
    /// The system has no threads, or no random numbers.
    #[error("the server cannot start: {0}")]
    System(#[source] io::Error),
}

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub struct Server {
    runtime: Option<Runtime>,
    names: ServerNames,
    url: String,
    stop: watch::Sender<bool>,
    serving: Option<JoinHandle<()>>,
    state: Arc<AppState>,
}

impl Server {
    /// Starts a server, in threads of its own.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(config: Config) -> Result<Self, StartError> {
        check_exposure(&config)?;
        if let Some(wrong) = config.allowed_origins.iter().find(|origin| !cors::is_origin(origin)) {
            return Err(StartError::InvalidOrigin(wrong.clone()));
        }
        let catalog = Catalog::new(&config.roots).map_err(StartError::UnusableRoot)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(config.limits.max_concurrent_reads + 4)
            .thread_name("h5live-serve")
            .enable_io()
            .enable_time()
            .build()
            .map_err(StartError::System)?;
        let (listening, names) = runtime.block_on(listen(&config))?;
        let token = match (config.without_authentication, config.fixed_token, &config.users) {
            (true, _, _) => None,
            (false, Some(token), _) => Some(token),
            (false, None, Some(_)) => None,
            (false, None, None) => Some(access::new_token().map_err(StartError::System)?),
        };
        let access = Access::new(token, config.users.filter(|_| !config.without_authentication), &names);
        let url = access.url_with_token(&names);
        let folders = catalog.folders().clone();
        let options = config.open_options.raw_files(false).filter_linked_files(move |at| folders.contains_location(at));
        let sessions = Arc::new(FileSessions::new(options, config.limits.max_kept_file_sessions));
        let (stop, stopped) = watch::channel(false);
        let state = Arc::new(AppState {
            catalog,
            pool: ReadPool::new(&config.limits),
            memory: Arc::new(MemoryBudget::new(&config.limits)),
            watches: Watches::new(sessions.clone(), &config.limits, stopped.clone()),
            sessions,
            access,
            allowed_origins: config.allowed_origins,
            limits: config.limits,
            metrics: Metrics::default(),
            log: config.request_log,
            started_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        });
        let router = routes::router(state.clone());
        let serving = runtime.spawn(connections::serve(listening, router, state.clone(), stopped));
        runtime.spawn(close_unused_sessions(state.clone()));
        Ok(Server { runtime: Some(runtime), names, url, stop, serving: Some(serving), state })
    }

    /// Where it listens; `None` if that is a socket of the file system.
    pub fn address(&self) -> Option<SocketAddr> {
        self.names.address
    }

    /// The address for a browser, with the token.
    pub fn url_with_token(&self) -> &str {
        &self.url
    }

    /// From now on, what would end the process at once is kept for [`Server::run_until_signal`]. Call it before others
    /// learn of the server.
    pub fn catch_end_signals(&self) -> EndSignals {
        let _runtime = self.runtime.as_ref().map(Runtime::enter);
        EndSignals::new()
    }

    /// Serves until the process is told to end (Ctrl-C, SIGTERM), and ends gracefully.
    pub fn run_until_signal(self, signals: EndSignals) {
        if let Some(runtime) = &self.runtime {
            runtime.block_on(signals.wait());
        }
        self.stop();
    }

    /// Ends: no more connections, and answers that are being sent are sent to their end, within a few seconds.
    pub fn stop(mut self) {
        self.end(END_TIME);
    }

    fn end(&mut self, time: Duration) {
        let _ = self.stop.send(true);
        let Some(runtime) = self.runtime.take() else { return };
        if let Some(serving) = self.serving.take() {
            let _ = runtime.block_on(async { tokio::time::timeout(time, serving).await });
        }
        runtime.shutdown_timeout(time);
        self.state.watches.join();
        self.state.sessions.release_all();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Duration::from_secs(1));
    }
}

/// Off this machine, nothing secret goes without TLS.
fn check_exposure(config: &Config) -> Result<(), StartError> {
    #[cfg(unix)]
    if config.socket.is_some() {
        return Ok(());
    }
    #[cfg(feature = "tls")]
    let has_tls = config.tls.is_some() || config.tls_proxy_host.is_some();
    #[cfg(not(feature = "tls"))]
    let has_tls = config.tls_proxy_host.is_some();
    match config.bind.ip().is_loopback() {
        true => Ok(()),
        false if config.without_authentication => Err(StartError::AuthenticationRequired),
        false if has_tls => Ok(()),
        false => Err(StartError::TlsRequired(config.bind)),
    }
}

/// Listens where it is said, and returns by which names clients call the server then.
async fn listen(config: &Config) -> Result<(Listening, ServerNames), StartError> {
    let mut names = ServerNames { tls_host: config.tls_proxy_host.clone(), ..ServerNames::default() };
    #[cfg(unix)]
    if let Some(path) = &config.socket {
        let bound = SocketListener::bind_owner_only(path);
        let bound = bound.map_err(|source| StartError::Bind { at: path.display().to_string(), source })?;
        return Ok((Listening::Socket(bound), names));
    }
    let failed = |source| StartError::Bind { at: config.bind.to_string(), source };
    let listener = TcpListener::bind(config.bind).await.map_err(failed)?;
    names.address = Some(listener.local_addr().map_err(failed)?);
    #[cfg(feature = "tls")]
    if let Some(tls) = &config.tls {
        (names.tls_host, names.is_tls) = (Some(tls.host().to_owned()), true);
        return Ok((Listening::Tls(listener, tls.acceptor()), names));
    }
    Ok((Listening::Tcp(listener), names))
}

async fn close_unused_sessions(state: Arc<AppState>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let sessions = state.sessions.clone();
        let _ = tokio::task::spawn_blocking(move || sessions.close_idle()).await;
    }
}

/// Tells when the process is told to end: by Ctrl-C or SIGTERM, from when this was made.
#[derive(Debug)]
pub struct EndSignals {
    #[cfg(unix)]
    signals: Option<[tokio::signal::unix::Signal; 2]>,
}

impl EndSignals {
    #[cfg(unix)]
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let of = |kind| signal(kind).ok();
        EndSignals { signals: of(SignalKind::terminate()).zip(of(SignalKind::interrupt())).map(|(a, b)| [a, b]) }
    }

    #[cfg(not(unix))]
    fn new() -> Self {
        EndSignals {}
    }

    #[cfg(unix)]
    async fn wait(self) {
        let Some([mut terminate, mut interrupt]) = self.signals else { return std::future::pending().await };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn wait(self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
