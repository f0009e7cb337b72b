//! Values that lead elsewhere: variable-length data, and references.

use h5live_format::{
    Addr, GlobalHeapId, OldRegionReferenceBlob, Record, ReferenceBlob, ReferenceElement, ReferenceValue, VarLenElement,
};
use h5live_model::{Datatype, ReferenceKind, VarLenKind};

use super::FindingCause;
use super::chunks::ChunkedDataset;
use super::walk::FileWalk;

impl FileWalk<'_> {
    /// Whether `len` more bytes of raw data may be read.
    pub fn try_consume_value_budget(&mut self, len: u64) -> bool {
        let fits = len <= self.values_left;
        if !fits && self.options.unfilters_all_chunks && self.values_left > 0 {
            let cause =
                format!("values that lead elsewhere, behind the first {} bytes", self.options.max_total_value_bytes);
            self.add_unverified_part("values", Addr::new(0), FindingCause::CannotVerify(cause));
        }
        self.values_left = if fits { self.values_left - len } else { 0 };
        self.unseen_values |= !fits;
        fits
    }

    /// Looks up where elements lead. `header`: the header of their object.
    pub fn check_global_heap_references(&mut self, datatype: &Datatype, data: &[u8], header: Addr) {
        let size = usize::try_from(datatype.size()).unwrap_or(usize::MAX).max(1);
        if datatype.has_vlen_or_references() {
            for element in data.chunks_exact(size) {
                if self.report.has_max_findings() {
                    return;
                }
                self.check_value(datatype, element, header);
            }
        }
    }

    fn check_value(&mut self, datatype: &Datatype, element: &[u8], at: Addr) {
        match datatype {
            Datatype::VarLen(t) => {
                let Some(found) = self.decode(VarLenElement::default(), at, element) else { return };
                let each = if t.kind == VarLenKind::Sequence { t.base.size() } else { 1 };
                self.check_sequence(found, &t.base, each, at);
            }
            Datatype::Reference(t) => match t.kind {
                ReferenceKind::Object1 => {}
                ReferenceKind::Region1 => {
                    let place = self.decode(GlobalHeapId::default(), at, element);
                    let Some(place) = place.filter(GlobalHeapId::is_defined) else { return };
                    if let Some((bytes, false)) = self.mark_and_read_global_object(place, at) {
                        self.decode(OldRegionReferenceBlob::default(), place.collection, &bytes);
                    }
                }
                _ => self.check_reference(t.size, element, at),
            },
            Datatype::Array(t) => self.check_global_heap_references(&t.base, element, at),
            Datatype::Compound(t) => {
                for member in t.members.iter().filter(|member| member.datatype.has_vlen_or_references()) {
                    let start = usize::try_from(member.offset).unwrap_or(usize::MAX);
                    let end = start.saturating_add(usize::try_from(member.datatype.size()).unwrap_or(usize::MAX));
                    if let Some(part) = element.get(start..end) {
                        self.check_value(&member.datatype, part, at);
                    }
                }
            }
            _ => {}
        }
    }

    fn check_sequence(&mut self, element: VarLenElement, base: &Datatype, each: u32, at: Addr) {
        if !element.place.is_defined() {
            if element.length > 0 {
                self.report(VarLenElement::NAME, at, FindingCause::UndefinedAddr("global heap collection"));
            }
            return;
        }
        let Some((len, before)) = self.mark_global_object_used(element.place, at) else { return };
        let needed = u64::from(element.length) * u64::from(each);
        if needed > len {
            let cause = FindingCause::NumberMismatch { what: "bytes of the sequence", stated: needed, found: len };
            self.report(VarLenElement::NAME, at, cause);
        } else if base.has_vlen_or_references() && !before && needed > 0 {
            let bytes = self.mark_and_read_global_object(element.place, at).map(|(bytes, _)| bytes);
            if let Some(inner) = bytes.as_deref().and_then(|bytes| bytes.get(..usize::try_from(needed).ok()?)) {
                self.check_global_heap_references(base, inner, at);
            }
        }
    }

    fn check_reference(&mut self, size: u32, element: &[u8], at: Addr) {
        let Some(found) = self.decode(ReferenceElement::blank(size), at, element) else { return };
        let ReferenceValue::Blob { kind, external, length, place } = found.value else { return };
        if !place.is_defined() {
            self.report(ReferenceElement::NAME, at, FindingCause::UndefinedAddr("global heap collection"));
            return;
        }
        let Some((bytes, before)) = self.mark_and_read_global_object(place, at) else { return };
        self.check_equal(ReferenceElement::NAME, at, "bytes of the reference", length.into(), bytes.len() as u64);
        if !before {
            self.decode(ReferenceBlob::blank(kind, external), place.collection, &bytes);
        }
    }

    /// Undoes the filters of a chunk, and looks up where those of its elements lead that are inside the extent.
    pub fn unfilter_and_check_chunk(
        &mut self,
        chunked: &ChunkedDataset,
        coord: &[u64],
        addr: Addr,
        stored_size: u64,
        filter_mask: u32,
    ) {
        let every =
            chunked.filters.iter().enumerate().all(|(i, _)| filter_mask.checked_shr(i as u32).unwrap_or(0) & 1 == 1);
        let is_verified = self.options.unfilters_all_chunks && !every;
        let mut leads = chunked.datatype.clone();
        let (largest, limit) = (stored_size.max(chunked.bytes), self.options.max_chunk_bytes);
        if largest > limit || !every && self.options.filter_engine.is_none() {
            self.unseen_values |= leads.is_some();
            if self.options.unfilters_all_chunks {
                let cause = match largest > limit {
                    true => FindingCause::TooLargeToVerify { bytes: largest, limit },
                    false => FindingCause::CannotVerify("no filter is known".to_owned()),
                };
                self.add_unverified_part("chunk", addr, cause);
            }
            return;
        }
        if leads.is_some() && !self.try_consume_value_budget(largest) {
            leads = None;
        }
        if leads.is_none() && !is_verified {
            return;
        }
        let Some(mut bytes) = self.read_unlimited("chunk", addr, stored_size) else { return };
        if let Some(filters) = self.options.filter_engine.filter(|_| !every) {
            bytes = match filters.unfilter(&chunked.filters, filter_mask, bytes, chunked.bytes) {
                Ok(undone) => undone,
                Err(error) => {
                    self.unseen_values |= leads.is_some();
                    self.report_or_add_unverified_part("chunk", addr, &error);
                    return;
                }
            };
        }
        if let Some(datatype) = leads {
            self.check_chunk_rows(&datatype, chunked, coord, 0, &bytes);
        }
    }

    /// The part of a chunk below dimension `dim` that is inside the extent.
    fn check_chunk_rows(
        &mut self,
        datatype: &Datatype,
        chunked: &ChunkedDataset,
        coord: &[u64],
        dim: usize,
        bytes: &[u8],
    ) {
        let parts = (coord.get(dim), chunked.storage.chunk_dims.get(dim), chunked.dims.get(dim));
        let (Some(place), Some(chunk), Some(extent)) = parts else {
            self.check_global_heap_references(datatype, bytes, chunked.header);
            return;
        };
        let start = place.saturating_mul(*chunk);
        let count = extent.saturating_sub(start).min(*chunk);
        let row = u64::try_from(bytes.len()).unwrap_or(0).checked_div(*chunk).unwrap_or(0);
        let Ok(row) = usize::try_from(row) else { return };
        if dim + 1 == chunked.dims.len() {
            let len = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(row);
            self.check_global_heap_references(datatype, bytes.get(..len).unwrap_or(bytes), chunked.header);
            return;
        }
        for part in bytes.chunks_exact(row.max(1)).take(usize::try_from(count).unwrap_or(usize::MAX)) {
            self.check_chunk_rows(datatype, chunked, coord, dim + 1, part);
        }
    }
}
