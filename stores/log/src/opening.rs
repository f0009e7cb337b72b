//! Opening the log of a file, whatever layout it has.

use std::sync::Arc;

use h5live_model::{Error, Mode, Store};

use crate::encode::EntryFilter;
use crate::entry_writer::EntryWriter;
use crate::error::Result;
use crate::layout::LogLayout;
use crate::log_file::{LogFile, log_group};
use crate::log_state::LogState;
use crate::log_vol::LogVolLog;
use crate::log_vol_root_attribute::LogVolRootAttribute;
use crate::log_vol_writer::{LogVolWriter, create_log_vol_log, log_vol_group_or_zero};
use crate::multi_writer_files::MultiWriterFiles;
use crate::options::Log;
use crate::session::{LogOpenRequest, LogSession};

/// What cannot be opened by the main file alone.
const WITHOUT_SUBFILES: &str = "a log of Log VOL that is in subfiles, without these";

/// Opens the log of a file, or makes one if the file has none and the session can write. `files` are the subfiles of a log
/// in the layout of this program.
///
/// # Errors
/// As [`LogSession::open_or_create_h5live`] and [`open_log_vol`]; if the log is one of Log VOL that is in subfiles.
pub fn open_or_create_log(
    inner: Arc<dyn Store>,
    files: Option<Arc<dyn MultiWriterFiles>>,
    how: LogOpenRequest,
) -> Result<LogSession> {
    match log_vol_counters(&*inner, how.options.layout)? {
        Some(counters) if counters.subfile_count() > 0 => Err(Error::Unsupported(WITHOUT_SUBFILES)),
        Some(counters) => open_log_vol(inner.clone(), counters, &[inner], how),
        None => LogSession::open_or_create_h5live(inner, files, how),
    }
}

/// The counters of a log in Log VOL's layout; `None` if the file has one in the layout of this program. A file without a
/// log gets one if the session writes, and that layout is wanted.
fn log_vol_counters(inner: &dyn Store, wanted: LogLayout) -> Result<Option<LogVolRootAttribute>> {
    let found = LogVolRootAttribute::read(inner)?;
    if found.is_some() || wanted != LogLayout::LogVol || !inner.session().mode.writes() {
        return Ok(found);
    }
    if log_group(inner)?.is_some() {
        return Err(Error::Invalid("the file has a log, and not in Log VOL's layout (layout=logvol)".to_owned()));
    }
    create_log_vol_log(inner)?;
    Ok(Some(LogVolRootAttribute::NEW))
}

/// The log of a file in Log VOL's layout, which has these counters. `files` have the log: the file itself, or its
/// subfiles.
///
/// # Errors
/// If the log is damaged, or the session writes what the layout does not have; errors of the stores.
pub fn open_log_vol(
    inner: Arc<dyn Store>,
    counters: LogVolRootAttribute,
    files: &[Arc<dyn Store>],
    how: LogOpenRequest,
) -> Result<LogSession> {
    let mode = inner.session().mode;
    if mode.writes() {
        LogLayout::LogVol.check_filter(how.options.filter)?;
        if mode == Mode::SwmrWrite {
            LogLayout::LogVol.check_swmr_write()?;
        }
    }
    let LogVolLog { data_logs: data, datasets, created_dataset_count: dataset_count, data_end_in_file: data_end } =
        LogVolLog::open(&*inner, files, how.max_allocation)?;
    let main = LogFile::with_log_already_read(inner.clone(), log_vol_group_or_zero(&*inner)?, data);
    let format = EntryWriter::LogVol(LogVolWriter::new(counters, data_end));
    let state = LogState::with_box_indexes(main, datasets, format)?;
    let how = LogOpenRequest { options: Log { filter: EntryFilter::Never, ..how.options }, ..how };
    Ok(LogSession::of_state(inner, LogLayout::LogVol, state, dataset_count, how))
}
