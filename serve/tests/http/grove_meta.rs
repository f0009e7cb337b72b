//! h5grove's `/meta`, `/attr` and `/paths`.

use h5live::model::{ByteOrder, Datatype, Sign};
use serde_json::json;

use crate::client::{Served, make};

#[test]
fn a_client_without_a_page_is_told_that_all_is_well() {
    let served = Served::new();
    assert_eq!((served.get("/").status, served.get("/").text()), (200, "ok".to_owned()));
    assert_eq!(served.get("/grove/").text(), "ok");
    let page = served.get_with("/", &[("accept", "text/html")]);
    assert_eq!((page.status, &*page.headers["content-encoding"]), (200, "gzip"));
}

#[test]
fn datasets_and_committed_types_are_described() {
    let served = Served::new();
    make(&served.file("a.h5"), |file| {
        let data =
            file.new_dataset::<f64>().shape(&[10, 10]).chunk_shape(&[5, 5]).shuffle().deflate(4).create("data")?;
        data.set_attribute("units", "mm")?;
        data.set_attribute("gain", &[1i16, 2])?;
        file.root().commit_datatype("type", &Datatype::float(8, ByteOrder::Big).unwrap())?;
        Ok(())
    });
    let expected = json!({
        "attributes": [
            { "name": "gain", "shape": [], "type": { "class": 10, "dtype": "|V4", "size": 4, "dims": [2],
              "base": { "class": 0, "dtype": "<i2", "size": 2, "order": 0, "sign": 1 } } },
            { "name": "units", "shape": [], "type":
              { "class": 3, "dtype": "|O", "size": 8, "cset": 1, "strpad": 0, "vlen": true } },
        ],
        "chunks": [5, 5],
        "filters": [{ "id": 2, "name": "shuffle" }, { "id": 1, "name": "deflate" }],
        "kind": "dataset",
        "name": "data",
        "shape": [10, 10],
        "type": { "class": 1, "dtype": "<f8", "size": 8, "order": 0 },
    });
    for base in ["", "/grove"] {
        assert_eq!(served.json(&format!("{base}/meta?file=a.h5&path=/data")), expected);
    }
    let named = served.json("/meta?file=a.h5&path=/type");
    let float = json!({ "class": 1, "dtype": ">f8", "size": 8, "order": 1 });
    assert_eq!(named, json!({ "attributes": [], "kind": "datatype", "name": "type", "type": float }));
    assert_eq!(served.json("/attr?file=a.h5&path=/data"), json!({ "gain": [1, 2], "units": "mm" }));
    assert_eq!(served.json("/attr?file=a.h5&path=/data&attr_keys=units"), json!({ "units": "mm" }));
    served.refused("/attr?file=a.h5&path=/data&attr_keys=none", 404, "none");
}

#[test]
fn members_of_compounds_and_values_of_enums_are_described() {
    let served = Served::new();
    let text = Datatype::fixed_string(10, Default::default());
    let number = Datatype::integer(4, ByteOrder::Little, Sign::Signed);
    make(&served.file("a.h5"), |file| {
        let dogs = Datatype::compound([("name", text), ("age", number)]);
        file.root().new_dataset_with_type(dogs).shape(&[2]).create("dogs")?;
        file.new_dataset::<bool>().shape(&[2]).create("flags")?;
        Ok(())
    });
    let dogs = &served.json("/meta?file=a.h5&path=/dogs")["type"];
    assert_eq!((&dogs["class"], &dogs["dtype"]), (&json!(6), &json!({ "age": "<i4", "name": "|S10" })));
    assert_eq!(
        dogs["members"][1],
        json!({ "name": "age", "class": 0, "dtype": "<i4", "size": 4, "order": 0, "sign": 1 })
    );
    let flags = &served.json("/meta?file=a.h5&path=/flags")["type"];
    assert_eq!((&flags["dtype"], &flags["members"]), (&json!("|b1"), &json!({ "FALSE": 0, "TRUE": 1 })));
}

#[test]
fn groups_have_children_one_level_deep() {
    let served = Served::new();
    make(&served.file("a.h5"), |file| {
        file.set_attribute("NX_class", "NXroot")?;
        file.create_group("group/deeper")?;
        file.new_dataset::<i64>().shape(&[10]).create("data")?;
        Ok(())
    });
    let root = served.json("/meta?file=a.h5");
    assert_eq!((&root["kind"], &root["name"]), (&json!("group"), &json!("")));
    assert_eq!(root["attributes"][0]["name"], "NX_class");
    assert_eq!((&root["children"][0]["name"], &root["children"][0]["shape"]), (&json!("data"), &json!([10])));
    assert_eq!(root["children"][1], json!({ "attributes": [], "kind": "group", "name": "group" }));
}

#[test]
fn links_are_followed_as_asked() {
    let served = Served::new();
    make(&served.file("source.h5"), |file| file.new_dataset::<f64>().shape(&[10]).create("data").map(drop));
    make(&served.file("a.h5"), |file| {
        file.root().link_external("external", "source.h5", "/data")?;
        file.root().link_external("away", "none.h5", "/data")?;
        file.root().link_soft("soft", "not_an_entity")
    });
    let meta = |path: &str, links: &str| served.json(&format!("/meta?file=a.h5&path={path}&resolve_links={links}"));
    let external =
        json!({ "kind": "external_link", "name": "external", "target_file": "source.h5", "target_path": "/data" });
    assert_eq!(meta("/external", "none"), external);
    for links in ["only_valid", "all"] {
        assert_eq!(meta("/external", links)["shape"], json!([10]));
    }
    let soft = json!({ "kind": "soft_link", "name": "soft", "target_path": "not_an_entity" });
    for links in ["none", "only_valid"] {
        assert_eq!(meta("soft", links), soft);
        assert_eq!(meta("/away", links)["kind"], "external_link");
    }
    served.refused(
        "/meta?file=a.h5&path=soft&resolve_links=all",
        404,
        "Cannot resolve <SoftLink to \"not_an_entity\">",
    );
    served.refused("/meta?file=a.h5&path=/away&resolve_links=true", 404, "Cannot resolve <ExternalLink to");
    served.refused("/meta?file=a.h5&resolve_links=maybe", 422, "Accepted values are: all, none or only_valid");
    assert_eq!(served.json("/meta?file=a.h5")["children"].as_array().unwrap().len(), 3);
}

#[test]
fn paths_are_those_below_a_group() {
    let served = Served::new();
    make(&served.file("a.h5"), |file| {
        file.new_dataset::<u8>().create("tree/branch/fruit")?;
        file.group("tree/branch")?.link_soft("fruit_2", "fruit")?;
        file.create_group("tree_2")?.link_soft("branch", "/tree/branch")?;
        file.root().link_external("tree_3", "test2.h5", "/another_tree")
    });
    let all = [
        "/",
        "/tree",
        "/tree/branch",
        "/tree/branch/fruit",
        "/tree/branch/fruit_2",
        "/tree_2",
        "/tree_2/branch",
        "/tree_3",
    ];
    assert_eq!(served.json("/paths?file=a.h5"), json!(all));
    let below = json!(["/tree_2/branch", "/tree_2/branch/fruit", "/tree_2/branch/fruit_2"]);
    assert_eq!(served.json("/paths?file=a.h5&path=/tree_2/branch"), below);
    served.refused("/paths?file=a.h5&resolve_links=all", 404, "Cannot resolve");
    served.refused("/paths?file=a.h5&path=/tree/branch/fruit", 422, "is not a group");
}

#[test]
fn what_is_not_there_is_told_in_h5groves_words() {
    let served = Served::new();
    make(&served.file("a.h5"), |file| file.new_dataset::<u8>().create("data").map(drop));
    std::fs::write(served.file("text.h5"), "not HDF5").unwrap();
    for route in ["meta", "attr", "data", "stats", "paths"] {
        served.refused(&format!("/{route}?file=none.h5"), 404, "File not found!");
        served.refused(&format!("/{route}?file=a.h5&path=none"), 404, "none is not a valid path in a.h5");
        served.refused(&format!("/{route}?file=a.h5&path=/data/below"), 404, "is not a valid path in a.h5");
        served.refused(&format!("/{route}?path=/"), 422, "file");
        served.refused(&format!("/{route}?file=text.h5"), 422, "text.h5");
    }
    served.refused("/data?file=a.h5&path=/", 422, "/ is not a dataset");
    served.refused("/nothing", 404, "nothing at this address");
}

#[cfg(unix)]
#[test]
fn a_file_that_the_system_does_not_let_be_read_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let served = Served::new();
    make(&served.file("a.h5"), |_| Ok(()));
    std::fs::set_permissions(served.file("a.h5"), std::fs::Permissions::from_mode(0o200)).unwrap();
    // Root may read everything.
    if std::fs::File::open(served.file("a.h5")).is_err() {
        served.refused("/meta?file=a.h5", 403, "Permission denied");
    }
}
