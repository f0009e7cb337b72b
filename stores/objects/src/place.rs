//! Places of objects, and the clients of their stores.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::ObjectStore;

use crate::attempts::RetriedBy;
use crate::client::ObjectClient;
use crate::error::{ObjectError, ObjectErrorKind, Result};
use crate::options::ObjectOptions;

/// A cloud that has buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cloud {
    /// S3, of Amazon or another server.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage, where a bucket is called container.
    Azure,
}

/// Where objects are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ObjectStoreLocation {
    /// A bucket.
    Bucket {
        /// Where it is.
        cloud: Cloud,
        /// Its name.
        bucket: String,
    },
    /// A folder of this machine.
    Folder {
        /// The folder, which is there.
        path: PathBuf,
        /// Whether what is written has reached the disk when a write has ended.
        is_durable: bool,
    },
    /// What is at a URL of a web server: the object with the empty key. A query is part of each request.
    WebFile {
        /// `https://host/run.h5`.
        url: String,
    },
}

/// Options that each place uses.
const ALWAYS_USED: [&str; 2] = ["request_timeout", "attempts"];

impl Cloud {
    /// The scheme of its URLs.
    pub fn scheme(self) -> &'static str {
        match self {
            Cloud::S3 => "s3",
            Cloud::Google => "gs",
            Cloud::Azure => "az",
        }
    }

    /// The cloud of a scheme.
    pub fn of_scheme(scheme: &str) -> Option<Self> {
        [Cloud::S3, Cloud::Google, Cloud::Azure].into_iter().find(|cloud| cloud.scheme() == scheme)
    }

    fn used_options(self) -> &'static [&'static str] {
        match self {
            Cloud::S3 => &["endpoint", "region", "allow_http", "anonymous"],
            Cloud::Google | Cloud::Azure => &["endpoint", "allow_http", "anonymous"],
        }
    }
}

impl ObjectStoreLocation {
    /// As errors name it. It has no secrets.
    pub fn display_name(&self) -> String {
        match self {
            ObjectStoreLocation::Bucket { cloud, bucket } => format!("{}://{bucket}", cloud.scheme()),
            ObjectStoreLocation::Folder { path, .. } => path.to_string_lossy().into_owned(),
            ObjectStoreLocation::WebFile { url } => {
                let bare = url.split(['?', '#']).next().unwrap_or_default();
                match bare.split_once("://") {
                    Some((scheme, rest)) => {
                        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                        format!("{scheme}://{}{path}", host.rsplit('@').next().unwrap_or(host))
                    }
                    None => bare.to_owned(),
                }
            }
        }
    }

    /// A client of it. An option that has no meaning for it is refused.
    ///
    /// # Errors
    /// [`ObjectErrorKind::InvalidInput`]; [`ObjectErrorKind::Unsupported`] if this program has no client of such places; for
    /// folders, those of the system.
    pub fn build_client(&self, options: &ObjectOptions) -> Result<ObjectClient> {
        self.build(options, RetriedBy::Client)
    }

    /// The store of the library, for another library: it makes requests again by itself. Options are refused as by
    /// [`ObjectStoreLocation::build_client`].
    ///
    /// # Errors
    /// As [`ObjectStoreLocation::build_client`].
    pub fn build_retrying_store(&self, options: &ObjectOptions) -> Result<Arc<dyn ObjectStore>> {
        Ok(self.build(options, RetriedBy::Library)?.store())
    }

    fn build(&self, options: &ObjectOptions, attempts: RetriedBy) -> Result<ObjectClient> {
        let name = self.display_name();
        let (scheme, used) = match self {
            ObjectStoreLocation::Bucket { cloud, .. } => (cloud.scheme(), cloud.used_options()),
            ObjectStoreLocation::Folder { .. } => ("a folder", [].as_slice()),
            ObjectStoreLocation::WebFile { .. } => ("a web server", [].as_slice()),
        };
        let used = [used, ALWAYS_USED.as_slice()].concat();
        options.check_used(&name, scheme, &used)?;
        if options.endpoint.contains('@') {
            let cause = "keys of an object store are taken from the environment only";
            return Err(ObjectError::new(ObjectErrorKind::InvalidInput, name, cause));
        }
        match self {
            ObjectStoreLocation::Folder { path, is_durable } => {
                Ok(ObjectClient::folder(path, *is_durable)?.with_limits(options.limits()))
            }
            ObjectStoreLocation::Bucket { cloud, bucket } => bucket_client(*cloud, bucket, name, options, attempts),
            ObjectStoreLocation::WebFile { url } => web_client(url, name, options, attempts),
        }
    }
}

#[allow(unused_variables, reason = "without features")]
fn bucket_client(
    cloud: Cloud,
    bucket: &str,
    name: String,
    options: &ObjectOptions,
    attempts: RetriedBy,
) -> Result<ObjectClient> {
    match cloud {
        #[cfg(feature = "aws")]
        Cloud::S3 => crate::cloud::s3(bucket, name, options, attempts),
        #[cfg(feature = "gcp")]
        Cloud::Google => crate::cloud::google(bucket, name, options, attempts),
        #[cfg(feature = "azure")]
        Cloud::Azure => crate::cloud::azure(bucket, name, options, attempts),
        #[allow(unreachable_patterns, reason = "with all features")]
        _ => Err(missing(name)),
    }
}

#[cfg(feature = "http")]
fn web_client(url: &str, name: String, options: &ObjectOptions, attempts: RetriedBy) -> Result<ObjectClient> {
    crate::cloud::web(url, name, options, attempts)
}

#[cfg(not(feature = "http"))]
fn web_client(_: &str, name: String, _: &ObjectOptions, _: RetriedBy) -> Result<ObjectClient> {
    Err(missing(name))
}

#[allow(dead_code, reason = "with all features")]
fn missing(name: String) -> ObjectError {
    ObjectError::new(ObjectErrorKind::Unsupported, name, "this program was built without a client of such places")
}
