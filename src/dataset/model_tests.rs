//! Random writes, appends, resizes and reads against a plain vector.

use std::sync::Arc;

use h5live_model::memory::{MemoryStore, SimulatedChunkCapabilities};
use h5live_model::{
    Block, ChunkEncodedBy, ChunkReadStrategy, Hyperslab, PartialWrites, Selection, SmallWritesStagedBy, UNLIMITED,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::{Dataset, File, Options};

const FILL: i32 = -7;

/// The dataset as a vector.
#[derive(Debug, Clone)]
struct Plain {
    dims: Vec<u64>,
    values: Vec<i32>,
}

impl Plain {
    fn new(dims: &[u64]) -> Self {
        Plain { dims: dims.into(), values: vec![FILL; dims.iter().product::<u64>() as usize] }
    }

    fn places(&self, selection: &Selection) -> Vec<usize> {
        let mut places = Vec::new();
        selection
            .bind(&self.dims)
            .unwrap()
            .for_each_run(|run| places.extend(run.offset_in_chunk as usize..(run.offset_in_chunk + run.len) as usize));
        places
    }

    fn resize(&mut self, dims: &[u64]) {
        let common: Vec<u64> = self.dims.iter().zip(dims).map(|(a, b)| *a.min(b)).collect();
        let block = Selection::block(&vec![0; dims.len()], &common);
        let mut new = Plain::new(dims);
        for (from, to) in self.places(&block).into_iter().zip(new.places(&block)) {
            new.values[to] = self.values[from];
        }
        *self = new;
    }
}

#[derive(Debug, Clone)]
enum Action {
    Write(Vec<u8>, u8),
    Read(Vec<u8>, u8),
    Append(u8),
    Resize(Vec<u8>),
    Flush,
    Reopen,
}

fn action() -> impl Strategy<Value = Action> {
    let bytes = || prop::collection::vec(any::<u8>(), 24);
    prop_oneof![
        4 => (bytes(), 0..4u8).prop_map(|(bytes, kind)| Action::Write(bytes, kind)),
        4 => (bytes(), 0..4u8).prop_map(|(bytes, kind)| Action::Read(bytes, kind)),
        5 => (0..6u8).prop_map(Action::Append),
        1 => bytes().prop_map(Action::Resize),
        1 => Just(Action::Flush),
        1 => Just(Action::Reopen),
    ]
}

/// A selection of some kind in an extent, from random bytes.
fn selection(bytes: &[u8], kind: u8, dims: &[u64]) -> Selection {
    let mut bytes = bytes.iter().cycle().map(|byte| u64::from(*byte));
    let mut below = |n: u64| bytes.next().unwrap_or(0) % n.max(1);
    match kind {
        0 => Selection::All,
        1 => {
            let mut slab = Hyperslab::block(&vec![0; dims.len()], dims);
            for (dim, n) in dims.iter().enumerate() {
                let start = below(*n);
                let block = 1 + below(3);
                let stride = block + below(3);
                let count = if start + block > *n { 0 } else { 1 + below((n - start - block) / stride + 1) };
                (slab.start[dim], slab.block[dim], slab.stride[dim], slab.count[dim]) = (start, block, stride, count);
            }
            Selection::Hyperslab(slab)
        }
        2 => {
            let mut block = || {
                let start: Vec<u64> = dims.iter().map(|n| below(*n)).collect();
                let count = dims.iter().zip(&start).map(|(n, start)| below(n - start + 1)).collect();
                Block { start: start.into(), count }
            };
            Selection::Blocks(vec![block(), block(), block()])
        }
        _ if dims.contains(&0) => Selection::None,
        _ => {
            // A point twice in a write would leave open which value counts.
            let mut points: Vec<_> = (0..6).map(|_| dims.iter().map(|n| below(*n)).collect()).collect();
            points.sort();
            points.dedup();
            points.reverse();
            Selection::Points(points)
        }
    }
}

#[derive(Debug, Clone)]
struct Case {
    dims: Vec<u64>,
    chunk: Option<Vec<u64>>,
    filtered: bool,
    bare_edges: bool,
    big_endian: bool,
    actions: Vec<Action>,
}

fn case() -> impl Strategy<Value = Case> {
    (1usize..4).prop_flat_map(|rank| {
        let dims = prop::collection::vec(0u64..7, rank);
        let chunk = prop::option::weighted(0.85, prop::collection::vec(1u64..5, rank));
        let actions = prop::collection::vec(action(), 1..25);
        (dims, chunk, any::<[bool; 3]>(), actions).prop_map(
            |(dims, chunk, [filtered, bare_edges, big_endian], actions)| Case {
                dims,
                chunk,
                filtered,
                bare_edges,
                big_endian,
                actions,
            },
        )
    })
}

/// Where a case is tried.
enum Lab {
    Memory(MemoryStore),
    Native(tempfile::TempDir),
}

impl Lab {
    fn options() -> Options {
        File::options().append_buffer_bytes(200).chunk_cache_bytes(300).transfer_memory_bytes(100)
    }

    fn create(&self) -> File {
        match self {
            Lab::Memory(store) => File::with_store(Arc::new(store.clone()), "model", Lab::options()).unwrap(),
            Lab::Native(folder) => Lab::options().create().open(folder.path().join("model.h5")).unwrap(),
        }
    }

    fn reopen(&mut self) -> File {
        match self {
            Lab::Memory(store) => {
                *store = store.reopen_for_writing().unwrap();
                File::with_store(Arc::new(store.clone()), "model", Lab::options()).unwrap()
            }
            Lab::Native(folder) => Lab::options().write().open(folder.path().join("model.h5")).unwrap(),
        }
    }

    /// The dimensions that grow without limit; the others stay as they are.
    fn unlimited(&self) -> usize {
        match self {
            Lab::Memory(_) => usize::MAX,
            Lab::Native(_) => 1,
        }
    }
}

fn dataset(file: &File, case: &Case, dims: &[u64], unlimited: usize) -> Dataset {
    let order = if case.big_endian { crate::ByteOrder::Big } else { crate::ByteOrder::Little };
    let datatype = crate::Datatype::integer(4, order, h5live_model::Sign::Signed);
    let mut builder = file.root().new_dataset_with_type(datatype).shape(dims).fill(FILL);
    if let Some(chunk) = &case.chunk {
        let max = |(dim, n): (usize, &u64)| if dim < unlimited { UNLIMITED } else { *n };
        let max: Vec<u64> = dims.iter().enumerate().map(max).collect();
        let chunk: Vec<u64> = chunk.iter().zip(&max).map(|(n, max)| *n.min(max)).collect();
        builder = builder.chunk_shape(&chunk).max_shape(&max);
        if case.filtered {
            builder = builder.shuffle().deflate(1).fletcher32();
        }
        if case.bare_edges {
            builder = builder.unfiltered_partial_chunks();
        }
    }
    builder.create("data").unwrap()
}

fn behavior() -> impl Strategy<Value = SimulatedChunkCapabilities> {
    let pieces = [1, 8, 24].map(|multiple_of| PartialWrites::Bytes { multiple_of });
    let parts = select([pieces.as_slice(), &[PartialWrites::ElementBlocks, PartialWrites::Whole]].concat());
    let batched = |gap| ChunkReadStrategy::Batched { preferred_reads_in_flight: 3, max_gap_bytes: gap };
    let reads = select(vec![
        ChunkReadStrategy::Direct { atomic_read_bytes: 1 << 20 },
        ChunkReadStrategy::ElementBlocks,
        batched(0),
        batched(16),
    ]);
    let staging = select(vec![SmallWritesStagedBy::Caller, SmallWritesStagedBy::Store]);
    (parts, select(vec![ChunkEncodedBy::Pipeline, ChunkEncodedBy::Store]), staging, reads).prop_map(
        |(parts, encoding, staging, reads)| SimulatedChunkCapabilities {
            partial_writes: parts,
            staging,
            encoding,
            reads,
        },
    )
}

fn run(case: &Case, mut lab: Lab) {
    let mut file = lab.create();
    let unlimited = lab.unlimited();
    // A dimension that never has elements can have no chunks.
    let min_dim = |(dim, n): (usize, &u64)| if dim < unlimited { *n } else { (*n).max(1) };
    let dims: Vec<u64> = case.dims.iter().enumerate().map(min_dim).collect();
    let mut data = dataset(&file, case, &dims, unlimited);
    let mut plain = Plain::new(&dims);
    let mut next = 0;
    let mut fresh = |n: usize| -> Vec<i32> {
        next += n as i32;
        (next - n as i32..next).collect()
    };
    for action in &case.actions {
        match action {
            Action::Write(bytes, kind) => {
                let selection = selection(bytes, *kind, &plain.dims);
                let places = plain.places(&selection);
                let values = fresh(places.len());
                places.iter().zip(&values).for_each(|(place, value)| plain.values[*place] = *value);
                data.write_slice(&selection, &values).unwrap();
            }
            Action::Read(bytes, kind) => {
                let selection = selection(bytes, *kind, &plain.dims);
                let want: Vec<i64> = plain.places(&selection).iter().map(|place| plain.values[*place].into()).collect();
                assert_eq!(data.read_slice::<i64>(&selection).unwrap(), want);
                let direct = data.read_slice::<i32>(&selection).unwrap();
                assert!(direct.into_iter().map(i64::from).eq(want));
            }
            Action::Append(rows) if case.chunk.is_some() => {
                let row: u64 = plain.dims[1..].iter().product();
                if row == 0 {
                    continue;
                }
                let values = fresh((row * u64::from(*rows)) as usize);
                data.append(&values).unwrap();
                plain.dims[0] += u64::from(*rows);
                plain.values.extend(values);
            }
            Action::Resize(bytes) if case.chunk.is_some() => {
                let new = |(dim, n): (usize, &u64)| match dim < unlimited {
                    // The native store does not drop chunks yet.
                    true if unlimited == 1 => n + u64::from(bytes[dim] % 8),
                    true => u64::from(bytes[dim] % 8),
                    false => *n,
                };
                let dims: Vec<u64> = plain.dims.iter().enumerate().map(new).collect();
                data.resize(&dims).unwrap();
                plain.resize(&dims);
            }
            Action::Append(_) | Action::Resize(_) => {}
            Action::Flush => file.flush().unwrap(),
            Action::Reopen => {
                file.close().unwrap();
                file = lab.reopen();
                data = file.dataset("data").unwrap();
            }
        }
        assert_eq!(data.shape().unwrap(), plain.dims);
        assert_eq!(data.read::<i32>().unwrap(), plain.values, "after {action:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn a_dataset_is_a_vector(case in case()) {
        run(&case, Lab::Memory(MemoryStore::new()));
    }

    #[test]
    fn a_dataset_is_a_vector_however_the_store_takes_chunks(case in case(), behavior in behavior()) {
        run(&case, Lab::Memory(MemoryStore::with_capabilities(behavior)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn a_dataset_in_a_file_is_a_vector(case in case()) {
        run(&case, Lab::Native(tempfile::tempdir().unwrap()));
    }
}
