//! Reads of hyperslabs against the elements of a plain vector, one after another.

use h5live_model::{Hyperslab, Selection};
use proptest::prelude::*;

use crate::{Dataset, File};

/// Rows of more bytes than a gap that is read over, more of them than are read at once.
const SHAPE: [u64; 3] = [61, 23, 1500];

fn value(i: usize) -> u16 {
    (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0].into()
}

fn datasets(file: &File) -> Vec<Dataset> {
    let values: Vec<u16> = (0..SHAPE.iter().product::<u64>() as usize).map(value).collect();
    let new = || file.new_dataset::<u16>().shape(&SHAPE);
    let builders = [
        ("contiguous", new().contiguous()),
        ("single", new().chunk_shape(&SHAPE)),
        ("cubes", new().chunk_shape(&[7, 5, 256])),
        ("rows", new().chunk_shape(&[3, 1, 1500])),
        // More chunks than are listed at a time.
        ("small", new().chunk_shape(&[4, 5, 31])),
        ("filtered", new().chunk_shape(&[5, 11, 400]).shuffle().deflate(1)),
        ("sums", new().chunk_shape(&[61, 2, 90]).fletcher32()),
    ];
    let write = |(name, builder): (&str, crate::DatasetBuilder)| {
        let data = builder.create(name).unwrap();
        data.write(&values).unwrap();
        data
    };
    builders.into_iter().map(write).collect()
}

/// Start, stride, count and block along a dimension.
fn pattern(n: u64) -> impl Strategy<Value = [u64; 4]> {
    let all = Just([0, 1, 1, n]);
    let one = (0..n).prop_map(|start| [start, 1, 1, 1]);
    let any = (0..n, 1..4u64, 0..n).prop_flat_map(move |(start, block, gap)| {
        let block = block.min(n - start);
        let stride = block + gap;
        let max_count = (n - start - block) / stride + 1;
        prop_oneof![(1..=max_count).boxed(), Just(max_count).boxed()]
            .prop_map(move |count| [start, stride, count, block])
    });
    prop_oneof![1 => all, 1 => one, 3 => any]
}

fn indices([start, stride, count, block]: [u64; 4]) -> Vec<u64> {
    (0..count).flat_map(|n| (0..block).map(move |i| start + n * stride + i)).collect()
}

/// As many times as elements are read that are there, each is what the vector has at its place.
fn check(datasets: &[Dataset], patterns: &[[u64; 4]]) {
    let of = |i: usize| patterns.iter().map(|pattern| pattern[i]).collect();
    let selection = Selection::Hyperslab(Hyperslab { start: of(0), stride: of(1), count: of(2), block: of(3) });
    let mut want = Vec::new();
    for i in indices(patterns[0]) {
        for j in indices(patterns[1]) {
            want.extend(indices(patterns[2]).iter().map(|k| value(((i * SHAPE[1] + j) * SHAPE[2] + k) as usize)));
        }
    }
    for data in datasets {
        assert!(data.read_slice::<u16>(&selection).unwrap() == want, "{data:?}, {selection:?}");
        let doubles = data.read_slice::<f64>(&selection).unwrap();
        assert!(doubles.iter().zip(&want).all(|(found, want)| *found == f64::from(*want)), "{data:?}, {selection:?}");
    }
}

#[test]
fn hyperslabs_are_the_elements_of_a_vector() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strided.h5");
    let file = File::create(&path).unwrap();
    datasets(&file);
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    let names = ["contiguous", "single", "cubes", "rows", "small", "filtered", "sums"];
    let datasets = names.map(|name| file.dataset(name).unwrap());
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) };
    let patterns = (pattern(SHAPE[0]), pattern(SHAPE[1]), pattern(SHAPE[2]));
    let runner = &mut proptest::test_runner::TestRunner::new(config);
    let done = runner.run(&patterns, |(a, b, c)| {
        check(&datasets, &[a, b, c]);
        Ok(())
    });
    done.unwrap();
}

#[test]
fn hyperslabs_that_are_written_change_just_their_elements() {
    const SIDES: [u64; 3] = [13, 7, 40];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strided.h5");
    let file = File::create(&path).unwrap();
    let new = || file.new_dataset::<i32>().shape(&SIDES);
    let datasets = [
        new().contiguous().create("contiguous").unwrap(),
        new().chunk_shape(&SIDES).create("single").unwrap(),
        new().chunk_shape(&[5, 3, 16]).create("cubes").unwrap(),
    ];
    let elements = SIDES.iter().product::<u64>() as usize;
    let want = std::cell::RefCell::new((0, vec![0i32; elements]));
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) };
    let patterns = (pattern(SIDES[0]), pattern(SIDES[1]), pattern(SIDES[2]), any::<bool>());
    let done = proptest::test_runner::TestRunner::new(config).run(&patterns, |(a, b, c, converted)| {
        let of = |i: usize| [a[i], b[i], c[i]].as_slice().into();
        let selection = Selection::Hyperslab(Hyperslab { start: of(0), stride: of(1), count: of(2), block: of(3) });
        let (next, want) = &mut *want.borrow_mut();
        let mut values = Vec::new();
        for (i, j) in indices(a).into_iter().flat_map(|i| indices(b).into_iter().map(move |j| (i, j))) {
            for k in indices(c) {
                *next = (*next + 1) % 60_000;
                want[((i * SIDES[1] + j) * SIDES[2] + k) as usize] = *next;
                values.push(*next);
            }
        }
        for data in &datasets {
            if converted {
                let values: Vec<u16> = values.iter().map(|value| *value as u16).collect();
                data.write_slice(&selection, &values).unwrap();
            } else {
                data.write_slice(&selection, &values).unwrap();
            }
            prop_assert!(data.read::<i32>().unwrap() == *want, "{data:?}, {selection:?}");
        }
        Ok(())
    });
    done.unwrap();
    let names = ["contiguous", "single", "cubes"];
    drop(datasets);
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    for name in names {
        assert!(file.dataset(name).unwrap().read::<i32>().unwrap() == want.borrow().1, "{name}");
    }
}
