//! The connector of key-value stores in SlateDB: on object stores, and in folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5live_model::{
    Capabilities, Connector, ConnectorOptions, DurabilitySupport, LinkedStoreRole, Location, LocationWatch,
    Maintenance, Mode, Name, OpenError, OpenRequest, PathProbe, Store, StoreIdentity, TrustOrigin, Url,
};
use h5live_objects::Cloud;

use crate::engine::{LongKeyEngine, SlateEngine, SlateLocation, SlateOptions, SyncPolicy};
use crate::open_session::{KvSessionOptions, open_session_on};
use crate::random::random;
use crate::session::capabilities;
use crate::slate_options::KvSlate;
use crate::store::KvStore;

/// The name of the kind of store, and its first scheme.
const CONNECTOR: &str = "kv+s3";
const GOOGLE_SCHEME: &str = "kv+gs";
const AZURE_SCHEME: &str = "kv+az";
const FOLDER_SCHEME: &str = "kv+file";

/// Opens key-value stores in SlateDB: `kv+s3://bucket/run`, `kv+file:run`.
#[derive(Debug, Clone, Default)]
pub struct SlateConnector;

/// What a location names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SlatePlace {
    Folder(PathBuf),
    Cloud { cloud: Cloud, bucket: String, prefix: String },
}

impl SlatePlace {
    fn of(at: &Location) -> Result<Self, OpenError> {
        let Location::Url(url) = at else {
            return Ok(SlatePlace::Folder(at.as_path().map(Path::to_owned).unwrap_or_default()));
        };
        let cloud = match url.scheme() {
            GOOGLE_SCHEME => Cloud::Google,
            AZURE_SCHEME => Cloud::Azure,
            FOLDER_SCHEME => {
                let missing =
                    || OpenError::InvalidLocation("a key-value store has a folder: kv+file:run is one".to_owned());
                return url.hier_part_as_path()?.map(SlatePlace::Folder).ok_or_else(missing);
            }
            _ => Cloud::S3,
        };
        SlatePlace::in_cloud(cloud, url)
    }

    fn in_cloud(cloud: Cloud, url: &Url) -> Result<Self, OpenError> {
        let example = || {
            let scheme = url.scheme();
            OpenError::InvalidLocation(format!(
                "such a key-value store has a bucket and a prefix: {scheme}://bucket/run is one"
            ))
        };
        let decoded = String::from_utf8(url.decoded_hier_part()?).map_err(|_| example())?;
        let (bucket, prefix) = decoded.strip_prefix("//").and_then(|rest| rest.split_once('/')).ok_or_else(example)?;
        let prefix = prefix.trim_matches('/');
        if bucket.is_empty() || prefix.is_empty() {
            return Err(example());
        }
        if bucket.contains('@') {
            return Err(OpenError::InvalidLocation(
                "keys of an object store are taken from the environment only".to_owned(),
            ));
        }
        Ok(SlatePlace::Cloud { cloud, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }

    fn location(&self, mode: Mode, options: &KvSlate) -> Result<SlateLocation, OpenError> {
        let location = match self {
            SlatePlace::Folder(folder) => {
                if let Some(option) = options.objects.first_non_default_option() {
                    return Err(OpenError::InvalidLocation(format!(
                        "the option {option:?} has no meaning for a folder"
                    )));
                }
                let makes = matches!(mode, Mode::Create | Mode::CreateNew);
                SlateLocation::folder(folder, makes, options.sync != SyncPolicy::Never)
            }
            SlatePlace::Cloud { cloud, bucket, prefix } => {
                SlateLocation::cloud(*cloud, bucket, prefix, &options.objects)
            }
        };
        location.map_err(|error| OpenError::Store(error.into()))
    }

    /// The place of this name beside it; `None` if it has no place beside it.
    fn beside(&self, name: &str) -> Option<Url> {
        match self {
            SlatePlace::Folder(folder) => Some(Url::literal(FOLDER_SCHEME, folder.parent()?.join(name).to_str()?)),
            SlatePlace::Cloud { cloud, bucket, prefix } => {
                let rest = match prefix.rsplit_once('/') {
                    Some((parent, _)) => format!("//{bucket}/{parent}/{name}"),
                    None => format!("//{bucket}/{name}"),
                };
                Some(Url::literal(&format!("kv+{}", cloud.scheme()), &rest))
            }
        }
    }
}

impl Connector for SlateConnector {
    fn name(&self) -> &'static str {
        CONNECTOR
    }

    fn schemes(&self) -> &'static [&'static str] {
        &[CONNECTOR, GOOGLE_SCHEME, AZURE_SCHEME, FOLDER_SCHEME]
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(DurabilitySupport::Always)
    }

    fn options(&self) -> Box<dyn ConnectorOptions> {
        Box::new(KvSlate::default())
    }

    fn claims(&self, probe: &PathProbe<'_>) -> bool {
        probe.is_dir() && SlateEngine::is_at(probe.path())
    }

    fn open(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        let options = how.downcast_options::<KvSlate>()?;
        let location = SlatePlace::of(at)?.location(how.mode, options)?;
        let slate = SlateOptions {
            sync: options.sync,
            poll_interval: options.poll_interval,
            flush_interval: options.flush_interval,
            cache_bytes: options.cache_size,
            ..SlateOptions::default()
        };
        let engine = SlateEngine::open(location, how.mode, &slate, random()?);
        let engine = engine.map_err(|error| OpenError::Store(error.into()))?;
        let choices = KvSessionOptions {
            durability: options.sync.durability(),
            max_uncommitted_bytes: options.max_uncommitted,
            checksum_new_container: options.checksums,
        };
        let mut session = open_session_on(Box::new(LongKeyEngine::new(engine)), at, how, choices)?;
        session.info.connector = CONNECTOR;
        Ok(Arc::new(KvStore::new(session)))
    }

    /// A store beside the one that names it.
    fn linked_store_candidates(&self, base: Option<&Location>, name: &Name, _: LinkedStoreRole) -> Vec<Location> {
        let Some(name) = name.as_str() else { return Vec::new() };
        let place = base.and_then(|base| SlatePlace::of(base).ok());
        let beside = place.as_ref().and_then(|place| place.beside(name));
        match place {
            Some(SlatePlace::Folder(folder)) => {
                let path = folder.parent().map_or_else(|| PathBuf::from(name), |parent| parent.join(name));
                // What is no store of this kind may be one of another kind.
                match SlateEngine::is_at(&path) {
                    true => beside.into_iter().map(Location::from).collect(),
                    false => vec![Location::Path(path), Location::Path(name.into())],
                }
            }
            Some(SlatePlace::Cloud { .. }) => beside.into_iter().map(Location::from).collect(),
            None => vec![Location::Path(name.into())],
        }
    }

    fn file_path(&self, _: &Location) -> Option<PathBuf> {
        None
    }

    fn file_location(&self, _: &Path) -> Option<Location> {
        None
    }

    fn trust_origin(&self, at: &Location) -> TrustOrigin {
        match SlatePlace::of(at) {
            Ok(SlatePlace::Cloud { cloud, bucket, .. }) => TrustOrigin::Named(format!("{}://{bucket}", cloud.scheme())),
            _ => TrustOrigin::Files,
        }
    }

    fn identity(&self, at: &Location) -> Option<StoreIdentity> {
        match SlatePlace::of(at).ok()? {
            SlatePlace::Folder(folder) => {
                Some(StoreIdentity(folder.canonicalize().ok()?.as_os_str().as_encoded_bytes().into()))
            }
            SlatePlace::Cloud { cloud, bucket, prefix } => {
                Some(StoreIdentity(format!("{}://{bucket}/{prefix}", cloud.scheme()).into_bytes().into()))
            }
        }
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        None
    }

    fn watch(&self, _: &Location) -> Option<Box<dyn LocationWatch>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use h5live_objects::ObjectOptions;

    use super::*;

    fn place(text: &str) -> Result<SlatePlace, OpenError> {
        SlatePlace::of(&Location::from(text))
    }

    #[test]
    fn a_url_names_a_bucket_and_a_prefix_or_a_folder() {
        let cloud =
            |cloud, prefix: &str| SlatePlace::Cloud { cloud, bucket: "b".to_owned(), prefix: prefix.to_owned() };
        assert_eq!(place("kv+s3://b/runs/a%20b/?region=x").unwrap(), cloud(Cloud::S3, "runs/a b"));
        assert_eq!(place("kv+gs://b/run").unwrap(), cloud(Cloud::Google, "run"));
        assert_eq!(place("kv+az://b/run").unwrap(), cloud(Cloud::Azure, "run"));
        assert_eq!(place("kv+file:/data/run").unwrap(), SlatePlace::Folder("/data/run".into()));
    }

    #[test]
    fn a_url_without_a_bucket_or_with_a_key_is_refused() {
        for text in ["kv+s3://b", "kv+s3://b/", "kv+s3:///run", "kv+s3:run", "kv+gs://b//", "kv+file:"] {
            assert!(matches!(place(text), Err(OpenError::InvalidLocation(_))), "{text}");
        }
        let error = place("kv+s3://user:SECRET@b/run").unwrap_err().to_string();
        assert!(error.contains("environment") && !error.contains("SECRET"), "{error}");
    }

    #[test]
    fn an_option_that_a_place_does_not_use_is_refused() {
        let objects = ObjectOptions { region: "eu-central-1".to_owned(), ..ObjectOptions::default() };
        let options = KvSlate { objects, ..KvSlate::default() };
        for (text, place_name) in [("kv+gs://b/run", "gs"), ("kv+az://b/run", "az"), ("kv+file:run", "a folder")] {
            let error = place(text).unwrap().location(Mode::Read, &options).unwrap_err().to_string();
            let meaning = format!("the option \"region\" has no meaning for {place_name}");
            assert!(error.contains(&meaning), "{text}: {error}");
        }
    }

    #[test]
    fn a_linked_store_lies_beside_the_one_that_names_it() {
        let linked = |base: &str| {
            SlateConnector.linked_store_candidates(
                Some(&base.into()),
                &"other".into(),
                LinkedStoreRole::ExternalLinkOrReference,
            )
        };
        let texts = |found: Vec<Location>| found.iter().map(Location::to_string).collect::<Vec<_>>();
        assert_eq!(texts(linked("kv+s3://b/runs/one")), ["kv+s3://b/runs/other"]);
        assert_eq!(texts(linked("kv+az://b/one")), ["kv+az://b/other"]);
        assert_eq!(texts(linked("kv+file:/no/such/run")), ["/no/such/other", "other"]);
    }
}
