//! The state of the redo records of a cache.

use h5live_format::{Addr, RedoRecord, SeqlockCounter};

use crate::primitive::{Mutex, RwLock};

/// The state of the redo records of a cache.
#[derive(Debug, Default)]
pub(crate) struct RedoState {
    /// Where the last one was written that has not been made invalid.
    pub(super) last_record_addr: Mutex<Option<Addr>>,
    /// The last record, if a flush failed between writing it and making all its changes. Structures that it names may
    /// be torn, and only the record has their bytes.
    pub(super) unfinished_record: Mutex<Option<RedoRecord>>,
    /// The turn that is shown where the last one was, and where that is.
    pub(super) seqlock: Mutex<Option<(Addr, SeqlockCounter)>>,
    /// The serial number of the last record of this session.
    pub(super) last_serial: Mutex<Option<u32>>,
    /// Held alone by a flush with redo records, because space that is allocated meanwhile may lie where they do. Shared
    /// by writers behind the announced end.
    pub(crate) past_eof_lock: RwLock<()>,
}
