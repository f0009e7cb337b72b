//! `h5live serve`: files in the browser, and over HTTP, while they are being written.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use h5live::Location;
use h5live_serve::{Config, LogFormat, Server, StartError, Users};

use crate::error::{CommandOutcome, Error, Result};
use crate::number_arg::byte_count;
use crate::output::StdoutWriter;

/// The variable with a token, so that it is not in the list of processes.
const TOKEN_VARIABLE: &str = "H5LIVE_TOKEN";

/// Shows files in the browser, and serves them over HTTP, while they are being written
///
/// Prints an address with a token: whoever has it may read what is served, and nothing else can be reached. h5grove's API is
/// at /meta, /attr, /data, /stats and /paths, events are at /events.
#[derive(Debug, clap::Args)]
pub struct ServeCommand {
    /// Folders, files and other stores; by default the folder where you are
    #[arg(value_name = "FOLDER or LOCATION", default_value = ".")]
    roots: Vec<Location>,
    /// Where to listen. Port 0 is any free port
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS:PORT", value_parser = address)]
    bind: SocketAddr,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    /// Let every user and program of this machine read, without a token
    #[arg(long)]
    no_token: bool,
    /// The name (and port) under which clients reach a proxy that does TLS in front of this server. Without one, it listens
    /// on this machine alone
    #[arg(long, value_name = "HOST")]
    behind_proxy: Option<String>,
    /// Let pages of this origin read, such as https://lab.example; may be given several times. They have to show the token
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Listen at a socket of the file system, to which only you can connect, in place of an address
    #[cfg(unix)]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["bind", "open"])]
    socket: Option<PathBuf>,
    /// A file with users who may read: lines NAME:HASH, as `htpasswd -B` writes them, or NAME:sha256:HEX for a token. Then there is
    /// no other token, unless H5LIVE_TOKEN has one
    #[arg(long, value_name = "FILE", conflicts_with = "no_token")]
    users: Option<PathBuf>,
    #[cfg(feature = "serve-tls")]
    #[command(flatten)]
    tls: TlsArgs,
    /// Most bytes of one answer
    #[arg(long, default_value = "256MiB", value_name = "SIZE", value_parser = byte_count)]
    max_answer: u64,
    /// Print a line for each request
    #[arg(long, value_enum, value_name = "FORM")]
    log: Option<LogForm>,
}

/// TLS of the server itself.
#[cfg(feature = "serve-tls")]
#[derive(Debug, clap::Args)]
struct TlsArgs {
    /// Do TLS with this certificate, and those above it (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "tls_host")]
    tls_certificate: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// The name (and port) of the certificate by which clients call this server
    #[arg(long, value_name = "HOST", requires = "tls_certificate", conflicts_with = "behind_proxy")]
    tls_host: Option<String>,
}

#[cfg(feature = "serve-tls")]
impl TlsArgs {
    fn config(&self) -> Result<Option<h5live_serve::TlsConfig>> {
        let (Some(certificate), Some(key), Some(host)) = (&self.tls_certificate, &self.tls_key, &self.tls_host) else {
            return Ok(None);
        };
        let made = h5live_serve::TlsConfig::from_pem_files(certificate, key, host);
        made.map(Some).map_err(|source| Error::Serve(Box::new(h5live_serve::StartError::Tls(source))))
    }
}

/// The form of a log.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogForm {
    /// Words
    Text,
    /// JSON
    Json,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "an address and a port are 127.0.0.1:8080 or [::1]:8080".to_owned())
}

impl ServeCommand {
    /// Runs the command, until the process is told to end.
    ///
    /// # Errors
    /// [`Error::Serve`].
    pub fn run(self) -> Result<CommandOutcome> {
        let mut config = Config::new(self.roots);
        config.bind = self.bind;
        config.without_authentication = self.no_token;
        config.fixed_token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        config.tls_proxy_host = self.behind_proxy;
        config.allowed_origins = self.allow_origin;
        #[cfg(unix)]
        {
            config.socket = self.socket;
        }
        config.users = self.users.as_deref().map(read_users).transpose()?;
        #[cfg(feature = "serve-tls")]
        {
            config.tls = self.tls.config()?;
        }
        config.limits.max_answer_bytes = self.max_answer;
        config.open_options = crate::open::command_line_options();
        config.request_log = self.log.map(|form| match form {
            LogForm::Text => LogFormat::Text,
            LogForm::Json => LogFormat::Json,
        });
        let server = Server::start(config).map_err(|source| Error::Serve(Box::new(source)))?;
        let signals = server.catch_end_signals();
        let mut out = StdoutWriter::stdout();
        out.line(server.url_with_token())?;
        out.flush()?;
        if self.open {
            open_browser(server.url_with_token());
        }
        server.run_until_signal(signals);
        Ok(CommandOutcome::Clean)
    }
}

fn read_users(path: &Path) -> Result<Users> {
    let failed = |source: StartError| Error::Serve(Box::new(source));
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|source| failed(StartError::ReadUsersFile { file: file.clone(), source }))?;
    Users::parse(&text).map_err(|source| failed(StartError::ParseUsersFile { file, source }))
}

/// Opens a browser, if there is one. The address was printed in any case.
fn open_browser(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started =
        Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Err(error) = started {
        eprintln!("h5live: {program}: {error}");
    }
}
