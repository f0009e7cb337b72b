//! The values of two arrays that differ.

use h5live::Value;

use super::difference::FileDifference;
use super::side::DiffSide;
use super::tolerance::Tolerance;

/// The values that differ. Some of them are shown.
pub struct ValueDifferences {
    /// Most values that are shown.
    max_shown: usize,
    shown: Vec<FileDifference>,
    count: u64,
}

impl ValueDifferences {
    /// None so far.
    pub fn new(max_shown: usize) -> Self {
        ValueDifferences { max_shown, shown: Vec::new(), count: 0 }
    }

    /// Compares elements from `first` on, of an array of `dims`.
    pub fn compare_elements(
        &mut self,
        tolerance: Tolerance,
        (a, in_a): (&[Value], &DiffSide),
        (b, in_b): (&[Value], &DiffSide),
        dims: &[u64],
        first: u64,
    ) {
        let same_object = |a: &Value, b: &Value| in_a.referenced_path(a) == in_b.referenced_path(b);
        for (index, (a, b)) in (first..).zip(a.iter().zip(b)) {
            if tolerance.same(a, b, &same_object) {
                continue;
            }
            self.count += 1;
            if self.shown.len() < self.max_shown {
                self.shown.push(FileDifference::Value(position(index, dims), a.clone(), b.clone()));
            }
        }
    }

    /// As [`compare_elements`](Self::compare_elements), for this many elements that all have the same value.
    pub fn compare_repeated_value(
        &mut self,
        tolerance: Tolerance,
        (a, in_a): (&Value, &DiffSide),
        (b, in_b): (&Value, &DiffSide),
        dims: &[u64],
        (first, count): (u64, u64),
    ) {
        if tolerance.same(a, b, &|a, b| in_a.referenced_path(a) == in_b.referenced_path(b)) {
            return;
        }
        self.count = self.count.saturating_add(count);
        let room = self.max_shown.saturating_sub(self.shown.len()).min(usize::try_from(count).unwrap_or(usize::MAX));
        let shown =
            (first..).take(room).map(|index| FileDifference::Value(position(index, dims), a.clone(), b.clone()));
        self.shown.extend(shown);
    }

    /// Those that are shown, and their number if these are not all.
    pub fn take_differences(&mut self) -> Vec<FileDifference> {
        if self.count > self.shown.len() as u64 {
            self.shown.push(FileDifference::DifferingValueCount(self.count));
        }
        std::mem::take(&mut self.shown)
    }
}

/// The indices of element `index` of an array of `dims`.
fn position(mut index: u64, dims: &[u64]) -> Vec<u64> {
    let mut at: Vec<u64> = dims
        .iter()
        .rev()
        .map(|dim| {
            let here = index % (*dim).max(1);
            index /= (*dim).max(1);
            here
        })
        .collect();
    at.reverse();
    at
}
