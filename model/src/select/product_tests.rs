use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::UNLIMITED;

/// The indices of each dimension, and how a selection says them.
fn product(extent: &[u64]) -> BoxedStrategy<Vec<(Vec<u64>, DimIndices)>> {
    let dim = |n: u64| {
        let list = prop::collection::vec(0..n.max(1), if n == 0 { 0..1 } else { 0..7 })
            .prop_map(|list| (list.clone(), DimIndices::List(list.into())));
        let steps = (0..=n, 1..4u64).prop_map(move |(start, stride)| {
            let indices = (start..n).step_by(stride as usize).collect();
            (indices, DimIndices::StridedBlocks { start, stride, count: UNLIMITED, block: 1 })
        });
        let run =
            Just(((0..n).collect(), DimIndices::StridedBlocks { start: 0, stride: 1, count: 1, block: UNLIMITED }));
        prop_oneof![2 => list, 1 => steps, 1 => run]
    };
    extent.iter().map(|n| dim(*n)).collect::<Vec<_>>().boxed()
}

type ProductCase = (Vec<(Vec<u64>, DimIndices)>, Vec<u64>, Vec<u64>);

fn cases() -> impl Strategy<Value = ProductCase> {
    let dims =
        (1usize..4).prop_flat_map(|rank| (prop::collection::vec(0u64..9, rank), prop::collection::vec(1u64..6, rank)));
    dims.prop_flat_map(|(extent, chunk)| (product(&extent), Just(extent), Just(chunk)))
}

/// Every element, in the order of the indices.
fn naive(dims: &[(Vec<u64>, DimIndices)]) -> Vec<SelectDims> {
    let mut all = vec![SelectDims::new()];
    for (indices, _) in dims {
        let longer =
            |at: &SelectDims| indices.iter().map(|i| at.iter().copied().chain([*i]).collect()).collect::<Vec<_>>();
        all = all.iter().flat_map(longer).collect();
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn a_product_has_all_combinations_in_the_order_of_its_lists((dims, extent, chunk) in cases()) {
        let want = naive(&dims);
        let shape: Vec<u64> = dims.iter().map(|(indices, _)| indices.len() as u64).collect();
        let dims: Vec<_> = dims.into_iter().map(|(_, dim)| dim).collect();
        let selected = DimIndices::bind_product(&dims, &extent).unwrap();
        prop_assert_eq!(selected.element_count(), want.len() as u64);
        prop_assert_eq!(selected.dims().to_vec(), shape);
        let grid = ChunkGrid::new(&chunk).unwrap();
        let cut = selected.split_by_chunks(&grid);
        let chunks: Vec<_> = cut.chunks().collect();
        let touched: BTreeSet<_> = want.iter().map(|at| grid.chunk_of(at)).collect();
        prop_assert_eq!(&chunks, &touched.into_iter().collect::<Vec<_>>());
        let mut filled = vec![None; want.len()];
        let strides = row_major_strides(&chunk);
        let within = |at: &SelectDims| {
            at.iter().zip(&chunk).zip(&strides).map(|((at, size), stride)| at % size * stride).sum::<u64>()
        };
        for coord in &chunks {
            let mut runs = Vec::new();
            cut.for_each_run(coord, |run| runs.push(run));
            match cut.single_run(coord) {
                Some(run) => prop_assert_eq!(&runs, &[run]),
                None => prop_assert_ne!(runs.len(), 1),
            }
            let places: Vec<u64> = runs.iter().flat_map(|run| run.offset_in_selection..run.offset_in_selection + run.len).collect();
            if let Some(range) = cut.dest_range(coord, coord.rank()) {
                prop_assert_eq!(&places, &range.collect::<Vec<_>>());
            }
            let distinct: BTreeSet<_> = want.iter().filter(|at| grid.chunk_of(at) == *coord).map(&within).collect();
            prop_assert_eq!(cut.distinct_elements_in(coord), distinct.len() as u64);
            for run in &runs {
                for i in 0..run.len {
                    let before = filled[(run.offset_in_selection + i) as usize].replace((coord.clone(), run.offset_in_chunk + i));
                    prop_assert!(before.is_none(), "a place is filled once");
                }
            }
        }
        for (at, filled) in want.iter().zip(filled) {
            prop_assert_eq!(filled, Some((grid.chunk_of(at), within(at))));
        }
        if let Some((coord, run)) = cut.single_chunk_run() {
            prop_assert_eq!(chunks, [coord.clone()]);
            prop_assert_eq!(cut.single_run(&coord), Some(run));
        }
    }

    #[test]
    fn a_product_as_boxes_has_each_element_once_in_order((dims, extent, _) in cases()) {
        let want: BTreeSet<_> = naive(&dims).into_iter().collect();
        let dims: Vec<_> = dims.into_iter().map(|(_, dim)| dim).collect();
        let selected = DimIndices::bind_product(&dims, &extent).unwrap();
        let bounds = |dim: usize| {
            let indices = || want.iter().map(|at| at[dim]);
            Some((indices().min()?, indices().max()? + 1))
        };
        let bounds: Option<Vec<_>> = (0..extent.len()).map(bounds).collect();
        prop_assert_eq!(selected.bounds().map(|(lo, hi)| lo.into_iter().zip(hi).collect::<Vec<_>>()), bounds);
        let boxes = selected.to_blocks_or_points().unwrap().bind(&extent).unwrap();
        let mut found = Vec::new();
        boxes.for_each_run(|run| found.extend(run.offset_in_chunk..run.offset_in_chunk + run.len));
        let strides = row_major_strides(&extent);
        let linear = |at: &SelectDims| at.iter().zip(&strides).map(|(at, stride)| at * stride).sum::<u64>();
        prop_assert_eq!(found, want.iter().map(linear).collect::<Vec<_>>());
        let all: u64 = extent.iter().product();
        prop_assert!(!selected.is_all() || want.len() as u64 == all);
    }
}

#[test]
fn an_index_beyond_its_dimension_is_named() {
    let list = |indices: &[u64]| DimIndices::List(indices.into());
    let found = DimIndices::bind_product(&[list(&[0]), list(&[2, 5])], &[1, 5]).unwrap_err();
    assert_eq!(found, SelectionError::IndexOutOfBounds { dim: 1, index: 5, extent: 5 });
    let found = DimIndices::bind_product(&[list(&[0])], &[1, 5]).unwrap_err();
    assert_eq!(found, SelectionError::RankMismatch { selection: 1, extent: 2 });
}

#[test]
fn a_long_list_of_long_runs_is_cut_in_little_time() {
    // Each chunk must look at its own part of the list only.
    let indices: Vec<u64> = (0..1 << 20).filter(|index| index % 1000 != 7).collect();
    let selected = DimIndices::bind_product(&[DimIndices::List(indices.clone().into())], &[1 << 20]).unwrap();
    let grid = ChunkGrid::new(&[16]).unwrap();
    let cut = selected.split_by_chunks(&grid);
    let mut runs = 0u64;
    for coord in cut.chunks() {
        cut.for_each_run(&coord, |_| runs += 1);
    }
    assert_eq!(cut.chunks().count(), 1 << 16);
    assert!(runs >= 1 << 16);
}
