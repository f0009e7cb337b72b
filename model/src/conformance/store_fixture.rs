//! What makes the stores that the suite tries, and the objects that the groups make in them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::{
    AttributeData, ByteOrder, ChunkCoord, ChunkStore, DatasetSpec, Dataspace, Datatype, Layout, Name, NewObject,
    ObjectId, Shape, Sign, Store, UNLIMITED,
};

/// Makes the stores that the suite tries.
pub trait StoreFixture {
    /// The store.
    type Store: Store;

    /// A new, empty file, open for writing.
    fn create(&self) -> Self::Store;

    /// The file of a session that was closed, open for writing again.
    fn reopen(&self, closed: Self::Store) -> Self::Store;

    /// A reading session beside the writing one, as another process would have it, after
    /// [`Store::start_swmr`]. `None` if the store cannot be read while it is written.
    fn open_reader(&self, writer: &Self::Store) -> Option<Self::Store>;
}

pub(super) fn name(text: &str) -> Name {
    Name::from(text)
}

pub(super) fn u16le() -> Datatype {
    Datatype::integer(2, ByteOrder::Little, Sign::Unsigned)
}

/// A dataset of `dims` elements of two bytes, growing without limit along the first dimension.
pub(super) fn unlimited_spec(dims: &[u64], chunk: &[u64]) -> DatasetSpec {
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
pub(super) fn number(name: Name, value: u16) -> AttributeData {
    AttributeData {
        name,
        datatype: u16le(),
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value: value.to_le_bytes().into(),
        creation_order: None,
    }
}

pub(super) fn make(store: &impl Store, at: &str, spec: DatasetSpec) -> Arc<dyn ChunkStore> {
    let id = store.writer().unwrap().create(&NewObject::linked(store.session().root, &name(at), &spec.into())).unwrap();
    store.dataset(id).unwrap()
}

/// The bytes of a variable-length element.
pub(super) fn blob(store: &impl Store, element: &[u8]) -> Vec<u8> {
    let mut blobs = Vec::new();
    store.read_blobs(&[element], &mut |number, bytes| blobs.push((number, bytes.to_vec()))).unwrap();
    assert_eq!(blobs.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0], "each element comes once");
    blobs.remove(0).1
}

pub(super) fn link_names(store: &impl Store, group: ObjectId) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    store
        .for_each_link(group, &mut |link| {
            assert!(names.insert(link.name), "a link is listed once");
            true
        })
        .unwrap();
    names
}

pub(super) fn read_stored(chunks: &dyn ChunkStore, at: &[u64]) -> Vec<u8> {
    let chunk = chunks.locate(&ChunkCoord::new(at)).unwrap().expect("the chunk is stored");
    let mut bytes = vec![0xEE; chunk.size as usize];
    chunks.read(&chunk, 0, &mut bytes).unwrap();
    bytes
}
