//! The pairs of maps.

use h5live_model::{MapKeyOrder, MapSpec, ObjectId, Result};

use super::{CheckedContainer, KvFault};
use crate::engine::KeySpan;
use crate::error::invalid_error;
use crate::layout::value::{VarLenBlob, decode_u64};
use crate::layout::{EngineKey, LayoutError, MetadataField, RecordKey, key};
use crate::map_records::MapValues;

impl CheckedContainer<'_> {
    /// Looks whether keys and values of a map are of its types, and counts them.
    pub(super) fn check_pairs(&mut self, id: ObjectId, spec: &MapSpec) -> Result<()> {
        let (state, order, mut number, mut bytes) = (self.state, MapKeyOrder::new(&spec.key), 0, Vec::new());
        let values = MapValues::of(spec, self.form);
        state.for_each(&KeySpan::from(&key::map_records(id)), |key, value| -> Result<bool> {
            let Ok((_, RecordKey::MapRecord(ordered))) = EngineKey::parse(key) else { return Ok(!self.is_full()) };
            let found = order.decode(&ordered, &mut bytes).and_then(|key| {
                spec.check_key(key)?;
                // A key has one form.
                Ok(order.ordered(key)? == *ordered)
            });
            let is_value = || match values.are_blobs {
                // The data of the value is looked at below.
                true => VarLenBlob::decode(value).map(drop).map_err(invalid_error),
                false => spec.check_value(value),
            };
            let reason = match found.and_then(|is_same| is_value().map(|()| is_same)) {
                Ok(true) => None,
                Ok(false) => Some("the key has another form than the one of its type".to_owned()),
                Err(error) => Some(error.to_string()),
            };
            match reason {
                Some(reason) => self.add_fault(id, KvFault::Pair { number, reason }),
                None => self.check_values(id, values.stored, value, &mut |_| true)?,
            }
            number += 1;
            Ok(!self.is_full())
        })?;
        let field = MetadataField::PairCount;
        let fault = match state.get(key::metadata(id, field).as_bytes())?.map(|value| decode_u64(field.name(), &value))
        {
            Some(Ok(stated)) => (stated != number).then_some(KvFault::PairCount { stated, found: number }),
            Some(Err(error)) => Some(KvFault::Record(error)),
            None => Some(KvFault::Record(LayoutError::Missing { record: field.name() })),
        };
        fault.into_iter().for_each(|fault| self.add_fault(id, fault));
        Ok(())
    }
}
