//! Buckets in the schema of HSDS: domains there are described with what their objects say.

use serde_json::{Value as Json, json};

use crate::client::Served;

const DOMAIN: &str = "/home/ann/run";
const AT: &str = "domain=/home/ann/run";

/// A bucket with a domain.
fn served() -> Served {
    let served = Served::new();
    let at = format!("hsds:{}?domain={DOMAIN}&owner=ann", served.root().display());
    let file = h5live::File::create(at).unwrap();
    for name in ["b", "a", "c"] {
        file.create_group(name).unwrap();
        file.set_attribute(name, &1u8).unwrap();
    }
    file.close().unwrap();
    served
}

/// The object of the domain.
fn document(served: &Served, path: &str) -> Json {
    serde_json::from_slice(&std::fs::read(served.file(path)).unwrap()).unwrap()
}

/// The path of the object of the root group.
fn root_path(root: &str) -> String {
    format!("db/{}/.group.json", &root[2..19])
}

#[test]
fn objects_have_the_identities_that_the_bucket_has() {
    let served = served();
    let own = document(&served, "home/ann/run/.domain.json")["root"].clone();
    assert_eq!(served.json(&format!("/?{AT}"))["root"], own);
    let group = document(&served, &root_path(own.as_str().unwrap()));
    let links = served.json(&format!("/groups/{}?{AT}&include_links=1", own.as_str().unwrap()))["links"].clone();
    let group_answer = served.json(&format!("/groups/{}?{AT}", own.as_str().unwrap()));
    assert_eq!(group_answer["bucket"], "served");
    for name in ["a", "b", "c"] {
        assert_eq!(links[name]["id"], group["links"][name]["id"], "{name}");
    }
}

#[test]
fn folders_of_domains_are_folders() {
    let served = served();
    for folder in ["/home", "/home/ann", "/home/ann/"] {
        let found = served.json(&format!("/?domain={folder}"));
        assert_eq!((&found["class"], &found["owner"]), (&json!("folder"), &json!("ann")), "{folder}");
        assert!(found["created"].as_f64().unwrap() > 1e9);
    }
    // What is beside the domains is none.
    let top = served.json("/domains?domain=/");
    assert_eq!(top["domains"].as_array().unwrap().len(), 1, "{top}");
    assert_eq!(top["domains"][0]["name"], "/home");
    let listed = &served.json("/domains?domain=/home/ann/")["domains"][0];
    assert_eq!(
        (&listed["name"], &listed["owner"], &listed["class"]),
        (&json!(DOMAIN), &json!("ann"), &json!("domain"))
    );
    assert_eq!(listed["root"], served.json(&format!("/?{AT}"))["root"]);
    served.refused("/groups?domain=/home", 400, "is a folder");
}

#[test]
fn rights_are_those_that_the_domain_says() {
    let served = served();
    let acls = served.json(&format!("/acls?{AT}"));
    let users: Vec<_> = acls["acls"].as_array().unwrap().iter().map(|acl| acl["userName"].clone()).collect();
    assert_eq!(users, ["ann", "default"]);
    let own = &served.json(&format!("/acls/ann?{AT}"))["acl"];
    assert_eq!((&own["update"], &own["updateACL"]), (&json!(true), &json!(true)));
    assert_eq!(served.json("/acls/ann?domain=/home/ann")["acl"]["delete"], true);
    served.refused(&format!("/acls/bob?{AT}"), 404, "bob");
}

#[test]
fn links_and_attributes_are_in_the_order_in_which_hsds_has_made_them() {
    let served = served();
    let root = served.json(&format!("/?{AT}"))["root"].as_str().unwrap().to_owned();
    let (path, time) = (root_path(&root), 1_700_000_000.0);
    let mut group = document(&served, &path);
    for part in ["links", "attributes"] {
        for (name, after) in [("b", 0.25), ("c", 0.5), ("a", 0.75)] {
            group[part][name]["created"] = json!(time + after);
        }
    }
    group["created"] = json!(time);
    std::fs::write(served.file(&path), group.to_string()).unwrap();
    for (part, name) in [("links", "title"), ("attributes", "name")] {
        let names = |query: &str| {
            let listed = served.json(&format!("/groups/{root}/{part}?{AT}{query}"))[part].clone();
            listed.as_array().unwrap().iter().map(|entry| entry[name].clone()).collect::<Vec<_>>()
        };
        assert_eq!(names("&CreateOrder=1"), ["b", "c", "a"], "{part}");
        assert_eq!(names(""), ["a", "b", "c"], "{part}");
    }
    let whole = served.json(&format!("/groups/{root}?{AT}&include_links=1&include_attrs=1"));
    assert_eq!(whole["created"], time);
    assert_eq!(
        (&whole["links"]["c"]["created"], &whole["attributes"]["a"]["created"]),
        (&json!(time + 0.5), &json!(time + 0.75))
    );
}
