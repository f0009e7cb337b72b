//! One open map: its rows, and the index of its keys.

use std::collections::BTreeMap;

use h5live_model::{
    Error, MapEdit, MapKey, MapSpec, ObjectId, ObjectScope, OrderPreservingKeyCodec, PublishLevel, Result, Store,
};
use parking_lot::{RwLock, RwLockReadGuard};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::MapTableError;
use crate::layout::{self, RowChange};
use crate::row_form::RowLayout;
use crate::rows::MapRowDataset;

/// The ordered bytes of a key. Most keys need no memory of their own.
pub type OrderedKey = SmallVec<[u8; 24]>;

/// Bytes of rows that wait in memory before the store gets them.
const MAX_PENDING_BYTES: usize = 1 << 20;

/// Bytes of rows that are read at a time while the index is made.
const MAX_READ_BYTES: usize = 1 << 20;

/// Elements of variable length that are looked up at a time. Each of them may have as many bytes as the file.
pub const BLOBS_AT_ONCE: usize = 64;

/// A map that is open.
#[derive(Debug)]
pub struct MapTable {
    pub spec: MapSpec,
    pub key_codec: OrderPreservingKeyCodec,
    pub row_layout: RowLayout,
    pub rows: MapRowDataset,
    map: ObjectId,
    state: RwLock<TableState>,
}

/// What a session sees of a map. It moves as a whole.
#[derive(Debug, Default)]
pub struct TableState {
    /// The row with the value of each key.
    pub index: BTreeMap<OrderedKey, u64>,
    /// The rows that the store has.
    pub known_stored_row_count: u64,
    /// Rows that follow those.
    pub pending_rows: Vec<u8>,
}

impl MapTable {
    /// Opens the map at an object with a mark, and reads its keys.
    ///
    /// # Errors
    /// [`MapTableError`] if the map is damaged.
    pub fn open(store: &dyn Store, map: ObjectId) -> Result<Self> {
        let mark = store.attribute(map, &layout::MARK_ATTRIBUTE.into())?;
        layout::check_map_mark(&mark.ok_or(Error::WrongKind { expected: "map" })?)?;
        let chunks = store.dataset(layout::find_table(store, map)?)?;
        let table = chunks.spec()?;
        let spec = layout::map_spec(&table)?;
        let order = OrderPreservingKeyCodec::new(&spec.key_type);
        let rows = MapRowDataset::new(chunks, store.session().capabilities.partial_writes)?;
        let opened = MapTable {
            row_layout: RowLayout::new(&table)?,
            spec,
            key_codec: order,
            rows,
            map,
            state: RwLock::default(),
        };
        {
            let state = &mut *opened.state.write();
            state.known_stored_row_count = opened.rows.count()?;
            let end = state.known_stored_row_count;
            opened.read_keys(store, 0, end, &mut |key, row| match row {
                Some(row) => drop(state.index.insert(key, row)),
                None => drop(state.index.remove(&key)),
            })?;
        }
        Ok(opened)
    }

    /// What this session sees.
    pub fn state(&self) -> RwLockReadGuard<'_, TableState> {
        self.state.read()
    }

    /// Whether some rows are not in the store.
    pub fn is_dirty(&self) -> bool {
        !self.state.read().pending_rows.is_empty()
    }

    /// Whether this session has deleted the map.
    pub fn is_deleted(&self) -> bool {
        matches!(self.rows.count(), Err(Error::NoObject(_)))
    }

    /// Gives up the memory of the keys.
    pub fn free_state_after_delete(&self) {
        *self.state.write() = TableState::default();
    }

    /// Whether the table is still that of the map.
    pub fn is_still_table_of_map(&self, store: &dyn Store) -> bool {
        store.kind(self.map).is_ok() && layout::find_table(store, self.map).is_ok_and(|found| found == self.rows.id())
    }

    /// Calls `each` with the key of each row from `first` to `end`, and with the number of the row if it has a value.
    fn read_keys(
        &self,
        store: &dyn Store,
        first: u64,
        end: u64,
        each: &mut dyn FnMut(OrderedKey, Option<u64>),
    ) -> Result<()> {
        let step = (MAX_READ_BYTES / self.row_layout.size.max(1)).max(1) as u64;
        let (mut at, mut bytes) = (first, Vec::new());
        while at < end {
            let count = step.min(end - at);
            bytes.clear();
            self.rows.read(at, count, &mut bytes)?;
            self.keys_of(store, at, &bytes, each)?;
            at += count;
        }
        Ok(())
    }

    /// As [`MapTable::read_keys`], of rows that were read.
    fn keys_of(
        &self,
        store: &dyn Store,
        first: u64,
        rows: &[u8],
        each: &mut dyn FnMut(OrderedKey, Option<u64>),
    ) -> Result<()> {
        let mut ordered = Vec::new();
        let mut take = |number: usize, row: &[u8], key: &[u8]| {
            let at = first + number as u64;
            let change = self.row_layout.decode_change(row, at)?;
            let key = if change.has_null_string_key { MapKey::Null } else { MapKey::Bytes(key) };
            ordered.clear();
            let encoded = self.spec.check_key(key).and_then(|()| self.key_codec.append_encoded(key, &mut ordered));
            encoded.map_err(|_| MapTableError::InvalidRow { row: at, rule: "has no key of the map's type" })?;
            each(OrderedKey::from_slice(&ordered), change.is_put.then_some(at));
            Ok(())
        };
        let mut numbered = rows.chunks_exact(self.row_layout.size).enumerate();
        if self.row_layout.key.vlen_base_size.is_none() {
            return numbered.try_for_each(|(number, row)| take(number, row, &row[self.row_layout.key.place.clone()]));
        }
        let mut numbered = numbered.peekable();
        while numbered.peek().is_some() {
            let part: Vec<_> = numbered.by_ref().take(BLOBS_AT_ONCE).collect();
            let elements: Vec<_> = part.iter().map(|(_, row)| &row[self.row_layout.key.place.clone()]).collect();
            // They may come in another order, but later rows count.
            let mut keys = vec![Vec::new(); elements.len()];
            store.read_blobs(&elements, &mut |number, bytes| keys[number] = bytes.to_vec())?;
            part.iter().zip(&keys).try_for_each(|((number, row), key)| take(*number, row, key))?;
        }
        Ok(())
    }

    /// Takes up rows that were published since. Nothing is taken up if some of them cannot be read.
    ///
    /// # Errors
    /// As [`MapTable::open`].
    pub fn read_new_rows(&self, store: &dyn Store) -> Result<()> {
        let (known, end) = (self.state.read().known_stored_row_count, self.rows.count()?);
        if end <= known {
            return Ok(());
        }
        let mut found = Vec::new();
        self.read_keys(store, known, end, &mut |key, row| found.push((key, row)))?;
        let state = &mut *self.state.write();
        // Another thread may have been faster.
        if state.known_stored_row_count == known && state.pending_rows.is_empty() {
            for (key, row) in found {
                match row {
                    Some(row) => drop(state.index.insert(key, row)),
                    None => drop(state.index.remove(&key)),
                }
            }
            state.known_stored_row_count = end;
        }
        Ok(())
    }

    /// Changes pairs, all of them or none.
    ///
    /// # Errors
    /// As [`h5live_model::MapStore::write`].
    pub fn apply_edits(&self, store: &dyn Store, edits: &[MapEdit<'_>]) -> Result<()> {
        let mut keys = Vec::with_capacity(edits.len());
        for edit in edits {
            self.spec.check_key(edit.key())?;
            if let MapEdit::Put { value, .. } = edit {
                self.spec.check_value(value)?;
            }
            let mut ordered = Vec::new();
            self.key_codec.append_encoded(edit.key(), &mut ordered)?;
            keys.push(OrderedKey::from_slice(&ordered));
        }
        let state = &mut *self.state.write();
        if state.pending_rows.len() >= MAX_PENDING_BYTES {
            self.write_out_state(state, None)?;
        }
        let mut rows = Vec::new();
        let mut changed: FxHashMap<OrderedKey, Option<u64>> = FxHashMap::default();
        let mut next = state.known_stored_row_count + (state.pending_rows.len() / self.row_layout.size) as u64;
        for (edit, key) in edits.iter().zip(keys) {
            if let MapEdit::Remove { .. } = edit {
                let is_there = changed.get(&key).map_or_else(|| state.index.contains_key(&key), Option::is_some);
                if !is_there {
                    continue;
                }
            }
            self.push_row(store, edit, &mut rows)?;
            changed.insert(key, matches!(edit, MapEdit::Put { .. }).then_some(next));
            next += 1;
        }
        // Nothing fails from here on.
        state.pending_rows.extend_from_slice(&rows);
        for (key, row) in changed {
            match row {
                Some(row) => drop(state.index.insert(key, row)),
                None => drop(state.index.remove(&key)),
            }
        }
        Ok(())
    }

    /// Appends the row of a change.
    fn push_row(&self, store: &dyn Store, edit: &MapEdit<'_>, rows: &mut Vec<u8>) -> Result<()> {
        let start = rows.len();
        rows.resize(start + self.row_layout.size, 0);
        let row = &mut rows[start..];
        let (value, is_put) = match edit {
            MapEdit::Put { value, .. } => (*value, true),
            MapEdit::Remove { .. } => (&[][..], false),
        };
        let change = RowChange { is_put, has_null_string_key: edit.key() == MapKey::Null };
        self.row_layout.set_change(row, change);
        let mut put = |member: &crate::row_form::MemberLayout, bytes: &[u8]| -> Result<()> {
            let place = &mut row[member.place.clone()];
            match member.vlen_base_size {
                None => place.copy_from_slice(bytes),
                Some(base) => {
                    let too_long = |_| Error::Invalid("a key or a value is too long".to_owned());
                    let count = u32::try_from(bytes.len() / base).map_err(too_long)?;
                    place.copy_from_slice(&store.writer()?.put_blob(bytes, count)?);
                }
            }
            Ok(())
        };
        if !change.has_null_string_key {
            put(&self.row_layout.key, edit.key().bytes_or_empty())?;
        }
        if is_put {
            put(&self.row_layout.value, value)?;
        }
        Ok(())
    }

    /// Gives the store the rows that it does not have, and has them published if that is asked for.
    ///
    /// # Errors
    /// As [`h5live_model::ChunkStore::write`]. The rows are kept then.
    pub fn write_out(&self, publish: Option<PublishLevel>) -> Result<()> {
        self.write_out_state(&mut self.state.write(), publish)
    }

    fn write_out_state(&self, state: &mut TableState, publish: Option<PublishLevel>) -> Result<()> {
        if !state.pending_rows.is_empty() {
            self.rows.append(state.known_stored_row_count, &state.pending_rows, publish)?;
            state.known_stored_row_count += (state.pending_rows.len() / self.row_layout.size) as u64;
            state.pending_rows.clear();
        }
        Ok(())
    }

    /// The objects that a commit of the map is about.
    pub fn map_and_table_ids(&self) -> [ObjectId; 2] {
        [self.map, self.rows.id()]
    }
}

/// All objects that a scope names, where a map stands for itself and its table.
pub fn scope_with_tables<'a>(
    scope: ObjectScope<'_>,
    tables: &[std::sync::Arc<MapTable>],
    into: &'a mut Vec<ObjectId>,
) -> ObjectScope<'a> {
    let ObjectScope::Objects(objects) = scope else { return ObjectScope::All };
    into.extend_from_slice(objects);
    into.extend(tables.iter().map(|table| table.rows.id()));
    ObjectScope::Objects(into)
}
