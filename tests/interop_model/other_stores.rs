//! Stores that are no HDF5 files, and the plain store in memory, changed in the same ways: a session that writes, one that
//! opens the store later, and one that follows all see the same.

use std::collections::BTreeMap;

use h5live::{File, Map, StoreCheckOptions};

use crate::editors::{catalog, lines, orders, take};
use crate::edits::{Step, Turn};
use crate::{Failure, difference, play_all, possible};

/// The place of the map. No step touches it: its name is none that steps draw.
const MAP: &str = "the map";

fn text(error: h5live::Error) -> String {
    error.to_string()
}

/// Puts some pairs and removes others: which ones, `number` says.
fn change_map(file: &File, number: u64) -> Result<(), String> {
    let map: Map<String, u64> = file.map(MAP).map_err(text)?;
    let key = |n: u64| "k".repeat(1 + (n % 5) as usize * 40) + &(n % 23).to_string();
    let pairs: Vec<_> = (0..number % 9).map(|n| (key(number * 31 + n * 7), number + n)).collect();
    map.put_many(&pairs).map_err(text)?;
    let removed: Vec<_> = (0..number % 4).map(|n| key(number * 17 + n)).collect();
    map.remove_many(&removed).map(drop).map_err(text)
}

fn pairs(file: &File) -> Result<Vec<(String, u64)>, String> {
    let map: Map<String, u64> = file.map(MAP).map_err(text)?;
    let found = map.iter().collect::<h5live::Result<Vec<_>>>().map_err(text)?;
    if map.len().map_err(text)? != found.len() as u64 {
        return Err(format!("a map of {:?} pairs has {}", map.len(), found.len()));
    }
    Ok(found)
}

/// Everything that a file holds beside the pairs of the map.
fn contents(file: &File) -> Result<Vec<String>, String> {
    let mut all = lines(file)?;
    all.extend(orders(file)?);
    Ok(all)
}

/// How a session differs from what it is to be.
fn compare(file: &File, expected: &[String], wanted: &[(String, u64)]) -> Result<(), String> {
    match difference(&contents(file)?, expected) {
        Some(difference) => Err(difference),
        None if pairs(file)? != wanted => Err(format!("the map has {:?}, and not {wanted:?}", pairs(file)?)),
        None => Ok(()),
    }
}

/// Everything in the store is accounted for.
fn check(location: &str) -> Result<(), String> {
    let report =
        h5live::check(location, StoreCheckOptions { verify_data: true, find_lost_domains: false }).map_err(text)?;
    match report.findings.first() {
        Some(finding) => Err(format!("the store is not sound: {finding}")),
        None if report.leak_count > 0 => Err(format!("nothing leads to {:?}", report.leaks)),
        None => Ok(()),
    }
}

/// Plays one sequence on the store at a location.
fn play(
    location: &str,
    turns: &[Turn],
    taken: &mut BTreeMap<&'static str, u32>,
    story: &mut Vec<String>,
) -> Result<(), String> {
    let model = File::in_memory();
    let made = File::options().create().open(location).map_err(text)?;
    for file in [&model, &made] {
        file.new_map::<String, u64>().create(MAP).map_err(text)?;
    }
    made.close().map_err(text)?;
    let follower = File::options().swmr_read().open(location).map_err(text)?;
    for (number, turn) in turns.iter().enumerate() {
        let at = |what: String| format!("turn {number}: {what}");
        let file = File::options().write().open(location).map_err(|error| at(format!("open: {error}")))?;
        for (step_number, draft) in turn.drafts.iter().enumerate() {
            let mut there = catalog(&model).map_err(&at)?;
            there.links.retain(|path| path.get(1..) != Some(MAP));
            let step = draft.settle(&there).filter(possible).filter(|step| take(&model, step).is_ok());
            let Some(step) = &step else { continue };
            story.push(format!("{step:?}"));
            *taken.entry(step.name()).or_default() += 1;
            take(&file, step).map_err(|error| at(format!("{step:?}: {error}")))?;
            if turn.ours && step_number % 16 == 15 {
                file.flush().map_err(|error| at(format!("flush: {error}")))?;
            }
        }
        let change = number as u64 * 13 + turn.drafts.len() as u64;
        change_map(&model, change).map_err(&at)?;
        change_map(&file, change).map_err(&at)?;
        let (expected, wanted) = (contents(&model).map_err(&at)?, pairs(&model).map_err(&at)?);
        compare(&file, &expected, &wanted).map_err(|what| at(format!("who writes sees: {what}")))?;
        file.close().map_err(|error| at(format!("close: {error}")))?;
        check(location).map_err(&at)?;
        follower.refresh().map_err(|error| at(format!("refresh: {error}")))?;
        compare(&follower, &expected, &wanted).map_err(|what| at(format!("who follows sees: {what}")))?;
        let later = File::open(location).map_err(|error| at(format!("open to read: {error}")))?;
        compare(&later, &expected, &wanted).map_err(|what| at(format!("who opens it sees: {what}")))?;
    }
    Ok(())
}

#[test]
fn a_key_value_store_holds_what_the_store_in_memory_holds() {
    let mut taken = BTreeMap::new();
    let sequences = play_all(100, |turns| {
        let folder = tempfile::tempdir().expect("a folder");
        let location = format!("kv:{}?sync=never", folder.path().join("run").display());
        let mut story = Vec::new();
        play(&location, turns, &mut taken, &mut story).map_err(|error| -> Failure { (error, story) })
    });
    println!("steps taken: {taken:?}");
    assert!(taken.len() == Step::KINDS || sequences < 10, "all kinds of steps are taken");
}
