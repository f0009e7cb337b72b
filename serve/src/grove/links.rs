//! Which links are followed.

use crate::fault::Fault;
use crate::query::Query;

/// Which soft and external links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkResolution {
    None,
    /// Those that lead to an object.
    OnlyValid,
    /// All; one that leads nowhere is an error.
    All,
}

impl LinkResolution {
    pub fn from_query(query: &Query) -> Result<Self, Fault> {
        let given = query.get("resolve_links").unwrap_or("only_valid");
        match &*given.to_ascii_lowercase() {
            "true" | "all" => Ok(LinkResolution::All),
            "false" | "none" => Ok(LinkResolution::None),
            "only_valid" => Ok(LinkResolution::OnlyValid),
            _ => Err(Fault::unprocessable(format!(
                "{given} is not a valid value for link resolution. Accepted values are: all, none or only_valid"
            ))),
        }
    }
}
