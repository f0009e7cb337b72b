//! Joining the writers of a file.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use h5live_model::{Error, Mode, ObjectId, ObjectScope, OpenError, PublishLevel, Store};

use crate::anchor::i64_scalar_attribute;
use crate::error::{LogError, Result};
use crate::log_file::{LogFile, create_log_group, existing_log_group, log_group, mark_as_log};
use crate::log_state::LogState;
use crate::multi_writer_files::{MainFileUse, MultiWriterFiles};
use crate::names;
use crate::position::LogPosition;
use crate::session::{LogOpenRequest, LogSession};
use crate::subfile_opener::{
    SubfileOpener, is_in_use, log_group_attribute_or_zero, subfile_count, subfile_error, subfile_log_group,
};

/// Joins the writers of a file. With `create_if_missing`, the file is made if it is not there.
///
/// # Errors
/// If another process has the file for itself; if the log is damaged; errors of the stores beneath.
pub fn join_as_writer(
    files: Arc<dyn MultiWriterFiles>,
    create_if_missing: bool,
    how: LogOpenRequest,
) -> std::result::Result<LogSession, OpenError> {
    let mut lease = files.lease()?;
    let main = lease.open_main_for_writing(if create_if_missing {
        MainFileUse::CreateIfMissing
    } else {
        MainFileUse::Join
    })?;
    let taken = take_subfile(&*files, &*main, create_if_missing);
    lease.close_main_and_release()?;
    let (number, own) = taken?;
    let inner = files.open_main(Mode::SwmrRead)?;
    let group = existing_log_group(&*inner)?;
    let mut state =
        LogState::with_unread_main(LogFile::open(0, inner.clone(), group, false, how.max_allocation)?, how.mutant);
    let (store, own_group) = own;
    let own = LogFile::open(number, store, own_group, !how.options.rebuild_index, how.max_allocation)?;
    let mut subfiles = SubfileOpener { own_file: Some(own), ..SubfileOpener::for_following(Some(&*files)) };
    subfiles.add_unopened_subfiles(&*inner, group, &mut state, how.max_allocation)?;
    state.apply_all_waiting()?;
    if subfiles.own_file.is_some() {
        return Err(Error::from(LogError::MissingPart(format!("subfile {number} in the count of subfiles"))).into());
    }
    files.set_last_batch_order(number, state.own_file().last_batch_order)?;
    Ok(LogSession::joined(inner, files, state, how)?)
}

/// Whether nothing is in the root group.
fn is_empty(main: &dyn Store) -> Result<bool> {
    let mut is_empty = true;
    main.for_each_link(main.session().root, &mut |_| {
        is_empty = false;
        false
    })?;
    Ok(is_empty)
}

/// The subfile of a writer: its number, the open file, and the group of its log.
type TakenSubfile = (u32, (Arc<dyn Store>, ObjectId));

/// A subfile that nobody writes, of a main file that is open for writing. One of those that there are, or a new one.
fn take_subfile(
    files: &dyn MultiWriterFiles,
    main: &dyn Store,
    creates: bool,
) -> std::result::Result<TakenSubfile, OpenError> {
    let group = match log_group(main)? {
        Some(group) => {
            mark_as_log(main)?;
            group
        }
        // It is new, or its first writer died before it was begun.
        None if creates && is_empty(main)? => create_log_group(main)?,
        None => return Err(Error::Invalid("the file has no log that a writer could join".to_owned()).into()),
    };
    let writer = main.writer()?;
    let mut file_id = log_group_attribute_or_zero(main, group, names::FILE_ID)?;
    if file_id == 0 {
        file_id = RandomState::new().hash_one(std::process::id()).cast_signed() | 1;
        writer.set_attribute(group, &i64_scalar_attribute(names::FILE_ID, file_id))?;
    }
    let count = subfile_count(main, group)?;
    let found = (1..=count).find_map(|number| match files.open_subfile(number, Mode::SwmrWrite, true) {
        Err(error) if is_in_use(&error) => None,
        opened => Some((number, opened)),
    });
    if let Some((number, opened)) = found {
        let store = opened.map_err(|error| subfile_error(number, count, error))?;
        let group = subfile_log_group(number, &*store, file_id)?;
        return Ok((number, (store, group)));
    }
    let number = count + 1;
    if number > LogPosition::MAX_FILE_NUMBER {
        return Err(
            Error::Invalid(format!("a file with a log has at most {} subfiles", LogPosition::MAX_FILE_NUMBER)).into()
        );
    }
    // What is there under this name was left by a writer that died here, or belongs to another file.
    let store = files.open_subfile(number, Mode::Create, true)?;
    let own_group = create_log_group(&*store)?;
    let subwriter = store.writer()?;
    subwriter.set_attribute(own_group, &i64_scalar_attribute(names::FILE_ID, file_id))?;
    subwriter.start_swmr()?;
    subwriter.commit(ObjectScope::All, PublishLevel::Visible)?;
    writer.set_attribute(group, &i64_scalar_attribute(names::SUBFILE_COUNT, number.into()))?;
    writer.start_swmr()?;
    writer.commit(ObjectScope::All, PublishLevel::Visible)?;
    Ok((number, (store, own_group)))
}
