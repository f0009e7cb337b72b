//! The layout `shredder`: all contents in one dataset, all names in another, and where each begins.

use std::io::Read;

use h5live::File;
use h5live::archive::layout::{BYTE_CHUNK, IMAGE, IMAGE_OFFSET, NAME, NAME_OFFSET, OFFSET_CHUNK, SENTINEL_ATTRIBUTE};

use super::options::ImageFilter;
use crate::column::{ByteImage, Column};
use crate::contents::{EntryContents, Piece};
use crate::entry::TarEntry;
use crate::error::Result;
use crate::tables::Committed;

/// Bytes of a chunk of an image with a filter: what is decoded to read one sample.
const FILTERED_CHUNK: u64 = 128 << 10;

/// The level of deflate of the names, as the original program has it.
const NAME_LEVEL: u32 = 6;

/// The four datasets.
#[derive(Debug)]
pub struct Shredder {
    image: ByteImage,
    image_offset: Column<u64>,
    name: Column<u8>,
    name_offset: Column<u64>,
    has_sentinel: bool,
}

impl Shredder {
    /// Makes the datasets in a new file.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn create(file: &File, has_sentinel: bool, filter: Option<ImageFilter>) -> Result<Self> {
        let bytes = || file.new_dataset::<u8>().unlimited_rows(&[]).chunk_shape(&[BYTE_CHUNK]);
        let offsets = || file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[OFFSET_CHUNK]);
        match filter {
            Some(filter) => bytes().chunk_shape(&[FILTERED_CHUNK]).filter(filter.spec()).create(IMAGE)?,
            None => bytes().create(IMAGE)?,
        };
        bytes().deflate(NAME_LEVEL).create(NAME)?;
        for name in [IMAGE_OFFSET, NAME_OFFSET] {
            let dataset = offsets().create(name)?;
            if has_sentinel {
                dataset.set_attribute(SENTINEL_ATTRIBUTE, &1u8)?;
                dataset.append(&[0u64])?;
            }
        }
        Shredder::open(file)
    }

    /// Opens the datasets of a file.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn open(file: &File) -> Result<Self> {
        let image_offset = file.dataset(IMAGE_OFFSET)?;
        let has_sentinel = image_offset.attribute_names()?.iter().any(|name| *name == SENTINEL_ATTRIBUTE);
        Ok(Shredder {
            image: ByteImage::new(file.dataset(IMAGE)?)?,
            image_offset: Column::new(image_offset)?,
            name: Column::new(file.dataset(NAME)?)?,
            name_offset: Column::new(file.dataset(NAME_OFFSET)?)?,
            has_sentinel,
        })
    }

    /// Drops everything behind the samples that are committed.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn truncate(&mut self, committed: &Committed) -> Result<()> {
        let offsets = committed.samples + u64::from(self.has_sentinel);
        self.image_offset.truncate(offsets)?;
        self.name_offset.truncate(offsets)?;
        self.image.truncate(committed.content_bytes)?;
        self.name.truncate(committed.name_bytes)
    }

    /// Drops contents that are not those of a whole file.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn drop_partial(&mut self, content_bytes: u64) -> Result<()> {
        self.image.truncate(content_bytes)?;
        self.image.commit()
    }

    /// Adds a file with its contents.
    ///
    /// # Errors
    /// [`crate::Error::File`], [`crate::Error::Archive`].
    pub fn store<R: Read>(&mut self, entry: &TarEntry, contents: &mut EntryContents<'_, R>) -> Result<()> {
        let (start, name_start) = (self.image.len(), self.name.len());
        loop {
            match contents.peek() {
                Piece::Data(bytes) => {
                    let space = self.image.space(bytes)?;
                    let len = space.len();
                    contents.read(space)?;
                    self.image.advance(len);
                }
                Piece::Hole(bytes) => {
                    contents.skip_hole();
                    self.image.push_zeros(bytes)?;
                }
                Piece::End => break,
            }
        }
        self.name.push(&entry.path)?;
        self.name.push(&[0])?;
        let offsets = match self.has_sentinel {
            true => (self.image.len(), self.name.len()),
            false => (start, name_start),
        };
        self.image_offset.push(&[offsets.0])?;
        self.name_offset.push(&[offsets.1])
    }

    /// Publishes everything. The offsets come last: they lead to the rest.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn commit(&mut self) -> Result<()> {
        self.image.commit()?;
        self.name.commit()?;
        self.name_offset.commit()?;
        self.image_offset.commit()
    }
}
