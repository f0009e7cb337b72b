//! Attributes as HSDS describes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use h5live::model::{Dataspace, Name};
use h5live::{Attribute, Group, Object};

use super::call::Call;
use super::element_pack::ElementPacker;
use super::element_text::{ElementWriter, TextFault};
use super::faults::{bad_request, not_found};
use super::hdf5_json_type::Hdf5JsonType;
use super::json_members::{JsonMembers, list_text};
use super::object_ids::{collection_name, kind_of};
use super::object_parts::{objects_below, shape_json, type_json};
use super::object_times::ObjectTimes;
use super::opened_domain::OpenedDomain;
use super::paging::Paging;
use crate::config::ServerLimits;
use crate::fault::Fault;

/// How attributes are described.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AttributeForm {
    pub has_values: bool,
    pub is_nan_null: bool,
    /// Whether values are bytes in base 64.
    pub is_base64: bool,
    /// Most bytes of a value that is shown; 0 for no limit.
    pub max_value_bytes: usize,
    /// Most bytes of all.
    pub max_bytes: u64,
}

impl AttributeForm {
    fn of(call: &Call, has_values: bool, max_bytes: u64) -> Result<Self, Fault> {
        let is_base64 = match call.query.get("encoding") {
            None | Some("") => false,
            Some("base64") => true,
            Some(_) => return Err(bad_request("only base64 encoding is supported")),
        };
        let max_value_bytes = call.number("max_data_size")?.unwrap_or_default();
        Ok(AttributeForm { has_values, is_nan_null: call.flag("ignore_nan"), is_base64, max_value_bytes, max_bytes })
    }
}

/// The attributes of an object.
pub(super) fn attributes_of(object: &Object) -> Result<Vec<Attribute>, Fault> {
    Ok(match object {
        Object::Group(group) => group.attributes()?,
        Object::Dataset(dataset) => dataset.attributes()?,
        Object::Datatype(named) => named.attributes()?,
        _ => Vec::new(),
    })
}

/// Their names.
pub(super) fn attribute_names(object: &Object) -> Result<Vec<Name>, Fault> {
    Ok(match object {
        Object::Group(group) => group.attribute_names()?,
        Object::Dataset(dataset) => dataset.attribute_names()?,
        Object::Datatype(named) => named.attribute_names()?,
        _ => Vec::new(),
    })
}

/// The value of an attribute as HSDS sends it.
fn packed(domain: &OpenedDomain, attribute: &Attribute, max_bytes: u64) -> Result<Vec<u8>, Fault> {
    let packer = ElementPacker { file: domain.file(), ids: &domain.ids, max_bytes };
    Ok(packer.encode_for_hsds(attribute.datatype(), attribute.raw().to_vec())?.bytes)
}

/// The description of an attribute.
fn describe(
    domain: &OpenedDomain,
    attribute: &Attribute,
    times: &ObjectTimes,
    form: &AttributeForm,
    json: &mut JsonMembers,
) -> Result<(), Fault> {
    json.push_member("type", type_json(domain, attribute.datatype(), attribute.committed_datatype_id()));
    json.push_member("shape", shape_json(attribute.dataspace(), false));
    json.push_member(
        "created",
        times.attribute_creation_time(&attribute.name().to_string(), attribute.creation_order()),
    );
    if !form.has_values {
        return Ok(());
    }
    if matches!(attribute.dataspace(), Dataspace::Null) {
        json.push_member("value", serde_json::Value::Null);
        return Ok(());
    }
    set_value(domain, attribute, form, json)
}

fn set_value(
    domain: &OpenedDomain,
    attribute: &Attribute,
    form: &AttributeForm,
    json: &mut JsonMembers,
) -> Result<(), Fault> {
    let shown = Hdf5JsonType::of(attribute.datatype());
    if shown.has_unserved_reference() {
        // The object can be read all the same.
        json.push_member("value", serde_json::Value::Null);
        return Ok(());
    }
    let bytes = packed(domain, attribute, form.max_bytes)?;
    if form.max_value_bytes > 0 && bytes.len() > form.max_value_bytes {
        json.push_member("value", serde_json::Value::Null);
        return Ok(());
    }
    let mut writer =
        ElementWriter { bytes: &bytes, text: String::new(), is_nan_null: form.is_nan_null, max_bytes: form.max_bytes };
    let written = match form.is_base64 {
        true => Err(TextFault::NoText),
        false => writer.push_nested(attribute.dataspace().dims(), &shown),
    };
    match written {
        Ok(()) => json.push_member_raw_json("value", &writer.text),
        Err(TextFault::Other(fault)) => return Err(fault),
        Err(TextFault::NoText) => {
            json.push_member("value", BASE64.encode(&bytes));
            json.push_member("encoding", "base64");
        }
    }
    Ok(())
}

/// Attributes as members of an object, by their names.
pub(super) fn members_text(
    domain: &OpenedDomain,
    object: &Object,
    times: &ObjectTimes,
    form: &AttributeForm,
) -> Result<String, Fault> {
    let mut json = JsonMembers::default();
    for attribute in attributes_of(object)? {
        let mut members = JsonMembers::default();
        describe(domain, &attribute, times, form, &mut members)?;
        json.push_member_raw_json(&attribute.name().to_string(), &members.finish());
        if json.text_length() as u64 > form.max_bytes {
            return Err(Fault::answer_too_large(json.text_length() as u64, form.max_bytes));
        }
    }
    Ok(json.finish())
}

fn listed(
    domain: &OpenedDomain,
    attribute: &Attribute,
    times: &ObjectTimes,
    form: &AttributeForm,
    href: Option<String>,
) -> Result<String, Fault> {
    let mut json = JsonMembers::default();
    json.push_member("name", attribute.name().to_string());
    describe(domain, attribute, times, form, &mut json)?;
    if let Some(href) = href {
        json.push_member("href", href);
    }
    Ok(json.finish())
}

/// The address of an object.
fn address(domain: &OpenedDomain, object: &Object) -> String {
    format!("/{}/{}", collection_name(kind_of(object)), domain.ids.format_id_of(object).unwrap_or_default())
}

/// The attributes of an object with their names, in the order that is asked for.
fn ordered(call: &Call, object: &Object, times: &ObjectTimes) -> Result<Vec<(String, Attribute)>, Fault> {
    let mut all: Vec<_> = attributes_of(object)?.into_iter().map(|a| (a.name().to_string(), a)).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    if call.flag("CreateOrder") {
        let time =
            |(name, attribute): &(String, Attribute)| times.attribute_creation_time(name, attribute.creation_order());
        let order = |entry: &(String, Attribute)| entry.1.creation_order();
        all.sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| time(a).total_cmp(&time(b))));
    }
    Ok(all)
}

/// `GET /COLLECTION/ID/attributes`.
pub(super) fn list(
    domain: &OpenedDomain,
    call: &Call,
    object: &Object,
    limits: &ServerLimits,
) -> Result<String, Fault> {
    let form = AttributeForm::of(call, call.flag("IncludeData"), limits.max_answer_bytes)?;
    let (own, paging) = (address(domain, object), Paging::of(call)?);
    let mut json = JsonMembers::default();
    if call.flag("follow_links") {
        let Object::Group(group) = object else {
            return Err(bad_request("follow_links can only be used with group ids"));
        };
        json.push_member_raw_json("attributes", &below_text(domain, call, group, (&paging, &form), limits)?);
    } else {
        let times = ObjectTimes::of(domain, object)?;
        let entries = paging.page_then_filter(ordered(call, object, &times)?, |(name, _)| name)?.into_iter();
        let entries = entries.map(|(name, attribute)| {
            let href = call.href(&format!("{own}/attributes/{name}"));
            listed(domain, &attribute, &times, &form, Some(href))
        });
        json.push_member_raw_json("attributes", &list_text(entries.collect::<Result<Vec<_>, _>>()?));
    }
    json.push_member("hrefs", call.hrefs(&[("self", &format!("{own}/attributes")), ("home", "/"), ("owner", &own)]));
    Ok(json.finish())
}

/// The attributes of a group and of all objects below it, by their identities.
fn below_text(
    domain: &OpenedDomain,
    call: &Call,
    group: &Group,
    (paging, form): (&Paging<'_>, &AttributeForm),
    limits: &ServerLimits,
) -> Result<String, Fault> {
    let mut json = JsonMembers::default();
    for object in objects_below(domain, group, limits)? {
        let Some(id) = domain.ids.format_id_of(&object) else { continue };
        let times = ObjectTimes::of(domain, &object)?;
        let entries = paging.page_without_marker(ordered(call, &object, &times)?, |(name, _)| name).into_iter();
        let entries = entries.map(|(_, attribute)| listed(domain, &attribute, &times, form, None));
        json.push_member_raw_json(&id, &list_text(entries.collect::<Result<Vec<_>, _>>()?));
        if json.text_length() as u64 > form.max_bytes {
            return Err(Fault::answer_too_large(json.text_length() as u64, form.max_bytes));
        }
    }
    Ok(json.finish())
}

fn find(object: &Object, name: &str) -> Result<Attribute, Fault> {
    let found = match object {
        Object::Group(group) => group.attribute(name),
        Object::Dataset(dataset) => dataset.attribute(name),
        Object::Datatype(named) => named.attribute(name),
        _ => return Err(not_found(format!("There is no attribute {name:?}"))),
    };
    match found {
        Err(error) if error.is_not_found_in_file() => {
            // A name that is not UTF-8 is shown with something else in place of some of its bytes.
            let all = match name.contains(char::REPLACEMENT_CHARACTER) {
                true => attributes_of(object)?,
                false => Vec::new(),
            };
            let mut shown = all.into_iter().map(|attribute| (attribute.name().to_string(), attribute));
            let found = shown.find(|(shown, _)| shown == name).map(|(_, attribute)| attribute);
            found.ok_or_else(|| not_found(format!("There is no attribute {name:?}")))
        }
        found => Ok(found?),
    }
}

/// `GET /COLLECTION/ID/attributes/NAME`.
pub(super) fn one(domain: &OpenedDomain, call: &Call, object: &Object, max_bytes: u64) -> Result<String, Fault> {
    let has_values = call.query.get("IncludeData").is_none() || call.flag("IncludeData");
    let form = AttributeForm::of(call, has_values, max_bytes)?;
    let attribute = find(object, call.link_or_attribute_name())?;
    let (own, times) = (address(domain, object), ObjectTimes::of(domain, object)?);
    let mut json = JsonMembers::default();
    json.push_member("name", call.link_or_attribute_name());
    describe(domain, &attribute, &times, &form, &mut json)?;
    json.push_member(
        "lastModified",
        times.attribute_creation_time(call.link_or_attribute_name(), attribute.creation_order()),
    );
    let href = format!("{own}/attributes/{}", call.link_or_attribute_name());
    json.push_member("hrefs", call.hrefs(&[("self", &href), ("home", "/"), ("owner", &own)]));
    Ok(json.finish())
}

/// The value of an attribute: bytes, or JSON.
#[derive(Debug)]
pub(super) enum AttributeValue {
    Bytes(Vec<u8>),
    Json(String),
}

/// `GET /COLLECTION/ID/attributes/NAME/value`.
pub(super) fn value(
    domain: &OpenedDomain,
    call: &Call,
    object: &Object,
    max_bytes: u64,
) -> Result<AttributeValue, Fault> {
    let attribute = find(object, call.link_or_attribute_name())?;
    if matches!(attribute.dataspace(), Dataspace::Null) {
        return Err(bad_request("Null space attributes can not be read"));
    }
    let has_size = Hdf5JsonType::of(attribute.datatype()).size().is_some();
    if call.is_binary && has_size {
        return packed(domain, &attribute, max_bytes).map(AttributeValue::Bytes);
    }
    let form = AttributeForm::of(call, true, max_bytes)?;
    let mut whole = JsonMembers::default();
    set_value(domain, &attribute, &form, &mut whole)?;
    let own = address(domain, object);
    let href = format!("{own}/attributes/{}", call.link_or_attribute_name());
    whole.push_member("hrefs", call.hrefs(&[("self", &href), ("home", "/"), ("owner", &own)]));
    Ok(AttributeValue::Json(whole.finish()))
}

/// `POST /COLLECTION/ID/attributes`: attributes with these names, of one object or of several.
pub(super) fn named(domain: &OpenedDomain, call: &Call, max_bytes: u64) -> Result<String, Fault> {
    let objects = super::named_entries::named_entries(call, "attr_names", "obj_ids")?;
    let form = AttributeForm::of(call, call.flag("IncludeData"), max_bytes)?;
    let mut written = 0;
    let attributes_named = |id: &str, names: &Option<Vec<String>>| {
        let object = domain.object(id)?;
        let times = ObjectTimes::of(domain, &object)?;
        let all = match names {
            None => attributes_of(&object)?,
            Some(names) => names.iter().map(|name| find(&object, name)).collect::<Result<_, _>>()?,
        };
        let text = list_text(
            all.iter()
                .map(|attribute| listed(domain, attribute, &times, &form, None))
                .collect::<Result<Vec<_>, Fault>>()?,
        );
        written += text.len() as u64;
        if written > max_bytes { Err(Fault::answer_too_large(written, max_bytes)) } else { Ok(text) }
    };
    super::named_entries::entries_text("attributes", &objects, attributes_named)
}
