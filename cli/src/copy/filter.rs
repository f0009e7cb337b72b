//! Filters on the command line: `deflate:4`, `shuffle`, `32015:3`.

use std::str::FromStr;

use h5live::model::FilterSpec;

/// The filters that go by a name: the name, the registered number, and whether chunks that it cannot take are stored
/// without it.
const NAMED: [(&str, u16, bool); 13] = [
    ("deflate", 1, true),
    ("gzip", 1, true),
    ("shuffle", 2, true),
    ("fletcher32", 3, false),
    ("szip", 4, true),
    ("nbit", 5, true),
    ("scaleoffset", 6, true),
    ("bzip2", 307, true),
    ("lzf", 32_000, true),
    ("blosc", 32_001, true),
    ("lz4", 32_004, true),
    ("bitshuffle", 32_008, true),
    ("zstd", 32_015, true),
];

/// The highest level of each filter whose only parameter is a level.
const LEVELS: [(u16, u32); 3] = [(1, 9), (307, 9), (32_015, 22)];

/// A filter, or `none`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterArg(pub Option<FilterSpec>);

impl FromStr for FilterArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(FilterArg(None));
        }
        let (name, params) = text.split_once(':').unwrap_or((text, ""));
        let numbers = params.split(',').filter(|param| !param.is_empty()).map(str::parse);
        let mut params = numbers.collect::<Result<Vec<u32>, _>>().map_err(|error| format!("{params:?}: {error}"))?;
        let named = NAMED.iter().find(|(known, ..)| *known == name).map(|(_, id, optional)| (*id, *optional));
        let numbered = || name.parse().ok().map(|id| (id, true));
        let names = || NAMED.map(|(name, ..)| name).join(", ");
        let (id, optional) = named.or_else(numbered).ok_or_else(|| format!("no filter of: {}", names()))?;
        if id == 1 && params.is_empty() {
            params.push(6);
        }
        if let Some((_, most)) = LEVELS.iter().find(|(leveled, most)| *leveled == id && params.iter().any(|n| n > most))
        {
            return Err(format!("{name} has levels of 0 to {most}"));
        }
        Ok(FilterArg(Some(FilterSpec { id, optional, name: None, params })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_names_numbers_and_parameters() {
        let filter = |text: &str| text.parse::<FilterArg>().unwrap().0.map(|filter| (filter.id, filter.params));
        assert_eq!(filter("deflate:4"), Some((1, vec![4])));
        assert_eq!(filter("gzip"), Some((1, vec![6])));
        assert_eq!(filter("32008:0,2"), Some((32_008, vec![0, 2])));
        assert_eq!(filter("none"), None);
        assert!("deflat".parse::<FilterArg>().unwrap_err().contains("deflate, gzip"));
        assert!("deflate:x".parse::<FilterArg>().is_err());
        assert_eq!("deflate:99".parse::<FilterArg>().unwrap_err(), "deflate has levels of 0 to 9");
        assert_eq!("1:10".parse::<FilterArg>().unwrap_err(), "1 has levels of 0 to 9");
    }
}
