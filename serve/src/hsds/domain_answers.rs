//! Domains and folders: `/`, `/domains`, `/about`, `/info` and `/acls`.

use h5live::model::ObjectKind;
use h5live::{Object, WalkItem};
use serde_json::{Map, Value as Json, json};

use super::call::Call;
use super::link_json::{page, page_by};
use super::object_json::{self, ObjectForm};
use super::object_parts::kind_of;
use super::opened_domain::OpenedDomain;
use super::{bad_request, not_found};
use crate::answer::Answer;
use crate::catalog::Named;
use crate::fault::Fault;
use crate::listing;
use crate::state::AppState;

/// The version of HSDS whose API this is.
const HSDS_VERSION: &str = "1.0.2";
/// Whom clients see as the owner of everything.
const OWNER: &str = "h5live";
/// The user that everybody is.
const DEFAULT_USER: &str = "default";
/// Which number in an answer counts the objects of a kind.
const KINDS: [(ObjectKind, &str); 3] =
    [(ObjectKind::Group, "num_groups"), (ObjectKind::Dataset, "num_datasets"), (ObjectKind::Datatype, "num_datatypes")];

/// `GET /about`.
pub(super) fn about(state: &AppState, _: &Call) -> Result<Answer, Fault> {
    Ok(Answer::json(&json!({
        "start_time": state.started_at,
        "state": "READY",
        "hsds_version": HSDS_VERSION,
        "name": "h5live serve",
        "greeting": "HDF5 files, while they are being written",
        "about": "HSDS's REST API for reading, by h5live",
        "node_count": 1,
        "dn_urls": [],
        "dn_ids": [],
        "username": "anonymous",
        "isadmin": false,
    })))
}

/// `GET /info`.
pub(super) fn info(state: &AppState, _: &Call) -> Result<Answer, Fault> {
    let node = json!({
        "id": "sn-h5live", "type": "sn", "start_time": state.started_at, "state": "READY", "node_count": 1,
    });
    Ok(Answer::json(&json!({ "node": node })))
}

/// `GET /` with a domain: what it is, or an object in it.
pub(super) fn domain(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let name = call.domain()?;
    let place = match state.catalog.find(name)? {
        Named::Store(place) => place,
        Named::Folder(_) | Named::Roots => return folder(call, name),
    };
    let opened = OpenedDomain::open(state, name, &place)?;
    if let Some(path) = call.query.get("h5path") {
        let object = opened.object_at(call.query.get("parent_id"), path)?;
        let form = form_of(state, call);
        let mut json = object_json::answer_json(&opened, call, &object, form)?;
        json.set("class", class_of(&object));
        return Ok(opened.answer(json.finish()));
    }
    let mut json = json!({
        "root": opened.ids.root(),
        "class": "domain",
        "owner": OWNER,
        "created": opened.created,
        "lastModified": opened.modified,
        "limits": {
            "min_chunk_size": 1 << 20, "max_chunk_size": 4 << 20,
            "max_request_size": state.limits.max_answer_bytes, "max_chunks_per_request": 1000,
        },
        "compressors": ["blosclz", "lz4", "lz4hc", "gzip", "zstd", "deflate"],
        "version": HSDS_VERSION,
    });
    if let (true, Some(members)) = (call.flag("verbose"), json.as_object_mut()) {
        set_counts(members, state, &opened, place.path.as_ref().and_then(|path| path.metadata().ok()))?;
    }
    let root = format!("/groups/{}", opened.ids.root());
    json["hrefs"] = call.hrefs(&[
        ("self", "/"),
        ("database", "/datasets"),
        ("groupbase", "/groups"),
        ("typebase", "/datatypes"),
        ("root", &root),
        ("acls", "/acls"),
    ]);
    Ok(opened.answer(json.to_string()))
}

pub(super) fn form_of(state: &AppState, call: &Call) -> ObjectForm {
    ObjectForm {
        has_links: call.flag("include_links"),
        has_attributes: call.flag("include_attrs"),
        max_bytes: state.memory.max_answer(),
    }
}

fn class_of(object: &Object) -> &'static str {
    match object {
        Object::Group(_) => "group",
        Object::Dataset(_) => "dataset",
        _ => "datatype",
    }
}

/// The objects of a file, each once, by their identities.
fn identities(state: &AppState, domain: &OpenedDomain) -> Result<Vec<(ObjectKind, String)>, Fault> {
    let mut all = vec![(ObjectKind::Group, domain.ids.root())];
    for item in domain.file().root().walk().skip(1) {
        let WalkItem::Object(object) = item? else { continue };
        if let Some(id) = domain.ids.text_of(&object) {
            all.push((kind_of(&object), id));
        }
        if all.len() > state.limits.max_listed {
            return Err(super::too_many(state.limits.max_listed));
        }
    }
    all.sort_by(|a, b| a.1.cmp(&b.1));
    all.dedup();
    Ok(all)
}

/// What is in a file, in numbers. In a large one, objects are not counted.
fn set_counts(
    members: &mut Map<String, Json>,
    state: &AppState,
    domain: &OpenedDomain,
    found: Option<std::fs::Metadata>,
) -> Result<(), Fault> {
    let bytes = found.filter(std::fs::Metadata::is_file).map_or(0, |found| found.len());
    members.insert("total_size".to_owned(), bytes.into());
    members.insert("allocated_bytes".to_owned(), bytes.into());
    for name in ["metadata_bytes", "linked_bytes", "num_chunks", "num_linked_chunks"] {
        members.insert(name.to_owned(), 0.into());
    }
    members.insert("md5_sum".to_owned(), "".into());
    let all = match identities(state, domain) {
        Err(fault) if fault.status == axum::http::StatusCode::PAYLOAD_TOO_LARGE => return Ok(()),
        all => all?,
    };
    for (kind, name) in KINDS {
        members.insert(name.to_owned(), all.iter().filter(|(of, _)| *of == kind).count().into());
    }
    members.insert("num_objects".to_owned(), all.len().into());
    Ok(())
}

/// `GET /groups`, `/datasets` and `/datatypes`: the identities of all but the root group.
pub(super) fn collection(state: &AppState, call: &Call, kind: ObjectKind) -> Result<Answer, Fault> {
    let domain = OpenedDomain::of(state, call)?;
    let root = domain.ids.root();
    let all = identities(state, &domain)?.into_iter().filter(|(of, id)| *of == kind && *id != root);
    let ids = page(call, all.map(|(_, id)| id).collect(), |id| id)?;
    let name = super::object_ids::collection(kind);
    let hrefs = call.hrefs(&[("self", &*format!("/{name}")), ("root", &format!("/groups/{root}")), ("home", "/")]);
    Ok(domain.answer(json!({ name: ids, "hrefs": hrefs }).to_string()))
}

fn folder(call: &Call, name: &str) -> Result<Answer, Fault> {
    if call.query.get("h5path").is_some() {
        return Err(bad_request(format!("{name} is a folder")));
    }
    let hrefs = call.hrefs(&[("self", "/"), ("domains", "/domains"), ("acls", "/acls")]);
    Ok(Answer::json(&json!({
        "class": "folder", "owner": OWNER, "created": 0.0, "lastModified": 0.0, "hrefs": hrefs,
    })))
}

/// `GET /domains`: the files and folders of a folder.
pub(super) fn domains(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let folder = call.given_domain().unwrap_or("/");
    if !folder.starts_with('/') {
        return Err(bad_request(format!("Invalid domain: {folder}")));
    }
    if call.query.get("query").is_some_and(|query| !query.is_empty()) {
        return Err(super::not_implemented("Queries of domains are not supported"));
    }
    let listed = listing::list(state, folder.trim_matches('/'))?;
    let entries = listed["entries"].as_array().map_or(&[][..], Vec::as_slice);
    let described = entries.iter().filter_map(|entry| {
        let name = format!("/{}", entry["path"].as_str()?);
        let modified = entry["modified"].as_u64().unwrap_or_default() as f64 / 1000.0;
        let class = if entry["kind"] == "folder" { "folder" } else { "domain" };
        let mut json = json!({
            "name": name, "class": class, "owner": OWNER, "created": modified, "lastModified": modified,
            "hrefs": [{ "rel": "domain", "href": call.href_in("/", Some(&name)) }],
        });
        if call.flag("verbose") {
            json["total_size"] = entry["size"].as_u64().unwrap_or_default().into();
        }
        Some((entry["name"].as_str()?.to_owned(), name, json))
    });
    // Clients name the last domain that they have got by its whole path, and patterns are those of the last name.
    let shown = page_by(call, described.collect(), |(_, path, _)| path, |(name, ..)| name)?;
    let shown: Vec<_> = shown.into_iter().map(|(_, _, json)| json).collect();
    Ok(Answer::json(&json!({ "domains": shown, "hrefs": call.hrefs(&[("self", "/domains")]) })))
}

/// `POST /`: objects at several paths.
pub(super) fn objects_at(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let body = call.json_body()?;
    let paths = body.get("h5paths").and_then(Json::as_array);
    let paths = paths.ok_or_else(|| bad_request("expected body to contain h5paths"))?;
    let domain = OpenedDomain::of(state, call)?;
    let form = form_of(state, call);
    let (mut found, mut left) = (super::json_members::JsonMembers::default(), form.max_bytes);
    for path in paths {
        let path = path.as_str().ok_or_else(|| bad_request("h5paths is a list of paths"))?;
        let object = domain.object_at(call.query.get("parent_id"), path)?;
        let mut json = object_json::object_json(&domain, &object, ObjectForm { max_bytes: left, ..form })?;
        json.set("domain", domain.name.as_str());
        json.set("class", class_of(&object));
        left = left.saturating_sub(json.len() as u64);
        found.set_text(path, &json.finish());
    }
    let mut json = super::json_members::JsonMembers::default();
    json.set_text("h5paths", &found.finish());
    Ok(domain.answer(json.finish()))
}

/// `GET /acls` and `/acls/USER`: everybody who is let in may read.
pub(super) fn acls(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    state.catalog.find(call.domain()?)?;
    let acl = json!({
        "userName": DEFAULT_USER, "create": false, "read": true, "update": false, "delete": false, "readACL": true,
        "updateACL": false,
    });
    let hrefs = call.hrefs(&[("self", "/acls"), ("home", "/"), ("owner", "/")]);
    match call.id.as_deref() {
        None => Ok(Answer::json(&json!({ "acls": [acl], "hrefs": hrefs }))),
        Some(DEFAULT_USER) => Ok(Answer::json(&json!({ "acl": acl, "hrefs": hrefs }))),
        Some(user) => Err(not_found(format!("acl for username: [{user}] not found"))),
    }
}
