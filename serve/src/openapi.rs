//! The description of all routes by OpenAPI 3.1: `GET /openapi.json`.

use serde_json::{Map, Value as Json, json};

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
const ANY: &str = "*/*";

/// A route: its path, what it answers, the names of its parameters, the types of its answers, and of its body if it is
/// asked by POST.
type Route = (&'static str, &'static str, &'static str, &'static [&'static str], Option<&'static str>);

/// Parts of addresses, in braces there, are left out of the parameters.
const ROUTES: &[Route] = &[
    ("/", "A domain of HSDS if one is named, the page for a browser, or `ok`", ANY, DOMAIN, None),
    ("/healthz", "`ok`, also without a token", TEXT, &[], None),
    ("/metrics", "Numbers for Prometheus", TEXT, &[], None),
    ("/openapi.json", "This description", JSON, &[], None),
    ("/assets/{asset}", "A part of the page", ANY, &[], None),
    ("/api/files", "The files of a folder, and who writes them", JSON, &["folder"], None),
    ("/api/search", "Names and attributes that have a text", JSON, &["text", "folder", "search_file"], None),
    (
        "/events",
        "Changes of a file, as server-sent events",
        "text/event-stream",
        &["file", "path", "last_event_id"],
        None,
    ),
    ("/grove", "`ok`", TEXT, &[], None),
    ("/grove/", "`ok`", TEXT, &[], None),
    ("/meta", "What an object is, with its attributes and children", JSON, &["file", "path", "resolve_links"], None),
    ("/attr", "Values of attributes", JSON, &["file", "path", "attr_keys"], None),
    ("/data", "Elements", ANY, &["file", "path", "selection", "format", "dtype", "flatten"], None),
    ("/stats", "Minimum, maximum, mean and deviation of finite elements", JSON, &["file", "path", "selection"], None),
    ("/paths", "All paths below a group", JSON, &["file", "path", "resolve_links"], None),
    ("/hsds/", "As `/` of HSDS", ANY, DOMAIN, None),
    ("/about", "What this service is", JSON, &[], None),
    ("/info", "What this service is", JSON, &[], None),
    ("/domains", "Files and folders of a folder", JSON, &["domain", "pattern", "Limit", "Marker", "verbose"], None),
    ("/acls", "Who may do what", JSON, &["domain"], None),
    ("/acls/{id}", "What a user may do", JSON, &["domain"], None),
    ("/groups", "The identities of all groups", JSON, PAGE, None),
    ("/groups/", "A group by its path", JSON, OBJECT, None),
    ("/groups/{id}", "A group", JSON, OBJECT, None),
    ("/groups/{id}/links", "Links of a group", JSON, &["domain", "CreateOrder", "pattern", "Limit", "Marker"], None),
    ("/groups/{id}/links/{name}", "A link", JSON, &["domain"], None),
    ("/groups/{id}/attributes", "Attributes", JSON, ATTRIBUTES, None),
    ("/groups/{id}/attributes/{name}", "An attribute", JSON, VALUE, None),
    ("/groups/{id}/attributes/{name}/value", "The value of an attribute", ANY, VALUE, None),
    ("/datasets", "The identities of all datasets", JSON, PAGE, None),
    ("/datasets/", "A dataset by its path", JSON, OBJECT, None),
    ("/datasets/{id}", "A dataset", JSON, OBJECT, None),
    ("/datasets/{id}/shape", "The extent of a dataset", JSON, &["domain"], None),
    ("/datasets/{id}/type", "The type of a dataset", JSON, &["domain"], None),
    ("/datasets/{id}/value", "Elements", ANY, &["domain", "select", "fields", "reduce_dim", "ignore_nan"], None),
    ("/datasets/{id}/query", "Not there (501)", JSON, &["domain"], None),
    ("/datasets/{id}/attributes", "Attributes", JSON, ATTRIBUTES, None),
    ("/datasets/{id}/attributes/{name}", "An attribute", JSON, VALUE, None),
    ("/datasets/{id}/attributes/{name}/value", "The value of an attribute", ANY, VALUE, None),
    ("/datatypes", "The identities of all committed types", JSON, PAGE, None),
    ("/datatypes/", "A committed type by its path", JSON, OBJECT, None),
    ("/datatypes/{id}", "A committed type", JSON, OBJECT, None),
    ("/datatypes/{id}/attributes", "Attributes", JSON, ATTRIBUTES, None),
    ("/datatypes/{id}/attributes/{name}", "An attribute", JSON, VALUE, None),
    ("/datatypes/{id}/attributes/{name}/value", "The value of an attribute", ANY, VALUE, None),
    ("/", "Objects at `h5paths`", JSON, DOMAIN, Some(JSON)),
    ("/hsds/", "As `/` of HSDS", JSON, DOMAIN, Some(JSON)),
    ("/groups/{id}/links", "Links of `titles`, and of `grp_ids`", JSON, &["domain"], Some(JSON)),
    ("/groups/{id}/attributes", "Attributes of `attr_names`, and of `obj_ids`", JSON, ATTRIBUTES, Some(JSON)),
    ("/datasets/{id}/attributes", "Attributes of `attr_names`, and of `obj_ids`", JSON, ATTRIBUTES, Some(JSON)),
    ("/datatypes/{id}/attributes", "Attributes of `attr_names`, and of `obj_ids`", JSON, ATTRIBUTES, Some(JSON)),
    ("/datasets/{id}/value", "Elements at `points`, or of a `select`", ANY, &["domain"], Some(JSON)),
    ("/h5live/v1/session", "For h5live's own client", STORE, &["file"], Some(STORE)),
    ("/h5live/v1/objects", "For h5live's own client", STORE, &["file"], Some(STORE)),
    ("/h5live/v1/links", "For h5live's own client", STORE, &["file"], Some(STORE)),
    ("/h5live/v1/attributes", "For h5live's own client", STORE, &["file"], Some(STORE)),
    ("/h5live/v1/referent", "For h5live's own client", STORE, &["file"], Some(STORE)),
    ("/h5live/v1/reference", "For h5live's own client", STORE, &["file"], Some(STORE)),
    ("/h5live/v1/blobs", "For h5live's own client", STORE, &["file"], Some(STORE)),
    ("/h5live/v1/chunks", "For h5live's own client", STORE, &["file"], Some(STORE)),
    ("/h5live/v1/index", "For h5live's own client", STORE, &["file"], Some(STORE)),
];

const STORE: &str = h5live_served::protocol::CONTENT_TYPE;
const DOMAIN: &[&str] = &["domain", "verbose", "h5path", "parent_id", "include_links", "include_attrs"];
const PAGE: &[&str] = &["domain", "Limit", "Marker"];
const OBJECT: &[&str] = &["domain", "h5path", "grpid", "include_links", "include_attrs", "getalias"];
const VALUE: &[&str] = &["domain", "ignore_nan", "encoding"];
const ATTRIBUTES: &[&str] =
    &["domain", "CreateOrder", "pattern", "Limit", "Marker", "IncludeData", "ignore_nan", "encoding", "max_data_size"];

/// Parameters: the name, whether it has to be there, and what it is. What begins with `=` is one of some words, `1` is a
/// whole number, and `?` a truth value, as a number.
const PARAMETERS: &[(&str, bool, &str)] = &[
    ("file", true, "The path of a file below the served folder"),
    ("path", false, "The path of an object; by default /"),
    ("folder", false, "A folder; by default the served one"),
    ("text", true, "What to search for, in small or capital letters"),
    ("last_event_id", false, "The last event that the client has"),
    ("resolve_links", false, "=only_valid all none"),
    ("attr_keys", false, "Names of attributes; all if it is not there"),
    ("selection", false, "Indices and slices as numpy has them, as 5 or 0:10:2,3"),
    ("format", false, "=json bin npy csv tiff"),
    ("dtype", false, "=origin safe"),
    ("flatten", false, "=true false"),
    ("domain", false, "The path of a file, after a slash; also as the header X-Hdf-domain"),
    ("pattern", false, "A pattern of names, with * and ?"),
    ("Limit", false, "1 Most entries"),
    ("Marker", false, "The last entry that the client has"),
    ("verbose", false, "? Counts of objects, too"),
    ("h5path", false, "The path of an object"),
    ("parent_id", false, "The group from which on the path is"),
    ("grpid", false, "The group from which on the path is"),
    ("include_links", false, "? Links, too"),
    ("include_attrs", false, "? Attributes, too"),
    ("getalias", false, "? All paths, too"),
    ("CreateOrder", false, "? In the order in which they were made"),
    ("IncludeData", false, "? Values, too"),
    ("ignore_nan", false, "? null in place of NaN"),
    ("encoding", false, "=base64"),
    ("max_data_size", false, "1 Most bytes of a value"),
    ("select", false, "A selection as [0:10:2,3]"),
    ("fields", false, "Members of a compound, with colons between them"),
    ("reduce_dim", false, "? Without dimensions of one element"),
];

/// The description.
pub(crate) fn document() -> Json {
    let mut paths: Map<String, Json> = Map::new();
    for (path, about, answers, parameters, body) in ROUTES {
        // h5grove's routes and HSDS's are there twice.
        let is_grove = ["/meta", "/attr", "/data", "/stats", "/paths"].contains(path);
        let is_hsds = ["/groups", "/datasets", "/datatypes", "/domains", "/acls", "/about", "/info"]
            .iter()
            .any(|first| path.starts_with(first));
        let bases: &[&str] = match (is_grove, is_hsds) {
            (true, _) => &["", "/grove"],
            (_, true) => &["", "/hsds"],
            _ => &[""],
        };
        for base in bases {
            let operations = paths.entry(format!("{base}{path}")).or_insert_with(|| json!({}));
            let method = if body.is_some() { "post" } else { "get" };
            operations[method] = operation(path, about, answers, parameters, *body);
        }
    }
    let parameters: Map<_, _> = PARAMETERS
        .iter()
        .map(|(name, is_required, about)| ((*name).to_owned(), parameter(name, "query", *is_required, about)))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "h5live serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "HDF5 files, live: h5grove's API, HSDS's API for reading, events, and that of h5live's own client.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "security": [{ "bearer": [] }, { "basic": [] }, { "token": [] }],
        "components": {
            "parameters": parameters,
            "responses": { "Fault": {
                "description": "What went wrong",
                "content": { JSON: { "schema": {
                    "type": "object", "required": ["message"], "properties": { "message": { "type": "string" } },
                } } },
            } },
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "basic": { "type": "http", "scheme": "basic" },
                "token": { "type": "apiKey", "in": "query", "name": "token" },
            },
        },
    })
}

fn operation(path: &str, about: &str, answers: &str, parameters: &[&str], body: Option<&str>) -> Json {
    let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parts = parts.map(|name| parameter(name, "path", true, "A part of the address"));
    // The search takes a file only if it is not one of a folder.
    let named = parameters.iter().map(|name| match *name {
        "search_file" => parameter("file", "query", false, "A file, in place of a folder"),
        name => json!({ "$ref": format!("#/components/parameters/{name}") }),
    });
    let fault = json!({ "$ref": "#/components/responses/Fault" });
    let mut operation = json!({
        "summary": about,
        "parameters": parts.chain(named).collect::<Vec<_>>(),
        "responses": {
            "200": { "description": about, "content": { answers: {} } },
            "304": { "description": "The client has it (`If-None-Match`)" },
            "4XX": fault,
            "501": fault,
            "503": fault,
        },
    });
    if let Some(of) = body {
        let schema =
            if of == JSON { json!({ "type": "object" }) } else { json!({ "type": "string", "format": "binary" }) };
        operation["requestBody"] = json!({ "content": { of: { "schema": schema } } });
    }
    operation
}

fn parameter(name: &str, place: &str, is_required: bool, about: &str) -> Json {
    let (schema, about) = match about.split_at(1) {
        ("=", words) => (json!({ "type": "string", "enum": words.split(' ').collect::<Vec<_>>() }), ""),
        ("1", about) => (json!({ "type": "integer", "minimum": 0 }), about.trim()),
        ("?", about) => (json!({ "type": "integer", "enum": [0, 1] }), about.trim()),
        _ => (json!({ "type": "string" }), about),
    };
    json!({ "name": name, "in": place, "required": is_required, "description": about, "schema": schema })
}
