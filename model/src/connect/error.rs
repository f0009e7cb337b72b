//! Why a location could not be opened.

use crate::{Error, SettingError};

/// Why a location could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No connector has the scheme.
    #[error("no store has the scheme {scheme:?}; the schemes are {}; a file of this name is ./{scheme}:..", known.join(", "))]
    UnknownScheme {
        /// The scheme.
        scheme: String,
        /// The schemes that there are.
        known: Vec<&'static str>,
    },
    /// The connector that has the scheme was left out when the library was built.
    #[error(
        "the scheme {scheme:?} needs the feature {feature:?}, without which this was built; \
         `cargo install --path tools/cli --features {feature}` installs the program with it"
    )]
    MissingCargoFeature {
        /// The scheme.
        scheme: String,
        /// The feature of the library.
        feature: &'static str,
    },
    /// The location is a URL, and a file of that name exists.
    #[error("a file of this name exists too: ./{text} is the file, {url} the store")]
    AmbiguousUrlOrFile {
        /// The location as it was given.
        text: String,
        /// How the store is named so that it cannot be taken for a file.
        url: String,
    },
    /// More than one connector takes what is at a path for its own.
    #[error("the stores {} both take it for theirs: name one as in {}:..", .0.join(" and "), .0.first().unwrap_or(&""))]
    ClaimedBySeveral(Vec<&'static str>),
    /// A percent sign in a URL begins no escape.
    #[error("{escape:?} in the URL is no escape: a percent sign is written %25")]
    InvalidPercentEscape {
        /// The location.
        location: String,
        /// The percent sign, and what follows.
        escape: String,
    },
    /// A part of a URL's query is no option.
    #[error("{part:?} in the URL is no option: options are NAME=VALUE, with & between them")]
    InvalidQuery {
        /// The location.
        location: String,
        /// The part.
        part: String,
    },
    /// The rest of a URL names nothing that the connector could open.
    #[error("{0}")]
    InvalidLocation(String),
    /// The store does not have an option, or not with this value.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Options were given for a connector that is not in the registry.
    #[error("there are options for the store {connector:?}, which is not registered; the stores are {}", known.join(", "))]
    OptionsForUnknownConnector {
        /// The connector's name.
        connector: &'static str,
        /// The connectors that there are.
        known: Vec<&'static str>,
    },
    /// A connector was given the options of another one.
    #[error("these are options of the store {0:?}, and not of the one that was to open it")]
    ForeignOptions(&'static str),
    /// A link leads where links may not lead.
    #[error("a link leads to {to}, and {rule}")]
    LinkRefused {
        /// Where it leads.
        to: String,
        /// The rule.
        rule: &'static str,
    },
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] Error),
}
