//! The records of attributes.

use h5live_model::{Name, ObjectId, ObjectSpec, Result};

use super::{CheckedContainer, KvFault};
use crate::creation_order::LinksOrAttributes;
use crate::engine::KeySpan;
use crate::layout::encode::{AttributeCreationProperties, decode_properties};
use crate::layout::{AttributeField, AttributeRecords, EngineKey, RecordKey, key};
use crate::tracked_orders::is_tracked;

impl CheckedContainer<'_> {
    /// Looks at the attributes of an object, and at their order of creation if the object could be decoded.
    pub(super) fn check_attributes(&mut self, id: ObjectId, spec: Option<&ObjectSpec>) -> Result<()> {
        let is_tracked = spec.map(|spec| is_tracked(spec.attribute_storage.order));
        let (state, mut count) = (self.state, 0);
        let mut pending: Option<(Name, AttributeRecords)> = None;
        state.for_each_pair_reentrant(&KeySpan::from(&key::attributes(id)), |key, value| -> Result<bool> {
            let Ok((_, RecordKey::Attribute(field, name))) = EngineKey::parse(key) else { return Ok(true) };
            if pending.as_ref().is_none_or(|(pending, _)| pending.as_bytes() != &*name) {
                count += 1;
                if let Some(whole) = pending.replace((Name::from(&*name), AttributeRecords::default())) {
                    self.check_attribute(id, whole, is_tracked)?;
                }
            }
            pending.iter_mut().for_each(|(_, records)| records.insert(field, value));
            Ok(!self.is_full())
        })?;
        if let Some(whole) = pending {
            self.check_attribute(id, whole, is_tracked)?;
        }
        is_tracked.map_or(Ok(()), |is_tracked| self.check_order(LinksOrAttributes::Attributes, id, is_tracked, count))
    }

    fn check_attribute(
        &mut self,
        id: ObjectId,
        (name, records): (Name, AttributeRecords),
        is_tracked: Option<bool>,
    ) -> Result<()> {
        let text = name.to_string();
        let properties = records.get(AttributeField::CreationProperties);
        if let Some(Err(fault)) = properties.map(decode_properties::<AttributeCreationProperties>) {
            self.add_fault(id, KvFault::AttributeFormat { name: text.clone(), fault });
        }
        let has_position = records.get(AttributeField::CreationOrder).is_some();
        if is_tracked.is_some_and(|is_tracked| is_tracked != has_position) {
            self.add_fault(id, KvFault::AttributePositionTrackingMismatch(text.clone()));
        }
        match records.decode_attribute(name) {
            Ok(attribute) => {
                if let Some(committed) = attribute.committed_datatype {
                    self.check_committed(id, committed, Some(&attribute.datatype))?;
                }
                self.check_values(id, &attribute.datatype, &attribute.value, &mut |_| true)
            }
            Err(fault) => {
                self.has_unseen_values = true;
                self.has_unseen_links |= records.get(AttributeField::CommittedDatatype).is_some();
                self.add_fault(id, KvFault::AttributeFormat { name: text, fault });
                Ok(())
            }
        }
    }
}
