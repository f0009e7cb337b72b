//! Objects and attributes on the command line: `PATH`, `PATH@NAME` or `PATH/@NAME`.

use h5live::{Attribute, AttributeBuilder, File, Object};

use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::escaped_path;
use crate::model::ReferenceType;
use crate::reference_json;

/// An object or attribute that a text names.
pub enum ObjectOrAttribute {
    /// An object.
    Object(Object),
    /// An attribute of an object, which may not be there.
    AttributeName(Object, String),
}

/// Finds the object with the name `text`. If there is none, the part after the last `@` is the name of an attribute.
///
/// # Errors
/// If there is no such object.
pub fn parse_and_find_object(file: &File, text: &str) -> Result<ObjectOrAttribute> {
    match (escaped_path::object_at_maybe_escaped_path(file, text), text.rsplit_once('@')) {
        // Behind a slash, the object before it may be no group.
        (Err(error), Some((object, name))) if is_not_found(&error) || object.ends_with('/') => {
            let object = object.strip_suffix('/').unwrap_or(object);
            let (object, _) =
                escaped_path::object_at_maybe_escaped_path(file, if object.is_empty() { "/" } else { object })?;
            Ok(ObjectOrAttribute::AttributeName(object, name.to_owned()))
        }
        (object, _) => Ok(ObjectOrAttribute::Object(object?.0)),
    }
}

fn is_not_found(error: &Error) -> bool {
    matches!(error, Error::File(error) if error.is_not_found_in_file())
}

/// The attribute of an object; `None` if there is none of this name, nor of the one that its escapes stand for.
///
/// # Errors
/// If it cannot be read.
pub fn find_maybe_escaped_attribute(object: &Object, name: &str) -> Result<Option<Attribute>> {
    match (attribute_of_bytes(object, name.as_bytes())?, escaped_path::unescape_if_escaped(name)) {
        (None, Some(name)) => attribute_of_bytes(object, &name),
        (found, _) => Ok(found),
    }
}

fn attribute_of_bytes(object: &Object, name: &[u8]) -> Result<Option<Attribute>> {
    let found = match object {
        Object::Group(group) => group.attribute(name),
        Object::Dataset(dataset) => dataset.attribute(name),
        Object::Datatype(datatype) => datatype.attribute(name),
        Object::Map(map) => map.attribute(name),
        _ => return Ok(None),
    };
    match found {
        Err(error) if error.is_not_found_in_file() => Ok(None),
        found => Ok(Some(found?)),
    }
}

/// Removes the attribute of an object: the one of this name, or of the one that its escapes stand for.
///
/// # Errors
/// If there is none, or the file cannot be changed.
pub fn remove_maybe_escaped_attribute(object: &Object, name: &str) -> Result<()> {
    let escaped = if attribute_of_bytes(object, name.as_bytes())?.is_none() {
        escaped_path::unescape_if_escaped(name)
    } else {
        None
    };
    let name = escaped.as_deref().unwrap_or(name.as_bytes());
    match object {
        Object::Group(group) => group.remove_attribute(name)?,
        Object::Dataset(dataset) => dataset.remove_attribute(name)?,
        Object::Datatype(datatype) => datatype.remove_attribute(name)?,
        Object::Map(map) => map.remove_attribute(name)?,
        _ => {}
    }
    Ok(())
}

/// An attribute of an object, to be set.
pub fn new_attribute(object: &Object, name: &str) -> Option<AttributeBuilder> {
    match object {
        Object::Group(group) => Some(group.new_attribute(name)),
        Object::Dataset(dataset) => Some(dataset.new_attribute(name)),
        Object::Datatype(datatype) => Some(datatype.new_attribute(name)),
        Object::Map(map) => Some(map.new_attribute(name)),
        _ => None,
    }
}

/// The reference that JSON stands for.
pub fn reference_from_json(file: &File, form: &ReferenceType, json: &Json) -> Option<h5live::Value> {
    let object = file.object(reference_json::referenced_object_path(json)?).ok()?;
    reference_json::reference_from_json(file, form, json, object.id())
}
