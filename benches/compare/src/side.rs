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
    /// The crate rust-hdf5.
    RustHdf5,
    /// The crate hdf5-pure.
    Hdf5Pure,
    /// The crate hdf5-reader.
    Hdf5Reader,
    /// h5live as another build of this program has it: `--earlier PROGRAM`.
    Earlier,
}

impl Side {
    pub const ALL: [Side; 6] =
        [Side::H5live, Side::Libhdf5, Side::Bare, Side::RustHdf5, Side::Hdf5Pure, Side::Hdf5Reader];
    pub const CRATES: [Side; 3] = [Side::RustHdf5, Side::Hdf5Pure, Side::Hdf5Reader];

    /// Whether it is another crate, which may fail where we may not.
    pub fn is_crate(self) -> bool {
        Side::CRATES.contains(&self)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::H5live => "h5live",
            Side::Libhdf5 => "libhdf5",
            Side::Bare => "bare",
            Side::RustHdf5 => "rust-hdf5",
            Side::Hdf5Pure => "hdf5-pure",
            Side::Hdf5Reader => "hdf5-reader",
            Side::Earlier => "earlier",
        })
    }
}

impl FromStr for Side {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let side = Side::ALL.into_iter().find(|side| side.to_string() == text);
        side.ok_or_else(|| Error::Usage(format!("{text} is not a side")))
    }
}
