//! Domains of object stores as a whole: listed, deleted, moved.
#![cfg(all(unix, feature = "hsds"))]

use std::path::{Path, PathBuf};

use h5live::File;
use serde_json::Value as Json;

use crate::common::{error, run, text};

/// A bucket in a folder.
struct Bucket(tempfile::TempDir);

impl Bucket {
    fn new() -> Self {
        Bucket(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("bucket")
    }

    /// The location of a domain, or of a folder.
    fn at(&self, domain: &str) -> String {
        format!("hsds:{}?domain={domain}", self.path().display())
    }

    /// Makes a small domain of an owner.
    fn add(&self, domain: &str, owner: &str) {
        let file = File::options().create_new().open(format!("{}&owner={owner}", self.at(domain)).as_str()).unwrap();
        file.new_dataset::<u8>().shape(&[4]).chunk_shape(&[2]).create("a").unwrap().write(&[1, 2, 3, 4]).unwrap();
        file.close().unwrap();
    }
}

/// A bucket with domains at several levels.
fn bucket() -> Bucket {
    let bucket = Bucket::new();
    for (domain, owner) in [("home/me/one", "me"), ("home/me/two", "me"), ("home/you/one", "you"), ("top", "admin")] {
        bucket.add(domain, owner);
    }
    bucket
}

fn json_lines(said: &str) -> Vec<Json> {
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_domains_below_a_folder_are_listed() {
    let bucket = bucket();
    let list = |location: &str| text(&run(&["ls", location]));
    assert_eq!(list(&bucket.at("/")), "/home/  folder\n/top    domain\n");
    assert_eq!(list(&bucket.at("/home")), "/home/me/   folder\n/home/you/  folder\n");
    assert_eq!(list(&bucket.at("/home/me/")), "/home/me/one  domain\n/home/me/two  domain\n");
    assert_eq!(list(&format!("hsds:{}/home/me", bucket.path().display())), list(&bucket.at("/home/me")));
    // The only domain at the top is that of the bucket; without one, or with several, it is a folder.
    assert!(list(&format!("hsds:{}", bucket.path().display())).contains("/a "));
    bucket.add("top2", "admin");
    let top = "/home/  folder\n/top    domain\n/top2   domain\n";
    assert_eq!(list(&format!("hsds:{}", bucket.path().display())), top);
    let all = text(&run(&["ls", "--depth", "9", &bucket.at("/")]));
    let paths: Vec<&str> = all.lines().filter_map(|line| line.split(' ').next()).collect();
    let below = ["/home/me/", "/home/you/", "/home/me/one", "/home/me/two", "/home/you/one"];
    assert_eq!(paths, [&["/home/", "/top", "/top2"], &below[..]].concat());
    let said = error(&run(&["ls", &bucket.at("/nothing/")]));
    assert!(said.contains("no domain is at /nothing"), "{said}");
}

#[test]
fn a_long_listing_of_domains_has_owners_times_and_sizes() {
    let bucket = bucket();
    let listed = json_lines(&text(&run(&["ls", "--long", "--json", &bucket.at("/home/me/")])));
    let paths: Vec<&Json> = listed.iter().map(|line| &line["path"]).collect();
    assert_eq!(paths, ["/home/me/one", "/home/me/two"]);
    for line in &listed {
        assert_eq!((&line["kind"], &line["owner"]), (&"domain".into(), &"me".into()));
        assert!(line["modified"].as_str().unwrap().ends_with('Z') && line["created"].is_string(), "{line}");
        // The root group, the dataset, and two chunks at least.
        assert!(line["objects"].as_u64().unwrap() >= 4 && line["stored_bytes"].as_u64().unwrap() > 100, "{line}");
    }
    let said = text(&run(&["ls", "--long", &bucket.at("/home/me/")]));
    assert!(said.starts_with("/home/me/one  domain  owner=me  20") && said.contains("B\n"), "{said}");
    let said = text(&run(&["ls", "--long", &bucket.at("/")]));
    assert!(
        said.starts_with("/home/  folder  owner=admin  20") || said.starts_with("/home/  folder  owner=me  20"),
        "{said}"
    );
}

#[test]
fn a_damaged_domain_and_a_folder_without_an_object_are_listed_and_rights_are_kept() {
    let bucket = bucket();
    std::fs::write(bucket.path().join("home/me/two/.domain.json"), "{").unwrap();
    std::fs::create_dir_all(bucket.path().join("home/me/raw")).unwrap();
    let listed = run(&["ls", &bucket.at("/home/me/")]);
    let said = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(listed.status.code(), Some(1), "{said}");
    assert!(said.contains("/home/me/one   domain\n") && said.contains("/home/me/raw/  folder\n"), "{said}");
    assert!(said.contains("/home/me/two   cannot be read: the object home/me/two/.domain.json is damaged"), "{said}");
    text(&run(&["acl", "set", &bucket.at("/home/me"), "default", "none"]));
    let said = error(&run(&["ls", &format!("{}&user=them", bucket.at("/home/me/"))]));
    assert!(said.contains("the user them does not have the right read for /home/me"), "{said}");
}

/// The names of all files below a folder, without locks.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(files_below(&entry.path())),
            false if entry.file_name() != ".h5live.lock" => found.push(entry.path()),
            false => {}
        }
    }
    found.sort();
    found
}

#[test]
fn a_domain_is_deleted_with_its_objects_and_nothing_else() {
    let bucket = bucket();
    let before = files_below(&bucket.path());
    bucket.add("home/me/three", "me");
    let said = text(&run(&["rm", "--domain", &bucket.at("/home/me/three")]));
    assert!(said.starts_with("/home/me/three: deleted with ") && said.contains(" objects, "), "{said}");
    assert_eq!(files_below(&bucket.path()), before);
    assert!(!bucket.path().join("home/me/three").exists(), "nor is its lock there");
    assert!(error(&run(&["ls", &bucket.at("/home/me/three")])).contains("no domain is at"));
    assert!(error(&run(&["rm", "--domain", &bucket.at("/home/me/three")])).contains("no domain is at"));
    assert_eq!(text(&run(&["dump", &bucket.at("/home/me/one"), "a"])).lines().count(), 4);
    // Without the option, paths are needed.
    assert_eq!(run(&["rm", &bucket.at("/home/me/one")]).status.code(), Some(2));
    let said = error(&run(&["rm", "--domain", &bucket.at("/home/me")]));
    assert!(said.contains("/home/me is a folder of domains that is not empty"), "{said}");
    text(&run(&["rm", "--domain", &bucket.at("/home/you/one")]));
    let said = text(&run(&["rm", "--domain", &bucket.at("/home/you")]));
    assert_eq!(said, "/home/you/: the empty folder is deleted\n");
    assert_eq!(text(&run(&["ls", &bucket.at("/home/")])), "/home/me/  folder\n");
}

#[test]
fn a_domain_that_somebody_writes_or_may_not_delete_stays() {
    let bucket = bucket();
    let (at, to) = (bucket.at("/home/me/one"), "/home/me/new");
    let writer = File::options().write().open(at.as_str()).unwrap();
    for command in [vec!["rm", "--domain", &at], vec!["mv", "--domain", &at, to]] {
        let said = error(&run(&command));
        assert!(said.contains("another process writes"), "{said}");
    }
    writer.close().unwrap();
    let them = format!("{at}&user=them");
    for command in [vec!["rm", "--domain", &them], vec!["mv", "--domain", &them, to]] {
        let said = error(&run(&command));
        assert!(said.contains("the user them does not have the right delete for /home/me/one"), "{said}");
    }
    assert_eq!(text(&run(&["dump", &at, "a"])).lines().count(), 4);
    text(&run(&["rm", "--domain", &format!("{at}&user=me")]));
}

#[test]
fn a_domain_moves_to_another_path_without_its_objects_being_copied() {
    let bucket = bucket();
    let objects = files_below(&bucket.path().join("db"));
    let said = text(&run(&["mv", "--domain", &bucket.at("/home/me/one"), "/work/new/one"]));
    assert_eq!(said, "moved to /work/new/one\n");
    assert_eq!(files_below(&bucket.path().join("db")), objects);
    assert_eq!(text(&run(&["dump", &bucket.at("/work/new/one"), "a"])).lines().count(), 4);
    assert!(error(&run(&["dump", &bucket.at("/home/me/one")])).contains("no domain is at"));
    assert!(!bucket.path().join("home/me/one").exists());
    assert_eq!(text(&run(&["ls", &bucket.at("/work/")])), "/work/new/  folder\n");
    text(&run(&["mv", "--domain", &bucket.at("/work/new/one"), "/home/me/"]));
    assert_eq!(text(&run(&["ls", &bucket.at("/home/me/")])), "/home/me/one  domain\n/home/me/two  domain\n");
    let said = error(&run(&["mv", "--domain", &bucket.at("/home/me/one"), "/home/me/two"]));
    assert!(said.contains("/home/me/two exists"), "{said}");
    for (to, why) in [("/home/../x", "leads out of the bucket"), ("/db/x", "db/ has the objects"), ("/", "")] {
        let said = run(&["mv", "--domain", &bucket.at("/home/me/one"), to]);
        // The top of the bucket is a folder.
        assert_eq!(said.status.code(), Some(if to == "/" { 0 } else { 2 }), "{to}");
        assert!(String::from_utf8(said.stderr).unwrap().contains(why), "{to}");
    }
    let checked = text(&run(&["check", "--data", "--leaks", &bucket.at("/one")]));
    assert!(!checked.contains("unfinished"), "{checked}");
    let said = error(&run(&["mv", "--domain", &bucket.at("/home/me"), "/other"]));
    assert!(said.contains("move its domains one by one"), "{said}");
}

#[test]
fn a_move_that_was_killed_between_its_two_steps_loses_nothing_and_is_ended_by_another_one() {
    let bucket = bucket();
    let (one, new) = (bucket.path().join("home/me/one"), bucket.path().join("home/me/new"));
    let kill = || {
        std::fs::create_dir_all(&new).unwrap();
        std::fs::copy(one.join(".domain.json"), new.join(".domain.json")).unwrap();
    };
    kill();
    text(&run(&["mv", "--domain", &bucket.at("/home/me/one"), "/home/me/new"]));
    assert_eq!(text(&run(&["ls", &bucket.at("/home/me/")])), "/home/me/new  domain\n/home/me/two  domain\n");
    // Two domains with the same objects, as the service makes them, too: these go with the last one.
    std::fs::create_dir_all(&one).unwrap();
    std::fs::copy(new.join(".domain.json"), one.join(".domain.json")).unwrap();
    let said = text(&run(&["rm", "--domain", &bucket.at("/home/me/one")]));
    assert_eq!(said, "/home/me/one: deleted; its objects stay, because /home/me/new has the same\n");
    assert_eq!(text(&run(&["dump", &bucket.at("/home/me/new"), "a"])).lines().count(), 4);
    let said = text(&run(&["rm", "--domain", &bucket.at("/home/me/new")]));
    assert!(said.contains("deleted with"), "{said}");
}

#[test]
fn a_new_domain_needs_the_right_create_of_its_folder() {
    let bucket = bucket();
    let source = bucket.0.path().join("source.h5");
    File::create(&source).unwrap().close().unwrap();
    let source = source.to_str().unwrap();
    let to = |domain: &str, user: &str| format!("{}&user={user}", bucket.at(domain));
    for domain in ["/home/me/new", "/home/me/below/new"] {
        let said = error(&run(&["copy", "--quiet", source, &to(domain, "them")]));
        assert!(said.contains("the user them does not have the right create for /home/me"), "{said}");
    }
    let said = error(&run(&["mv", "--domain", &to("/home/you/one", "you"), "/home/me/new"]));
    assert!(said.contains("the user you does not have the right create for /home/me"), "{said}");
    assert_eq!(text(&run(&["ls", &bucket.at("/home/me/")])), "/home/me/one  domain\n/home/me/two  domain\n");
    text(&run(&["acl", "set", &bucket.at("/home/me"), "them", "create,read"]));
    text(&run(&["copy", "--quiet", source, &to("/home/me/new", "them")]));
    text(&run(&["mv", "--domain", &to("/home/me/new", "them"), "/home/me/newer"]));
    // Where no folder says anything, and without a user, everything is allowed.
    text(&run(&["copy", "--quiet", source, &to("/other/new", "them")]));
    text(&run(&["copy", "--quiet", source, &bucket.at("/home/me/by_nobody")]));
}

#[test]
fn names_that_no_path_can_have_are_findings() {
    let bucket = bucket();
    let root = files_below(&bucket.path().join("db"));
    let at = bucket.at("/home/me/one");
    let domain: Json = read_json(&bucket.path().join("home/me/one/.domain.json"));
    let id = domain["root"].as_str().unwrap()[2..19].to_owned();
    let group = root.iter().find(|path| path.ends_with(format!("{id}/.group.json"))).unwrap();
    let mut json = read_json(group);
    for name in ["", ".", "a/b", "..", "fine"] {
        json["links"][name] = serde_json::json!({"class": "H5L_TYPE_SOFT", "h5path": "/a", "created": 1.0});
    }
    std::fs::write(group, json.to_string()).unwrap();
    let checked = run(&["check", &at]);
    let said = String::from_utf8(checked.stdout).unwrap();
    assert_eq!(checked.status.code(), Some(1), "{said}");
    for (name, why) in [("\"\"", "it is empty"), ("\".\"", "it is the group itself"), ("\"a/b\"", "it has a slash")] {
        assert!(said.contains(&format!("no path leads to its link {name}: {why}")), "{said}");
    }
    assert_eq!(said.matches("no path leads to").count(), 3, "a path can have the others: {said}");
}

fn read_json(path: &Path) -> Json {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_long_listing_of_a_domain_has_its_owner_and_the_times_of_its_objects() {
    let bucket = bucket();
    let at = bucket.at("/home/me/one");
    let listed = json_lines(&text(&run(&["ls", "--long", "--json", &at])));
    assert_eq!(listed[0]["owner"], "me");
    let of = |path: &str| listed.iter().find(|line| line["path"] == path).unwrap();
    for path in ["/", "/a"] {
        assert!(of(path)["created"].is_string() && of(path)["modified"].is_string(), "{}", of(path));
    }
    let said = text(&run(&["ls", "--long", &at]));
    assert!(said.starts_with("/   group  20") && said.contains("Z  owner=me"), "{said}");
    assert!(!text(&run(&["ls", &at])).contains("owner="), "only a long one");
}

#[test]
fn a_session_that_has_changed_a_domain_leaves_true_numbers() {
    let bucket = Bucket::new();
    bucket.add("home/me/one", "me");
    let at = bucket.at("/home/me/one");
    let summary = || {
        let files = files_below(&bucket.path().join("db"));
        let found = files.iter().find(|path| path.ends_with(".info.json")).expect("a summary");
        (read_json(found), files)
    };
    let check = |chunks: u64, logical: u64, datasets: usize| {
        let (json, files) = summary();
        let bytes = |is_chunk: bool| -> u64 {
            let is_wanted = |path: &&PathBuf| {
                let name = path.file_name().unwrap().to_str().unwrap();
                if is_chunk { !name.starts_with('.') } else { name.starts_with('.') && name != ".info.json" }
            };
            files.iter().filter(is_wanted).map(|path| std::fs::metadata(path).unwrap().len()).sum()
        };
        assert_eq!((&json["num_groups"], &json["num_datatypes"]), (&1.into(), &0.into()), "{json}");
        assert_eq!((&json["num_chunks"], &json["logical_bytes"]), (&chunks.into(), &logical.into()), "{json}");
        assert_eq!(json["allocated_bytes"], bytes(true), "{json}");
        assert_eq!(json["metadata_bytes"], bytes(false), "{json}");
        assert_eq!(json["datasets"].as_object().unwrap().len(), datasets, "{json}");
        assert!(json["scan_complete"].as_f64().unwrap() >= json["lastModified"].as_f64().unwrap() - 1.0, "{json}");
    };
    check(2, 4, 1);
    let file = File::options().write().open(at.as_str()).unwrap();
    file.new_dataset::<i32>().shape(&[3]).create_with_data("b", &[1, 2, 3]).unwrap();
    file.flush().unwrap();
    let files = files_below(&bucket.path().join("db"));
    assert!(!files.iter().any(|path| path.ends_with(".info.json")), "while it changes, there is none");
    file.close().unwrap();
    check(3, 16, 2);
    // A session that changes nothing leaves it as it is.
    let before = summary().0;
    File::options().write().open(at.as_str()).unwrap().close().unwrap();
    assert_eq!(summary().0, before);
    assert!(text(&run(&["check", &at])).contains("sound"));
}
