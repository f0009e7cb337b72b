//! Sound files that h5py made, damaged in one place each: the file checker must tell where and what.
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with h5py; without it each test says that it is skipped.
#![allow(missing_docs)]

mod arrays;
mod files;
mod groups;
mod heaps;
mod opening;
mod trees;

use files::File;

/// Structures of which every bit counts, but for what lies behind their checksums.
const CHECKSUMMED: [&str; 17] = [
    "superblock",
    "object header",
    "object header continuation",
    "version 2 B-tree header",
    "version 2 B-tree internal node",
    "version 2 B-tree leaf",
    "fractal heap header",
    "fractal heap indirect block",
    "fractal heap direct block",
    "free space header",
    "free space sections",
    "extensible array header",
    "extensible array index block",
    "extensible array super block",
    "extensible array data block",
    "fixed array header",
    "fixed array data block",
];

#[test]
fn sound_files_are_sound() {
    for name in ["old", "new", "kinds", "managed"] {
        let Some(file) = File::open(name) else { return };
        file.report().expect_clean();
    }
}

#[test]
fn every_flipped_bit_near_the_start_of_a_structure_with_a_checksum_is_found() {
    let mut kinds = std::collections::BTreeSet::new();
    for name in ["kinds", "managed"] {
        let Some(mut file) = File::open(name) else { return };
        for structure in CHECKSUMMED {
            let pieces = file.pieces(structure);
            for piece in [pieces.first(), pieces.get(pieces.len() / 2), pieces.last()].into_iter().flatten() {
                kinds.insert(structure);
                let near = 8 * piece.len.min(14);
                for bit in (0..near).step_by(if structure == "superblock" { 1 } else { 11 }) {
                    file.flip(piece.offset * 8 + bit);
                    let report = file.report();
                    let found = report
                        .findings
                        .iter()
                        .any(|finding| (piece.offset..piece.offset + piece.len).contains(&finding.offset));
                    assert!(found || !report.is_hdf5, "bit {bit} of {piece}: {:?}", report.findings);
                    file.flip(piece.offset * 8 + bit);
                }
            }
        }
        file.report().expect_clean();
    }
    assert_eq!(kinds.len(), CHECKSUMMED.len(), "{kinds:?}");
}

#[test]
fn a_flipped_bit_in_a_page_is_found() {
    let Some(mut file) = File::open("new") else { return };
    for (path, kind) in [("/grows_paged", "extensible array data block"), ("/fixed_paged", "fixed array data block")] {
        let ends = file
            .pieces(kind)
            .into_iter()
            .filter(|piece| piece.object_path == path)
            .map(|piece| piece.offset + piece.len);
        let bit = (ends.max().unwrap() - 10_000) * 8;
        file.flip(bit);
        let findings = file.report().findings;
        assert!(
            findings.iter().any(|f| f.structure.ends_with("page") && f.cause.kind() == "checksum"),
            "{findings:#?}"
        );
        file.flip(bit);
    }
}

#[test]
fn a_signature_that_is_gone_is_found_where_there_is_no_checksum() {
    let Some(mut file) = File::open("old") else { return };
    for structure in ["version 1 B-tree node", "symbol table node", "local heap", "global heap collection"] {
        for piece in file.pieces(structure) {
            file.flip(piece.offset * 8 + 3);
            file.expect(structure, piece.offset, "signature");
            file.flip(piece.offset * 8 + 3);
        }
    }
    file.report().expect_clean();
}

#[test]
fn no_damage_makes_it_panic_or_go_on_for_ever() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for name in ["old", "managed"] {
        let Some(mut file) = File::open(name) else { return };
        let metadata: Vec<_> = file.map().iter().filter(|piece| piece.structure != "chunk").cloned().collect();
        for _ in 0..400 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let piece = &metadata[(random >> 33) as usize % metadata.len()];
            let bit = (piece.offset + (random >> 20) % piece.len) * 8 + random % 8;
            file.flip(bit);
            file.report();
            file.flip(bit);
        }
        file.report().expect_clean();
    }
}

#[test]
fn a_file_that_ends_too_soon_is_found() {
    let Some(mut file) = File::open("old") else { return };
    file.cut(file.len() - 1);
    file.expect("superblock", 0, "count");
    file.cut(4096);
    file.expect("superblock", 0, "count");
    assert!(file.report().findings.len() > 1);
    file.cut(0);
    assert!(!file.report().is_hdf5);
}

#[test]
fn status_flags_of_a_writer_are_found() {
    let Some(mut file) = File::open("new") else { return };
    file.superblock(|superblock| superblock.status = h5live_format::StatusFlags::WRITE);
    file.expect("superblock", 0, "status");
    file.live().expect_clean();
}

#[test]
fn structures_behind_the_announced_end_are_found() {
    let Some(mut file) = File::open("new") else { return };
    let end = file.len() - 100_000;
    file.superblock(|superblock| superblock.end_of_file = h5live_format::Addr::new(end));
    let report = file.report();
    assert!(report.findings.iter().any(|finding| finding.cause.kind() == "beyond-end"));
}
