//! Archives of one file behind those of another.

use std::io::{self, BufWriter};
use std::thread;

use h5live::File;
use h5live::archive::layout::ArchiveRow;

use crate::error::{Error, Result};
use crate::export::export;
use crate::import::{ImportOptions, ImportProgress, ImportReport, Importer};
use crate::reader::ImportedTar;
use crate::source::TarSource;

/// Bytes that the export writes at once.
const PIPE_BYTES: usize = 1 << 20;

/// Adds an archive of the file `from` to the file `to`, as if it were imported. Both go on at once; nothing is kept on disk
/// in between.
///
/// # Errors
/// As [`Importer::import`] and [`export`].
pub fn merge_archive(
    from: &ImportedTar,
    archive: &ArchiveRow,
    to: &File,
    options: ImportOptions,
    progress: &mut dyn FnMut(ImportProgress),
) -> Result<ImportReport> {
    let importer = Importer::open(to, options)?;
    let (reader, writer) = io::pipe().map_err(Error::io(&archive.name))?;
    thread::scope(|scope| {
        let exported = scope.spawn(move || export(from, archive, &mut BufWriter::with_capacity(PIPE_BYTES, writer)));
        let source = TarSource::new(Box::new(reader), &archive.name, None);
        let imported = source.and_then(|source| importer.import(source, progress));
        match exported.join() {
            // An import that fails closes the pipe.
            Ok(Err(error)) if imported.is_ok() || matches!(error, Error::UnsuitableFile { .. } | Error::File(_)) => {
                Err(error)
            }
            Ok(_) => imported,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
