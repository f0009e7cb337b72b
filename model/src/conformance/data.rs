//! Elements: chunks, extents, the heap, references.

use std::collections::BTreeSet;

use super::claims::has_claimed_features;
use super::store_fixture::{StoreFixture, blob, link_names, make, name, read_stored, u16le, unlimited_spec};
use crate::{
    ByteOrder, ChunkCoord, ChunkEncodedBy, ChunkGrid, DatasetSpec, Dataspace, Datatype, Error, Fill, FillValue,
    FilterSpec, Layout, LinkTarget, Name, NewObject, ObjectId, ObjectScope, ObjectSpec, PartialWrites, PublishLevel,
    ReferenceKind, ReferenceType, Referent, ReferentPart, Selection, Shape, Sign, Store, StoreFeatures, VarLenKind,
    VarLenType, VlenAndReferenceSizes,
};

/// Whether any part of a chunk can be written by itself. What other stores take is tried in `parts`.
fn writes_any_part(store: &impl Store) -> bool {
    store.session().capabilities.partial_writes == PartialWrites::Bytes { multiple_of: 1 }
}

/// A dataset that is not chunked is one chunk at the origin, and a part of it can be written.
pub fn test_unchunked_datasets(lab: &impl StoreFixture) {
    let store = lab.create();
    if !writes_any_part(&store) {
        return;
    }
    let fill = Fill { value: FillValue::Value(vec![5, 6]), ..Default::default() };
    let fixed = |layout| DatasetSpec {
        datatype: u16le(),
        dataspace: Dataspace::Simple(Shape::fixed(&[2, 3])),
        layout,
        fill: fill.clone(),
        ..Default::default()
    };
    for (at, layout) in [("contiguous", Layout::Contiguous), ("compact", Layout::Compact)] {
        let spec = fixed(layout);
        let data = make(&store, at, spec.clone());
        assert_eq!(*data.spec().unwrap(), spec);
        data.write_byte_range(&ChunkCoord::new(&[0, 0]), 2, &[1, 2, 3, 4]).unwrap();
        assert_eq!(read_stored(&*data, &[0, 0]), [5, 6, 1, 2, 3, 4, 5, 6, 5, 6, 5, 6]);
        assert!(matches!(data.write_byte_range(&ChunkCoord::new(&[0, 0]), 10, &[0; 4]), Err(Error::Invalid(_))));
        assert!(data.write_byte_range(&ChunkCoord::new(&[1, 0]), 0, &[0; 4]).is_err());
        assert!(matches!(data.set_extent(&[3, 3]), Err(Error::Invalid(_))));
        data.write_whole_chunk(&ChunkCoord::new(&[0, 0]), 0, &[7; 12]).unwrap();
        assert_eq!(read_stored(&*data, &[0, 0]), [7; 12]);
    }
    let scalar = make(&store, "scalar", DatasetSpec { datatype: u16le(), ..Default::default() });
    scalar.write_whole_chunk(&ChunkCoord::origin(0), 0, &[1, 2]).unwrap();
    assert_eq!(read_stored(&*scalar, &[]), [1, 2]);
    let null = DatasetSpec { datatype: u16le(), dataspace: Dataspace::Null, ..Default::default() };
    let null = make(&store, "null", null);
    assert_eq!(null.spec().unwrap().dataspace, Dataspace::Null);
}

/// A compact dataset is made with its elements, and those like it with theirs.
pub fn test_compact_created_with_elements(lab: &impl StoreFixture) {
    let store = lab.create();
    let spec = |dims: &[u64], layout| -> ObjectSpec {
        let dataspace = if dims.is_empty() { Dataspace::Scalar } else { Dataspace::Simple(Shape::fixed(dims)) };
        DatasetSpec { datatype: u16le(), dataspace, layout, ..Default::default() }.into()
    };
    let make = |at: &str, spec: &ObjectSpec, elements: &[u8]| {
        store
            .writer()
            .unwrap()
            .create(&NewObject::linked(store.session().root, &name(at), spec).with_compact_elements(elements))
    };
    let pair = spec(&[2], Layout::Compact);
    for (at, elements) in [("first", [1, 2, 3, 4]), ("second", [5, 6, 7, 8])] {
        let data = store.dataset(make(at, &pair, &elements).unwrap()).unwrap();
        assert_eq!(ObjectSpec::from((*data.spec().unwrap()).clone()), pair);
        assert_eq!(read_stored(&*data, &[0]), elements);
    }
    let scalar = store.dataset(make("scalar", &spec(&[], Layout::Compact), &[9, 10]).unwrap()).unwrap();
    assert_eq!(read_stored(&*scalar, &[]), [9, 10]);
    assert!(matches!(make("first", &pair, &[0; 4]), Err(Error::Exists(_))));
    assert!(matches!(make("long", &pair, &[0; 5]), Err(Error::Invalid(_))));
    assert!(matches!(make("contiguous", &spec(&[2], Layout::Contiguous), &[0; 4]), Err(Error::Invalid(_))));
    assert!(matches!(make("group", &ObjectSpec::group(), &[]), Err(Error::Invalid(_))));
    let names = ["first", "second", "scalar"].map(name).into();
    assert_eq!(link_names(&store, store.session().root), names, "what was refused is not there");
    let first = store.link(store.session().root, &name("first")).unwrap().unwrap();
    let LinkTarget::Hard(first) = first.target else { panic!("a hard link") };
    let first = store.dataset(first).unwrap();
    assert_eq!(read_stored(&*first, &[0]), [1, 2, 3, 4]);
    first.write_whole_chunk(&ChunkCoord::origin(1), 0, &[4, 3, 2, 1]).unwrap();
    assert_eq!(read_stored(&*first, &[0]), [4, 3, 2, 1]);
}

/// Chunks are stored where they belong, and parts of them overwritten.
pub fn test_chunks(lab: &impl StoreFixture) {
    let store = lab.create();
    if !writes_any_part(&store) {
        return;
    }
    let data = make(&store, "data", unlimited_spec(&[5, 3], &[2, 2]));
    assert_eq!(data.locate(&ChunkCoord::new(&[0, 0])).unwrap(), None);
    data.write_whole_chunk(&ChunkCoord::new(&[1, 0]), 0, &[1; 8]).unwrap();
    data.write_whole_chunk(&ChunkCoord::new(&[0, 1]), 0, &[2; 8]).unwrap();
    data.write_byte_range(&ChunkCoord::new(&[2, 1]), 4, &[3, 3]).unwrap();
    assert_eq!(read_stored(&*data, &[1, 0]), [1; 8]);
    assert_eq!(read_stored(&*data, &[0, 1]), [2; 8]);
    assert_eq!(read_stored(&*data, &[2, 1]), [0, 0, 0, 0, 3, 3, 0, 0]);
    assert_eq!(data.locate(&ChunkCoord::new(&[0, 0])).unwrap(), None);
    data.write_byte_range(&ChunkCoord::new(&[1, 0]), 6, &[4, 4]).unwrap();
    assert_eq!(read_stored(&*data, &[1, 0]), [1, 1, 1, 1, 1, 1, 4, 4]);
    let mut seen = BTreeSet::new();
    data.for_each_chunk(&mut |chunk| {
        assert_eq!((chunk.size, chunk.filter_mask), (8, 0));
        assert!(seen.insert(chunk.coord), "a chunk is listed once");
        true
    })
    .unwrap();
    assert_eq!(seen, [[0, 1], [1, 0], [2, 1]].iter().map(|at| ChunkCoord::new(at)).collect());
    let chunk = data.locate(&ChunkCoord::new(&[1, 0])).unwrap().unwrap();
    let mut part = [0; 3];
    data.read(&chunk, 5, &mut part).unwrap();
    assert_eq!(part, [1, 4, 4]);
    assert!(matches!(data.write_whole_chunk(&ChunkCoord::new(&[0, 0]), 0, &[0; 7]), Err(Error::Invalid(_))));
    assert!(data.write_whole_chunk(&ChunkCoord::new(&[0, 2]), 0, &[0; 8]).is_err(), "outside the maximum");
    assert!(matches!(data.write_byte_range(&ChunkCoord::new(&[0, 0]), 4, &[0; 5]), Err(Error::Invalid(_))));
    assert!(matches!(
        store.writer().unwrap().create(&NewObject::linked(
            store.session().root,
            &name("bad"),
            &unlimited_spec(&[1, 1], &[1]).into()
        )),
        Err(Error::Invalid(_))
    ));
    assert_eq!(link_names(&store, store.session().root), [name("data")].into(), "what was refused is not there");
}

/// Filtered chunks are of any size, change it, and keep their mask.
pub fn test_filtered_chunks(lab: &impl StoreFixture) {
    let store = lab.create();
    let deflate = FilterSpec { id: 1, params: vec![6], ..Default::default() };
    let spec = DatasetSpec { filters: vec![deflate], ..unlimited_spec(&[100], &[10]) };
    let data = make(&store, "data", spec.clone());
    if store.session().capabilities.encoding == ChunkEncodedBy::Store {
        assert!(matches!(data.write_whole_chunk(&ChunkCoord::new(&[1]), 0, &[1; 19]), Err(Error::Invalid(_))));
        assert!(matches!(data.write_whole_chunk(&ChunkCoord::new(&[1]), 1, &[1; 20]), Err(Error::Invalid(_))));
        data.write_whole_chunk(&ChunkCoord::new(&[1]), 0, &[1; 20]).unwrap();
        assert_eq!(read_stored(&*data, &[1]), [1; 20]);
        assert_eq!(data.spec().unwrap().filters[0].id, 1);
        return;
    }
    for i in 0..10u8 {
        data.write_whole_chunk(&ChunkCoord::new(&[i.into()]), u32::from(i % 2), &vec![i; usize::from(i) + 1]).unwrap();
    }
    data.write_whole_chunk(&ChunkCoord::new(&[3]), 0, &[33; 19]).unwrap();
    data.write_whole_chunk(&ChunkCoord::new(&[8]), 1, &[88]).unwrap();
    for i in 0..10u8 {
        let chunk = data.locate(&ChunkCoord::new(&[i.into()])).unwrap().unwrap();
        let (mask, want) = match i {
            3 => (0, vec![33; 19]),
            8 => (1, vec![88]),
            _ => (u32::from(i % 2), vec![i; usize::from(i) + 1]),
        };
        assert_eq!(chunk.filter_mask, mask);
        assert_eq!(read_stored(&*data, &[i.into()]), want);
    }
    let refused = data.write_byte_range(&ChunkCoord::new(&[0]), 0, &[1]);
    match store.session().capabilities.partial_writes {
        PartialWrites::Bytes { .. } => assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}"),
        PartialWrites::ElementBlocks | PartialWrites::Whole => {
            assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}")
        }
    }
    assert_eq!(data.spec().unwrap().filters[0].id, 1);
}

/// An extent grows within its maximum, and data may come before it.
pub fn test_growing_extents(lab: &impl StoreFixture) {
    let store = lab.create();
    let mut spec = unlimited_spec(&[0, 2], &[4, 2]);
    spec.dataspace = Dataspace::Simple(Shape::with_max(&[0, 2], &[10, 2]).unwrap());
    let data = make(&store, "data", spec);
    assert_eq!(data.spec().unwrap().dataspace.dims(), [0, 2]);
    data.write_whole_chunk(&ChunkCoord::new(&[1, 0]), 0, &[1; 16]).unwrap();
    data.set_extent(&[7, 2]).unwrap();
    assert_eq!(data.spec().unwrap().dataspace.dims(), [7, 2]);
    assert_eq!(read_stored(&*data, &[1, 0]), [1; 16]);
    assert!(matches!(data.set_extent(&[11, 2]), Err(Error::Invalid(_))));
    assert!(matches!(data.set_extent(&[1]), Err(Error::Invalid(_))));
    assert_eq!(data.spec().unwrap().dataspace.dims(), [7, 2]);
    let again = store.dataset(data.id()).unwrap();
    assert_eq!(again.spec().unwrap().dataspace.dims(), [7, 2], "two handles of a dataset share its state");
    data.publish(PublishLevel::Visible).unwrap();
    assert_eq!(again.spec().unwrap().dataspace.dims(), [7, 2]);
}

/// Chunks outside a smaller extent are gone.
pub fn test_shrinking_extents(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::SHRINK) {
        return;
    }
    let data = make(&store, "data", unlimited_spec(&[10], &[2]));
    for i in 0..5 {
        data.write_whole_chunk(&ChunkCoord::new(&[i]), 0, &[i as u8 + 1; 4]).unwrap();
    }
    data.set_extent(&[3]).unwrap();
    // What a chunk holds outside of the extent is the caller's to overwrite.
    assert_eq!(read_stored(&*data, &[1])[..2], [2; 2]);
    assert_eq!(data.locate(&ChunkCoord::new(&[2])).unwrap(), None);
    data.set_extent(&[10]).unwrap();
    assert_eq!(data.locate(&ChunkCoord::new(&[4])).unwrap(), None);
}

/// Variable-length elements come back from the heap.
pub fn test_blobs(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::VARIABLE_LENGTH) {
        return;
    }
    let elements: Vec<_> = (0..50u8)
        .map(|i| {
            let bytes = vec![i; usize::from(i) * 100];
            (store.writer().unwrap().put_blob(&bytes, bytes.len() as u32).unwrap(), bytes)
        })
        .collect();
    for (element, bytes) in &elements {
        assert_eq!(&blob(&store, element), bytes);
    }
    assert_eq!(blob(&store, &vec![0; store.session().vlen_and_reference_sizes.vlen as usize]), []);
}

/// Many variable-length elements that are put at once come back as those that are put one by one, also after a commit and
/// in a later session: empty ones, and some larger than the rest together.
pub fn test_blob_batches(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::VARIABLE_LENGTH) {
        return;
    }
    let size = store.session().vlen_and_reference_sizes.vlen as usize;
    let bytes_of = |n: u32| match n {
        700 | 2100 => vec![n as u8; 200_000],
        _ => vec![n as u8; (n as usize * 31) % 90],
    };
    let texts: Vec<Vec<u8>> = (0..3000).map(bytes_of).collect();
    let blobs: Vec<(&[u8], u32)> = texts.iter().map(|text| (&text[..], text.len() as u32)).collect();
    let writer = store.writer().unwrap();
    assert_eq!(writer.put_blobs(&[]).unwrap(), []);
    let mut elements = writer.put_blob(&texts[1], texts[1].len() as u32).unwrap();
    elements.extend(writer.put_blobs(&blobs[2..1500]).unwrap());
    writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    elements.extend(writer.put_blobs(&blobs[1500..]).unwrap());
    assert_eq!(elements.len(), size * (texts.len() - 1));
    let expect = |store: &dyn Store, elements: &[u8]| {
        let elements: Vec<&[u8]> = elements.chunks(size).collect();
        let mut found = vec![None; elements.len()];
        store.read_blobs(&elements, &mut |at, bytes| assert_eq!(found[at].replace(bytes.to_vec()), None)).unwrap();
        for (at, found) in found.iter().enumerate() {
            assert!(found.as_ref() == Some(&texts[at + 1]), "element {at}");
        }
    };
    expect(&store, &elements);
    let is_written = write_elements(&store, &elements, texts.len() as u64 - 1);
    expect(&store, &elements);
    store.close().unwrap();
    if !is_written {
        return;
    }
    let store = lab.reopen(store);
    let link = store.link(store.session().root, &name("data")).unwrap().unwrap();
    let LinkTarget::Hard(data) = link.target else { panic!("a hard link") };
    expect(&store, &read_stored(&*store.dataset(data).unwrap(), &[0]));
}

/// Blobs that are given up take nothing from the others, whatever is put there later, and those that are none are passed
/// over.
pub fn test_removed_blobs(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::VARIABLE_LENGTH) {
        return;
    }
    let writer = store.writer().unwrap();
    let put = |seed: u32| {
        let bytes = vec![seed as u8; 1 + seed as usize * 37 % 500];
        (writer.put_blob(&bytes, bytes.len() as u32).unwrap(), bytes)
    };
    let mut kept: Vec<(Vec<u8>, Vec<u8>)> = (0..40).map(put).collect();
    for round in 1..30u32 {
        let superseded: Vec<_> = (0..kept.len()).step_by(1 + round as usize % 3).collect();
        let old: Vec<Vec<u8>> = superseded.iter().map(|at| kept[*at].0.clone()).collect();
        superseded.iter().for_each(|at| kept[*at] = put(round * 100 + *at as u32));
        let nothing = writer.put_blob(&[], 0).unwrap();
        let never_written = vec![0; nothing.len()];
        let elements: Vec<&[u8]> = old.iter().chain([&nothing, &never_written]).map(|element| &element[..]).collect();
        writer.remove_blobs(&elements).unwrap();
        if round % 2 == 0 {
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        }
        for (element, bytes) in &kept {
            assert_eq!(&blob(&store, element), bytes, "round {round}");
        }
    }
    let elements: Vec<u8> = kept.iter().flat_map(|(element, _)| element.clone()).collect();
    let is_written = write_elements(&store, &elements, kept.len() as u64);
    store.close().unwrap();
    let store = lab.reopen(store);
    let stored = is_written.then(|| {
        let link = store.link(store.session().root, &name("data")).unwrap().unwrap();
        let LinkTarget::Hard(data) = link.target else { panic!("a hard link") };
        read_stored(&*store.dataset(data).unwrap(), &[0])
    });
    let size = store.session().vlen_and_reference_sizes.vlen as usize;
    for (element, (_, bytes)) in stored.iter().flat_map(|stored| stored.chunks(size)).zip(&kept) {
        assert_eq!(&blob(&store, element), bytes, "after the session, by a dataset");
    }
    // A store may give its elements another form in a dataset.
    if stored.is_none_or(|stored| stored == elements) {
        for (element, bytes) in &kept {
            assert_eq!(&blob(&store, element), bytes, "after the session");
        }
    }
}

/// Writes variable-length elements into a new dataset `data`, if the store has such datasets.
fn write_elements(store: &impl Store, elements: &[u8], count: u64) -> bool {
    let datatype = Datatype::VarLen(VarLenType {
        kind: VarLenKind::Sequence,
        size: store.session().vlen_and_reference_sizes.vlen,
        base: Box::new(Datatype::integer(1, ByteOrder::Little, Sign::Unsigned)),
    });
    let spec = DatasetSpec { datatype, dataspace: Dataspace::Simple(Shape::fixed(&[count])), ..Default::default() };
    let spec = ObjectSpec::from(spec);
    match store.writer().unwrap().create(&NewObject::linked(store.session().root, &name("data"), &spec)) {
        Ok(data) => {
            store.dataset(data).unwrap().write_whole_chunk(&ChunkCoord::origin(1), 0, elements).unwrap();
            true
        }
        Err(Error::Unsupported(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// References to objects lead back to them, and null to nothing.
pub fn test_object_references(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::OBJECT_REFERENCES.with(StoreFeatures::REGION_REFERENCES)) {
        return;
    }
    let a = store
        .writer()
        .unwrap()
        .create(&NewObject::linked(store.session().root, &name("a"), &ObjectSpec::group()))
        .unwrap();
    let size = store.session().vlen_and_reference_sizes.object_reference;
    let form = ReferenceType { kind: ReferenceKind::Object1, size };
    let to = |object| Referent { file: None, object, part: ReferentPart::Whole };
    let reference = store.encode_reference(&form, &to(a)).unwrap();
    assert_eq!(reference.len(), size as usize);
    assert_eq!(store.referent(ReferenceKind::Object1, &reference).unwrap(), Some(to(a)));
    assert_eq!(store.referent(ReferenceKind::Object1, &reference).unwrap(), Some(to(a)));
    assert_eq!(store.referent(ReferenceKind::Object1, &vec![0; size as usize]).unwrap(), None);
    let is_live = store.writer().unwrap().start_swmr().is_ok();
    if let Some(reader) = if is_live { lab.open_reader(&store) } else { None } {
        assert_eq!(reader.encode_reference(&form, &to(a)).unwrap(), reference, "a reader makes the same one");
        assert!(reader.encode_reference(&form, &to(ObjectId(u128::MAX))).is_err());
    }
    assert!(store.encode_reference(&form, &to(ObjectId(u128::MAX))).is_err());
    let region = Referent { part: ReferentPart::Region(Selection::All), ..to(a) };
    assert!(matches!(store.encode_reference(&form, &region), Err(Error::Invalid(_))));
}

/// The coordinates of the elements of a region, in a dataset of 10 by 4, and the name of an attribute.
pub(super) fn region_coords_or_attribute(part: &ReferentPart) -> (Vec<Vec<u64>>, Option<Name>) {
    match part {
        ReferentPart::Whole => (Vec::new(), None),
        ReferentPart::Attribute(name) => (Vec::new(), Some(name.clone())),
        ReferentPart::Region(selection) => {
            let selected = selection.bind(&[10, 4]).unwrap();
            let grid = ChunkGrid::new(&[1, 1]).unwrap();
            let cut = selected.split_by_chunks(&grid);
            (cut.chunks().map(|at| at.scaled().to_vec()).collect(), None)
        }
    }
}

/// References to regions and attributes, and references of HDF5 1.12, lead to the object from which they were made.
pub fn test_region_and_standard_references(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::REGION_REFERENCES.with(StoreFeatures::STANDARD_REFERENCES)) {
        return;
    }
    let data = make(&store, "data", unlimited_spec(&[10, 4], &[2, 2])).id();
    let slab = Selection::block(&[2, 1], &[3, 2]);
    let points = Selection::Points(vec![[1, 1].as_slice().into(), [9, 0].as_slice().into()]);
    let attribute = name("unit");
    let cases = [
        (ReferenceKind::Region1, 12, ReferentPart::Region(slab.clone())),
        (ReferenceKind::Region1, 12, ReferentPart::Region(points)),
        (ReferenceKind::Object2, 16, ReferentPart::Whole),
        (ReferenceKind::Region2, 20, ReferentPart::Region(slab)),
        (ReferenceKind::Attribute, 20, ReferentPart::Attribute(attribute)),
    ];
    let forms = store.session().vlen_and_reference_sizes;
    for (kind, size, part) in cases {
        // In HDF5 files, references of HDF5 1.12 have any size that has room.
        let size = if forms == VlenAndReferenceSizes::default() { size } else { forms.reference_size(kind) };
        let to = Referent { file: None, object: data, part };
        let element = store.encode_reference(&ReferenceType { kind, size }, &to).unwrap();
        assert_eq!(element.len(), size as usize);
        let found = store.referent(kind, &element).unwrap().expect("the reference is not null");
        assert_eq!((&found.file, found.object), (&to.file, to.object), "{kind:?}");
        assert_eq!(region_coords_or_attribute(&found.part), region_coords_or_attribute(&to.part), "{kind:?}");
        assert_eq!(store.referent(kind, &vec![0; size as usize]).unwrap(), None);
    }
}
