//! HSDS's domains and folders.

use serde_json::json;

use crate::client::{Served, make, post, request};

fn served() -> Served {
    let served = Served::new();
    std::fs::create_dir(served.file("runs")).unwrap();
    for name in ["a.h5", "runs/b.h5", "runs/c.h5", "runs/d.h5"] {
        make(&served.file(name), |file| {
            file.new_dataset::<i32>().shape(&[3]).create("group/data")?;
            Ok(())
        });
    }
    served
}

/// The address in an answer of what is in this relation to it, without the server.
fn href(answer: &serde_json::Value, rel: &str) -> String {
    let found = answer["hrefs"].as_array().unwrap().iter().find(|href| href["rel"] == rel);
    let address = found.unwrap_or_else(|| panic!("no {rel}: {answer}"))["href"].as_str().unwrap();
    format!("/{}", address.splitn(4, '/').nth(3).unwrap())
}

#[test]
fn addresses_name_the_domain_where_the_request_does() {
    let served = served();
    assert_eq!(href(&served.json("/?domain=/a.h5"), "database"), "/datasets?domain=%2Fa.h5");
    let by_header = served.get_with("/", &[("x-hdf-domain", "/a.h5")]);
    assert_eq!(href(&by_header.json(), "database"), "/datasets");
    assert_eq!(by_header.headers["content-type"], "application/json; charset=utf-8");
    assert_eq!(served.json("/?domain=/a.h5&getdnids=1")["dn_ids"].as_array().unwrap().len(), 1);
    // `ann:x`
    let about = served.get_with("/about", &[("authorization", "Basic YW5uOng=")]);
    assert_eq!(about.json()["username"], "ann");
}

#[test]
fn the_service_says_what_it_is() {
    let served = Served::new();
    for base in ["", "/hsds"] {
        let about = served.json(&format!("{base}/about"));
        assert_eq!((&about["state"], &about["hsds_version"]), (&json!("READY"), &json!("1.0.2")));
        assert_eq!(served.json(&format!("{base}/info"))["node"]["type"], "sn");
    }
}

#[test]
fn a_file_is_a_domain_and_named_as_parameter_or_header() {
    let served = served();
    let domain = served.json("/?domain=/runs/b.h5");
    assert_eq!((&domain["class"], &domain["owner"]), (&json!("domain"), &json!("h5live")));
    let root = domain["root"].as_str().unwrap();
    // By this form, clients know the root group.
    let digits: String = root.chars().skip(2).filter(|c| *c != '-').collect();
    let number = |range: std::ops::Range<usize>| u64::from_str_radix(&digits[range], 16).unwrap();
    assert_eq!(number(0..16) ^ 0x8888_8888_8888_8888, number(16..32));
    let by_header = served.get_with("/", &[("x-hdf-domain", "/runs/b.h5")]);
    assert_eq!(by_header.json()["root"], root);
    assert!(by_header.headers.contains_key("etag"));
    let page = served.get_with("/?domain=/runs/b.h5", &[("accept", "text/html")]);
    assert_eq!(page.json()["root"], root);
    let verbose = served.json("/?domain=/runs/b.h5&verbose=1");
    let counts = ["num_groups", "num_datasets", "num_datatypes", "num_objects"].map(|name| verbose[name].as_u64());
    assert_eq!(counts, [Some(2), Some(1), Some(0), Some(3)]);
    assert!(verbose["total_size"].as_u64().unwrap() > 0);
}

#[test]
fn folders_are_domains_without_a_root() {
    let served = served();
    for domain in ["/", "/runs", "/runs/"] {
        let folder = served.json(&format!("/?domain={domain}"));
        assert!(folder["class"] == "folder" && folder.get("root").is_none(), "{domain}");
    }
    let names = |query: &str| {
        let listed = served.json(&format!("/domains{query}"));
        let domains = listed["domains"].as_array().unwrap();
        domains.iter().map(|domain| domain["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["/a.h5", "/runs"]);
    assert_eq!(names("?domain=/"), ["/a.h5", "/runs"]);
    assert_eq!(names("?domain=/runs/"), ["/runs/b.h5", "/runs/c.h5", "/runs/d.h5"]);
    assert_eq!(names("?domain=/runs/&Limit=2"), ["/runs/b.h5", "/runs/c.h5"]);
    assert_eq!(names("?domain=/runs/&Limit=2&Marker=/runs/c.h5"), ["/runs/d.h5"]);
    assert_eq!(names("?domain=/runs/&pattern=c*"), ["/runs/c.h5"]);
    let classes = served.json("/domains");
    assert_eq!(
        (&classes["domains"][0]["class"], &classes["domains"][1]["class"]),
        (&json!("domain"), &json!("folder"))
    );
    // A file has no domains below it.
    assert_eq!(served.json("/domains?domain=/a.h5")["domains"], json!([]));
    assert_eq!(names("?domain=/runs/&Marker=/runs/none.h5"), [""; 0]);
    served.refused("/domains?pattern=[", 400, "pattern");
    assert_eq!(href(&served.json("/?domain=/runs/b.h5"), "parent"), "/?domain=%2Fruns");
    assert_eq!(href(&served.json("/?domain=/runs"), "domains"), "/domains?domain=%2Fruns/");
    for top in ["/?domain=/a.h5", "/?domain=/runs"] {
        assert!(!served.json(top)["hrefs"].to_string().contains("parent"), "{top}");
    }
    let verbose = served.json("/domains?domain=/runs/&verbose=1&Limit=1");
    assert_eq!((&verbose["domains"][0]["num_datasets"], &verbose["domains"][0]["md5_sum"]), (&json!(1), &json!("")));
}

#[test]
fn what_is_no_domain_is_told() {
    let served = served();
    std::fs::write(served.file("text.h5"), "not HDF5").unwrap();
    served.refused("/?domain=/none.h5", 404, "not found");
    served.refused("/?domain=none.h5", 400, "Invalid domain");
    served.refused("/?domain=/../secret.h5", 404, "not found");
    served.refused("/?domain=/text.h5", 400, "text.h5");
    served.refused("/groups", 400, "No domain");
    served.refused("/groups?domain=/runs", 400, "is a folder");
    served.refused("/domains?query=a", 501, "not supported");
}

#[test]
fn everybody_may_read_and_nobody_may_write() {
    let served = served();
    let acl = &served.json("/acls/default?domain=/a.h5")["acl"];
    assert_eq!((&acl["read"], &acl["update"], &acl["userName"]), (&json!(true), &json!(false), &json!("default")));
    assert_eq!(served.json("/acls?domain=/a.h5")["acls"].as_array().unwrap().len(), 1);
    served.refused("/acls/nobody?domain=/a.h5", 404, "nobody");
    let root = served.json("/?domain=/a.h5")["root"].as_str().unwrap().to_owned();
    for (method, path) in [
        ("PUT", "/".to_owned()),
        ("DELETE", "/".to_owned()),
        ("POST", "/groups".to_owned()),
        ("POST", "/datasets".to_owned()),
        ("DELETE", format!("/groups/{root}")),
        ("PUT", format!("/groups/{root}/links/x")),
        ("PUT", format!("/groups/{root}/attributes/x")),
        ("PUT", "/acls/default".to_owned()),
    ] {
        let refused = request(served.address(), method, &format!("{path}?domain=/a.h5"), &[]);
        assert_eq!(refused.status, 405, "{method} {path}");
        assert!(refused.json()["message"].as_str().unwrap().contains("only reads"));
    }
}

#[test]
fn bodies_have_limits() {
    let served = served();
    let address = served.address();
    let path = "/?domain=/a.h5";
    assert_eq!(request(address, "POST", path, &[]).status, 411);
    assert_eq!(request(address, "POST", path, &[("content-length", "4194305")]).status, 413);
    assert_eq!(request(address, "POST", path, &[("transfer-encoding", "chunked")]).status, 411);
    for body in ["", "{", "[]", r#"{"h5paths":[1]}"#] {
        assert_eq!(post(address, path, &[], body.as_bytes()).status, 400, "{body}");
    }
}

#[test]
fn the_token_may_be_the_password_of_any_user() {
    let served = Served::with(|config| {
        config.without_authentication = false;
        config.fixed_token = Some("secret".into());
    });
    make(&served.file("a.h5"), |_| Ok(()));
    // `anybody:secret`
    let basic = served.get_with("/?domain=/a.h5", &[("authorization", "Basic YW55Ym9keTpzZWNyZXQ=")]);
    assert_eq!(basic.status, 200, "{}", basic.text());
    for path in ["/?domain=/a.h5", "/about", "/domains", "/groups?domain=/a.h5"] {
        assert_eq!(served.get(path).status, 401, "{path}");
    }
}
