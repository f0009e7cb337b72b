//! Which releases of HDF5 shall be able to read what is written.

use std::fmt;
use std::str::FromStr;

/// The oldest release of the HDF5 library that shall be able to read a new file (the lower of its "version bounds").
///
/// What an object needs beyond it (a complex number, a creation order) makes the file need a later release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Profile {
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

impl Profile {
    /// All profiles, oldest first.
    pub const ALL: [Profile; 6] =
        [Profile::Earliest, Profile::V18, Profile::V110, Profile::V112, Profile::V114, Profile::V200];

    /// The name by which a profile is chosen on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Earliest => "earliest",
            Profile::V18 => "v18",
            Profile::V110 => "v110",
            Profile::V112 => "v112",
            Profile::V114 => "v114",
            Profile::V200 => "v200",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no [`Profile`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of earliest, v18, v110, v112, v114, v200, latest")]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    /// The profile of this name; `latest` is the last one.
    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        match Profile::ALL.into_iter().find(|profile| profile.name() == text) {
            Some(profile) => Ok(profile),
            None if text == "latest" => Ok(Profile::V200),
            None => Err(UnknownProfile(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_go_by_their_names() {
        for profile in Profile::ALL {
            assert_eq!(profile.name().parse(), Ok(profile));
            assert_eq!(profile.to_string(), profile.name());
        }
        assert_eq!("latest".parse(), Ok(Profile::V200));
        assert_eq!("v19".parse::<Profile>(), Err(UnknownProfile("v19".into())));
    }
}
