//! Training sets for h5live: tar archives become HDF5 files, and archives again, with nothing lost.
//!
//! [`Importer`] reads an archive ([`TarSource`]) into one of three layouts ([`TarLayout`]). [`ImportedTar`] is such a file, to be
//! read; [`export()`] makes the archive of it, byte for byte. Reading samples at random is in [`h5live::archive`].
//! `docs/tar.md` describes what the files hold.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use h5live_archive::{ImportOptions, Importer, TarSource};
//!
//! let source = TarSource::open_file_or_stdin(Path::new("images.tar.gz"))?;
//! let importer = Importer::create_file_for_swmr(Path::new("images.h5"), h5live::File::options(), ImportOptions::default())?;
//! let report = importer.import(source, &mut |_| {})?;
//! println!("{} samples", report.samples_in_all_archives);
//! # Ok::<(), h5live_archive::Error>(())
//! ```

#![deny(missing_debug_implementations)]

mod byte_dataset_appender;
mod check;
mod column_appender;
mod contents;
mod count_with_examples;
mod digest;
mod digests;
mod entry;
mod error;
mod export;
mod extract;
mod extract_owner;
mod header;
mod import;
mod layout_check;
mod link_target;
mod merge;
mod owner_and_xattrs;
mod paths;
mod reader;
mod scanner;
mod shown_name;
mod source;
mod sparse;
mod tables;
mod verify;
mod virtual_merge;
mod worker_thread;

pub use check::{CheckProgress, TarReport, check, kind_name};
pub use contents::{DataOrHole, EntryContents};
pub use count_with_examples::CountWithExamples;
pub use digest::{ContentHasher, DigestAlgorithm, UnknownDigestAlgorithm};
pub use digests::SampleDigests;
pub use entry::{TarEntry, is_file_or_unknown_kind};
pub use error::{Error, Result, TarFault, UnsuitableFileReason, WRONG_DIGEST};
pub use export::{choose_archive, export};
pub use extract::{ExtractReport, Extractor};
pub use extract_owner::ExtractOptions;
pub use import::{
    ContentsFilter, ImportCollisionPolicy, ImportOptions, ImportProgress, ImportReport, Importer, MAX_COMPACT_BYTES,
    NoneOfAllowedNames, RollbackReport, TarLayout, choose_zstd_if_compressible, has_unfinished_import, hex,
    import_layout_kind, with_libver_v18,
};
pub use layout_check::LayoutFindings;
pub use merge::merge_archive;
pub use paths::safe_path;
pub use reader::ImportedTar;
pub use scanner::{MAX_ENTRY_HEADER_BYTES, NonContentSink, TarScanner};
pub use shown_name::{escaped, unescaped};
pub use source::{Compression, TarSource};
pub use sparse::SparseSegment;
pub use verify::{VerifyReport, verify};
pub use virtual_merge::{VirtualMerge, VirtualMergeReport};
