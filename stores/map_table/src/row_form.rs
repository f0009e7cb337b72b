//! Where key, value and change are in a row.

use std::ops::Range;

use h5live_model::{DatasetSpec, Datatype, Result};

use crate::error::MapTableError;
use crate::layout::RowChange;

/// Where the members of a row are (bytes).
#[derive(Debug, Clone)]
pub struct RowLayout {
    /// Bytes of a row.
    pub size: usize,
    pub key: MemberLayout,
    pub value: MemberLayout,
    change_at: usize,
}

/// A member of a row.
#[derive(Debug, Clone)]
pub struct MemberLayout {
    pub place: Range<usize>,
    /// If the member has a variable length: bytes of an element of its base type.
    pub vlen_base_size: Option<usize>,
}

impl RowLayout {
    /// The form of the rows of a table, of which [`crate::layout::map_spec`] has a map.
    pub fn new(table: &DatasetSpec) -> Result<Self> {
        let Datatype::Compound(row) = &table.datatype else {
            return Err(MapTableError::Malformed("its table has no rows").into());
        };
        let [key, value, change] = &row.members[..] else {
            return Err(MapTableError::Malformed("its rows have other members than key, value and change").into());
        };
        let form = |member: &h5live_model::CompoundMember| {
            let (at, size) = (member.offset as usize, member.datatype.size() as usize);
            let base_bytes = match &member.datatype {
                Datatype::VarLen(t) => Some(t.base.size().max(1) as usize),
                _ => None,
            };
            MemberLayout { place: at..at + size, vlen_base_size: base_bytes }
        };
        Ok(RowLayout { size: row.size as usize, key: form(key), value: form(value), change_at: change.offset as usize })
    }

    /// What a row says of its key. `number` is the row's, for the error.
    ///
    /// # Errors
    /// [`MapTableError::InvalidRow`].
    pub fn decode_change(&self, row: &[u8], number: u64) -> Result<RowChange> {
        let found = row.get(self.change_at).copied().and_then(RowChange::from_byte);
        Ok(found.ok_or(MapTableError::InvalidRow { row: number, rule: "has an unknown kind of change" })?)
    }

    /// Sets what a row says of its key.
    pub fn set_change(&self, row: &mut [u8], change: RowChange) {
        row[self.change_at] = change.to_byte();
    }
}
