//! Space for elements that were never written. Fill values are written piece by piece, however many there are. Zeros
//! are not written where the file has only holes.

use h5live_cache::{Owner, SpaceKind};
use h5live_format::Addr;
use h5live_model::{AllocationTime, DatasetSpec, FillTime, Layout, ObjectKindSpec, ObjectSpec};

use crate::Result;
use crate::session::NativeSession;

/// Bytes of fill values that are written at once.
const PIECE: usize = 1 << 20;

/// Zeros in more space than this (bytes) are a hole of the file.
const HOLE: u64 = 4 << 20;

/// Most bytes between the end of the allocated space and the end of the file: the rest of a page, or an alignment.
const SLACK: u64 = 1 << 20;

impl NativeSession {
    /// Prepares the file for a hole where the next `bytes` bytes of raw data are allocated, if these will hold zeros.
    /// Must not be called inside an operation.
    ///
    /// # Errors
    /// If the file cannot become so long.
    pub(super) fn extend_eof_for_hole(&self, spec: &DatasetSpec, bytes: u64) -> Result<()> {
        if bytes <= HOLE || spec.nonzero_fill_value().is_some() {
            return Ok(());
        }
        let (space, bytes) = (self.cache.space(), bytes.saturating_add(SLACK));
        if space.allocated_end().saturating_add(bytes) <= space.superblock_eof() {
            return Ok(());
        }
        // Nothing else is ever written into space that was announced before it is allocated.
        Ok(self.cache.preextend_file_and_eof(bytes)?)
    }

    /// As [`extend_eof_for_hole`](Self::extend_eof_for_hole), for the space that a new object has from the start.
    ///
    /// # Errors
    /// As [`extend_eof_for_hole`](Self::extend_eof_for_hole).
    pub(crate) fn extend_eof_for_object(&self, object: &ObjectSpec) -> Result<()> {
        let ObjectKindSpec::Dataset(spec) = &object.body else { return Ok(()) };
        let is_early = spec.fill.allocation == AllocationTime::Early && spec.fill.time != FillTime::Never;
        if !is_early || !spec.filters.is_empty() {
            return Ok(());
        }
        match early_allocation_bytes(spec) {
            Some(bytes) => self.extend_eof_for_hole(spec, bytes),
            None => Ok(()),
        }
    }

    /// Allocates space for `bytes` bytes of raw data. Also returns the number of the byte from which on the space is
    /// known to hold zeros.
    ///
    /// # Errors
    /// If there is no room.
    pub(super) fn alloc_raw_space(&self, bytes: u64) -> Result<(Addr, u64)> {
        let space = self.cache.space();
        let end = space.allocated_end();
        let (addr, zeros) = space.alloc_with_zero_tail_offset(bytes, SpaceKind::Raw)?;
        let is_trusted = self.mutant.trusts_unallocated_zeros() && addr.get().is_some_and(|at| at >= end);
        Ok((addr, if is_trusted { 0 } else { zeros }))
    }

    /// Allocates space for `bytes` bytes of raw data, and fills it with fill values. Call it inside an operation.
    ///
    /// # Errors
    /// If there is no room, or it cannot be written.
    pub(super) fn alloc_filled_space(&self, spec: &DatasetSpec, bytes: u64) -> Result<Addr> {
        let (addr, zeros) = self.alloc_raw_space(bytes)?;
        // Bytes that must wait for a flush are in memory.
        self.write_fill_values(spec, addr, (bytes, zeros), || Ok(self.cache.check_memory_allocation(addr, bytes)?))?;
        Ok(addr)
    }

    /// Writes fill values into new space to which nothing leads. From byte `zeros` on, the space holds zeros already.
    /// Calls `waits` after each piece that waits for a flush.
    pub(super) fn write_fill_values(
        &self,
        spec: &DatasetSpec,
        addr: Addr,
        (bytes, zeros): (u64, u64),
        waits: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let bytes = if spec.nonzero_fill_value().is_some() { bytes } else { zeros };
        let size = spec.nonzero_fill_value().map_or(1, <[u8]>::len);
        let whole = PIECE - PIECE % size;
        let mut piece = vec![0; if whole > 0 { whole } else { PIECE }];
        spec.fill_into(0, &mut piece);
        let mut at = 0;
        while at < bytes {
            let len = (bytes - at).min(piece.len() as u64);
            if whole == 0 && at > 0 {
                spec.fill_into(at, &mut piece);
            }
            let part = piece.get(..len as usize).unwrap_or(&piece);
            if self.cache.write_or_enqueue_new_raw(Owner::FILE, addr, at, part)?.is_some() {
                waits()?;
            }
            at += len;
        }
        Ok(())
    }
}

/// Bytes that a dataset takes if all of it is there from the start.
fn early_allocation_bytes(spec: &DatasetSpec) -> Option<u64> {
    match &spec.layout {
        Layout::Contiguous => spec.dataspace.element_count()?.checked_mul(spec.datatype.size().into()),
        Layout::Chunked(_) => {
            let counts = spec.grid_or_single_chunk()?.chunk_counts(spec.dataspace.max_dims());
            counts.iter().try_fold(spec.chunk_bytes_or_total()?, |n, count| n.checked_mul(*count))
        }
        _ => None,
    }
}
