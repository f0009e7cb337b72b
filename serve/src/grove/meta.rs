//! What an object is: its kind, its attributes, its children.

use std::collections::HashSet;

use h5live::model::{CreationOrder, FilterSpec, Layout};
use h5live::{Attribute, Dataset, Group, Object};
use serde_json::{Map, Value as Json, json};

use super::dtype::{shape_json, type_json};
use super::json_text::JsonText;
use super::links::LinkResolution;
use super::resolved_entity::{self, Entity, ResolvedEntity, join};
use crate::fault::Fault;

/// Names of filters that the file does not name.
const FILTER_NAMES: [(u16, &str); 6] =
    [(1, "deflate"), (2, "shuffle"), (3, "fletcher32"), (4, "szip"), (5, "nbit"), (6, "scaleoffset")];

/// An entity as h5grove describes it, with children down to a depth.
pub(super) fn entity_json(found: &ResolvedEntity, depth: u32) -> Result<Json, Fault> {
    let mut json = Map::new();
    let mut set = |name: &str, value: Json| drop(json.insert(name.to_owned(), value));
    set("name", found.base_name().into());
    let kind = match &found.entity {
        Entity::Object(object) => {
            set("attributes", attributes_json(object)?);
            match object {
                Object::Group(group) => {
                    if depth > 0 {
                        set("children", children_json(found, group, depth - 1)?);
                    }
                    "group"
                }
                Object::Dataset(dataset) => {
                    set_dataset(&mut set, dataset)?;
                    "dataset"
                }
                Object::Datatype(named) => {
                    set("type", type_json(named.datatype()));
                    "datatype"
                }
                _ => "other",
            }
        }
        Entity::Soft(path) => {
            set("target_path", path.to_string().into());
            "soft_link"
        }
        Entity::External { file, path } => {
            set("target_file", file.to_string().into());
            set("target_path", path.to_string().into());
            "external_link"
        }
        Entity::Other => "other",
    };
    set("kind", kind.into());
    Ok(Json::Object(json))
}

fn set_dataset(set: &mut impl FnMut(&str, Json), dataset: &Dataset) -> Result<(), Fault> {
    let mut spec = dataset.spec()?;
    if matches!(spec.layout, Layout::Virtual(_)) {
        // Sources that cannot be read are an error when the elements are read.
        let _ = dataset.refresh();
        spec = dataset.spec()?;
    }
    let chunks = match &spec.layout {
        Layout::Chunked(dims) => json!(dims),
        _ => Json::Null,
    };
    let filters = match &spec.filters[..] {
        [] => Json::Null,
        filters => filters.iter().map(filter_json).collect::<Vec<_>>().into(),
    };
    set("chunks", chunks);
    set("filters", filters);
    set("shape", shape_json(&spec.dataspace));
    set("type", type_json(&spec.datatype));
    Ok(())
}

fn filter_json(filter: &FilterSpec) -> Json {
    let known = FILTER_NAMES.iter().find(|(id, _)| *id == filter.id).map(|(_, name)| (*name).to_owned());
    let name = filter.name.as_ref().map(ToString::to_string).filter(|name| !name.is_empty());
    json!({ "id": filter.id, "name": name.or(known).unwrap_or_default() })
}

/// The attributes of an object, sorted by name.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn attributes_of(object: &Object) -> Result<Vec<Attribute>, Fault> {
    Ok(match object {
        Object::Group(group) => group.attributes()?,
        Object::Dataset(dataset) => dataset.attributes()?,
        Object::Datatype(named) => named.attributes()?,
        Object::Map(map) => map.attributes()?,
        _ => Vec::new(),
    })
}

fn attributes_json(object: &Object) -> Result<Json, Fault> {
    let attribute = |attribute: Attribute| {
        json!({
            "name": attribute.name().to_string(),
            "shape": shape_json(attribute.dataspace()),
            "type": type_json(attribute.datatype()),
        })
    };
    Ok(attributes_of(object)?.into_iter().map(attribute).collect::<Vec<_>>().into())
}

fn children_json(found: &ResolvedEntity, group: &Group, depth: u32) -> Result<Json, Fault> {
    let mut links = group.links()?;
    // As h5py lists them.
    if !matches!(group.spec()?.link_storage.order, CreationOrder::Untracked) {
        links.sort_by_key(|link| link.creation_order);
    }
    let child = |link: &h5live::model::Link| {
        let path = join(&found.path, &link.name.to_string());
        let unresolved = || Fault::path_not_found(&path, "");
        let entity = resolved_entity::follow(group, link, LinkResolution::OnlyValid, unresolved)?;
        entity_json(&ResolvedEntity { path: path.clone(), entity }, depth)
    };
    Ok(links.iter().map(child).collect::<Result<Vec<_>, _>>()?.into())
}

/// The values of attributes, of all if no names are given, as an object in JSON.
pub(super) fn attribute_values(object: &Object, names: &[&str], max_bytes: u64) -> Result<String, Fault> {
    let mut all = attributes_of(object)?;
    if !names.is_empty() {
        let known: HashSet<&[u8]> = all.iter().map(|attribute| attribute.name().as_bytes()).collect();
        if let Some(missing) = names.iter().find(|name| !known.contains(name.as_bytes())) {
            return Err(Fault::new(axum::http::StatusCode::NOT_FOUND, format!("There is no attribute {missing}")));
        }
        let wanted: HashSet<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        all.retain(|attribute| wanted.contains(attribute.name().as_bytes()));
    }
    let mut text = JsonText::new(max_bytes);
    text.push_raw_json("{");
    for (n, attribute) in all.iter().enumerate() {
        text.push_raw_json(if n == 0 { "" } else { "," });
        text.push_raw_json(&Json::from(attribute.name().to_string()).to_string());
        text.push_raw_json(":");
        match attribute.dataspace() {
            h5live::model::Dataspace::Null => text.push_raw_json("null"),
            dataspace => text.push_values(&attribute.values()?, attribute.datatype(), dataspace.dims())?,
        }
    }
    text.push_raw_json("}");
    text.finish()
}
