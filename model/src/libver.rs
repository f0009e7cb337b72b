//! The releases of HDF5 that can read the written file.

use std::fmt;
use std::str::FromStr;

/// The oldest release of the HDF5 library that shall be able to read a new file (the lower of its "version bounds").
///
/// What an object needs beyond it (a complex number, a creation order) makes the file need a later release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum LibVer {
    /// Every release since 1.6.
    Earliest,
    /// HDF5 1.8.
    V18,
    /// HDF5 1.10: the first whose files can be live.
    #[default]
    V110,
    /// HDF5 1.12.
    V112,
    /// HDF5 1.14.
    V114,
    /// HDF5 2.0, the latest format there is.
    V200,
}

impl LibVer {
    /// All profiles, oldest first.
    pub const ALL: [LibVer; 6] =
        [LibVer::Earliest, LibVer::V18, LibVer::V110, LibVer::V112, LibVer::V114, LibVer::V200];

    /// The name by which a profile is chosen on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            LibVer::Earliest => "earliest",
            LibVer::V18 => "v18",
            LibVer::V110 => "v110",
            LibVer::V112 => "v112",
            LibVer::V114 => "v114",
            LibVer::V200 => "v200",
        }
    }
}

impl fmt::Display for LibVer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no [`LibVer`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of earliest, v18, v110, v112, v114, v200, latest")]
pub struct UnknownLibVer(String);

impl FromStr for LibVer {
    type Err = UnknownLibVer;

    /// The profile of this name; `latest` is the last one.
    fn from_str(text: &str) -> Result<Self, UnknownLibVer> {
        match LibVer::ALL.into_iter().find(|profile| profile.name() == text) {
            Some(profile) => Ok(profile),
            None if text == "latest" => Ok(LibVer::V200),
            None => Err(UnknownLibVer(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_go_by_their_names() {
        for profile in LibVer::ALL {
            assert_eq!(profile.name().parse(), Ok(profile));
            assert_eq!(profile.to_string(), profile.name());
        }
        assert_eq!("latest".parse(), Ok(LibVer::V200));
        assert_eq!("v19".parse::<LibVer>(), Err(UnknownLibVer("v19".into())));
    }
}
