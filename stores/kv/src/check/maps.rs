//! The pairs of maps.

use h5live_model::{MapSpec, ObjectId, OrderPreservingKeyCodec, Result};

use super::{CheckedContainer, KvFault};
use crate::engine::KeySpan;
use crate::error::invalid_argument_error;
use crate::layout::value::{VarLenBlobRef, decode_u64};
use crate::layout::{EngineKey, MetadataField, RecordFormatError, RecordKey, key};
use crate::map_records::MapValueCodec;

impl CheckedContainer<'_> {
    /// Looks whether keys and values of a map are of its types, and counts them.
    pub(super) fn check_pairs(&mut self, id: ObjectId, spec: &MapSpec) -> Result<()> {
        let (state, order, mut number, mut bytes) =
            (self.state, OrderPreservingKeyCodec::new(&spec.key_type), 0, Vec::new());
        let values = MapValueCodec::of(spec, self.form);
        state.for_each_pair_reentrant(&KeySpan::from(&key::map_records(id)), |key, value| -> Result<bool> {
            let Ok((_, RecordKey::MapRecord(ordered))) = EngineKey::parse(key) else { return Ok(!self.is_full()) };
            let found = order.decode(&ordered, &mut bytes).and_then(|key| {
                spec.check_key(key)?;
                // A key has one form.
                Ok(order.encode_to_vec(key)? == *ordered)
            });
            let is_value = || match values.are_blobs {
                // The data of the value is looked at below.
                true => VarLenBlobRef::decode(value).map(drop).map_err(invalid_argument_error),
                false => spec.check_value(value),
            };
            let reason = match found.and_then(|is_same| is_value().map(|()| is_same)) {
                Ok(true) => None,
                Ok(false) => Some("the key has another form than the one of its type".to_owned()),
                Err(error) => Some(error.to_string()),
            };
            match reason {
                Some(reason) => self.add_fault(id, KvFault::InvalidMapPair { number, reason }),
                None => self.check_values(id, values.stored_datatype, value, &mut |_| true)?,
            }
            number += 1;
            Ok(!self.is_full())
        })?;
        let field = MetadataField::PairCount;
        let fault = match state
            .get(key::metadata(id, field).as_bytes())?
            .map(|value| decode_u64(field.akey_text(), &value))
        {
            Some(Ok(stated)) => (stated != number).then_some(KvFault::MapPairCountMismatch { stated, found: number }),
            Some(Err(error)) => Some(KvFault::RecordFormat(error)),
            None => Some(KvFault::RecordFormat(RecordFormatError::MissingRecord { record: field.akey_text() })),
        };
        fault.into_iter().for_each(|fault| self.add_fault(id, fault));
        Ok(())
    }
}
