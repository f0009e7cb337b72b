//! TLS of the server itself.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why TLS cannot be done so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file is no PEM file of its kind.
    #[error("{file}: {source}")]
    UnusablePemFile {
        /// The file.
        file: String,
        /// The cause.
        source: pem::Error,
    },
    /// The certificate and the key are not for each other, or of no use.
    #[error("the certificate and its key cannot be used: {0}")]
    UnusableCertificate(#[source] tokio_rustls::rustls::Error),
}

/// A certificate and its key.
#[derive(Clone)]
pub struct TlsConfig {
    config: Arc<ServerConfig>,
    host: String,
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfig").field("host", &self.host).finish_non_exhaustive()
    }
}

impl TlsConfig {
    /// The certificate, with those above it, and the key, from PEM files; and the name and port as clients have it.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn from_pem_files(certificate: &Path, key: &Path, host: &str) -> Result<Self, TlsError> {
        let failed = |file: &Path| {
            let file = file.display().to_string();
            |source| TlsError::UnusablePemFile { file, source }
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
        let chain = chain.map_err(failed(certificate))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(failed(key))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(TlsError::UnusableCertificate)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsConfig { config: Arc::new(config), host: host.to_owned() })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.clone())
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}
