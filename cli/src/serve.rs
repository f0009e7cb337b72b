//! `h5live serve`: files in the browser, and over HTTP, while they are being written.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use clap::ValueEnum;
use h5live::Location;
use h5live_serve::{Config, LogFormat, Server};

use crate::error::{Error, Outcome, Result};
use crate::number_arg::bytes;
use crate::output::Output;

/// The variable with a token, so that it is not in the list of processes.
const TOKEN_VARIABLE: &str = "H5LIVE_TOKEN";

/// Shows files in the browser, and serves them over HTTP, while they are being written
///
/// Prints an address with a token: whoever has it may read what is served, and nothing else can be reached. h5grove's API is
/// at /meta, /attr, /data, /stats and /paths, events are at /events.
#[derive(Debug, clap::Args)]
pub struct Serve {
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
    /// Most bytes of one answer
    #[arg(long, default_value = "256MiB", value_name = "SIZE", value_parser = bytes)]
    max_answer: u64,
    /// Print a line for each request
    #[arg(long, value_enum, value_name = "FORM")]
    log: Option<LogForm>,
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

impl Serve {
    /// Runs the command, until the process is told to end.
    ///
    /// # Errors
    /// [`Error::Serve`].
    pub fn run(self) -> Result<Outcome> {
        let mut config = Config::new(self.roots);
        config.bind = self.bind;
        config.without_token = self.no_token;
        config.token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        config.proxy_host = self.behind_proxy;
        config.limits.max_answer_bytes = self.max_answer;
        config.options = crate::open::options();
        config.log = self.log.map(|form| match form {
            LogForm::Text => LogFormat::Text,
            LogForm::Json => LogFormat::Json,
        });
        let server = Server::start(config).map_err(|source| Error::Serve(Box::new(source)))?;
        let mut out = Output::stdout();
        out.line(server.url())?;
        out.flush()?;
        if self.open {
            open_browser(server.url());
        }
        server.run_until_signal();
        Ok(Outcome::Clean)
    }
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
