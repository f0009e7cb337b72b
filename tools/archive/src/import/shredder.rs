//! The layout `shredder`: all contents in one dataset, all names in another, and where each begins.

use std::io::Read;
use std::ops::Range;

use h5live::File;
use h5live::archive::layout::{
    HAS_SENTINEL_ATTRIBUTE, SAMPLE_CONTENTS, SAMPLE_NAME, SAMPLE_NAME_OFFSET, SAMPLE_OFFSET, SHREDDER_BYTES_PER_CHUNK,
    SHREDDER_OFFSETS_PER_CHUNK,
};

use super::options::ContentsFilter;
use crate::byte_dataset_appender::ByteDatasetAppender;
use crate::column_appender::ColumnAppender;
use crate::contents::{DataOrHole, EntryContents};
use crate::entry::TarEntry;
use crate::error::Result;
use crate::tables::CommittedCounts;

/// Bytes of a chunk of an image with a filter: what is decoded to read one sample.
const FILTERED_CHUNK: u64 = 128 << 10;

/// The level of deflate of the names, as the original program has it.
const NAME_LEVEL: u32 = 6;

/// The four datasets.
#[derive(Debug)]
pub struct ShredderWriter {
    image: ByteDatasetAppender,
    samples: SampleIndexWriter,
}

/// Where the samples lie in the image, and their names.
#[derive(Debug)]
pub struct SampleIndexWriter {
    image_offset: ColumnAppender<u64>,
    name: ColumnAppender<u8>,
    name_offset: ColumnAppender<u64>,
    has_sentinel: bool,
}

impl SampleIndexWriter {
    /// Makes the datasets in a new file.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn create(file: &File, has_sentinel: bool) -> Result<Self> {
        let names = file.new_dataset::<u8>().unlimited_rows(&[]).chunk_shape(&[SHREDDER_BYTES_PER_CHUNK]);
        names.deflate(NAME_LEVEL).create(SAMPLE_NAME)?;
        for name in [SAMPLE_OFFSET, SAMPLE_NAME_OFFSET] {
            let offsets = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[SHREDDER_OFFSETS_PER_CHUNK]);
            let dataset = offsets.create(name)?;
            if has_sentinel {
                dataset.set_attribute(HAS_SENTINEL_ATTRIBUTE, &1u8)?;
                dataset.append(&[0u64])?;
            }
        }
        SampleIndexWriter::open(file)
    }

    fn open(file: &File) -> Result<Self> {
        let image_offset = file.dataset(SAMPLE_OFFSET)?;
        let has_sentinel = image_offset.attribute_names()?.iter().any(|name| *name == HAS_SENTINEL_ATTRIBUTE);
        Ok(SampleIndexWriter {
            image_offset: ColumnAppender::new(image_offset)?,
            name: ColumnAppender::new(file.dataset(SAMPLE_NAME)?)?,
            name_offset: ColumnAppender::new(file.dataset(SAMPLE_NAME_OFFSET)?)?,
            has_sentinel,
        })
    }

    fn truncate(&mut self, committed: &CommittedCounts) -> Result<()> {
        let offsets = committed.samples + u64::from(self.has_sentinel);
        self.image_offset.drop_pending_and_truncate(offsets)?;
        self.name_offset.drop_pending_and_truncate(offsets)?;
        self.name.drop_pending_and_truncate(committed.sample_name_bytes)
    }

    /// Adds a sample with its path. `contents_range`: where it begins and ends in the image.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn push(&mut self, path: &[u8], contents_range: Range<u64>) -> Result<()> {
        let name_start = self.name.len();
        self.name.push(path)?;
        self.name.push(&[0])?;
        let offsets = match self.has_sentinel {
            true => (contents_range.end, self.name.len()),
            false => (contents_range.start, name_start),
        };
        self.image_offset.push(&[offsets.0])?;
        self.name_offset.push(&[offsets.1])
    }

    /// Publishes everything. The offsets come last: they lead to the rest.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn commit(&mut self) -> Result<()> {
        self.name.commit()?;
        self.name_offset.commit()?;
        self.image_offset.commit()
    }
}

impl ShredderWriter {
    /// Makes the datasets in a new file.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn create(file: &File, has_sentinel: bool, filter: Option<ContentsFilter>) -> Result<Self> {
        let image = file.new_dataset::<u8>().unlimited_rows(&[]);
        match filter {
            Some(filter) => image.chunk_shape(&[FILTERED_CHUNK]).filter(filter.spec()).create(SAMPLE_CONTENTS)?,
            None => image.chunk_shape(&[SHREDDER_BYTES_PER_CHUNK]).create(SAMPLE_CONTENTS)?,
        };
        SampleIndexWriter::create(file, has_sentinel)?;
        ShredderWriter::open(file)
    }

    /// Opens the datasets of a file.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn open(file: &File) -> Result<Self> {
        Ok(ShredderWriter {
            image: ByteDatasetAppender::new(file.dataset(SAMPLE_CONTENTS)?)?,
            samples: SampleIndexWriter::open(file)?,
        })
    }

    /// Drops everything behind the samples that are committed.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn truncate(&mut self, committed: &CommittedCounts) -> Result<()> {
        self.samples.truncate(committed)?;
        self.image.drop_pending_and_truncate(committed.content_bytes)
    }

    /// Drops contents that are not those of a whole file.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn drop_partial_contents(&mut self, kept_bytes: u64) -> Result<()> {
        self.image.drop_pending_and_truncate(kept_bytes)?;
        self.image.commit()
    }

    /// Adds a file with its contents.
    ///
    /// # Errors
    /// [`crate::Error::File`], [`crate::Error::Archive`].
    pub fn add_file<R: Read>(&mut self, entry: &TarEntry, contents: &mut EntryContents<'_, R>) -> Result<()> {
        let start = self.image.len();
        loop {
            match contents.peek() {
                DataOrHole::Data(bytes) => {
                    let space = self.image.spare_capacity_mut(bytes)?;
                    let len = space.len();
                    contents.read_data(space)?;
                    self.image.advance(len);
                }
                DataOrHole::Hole(bytes) => {
                    contents.skip_hole();
                    self.image.push_zeros(bytes)?;
                }
                DataOrHole::End => break,
            }
        }
        self.samples.push(&entry.path, start..self.image.len())
    }

    /// Publishes everything. The offsets come last: they lead to the rest.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn commit(&mut self) -> Result<()> {
        self.image.commit()?;
        self.samples.commit()
    }
}
