//! Elements by HSDS's API.

use h5live::model::{ByteOrder, CharacterSet, Datatype, FixedStringType, Sign, StringPadding};
use serde_json::json;

use crate::client::{Served, make, post};

const AT: &str = "domain=/a.h5";
const BINARY: (&str, &str) = ("accept", "application/octet-stream");

fn served() -> Served {
    let served = Served::new();
    let text = Datatype::fixed_string(4, Default::default());
    let number = Datatype::integer(2, ByteOrder::Big, Sign::Signed);
    make(&served.file("a.h5"), |file| {
        file.new_dataset::<i32>().shape(&[4, 5]).create("data")?.write(&(0..20).collect::<Vec<_>>())?;
        file.new_dataset::<f32>().create("scalar")?.write(&[0.5])?;
        let names = ["one".to_owned(), String::new(), "drei ä".to_owned()];
        file.new_dataset::<String>().shape(&[3]).create("names")?.write(&names)?;
        file.new_dataset::<Vec<u16>>().shape(&[2]).create("ragged")?.write(&[vec![1, 2], vec![]])?;
        let row = Datatype::compound([("name", text), ("age", number)]);
        let rows = file.root().new_dataset_with_type(row).shape(&[2]).create("rows")?;
        rows.write_raw(.., b"ann\0\x00\x05bob!\xff\xff")?;
        Ok(())
    });
    served
}

fn value_path(served: &Served, path: &str) -> String {
    let found = served.json(&format!("/?{AT}&h5path={path}"));
    format!("/datasets/{}/value", found["id"].as_str().unwrap())
}

#[test]
fn elements_are_sent_as_json() {
    let served = served();
    let value =
        |path: &str, query: &str| served.json(&format!("{}?{AT}{query}", value_path(&served, path)))["value"].clone();
    assert_eq!(value("/data", "&select=[0:2,1:4:2]"), json!([[1, 3], [6, 8]]));
    assert_eq!(value("/data", "&select=[3,:]"), json!([[15, 16, 17, 18, 19]]));
    assert_eq!(value("/data", "&select=[3,:]&reduce_dim=1"), json!([15, 16, 17, 18, 19]));
    assert_eq!(value("/data", "&select=[[3,0],[4,1]]"), json!([19, 1]));
    assert_eq!(value("/data", "&select=[0,[4,0,4]]"), json!([[4, 0, 4]]));
    assert_eq!(value("/scalar", ""), json!(0.5));
    assert_eq!(value("/names", ""), json!(["one", "", "drei ä"]));
    assert_eq!(value("/ragged", ""), json!([[1, 2], []]));
    assert_eq!(value("/rows", ""), json!([["ann", 5], ["bob!", -1]]));
    assert_eq!(value("/rows", "&fields=age"), json!([[5], [-1]]));
    assert_eq!(value("/rows", "&fields=age:name&select=[1]"), json!([[-1, "bob!"]]));
}

#[test]
fn texts_of_fixed_length_end_before_their_padding() {
    let served = Served::new();
    let padded = |padding| Datatype::String(FixedStringType { size: 4, padding, character_set: CharacterSet::Ascii });
    make(&served.file("a.h5"), |file| {
        let paddings = [StringPadding::NullTerminated, StringPadding::NullPadded, StringPadding::SpacePadded];
        for (name, padding) in ["terminated", "zeros", "spaces"].into_iter().zip(paddings) {
            let texts = file.root().new_dataset_with_type(padded(padding)).shape(&[3]).create(name)?;
            texts.write_raw(.., b"ab\0\0a\0c\0xyz ")?;
            texts.new_attribute("text").datatype(padded(padding)).shape(&[2]).write_raw(b"a\0c\0xyz ")?;
        }
        Ok(())
    });
    for (path, texts) in [
        ("/terminated", json!(["ab", "a", "xyz "])),
        ("/zeros", json!(["ab", "a\0c", "xyz "])),
        ("/spaces", json!(["ab", "a\0c", "xyz"])),
    ] {
        let value = value_path(&served, path);
        assert_eq!(served.json(&format!("{value}?{AT}"))["value"], texts, "{path}");
        let found = served.json(&format!("{value}?{AT}&query=_==a"))["value"].as_array().unwrap().len();
        assert_eq!(found, usize::from(path == "/terminated"), "{path}");
        // The bytes are those of the file: the type says how they are padded.
        assert_eq!(served.get_with(&format!("{value}?{AT}"), &[BINARY]).body, b"ab\0\0a\0c\0xyz ");
        let attribute = served.json(&format!("{}?{AT}", value.replace("/value", "/attributes/text")));
        assert_eq!(attribute["value"], json!([texts[1], texts[2]]), "{path}");
    }
}

#[test]
fn elements_are_sent_as_bytes() {
    let served = served();
    let bytes = |path: &str, query: &str| {
        let response = served.get_with(&format!("{}?{AT}{query}", value_path(&served, path)), &[BINARY]);
        assert_eq!((response.status, &*response.headers["content-type"]), (200, "application/octet-stream"));
        assert!(response.headers.contains_key("etag"));
        response.body
    };
    assert_eq!(bytes("/data", "&select=[1,1:3]"), [6, 0, 0, 0, 7, 0, 0, 0]);
    assert_eq!(bytes("/names", "&select=[0:2]"), b"\x03\0\0\0one\0\0\0\0");
    assert_eq!(bytes("/ragged", ""), b"\x04\0\0\0\x01\0\x02\0\0\0\0\0");
    assert_eq!(bytes("/rows", "&fields=age"), [0, 5, 0xff, 0xff]);
    assert_eq!(bytes("/scalar", ""), 0.5f32.to_le_bytes());
}

#[test]
fn points_and_long_selections_are_posted() {
    let served = served();
    let path = format!("{}?{AT}", value_path(&served, "/data"));
    assert_eq!(served.post_json(&path, &json!({ "points": [[3, 4], [0, 1]] }))["value"], json!([19, 1]));
    assert_eq!(served.post_json(&path, &json!({ "select": "[0:2,0]" }))["value"], json!([[0], [5]]));
    assert_eq!(served.post_json(&path, &json!({ "select": [[0, 3], "1:3"] }))["value"], json!([[1, 2], [16, 17]]));
    assert!(served.post_json(&path, &json!({ "points": [[3, 4]] })).get("status").is_none());
    let slab = json!({ "start": [1, 1], "stop": [4, 3], "step": [2, 1] });
    assert_eq!(served.post_json(&path, &slab)["value"], json!([[6, 7], [16, 17]]));
    let points: Vec<u8> = [2u64, 2, 1, 0].iter().flat_map(|index| index.to_le_bytes()).collect();
    let content = ("content-type", "application/octet-stream");
    let found = post(served.address(), &path, &[BINARY, content], &points);
    assert_eq!((found.status, &*found.body), (200, &[12, 0, 0, 0, 5, 0, 0, 0][..]));
    for (headers, body) in [
        (vec![], &b"{}"[..]),
        (vec![], b"{\"points\":[[4,0]]}"),
        (vec![], b"{\"points\":[[0]]}"),
        (vec![], b"{\"points\":[\"a\"]}"),
        (vec![], b"{\"select\":\"[0]\"}"),
        (vec![content], b"12345678"),
        (vec![], b""),
    ] {
        let refused = post(served.address(), &path, &headers, body);
        assert_eq!(refused.status, 400, "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn what_hsds_refuses_is_refused() {
    let served = served();
    let path = value_path(&served, "/data");
    for select in ["[0]", "[0:9,0]", "[a,0]", "0,0", "[-1,0]", "[0:0,0]", "[0:1:0,0]"] {
        served.refused(&format!("{path}?{AT}&select={select}"), 400, "Invalid selection");
    }
    served.refused(&format!("{path}?{AT}&fields=a"), 400, "fields");
    served.refused(&format!("{path}?{AT}&query=%3E1"), 400, "Invalid query");
    served.refused(&format!("{path}?{AT}&regionref=1"), 501, "not supported");
    served.refused(&format!("{}?{AT}", path.replace("value", "query")), 400, "query parameter");
    served.refused(&format!("{path}?{AT}&query=_==1&Limit=x"), 400, "number");
}

#[test]
fn elements_are_found_by_conditions() {
    let served = served();
    let (data, rows) = (value_path(&served, "/data"), value_path(&served, "/rows"));
    let value = |path: &str, query: &str| served.json(&format!("{path}?{AT}&query={query}"))["value"].clone();
    assert_eq!(value(&data, "_%20%3E%203%20AND%20_%20%3C%209"), json!([4, 5, 6, 7, 8]));
    assert_eq!(value(&data, "_%20%3E%203&select=[1:3,0:2]&Limit=3"), json!([5, 6, 10]));
    assert_eq!(value(&data, "_%20%3E%20100"), json!([]));
    assert_eq!(value(&rows, "name==%27bob!%27"), json!([["bob!", -1]]));
    assert_eq!(value(&rows, "age%20IN%20(5,7)&fields=name"), json!([["ann"]]));
    assert_eq!(value(&value_path(&served, "/names"), "_!=one"), json!(["", "drei ä"]));
    let bytes = served.get_with(&format!("{data}?{AT}&query=_==7"), &[BINARY]);
    assert_eq!((bytes.status, &*bytes.body), (200, &[7, 0, 0, 0][..]));
    let places = data.replace("value", "query");
    let found = served.json(&format!("{places}?{AT}&query=_%20%3E=%2018"));
    assert_eq!(found["indices"], json!([[3, 3], [3, 4]]));
    let found = served.json(&format!("{places}?{AT}&query=_%20%3E=%200&select=[0:4:3,[4,1]]&Limit=3"));
    assert_eq!(found["indices"], json!([[0, 4], [0, 1], [3, 4]]));
    let bytes = served.get_with(&format!("{places}?{AT}&query=_==7"), &[BINARY]).body;
    assert_eq!(bytes, [1u64, 2].iter().flat_map(|at| at.to_le_bytes()).collect::<Vec<_>>());
}

#[test]
fn several_lists_are_gone_through_together() {
    let served = served();
    make(&served.file("cube.h5"), |file| {
        file.new_dataset::<i16>().shape(&[4, 5, 6]).create("cube")?.write(&(0..120).collect::<Vec<_>>())
    });
    let found = served.json("/?domain=/cube.h5&h5path=/cube");
    let path = format!("/datasets/{}/value?domain=/cube.h5", found["id"].as_str().unwrap());
    let value = |select: &str| served.json(&format!("{path}&select={select}"))["value"].clone();
    assert_eq!(value("[0:4:3,[0,4],[1,5]]"), json!([[1, 29], [91, 119]]));
    assert_eq!(value("[[3,1],1:3,[0,5]]"), json!([[96, 102], [41, 47]]));
    served.refused(&format!("{path}&select=[0:4,[0,1],[1,2,5]]"), 400, "Invalid selection");
}

#[test]
fn answers_have_the_limit_of_all_answers() {
    let served = Served::with(|config| config.limits.max_answer_bytes = 4096);
    make(&served.file("a.h5"), |file| {
        file.new_dataset::<String>().shape(&[1]).create("text")?.write(&["x".repeat(5000)])?;
        file.new_dataset::<u8>().shape(&[5000]).create("bytes").map(drop)
    });
    for path in ["/text", "/bytes"] {
        for headers in [&[][..], &[BINARY]] {
            let refused = served.get_with(&format!("{}?{AT}", value_path(&served, path)), headers);
            assert_eq!(refused.status, 413, "{path}: {}", refused.text());
        }
    }
}
