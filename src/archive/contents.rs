//! The contents of samples: pieces of one image, or a dataset for each.

use std::ops::Range;

use h5live_model::ReferenceKind;

use super::chunk_runs::ChunkRuns;
use super::fault::ArchiveFault;
use super::layout::{
    HAS_SENTINEL_ATTRIBUTE, IMPORT_STATE_ATTRIBUTE, SAMPLE_CONTENTS, SAMPLE_OFFSET, SAMPLE_REFERENCE, TABLE_GROUP,
};
use crate::error::ErrorKind;
use crate::{Dataset, DatasetViewPart, File, Object, Reference, Result};

/// Where the contents are.
#[derive(Debug)]
pub(super) enum SampleContents {
    Image(Box<ImageContents>),
    Objects(ObjectContents),
}

/// One dataset has all contents.
#[derive(Debug)]
pub(super) struct ImageContents {
    image: Dataset,
    /// Where each sample begins, and where the last one ends: in order, and within the image.
    offsets: Vec<u64>,
    mapped: Option<ChunkRuns>,
}

/// Each sample has a dataset.
#[derive(Debug)]
pub(super) struct ObjectContents {
    file: File,
    /// A reference for each sample, as the file has them.
    references: Vec<u8>,
    /// Bytes of a reference; not 0.
    size: usize,
}

/// The dataset at a path; `None` if there is nothing.
pub(super) fn find_dataset(file: &File, path: &str) -> Result<Option<Dataset>> {
    match file.dataset(path) {
        Err(error) if error.is_not_found_in_file() => Ok(None),
        found => found.map(Some),
    }
}

impl SampleContents {
    pub(super) fn open(file: &File) -> Result<SampleContents> {
        if let Some(objects) = find_dataset(file, SAMPLE_REFERENCE)? {
            let references = objects.read_raw(..)?;
            let size = (objects.datatype()?.size() as usize).max(1);
            return Ok(SampleContents::Objects(ObjectContents { file: file.clone(), references, size }));
        }
        let (Some(image), Some(offsets)) = (find_dataset(file, SAMPLE_CONTENTS)?, find_dataset(file, SAMPLE_OFFSET)?)
        else {
            return Err(file.error(None, ArchiveFault::NoArchive));
        };
        ImageContents::open(image, &offsets).map(|contents| SampleContents::Image(Box::new(contents)))
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            SampleContents::Image(image) => image.offsets.len().saturating_sub(1) as u64,
            SampleContents::Objects(objects) => (objects.references.len() / objects.size) as u64,
        }
    }

    #[cold]
    fn no_sample(&self, sample: u64) -> crate::Error {
        let file = match self {
            SampleContents::Image(image) => image.image.file(),
            SampleContents::Objects(objects) => &objects.file,
        };
        file.error(None, ArchiveFault::SampleOutOfRange { sample, samples: self.len() })
    }

    pub(super) fn sample_len(&self, sample: u64) -> Result<u64> {
        match self {
            SampleContents::Image(image) => {
                image.range(sample).map(|(_, len)| len).ok_or_else(|| self.no_sample(sample))
            }
            SampleContents::Objects(objects) => {
                let dataset = objects.dataset(sample)?.ok_or_else(|| self.no_sample(sample))?;
                Ok(dataset.shape()?.iter().product())
            }
        }
    }

    pub(super) fn read_into(&self, sample: u64, into: &mut Vec<u8>) -> Result<()> {
        match self {
            SampleContents::Image(image) => {
                let (start, len) = image.range(sample).ok_or_else(|| self.no_sample(sample))?;
                image.read_into(start, len, into)
            }
            SampleContents::Objects(objects) => {
                let dataset = objects.dataset(sample)?.ok_or_else(|| self.no_sample(sample))?;
                let len = dataset.shape()?.iter().product::<u64>();
                resize(into, len, dataset.file())?;
                dataset.read_into(.., into)
            }
        }
    }

    pub(super) fn read_sample_range(&self, sample: u64, byte_range: Range<u64>) -> Result<Vec<u8>> {
        match self {
            SampleContents::Image(image) => {
                let (start, len) = image.range(sample).ok_or_else(|| self.no_sample(sample))?;
                let is_inside = byte_range.start <= byte_range.end && byte_range.end <= len;
                let fault = ArchiveFault::InconsistentTables("a part of a sample lies beyond it");
                let byte_range =
                    is_inside.then_some(byte_range).ok_or_else(|| image.image.file().error(None, fault))?;
                let mut bytes = Vec::new();
                image.read_into(start + byte_range.start, byte_range.end - byte_range.start, &mut bytes)?;
                Ok(bytes)
            }
            SampleContents::Objects(objects) => {
                let dataset = objects.dataset(sample)?.ok_or_else(|| self.no_sample(sample))?;
                dataset.read_slice(byte_range)
            }
        }
    }

    pub(super) fn view(&self, sample: u64) -> Result<Option<DatasetViewPart<'_, u8>>> {
        let SampleContents::Image(image) = self else { return Ok(None) };
        let (start, len) = image.range(sample).ok_or_else(|| self.no_sample(sample))?;
        Ok(image.mapped.as_ref().and_then(|mapped| mapped.view(start, len)))
    }

    pub(super) fn pieces(&self) -> Option<usize> {
        match self {
            SampleContents::Image(image) => image.mapped.as_ref().map(ChunkRuns::pieces),
            SampleContents::Objects(_) => None,
        }
    }
}

/// Makes room for so many bytes, if they may be allocated at once.
fn resize(into: &mut Vec<u8>, len: u64, file: &File) -> Result<()> {
    let wanted = usize::try_from(len).ok();
    if let Some(wanted) = wanted.filter(|wanted| *wanted <= into.len()) {
        into.truncate(wanted);
        return Ok(());
    }
    let limit = file.shared().options.max_allocation;
    limit.check(len).map_err(|error| file.error(None, error))?;
    into.resize(wanted.ok_or_else(|| file.error(None, ErrorKind::OutOfMemory(len)))?, 0);
    Ok(())
}

/// Whether an attribute is there, and is not 0.
fn is_set(attribute: Result<crate::Attribute>) -> Result<bool> {
    match attribute {
        Err(error) if error.is_not_found_in_file() => Ok(false),
        found => Ok(found?.read_scalar::<u64>()? != 0),
    }
}

impl ImageContents {
    fn open(image: Dataset, offset: &Dataset) -> Result<Self> {
        // The offsets first: an import publishes the image before them.
        let mut offsets: Vec<u64> = offset.read()?;
        image.refresh()?;
        let len = image.shape()?.first().copied().unwrap_or(0);
        if !is_set(offset.attribute(HAS_SENTINEL_ATTRIBUTE))? {
            let file = image.file();
            let is_growing = match file.group(TABLE_GROUP) {
                Err(error) if error.is_not_found_in_file() => false,
                group => is_set(group?.attribute(IMPORT_STATE_ATTRIBUTE))?,
            };
            // Where the last sample ends is not known before the import ends; else, it is where the image does.
            if !is_growing {
                offsets.push(len);
            }
        }
        let is_beyond = offsets.last().is_some_and(|last| *last > len);
        if is_beyond || offsets.windows(2).any(|pair| pair[0] > pair[1]) {
            let fault = ArchiveFault::InconsistentTables("the offsets of the image are not in order");
            return Err(image.file().error(Some(offset.path()), fault));
        }
        let mapped = ChunkRuns::map(&image)?;
        Ok(ImageContents { image, offsets, mapped })
    }

    /// The first byte of a sample in the image, and its length.
    #[inline]
    fn range(&self, sample: u64) -> Option<(u64, u64)> {
        let at = usize::try_from(sample).ok()?;
        let pair = self.offsets.get(at..at.checked_add(2)?)?;
        Some((pair[0], pair[1] - pair[0]))
    }

    fn read_into(&self, start: u64, len: u64, into: &mut Vec<u8>) -> Result<()> {
        resize(into, len, self.image.file())?;
        match &self.mapped {
            Some(mapped) if mapped.copy_to(start, into) => Ok(()),
            _ => self.image.read_into(start..start + len, into),
        }
    }
}

impl ObjectContents {
    /// The dataset of a sample; `None` if there are not so many.
    fn dataset(&self, sample: u64) -> Result<Option<Dataset>> {
        let start = usize::try_from(sample).ok().and_then(|sample| sample.checked_mul(self.size));
        let bytes = start.and_then(|start| self.references.get(start..start.checked_add(self.size)?));
        let Some(bytes) = bytes else { return Ok(None) };
        match self.file.dereference(&Reference::new(ReferenceKind::Object1, bytes))? {
            Some(Object::Dataset(dataset)) => Ok(Some(dataset)),
            _ => Err(self
                .file
                .error(Some(SAMPLE_REFERENCE), ArchiveFault::InconsistentTables("a reference leads to no dataset"))),
        }
    }
}
