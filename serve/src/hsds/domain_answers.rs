//! Domains and folders: `/`, `/domains`, `/about`, `/info` and `/acls`.

use h5live::model::ObjectKind;
use h5live::{Object, WalkItem};
use serde_json::{Map, Value as Json, json};

use super::call::Call;
use super::faults::{bad_request, json_answer, not_found};
use super::object_ids::kind_of;
use super::object_json::{self, ObjectForm};
use super::opened_domain::OpenedDomain;
use super::paging::Paging;
use super::path_walk::{self, FollowedLinks};
use crate::answer::Answer;
use crate::catalog::{Named, Place};
use crate::domain_facts::{DomainFacts, facts_at};
use crate::fault::Fault;
use crate::listing;
use crate::state::AppState;

/// The version of HSDS whose API this is.
const HSDS_VERSION: &str = "1.0.2";
/// The only node that has data.
const DATA_NODE: &str = "dn-h5live";
/// Files of a list whose objects are counted.
const MAX_COUNTED: usize = 100;
/// Whom clients see as the owner of everything.
const OWNER: &str = "h5live";
/// The user that everybody is.
const DEFAULT_USER: &str = "default";
/// Which number in an answer counts the objects of a kind.
const KINDS: [(ObjectKind, &str); 3] =
    [(ObjectKind::Group, "num_groups"), (ObjectKind::Dataset, "num_datasets"), (ObjectKind::Datatype, "num_datatypes")];

/// `GET /about`.
pub(super) fn about(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    Ok(json_answer(&json!({
        "start_time": state.started_at,
        "state": "READY",
        "hsds_version": HSDS_VERSION,
        "name": "h5live serve",
        "greeting": "HDF5 files, while they are being written",
        "about": "HSDS's REST API for reading, by h5live",
        "node_count": 1,
        "dn_urls": [],
        "dn_ids": [DATA_NODE],
        "username": call.user.as_deref().unwrap_or("anonymous"),
        "isadmin": false,
    })))
}

/// `GET /info`.
pub(super) fn info(state: &AppState, _: &Call) -> Result<Answer, Fault> {
    let node = json!({
        "id": "sn-h5live", "type": "sn", "start_time": state.started_at, "state": "READY", "node_count": 1,
    });
    Ok(json_answer(&json!({ "node": node })))
}

/// `GET /` with a domain: what it is, or an object in it.
pub(super) fn domain(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let name = call.domain()?;
    let place = match state.catalog.find(name)? {
        Named::Store(place) => place,
        Named::Folder(path) => return folder(call, name, facts_at(&path).unwrap_or_default()),
        Named::Roots => return folder(call, name, DomainFacts::default()),
    };
    let opened = OpenedDomain::open(state, name, &place)?;
    if let Some(path) = call.query.get("h5path") {
        return object_at(state, call, &opened, path);
    }
    let facts = facts_of(&place);
    let mut json = json!({
        "root": opened.ids.format_root_id(),
        "class": "domain",
        "owner": facts.owner.as_deref().unwrap_or(OWNER),
        "created": facts.created.unwrap_or(opened.created),
        "lastModified": facts.modified.unwrap_or(opened.modified),
        "limits": {
            "min_chunk_size": 1 << 20, "max_chunk_size": 4 << 20, "max_request_size": state.limits.max_answer_bytes,
        },
        "compressors": ["blosclz", "lz4", "lz4hc", "gzip", "zstd", "deflate"],
        "version": HSDS_VERSION,
    });
    if call.flag("getdnids") {
        json["dn_ids"] = json!([DATA_NODE]);
    }
    if let (true, Some(members)) = (call.flag("verbose"), json.as_object_mut()) {
        set_counts(members, state, &opened, &place)?;
    }
    json["hrefs"] = domain_hrefs(call, &opened, name);
    Ok(opened.json_answer(json.to_string()))
}

/// What a domain of the schema of HSDS says of itself; nothing for other files.
fn facts_of(place: &Place) -> DomainFacts {
    place.path.as_deref().and_then(facts_at).unwrap_or_default()
}

/// Addresses of what belongs to a domain.
fn domain_hrefs(call: &Call, domain: &OpenedDomain, name: &str) -> Json {
    let root = format!("/groups/{}", domain.ids.format_root_id());
    let mut hrefs = call.hrefs(&[
        ("self", "/"),
        ("database", "/datasets"),
        ("groupbase", "/groups"),
        ("typebase", "/datatypes"),
        ("root", &root),
        ("acls", "/acls"),
    ]);
    add_parent(call, name, &mut hrefs);
    hrefs
}

/// Adds the address of the folder in which a domain or a folder is, unless that is the top.
fn add_parent(call: &Call, name: &str, hrefs: &mut Json) {
    let parent = name.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
    if let (false, Some(hrefs)) = (parent.is_empty(), hrefs.as_array_mut()) {
        hrefs.push(json!({ "rel": "parent", "href": call.href_in("/", Some(parent)) }));
    }
}

/// `GET /` with a domain and a path: the object there.
fn object_at(state: &AppState, call: &Call, domain: &OpenedDomain, path: &str) -> Result<Answer, Fault> {
    let follow = FollowedLinks::of(call);
    let found = path_walk::find(state, domain, call.query.get("parent_id"), path, follow)?;
    let of = found.other.as_ref().unwrap_or(domain);
    let mut json = object_json::object_json(of, &found.object, form_of(state, call))?;
    json.push_member("domain", of.name.as_str());
    json.push_member("class", class_of(&found.object));
    let mut hrefs = domain_hrefs(call, domain, &domain.name);
    if let Some(hrefs) = hrefs.as_array_mut() {
        hrefs.push(json!({ "rel": "home", "href": call.href("/") }));
    }
    json.push_member("hrefs", hrefs);
    Ok(domain.json_answer(json.finish()))
}

pub(super) fn form_of(state: &AppState, call: &Call) -> ObjectForm {
    ObjectForm {
        has_links: call.flag("include_links"),
        has_attributes: call.flag("include_attrs"),
        max_bytes: state.memory.max_answer_bytes(),
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
    let mut all = vec![(ObjectKind::Group, domain.ids.format_root_id())];
    for item in domain.file().root().walk().skip(1) {
        let WalkItem::Object(object) = item? else { continue };
        if let Some(id) = domain.ids.format_id_of(&object) {
            all.push((kind_of(&object), id));
        }
        if all.len() > state.limits.max_listed_entries {
            return Err(super::faults::too_many(state.limits.max_listed_entries));
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
    place: &Place,
) -> Result<(), Fault> {
    let found = place.path.as_ref().and_then(|path| path.metadata().ok());
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
pub(super) fn list_objects(state: &AppState, call: &Call, kind: ObjectKind) -> Result<Answer, Fault> {
    let domain = OpenedDomain::open_for_call(state, call)?;
    let root = domain.ids.format_root_id();
    let all = identities(state, &domain)?.into_iter().filter(|(of, id)| *of == kind && *id != root);
    let ids = Paging::of(call)?.filter_then_page(all.map(|(_, id)| id).collect(), |id| id)?;
    let name = super::object_ids::collection_name(kind);
    let hrefs = call.hrefs(&[("self", &*format!("/{name}")), ("root", &format!("/groups/{root}")), ("home", "/")]);
    Ok(domain.json_answer(json!({ name: ids, "hrefs": hrefs }).to_string()))
}

fn folder(call: &Call, name: &str, facts: DomainFacts) -> Result<Answer, Fault> {
    if call.query.get("h5path").is_some() {
        return Err(bad_request(format!("{name} is a folder")));
    }
    let mut hrefs = call.hrefs(&[("self", "/"), ("acls", "/acls")]);
    if let Some(hrefs) = hrefs.as_array_mut() {
        // The slash at the end stands behind the domain, too.
        hrefs.push(json!({ "rel": "domains", "href": format!("{}/", call.href("/domains")) }));
    }
    add_parent(call, name, &mut hrefs);
    Ok(json_answer(&json!({
        "class": "folder",
        "owner": facts.owner.as_deref().unwrap_or(OWNER),
        "created": facts.created.unwrap_or_default(),
        "lastModified": facts.modified.unwrap_or_default(),
        "hrefs": hrefs,
    })))
}

/// `GET /domains`: the files and folders of a folder.
pub(super) fn domains(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let folder = call.given_domain().unwrap_or("/");
    if !folder.starts_with('/') {
        return Err(bad_request(format!("Invalid domain: {folder}")));
    }
    if call.query.get("query").is_some_and(|query| !query.is_empty()) {
        return Err(super::faults::not_implemented("Queries of domains are not supported"));
    }
    let paging = Paging::of(call)?;
    // A file has no domains below it.
    let listed = match state.catalog.find(folder)? {
        Named::Store(_) => Json::Null,
        Named::Folder(_) | Named::Roots => listing::list(state, folder.trim_matches('/'))?,
    };
    let entries = listed["entries"].as_array().map_or(&[][..], Vec::as_slice);
    let named = entries
        .iter()
        .filter_map(|entry| Some((entry["name"].as_str()?.to_owned(), format!("/{}", entry["path"].as_str()?), entry)));
    // Clients name the last domain that they have got by its whole path, and patterns are those of the last name.
    let shown = paging.page_domains(named.collect(), |(_, path, _)| path, |(name, ..)| name);
    let listed = shown.into_iter().enumerate().map(|(n, (_, name, entry))| {
        let is_counted = call.flag("verbose") && n < MAX_COUNTED;
        listed_domain(state, call, (&name, entry), is_counted)
    });
    let shown: Vec<_> = listed.collect();
    let own = json!([{ "rel": "self", "href": call.href_in("/domains", call.given_domain()) }]);
    Ok(json_answer(&json!({ "domains": shown, "hrefs": own })))
}

/// A file or a folder in the list of a folder.
fn listed_domain(state: &AppState, call: &Call, (name, entry): (&str, &Json), is_counted: bool) -> Json {
    let named = state.catalog.find(name).ok();
    let facts = match &named {
        Some(Named::Store(place)) => facts_of(place),
        Some(Named::Folder(path)) => facts_at(path).unwrap_or_default(),
        Some(Named::Roots) | None => DomainFacts::default(),
    };
    let modified = entry["modified"].as_u64().unwrap_or_default() as f64 / 1000.0;
    let class = if entry["kind"] == "folder" { "folder" } else { "domain" };
    let mut json = json!({
        "name": name,
        "class": class,
        "owner": facts.owner.as_deref().unwrap_or(OWNER),
        "created": facts.created.unwrap_or(modified),
        "lastModified": facts.modified.unwrap_or(modified),
        "hrefs": [{ "rel": "domain", "href": call.href_in("/", Some(name)) }],
    });
    if let Some(root) = facts.root {
        json["root"] = root.into();
    }
    if call.flag("verbose") {
        json["total_size"] = entry["size"].as_u64().unwrap_or_default().into();
    }
    if let (true, Some(Named::Store(place)), Some(members)) = (is_counted, &named, json.as_object_mut()) {
        // What cannot be opened is listed all the same.
        let opened = OpenedDomain::open(state, name, place);
        let _ = opened.and_then(|opened| set_counts(members, state, &opened, place));
    }
    json
}

/// `POST /`: objects at several paths.
pub(super) fn objects_at(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let body = call.json_body()?;
    let paths = body.get("h5paths").and_then(Json::as_array);
    let paths = paths.ok_or_else(|| bad_request("expected body to contain h5paths"))?;
    let domain = OpenedDomain::open_for_call(state, call)?;
    let (form, follow) = (form_of(state, call), FollowedLinks::of(call));
    let (mut found, mut left) = (super::json_members::JsonMembers::default(), form.max_bytes);
    for path in paths {
        let path = path.as_str().ok_or_else(|| bad_request("h5paths is a list of paths"))?;
        let at = path_walk::find(state, &domain, call.query.get("parent_id"), path, follow)?;
        let of = at.other.as_ref().unwrap_or(&domain);
        let mut json = object_json::object_json(of, &at.object, ObjectForm { max_bytes: left, ..form })?;
        json.push_member("domain", of.name.as_str());
        json.push_member("class", class_of(&at.object));
        left = left.saturating_sub(json.text_length() as u64);
        found.push_member_raw_json(path, &json.finish());
    }
    let mut json = super::json_members::JsonMembers::default();
    json.push_member_raw_json("h5paths", &found.finish());
    Ok(domain.json_answer(json.finish()))
}

/// `GET /acls` and `/acls/USER`: who may do what, as a domain in the schema of HSDS says it. In other files, everybody who
/// is let in may read.
pub(super) fn acls(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let mut hrefs = call.hrefs(&[("self", "/acls"), ("home", "/"), ("owner", "/")]);
    let facts = match state.catalog.find(call.domain()?)? {
        Named::Store(place) => facts_of(&place),
        Named::Folder(path) => facts_at(&path).unwrap_or_default(),
        Named::Roots => DomainFacts::default(),
    };
    let mut acls = facts.acls;
    if acls.is_empty() {
        let rights = json!({
            "create": false, "read": true, "update": false, "delete": false, "readACL": true, "updateACL": false,
        });
        acls.push((DEFAULT_USER.to_owned(), rights));
    }
    let with_name = |(user, mut rights): (String, Json)| {
        rights["userName"] = user.into();
        rights
    };
    if let (false, Ok(domain), Some(hrefs)) =
        (facts.is_folder, OpenedDomain::open_for_call(state, call), hrefs.as_array_mut())
    {
        hrefs.push(json!({ "rel": "root", "href": call.href(&format!("/groups/{}", domain.ids.format_root_id())) }));
    }
    let Some(user) = call.id.as_deref() else {
        let acls: Vec<_> = acls.into_iter().map(with_name).collect();
        return Ok(json_answer(&json!({ "acls": acls, "hrefs": hrefs })));
    };
    let found = acls.into_iter().find(|(name, _)| name == user);
    let found = found.ok_or_else(|| not_found(format!("acl for username: [{user}] not found")))?;
    Ok(json_answer(&json!({ "acl": with_name(found), "hrefs": hrefs })))
}
