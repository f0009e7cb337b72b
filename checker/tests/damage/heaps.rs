//! Damage to heaps and to free space.

use h5live_format::{Addr, FractalHeapHeader, FreeSpaceClient, FreeSpaceHeader, FreeSpaceSections, LocalHeapPrefix};

use crate::files::File;

const HEAP: &str = "fractal heap header";

#[test]
fn wrong_sums_of_a_fractal_heap_are_found() {
    let Some(mut file) = File::open("new") else { return };
    for path in ["/group", "/huge"] {
        let at = file.at(path, HEAP);
        let good = file.get(at, FractalHeapHeader::default());
        let changes: [fn(&mut FractalHeapHeader); 8] = [
            |header| header.managed_object_count += 1,
            |header| header.free_bytes += 1,
            |header| header.allocated_space += 512,
            |header| header.managed_space += 512,
            |header| header.huge_object_count += 1,
            |header| header.huge_bytes += 1,
            |header| header.tiny_object_count += 1,
            |header| header.tiny_bytes += 1,
        ];
        for change in changes {
            file.edit(at, FractalHeapHeader::default(), change);
            file.expect_only(HEAP, at, "count");
            file.live().expect_clean();
            file.edit(at, FractalHeapHeader::default(), |header| *header = good.clone());
        }
    }
    file.report().expect_clean();
}

#[test]
fn blocks_of_another_heap_are_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/group", HEAP);
    let header = file.get(at, FractalHeapHeader::default());
    let root = header.root.get().unwrap();
    let context = header.blank_indirect_block(header.root_rows, crate::files::WIDTHS);
    file.edit(root, context, |block| block.heap = Addr::new(8));
    file.expect_only("fractal heap indirect block", root, "rule");
}

#[test]
fn free_blocks_that_overlap_strings_are_found() {
    let Some(mut file) = File::open("old") else { return };
    let at = file.at("/group", "local heap");
    let heap = file.get(at, LocalHeapPrefix::default());
    let data = heap.data.get().unwrap();
    let free = heap.free_list_head.expect("some space is free");
    // The free block begins at the last string.
    let back = free - 8;
    let mut block = file.read(data + free, 16);
    let size = u64::from_le_bytes(block[8..16].try_into().unwrap()) + 8;
    block[8..16].copy_from_slice(&size.to_le_bytes());
    file.write(data + back, &block);
    file.edit(at, LocalHeapPrefix::default(), |heap| heap.free_list_head = Some(back));
    assert!(file.report().findings.iter().any(|finding| finding.structure == "local heap data"));
    file.edit(at, LocalHeapPrefix::default(), |heap| heap.data_size += 1 << 40);
    file.expect("local heap data", data, "beyond-end");
}

#[test]
fn values_that_lead_to_no_object_are_found() {
    let Some(mut file) = File::open("old") else { return };
    let collections = file.pieces("global heap collection");
    for piece in &collections {
        // The first object gets another index.
        let index = file.read(piece.offset + 16, 2);
        file.write(piece.offset + 16, &[0xff, 0x7f]);
        let findings = file.report().findings;
        assert!(!findings.is_empty() && findings.iter().all(|f| f.cause.kind() == "no-object"), "{findings:#?}");
        file.write(piece.offset + 16, &index);
    }
    file.report().expect_clean();
}

#[test]
fn two_heap_objects_of_one_index_are_found() {
    let Some(mut file) = File::open("old") else { return };
    let piece = file.pieces("global heap collection").remove(0);
    // Behind the first object, whose data take at most eight bytes.
    let first = file.read(piece.offset + 16, 2);
    file.write(piece.offset + 16 + 24, &first);
    file.expect("global heap collection", piece.offset, "repeated");
}

#[test]
fn free_sections_over_used_space_are_found() {
    let Some(mut file) = File::open("managed") else { return };
    let used = file.pieces("contiguous data")[0].offset;
    let headers = file.pieces("free space header");
    let mut moved = false;
    for piece in headers {
        let header = file.get(piece.offset, FreeSpaceHeader::default());
        if header.client != FreeSpaceClient::File {
            continue;
        }
        let Some(list) = header.section_list_addr.get() else { continue };
        let context: FreeSpaceSections = header.blank_section_list();
        file.edit(list, context, |list| {
            if let Some(section) = list.groups.last_mut().and_then(|group| group.sections.first_mut()) {
                section.offset = used - 8;
                moved = true;
            }
        });
    }
    assert!(moved);
    let findings = file.report().findings;
    assert!(!findings.is_empty() && findings.iter().all(|f| f.cause.kind() == "overlap"), "{findings:#?}");
}

#[test]
fn wrong_sums_of_free_space_are_found() {
    let Some(mut file) = File::open("managed") else { return };
    let at = file.pieces("free space header")[0].offset;
    file.edit(at, FreeSpaceHeader::default(), |header| header.free_bytes += 8);
    file.expect_only("free space header", at, "count");
    file.edit(at, FreeSpaceHeader::default(), |header| {
        (header.free_bytes, header.section_count) = (header.free_bytes - 8, 99)
    });
    file.expect_only("free space header", at, "count");
}
