//! The description of the routes.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use crate::client::{Served, make, post};

/// The routes that the server is made of, as its sources name them.
fn made_routes() -> BTreeSet<String> {
    let of = |source: &str, base: &[&str]| {
        let names = source.split(".route(").skip(1).filter_map(|rest| {
            let rest = rest.trim_start().trim_start_matches("&format!(").trim_start();
            rest.strip_prefix('"')?.split('"').next().map(|name| name.replace("{{", "{").replace("}}", "}"))
        });
        let names: Vec<_> = names.collect();
        base.iter().flat_map(|base| names.iter().map(move |name| format!("{base}{name}"))).collect::<Vec<_>>()
    };
    let (grove, own) = (["/meta", "/attr", "/data", "/stats", "/paths"], include_str!("../../src/routes.rs"));
    let mut all: BTreeSet<_> = of(own, &[""]).into_iter().collect();
    all.extend(grove.map(|name| format!("/grove{name}")));
    for name in of(include_str!("../../src/hsds/mod.rs"), &["", "/hsds"]) {
        // The name of a collection, and not a part of an address.
        let is_collection = name.starts_with("/{name}") || name.starts_with("/hsds/{name}");
        match is_collection {
            true => all.extend(["groups", "datasets", "datatypes"].map(|kind| name.replacen("{name}", kind, 1))),
            false => drop(all.insert(name)),
        }
    }
    all.extend(of(include_str!("../../src/store_api/mod.rs"), &["/h5live/v1"]));
    // The parameter of the page's parts has a name of its own.
    all.into_iter().map(|name| name.replace("/assets/{name}", "/assets/{asset}")).collect()
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let served = Served::new();
    let document = served.json("/openapi.json");
    let described: BTreeSet<_> = document["paths"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(described, made_routes());
}

#[test]
fn what_is_described_is_answered() {
    let served = Served::new();
    make(&served.file("a.h5"), |file| file.new_dataset::<u8>().shape(&[3]).create("data").map(drop));
    let document = served.json("/openapi.json");
    for (path, operations) in document["paths"].as_object().unwrap() {
        let target = path.replace("{id}", "x").replace("{name}", "y").replace("{asset}", "page.css");
        for (method, operation) in operations.as_object().unwrap() {
            let resolved = |parameter: &Json| match parameter["$ref"].as_str() {
                Some(at) => document.pointer(at.trim_start_matches('#')).unwrap_or_else(|| panic!("{at}")).clone(),
                None => parameter.clone(),
            };
            let parameters: Vec<_> = operation["parameters"].as_array().unwrap().iter().map(resolved).collect();
            let required = parameters.iter().filter(|one| one["in"] == "query" && one["required"] == true);
            let required: Vec<_> = required.map(|one| one["name"].as_str().unwrap()).collect();
            let query: Vec<_> = required.iter().map(|name| format!("{name}=a.h5")).collect();
            let with_query = format!("{target}?{}", query.join("&"));
            let answer = match &**method {
                "get" if path == "/events" => continue,
                "get" => served.get(&with_query),
                _ => post(served.address(), &with_query, &[], b"{}"),
            };
            assert!(
                answer.status != 405 && !answer.text().contains("nothing at this address"),
                "{method} {with_query}"
            );
            assert!(answer.status < 500 || answer.status == 501, "{method} {with_query}: {}", answer.text());
            // What is said to be necessary is.
            for name in &required {
                let answer = match &**method {
                    "get" => served.get(&target),
                    _ => post(served.address(), &target, &[], b"{}"),
                };
                assert_eq!(answer.status, 422, "{method} {target} without {name}: {}", answer.text());
            }
        }
    }
    assert_eq!(document["paths"]["/data"]["get"]["responses"]["200"]["content"], json!({ "*/*": {} }));
}
