//! Other files that a file names: in external links, in virtual datasets and in references.

use std::sync::Arc;

use h5live_model::{LinkUse, Location, Name, OpenError, ResolvedLocation, StoreErrorKind, Url};

use crate::error::ErrorKind;
use crate::file_shared::{FileShared, LinkedFiles, key_of};
use crate::link_rules::Links;
use crate::{File, Mode};

impl LinkedFiles {
    /// Keeps `file` open as long as the file that led to it, unless it is among the oldest of too many.
    fn keep_open(&self, opener: &Arc<FileShared>, file: &File) -> Result<(), ErrorKind> {
        opener.kept_open.lock().push(file.shared().clone());
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
                let file = File::from_shared(file);
                if released.is_some() && file.shared().options.mode.writes() {
                    // Nobody hears of an error of the close that may follow.
                    file.flush().map_err(|error| ErrorKind::OtherFile(Box::new(error)))?;
                }
            }
        }
        Ok(())
    }
}

impl FileShared {
    /// No longer keeps a file open to which this one led.
    fn release_kept_open(&self, file: &Arc<FileShared>) -> Option<Arc<FileShared>> {
        let mut kept = self.kept_open.lock();
        let at = kept.iter().position(|kept| Arc::ptr_eq(kept, file))?;
        Some(kept.remove(at))
    }
}

/// The modes in which another file is opened, one after the other while somebody has it in use. A source of a virtual
/// dataset is only read, and may be read while it is written.
fn modes_to_try(mode: Mode, link: LinkUse) -> &'static [Mode] {
    match (mode, link) {
        (Mode::Read, LinkUse::ExternalLink) => &[Mode::Read],
        (Mode::Read, LinkUse::VirtualSource) => &[Mode::Read, Mode::SwmrRead],
        (Mode::SwmrRead, _) => &[Mode::SwmrRead],
        (_, LinkUse::ExternalLink) => &[Mode::Write],
        (_, LinkUse::VirtualSource) => &[Mode::Write, Mode::Read, Mode::SwmrRead],
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
pub(crate) fn open_linked(from: &File, name: &Name, link: LinkUse) -> Result<Option<File>, ErrorKind> {
    if name.is_empty() {
        return Ok(None);
    }
    let options = &from.shared().options;
    if options.links == Links::Never {
        let rule = "links to other files are not followed";
        return Err(OpenError::LinkRefused { to: name.to_string(), rule }.into());
    }
    let url = Url::in_link(name);
    let base = from.shared().location.as_ref();
    let Some(connector) = base.map(ResolvedLocation::connector).or(options.connectors.path_connector()) else {
        return Ok(None);
    };
    if !url.as_ref().is_some_and(Url::has_authority) {
        let mut failure = None;
        for location in connector.linked_locations(base.map(ResolvedLocation::location), name, link) {
            let at = options.connectors.resolve(&location, modes_to_try(options.mode, link)[0])?;
            match open_candidate(from, at, link) {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(error) => failure = Some(error),
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
    }
    let Some(url) = url else { return Ok(None) };
    let Some(of_scheme) = options.connectors.connector_of(&url)? else { return Ok(None) };
    if options.links != Links::Any && of_scheme.name() != connector.name() {
        return Err(refused_link_error(&url.into()).into());
    }
    open_candidate(from, ResolvedLocation::new(of_scheme.clone(), url.into()), link)
}

fn refused_link_error(to: &Location) -> OpenError {
    let rule = "links of this file may not lead there: Links::Any allows it";
    OpenError::LinkRefused { to: to.to_string(), rule }
}

/// The file at a location to which a link of another one leads; `None` if there is none.
fn open_candidate(from: &File, at: ResolvedLocation, link: LinkUse) -> Result<Option<File>, ErrorKind> {
    let Some(key) = key_of(&at) else { return Ok(None) };
    let shared = from.shared();
    if let (Links::SameOrigin, Some(base)) = (shared.options.links, &shared.location)
        && base.origin() != at.origin()
    {
        return Err(refused_link_error(at.location()).into());
    }
    if let Some(known) = shared.linked_files.find(&key) {
        return Ok(Some(File::from_shared(known)));
    }
    let mut modes = modes_to_try(shared.options.mode, link).iter();
    loop {
        let Some(mode) = modes.next() else { return Ok(None) };
        match shared.options.for_linked_file(*mode).open_linked(at.clone(), shared.linked_files.clone()) {
            Ok(file) => {
                shared.linked_files.keep_open(shared, &file)?;
                return Ok(Some(file));
            }
            Err(error) if error.is_in_use() && modes.len() > 0 => {}
            Err(error) if error.store_kind() == Some(&StoreErrorKind::NotThere) => return Ok(None),
            Err(error) => return Err(ErrorKind::OtherFile(Box::new(error))),
        }
    }
}

/// Whether an error says that a link leads where links may not lead, or that nobody can open the URL in it.
pub(crate) fn is_refusal(error: &ErrorKind) -> bool {
    let refusal = |error: &OpenError| {
        matches!(
            error,
            OpenError::LinkRefused { .. } | OpenError::UnknownScheme { .. } | OpenError::MissingFeature { .. }
        )
    };
    matches!(error, ErrorKind::Open(error) if refusal(error))
}
