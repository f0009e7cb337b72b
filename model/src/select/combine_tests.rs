use proptest::prelude::*;

use crate::{Block, Hyperslab, Selection, UNLIMITED};

const EXTENT: [u64; 3] = [4, 5, 6];

/// Which elements are selected, one by one.
fn elements(selection: &Selection) -> Vec<bool> {
    let mut found = vec![false; EXTENT.iter().product::<u64>() as usize];
    selection.bind(&EXTENT).unwrap().for_each_run(|run| {
        found[run.offset_in_chunk as usize..(run.offset_in_chunk + run.len) as usize].fill(true);
    });
    found
}

fn bounds(extent: u64) -> impl Strategy<Value = (u64, u64)> {
    (0..extent).prop_flat_map(move |start| (Just(start), 0..=extent - start))
}

fn boxes() -> impl Strategy<Value = Block> {
    (bounds(EXTENT[0]), bounds(EXTENT[1]), bounds(EXTENT[2])).prop_map(|(a, b, c)| Block {
        start: [a.0, b.0, c.0].into_iter().collect(),
        count: [a.1, b.1, c.1].into_iter().collect(),
    })
}

fn selections() -> impl Strategy<Value = Selection> {
    let point = (0..EXTENT[0], 0..EXTENT[1], 0..EXTENT[2]).prop_map(|(a, b, c)| [a, b, c].into_iter().collect());
    let slab = (0..2u64, 1..4u64, 1..3u64).prop_map(|(start, stride, block)| {
        let all = |n: u64| std::iter::repeat_n(n, 3).collect();
        let stride = stride.max(block);
        Selection::Hyperslab(Hyperslab {
            start: all(start),
            stride: all(stride),
            count: all(UNLIMITED),
            block: all(block),
        })
    });
    prop_oneof![
        Just(Selection::All),
        Just(Selection::None),
        slab,
        prop::collection::vec(point, 0..8).prop_map(Selection::Points),
        prop::collection::vec(boxes(), 0..5).prop_map(Selection::Blocks),
    ]
}

proptest! {
    #[test]
    fn combines_as_element_by_element(a in selections(), b in selections()) {
        let (here, there) = (elements(&a), elements(&b));
        let by = |rule: fn(bool, bool) -> bool| -> Vec<bool> {
            here.iter().zip(&there).map(|(a, b)| rule(*a, *b)).collect()
        };
        prop_assert_eq!(elements(&a.or(&b, &EXTENT).unwrap()), by(|a, b| a || b));
        prop_assert_eq!(elements(&a.and(&b, &EXTENT).unwrap()), by(|a, b| a && b));
        prop_assert_eq!(elements(&a.xor(&b, &EXTENT).unwrap()), by(|a, b| a != b));
        prop_assert_eq!(elements(&a.difference(&b, &EXTENT).unwrap()), by(|a, b| a && !b));
        prop_assert_eq!(elements(&a.not(&EXTENT).unwrap()), here.iter().map(|a| !a).collect::<Vec<_>>());
    }
}

proptest! {
    #[test]
    fn a_part_is_what_lies_in_the_box(a in selections(), of in boxes()) {
        let end: Vec<u64> = of.start.iter().zip(&of.count).map(|(start, count)| start + count).collect();
        let part = a.bind(&EXTENT).unwrap().clip_to_box(&of.start, &end).unwrap();
        prop_assert_eq!(elements(&part), elements(&a.and(&Selection::Blocks(vec![of]), &EXTENT).unwrap()));
    }
}

#[test]
fn a_scalar_is_there_or_not() {
    let (all, none) = (Selection::All, Selection::None);
    let count = |selection: Selection| selection.bind(&[]).unwrap().element_count();
    assert_eq!(count(all.or(&none, &[]).unwrap()), 1);
    assert_eq!(count(all.and(&none, &[]).unwrap()), 0);
    assert_eq!(count(none.not(&[]).unwrap()), 1);
    assert_eq!(count(all.not(&[]).unwrap()), 0);
}

#[test]
fn many_points_are_combined_quickly() {
    let points =
        |step: u64| Selection::Points((0..100_000).map(|i| [i * step % 300_007].into_iter().collect()).collect());
    let both = points(3).and(&points(5), &[300_007]).unwrap();
    let elements = both.bind(&[300_007]).unwrap().element_count();
    assert!(elements > 0 && elements < 100_000);
}
