//! HDF5 files and other stores over HTTP, while they are being written: the APIs of h5grove and HSDS, events, and a page that draws what
//! is recorded.
//!
//! ```no_run
//! use h5live_serve::{Config, Server};
//!
//! let server = Server::start(Config::new(["/data/runs".into()]))?;
//! println!("{}", server.url_with_token());
//! let signals = server.catch_end_signals();
//! server.run_until_signal(signals);
//! # Ok::<(), h5live_serve::StartError>(())
//! ```
//!
//! What a client names is found by `catalog`, opened by `sessions` and read in `pool`. `grove` has h5grove's answers, `hsds`
//! those of HSDS, `store_api` those that h5live's own client asks for, and `watches` looks at files for `subscribe`, which sends events.

#![deny(missing_debug_implementations)]

mod access;
mod answer;
mod auth;
mod body;
mod catalog;
mod config;
mod confine;
mod connections;
mod cors;
mod domain_facts;
mod etag;
mod fault;
mod grove;
mod hsds;
mod listing;
mod metrics;
mod metrics_text;
mod openapi;
mod page;
mod pool;
mod query;
mod routes;
mod search;
mod server;
mod sessions;
#[cfg(unix)]
mod socket;
mod state;
mod store_api;
mod stream;
mod subscribe;
#[cfg(feature = "tls")]
mod tls;
mod users;
mod watches;
mod writers;

pub use catalog::Catalog;
pub use config::{Config, LogFormat, ServerLimits};
pub use server::{EndSignals, Server, StartError};
#[cfg(feature = "tls")]
pub use tls::{TlsConfig, TlsError};
pub use users::{Users, UsersParseError};
