//! HSDS's groups, datasets, committed types, links and attributes.

use h5live::Reference;
use h5live::model::{ByteOrder, Datatype, FilterSpec, Sign};
use serde_json::{Value as Json, json};

use crate::client::{Served, make};

const AT: &str = "domain=/a.h5";

fn served() -> Served {
    let served = Served::new();
    make(&served.file("a.h5"), |file| {
        file.set_attribute("title", "a title")?;
        file.set_attribute("numbers", &[1i16, -2])?;
        let data = file.new_dataset::<f64>().shape(&[4, 6]).chunk_shape(&[2, 3]).shuffle().deflate(4).create("data")?;
        data.set_attribute("units", "mm")?;
        data.set_attribute("bad", &[f64::NAN, f64::INFINITY, 0.5])?;
        file.create_group("group/inner")?.link_soft("soft", "/data")?;
        file.group("group")?.link_external("away", "other.h5", "/x")?;
        file.root().commit_datatype("type", &Datatype::integer(2, ByteOrder::Big, Sign::Signed))?;
        Ok(())
    });
    served
}

fn root(served: &Served) -> String {
    served.json(&format!("/?{AT}"))["root"].as_str().unwrap().to_owned()
}

fn id_of(served: &Served, path: &str) -> String {
    served.json(&format!("/?{AT}&h5path={path}"))["id"].as_str().unwrap().to_owned()
}

#[test]
fn groups_are_described_with_links_and_attributes() {
    let served = served();
    let root = root(&served);
    let group = served.json(&format!("/groups/{root}?{AT}"));
    assert_eq!((&group["id"], &group["root"], &group["domain"]), (&json!(root), &json!(root), &json!("/a.h5")));
    assert_eq!((&group["linkCount"], &group["attributeCount"]), (&json!(3), &json!(2)));
    assert!(group.get("links").is_none() && group.get("attributes").is_none());
    let whole = served.json(&format!("/groups/{root}?{AT}&include_links=1&include_attrs=1"));
    assert_eq!(whole["links"]["data"]["class"], "H5L_TYPE_HARD");
    assert!(whole["links"]["data"]["id"].as_str().unwrap().starts_with("d-"));
    assert!(whole["links"]["type"]["id"].as_str().unwrap().starts_with("t-"));
    assert_eq!(whole["attributes"]["numbers"]["value"], json!([1, -2]));
    assert_eq!(whole["attributes"]["title"]["value"], "a title");
    assert_eq!(whole["attributes"]["title"]["type"]["length"], "H5T_VARIABLE");
    let inner = id_of(&served, "/group/inner");
    assert_eq!(served.json(&format!("/groups/{inner}?{AT}&getalias=1"))["alias"], json!(["/group/inner"]));
    assert_eq!(served.json(&format!("/groups/?{AT}&h5path=/group/inner"))["id"], json!(inner));
}

#[test]
fn datasets_and_committed_types_are_described() {
    let served = served();
    let id = id_of(&served, "/data");
    let data = served.json(&format!("/datasets/{id}?{AT}"));
    let layout = json!({ "class": "H5D_CHUNKED", "dims": [2, 3] });
    assert_eq!((&data["layout"], &data["creationProperties"]["layout"]), (&layout, &layout));
    assert_eq!(data["type"], json!({ "class": "H5T_FLOAT", "base": "H5T_IEEE_F64LE" }));
    assert_eq!(data["shape"], json!({ "class": "H5S_SIMPLE", "dims": [4, 6] }));
    let filters = json!([
        { "class": "H5Z_FILTER_SHUFFLE", "id": 2, "name": "shuffle" },
        { "class": "H5Z_FILTER_DEFLATE", "id": 1, "level": 4, "name": "gzip" },
    ]);
    assert_eq!(data["creationProperties"]["filters"], filters);
    assert_eq!(served.json(&format!("/datasets/{id}/shape?{AT}"))["shape"], data["shape"]);
    assert_eq!(served.json(&format!("/datasets/{id}/type?{AT}"))["type"], data["type"]);
    let named = id_of(&served, "/type");
    let named = served.json(&format!("/datatypes/{named}?{AT}"));
    assert_eq!((&named["type"]["base"], &named["type"]["id"]), (&json!("H5T_STD_I16BE"), &named["id"]));
    for (name, count) in [("groups", 2), ("datasets", 1), ("datatypes", 1)] {
        assert_eq!(served.json(&format!("/{name}?{AT}"))[name].as_array().unwrap().len(), count, "{name}");
    }
}

#[test]
fn links_are_listed_and_named() {
    let served = served();
    let (root, group, inner) = (root(&served), id_of(&served, "/group"), id_of(&served, "/group/inner"));
    let titles = |query: &str| {
        let listed = served.json(&format!("/groups/{root}/links?{AT}{query}"));
        let links = listed["links"].as_array().unwrap();
        links.iter().map(|link| link["title"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(titles(""), ["data", "group", "type"]);
    assert_eq!(titles("&Limit=2"), ["data", "group"]);
    assert_eq!(titles("&Marker=data&Limit=1"), ["group"]);
    assert_eq!(titles("&pattern=*p*"), ["group", "type"]);
    let link = served.json(&format!("/groups/{root}/links/group?{AT}"));
    assert_eq!((&link["link"]["id"], &link["link"]["collection"]), (&json!(group), &json!("groups")));
    let soft = &served.json(&format!("/groups/{inner}/links/soft?{AT}"))["link"];
    assert_eq!(*soft, json!({ "title": "soft", "class": "H5L_TYPE_SOFT", "h5path": "/data" }));
    let away = &served.json(&format!("/groups/{group}/links/away?{AT}"))["link"];
    assert_eq!(
        (&away["class"], &away["file"], &away["h5path"]),
        (&json!("H5L_TYPE_EXTERNAL"), &json!("other.h5"), &json!("/x"))
    );
    served.refused(&format!("/groups/{root}/links/none?{AT}"), 404, "none");
    served.refused(&format!("/groups/{root}/links?{AT}&Limit=x"), 400, "number");
    let some = served.post_json(&format!("/groups/{root}/links?{AT}"), &json!({ "titles": ["type", "data"] }));
    assert_eq!((some["links"].as_array().unwrap().len(), &some["links"][0]["title"]), (2, &json!("type")));
    let both = json!({ "grp_ids": { root.clone(): ["data"], group.clone(): ["away", "inner"] } });
    let both = served.post_json(&format!("/groups/{root}/links?{AT}"), &both);
    assert_eq!(both["links"][&*group].as_array().unwrap().len(), 2);
}

#[test]
fn attributes_are_listed_and_named() {
    let served = served();
    let (root, data) = (root(&served), id_of(&served, "/data"));
    let listed = served.json(&format!("/groups/{root}/attributes?{AT}"));
    let names: Vec<_> = listed["attributes"].as_array().unwrap().iter().map(|a| a["name"].clone()).collect();
    assert_eq!(names, [json!("numbers"), json!("title")]);
    assert!(listed["attributes"][0].get("value").is_none());
    let title = served.json(&format!("/groups/{root}/attributes/title?{AT}"));
    assert_eq!((&title["value"], &title["shape"]["class"]), (&json!("a title"), &json!("H5S_SCALAR")));
    let bad = served.get(&format!("/datasets/{data}/attributes/bad?{AT}")).text();
    assert!(bad.contains("\"value\":[NaN,Infinity,0.5]"), "{bad}");
    let nulls = served.json(&format!("/datasets/{data}/attributes/bad?{AT}&ignore_nan=1"));
    assert_eq!(nulls["value"], json!([null, null, 0.5]));
    let bytes = format!("/groups/{root}/attributes/numbers/value?{AT}");
    let bytes = served.get_with(&bytes, &[("accept", "application/octet-stream")]);
    assert_eq!((&*bytes.headers["content-type"], &*bytes.body), ("application/octet-stream", &[1, 0, 0xfe, 0xff][..]));
    let base64 = served.json(&format!("/groups/{root}/attributes/numbers?{AT}&encoding=base64"));
    assert_eq!((&base64["value"], &base64["encoding"]), (&json!("AQD+/w=="), &json!("base64")));
    let some = json!({ "attr_names": ["units"] });
    let some = served.post_json(&format!("/datasets/{data}/attributes?{AT}&IncludeData=1"), &some);
    assert_eq!(some["attributes"][0]["value"], "mm");
    let all = served.post_json(&format!("/groups/{root}/attributes?{AT}"), &json!({ "obj_ids": [root, data] }));
    assert_eq!(all["attributes"][&*data].as_array().unwrap().len(), 2);
    served.refused(&format!("/groups/{root}/attributes/none?{AT}"), 404, "none");
    served.refused(&format!("/datasets/{root}/attributes?{AT}"), 400, "Invalid id");
}

#[test]
fn attributes_whose_names_are_not_utf_8_are_found_as_they_are_shown() {
    let served = Served::new();
    make(&served.file("a.h5"), |file| file.root().new_attribute(b"bad\xc3name").write_scalar(&7u8));
    let root = root(&served);
    let listed = served.json(&format!("/groups/{root}/attributes?{AT}"));
    assert_eq!(listed["attributes"][0]["name"], "bad\u{fffd}name");
    assert_eq!(served.json(&format!("/groups/{root}/attributes/bad%EF%BF%BDname?{AT}"))["value"], 7);
    served.refused(&format!("/groups/{root}/attributes/%EF%BF%BD?{AT}"), 404, "There is no attribute");
}

#[test]
fn identities_belong_to_one_file_and_last() {
    let served = served();
    make(&served.file("b.h5"), |_| Ok(()));
    let id = id_of(&served, "/data");
    assert_eq!(id, id_of(&served, "/data"));
    served.refused(&format!("/datasets/{id}?domain=/b.h5"), 404, "There is no object");
    served.refused(&format!("/groups/{id}?{AT}"), 400, "Invalid id");
    for bad in ["x", "d-1", "d-00000000-00000000-0000-000000-00000g"] {
        served.refused(&format!("/datasets/{bad}?{AT}"), 400, "Invalid id");
    }
    let other = format!("{}000001", &id[..id.len() - 6]);
    served.refused(&format!("/datasets/{other}?{AT}"), 404, "There is no object");
    // Another file in its place: the same addresses mean other objects.
    std::fs::rename(served.file("b.h5"), served.file("a.h5")).unwrap();
    served.refused(&format!("/datasets/{id}?{AT}"), 404, "There is no object");
}

#[test]
fn several_paths_are_found_at_once() {
    let served = served();
    let found = served.post_json(&format!("/?{AT}"), &json!({ "h5paths": ["/data", "/group"] }));
    let classes = |path: &str| -> Json { found["h5paths"][path]["class"].clone() };
    assert_eq!((classes("/data"), classes("/group")), (json!("dataset"), json!("group")));
    served.refused(&format!("/?{AT}&h5path=/nothing"), 404, "nothing");
    served.refused(&format!("/?{AT}&h5path=/data/nothing"), 404, "not a group");
    served.refused(&format!("/datasets/?{AT}&h5path=/group"), 404, "datasets");
}

#[test]
fn links_and_attributes_below_a_group_are_followed() {
    let served = served();
    let (root, group, data) = (root(&served), id_of(&served, "/group"), id_of(&served, "/data"));
    let links = served.json(&format!("/groups/{root}/links?{AT}&follow_links=1"));
    let titles = |id: &str| {
        let links = links["links"][id].as_array().unwrap();
        links.iter().map(|link| link["title"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((titles(&root), titles(&group)), (vec!["data", "group", "type"], vec!["away", "inner"]));
    let fitting = served.json(&format!("/groups/{root}/links?{AT}&follow_links=1&pattern=[d-g]*&Limit=1"));
    assert_eq!(fitting["links"][&*root].as_array().unwrap().len(), 1);
    assert_eq!(fitting["links"][&*group], json!([]));
    let all = served.json(&format!("/groups/{root}/attributes?{AT}&follow_links=1&IncludeData=1&ignore_nan=1"));
    assert_eq!(all["attributes"][&*data][1]["value"], "mm");
    assert_eq!(all["attributes"][&*root].as_array().unwrap().len(), 2);
    assert_eq!(all["attributes"][&*group], json!([]));
    served.refused(&format!("/datasets/{data}/attributes?{AT}&follow_links=1"), 400, "group");
}

#[test]
fn lists_begin_after_a_marker_that_is_there() {
    let served = served();
    let root = root(&served);
    for list in ["links", "attributes"] {
        served.refused(&format!("/groups/{root}/{list}?{AT}&Marker=none"), 404, "marker");
        served.refused(&format!("/groups/{root}/{list}?{AT}&pattern=[z"), 400, "pattern");
    }
    // Of attributes, as many are taken, and then those that fit.
    let names = |query: &str| served.json(&format!("/groups/{root}/attributes?{AT}{query}"))["attributes"].clone();
    assert_eq!(names("&Limit=1&pattern=t*"), json!([]));
    assert_eq!(names("&Marker=numbers&pattern=t*")[0]["name"], "title");
}

#[test]
fn paths_lead_through_links_that_are_to_be_followed() {
    let served = served();
    make(&served.file("other.h5"), |file| {
        file.new_dataset::<u8>().create("x/y")?;
        file.root().link_soft("loop", "/loop")
    });
    let (soft, away) = ("h5path=/group/inner/soft", "h5path=/group/away/y");
    served.refused(&format!("/?{AT}&{soft}"), 400, "follow_soft_links");
    assert_eq!(served.json(&format!("/?{AT}&{soft}&follow_soft_links=1"))["id"], json!(id_of(&served, "/data")));
    served.refused(&format!("/?{AT}&{away}&follow_soft_links=1"), 400, "follow_external_links");
    let found = served.json(&format!("/?{AT}&{away}&follow_external_links=1"));
    assert_eq!((&found["domain"], &found["class"]), (&json!("/other.h5"), &json!("dataset")));
    let there = served.json("/?domain=/other.h5&h5path=/x/y");
    assert_eq!(found["id"], there["id"]);
    served.refused("/?domain=/other.h5&h5path=/loop&follow_soft_links=1", 400, "too many links");
    served.refused(&format!("/?{AT}&h5path=/data/x"), 404, "not a group");
    served.refused(&format!("/datasets/?{AT}&h5path=data"), 400, "absolute");
    let posted = json!({ "h5paths": ["/group/inner/soft"] });
    let posted = served.post_json(&format!("/?{AT}&follow_soft_links=1"), &posted);
    assert_eq!(posted["h5paths"]["/group/inner/soft"]["class"], "dataset");
}

#[test]
fn parts_are_described_as_hsds_does() {
    let served = served();
    make(&served.file("parts.h5"), |file| {
        file.root()
            .new_attribute("nothing")
            .datatype(Datatype::integer(4, ByteOrder::Little, Sign::Signed))
            .null()
            .write_values(&[])?;
        file.new_dataset::<u8>().null().create("null")?;
        let scaled = FilterSpec { id: 6, params: vec![2, 12], ..FilterSpec::default() };
        let data = file.new_dataset::<i32>().shape(&[8]).chunk_shape(&[2]).filter(scaled).create("scaled")?;
        data.write(&[1; 8])?;
        file.new_dataset::<Reference>().create("to")?.write(&[file.object("scaled")?.reference()?])
    });
    let at = "domain=/parts.h5";
    let id = |path: &str| served.json(&format!("/?{at}&h5path={path}"))["id"].as_str().unwrap().to_owned();
    let root = id("/");
    let nothing = served.json(&format!("/groups/{root}/attributes/nothing?{at}"));
    assert_eq!((&nothing["value"], &nothing["shape"]["class"]), (&json!(null), &json!("H5S_NULL")));
    let null = served.json(&format!("/datasets/{}?{at}", id("/null")));
    assert!(!null["hrefs"].to_string().contains("\"data\""), "{null}");
    let scaled = served.json(&format!("/datasets/{}?{at}&verbose=1", id("/scaled")));
    assert_eq!(scaled["num_chunks"], 4);
    let filter = &scaled["creationProperties"]["filters"][0];
    assert_eq!((&filter["scaleType"], &filter["scaleOffset"]), (&json!("H5Z_SO_INT"), &json!(12)));
    let to = served.json(&format!("/datasets/{}/value?{at}", id("/to")));
    assert_eq!(to["value"], json!(format!("datasets/{}", id("/scaled"))));
    served.refused(&format!("/groups/g-615a913c-eb9c-11f1-9ff8-02fc00000001?{at}"), 404, "no object");
}
