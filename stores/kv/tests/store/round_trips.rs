//! What is described comes back from its records, and damaged records are refused without a panic.

use crate::common;

use h5live_kv::layout::encode::{decode_dataspace, decode_datatype, encode_dataspace, encode_datatype};
use h5live_kv::layout::value::{
    ContainerFormat, DecodedReference, EncodedReference, VarLenBlobRef, decode_link_target, decode_times, decode_u64,
    encode_link_target, encode_times, encode_u64,
};
use h5live_kv::layout::{AttributeField, AttributeRecords, BlobId, MetadataField, MetadataRecords};
use h5live_model::{
    AttributeData, CompoundMember, CompoundType, Dataspace, Datatype, LinkTarget, Name, ObjectId, ObjectKind,
    ObjectKindSpec, ObjectSpec, ObjectTimes, ReferenceKind, ReferenceType, Referent, ReferentPart, Shape,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn kind_of(spec: &ObjectSpec) -> ObjectKind {
    match spec.body {
        ObjectKindSpec::Group(_) => ObjectKind::Group,
        ObjectKindSpec::Dataset(_) => ObjectKind::Dataset,
        ObjectKindSpec::Datatype(_) => ObjectKind::Datatype,
        ObjectKindSpec::Map(_) => ObjectKind::Map,
    }
}

fn link() -> impl Strategy<Value = LinkTarget> {
    prop_oneof![
        any::<u128>().prop_map(|id| LinkTarget::Hard(ObjectId(id))),
        vec(any::<u8>(), 0..9).prop_map(|path| LinkTarget::Soft(Name::from(path))),
        (common::name(), common::name()).prop_map(|(file, path)| LinkTarget::External { file, path }),
        Just(LinkTarget::External { file: Name::default(), path: Name::default() }),
        (65..=255u8, vec(any::<u8>(), 0..9)).prop_map(|(class, data)| LinkTarget::UserDefined { class, data }),
    ]
}

fn referent() -> impl Strategy<Value = Referent> {
    let part = prop_oneof![
        Just(ReferentPart::Whole),
        common::selection().prop_map(ReferentPart::Region),
        common::name().prop_map(ReferentPart::Attribute),
    ];
    (option::of(common::name()), 1..u128::MAX, part).prop_map(|(file, object, part)| Referent {
        file,
        object: ObjectId(object),
        part,
    })
}

/// Values of records with the one that is damaged.
fn damaged(value: &[u8], at: Index, with: u8) -> [Vec<u8>; 3] {
    let mut changed = value.to_vec();
    if !changed.is_empty() {
        let at = at.index(changed.len());
        changed[at] = with;
    }
    let cut = value[..at.index(value.len() + 1)].to_vec();
    [changed, cut, [value, &[with]].concat()]
}

proptest! {
    #[test]
    fn bytes_of_any_kind_never_panic(
        field in select(MetadataField::ALL.to_vec()), of_attribute in select(AttributeField::ALL.to_vec()),
        head in select(vec![&b""[..], b"\0\x05layout\0", b"\0\x05pline\0", b"\0\x09", b"\0\x03", b"\x03\0", b"\x01\0\x08"]),
        tail in vec(any::<u8>(), 0..80), spec in common::object(),
    ) {
        let value = [head, &tail].concat();
        let mut records = MetadataRecords::of_object(&spec).unwrap();
        records.insert(field, value.clone());
        let mut attribute = AttributeRecords::default();
        attribute.insert(of_attribute, value.clone());
        for kind in [ObjectKind::Group, ObjectKind::Dataset, ObjectKind::Datatype, ObjectKind::Map] {
            let _ = records.decode_object_spec(kind);
        }
        let _ = (attribute.decode_attribute("a".into()), decode_datatype(&value), decode_dataspace(&value));
        let _ = (decode_link_target(&value), DecodedReference::decode_blob(ReferenceKind::Region2, true, &value));
    }

    #[test]
    fn objects_come_back_from_their_records(spec in common::object()) {
        let records = MetadataRecords::of_object(&spec).unwrap();
        prop_assert_eq!(records.decode_object_spec(kind_of(&spec)).unwrap(), spec.clone());
        let again: MetadataRecords = records.clone().into_iter().collect();
        prop_assert_eq!(&again, &records);
        if let ObjectKindSpec::Dataset(dataset) = &spec.body {
            prop_assert_eq!(records.dataspace().unwrap(), dataset.dataspace.clone());
        }
        match MetadataRecords::of_root(&spec) {
            Ok(root) => prop_assert_eq!(root.decode_object_spec(ObjectKind::Group).unwrap(), spec),
            Err(_) => prop_assert_ne!(kind_of(&spec), ObjectKind::Group),
        }
    }

    #[test]
    fn damaged_objects_never_panic(spec in common::object(), at in any::<Index>(), with in any::<u8>()) {
        let records = MetadataRecords::of_object(&spec).unwrap();
        for (field, value) in records.iter() {
            for damaged in damaged(value, at, with) {
                let mut records = records.clone();
                records.insert(field, damaged);
                // What is still an object comes back from records of its own.
                if let Ok(spec) = records.decode_object_spec(kind_of(&spec))
                    && let Ok(records) = MetadataRecords::of_object(&spec)
                {
                    prop_assert!(records.decode_object_spec(kind_of(&spec)).is_ok());
                }
            }
        }
    }

    #[test]
    fn attributes_come_back_from_their_records(
        name in common::name(), datatype in common::datatype(), dims in vec(0..3u64, 0..3), committed in any::<Option<u128>>(),
        creation_order in any::<Option<u16>>(), at in any::<Index>(), with in any::<u8>(),
    ) {
        let dataspace = if dims.is_empty() { Dataspace::Scalar } else { Dataspace::Simple(Shape::fixed(&dims)) };
        let bytes = dataspace.element_count().unwrap() * u64::from(datatype.size());
        let value = (0..bytes).map(|byte| byte as u8).collect();
        let committed = committed.map(ObjectId);
        let attribute = AttributeData { name: name.clone(), datatype, committed_datatype: committed, dataspace, value, creation_order };
        let records = AttributeRecords::of_attribute(&attribute).unwrap();
        prop_assert_eq!(records.decode_attribute(name.clone()).unwrap(), attribute);
        for (field, value) in records.iter() {
            for damaged in damaged(value, at, with) {
                let mut records = records.clone();
                records.insert(field, damaged);
                let _ = records.decode_attribute(name.clone());
            }
        }
    }

    #[test]
    fn datatypes_and_dataspaces_come_back_from_bytes(datatype in common::datatype(), space in common::dataspace()) {
        prop_assert_eq!(decode_datatype(&encode_datatype(&datatype).unwrap()).unwrap(), datatype);
        let found = decode_dataspace(&encode_dataspace(&space).unwrap()).unwrap();
        prop_assert_eq!((found.dims(), found.max_dims()), (space.dims(), space.max_dims()));
        prop_assert_eq!(found.element_count(), space.element_count());
    }

    #[test]
    fn links_come_back_from_bytes(target in link(), at in any::<Index>(), with in any::<u8>()) {
        let value = encode_link_target(&target).unwrap();
        prop_assert_eq!(decode_link_target(&value).unwrap(), target);
        for damaged in damaged(&value, at, with) {
            if let Ok(target) = decode_link_target(&damaged) {
                prop_assert_eq!(encode_link_target(&target).unwrap(), damaged);
            }
        }
    }

    #[test]
    fn references_come_back_from_elements_and_blobs(
        to in referent(), at in any::<Index>(), with in any::<u8>(),
        kind in select(vec![ReferenceKind::Object1, ReferenceKind::Region1, ReferenceKind::Object2, ReferenceKind::Region2]),
    ) {
        let Ok(encoded) = EncodedReference::new(kind, &to, 2) else {
            prop_assert!(matches!(kind, ReferenceKind::Object1 | ReferenceKind::Region1));
            return Ok(());
        };
        let id = BlobId([9; 16]);
        let element = encoded.encode_element(id).unwrap();
        let found = match DecodedReference::decode(kind, &element).unwrap() {
            DecodedReference::InElement(found) => found,
            DecodedReference::InBlob { kind, external, blob } => {
                let bytes = encoded.blob().unwrap();
                prop_assert_eq!((blob.blob, blob.element_count as usize), (id, bytes.len()));
                for damaged in damaged(bytes, at, with) {
                    let _ = DecodedReference::decode_blob(kind, external, &damaged);
                }
                DecodedReference::decode_blob(kind, external, bytes).unwrap()
            }
            DecodedReference::Null => return Err(TestCaseError::fail("a null reference")),
        };
        prop_assert_eq!(found, to);
        for damaged in damaged(&element, at, with) {
            let _ = DecodedReference::decode(kind, &damaged);
        }
    }

    #[test]
    fn small_values_come_back_from_bytes(
        access in any::<i64>(), birth in any::<i64>(), count in any::<u64>(), length in any::<u32>(), id in any::<[u8; 16]>(),
        bytes in vec(any::<u8>(), 0..40),
    ) {
        let times = ObjectTimes { access, modification: 3, change: -4, birth };
        prop_assert_eq!(decode_times(&encode_times(&times)).unwrap(), times);
        prop_assert_eq!(decode_u64("count", &encode_u64(count)).unwrap(), count);
        let element = VarLenBlobRef { element_count: length, blob: BlobId(id) };
        prop_assert_eq!(VarLenBlobRef::decode(&element.encode()).unwrap(), element);
        let version = ContainerFormat { version: length.max(3), has_checksums: false };
        prop_assert_eq!(ContainerFormat::decode_stored(&version.encode_without_checksum()), Ok(Err(version.version)));
        prop_assert_eq!(decode_times(&bytes).is_ok(), bytes.len() == 32);
        prop_assert_eq!(VarLenBlobRef::decode(&bytes).is_ok(), bytes.len() == 20);
        prop_assert_eq!(decode_u64("count", &bytes).is_ok(), bytes.len() == 8);
        prop_assert!(ContainerFormat::decode_stored(&bytes).is_err());
    }
}

#[test]
fn a_record_that_is_missing_is_named() {
    let mut records = MetadataRecords::of_object(&ObjectSpec::group()).unwrap();
    assert!(records.decode_object_spec(ObjectKind::Group).is_ok());
    let error = records.decode_object_spec(ObjectKind::Dataset).unwrap_err();
    assert_eq!(error.to_string(), "property list: class at byte 2: 9 is not allowed: that of the object");
    records = MetadataRecords::default();
    let error = records.decode_object_spec(ObjectKind::Group).unwrap_err();
    assert_eq!(error.to_string(), "the object has no record Creation Property List");
}

/// A type of a million bytes is decoded in a moment: the time does not grow with the square of the members.
#[test]
fn compounds_of_many_members_that_lead_elsewhere_come_back() {
    let member = |at: u32| CompoundMember {
        name: at.to_string().into(),
        offset: at * 16,
        datatype: Datatype::Reference(ReferenceType { kind: ReferenceKind::Object1, size: 16 }),
    };
    let members: Vec<_> = (0..60_000).map(member).collect();
    let datatype = Datatype::Compound(CompoundType { size: 60_000 * 16, members });
    let bytes = encode_datatype(&datatype).unwrap();
    assert_eq!(decode_datatype(&bytes).unwrap(), datatype);
}

/// Counts that the bytes cannot hold are refused before anything is allocated.
#[test]
fn counts_are_bounded_by_the_bytes_that_are_left() {
    let huge = [
        &b"\0\x05pline\0\x04\x08\xff\xff\xff\xff\xff\xff\xff\x7f"[..],
        b"\0\x05efl\0\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\0\x05layout\0\x03\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\0\x05fill_value\0\x01\x01\xff\xff\xff\xff\xff\xff\xff\x7f",
    ];
    for list in huge {
        let mut records = MetadataRecords::default();
        records.insert(MetadataField::CreationProperties, list);
        let error = records.decode_object_spec(ObjectKind::Dataset).unwrap_err().to_string();
        assert!(error.contains("above the limit") || error.contains("at most"), "{error}");
    }
}

#[test]
fn an_attribute_that_was_never_written_has_zeros_if_it_is_small() {
    let mut records = AttributeRecords::default();
    records.insert(AttributeField::Datatype, encode_datatype(&Default::default()).unwrap());
    let space = |n: u64| encode_dataspace(&Dataspace::Simple(Shape::fixed(&[n]))).unwrap();
    records.insert(AttributeField::Dataspace, space(3));
    assert_eq!(records.decode_attribute("a".into()).unwrap().value, [0; 3]);
    records.insert(AttributeField::Dataspace, space(1 << 40));
    assert!(records.decode_attribute("a".into()).is_err());
}

#[test]
fn links_of_classes_that_are_not_of_users_are_refused() {
    for class in [0, 1, 2, 64] {
        assert!(encode_link_target(&LinkTarget::UserDefined { class, data: vec![1] }).is_err());
    }
    let target = LinkTarget::External { file: "a\0b".into(), path: "/x".into() };
    assert!(encode_link_target(&target).is_err());
}

#[test]
fn every_field_has_an_akey_of_its_own() {
    for &field in MetadataField::ALL {
        assert_eq!(MetadataField::from_akey(field.akey()), Some(field));
    }
    for &field in AttributeField::ALL {
        let akey = [&field.akey_prefix()[..], b"x"].concat();
        assert_eq!(AttributeField::from_akey(&akey), Some((field, &b"x"[..])));
    }
}
