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
    /// With the certificates that the system trusts, and those of a PEM file, if one is named.
    ///
    /// # Errors
    /// If they cannot be read, or this was built without TLS.
    #[cfg(feature = "tls")]
    pub fn with_system_and_pem_roots(pem_path: &str) -> Result<Self, String> {
        use rustls_platform_verifier::Verifier;
        use std::sync::Arc;
        use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject};
        use tokio_rustls::rustls::{ClientConfig, crypto::ring};

        let failed = |error: &dyn std::fmt::Display| match pem_path {
            "" => format!("the certificates of the system: {error}"),
            file => format!("{file}: {error}"),
        };
        let extra: Result<Vec<_>, _> = match pem_path {
            "" => Ok(Vec::new()),
            file => CertificateDer::pem_file_iter(file).and_then(Iterator::collect),
        };
        let extra = extra.map_err(|error| failed(&error))?;
        if extra.is_empty() && !pem_path.is_empty() {
            return Err(failed(&"there is no certificate in it"));
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(extra, provider.clone()).map_err(|error| failed(&error))?;
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| failed(&error))?.dangerous();
        let config = builder.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
        Ok(TlsSettings { config: Some(Arc::new(config)) })
    }

    /// With the certificates that the system trusts.
    ///
    /// # Errors
    /// Always: this was built without TLS.
    #[cfg(not(feature = "tls"))]
    pub fn with_system_and_pem_roots(_pem_path: &str) -> Result<Self, String> {
        Err("h5live+https needs the feature \"served-tls\" or \"remote\", without which this was built".to_owned())
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
        let stream = connector.connect(name, stream).await.map_err(|error| untrusted(&error))?;
        return drive(stream).await;
    }
    let _ = tls;
    drive(stream).await
}

/// Why TLS did not begin. A certificate that is not trusted is said with what may be done.
#[cfg(feature = "tls")]
fn untrusted(error: &std::io::Error) -> HttpError {
    use tokio_rustls::rustls::Error;

    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    HttpError::Unreachable(match inner {
        Some(Error::InvalidCertificate(_)) => {
            format!("{error}: if this server is to be trusted, name its certificate by the option certificate=FILE")
        }
        _ => error.to_string(),
    })
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
