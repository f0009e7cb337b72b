//! Other files that a file names: in external links, in virtual datasets and in references.

use std::mem;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use h5live_model::{LinkedStoreRole, Location, Name, OpenError, ResolvedLocation, StoreErrorKind, Url};

use crate::error::ErrorKind;
use crate::file_shared::{FileHandle, FileShared, LinkedFiles, key_of};
use crate::link_rules::LinkedFilePolicy;
use crate::{File, Mode};

/// How long who writes into a source waits for other threads that read it at this moment.
const READERS_WAIT: Duration = Duration::from_secs(2);

/// What another file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenFor {
    /// For what the file may be used that leads there: an external link, or a reference.
    Link,
    /// To read elements or the extent of a source of a virtual dataset.
    ReadSource,
    /// To write elements of a virtual dataset into its source.
    WriteSource,
}

impl OpenFor {
    fn linked_store_role(self) -> LinkedStoreRole {
        match self {
            OpenFor::Link => LinkedStoreRole::ExternalLinkOrReference,
            OpenFor::ReadSource | OpenFor::WriteSource => LinkedStoreRole::VirtualSource,
        }
    }

    /// The modes to open it in, one after the other while somebody has it in use. A source that is only read may be
    /// written by somebody else meanwhile.
    fn modes(self, opener: Mode) -> &'static [Mode] {
        match (self, opener) {
            (_, Mode::SwmrRead) => &[Mode::SwmrRead],
            (OpenFor::ReadSource, _) => &[Mode::Read, Mode::SwmrRead],
            (_, Mode::Read) => &[Mode::Read],
            (_, _) => &[Mode::Write],
        }
    }

    /// Whether a file that is open in `mode` will do for a file that is open in the mode `opener`.
    fn is_served_by(self, mode: Mode, opener: Mode) -> bool {
        self == OpenFor::ReadSource || mode.writes() || !opener.writes()
    }
}

impl LinkedFiles {
    /// No longer keeps a file open for those that led to it.
    fn release(&self, file: &Arc<FileShared>) {
        let led_here = |(opener, kept): &(Weak<FileShared>, Weak<FileShared>)| {
            if kept.as_ptr() == Arc::as_ptr(file) { opener.upgrade() } else { None }
        };
        let openers: Vec<_> = self.kept.lock().iter().filter_map(led_here).collect();
        for opener in openers {
            opener.release_kept_open(file);
        }
    }

    /// Keeps `file` open as long as the file that led to it, unless it is among the oldest of too many.
    fn keep_open(&self, opener: &Arc<FileShared>, file: &File) -> Result<(), ErrorKind> {
        opener.kept_open.lock().push(FileHandle::new(file.shared().clone()));
        let excess = {
            let mut kept = self.kept.lock();
            kept.retain(|(opener, file)| opener.strong_count() > 0 && file.strong_count() > 0);
            kept.push_back((Arc::downgrade(opener), Arc::downgrade(file.shared())));
            let excess = kept.len().saturating_sub(opener.options.max_linked_files);
            kept.drain(..excess).collect::<Vec<_>>()
        };
        for (opener, file) in excess {
            if let (Some(opener), Some(file)) = (opener.upgrade(), file.upgrade()) {
                let released = opener.release_kept_open(&file);
                if released.is_some() && file.options.mode.writes() {
                    // Nobody hears of an error of the close that may follow.
                    File::from_shared(file).flush().map_err(|error| ErrorKind::OtherFile(Box::new(error)))?;
                }
            }
        }
        Ok(())
    }
}

impl FileShared {
    /// No longer keeps a file open to which this one led.
    fn release_kept_open(&self, file: &Arc<FileShared>) -> Option<FileHandle> {
        let mut kept = self.kept_open.lock();
        let at = kept.iter().position(|kept| Arc::ptr_eq(kept.shared(), file))?;
        Some(kept.remove(at))
    }
}

impl File {
    /// Closes the files to which links and virtual datasets of this one led, unless something else uses them. They are opened
    /// again when they are needed. So another [`File`] of this process can open them in another mode.
    ///
    /// # Errors
    /// As [`File::flush`], of a file that was open for writing; it is closed all the same.
    pub fn release_linked_files(&self) -> crate::Result<()> {
        let unused: Vec<_> = {
            let mut kept = self.shared().kept_open.lock();
            let (unused, used) =
                mem::take(&mut *kept).into_iter().partition(|file| Arc::strong_count(file.shared()) == 1);
            *kept = used;
            unused
        };
        let flush = |file: &FileHandle| match file.shared().options.mode.writes() {
            true => File::from_shared(file.shared().clone()).flush(),
            false => Ok(()),
        };
        unused.iter().map(flush).fold(Ok(()), crate::Result::and)
    }
}

/// The file that another one calls `name`; `None` if there is none.
///
/// The connector of the file that has the link says where a file of this name may be. Only if nothing is there, and the
/// name begins with a scheme, it is a URL.
///
/// # Errors
/// [`ErrorKind::Open`] if the name is a URL that nobody can open, or leads where links may not lead;
/// [`ErrorKind::OtherFile`] as [`Options::open`](crate::Options::open), for a file that is there.
pub(crate) fn open_linked(from: &File, name: &Name, open_for: OpenFor) -> Result<Option<File>, ErrorKind> {
    if name.is_empty() {
        return Ok(None);
    }
    let options = &from.shared().options;
    if options.links == LinkedFilePolicy::Never {
        let rule = "links to other files are not followed";
        return Err(OpenError::LinkRefused { to: name.to_string(), rule }.into());
    }
    let url = Url::from_linked_file_name(name);
    let base = from.shared().location.as_ref();
    let Some(connector) = base.map(ResolvedLocation::connector).or(options.connectors.default_path_connector()) else {
        return Ok(None);
    };
    if !url.as_ref().is_some_and(Url::has_authority) {
        let (mut failure, mut is_absent) = (None, false);
        for location in
            connector.linked_store_candidates(base.map(ResolvedLocation::location), name, open_for.linked_store_role())
        {
            let at = options.connectors.resolve(&location, open_for.modes(options.mode)[0])?;
            match open_candidate(from, at, open_for) {
                Ok(None) => is_absent = true,
                Ok(found) => return Ok(found),
                // The current folder is that of the program, and not one that the file names.
                Err(error)
                    if is_absent && failure.is_none() && is_in_current_folder(&location) && is_refused(&error) => {}
                Err(error) => failure = Some(error),
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
    }
    let Some(url) = url else { return Ok(None) };
    let Some(of_scheme) = options.connectors.connector_of(&url)? else { return Ok(None) };
    if options.links != LinkedFilePolicy::Any && of_scheme.name() != connector.name() {
        return Err(refused_link_error(&url.into()).into());
    }
    open_candidate(from, ResolvedLocation::new(of_scheme.clone(), url.into()), open_for)
}

/// Whether this is a path from the current folder on.
fn is_in_current_folder(location: &Location) -> bool {
    matches!(location, Location::Path(path) if path.is_relative())
}

fn is_refused(error: &ErrorKind) -> bool {
    matches!(error, ErrorKind::Open(error) if matches!(**error, OpenError::LinkRefused { .. }))
}

fn refused_link_error(to: &Location) -> OpenError {
    let rule = "links of this file may not lead there: LinkedFilePolicy::Any allows it";
    OpenError::LinkRefused { to: to.to_string(), rule }
}

/// The file at a location to which a link of another one leads; `None` if there is none.
fn open_candidate(from: &File, at: ResolvedLocation, open_for: OpenFor) -> Result<Option<File>, ErrorKind> {
    // Without one, there may be something all the same that this process may not look at.
    let key = key_of(&at);
    let find = |files: &LinkedFiles| key.as_ref().and_then(|key| files.find(key));
    let shared = from.shared();
    if let (LinkedFilePolicy::SameOrigin, Some(base)) = (shared.options.links, &shared.location)
        && base.trust_origin() != at.trust_origin()
    {
        return Err(refused_link_error(at.location()).into());
    }
    if let Some(filter) = &shared.options.link_filter
        && !(filter.0)(at.location())
    {
        let rule = "this program does not let links lead there";
        return Err(OpenError::LinkRefused { to: at.location().to_string(), rule }.into());
    }
    let files = &shared.linked_files;
    let opener = shared.options.mode;
    let deadline = Instant::now() + READERS_WAIT;
    // Of two threads that would open it, the second finds what the first has opened.
    let opening = loop {
        let opening = files.opening.lock();
        match find(files) {
            None => break opening,
            Some(known) if open_for.is_served_by(known.options.mode, opener) => {
                return Ok(Some(File::from_shared(known)));
            }
            // It was only read, and makes way for one that can be written as soon as no thread reads it any more.
            Some(known) => files.release(&known),
        }
        if find(files).is_none() || Instant::now() >= deadline {
            break opening;
        }
        drop(opening);
        thread::sleep(Duration::from_millis(1));
    };
    let mut modes = open_for.modes(opener).iter();
    loop {
        let Some(mode) = modes.next() else { return Ok(None) };
        match shared.options.for_linked_file(*mode).open_linked(at.clone(), files.clone()) {
            Ok(file) => {
                drop(opening);
                files.keep_open(shared, &file)?;
                return Ok(Some(file));
            }
            Err(error) if error.is_in_use() && modes.len() > 0 => {}
            Err(error) if error.store_error_kind() == Some(&StoreErrorKind::NotFound) => return Ok(None),
            Err(error) => return Err(ErrorKind::OtherFile(Box::new(error))),
        }
    }
}
