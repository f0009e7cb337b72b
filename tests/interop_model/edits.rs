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

/// A step whose places are still to be found among what is there.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Choose among what is there.
    picks: (usize, usize),
    step: Step,
}

/// Who changes the file next, and how it opens it.
#[derive(Debug, Clone)]
pub struct Turn {
    pub ours: bool,
    /// The oldest release whose structures are written.
    pub low: &'static str,
    pub drafts: Vec<Draft>,
}

/// What there is.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Paths of groups; the root is empty.
    pub groups: Vec<String>,
    /// Paths, shapes and greatest shapes of datasets, and whether they are chunked.
    pub datasets: Vec<(String, Vec<u64>, Vec<u64>, bool)>,
    /// Paths of all links.
    pub links: Vec<String>,
    /// Paths and names of attributes.
    pub attributes: Vec<(String, String)>,
}

fn pick<T>(from: &[T], number: usize) -> Option<&T> {
    (!from.is_empty()).then(|| &from[number % from.len()])
}

impl Draft {
    /// The step, in places that are there; `None` if there are none for it.
    pub fn settle(&self, there: &Catalog) -> Option<Step> {
        let (a, b) = self.picks;
        let new = |name: &str| pick(&there.groups, a).map(|group| format!("{group}{name}"));
        let objects: Vec<_> = there.groups.iter().chain(there.datasets.iter().map(|(path, ..)| path)).collect();
        let mut step = self.step.clone();
        match &mut step {
            Step::Group { path, .. } | Step::Dataset { path, .. } => *path = new(path)?,
            Step::Soft { path, target } => (*path, *target) = (new(path)?, pick(&there.links, b)?.clone()),
            Step::External { path, .. } => *path = new(path)?,
            Step::Hard { path, target } => {
                // Groups that lead to each other are lost, not deleted, with the last link from outside.
                (*path, *target) = (new(path)?, pick(&there.datasets, b)?.0.clone());
            }
            Step::Write { path, start, count, .. } => {
                let (place, shape, ..) = pick(&there.datasets, a)?;
                *path = place.clone();
                start.resize(shape.len(), 3);
                count.resize(shape.len(), 7);
                for ((start, count), len) in start.iter_mut().zip(count).zip(shape) {
                    *start = start.checked_rem(*len)?;
                    *count = 1 + *count % (len - *start);
                }
            }
            Step::Resize { path, shape } => {
                let chunked: Vec<_> = there.datasets.iter().filter(|(.., chunked)| *chunked).collect();
                let (place, _, max, _) = pick(&chunked, a)?;
                *path = place.clone();
                shape.resize(max.len(), 5);
                shape.iter_mut().zip(max).for_each(|(len, max)| *len = (*len).min(*max));
            }
            Step::Attribute { path, .. } => *path = pick(&objects, a)?.to_string(),
            Step::Unattribute { path, name } => (*path, *name) = pick(&there.attributes, a)?.clone(),
            Step::Remove { path } => *path = pick(&there.links, b)?.clone(),
            Step::Move { from, to } => (*from, *to) = (pick(&there.links, b)?.clone(), new(to)?),
        }
        Some(step)
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    let (i4, f8, s8, text, pair) = (Kind::I4, Kind::F8, Kind::S8, Kind::Text, Kind::Pair);
    prop_oneof![4 => Just(i4), 2 => Just(f8), 1 => Just(s8), 2 => Just(text), 1 => Just(pair)]
}

/// The name of a link, after a slash. Some are long.
fn name() -> impl Strategy<Value = String> {
    (0..40u32).prop_map(|n| if n % 13 == 12 { format!("/n{n}{}", "x".repeat(90)) } else { format!("/n{n}") })
}

fn dataset() -> impl Strategy<Value = Step> {
    let dimension = (1..5u64, 0..20u64, prop_oneof![Just(None), (0..20u64).prop_map(Some)]);
    let filter = prop_oneof![2 => Just(Filter::None), 1 => Just(Filter::Deflate), 1 => Just(Filter::Shuffle)];
    let dimensions = proptest::collection::vec(dimension, 1..4);
    (name(), kind(), dimensions, 0..3u32, filter).prop_map(|(path, kind, dimensions, chunked, filter)| {
        let shape: Vec<_> = dimensions.iter().map(|(_, now, _)| *now).collect();
        if chunked == 0 {
            return Step::Dataset { path, kind, max: shape.clone(), shape, chunk: None, filter: Filter::None };
        }
        let max = |(chunk, now, more): &(u64, u64, Option<u64>)| {
            more.map_or(h5live::UNLIMITED, |more| (now + more).max(*chunk))
        };
        let max = dimensions.iter().map(max).collect();
        let chunk = Some(dimensions.iter().map(|(chunk, ..)| *chunk).collect());
        Step::Dataset { path, kind, shape, max, chunk, filter }
    })
}

fn draft() -> impl Strategy<Value = Draft> {
    let some = || proptest::collection::vec(0..30u64, 3);
    let empty = String::new;
    let write = (some(), some(), 0..1000u64);
    let write = write.prop_map(move |(start, count, seed)| Step::Write { path: empty(), start, count, seed });
    let resize = some().prop_map(move |shape| Step::Resize { path: empty(), shape });
    let attribute = prop_oneof![
        3 => (0..4u32).prop_map(|n| format!("a{n}")),
        2 => (0..30u32).prop_map(|n| format!("long attribute {n}"))
    ];
    let attribute = (attribute, kind(), prop_oneof![6 => 1..6u64, 1 => 1..400u64], 0..1000u64);
    let attribute =
        attribute.prop_map(move |(name, kind, count, seed)| Step::Attribute { path: empty(), name, kind, count, seed });
    let step = prop_oneof![
        4 => (name(), any::<bool>()).prop_map(|(path, ordered)| Step::Group { path, ordered }),
        6 => dataset(),
        10 => write,
        5 => resize,
        9 => attribute,
        3 => Just(Step::Unattribute { path: empty(), name: empty() }),
        3 => Just(Step::Remove { path: empty() }),
        2 => name().prop_map(move |to| Step::Move { from: empty(), to }),
        1 => name().prop_map(move |path| Step::Soft { path, target: empty() }),
        1 => name().prop_map(|path| Step::External { path, file: "other.h5".into(), target: "/there".into() }),
        2 => name().prop_map(move |path| Step::Hard { path, target: empty() }),
    ];
    (any::<(usize, usize)>(), step).prop_map(|(picks, step)| Draft { picks, step })
}

/// Sequences of about `steps` changes in all, in turns.
pub fn turns(steps: usize) -> impl Strategy<Value = Vec<Turn>> {
    let low = prop_oneof![Just("earliest"), Just("v18"), Just("v110"), Just("latest")];
    let turn = (any::<bool>(), low, proptest::collection::vec(draft(), 1..39));
    let turn = turn.prop_map(|(ours, low, drafts)| Turn { ours, low, drafts });
    let count = steps.div_ceil(20);
    proptest::collection::vec(turn, count..=count)
}
