//! Locations: paths and URLs, what a store refuses, and files in memory by name.

use std::path::Path;

use h5live::model::memory::MemoryConnector;
use h5live::{ConnectorRegistry, Error, File, LibVer, Location, Mode, Native, Options};

fn text(error: Error) -> String {
    error.to_string()
}

fn url(path: &Path) -> String {
    format!("native:{}", path.display())
}

#[test]
fn an_unknown_scheme_is_an_error_that_names_the_known_ones() {
    let error = text(File::open("ftp://user:secret@bucket/run.h5?token=secret").unwrap_err());
    // More with the features of the library.
    let schemes = Options::built_in_connectors().schemes();
    assert_eq!(schemes[..4], ["native", "file", "mem", "log"]);
    let known = format!("the schemes are {}; a file of this name is ./ftp:..", schemes.join(", "));
    assert_eq!(error, format!("ftp://bucket/run.h5: no store has the scheme \"ftp\"; {known}"));
}

/// Unless the library has the feature, as others in the same build may want.
fn assert_needs(feature: &str, schemes: &[&str]) {
    let built_in = Options::built_in_connectors();
    for scheme in schemes.iter().filter(|scheme| !built_in.schemes().contains(*scheme)) {
        let error = text(File::open(format!("{scheme}://bucket/run.h5")).unwrap_err());
        assert!(error.contains(&format!("{scheme:?} needs the feature {feature:?}")), "{error}");
    }
}

#[test]
fn a_scheme_whose_feature_is_missing_is_an_error_that_names_the_feature() {
    assert_needs("kv-slatedb", &["kv+s3", "kv+gs", "kv+az", "kv+file"]);
    assert_needs("remote", &["s3", "gs", "az", "http", "https"]);
}

#[test]
fn a_path_with_a_colon_a_question_mark_or_a_percent_sign_is_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["run:1.h5", "mem:a.h5", "s3:b", "100%.h5", "a%20b.h5", "what?x=1.h5"] {
        let path = folder.path().join(name);
        File::create(&path).unwrap().close().unwrap();
        assert!(path.exists(), "{name}");
        assert_eq!(File::open(&path).unwrap().name(), path.display().to_string());
        assert_eq!(File::open(path.to_str().unwrap()).unwrap().name(), path.display().to_string());
    }
    let error = text(File::open("run:none.h5").unwrap_err());
    assert!(error.starts_with("run:none.h5: cannot open the file"), "{error}");
}

#[test]
fn a_url_of_a_native_file_is_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("100% run?.h5");
    File::create(format!("native:{}/100%25%20run%3F.h5?libver=v18", folder.path().display())).unwrap();
    assert!(path.exists());
    let error = text(File::open(format!("native:{}/100%.h5", folder.path().display())).unwrap_err());
    assert!(error.ends_with(r#""%.h" in the URL is no escape: a percent sign is written %25"#), "{error}");
}

#[test]
fn options_of_the_query_go_before_settings_and_those_before_typed_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let native = Native { offset_size: 2, page_size: 1024, ..Native::default() };
    let options = File::options().create().with(native).setting("offset_size", "4").setting("strategy", "page");
    let made = |location: &str| {
        let file = options.open(location).unwrap();
        (file.offset_size(), file.file_space().page_size)
    };
    assert_eq!(made(path.to_str().unwrap()), (4, 1024));
    assert_eq!(made(&format!("{}?offset_size=8&page_size=2KiB", url(&path))), (8, 2048));
}

#[test]
fn an_option_that_a_store_does_not_have_is_refused_by_name() {
    let known = "locking, libver, user_block, readers, grace, reuse_unread, max_resting, headroom, strategy, persist, threshold, page_size, \
                 mapped, offset_size, take_over, metadata_cache, read_attempts, chunk_btree_k, group_btree_k, group_leaf_k, \
                 chunk_cache, memory";
    let error = text(File::open("native:run.h5?map_size=1GiB").unwrap_err());
    let expected = r#"native:run.h5: the store "native" has no option "map_size"; its options are "#;
    assert_eq!(error, format!("{expected}{known}"));
    let error = text(File::options().setting("mapped", "maybe").open("run.h5").unwrap_err());
    assert_eq!(error, r#"run.h5: the option "mapped" of the store "native" is yes|no, and not "maybe""#);

    let error = text(File::create("mem:refuses?libver=v18").unwrap_err());
    assert_eq!(error, r#"mem:refuses: the store "mem" has no option "libver"; its options are chunk_cache, memory"#);
    type SetOption = fn(Options) -> Options;
    let of_native: [(&str, SetOption); 9] = [
        ("libver", |options| options.libver(LibVer::V18)),
        ("eof_headroom", |options| options.eof_headroom(1)),
        ("user_block", |options| options.user_block(b"x")),
        ("file_space", |options| options.file_space(h5live::model::FileSpaceSettings::default())),
        ("metadata_cache_bytes", |options| options.metadata_cache_bytes(1 << 18)),
        ("take_over", |options| options.take_over(true)),
        ("read_attempts", |options| options.read_attempts(1)),
        ("group_btree_k", |options| options.group_btree_k(16, 4)),
        ("chunk_btree_k", |options| options.chunk_btree_k(32)),
    ];
    for (name, set) in of_native {
        let error = text(set(File::options().create()).open("mem:refuses").unwrap_err());
        assert_eq!(
            error,
            format!(r#"mem:refuses: the store "mem" has no option "{name}"; its options are chunk_cache, memory"#)
        );
    }
    assert!(File::open("mem:refuses").is_err(), "nothing was made");
}

#[test]
fn typed_options_of_a_store_that_is_not_registered_are_refused() {
    let only_memory = ConnectorRegistry::new(MemoryConnector::new());
    let options = File::options().create().connectors(only_memory);
    let error = text(options.clone().with(Native::default()).open("mem:x").unwrap_err());
    let expected = r#"mem:x: there are options for the store "native", which is not registered; the stores are mem"#;
    assert_eq!(error, expected);
    options.open("mem:x").unwrap();
    File::options().create().with(Native::default()).open("mem:").unwrap();
}

#[test]
fn a_file_in_memory_is_found_by_its_name() {
    let location = "mem:a_file_in_memory_is_found_by_its_name";
    assert!(File::open(location).unwrap_err().store_error_kind().is_some());
    let file = File::create(location).unwrap();
    file.new_dataset::<i32>().unlimited_rows(&[]).create("log").unwrap().append(&[1, 2]).unwrap();
    assert!(File::open(location).unwrap_err().is_in_use());
    file.start_swmr().unwrap();
    let follower = File::options().swmr_read().open(location).unwrap();
    assert_eq!(follower.dataset("log").unwrap().read::<i32>().unwrap(), [1, 2]);
    assert!(follower.is_live().unwrap());
    file.close().unwrap();
    follower.close().unwrap();
    let again = File::options().write().open(location).unwrap();
    again.dataset("log").unwrap().append(&[3]).unwrap();
    again.close().unwrap();
    let reader = File::open(format!("{}", Location::from(location))).unwrap();
    assert_eq!(reader.dataset("log").unwrap().read::<i32>().unwrap(), [1, 2, 3]);
    assert!(reader.create_group("no").is_err());
    assert!(File::options().create_new().open(location).is_err());
    assert!(h5live::repair(location).unwrap_err().to_string().contains("is not supported"));
}

#[test]
fn a_registry_has_its_own_files_in_memory() {
    let (one, other) = (MemoryConnector::new(), MemoryConnector::new());
    let options =
        |of: &MemoryConnector| File::options().connectors(Options::built_in_connectors().with_connector(of.clone()));
    options(&one).create().open("mem:a").unwrap().create_group("group").unwrap();
    assert!(options(&other).open("mem:a").is_err());
    assert!(options(&one).open("mem:a").unwrap().group("group").is_ok());
    assert!(one.remove_file("a"));
    assert!(options(&one).open("mem:a").is_err());
}

#[test]
fn the_mode_of_a_file_in_memory_is_that_of_its_options() {
    let mode = |options: Options| options.open("mem:the_mode").map(|file| file.create_group("g").is_ok());
    assert!(mode(File::options().mode(Mode::Create)).unwrap());
    assert!(!mode(File::options().mode(Mode::Read)).unwrap());
}
