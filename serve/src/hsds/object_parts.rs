//! What groups, datasets, committed types, links and attributes have in common.

use std::collections::HashSet;

use h5live::model::{Dataspace, ObjectInfo, ObjectKind, UNLIMITED};
use h5live::{Group, Object, WalkItem};
use serde_json::{Value as Json, json};

use super::hdf5_json_type::Hdf5JsonType;
use super::opened_domain::OpenedDomain;
use crate::config::ServerLimits;
use crate::fault::Fault;

pub(super) fn info_of(object: &Object) -> Result<ObjectInfo, Fault> {
    Ok(match object {
        Object::Group(group) => group.info()?,
        Object::Dataset(dataset) => dataset.info()?,
        Object::Datatype(named) => named.info()?,
        Object::Map(map) => map.info()?,
        _ => return Err(super::faults::not_found("There is no such object")),
    })
}

/// A group and all objects below it, each once, as far as hard links lead.
///
/// # Errors
/// If there are too many.
pub(super) fn objects_below(domain: &OpenedDomain, group: &Group, limits: &ServerLimits) -> Result<Vec<Object>, Fault> {
    let (mut all, mut seen) = (vec![Object::Group(group.clone())], HashSet::new());
    seen.extend(domain.ids.format_id_of(&all[0]));
    for item in group.walk().skip(1) {
        let WalkItem::Object(object) = item? else { continue };
        if domain.ids.format_id_of(&object).is_some_and(|id| seen.insert(id)) {
            all.push(object);
        }
        if all.len() > limits.max_listed_entries {
            return Err(super::faults::too_many(limits.max_listed_entries));
        }
    }
    Ok(all)
}

/// A type, with the committed type that it is.
pub(super) fn type_json(
    domain: &OpenedDomain,
    datatype: &h5live::model::Datatype,
    committed: Option<h5live::model::ObjectId>,
) -> Json {
    let mut json = Hdf5JsonType::of(datatype).json();
    let id = committed.and_then(|id| domain.ids.format_id(ObjectKind::Datatype, id));
    if let (Some(id), Some(members)) = (id, json.as_object_mut()) {
        members.insert("id".to_owned(), id.into());
    }
    json
}

/// A shape; maxima only for datasets.
pub(super) fn shape_json(dataspace: &Dataspace, has_max: bool) -> Json {
    match dataspace {
        Dataspace::Null => json!({ "class": "H5S_NULL" }),
        Dataspace::Scalar => json!({ "class": "H5S_SCALAR" }),
        Dataspace::Simple(shape) if has_max && shape.states_max_dims() => {
            let max = |dim: &u64| if *dim == UNLIMITED { json!("H5S_UNLIMITED") } else { json!(dim) };
            let max: Vec<_> = shape.max_dims().iter().map(max).collect();
            json!({ "class": "H5S_SIMPLE", "dims": shape.dims(), "maxdims": max })
        }
        Dataspace::Simple(shape) => json!({ "class": "H5S_SIMPLE", "dims": shape.dims() }),
    }
}
