use std::collections::BTreeSet;

use proptest::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::*;
use crate::UNLIMITED;

/// Every element of a selection, in order, the slow way.
fn naive(selection: &Selection, extent: &[u64]) -> Vec<SelectDims> {
    let mut all: Vec<SelectDims> = vec![SelectDims::new()];
    for n in extent {
        let longer = |at: &SelectDims| {
            (0..*n).map(|i| at.iter().copied().chain([i]).collect::<SelectDims>()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    match selection {
        Selection::All => all,
        Selection::None => Vec::new(),
        Selection::Points(points) => points.clone(),
        Selection::Blocks(blocks) => {
            let inside = |at: &SelectDims, block: &Block| {
                at.iter().zip(&block.start).zip(&block.count).all(|((at, start), n)| at >= start && at - start < *n)
            };
            all.into_iter().filter(|at| blocks.iter().any(|block| inside(at, block))).collect()
        }
        Selection::Hyperslab(s) => {
            let hit = |at: u64, dim: usize| {
                let (start, stride, count, block) = (s.start[dim], s.stride[dim], s.count[dim], s.block[dim]);
                at >= start
                    && if count == 1 {
                        at - start < block
                    } else {
                        (at - start) / stride < count && (at - start) % stride < block
                    }
            };
            all.into_iter().filter(|at| at.iter().enumerate().all(|(dim, at)| hit(*at, dim))).collect()
        }
    }
}

fn linear(at: &[u64], dims: &[u64]) -> u64 {
    at.iter().zip(&row_major_strides(dims)).map(|(at, stride)| at * stride).sum()
}

fn check(selection: &Selection, extent: &[u64], chunk: &[u64]) {
    let want = naive(selection, extent);
    let selected = selection.bind(extent).unwrap();
    assert_eq!(selected.element_count(), want.len() as u64);
    assert_eq!(selected.dims().iter().product::<u64>(), want.len() as u64);

    let mut got = Vec::new();
    selected.for_each_run(|run| {
        assert_eq!(run.offset_in_selection, got.len() as u64, "runs fill the destination in order");
        got.extend(run.offset_in_chunk..run.offset_in_chunk + run.len);
    });
    assert_eq!(got, want.iter().map(|at| linear(at, extent)).collect::<Vec<_>>());

    let grid = ChunkGrid::new(chunk).unwrap();
    let cut = selected.split_by_chunks(&grid);
    let chunks: Vec<_> = cut.chunks().collect();
    let touched: BTreeSet<_> = want.iter().map(|at| grid.chunk_of(at)).collect();
    assert_eq!(chunks, touched.into_iter().collect::<Vec<_>>());
    let only = match (&chunks[..], selection) {
        ([coord], Selection::All | Selection::Hyperslab(_)) => cut.single_run(coord).map(|run| (coord.clone(), run)),
        _ => None,
    };
    assert_eq!(cut.single_chunk_run(), only);
    let block = selected.single_chunk_block(&grid);
    assert!(block.is_some() || !matches!((&chunks[..], selection), ([_], Selection::All)));
    if let Some((coord, block)) = block {
        assert_eq!(chunks, std::slice::from_ref(&coord));
        let first = grid.start_of(&coord);
        let start: SelectDims = first.iter().zip(&block.start).map(|(chunk, at)| chunk + at).collect();
        let all = Selection::block(&start, &block.count).bind(extent).unwrap();
        let mut elements = Vec::new();
        all.for_each_run(|run| elements.extend(run.offset_in_chunk..run.offset_in_chunk + run.len));
        assert_eq!(elements, got, "the box has the elements in their order");
    }
    let mut filled = vec![None; want.len()];
    for coord in &chunks {
        let mut runs = Vec::new();
        cut.for_each_run(coord, |run| runs.push(run));
        let distinct: BTreeSet<u64> =
            runs.iter().flat_map(|run| run.offset_in_chunk..run.offset_in_chunk + run.len).collect();
        assert_eq!(cut.distinct_elements_in(coord), distinct.len() as u64, "an element counts once");
        match cut.single_run(coord) {
            Some(run) => assert_eq!(runs, [run]),
            None => assert_ne!(runs.len(), 1),
        }
        cut.for_each_run(coord, |run| {
            for i in 0..run.len {
                let slot = &mut filled[(run.offset_in_selection + i) as usize];
                assert!(slot.replace((coord.clone(), run.offset_in_chunk + i)).is_none(), "a place is filled once");
            }
        });
    }
    for (at, filled) in want.iter().zip(filled) {
        let coord = grid.chunk_of(at);
        let within: SelectDims = at.iter().zip(chunk).map(|(at, size)| at % size).collect();
        let offset = linear(&within, chunk);
        assert_eq!(filled, Some((coord, offset)));
    }
}

fn dims(rank: usize) -> impl Strategy<Value = (Vec<u64>, Vec<u64>)> {
    (prop::collection::vec(0u64..9, rank), prop::collection::vec(1u64..6, rank))
}

fn hyperslab(extent: &[u64]) -> BoxedStrategy<Selection> {
    let pattern = |n: u64| {
        (0..=n, 1..5u64, 0..4u64, 0..4u64).prop_map(move |(start, gap, count, block)| {
            let block = block.min(n - start);
            let stride = block.max(1) + gap - 1;
            let fits = if block == 0 { 0 } else { (n - start - block) / stride + 1 };
            (start, stride, count.min(fits), block)
        })
    };
    let all: Vec<_> = extent.iter().map(|n| pattern(*n)).collect();
    all.prop_map(|dims| {
        let slab = Hyperslab {
            start: dims.iter().map(|d| d.0).collect(),
            stride: dims.iter().map(|d| d.1).collect(),
            count: dims.iter().map(|d| d.2).collect(),
            block: dims.iter().map(|d| d.3).collect(),
        };
        Selection::Hyperslab(slab)
    })
    .boxed()
}

fn blocks(extent: &[u64]) -> BoxedStrategy<Selection> {
    let side = |n: u64| (0..=n).prop_flat_map(move |start| (Just(start), 0..=n - start));
    let one: Vec<_> = extent.iter().map(|n| side(*n)).collect();
    let block = one.prop_map(|sides| Block {
        start: sides.iter().map(|s| s.0).collect(),
        count: sides.iter().map(|s| s.1).collect(),
    });
    prop::collection::vec(block, 0..5).prop_map(Selection::Blocks).boxed()
}

fn points(extent: &[u64]) -> BoxedStrategy<Selection> {
    if extent.contains(&0) {
        return Just(Selection::Points(Vec::new())).boxed();
    }
    let point: Vec<_> = extent.iter().map(|n| 0..*n).collect();
    let point = point.prop_map(SmallVec::from_vec);
    prop::collection::vec(point, 0..20).prop_map(Selection::Points).boxed()
}

fn cases() -> impl Strategy<Value = (Selection, Vec<u64>, Vec<u64>)> {
    (0usize..4).prop_flat_map(dims).prop_flat_map(|(extent, chunk)| {
        let any = prop_oneof![
            Just(Selection::All),
            Just(Selection::None),
            hyperslab(&extent),
            blocks(&extent),
            points(&extent)
        ];
        (any, Just(extent), Just(chunk))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn chunks_and_runs_are_those_of_the_slow_way((selection, extent, chunk) in cases()) {
        check(&selection, &extent, &chunk);
    }
}

fn pairs() -> impl Strategy<Value = (Selection, Selection, Vec<u64>)> {
    (1usize..4).prop_flat_map(dims).prop_flat_map(|(extent, _)| {
        let any = || prop_oneof![Just(Selection::All), hyperslab(&extent), blocks(&extent), points(&extent)];
        (any(), prop_oneof![Just(Selection::All), hyperslab(&extent), blocks(&extent)], Just(extent.clone()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn shared_elements_are_those_of_the_slow_way((a, b, extent) in pairs()) {
        let (all_a, all_b) = (naive(&a, &extent), naive(&b, &extent));
        let mut want = Vec::new();
        for (here, at) in all_a.iter().enumerate() {
            want.extend(all_b.iter().position(|other| other == at).map(|there| (here as u64, there as u64)));
        }
        let (a, b) = (a.bind(&extent).unwrap(), b.bind(&extent).unwrap());
        let mut got = Vec::new();
        a.for_each_shared(&b, |here, there, len| got.extend((0..len).map(|i| (here + i, there + i))));
        got.sort_unstable();
        prop_assert_eq!(got, want);
        let bounds = |dim: usize| Some((all_a.iter().map(|at| at[dim]).min()?, all_a.iter().map(|at| at[dim]).max()? + 1));
        let want: Option<Vec<_>> = (0..extent.len()).map(bounds).collect();
        let got = a.bounds().map(|(lo, hi)| lo.into_iter().zip(hi).collect::<Vec<_>>());
        prop_assert_eq!(got, want);
    }

    #[test]
    fn a_part_of_a_pair_stays_paired((a, extent, lo, hi) in (1usize..4).prop_flat_map(dims).prop_flat_map(|(extent, _)| {
        let corner = prop::collection::vec(0u64..9, extent.len());
        (hyperslab(&extent), Just(extent), corner.clone(), corner)
    })) {
        let source_dims = naive_shape(&a, &extent);
        let target = a.bind(&extent).unwrap();
        let source = Selection::All.bind(&source_dims).unwrap();
        let (ours, theirs) = target.restrict(&source, &lo, &hi).unwrap();
        let (all, mut want) = (naive(&a, &extent), Vec::new());
        for (i, at) in all.iter().enumerate() {
            if at.iter().zip(&lo).zip(&hi).all(|((at, lo), hi)| at >= lo && at < hi) {
                want.push((linear(at, &extent), i as u64));
            }
        }
        let (mut here, mut there) = (Vec::new(), Vec::new());
        ours.for_each_run(|run| here.extend(run.offset_in_chunk..run.offset_in_chunk + run.len));
        theirs.for_each_run(|run| there.extend(run.offset_in_chunk..run.offset_in_chunk + run.len));
        prop_assert_eq!(here.into_iter().zip(there).collect::<Vec<_>>(), want);
    }
}

fn naive_shape(selection: &Selection, extent: &[u64]) -> Vec<u64> {
    selection.bind(extent).unwrap().dims().to_vec()
}

#[test]
fn takes_whole_rows_as_one_run() {
    let selected = Selection::block(&[1, 0, 0], &[3, 4, 5]).bind(&[10, 4, 5]).unwrap();
    let mut runs = Vec::new();
    selected.for_each_run(|run| runs.push(run));
    assert_eq!(runs, [ElementRun { offset_in_chunk: 20, offset_in_selection: 0, len: 60 }]);
}

#[test]
fn a_scalar_is_one_element() {
    check(&Selection::All, &[], &[]);
    check(&Selection::None, &[], &[]);
}

#[test]
fn unlimited_counts_reach_to_the_end() {
    let slab =
        Hyperslab { start: smallvec![1], stride: smallvec![4], count: smallvec![UNLIMITED], block: smallvec![3] };
    let mut got = Vec::new();
    Selection::Hyperslab(slab)
        .bind(&[11])
        .unwrap()
        .for_each_run(|run| got.extend(run.offset_in_chunk..run.offset_in_chunk + run.len));
    assert_eq!(got, [1, 2, 3, 5, 6, 7, 9, 10]);
    let slab =
        Hyperslab { start: smallvec![2], stride: smallvec![1], count: smallvec![1], block: smallvec![UNLIMITED] };
    assert_eq!(Selection::Hyperslab(slab).bind(&[11]).unwrap().element_count(), 9);
}

#[test]
fn a_stride_beyond_every_extent_is_that_of_one_block() {
    for block in [1, 2, UNLIMITED] {
        let slab = Hyperslab {
            start: smallvec![3, 1],
            stride: smallvec![u64::MAX; 2],
            count: smallvec![UNLIMITED, 1],
            block: smallvec![block, 2],
        };
        let mut got = Vec::new();
        Selection::Hyperslab(slab)
            .bind(&[5, 4])
            .unwrap()
            .for_each_run(|run| got.extend(run.offset_in_chunk..run.offset_in_chunk + run.len));
        assert_eq!(got, if block == 1 { vec![13, 14] } else { vec![13, 14, 17, 18] });
    }
}

#[test]
fn refuses_what_does_not_fit() {
    use SelectionError as E;
    let on = |selection: Selection, extent: &[u64]| selection.bind(extent).unwrap_err();
    assert_eq!(on(Selection::block(&[0], &[1]), &[2, 2]), E::RankMismatch { selection: 1, extent: 2 });
    assert_eq!(on(Selection::block(&[1, 1], &[1, 2]), &[2, 2]), E::ExceedsExtent { dim: 1, end: 3, extent: 2 });
    assert_eq!(on(Selection::block(&[u64::MAX], &[2]), &[2]), E::ExceedsExtent { dim: 0, end: u64::MAX, extent: 2 });
    let slab = Hyperslab { start: smallvec![0], stride: smallvec![1], count: smallvec![2], block: smallvec![2] };
    assert_eq!(on(Selection::Hyperslab(slab), &[9]), E::HyperslabBlocksOverlap { dim: 0, stride: 1, block: 2 });
    assert_eq!(on(Selection::Points(vec![smallvec![3]]), &[3]), E::ExceedsExtent { dim: 0, end: 4, extent: 3 });
    assert_eq!(on(Selection::All, &[1 << 40, 1 << 40]), E::ElementCountOverflow);
    assert_eq!(on(Selection::All, &[1; 33]), E::TooManyDimensions(33));
}
