//! Random sequences of calls on each store, against a model of vectors.
//!
//! `H5LIVE_TEST_SEEDS=2000` tries that many seeds, and `H5LIVE_TEST_SEEDS=17..18` those of a range. Each failure names its seed.

mod actor;
mod model;
mod session;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use self::session::Session;

/// Seeds of a run of the whole suite, for each store.
const SEEDS: u64 = 40;
/// Calls of a sequence.
const STEPS: u64 = 60;

/// A sequence of numbers that follow from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("H5LIVE_TEST_SEEDS") else { return 0..SEEDS };
    let number =
        |text: &str| text.parse().unwrap_or_else(|_| panic!("H5LIVE_TEST_SEEDS is N or FROM..TO, not {text:?}"));
    match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(&text),
    }
}

/// What a panic says.
fn said(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

fn try_seeds(store: &str) {
    let seeds = seeds();
    println!("{store}: seeds {seeds:?}");
    let mut failed = Vec::new();
    for seed in seeds.clone() {
        let folder = tempfile::tempdir().unwrap();
        let location = match store {
            "mem" => format!("mem:random-{seed}-{}", std::process::id()),
            _ => format!("{store}:{}/run", folder.path().display()),
        };
        let tried = catch_unwind(AssertUnwindSafe(|| {
            let mut session = Session::create(&location, seed);
            (0..STEPS).for_each(|_| session.step());
            session.finish();
        }));
        if let Err(panic) = tried {
            let said = said(panic);
            println!("{store}: seed {seed}: {said}");
            failed.push((seed, said));
        }
    }
    let list: Vec<_> = failed.iter().map(|(seed, _)| *seed).collect();
    assert!(failed.is_empty(), "{store}: {} of {seeds:?} failed: seeds {list:?}; {}", failed.len(), failed[0].1);
}

#[test]
fn sequences_on_native_files_agree_with_a_model() {
    try_seeds("native");
}

#[test]
fn sequences_on_logs_agree_with_a_model() {
    try_seeds("log");
}

#[test]
fn sequences_on_key_value_stores_agree_with_a_model() {
    try_seeds("kv");
}

#[test]
fn sequences_on_object_stores_agree_with_a_model() {
    try_seeds("hsds");
}

#[test]
fn sequences_in_memory_agree_with_a_model() {
    try_seeds("mem");
}
