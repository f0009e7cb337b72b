//! What libhdf5 refuses when it opens an object.

use h5live_format::messages::{
    DataspaceMessage, DatatypeMessage, FillValueMessage, LinkMessage, MessageType, ReferenceCount,
};
use h5live_format::{Addr, FirstHeaderChunk, FractalHeapHeader, MessageFlags, RawMessage};
use h5live_model::{Dataspace, Datatype, FillValue, Shape};

use crate::files::{File, WIDTHS};

const HEADER: &str = "object header";

#[test]
fn numbers_of_few_bits_in_a_header_without_a_checksum_are_found() {
    for (name, found) in [("old", true), ("new", false)] {
        let Some(mut file) = File::open(name) else { return };
        let path = if found { "/chunks" } else { "/grows" };
        let at = file.at(path, HEADER);
        file.message::<DatatypeMessage>(path, |message| match &mut message.datatype {
            Datatype::Float(t) => {
                (t.precision, t.sign_position, t.exponent_position, t.exponent_size) = (15, 14, 10, 4);
                (t.mantissa_position, t.mantissa_size) = (0, 10);
            }
            Datatype::Integer(t) => t.precision = 15,
            other => panic!("{other:?}"),
        });
        match found {
            true => file.expect_only("datatype", at, "rule"),
            false => file.report().expect_clean(),
        }
    }
}

#[test]
fn an_extensible_array_of_a_dataset_that_cannot_grow_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/grows", HEADER);
    file.message::<DataspaceMessage>("/grows", |message| {
        let Dataspace::Simple(shape) = &message.dataspace else { panic!("{message:?}") };
        let max_dims: Vec<u64> = shape.dims().iter().map(|dim| dim + 1).collect();
        message.dataspace = Dataspace::Simple(Shape::with_max(shape.dims(), &max_dims).expect("a shape"));
    });
    file.expect_only("data layout", at, "rule");
}

#[test]
fn messages_that_must_be_known_are_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/few", HEADER);
    let sound = file.get(at, FirstHeaderChunk::default());
    for (flags, found) in [(0x80, true), (0x08, false), (0x10, false)] {
        file.edit(at, FirstHeaderChunk::default(), |header| {
            let last = header.messages.iter_mut().find(|message| message.kind == MessageType::ATTRIBUTE_INFO);
            let last = last.expect("an attribute info message");
            (last.kind, last.flags) = (MessageType::new(0x77), MessageFlags(flags));
        });
        match found {
            true => file.expect_only(HEADER, at, "rule"),
            false => file.report().expect_clean(),
        }
        file.edit(at, FirstHeaderChunk::default(), |header| header.clone_from(&sound));
    }
}

#[test]
fn a_gap_beside_unused_space_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/few", HEADER);
    file.edit(at, FirstHeaderChunk::default(), |header| {
        let unused = header.messages.iter_mut().max_by_key(|message| message.body.len()).expect("a message");
        *unused = RawMessage::unused(unused.body.len() - 3);
    });
    let findings = file.report().findings;
    let is_gap = |rule: &str| rule.contains("gap");
    assert!(findings.iter().any(|found| found.offset == at && is_gap(&found.cause.to_string())), "{findings:#?}");
}

#[test]
fn a_reference_count_in_a_header_of_version_1_is_found() {
    let Some(mut file) = File::open("old") else { return };
    let at = file.at("/chunks", HEADER);
    let count = RawMessage::encode_from(&ReferenceCount { hard_link_count: 1 }, MessageFlags(0), WIDTHS).unwrap();
    file.edit(at, FirstHeaderChunk::default(), |header| {
        let other = header.messages.iter_mut().find(|message| message.kind == MessageType::FILL_VALUE).unwrap();
        let len = other.body.len();
        other.clone_from(&count);
        other.body.resize(len);
    });
    let findings = file.report().findings;
    assert!(findings.iter().any(|found| found.cause.to_string().contains("no reference count")), "{findings:#?}");
}

#[test]
fn a_present_fill_value_without_bytes_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/few", HEADER);
    file.edit(at, FirstHeaderChunk::default(), |header| {
        let message = header.messages.iter_mut().find(|message| message.kind == MessageType::FILL_VALUE).unwrap();
        let mut fill: FillValueMessage = message.decode(WIDTHS).unwrap();
        fill.fill.value = FillValue::Value(Vec::new());
        let changed = RawMessage::encode_from(&fill, MessageFlags(0), WIDTHS).unwrap();
        let longer = changed.body.len() - message.body.len();
        *message = changed;
        let other = header.messages.iter_mut().max_by_key(|message| message.body.len()).unwrap();
        *other = RawMessage::unused(other.body.len() - longer);
    });
    file.expect("fill value", at, "count");
}

#[test]
fn a_name_with_a_nul_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/small", HEADER);
    file.message::<LinkMessage>("/small", |link| link.name = "fi\0st".into());
    file.expect_only("link", at, "rule");
}

#[test]
fn an_address_of_free_space_in_an_old_superblock_is_found() {
    let Some(mut file) = File::open("old") else { return };
    file.superblock(|superblock| superblock.extension_or_free_space = Addr::new(800));
    file.expect_only("superblock", 0, "rule");
}

#[test]
fn an_object_that_is_too_long_for_the_blocks_of_its_heap_is_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/group", "fractal heap header");
    file.edit(at, FractalHeapHeader::default(), |header| header.max_managed_object_bytes = 20);
    let findings = file.report().findings;
    assert!(findings.iter().any(|found| found.offset == at && found.cause.kind() == "limit"), "{findings:#?}");
}
