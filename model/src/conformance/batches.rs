//! Batches of changes: their order, what they publish, and what is left of one that fails.

use std::thread;

use parking_lot::Mutex;

use super::store_fixture::{StoreFixture, make, read_stored, u16le, unlimited_spec};
use crate::{
    ChunkBatch, ChunkCoord, ChunkReadRequest, ChunkWrite, DatasetSpec, DurabilitySupport, Error, Fill, FillValue,
    LinkTarget, ObjectScope, PartialWrites, PublishLevel, SmallWritesStagedBy, Store,
};

/// A batch does what its parts do one after the other; a row of chunks is its chunks.
pub fn test_write_batches(lab: &impl StoreFixture) {
    let store = lab.create();
    let data = make(&store, "data", unlimited_spec(&[0, 2], &[2, 2]));
    let (first, last) = (ChunkCoord::new(&[0, 0]), ChunkCoord::new(&[3, 0]));
    let row: Vec<u8> = (0..24).collect();
    let writes = [
        ChunkWrite::ChunksAlongFirstDim { first: &first, chunk_bytes: 8, bytes: &row },
        ChunkWrite::Whole { coord: &last, filter_mask: 0, bytes: &[9; 8] },
        ChunkWrite::Whole { coord: &first, filter_mask: 0, bytes: &[7; 8] },
    ];
    let batch =
        ChunkBatch { writes: &writes, extent: Some(&[8, 2]), publish_after: &[], publish: Some(PublishLevel::Visible) };
    data.write(&batch).unwrap();
    data.write(&ChunkBatch::default()).unwrap();
    assert_eq!(data.spec().unwrap().dataspace.dims(), [8, 2]);
    assert_eq!(read_stored(&*data, &[0, 0]), [7; 8], "the later write wins");
    assert_eq!(read_stored(&*data, &[1, 0]), row[8..16]);
    assert_eq!(read_stored(&*data, &[2, 0]), row[16..]);
    assert_eq!(read_stored(&*data, &[3, 0]), [9; 8]);
}

/// A batch that is refused leaves the extent, and may be given again once it is right.
pub fn test_refused_batches(lab: &impl StoreFixture) {
    let store = lab.create();
    let data = make(&store, "data", unlimited_spec(&[2], &[2]));
    let (coord, outside) = (ChunkCoord::new(&[1]), ChunkCoord::new(&[1, 0]));
    let good = ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &[1; 4] };
    let short = ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &[1; 3] };
    let nowhere = ChunkWrite::Whole { coord: &outside, filter_mask: 0, bytes: &[1; 4] };
    for (write, extent) in [(good, &[4, 4][..]), (short, &[4]), (nowhere, &[4])] {
        let writes = [write];
        let batch = ChunkBatch {
            writes: &writes,
            extent: Some(extent),
            publish_after: &[],
            publish: Some(PublishLevel::Visible),
        };
        assert!(matches!(data.write(&batch), Err(Error::Invalid(_))), "{batch:?}");
        assert_eq!(data.spec().unwrap().dataspace.dims(), [2], "{batch:?}");
    }
    let writes = [good];
    data.write(&ChunkBatch { writes: &writes, extent: Some(&[4]), publish_after: &[], publish: None }).unwrap();
    assert_eq!(data.spec().unwrap().dataspace.dims(), [4]);
    assert_eq!(read_stored(&*data, &[1]), [1; 4]);
}

/// Parts of chunks are written as the capabilities say; the rest of a new chunk has fill values.
pub fn test_partial_chunk_writes(lab: &impl StoreFixture) {
    let store = lab.create();
    let fill = Fill { value: FillValue::Value(vec![5, 6]), ..Fill::default() };
    let data = make(&store, "data", DatasetSpec { fill, ..unlimited_spec(&[0], &[1 << 16]) });
    let coord = ChunkCoord::new(&[2]);
    let filled = |bytes: usize| [5, 6].into_iter().cycle().take(bytes).collect::<Vec<u8>>();
    let (chunk, mut want) = (2 << 16, filled(2 << 16));
    match store.session().capabilities.partial_writes {
        PartialWrites::Bytes { multiple_of } => {
            let unit = multiple_of.max(2) as usize;
            for at in [unit, 0, 3 * unit] {
                data.write_byte_range(&coord, at as u64, &vec![at as u8 | 1; unit]).unwrap();
                want[at..at + unit].fill(at as u8 | 1);
                assert_eq!(read_stored(&*data, &[2]), want, "a part at {at}");
            }
            for (at, len) in [(chunk - unit, 2 * unit), (chunk, unit), (usize::MAX / 2, unit)] {
                let refused = data.write_byte_range(&coord, at as u64, &vec![0; len]);
                assert!(matches!(refused, Err(Error::Invalid(_))), "{len} bytes at {at}");
            }
            assert_eq!(read_stored(&*data, &[2]), want, "what was refused changed nothing");
        }
        PartialWrites::ElementBlocks => {
            for (first, elements) in [(7, 3), (0, 1), (9, 2), ((1 << 16) - 2, 2)] {
                data.write_block(&coord, &[first], &[elements], &vec![first as u8 | 1; 2 * elements as usize]).unwrap();
                want[2 * first as usize..2 * (first + elements) as usize].fill(first as u8 | 1);
                assert_eq!(read_stored(&*data, &[2]), want, "{elements} elements at {first}");
            }
            for (first, elements, bytes) in [((1 << 16) - 1, 2, 4), (u64::MAX, 2, 4), (0, 2, 3), (0, u64::MAX, 4)] {
                let refused = data.write_block(&coord, &[first], &[elements], &vec![0; bytes]);
                assert!(matches!(refused, Err(Error::Invalid(_))), "{elements} elements at {first}: {refused:?}");
            }
            let refused = data.write_block(&coord, &[0, 0], &[1, 1], &[0; 2]);
            assert!(matches!(refused, Err(Error::Invalid(_))), "a box of another rank: {refused:?}");
            assert_eq!(read_stored(&*data, &[2]), want, "what was refused changed nothing");
            blocks_of_a_table(&store);
        }
        PartialWrites::Whole => {
            let refused = data.write_byte_range(&coord, 0, &[1, 2]);
            assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}");
            assert_eq!(data.locate(&coord).unwrap(), None);
            data.write_whole_chunk(&coord, 0, &want).unwrap();
            assert_eq!(read_stored(&*data, &[2]), want);
        }
    }
    let (part, block) = (data.write_byte_range(&coord, 0, &[0; 2]), data.write_block(&coord, &[0], &[1], &[0; 2]));
    let claimed = store.session().capabilities.partial_writes;
    if claimed != PartialWrites::ElementBlocks {
        assert!(matches!(block, Err(Error::Unsupported(_))), "{block:?}");
    }
    if !matches!(claimed, PartialWrites::Bytes { .. }) {
        assert!(matches!(part, Err(Error::Unsupported(_))), "{part:?}");
    }
}

/// Boxes in a chunk of two dimensions are written where they belong.
fn blocks_of_a_table(store: &impl Store) {
    let data = make(store, "table", unlimited_spec(&[4, 6], &[4, 3]));
    let coord = ChunkCoord::new(&[0, 1]);
    data.write_block(&coord, &[1, 1], &[2, 2], &[1, 1, 2, 2, 3, 3, 4, 4]).unwrap();
    data.write_block(&coord, &[3, 0], &[1, 3], &[5; 6]).unwrap();
    data.write_block(&coord, &[2, 2], &[1, 1], &[9; 2]).unwrap();
    let want = [[0, 0, 0], [0, 1, 2], [0, 3, 9], [5, 5, 5]].concat();
    assert_eq!(read_stored(&*data, &[0, 1]), want.iter().flat_map(|byte| [*byte; 2]).collect::<Vec<u8>>());
    let last = ChunkCoord::new(&[0, 0]);
    data.write(&ChunkBatch {
        writes: &[
            ChunkWrite::Whole { coord: &last, filter_mask: 0, bytes: &[7; 24] },
            ChunkWrite::ElementBlock { coord: &last, start: &[0, 0], count: &[4, 1], bytes: &[8; 8] },
        ],
        ..ChunkBatch::default()
    })
    .unwrap();
    assert_eq!(read_stored(&*data, &[0, 0]), [8, 8, 7, 7, 7, 7].repeat(4), "a later write in a batch wins");
}

/// A session reads what it has written before it is committed. If the store gathers writes, nobody else does.
pub fn test_uncommitted_writes(lab: &impl StoreFixture) {
    let store = lab.create();
    let data = make(&store, "data", unlimited_spec(&[2], &[2]));
    let coord = ChunkCoord::new(&[0]);
    data.write_whole_chunk(&coord, 0, &[1; 4]).unwrap();
    let writer = store.writer().unwrap();
    let is_live = writer.start_swmr().is_ok();
    let reader = if is_live { lab.open_reader(&store) } else { None };
    let seen = reader.as_ref().map(|reader| reader.dataset(data.id()).unwrap());
    for round in 2..6u8 {
        data.write_whole_chunk(&coord, 0, &[round; 4]).unwrap();
        data.write_whole_chunk(&ChunkCoord::new(&[u64::from(round)]), 0, &[round; 4]).unwrap();
        data.set_extent(&[2 * u64::from(round) + 2]).unwrap();
        assert_eq!(read_stored(&*data, &[0]), [round; 4]);
        assert_eq!(read_stored(&*data, &[round.into()]), [round; 4]);
        let mut listed = Vec::new();
        data.for_each_chunk(&mut |chunk| {
            listed.push(chunk.coord.scaled()[0]);
            true
        })
        .unwrap();
        // A store may have chunks that wait for later elements.
        assert!([0].into_iter().chain(2..=u64::from(round)).all(|at| listed.contains(&at)), "{listed:?}");
        if let (Some(seen), SmallWritesStagedBy::Store) = (&seen, store.session().capabilities.staging) {
            seen.refresh().unwrap();
            assert_eq!(read_stored(&**seen, &[0]), [round - 1; 4], "nobody sees what is not committed");
            assert_eq!(seen.locate(&ChunkCoord::new(&[round.into()])).unwrap(), None);
        }
        data.publish(PublishLevel::Visible).unwrap();
        if let Some(seen) = &seen {
            seen.refresh().unwrap();
            assert_eq!(read_stored(&**seen, &[0]), [round; 4]);
            assert_eq!(read_stored(&**seen, &[round.into()]), [round; 4]);
        }
    }
}

/// Boxes of elements of a chunk are read by one call, in their order; what nobody wrote is the fill value.
pub fn test_block_reads(lab: &impl StoreFixture) {
    let store = lab.create();
    let data = make(&store, "data", unlimited_spec(&[8, 6, 4], &[4, 3, 4]));
    let coord = ChunkCoord::new(&[1, 0, 0]);
    let element = |at: [u64; 3]| (at[0] * 12 + at[1] * 4 + at[2]) as u8;
    let all: Vec<u8> = (0..48u8).flat_map(|value| [value, 100 + value]).collect();
    data.write_whole_chunk(&coord, 0, &all).unwrap();
    let chunk = data.locate(&coord).unwrap().unwrap();
    let blocks = [
        ([0, 0, 0], [4, 3, 4]),
        ([1, 0, 0], [2, 3, 4]),
        ([0, 1, 0], [4, 2, 4]),
        ([1, 1, 1], [3, 2, 2]),
        ([3, 2, 3], [1, 1, 1]),
        ([2, 0, 2], [1, 3, 1]),
        ([0, 0, 3], [4, 1, 1]),
        ([4, 3, 4], [0, 0, 0]),
    ];
    for (start, count) in blocks {
        let mut want = Vec::new();
        for n in 0..count.iter().product::<u64>() {
            let at = [n / count[2] / count[1], n / count[2] % count[1], n % count[2]];
            let value = element([start[0] + at[0], start[1] + at[1], start[2] + at[2]]);
            want.extend([value, 100 + value]);
        }
        let mut found = vec![255; want.len()];
        data.read_block(&chunk, &start, &count, &mut found).unwrap();
        assert_eq!(found, want, "{count:?} at {start:?}");
    }
    let refused = |start: &[u64], count: &[u64], bytes: usize| {
        let read = data.read_block(&chunk, start, count, &mut vec![0; bytes]);
        assert!(matches!(read, Err(Error::Invalid(_))), "{read:?}");
    };
    refused(&[3, 0, 0], &[2, 1, 1], 4);
    refused(&[0, 0, 0], &[1, 1, 1], 4);
    refused(&[0, 0], &[1, 1], 2);
    refused(&[u64::MAX, 0, 0], &[2, 1, 1], 4);
}

/// Many chunks are read by one call: each once, whole or in part, in any order. It stops at an error of who takes them.
pub fn test_multi_chunk_reads(lab: &impl StoreFixture) {
    const BUDGET: usize = 1 << 20;
    let store = lab.create();
    let data = make(&store, "data", unlimited_spec(&[40], &[2]));
    let coords: Vec<_> = (0..20).map(|at| ChunkCoord::new(&[at])).collect();
    for coord in coords.iter().step_by(2) {
        data.write_whole_chunk(coord, 0, &[coord.scaled()[0] as u8; 4]).unwrap();
    }
    let part = |number: usize| number.is_multiple_of(3).then_some(1..3);
    let wanted: Vec<_> =
        coords.iter().enumerate().map(|(n, coord)| ChunkReadRequest { coord, byte_range: part(n) }).collect();
    let found = Mutex::new(vec![None; wanted.len()]);
    data.read_many(&wanted, BUDGET, &|number, bytes| {
        let bytes = bytes.map(|found| {
            assert_eq!((&found.chunk.coord, found.chunk.size), (&coords[number], 4));
            found.bytes.to_vec()
        });
        assert!(found.lock()[number].replace(bytes).is_none(), "{number} comes once");
        Ok(())
    })
    .unwrap();
    for (number, found) in found.into_inner().into_iter().enumerate() {
        let len = if part(number).is_some() { 2 } else { 4 };
        let want = number.is_multiple_of(2).then(|| vec![number as u8; len]);
        assert_eq!(found, Some(want), "chunk {number}");
    }
    data.read_many(&[], BUDGET, &|_, _| panic!("nothing was wanted")).unwrap();
    let refused = data.read_many(&wanted, BUDGET, &|_, _| Err(Error::Invalid("enough".into())));
    assert!(matches!(refused, Err(Error::Invalid(text)) if text == "enough"));
    let too_large = data.read_many(&wanted[2..3], 3, &|_, _| panic!("it has more bytes than the budget"));
    assert!(matches!(too_large, Err(Error::Allocation(_))), "{too_large:?}");
}

/// Whoever sees the later dataset sees the earlier one too.
pub fn test_dataset_publish_order(lab: &impl StoreFixture) {
    let store = lab.create();
    let earlier = make(&store, "earlier", unlimited_spec(&[0], &[2]));
    let later = make(&store, "later", unlimited_spec(&[0], &[2]));
    let is_live = store.session().capabilities.supports_live_reads;
    let started = store.writer().unwrap().start_swmr();
    assert!(if is_live { started.is_ok() } else { matches!(started, Err(Error::Unsupported(_))) }, "{started:?}");
    let reader = lab.open_reader(&store);
    let seen = |name: &str| {
        let reader = reader.as_ref()?;
        let link = reader.link(reader.session().root, &super::store_fixture::name(name)).unwrap()?;
        let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
        Some(reader.dataset(id).unwrap())
    };
    let readers = seen("earlier").zip(seen("later"));
    for number in 1..=10u64 {
        let coord = ChunkCoord::new(&[number - 1]);
        let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &[number as u8; 4] }];
        let extent = [2 * number];
        earlier
            .write(&ChunkBatch { writes: &writes, extent: Some(&extent), publish_after: &[], publish: None })
            .unwrap();
        let after = [earlier.id()];
        let batch = ChunkBatch {
            writes: &writes,
            extent: Some(&extent),
            publish_after: &after,
            publish: Some(PublishLevel::Visible),
        };
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
pub fn test_commit_levels(lab: &impl StoreFixture) {
    let store = lab.create();
    let data = make(&store, "data", unlimited_spec(&[2], &[2]));
    data.write_whole_chunk(&ChunkCoord::new(&[0]), 0, &[1; 4]).unwrap();
    let writer = store.writer().unwrap();
    assert!(writer.is_dirty());
    for scope in [ObjectScope::Objects(&[data.id()]), ObjectScope::All] {
        let durable = writer.commit(scope, PublishLevel::Durable);
        match store.session().capabilities.durability {
            DurabilitySupport::Never => assert!(matches!(durable, Err(Error::Unsupported(_))), "{durable:?}"),
            DurabilitySupport::OnRequest | DurabilitySupport::Always => durable.unwrap(),
        }
        writer.commit(scope, PublishLevel::Visible).unwrap();
    }
    assert!(!writer.is_dirty());
    assert_eq!(read_stored(&*data, &[0]), [1; 4]);
    assert_eq!(data.spec().unwrap().datatype, u16le());
}

/// Several threads change a store at once.
pub fn test_concurrent_writes(lab: &impl StoreFixture) {
    const THREADS: u64 = 4;
    const CHUNKS: u64 = 50;
    let store = lab.create();
    let data = make(&store, "data", unlimited_spec(&[2 * THREADS * CHUNKS], &[2]));
    thread::scope(|scope| {
        for number in 0..THREADS {
            let data = store.dataset(data.id()).unwrap();
            scope.spawn(move || {
                for at in (number..THREADS * CHUNKS).step_by(THREADS as usize) {
                    data.write_whole_chunk(&ChunkCoord::new(&[at]), 0, &[at as u8; 4]).unwrap();
                    assert_eq!(read_stored(&*data, &[at]), [at as u8; 4]);
                }
            });
        }
    });
    store.close().unwrap();
    let store = lab.reopen(store);
    let link = store.link(store.session().root, &super::store_fixture::name("data")).unwrap().unwrap();
    let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
    let data = store.dataset(id).unwrap();
    for at in 0..THREADS * CHUNKS {
        assert_eq!(read_stored(&*data, &[at]), [at as u8; 4]);
    }
}
