use h5live_model::{
    AttributeData, ByteOrder, ChunkCoord, CreationOrder, Dataspace, Datatype, FilterSpec, GroupSpec, Layout,
    LinkOrAttributeStorageSpec, LinkTarget, Name, NewObject, ObjectSpec, Shape,
};

use super::Copier;
use crate::{Error, ErrorKind, File, Object, Reference, Value};

fn names(file: &File, group: &str) -> Vec<String> {
    file.group(group).unwrap().names().unwrap().iter().map(Name::to_string).collect()
}

#[test]
fn the_graph_below_an_object_comes_along_as_it_is() {
    let from = File::in_memory();
    let run = from.create_group("run").unwrap();
    let data = run.new_dataset::<u16>().shape(&[4]).create_with_data("data", &[1u16, 2, 3, 4]).unwrap();
    run.create_group("inner").unwrap().link_hard("same", data.id()).unwrap();
    run.link_hard("ring", run.id()).unwrap();
    run.link_soft("soft", "/nowhere").unwrap();
    run.link_external("external", "other.h5", "/x").unwrap();
    data.set_attribute("unit", &"mm".to_owned()).unwrap();
    data.set_comment(Some("remark")).unwrap();
    let to = File::in_memory();
    from.object("run").unwrap().copy_to(&to.root(), "a/b").unwrap();
    assert_eq!(names(&to, "a/b"), ["data", "external", "inner", "ring", "soft"]);
    let copy = to.dataset("a/b/data").unwrap();
    assert_eq!(copy.read::<u16>().unwrap(), [1, 2, 3, 4]);
    assert_eq!(copy.attribute("unit").unwrap().read_scalar::<String>().unwrap(), "mm");
    let info = copy.info().unwrap();
    assert_eq!((info.hard_link_count, info.comment), (2, Some("remark".into())));
    assert_eq!(to.dataset("a/b/inner/same").unwrap().id(), copy.id());
    assert_eq!(to.group("a/b/ring").unwrap().id(), to.group("a/b").unwrap().id());
    assert_eq!(to.group("a/b").unwrap().link("soft").unwrap().unwrap().target, LinkTarget::Soft("/nowhere".into()));
    let taken = from.object("run").unwrap().copy_to(&to.root(), "a/b").unwrap_err();
    assert!(matches!(taken.kind(), ErrorKind::Store(h5live_model::Error::Exists(_))));
}

#[test]
fn references_lead_to_the_copies() {
    let file = File::in_memory();
    let tree = file.create_group("tree").unwrap();
    let inside = Object::Group(tree.create_group("inside").unwrap()).reference().unwrap();
    let outside = Object::Group(file.create_group("outside").unwrap()).reference().unwrap();
    let refs = tree.new_dataset::<Reference>().shape(&[3]).create("refs").unwrap();
    refs.write(&[inside.clone(), outside.clone(), Reference::default()]).unwrap();
    tree.set_attribute("main", &inside).unwrap();
    file.copy_object("tree", "copy").unwrap();
    let leads_to = |file: &File, reference: &Reference| file.dereference(reference).unwrap().map(|object| object.id());
    let copied = file.dataset("copy/refs").unwrap().read::<Reference>().unwrap();
    let ids: Vec<_> = copied.iter().map(|reference| leads_to(&file, reference)).collect();
    let id = |path: &str| Some(file.group(path).unwrap().id());
    assert_eq!(ids, [id("copy/inside"), id("outside"), None]);
    let main = file.group("copy").unwrap().attribute("main").unwrap().read_scalar::<Reference>().unwrap();
    assert_eq!(leads_to(&file, &main), id("copy/inside"));

    let other = File::in_memory();
    other.create_group("padding, so that objects have other identities").unwrap();
    tree.set_attribute("beside", &outside).unwrap();
    let report = file.object("tree").unwrap().copy_to(&other.root(), "tree").unwrap();
    let lost: Vec<_> = report.lost_references.iter().map(|lost| (&*lost.path, lost.count)).collect();
    assert_eq!(lost, [("/tree/refs", 1), ("/tree@beside", 1)]);
    let copied = other.dataset("tree/refs").unwrap().read::<Reference>().unwrap();
    let ids: Vec<_> = copied.iter().map(|reference| leads_to(&other, reference)).collect();
    assert_eq!(ids, [Some(other.group("tree/inside").unwrap().id()), None, None]);
}

#[test]
fn committed_types_and_creation_orders_come_along() {
    let from = File::in_memory();
    let order = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, ..LinkOrAttributeStorageSpec::default() };
    let spec = ObjectSpec { attribute_storage: order, ..GroupSpec { link_storage: order }.into() };
    let group = from.writer().unwrap().create(&NewObject::linked(from.root().id(), &"g".into(), &spec)).unwrap();
    let datatype = Datatype::float(8, ByteOrder::Big).unwrap();
    let spec = datatype.clone().into();
    let committed = from.writer().unwrap().create(&NewObject::linked(from.root().id(), &"type".into(), &spec)).unwrap();
    for name in ["z", "a", "m"] {
        from.writer().unwrap().add_link(group, &name.into(), &LinkTarget::Soft(name.into())).unwrap();
        let attribute = AttributeData {
            name: name.into(),
            datatype: datatype.clone(),
            committed_datatype: Some(committed),
            dataspace: Dataspace::Scalar,
            value: vec![0; 8],
            creation_order: None,
        };
        from.writer().unwrap().set_attribute(group, &attribute).unwrap();
    }
    let to = File::in_memory();
    from.object("g").unwrap().copy_to(&to.root(), "g").unwrap();
    let copy = to.group("g").unwrap();
    assert_eq!(to.store().spec(copy.id()).unwrap().into_group().unwrap(), GroupSpec { link_storage: order });
    let mut links = copy.links().unwrap();
    links.sort_by_key(|link| link.creation_order);
    assert_eq!(links.iter().map(|link| link.name.to_string()).collect::<Vec<_>>(), ["z", "a", "m"]);
    let attribute = to.store().attribute(copy.id(), &"m".into()).unwrap().unwrap();
    assert_eq!(attribute.creation_order, Some(2));
    let committed = attribute.committed_datatype.expect("its type is a committed one");
    assert_eq!(to.store().spec(committed).unwrap().into_datatype().unwrap(), datatype);
    assert_eq!(to.store().info(committed).unwrap().hard_link_count, 3);
}

#[test]
fn chunks_are_copied_as_they_are_stored() {
    let from = File::in_memory();
    let data = from.new_dataset::<u32>().shape(&[10]).chunk_shape(&[4]).deflate(9).create("data").unwrap();
    data.write_slice(0..5, &[1u32, 2, 3, 4, 5]).unwrap();
    // No pipeline would make this.
    data.write_chunk(&ChunkCoord::new(&[2]), 1, &[7; 16]).unwrap();
    let to = File::in_memory();
    from.object("data").unwrap().copy_to(&to.root(), "data").unwrap();
    let copy = to.dataset("data").unwrap();
    assert_eq!(copy.stored_chunks().unwrap(), data.stored_chunks().unwrap());
    for chunk in data.stored_chunks().unwrap() {
        assert_eq!(copy.read_chunk(&chunk).unwrap(), data.read_chunk(&chunk).unwrap());
    }
    assert_eq!(copy.read::<u32>().unwrap(), data.read::<u32>().unwrap());
}

#[test]
fn texts_and_sequences_come_along_where_they_were_written() {
    let from = File::in_memory();
    let data = from.new_dataset::<Vec<String>>().shape(&[3, 2]).chunk_shape(&[2, 2]).deflate(1).create("data").unwrap();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let values = [texts(&["a", "bc"]), texts(&[])];
    data.write_slice(2, &values).unwrap();
    let to = File::in_memory();
    from.object("data").unwrap().copy_to(&to.root(), "data").unwrap();
    let copy = to.dataset("data").unwrap();
    assert_eq!(copy.read::<Vec<String>>().unwrap(), data.read::<Vec<String>>().unwrap());
    assert_eq!(copy.stored_chunks().unwrap().len(), 1);
}

#[test]
fn datasets_are_rechunked_and_filtered_anew() -> Result<(), Error> {
    let from = File::in_memory();
    let values: Vec<i32> = (0..600).collect();
    from.new_dataset::<i32>().shape(&[20, 30]).contiguous().create("plain")?.write(&values)?;
    from.new_dataset::<i32>().shape(&[20, 30]).chunk_shape(&[7, 30]).deflate(1).create("packed")?.write(&values)?;
    from.new_dataset::<i32>().create("scalar")?.write(&[7])?;
    let text = from.new_dataset::<String>().shape(&[20, 30]).create("text")?;
    text.write_values((19, 29), &[Value::Text("last".into())])?;
    let to = File::in_memory();
    let mut copied = 0;
    let shuffle = FilterSpec { id: 2, optional: true, ..FilterSpec::default() };
    let fletcher = FilterSpec { id: 3, ..FilterSpec::default() };
    let mut copy =
        Copier::new(&from, &to).chunk(&[6, 40]).filters(&[shuffle, fletcher]).progress(|bytes| copied += bytes);
    copy.contents(&from.root(), &to.root())?;
    copy.copy_data_and_finish()?;
    assert!(copied >= 4800);
    for name in ["plain", "packed"] {
        let copy = to.dataset(name)?;
        let spec = copy.spec()?;
        assert_eq!(spec.layout, Layout::Chunked(vec![6, 30]));
        assert_eq!(spec.filters.iter().map(|filter| filter.id).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(spec.filters[0].params, [4]);
        assert_eq!(copy.read::<i32>()?, values);
    }
    assert_eq!(to.dataset("scalar")?.read_scalar::<i32>()?, 7);
    assert_eq!(to.dataset("text")?.read_slice::<String>((19, 29))?, ["last"]);
    assert_eq!(from.dataset("plain")?.spec()?.dataspace, Dataspace::Simple(Shape::fixed(&[20, 30])));
    Ok(())
}

#[test]
fn fill_values_that_are_references_lead_to_the_copies() {
    let from = File::in_memory();
    from.create_group("z").unwrap();
    let target = from.object("z").unwrap().reference().unwrap();
    from.new_dataset::<Reference>().shape(&[1]).fill(target.clone()).create("a").unwrap();
    let refs = from.new_dataset::<Reference>().shape(&[1]).fill(target).create("z/again").unwrap();
    assert_eq!(refs.read_scalar::<Reference>().unwrap(), from.object("z").unwrap().reference().unwrap());
    let to = File::in_memory();
    to.create_group("so that identities differ").unwrap();
    let mut copy = Copier::new(&from, &to);
    copy.contents(&from.root(), &to.root()).unwrap();
    copy.copy_data_and_finish().unwrap();
    let reference = to.dataset("a").unwrap().read_scalar::<Reference>().unwrap();
    assert_eq!(to.dereference(&reference).unwrap().unwrap().id(), to.group("z").unwrap().id());
    assert_eq!(to.group("z").unwrap().info().unwrap().hard_link_count, 1);
}

/// A file with a dataset of three chunks for each way in which the second one cannot be decoded.
fn with_damage() -> File {
    let file = File::in_memory();
    let unknown = FilterSpec { id: 32_999, optional: true, ..FilterSpec::default() };
    let fletcher = FilterSpec { id: 3, ..FilterSpec::default() };
    for (name, filter) in [("unknown", unknown), ("checksum", fletcher)] {
        file.new_dataset::<u32>().shape(&[12]).chunk_shape(&[4]).filter(filter).create(name).unwrap();
    }
    let packed = file.new_dataset::<u32>().shape(&[12]).chunk_shape(&[4]).deflate(1).create("packed").unwrap();
    packed.write(&[7; 12]).unwrap();
    packed.write_chunk(&ChunkCoord::new(&[1]), 0, &[0x78, 1, 2, 3]).unwrap();
    packed.write_chunk(&ChunkCoord::new(&[2]), 1, &[9; 16]).unwrap();
    file.dataset("unknown").unwrap().write_chunk(&ChunkCoord::new(&[1]), 0, &[1, 2, 3]).unwrap();
    let checksum = file.dataset("checksum").unwrap();
    checksum.write(&[7; 12]).unwrap();
    let chunk = checksum.stored_chunk(&ChunkCoord::new(&[1])).unwrap().unwrap();
    let mut stored = checksum.read_chunk(&chunk).unwrap();
    stored[5] ^= 1;
    checksum.write_chunk(&chunk.coord, 0, &stored).unwrap();
    file
}

#[test]
fn chunks_that_cannot_be_decoded_are_copied_and_reported() {
    let from = with_damage();
    let to = File::in_memory();
    let mut copy = Copier::new(&from, &to);
    copy.contents(&from.root(), &to.root()).unwrap();
    let report = copy.copy_data_and_finish().unwrap();
    assert!(!report.is_clean() && report.undecodable_chunk_count() == 3, "{report:?}");
    let mut said: Vec<_> = report.undecodable_chunks.iter().map(|dataset| (&*dataset.path, dataset.count)).collect();
    said.sort_unstable();
    assert_eq!(said, [("/checksum", 1), ("/packed", 1), ("/unknown", 1)]);
    for dataset in &report.undecodable_chunks {
        let error = dataset.first_errors[0].to_string();
        assert!(error.contains(&dataset.path) && error.contains("chunk [1]"), "{error}");
        assert!(matches!(dataset.first_errors[0].kind(), ErrorKind::Filter(_)), "{error}");
        let (old, new) = (from.dataset(&dataset.path).unwrap(), to.dataset(&dataset.path).unwrap());
        for chunk in old.stored_chunks().unwrap() {
            let copied = new.stored_chunk(&chunk.coord).unwrap().unwrap();
            assert_eq!(new.read_chunk(&copied).unwrap(), old.read_chunk(&chunk).unwrap());
        }
    }
}

#[test]
fn chunks_are_not_decoded_without_verification() {
    let from = with_damage();
    let to = File::in_memory();
    let mut copy = Copier::new(&from, &to).verify(false);
    copy.contents(&from.root(), &to.root()).unwrap();
    assert!(copy.copy_data_and_finish().unwrap().is_clean());
    assert_eq!(to.dataset("packed").unwrap().stored_chunks().unwrap().len(), 3);
}

#[test]
fn errors_of_many_chunks_are_counted_and_the_first_are_kept() {
    let from = File::in_memory();
    let data = from.new_dataset::<u8>().shape(&[400]).chunk_shape(&[4]).deflate(1).create("data").unwrap();
    (0..100).for_each(|at| data.write_chunk(&ChunkCoord::new(&[at]), 0, &[1, 2]).unwrap());
    let to = File::in_memory();
    let report = from.object("data").unwrap().copy_to(&to.root(), "data").unwrap();
    assert_eq!(report.undecodable_chunk_count(), 100);
    assert_eq!(report.undecodable_chunks[0].first_errors.len(), crate::UndecodableChunks::MAX_ERRORS);
    assert_eq!(to.dataset("data").unwrap().stored_chunks().unwrap().len(), 100);
}

#[test]
fn rows_that_come_later_are_appended_in_their_order() {
    let (from, to) = (File::in_memory(), File::in_memory());
    let texts = from.new_dataset::<String>().shape(&[0]).max_shape(&[crate::UNLIMITED]).chunk_shape(&[3]);
    let texts = texts.create("texts").unwrap();
    let frames = from.new_dataset::<u16>().shape(&[0, 1 << 19]).max_shape(&[crate::UNLIMITED, 1 << 19]);
    let frames = frames.chunk_shape(&[2, 1 << 19]).create("frames").unwrap();
    texts.append(&["a".to_owned(), String::new()]).unwrap();
    let mut copy = Copier::new(&from, &to);
    copy.contents(&from.root(), &to.root()).unwrap();
    copy.copy_data_and_finish().unwrap();
    texts.append(&["bcd".to_owned(), "e".to_owned()]).unwrap();
    let values: Vec<u16> = (0..11 << 19).map(|n| (n >> 3) as u16).collect();
    frames.append(&values).unwrap();
    let mut copy = Copier::new(&from, &to);
    let (texts_copy, frames_copy) = (to.dataset("texts").unwrap(), to.dataset("frames").unwrap());
    assert_eq!(copy.append_next_missing_rows(&texts, &texts_copy).unwrap(), 2);
    assert_eq!(texts_copy.read::<String>().unwrap(), ["a", "", "bcd", "e"]);
    let parts: Vec<u64> = std::iter::from_fn(|| Some(copy.append_next_missing_rows(&frames, &frames_copy).unwrap()))
        .take_while(|rows| *rows > 0)
        .collect();
    assert_eq!(parts, [4, 4, 3], "of four mebibytes at most");
    assert!(frames_copy.read::<u16>().unwrap() == values);
    assert_eq!(copy.append_next_missing_rows(&texts, &texts_copy).unwrap(), 0);
    texts_copy.append(&["f".to_owned()]).unwrap();
    assert!(copy.append_next_missing_rows(&texts, &texts_copy).unwrap_err().to_string().contains("not a part"));
    let refs = from.new_dataset::<Reference>().shape(&[0]).max_shape(&[crate::UNLIMITED]).chunk_shape(&[3]);
    let refs = refs.create("refs").unwrap();
    assert!(copy.append_next_missing_rows(&refs, &refs).unwrap_err().to_string().contains("refer to objects"));
}
