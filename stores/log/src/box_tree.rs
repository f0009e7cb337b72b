//! A tree of boxes: which of many boxes meet a given one.

use std::ops::{ControlFlow, Range};

/// The most boxes of a leaf.
const LEAF_BOXES: usize = 16;
/// New boxes are looked at one by one until they are this share of all (one in so many), and at least a leaf full.
const TAIL_SHARE: usize = 8;

/// Boxes of one rank, each with its first corner and one past its last one. Those that were added lately are looked at
/// one by one, the others by the tree.
#[derive(Debug, Clone)]
pub struct BoxTree {
    rank: usize,
    /// For each box its start and its end (`[2 * rank]`).
    corners: Vec<u64>,
    len: usize,
    /// The boxes that the tree has, in the order of its leaves.
    order: Vec<u32>,
    nodes: Vec<BoxNode>,
    /// For each node the box around it (`[2 * rank]`).
    node_corners: Vec<u64>,
}

/// A node of the tree, whose box has all of its boxes.
#[derive(Debug, Clone)]
struct BoxNode {
    /// Its boxes in the order of the leaves.
    boxes: Range<u32>,
    /// The number of the second of two nodes below it; the first one follows it. `None` for a leaf.
    second: Option<u32>,
}

/// Whether two boxes share an element. Each has its start and its end.
fn meets(corners: &[u64], start: &[u64], end: &[u64]) -> bool {
    let (starts, ends) = corners.split_at(start.len());
    starts.iter().zip(ends).zip(start.iter().zip(end)).all(|((a, b), (start, end))| a.max(start) < b.min(end))
}

impl BoxTree {
    /// No boxes.
    pub fn new(rank: usize) -> Self {
        BoxTree { rank, corners: Vec::new(), len: 0, order: Vec::new(), nodes: Vec::new(), node_corners: Vec::new() }
    }

    /// Adds a box.
    pub fn push(&mut self, start: &[u64], end: impl Iterator<Item = u64>) {
        self.corners.extend_from_slice(start);
        self.corners.extend(end);
        self.len += 1;
    }

    /// The start and the end of a box.
    pub fn corners(&self, number: usize) -> (&[u64], &[u64]) {
        let at = 2 * self.rank * number;
        self.corners[at..at + 2 * self.rank].split_at(self.rank)
    }

    /// Whether so many new boxes were added that the tree is worth making anew ([`BoxTree::rebuild`]).
    pub fn is_rebuild_due(&self) -> bool {
        self.len - self.order.len() > LEAF_BOXES.max(self.len / TAIL_SHARE)
    }

    /// Makes the tree anew, of all boxes.
    pub fn rebuild(&mut self) {
        self.order = (0..self.len as u32).collect();
        self.nodes.clear();
        self.node_corners.clear();
        if self.len > 0 && self.rank > 0 {
            self.add_node(0..self.len);
        }
    }

    /// Adds the node of these boxes, and those below it. It halves them, so it calls itself at most 32 times.
    fn add_node(&mut self, boxes: Range<usize>) -> u32 {
        let number = self.nodes.len() as u32;
        let around = self.box_around(&self.order[boxes.clone()]);
        let widest = (0..self.rank).max_by_key(|dim| around[self.rank + dim] - around[*dim]).unwrap_or(0);
        self.node_corners.extend(around);
        self.nodes.push(BoxNode { boxes: boxes.start as u32..boxes.end as u32, second: None });
        if boxes.len() > LEAF_BOXES {
            let (rank, corners, middle) = (self.rank, &self.corners, boxes.len() / 2);
            let center = |number: &u32| {
                let at = 2 * rank * *number as usize + widest;
                u128::from(corners[at]) + u128::from(corners[at + rank])
            };
            self.order[boxes.clone()].select_nth_unstable_by_key(middle, center);
            let cut = boxes.start + middle;
            self.add_node(boxes.start..cut);
            let second = self.add_node(cut..boxes.end);
            self.nodes[number as usize].second = Some(second);
        }
        number
    }

    fn box_around(&self, numbers: &[u32]) -> Vec<u64> {
        let mut around = vec![u64::MAX; self.rank];
        around.resize(2 * self.rank, 0);
        for number in numbers {
            let (start, end) = self.corners(*number as usize);
            let (low, high) = around.split_at_mut(self.rank);
            low.iter_mut().zip(start).for_each(|(low, start)| *low = (*low).min(*start));
            high.iter_mut().zip(end).for_each(|(high, end)| *high = (*high).max(*end));
        }
        around
    }

    /// Whether one of the boxes shares an element with the box from `start` to before `end`.
    pub fn intersects_any(&self, start: &[u64], end: &[u64]) -> bool {
        self.for_each_met(start, end, |_| ControlFlow::Break(())).is_break()
    }

    /// The numbers of the boxes that share an element with the box from `start` to before `end`, in ascending order.
    pub fn find_intersecting(&self, start: &[u64], end: &[u64]) -> Vec<u32> {
        let mut found = Vec::new();
        let _ = self.for_each_met(start, end, |number| {
            found.push(number);
            ControlFlow::Continue(())
        });
        found.sort_unstable();
        found
    }

    /// Calls `each` with the numbers of the boxes that share an element with the box from `start` to before `end`, until
    /// it stops.
    fn for_each_met(
        &self,
        start: &[u64],
        end: &[u64],
        mut each: impl FnMut(u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.rank == 0 {
            return (0..self.len as u32).try_for_each(each);
        }
        let has_met = |corners: &[u64], number: u32| {
            let at = 2 * self.rank * number as usize;
            meets(&corners[at..at + 2 * self.rank], start, end)
        };
        let mut nodes = if self.nodes.is_empty() { Vec::new() } else { vec![0u32] };
        while let Some(number) = nodes.pop() {
            if !has_met(&self.node_corners, number) {
                continue;
            }
            let node = &self.nodes[number as usize];
            let boxes = &self.order[node.boxes.start as usize..node.boxes.end as usize];
            let mut met = boxes.iter().copied().filter(|number| has_met(&self.corners, *number));
            match node.second {
                Some(second) => nodes.extend([second, number + 1]),
                None => met.try_for_each(&mut each)?,
            }
        }
        let mut tail = (self.order.len() as u32..self.len as u32).filter(|number| has_met(&self.corners, *number));
        tail.try_for_each(each)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_tree_finds_what_a_look_at_each_box_finds(
            rank in 1usize..4,
            numbers in prop::collection::vec(0u64..40, 0..900),
            asked in prop::collection::vec(0u64..40, 6),
            rebuilt_at in 0usize..200,
        ) {
            let mut tree = BoxTree::new(rank);
            for (number, sides) in numbers.chunks_exact(2 * rank).enumerate() {
                let (start, size) = sides.split_at(rank);
                tree.push(start, start.iter().zip(size).map(|(start, size)| start + size % 7));
                if number == rebuilt_at || tree.is_rebuild_due() {
                    tree.rebuild();
                }
            }
            let start = &asked[..rank];
            let end: Vec<u64> = start.iter().zip(&asked[3..]).map(|(start, size)| start + size).collect();
            let one_by_one = (0..tree.len).filter(|number| {
                let (low, high) = tree.corners(*number);
                (0..rank).all(|dim| low[dim].max(start[dim]) < high[dim].min(end[dim]))
            });
            prop_assert_eq!(tree.intersects_any(start, &end), !tree.find_intersecting(start, &end).is_empty());
            prop_assert_eq!(tree.find_intersecting(start, &end), one_by_one.map(|number| number as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn scalars_meet_all_that_was_written() {
        let mut tree = BoxTree::new(0);
        tree.push(&[], [].into_iter());
        tree.push(&[], [].into_iter());
        tree.rebuild();
        assert_eq!(tree.find_intersecting(&[], &[]), [0, 1]);
    }
}
