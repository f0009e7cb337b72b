//! The records that describe an object.

use h5live_model::{Datatype, FillValue, ObjectId, ObjectKind, ObjectKindSpec, ObjectSpec, Result};

use super::{CheckedContainer, KvFault};
use crate::engine::KeySpan;
use crate::layout::value::{decode_oid, decode_times, decode_u64};
use crate::layout::{EngineKey, MetadataField, MetadataRecords, RecordFormatError, RecordKey, key, oid};
use crate::objects;

impl CheckedContainer<'_> {
    /// Decodes the description of an object. `None` if it cannot be decoded.
    pub(super) fn check_metadata(&mut self, number: usize, id: ObjectId) -> Result<Option<ObjectSpec>> {
        let (state, mut records) = (self.state, MetadataRecords::default());
        state.for_each_pair_reentrant(&KeySpan::from(&key::all_metadata(id)), |key, value| -> Result<bool> {
            // A key that cannot be parsed is a fault already.
            if let Ok((_, RecordKey::Metadata(field))) = EngineKey::parse(key) {
                records.insert(field, value);
            }
            Ok(true)
        })?;
        let stated_links = match records.get(MetadataField::RefCount) {
            Some(value) => self.known(id, decode_u64(MetadataField::RefCount.akey_text(), value)),
            None if id == oid::ROOT => Some(1),
            None => {
                let missing = RecordFormatError::MissingRecord { record: MetadataField::RefCount.akey_text() };
                self.add_fault(id, KvFault::RecordFormat(missing));
                None
            }
        };
        if let Some(object) = self.objects.get_mut(number) {
            object.stated_ref_count = stated_links;
        }
        self.known(id, records.get(MetadataField::Times).map(decode_times).transpose());
        for field in [MetadataField::CommittedKeyDatatype, MetadataField::CommittedValueDatatype] {
            let committed = records.get(field).map(|token| decode_oid(field.akey_text(), token)).transpose();
            if let Some(committed) = self.known(id, committed).flatten() {
                self.check_committed(id, committed, None)?;
            }
        }
        let Some(spec) = self.known(id, records.decode_object_spec(oid::kind(id))) else {
            self.has_unseen_links |= records.get(MetadataField::CommittedDatatype).is_some();
            return Ok(None);
        };
        self.check_body(id, &spec.body)?;
        Ok(Some(spec))
    }

    /// What was decoded; otherwise that it cannot be is a fault.
    fn known<T>(&mut self, id: ObjectId, decoded: crate::layout::Result<T>) -> Option<T> {
        decoded.map_err(|error| self.add_fault(id, KvFault::RecordFormat(error))).ok()
    }

    fn check_body(&mut self, id: ObjectId, body: &ObjectKindSpec) -> Result<()> {
        let checked = match body {
            ObjectKindSpec::Dataset(dataset) => {
                if let Some(committed) = dataset.committed_datatype {
                    self.check_committed(id, committed, Some(&dataset.datatype))?;
                }
                if let FillValue::Value(element) = &dataset.fill.value {
                    self.check_values(id, &dataset.datatype, element, &mut |_| true)?;
                }
                dataset.check()
            }
            ObjectKindSpec::Map(map) => map.check(),
            ObjectKindSpec::Group(_) | ObjectKindSpec::Datatype(_) => Ok(()),
        };
        if let Err(error) = checked {
            self.add_fault(id, KvFault::InconsistentSpec(error.to_string()));
        }
        Ok(())
    }

    /// Counts a use of a committed datatype, and compares it with the type of which it is to be the same.
    pub(super) fn check_committed(
        &mut self,
        user: ObjectId,
        committed: ObjectId,
        datatype: Option<&Datatype>,
    ) -> Result<()> {
        if oid::kind(committed) != ObjectKind::Datatype || !self.objects.increment_ref_count(committed) {
            self.add_fault(user, KvFault::NoCommittedDatatype(committed));
            return Ok(());
        }
        // What cannot be decoded is a fault of the committed datatype.
        let found = objects::spec(&self.state, committed).and_then(ObjectSpec::into_datatype);
        if let (Ok(found), Some(datatype)) = (found, datatype)
            && found != *datatype
        {
            self.add_fault(user, KvFault::CommittedDatatypeMismatch(committed));
        }
        Ok(())
    }
}
