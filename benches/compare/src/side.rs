//! Who does a work.

use std::fmt;
use std::str::FromStr;

use crate::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Side {
    H5live,
    /// libhdf5 2.2.0 through its C interface.
    Libhdf5,
    /// What the machine does with the same bytes: memcpy, pread, pwrite, the codec alone.
    Bare,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::H5live => "h5live",
            Side::Libhdf5 => "libhdf5",
            Side::Bare => "bare",
        })
    }
}

impl FromStr for Side {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        [Side::H5live, Side::Libhdf5, Side::Bare]
            .into_iter()
            .find(|side| side.to_string() == text)
            .ok_or_else(|| Error::Usage(format!("{text} is not a side")))
    }
}
