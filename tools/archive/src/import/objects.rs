//! The layouts `compactor` and `digest`: one dataset for each content.

use std::io::Read;

use h5live::archive::layout::{SAMPLE_REFERENCE, UNPLACED_CONTENT_GROUP};
use h5live::model::{DatasetSpec, Dataspace, Layout, LinkTarget, Name, NewObject, ObjectId, ObjectSpec, Shape};
use h5live::{Dataset, File, H5Type, Reference};

use super::object_placer::{DatasetPlacement, KeptObjects, ObjectPlacer, PlacementError};
use super::options::{ImportCollisionPolicy, ImportOptions, TarLayout};
use crate::column_appender::ColumnAppender;
use crate::contents::{DataOrHole, EntryContents};
use crate::count_with_examples::CountWithExamples;
use crate::entry::TarEntry;
use crate::error::Result;

/// Elements of a chunk of references.
const REFERENCE_CHUNK: u64 = 1024;

/// Bytes of a chunk of a sparse file.
const SPARSE_CHUNK: u64 = 64 << 10;

/// Bytes of large contents that are written, or compared, at once.
const PIECE_BYTES: u64 = 4 << 20;

/// Datasets for contents, and a reference to each sample's.
#[derive(Debug)]
pub struct EntryObjectWriter {
    file: File,
    paths: ObjectPlacer,
    references: ColumnAppender<Reference>,
    options: ImportOptions,
    buffer: Vec<u8>,
}

impl EntryObjectWriter {
    /// Makes the table of references in a new file.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn create(file: &File, options: ImportOptions) -> Result<Self> {
        let references = file.root().new_dataset_with_type(Reference::datatype());
        references.unlimited_rows(&[]).chunk_shape(&[REFERENCE_CHUNK]).create(SAMPLE_REFERENCE)?;
        EntryObjectWriter::open(file, options)
    }

    /// Opens the table of references of a file.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn open(file: &File, options: ImportOptions) -> Result<Self> {
        let references = ColumnAppender::new(file.dataset(SAMPLE_REFERENCE)?)?;
        Ok(EntryObjectWriter {
            paths: ObjectPlacer::new(file),
            references,
            options,
            buffer: Vec::new(),
            file: file.clone(),
        })
    }

    /// Drops the references behind the samples that are committed.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn truncate_references(&mut self, samples: u64) -> Result<()> {
        self.references.drop_pending_and_truncate(samples)
    }

    /// Says which entries are committed. Objects of others are left from an import that was interrupted, and make room.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn allow_replacing_uncommitted(&mut self, mut committed: KeptObjects) -> Result<()> {
        for reference in self.references.dataset().read::<Reference>()? {
            if let Some(object) = self.file.dereference(&reference)? {
                committed.add_object(object.id());
            }
        }
        self.paths.set_committed(committed);
        Ok(())
    }

    fn link(&self, group: ObjectId, name: &Name, id: ObjectId) -> Result<()> {
        let linked = self.file.writer().and_then(|writer| writer.add_link(group, name, &LinkTarget::Hard(id)));
        linked.map_err(|error| self.paths.error(error))
    }

    /// Entries that have no object under their path, because it is taken, or cannot be one.
    pub fn files_denied_own_path(&self) -> &CountWithExamples {
        &self.paths.entries_not_at_own_path
    }

    /// A dataset of so many bytes that no link leads to yet, of which only chunks with data are stored.
    fn new_sparse_dataset(&self, bytes: u64) -> Result<Dataset> {
        let new = self.file.new_dataset::<u8>().shape(&[bytes]).chunk_shape(&[SPARSE_CHUNK.min(bytes)]);
        Ok(new.create_unlinked()?)
    }

    /// A dataset of so many bytes that no link leads to yet.
    fn new_dataset(&self, bytes: u64) -> Result<Dataset> {
        Ok(self.file.new_dataset::<u8>().shape(&[bytes]).contiguous().create_unlinked()?)
    }

    /// Reads contents into a dataset that no link leads to yet.
    fn write_large<R: Read>(&mut self, contents: &mut EntryContents<'_, R>) -> Result<Dataset> {
        let dataset = match contents.has_holes() {
            true => self.new_sparse_dataset(contents.size())?,
            false => self.new_dataset(contents.size())?,
        };
        let written = self.write_pieces(&dataset, contents);
        // What nothing leads to is dropped.
        written.inspect_err(|_| drop(self.file.writer().and_then(|writer| writer.discard(dataset.id()))))?;
        Ok(dataset)
    }

    fn write_pieces<R: Read>(&mut self, dataset: &Dataset, contents: &mut EntryContents<'_, R>) -> Result<()> {
        let mut at = 0;
        loop {
            match contents.peek() {
                DataOrHole::Data(bytes) => {
                    self.buffer.resize(bytes.min(PIECE_BYTES) as usize, 0);
                    contents.read_data(&mut self.buffer)?;
                    let end = at + self.buffer.len() as u64;
                    dataset.write_slice(at..end, &self.buffer)?;
                    at = end;
                }
                DataOrHole::Hole(bytes) => {
                    contents.skip_hole();
                    at += bytes;
                }
                DataOrHole::End => return Ok(()),
            }
        }
    }

    /// The place of new contents: a group and a name in it, or the object that has the same contents already.
    fn place(
        &mut self,
        entry: &TarEntry,
        digest: &[u8],
        sample: u64,
        is_same: &dyn Fn(&Dataset) -> Result<bool>,
    ) -> Result<DatasetPlacement, PlacementError> {
        let (path, on_collision) = match self.options.layout {
            TarLayout::Digest => (hex(digest).into_bytes(), ImportCollisionPolicy::AliasIfSameElseSuffix),
            _ => (entry.path.clone(), self.options.on_collision),
        };
        let place = self.paths.make_placement(&path, on_collision, is_same)?;
        match place {
            Some(place) => Ok(place),
            None => {
                self.paths.entries_not_at_own_path.add(&entry.path);
                Ok(self.paths.make_placement_by_sample_number(UNPLACED_CONTENT_GROUP, sample)?)
            }
        }
    }

    /// Adds a file whose contents are in memory.
    ///
    /// # Errors
    /// [`PlacementError`].
    pub fn add_compact_file(
        &mut self,
        entry: &TarEntry,
        sample_number: u64,
        contents: &[u8],
        digest: &[u8],
    ) -> Result<(), PlacementError> {
        let is_same = |other: &Dataset| Ok(has_elements(other, contents)?);
        let id = match self.place(entry, digest, sample_number, &is_same)? {
            DatasetPlacement::ExistingWithSameContents(id) => id,
            DatasetPlacement::InGroup(group, name) => self.create_compact(group, &name, contents)?,
        };
        Ok(self.push_reference(id)?)
    }

    /// Adds a file whose contents are read piece by piece; returns their digest.
    ///
    /// # Errors
    /// [`PlacementError`].
    pub fn add_large_file<R: Read>(
        &mut self,
        entry: &TarEntry,
        sample_number: u64,
        mut contents: EntryContents<'_, R>,
    ) -> Result<Vec<u8>, PlacementError> {
        let dataset = self.write_large(&mut contents)?;
        let digest = contents.into_digest_of_read();
        let is_same = |other: &Dataset| Ok(are_equal(other, &dataset)?);
        let id = match self.place(entry, &digest, sample_number, &is_same)? {
            DatasetPlacement::ExistingWithSameContents(id) => {
                let discarded = self.file.writer().and_then(|writer| writer.discard(dataset.id()));
                discarded.map_err(|error| self.paths.error(error))?;
                id
            }
            DatasetPlacement::InGroup(group, name) => {
                dataset.flush()?;
                self.link(group, &name, dataset.id())?;
                dataset.id()
            }
        };
        self.push_reference(id)?;
        Ok(digest)
    }

    fn push_reference(&mut self, id: ObjectId) -> Result<()> {
        self.references.push(&[self.file.reference_to(id)?])
    }

    fn create_compact(&self, group: ObjectId, name: &Name, contents: &[u8]) -> Result<ObjectId> {
        let spec: ObjectSpec = DatasetSpec {
            datatype: u8::datatype(),
            committed_datatype: None,
            dataspace: Dataspace::Simple(Shape::fixed(&[contents.len() as u64])),
            layout: Layout::Compact,
            filters: Default::default(),
            fill: Default::default(),
            unfiltered_partial_chunks: false,
        }
        .into();
        let new = NewObject::linked(group, name, &spec).with_compact_elements(contents);
        let made = self.file.writer().and_then(|writer| writer.create(&new));
        made.map_err(|error| self.paths.error(error))
    }

    /// Gives an entry without contents its place, as far as HDF5 has one: a group for a folder, a dataset without elements for
    /// an empty file, links for links. What has none is in the tables alone.
    ///
    /// # Errors
    /// [`PlacementError`].
    pub fn add_entry_without_contents(&mut self, entry: &TarEntry) -> Result<(), PlacementError> {
        if self.options.layout == TarLayout::Digest {
            return Ok(());
        }
        match entry.kind {
            b'5' => Ok(self.paths.make_group_if_possible(&entry.path)?),
            0 if entry.path.ends_with(b"/") => Ok(self.paths.make_group_if_possible(&entry.path)?),
            b'1' => Ok(self.paths.add_hard_link_if_possible(&entry.path, &entry.link_target)?),
            b'2' => Ok(self.paths.add_soft_link_if_possible(&entry.path, &entry.link_target)?),
            _ if entry.is_file() => self.store_empty(entry),
            _ => Ok(()),
        }
    }

    fn store_empty(&mut self, entry: &TarEntry) -> Result<(), PlacementError> {
        let is_same = |other: &Dataset| Ok(other.shape()?.iter().product::<u64>() == 0);
        let found = self.paths.make_placement(&entry.path, self.options.on_collision, &is_same);
        match found {
            Ok(Some(DatasetPlacement::InGroup(group, name))) => {
                let dataset = self.new_dataset(0)?;
                Ok(self.link(group, &name, dataset.id())?)
            }
            Ok(Some(DatasetPlacement::ExistingWithSameContents(_))) => Ok(()),
            Ok(None) => {
                self.paths.entries_not_at_own_path.add(&entry.path);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Publishes everything. The references come last.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn commit(&mut self) -> Result<()> {
        self.file.flush()?;
        self.references.commit()
    }
}

/// Whether a dataset has these bytes.
fn has_elements(dataset: &Dataset, bytes: &[u8]) -> h5live::Result<bool> {
    let is_long = dataset.shape()? == [bytes.len() as u64];
    Ok(is_long && dataset.read::<u8>()? == bytes)
}

/// Whether two datasets have the same bytes.
fn are_equal(one: &Dataset, other: &Dataset) -> h5live::Result<bool> {
    let dims = one.shape()?;
    if dims != other.shape()? || dims.len() != 1 {
        return Ok(false);
    }
    let (mut at, len) = (0, dims[0]);
    while at < len {
        let end = len.min(at + PIECE_BYTES);
        if one.read_slice::<u8>(at..end)? != other.read_slice::<u8>(at..end)? {
            return Ok(false);
        }
        at = end;
    }
    Ok(true)
}

/// A digest as text, as the original program names datasets.
pub fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
