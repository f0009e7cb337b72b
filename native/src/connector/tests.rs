use std::path::Path;

use h5live_model::{
    Connector, ConnectorOptions, LibVer, LinkedStoreRole, Location, NewObject, ObjectSpec, OpenError, StoreWriter, Url,
};

use super::*;

#[test]
fn a_url_of_a_native_file_is_a_path() {
    let path = |text: &str| NativeConnector::path(&Location::from(text)).unwrap();
    for (text, expected) in [
        ("run.h5", "run.h5"),
        ("native:run.h5", "run.h5"),
        ("native://run.h5", "run.h5"),
        ("native:/data/run:1.h5?mapped=no", "/data/run:1.h5"),
        ("native:///data/100%25.h5", "/data/100%.h5"),
        ("file:run.h5", "run.h5"),
        ("FILE:///data/a%3Fb", "/data/a?b"),
        ("file://localhost/data", "/data"),
    ] {
        assert_eq!(path(text), Path::new(expected), "{text}");
    }
    let refused = NativeConnector::path(&Location::from("file://host/data")).unwrap_err();
    assert_eq!(refused.to_string(), "a file on another machine: file:///PATH is one on this machine");
    assert!(matches!(NativeConnector::path(&Location::from("mem:x")), Err(OpenError::InvalidLocation(_))));
}

#[test]
fn every_option_can_be_set_by_its_default_as_text() {
    let mut options = Native::default();
    for setting in Native::default().visible_setting_descriptions() {
        let text = options.get(setting.name).unwrap();
        options.set(setting.name, &text).unwrap();
        assert!(!setting.help.is_empty() && !setting.value_form.is_empty(), "{}", setting.name);
    }
    assert_eq!(options, Native::default());
}

#[test]
fn options_that_only_stores_above_set_are_not_listed() {
    let mut options = Native::default();
    for name in ["takes_turns", "leaves_live", "left_whole"] {
        assert!(options.visible_setting_descriptions().iter().all(|setting| setting.name != name));
        assert_eq!(options.get(name).as_deref(), Some("no"));
        options.set(name, "yes").unwrap();
        assert_eq!(options.get(name).as_deref(), Some("yes"));
        let refused = options.set(name, "maybe").unwrap_err().to_string();
        assert_eq!(refused, format!("the option {name:?} of the store \"native\" is yes|no, and not \"maybe\""));
    }
    assert!(options.takes_turns && options.leaves_live && options.left_whole);
}

#[test]
fn names_in_links_are_paths_as_they_are() {
    let base = Location::from("native:/data/a.h5");
    let found = NativeConnector.linked_store_candidates(
        Some(&base),
        &"100%25:b.h5".into(),
        LinkedStoreRole::ExternalLinkOrReference,
    );
    assert!(found.contains(&Location::Path("/data/100%25:b.h5".into())));
    assert_eq!(found.last(), Some(&Location::Path("100%25:b.h5".into())));
    let found = NativeConnector.linked_store_candidates(Some(&base), &"/x/b.h5".into(), LinkedStoreRole::VirtualSource);
    assert_eq!(found.first(), Some(&Location::Path("/x/b.h5".into())));
    assert!(found.contains(&Location::Path("/data/b.h5".into())));
}

#[cfg(unix)]
#[test]
fn a_file_is_the_same_under_each_of_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let [a, hard, soft, other] = ["a.h5", "hard.h5", "soft.h5", "other.h5"].map(|name| folder.path().join(name));
    std::fs::write(&a, "").unwrap();
    std::fs::write(&other, "").unwrap();
    std::fs::hard_link(&a, &hard).unwrap();
    std::os::unix::fs::symlink(&a, &soft).unwrap();
    let identity = |path: &Path| NativeConnector.identity(&Location::from(path));
    assert!(identity(&a).is_some());
    assert_eq!(identity(&a), identity(&hard));
    assert_eq!(identity(&a), identity(&soft));
    assert_ne!(identity(&a), identity(&other));
    assert_eq!(identity(&folder.path().join("none.h5")), None);
    let url = Url::literal("native", &a.display().to_string());
    assert_eq!(NativeConnector.identity(&url.into()), identity(&a));
}

/// What the first bytes of a file say of a link, of one that is not there, and of that among many.
fn peeked(options: &OpenOptions) -> [Option<bool>; 3] {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let file = NativeFile::open(&path, options).unwrap();
    let link = |name: &str| {
        file.create(&NewObject::linked(file.session().root, &name.into(), &ObjectSpec::group())).unwrap();
    };
    let peek = |name: &str| {
        file.commit(h5live_model::ObjectScope::All, h5live_model::PublishLevel::Visible).unwrap();
        NativeConnector.peek_root_has_any(&PathProbe::new(&path), &[name.into()], &["attribute".into()])
    };
    link("wanted");
    let few = [peek("wanted"), peek("other")];
    (0..1000).for_each(|number| link(&format!("group{number}")));
    [few[0], few[1], peek("other")]
}

#[test]
fn the_first_bytes_of_a_file_say_whether_its_root_group_has_a_name() {
    for (profile, user_block) in [(LibVer::Earliest, 0), (LibVer::V18, 0), (LibVer::V110, 0), (LibVer::V110, 600)] {
        let user_block = vec![7; user_block];
        let options = OpenOptions { mode: Mode::CreateNew, profile, user_block, ..OpenOptions::default() };
        // The bytes of a name in a heap may be those of a link that was deleted.
        let wanted = if profile == LibVer::Earliest { None } else { Some(true) };
        let [found, other, of_many] = peeked(&options);
        assert_eq!((found, other), (wanted, Some(false)), "{profile:?}");
        assert_ne!(of_many, Some(true), "{profile:?}");
    }
}
