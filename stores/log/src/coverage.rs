//! Whether boxes cover another one.

use crate::boxes::BoxRange;
use crate::entry::DimVec;

/// For each box so many looks at a box are worth it...
const MAX_LOOKS_PER_BOX: usize = 64;
/// ...and one for so many bytes: to fill them takes as long as a look.
const BYTES_PER_LOOK: usize = 64;

/// Whether each element of a box of so many bytes is in one of `boxes`. May say no where it takes longer to see than to
/// fill the box.
pub fn is_provably_covered(wanted: &BoxRange<'_>, boxes: &[BoxRange<'_>], wanted_bytes: usize) -> bool {
    let mut looks =
        boxes.len().saturating_mul(MAX_LOOKS_PER_BOX).min((wanted_bytes / BYTES_PER_LOOK).saturating_add(1));
    // The boxes are halved until there is one.
    let least = boxes.len().saturating_mul(boxes.len().checked_ilog2().unwrap_or(0) as usize);
    least <= looks && is_part_covered(wanted, &mut boxes.to_vec(), &mut looks)
}

/// As [`is_provably_covered`]; sorts the boxes, and counts down the looks at boxes that are left.
fn is_part_covered(wanted: &BoxRange<'_>, boxes: &mut [BoxRange<'_>], looks: &mut usize) -> bool {
    let rank = wanted.start.len();
    let Some(left) = looks.checked_sub(boxes.len()).filter(|_| !boxes.is_empty()) else { return false };
    *looks = left;
    if boxes.iter().any(|found| found.contains(wanted)) {
        return true;
    }
    // It is cut where most boxes begin or end.
    let inside = |dim: usize, at: &u64| *at > wanted.start[dim] && *at < wanted.end[dim];
    let cuts = |dim: usize| {
        let of_box = move |found: &BoxRange<'_>| [found.start[dim], found.end[dim]];
        boxes.iter().flat_map(of_box).filter(move |at| inside(dim, at))
    };
    let Some(dim) = (0..rank).max_by_key(|dim| cuts(*dim).count()) else { return false };
    let mut found: Vec<u64> = cuts(dim).collect();
    if found.is_empty() {
        return false;
    }
    let middle = found.len() / 2;
    let cut = *found.select_nth_unstable(middle).1;
    let (mut low_end, mut high_start) = (DimVec::from_slice(wanted.end), DimVec::from_slice(wanted.start));
    (low_end[dim], high_start[dim]) = (cut, cut);
    let mut half = |half: BoxRange<'_>| {
        let mut meeting: Vec<_> = boxes.iter().filter(|found| found.intersects(&half)).copied().collect();
        is_part_covered(&half, &mut meeting, looks)
    };
    half(BoxRange { start: wanted.start, end: &low_end }) && half(BoxRange { start: &high_start, end: wanted.end })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_called_covered_is_covered(
            rank in 1usize..4,
            numbers in prop::collection::vec(0u64..5, 6..60),
            sides in prop::collection::vec(1u64..4, 3),
        ) {
            let (start, end) = (vec![1; rank], sides[..rank].iter().map(|side| side + 1).collect::<Vec<_>>());
            let corners: Vec<(Vec<u64>, Vec<u64>)> = numbers
                .chunks_exact(2 * rank)
                .map(|corner| (corner[..rank].to_vec(), (0..rank).map(|d| corner[d] + corner[rank + d]).collect()))
                .collect();
            let boxes: Vec<_> = corners.iter().map(|(start, end)| BoxRange { start, end }).collect();
            let mut is_all = true;
            for number in 0..5u64.pow(rank as u32) {
                let at: Vec<u64> = (0..rank).map(|dim| number / 5u64.pow(dim as u32) % 5).collect();
                let inside = |low: &[u64], high: &[u64]| (0..rank).all(|d| (low[d]..high[d]).contains(&at[d]));
                is_all &= !inside(&start, &end) || boxes.iter().any(|found| inside(found.start, found.end));
            }
            let found = is_provably_covered(&BoxRange { start: &start, end: &end }, &boxes, usize::MAX);
            prop_assert!(is_all || !found);
        }
    }

    #[test]
    fn tiles_and_stripes_are_seen_to_cover() {
        let cover = |tiles: u64, sides: [u64; 2], missing: u64| {
            let corner = |n: u64| [n / tiles * sides[0], n % tiles * sides[1]];
            let corners: Vec<_> = (0..tiles * tiles).filter(|n| *n != missing).map(corner).collect();
            let ends: Vec<_> = corners.iter().map(|[a, b]| [a + sides[0], b + sides[1]]).collect();
            let boxes: Vec<_> = corners.iter().zip(&ends).map(|(start, end)| BoxRange { start, end }).collect();
            is_provably_covered(
                &BoxRange { start: &[1, 0], end: &[tiles * sides[0], tiles * sides[1] - 1] },
                &boxes,
                usize::MAX,
            )
        };
        assert!(cover(30, [16, 32], u64::MAX) && cover(30, [400, 1], u64::MAX));
        assert!(!cover(30, [16, 32], 77) && !cover(30, [400, 1], 77));
        assert!(is_provably_covered(&BoxRange { start: &[], end: &[] }, &[BoxRange { start: &[], end: &[] }], 8));
        assert!(!is_provably_covered(&BoxRange { start: &[], end: &[] }, &[], 8));
    }
}
