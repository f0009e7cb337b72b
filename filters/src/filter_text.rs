//! Filters as texts: `deflate:4`, `shuffle`, `32015:3` for new chunks, and `deflate(4)` for those that are there.

use h5live_model::FilterSpec;

use crate::Registry;
use crate::registry::{hdf_group_filter_id, hdf_group_filter_name};

/// Filters without which no chunk may be stored.
const REQUIRED: [u16; 1] = [3];

/// The highest level of each filter whose first parameter is a level.
const LEVELS: [(u16, u32); 3] = [(1, 9), (307, 9), (32_015, 22)];

/// Why a text is no filter for new chunks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterTextError {
    /// No filter is called so.
    #[error("no filter is called {name:?}; there are {known}")]
    UnknownName {
        /// The name.
        name: String,
        /// The filters that there are.
        known: String,
    },
    /// A filter that exists, but not here.
    #[error("{name} is not built in; there are {known}")]
    NotInRegistry {
        /// The filter.
        name: String,
        /// The filters that there are.
        known: String,
    },
    /// A filter that only reads.
    #[error("{name} can be read but not written; to write, there are {known}")]
    OnlyReads {
        /// The filter.
        name: String,
        /// The filters that there are.
        known: String,
    },
    /// A parameter is no number.
    #[error("the parameter {param:?} of {name} is not a number from 0 to 4294967295")]
    ParameterNotNumber {
        /// The filter.
        name: String,
        /// The parameter.
        param: String,
    },
    /// A level that the filter does not have.
    #[error("{name} has levels of 0 to {max_level}")]
    LevelTooHigh {
        /// The filter.
        name: String,
        /// The highest level.
        max_level: u32,
    },
}

/// The names of the filters that can encode, with their numbers.
fn known(registry: &Registry) -> String {
    let filters = registry.iter().filter(|filter| filter.can_encode());
    let name = |id: u16| hdf_group_filter_name(id).map_or_else(|| id.to_string(), |name| format!("{name} ({id})"));
    filters.map(|filter| name(filter.id())).collect::<Vec<_>>().join(", ")
}

/// The number of the filter with a name, which may be a number.
fn number(name: &str) -> Option<u16> {
    match name {
        "gzip" => Some(1),
        _ => name.parse().ok().or_else(|| hdf_group_filter_id(name)),
    }
}

/// The filter for new chunks that a text stands for: its name or its number, and behind a colon its parameters.
///
/// ```
/// use h5live_filters::{Registry, parse_filter};
///
/// assert_eq!(parse_filter("zstd:3", &Registry::default())?.params, [3]);
/// # Ok::<(), h5live_filters::FilterTextError>(())
/// ```
///
/// # Errors
/// [`FilterTextError`] if the registry has no such filter, or only decodes with it, or the filter has no such parameters.
pub fn parse_filter(text: &str, registry: &Registry) -> Result<FilterSpec, FilterTextError> {
    let (name, params) = text.split_once(':').unwrap_or((text, ""));
    let owned = || name.to_owned();
    let id = number(name).ok_or_else(|| FilterTextError::UnknownName { name: owned(), known: known(registry) })?;
    match registry.get(id) {
        Some(filter) if filter.can_encode() => {}
        Some(_) => return Err(FilterTextError::OnlyReads { name: owned(), known: known(registry) }),
        None => return Err(FilterTextError::NotInRegistry { name: owned(), known: known(registry) }),
    }
    let param = |param: &str| {
        param.parse().map_err(|_| FilterTextError::ParameterNotNumber { name: owned(), param: param.to_owned() })
    };
    let params = params.split(',').filter(|param| !param.is_empty()).map(param);
    let mut params = params.collect::<Result<Vec<u32>, _>>()?;
    if id == 1 && params.is_empty() {
        params.push(6);
    }
    if let Some((_, max_level)) =
        LEVELS.iter().find(|(leveled, max_level)| *leveled == id && params.iter().any(|n| n > max_level))
    {
        return Err(FilterTextError::LevelTooHigh { name: owned(), max_level: *max_level });
    }
    Ok(FilterSpec { id, optional: !REQUIRED.contains(&id), name: None, params })
}

/// The name of a filter, with its level if it has one: the registered name, or else the one that the file has, and the
/// number.
pub fn describe_filter(filter: &FilterSpec) -> String {
    let level = filter.params.first().filter(|_| LEVELS.iter().any(|(id, _)| *id == filter.id));
    match (filter.id, hdf_group_filter_name(filter.id), level) {
        (_, Some(name), Some(level)) => format!("{name}({level})"),
        (_, Some(name), _) => name.to_owned(),
        (id, None, _) => match own_name(filter) {
            Some(name) => format!("{id}({name})"),
            None => id.to_string(),
        },
    }
}

fn own_name(filter: &FilterSpec) -> Option<String> {
    filter.name.as_ref().filter(|name| !name.is_empty()).map(ToString::to_string)
}

/// The name of a filter: the registered one, or else the one that the file has.
pub fn filter_name(filter: &FilterSpec) -> Option<String> {
    hdf_group_filter_name(filter.id).map(str::to_owned).or_else(|| own_name(filter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_names_numbers_and_parameters() {
        let filter = |text: &str| parse_filter(text, &Registry::default()).map(|filter| (filter.id, filter.params));
        assert_eq!(filter("deflate:4"), Ok((1, vec![4])));
        assert_eq!(filter("gzip"), Ok((1, vec![6])));
        assert_eq!(filter("32008:0,2"), Ok((32_008, vec![0, 2])));
        assert_eq!(filter("zstd:3"), Ok((32_015, vec![3])));
        assert_eq!(filter("blosc2"), Ok((32_026, vec![])));
    }

    #[test]
    fn an_error_says_which_filters_there_are() {
        let said = |text: &str| parse_filter(text, &Registry::default()).unwrap_err().to_string();
        let known = "deflate (1), shuffle (2), fletcher32 (3), szip (4), nbit (5), scaleoffset (6), bzip2 (307), \
                     lzf (32000), blosc (32001), lz4 (32004), bitshuffle (32008), zstd (32015), blosc2 (32026)";
        assert_eq!(said("deflat"), format!("no filter is called \"deflat\"; there are {known}"));
        assert_eq!(said("sz3:1"), format!("sz3 is not built in; there are {known}"));
        assert_eq!(said("40000"), format!("40000 is not built in; there are {known}"));
        assert_eq!(said("zfp"), format!("zfp can be read but not written; to write, there are {known}"));
        assert_eq!(said("32013"), format!("32013 can be read but not written; to write, there are {known}"));
        assert_eq!(said("deflate:x"), "the parameter \"x\" of deflate is not a number from 0 to 4294967295");
        assert_eq!(said("deflate:99"), "deflate has levels of 0 to 9");
        assert_eq!(said("1:10"), "1 has levels of 0 to 9");
    }

    #[test]
    fn filters_go_by_their_registered_names() {
        let filter = |id, params: &[u32], name: Option<&str>| {
            describe_filter(&FilterSpec { id, params: params.into(), name: name.map(Into::into), ..Default::default() })
        };
        assert_eq!(filter(32_015, &[3], Some("Zstandard compression: http://www.zstd.net")), "zstd(3)");
        assert_eq!(filter(1, &[6], None), "deflate(6)");
        assert_eq!(filter(2, &[8], None), "shuffle");
        assert_eq!(filter(32_013, &[1, 2], None), "zfp");
        assert_eq!(filter(40_000, &[1], Some("mine")), "40000(mine)");
        assert_eq!(filter(40_000, &[1], None), "40000");
    }
}
