//! What no file can have: it is refused alike by every store, and leaves nothing.

use std::collections::BTreeSet;

use super::claims::has_claimed_features;
use super::store_fixture::{StoreFixture, link_names, make, name, number, u16le, unlimited_spec};
use crate::{
    AttributeData, DatasetSpec, Dataspace, Error, Layout, LinkTarget, Name, NewObject, ObjectSpec, Shape, Store,
    StoreFeatures, UNLIMITED,
};

/// Datasets that no file can have, and what every store says of them.
fn impossible_datasets() -> Vec<(DatasetSpec, &'static str)> {
    const RANK: &str = "33 dimensions are more than the 32 that there can be";
    const LENGTH: &str = "a dimension of 18446744073709551615 elements is too long";
    let of = |shape: Shape, layout: Layout| DatasetSpec {
        datatype: u16le(),
        dataspace: Dataspace::Simple(shape),
        layout,
        ..DatasetSpec::default()
    };
    let growing = |dims: &[u64]| Shape::with_max(dims, &vec![UNLIMITED; dims.len()]).unwrap();
    vec![
        (of(Shape::fixed(&[1; 33]), Layout::Contiguous), RANK),
        (of(Shape::fixed(&[1; 33]), Layout::Compact), RANK),
        (of(growing(&[1; 33]), Layout::Chunked(vec![1; 33])), RANK),
        (of(Shape::fixed(&[UNLIMITED]), Layout::Contiguous), LENGTH),
        (of(growing(&[2, UNLIMITED]), Layout::Chunked(vec![2, 2])), LENGTH),
        (
            of(Shape::fixed(&[1 << 40, 1 << 40]), Layout::Contiguous),
            "the elements of a dataset without chunks have more than 2^64 bytes",
        ),
    ]
}

fn assert_refused(found: crate::Result<()>, what: &str) {
    match found {
        Err(Error::Invalid(said)) => assert_eq!(said, what),
        other => panic!("{what}: {other:?}"),
    }
}

/// Ranks, lengths and names that no file can have are refused before anything is made, each with the same words in every store.
pub fn test_refused_names_and_shapes(lab: &impl StoreFixture) {
    let store = lab.create();
    let root = store.session().root;
    let data = make(&store, "data", unlimited_spec(&[4], &[2]));
    let writer = store.writer().unwrap();
    for (spec, what) in impossible_datasets() {
        let spec: ObjectSpec = spec.into();
        assert_refused(writer.create(&NewObject::linked(root, &name("bad"), &spec)).map(drop), what);
        if store.session().capabilities.features.has(StoreFeatures::UNLINKED) {
            assert_refused(writer.create(&NewObject::unlinked(&spec)).map(drop), what);
        }
    }
    let possible: ObjectSpec = unlimited_spec(&[0], &[2]).into();
    for (bad, what) in [
        ("", "\"\" is no name for a link"),
        (".", "\".\" is no name for a link"),
        ("x/y", "\"x/y\" has a slash or a NUL in it"),
        ("x\0y", "\"x\\0y\" has a slash or a NUL in it"),
    ] {
        let bad = Name::from(bad);
        for spec in [&possible, &ObjectSpec::group()] {
            assert_refused(writer.create(&NewObject::linked(root, &bad, spec)).map(drop), what);
        }
        for target in [LinkTarget::Hard(data.id()), LinkTarget::Soft(name("/data"))] {
            assert_refused(writer.add_link(root, &bad, &target), what);
        }
        if has_claimed_features(&store, StoreFeatures::RENAME) {
            assert_refused(writer.rename_link((root, &name("data")), (root, &bad)), what);
        }
    }
    for (bad, what) in [("", "\"\" is no name for an attribute"), ("x\0y", "\"x\\0y\" is no name for an attribute")] {
        assert_refused(writer.set_attribute(root, &number(name(bad), 7)), what);
    }
    for (spec, what) in impossible_datasets().into_iter().take(1) {
        let wide = AttributeData { dataspace: spec.dataspace, ..number(name("wide"), 7) };
        assert_refused(writer.set_attribute(root, &wide), what);
    }
    for dims in [&[UNLIMITED][..], &[1, 1], &[]] {
        assert!(matches!(data.set_extent(dims), Err(Error::Invalid(_))), "{dims:?}");
    }
    drop((writer, data));
    store.close().unwrap();
    let store = lab.reopen(store);
    let root = store.session().root;
    assert_eq!(link_names(&store, root), BTreeSet::from([name("data")]), "what was refused is not there");
    assert_eq!(store.attribute_names(root).unwrap(), Vec::<Name>::new());
    let LinkTarget::Hard(id) = store.link(root, &name("data")).unwrap().unwrap().target else { panic!("a hard link") };
    assert_eq!(store.dataset(id).unwrap().spec().unwrap().dataspace.dims(), [4]);
}
