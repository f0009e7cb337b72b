//! Reading values.

use h5live_model::{AllocationLimit, MapKey, MapScan, Result, Store};

use crate::error::MapTableError;
use crate::table::{BLOBS_AT_ONCE, MapTable, OrderedKey, TableState};

impl MapTable {
    /// Reads the member `value` of a row into `into`.
    fn read_value(&self, state: &TableState, row: u64, into: &mut [u8]) -> Result<()> {
        match row.checked_sub(state.known_stored_row_count) {
            None => self.rows.read_part(row, self.row_layout.value.place.start, into),
            Some(number) => {
                let start = number as usize * self.row_layout.size + self.row_layout.value.place.start;
                let value = state.pending_rows.get(start..start + into.len());
                into.copy_from_slice(value.ok_or(MapTableError::InvalidRow { row, rule: "is not there" })?);
                Ok(())
            }
        }
    }

    /// Calls `each` with the value of each of `rows` and its number.
    fn read_values(
        &self,
        store: &dyn Store,
        state: &TableState,
        rows: impl Iterator<Item = (usize, u64)>,
        each: &mut dyn FnMut(usize, &[u8]) -> bool,
    ) -> Result<()> {
        let size = self.row_layout.value.place.len();
        if self.row_layout.value.vlen_base_size.is_none() {
            let mut value = AllocationLimit::default().zeroed(size as u64)?;
            for (number, row) in rows {
                self.read_value(state, row, &mut value)?;
                if !each(number, &value) {
                    break;
                }
            }
            return Ok(());
        }
        let mut rows = rows.peekable();
        let (mut numbers, mut elements) = (Vec::new(), Vec::new());
        while rows.peek().is_some() {
            numbers.clear();
            elements.clear();
            for (number, row) in rows.by_ref().take(BLOBS_AT_ONCE) {
                let start = elements.len();
                elements.resize(start + size, 0);
                self.read_value(state, row, &mut elements[start..])?;
                numbers.push(number);
            }
            let elements: Vec<_> = elements.chunks_exact(size.max(1)).collect();
            let mut goes_on = true;
            // The store may find them in another order than this one.
            let mut values = vec![Vec::new(); elements.len()];
            store.read_blobs(&elements, &mut |number, bytes| values[number] = bytes.to_vec())?;
            for (number, value) in numbers.iter().zip(&values) {
                goes_on = goes_on && each(*number, value);
            }
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// As [`h5live_model::MapStore::get`].
    pub fn get(
        &self,
        store: &dyn Store,
        keys: &[MapKey<'_>],
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let state = self.state();
        let mut found = Vec::with_capacity(keys.len());
        for (number, key) in keys.iter().enumerate() {
            match state.index.get(&self.encode_ordered_key(*key)?[..]) {
                Some(row) => found.push((number, *row)),
                None => each(number, None),
            }
        }
        self.read_values(store, &state, found.into_iter(), &mut |number, value| {
            each(number, Some(value));
            true
        })
    }

    /// The ordered bytes of a key.
    pub fn encode_ordered_key(&self, key: MapKey<'_>) -> Result<OrderedKey> {
        self.spec.check_key(key)?;
        Ok(OrderedKey::from_vec(self.key_codec.encode_to_vec(key)?))
    }

    /// As [`h5live_model::MapStore::for_each`].
    pub fn for_each(
        &self,
        store: &dyn Store,
        scan: &MapScan<'_>,
        each: &mut dyn FnMut(MapKey<'_>, &[u8]) -> bool,
    ) -> Result<()> {
        let Some((start, end)) = scan.encode_bounds_unless_empty(&self.key_codec)? else { return Ok(()) };
        let state = self.state();
        let range = state.index.range::<[u8], _>((start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice)));
        let mut bytes = Vec::new();
        if !scan.with_values {
            for (key, _) in range {
                if !each(self.key_codec.decode(key, &mut bytes)?, &[]) {
                    break;
                }
            }
            return Ok(());
        }
        let mut failed = Ok(());
        let mut range = range.peekable();
        let at_once = scan.prefetch.keys.min(scan.prefetch.bytes / self.row_layout.size.max(1)).max(1);
        let mut goes_on = true;
        while goes_on && range.peek().is_some() {
            let part: Vec<_> = range.by_ref().take(at_once).collect();
            let rows = part.iter().enumerate().map(|(number, (_, row))| (number, **row));
            self.read_values(store, &state, rows, &mut |number, value| {
                goes_on = match self.key_codec.decode(part[number].0, &mut bytes) {
                    Ok(key) => each(key, value),
                    Err(error) => {
                        failed = Err(error);
                        false
                    }
                };
                goes_on
            })?;
        }
        failed
    }
}
