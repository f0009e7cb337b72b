//! The page that draws the demo while it runs.

use h5live::Location;

use crate::error::Result;
#[cfg(feature = "serve")]
use crate::output::StdoutWriter;

/// A server of the demo's file, at any free port of this machine.
#[derive(Debug)]
pub struct DemoServer {
    #[cfg(feature = "serve")]
    server: h5live_serve::Server,
}

impl DemoServer {
    /// Starts the server, and prints its address. `None` if it is not wanted, or this program was built without it.
    ///
    /// # Errors
    /// [`crate::error::Error::Serve`].
    #[cfg(feature = "serve")]
    pub fn start(location: &Location, is_wanted: bool) -> Result<Option<Self>> {
        if !is_wanted {
            return Ok(None);
        }
        let mut config = h5live_serve::Config::new([location.clone()]);
        config.bind.set_port(0);
        let started = h5live_serve::Server::start(config);
        let server = started.map_err(|source| crate::error::Error::Serve(Box::new(source)))?;
        let mut out = StdoutWriter::stdout();
        out.line(format_args!("drawn at         {}", server.url_with_token()))?;
        out.flush()?;
        Ok(Some(DemoServer { server }))
    }

    /// As without a server.
    ///
    /// # Errors
    /// None.
    #[cfg(not(feature = "serve"))]
    pub fn start(_: &Location, _: bool) -> Result<Option<Self>> {
        Ok(None)
    }

    /// Its address.
    pub fn url_with_token(&self) -> &str {
        #[cfg(feature = "serve")]
        return self.server.url_with_token();
        #[cfg(not(feature = "serve"))]
        return "";
    }
}
