//! Filters on the command line: `deflate:4`, `shuffle`, `32015:3`.

use std::str::FromStr;

use h5live::filters::{FilterTextError, Registry, parse_filter};
use h5live::model::FilterSpec;

/// A filter, or `none`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterArg(pub Option<FilterSpec>);

impl FromStr for FilterArg {
    type Err = FilterTextError;

    fn from_str(text: &str) -> Result<Self, FilterTextError> {
        let spec = (text != "none").then(|| parse_filter(text, &Registry::default()));
        spec.transpose().map(FilterArg)
    }
}
