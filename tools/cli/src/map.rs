//! `h5live map`: pairs of maps.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;
use std::time::Duration;

use crate::error::{CommandOutcome, Result};
use crate::map_location::MapLocation;
use crate::map_text::{self, PairFormatter};
use crate::model::MapSpec;
use crate::output::StdoutWriter;
use crate::type_parse::DatatypeFromText;
use crate::value::Value;
use crate::wait::seconds;
use crate::{map_put, open};

/// Looks up, changes and follows the pairs of maps
///
/// Keys and values are JSON, or text if they are none. HDF5 files, files in memory and key-value stores hold maps.
#[derive(Debug, clap::Args)]
pub struct MapCommand {
    #[command(subcommand)]
    action: MapAction,
}

#[derive(Debug, clap::Subcommand)]
enum MapAction {
    /// The values of keys, one per line; exit code 1 if a key is not there
    ///
    /// Examples:
    ///   h5live map get run.h5 ids Alice
    ///   h5live map get run.h5 squares 3 4 --json
    #[command(verbatim_doc_comment)]
    Get {
        #[command(flatten)]
        at: MapLocation,
        /// The keys
        #[arg(required = true, allow_negative_numbers = true)]
        keys: Vec<String>,
        /// For programs: JSON objects with key and value
        #[arg(long)]
        json: bool,
    },
    /// Puts pairs, all of them or none
    ///
    /// The file and the map are made if they are not there. Unless types are given, numbers are stored as i64, u64 or f64,
    /// and all else as text.
    ///
    /// Examples:
    ///   h5live map put run.h5 ids Alice 125 Bob 216
    ///   h5live map ls old.h5 ids --json | h5live map put new.h5 ids --json --key-type string --value-type u64le
    #[command(verbatim_doc_comment)]
    Put {
        #[command(flatten)]
        at: MapLocation,
        /// Keys and values in turn
        #[arg(value_name = "KEY VALUE", allow_negative_numbers = true, required_unless_present = "json")]
        pairs: Vec<String>,
        /// The type of the keys of a new map, as `ls` shows types: u16le, string, ...
        #[arg(long, value_name = "TYPE", requires = "value_type")]
        key_type: Option<DatatypeFromText>,
        /// The type of the values of a new map
        #[arg(long, value_name = "TYPE", requires = "key_type")]
        value_type: Option<DatatypeFromText>,
        /// Read the pairs from standard input: a JSON object with key and value per line, as `map ls --json` writes them
        #[arg(long, conflicts_with = "pairs")]
        json: bool,
    },
    /// Removes keys; exit code 1 if one of them is not there
    ///
    /// Examples:
    ///   h5live map del run.h5 ids Bob
    ///   h5live map del run.h5 squares 3 4
    #[command(verbatim_doc_comment)]
    Del {
        #[command(flatten)]
        at: MapLocation,
        /// The keys
        #[arg(required = true, allow_negative_numbers = true)]
        keys: Vec<String>,
    },
    /// The pairs in the order of the keys
    ///
    /// Examples:
    ///   h5live map ls run.h5 ids
    ///   h5live map ls run.h5 squares --from 10 --to 20 --json
    #[command(verbatim_doc_comment)]
    Ls {
        #[command(flatten)]
        at: MapLocation,
        /// The first key, or the one behind which the pairs begin
        #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
        from: Option<String>,
        /// The key before which the pairs end
        #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
        to: Option<String>,
        /// At most so many pairs
        #[arg(long, value_name = "PAIRS")]
        limit: Option<u64>,
        /// For programs: a JSON object with key and value per line
        #[arg(long)]
        json: bool,
    },
    /// The number of pairs
    ///
    /// Examples:
    ///   h5live map count run.h5 ids
    ///   h5live map count mem:scratch ids
    #[command(verbatim_doc_comment)]
    Count {
        #[command(flatten)]
        at: MapLocation,
    },
    /// The pairs, and then those that a writer changes, until it ends or Ctrl-C
    ///
    /// Examples:
    ///   h5live map watch run.h5 ids
    ///   h5live map watch run.h5 ids --seconds 10 --json
    #[command(verbatim_doc_comment)]
    Watch {
        #[command(flatten)]
        at: MapLocation,
        /// End when nothing was changed for so many seconds
        #[arg(long, value_parser = seconds)]
        seconds: Option<f64>,
        /// For programs: a JSON object with key and value per line; removed keys have `removed`
        #[arg(long)]
        json: bool,
    },
}

impl MapCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no such map, or a key or a value does not fit its types.
    pub fn run(self) -> Result<CommandOutcome> {
        match self.action {
            MapAction::Get { at, keys, json } => get(&at, &keys, json),
            MapAction::Put { at, pairs, key_type, value_type, json } => {
                let types =
                    key_type.zip(value_type).map(|(key, value)| MapSpec { key_type: key.0, value_type: value.0 });
                if json {
                    map_put::put_stdin_json_lines(&at, types)
                } else {
                    map_put::put_argument_pairs(&at, &pairs, types)
                }
            }
            MapAction::Del { at, keys } => remove(&at, &keys),
            MapAction::Ls { at, from, to, limit, json } => {
                let map = at.open_map_to_read()?;
                let bound =
                    |word: Option<String>| word.map(|word| at.parse_value(&map, map.key_type(), &word)).transpose();
                let from = bound(from)?.map_or(Bound::Unbounded, Bound::Included);
                let to = bound(to)?.map_or(Bound::Unbounded, Bound::Excluded);
                let mut out = StdoutWriter::stdout();
                map_text::print(&map, (from, to), limit, json, &mut out)?;
                out.flush()?;
                Ok(CommandOutcome::Clean)
            }
            MapAction::Count { at } => {
                let mut out = StdoutWriter::stdout();
                out.line(at.open_map_to_read()?.len()?)?;
                out.flush()?;
                Ok(CommandOutcome::Clean)
            }
            MapAction::Watch { at, seconds, json } => watch(&at, seconds, json),
        }
    }
}

fn get(at: &MapLocation, keys: &[String], as_json: bool) -> Result<CommandOutcome> {
    let map = at.open_map_to_read()?;
    let (style, mut out, mut outcome) =
        (PairFormatter::new(map.file(), as_json), StdoutWriter::stdout(), CommandOutcome::Clean);
    for (word, key) in keys.iter().zip(at.parse_keys(&map, keys)?) {
        match map.get_value(&key)? {
            Some(value) if as_json => out.line(style.format_pair(&key, &value))?,
            Some(value) => out.line(style.format_value(&value))?,
            None => {
                out.flush()?;
                eprintln!("h5live: {}: {}: there is no key {word}", at.file, at.path);
                outcome = CommandOutcome::Findings;
            }
        }
    }
    out.flush()?;
    Ok(outcome)
}

fn remove(at: &MapLocation, words: &[String]) -> Result<CommandOutcome> {
    let file = at.open_file_to_write()?;
    let map = file.untyped_map(&at.path)?;
    let keys = at.parse_keys(&map, words)?;
    let mut outcome = CommandOutcome::Clean;
    for (word, key) in words.iter().zip(&keys) {
        if !map.contains_key(key)? {
            eprintln!("h5live: {}: {}: there is no key {word}", at.file, at.path);
            outcome = CommandOutcome::Findings;
        }
    }
    map.remove_keys(&keys)?;
    file.close()?;
    Ok(outcome)
}

/// A number that is almost surely another one for another value.
fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn watch(at: &MapLocation, seconds: Option<f64>, as_json: bool) -> Result<CommandOutcome> {
    let map = open::for_following(&at.file)?.untyped_map(&at.path)?;
    let style = PairFormatter::new(map.file(), as_json);
    let mut follower = map.follow();
    if let Some(seconds) = seconds {
        follower = follower.timeout(Duration::from_secs_f64(seconds));
    }
    // The pairs that were shown: keys, with the round in which they were seen last, and what their value was.
    let mut shown: HashMap<String, (Value, u64, u64)> = HashMap::new();
    let mut out = StdoutWriter::stdout();
    for (round, change) in (0u64..).zip(follower) {
        change?;
        for pair in map.pairs(..)? {
            let (key, value) = pair?;
            let digest = digest(&style.format_value(&value));
            let before = shown.insert(style.format_value(&key), (key.clone(), digest, round));
            if before.is_none_or(|(_, before, _)| before != digest) {
                out.line(style.format_pair(&key, &value))?;
            }
        }
        let mut gone: Vec<_> = shown.extract_if(|_, (.., seen)| *seen != round).map(|(_, (key, ..))| key).collect();
        gone.sort_by_key(|key| style.format_value(key));
        gone.iter().try_for_each(|key| out.line(style.format_removed_key(key)))?;
        out.flush()?;
    }
    Ok(CommandOutcome::Clean)
}
