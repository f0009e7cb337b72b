//! The rules that every store must keep, as one test suite that each store runs.
//!
//! A store implements [`Lab`] and calls [`suite!`](suite), which makes a test of each group. A group panics with the
//! sentence that does not hold. Which groups apply follows from the [`Capabilities`](crate::Capabilities) of the store:
//! what it claims has to work, and what it does not claim has to be refused.

mod batches;
mod claims;
mod damaged_objects;
mod data;
mod element_types;
mod injected_faults;
mod later_objects;
mod maps;
mod objects;
mod read_all;
mod refused_objects;
mod types;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub use batches::*;
use claims::has_claimed_features;
pub use claims::unclaimed_features;
pub use damaged_objects::*;
pub use data::*;
pub use element_types::*;
pub use injected_faults::*;
pub use later_objects::*;
pub use maps::*;
pub use objects::*;
pub use read_all::read_all;
pub use refused_objects::*;
pub use types::*;
use types::{find, rows};

pub use crate::{
    conformance_damage_suite as damage_suite, conformance_fault_suite as fault_suite, conformance_suite as suite,
};

use crate::{
    AttributeData, ByteOrder, ChunkCoord, ChunkStore, DatasetSpec, Dataspace, Datatype, Error, Features, Layout,
    LinkTarget, Liveness, Name, NewObject, ObjectId, ObjectSpec, Publish, Shape, Sign, Store, UNLIMITED, WatchEvent,
};

/// Makes the stores that the suite tries.
pub trait Lab {
    /// The store.
    type Store: Store;

    /// A new, empty file, open for writing.
    fn create(&self) -> Self::Store;

    /// The file of a session that was closed, open for writing again.
    fn reopen(&self, closed: Self::Store) -> Self::Store;

    /// A reading session beside the writing one, as another process would have it, after
    /// [`Store::start_swmr`]. `None` if the store cannot be read while it is written.
    fn reader(&self, writer: &Self::Store) -> Option<Self::Store>;
}

/// Makes a test of each group, for the store of a [`Lab`]: `suite!(Lab::new())`. None is left out by hand. Where a lab is
/// worth having once only, `suite!(called lab)` within a test calls all groups.
#[macro_export]
macro_rules! conformance_suite {
    ($lab:expr) => {
        $crate::conformance_suite!(@groups tests $lab);
    };
    (called $lab:expr) => {
        $crate::conformance_suite!(@groups called $lab);
    };
    (@groups $form:ident $lab:expr) => {
        $crate::conformance_suite!(@$form $lab; groups links link_removal attributes committed_types contiguous compact
            types_that_are_read_back elements_of_every_type chunks filtered_chunks extents shrinking heap many_blobs removed_blobs references region_references renaming unlinked creation_order
            uses_of_committed_types comments refused_objects batches refused_batches parts staged_writes
            reads_of_many reads_of_blocks ordering commits threads unclaimed_features
            map_pairs refused_map_edits map_ranges map_key_types kept_maps live_maps persistence live later_objects);
    };
    (@called $lab:expr; $($group:ident)*) => {
        $(
            println!("{}", stringify!($group));
            $crate::conformance::$group(&$lab);
        )*
    };
    (@tests $lab:expr; $($group:ident)*) => {
        $(
            #[test]
            fn $group() {
                $crate::conformance::$group(&$lab);
            }
        )*
    };
}

fn name(text: &str) -> Name {
    Name::from(text)
}

fn u16le() -> Datatype {
    Datatype::integer(2, ByteOrder::Little, Sign::Unsigned)
}

/// A dataset of `dims` elements of two bytes, growing without limit along the first dimension.
fn unlimited_spec(dims: &[u64], chunk: &[u64]) -> DatasetSpec {
    let mut max = dims.to_vec();
    max[0] = UNLIMITED;
    DatasetSpec {
        datatype: u16le(),
        dataspace: Dataspace::Simple(Shape::with_max(dims, &max).unwrap()),
        layout: Layout::Chunked(chunk.into()),
        ..Default::default()
    }
}

/// A scalar attribute of two bytes.
fn number(name: Name, value: u16) -> AttributeData {
    AttributeData {
        name,
        datatype: u16le(),
        committed: None,
        dataspace: Dataspace::Scalar,
        value: value.to_le_bytes().into(),
        creation_order: None,
    }
}

fn make(store: &impl Store, at: &str, spec: DatasetSpec) -> Arc<dyn ChunkStore> {
    let id = store.writer().unwrap().create(&NewObject::linked(store.session().root, &name(at), &spec.into())).unwrap();
    store.dataset(id).unwrap()
}

/// The bytes of a variable-length element.
fn blob(store: &impl Store, element: &[u8]) -> Vec<u8> {
    let mut blobs = Vec::new();
    store.blobs(&[element], &mut |number, bytes| blobs.push((number, bytes.to_vec()))).unwrap();
    assert_eq!(blobs.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0], "each element comes once");
    blobs.remove(0).1
}

fn link_names(store: &impl Store, group: ObjectId) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    store
        .for_each_link(group, &mut |link| {
            assert!(names.insert(link.name), "a link is listed once");
            true
        })
        .unwrap();
    names
}

fn read_stored(chunks: &dyn ChunkStore, at: &[u64]) -> Vec<u8> {
    let chunk = chunks.locate(&ChunkCoord::new(at)).unwrap().expect("the chunk is stored");
    let mut bytes = vec![0xEE; chunk.size as usize];
    chunks.read(&chunk, 0, &mut bytes).unwrap();
    bytes
}

/// Everything is there after the file was closed and opened again; a closed session does nothing.
pub fn persistence(lab: &impl Lab) {
    let store = lab.create();
    let group = store
        .writer()
        .unwrap()
        .create(&NewObject::linked(store.session().root, &name("g"), &ObjectSpec::group()))
        .unwrap();
    store.writer().unwrap().create(&NewObject::linked(group, &name("below"), &ObjectSpec::group())).unwrap();
    let mut names = BTreeSet::from([name("below")]);
    if has_claimed_features(&store, Features::SOFT_LINKS) {
        store.writer().unwrap().add_link(group, &name("soft"), &LinkTarget::Soft(name("/g"))).unwrap();
        names.insert(name("soft"));
    }
    let attribute = AttributeData {
        name: name("a"),
        datatype: u16le(),
        committed: None,
        dataspace: Dataspace::Scalar,
        value: vec![1, 2],
        creation_order: None,
    };
    store.writer().unwrap().set_attribute(group, &attribute).unwrap();
    let spec = unlimited_spec(&[3, 2], &[2, 2]);
    let data = make(&store, "data", spec.clone());
    data.write_whole(&ChunkCoord::new(&[1, 0]), 0, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    store.close().unwrap();
    store.close().unwrap();
    assert!(matches!(store.writer().map(drop), Err(Error::Closed)));
    assert!(data.write_whole(&ChunkCoord::new(&[0, 0]), 0, &[0; 8]).is_err());
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
    data.write_whole(&ChunkCoord::new(&[0, 0]), 0, &[9; 8]).unwrap();
    data.publish(Publish::Visible).unwrap();
    assert_eq!(read_stored(&*data, &[0, 0]), [9; 8]);
}

/// A reader sees an extent after the writer's flush and its own refresh, whole, and cannot write.
pub fn live(lab: &impl Lab) {
    let writer = lab.create();
    if !writer.session().capabilities.live {
        return;
    }
    let data = make(&writer, "data", unlimited_spec(&[0], &[2]));
    writer.writer().unwrap().start_swmr().unwrap();
    let Some(reader) = lab.reader(&writer) else { return };
    assert_ne!(reader.liveness().unwrap(), Liveness::AtRest);
    assert_eq!(writer.liveness().unwrap(), Liveness::AtRest, "nobody else changes the file of a writer");
    let LinkTarget::Hard(id) = reader.link(reader.session().root, &name("data")).unwrap().unwrap().target else {
        panic!("a hard link");
    };
    let mut watch = reader.watch(&[id]).unwrap();
    let seen = reader.dataset(id).unwrap();
    let extent = || seen.spec().unwrap().dataspace.dims()[0];
    assert_eq!(extent(), 0);
    for i in 0..20u64 {
        data.write_whole(&ChunkCoord::new(&[i]), 0, &[i as u8; 4]).unwrap();
        data.set_extent(&[2 * i + 2]).unwrap();
        seen.refresh().unwrap();
        assert!(extent() <= 2 * i + 2);
        data.publish(Publish::Visible).unwrap();
        assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Changed);
        seen.refresh().unwrap();
        assert_eq!(extent(), 2 * i + 2);
        for k in 0..=i {
            assert_eq!(read_stored(&*seen, &[k]), [k as u8; 4]);
        }
    }
    assert!(!seen.refresh().unwrap(), "nothing has changed");
    assert!(matches!(seen.write_whole(&ChunkCoord::new(&[0]), 0, &[0; 4]), Err(Error::ReadOnly)));
    assert!(matches!(seen.set_extent(&[0]), Err(Error::ReadOnly)));
    assert!(matches!(reader.writer().map(drop), Err(Error::ReadOnly)));
    writer.close().unwrap();
    assert_eq!(reader.liveness().unwrap(), Liveness::AtRest);
}
