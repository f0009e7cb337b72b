//! Damage to arrays of chunks, and to datasets.

use h5live_format::messages::{ChunkIndexType, DataspaceMessage, LayoutClass, LayoutMessage};
use h5live_format::{
    Addr, AddrTable, ChunkEntryFormat, ChunkEntryTable, ExtensibleArrayHeader, ExtensibleArrayIndexBlock,
    ExtensibleArraySuperBlock, FixedArrayDataBlock, FixedArrayHeader, PageBitmap, Width,
};
use h5live_model::{Dataspace, Shape};

use crate::files::File;

fn index_block() -> ExtensibleArrayIndexBlock {
    ExtensibleArrayIndexBlock::new(Addr::UNDEFINED, ChunkEntryFormat::Unfiltered, Width::EIGHT, 4, 6, 25)
}

fn fixed_block(elements: usize) -> FixedArrayDataBlock {
    FixedArrayDataBlock {
        header: Addr::UNDEFINED,
        written_pages: PageBitmap::zeros(0),
        elements: ChunkEntryTable::undefined(elements, ChunkEntryFormat::Unfiltered, Width::EIGHT),
    }
}

#[test]
fn two_elements_that_lead_to_one_chunk_are_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/fixed", "fixed array data block");
    file.edit(at, fixed_block(64), |block| {
        let first = block.elements.get(0).unwrap();
        assert!(block.elements.set(1, first));
    });
    let findings = file.report().findings;
    assert!(findings.len() == 1 && findings[0].cause.kind() == "overlap", "{findings:#?}");

    let at = file.at("/grows", "extensible array index block");
    file.edit(at, index_block(), |block| {
        let first = block.elements.get(0).unwrap();
        assert!(block.elements.set(1, first));
    });
    let findings = file.report().findings;
    assert!(findings.len() == 2 && findings[1].cause.kind() == "overlap", "{findings:#?}");
}

#[test]
fn a_chunk_of_another_dataset_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let other = file.pieces("chunk").into_iter().find(|piece| piece.object_path == "/fixed").unwrap();
    let at = file.at("/grows", "extensible array index block");
    file.edit(at, index_block(), |block| {
        let mut first = block.elements.get(0).unwrap();
        first.addr = Addr::new(other.offset);
        assert!(block.elements.set(0, first));
    });
    let findings = file.report().findings;
    assert!(findings.len() == 1, "{findings:#?}");
    let text = findings[0].to_string();
    assert!(text.contains("/fixed") && text.contains("/grows") && text.contains("overlap"), "{text}");
}

#[test]
fn a_chunk_that_lies_in_metadata_or_outside_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/fixed", "fixed array data block");
    let good = file.get(at, fixed_block(64));
    for (addr, kind) in [(0x10, "overlap"), (1 << 40, "beyond-end")] {
        file.edit(at, fixed_block(64), |block| {
            *block = good.clone();
            let mut first = block.elements.get(0).unwrap();
            first.addr = Addr::new(addr);
            assert!(block.elements.set(0, first));
        });
        let findings = file.report().findings;
        assert!(!findings.is_empty() && findings.iter().all(|f| f.cause.kind() == kind), "{findings:#?}");
    }
}

#[test]
fn wrong_sums_of_an_extensible_array_are_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/grows_paged", "extensible array header");
    let good = file.get(at, ExtensibleArrayHeader::default());
    let changes: [fn(&mut ExtensibleArrayHeader); 6] = [
        |header| header.super_block_count += 1,
        |header| header.total_super_block_bytes += 1,
        |header| header.data_block_count -= 1,
        |header| header.total_data_block_bytes += 8,
        |header| header.allocated_element_count -= 1,
        |header| header.used_index_end -= 1,
    ];
    for change in changes {
        file.edit(at, ExtensibleArrayHeader::default(), change);
        file.expect_only("extensible array header", at, "count");
        file.live().expect_clean();
        file.edit(at, ExtensibleArrayHeader::default(), |header| *header = good.clone());
    }
    file.report().expect_clean();
}

#[test]
fn blocks_of_another_array_are_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/grows", "extensible array index block");
    file.edit(at, index_block(), |block| block.header = Addr::new(8));
    file.expect_only("extensible array index block", at, "rule");

    let at = file.at("/grows_paged", "extensible array super block");
    let blank = ExtensibleArraySuperBlock {
        format: ChunkEntryFormat::Unfiltered,
        header: Addr::UNDEFINED,
        block_offset_width: Width::FOUR,
        block_offset: 0,
        written_pages: PageBitmap::zeros(0),
        data_blocks: AddrTable::undefined(4, Width::EIGHT),
    };
    file.edit(at, blank, |block| block.block_offset += 1);
    file.expect("extensible array super block", at, "count");
}

#[test]
fn a_fixed_array_of_another_size_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/fixed", "fixed array header");
    file.edit(at, FixedArrayHeader::default(), |header| header.element_count -= 1);
    file.expect("fixed array header", at, "count");
}

#[test]
fn a_shape_that_its_chunks_do_not_fit_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/fixed", "object header");
    file.message::<DataspaceMessage>("/fixed", |space| {
        space.dataspace = Dataspace::Simple(Shape::with_max(&[30, 26], &[30, 26]).unwrap());
    });
    let index = file.at("/fixed", "fixed array header");
    file.expect("fixed array header", index, "count");
    file.message::<LayoutMessage>("/fixed", |layout| {
        let LayoutClass::Chunked(chunks) = &mut layout.storage else { panic!("chunked") };
        chunks.element_size = 4;
    });
    file.expect("data layout", at, "count");
}

#[test]
fn contiguous_data_of_the_wrong_size_is_found() {
    let Some(mut file) = File::open("managed") else { return };
    let at = file.at("/dataset1", "object header");
    file.message::<LayoutMessage>("/dataset1", |layout| {
        let LayoutClass::Contiguous { size, .. } = &mut layout.storage else { panic!("contiguous") };
        *size -= 8;
    });
    file.expect_only("data layout", at, "count");
}

#[test]
fn datasets_whose_data_overlap_are_found() {
    let Some(mut file) = File::open("managed") else { return };
    let other = file.pieces("contiguous data").into_iter().find(|piece| piece.object_path == "/dataset2").unwrap();
    file.message::<LayoutMessage>("/dataset1", |layout| {
        let LayoutClass::Contiguous { addr, .. } = &mut layout.storage else { panic!("contiguous") };
        *addr = Addr::new(other.offset + 8);
    });
    let findings = file.report().findings;
    assert!(!findings.is_empty() && findings.iter().all(|f| f.cause.kind() == "overlap"), "{findings:#?}");
}

#[test]
fn another_index_than_the_one_that_is_there_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/fixed", "fixed array header");
    file.message::<LayoutMessage>("/fixed", |layout| {
        let LayoutClass::Chunked(chunks) = &mut layout.storage else { panic!("chunked") };
        chunks.index = ChunkIndexType::FixedArray { page_bits: 11 };
    });
    file.expect_only("fixed array header", at, "count");
}
