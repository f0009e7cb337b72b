use h5live_model::Dataspace;

use super::*;

const WIDTHS: Widths = Widths { offset: Width::EIGHT, length: Width::EIGHT };

fn sound(bytes: &[u8], context: &DumpContext<'_>, name: &str) -> Vec<Field> {
    let dump = dump_any(bytes, context).unwrap();
    assert_eq!((dump.name, dump.result), (name, Ok(())));
    assert_eq!(dump.fields.iter().map(|field| field.size).sum::<usize>(), bytes.len(), "{name}");
    dump.fields
}

#[test]
fn messages_of_an_object_header_are_shown_by_field() {
    let space = DataspaceMessage::new(LibVer::V110, Dataspace::Scalar);
    let comment = Comment { text: "hello".into() };
    let messages = vec![
        RawMessage::encode_from(&space, MessageFlags::default(), WIDTHS).unwrap(),
        RawMessage::encode_from(&comment, MessageFlags::default(), WIDTHS).unwrap(),
        RawMessage::unused(20),
    ];
    let size = messages.iter().map(|message| message.body.len() as u64 + 4).sum();
    let header = FirstHeaderChunk {
        prefix: ObjectHeaderPrefix { first_chunk_messages_size: size, ..Default::default() },
        messages: messages.clone(),
    };
    let fields = sound(&encode(&header, WIDTHS).unwrap(), &DumpContext::default(), "object header");
    let text = fields.iter().find(|field| field.record == "comment").unwrap();
    assert_eq!((text.field, text.value.as_str()), ("text", "\"hello\""));
    let chunk = ContinuationChunk { version: 2, attribute_order_tracked: false, chunk_len: size + 8, messages };
    let fields = sound(&encode(&chunk, WIDTHS).unwrap(), &DumpContext::default(), "object header continuation");
    assert!(fields.iter().any(|field| field.record == "dataspace"));
}

#[test]
fn nodes_are_read_by_the_header_of_their_tree() {
    let header = Btree2Header {
        depth: 2,
        root: Addr::new(8),
        root_record_count: 2,
        total_record_count: 300,
        ..Default::default()
    };
    let geometry = Btree2Geometry::from_header(&header, WIDTHS).unwrap();
    let mut leaf = geometry.empty_leaf();
    let mut node = geometry.blank_internal(2, 0);
    for i in 0..7 {
        assert!(leaf.records.insert(i, &LinkNameRecord { hash: 99, heap_id: [3; 7] }, WIDTHS));
        assert!(node.records.insert(i, &LinkNameRecord { hash: 77, heap_id: [5; 7] }, WIDTHS));
    }
    node.children = vec![Btree2ChildPointer { addr: Addr::new(512), record_count: 40, subtree_record_count: 500 }; 8];
    let header = encode(&header, WIDTHS).unwrap();
    let known = DumpContext { owner_header: Some(&header), ..Default::default() };
    let (leaf, node) = (encode(&leaf, WIDTHS).unwrap(), encode(&node, WIDTHS).unwrap());
    sound(&leaf, &known, "version 2 B-tree leaf");
    let fields = sound(&node, &known, "version 2 B-tree internal node");
    assert_eq!(fields.iter().filter(|field| field.field == "records below child").count(), 8);
    let dump = dump_any(&leaf, &DumpContext::default()).unwrap();
    assert_eq!((dump.name, dump.fields.len()), ("version 2 B-tree leaf", 3));
}

#[test]
fn blocks_are_read_by_the_header_of_their_heap() {
    let header = FractalHeapHeader { root_rows: 4, ..Default::default() };
    let mut direct = header.blank_direct_block(1024);
    direct.offset_in_heap = 4096;
    direct.data = vec![6; 1024 - header.direct_block_overhead(WIDTHS)];
    let indirect = encode(&header.blank_indirect_block(4, WIDTHS).with_undefined_children(WIDTHS), WIDTHS).unwrap();
    let bytes = encode(&header, WIDTHS).unwrap();
    let known = DumpContext { owner_header: Some(&bytes), ..Default::default() };
    sound(&bytes, &DumpContext::default(), "fractal heap header");
    sound(&encode(&direct, WIDTHS).unwrap(), &known, "fractal heap direct block");
    sound(&indirect, &known, "fractal heap indirect block");
}

#[test]
fn blocks_are_read_by_the_header_of_their_array() {
    let array = ExtensibleArrayHeader::default();
    let block = ExtensibleArrayIndexBlock::new(Addr::new(8), array.format, WIDTHS.offset, 4, 6, 25);
    let header = encode(&array, WIDTHS).unwrap();
    let known = DumpContext { owner_header: Some(&header), ..Default::default() };
    sound(&encode(&block, WIDTHS).unwrap(), &known, "extensible array index block");
    for elements in [7, 3000] {
        let array = FixedArrayHeader { element_count: elements, ..Default::default() };
        let (pages, stored) = if elements > 1024 { (1, 0) } else { (0, 7) };
        let block = FixedArrayDataBlock {
            header: Addr::new(8),
            written_pages: PageBitmap::zeros(pages),
            elements: ChunkEntryTable::undefined(stored, array.format, WIDTHS.offset),
        };
        let header = encode(&array, WIDTHS).unwrap();
        let known = DumpContext { owner_header: Some(&header), ..Default::default() };
        sound(&encode(&block, WIDTHS).unwrap(), &known, "fixed array data block");
    }
}

#[test]
fn other_structures_are_known_by_their_signature() {
    let context = DumpContext::default();
    let superblock = Superblock { end_of_file: Addr::new(800), ..Default::default() };
    sound(&encode(&superblock, WIDTHS).unwrap(), &context, "superblock");
    sound(&encode(&SymbolTableNode::default(), WIDTHS).unwrap(), &context, "symbol table node");
    sound(&encode(&GlobalHeapCollection::default(), WIDTHS).unwrap(), &context, "global heap collection");
    sound(&encode(&LocalHeapPrefix { data_size: 8, ..Default::default() }, WIDTHS).unwrap(), &context, "local heap");
    let group = Btree1Node::<Btree1GroupKey>::empty(16, (), WIDTHS);
    sound(&encode(&group, WIDTHS).unwrap(), &context, "version 1 B-tree node");
    let chunks = encode(&Btree1Node::<Btree1ChunkKey>::empty(32, Btree1ChunkRank(2), WIDTHS), WIDTHS).unwrap();
    sound(&chunks, &DumpContext { chunk_rank: Some(2), ..context }, "version 1 B-tree node");
    assert!(dump_any(&chunks, &context).unwrap().result.is_err());
    let table = SharedMessageTable { index_count: 3, indexes: vec![SharedMessageIndex::default(); 3] };
    sound(&encode(&table, WIDTHS).unwrap(), &context, "shared message table");
    let list = SharedMessageList { capacity: 4, message_count: 4, messages: vec![SharedMessageRecord::default(); 4] };
    sound(&encode(&list, WIDTHS).unwrap(), &context, "shared message list");
    assert_eq!(dump_any(b"no structure", &context), None);
    assert_eq!(dump_any(b"OHD", &context), None);
}

#[test]
fn damage_is_shown_with_its_place() {
    let superblock = Superblock { end_of_file: Addr::new(800), ..Default::default() };
    let mut bytes = encode(&superblock, WIDTHS).unwrap();
    bytes[20] ^= 1;
    let dump = dump_any(&bytes, &DumpContext::default()).unwrap();
    assert!(matches!(dump.result, Err(DecodeError { offset_in_structure: 44, fault: Fault::Checksum { .. }, .. })));
    assert_eq!(dump.fields.last().map(|field| field.value.as_str()), Some("does not match"));
}
