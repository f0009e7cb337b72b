//! Opening the log of a file, whatever layout it has.

use std::sync::Arc;

use h5live_model::{Error, Mode, Store};

use crate::encode::EntryFilter;
use crate::entry_format::EntryFormat;
use crate::error::Result;
use crate::layout::LogLayout;
use crate::log_file::{LogFile, log_group};
use crate::log_state::LogState;
use crate::log_vol::LogVolLog;
use crate::log_vol_root_attribute::LogVolRootAttribute;
use crate::log_vol_writer::{LogVolWriter, log_vol_group, make_log_vol};
use crate::options::Log;
use crate::session::{LogRequest, LogSession};
use crate::shared_files::SharedFiles;

/// What cannot be opened by the main file alone.
const WITHOUT_SUBFILES: &str = "a log of Log VOL that is in subfiles, without these";

/// Opens the log of a file, or makes one if the file has none and the session can write. `files` are the subfiles of a log
/// in the layout of this program.
///
/// # Errors
/// As [`LogSession::open`] and [`open_log_vol`]; if the log is one of Log VOL that is in subfiles.
pub fn open_log(inner: Arc<dyn Store>, files: Option<Arc<dyn SharedFiles>>, how: LogRequest) -> Result<LogSession> {
    match log_vol_counters(&*inner, how.options.layout)? {
        Some(counters) if counters.subfiles() > 0 => Err(Error::Unsupported(WITHOUT_SUBFILES)),
        Some(counters) => open_log_vol(inner.clone(), counters, &[inner], how),
        None => LogSession::open(inner, files, how),
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
    make_log_vol(inner)?;
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
    how: LogRequest,
) -> Result<LogSession> {
    let mode = inner.session().mode;
    if mode.writes() {
        LogLayout::LogVol.check_filter(how.options.filter)?;
        if mode == Mode::SwmrWrite {
            LogLayout::LogVol.check_following()?;
        }
    }
    let LogVolLog { data, datasets, dataset_count, data_end } = LogVolLog::open(&*inner, files, how.max_allocation)?;
    let main = LogFile::indexed(inner.clone(), log_vol_group(&*inner)?, data);
    let format = EntryFormat::LogVol(LogVolWriter::new(counters, data_end));
    let state = LogState::with_indexes(main, datasets, format)?;
    let how = LogRequest { options: Log { filter: EntryFilter::Never, ..how.options }, ..how };
    Ok(LogSession::of_state(inner, LogLayout::LogVol, state, dataset_count, how))
}
