//! What HSDS says of groups, datasets and committed types.

use h5live::model::{AllocationTime, CreationOrder, DatasetSpec, Dataspace, FillTime, FillValue, FilterSpec, Layout};
use h5live::{Dataset, Object};
use serde_json::{Map, Value as Json, json};

use super::attribute_json::{self, AttributeForm};
use super::element_pack::ElementPacker;
use super::element_text::ElementWriter;
use super::hdf5_json_type::Hdf5JsonType;
use super::json_members::JsonMembers;
use super::link_json;
use super::object_ids::{collection_name, kind_of};
use super::object_parts::{info_of, shape_json, type_json};
use super::object_times::ObjectTimes;
use super::opened_domain::OpenedDomain;
use crate::fault::Fault;

/// What HSDS calls filters.
const FILTERS: [(u16, &str, &str); 13] = [
    (1, "H5Z_FILTER_DEFLATE", "gzip"),
    (2, "H5Z_FILTER_SHUFFLE", "shuffle"),
    (3, "H5Z_FILTER_FLETCHER32", "fletcher32"),
    (4, "H5Z_FILTER_SZIP", "szip"),
    (5, "H5Z_FILTER_NBIT", "nbit"),
    (6, "H5Z_FILTER_SCALEOFFSET", "scaleoffset"),
    (32000, "H5Z_FILTER_LZF", "lzf"),
    (32001, "H5Z_FILTER_BLOSC", "blosclz"),
    (32003, "H5Z_FILTER_SNAPPY", "snappy"),
    (32004, "H5Z_FILTER_LZ4", "lz4"),
    (32005, "H5Z_FILTER_LZ4HC", "lz4hc"),
    (32008, "H5Z_FILTER_BITSHUFFLE", "bitshuffle"),
    (32015, "H5Z_FILTER_ZSTD", "zstd"),
];

/// What HSDS calls the kinds of scale-offset, by their numbers.
const SCALE_TYPES: [&str; 3] = ["H5Z_SO_FLOAT_DSCALE", "H5Z_SO_FLOAT_ESCALE", "H5Z_SO_INT"];

/// What is asked for of an object.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ObjectForm {
    pub has_links: bool,
    pub has_attributes: bool,
    /// Most bytes of the text.
    pub max_bytes: u64,
}

/// The members of the description of an object.
pub(super) fn object_json(domain: &OpenedDomain, object: &Object, form: ObjectForm) -> Result<JsonMembers, Fault> {
    let info = info_of(object)?;
    let times = ObjectTimes::of(domain, object)?;
    let mut json = JsonMembers::default();
    json.push_member("id", domain.ids.format_id_of(object));
    json.push_member("root", domain.ids.format_root_id());
    json.push_member("created", times.created);
    json.push_member("lastModified", times.modified);
    json.push_member("attributeCount", attribute_json::attribute_names(object)?.len());
    let mut creation = Map::new();
    if !matches!(info.attribute_storage.order, CreationOrder::Untracked) {
        creation.insert("CreateOrder".to_owned(), json!(1));
    }
    match object {
        Object::Group(group) => {
            let links = link_json::links_of(domain, group, false)?;
            json.push_member("linkCount", links.len());
            if !matches!(group.spec()?.link_storage.order, CreationOrder::Untracked) {
                creation.insert("CreateOrder".to_owned(), json!(1));
            }
            json.push_member("creationProperties", Json::Object(creation));
            if form.has_links {
                json.push_member_raw_json("links", &link_json::members_text(&links, &times));
            }
        }
        Object::Dataset(dataset) => set_dataset(&mut json, domain, dataset, creation, form)?,
        Object::Datatype(named) => {
            json.push_member("type", type_json(domain, named.datatype(), Some(named.id())));
            json.push_member("creationProperties", Json::Object(creation));
        }
        _ => return Err(super::faults::not_found("There is no such object")),
    }
    if form.has_attributes {
        let attributes = AttributeForm { has_values: true, max_bytes: form.max_bytes, ..AttributeForm::default() };
        json.push_member_raw_json("attributes", &attribute_json::members_text(domain, object, &times, &attributes)?);
    }
    match json.text_length() as u64 {
        bytes if bytes > form.max_bytes => Err(Fault::answer_too_large(bytes, form.max_bytes)),
        _ => Ok(json),
    }
}

fn set_dataset(
    json: &mut JsonMembers,
    domain: &OpenedDomain,
    dataset: &Dataset,
    mut creation: Map<String, Json>,
    form: ObjectForm,
) -> Result<(), Fault> {
    let spec = dataset.spec()?;
    let layout = layout_json(&spec);
    json.push_member("type", type_json(domain, &spec.datatype, spec.committed_datatype));
    json.push_member("shape", shape_json(&spec.dataspace, true));
    json.push_member("layout", layout.clone());
    creation.insert("layout".to_owned(), layout);
    let allocation = match spec.fill.allocation {
        AllocationTime::Early => "H5D_ALLOC_TIME_EARLY",
        AllocationTime::Late => "H5D_ALLOC_TIME_LATE",
        AllocationTime::Incremental => "H5D_ALLOC_TIME_INCR",
    };
    creation.insert("allocTime".to_owned(), allocation.into());
    let time = match spec.fill.time {
        FillTime::Allocation => "H5D_FILL_TIME_ALLOC",
        FillTime::Never => "H5D_FILL_TIME_NEVER",
        FillTime::IfSet => "H5D_FILL_TIME_IFSET",
    };
    creation.insert("fillTime".to_owned(), time.into());
    if !spec.filters.is_empty() {
        creation.insert("filters".to_owned(), spec.filters.iter().map(filter_json).collect());
    }
    let mut members = JsonMembers::default();
    for (name, value) in creation {
        members.push_member(&name, value);
    }
    if let Some(fill) = fill_text(domain, dataset, &spec, form.max_bytes) {
        members.push_member_raw_json("fillValue", &fill);
    }
    json.push_member_raw_json("creationProperties", &members.finish());
    Ok(())
}

fn layout_json(spec: &DatasetSpec) -> Json {
    match (&spec.layout, &spec.dataspace) {
        (Layout::Chunked(dims), Dataspace::Simple(_)) => json!({ "class": "H5D_CHUNKED", "dims": dims }),
        (Layout::Compact, _) => json!({ "class": "H5D_COMPACT" }),
        _ => json!({ "class": "H5D_CONTIGUOUS" }),
    }
}

fn filter_json(filter: &FilterSpec) -> Json {
    match FILTERS.iter().find(|(id, ..)| *id == filter.id) {
        Some((1, class, name)) => {
            let level = filter.params.first().copied().unwrap_or(4).min(9);
            json!({ "class": class, "id": 1, "level": level, "name": name })
        }
        Some((id @ 6, class, name)) => {
            let mut json = json!({ "class": class, "id": id, "name": name });
            if let [kind, factor, ..] = filter.params[..] {
                json["scaleType"] = SCALE_TYPES.get(kind as usize).copied().unwrap_or_default().into();
                json["scaleOffset"] = factor.into();
            }
            json
        }
        Some((id, class, name)) => json!({ "class": class, "id": id, "name": name }),
        None => {
            json!({ "class": "H5Z_FILTER_USER", "id": filter.id, "name": format!("user filter {}", filter.id) })
        }
    }
}

/// The fill value, if it is given and has a form in JSON.
fn fill_text(domain: &OpenedDomain, dataset: &Dataset, spec: &DatasetSpec, max_bytes: u64) -> Option<String> {
    let FillValue::Value(value) = &spec.fill.value else { return None };
    let shown = Hdf5JsonType::of(&spec.datatype);
    if spec.datatype.has_vlen_or_references() || value.len() != spec.datatype.size() as usize {
        return None;
    }
    // Clients ask whether such a value is true, and lists of zeros are.
    if matches!(shown, Hdf5JsonType::Compound(_) | Hdf5JsonType::Array { .. }) && value.iter().all(|byte| *byte == 0) {
        return None;
    }
    let packer = ElementPacker { file: dataset.file(), ids: &domain.ids, max_bytes };
    let bytes = packer.encode_for_hsds(&spec.datatype, value.clone()).ok()?.bytes;
    let mut writer = ElementWriter { bytes: &bytes, text: String::new(), is_nan_null: false, max_bytes };
    writer.push_nested(&[], &shown).ok()?;
    Some(writer.text)
}

/// The description of an object that a client has asked for, with addresses.
pub(super) fn answer_json(
    domain: &OpenedDomain,
    call: &super::call::Call,
    object: &Object,
    form: ObjectForm,
) -> Result<JsonMembers, Fault> {
    let mut json = object_json(domain, object, form)?;
    json.push_member("domain", domain.name.as_str());
    let bucket = domain.documents.as_ref().and_then(|documents| documents.bucket());
    if let (Object::Group(_), Some(bucket)) = (object, bucket) {
        json.push_member("bucket", bucket);
    }
    let id = domain.ids.format_id_of(object).unwrap_or_default();
    let own = format!("/{}/{id}", collection_name(kind_of(object)));
    let (attributes, links, value) = (format!("{own}/attributes"), format!("{own}/links"), format!("{own}/value"));
    let root = format!("/groups/{}", domain.ids.format_root_id());
    let mut all = vec![("self", &*own), ("root", &*root), ("home", "/"), ("attributes", &*attributes)];
    match object {
        Object::Group(_) => all.insert(1, ("links", &links)),
        Object::Dataset(dataset) if dataset.spec()?.dataspace != Dataspace::Null => all.push(("data", &value)),
        _ => {}
    }
    json.push_member("hrefs", call.hrefs(&all));
    Ok(json)
}
