//! Batches of changes: their order, what they publish, and what is left of one that fails.

use std::thread;

use super::{Lab, make, read_stored, u16le, unlimited_spec};
use crate::{
    ChunkBatch, ChunkCoord, ChunkWrite, DatasetSpec, Durability, Error, Fill, FillValue, LinkTarget, Parts, Publish,
    Scope, Store,
};

/// A batch does what its parts do one after the other; a row of chunks is its chunks.
pub fn batches(lab: &impl Lab) {
    let store = lab.create();
    let data = make(&store, "data", unlimited_spec(&[0, 2], &[2, 2]));
    let (first, last) = (ChunkCoord::new(&[0, 0]), ChunkCoord::new(&[3, 0]));
    let row: Vec<u8> = (0..24).collect();
    let writes = [
        ChunkWrite::Row { first: &first, size: 8, bytes: &row },
        ChunkWrite::Whole { coord: &last, filter_mask: 0, bytes: &[9; 8] },
        ChunkWrite::Whole { coord: &first, filter_mask: 0, bytes: &[7; 8] },
    ];
    let batch = ChunkBatch { writes: &writes, extent: Some(&[8, 2]), after: &[], publish: Some(Publish::Visible) };
    data.write(&batch).unwrap();
    data.write(&ChunkBatch::default()).unwrap();
    assert_eq!(data.spec().unwrap().dataspace.dims(), [8, 2]);
    assert_eq!(read_stored(&*data, &[0, 0]), [7; 8], "the later write wins");
    assert_eq!(read_stored(&*data, &[1, 0]), row[8..16]);
    assert_eq!(read_stored(&*data, &[2, 0]), row[16..]);
    assert_eq!(read_stored(&*data, &[3, 0]), [9; 8]);
}

/// A batch that is refused leaves the extent, and may be given again once it is right.
pub fn refused_batches(lab: &impl Lab) {
    let store = lab.create();
    let data = make(&store, "data", unlimited_spec(&[2], &[2]));
    let (coord, outside) = (ChunkCoord::new(&[1]), ChunkCoord::new(&[1, 0]));
    let good = ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &[1; 4] };
    let short = ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &[1; 3] };
    let nowhere = ChunkWrite::Whole { coord: &outside, filter_mask: 0, bytes: &[1; 4] };
    for (write, extent) in [(good, &[4, 4][..]), (short, &[4]), (nowhere, &[4])] {
        let writes = [write];
        let batch = ChunkBatch { writes: &writes, extent: Some(extent), after: &[], publish: Some(Publish::Visible) };
        assert!(matches!(data.write(&batch), Err(Error::Invalid(_))), "{batch:?}");
        assert_eq!(data.spec().unwrap().dataspace.dims(), [2], "{batch:?}");
    }
    let writes = [good];
    data.write(&ChunkBatch { writes: &writes, extent: Some(&[4]), after: &[], publish: None }).unwrap();
    assert_eq!(data.spec().unwrap().dataspace.dims(), [4]);
    assert_eq!(read_stored(&*data, &[1]), [1; 4]);
}

/// Parts of chunks are written as the capabilities say; the rest of a new chunk has fill values.
pub fn parts(lab: &impl Lab) {
    let store = lab.create();
    let fill = Fill { value: FillValue::Value(vec![5, 6]), ..Fill::default() };
    let data = make(&store, "data", DatasetSpec { fill, ..unlimited_spec(&[0], &[1 << 16]) });
    let coord = ChunkCoord::new(&[2]);
    let filled = |bytes: usize| [5, 6].into_iter().cycle().take(bytes).collect::<Vec<u8>>();
    let (chunk, mut want) = (2 << 16, filled(2 << 16));
    match store.session().capabilities.parts {
        Parts::Bytes { multiple_of } => {
            let unit = multiple_of.max(2) as usize;
            for at in [unit, 0, 3 * unit] {
                data.write_part(&coord, at as u64, &vec![at as u8 | 1; unit]).unwrap();
                want[at..at + unit].fill(at as u8 | 1);
                assert_eq!(read_stored(&*data, &[2]), want, "a part at {at}");
            }
            for (at, len) in [(chunk - unit, 2 * unit), (chunk, unit), (usize::MAX / 2, unit)] {
                let refused = data.write_part(&coord, at as u64, &vec![0; len]);
                assert!(matches!(refused, Err(Error::Invalid(_))), "{len} bytes at {at}");
            }
            assert_eq!(read_stored(&*data, &[2]), want, "what was refused changed nothing");
        }
        Parts::Blocks => {}
        Parts::Whole => {
            let refused = data.write_part(&coord, 0, &[1, 2]);
            assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}");
            assert_eq!(data.locate(&coord).unwrap(), None);
            data.write_whole(&coord, 0, &want).unwrap();
            assert_eq!(read_stored(&*data, &[2]), want);
        }
    }
}

/// Whoever sees the later dataset sees the earlier one too.
pub fn ordering(lab: &impl Lab) {
    let store = lab.create();
    let earlier = make(&store, "earlier", unlimited_spec(&[0], &[2]));
    let later = make(&store, "later", unlimited_spec(&[0], &[2]));
    let is_live = store.session().capabilities.live;
    let started = store.writer().unwrap().start_swmr();
    assert!(if is_live { started.is_ok() } else { matches!(started, Err(Error::Unsupported(_))) }, "{started:?}");
    let reader = lab.reader(&store);
    let seen = |name: &str| {
        let reader = reader.as_ref()?;
        let link = reader.link(reader.session().root, &super::name(name)).unwrap()?;
        let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
        Some(reader.dataset(id).unwrap())
    };
    let readers = seen("earlier").zip(seen("later"));
    for number in 1..=10u64 {
        let coord = ChunkCoord::new(&[number - 1]);
        let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &[number as u8; 4] }];
        let extent = [2 * number];
        earlier.write(&ChunkBatch { writes: &writes, extent: Some(&extent), after: &[], publish: None }).unwrap();
        let after = [earlier.id()];
        let batch =
            ChunkBatch { writes: &writes, extent: Some(&extent), after: &after, publish: Some(Publish::Visible) };
        later.write(&batch).unwrap();
        if let Some((earlier, later)) = &readers {
            later.refresh().unwrap();
            earlier.refresh().unwrap();
            for data in [later, earlier] {
                assert_eq!(data.spec().unwrap().dataspace.dims(), extent);
                assert_eq!(read_stored(&**data, &[number - 1]), [number as u8; 4]);
            }
        }
    }
}

/// A commit is refused if the store cannot keep what it promises; after one that was not, nothing is dirty.
pub fn commits(lab: &impl Lab) {
    let store = lab.create();
    let data = make(&store, "data", unlimited_spec(&[2], &[2]));
    data.write_whole(&ChunkCoord::new(&[0]), 0, &[1; 4]).unwrap();
    let writer = store.writer().unwrap();
    assert!(writer.is_dirty());
    for scope in [Scope::Objects(&[data.id()]), Scope::All] {
        let durable = writer.commit(scope, Publish::Durable);
        match store.session().capabilities.durability {
            Durability::Never => assert!(matches!(durable, Err(Error::Unsupported(_))), "{durable:?}"),
            Durability::OnRequest | Durability::Always => durable.unwrap(),
        }
        writer.commit(scope, Publish::Visible).unwrap();
    }
    assert!(!writer.is_dirty());
    assert_eq!(read_stored(&*data, &[0]), [1; 4]);
    assert_eq!(data.spec().unwrap().datatype, u16le());
}

/// Several threads change a store at once.
pub fn threads(lab: &impl Lab) {
    const THREADS: u64 = 4;
    const CHUNKS: u64 = 50;
    let store = lab.create();
    let data = make(&store, "data", unlimited_spec(&[2 * THREADS * CHUNKS], &[2]));
    thread::scope(|scope| {
        for number in 0..THREADS {
            let data = store.dataset(data.id()).unwrap();
            scope.spawn(move || {
                for at in (number..THREADS * CHUNKS).step_by(THREADS as usize) {
                    data.write_whole(&ChunkCoord::new(&[at]), 0, &[at as u8; 4]).unwrap();
                    assert_eq!(read_stored(&*data, &[at]), [at as u8; 4]);
                }
            });
        }
    });
    store.close().unwrap();
    let store = lab.reopen(store);
    let link = store.link(store.session().root, &super::name("data")).unwrap().unwrap();
    let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
    let data = store.dataset(id).unwrap();
    for at in 0..THREADS * CHUNKS {
        assert_eq!(read_stored(&*data, &[at]), [at as u8; 4]);
    }
}
