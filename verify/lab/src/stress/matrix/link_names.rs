//! The names of datasets that come into groups and leave them, and which of them do in a step.

use crate::stress::rule::mix;

/// The groups: one has few links, the other one many.
pub const GROUPS: [&str; 2] = ["few", "many"];
/// Datasets of the first group, and of both.
const FEW: usize = 10;
const DATASETS: usize = 48;
/// Most datasets that come or go between two flushes.
const MAX_CHANGES: u64 = 3;
/// The name of a dataset in a group that comes and goes with it.
const INNER: &str = "/inner";

/// The names of the datasets. Some lie in a group of their own, which comes and goes with them.
pub fn names() -> Vec<String> {
    let [few, many] = GROUPS;
    let name = |number| match number {
        0..FEW => format!("{few}/data{number}"),
        _ if number % 4 == 3 => format!("{many}/group{number}{INNER}"),
        _ => format!("{many}/data{number}"),
    };
    (0..DATASETS).map(name).collect()
}

/// The path of the link that comes and goes with a dataset.
pub fn link_path(name: &str) -> &str {
    name.strip_suffix(INNER).unwrap_or(name)
}

/// The numbers of the datasets that come or go in a step, each once.
pub fn draw_datasets(random: u64) -> Vec<usize> {
    let mut drawn = Vec::new();
    for n in 0..1 + random % MAX_CHANGES {
        let number = (mix(random ^ (n + 1)) % DATASETS as u64) as usize;
        if !drawn.contains(&number) {
            drawn.push(number);
        }
    }
    drawn
}
