//! Sound structures of every kind, as bytes that the targets take.

use h5live_model::*;

use crate::messages::*;
use crate::*;

/// Bytes that a target takes for a sound structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// The target.
    pub target: &'static str,
    /// The bytes of the structure, after the bytes that state its kind.
    pub data: Vec<u8>,
    /// Where the structure begins in `data`.
    pub structure_start: usize,
    /// Bytes of the structure that its checksum covers, checksum included; 0 if it has none.
    pub checksummed_len: usize,
}

const WIDTHS: Widths = Widths { offset: Width::EIGHT, length: Width::EIGHT };
const SEED_ADDR: Addr = Addr::new(0x1234);

struct Seeds(Vec<Seed>);

impl Seeds {
    fn add<R: Record + Clone>(&mut self, target: &'static str, head: &[u8], record: &R) {
        self.add_bytes(target, head, encode(record, WIDTHS).unwrap(), 0);
    }

    /// A structure that ends with a checksum, or has one over all its bytes.
    fn add_checksummed<R: Record + Clone>(&mut self, target: &'static str, head: &[u8], record: &R) {
        let bytes = encode(record, WIDTHS).unwrap();
        let covered = bytes.len();
        self.add_bytes(target, head, bytes, covered);
    }

    fn add_bytes(&mut self, target: &'static str, head: &[u8], bytes: Vec<u8>, covered: usize) {
        let data = [head, &bytes].concat();
        self.0.push(Seed { target, data, structure_start: head.len(), checksummed_len: covered });
    }

    fn add_message<M: Message + Clone>(&mut self, message: &M) {
        let kind = u8::try_from(M::TYPE.number()).unwrap();
        self.add("message", &[0, kind], message);
    }
}

/// All seeds.
pub fn all_seeds() -> Vec<Seed> {
    let mut seeds = Seeds(Vec::new());
    add_file_seeds(&mut seeds);
    add_message_seeds(&mut seeds);
    add_datatype_seeds(&mut seeds);
    add_tree_seeds(&mut seeds);
    add_heap_seeds(&mut seeds);
    add_array_seeds(&mut seeds);
    add_free_space_seeds(&mut seeds);
    add_indirect_block_seeds(&mut seeds);
    add_dump_seeds(&mut seeds);
    seeds.0
}

fn add_file_seeds(seeds: &mut Seeds) {
    let entry = SymbolTableEntry {
        name_offset: 0,
        header: SEED_ADDR,
        cache: SymbolTableScratchPad::Group { btree: SEED_ADDR, heap: SEED_ADDR },
    };
    let old = Superblock { root: RootGroupLocation::Entry(entry), end_of_file: SEED_ADDR, ..Default::default() };
    for version in [0, 1] {
        seeds.add("superblock", &[], &Superblock { version, ..old.clone() });
    }
    for version in [2, 3] {
        let root = RootGroupLocation::Header(SEED_ADDR);
        seeds.add_checksummed(
            "superblock",
            &[],
            &Superblock { version, root, end_of_file: SEED_ADDR, ..Default::default() },
        );
    }
    let comment = Comment { text: "seven b".into() };
    let comment = RawMessage::encode_from(&comment, MessageFlags::default(), WIDTHS).unwrap();
    let messages = vec![comment, RawMessage::unused(8)];
    for (kind, version, tracked) in [(1, 1, false), (2, 2, false), (3, 2, true)] {
        let prefix = ObjectHeaderPrefix { version, attribute_order_tracked: tracked, ..Default::default() };
        let size = messages.iter().map(|m| (m.body.len() + prefix.message_header_len()) as u64).sum();
        let times = (version == 2).then(crate::HeaderTimes::default);
        let header = FirstHeaderChunk {
            prefix: ObjectHeaderPrefix { first_chunk_messages_size: size, times, ..prefix },
            messages: messages.clone(),
        };
        let len = size + ContinuationChunk::overhead(version);
        let chunk =
            ContinuationChunk { version, attribute_order_tracked: tracked, chunk_len: len, messages: messages.clone() };
        if version == 1 {
            seeds.add("object_header", &[0, 0], &header);
            seeds.add("object_header", &[0, kind], &chunk);
        } else {
            seeds.add_checksummed("object_header", &[0, 0], &header);
            seeds.add_checksummed("object_header", &[0, kind], &chunk);
        }
    }
}

fn int(size: u32) -> Datatype {
    Datatype::integer(size, ByteOrder::Little, Sign::Signed)
}

fn add_message_seeds(seeds: &mut Seeds) {
    let shape = Shape::with_max(&[3, 4], &[UNLIMITED, 4]).unwrap();
    for version in [1, 2] {
        seeds.add_message(&DataspaceMessage { version, dataspace: Dataspace::Simple(shape.clone()) });
        let spec = FilterSpec { id: 32001, optional: true, name: Some("blosc".into()), params: vec![1, 2, 3] };
        let deflate = FilterSpec { id: 1, params: vec![6], ..Default::default() };
        seeds.add_message(&FilterPipelineMessage { version, filters: vec![spec, deflate] });
        seeds.add(
            "message",
            &[0, 0x1f],
            &SharedMessageReference { version, place: SharedMessageTarget::Committed(SEED_ADDR) },
        );
    }
    seeds.add("message", &[0, 0x1f], &SharedMessageReference { version: 3, place: SharedMessageTarget::Heap([1; 8]) });
    seeds.add_message(&LinkInfo {
        next_creation_order: Some(4),
        heap: SEED_ADDR,
        name_index: SEED_ADDR,
        order_index: Some(SEED_ADDR),
    });
    seeds.add_message(&AttributeInfo {
        next_creation_order: Some(4),
        heap: SEED_ADDR,
        name_index: SEED_ADDR,
        order_index: Some(SEED_ADDR),
    });
    seeds.add_message(&FillValueOldMessage { value: vec![1, 2, 3, 4] });
    for version in 1..=3 {
        let fill = Fill { value: FillValue::Value(vec![1, 2, 3, 4]), ..Default::default() };
        seeds.add_message(&FillValueMessage { version, fill });
        let datatype = Shareable::Inline(DatatypeMessage { min_composite_version: 1, datatype: int(2) });
        let dataspace = Dataspace::Simple(Shape::fixed(&[2]));
        let dataspace = Shareable::Inline(DataspaceMessage { version: 1, dataspace });
        let name = Name::from("units");
        let character_set = CharacterSet::Ascii;
        seeds.add_message(&AttributeMessage {
            version,
            name,
            name_character_set: character_set,
            datatype,
            dataspace,
            data: vec![1, 0, 2, 0],
        });
    }
    for value in [
        LinkValue::Hard(SEED_ADDR),
        LinkValue::Soft("/a/b".into()),
        LinkValue::External { file: "f.h5".into(), path: "/x".into() },
        LinkValue::UserDefined { class: 99, data: vec![1, 2, 3] },
    ] {
        let (name, character_set, creation_order) = ("name".into(), CharacterSet::Utf8, Some(5));
        seeds.add_message(&LinkMessage { name, name_character_set: character_set, creation_order, value });
    }
    add_layout_seeds(seeds);
    add_small_message_seeds(seeds);
}

fn add_small_message_seeds(seeds: &mut Seeds) {
    let file = ExternalFileSlot { name_offset: 8, data_offset: 0, data_size: 800 };
    seeds.add_message(&ExternalFiles { heap: SEED_ADDR, slots: vec![file; 2] });
    seeds.add_message(&GroupInfo {
        link_phase_change: Some(LinkPhaseChange::default()),
        estimate: Some(LinkEstimate::default()),
    });
    seeds.add_message(&Comment { text: "a comment".into() });
    seeds.add_message(&OldModificationTime { digits: *b"20240301123456" });
    seeds.add_message(&ModificationTime { unix_seconds: 1 << 30 });
    seeds.add_message(&SharedMessageTableInfo { table: SEED_ADDR, index_count: 2 });
    seeds.add_message(&ContinuationMessage { addr: SEED_ADDR, length: 100 });
    seeds.add_message(&SymbolTableMessage { btree: SEED_ADDR, heap: SEED_ADDR });
    seeds.add_message(&BtreeK::default());
    seeds.add_message(&DriverInfo { driver: *b"NCSAfami", data: vec![0; 8] });
    seeds.add_message(&ReferenceCount { hard_link_count: 3 });
    seeds.add_message(&FileSpaceInfo { managers: Some(vec![SEED_ADDR; 12]), ..Default::default() });
    seeds.add_message(&FileSpaceInfo { version: 0, managers: Some(vec![SEED_ADDR; 6]), ..Default::default() });
    seeds.add_message(&CacheImageInfo { addr: SEED_ADDR, size: 500 });
}

fn add_layout_seeds(seeds: &mut Seeds) {
    let chunked = |index| {
        LayoutClass::Chunked(ChunkedStorage {
            chunk_dims: vec![10, 300],
            element_size: 4,
            unfiltered_partial_chunks: false,
            index,
            addr: SEED_ADDR,
        })
    };
    for version in [1, 3] {
        let dims = if version < 3 { vec![3, 8] } else { Vec::new() };
        seeds.add_message(&LayoutMessage {
            version,
            storage: LayoutClass::Compact { data: vec![7; 5], dims: dims.clone() },
        });
        seeds.add_message(&LayoutMessage {
            version,
            storage: LayoutClass::Contiguous { addr: SEED_ADDR, size: 0, dims },
        });
        seeds.add_message(&LayoutMessage { version, storage: chunked(ChunkIndexType::Btree1) });
    }
    for index in [
        ChunkIndexType::Single { filtered: Some(SingleChunkFilterInfo { size: 77, filter_mask: 1 }) },
        ChunkIndexType::Implicit,
        ChunkIndexType::FixedArray { page_bits: 10 },
        ChunkIndexType::ExtensibleArray(ExtensibleArrayParameters::default()),
        ChunkIndexType::Btree2 { node_size: 2048, split: 100, merge: 40 },
    ] {
        seeds.add_message(&LayoutMessage { version: 4, storage: chunked(index) });
    }
    seeds.add_message(&LayoutMessage { version: 4, storage: LayoutClass::Virtual { heap: SEED_ADDR, index: 1 } });
}

fn add_datatype_seeds(seeds: &mut Seeds) {
    let member = |name: &str, offset, datatype| CompoundMember { name: name.into(), offset, datatype };
    let double = Datatype::float(8, ByteOrder::Big).unwrap();
    let names = [("RED", 0u8), ("GREEN", 1)];
    let members = names.map(|(name, value)| EnumMember { name: name.into(), value: vec![value, 0] });
    let enumeration = Datatype::Enum(EnumType { base: Box::new(int(2)), members: members.to_vec() });
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    let string = Datatype::VarLen(VarLenType { kind, size: 16, base: Box::new(int(1)) });
    let array = Datatype::Array(ArrayType { dims: vec![2, 3], base: Box::new(int(4)) });
    let inner =
        CompoundType { size: 24, members: vec![member("s", 0, string.clone()), member("e", 16, enumeration.clone())] };
    let record = CompoundType {
        size: 64,
        members: vec![
            member("x", 0, double.clone()),
            member("a", 8, array.clone()),
            member("i", 32, Datatype::Compound(inner)),
        ],
    };
    let types = [
        int(4),
        double.clone(),
        Datatype::Time(TimeType { size: 4, precision: 32, order: ByteOrder::Little }),
        Datatype::fixed_string(9, CharacterSet::Utf8),
        Datatype::Bitfield(BitfieldType { size: 2, precision: 16, ..Default::default() }),
        Datatype::Opaque(OpaqueType { size: 3, tag: "tag".into() }),
        Datatype::Reference(ReferenceType { kind: ReferenceKind::Region2, size: 18 }),
        enumeration,
        string,
        array,
        Datatype::Complex(ComplexType { base: Box::new(double) }),
        Datatype::Compound(record),
    ];
    for datatype in types {
        for version in [1, 3] {
            seeds.add("datatype", &[], &DatatypeMessage { min_composite_version: version, datatype: datatype.clone() });
        }
    }
}

fn add_tree_seeds(seeds: &mut Seeds) {
    let mut group = Btree1Node::<Btree1GroupKey>::empty(2, (), WIDTHS);
    assert!(group.set_entries(&[Btree1GroupKey(0), Btree1GroupKey(8), Btree1GroupKey(16)], &[SEED_ADDR, SEED_ADDR]));
    seeds.add("btree1", &[0, 0, 2], &group);
    let mut chunks = Btree1Node::<Btree1ChunkKey>::empty(1, Btree1ChunkRank(1), WIDTHS);
    let key = |at: u64| Btree1ChunkKey {
        stored_size: 80,
        filter_mask: 0,
        start: [at].as_slice().into(),
        offset_in_element: 0,
    };
    assert!(chunks.set_entries(&[key(0), key(10)], &[SEED_ADDR]));
    seeds.add("btree1", &[0, 2, 1], &chunks);
    let header =
        Btree2Header { root: SEED_ADDR, root_record_count: 3, total_record_count: 60, depth: 1, ..Default::default() };
    seeds.add_checksummed("btree2", &[0, 0, 0, 0, 0], &header);
    seeds.add("btree2", &[0, 2, 0, 0, 0], &HugeIndirectFilteredRecord::default());
    seeds.add("btree2", &[0, 10, 0, 2, 0], &ChunkRecord::blank(2));
    seeds.add("btree2", &[0, 11, 0, 2, 0], &FilteredChunkRecord::blank(2, Width::EIGHT));
    let geometry = Btree2Geometry::from_header(&Btree2Header { node_size: 96, depth: 2, ..header }, WIDTHS).unwrap();
    let record = LinkNameRecord { hash: 7, heap_id: [1; 7] };
    let mut leaf = geometry.empty_leaf();
    for i in 0..7 {
        assert!(leaf.records.insert(i, &record, WIDTHS));
    }
    let bytes = encode(&leaf, WIDTHS).unwrap();
    seeds.add_bytes("btree2", &[0, 12, 6, 2, 7], bytes, 10 + 7 * 11);
    let mut node = geometry.blank_internal(2, 0);
    assert!(node.records.insert(0, &record, WIDTHS));
    node.children = vec![Btree2ChildPointer { addr: SEED_ADDR, record_count: 5, subtree_record_count: 50 }; 2];
    let covered = 10 + 11 + 2 * geometry.child_pointer_size(2);
    seeds.add_bytes("btree2", &[0, 13, 6, 2, 1], encode(&node, WIDTHS).unwrap(), covered);
}

fn add_heap_seeds(seeds: &mut Seeds) {
    let entry = |cache| SymbolTableEntry { name_offset: 8, header: SEED_ADDR, cache };
    let entries = vec![entry(SymbolTableScratchPad::None), entry(SymbolTableScratchPad::SoftLink { value_offset: 16 })];
    seeds.add("heap", &[0, 0, 3], &SymbolTableNode { capacity: 3, entries });
    seeds.add("heap", &[0, 1, 0], &LocalHeapPrefix { data_size: 88, free_list_head: Some(16), data: SEED_ADDR });
    let mut data = LocalHeapData { bytes: vec![0; 56] };
    let head = data.write_free_list(
        &[LocalHeapFreeRange { offset: 8, size: 16 }, LocalHeapFreeRange { offset: 32, size: 24 }],
        Width::EIGHT,
    );
    seeds.add_bytes("heap", &[0, 2, u8::try_from(head.unwrap()).unwrap()], data.bytes, 0);
    seeds.add("heap", &[0, 3, 0], &GlobalHeapId { collection: SEED_ADDR, index: 4 });
    let mut heap = GlobalHeapCollection::new(GlobalHeapCollection::MIN_SIZE, WIDTHS);
    for object in [&b"one"[..], b"", b"sixteen bytes !!"] {
        heap.insert_object(object, WIDTHS).unwrap();
    }
    seeds.add("heap", &[0, 4, 0], &heap);
    add_fractal_heap_seeds(seeds);
}

fn add_fractal_heap_seeds(seeds: &mut Seeds) {
    let filters = FilterPipelineMessage {
        version: 2,
        filters: vec![FilterSpec { id: 1, params: vec![6], ..Default::default() }],
    };
    let filtered = Some(FractalHeapFilterInfo { root_stored_size: 300, root_filter_mask: 0, filters });
    let header = FractalHeapHeader { root: SEED_ADDR, root_rows: 2, ..Default::default() };
    seeds.add_checksummed("fractal_heap", &[0, 0, 1, 2], &header);
    seeds.add_checksummed(
        "fractal_heap",
        &[0, 0, 77, 0],
        &FractalHeapHeader { filter_info: filtered.clone(), ..header.clone() },
    );
    for checksums in [true, false] {
        let header = FractalHeapHeader { has_direct_block_checksums: checksums, ..header.clone() };
        let mut block = header.blank_direct_block(64);
        block.data = vec![3; 64 - header.direct_block_overhead(WIDTHS)];
        if checksums {
            seeds.add_checksummed("fractal_heap", &[0, 1, 16, 0], &block);
        } else {
            seeds.add("fractal_heap", &[0, 1, 16, 1], &block);
        }
    }
    for (b, filtered) in [(0, None), (2, filtered.clone())] {
        let header = FractalHeapHeader { filter_info: filtered, ..header.clone() };
        let block = header.blank_indirect_block(2, WIDTHS).with_undefined_children(WIDTHS);
        seeds.add_checksummed("fractal_heap", &[0, 2, 2, b], &block);
    }
    for (id_len, place) in [
        (7, HeapObjectLocation::Managed { offset: 22, length: 50 }),
        (7, HeapObjectLocation::HugeIndirect(3)),
        (7, HeapObjectLocation::Tiny(vec![1, 2])),
        (20, HeapObjectLocation::HugeDirect { addr: SEED_ADDR, length: 5000, filter_mask: 0, size: 5000 }),
        (20, HeapObjectLocation::Tiny(vec![4; 18])),
    ] {
        let header = FractalHeapHeader { id_len, ..header.clone() };
        let a = u8::try_from(id_len).unwrap();
        seeds.add("fractal_heap", &[0, 3, a, 0], &header.id_format(WIDTHS).id_of(place));
    }
    seeds.add("fractal_heap", &[0, 4, 0, 0], &DoublingTable::ATTRIBUTES);
}

fn add_array_seeds(seeds: &mut Seeds) {
    let (header, block_offset_width, block_offset) = (SEED_ADDR, Width::FOUR, 16);
    seeds.add_checksummed("array", &[0, 0, 0, 0], &ExtensibleArrayHeader { used_index_end: 9, ..Default::default() });
    seeds.add_checksummed(
        "array",
        &[0, 5, 0, 0],
        &FixedArrayHeader { element_count: 9, data_block: SEED_ADDR, ..Default::default() },
    );
    for (b, format) in [(0, ChunkEntryFormat::Unfiltered), (4, ChunkEntryFormat::Filtered(Width::FOUR))] {
        let elements = || ChunkEntryTable::undefined(2, format, Width::EIGHT);
        let index = ExtensibleArrayIndexBlock::new(header, format, Width::EIGHT, 2, 6, 25);
        seeds.add_checksummed("array", &[0, 1, 2, b], &index);
        let (written_pages, data_blocks) = (PageBitmap::zeros(b.into()), AddrTable::undefined(2, Width::EIGHT));
        let block =
            ExtensibleArraySuperBlock { format, header, block_offset_width, block_offset, written_pages, data_blocks };
        seeds.add_checksummed("array", &[0, 2, 2, b], &block);
        seeds.add_checksummed(
            "array",
            &[0, 3, 2, b],
            &ExtensibleArrayDataBlock { header, block_offset_width, block_offset, elements: elements() },
        );
        seeds.add_checksummed("array", &[0, 4, 2, b], &ArrayDataBlockPage { elements: elements() });
        let block = FixedArrayDataBlock { header, written_pages: PageBitmap::zeros(b.into()), elements: elements() };
        seeds.add_checksummed("array", &[0, 6, 2, b], &block);
    }
}

fn add_free_space_seeds(seeds: &mut Seeds) {
    let index =
        SharedMessageIndex { message_type_flags: 8, max_list_messages: 3, message_count: 1, ..Default::default() };
    seeds.add_checksummed("space", &[0, 0, 2, 0], &SharedMessageTable { index_count: 2, indexes: vec![index; 2] });
    let place = SharedMessageLocation::Header { kind: MessageType::DATATYPE, index_in_kind: 1, header: SEED_ADDR };
    let messages = vec![SharedMessageRecord::default(), SharedMessageRecord { hash: 3, place }];
    seeds.add_checksummed("space", &[0, 1, 2, 2], &SharedMessageList { capacity: 2, message_count: 2, messages });
    for (kind, client) in [(3, FreeSpaceClient::File), (4, FreeSpaceClient::FractalHeap)] {
        let blocks = (client == FreeSpaceClient::FractalHeap).then(FreeHeapBlockRun::default);
        let section = FreeSection { offset: 800, class: 1, blocks };
        let mut header =
            FreeSpaceHeader { client, stored_section_count: 2, section_list_addr: SEED_ADDR, ..Default::default() };
        let groups = vec![SameSizeSections { size: 30, sections: vec![section; 2] }];
        let fill = |header: &FreeSpaceHeader| {
            let mut list = header.blank_section_list();
            (list.header, list.groups) = (SEED_ADDR, groups.clone());
            list
        };
        header.section_list_used_bytes = fill(&header).encoded_size(WIDTHS) as u64;
        seeds.add_checksummed("space", &[0, 2, 0, 0], &header);
        seeds.add_checksummed(
            "space",
            &[0, kind, 2, u8::try_from(header.section_list_used_bytes).unwrap()],
            &fill(&header),
        );
    }
    let entry = CacheImageEntry {
        child_count: 1,
        parents: vec![SEED_ADDR],
        addr: SEED_ADDR,
        image: vec![1, 2, 3],
        ..Default::default()
    };
    seeds.add_checksummed("space", &[0, 5, 0, 0], &CacheImage::new(vec![entry; 2], WIDTHS));
    seeds.add("space", &[0, 6, 0, 0], &DriverInfoBlock { driver: *b"NCSAfami", data: vec![0; 8] });
}

fn add_indirect_block_seeds(seeds: &mut Seeds) {
    let points = Selection::Points(vec![[3u64, 4].as_slice().into()]);
    let slab = Hyperslab {
        start: [1u64, 2].as_slice().into(),
        stride: [9u64, 9].as_slice().into(),
        count: [2u64, UNLIMITED].as_slice().into(),
        block: [1u64, 3].as_slice().into(),
    };
    let block = Selection::block(&[1, 2], &[3, 4]);
    for profile in [LibVer::V18, LibVer::V112] {
        for selection in [points.clone(), Selection::Hyperslab(slab.clone()), block.clone(), Selection::None] {
            seeds.add("indirect", &[0, 0], &StoredSelection::new(profile, 2, selection));
        }
    }
    let stored = StoredSelection::new(LibVer::V112, 2, block);
    let mapping = |file: &str| VirtualMapping {
        file: std::sync::Arc::new(file.into()),
        dataset: std::sync::Arc::new("/entry/data".into()),
        source: StoredSelection::default(),
        target: stored.clone(),
    };
    let mappings = vec![mapping("other-%b.h5"), mapping("."), mapping("other-%b.h5")];
    for version in [0, 1] {
        seeds.add_checksummed("indirect", &[0, 1], &VirtualLayout { version, mappings: mappings.clone() });
    }
    let place = GlobalHeapId { collection: SEED_ADDR, index: 2 };
    seeds.add("indirect", &[0, 2], &VarLenElement { length: 5, place });
    seeds.add("indirect", &[0, 3], &OldRegionReferenceBlob { dataset: SEED_ADDR, selection: stored.clone() });
    let blob = ReferenceValue::Blob { kind: ReferenceKind::Attribute, external: true, length: 30, place };
    for value in [blob, ReferenceValue::LocalObject(vec![7; 8]), ReferenceValue::Null] {
        seeds.add("indirect", &[0, 4], &ReferenceElement { size: 18, value });
    }
    let token = vec![7; 8];
    let file = Some(Name::from("f.h5"));
    let object = ReferenceBlob { token: token.clone(), file: file.clone(), part: ReferencedPart::Object };
    seeds.add("indirect", &[0, 5], &object);
    let part = ReferencedPart::Region(stored);
    seeds.add("indirect", &[0, 6], &ReferenceBlob { token: token.clone(), file: None, part: part.clone() });
    seeds.add("indirect", &[0, 7], &ReferenceBlob { token: token.clone(), file, part });
    let part = ReferencedPart::Attribute("units".into());
    seeds.add("indirect", &[0, 8], &ReferenceBlob { token, file: None, part });
    let cache = SymbolTableScratchPad::Group { btree: SEED_ADDR, heap: SEED_ADDR };
    seeds.add("indirect", &[0, 9], &SymbolTableEntry { name_offset: 8, header: SEED_ADDR, cache });
}

/// Structures of the other targets that have a signature.
fn add_dump_seeds(seeds: &mut Seeds) {
    let context = dump::DumpContext { chunk_rank: Some(1), ..Default::default() };
    let known = |seed: &Seed| {
        dump::dump_any(&seed.data[seed.structure_start..], &context).is_some_and(|dump| dump.result.is_ok())
    };
    let found: Vec<_> = seeds.0.iter().filter(|seed| known(seed)).cloned().collect();
    for seed in found {
        seeds.add_bytes("dump", &[0, 1, 0], seed.data[seed.structure_start..].to_vec(), 0);
    }
    let tree = Btree2Header { node_size: 96, depth: 2, root: SEED_ADDR, root_record_count: 1, ..Default::default() };
    let header = encode(&tree, WIDTHS).unwrap();
    let len = u8::try_from(header.len()).unwrap();
    let leaf = seeds.0.iter().find(|seed| seed.target == "btree2" && seed.data[1] == 12).cloned().unwrap();
    seeds.add_bytes("dump", &[0, 1, len], [&header[..], &leaf.data[leaf.structure_start..]].concat(), 0);
}
