//! h5live and h5py change the same files in turn, a plain store in memory beside them: after each turn all three see
//! the same.
//!
//! Stores that are no HDF5 files are changed in the same ways (`other_stores.rs`).
//!
//! The first needs the Python that `H5LIVE_PYTHON` names, with h5py; without it, it says that it is skipped.
//! `H5LIVE_SEQUENCES` says how many files, `H5LIVE_STEPS` how many changes to each, `H5LIVE_SEED` where to begin.

mod editors;
mod edits;
mod other_stores;
mod values;

use std::collections::BTreeMap;
use std::path::Path;

use h5live::{File, Mode};
use h5live_checker::file::check_path;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use editors::{H5py, catalog, lines, take};
use edits::{Step, Turn, turns};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn profile(low: &str) -> h5live::LibVer {
    low.parse().expect("a profile")
}

/// How often each step was taken by h5live (true) and by h5py.
type Taken = BTreeMap<(bool, &'static str), u32>;

/// The first line in which two listings differ.
fn difference(ours: &[String], theirs: &[String]) -> Option<String> {
    let longest = ours.len().max(theirs.len());
    (0..longest)
        .map(|at| (ours.get(at), theirs.get(at)))
        .find(|(a, b)| a != b)
        .map(|(a, b)| format!("{a:?} is not {b:?}"))
}

/// Lets the hands take their turns on one file; what went wrong, if anything did.
fn play(
    h5py: &mut H5py,
    path: &Path,
    turns: &[Turn],
    taken: &mut Taken,
    story: &mut Vec<String>,
) -> Result<(), String> {
    let model = File::in_memory();
    let mut circles = false;
    for (number, turn) in turns.iter().enumerate() {
        let who = if turn.ours { "h5live" } else { "h5py" };
        let at = |what: String| format!("turn {number} ({who}, {}): {what}", turn.low);
        let new = number == 0;
        let ours = match turn.ours {
            true => {
                let mode = if new { Mode::CreateNew } else { Mode::Write };
                let file = File::options().mode(mode).libver(profile(turn.low)).open(path);
                Some(file.map_err(|error| at(format!("open: {error}")))?)
            }
            false => {
                h5py.open(path, if new { "w-" } else { "r+" }, turn.low)
                    .map_err(|error| at(format!("open: {error}")))?;
                None
            }
        };
        for draft in &turn.drafts {
            let there = catalog(&model).map_err(&at)?;
            let step = draft.settle(&there).filter(possible).filter(|step| take(&model, step).is_ok());
            let Some(step) = &step else { continue };
            circles |= matches!(step, Step::Hard { .. });
            story.push(format!("{who} ({}): {step:?}", turn.low));
            *taken.entry((turn.ours, step.name())).or_default() += 1;
            let done = match &ours {
                Some(file) => take(file, step),
                None => h5py.take(step),
            };
            done.map_err(|error| at(format!("{step:?}: {error}")))?;
        }
        match ours {
            Some(file) => file.close().map_err(|error| at(format!("close: {error}")))?,
            None => h5py.close().map_err(|error| at(format!("close: {error}")))?,
        }
        let report = check_path(path).map_err(|error| at(error.to_string()))?;
        if let Some(finding) = report.findings.first() {
            return Err(at(format!("the file is not sound: {finding}")));
        }
        // Groups that lead to each other in a circle keep links to others when nothing leads to them any more.
        let links = report.notes.iter().find(|note| note.to_string().contains("hard links"));
        if let Some(note) = links.filter(|_| !circles) {
            return Err(at(format!("the file has links that lead nowhere: {note}")));
        }
        let expected = lines(&model).map_err(&at)?;
        let seen = File::open(path).map_err(|error| at(format!("open to read: {error}")))?;
        let seen = lines(&seen).map_err(|error| at(format!("h5live reads: {error}")))?;
        if let Some(difference) = difference(&seen, &expected) {
            return Err(at(format!("h5live sees what is not so: {difference}")));
        }
        h5py.open(path, "r", "v110").map_err(|error| at(format!("h5py opens to read: {error}")))?;
        let seen = h5py.lines().map_err(|error| at(format!("h5py reads: {error}")))?;
        h5py.close().map_err(&at)?;
        if let Some(difference) = difference(&seen, &expected) {
            return Err(at(format!("h5py sees what is not so: {difference}")));
        }
    }
    Ok(())
}

/// Whether both programs mean the same by the step: a group that is moved below itself is lost.
fn possible(step: &Step) -> bool {
    !matches!(step, Step::Move { from, to } if from == to || to.starts_with(&format!("{from}/")))
}

/// A sequence that failed: why, and what was done.
type Failure = (String, Vec<String>);

/// The sequence of a seed, which can be made shorter.
fn sequence(seed: u64, steps: usize) -> impl ValueTree<Value = Vec<Turn>> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    turns(steps).new_tree(&mut runner).expect("a sequence")
}

/// Plays a sequence. If it fails, shorter ones are played: the shortest that fails says most.
fn play_shortest(
    mut tree: impl ValueTree<Value = Vec<Turn>>,
    mut play: impl FnMut(&[Turn]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut shortest = match play(&tree.current()) {
        Ok(()) => return Ok(()),
        Err(failure) => failure,
    };
    for _ in 0..setting("H5LIVE_SHRINK", 300) {
        let moved = match play(&tree.current()) {
            Err(failure) => {
                shortest = failure;
                tree.simplify()
            }
            Ok(()) => tree.complicate(),
        };
        if !moved {
            break;
        }
    }
    Err(shortest)
}

/// Plays the sequences that the environment asks for, `default` of them if it does not; panics at one that fails.
fn play_all(default: u64, mut play: impl FnMut(&[Turn]) -> Result<(), Failure>) -> u64 {
    let (sequences, steps) = (setting("H5LIVE_SEQUENCES", default), setting("H5LIVE_STEPS", 200) as usize);
    let first = setting("H5LIVE_SEED", 1);
    println!("sequences {first} to {} of up to {steps} steps", first + sequences - 1);
    for seed in first..first + sequences {
        if seed > first && (seed - first).is_multiple_of(500) {
            println!("{} of {sequences} without a difference", seed - first);
        }
        if let Err((error, story)) = play_shortest(sequence(seed, steps), &mut play) {
            story.iter().for_each(|line| println!("{line}"));
            panic!("sequence {seed}: {error}");
        }
    }
    sequences
}

#[test]
fn both_see_the_same_after_each_turn() {
    let Some(mut h5py) = H5py::start() else { return };
    let mut taken = Taken::new();
    let sequences = play_all(200, |turns| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut story = Vec::new();
        let played = play(&mut h5py, &folder.path().join("both.h5"), turns, &mut taken, &mut story);
        if played.is_err() {
            if let Some(kept) = std::env::var_os("H5LIVE_KEEP") {
                std::fs::copy(folder.path().join("both.h5"), kept).expect("a copy of what went wrong");
            }
            // Whatever it has open is of no use any more.
            h5py = H5py::start().expect("as before");
        }
        played.map_err(|error| (error, story))
    });
    println!("steps taken by h5live (true) and h5py: {taken:?}");
    assert!(taken.len() == 2 * Step::KINDS || sequences < 10, "both take all kinds of steps");
}
