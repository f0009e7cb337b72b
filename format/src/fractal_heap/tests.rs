use h5live_model::FilterSpec;

use super::*;
use crate::messages::FilterPipelineMessage;
use crate::{Addr, ChunkIndexEntry, Fault, Width, Widths, decode, decode_with, encode};

const WIDTHS: Widths = Widths { offset: Width::EIGHT, length: Width::EIGHT };

fn filtered() -> FractalHeapHeader {
    let deflate = FilterSpec { id: 1, params: vec![6], ..Default::default() };
    let filters = FilterPipelineMessage { version: 2, filters: vec![deflate] };
    let filtered = Some(FractalHeapFilterInfo { root_stored_size: 300, root_filter_mask: 1, filters });
    FractalHeapHeader { filter_info: filtered, ..Default::default() }
}

#[test]
fn header_comes_back_from_bytes() {
    for header in [FractalHeapHeader::default(), filtered()] {
        for widths in [WIDTHS, Widths { offset: Width::FOUR, length: Width::FOUR }] {
            let bytes = encode(&header, widths).unwrap();
            assert_eq!(decode::<FractalHeapHeader>(&bytes, widths).unwrap(), header);
            assert_eq!(FractalHeapHeader::stated_size(&bytes, widths).unwrap(), bytes.len());
        }
    }
}

#[test]
fn table_of_links_has_the_rows_of_libhdf5() {
    let table = DoublingTable::LINKS;
    assert_eq!((table.direct_rows(), table.max_rows()), (9, 22));
    assert_eq!((0..4).map(|row| table.row_block_size(row).unwrap()).collect::<Vec<_>>(), [512, 512, 1024, 2048]);
    assert_eq!((0..4).map(|row| table.row_offset_in_parent(row).unwrap()).collect::<Vec<_>>(), [0, 2048, 4096, 8192]);
    assert_eq!((table.row_block_size(8), table.child_rows(8)), (Some(65_536), None));
    assert_eq!((table.row_block_size(9), table.child_rows(9)), (Some(131_072), Some(7)));
    assert_eq!(DoublingTable::ATTRIBUTES.offset_width().bytes(), 5);
}

#[test]
fn every_offset_is_in_the_block_that_begins_before_it() {
    for table in [DoublingTable::LINKS, DoublingTable::ATTRIBUTES] {
        for offset in (0..1_000_000).step_by(77).chain([u32::MAX.into()]) {
            let (row, column, inside) = table.row_column_and_offset(offset).unwrap();
            assert_eq!(table.block_offset_in_parent(row, column).unwrap() + inside, offset);
            assert!(inside < table.row_block_size(row).unwrap() && column < table.column_count);
        }
    }
}

#[test]
fn blocks_are_known_by_their_offset() {
    let table = DoublingTable::LINKS;
    assert_eq!(table.direct_block_size_at(0, 0), Some(512));
    assert_eq!(table.direct_block_size_at(4096, 4), Some(1024));
    let child = table.block_offset_in_parent(9, 2).unwrap();
    assert_eq!((table.indirect_block_rows_at(0, 12), table.indirect_block_rows_at(child, 12)), (Some(12), Some(7)));
    assert_eq!(table.direct_block_size_at(child + 2048, 12), Some(512));
    let deeper = child + table.block_offset_in_parent(3, 1).unwrap();
    assert_eq!((table.direct_block_size_at(deeper, 12), table.indirect_block_rows_at(deeper, 12)), (Some(2048), None));
}

#[test]
fn refuses_tables_that_are_not_powers_of_two() {
    let good = DoublingTable::LINKS;
    for bad in [
        DoublingTable { column_count: 3, ..good },
        DoublingTable { column_count: 0, ..good },
        DoublingTable { start_block_bytes: 0, ..good },
        DoublingTable { max_direct_block_bytes: 256, ..good },
        DoublingTable { heap_offset_bits: 10, ..good },
        DoublingTable { heap_offset_bits: 65, ..good },
        DoublingTable { start_root_rows: 23, ..good },
        DoublingTable { column_count: 4096, max_direct_block_bytes: 512, ..good },
    ] {
        assert!(encode(&bad, WIDTHS).is_err(), "{bad:?}");
    }
}

#[test]
fn direct_blocks_come_back_from_bytes() {
    for checksums in [true, false] {
        let header = FractalHeapHeader { has_direct_block_checksums: checksums, ..Default::default() };
        let overhead = header.direct_block_overhead(WIDTHS);
        let mut block = header.blank_direct_block(512);
        block.heap = Addr::new(800);
        block.offset_in_heap = 1024;
        block.data = vec![0; 512 - overhead];
        let first = 1024 + overhead as u64;
        block.object_mut(first, 3).unwrap().copy_from_slice(b"abc");
        let bytes = encode(&block, WIDTHS).unwrap();
        assert_eq!(bytes.len(), 512);
        let decoded = decode_with(header.blank_direct_block(512), &bytes, WIDTHS).unwrap();
        assert_eq!(decoded, block);
        assert_eq!(decoded.object(first, 3), Some(&b"abc"[..]));
        assert_eq!((decoded.object(first - 1, 1), decoded.object(1024 + 512, 1)), (None, None));
        assert!(decoded.object(1024 + 510, 2).is_some() && decoded.object(1024 + 510, 3).is_none());
    }
}

#[test]
fn checksum_of_a_direct_block_covers_all_of_it() {
    let header = FractalHeapHeader::default();
    let mut block = header.blank_direct_block(64);
    block.data = vec![7; 64 - header.direct_block_overhead(WIDTHS)];
    let bytes = encode(&block, WIDTHS).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_with(header.blank_direct_block(64), &flipped, WIDTHS).is_err(), "bit {bit}");
    }
    for len in 0..bytes.len() {
        assert!(decode_with(header.blank_direct_block(64), &bytes[..len], WIDTHS).is_err());
    }
}

#[test]
fn indirect_blocks_come_back_from_bytes() {
    for header in [FractalHeapHeader::default(), filtered()] {
        for rows in [1, 4, 12] {
            let mut block = header.blank_indirect_block(rows, WIDTHS).with_undefined_children(WIDTHS);
            let size = if header.filter_info.is_some() { 55 } else { 0 };
            assert!(block.direct.set(3, ChunkIndexEntry { addr: Addr::new(77), stored_size: size, filter_mask: 0 }));
            assert_eq!(block.indirect.set(2, Addr::new(99)), rows > 9);
            let bytes = encode(&block, WIDTHS).unwrap();
            assert_eq!(bytes.len(), block.size(WIDTHS));
            assert_eq!(decode_with(header.blank_indirect_block(rows, WIDTHS), &bytes, WIDTHS).unwrap(), block);
            assert!(decode_with(header.blank_indirect_block(rows + 1, WIDTHS), &bytes, WIDTHS).is_err());
        }
    }
}

#[test]
fn ids_come_back_from_bytes() {
    let managed = HeapObjectLocation::Managed { offset: 0x1234, length: 77 };
    let huge =
        |filter_mask, size| HeapObjectLocation::HugeDirect { addr: Addr::new(800), length: 5000, filter_mask, size };
    let tiny = |len: usize| HeapObjectLocation::Tiny((0..len).map(|i| i as u8).collect());
    for (id_len, filtered, places) in [
        (7, false, vec![managed.clone(), HeapObjectLocation::HugeIndirect(5), tiny(1), tiny(6)]),
        (8, true, vec![managed.clone(), HeapObjectLocation::HugeIndirect(5), tiny(7)]),
        (17, false, vec![managed.clone(), huge(0, 5000), tiny(16)]),
        (18, false, vec![huge(0, 5000), tiny(16)]),
        (29, true, vec![managed.clone(), huge(3, 9000), tiny(1), tiny(27)]),
        (600, true, vec![huge(3, 9000), tiny(300), tiny(598)]),
    ] {
        let filtered = if filtered { self::filtered().filter_info } else { None };
        let header = FractalHeapHeader { id_len, filter_info: filtered, ..Default::default() };
        let shape = header.id_format(WIDTHS);
        for place in places {
            let id = shape.id_of(place);
            let bytes = encode(&id, WIDTHS).unwrap();
            assert_eq!(bytes.len(), usize::from(id_len));
            assert_eq!(decode_with(shape.id_of(HeapObjectLocation::default()), &bytes, WIDTHS).unwrap(), id);
        }
        assert!(encode(&shape.id_of(tiny(shape.max_tiny_object_bytes() + 1)), WIDTHS).is_err());
    }
}

#[test]
fn ids_of_links_take_seven_bytes() {
    let shape = FractalHeapHeader::default().id_format(WIDTHS);
    assert_eq!((shape.offset_width, shape.length_width), (Width::FOUR, Width::TWO));
    let bytes = encode(&shape.id_of(HeapObjectLocation::Managed { offset: 22, length: 13 }), WIDTHS).unwrap();
    assert_eq!(bytes, [0, 22, 0, 0, 0, 13, 0]);
    let error = decode_with(shape.id_of(HeapObjectLocation::default()), &[0x40, 0, 0, 0, 0, 0, 0], WIDTHS).unwrap_err();
    assert_eq!(error.fault, Fault::UnsupportedVersion { allowed: 0..=0, found: 1 });
}

#[test]
fn slots_are_found_by_size_and_cover_the_space_between() {
    let table = DoublingTable::LINKS;
    let slot = |start, size| Some(HeapBlockSlot { start, size });
    assert_eq!(table.first_direct_slot_from(0, 512), slot(0, 512));
    assert_eq!(table.first_direct_slot_from(512, 1024), slot(4096, 1024));
    assert_eq!(table.first_direct_slot_from(512, 2048), slot(8192, 2048));
    // Row 9 is the first of indirect blocks: each of 7 rows, the largest of 16 KiB.
    let nine = table.row_offset_in_parent(9).unwrap();
    assert_eq!(table.first_direct_slot_from(nine, 512), slot(nine, 512));
    assert_eq!(table.first_direct_slot_from(nine, 16_384), slot(nine + table.row_offset_in_parent(6).unwrap(), 16_384));
    let eleven = table.row_offset_in_parent(11).unwrap();
    assert_eq!(
        table.first_direct_slot_from(nine, 65_536),
        slot(eleven + table.row_offset_in_parent(8).unwrap(), 65_536)
    );
    let slots = table.covering_slots(table.max_rows(), 512, eleven + 1024);
    assert!(slots.windows(2).all(|pair| pair[0].end() == pair[1].start));
    assert_eq!((slots[0].start, slots.last().unwrap().end()), (512, eleven + 1024));
    assert_eq!(slots.len(), 3 + 8 * 4 + 2 * 4 + 2);
    assert_eq!(table.object_space(1, 22), 4 * (512 - 22));
    assert_eq!(table.object_space(10, 22) - table.object_space(9, 22), 4 * table.object_space(7, 22));
}
