//! Why elements could not be read.

use h5live::ErrorKind;

use crate::fault::Fault;

/// Why elements could not be read.
#[derive(Debug)]
pub(super) enum ReadFault {
    /// The dataset has become smaller.
    Selection,
    Other(Fault),
}

impl ReadFault {
    /// What the client is told.
    pub fn into_fault(self) -> Fault {
        match self {
            ReadFault::Selection => Fault::busy("The dataset becomes smaller while it is read: ask again"),
            ReadFault::Other(fault) => fault,
        }
    }
}

impl From<Fault> for ReadFault {
    fn from(fault: Fault) -> Self {
        ReadFault::Other(fault)
    }
}

impl From<h5live::Error> for ReadFault {
    fn from(error: h5live::Error) -> Self {
        match error.kind() {
            ErrorKind::Selection(_) => ReadFault::Selection,
            _ => ReadFault::Other(error.into()),
        }
    }
}
