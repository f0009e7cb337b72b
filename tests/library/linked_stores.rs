//! Links from one file to others: between stores, to schemes that are unknown or not allowed, and to very many files.

use std::path::Path;

use h5live::model::memory::MemoryConnector;
use h5live::model::{ObjectId, ReferenceKind, ReferenceType, Referent, ReferentPart, VirtualSource};
use h5live::{Error, File, LinkedFilePolicy, Object, Options, Reference, ReferenceTarget, Selection, SourceState};

fn text(error: Error) -> String {
    error.to_string()
}

/// Options with files in memory of one test's own.
fn options() -> Options {
    File::options().connectors(Options::built_in_connectors().with_connector(MemoryConnector::new()))
}

/// A file with a dataset `data` of these values.
fn make(options: &Options, location: &str, values: &[i32]) {
    let file = options.clone().create().open(location).unwrap();
    file.new_dataset::<i32>().create_with_data("data", values).unwrap();
    file.close().unwrap();
}

fn piece(file: &str, at: u64, len: u64) -> VirtualSource {
    let target = Selection::block(&[at], &[len]);
    VirtualSource { file: file.into(), dataset: "data".into(), source: Selection::All, target }
}

/// A file with an external link `link` and a virtual dataset `virtual` of two elements, both from `target`.
fn make_link(options: &Options, location: &str, target: &str) {
    let file = options.clone().create().open(location).unwrap();
    file.root().link_external("link", target, "/data").unwrap();
    let data = file.new_dataset::<i32>().shape(&[2]).fill(-1).virtual_sources(vec![piece(target, 0, 2)]);
    data.create("virtual").unwrap();
    file.close().unwrap();
}

fn linked(file: &File) -> h5live::Result<Vec<i32>> {
    file.dataset("link")?.read()
}

fn of_sources(file: &File) -> h5live::Result<Vec<i32>> {
    file.dataset("virtual")?.read()
}

#[test]
fn files_in_memory_link_to_each_other() {
    let options = options();
    // In the location of the user the name is written with escapes, in links as it is.
    make(&options, "mem:runs/a%2520b%3F", &[1, 2]);
    for target in ["a%20b?", "runs/a%20b?", "mem:runs/a%20b?", "mem://runs/a%20b?"] {
        make_link(&options, "mem:runs/links", target);
        let file = options.open("mem:runs/links").unwrap();
        assert_eq!(linked(&file).unwrap(), [1, 2], "{target}");
        assert_eq!(of_sources(&file).unwrap(), [1, 2], "{target}");
    }
    make_link(&options, "mem:links", "none");
    let file = options.open("mem:links").unwrap();
    assert_eq!(text(linked(&file).unwrap_err()), r#"mem:links: /link: there is no file "none", to which a link leads"#);
    assert_eq!(of_sources(&file).unwrap(), [-1, -1]);
}

#[test]
fn a_link_to_another_kind_of_store_is_followed_only_if_that_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let [native, linking] = ["native.h5", "linking.h5"].map(|name| folder.path().join(name).display().to_string());
    let options = options();
    make(&options, &native, &[1, 2]);
    make(&options, "mem:a", &[3, 4]);
    let refused = |to: &str| {
        format!("a link leads to {to}, and links of this file may not lead there: LinkedFilePolicy::Any allows it")
    };
    for (location, target, values) in [(&*linking, "mem:a", [3, 4]), ("mem:b", &*format!("native:{native}"), [1, 2])] {
        make_link(&options, location, target);
        let file = options.open(location).unwrap();
        assert_eq!(text(linked(&file).unwrap_err()), format!("{location}: /link: {}", refused(target)));
        // No fill values: they would hide it.
        assert_eq!(text(of_sources(&file).unwrap_err()), format!("{location}: /virtual: {}", refused(target)));
        assert_eq!(file.dataset("virtual").unwrap().source_states().unwrap(), [SourceState::Unreadable]);
        let allowed = options.clone().linked_file_policy(LinkedFilePolicy::Any).open(location).unwrap();
        assert_eq!((linked(&allowed).unwrap(), of_sources(&allowed).unwrap()), (values.to_vec(), values.to_vec()));
    }
    // The same store by its scheme is no other kind.
    make_link(&options, &linking, &format!("native:{native}"));
    assert_eq!(linked(&options.open(&*linking).unwrap()).unwrap(), [1, 2]);
}

#[test]
fn links_may_be_left_alone() {
    let options = options();
    make(&options, "mem:a", &[1, 2]);
    make_link(&options, "mem:b", "a");
    let file = options.clone().linked_file_policy(LinkedFilePolicy::Never).open("mem:b").unwrap();
    let expected = "mem:b: /link: a link leads to a, and links to other files are not followed";
    assert_eq!(text(linked(&file).unwrap_err()), expected);
    assert!(of_sources(&file).is_err());
}

#[test]
fn a_link_to_an_unknown_scheme_is_an_error_that_names_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let linking = folder.path().join("a.h5").display().to_string();
    make_link(&options(), &linking, "ftp://bucket/b.h5");
    for links in [LinkedFilePolicy::SameOrigin, LinkedFilePolicy::Any] {
        let file = options().linked_file_policy(links).open(&*linking).unwrap();
        let schemes = Options::built_in_connectors().schemes().join(", ");
        let unknown =
            format!("no store has the scheme \"ftp\"; the schemes are {schemes}; a file of this name is ./ftp:..");
        assert_eq!(text(linked(&file).unwrap_err()), format!("{linking}: /link: {unknown}"));
        assert_eq!(text(of_sources(&file).unwrap_err()), format!("{linking}: /virtual: {unknown}"));
    }
}

#[test]
fn a_name_with_a_colon_or_a_percent_sign_is_the_file_of_that_name() {
    let folder = tempfile::tempdir().unwrap();
    let options = options();
    let at = |name: &str| folder.path().join(name).display().to_string();
    make(&options, "mem:1.h5", &[7, 7]);
    for name in ["run:1.h5", "mem:1.h5", "a%20b.h5", "what?x=1.h5"] {
        make(&options, &at(name), &[1, 2]);
        make_link(&options, &at("links.h5"), name);
        let file = options.open(&*at("links.h5")).unwrap();
        assert_eq!((linked(&file).unwrap(), of_sources(&file).unwrap()), (vec![1, 2], vec![1, 2]), "{name}");
    }
    let through = |target: &str| {
        make_link(&options, &at("links.h5"), target);
        of_sources(&options.open(&*at("links.h5")).unwrap()).unwrap()
    };
    // In a virtual dataset, %% is a percent sign, as libhdf5 has it.
    make(&options, &at("100%.h5"), &[5, 6]);
    assert_eq!(through("100%%.h5"), [5, 6]);
    assert_eq!(through("run:2.h5"), [-1, -1]);
}

#[cfg(unix)]
#[test]
fn a_file_with_two_names_is_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    make(&options(), &at("a.h5"), &[1, 2]);
    std::fs::hard_link(at("a.h5"), at("b.h5")).unwrap();
    let file = File::create(&*at("links.h5")).unwrap();
    file.root().link_external("a", "a.h5", "/").unwrap();
    file.root().link_external("b", "b.h5", "/").unwrap();
    // Opened for writing twice, the second one would find it in use.
    file.group("a").unwrap().create_group("made").unwrap();
    assert!(file.group("b/made").is_ok());
}

/// Open files of this process in a folder.
#[cfg(target_os = "linux")]
fn open_files(folder: &Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let paths = links.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    paths.filter(|path| path.starts_with(folder)).count()
}

#[cfg(target_os = "linux")]
#[test]
fn at_most_so_many_linked_files_are_kept_open() {
    const FILES: u64 = 12;
    let folder = tempfile::tempdir().unwrap();
    let folder = &folder.path().canonicalize().unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    (0..FILES).for_each(|n| make(&options(), &at(&format!("{n}.h5")), &[n as i32]));
    let file = File::create(&*at("whole.h5")).unwrap();
    let pieces = (0..FILES).map(|n| piece(&format!("{n}.h5"), n, 1)).collect();
    file.new_dataset::<i32>().shape(&[FILES]).fill(-1).virtual_sources(pieces).create("whole").unwrap();
    (0..FILES).for_each(|n| file.root().link_external(&format!("to {n}"), &format!("{n}.h5"), "/").unwrap());
    file.close().unwrap();
    drop(file);
    let values: Vec<i32> = (0..FILES as i32).collect();

    let of_one = {
        let file = File::open(&*at("whole.h5")).unwrap();
        let before = open_files(folder);
        file.group("to 0").unwrap();
        open_files(folder) - before
    };
    for max_files in [0, 1, 3] {
        let file = File::options().max_open_linked_files(max_files).open(&*at("whole.h5")).unwrap();
        let before = open_files(folder);
        for _ in 0..2 {
            assert_eq!(file.dataset("whole").unwrap().read::<i32>().unwrap(), values);
            assert_eq!(open_files(folder) - before, max_files * of_one);
        }
        // What the user holds stays open; only what nobody holds is closed.
        let held = file.group("to 5").unwrap();
        assert_eq!(file.dataset("whole").unwrap().read::<i32>().unwrap(), values);
        assert_eq!(held.dataset("data").unwrap().read::<i32>().unwrap(), [5]);
        drop((held, file));
        assert_eq!(open_files(folder), 0);
    }
}

#[test]
fn what_was_written_to_a_linked_file_is_not_lost_when_it_is_closed_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    (0..4).for_each(|n| make(&options(), &at(&format!("{n}.h5")), &[n]));
    let file = File::options().create().max_open_linked_files(1).open(&*at("links.h5")).unwrap();
    (0..4).for_each(|n| file.root().link_external(&format!("to {n}"), &format!("{n}.h5"), "/").unwrap());
    for n in 0..4 {
        let log =
            file.group(&format!("to {n}")).unwrap().new_dataset::<i32>().unlimited_rows(&[]).create("log").unwrap();
        log.append(&[n, n + 1]).unwrap();
    }
    // The last one is still open for writing.
    for n in 0..3 {
        let other = File::open(&*at(&format!("{n}.h5"))).unwrap();
        assert_eq!(other.dataset("log").unwrap().read::<i32>().unwrap(), [n, n + 1]);
    }
}

/// A reference of `file` to the object `object` of another file that it calls `name`.
fn reference_to(file: &File, name: &str, object: ObjectId) -> Reference {
    let to = Referent { file: Some(name.into()), object, part: ReferentPart::Whole };
    let form = ReferenceType {
        kind: ReferenceKind::Object2,
        size: file.session().vlen_and_reference_sizes.reference_size(ReferenceKind::Object2),
    };
    Reference::new(ReferenceKind::Object2, &file.store().encode_reference(&form, &to).unwrap())
}

#[test]
fn references_to_other_files_lead_where_links_may() {
    let folder = tempfile::tempdir().unwrap();
    let [native, other] = ["a.h5", "b.h5"].map(|name| folder.path().join(name).display().to_string());
    let options = options();
    make(&options, "mem:runs/a", &[1, 2]);
    make(&options, &native, &[3, 4]);
    let values = |file: &File, reference: &Reference| match file.reference_target(reference)? {
        Some(ReferenceTarget::Object(Object::Dataset(dataset))) => dataset.read::<i32>(),
        other => panic!("{other:?}"),
    };
    let of_memory = options.open("mem:runs/a").unwrap().object("data").unwrap().id();
    let of_native = options.open(&*native).unwrap().object("data").unwrap().id();
    let memory = options.clone().create().open("mem:runs/b").unwrap();
    assert_eq!(values(&memory, &reference_to(&memory, "a", of_memory)).unwrap(), [1, 2]);
    let file = options.clone().create().open(&*other).unwrap();
    assert_eq!(values(&file, &reference_to(&file, "a.h5", of_native)).unwrap(), [3, 4]);
    let missing = text(values(&memory, &reference_to(&memory, "c", of_memory)).unwrap_err());
    assert_eq!(missing, r#"mem:runs/b: there is no file "c", to which a link leads"#);
    // It keeps the other one open for writing.
    drop(memory);

    let foreign = reference_to(&file, "mem:runs/a", of_memory);
    let refused = text(values(&file, &foreign).unwrap_err());
    assert!(refused.ends_with("links of this file may not lead there: LinkedFilePolicy::Any allows it"), "{refused}");
    file.close().unwrap();
    let allowed = options.clone().linked_file_policy(LinkedFilePolicy::Any).open(&*other).unwrap();
    assert_eq!(values(&allowed, &foreign).unwrap(), [1, 2]);
}
