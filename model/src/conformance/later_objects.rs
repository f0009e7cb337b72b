//! Waiting for what is not there yet.

use std::time::Duration;

use super::claims::has_claimed_features;
use super::maps::{make_map, put};
use super::store_fixture::{StoreFixture, make, name, number, u16le, unlimited_spec};
use crate::{
    LinkTarget, MapScan, NewObject, ObjectId, ObjectScope, ObjectSpec, PublishLevel, Store, StoreFeatures, Watch,
    WatchEvent,
};

/// Waits until `find` finds something: a wait may end without a change, and a change may be another one.
fn wait_for<T>(reader: &impl Store, watch: &mut dyn Watch, what: &str, find: impl Fn() -> Option<T>) -> T {
    loop {
        assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Changed, "{what}");
        reader.refresh(ObjectScope::All).unwrap();
        if let Some(found) = find() {
            return found;
        }
    }
}

/// A reader that looks for a group, a dataset, an attribute and a map before they are there is told of each, by a watch that it
/// made before.
pub fn test_watch_for_new_objects(lab: &impl StoreFixture) {
    let writer = lab.create();
    if !writer.session().capabilities.supports_live_reads {
        return;
    }
    writer.writer().unwrap().start_swmr().unwrap();
    let Some(reader) = lab.open_reader(&writer) else { return };
    let root = reader.session().root;
    let linked = |group: ObjectId, at: &str| match reader.link(group, &name(at)).unwrap()?.target {
        LinkTarget::Hard(id) => Some(id),
        other => panic!("{other:?}"),
    };
    let publish = || writer.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let mut watch = reader.watch(&[root]).unwrap();
    for at in ["group", "data", "map"] {
        assert_eq!(linked(root, at), None, "{at} is not there yet");
    }
    let see = |watch: &mut dyn Watch, at: &str| {
        publish();
        wait_for(&reader, watch, at, || linked(root, at))
    };

    writer.writer().unwrap().create(&NewObject::linked(root, &name("group"), &ObjectSpec::group())).unwrap();
    let group = see(&mut *watch, "group");

    let data = make(&writer, "data", unlimited_spec(&[0], &[2]));
    let seen = see(&mut *watch, "data");
    assert_eq!(*reader.dataset(seen).unwrap().spec().unwrap(), *data.spec().unwrap());

    for id in [group, seen] {
        let mut watch = reader.watch(&[id]).unwrap();
        let find = || reader.attribute(id, &name("a")).unwrap();
        assert_eq!(find(), None);
        writer.writer().unwrap().set_attribute(id, &number(name("a"), 7)).unwrap();
        publish();
        assert_eq!(wait_for(&reader, &mut *watch, "an attribute", find).value, [7, 0]);
    }

    if has_claimed_features(&writer, StoreFeatures::MAPS) {
        let map = make_map(&writer, "map", u16le(), u16le());
        put(&writer, map, &[(&[1, 0], &[2, 0])]).unwrap();
        let seen = see(&mut *watch, "map");
        let mut pairs = 0;
        let count = &mut |_: crate::MapKey<'_>, _: &[u8]| {
            pairs += 1;
            true
        };
        reader.maps().unwrap().for_each(seen, &MapScan::default(), count).unwrap();
        assert_eq!(pairs, 1);
    }
    writer.close().unwrap();
}
