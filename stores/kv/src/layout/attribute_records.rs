//! The records of an attribute, from the attribute and back.

use std::collections::BTreeMap;

use h5live_model::{AttributeData, Name};

use super::encode::{
    AttributeCreationProperties, decode_dataspace, decode_datatype, encode_dataspace, encode_datatype,
    encode_properties,
};
use super::fields::AttributeField;
use super::value::{decode_oid, decode_u64, encode_u64};
use super::{RecordFormatError, Result, oid};

/// Most bytes of an attribute that was created, but never written.
const MAX_UNWRITTEN_BYTES: u64 = 1 << 20;

/// The records of one attribute under the dkey `/Attribute`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttributeRecords(BTreeMap<AttributeField, Vec<u8>>);

impl AttributeRecords {
    /// The value of a record.
    pub fn get(&self, field: AttributeField) -> Option<&[u8]> {
        self.0.get(&field).map(Vec::as_slice)
    }

    /// Adds a record.
    pub fn insert(&mut self, field: AttributeField, value: impl Into<Vec<u8>>) {
        self.0.insert(field, value.into());
    }

    /// All records.
    pub fn iter(&self) -> impl Iterator<Item = (AttributeField, &[u8])> {
        self.0.iter().map(|(field, value)| (*field, value.as_slice()))
    }

    fn require(&self, field: AttributeField) -> Result<&[u8]> {
        self.get(field).ok_or(RecordFormatError::MissingRecord { record: field.akey_prefix_text() })
    }

    /// The records of an attribute. Its name is in the keys.
    ///
    /// # Errors
    /// [`RecordFormatError::Encode`] if something does not fit its field.
    pub fn of_attribute(attribute: &AttributeData) -> Result<Self> {
        let mut records = AttributeRecords::default();
        let properties = AttributeCreationProperties { name_character_set: u8::from(!attribute.name.is_ascii()) };
        records.insert(AttributeField::Datatype, encode_datatype(&attribute.datatype)?);
        records.insert(AttributeField::Dataspace, encode_dataspace(&attribute.dataspace)?);
        records.insert(AttributeField::CreationProperties, encode_properties(&properties)?);
        if let Some(order) = attribute.creation_order {
            records.insert(AttributeField::CreationOrder, encode_u64(order.into()));
        }
        if let Some(committed) = attribute.committed_datatype {
            records.insert(AttributeField::CommittedDatatype, oid::token(committed));
        }
        records.insert(AttributeField::Value, attribute.value.as_slice());
        Ok(records)
    }

    /// The attribute of this name. One that was never written has zeros.
    ///
    /// # Errors
    /// [`RecordFormatError::MissingRecord`], [`RecordFormatError::Decode`], [`RecordFormatError::InvalidValue`] also if the value does not fit type and
    /// shape.
    pub fn decode_attribute(&self, name: Name) -> Result<AttributeData> {
        let datatype = decode_datatype(self.require(AttributeField::Datatype)?)?;
        let dataspace = decode_dataspace(self.require(AttributeField::Dataspace)?)?;
        let bytes = dataspace.element_count().and_then(|n| n.checked_mul(datatype.size().into()));
        let invalid = |rule| RecordFormatError::InvalidValue { record: AttributeField::Value.akey_prefix_text(), rule };
        let value = match (self.get(AttributeField::Value), bytes) {
            (Some(value), Some(bytes)) if value.len() as u64 == bytes => value.to_vec(),
            (None, Some(bytes)) if bytes <= MAX_UNWRITTEN_BYTES => vec![0; bytes as usize],
            (Some(_), _) => return Err(invalid("it has the size of its type and shape")),
            (None, _) => return Err(invalid("one of more than 1 MiB is written")),
        };
        let committed = self.get(AttributeField::CommittedDatatype);
        let committed = committed.map(|token| decode_oid(AttributeField::CommittedDatatype.akey_prefix_text(), token));
        Ok(AttributeData {
            name,
            datatype,
            committed_datatype: committed.transpose()?,
            dataspace,
            value,
            creation_order: self.creation_order()?,
        })
    }

    fn creation_order(&self) -> Result<Option<u16>> {
        let record = AttributeField::CreationOrder.akey_prefix_text();
        let Some(value) = self.get(AttributeField::CreationOrder) else { return Ok(None) };
        let order = decode_u64(record, value)?;
        u16::try_from(order)
            .map(Some)
            .map_err(|_| RecordFormatError::InvalidValue { record, rule: "it is at most 65535" })
    }
}
