//! Engine keys: one for each record, in the order that scans need, and back.

use std::borrow::Cow;

use h5live_kv::layout::{AttributeField, BlobId, EngineKey, EngineKeyRange, MetadataField, RecordKey, key, oid};
use h5live_model::{ObjectId, ObjectKind};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Bytes of which most are those that escaping treats in a special way.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![4 => select(vec![0, 1, 2, 0xfe, 0xff]), 1 => any::<u8>()], 0..12)
}

/// Names that links can have, except that NULs may be in them.
fn name() -> impl Strategy<Value = Cow<'static, [u8]>> {
    bytes().prop_map(Cow::Owned)
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..4u64, 250..260u64, any::<u64>(), Just(u64::MAX)]
}

fn object() -> impl Strategy<Value = ObjectId> {
    let kinds = vec![ObjectKind::Group, ObjectKind::Dataset, ObjectKind::Datatype, ObjectKind::Map];
    let made = (select(kinds), number()).prop_map(|(kind, index)| oid::new(kind, index));
    prop_oneof![4 => made, 1 => any::<u128>().prop_map(ObjectId)]
}

fn record() -> impl Strategy<Value = RecordKey<'static>> {
    let start = || vec(number(), 0..4).prop_map(Cow::Owned);
    prop_oneof![
        select(MetadataField::ALL.to_vec()).prop_map(RecordKey::Metadata),
        Just(RecordKey::AttributeCount),
        Just(RecordKey::NextAttributeOrder),
        number().prop_map(RecordKey::AttributeNameAtRank),
        (select(AttributeField::ALL.to_vec()), name()).prop_map(|(field, name)| RecordKey::Attribute(field, name)),
        Just(RecordKey::LinkCount),
        Just(RecordKey::NextLinkOrder),
        number().prop_map(RecordKey::LinkNameAtRank),
        number().prop_map(RecordKey::LinkTargetAtRank),
        name().prop_map(RecordKey::Link),
        name().prop_map(RecordKey::LinkOrder),
        (start(), any::<u32>()).prop_map(|(start, piece)| RecordKey::ChunkPiece { start, piece }),
        start().prop_map(|start| RecordKey::FilteredChunk { start }),
        name().prop_map(RecordKey::MapRecord),
        any::<[u8; 16]>().prop_map(|uuid| RecordKey::Blob(BlobId(uuid))),
        (name(), name()).prop_map(|(dkey, akey)| RecordKey::Unknown { dkey, akey }).prop_filter("known", is_unknown),
    ]
}

fn is_unknown(record: &RecordKey<'_>) -> bool {
    !is_known(&RecordKey::from_dkey_and_akey(&record.dkey_or_ordered_key(), &record.akey()))
}

fn is_known(record: &RecordKey<'_>) -> bool {
    !matches!(record, RecordKey::Unknown { .. })
}

/// The first piece of a chunk stands for the others: dkey and akey do not say which piece it is.
fn first_piece(record: RecordKey<'_>) -> RecordKey<'_> {
    match record {
        RecordKey::ChunkPiece { start, .. } => RecordKey::ChunkPiece { start, piece: 0 },
        other => other,
    }
}

proptest! {
    #[test]
    fn every_record_comes_back_from_its_engine_key(object in object(), record in record()) {
        let (dkey, akey) = (record.dkey_or_ordered_key().into_owned(), record.akey().into_owned());
        let named = RecordKey::from_dkey_and_akey(&dkey, &akey);
        prop_assert_eq!(&named, &first_piece(record.clone()));
        let engine = EngineKey::new(object, &record);
        prop_assert_eq!(EngineKey::parse(engine.as_bytes()), Ok((object, record)));
    }

    #[test]
    fn records_with_any_dkey_and_akey_have_a_key_of_their_own(object in object(), dkey in bytes(), akey in bytes()) {
        let record = RecordKey::from_dkey_and_akey(&dkey, &akey);
        prop_assert_eq!((&record.dkey_or_ordered_key()[..], &record.akey()[..]), (&dkey[..], &akey[..]));
        let engine = EngineKey::new(object, &record);
        prop_assert_eq!(EngineKey::parse(engine.as_bytes()), Ok((object, record.clone())));
        prop_assert!(is_known(&record) || EngineKey::new(object, &record).as_bytes().contains(&0xf0));
    }

    #[test]
    fn what_parses_is_made_again_and_nothing_panics(bytes in bytes(), object in object(), record in record(), at in any::<prop::sample::Index>(), with in any::<u8>()) {
        let mut mutated = EngineKey::new(object, &record).as_bytes().to_vec();
        let at = at.index(mutated.len());
        mutated[at] = with;
        for key in [&bytes[..], &mutated, &mutated[..at]] {
            if let Ok((object, record)) = EngineKey::parse(key) {
                let again = EngineKey::new(object, &record);
                prop_assert_eq!(again.as_bytes(), key);
            }
        }
    }

    #[test]
    fn records_of_an_object_lie_together(one in object(), other in object(), record in record(), second in record()) {
        let all = key::object_records(one);
        prop_assert!(all.contains(EngineKey::new(one, &record).as_bytes()));
        prop_assert_eq!(all.contains(EngineKey::new(other, &second).as_bytes()), one == other);
    }

    #[test]
    fn links_sort_by_name(group in object(), a in bytes(), b in bytes()) {
        let order = key::link(group, &a).cmp(&key::link(group, &b));
        prop_assert_eq!(order, a.cmp(&b));
        let (a_order, b_key) = (key::link_order(group, &a), key::link(group, &b));
        prop_assert_eq!(a_order < b_key, a < b);
        let after = key::links_after(group, &a);
        for key in [&b_key, &key::link_order(group, &b)] {
            prop_assert_eq!(after.contains(key.as_bytes()), b > a);
            prop_assert!(key::links(group).contains(key.as_bytes()));
        }
    }

    #[test]
    fn attributes_sort_by_name(object in object(), a in bytes(), b in bytes(), of_a in select(AttributeField::ALL.to_vec()), of_b in select(AttributeField::ALL.to_vec())) {
        let (a_key, b_key) = (key::attribute(object, of_a, &a), key::attribute(object, of_b, &b));
        prop_assert_eq!(a_key.cmp(&b_key), a.cmp(&b).then(of_a.cmp(&of_b)));
        prop_assert_eq!(key::attribute_records(object, &a).contains(b_key.as_bytes()), a == b);
        prop_assert!(key::attributes(object).contains(a_key.as_bytes()));
    }

    #[test]
    fn chunks_sort_in_row_major_order(
        dataset in object(), a in vec(number(), 3), b in vec(number(), 3), piece in any::<u32>(), next in any::<u32>(),
    ) {
        let (a_key, b_key) = (key::chunk_piece(dataset, &a, piece), key::chunk_piece(dataset, &b, next));
        prop_assert_eq!(a_key.cmp(&b_key), a.cmp(&b).then(piece.cmp(&next)));
        let filtered = key::filtered_chunk(dataset, &b);
        for key in [&b_key, &filtered] {
            prop_assert_eq!(key::chunks_from(dataset, &a).contains(key.as_bytes()), b >= a);
            prop_assert_eq!(key::chunk_records(dataset, &a).contains(key.as_bytes()), a == b);
            prop_assert!(key::chunks(dataset).contains(key.as_bytes()));
        }
    }

    #[test]
    fn pairs_of_a_map_sort_as_their_keys(map in object(), a in bytes(), b in bytes()) {
        prop_assert_eq!(key::map_record(map, &a).cmp(&key::map_record(map, &b)), a.cmp(&b));
        let found = key::map_record(map, &b);
        prop_assert_eq!(key::map_records_from(map, &a).contains(found.as_bytes()), b >= a);
        prop_assert_eq!(key::map_records_after(map, &a).contains(found.as_bytes()), b > a);
        prop_assert!(key::map_records(map).contains(found.as_bytes()));
    }

    #[test]
    fn sections_do_not_overlap(object in object(), record in record()) {
        let engine = EngineKey::new(object, &record);
        let sections: Vec<EngineKeyRange> = vec![
            key::all_metadata(object), key::attributes(object), key::attribute_names_by_creation_order(object),
            key::links_by_creation_order(object), key::links(object), key::chunks(object), key::map_records(object),
        ];
        let count = sections.iter().filter(|section| section.contains(engine.as_bytes())).count();
        let expected = match record {
            RecordKey::AttributeCount | RecordKey::NextAttributeOrder => 0,
            RecordKey::LinkCount | RecordKey::NextLinkOrder => 0,
            RecordKey::Blob(_) | RecordKey::Unknown { .. } => 0,
            _ => 1,
        };
        prop_assert_eq!(count, expected);
    }

    #[test]
    fn positions_in_the_order_of_creation_sort_as_numbers(group in object(), a in number(), b in number()) {
        prop_assert_eq!(key::link_name_at_rank(group, a).cmp(&key::link_name_at_rank(group, b)), a.cmp(&b));
        prop_assert_eq!(key::attribute_name_at_rank(group, a).cmp(&key::attribute_name_at_rank(group, b)), a.cmp(&b));
        prop_assert!(key::link_name_at_rank(group, a) < key::link_target_at_rank(group, a));
        prop_assert!(key::link_count(group) < key::link_name_at_rank(group, a));
    }
}

#[test]
fn blobs_are_in_the_global_metadata_object() {
    let found = key::blob(BlobId([7; 16]));
    assert!(key::blobs().contains(found.as_bytes()));
    assert_eq!(EngineKey::parse(found.as_bytes()), Ok((oid::GLOBAL_METADATA, RecordKey::Blob(BlobId([7; 16])))));
}

#[test]
fn keys_of_common_records_are_short() {
    let dataset = oid::new(ObjectKind::Dataset, 1000);
    assert_eq!(key::chunk_piece(dataset, &[0, 3], 1).as_bytes(), [0x42, 3, 0xe8, 0x50, 0, 1, 3, 0x10, 0, 0, 0, 1]);
    assert_eq!(key::link(oid::ROOT, b"x").as_bytes(), [1, 1, 0x40, b'x', 0, 1]);
}
