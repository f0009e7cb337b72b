use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::memory::{MemoryConnector, MemoryStore};
use crate::{
    AllocationLimit, Capabilities, Mode, Name, NewObject, NoFilters, ObjectSpec, Settings, Store, StoreErrorKind,
    settings,
};

settings! {
    connector "dir";
    /// The options of a folder.
    struct DirOptions {
        /// Whether the folder is kept.
        keep: bool = true,
        /// Most bytes of a file.
        limit: u64 = 1 << 20,
    }
}

/// Claims folders, and files that begin with its name; opens an empty store.
#[derive(Debug)]
struct Dir(&'static str);

impl Connector for Dir {
    fn name(&self) -> &'static str {
        self.0
    }

    fn schemes(&self) -> &'static [&'static str] {
        match self.0 {
            "dir" => &["dir", "folder"],
            "kv" => &["kv"],
            _ => &["other"],
        }
    }

    fn capabilities(&self) -> Capabilities {
        MemoryConnector::new().capabilities()
    }

    fn options(&self) -> Box<dyn ConnectorOptions> {
        Box::new(DirOptions::default())
    }

    fn claims(&self, probe: &PathProbe<'_>) -> bool {
        probe.is_dir() || probe.head().starts_with(self.0.as_bytes())
    }

    fn open(&self, _: &Location, _: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        Ok(Arc::new(MemoryStore::new()))
    }

    fn linked_store_candidates(&self, _: Option<&Location>, _: &Name, _: LinkedStoreRole) -> Vec<Location> {
        Vec::new()
    }

    fn file_path(&self, _: &Location) -> Option<PathBuf> {
        None
    }

    fn file_location(&self, _: &Path) -> Option<Location> {
        None
    }

    fn trust_origin(&self, _: &Location) -> TrustOrigin {
        TrustOrigin::Files
    }

    fn identity(&self, _: &Location) -> Option<StoreIdentity> {
        None
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        None
    }

    fn watch(&self, _: &Location) -> Option<Box<dyn LocationWatch>> {
        None
    }
}

fn registry() -> ConnectorRegistry {
    ConnectorRegistry::new(MemoryConnector::new()).with_connector(Dir("dir")).with_missing_cargo_feature("kv", "kv")
}

fn resolve(registry: &ConnectorRegistry, text: &str) -> Result<(&'static str, Location), OpenError> {
    let found = registry.resolve(&Location::from(text), Mode::Read)?;
    Ok((found.connector().name(), found.location().clone()))
}

#[test]
fn a_scheme_names_the_connector() {
    let registry = registry();
    for (text, name) in [("mem:x", "mem"), ("dir:x", "dir"), ("FOLDER:x", "dir"), ("dir://x", "dir")] {
        assert_eq!(resolve(&registry, text).unwrap(), (name, Location::from(text)), "{text}");
    }
    assert_eq!(registry.schemes(), ["mem", "dir", "folder"]);
}

#[test]
fn a_scheme_that_nobody_has_is_part_of_a_path() {
    let path = |text: &str| ("mem", Location::Path(text.into()));
    for text in ["run:1.h5", "run:1.h5?a=b", "RUN:50%.h5"] {
        assert_eq!(resolve(&registry(), text).unwrap(), path(text));
    }
    let error = resolve(&registry(), "s3://bucket/x").unwrap_err().to_string();
    let expected = r#"no store has the scheme "s3"; the schemes are mem, dir, folder; a file of this name is ./s3:.."#;
    assert_eq!(error, expected);
}

#[test]
fn a_scheme_whose_feature_is_missing_names_the_feature() {
    for text in ["kv:x", "kv://x"] {
        let error = resolve(&registry(), text).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                r#"the scheme "kv" needs the feature "kv", without which this was built; {} installs the program with it"#,
                "`cargo install --path tools/cli --features kv`"
            )
        );
    }
    assert_eq!(resolve(&registry().with_connector(Dir("kv")), "kv:x").unwrap().0, "kv");
}

#[test]
fn a_url_that_is_also_the_name_of_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("{}:x", folder.path().display());
    // Only a relative path can begin with a scheme, so the test goes where no other test looks.
    let file = format!("mem:registry-test-{}", std::process::id());
    fs::write(&file, "").unwrap();
    let error = resolve(&registry(), &file);
    let link = registry().resolve(&Url::from_linked_file_name(&file.as_str().into()).unwrap().into(), Mode::Read);
    fs::remove_file(&file).unwrap();
    let url = file.replacen("mem:", "mem://", 1);
    assert_eq!(
        error.unwrap_err().to_string(),
        format!("a file of this name exists too: ./{file} is the file, {url} the store")
    );
    assert_eq!(resolve(&registry(), &url).unwrap().0, "mem");
    assert!(link.is_ok(), "a link cannot be written otherwise");
    assert_eq!(resolve(&registry(), &name).unwrap().1, Location::Path(name.into()));
}

#[test]
fn a_path_goes_to_the_connector_that_claims_it() {
    let folder = tempfile::tempdir().unwrap();
    let [plain, marked] = ["plain", "marked"].map(|name| folder.path().join(name));
    fs::write(&plain, "something").unwrap();
    fs::write(&marked, "other, and more").unwrap();
    let registry = registry().with_connector(Dir("other"));
    let name = |path: &Path, mode| registry.resolve(&path.into(), mode).map(|found| found.connector().name());
    assert_eq!(name(&plain, Mode::Read).unwrap(), "mem");
    assert_eq!(name(&folder.path().join("none"), Mode::Read).unwrap(), "mem");
    assert_eq!(name(&marked, Mode::Read).unwrap(), "other");
    assert_eq!(name(&marked, Mode::Create).unwrap(), "mem", "a new file is not claimed");
    let error = name(folder.path(), Mode::Read).unwrap_err().to_string();
    assert_eq!(error, "the stores dir and other both take it for theirs: name one as in dir:..");
}

#[test]
fn the_url_goes_before_settings_and_settings_before_typed_options() {
    let registry = registry();
    let typed: [Arc<dyn ConnectorOptions>; 1] = [Arc::new(DirOptions { keep: false, limit: 7 })];
    let mut settings = Settings::default();
    settings.set("limit", "8");
    let limit = |text: &str, typed, settings: &Settings| {
        let at = registry.resolve(&text.into(), Mode::Read).unwrap();
        let options = registry.resolve_options(&at, typed, settings, None)?;
        Ok::<_, OpenError>((options.get("keep").unwrap(), options.get("limit").unwrap()))
    };
    let of = |keep: &str, limit: &str| (keep.to_owned(), limit.to_owned());
    assert_eq!(limit("dir:x", &[], &Settings::default()).unwrap(), of("yes", "1MiB"));
    assert_eq!(limit("dir:x", &typed, &Settings::default()).unwrap(), of("no", "7"));
    assert_eq!(limit("dir:x", &typed, &settings).unwrap(), of("no", "8"));
    assert_eq!(limit("dir:x?limit=9KiB", &typed, &settings).unwrap(), of("no", "9KiB"));

    let error = limit("dir:x?size=1", &[], &settings).unwrap_err().to_string();
    assert_eq!(error, r#"the store "dir" has no option "size"; its options are keep, limit"#);
    let error = limit("dir:x?limit=much", &[], &settings).unwrap_err().to_string();
    let expected = r#"the option "limit" of the store "dir" is BYTES[KiB|MiB|GiB|TiB], and not "much""#;
    assert_eq!(error, expected);
    let at = registry.resolve(&"mem:x".into(), Mode::Read).unwrap();
    let error = registry.resolve_options(&at, &[], &settings, None).unwrap_err().to_string();
    assert_eq!(error, r#"the store "mem" has no option "limit": it has none"#);
    let other = ConnectorRegistry::new(MemoryConnector::new());
    let error = other.resolve_options(&at, &typed, &Settings::default(), None).unwrap_err().to_string();
    assert_eq!(error, r#"there are options for the store "dir", which is not registered; the stores are mem"#);
}

fn open(registry: &ConnectorRegistry, text: &str, mode: Mode) -> Result<Arc<dyn Store>, OpenError> {
    let at = registry.resolve(&text.into(), mode)?;
    let options = registry.resolve_options(&at, &[], &Settings::default(), None)?;
    let max_allocation = AllocationLimit::default();
    let (root, unfilter) = (&ObjectSpec::group(), Arc::new(NoFilters));
    at.open(&OpenRequest { mode, root, options: &*options, max_allocation, filter_engine: unfilter, registry })
}

fn kind(result: Result<Arc<dyn Store>, OpenError>) -> StoreErrorKind {
    match result {
        Err(OpenError::Store(error)) => error.store_error_kind().unwrap().clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_in_memory_are_found_by_their_name() {
    let connector = MemoryConnector::new();
    let registry = ConnectorRegistry::new(connector.clone());
    assert_eq!(kind(open(&registry, "mem:a", Mode::Read)), StoreErrorKind::NotFound);
    let writer = open(&registry, "mem:a", Mode::CreateNew).unwrap();
    writer
        .writer()
        .unwrap()
        .create(&NewObject::linked(writer.session().root, &"group".into(), &ObjectSpec::group()))
        .unwrap();
    writer.close().unwrap();
    let reader = open(&registry, "mem://a", Mode::Read).unwrap();
    assert!(reader.link(reader.session().root, &"group".into()).unwrap().is_some());
    assert!(reader.writer().is_err());
    assert_eq!(kind(open(&registry, "mem:a", Mode::CreateNew)), StoreErrorKind::AlreadyExists);
    assert_eq!(connector.file_names(), [Name::from("a")]);
    assert!(connector.remove_file("a") && !connector.remove_file("a"));
    assert_eq!(kind(open(&registry, "mem:a", Mode::Read)), StoreErrorKind::NotFound);
}

#[test]
fn a_file_in_memory_without_a_name_is_its_makers_alone() {
    let connector = MemoryConnector::new();
    let registry = ConnectorRegistry::new(connector.clone());
    let one = open(&registry, "mem:", Mode::Create).unwrap();
    one.writer()
        .unwrap()
        .create(&NewObject::linked(one.session().root, &"group".into(), &ObjectSpec::group()))
        .unwrap();
    let other = open(&registry, "mem:", Mode::CreateNew).unwrap();
    assert!(other.link(other.session().root, &"group".into()).unwrap().is_none());
    assert_eq!(kind(open(&registry, "mem:", Mode::Read)), StoreErrorKind::NotFound);
    assert!(connector.file_names().is_empty());
}

#[test]
fn a_file_in_memory_has_one_writer_and_lets_only_followers_in() {
    let registry = ConnectorRegistry::new(MemoryConnector::new());
    let in_use = |mode| matches!(kind(open(&registry, "mem:a", mode)), StoreErrorKind::InUse(_));
    let writer = open(&registry, "mem:a", Mode::Create).unwrap();
    assert!([Mode::Read, Mode::Write, Mode::SwmrWrite, Mode::Create].into_iter().all(in_use));
    open(&registry, "mem:a", Mode::SwmrRead).unwrap();
    writer.close().unwrap();
    let reader = open(&registry, "mem:a", Mode::Read).unwrap();
    let second = open(&registry, "mem:a", Mode::Read).unwrap();
    assert!(in_use(Mode::Write));
    reader.close().unwrap();
    assert!(in_use(Mode::Write));
    drop(second);
    open(&registry, "mem:a", Mode::Write).unwrap();
}

#[test]
fn links_in_memory_lead_beside_the_file_first() {
    let connector = MemoryConnector::new();
    let at = |base: &str, name: &str| {
        let found = connector.linked_store_candidates(
            Some(&base.into()),
            &name.into(),
            LinkedStoreRole::ExternalLinkOrReference,
        );
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(at("mem:a", "b"), ["mem:b"]);
    assert_eq!(at("mem:runs/a?", "b%20c"), ["mem:runs/b%20c", "mem:b%20c"]);
    assert_eq!(at("mem:", "b"), ["mem:b"]);
}
