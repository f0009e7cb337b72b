//! Groups, links, attributes, committed types.

use std::collections::BTreeSet;

use super::claims::has_claimed_features;
use super::store_fixture::{StoreFixture, link_names, make, name, number, read_stored, u16le, unlimited_spec};
use crate::{
    AttributeData, ByteOrder, ChunkCoord, CreationOrder, DatasetSpec, Dataspace, Datatype, Error, GroupSpec,
    LinkOrAttributeStorageSpec, LinkTarget, Name, NewObject, ObjectId, ObjectInfoChange, ObjectKind, ObjectSpec, Shape,
    Store, StoreFeatures,
};

/// Groups are made, found and listed; a name is taken once.
pub fn test_groups(lab: &impl StoreFixture) {
    let store = lab.create();
    let root = store.session().root;
    assert_eq!(store.kind(root).unwrap(), ObjectKind::Group);
    assert_eq!(link_names(&store, root), BTreeSet::new());
    let a = store.writer().unwrap().create(&NewObject::linked(root, &name("a"), &ObjectSpec::group())).unwrap();
    let b = store.writer().unwrap().create(&NewObject::linked(a, &name("b"), &ObjectSpec::group())).unwrap();
    assert_ne!(a, b);
    assert_eq!(store.kind(b).unwrap(), ObjectKind::Group);
    assert!(matches!(
        store.writer().unwrap().create(&NewObject::linked(root, &name("a"), &ObjectSpec::group())),
        Err(Error::Exists(_))
    ));
    for bad in ["", ".", "x/y"] {
        assert!(
            matches!(
                store.writer().unwrap().create(&NewObject::linked(root, &name(bad), &ObjectSpec::group())),
                Err(Error::Invalid(_))
            ),
            "{bad:?}"
        );
    }
    assert_eq!(link_names(&store, root), [name("a")].into());
    assert_eq!(link_names(&store, a), [name("b")].into());
    let link = store.link(root, &name("a")).unwrap().expect("the link is there");
    assert_eq!(link.target, LinkTarget::Hard(a));
    assert_eq!(store.link(root, &name("b")).unwrap(), None);
    for i in 0..100 {
        store
            .writer()
            .unwrap()
            .create(&NewObject::linked(b, &Name::from(format!("member {i}")), &ObjectSpec::group()))
            .unwrap();
    }
    assert_eq!(link_names(&store, b).len(), 100);
    let mut seen = 0;
    store
        .for_each_link(b, &mut |_| {
            seen += 1;
            seen < 3
        })
        .unwrap();
    assert_eq!(seen, 3, "a listing stops when it is told to");
    let data = make(&store, "data", unlimited_spec(&[0], &[4]));
    assert!(matches!(store.link(data.id(), &name("x")), Err(Error::WrongKind { .. })));
    assert!(matches!(store.dataset(a), Err(Error::WrongKind { .. })));
    assert!(store.kind(ObjectId(u128::MAX)).is_err());
}

/// Links of every class keep their targets.
pub fn test_links(lab: &impl StoreFixture) {
    let store = lab.create();
    let root = store.session().root;
    let a = store.writer().unwrap().create(&NewObject::linked(root, &name("a"), &ObjectSpec::group())).unwrap();
    let external = LinkTarget::External { file: name("other.h5"), path: name("/x") };
    let mut targets = vec![
        (StoreFeatures::HARD_LINKS, "hard", LinkTarget::Hard(a)),
        (StoreFeatures::SOFT_LINKS, "soft", LinkTarget::Soft(name("/a/nowhere"))),
        (StoreFeatures::EXTERNAL_LINKS, "external", external),
    ];
    targets.retain(|(feature, ..)| has_claimed_features(&store, *feature));
    for (_, at, target) in &targets {
        store.writer().unwrap().add_link(a, &name(at), target).unwrap();
        assert!(matches!(store.writer().unwrap().add_link(a, &name(at), target), Err(Error::Exists(_))));
    }
    for (_, at, target) in &targets {
        assert_eq!(store.link(a, &name(at)).unwrap().map(|link| link.target).as_ref(), Some(target));
    }
    assert!(store.writer().unwrap().add_link(a, &name("dangling"), &LinkTarget::Hard(ObjectId(u128::MAX))).is_err());
}

/// An object lives as long as a hard link leads to it.
pub fn test_last_link_removal(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::HARD_LINKS) {
        return;
    }
    let root = store.session().root;
    let a = store.writer().unwrap().create(&NewObject::linked(root, &name("a"), &ObjectSpec::group())).unwrap();
    store.writer().unwrap().create(&NewObject::linked(a, &name("below"), &ObjectSpec::group())).unwrap();
    let data = ObjectSpec::from(unlimited_spec(&[0], &[4]));
    let data = store.writer().unwrap().create(&NewObject::linked(a, &name("data"), &data)).unwrap();
    let data = store.dataset(data).unwrap();
    store.writer().unwrap().add_link(root, &name("again"), &LinkTarget::Hard(a)).unwrap();
    store.writer().unwrap().remove_link(root, &name("a")).unwrap();
    assert_eq!(link_names(&store, root), [name("again")].into());
    assert_eq!(link_names(&store, a), [name("below"), name("data")].into());
    assert!(data.spec().is_ok());
    store.writer().unwrap().remove_link(root, &name("again")).unwrap();
    assert!(matches!(data.spec(), Err(Error::NoObject(_))), "it goes with its group, whoever has it open");
    assert_eq!(link_names(&store, root), BTreeSet::new());
    assert!(matches!(store.writer().unwrap().remove_link(root, &name("a")), Err(Error::NotFound(_))));
}

/// A link moves from one name to another, and its target stays the same.
pub fn test_link_renaming(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::RENAME.with(StoreFeatures::SOFT_LINKS)) {
        return;
    }
    let root = store.session().root;
    let group = store.writer().unwrap().create(&NewObject::linked(root, &name("group"), &ObjectSpec::group())).unwrap();
    let data = make(&store, "data", unlimited_spec(&[3], &[2]));
    store.writer().unwrap().add_link(root, &name("soft"), &LinkTarget::Soft(name("/data"))).unwrap();
    store.writer().unwrap().rename_link((root, &name("data")), (group, &name("moved"))).unwrap();
    store.writer().unwrap().rename_link((root, &name("soft")), (root, &name("other"))).unwrap();
    assert_eq!(link_names(&store, root), [name("group"), name("other")].into());
    assert_eq!(store.link(group, &name("moved")).unwrap().unwrap().target, LinkTarget::Hard(data.id()));
    assert_eq!(store.link(root, &name("other")).unwrap().unwrap().target, LinkTarget::Soft(name("/data")));
    let nothing = store.writer().unwrap().rename_link((root, &name("data")), (root, &name("new")));
    assert!(matches!(nothing, Err(Error::NotFound(_))));
    let taken = store.writer().unwrap().rename_link((root, &name("other")), (root, &name("group")));
    assert!(matches!(taken, Err(Error::Exists(_))));
    let bad = store.writer().unwrap().rename_link((root, &name("other")), (root, &name("a/b")));
    assert!(matches!(bad, Err(Error::Invalid(_))));
    let elsewhere = store.writer().unwrap().rename_link((root, &name("other")), (data.id(), &name("new")));
    assert!(matches!(elsewhere, Err(Error::WrongKind { .. })));
    store.writer().unwrap().rename_link((root, &name("other")), (root, &name("other"))).unwrap();
    assert_eq!(link_names(&store, root), [name("group"), name("other")].into(), "what was refused changed nothing");
    store.writer().unwrap().remove_link(group, &name("moved")).unwrap();
    assert_eq!(link_names(&store, group), BTreeSet::new());
}

/// An object that is made without links has as many as are added.
pub fn test_objects_created_unlinked(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(
        &store,
        StoreFeatures::UNLINKED.with(StoreFeatures::HARD_LINKS).with(StoreFeatures::COMMITTED_TYPES),
    ) {
        return;
    }
    let group = store.writer().unwrap().create(&NewObject::unlinked(&ObjectSpec::group())).unwrap();
    let data = store.writer().unwrap().create(&NewObject::unlinked(&unlimited_spec(&[2], &[2]).into())).unwrap();
    store.dataset(data).unwrap().write_whole_chunk(&ChunkCoord::new(&[0]), 0, &[1, 2, 3, 4]).unwrap();
    store.writer().unwrap().add_link(group, &name("data"), &LinkTarget::Hard(data)).unwrap();
    assert_eq!(link_names(&store, store.session().root), BTreeSet::new());
    store.writer().unwrap().add_link(store.session().root, &name("group"), &LinkTarget::Hard(group)).unwrap();
    store.writer().unwrap().add_link(store.session().root, &name("again"), &LinkTarget::Hard(data)).unwrap();
    assert_eq!((store.info(group).unwrap().hard_link_count, store.info(data).unwrap().hard_link_count), (1, 2));
    // A committed type may have users, and no link.
    let id = store.writer().unwrap().create(&NewObject::unlinked(&u16le().into())).unwrap();
    make(&store, "typed", DatasetSpec { committed_datatype: Some(id), ..unlimited_spec(&[1], &[1]) });
    assert_eq!(store.info(id).unwrap().hard_link_count, 1);
    store.close().unwrap();
    let store = lab.reopen(store);
    assert_eq!(link_names(&store, store.session().root), [name("again"), name("group"), name("typed")].into());
    let Some(LinkTarget::Hard(data)) =
        store.link(store.session().root, &name("again")).unwrap().map(|link| link.target)
    else {
        panic!("a hard link");
    };
    assert_eq!(read_stored(&*store.dataset(data).unwrap(), &[0]), [1, 2, 3, 4]);
    assert_eq!(store.info(data).unwrap().hard_link_count, 2);
}

/// Links and attributes know their order of creation where it is tracked, also after some are gone.
pub fn test_creation_order(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::CREATION_ORDER.with(StoreFeatures::SOFT_LINKS)) {
        return;
    }
    for order in [CreationOrder::Untracked, CreationOrder::Tracked, CreationOrder::Indexed] {
        let kept = LinkOrAttributeStorageSpec { order, ..LinkOrAttributeStorageSpec::default() };
        let spec = ObjectSpec { attribute_storage: kept, ..GroupSpec { link_storage: kept }.into() };
        let group = store
            .writer()
            .unwrap()
            .create(&NewObject::linked(store.session().root, &Name::from(format!("{order:?}")), &spec))
            .unwrap();
        assert_eq!(store.spec(group).unwrap().into_group().unwrap(), GroupSpec { link_storage: kept });
        assert_eq!(store.info(group).unwrap().attribute_storage, kept);
        for i in 0..20u16 {
            let name = Name::from(format!("{:02}", 19 - i));
            store.writer().unwrap().add_link(group, &name, &LinkTarget::Soft(name.clone())).unwrap();
            store.writer().unwrap().set_attribute(group, &number(name, i)).unwrap();
        }
        store.writer().unwrap().set_attribute(group, &number(name("19"), 99)).unwrap();
        store.writer().unwrap().remove_link(group, &name("18")).unwrap();
        store.writer().unwrap().remove_attribute(group, &name("18")).unwrap();
        store.writer().unwrap().add_link(group, &name("18"), &LinkTarget::Soft(name("x"))).unwrap();
        store.writer().unwrap().set_attribute(group, &number(name("18"), 1)).unwrap();
        let tracked = order != CreationOrder::Untracked;
        for (at, position) in [("19", 0), ("17", 2), ("00", 19), ("18", 20)] {
            let link = store.link(group, &name(at)).unwrap().unwrap();
            assert_eq!(link.creation_order, tracked.then_some(position));
            let attribute = store.attribute(group, &name(at)).unwrap().unwrap();
            assert_eq!(attribute.creation_order, tracked.then_some(position as u16));
        }
    }
}

/// A committed type is read back unchanged.
pub fn test_committed_types(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::COMMITTED_TYPES) {
        return;
    }
    let datatype = Datatype::float(8, ByteOrder::Big).unwrap();
    let id = store
        .writer()
        .unwrap()
        .create(&NewObject::linked(store.session().root, &name("t"), &datatype.clone().into()))
        .unwrap();
    assert_eq!(store.kind(id).unwrap(), ObjectKind::Datatype);
    assert_eq!(store.spec(id).unwrap().into_datatype().unwrap(), datatype);
    assert!(matches!(store.spec(store.session().root).unwrap().into_datatype(), Err(Error::WrongKind { .. })));
}

/// Datasets and attributes whose type is a committed one say so, and keep it alive.
pub fn test_committed_type_uses(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::COMMITTED_TYPES.with(StoreFeatures::HARD_LINKS)) {
        return;
    }
    let root = store.session().root;
    let id = store.writer().unwrap().create(&NewObject::linked(root, &name("t"), &u16le().into())).unwrap();
    let data = make(&store, "data", DatasetSpec { committed_datatype: Some(id), ..unlimited_spec(&[1], &[1]) });
    assert_eq!(data.spec().unwrap().committed_datatype, Some(id));
    store
        .writer()
        .unwrap()
        .set_attribute(root, &AttributeData { committed_datatype: Some(id), ..number(name("a"), 7) })
        .unwrap();
    assert_eq!(store.attribute(root, &name("a")).unwrap().unwrap().committed_datatype, Some(id));
    assert_eq!(store.info(id).unwrap().hard_link_count, 3);
    store.writer().unwrap().remove_link(root, &name("t")).unwrap();
    store.writer().unwrap().remove_attribute(root, &name("a")).unwrap();
    assert_eq!(store.spec(id).unwrap().into_datatype().unwrap(), u16le());
    assert_eq!(store.info(id).unwrap().hard_link_count, 1);
    store.writer().unwrap().add_link(root, &name("again"), &LinkTarget::Hard(id)).unwrap();
    store.writer().unwrap().remove_link(root, &name("data")).unwrap();
    assert_eq!(store.info(id).unwrap().hard_link_count, 1);
    let group = store.writer().unwrap().create(&NewObject::linked(root, &name("group"), &ObjectSpec::group())).unwrap();
    let wrong = DatasetSpec { committed_datatype: Some(group), ..unlimited_spec(&[1], &[1]) };
    assert!(store.writer().unwrap().create(&NewObject::linked(root, &name("wrong"), &wrong.into())).is_err());
}

/// A comment is set, replaced and taken away.
pub fn test_comments(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::COMMENTS) {
        return;
    }
    let comment = || store.info(store.session().root).unwrap().comment;
    assert_eq!(comment(), None);
    for text in [Some("short"), Some("somewhat longer than it was before"), Some(""), None] {
        store
            .writer()
            .unwrap()
            .set_info(store.session().root, &ObjectInfoChange::Comment(text.map(Name::from).as_ref()))
            .unwrap();
        assert_eq!(comment().filter(|text| !text.is_empty()), text.filter(|text| !text.is_empty()).map(Name::from));
    }
}

/// Attributes are set, replaced, listed and removed.
pub fn test_attributes(lab: &impl StoreFixture) {
    let store = lab.create();
    let root = store.session().root;
    let make = |at: &str, value: &[u8]| AttributeData {
        name: name(at),
        datatype: u16le(),
        committed_datatype: None,
        dataspace: Dataspace::Simple(Shape::fixed(&[value.len() as u64 / 2])),
        value: value.into(),
        creation_order: None,
    };
    let check = |want: &AttributeData| {
        let got = store.attribute(root, &want.name).unwrap().expect("the attribute is there");
        assert_eq!((&got.datatype, &got.dataspace, &got.value), (&want.datatype, &want.dataspace, &want.value));
    };
    assert_eq!(store.attribute(root, &name("x")).unwrap(), None);
    let first = make("x", &[1, 0, 2, 0]);
    store.writer().unwrap().set_attribute(root, &first).unwrap();
    check(&first);
    let second = make("x", &[9, 9, 9, 9, 9, 9]);
    store.writer().unwrap().set_attribute(root, &second).unwrap();
    check(&second);
    let scalar = AttributeData { dataspace: Dataspace::Scalar, value: vec![7, 7], ..make("s", &[]) };
    store.writer().unwrap().set_attribute(root, &scalar).unwrap();
    check(&scalar);
    let null = AttributeData { dataspace: Dataspace::Null, ..make("null", &[]) };
    store.writer().unwrap().set_attribute(root, &null).unwrap();
    check(&null);
    let wrong = AttributeData { value: vec![1, 2, 3], ..make("wrong", &[]) };
    assert!(matches!(store.writer().unwrap().set_attribute(root, &wrong), Err(Error::Invalid(_))));
    for i in 0..40u8 {
        store.writer().unwrap().set_attribute(root, &make(&format!("many {i}"), &[i, 0])).unwrap();
    }
    let names: BTreeSet<_> = store.attribute_names(root).unwrap().into_iter().collect();
    assert_eq!(names.len(), 43);
    for i in 0..40u8 {
        check(&make(&format!("many {i}"), &[i, 0]));
    }
    store.writer().unwrap().remove_attribute(root, &name("x")).unwrap();
    assert_eq!(store.attribute(root, &name("x")).unwrap(), None);
    assert!(matches!(store.writer().unwrap().remove_attribute(root, &name("x")), Err(Error::NotFound(_))));
}
