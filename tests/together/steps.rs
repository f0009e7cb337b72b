//! The steps of the test, and how sequences of them are drawn.

use proptest::prelude::*;

use crate::values::Kind;

/// A filter that a dataset has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    None,
    Deflate,
    Shuffle,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Group { path: String, ordered: bool },
    Dataset { path: String, kind: Kind, shape: Vec<u64>, max: Vec<u64>, chunk: Option<Vec<u64>>, filter: Filter },
    Write { path: String, start: Vec<u64>, count: Vec<u64>, seed: u64 },
    Resize { path: String, shape: Vec<u64> },
    Attribute { path: String, name: String, kind: Kind, count: u64, seed: u64 },
    Unattribute { path: String, name: String },
    Remove { path: String },
    Move { from: String, to: String },
    Soft { path: String, target: String },
    External { path: String, file: String, target: String },
    Hard { path: String, target: String },
}

impl Step {
    /// How many kinds of steps there are.
    pub const KINDS: usize = 11;

    pub fn name(&self) -> &'static str {
        match self {
            Step::Group { .. } => "group",
            Step::Dataset { .. } => "dataset",
            Step::Write { .. } => "write",
            Step::Resize { .. } => "resize",
            Step::Attribute { .. } => "attribute",
            Step::Unattribute { .. } => "unattribute",
            Step::Remove { .. } => "remove",
            Step::Move { .. } => "move",
            Step::Soft { .. } => "soft",
            Step::External { .. } => "external",
            Step::Hard { .. } => "hard",
        }
    }
}

/// Who changes the file next, and how it opens it.
#[derive(Debug, Clone)]
pub struct Turn {
    pub ours: bool,
    /// The oldest release whose structures are written.
    pub low: &'static str,
    pub steps: Vec<Step>,
}

/// A path of few, so that steps meet: at most two groups deep.
fn path() -> impl Strategy<Value = String> {
    let name = prop_oneof![4 => 0..6u32, 1 => 0..40u32];
    let group = prop_oneof![3 => Just(String::new()), 3 => (0..3u32).prop_map(|n| format!("/n{n}")), 1 => (0..3u32, 0..3u32).prop_map(|(a, b)| format!("/n{a}/n{b}"))];
    (group, name).prop_map(|(group, name)| format!("{group}/n{name}"))
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![4 => Just(Kind::I4), 2 => Just(Kind::F8), 1 => Just(Kind::S8), 2 => Just(Kind::Text), 1 => Just(Kind::Pair)]
}

fn dataset() -> impl Strategy<Value = Step> {
    let dimension = (1..5u64, 0..20u64, prop_oneof![Just(None), (0..20u64).prop_map(Some)]);
    let filter = prop_oneof![2 => Just(Filter::None), 1 => Just(Filter::Deflate), 1 => Just(Filter::Shuffle)];
    let dimensions = proptest::collection::vec(dimension, 1..4);
    (path(), kind(), dimensions, any::<bool>(), filter).prop_map(|(path, kind, dimensions, chunked, filter)| {
        let shape: Vec<_> = dimensions.iter().map(|(_, now, _)| *now).collect();
        if !chunked {
            return Step::Dataset { path, kind, max: shape.clone(), shape, chunk: None, filter: Filter::None };
        }
        let max = |(chunk, now, more): &(u64, u64, Option<u64>)| {
            more.map_or(h5live::UNLIMITED, |more| (now + more).max(*chunk))
        };
        let max = dimensions.iter().map(max).collect();
        let chunk = Some(dimensions.iter().map(|(chunk, ..)| *chunk).collect());
        let filter = if matches!(kind, Kind::Text) { Filter::None } else { filter };
        Step::Dataset { path, kind, shape, max, chunk, filter }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let block = proptest::collection::vec((0..12u64, 0..12u64), 1..4);
    let write = (path(), block, 0..1000u64).prop_map(|(path, block, seed)| {
        let (start, count) = block.into_iter().unzip();
        Step::Write { path, start, count, seed }
    });
    let shape = proptest::collection::vec(0..30u64, 1..4);
    let resize = (path(), shape).prop_map(|(path, shape)| Step::Resize { path, shape });
    let name = prop_oneof![3 => (0..4u32).prop_map(|n| format!("a{n}")), 1 => (0..30u32).prop_map(|n| format!("long attribute {n}"))];
    let attribute = (path(), name.clone(), kind(), prop_oneof![4 => 1..6u64, 1 => 1..400u64], 0..1000u64);
    let attribute =
        attribute.prop_map(|(path, name, kind, count, seed)| Step::Attribute { path, name, kind, count, seed });
    prop_oneof![
        3 => (path(), any::<bool>()).prop_map(|(path, ordered)| Step::Group { path, ordered }),
        5 => dataset(),
        8 => write,
        4 => resize,
        8 => attribute,
        3 => (path(), name).prop_map(|(path, name)| Step::Unattribute { path, name }),
        3 => path().prop_map(|path| Step::Remove { path }),
        2 => (path(), path()).prop_map(|(from, to)| Step::Move { from, to }),
        1 => (path(), path()).prop_map(|(path, target)| Step::Soft { path, target }),
        1 => (path(), path()).prop_map(|(path, target)| Step::External { path, file: "other.h5".into(), target }),
        2 => (path(), path()).prop_map(|(path, target)| Step::Hard { path, target }),
    ]
}

/// Sequences of `steps` changes in all, in turns.
pub fn turns(steps: usize) -> impl Strategy<Value = Vec<Turn>> {
    let low = prop_oneof![Just("v110"), Just("latest")];
    let turn = (any::<bool>(), low, proptest::collection::vec(step(), 1..20));
    let turn = turn.prop_map(|(ours, low, steps)| Turn { ours, low, steps });
    proptest::collection::vec(turn, 1..=steps.div_ceil(10))
}
