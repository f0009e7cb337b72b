//! The checksums of records.

use h5live_model::{ObjectId, Result, StoreCheckReport};

use super::{CheckedContainer, KvFault};
use crate::engine::KeySpan;
use crate::layout::{EngineKey, RecordKey, checked_value, key};

impl CheckedContainer<'_> {
    /// Looks whether the values of an object's records are what their checksums say. Elements are looked at if all data
    /// is.
    pub(super) fn check_checksums(&mut self, id: ObjectId) -> Result<()> {
        if !self.form.has_checksums {
            return Ok(());
        }
        let (with_data, room) =
            (self.what.verify_data, StoreCheckReport::MAX_FINDINGS.saturating_sub(self.faults.len()));
        let mut damaged = Vec::new();
        self.stored.scan(&KeySpan::from(&key::object_records(id)), &mut |key, stored| {
            let record = EngineKey::parse(key);
            let is_data = matches!(
                record,
                Ok((
                    _,
                    RecordKey::ChunkPiece { .. }
                        | RecordKey::FilteredChunk { .. }
                        | RecordKey::MapRecord(_)
                        | RecordKey::Blob(_)
                ))
            );
            if (with_data || !is_data) && checked_value(key, stored).is_none() {
                damaged.push(record.map_or_else(|_| EngineKey::describe_key(key), |(_, record)| record.describe_key()));
            }
            damaged.len() < room
        })?;
        damaged.into_iter().for_each(|record| self.add_fault(id, KvFault::Checksum(record)));
        Ok(())
    }
}
