//! `h5live map put`: pairs that are put into a map, and the map that is made for them.

use std::io::{self, BufRead};

use h5live::{File, H5Type, StoreErrorKind, UntypedMap};
use serde_json::Value as Json;

use crate::error::{ChangeRefusal, CommandOutcome, Error, Result};
use crate::from_json::{self, JsonValueError};
use crate::map_location::MapLocation;
use crate::map_text::{self, parse_json_or_string};
use crate::model::{Datatype, MapSpec, ReferenceType};
use crate::new::DescriptionFault;
use crate::new_output::NewOutput;
use crate::temp_output::ForceArgs;
use crate::value::Value;
use crate::{object_or_attribute, open};

/// Pairs from standard input that are put at a time. The types of a new map are those of the first ones.
const BATCH_PAIRS: usize = 1000;

/// Puts the pairs of a command line: keys and values in turn.
///
/// # Errors
/// If a key or a value does not fit the map; if there is no map, and their types are not clear.
pub fn put_argument_pairs(
    map_location: &MapLocation,
    keys_and_values: &[String],
    new_map_types: Option<MapSpec>,
) -> Result<CommandOutcome> {
    let (pairs, rest) = keys_and_values.as_chunks::<2>();
    if let [key] = rest {
        return Err(map_location.refused_error(JsonValueError::MissingMember(format!("value of {key}"))));
    }
    let found = || words_types(pairs);
    let put = |file: &File| {
        let map = find_or_create(file, map_location, new_map_types.clone(), found)?;
        let parse = |[key, value]: &[String; 2]| {
            Ok((
                map_location.parse_value(&map, map.key_type(), key)?,
                map_location.parse_value(&map, map.value_type(), value)?,
            ))
        };
        Ok(map.put_pairs(&pairs.iter().map(parse).collect::<Result<Vec<_>>>()?)?)
    };
    match change(map_location, put) {
        // By now it is there.
        Err(Error::ChangeRefused { why: ChangeRefusal::FileCreatedMeanwhile, .. }) => change(map_location, put),
        done => done,
    }
}

/// Puts the pairs of standard input. Those before a wrong line are put, unless the file is new.
///
/// # Errors
/// As [`put_argument_pairs`].
pub fn put_stdin_json_lines(map_location: &MapLocation, new_map_types: Option<MapSpec>) -> Result<CommandOutcome> {
    let mut lines = io::stdin().lock().lines();
    let mut batch = next_batch(map_location, &mut lines);
    change(map_location, |file| {
        let found = || {
            let pairs = batch.iter().flatten();
            let (keys, values) = (pairs.clone().map(|pair| &pair[0]), pairs.map(|pair| &pair[1]));
            Some(MapSpec { key_type: common_type(keys)?, value_type: common_type(values)? })
        };
        let map = find_or_create(file, map_location, new_map_types, found)?;
        while !batch.is_empty() {
            let mut pairs = Vec::with_capacity(batch.len());
            let read = batch.into_iter().try_for_each(|pair| {
                pairs.push(json_values(map_location, &map, &pair?)?);
                Ok(())
            });
            map.put_pairs(&pairs)?;
            if read.is_err() {
                map.flush()?;
                return read;
            }
            batch = next_batch(map_location, &mut lines);
        }
        Ok(())
    })
}

/// Keys and values of the next lines, and what is wrong with a line.
fn next_batch(at: &MapLocation, lines: &mut impl Iterator<Item = io::Result<String>>) -> Vec<Result<[Json; 2]>> {
    lines.take(BATCH_PAIRS).map(|line| json_pair(at, &line.map_err(Error::Stdin)?)).collect()
}

fn json_values(at: &MapLocation, map: &UntypedMap, [key, value]: &[Json; 2]) -> Result<(Value, Value)> {
    let refer = |form: &ReferenceType, json: &Json| object_or_attribute::reference_from_json(map.file(), form, json);
    let key = map_text::map_key_from_json(map.key_type(), key, &refer).map_err(|why| at.refused_error(why))?;
    let value = from_json::value_from_json(map.value_type(), value, &refer).map_err(|why| at.refused_error(why))?;
    Ok((key, value))
}

/// Changes the file. If it is not there, it is made, and appears when the change is complete.
fn change(at: &MapLocation, change: impl FnOnce(&File) -> Result<()>) -> Result<CommandOutcome> {
    let (file, output) = match at.open_file_to_write() {
        Err(error) if is_missing(&error) => {
            match NewOutput::prepare_for(&at.file, ForceArgs { replaces_file: false }) {
                // Another process was faster.
                Err(Error::FileExists { .. }) => (at.open_file_to_write()?, None),
                output => {
                    let output = output?;
                    (output.create_file(open::command_line_options())?, Some(output))
                }
            }
        }
        opened => (opened?, None),
    };
    change(&file)?;
    match output {
        Some(output) => output.persist(file).map_err(|error| match error {
            Error::FileExists { .. } => at.refused_error(ChangeRefusal::FileCreatedMeanwhile),
            error => error,
        })?,
        None => file.close()?,
    }
    Ok(CommandOutcome::Clean)
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::File(error) if error.store_error_kind() == Some(&StoreErrorKind::NotFound))
}

/// The map. If there is none, a new one of these types, or else of those that `found` finds in what is put.
fn find_or_create(
    file: &File,
    at: &MapLocation,
    types: Option<MapSpec>,
    found: impl FnOnce() -> Option<MapSpec>,
) -> Result<UntypedMap> {
    match file.untyped_map(&at.path) {
        Err(error) if error.is_not_found_in_file() => {
            let types = types.or_else(found).ok_or_else(|| at.refused_error(ChangeRefusal::UnclearMapTypes))?;
            Ok(file.root().create_untyped_map(&at.path, &types)?)
        }
        found => Ok(found?),
    }
}

fn json_pair(at: &MapLocation, line: &str) -> Result<[Json; 2]> {
    let wrong = |error| Error::InvalidDescription { file: None, fault: DescriptionFault::InvalidJson(error) };
    let mut json: Json = serde_json::from_str(line).map_err(wrong)?;
    let mut member = |name: &str| {
        let member = json.get_mut(name).map(Json::take);
        member.ok_or_else(|| at.refused_error(JsonValueError::MissingMember(name.to_owned())))
    };
    Ok([member("key")?, member("value")?])
}

/// The types of keys and values that are words: numbers, if all of them are, or else texts.
fn words_types(pairs: &[[String; 2]]) -> Option<MapSpec> {
    let of = |part: usize| {
        let values: Vec<Json> = pairs.iter().map(|pair| parse_json_or_string(&pair[part])).collect();
        let is_number = !values.is_empty() && values.iter().all(Json::is_number);
        if is_number { common_type(values.iter()) } else { Some(String::datatype()) }
    };
    Some(MapSpec { key_type: of(0)?, value_type: of(1)? })
}

/// The type that has all of these values as they are: of integers, of floats, or of texts. `None` if there is none, or no
/// value.
fn common_type<'a>(values: impl Iterator<Item = &'a Json> + Clone) -> Option<Datatype> {
    let all = |is_so: fn(&Json) -> bool| values.clone().next().is_some() && values.clone().all(is_so);
    // Greater integers are not all there as floats.
    let is_exact_float = |json: &Json| json.is_f64() || json.as_i64().is_some_and(|n| n.unsigned_abs() <= 1 << 53);
    if all(Json::is_i64) {
        Some(i64::datatype())
    } else if all(Json::is_u64) {
        Some(u64::datatype())
    } else if all(is_exact_float) {
        Some(f64::datatype())
    } else if all(Json::is_string) {
        Some(String::datatype())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_common_type_has_all_values_as_they_are() {
        let of = |values: Json| common_type(values.as_array().unwrap().iter());
        assert_eq!(of(json!([1, -2])), Some(i64::datatype()));
        assert_eq!(of(json!([1, u64::MAX])), Some(u64::datatype()));
        assert_eq!(of(json!([1, 0.5])), Some(f64::datatype()));
        assert_eq!(of(json!(["a", "1"])), Some(String::datatype()));
        for none in [
            json!([]),
            json!([1, "a"]),
            json!([-1, u64::MAX]),
            json!([0.5, (1u64 << 53) + 1]),
            json!([null]),
            json!([[1]]),
        ] {
            assert_eq!(of(none.clone()), None, "{none}");
        }
    }
}
