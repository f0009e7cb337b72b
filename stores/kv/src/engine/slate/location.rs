//! Where a SlateDB store is: an object store, and the prefix of its objects.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt;
use h5live_objects::{Cloud, ObjectOptions, ObjectStoreLocation};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;

use super::location_error_mapper::LocationErrorMapper;
use crate::engine::{EngineError, Result};

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
    /// A folder of this machine. With `fsync_writes`, what is written has reached the disk.
    ///
    /// # Errors
    /// [`EngineError::Io`] if the folder cannot be made; [`EngineError::NoStoreAt`] if it is not to be made.
    pub fn folder(folder: &Path, create_missing: bool, fsync_writes: bool) -> Result<Self> {
        if create_missing {
            fs::create_dir_all(folder).map_err(EngineError::io("the folder cannot be made"))?;
        }
        if !folder.is_dir() {
            return Err(EngineError::NoStoreAt(folder.to_owned()));
        }
        let name: Arc<str> = folder.to_string_lossy().into();
        let store = LocalFileSystem::new_with_prefix(folder);
        let store =
            store.map_err(LocationErrorMapper(name.clone()).object_store_error("the folder cannot be opened"))?;
        Ok(SlateLocation {
            name,
            store: Arc::new(store.with_fsync(fsync_writes)),
            prefix: ObjectPath::default(),
            folder: Some(folder.to_owned()),
        })
    }

    /// Objects of a bucket whose names begin with a prefix.
    ///
    /// # Errors
    /// [`EngineError::Io`] if an option or the environment says something that cannot be, or an option has no meaning for
    /// the cloud.
    pub fn cloud(cloud: Cloud, bucket: &str, prefix: &str, options: &ObjectOptions) -> Result<Self> {
        let name: Arc<str> = format!("{}://{bucket}/{prefix}", cloud.scheme()).into();
        let failures = LocationErrorMapper(name.clone());
        let place = ObjectStoreLocation::Bucket { cloud, bucket: bucket.to_owned() };
        let store = place
            .build_retrying_store(options)
            .map_err(failures.object_store_client_error("the object store cannot be reached"))?;
        let parsed = ObjectPath::parse(prefix).map_err(|error| {
            failures.object_store_error("the prefix is none of an object store")(object_store::Error::from(error))
        })?;
        Ok(SlateLocation { name, store, prefix: parsed, folder: None })
    }

    /// Objects of any object store.
    pub fn from_object_store(name: &str, store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        SlateLocation { name: name.into(), store, prefix: prefix.into(), folder: None }
    }

    /// Whether a store is there, finished or not.
    pub(super) async fn holds_store(&self) -> object_store::Result<bool> {
        let manifests = self.prefix.clone().join("manifest");
        Ok(self.store.list(Some(&manifests)).next().await.transpose()?.is_some())
    }

    /// Errors that name it.
    pub(super) fn failures(&self) -> LocationErrorMapper {
        LocationErrorMapper(self.name.clone())
    }

    /// What errors of engines call it.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| PathBuf::from(&*self.name))
    }
}
