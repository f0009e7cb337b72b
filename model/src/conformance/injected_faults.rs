//! What is left of a batch during which the medium of the store fails.

use super::store_fixture::{StoreFixture, make, read_stored, unlimited_spec};
use crate::{ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, LinkTarget, ObjectScope, PublishLevel, Store};

/// Changes of the medium that one batch is expected to need at most.
const MAX_CHANGES: u64 = 1000;

/// A [`StoreFixture`] whose stores fail when the suite wants them to. [`fault_suite!`](super::fault_suite) makes the tests.
pub trait FaultyStoreFixture: StoreFixture {
    /// Lets so many changes of the medium succeed from now on, and all later ones fail. With `None`, all succeed again.
    fn fail_after(&self, store: &Self::Store, changes: Option<u64>);

    /// The file of a session whose process has died just now, open for writing on a medium that works.
    fn crash_and_reopen(&self, store: Self::Store) -> Self::Store;
}

/// A dataset of one published chunk, in a file that others may follow.
fn create_with_first_rows<L: FaultyStoreFixture>(lab: &L) -> (L::Store, std::sync::Arc<dyn ChunkStore>) {
    let store = lab.create();
    let data = make(&store, "data", unlimited_spec(&[2], &[2]));
    data.write_whole_chunk(&ChunkCoord::new(&[0]), 0, &[1; 4]).unwrap();
    let writer = store.writer().unwrap();
    writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    if store.session().capabilities.supports_live_reads {
        writer.start_swmr().unwrap();
    }
    (store, data)
}

/// Overwrites the chunk, adds two, and publishes that.
fn write_second_batch(data: &dyn ChunkStore) -> crate::Result<()> {
    let coords = [0, 1, 2].map(|at| ChunkCoord::new(&[at]));
    let writes = coords.each_ref().map(|coord| ChunkWrite::Whole { coord, filter_mask: 0, bytes: &[2; 4] });
    data.write(&ChunkBatch {
        writes: &writes,
        extent: Some(&[6]),
        publish_after: &[],
        publish: Some(PublishLevel::Visible),
    })
}

/// Whether a file holds all of the batch. Otherwise it holds the old extent, and the old or the new chunk.
fn is_second_batch_published(store: &impl Store, what: &str) -> bool {
    let link = store.link(store.session().root, &super::store_fixture::name("data")).unwrap().unwrap();
    let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
    let data = store.dataset(id).unwrap();
    let extent = data.spec().unwrap().dataspace.dims()[0];
    let first = read_stored(&*data, &[0]);
    assert!(first == [1; 4] || first == [2; 4], "{what}: the chunk is a mixture: {first:?}");
    match extent {
        2 => return false,
        6 => {}
        _ => panic!("{what}: the extent is {extent}"),
    }
    for at in 0..3 {
        assert_eq!(read_stored(&*data, &[at]), [2; 4], "{what}: chunk {at} below the new extent");
    }
    true
}

/// The medium fails at each change of a batch in turn, and then the writer dies: the file is as before the batch, or as
/// after it.
pub fn test_failed_batch_then_crash(lab: &impl FaultyStoreFixture) {
    for changes in 0..MAX_CHANGES {
        let (store, data) = create_with_first_rows(lab);
        lab.fail_after(&store, Some(changes));
        let written = write_second_batch(&*data);
        if let Some(reader) = lab.open_reader(&store) {
            let is_new = is_second_batch_published(&reader, &format!("a reader after {changes} changes"));
            assert!(is_new || written.is_err(), "what was published is seen");
        }
        drop(data);
        let store = lab.crash_and_reopen(store);
        let is_new = is_second_batch_published(&store, &format!("after {changes} changes"));
        if written.is_ok() {
            assert!(is_new, "what was published outlasts the writer");
            assert!(changes > 0, "no change has failed");
            return;
        }
    }
    panic!("a batch takes more than {MAX_CHANGES} changes");
}

/// The medium fails at each change of a batch in turn, and works again: the same batch succeeds when it is given again.
pub fn test_failed_batch_retry(lab: &impl FaultyStoreFixture) {
    for changes in 0..MAX_CHANGES {
        let (store, data) = create_with_first_rows(lab);
        lab.fail_after(&store, Some(changes));
        let written = write_second_batch(&*data);
        lab.fail_after(&store, None);
        if written.is_ok() {
            assert!(changes > 0, "no change has failed");
            return;
        }
        write_second_batch(&*data).unwrap();
        assert!(is_second_batch_published(&store, &format!("again after {changes} changes")));
        drop(data);
        let store = lab.crash_and_reopen(store);
        assert!(is_second_batch_published(&store, &format!("after the writer died, again after {changes} changes")));
    }
    panic!("a batch takes more than {MAX_CHANGES} changes");
}
