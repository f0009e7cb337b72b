//! The options of served files.

use std::time::Duration;

use h5live_model::settings;

settings! {
    connector "h5live+http";
    /// How the files of an `h5live serve` are read.
    pub struct Served {
        /// The token of the server's address; if it is empty, the variable H5LIVE_TOKEN.
        token: String = String::new(),
        /// A PEM file with certificates that are trusted beside those of the system, as of a server that signed its own.
        certificate: String = String::new(),
        /// The longest time of one wait for the server.
        timeout: Duration = Duration::from_secs(40),
        /// How long it is tried to reach a server again that was reached before.
        reconnect: Duration = Duration::from_secs(30),
    }
}
