//! Objects and what belongs to them.

use h5live::Object;
use h5live::model::ObjectKind;
use serde_json::json;

use super::attribute_json::{self, AttributeValue};
use super::call::Call;
use super::domain_answers::form_of;
use super::faults::{bad_request, not_found};
use super::object_ids::{ClientId, collection_name, kind_of};
use super::object_json;
use super::object_parts::{shape_json, type_json};
use super::object_times::ObjectTimes;
use super::opened_domain::OpenedDomain;
use super::path_walk::{self, FollowedLinks};
use super::{link_json, value_answer};
use crate::answer::Answer;
use crate::fault::Fault;
use crate::state::AppState;

/// Chunks of a dataset that are counted, at most.
const MAX_COUNTED_CHUNKS: u64 = 100_000;

/// `GET /COLLECTION/ID`, and `GET /COLLECTION/?h5path=`.
pub(super) fn object(state: &AppState, call: &Call, kind: ObjectKind) -> Result<Answer, Fault> {
    let domain = OpenedDomain::open_for_call(state, call)?;
    let object = match call.query.get("h5path") {
        Some(path) => {
            let start = call.id.as_deref().or(call.query.get("grpid"));
            if start.is_none() && !path.starts_with('/') {
                return Err(bad_request("h5paths must be absolute"));
            }
            let found = path_walk::find(state, &domain, start, path, FollowedLinks::default())?.object;
            if kind_of(&found) != kind {
                return Err(not_found(format!("No object of {} is at the path {path}", collection_name(kind))));
            }
            found
        }
        None => domain.requested_object(call, kind)?,
    };
    let mut json = object_json::answer_json(&domain, call, &object, form_of(state, call))?;
    if let (true, Object::Dataset(dataset)) = (call.flag("verbose"), &object) {
        let (mut chunks, mut bytes) = (0u64, 0u64);
        dataset.for_each_stored_chunk(|chunk| {
            chunks += 1;
            bytes = bytes.saturating_add(chunk.size);
            chunks < MAX_COUNTED_CHUNKS
        })?;
        json.push_member("num_chunks", chunks);
        json.push_member("allocated_size", bytes);
    }
    if call.flag("getalias") {
        json.push_member("alias", alias(state, &domain, &object)?);
    }
    Ok(domain.json_answer(json.finish()))
}

/// A path that leads to an object.
fn alias(state: &AppState, domain: &OpenedDomain, object: &Object) -> Result<Vec<String>, Fault> {
    for (n, item) in domain.file().root().walk().enumerate() {
        if n > state.limits.max_listed_entries {
            return Err(super::faults::too_many(state.limits.max_listed_entries));
        }
        let item = item?;
        if let h5live::WalkItem::Object(found) = &item
            && found.id() == object.id()
        {
            return Ok(vec![item.path().to_owned()]);
        }
    }
    Ok(Vec::new())
}

/// `GET /groups/ID/links`.
pub(super) fn links(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let domain = OpenedDomain::open_for_call(state, call)?;
    Ok(domain.json_answer(link_json::list(&domain, call, &state.limits)?))
}

/// `GET /groups/ID/links/TITLE`.
pub(super) fn link(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let domain = OpenedDomain::open_for_call(state, call)?;
    Ok(domain.json_answer(link_json::one(&domain, call)?))
}

/// `POST /groups/ID/links`.
pub(super) fn links_named(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let domain = OpenedDomain::open_for_call(state, call)?;
    Ok(domain.json_answer(link_json::named(&domain, call)?))
}

/// `GET /datasets/ID/shape`.
pub(super) fn shape(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let domain = OpenedDomain::open_for_call(state, call)?;
    let dataset = domain.requested_dataset(call)?;
    let shape = shape_json(&dataset.spec()?.dataspace, true);
    let times = ObjectTimes::of(&domain, &Object::Dataset(dataset))?;
    let hrefs = dataset_hrefs(&domain, call, "shape")?;
    let json = json!({ "shape": shape, "created": times.created, "lastModified": times.modified, "hrefs": hrefs });
    Ok(domain.json_answer(json.to_string()))
}

/// `GET /datasets/ID/type`.
pub(super) fn dataset_type(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let domain = OpenedDomain::open_for_call(state, call)?;
    let spec = domain.requested_dataset(call)?.spec()?;
    let json = json!({
        "type": type_json(&domain, &spec.datatype, spec.committed_datatype), "hrefs": dataset_hrefs(&domain, call, "type")?,
    });
    Ok(domain.json_answer(json.to_string()))
}

fn dataset_hrefs(domain: &OpenedDomain, call: &Call, part: &str) -> Result<serde_json::Value, Fault> {
    let own = format!("/datasets/{}", call.object_id()?);
    let root = format!("/groups/{}", domain.ids.format_root_id());
    Ok(call.hrefs(&[("self", &*format!("{own}/{part}")), ("owner", &own), ("root", &root)]))
}

/// `GET /datasets/ID/value`.
pub(super) fn value(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    value_answer::get(state, &OpenedDomain::open_for_call(state, call)?, call)
}

/// `POST /datasets/ID/value`.
pub(super) fn value_posted(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    value_answer::post(state, &OpenedDomain::open_for_call(state, call)?, call)
}

/// `GET /datasets/ID/query`.
pub(super) fn query(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    value_answer::places(state, &OpenedDomain::open_for_call(state, call)?, call)
}

/// The object of an address like `/groups/ID/attributes`.
fn owner(domain: &OpenedDomain, call: &Call) -> Result<Object, Fault> {
    let id = call.object_id()?;
    let given = call.path.trim_start_matches('/').split('/').next().unwrap_or_default();
    match collection_name(ClientId::parse(id)?.kind) == given {
        true => domain.object(id),
        false => Err(bad_request(format!("Invalid id: {id} is none of {given}"))),
    }
}

/// `GET /COLLECTION/ID/attributes`.
pub(super) fn attributes(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let domain = OpenedDomain::open_for_call(state, call)?;
    let object = owner(&domain, call)?;
    Ok(domain.json_answer(attribute_json::list(&domain, call, &object, &state.limits)?))
}

/// `GET /COLLECTION/ID/attributes/NAME`.
pub(super) fn attribute(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let domain = OpenedDomain::open_for_call(state, call)?;
    let object = owner(&domain, call)?;
    Ok(domain.json_answer(attribute_json::one(&domain, call, &object, state.memory.max_answer_bytes())?))
}

/// `GET /COLLECTION/ID/attributes/NAME/value`.
pub(super) fn attribute_value(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let domain = OpenedDomain::open_for_call(state, call)?;
    let object = owner(&domain, call)?;
    Ok(match attribute_json::value(&domain, call, &object, state.memory.max_answer_bytes())? {
        AttributeValue::Bytes(bytes) => domain.binary_answer("application/octet-stream", bytes),
        AttributeValue::Json(text) => domain.json_answer(text),
    })
}

/// `POST /COLLECTION/ID/attributes`.
pub(super) fn attributes_named(state: &AppState, call: &Call) -> Result<Answer, Fault> {
    let domain = OpenedDomain::open_for_call(state, call)?;
    Ok(domain.json_answer(attribute_json::named(&domain, call, state.memory.max_answer_bytes())?))
}
