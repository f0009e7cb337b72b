//! Describes structures by their signatures: the fields of the structure at some place of a file.

use crate::messages::*;
use crate::*;

/// The known properties of the file, and of the place.
#[derive(Debug, Clone, Copy, Default)]
pub struct DumpContext<'a> {
    /// The widths of the file.
    pub widths: Widths,
    /// The sizes of the file's version 1 B-tree nodes.
    pub btree_k: BtreeK,
    /// The rank of the dataset, for version 1 B-trees of chunks.
    pub chunk_rank: Option<u8>,
    /// The bytes of the header of the tree, heap or array that the structure is a part of. Without it, such parts are
    /// shown as far as they explain themselves.
    pub owner_header: Option<&'a [u8]>,
}

/// A structure with its fields, as far as it can be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// The name of the structure.
    pub name: &'static str,
    /// The fields.
    pub fields: Vec<Field>,
    /// Whether that is all of it, and sound.
    pub result: Result<()>,
}

fn dump<R: Record>(record: R, bytes: &[u8], widths: Widths) -> Dump {
    let (fields, result) = describe(record, bytes, widths);
    Dump { name: R::NAME, fields, result }
}

/// The structure with which `bytes` begin, known by its signature. Version 1 object headers have none, and are tried
/// last. `None` if it is no structure of the format.
pub fn dump_any(bytes: &[u8], context: &DumpContext<'_>) -> Option<Dump> {
    let widths = context.widths;
    let signature: [u8; 4] = *bytes.first_chunk()?;
    Some(match &signature {
        b"\x89HDF" => dump(Superblock::default(), bytes, widths),
        b"OHDR" => dump_object_header(bytes, widths),
        b"OCHK" => dump_continuation_chunk(bytes, widths),
        b"SNOD" => dump(SymbolTableNode::for_k(context.btree_k), bytes, widths),
        b"HEAP" => dump(LocalHeapPrefix::default(), bytes, widths),
        b"TREE" => dump_btree1_node(bytes, context),
        b"GCOL" => dump(GlobalHeapCollection::default(), bytes, widths),
        b"FRHP" => dump(FractalHeapHeader::default(), bytes, widths),
        b"FHDB" => dump_heap_direct_block(bytes, context)
            .unwrap_or_else(|| dump_part::<FractalHeapDirectBlock>("FHDB", bytes, widths)),
        b"FHIB" => dump_heap_indirect_block(bytes, context)
            .unwrap_or_else(|| dump_part::<FractalHeapIndirectBlock>("FHIB", bytes, widths)),
        b"BTHD" => dump(Btree2Header::default(), bytes, widths),
        b"BTLF" => {
            dump_btree2_leaf(bytes, context).unwrap_or_else(|| dump_btree2_node::<Btree2Leaf>("BTLF", bytes, widths))
        }
        b"BTIN" => dump_btree2_internal(bytes, context)
            .unwrap_or_else(|| dump_btree2_node::<Btree2Internal>("BTIN", bytes, widths)),
        b"EAHD" => dump(ExtensibleArrayHeader::default(), bytes, widths),
        b"EAIB" => dump_array_index_block(bytes, context)
            .unwrap_or_else(|| dump_array_part::<ExtensibleArrayIndexBlock>("EAIB", bytes, widths)),
        b"EASB" => dump_array_part::<ExtensibleArraySuperBlock>("EASB", bytes, widths),
        b"EADB" => dump_array_part::<ExtensibleArrayDataBlock>("EADB", bytes, widths),
        b"FAHD" => dump(FixedArrayHeader::default(), bytes, widths),
        b"FADB" => dump_fixed_array_data_block(bytes, context)
            .unwrap_or_else(|| dump_array_part::<FixedArrayDataBlock>("FADB", bytes, widths)),
        b"FSHD" => dump(FreeSpaceHeader::default(), bytes, widths),
        b"FSSE" => {
            dump_free_sections(bytes, context).unwrap_or_else(|| dump_part::<FreeSpaceSections>("FSSE", bytes, widths))
        }
        b"SMTB" => dump_shared_message_table(bytes, widths),
        b"SMLI" => dump_shared_message_list(bytes, widths),
        b"MDCI" => dump(CacheImage::default(), bytes, widths),
        [1, 0, _, _] => Some(dump_object_header(bytes, widths)).filter(|header| header.result.is_ok())?,
        _ => return None,
    })
}

/// The fields of the body of a message. Messages of unknown types have one field.
pub fn dump_message(kind: MessageType, shared: bool, body: &[u8], widths: Widths) -> Dump {
    if shared {
        return dump(SharedMessageReference::default(), body, widths);
    }
    match kind {
        MessageType::DATASPACE => dump(DataspaceMessage::default(), body, widths),
        MessageType::LINK_INFO => dump(LinkInfo::default(), body, widths),
        MessageType::DATATYPE => dump(DatatypeMessage::default(), body, widths),
        MessageType::FILL_VALUE_OLD => dump(FillValueOldMessage::default(), body, widths),
        MessageType::FILL_VALUE => dump(FillValueMessage::default(), body, widths),
        MessageType::LINK => dump(LinkMessage::default(), body, widths),
        MessageType::EXTERNAL_FILES => dump(ExternalFiles::default(), body, widths),
        MessageType::LAYOUT => dump(LayoutMessage::default(), body, widths),
        MessageType::GROUP_INFO => dump(GroupInfo::default(), body, widths),
        MessageType::FILTER_PIPELINE => dump(FilterPipelineMessage::default(), body, widths),
        MessageType::ATTRIBUTE => dump(AttributeMessage::default(), body, widths),
        MessageType::COMMENT => dump(Comment::default(), body, widths),
        MessageType::MODIFICATION_TIME_OLD => dump(OldModificationTime::default(), body, widths),
        MessageType::SHARED_MESSAGE_TABLE => dump(SharedMessageTableInfo::default(), body, widths),
        MessageType::CONTINUATION => dump(ContinuationMessage::default(), body, widths),
        MessageType::SYMBOL_TABLE => dump(SymbolTableMessage::default(), body, widths),
        MessageType::MODIFICATION_TIME => dump(ModificationTime::default(), body, widths),
        MessageType::BTREE_K => dump(BtreeK::default(), body, widths),
        MessageType::DRIVER_INFO => dump(DriverInfo::default(), body, widths),
        MessageType::ATTRIBUTE_INFO => dump(AttributeInfo::default(), body, widths),
        MessageType::REFERENCE_COUNT => dump(ReferenceCount::default(), body, widths),
        MessageType::FILE_SPACE_INFO => dump(FileSpaceInfo::default(), body, widths),
        MessageType::CACHE_IMAGE => dump(CacheImageInfo::default(), body, widths),
        MessageType::NIL => dump(UnknownBytes { name: "unused space" }, body, widths),
        _ => dump(UnknownBytes { name: "unknown message" }, body, widths),
    }
}

/// Bytes of an unknown kind.
struct UnknownBytes {
    name: &'static str,
}

impl Record for UnknownBytes {
    const NAME: &'static str = "bytes";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let len = w.remaining();
        w.bytes(self.name, len, &mut Vec::new())
    }
}

/// Describes a part of a heap or of a free-space manager.
fn dump_part<R: Record>(signature: &'static str, bytes: &[u8], widths: Widths) -> Dump {
    let prefix = PartPrefix { signature, typed: false, header: Some(Addr::UNDEFINED) };
    Dump { name: R::NAME, ..dump(prefix, bytes, widths) }
}

/// Describes a part of an array.
fn dump_array_part<R: Record>(signature: &'static str, bytes: &[u8], widths: Widths) -> Dump {
    let prefix = PartPrefix { signature, typed: true, header: Some(Addr::UNDEFINED) };
    Dump { name: R::NAME, ..dump(prefix, bytes, widths) }
}

/// Describes a node of a version 2 B-tree.
fn dump_btree2_node<R: Record>(signature: &'static str, bytes: &[u8], widths: Widths) -> Dump {
    let prefix = PartPrefix { signature, typed: true, header: None };
    Dump { name: R::NAME, ..dump(prefix, bytes, widths) }
}

struct PartPrefix {
    signature: &'static str,
    typed: bool,
    header: Option<Addr>,
}

impl Record for PartPrefix {
    const NAME: &'static str = "part";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic(self.signature)?;
        w.version(0..=0, &mut 0)?;
        if self.typed {
            w.u8("type", &mut 0)?;
        }
        match &mut self.header {
            Some(header) => w.addr("header", header),
            None => Ok(()),
        }
    }
}

fn saturate_u16(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

/// Puts the fields of message bodies in the place of the bodies' bytes.
fn with_message_bodies(mut dump: Dump, messages: &[RawMessage], widths: Widths) -> Dump {
    let mut messages = messages.iter();
    let mut fields = Vec::new();
    for field in std::mem::take(&mut dump.fields) {
        let body = (field.field == "body").then(|| messages.next()).flatten();
        let Some(raw) = body.filter(|raw| !raw.body.is_empty()) else {
            fields.push(field);
            continue;
        };
        let inner = dump_message(raw.kind, raw.flags.is_shared(), &raw.body, widths);
        let shifted = inner.fields.into_iter().map(|inner| Field {
            offset_in_structure: inner.offset_in_structure.saturating_add(field.offset_in_structure),
            ..inner
        });
        fields.extend(shifted);
        if let (Ok(()), Err(mut error)) = (&dump.result, inner.result) {
            error.offset_in_structure = error.offset_in_structure.saturating_add(field.offset_in_structure);
            dump.result = Err(error);
        }
    }
    Dump { fields, ..dump }
}

fn dump_object_header(bytes: &[u8], widths: Widths) -> Dump {
    let dump = dump(FirstHeaderChunk::default(), bytes, widths);
    match decode_prefix::<FirstHeaderChunk>(bytes, widths) {
        Ok((header, _)) => with_message_bodies(dump, &header.messages, widths),
        Err(_) => dump,
    }
}

/// Most bytes in which the end of a structure is looked for by its checksum.
const MAX_SEARCH_BYTES: usize = 8192;

/// Bytes of a structure that ends with a checksum, but does not say how long it is.
fn find_checksummed_len(bytes: &[u8]) -> Option<usize> {
    (4..bytes.len().min(MAX_SEARCH_BYTES).saturating_sub(3)).find_map(|end| {
        let stored = bytes.get(end..)?.first_chunk::<4>()?;
        let sum = lookup3(bytes.get(..end)?, 0).to_le_bytes();
        (sum == *stored).then(|| end.saturating_add(4))
    })
}

/// A continuation. Only the message that leads to it says how long it is, and only the header whether messages bear
/// the order of creation.
fn dump_continuation_chunk(bytes: &[u8], widths: Widths) -> Dump {
    let len = find_checksummed_len(bytes).unwrap_or(bytes.len()) as u64;
    let blank = |attribute_order_tracked| ContinuationChunk {
        version: 2,
        attribute_order_tracked,
        chunk_len: len,
        messages: Vec::new(),
    };
    let tracked = decode_prefix_with(blank(false), bytes, widths).is_err()
        && decode_prefix_with(blank(true), bytes, widths).is_ok();
    let dump = dump(blank(tracked), bytes, widths);
    match decode_prefix_with(blank(tracked), bytes, widths) {
        Ok((chunk, _)) => with_message_bodies(dump, &chunk.messages, widths),
        Err(_) => dump,
    }
}

fn dump_btree1_node(bytes: &[u8], context: &DumpContext<'_>) -> Dump {
    let (widths, k) = (context.widths, context.btree_k);
    match (bytes.get(4), context.chunk_rank) {
        (Some(1), Some(rank)) => {
            dump(Btree1Node::<Btree1ChunkKey>::empty(k.chunk, Btree1ChunkRank(rank), widths), bytes, widths)
        }
        (Some(1), None) => {
            let head = bytes.get(..widths.offset.bytes().saturating_mul(2).saturating_add(8)).unwrap_or(bytes);
            dump(Btree1Node::<Btree1ChunkKey>::empty(k.chunk, Btree1ChunkRank(0), widths), head, widths)
        }
        _ => dump(Btree1Node::<Btree1GroupKey>::empty(k.group_internal, (), widths), bytes, widths),
    }
}

fn decode_header<R: Record + Default>(context: &DumpContext<'_>) -> Option<R> {
    decode_prefix(context.owner_header?, context.widths).ok().map(|(header, _)| header)
}

fn dump_heap_direct_block(bytes: &[u8], context: &DumpContext<'_>) -> Option<Dump> {
    let heap: FractalHeapHeader = decode_header(context)?;
    let offset = heap_block_offset(bytes, &heap, context.widths)?;
    let size = heap.table.direct_block_size_at(offset, heap.root_rows)?;
    Some(dump(heap.blank_direct_block(size), bytes, context.widths))
}

fn dump_heap_indirect_block(bytes: &[u8], context: &DumpContext<'_>) -> Option<Dump> {
    let heap: FractalHeapHeader = decode_header(context)?;
    let offset = heap_block_offset(bytes, &heap, context.widths)?;
    let rows = heap.table.indirect_block_rows_at(offset, heap.root_rows)?;
    Some(dump(heap.blank_indirect_block(rows, context.widths), bytes, context.widths))
}

/// The offset of a block of a fractal heap in heap space, as the block states it.
fn heap_block_offset(bytes: &[u8], heap: &FractalHeapHeader, widths: Widths) -> Option<u64> {
    let rest = bytes.get(widths.offset.bytes().saturating_add(5)..)?;
    rest.get(..heap.table.offset_width().bytes()).map(element_table::read_uint)
}

fn btree2_geometry(context: &DumpContext<'_>) -> Option<(Btree2Header, Btree2Geometry)> {
    let tree: Btree2Header = decode_header(context)?;
    let geometry = Btree2Geometry::from_header(&tree, context.widths).ok()?;
    Some((tree, geometry))
}

/// A leaf. Its number of records is the one for which the checksum is right.
fn dump_btree2_leaf(bytes: &[u8], context: &DumpContext<'_>) -> Option<Dump> {
    let (tree, geometry) = btree2_geometry(context)?;
    let records = find_checksummed_len(bytes)?.checked_sub(10)?.checked_div(tree.record_size.into())?;
    Some(dump(geometry.blank_leaf(saturate_u16(records)), bytes, context.widths))
}

/// An internal node. Its depth and number of records are those for which the checksum is right.
fn dump_btree2_internal(bytes: &[u8], context: &DumpContext<'_>) -> Option<Dump> {
    let (tree, geometry) = btree2_geometry(context)?;
    let used = find_checksummed_len(bytes)?;
    let mut depths = (1..=tree.depth).filter_map(|depth| {
        let pointer = geometry.child_pointer_size(depth);
        let each = pointer.saturating_add(tree.record_size.into());
        let rest = used.checked_sub(10)?.checked_sub(pointer)?;
        let exact = rest.checked_rem(each)? == 0;
        exact.then_some((depth, saturate_u16(rest.checked_div(each)?)))
    });
    let (depth, records) = depths.next()?;
    Some(dump(geometry.blank_internal(depth, records), bytes, context.widths))
}

fn dump_array_index_block(bytes: &[u8], context: &DumpContext<'_>) -> Option<Dump> {
    let array: ExtensibleArrayHeader = decode_header(context)?;
    let shape = array.parameters;
    let first = shape.super_block_min_pointers.checked_ilog2()?.checked_mul(2)?;
    let all = u32::from(shape.element_index_bits)
        .saturating_add(1)
        .checked_sub(shape.data_block_min_elements.checked_ilog2()?)?;
    let data_blocks = usize::from(shape.super_block_min_pointers).checked_sub(1)?.checked_mul(2)?;
    let super_blocks = usize::try_from(all.checked_sub(first)?).ok()?;
    let offset = context.widths.offset;
    let elements = shape.index_block_elements.into();
    let block =
        ExtensibleArrayIndexBlock::new(Addr::UNDEFINED, array.format, offset, elements, data_blocks, super_blocks);
    Some(dump(block, bytes, context.widths))
}

fn dump_fixed_array_data_block(bytes: &[u8], context: &DumpContext<'_>) -> Option<Dump> {
    let array: FixedArrayHeader = decode_header(context)?;
    let offset = context.widths.offset;
    let page = 1u64.checked_shl(array.page_bits.into())?;
    let elements = usize::try_from(array.element_count).ok()?;
    let (pages, elements) = if array.element_count > page {
        let pages = usize::try_from(array.element_count.div_ceil(page)).ok()?;
        (pages.div_ceil(8), 0)
    } else {
        (0, elements)
    };
    let size = elements.checked_mul(array.format.size(offset))?.checked_add(pages)?;
    if size > bytes.len() {
        return None;
    }
    let elements = ChunkEntryTable::undefined(elements, array.format, offset);
    let block = FixedArrayDataBlock { header: Addr::UNDEFINED, written_pages: PageBitmap::zeros(pages), elements };
    Some(dump(block, bytes, context.widths))
}

fn dump_free_sections(bytes: &[u8], context: &DumpContext<'_>) -> Option<Dump> {
    let manager: FreeSpaceHeader = decode_header(context)?;
    Some(dump(manager.blank_section_list(), bytes, context.widths))
}

/// A table. Its number of indexes is the one for which the checksum is right.
fn dump_shared_message_table(bytes: &[u8], widths: Widths) -> Dump {
    let fits = |count: &u8| decode_prefix_with(SharedMessageTable::blank(*count), bytes, widths).is_ok();
    dump(SharedMessageTable::blank((1..=8).find(fits).unwrap_or(1)), bytes, widths)
}

/// A list. Its number of messages is the one for which the checksum is right.
fn dump_shared_message_list(bytes: &[u8], widths: Widths) -> Dump {
    let used = find_checksummed_len(bytes).unwrap_or(8).saturating_sub(8);
    let count = saturate_u16(used.checked_div(SharedMessageRecord::size(widths)).unwrap_or(0));
    dump(SharedMessageList { capacity: count, message_count: count, messages: Vec::new() }, bytes, widths)
}

#[cfg(test)]
mod tests;
