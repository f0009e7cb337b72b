//! Rules of sessions: what is there after they end, and what readers beside them see.

use std::collections::BTreeSet;
use std::time::Duration;

use super::claims::has_claimed_features;
use super::store_fixture::{StoreFixture, link_names, make, name, read_stored, u16le, unlimited_spec};
use crate::{
    AttributeData, ChunkCoord, Dataspace, Error, LinkTarget, NewObject, ObjectSpec, PublishLevel, Store, StoreFeatures,
    WatchEvent, WriterLiveness,
};

/// Everything is there after the file was closed and opened again; a closed session does nothing.
pub fn test_persistence(lab: &impl StoreFixture) {
    let store = lab.create();
    let group = store
        .writer()
        .unwrap()
        .create(&NewObject::linked(store.session().root, &name("g"), &ObjectSpec::group()))
        .unwrap();
    store.writer().unwrap().create(&NewObject::linked(group, &name("below"), &ObjectSpec::group())).unwrap();
    let mut names = BTreeSet::from([name("below")]);
    if has_claimed_features(&store, StoreFeatures::SOFT_LINKS) {
        store.writer().unwrap().add_link(group, &name("soft"), &LinkTarget::Soft(name("/g"))).unwrap();
        names.insert(name("soft"));
    }
    let attribute = AttributeData {
        name: name("a"),
        datatype: u16le(),
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value: vec![1, 2],
        creation_order: None,
    };
    store.writer().unwrap().set_attribute(group, &attribute).unwrap();
    let spec = unlimited_spec(&[3, 2], &[2, 2]);
    let data = make(&store, "data", spec.clone());
    data.write_whole_chunk(&ChunkCoord::new(&[1, 0]), 0, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    store.close().unwrap();
    store.close().unwrap();
    assert!(matches!(store.writer().map(drop), Err(Error::Closed)));
    assert!(data.write_whole_chunk(&ChunkCoord::new(&[0, 0]), 0, &[0; 8]).is_err());
    drop(data);

    let store = lab.reopen(store);
    let root = store.session().root;
    assert_eq!(link_names(&store, root), [name("data"), name("g")].into());
    let id = |group, at: &str| match store.link(group, &name(at)).unwrap().unwrap().target {
        LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    };
    let group = id(root, "g");
    assert_eq!(link_names(&store, group), names);
    assert_eq!(store.attribute(group, &name("a")).unwrap().unwrap().value, [1, 2]);
    let data = store.dataset(id(root, "data")).unwrap();
    assert_eq!(*data.spec().unwrap(), spec);
    assert_eq!(read_stored(&*data, &[1, 0]), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(data.locate(&ChunkCoord::new(&[0, 0])).unwrap(), None);
    data.set_extent(&[4, 2]).unwrap();
    data.write_whole_chunk(&ChunkCoord::new(&[0, 0]), 0, &[9; 8]).unwrap();
    data.publish(PublishLevel::Visible).unwrap();
    assert_eq!(read_stored(&*data, &[0, 0]), [9; 8]);
}

/// A reader sees an extent after the writer's flush and its own refresh, whole, and cannot write.
pub fn test_live_reads(lab: &impl StoreFixture) {
    let writer = lab.create();
    if !writer.session().capabilities.supports_live_reads {
        return;
    }
    let data = make(&writer, "data", unlimited_spec(&[0], &[2]));
    writer.writer().unwrap().start_swmr().unwrap();
    let Some(reader) = lab.open_reader(&writer) else { return };
    assert_ne!(reader.liveness().unwrap(), WriterLiveness::AtRest);
    assert_eq!(writer.liveness().unwrap(), WriterLiveness::AtRest, "nobody else changes the file of a writer");
    let LinkTarget::Hard(id) = reader.link(reader.session().root, &name("data")).unwrap().unwrap().target else {
        panic!("a hard link");
    };
    let mut watch = reader.watch(&[id]).unwrap();
    let seen = reader.dataset(id).unwrap();
    let extent = || seen.spec().unwrap().dataspace.dims()[0];
    assert_eq!(extent(), 0);
    for i in 0..20u64 {
        data.write_whole_chunk(&ChunkCoord::new(&[i]), 0, &[i as u8; 4]).unwrap();
        data.set_extent(&[2 * i + 2]).unwrap();
        seen.refresh().unwrap();
        assert!(extent() <= 2 * i + 2);
        data.publish(PublishLevel::Visible).unwrap();
        assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Changed);
        seen.refresh().unwrap();
        assert_eq!(extent(), 2 * i + 2);
        for k in 0..=i {
            assert_eq!(read_stored(&*seen, &[k]), [k as u8; 4]);
        }
    }
    assert!(!seen.refresh().unwrap(), "nothing has changed");
    assert!(matches!(seen.write_whole_chunk(&ChunkCoord::new(&[0]), 0, &[0; 4]), Err(Error::ReadOnly)));
    assert!(matches!(seen.set_extent(&[0]), Err(Error::ReadOnly)));
    assert!(matches!(reader.writer().map(drop), Err(Error::ReadOnly)));
    writer.close().unwrap();
    assert_eq!(reader.liveness().unwrap(), WriterLiveness::AtRest);
}
