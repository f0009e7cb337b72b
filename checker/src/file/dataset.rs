//! Datasets: type, shape, layout, and whether they fit each other.

use std::rc::Rc;

use h5live_format::messages::{
    ChunkIndexType, DataspaceMessage, DatatypeMessage, ExternalFiles, FillValueMessage, FillValueOldMessage,
    FilterPipelineMessage, LayoutClass, LayoutMessage, MAX_CHUNK_BYTES_BEFORE_V5, MessageType, SharedMessageReference,
};
use h5live_format::{Addr, GlobalHeapId, Record, VirtualLayout};
use h5live_model::{Dataspace, Datatype, FillValue, UNLIMITED};

use super::FindingCause;
use super::chunks::ChunkedDataset;
use super::header::CheckedObjectHeader;
use super::walk::FileWalk;

const LAYOUT: &str = LayoutMessage::NAME;

/// Raw data is read in pieces of this size (bytes).
const READ_BLOCK_BYTES: u64 = 1 << 20;

/// Most elements along a dimension of a dataset of several dimensions, in chunks, that libhdf5 opens.
const MAX_CHUNKED_DIM: u64 = i64::MAX as u64;

impl FileWalk<'_> {
    /// A dataset with its raw data.
    pub fn check_dataset(&mut self, header: &CheckedObjectHeader) {
        let at = header.addr;
        let parts = (
            self.load_message::<DataspaceMessage>(header),
            self.load_datatype(header),
            self.load_message::<LayoutMessage>(header),
        );
        let kinds = [MessageType::DATASPACE, MessageType::DATATYPE, MessageType::LAYOUT];
        for kind in kinds.into_iter().filter(|kind| !header.has_message(*kind)) {
            self.report(header.structure_name(), at, FindingCause::Missing(kind.name().unwrap_or("message")));
        }
        let pipeline = self.load_message::<FilterPipelineMessage>(header);
        let unknown = header.has_message(MessageType::FILTER_PIPELINE) && pipeline.is_none();
        let external = self.check_external_files(header);
        let (Some(space), Some(datatype), Some(layout)) = parts else {
            self.incomplete = true;
            return;
        };
        self.check_fill_values(header, &datatype);
        let size = space.dataspace.element_count().and_then(|n| n.checked_mul(datatype.size().into()));
        match &layout.storage {
            LayoutClass::Compact { data, .. } => match size {
                Some(size) if size == data.len() as u64 => self.check_global_heap_references(&datatype, data, at),
                _ => self.check_equal(LAYOUT, at, "bytes of compact data", data.len() as u64, size.unwrap_or(u64::MAX)),
            },
            LayoutClass::Contiguous { addr, size: stated, .. } => match external {
                Some(capacity) => {
                    if let Some(size) = size.filter(|size| *size > capacity) {
                        let cause =
                            FindingCause::ExceedsLimit { what: "bytes of external data", found: size, limit: capacity };
                        self.report(ExternalFiles::NAME, at, cause);
                    }
                }
                None => {
                    let stated = if layout.version < 3 { size } else { Some(*stated) };
                    self.check_contiguous_data(at, *addr, stated, size, &datatype);
                }
            },
            LayoutClass::Chunked(_) if unknown => self.incomplete = true,
            LayoutClass::Chunked(chunks) => {
                let filters = pipeline.map(|pipeline| pipeline.filters).unwrap_or_default();
                if let Some(chunked) =
                    self.check_chunked_layout(at, &layout, chunks, &space.dataspace, &datatype, filters)
                {
                    self.check_chunk_index_and_chunks(&chunked);
                }
            }
            LayoutClass::Virtual { heap, index } => {
                self.check_virtual_mappings(at, GlobalHeapId { collection: *heap, index: *index })
            }
        }
    }

    /// The type of a dataset, which may be a committed one.
    fn load_datatype(&mut self, header: &CheckedObjectHeader) -> Option<Rc<Datatype>> {
        let message = header.messages_of(MessageType::DATATYPE).next()?;
        if !message.flags.is_shared() {
            let message = self.load_message::<DatatypeMessage>(header)?;
            self.check_datatype_uses_half_bits(header, &message);
            return Some(Rc::new(message.datatype));
        }
        let shared = self.decode(SharedMessageReference::default(), header.addr, &message.body)?;
        self.resolve_shared_datatype(&shared.place, header.addr)
    }

    fn check_fill_values(&mut self, header: &CheckedObjectHeader, datatype: &Datatype) {
        let size = datatype.size().into();
        let mut values = Vec::new();
        if let Some(old) = self.load_message::<FillValueOldMessage>(header).filter(|old| !old.value.is_empty()) {
            values.push((FillValueOldMessage::NAME, old.value));
        }
        if let Some(FillValue::Value(value)) =
            self.load_message::<FillValueMessage>(header).map(|message| message.fill.value)
        {
            values.push((FillValueMessage::NAME, value));
        }
        for (name, value) in values {
            self.check_equal(name, header.addr, "bytes of the value", value.len() as u64, size);
            if value.len() as u64 == size {
                self.check_global_heap_references(datatype, &value, header.addr);
            }
        }
    }

    /// Bytes for which the external files of a dataset have room, if its data is in such.
    fn check_external_files(&mut self, header: &CheckedObjectHeader) -> Option<u64> {
        let files = self.load_message::<ExternalFiles>(header)?;
        self.report.external_or_virtual_dataset_count += 1;
        if let Some(mut heap) = self.check_local_heap(files.heap) {
            for file in &files.slots {
                if self.claim_and_read_local_string(&mut heap, file.name_offset).is_some_and(|name| name.is_empty()) {
                    self.report(
                        ExternalFiles::NAME,
                        header.addr,
                        FindingCause::BrokenRule("an external file has a name"),
                    );
                }
            }
        }
        let unlimited = self.widths.length.max_value();
        let room = |n: u64, size: u64| if size == unlimited { u64::MAX } else { n.saturating_add(size) };
        Some(files.slots.iter().fold(0, |n, file| room(n, file.data_size)))
    }

    fn check_contiguous_data(
        &mut self,
        at: Addr,
        addr: Addr,
        stated: Option<u64>,
        size: Option<u64>,
        datatype: &Datatype,
    ) {
        if !addr.is_defined() {
            return;
        }
        let (Some(stated), Some(size)) = (stated, size) else {
            self.report(LAYOUT, at, FindingCause::BrokenRule("the elements of a dataset have a size below 2^64"));
            return;
        };
        self.check_equal(LAYOUT, at, "bytes of contiguous data", stated, size);
        if size == 0 {
            self.report(LAYOUT, at, FindingCause::BrokenRule("contiguous data without elements has no address"));
        }
        self.add_unchecksummed_raw_data("contiguous data", addr, stated);
        if datatype.has_vlen_or_references() {
            self.check_contiguous_values(at, addr, stated.min(size), datatype);
        }
    }

    fn check_contiguous_values(&mut self, at: Addr, addr: Addr, len: u64, datatype: &Datatype) {
        let element = u64::from(datatype.size()).max(1);
        let step = (READ_BLOCK_BYTES / element).max(1) * element;
        let mut done = 0;
        while done < len && !self.report.has_max_findings() {
            let take = step.min(len - done);
            let Some(place) = addr.checked_add(done).filter(|_| self.try_consume_value_budget(take)) else { return };
            let Some(bytes) = self.read_if_within_limit("contiguous data", place, take) else { return };
            self.check_global_heap_references(datatype, &bytes, at);
            done += take;
        }
    }

    /// The mappings of a virtual dataset.
    fn check_virtual_mappings(&mut self, at: Addr, place: GlobalHeapId) {
        if !place.is_defined() {
            return;
        }
        self.report.external_or_virtual_dataset_count += 1;
        if let Some((bytes, _)) = self.mark_and_read_global_object(place, at) {
            self.decode(VirtualLayout::default(), place.collection, &bytes);
        }
    }

    fn check_chunked_layout(
        &mut self,
        at: Addr,
        layout: &LayoutMessage,
        chunks: &h5live_format::messages::ChunkedStorage,
        space: &Dataspace,
        datatype: &Rc<Datatype>,
        filters: h5live_model::FilterSpecs,
    ) -> Option<ChunkedDataset> {
        self.check_equal(LAYOUT, at, "rank of chunks", chunks.chunk_dims.len() as u64, space.rank() as u64);
        self.check_equal(LAYOUT, at, "size of an element", chunks.element_size, datatype.size().into());
        let Some(bytes) = chunks.chunk_bytes() else {
            self.report(LAYOUT, at, FindingCause::BrokenRule("the bytes of a chunk fit 64 bits"));
            return None;
        };
        // libhdf5 rounds dimensions up to a power of two, if there is more than one.
        if let Some(found) = space.dims().iter().copied().find(|dim| space.rank() > 1 && *dim > MAX_CHUNKED_DIM) {
            let what = "dimension of a dataset in chunks";
            self.report(LAYOUT, at, FindingCause::ExceedsLimit { what, found, limit: MAX_CHUNKED_DIM });
        }
        let unlimited = space.max_dims().iter().filter(|dim| **dim == UNLIMITED).count();
        if matches!(chunks.index, ChunkIndexType::ExtensibleArray(_)) && unlimited != 1 {
            self.report(
                LAYOUT,
                at,
                FindingCause::BrokenRule("a dataset with an extensible array has one unlimited dimension"),
            );
        }
        if !layout.is_chunk_size_within_limit() {
            let what = match chunks.index {
                ChunkIndexType::Btree1 => "bytes of a chunk in a version 1 B-tree",
                _ => "bytes of a chunk in a layout before version 5",
            };
            self.report(
                LAYOUT,
                at,
                FindingCause::ExceedsLimit { what, found: bytes, limit: MAX_CHUNK_BYTES_BEFORE_V5 },
            );
        }
        (chunks.chunk_dims.len() == space.rank()).then(|| ChunkedDataset {
            header: at,
            version: layout.version,
            storage: chunks.clone(),
            bytes,
            dims: space.dims().to_vec(),
            max: space.max_dims().to_vec(),
            filters,
            datatype: datatype.has_vlen_or_references().then(|| datatype.clone()),
        })
    }
}
