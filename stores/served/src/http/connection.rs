//! Connections to a server, with TLS where that is asked for.

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::error::{HttpError, failure};
use super::runtime::spawn;
use crate::location::ServedLocation;

/// How TLS is done.
#[derive(Clone, Default)]
pub(crate) struct TlsSettings {
    #[cfg(feature = "tls")]
    config: Option<std::sync::Arc<tokio_rustls::rustls::ClientConfig>>,
}

impl std::fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsSettings")
    }
}

impl TlsSettings {
    /// With the certificates that the system trusts.
    ///
    /// # Errors
    /// If they cannot be read, or this was built without TLS.
    #[cfg(feature = "tls")]
    pub fn of_system() -> Result<Self, String> {
        use rustls_platform_verifier::BuilderVerifierExt;
        use tokio_rustls::rustls::{ClientConfig, crypto::ring};

        let builder = ClientConfig::builder_with_provider(std::sync::Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let builder = builder.with_platform_verifier().map_err(|error| error.to_string())?;
        Ok(TlsSettings { config: Some(std::sync::Arc::new(builder.with_no_client_auth())) })
    }

    /// With the certificates that the system trusts.
    ///
    /// # Errors
    /// Always: this was built without TLS.
    #[cfg(not(feature = "tls"))]
    pub fn of_system() -> Result<Self, String> {
        Err("h5live+https needs the feature \"remote\", without which this was built".to_owned())
    }
}

/// A connection that is driven by the runtime until it ends.
pub(super) async fn connect(server: &ServedLocation, tls: &TlsSettings) -> Result<SendRequest<Full<Bytes>>, HttpError> {
    let unreachable = |error: &dyn std::fmt::Display| HttpError::Unreachable(error.to_string());
    let stream = TcpStream::connect((server.host.as_str(), server.port)).await.map_err(|error| unreachable(&error))?;
    // Requests are small, and each is waited for.
    let _ = stream.set_nodelay(true);
    #[cfg(feature = "tls")]
    if let Some(config) = &tls.config {
        use tokio_rustls::rustls::pki_types::ServerName;

        let name = ServerName::try_from(server.host.clone()).map_err(|error| unreachable(&error))?;
        let connector = tokio_rustls::TlsConnector::from(config.clone());
        let stream = connector.connect(name, stream).await.map_err(|error| unreachable(&error))?;
        return drive(stream).await;
    }
    let _ = tls;
    drive(stream).await
}

async fn drive(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
) -> Result<SendRequest<Full<Bytes>>, HttpError> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| failure(&error))?;
    let driven = spawn(async move {
        // Whoever waits for an answer is told of the error.
        let _ = connection.await;
    });
    driven.map_err(|error| HttpError::Unreachable(error.to_string()))?;
    Ok(sender)
}
