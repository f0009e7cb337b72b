//! Several files as one, whose image is a virtual dataset over theirs.

use h5live::archive::layout::{NO_SAMPLE, SAMPLE_CONTENTS};
use h5live::model::{Name, Selection, VirtualSource};
use h5live::{File, UNLIMITED};

use crate::digest::DigestAlgorithm;
use crate::error::{Error, Result, UnsuitableFileReason};
use crate::import::{ImportOptions, SampleIndexWriter, TarLayout, import_layout_kind};
use crate::reader::ImportedTar;
use crate::tables::{ImportTablesWriter, read_digest_algorithm};

/// What [`VirtualMerge::write`] has made.
#[derive(Debug, Clone, Copy)]
pub struct VirtualMergeReport {
    /// Archives of all files.
    pub archives: u64,
    /// Samples of all files.
    pub samples: u64,
}

/// Files of the layout `shredder` that become one.
#[derive(Debug)]
pub struct VirtualMerge {
    from: Vec<(ImportedTar, Name)>,
    digests: DigestAlgorithm,
}

impl VirtualMerge {
    /// Takes the files, each with the name under which the new one finds it, where `%` is written `%%`. Nothing is written
    /// yet.
    ///
    /// # Errors
    /// [`Error::UnsuitableFile`] if a file has another layout or other digests than the first one, or its import is not complete.
    pub fn of(files_with_source_names: Vec<(ImportedTar, Name)>) -> Result<Self> {
        let digests = match files_with_source_names.first() {
            Some((first, _)) => read_digest_algorithm(first.file())?
                .ok_or_else(|| Error::unsuitable_file(first.file(), UnsuitableFileReason::NoDigests))?,
            None => ImportOptions::default().digest,
        };
        for (tar, _) in &files_with_source_names {
            let (file, layout) = (tar.file(), import_layout_kind(tar.file())?);
            if layout != TarLayout::Shredder {
                return Err(Error::unsuitable_file(file, UnsuitableFileReason::LayoutNotShredder(layout.name())));
            }
            if tar.has_unfinished_import()? {
                return Err(Error::unsuitable_file(file, UnsuitableFileReason::UnfinishedImport));
            }
            if read_digest_algorithm(file)? != Some(digests) {
                return Err(Error::unsuitable_file(file, UnsuitableFileReason::DigestAlgorithmIsNot(digests.name())));
            }
        }
        Ok(VirtualMerge { from: files_with_source_names, digests })
    }

    /// Makes an empty file the whole of the files. Tables and names are copied. Contents stay where they are: the image is a
    /// virtual dataset over the images of the files, which must stay there.
    ///
    /// # Errors
    /// [`Error::UnsuitableFile`] if the tables of a file contradict each other; [`Error::File`].
    pub fn write(&self, to: &File, has_sentinel: bool) -> Result<VirtualMergeReport> {
        merge_virtual(&self.from, self.digests, to, has_sentinel)
    }
}

fn merge_virtual(
    from: &[(ImportedTar, Name)],
    digests: DigestAlgorithm,
    to: &File,
    has_sentinel: bool,
) -> Result<VirtualMergeReport> {
    let mut made = VirtualMergeReport { archives: 0, samples: 0 };
    let mut names = SampleIndexWriter::create(to, has_sentinel)?;
    let mut tables = ImportTablesWriter::create(to, TarLayout::Shredder.name(), digests)?;
    let mut sources = Vec::new();
    for (file, name) in from {
        let start = tables.content_bytes();
        let mut end = start;
        let samples = file.rows().iter().filter(|row| row.sample != NO_SAMPLE);
        for (number, row) in (0..).zip(samples) {
            let bytes = file.sample_archive().sample_len(number)?;
            if (row.sample, row.size) != (number, bytes) {
                return Err(file.inconsistent_tables_error("the entries have other samples than the image"));
            }
            let begin = end;
            end =
                begin.checked_add(bytes).ok_or_else(|| file.inconsistent_tables_error("the contents are too long"))?;
            names.push(file.path(row), begin..end)?;
        }
        tables.append_tables(&file.tables())?;
        if end > start {
            sources.push(VirtualSource {
                file: name.clone(),
                dataset: format!("/{SAMPLE_CONTENTS}").as_str().into(),
                source: Selection::block(&[0], &[end - start]),
                target: Selection::block(&[start], &[end - start]),
            });
        }
        made.archives += file.archives().len() as u64;
    }
    let bytes = tables.content_bytes();
    let image = to.new_dataset::<u8>().shape(&[bytes]).max_shape(&[UNLIMITED]).virtual_sources(sources);
    image.create(SAMPLE_CONTENTS)?;
    names.commit()?;
    tables.write_name_index_and_finish()?;
    made.samples = tables.sample_count();
    Ok(made)
}
