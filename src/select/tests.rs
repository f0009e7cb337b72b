use proptest::prelude::*;

use super::*;
use crate::{Dataset, ErrorKind, File, Result};

/// Each way to select along one dimension, as users write it.
#[derive(Debug, Clone)]
enum AnyDim {
    Index(u8),
    Range(Range<i32>),
    Inclusive(RangeInclusive<usize>),
    From(RangeFrom<u16>),
    To(RangeTo<i64>),
    ToInclusive(RangeToInclusive<u32>),
    Full,
    Steps(StepBy<Range<i32>>),
    StepsFrom(StepBy<RangeFrom<u64>>),
    StepsInclusive(StepBy<RangeInclusive<isize>>),
}

impl SelectDim for AnyDim {
    fn resolve_dim(&self, dim: usize, size: u64) -> Result<DimSelection, SelectionError> {
        match self {
            AnyDim::Index(index) => index.resolve_dim(dim, size),
            AnyDim::Range(range) => range.resolve_dim(dim, size),
            AnyDim::Inclusive(range) => range.resolve_dim(dim, size),
            AnyDim::From(range) => range.resolve_dim(dim, size),
            AnyDim::To(range) => range.resolve_dim(dim, size),
            AnyDim::ToInclusive(range) => range.resolve_dim(dim, size),
            AnyDim::Full => (..).resolve_dim(dim, size),
            AnyDim::Steps(steps) => steps.resolve_dim(dim, size),
            AnyDim::StepsFrom(steps) => steps.resolve_dim(dim, size),
            AnyDim::StepsInclusive(steps) => steps.resolve_dim(dim, size),
        }
    }
}

impl AnyDim {
    /// The indices that Rust has for it in a dimension of `size` elements.
    fn indices(&self, size: u64) -> Vec<u64> {
        let up_to = |end: u64| (0..end).collect();
        match self {
            AnyDim::Index(index) => vec![u64::from(*index)],
            AnyDim::Range(range) => range.clone().map(|i| i as u64).collect(),
            AnyDim::Inclusive(range) => range.clone().map(|i| i as u64).collect(),
            AnyDim::From(range) => (u64::from(range.start)..size).collect(),
            AnyDim::To(range) => up_to(range.end as u64),
            AnyDim::ToInclusive(range) => up_to(u64::from(range.end) + 1),
            AnyDim::Full => up_to(size),
            AnyDim::Steps(steps) => steps.clone().map(|i| i as u64).collect(),
            AnyDim::StepsFrom(steps) => steps.clone().take_while(|i| *i < size).collect(),
            AnyDim::StepsInclusive(steps) => steps.clone().map(|i| i as u64).collect(),
        }
    }
}

fn any_dim() -> impl Strategy<Value = AnyDim> {
    (0..10u8, 0..7u8, 0..7u8, 1..5usize).prop_map(|(kind, a, b, step)| match kind {
        0 => AnyDim::Index(a),
        1 => AnyDim::Range(i32::from(a)..i32::from(b)),
        2 => AnyDim::Inclusive(usize::from(a)..=usize::from(b)),
        3 => AnyDim::From(u16::from(a)..),
        4 => AnyDim::To(..i64::from(b)),
        5 => AnyDim::ToInclusive(..=u32::from(b)),
        6 => AnyDim::Full,
        7 => AnyDim::Steps((i32::from(a)..i32::from(b)).step_by(step)),
        8 => AnyDim::StepsFrom((u64::from(a)..).step_by(step)),
        _ => AnyDim::StepsInclusive((isize::from(a)..=isize::from(b)).step_by(step)),
    })
}

/// A dataset of these dimensions whose elements are their own positions.
fn counted(dims: &[u64]) -> (Dataset, Vec<i64>) {
    let file = File::in_memory();
    let chunk: Vec<u64> = dims.iter().map(|dim| dim.div_ceil(2).max(1)).collect();
    let data = file.new_dataset::<i64>().shape(dims).chunk_shape(&chunk).create("data").unwrap();
    let values: Vec<i64> = (0..dims.iter().product::<u64>() as i64).collect();
    data.write(&values).unwrap();
    (data, values)
}

/// The row-major positions of the product of indices along each dimension.
fn positions(dims: &[u64], indices: &[Vec<u64>]) -> Vec<usize> {
    let mut positions = vec![0];
    for (size, indices) in dims.iter().zip(indices) {
        let next = |at: &usize| indices.iter().map(|i| at * *size as usize + *i as usize).collect::<Vec<_>>();
        positions = positions.iter().flat_map(next).collect();
    }
    positions
}

/// Reads and writes a selection, and compares with a `Vec`.
fn check(dims: &[u64], selection: impl Select, want: &[usize], shape: &[u64]) {
    let (data, mut values) = counted(dims);
    assert_eq!(data.selected_shape(&selection).unwrap(), shape);
    let found = data.read_slice::<i64>(&selection).unwrap();
    assert_eq!(found, want.iter().map(|at| values[*at]).collect::<Vec<_>>());
    let new: Vec<i64> = found.iter().map(|value| -value - 1).collect();
    data.write_slice(&selection, &new).unwrap();
    want.iter().zip(new).for_each(|(at, value)| values[*at] = value);
    assert_eq!(data.read::<i64>().unwrap(), values);
}

proptest! {
    #[test]
    fn ranges_and_indices_select_what_they_select_in_rust(
        dims in prop::collection::vec(1u64..7, 1..4),
        selected in prop::collection::vec(any_dim(), 1..4),
    ) {
        let selected = &selected[..selected.len().min(dims.len())];
        let all = vec![AnyDim::Full; dims.len() - selected.len()];
        let named = selected.iter().chain(&all);
        let indices: Vec<_> = named.clone().zip(&dims).map(|(dim, size)| dim.indices(*size)).collect();
        let is_inside = indices.iter().zip(&dims).all(|(indices, size)| indices.iter().all(|i| i < size));
        if is_inside {
            let kept = named.zip(&indices).filter(|(dim, _)| !matches!(dim, AnyDim::Index(_)));
            let shape: Vec<u64> = kept.map(|(_, indices)| indices.len() as u64).collect();
            check(&dims, selected, &positions(&dims, &indices), &shape);
            match selected {
                [a] => check(&dims, (a.clone(),), &positions(&dims, &indices), &shape),
                [a, b] => check(&dims, (a.clone(), b.clone()), &positions(&dims, &indices), &shape),
                [a, b, c] => check(&dims, (a.clone(), b.clone(), c.clone()), &positions(&dims, &indices), &shape),
                _ => unreachable!(),
            }
        } else {
            let error = counted(&dims).0.read_slice::<i64>(selected).unwrap_err();
            let is_expected = matches!(
                error.kind(),
                ErrorKind::Selection(SelectionError::ExceedsExtent { .. } | SelectionError::IndexOutOfBounds { .. })
            );
            prop_assert!(is_expected, "{}", error);
        }
    }

    #[test]
    fn masks_select_what_is_set(
        dims in prop::collection::vec(1u64..7, 1..4),
        seed in prop::collection::vec(any::<bool>(), 216),
        widen in 1usize..5,
    ) {
        let elements = dims.iter().product::<u64>() as usize;
        let mask: Vec<bool> = (0..elements).map(|at| seed[at / widen]).collect();
        let want: Vec<usize> = (0..elements).filter(|at| mask[*at]).collect();
        check(&dims, &mask, &want, &[want.len() as u64]);
    }

    #[test]
    fn points_are_selected_in_their_order(
        dims in (1u64..7, 1u64..7),
        seed in prop::collection::vec((0u64..7, 0u64..7), 0..20),
    ) {
        let mut points: Vec<[u64; 2]> = Vec::new();
        for point in seed.iter().map(|(y, x)| [y % dims.0, x % dims.1]) {
            if !points.contains(&point) {
                points.push(point);
            }
        }
        let want: Vec<usize> = points.iter().map(|[y, x]| (y * dims.1 + x) as usize).collect();
        check(&[dims.0, dims.1], &points, &want, &[want.len() as u64]);
    }
}

#[test]
fn a_mask_of_many_pieces_is_a_list_of_points() {
    let (data, values) = counted(&[300, 400]);
    let mask: Vec<bool> = values.iter().map(|value| value % 3 > 0).collect();
    let want: Vec<i64> = values.iter().copied().filter(|value| value % 3 > 0).collect();
    assert!(matches!(mask.resolve(&[300, 400]).unwrap().selection(), Some(Selection::Points(_))));
    assert_eq!(data.read_slice::<i64>(&mask).unwrap(), want);
}

#[test]
fn what_does_not_fit_is_refused_with_its_dimension_and_size() {
    let (data, _) = counted(&[3, 4]);
    let text = |found: Result<Vec<i64>>| found.unwrap_err().to_string().split_once("data: ").unwrap().1.to_owned();
    let out = |index: &str| format!("index {index} is out of bounds: dimension 1 has 4 elements");
    assert_eq!(text(data.read_slice((.., 4))), out("4"));
    assert_eq!(text(data.read_slice((.., -1))), out("-1"));
    assert_eq!(text(data.read_slice((.., -1i8..2))), out("-1"));
    assert_eq!(
        text(data.read_slice(..u64::MAX)),
        "the selection reaches to 18446744073709551614 in dimension 0, which has 3 elements"
    );
    assert_eq!(text(data.read_slice((.., 2..5))), "the selection reaches to 5 in dimension 1, which has 4 elements");
    assert_eq!(text(data.read_slice((.., .., 0))), "the selection has 3 dimensions, the extent 2");
    assert_eq!(text(data.read_slice([true; 3])), "a mask of shape [3] does not fit the extent [3, 4]");
    assert_eq!(text(data.read_slice([[0usize, 4]])), out("4"));
    assert_eq!(text(data.read_slice((.., u64::MAX))), out("18446744073709551615"));
}

#[test]
fn all_of_a_scalar_can_be_selected() {
    let data = File::in_memory().new_dataset::<i64>().create("data").unwrap();
    data.write_slice((), &[5]).unwrap();
    assert_eq!(data.read_slice::<i64>(..).unwrap(), [5]);
    assert_eq!(data.read_slice::<i64>(&[true]).unwrap(), [5]);
    assert_eq!(data.read_slice::<i64>(&[false]).unwrap(), [0i64; 0]);
    assert!(data.read_slice::<i64>(0).is_err());
}

#[test]
fn references_to_regions_have_no_open_ends() {
    let (data, _) = counted(&[7, 4]);
    let region = data.region_reference(((1..).step_by(2), 2..)).unwrap();
    let Some(crate::ReferenceTarget::Region(_, found)) = data.file().reference_target(&region).unwrap() else {
        panic!()
    };
    assert_eq!(data.read_slice::<i64>(found).unwrap(), [6, 7, 14, 15, 22, 23]);
}

#[test]
fn lists_of_indices_are_combined_with_ranges_in_their_order() {
    let dims = [5u64, 4, 3];
    let want = |indices: [&[u64]; 3]| positions(&dims, &indices.map(<[u64]>::to_vec));
    check(&dims, (&[3, 1, 4], ..), &want([&[3, 1, 4], &[0, 1, 2, 3], &[0, 1, 2]]), &[3, 4, 3]);
    check(&dims, (.., vec![2u8, 0], 1), &want([&[0, 1, 2, 3, 4], &[2, 0], &[1]]), &[5, 2]);
    check(&dims, (1..3, &vec![3i64], (0..3).step_by(2)), &want([&[1, 2], &[3], &[0, 2]]), &[2, 1, 2]);
    check(&dims, (&[4usize, 0][..], &[1, 2], 2), &want([&[4, 0], &[1, 2], &[2]]), &[2, 2]);
    check(&dims, (&[0, 1, 2, 3, 4],), &want([&[0, 1, 2, 3, 4], &[0, 1, 2, 3], &[0, 1, 2]]), &[5, 4, 3]);
    check(&dims, (&[0i32; 0], ..), &[], &[0, 4, 3]);
    let all = vec![DimSelection::list(vec![2, 0]), DimSelection::all(), DimSelection::index(1)];
    check(&dims, all, &want([&[2, 0], &[0, 1, 2, 3], &[1]]), &[2, 4]);

    let (data, _) = counted(&dims);
    let text = |found: Result<Vec<i64>>| found.unwrap_err().to_string().split_once("data: ").unwrap().1.to_owned();
    assert_eq!(text(data.read_slice((.., &[1, 4]))), "index 4 is out of bounds: dimension 1 has 4 elements");
    assert_eq!(text(data.read_slice((&[1, -1],))), "index -1 is out of bounds: dimension 0 has 5 elements");
}

#[test]
fn a_region_of_a_list_has_the_same_elements() {
    let (data, _) = counted(&[5, 4]);
    let region = data.region_reference((&[3, 1], 2..)).unwrap();
    let Some(crate::ReferenceTarget::Region(_, found)) = data.file().reference_target(&region).unwrap() else {
        panic!()
    };
    assert_eq!(data.read_slice::<i64>(found).unwrap(), [6, 7, 14, 15]);
}

/// An element that is selected twice does not stand for another one, which is not written.
#[test]
fn an_element_that_is_written_twice_leaves_its_neighbours_alone() {
    for filters in [false, true] {
        let file = File::in_memory();
        let data = file.new_dataset::<i64>().shape(&[4]).chunk_shape(&[2]);
        let data = if filters { data.deflate(1) } else { data }.create("data").unwrap();
        data.write(&[1, 2, 3, 4]).unwrap();
        file.flush().unwrap();
        data.write_slice([[0], [0]], &[7, 8]).unwrap();
        assert_eq!(data.read::<i64>().unwrap(), [8, 2, 3, 4], "points");
        data.write_slice((&[3, 3],), &[9, 10]).unwrap();
        assert_eq!(data.read::<i64>().unwrap(), [8, 2, 3, 10], "a list");
        assert_eq!(data.read_slice::<i64>((&[3, 0, 3],)).unwrap(), [10, 8, 10]);
    }
}
