//! The targets: what the bytes after the first few are taken for, which those first few say.

use std::fmt::Debug;

use h5live_model::ReferenceKind;

use super::{assert_round_trip_if_sound, widths_from_byte};
use crate::messages::*;
use crate::*;

/// A body of a fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct FuzzTarget {
    /// Its name.
    pub name: &'static str,
    /// Takes bytes for structures. Whether they were sound.
    pub run: fn(&[u8]) -> bool,
}

/// All targets.
pub const TARGETS: [FuzzTarget; 12] = [
    FuzzTarget { name: "superblock", run: superblock },
    FuzzTarget { name: "object_header", run: object_header },
    FuzzTarget { name: "message", run: message },
    FuzzTarget { name: "datatype", run: datatype },
    FuzzTarget { name: "btree1", run: btree1 },
    FuzzTarget { name: "btree2", run: btree2 },
    FuzzTarget { name: "heap", run: heap },
    FuzzTarget { name: "fractal_heap", run: fractal_heap },
    FuzzTarget { name: "array", run: array },
    FuzzTarget { name: "space", run: space },
    FuzzTarget { name: "indirect", run: indirect },
    FuzzTarget { name: "dump", run: dump },
];

/// Takes the first `N` bytes, which say what the rest is.
fn head<const N: usize>(data: &[u8]) -> Option<([u8; N], &[u8])> {
    data.split_first_chunk().map(|(head, rest)| (*head, rest))
}

fn superblock(data: &[u8]) -> bool {
    let sound = assert_round_trip_if_sound(&Superblock::default(), data, Widths::default());
    assert_eq!(Superblock::decode(data).is_ok(), sound);
    sound
}

fn object_header(data: &[u8]) -> bool {
    let Some(([w, kind], rest)) = head(data) else { return false };
    let continuation = |version, attribute_order_tracked| ContinuationChunk {
        version,
        attribute_order_tracked,
        chunk_len: rest.len() as u64,
        messages: Vec::new(),
    };
    match kind % 4 {
        0 => assert_round_trip_if_sound(&FirstHeaderChunk::default(), rest, widths_from_byte(w)),
        1 => assert_round_trip_if_sound(&continuation(1, false), rest, widths_from_byte(w)),
        2 => assert_round_trip_if_sound(&continuation(2, false), rest, widths_from_byte(w)),
        _ => assert_round_trip_if_sound(&continuation(2, true), rest, widths_from_byte(w)),
    }
}

fn message(data: &[u8]) -> bool {
    let Some(([w, kind], rest)) = head(data) else { return false };
    fn body<M: Message + Default + Clone + Debug>(bytes: &[u8], w: Widths) -> bool {
        assert_round_trip_if_sound(&M::default(), bytes, w)
    }
    let w = widths_from_byte(w);
    match MessageType::new((kind & 0x1f).into()) {
        MessageType::DATASPACE => body::<DataspaceMessage>(rest, w),
        MessageType::LINK_INFO => body::<LinkInfo>(rest, w),
        MessageType::DATATYPE => body::<DatatypeMessage>(rest, w),
        MessageType::FILL_VALUE_OLD => body::<FillValueOldMessage>(rest, w),
        MessageType::FILL_VALUE => body::<FillValueMessage>(rest, w),
        MessageType::LINK => body::<LinkMessage>(rest, w),
        MessageType::EXTERNAL_FILES => body::<ExternalFiles>(rest, w),
        MessageType::LAYOUT => body::<LayoutMessage>(rest, w),
        MessageType::GROUP_INFO => body::<GroupInfo>(rest, w),
        MessageType::FILTER_PIPELINE => body::<FilterPipelineMessage>(rest, w),
        MessageType::ATTRIBUTE => body::<AttributeMessage>(rest, w),
        MessageType::COMMENT => body::<Comment>(rest, w),
        MessageType::MODIFICATION_TIME_OLD => body::<OldModificationTime>(rest, w),
        MessageType::SHARED_MESSAGE_TABLE => body::<SharedMessageTableInfo>(rest, w),
        MessageType::CONTINUATION => body::<ContinuationMessage>(rest, w),
        MessageType::SYMBOL_TABLE => body::<SymbolTableMessage>(rest, w),
        MessageType::MODIFICATION_TIME => body::<ModificationTime>(rest, w),
        MessageType::BTREE_K => body::<BtreeK>(rest, w),
        MessageType::DRIVER_INFO => body::<DriverInfo>(rest, w),
        MessageType::ATTRIBUTE_INFO => body::<AttributeInfo>(rest, w),
        MessageType::REFERENCE_COUNT => body::<ReferenceCount>(rest, w),
        MessageType::FILE_SPACE_INFO => body::<FileSpaceInfo>(rest, w),
        MessageType::CACHE_IMAGE => body::<CacheImageInfo>(rest, w),
        _ => assert_round_trip_if_sound(&SharedMessageReference::default(), rest, w),
    }
}

fn datatype(data: &[u8]) -> bool {
    let sound = assert_round_trip_if_sound(&DatatypeMessage::default(), data, Widths::default());
    if let Ok((message, _)) = decode_prefix::<DatatypeMessage>(data, Widths::default()) {
        message.datatype.has_number_over_half_unused();
        message.datatype.has_vlen_or_references();
        for profile in LibVer::ALL {
            let message = DatatypeMessage::new(profile, message.datatype.clone());
            let bytes = encode(&message, Widths::default()).expect("a datatype fits every profile");
            let again: DatatypeMessage = decode(&bytes, Widths::default()).expect("its own bytes");
            assert_eq!(again.datatype, message.datatype);
        }
    }
    sound
}

fn btree1(data: &[u8]) -> bool {
    let Some(([w, kind, k], rest)) = head(data) else { return false };
    let w = widths_from_byte(w);
    match kind % 34 {
        0 => assert_round_trip_if_sound(&Btree1Node::<Btree1GroupKey>::empty(k.into(), (), w), rest, w),
        rank => assert_round_trip_if_sound(
            &Btree1Node::<Btree1ChunkKey>::empty(k.into(), Btree1ChunkRank(rank - 1), w),
            rest,
            w,
        ),
    }
}

fn btree2(data: &[u8]) -> bool {
    let Some(([w, kind, node, depth, records], rest)) = head(data) else { return false };
    let w = widths_from_byte(w);
    let header =
        Btree2Header { node_size: u32::from(node) * 16, depth: u16::from(depth % 5), ..Btree2Header::default() };
    let geometry = Btree2Geometry::from_header(&header, w);
    let size = w.offset;
    match (kind % 14, geometry) {
        (0, _) => assert_round_trip_if_sound(&Btree2Header::default(), rest, w),
        (1, _) => assert_round_trip_if_sound(&HugeIndirectRecord::default(), rest, w),
        (2, _) => assert_round_trip_if_sound(&HugeIndirectFilteredRecord::default(), rest, w),
        (3, _) => assert_round_trip_if_sound(&HugeDirectRecord::default(), rest, w),
        (4, _) => assert_round_trip_if_sound(&HugeDirectFilteredRecord::default(), rest, w),
        (5, _) => assert_round_trip_if_sound(&LinkNameRecord::default(), rest, w),
        (6, _) => assert_round_trip_if_sound(&LinkOrderRecord::default(), rest, w),
        (7, _) => assert_round_trip_if_sound(&SharedMessageRecord::default(), rest, w),
        (8, _) => assert_round_trip_if_sound(&AttributeNameRecord::default(), rest, w),
        (9, _) => assert_round_trip_if_sound(&AttributeOrderRecord::default(), rest, w),
        (10, _) => assert_round_trip_if_sound(&ChunkRecord::blank(depth.into()), rest, w),
        (11, _) => assert_round_trip_if_sound(&FilteredChunkRecord::blank(depth.into(), size), rest, w),
        (12, Ok(geometry)) => assert_round_trip_if_sound(&geometry.blank_leaf(records.into()), rest, w),
        (_, Ok(geometry)) => {
            assert_round_trip_if_sound(&geometry.blank_internal(header.depth, records.into()), rest, w)
        }
        (_, Err(_)) => false,
    }
}

fn heap(data: &[u8]) -> bool {
    let Some(([w, kind, k], rest)) = head(data) else { return false };
    let w = widths_from_byte(w);
    match kind % 5 {
        0 => assert_round_trip_if_sound(&SymbolTableNode { capacity: k.into(), entries: Vec::new() }, rest, w),
        1 => assert_round_trip_if_sound(&LocalHeapPrefix::default(), rest, w),
        2 => {
            let heap = LocalHeapData { bytes: rest.to_vec() };
            heap.string(k.into()).is_ok() && heap.free_ranges(Some(k.into()), w.length).is_ok()
        }
        3 => assert_round_trip_if_sound(&GlobalHeapId::default(), rest, w),
        _ => {
            let sound = assert_round_trip_if_sound(&GlobalHeapCollection::default(), rest, w);
            if let Ok((mut heap, _)) = decode_prefix::<GlobalHeapCollection>(rest, w) {
                assert!(heap.free_bytes_at_end() <= heap.size());
                let numbers = heap.objects().map(|object| u32::from(object.index));
                assert!(numbers.collect::<Vec<_>>().iter().all(|number| heap.object_bytes(*number).is_some()));
                if let Some(index) = heap.insert_object(b"object", w) {
                    let bytes = encode(&heap, w).expect("an object that fits");
                    let again: GlobalHeapCollection = decode(&bytes, w).expect("its own bytes");
                    assert_eq!(again.object_bytes(index.into()), Some(&b"object"[..]));
                }
            }
            sound
        }
    }
}

fn fractal_heap(data: &[u8]) -> bool {
    let Some(([w, kind, a, b], rest)) = head(data) else { return false };
    let w = widths_from_byte(w);
    let mut header =
        FractalHeapHeader { id_len: u16::from(a).max(2), has_direct_block_checksums: b & 1 == 0, ..Default::default() };
    header.filter_info = (b & 2 != 0).then(FractalHeapFilterInfo::default);
    match kind % 5 {
        0 => {
            let sound = assert_round_trip_if_sound(&FractalHeapHeader::default(), rest, w);
            if let Ok((header, _)) = decode_prefix::<FractalHeapHeader>(rest, w) {
                geometry(&header.table, u64::from_le_bytes([a, b, a, b, a, b, a, b]));
            }
            sound
        }
        1 => assert_round_trip_if_sound(&header.blank_direct_block(u64::from(a) * 4), rest, w),
        2 => assert_round_trip_if_sound(&header.blank_indirect_block(u16::from(a % 16), w), rest, w),
        3 => assert_round_trip_if_sound(&header.id_format(w).id_of(HeapObjectLocation::default()), rest, w),
        _ => assert_round_trip_if_sound(&DoublingTable::default(), rest, w),
    }
}

/// The statements of the doubling table about an offset agree with each other.
fn geometry(table: &DoublingTable, offset: u64) {
    if let Some((row, column, inside)) = table.row_column_and_offset(offset) {
        assert_eq!(table.block_offset_in_parent(row, column).and_then(|at| at.checked_add(inside)), Some(offset));
        table.direct_block_size_at(offset, table.max_rows());
        table.indirect_block_rows_at(offset, table.max_rows());
    }
}

fn array(data: &[u8]) -> bool {
    let Some(([w, kind, a, b], rest)) = head(data) else { return false };
    let w = widths_from_byte(w);
    let format = Width::new(b).map_or(ChunkEntryFormat::Unfiltered, ChunkEntryFormat::Filtered);
    let elements = |len: u8| ChunkEntryTable::undefined(len.into(), format, w.offset);
    let (header, block_offset_width, block_offset) = (Addr::UNDEFINED, Width::FOUR, 0);
    match kind % 8 {
        0 => assert_round_trip_if_sound(&ExtensibleArrayHeader::default(), rest, w),
        1 => assert_round_trip_if_sound(
            &ExtensibleArrayIndexBlock::new(header, format, w.offset, a.into(), 6, 25),
            rest,
            w,
        ),
        2 => {
            let (written_pages, data_blocks) = (PageBitmap::zeros(b.into()), AddrTable::undefined(a.into(), w.offset));
            let block = ExtensibleArraySuperBlock {
                format,
                header,
                block_offset_width,
                block_offset,
                written_pages,
                data_blocks,
            };
            assert_round_trip_if_sound(&block, rest, w)
        }
        3 => assert_round_trip_if_sound(
            &ExtensibleArrayDataBlock { header, block_offset_width, block_offset, elements: elements(a) },
            rest,
            w,
        ),
        4 | 7 => assert_round_trip_if_sound(&ArrayDataBlockPage { elements: elements(a) }, rest, w),
        5 => assert_round_trip_if_sound(&FixedArrayHeader::default(), rest, w),
        _ => {
            let block =
                FixedArrayDataBlock { header, written_pages: PageBitmap::zeros(b.into()), elements: elements(a) };
            assert_round_trip_if_sound(&block, rest, w)
        }
    }
}

fn space(data: &[u8]) -> bool {
    let Some(([w, kind, a, b], rest)) = head(data) else { return false };
    let w = widths_from_byte(w);
    match kind % 7 {
        0 => assert_round_trip_if_sound(&SharedMessageTable::blank(a), rest, w),
        1 => assert_round_trip_if_sound(
            &SharedMessageList { capacity: a.into(), message_count: b.into(), messages: Vec::new() },
            rest,
            w,
        ),
        2 => assert_round_trip_if_sound(&FreeSpaceHeader::default(), rest, w),
        3 | 4 => {
            let client = if kind % 7 == 3 { FreeSpaceClient::File } else { FreeSpaceClient::FractalHeap };
            let header = FreeSpaceHeader {
                client,
                stored_section_count: a.into(),
                section_list_used_bytes: b.into(),
                ..Default::default()
            };
            assert_round_trip_if_sound(&header.blank_section_list(), rest, w)
        }
        5 => assert_round_trip_if_sound(&CacheImage::default(), rest, w),
        _ => assert_round_trip_if_sound(&DriverInfoBlock::default(), rest, w),
    }
}

fn indirect(data: &[u8]) -> bool {
    let Some(([w, kind], rest)) = head(data) else { return false };
    let w = widths_from_byte(w);
    match kind % 10 {
        0 => assert_round_trip_if_sound(&StoredSelection::default(), rest, w),
        1 => assert_round_trip_if_sound(&VirtualLayout::default(), rest, w),
        2 => assert_round_trip_if_sound(&VarLenElement::default(), rest, w),
        3 => assert_round_trip_if_sound(&OldRegionReferenceBlob::default(), rest, w),
        4 => assert_round_trip_if_sound(&ReferenceElement::blank(18), rest, w),
        5 => assert_round_trip_if_sound(&ReferenceBlob::blank(ReferenceKind::Object2, true), rest, w),
        6 => assert_round_trip_if_sound(&ReferenceBlob::blank(ReferenceKind::Region2, false), rest, w),
        7 => assert_round_trip_if_sound(&ReferenceBlob::blank(ReferenceKind::Region2, true), rest, w),
        8 => assert_round_trip_if_sound(&ReferenceBlob::blank(ReferenceKind::Attribute, false), rest, w),
        _ => assert_round_trip_if_sound(&SymbolTableEntry::default(), rest, w),
    }
}

/// Any structure, by its signature, below a header that is also any bytes.
fn dump(data: &[u8]) -> bool {
    let Some(([w, rank, len], rest)) = head(data) else { return false };
    let (header, bytes) = rest.split_at(rest.len().min(len.into()));
    let context = dump::DumpContext {
        widths: widths_from_byte(w),
        chunk_rank: (rank < 33).then_some(rank),
        owner_header: Some(header).filter(|header| !header.is_empty()),
        ..Default::default()
    };
    let dump = dump::dump_any(bytes, &context);
    if let Some(dump) = &dump {
        let inside =
            |field: &Field| field.offset_in_structure.checked_add(field.size).is_some_and(|end| end <= bytes.len());
        assert!(dump.fields.iter().all(inside), "{} has fields outside its bytes", dump.name);
    }
    dump.is_some_and(|dump| dump.result.is_ok())
}
