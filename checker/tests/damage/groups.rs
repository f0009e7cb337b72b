//! Damage to groups, links, attributes and object headers.

use h5live_format::messages::{
    AttributeInfo, AttributeMessage, BtreeK, ContinuationMessage, DatatypeMessage, LayoutMessage, LinkInfo,
    LinkMessage, LinkValue, Message, MessageType, ReferenceCount,
};
use h5live_format::{Addr, FirstHeaderChunk, RawMessage, SymbolTableNode, SymbolTableScratchPad};

use crate::files::{File, WIDTHS};

const HEADER: &str = "object header";
const NODE: &str = "symbol table node";

#[test]
fn a_wrong_count_of_links_is_found() {
    let Some(mut file) = File::open("old") else { return };
    for (path, links) in [("/again", 1), ("/group/dataset001", 2), ("/type", 1)] {
        let at = file.at(path, HEADER);
        let before = file.get(at, FirstHeaderChunk::default()).prefix.version_1_reference_count;
        file.edit(at, FirstHeaderChunk::default(), |header| header.prefix.version_1_reference_count = links);
        file.expect_only(HEADER, at, "count");
        file.edit(at, FirstHeaderChunk::default(), |header| header.prefix.version_1_reference_count = before);
    }
    file.report().expect_clean();

    let Some(mut file) = File::open("new") else { return };
    let path = if file.map().iter().any(|piece| piece.object_path == "/again") {
        "/again"
    } else {
        "/group/dataset with a name 007"
    };
    let at = file.at(path, HEADER);
    file.message::<ReferenceCount>(path, |count| count.hard_link_count += 1);
    file.expect_only(HEADER, at, "count");
}

#[test]
fn links_to_nowhere_are_found() {
    let Some(mut file) = File::open("old") else { return };
    let at = file.at("/group", NODE);
    file.edit(at, SymbolTableNode::default(), |node| node.entries[0].header = Addr::new(1 << 40));
    let finding = file.report().findings.remove(0);
    assert_eq!((&*finding.object_path, finding.cause.kind()), ("/group/dataset000", "beyond-end"));
    file.edit(at, SymbolTableNode::default(), |node| node.entries[0].header = Addr::UNDEFINED);
    file.expect(NODE, at, "undefined");
    let chunk = file.pieces("chunk")[0].offset;
    file.edit(at, SymbolTableNode::default(), |node| node.entries[0].header = Addr::new(chunk));
    assert!(file.report().findings.iter().any(|finding| finding.object_path == "/group/dataset000"));
}

#[test]
fn names_that_are_out_of_order_or_used_twice_are_found() {
    let Some(mut file) = File::open("old") else { return };
    let at = file.at("/group", NODE);
    let good = file.get(at, SymbolTableNode::default());
    file.edit(at, SymbolTableNode::default(), |node| node.entries.swap(0, 1));
    file.expect_only(NODE, at, "order");
    file.edit(at, SymbolTableNode::default(), |node| {
        node.entries.clone_from(&good.entries);
        node.entries[1].name_offset = node.entries[0].name_offset;
    });
    assert!(!file.report().is_clean());
}

#[test]
fn a_symbol_table_that_an_entry_states_wrongly_is_found() {
    let Some(mut file) = File::open("old") else { return };
    let at = file.at("/", NODE);
    file.edit(at, SymbolTableNode::default(), |node| {
        let group = node.entries.iter_mut().find_map(|entry| match &mut entry.cache {
            SymbolTableScratchPad::Group { btree, .. } => Some(btree),
            _ => None,
        });
        *group.expect("a group") = Addr::new(8);
    });
    let findings = file.report().findings;
    assert!(findings.len() == 1 && findings[0].structure == "symbol table entry", "{findings:#?}");
}

#[test]
fn links_and_attributes_of_one_name_are_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/small", HEADER);
    file.edit(at, FirstHeaderChunk::default(), |header| {
        let links = header.messages.iter_mut().filter(|message| message.kind == MessageType::LINK);
        for message in links {
            let mut link: LinkMessage = message.decode(WIDTHS).unwrap();
            if link.name == "first" {
                link.name = "second".into();
                // The name of the padding is as long as is needed.
                message.body = h5live_format::encode(&link, WIDTHS).unwrap().into();
                header.prefix.first_chunk_messages_size += 1;
            }
        }
    });
    // The header grew into what follows; only its own findings count.
    assert!(file.report().findings.iter().any(|f| f.offset == at && f.cause.kind() == "repeated"));

    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/few", HEADER);
    file.edit(at, FirstHeaderChunk::default(), |header| {
        let attributes: Vec<_> = header
            .messages
            .iter()
            .enumerate()
            .filter(|(_, m)| m.kind == MessageType::ATTRIBUTE)
            .map(|(i, _)| i)
            .collect();
        let (first, second) = (attributes[0], attributes[1]);
        let mut attribute: AttributeMessage = header.messages[second].decode(WIDTHS).unwrap();
        let name = header.messages[first].decode::<AttributeMessage>(WIDTHS).unwrap().name;
        let pad = attribute.name.as_bytes().len() - name.as_bytes().len();
        attribute.name = name;
        let mut body = h5live_format::encode(&attribute, WIDTHS).unwrap();
        body.resize(body.len() + pad, 0);
        header.messages[second].body = body.into();
    });
    file.expect_only("attribute", at, "repeated");
}

#[test]
fn an_object_that_lacks_a_message_is_found() {
    let Some(mut file) = File::open("managed") else { return };
    let at = file.at("/dataset1", HEADER);
    for kind in [DatatypeMessage::TYPE, LayoutMessage::TYPE] {
        file.edit(at, FirstHeaderChunk::default(), |header| {
            let message = header.messages.iter_mut().find(|message| message.kind == kind).unwrap();
            *message = RawMessage::unused(message.body.len());
        });
        file.expect(HEADER, at, "missing");
    }
}

#[test]
fn a_message_that_is_there_twice_is_found() {
    let Some(mut file) = File::open("managed") else { return };
    let at = file.at("/dataset1", HEADER);
    file.edit(at, FirstHeaderChunk::default(), |header| {
        let datatype = header.messages.iter().find(|message| message.kind == MessageType::DATATYPE).unwrap().clone();
        let room = datatype.body.len();
        let space = header.messages.iter_mut().find(|m| m.is_unused() && m.body.len() >= room + 8);
        if let Some(space) = space {
            space.kind = MessageType::DATATYPE;
            space.body[..room].copy_from_slice(&datatype.body);
        } else {
            let other = header.messages.iter_mut().find(|m| m.kind == MessageType::FILL_VALUE).unwrap();
            other.kind = MessageType::LAYOUT;
        }
    });
    file.expect(HEADER, at, "repeated");
}

#[test]
fn a_header_that_goes_on_in_itself_is_found() {
    let Some(mut file) = File::open("old") else { return };
    let piece = file.pieces("object header continuation").remove(0);
    let at = file.at(&piece.object_path, HEADER);
    file.message::<ContinuationMessage>(&piece.object_path, |continuation| continuation.addr = Addr::new(at));
    file.expect("object header continuation", at, "overlap");
}

#[test]
fn creation_orders_beyond_the_largest_are_found() {
    let Some(mut file) = File::open("new") else { return };
    let at = file.at("/group", HEADER);
    file.message::<LinkInfo>("/group", |info| info.next_creation_order = Some(400));
    let findings = file.report().findings;
    assert!(
        findings.len() > 90 && findings.iter().all(|f| f.offset == at && f.cause.kind() == "limit"),
        "{findings:#?}"
    );
}

#[test]
fn an_index_that_is_not_there_is_found() {
    let Some(mut file) = File::open("new") else { return };
    file.message::<LinkInfo>("/group", |info| info.name_index = Addr::UNDEFINED);
    assert!(file.report().findings.iter().any(|finding| finding.cause.kind() == "undefined"));
    let Some(mut file) = File::open("new") else { return };
    file.message::<AttributeInfo>("/huge", |info| info.heap = Addr::new(info.heap.get().unwrap() + 1));
    assert!(file.report().findings.iter().any(|finding| finding.structure == "fractal heap header"));
}

#[test]
fn nodes_hold_as_many_entries_as_the_superblock_says() {
    let Some(mut file) = File::open("old") else { return };
    file.superblock(|superblock| superblock.btree_k = BtreeK { group_leaf: 1, ..superblock.btree_k });
    assert!(file.report().findings.iter().any(|finding| finding.structure == NODE && finding.cause.kind() == "value"));
}

#[test]
fn a_link_that_leads_to_a_group_above_is_sound() {
    let Some(file) = File::open("new") else { return };
    let found = file.get(file.at("/small", HEADER), FirstHeaderChunk::default());
    let link = found.messages.iter().find(|message| message.kind == MessageType::LINK).unwrap();
    let link: LinkMessage = link.decode(WIDTHS).unwrap();
    assert!(matches!(link.value, LinkValue::Hard(_)));
    file.report().expect_clean();
}
