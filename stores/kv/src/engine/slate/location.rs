//! Where a SlateDB store is: an object store, and the prefix of its objects.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, RetryConfig};

use super::failure::Failures;
use crate::engine::{EngineError, Result};

/// Most repetitions of a request, and how long they take together.
const MAX_REQUEST_RETRIES: usize = 6;
const MAX_REQUEST_TIME: Duration = Duration::from_secs(60);

/// A cloud that has buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cloud {
    /// S3, of Amazon or another server.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage, where a bucket is called container.
    Azure,
}

/// How a cloud is reached. What is not said here is taken from the environment, and keys always are.
#[derive(Debug, Clone, Default)]
pub struct CloudOptions {
    /// The URL of the server.
    pub endpoint: Option<String>,
    /// The region of the bucket.
    pub region: Option<String>,
    /// Whether the server may be reached without encryption.
    pub allow_http: bool,
}

/// Where a store is.
#[derive(Debug, Clone)]
pub struct SlateLocation {
    /// As messages name it.
    pub(super) name: Arc<str>,
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) prefix: ObjectPath,
    /// The folder, if it is one.
    folder: Option<PathBuf>,
}

impl SlateLocation {
    /// A folder of this machine. With `is_durable`, what is written has reached the disk.
    ///
    /// # Errors
    /// [`EngineError::Io`] if the folder cannot be made; [`EngineError::NotThere`] if it is not to be made.
    pub fn folder(folder: &Path, makes: bool, is_durable: bool) -> Result<Self> {
        if makes {
            fs::create_dir_all(folder).map_err(EngineError::io("the folder cannot be made"))?;
        }
        if !folder.is_dir() {
            return Err(EngineError::NotThere(folder.to_owned()));
        }
        let name: Arc<str> = folder.to_string_lossy().into();
        let store = LocalFileSystem::new_with_prefix(folder);
        let store = store.map_err(Failures(name.clone()).object("the folder cannot be opened"))?;
        Ok(SlateLocation {
            name,
            store: Arc::new(store.with_fsync(is_durable)),
            prefix: ObjectPath::default(),
            folder: Some(folder.to_owned()),
        })
    }

    /// Objects of a bucket whose names begin with a prefix.
    ///
    /// # Errors
    /// [`EngineError::Io`] if an option or the environment says something that cannot be.
    pub fn cloud(cloud: Cloud, bucket: &str, prefix: &str, options: &CloudOptions) -> Result<Self> {
        let name: Arc<str> = format!("{}://{bucket}/{prefix}", cloud.scheme()).into();
        let failures = Failures(name.clone());
        let store = match cloud {
            Cloud::S3 => s3(bucket, options),
            Cloud::Google => google(bucket, options),
            Cloud::Azure => azure(bucket, options),
        };
        let store = store.map_err(failures.object("the object store cannot be reached"))?;
        let parsed = ObjectPath::parse(prefix).map_err(|error| {
            failures.object("the prefix is none of an object store")(object_store::Error::from(error))
        })?;
        Ok(SlateLocation { name, store, prefix: parsed, folder: None })
    }

    /// Objects of any object store.
    pub fn objects(name: &str, store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        SlateLocation { name: name.into(), store, prefix: prefix.into(), folder: None }
    }

    /// Whether a store is there, finished or not.
    pub(super) async fn holds_store(&self) -> object_store::Result<bool> {
        let manifests = self.prefix.clone().join("manifest");
        Ok(self.store.list(Some(&manifests)).next().await.transpose()?.is_some())
    }

    /// Errors that name it.
    pub(super) fn failures(&self) -> Failures {
        Failures(self.name.clone())
    }

    /// What errors of engines call it.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| PathBuf::from(&*self.name))
    }
}

impl Cloud {
    /// The scheme of its URLs.
    pub fn scheme(self) -> &'static str {
        match self {
            Cloud::S3 => "s3",
            Cloud::Google => "gs",
            Cloud::Azure => "az",
        }
    }
}

fn retries() -> RetryConfig {
    RetryConfig { max_retries: MAX_REQUEST_RETRIES, retry_timeout: MAX_REQUEST_TIME, ..RetryConfig::default() }
}

fn s3(bucket: &str, options: &CloudOptions) -> object_store::Result<Arc<dyn ObjectStore>> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retries());
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(region) = &options.region {
        builder = builder.with_region(region);
    }
    if options.allow_http {
        builder = builder.with_allow_http(true);
    }
    Ok(Arc::new(builder.build()?))
}

fn google(bucket: &str, options: &CloudOptions) -> object_store::Result<Arc<dyn ObjectStore>> {
    let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).with_retry(retries());
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_base_url(endpoint);
    }
    Ok(Arc::new(builder.build()?))
}

fn azure(container: &str, options: &CloudOptions) -> object_store::Result<Arc<dyn ObjectStore>> {
    let mut builder = MicrosoftAzureBuilder::from_env().with_container_name(container).with_retry(retries());
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    if options.allow_http {
        builder = builder.with_allow_http(true);
    }
    Ok(Arc::new(builder.build()?))
}
