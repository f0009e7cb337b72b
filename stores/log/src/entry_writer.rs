//! How entries of the log are written: as this program has them, or as Log VOL has them.

use h5live_model::{ObjectId, PublishLevel, Store};

use crate::anchor::i64_scalar_attribute;
use crate::entry::{ALIGNMENT, EntryHead};
use crate::error::Result;
use crate::log_file::LogFile;
use crate::log_vol_writer::LogVolWriter;
use crate::names;

/// How entries are written, and what of them waits to be published.
#[derive(Debug)]
pub enum EntryWriter {
    /// An entry is in the log, its head and its data ([`crate::entry`]). The end of the log publishes it.
    H5live,
    /// The log has the data. Heads are in logs of their own ([`crate::log_vol_entry`]), which counters publish.
    LogVol(LogVolWriter),
}

/// Where an entry is among what is staged (bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StagedEntryLengths {
    /// From its begin to its data.
    pub head_len: u64,
    /// All of it.
    pub len: u64,
}

impl EntryWriter {
    /// Whether there are entries of single elements, and entries that end a batch.
    pub fn supports_all_entry_kinds(&self) -> bool {
        matches!(self, EntryWriter::H5live)
    }

    /// Whether a file has a table of its entries.
    pub fn supports_index_table(&self) -> bool {
        matches!(self, EntryWriter::H5live)
    }

    /// Adds an entry to what is staged. `rank` is that of its dataset, and `log_offset` the position of the next staged byte.
    pub fn stage(
        &mut self,
        head: &EntryHead,
        data: &[u8],
        rank: usize,
        log_offset: u64,
        staged: &mut Vec<u8>,
    ) -> StagedEntryLengths {
        match self {
            EntryWriter::H5live => {
                let bounds = head.lengths();
                staged.reserve(bounds.len as usize);
                head.encode(rank, staged);
                staged.extend_from_slice(data);
                staged.resize(staged.len().next_multiple_of(ALIGNMENT as usize), 0);
                StagedEntryLengths { head_len: bounds.head_len as u64, len: bounds.len }
            }
            EntryWriter::LogVol(writer) => {
                let data = if writer.stage_if_block(head, log_offset) { data } else { &[] };
                staged.extend_from_slice(data);
                StagedEntryLengths { head_len: 0, len: data.len() as u64 }
            }
        }
    }

    /// Moves what is staged to the log of a file. It is not published yet. `new_log_dataset_size` is how many bytes a new log dataset has
    /// room for.
    ///
    /// # Errors
    /// Errors of the store beneath. The bytes may be given again.
    pub fn append(&mut self, file: &mut LogFile, staged: &[u8], new_log_dataset_size: u64) -> Result<()> {
        match self {
            EntryWriter::H5live => file.log.append(&*file.store, staged, new_log_dataset_size),
            EntryWriter::LogVol(writer) => writer.write_data_log(file, staged),
        }
    }

    /// Has the next commit publish all entries, or publishes them already.
    ///
    /// # Errors
    /// Errors of the store beneath.
    pub fn publish_by_next_commit(&mut self, file: &mut LogFile, publish: PublishLevel) -> Result<()> {
        match self {
            EntryWriter::H5live => file.log.stage_published_end(file.store.writer()?),
            EntryWriter::LogVol(writer) => writer.publish(file, publish),
        }
    }

    /// Has a main file say how many datasets were made. `log_group` is that of its log.
    ///
    /// # Errors
    /// If they are too many; errors of the store beneath.
    pub fn write_created_dataset_count(&mut self, main: &dyn Store, log_group: ObjectId, count: u64) -> Result<()> {
        match self {
            EntryWriter::H5live => main
                .writer()?
                .set_attribute(log_group, &i64_scalar_attribute(names::CREATED_DATASET_COUNT, count.cast_signed())),
            EntryWriter::LogVol(writer) => writer.set_created_dataset_count(main, count),
        }
    }
}
