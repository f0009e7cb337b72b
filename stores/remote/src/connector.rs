//! The connector of native files on object stores and web servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5live_model::{
    Capabilities, Connector, ConnectorOptions, Error as ModelError, LinkedStoreRole, Location, LocationWatch,
    Maintenance, Mode, Name, OpenError, OpenRequest, PathProbe, Store, StoreIdentity, TrustOrigin,
};
use h5live_native::{NativeConnector, NativeFile, OpenOptions};
use h5live_objects::{ObjectClient, ObjectStoreLocation};

use crate::location::RemoteLocation;
use crate::options::Remote;
use crate::storage::ObjectBackedStorage;

/// The name of the kind of store, and its first scheme.
const CONNECTOR: &str = "s3";

/// Opens native files on object stores and web servers for reading.
#[derive(Debug, Clone, Copy, Default)]
pub struct RemoteConnector;

impl RemoteConnector {
    /// Opens the file that is an object, by a client that is there. `at` is what the session says of where it is.
    ///
    /// # Errors
    /// As [`Connector::open`].
    pub fn open_with_client(
        client: &ObjectClient,
        key: &str,
        at: Location,
        options: &Remote,
        how: &OpenRequest<'_>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        if how.mode != Mode::Read {
            let what = match how.mode {
                Mode::SwmrRead => "following a file on an object store",
                _ => "writing a file on an object store (write it on this machine, and copy it there)",
            };
            return Err(OpenError::Store(ModelError::Unsupported(what)));
        }
        let identity = RemoteConnector.identity(&at);
        let identity = identity.and_then(|identity| String::from_utf8(identity.0.into_vec()).ok());
        let identity = identity.unwrap_or_else(|| client.object_display_name(key));
        let storage = ObjectBackedStorage::open_with_cache_name(client.clone(), key, &identity, options);
        // Who shows the error names the location.
        let name = at.to_string();
        let storage = storage.map_err(|error| OpenError::Store(error.omit_object_if_named(&name).into()))?;
        let open_options = OpenOptions {
            mode: how.mode,
            max_allocation: how.max_allocation,
            filter_engine: how.filter_engine.clone(),
            ..OpenOptions::default()
        };
        let file = NativeFile::open_storage(Arc::new(storage), &open_options);
        let file = file.map_err(|error| OpenError::Store(error.into()))?;
        Ok(Arc::new(file.with_location(CONNECTOR, at)))
    }
}

impl Connector for RemoteConnector {
    fn name(&self) -> &'static str {
        CONNECTOR
    }

    fn schemes(&self) -> &'static [&'static str] {
        &[CONNECTOR, "gs", "az", "http", "https"]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { supports_live_reads: false, ..NativeConnector.capabilities() }
    }

    fn options(&self) -> Box<dyn ConnectorOptions> {
        Box::new(Remote::default())
    }

    fn claims(&self, _: &PathProbe<'_>) -> bool {
        false
    }

    fn open(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        let options = how.downcast_options::<Remote>()?;
        let file = RemoteLocation::of(at)?;
        let client = file.place.build_client(&options.objects).map_err(|error| OpenError::Store(error.into()))?;
        RemoteConnector::open_with_client(&client, &file.key, at.clone(), options, how)
    }

    /// A file beside the one that names it.
    fn linked_store_candidates(&self, base: Option<&Location>, name: &Name, _: LinkedStoreRole) -> Vec<Location> {
        let base = base.and_then(|base| RemoteLocation::of(base).ok());
        let beside = base.and_then(|base| base.sibling_url(name.as_str()?));
        beside.into_iter().map(Location::from).collect()
    }

    fn file_path(&self, _: &Location) -> Option<PathBuf> {
        None
    }

    fn file_location(&self, _: &Path) -> Option<Location> {
        None
    }

    fn trust_origin(&self, at: &Location) -> TrustOrigin {
        let origin = |file: RemoteLocation| match file.place {
            // What follows the host is no place of its own.
            ObjectStoreLocation::WebFile { url } => url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/"),
            place => place.display_name(),
        };
        TrustOrigin::Named(RemoteLocation::of(at).map(origin).unwrap_or_default())
    }

    fn identity(&self, at: &Location) -> Option<StoreIdentity> {
        let RemoteLocation { place, key } = RemoteLocation::of(at).ok()?;
        let text = match place {
            ObjectStoreLocation::WebFile { url } => url,
            place => format!("{}/{key}", place.display_name()),
        };
        Some(StoreIdentity(text.into_bytes().into()))
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        None
    }

    fn watch(&self, _: &Location) -> Option<Box<dyn LocationWatch>> {
        None
    }
}
