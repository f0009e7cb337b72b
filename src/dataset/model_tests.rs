//! Random writes, appends, resizes and reads against a plain vector.

use std::sync::Arc;

use h5live_model::memory::MemoryStore;
use h5live_model::{Block, Hyperslab, Selection, UNLIMITED};
use proptest::prelude::*;

use crate::{Dataset, File};

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
            .on(&self.dims)
            .unwrap()
            .for_each_run(|run| places.extend(run.at as usize..(run.at + run.len) as usize));
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

fn dataset(file: &File, case: &Case) -> Dataset {
    let order = if case.big_endian { crate::ByteOrder::Big } else { crate::ByteOrder::Little };
    let datatype = crate::Datatype::integer(4, order, h5live_model::Sign::Signed);
    let mut builder = file.root().new_dataset_of(datatype).shape(&case.dims).fill(FILL);
    if let Some(chunk) = &case.chunk {
        builder = builder.chunk(chunk).max_shape(&vec![UNLIMITED; case.dims.len()]);
        if case.filtered {
            builder = builder.shuffle().deflate(1).fletcher32();
        }
        if case.bare_edges {
            builder = builder.unfiltered_edges();
        }
    }
    builder.create("data").unwrap()
}

fn run(case: &Case) {
    let store = MemoryStore::new();
    let options = File::options().staging(200).chunk_cache(300);
    let mut file = File::with_store(Arc::new(store.clone()), "model", options.clone());
    let mut session = store;
    let mut data = dataset(&file, case);
    let mut plain = Plain::new(&case.dims);
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
                let dims: Vec<u64> = bytes.iter().take(plain.dims.len()).map(|byte| u64::from(byte % 8)).collect();
                data.resize(&dims).unwrap();
                plain.resize(&dims);
            }
            Action::Append(_) | Action::Resize(_) => {}
            Action::Flush => file.flush().unwrap(),
            Action::Reopen => {
                file.close().unwrap();
                session = session.reopen().unwrap();
                file = File::with_store(Arc::new(session.clone()), "model", options.clone());
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
        run(&case);
    }
}
