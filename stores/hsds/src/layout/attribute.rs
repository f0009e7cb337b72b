//! Attributes as JSON ("Attribute"), and datatypes with the committed type that they are.

use h5live_model::{Dataspace, Datatype, ObjectId};
use serde_json::Value;

use super::dataspace::{get_shape, put_shape};
use super::datatype::{datatype_from_base64, datatype_from_json, datatype_to_base64, nearest_datatype_to_json};
use super::elements::{ElementCodec, StoredTokenNumbers, VarLenContent};
use super::error::{LayoutError, Result};
use super::extras::{h5live_member, set_h5live_member};
use super::id::DomainId;
use super::json::Members;
use super::value::{elements_from_json, elements_to_json};

/// Most bytes of an attribute that nobody has given a value.
const MAX_ZEROS: u64 = 1 << 20;

/// A datatype, and the committed type that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatatypeAndCommittedId {
    /// The type.
    pub datatype: Datatype,
    /// The committed type.
    pub committed_datatype: Option<ObjectId>,
}

/// Puts a type into the object that has it, and beside it the exact type, if the schema lacks it.
///
/// # Errors
/// [`LayoutError::Encode`].
pub fn put_type(members: &mut Members, domain: DomainId, used: &DatatypeAndCommittedId) -> Result<()> {
    let mut shown = nearest_datatype_to_json(&used.datatype);
    let is_exact = datatype_from_json(&shown).is_ok_and(|again| again == used.datatype);
    if let (Some(id), Some(shown)) = (used.committed_datatype, shown.as_object_mut()) {
        shown.insert("id".to_owned(), domain.object_id_text(id).into());
    }
    members.insert("type".to_owned(), shown);
    if !is_exact {
        set_h5live_member(members, "type", datatype_to_base64(&used.datatype)?.into());
    }
    Ok(())
}

/// The type of an object. The exact one counts if it is shown as the type that the object has: else somebody has changed
/// that.
///
/// # Errors
/// Those of a type.
pub fn get_type(members: &Members, domain: DomainId) -> Result<DatatypeAndCommittedId> {
    let json =
        members.get("type").ok_or(LayoutError::MissingOrInvalidMember { member: "type", expected: "a datatype" })?;
    let committed = json.get("id").and_then(Value::as_str).map(|id| domain.parse_own_object_id(id)).transpose()?;
    let shown = datatype_from_json(json)?;
    let exact = h5live_member(members, "type").and_then(Value::as_str).map(datatype_from_base64).transpose()?;
    let is_shown =
        |exact: &Datatype| datatype_from_json(&nearest_datatype_to_json(exact)).is_ok_and(|again| again == shown);
    Ok(DatatypeAndCommittedId { datatype: exact.filter(is_shown).unwrap_or(shown), committed_datatype: committed })
}

/// An attribute: all of it but its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeContent {
    /// The type.
    pub datatype: DatatypeAndCommittedId,
    /// The shape.
    pub dataspace: Dataspace,
    /// The elements, as they are stored.
    pub stored_elements: Vec<u8>,
    /// The position in the order of creation, if that is kept.
    pub creation_order: Option<u16>,
}

/// The type that the schema shows of a datatype, as which its stored elements are read.
pub fn nearest_schema_type(datatype: &Datatype) -> Result<Datatype> {
    datatype_from_json(&nearest_datatype_to_json(datatype))
}

impl AttributeContent {
    /// The JSON of an attribute that is made now (seconds).
    ///
    /// # Errors
    /// [`LayoutError::Encode`].
    pub fn to_json(&self, domain: DomainId, now: f64) -> Result<Value> {
        let mut members = Members::new();
        put_type(&mut members, domain, &self.datatype)?;
        put_shape(&mut members, &self.dataspace);
        // A maximum is not valid in an attribute of the schema.
        let shown = members.get_mut("shape").and_then(Value::as_object_mut);
        let max = shown.and_then(|shape| shape.shift_remove("maxdims"));
        if let Some(max) = max.filter(|_| self.dataspace.max_dims() != self.dataspace.dims()) {
            set_h5live_member(&mut members, "maxdims", max);
        }
        let (value, encoding) = match self.dataspace {
            Dataspace::Null => (Value::Null, None),
            _ => elements_to_json(
                &nearest_schema_type(&self.datatype.datatype)?,
                self.dataspace.dims(),
                &self.stored_elements,
            ),
        };
        members.insert("value".to_owned(), value);
        if let Some(encoding) = encoding {
            members.insert("encoding".to_owned(), encoding.into());
        }
        members.insert("created".to_owned(), now.into());
        if let Some(order) = self.creation_order {
            set_h5live_member(&mut members, "order", order.into());
        }
        Ok(Value::Object(members))
    }

    /// The attribute that a JSON describes.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn from_json(domain: DomainId, json: &Value) -> Result<Self> {
        let members = json
            .as_object()
            .ok_or(LayoutError::MissingOrInvalidMember { member: "attributes", expected: "attributes" })?;
        let used = get_type(members, domain)?;
        let dataspace = get_shape(members)?;
        let stored = match (&dataspace, members.get("value")) {
            (Dataspace::Null, _) => Vec::new(),
            // Nobody has given it one.
            (space, None | Some(Value::Null)) => zero_elements(&nearest_schema_type(&used.datatype)?, space)?,
            (space, Some(value)) => {
                let encoding = members.get("encoding").and_then(Value::as_str);
                stored_elements(&used.datatype, space, value, encoding)?
            }
        };
        let order = h5live_member(members, "order").and_then(Value::as_u64).and_then(|order| u16::try_from(order).ok());
        Ok(AttributeContent { datatype: used, dataspace, stored_elements: stored, creation_order: order })
    }
}

/// The stored elements of an attribute without a value: zeros and nothing.
fn zero_elements(shown: &Datatype, space: &Dataspace) -> Result<Vec<u8>> {
    const TOO_LARGE: LayoutError = LayoutError::ValueIsNot("given where an attribute is large");
    let count = space.dims().iter().try_fold(1u64, |all, dim| all.checked_mul(*dim)).ok_or(TOO_LARGE)?;
    let codec = ElementCodec::new(shown);
    // A variable-length element that is nothing takes no more in the schema than in a file.
    let bytes =
        count.checked_mul(codec.model_element_size() as u64).filter(|bytes| *bytes <= MAX_ZEROS).ok_or(TOO_LARGE)?;
    let (mut stored, mut nothing) = (Vec::new(), |_| Ok::<_, LayoutError>(VarLenContent::StoredBytes(Vec::new())));
    codec.pack(&vec![0; bytes as usize], &mut nothing, &mut StoredTokenNumbers::default(), &mut stored)?;
    Ok(stored)
}

/// Stored elements from a value. The service shows one element as itself, or as a list of one.
fn stored_elements(datatype: &Datatype, space: &Dataspace, value: &Value, encoding: Option<&str>) -> Result<Vec<u8>> {
    let shown = nearest_schema_type(datatype)?;
    let dims = space.dims();
    let found = elements_from_json(&shown, dims, value, encoding);
    match (&found, value, dims) {
        (Err(_), Value::Array(one), []) if one.len() == 1 => elements_from_json(&shown, &[1], value, encoding),
        (Err(_), value, [1]) if !value.is_array() => elements_from_json(&shown, &[], value, encoding),
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(json: Value) -> Result<Vec<u8>> {
        AttributeContent::from_json(DomainId(7), &json).map(|record| record.stored_elements)
    }

    #[test]
    fn an_attribute_that_got_no_value_has_zeros() {
        let text = json!({"class": "H5T_STRING", "length": "H5T_VARIABLE"});
        assert_eq!(stored(json!({"type": "H5T_STD_I16LE", "shape": [3], "value": null})).unwrap(), [0; 6]);
        assert_eq!(stored(json!({"type": "H5T_STD_I16LE", "shape": "H5S_SCALAR"})).unwrap(), [0; 2]);
        assert_eq!(stored(json!({"type": text, "shape": [2], "value": null})).unwrap(), [0; 8]);
        for dims in [json!([1u64 << 40]), json!([1u64 << 40, 1u64 << 40])] {
            assert!(stored(json!({"type": "H5T_STD_I16LE", "shape": dims, "value": null})).is_err());
        }
    }

    #[test]
    fn a_text_that_is_longer_than_its_type_is_cut_between_letters() {
        let text = |length: u32| json!({"class": "H5T_STRING", "length": length});
        let of = |length| stored(json!({"type": text(length), "shape": "H5S_SCALAR", "value": "a八"})).unwrap();
        assert_eq!((of(4), of(3), of(5)), ("a八".as_bytes().to_vec(), b"a\0\0".to_vec(), b"a\xe5\x85\xab\0".to_vec()));
    }
}
