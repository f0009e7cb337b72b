//! Whether it pays to compress contents: tried on the first ones.

use crate::error::Result;
use crate::import::options::ContentsFilter;
use crate::scanner::TarScanner;
use crate::source::TarSource;

/// Bytes of the archive that are tried.
const TRIAL_BYTES: u64 = 4 << 20;

/// The level of the trial.
const TRIAL_LEVEL: i32 = 1;

/// The compressed size that pays, in hundredths of the size.
const PAYING_PERCENT: usize = 90;

/// The filter for the contents of an archive: Zstandard, if it takes at least a tenth off the contents at its start. What was
/// read for this comes again when the archive is imported.
///
/// # Errors
/// [`crate::Error::Io`] if the archive cannot be read.
pub fn choose_zstd_if_compressible(source: &mut TarSource) -> Result<Option<ContentsFilter>> {
    let head = source.peek_decompressed(TRIAL_BYTES)?;
    let contents = first_contents(&head, &source.name);
    let compressed = zstd::bulk::compress(&contents, TRIAL_LEVEL).map_or(usize::MAX, |compressed| compressed.len());
    Ok((compressed < contents.len() / 100 * PAYING_PERCENT).then_some(ContentsFilter::Zstd))
}

/// The contents of the files at the start of an archive, as far as they are whole.
fn first_contents(head: &[u8], name: &str) -> Vec<u8> {
    let mut scanner = TarScanner::new(head, name);
    let mut contents = Vec::new();
    // The end of what was read is an error, and what is damaged is one again later.
    while let Ok(Some(entry)) = scanner.next_entry(&mut ()) {
        let Some(stored) = usize::try_from(entry.stored_size).ok().filter(|stored| *stored <= head.len()) else {
            break;
        };
        let start = contents.len();
        contents.resize(start + stored, 0);
        if scanner.read_stored_contents(&mut contents[start..]).is_err() {
            contents.truncate(start);
            break;
        }
    }
    contents
}
