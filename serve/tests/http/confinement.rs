//! Nothing leads out of the folder.

use h5live::model::{Selection, VirtualSource};

use crate::client::{Served, make};

fn source(file: &str) -> VirtualSource {
    let all = || Selection::All;
    VirtualSource { file: file.into(), dataset: "/data".into(), source: all(), target: all() }
}

/// A folder, with a file beside it that clients must not see.
fn served_with_secret() -> Served {
    let served = Served::new();
    let fill = |file: &h5live::File| file.new_dataset::<u8>().shape(&[3]).create("data")?.write(b"abc");
    make(&served.folder.path().join("secret.h5"), fill);
    make(&served.file("inside.h5"), fill);
    served
}

#[test]
fn names_of_files_lead_nowhere_else() {
    let served = served_with_secret();
    assert_eq!(served.get("/data?file=inside.h5&path=/data&format=bin").body, b"abc");
    let absolute = served.folder.path().join("secret.h5");
    for name in [
        "../secret.h5",
        "%2e%2e/secret.h5",
        "..%2fsecret.h5",
        "sub/../../secret.h5",
        "../served/inside.h5",
        "./../secret.h5",
        "inside.h5/../../secret.h5",
        "file:../secret.h5",
        "native:../secret.h5",
        "kv:../",
        "mem:x",
        "..%5csecret.h5",
        "inside.h5%00",
        &absolute.to_string_lossy(),
        "/etc/passwd",
        "",
    ] {
        for route in ["meta", "data", "attr", "stats", "paths", "events"] {
            served.refused(&format!("/{route}?file={name}&path=/data"), 404, "File not found!");
        }
        assert!(served.get(&format!("/api/files?folder={name}")).status == 404 || name.is_empty(), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn symbolic_links_lead_nowhere_else() {
    use std::os::unix::fs::symlink;
    let served = served_with_secret();
    symlink("../secret.h5", served.file("out.h5")).unwrap();
    symlink("..", served.file("up")).unwrap();
    symlink("inside.h5", served.file("in.h5")).unwrap();
    assert_eq!(served.json("/meta?file=in.h5&path=/data")["kind"], "dataset");
    served.refused("/meta?file=out.h5", 404, "File not found!");
    served.refused("/meta?file=up/secret.h5", 404, "File not found!");
    let names = served.json("/api/files");
    let names: Vec<_> = names["entries"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["in.h5", "inside.h5"]);
}

#[test]
fn external_links_and_virtual_datasets_lead_to_the_folder_only() {
    let served = served_with_secret();
    let secret = served.folder.path().join("secret.h5");
    let outside = ["../secret.h5".to_owned(), secret.to_string_lossy().into_owned()];
    make(&served.file("a.h5"), |file| {
        for (n, name) in outside.iter().enumerate() {
            file.root().link_external(&format!("out{n}"), name, "/data")?;
            let builder = file.new_dataset::<u8>().shape(&[3]).virtual_sources(vec![source(name)]);
            builder.create(&format!("virtual{n}"))?;
        }
        file.root().link_external("in", "inside.h5", "/data")?;
        file.new_dataset::<u8>().shape(&[3]).virtual_sources(vec![source("inside.h5")]).create("virtual")?;
        Ok(())
    });
    assert_eq!(served.get("/data?file=a.h5&path=/in&format=bin").body, b"abc");
    assert_eq!(served.get("/data?file=a.h5&path=/virtual&format=bin").body, b"abc");
    for n in 0..outside.len() {
        let link = served.json(&format!("/meta?file=a.h5&path=/out{n}"));
        assert_eq!(link["kind"], "external_link");
        let unresolved = served.get(&format!("/meta?file=a.h5&path=/out{n}&resolve_links=all"));
        assert!(unresolved.status == 404 && unresolved.text().contains("Cannot resolve"), "{}", unresolved.text());
        served.refused(&format!("/data?file=a.h5&path=/virtual{n}"), 403, "does not let links lead there");
    }
}

#[test]
fn sources_that_are_not_in_the_folder_are_fill_values() {
    let served = served_with_secret();
    make(&served.file("a.h5"), |file| {
        file.new_dataset::<u8>().shape(&[3]).virtual_sources(vec![source("missing.h5")]).create("virtual").map(drop)
    });
    assert_eq!(served.get("/data?file=a.h5&path=/virtual&format=bin").body, [0, 0, 0]);
}

#[test]
fn raw_files_are_not_read() {
    let served = served_with_secret();
    std::fs::write(served.file("raw.bin"), "secret").unwrap();
    make(&served.file("raw.h5"), |file| {
        file.new_dataset::<u8>().shape(&[3]).external("raw.bin", 0, 3).create("data").map(drop)
    });
    make(&served.file("virtual.h5"), |file| {
        file.new_dataset::<u8>().shape(&[3]).virtual_sources(vec![source("raw.h5")]).create("data").map(drop)
    });
    assert_eq!(served.json("/meta?file=raw.h5&path=/data")["shape"], serde_json::json!([3]));
    for file in ["raw.h5", "virtual.h5"] {
        served.refused(&format!("/data?file={file}&path=/data"), 403, "raw files, which are not read here");
        served.refused(&format!("/stats?file={file}&path=/data"), 403, "raw files, which are not read here");
    }
}

#[test]
fn a_single_file_shows_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    make(&folder.path().join("beside.h5"), |file| file.new_dataset::<u8>().shape(&[3]).create("data").map(drop));
    make(&folder.path().join("a.h5"), |file| file.root().link_external("link", "beside.h5", "/data"));
    let served = Served::with(|config| config.roots = vec![folder.path().join("a.h5").into()]);
    assert_eq!(served.json("/meta?file=a.h5")["children"][0]["kind"], "external_link");
    served.refused("/meta?file=beside.h5", 404, "File not found!");
    served.refused("/meta?file=../beside.h5", 404, "File not found!");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_opened() {
    let served = Served::new();
    let socket = std::os::unix::net::UnixListener::bind(served.file("socket.h5"));
    assert!(socket.is_ok());
    served.refused("/meta?file=socket.h5", 404, "File not found!");
    assert_eq!(served.json("/api/files")["entries"], serde_json::json!([]));
}
