//! Domains of object stores that nobody sees before they are complete.

use h5live::{Location, Options};
use h5live_hsds::{HsdsFolderConnector, LastOpenedStore};
use h5live_output::{SignalActionGuard, on_termination_signal};

use crate::error::{Error, Result, error_with_causes};

/// A domain that is a draft. If a signal ends this process before it is published, its objects are removed.
#[derive(Debug)]
pub struct DraftDomain {
    opened: LastOpenedStore,
    _at_end: SignalActionGuard,
}

impl DraftDomain {
    /// The draft of a domain at a location.
    pub fn prepare_with_signal_cleanup(location: &Location) -> Self {
        let opened = LastOpenedStore::default().create_as_drafts();
        let (draft, location) = (opened.clone(), location.clone());
        let at_end = on_termination_signal(move || {
            if draft.last().is_none() {
                return;
            }
            eprintln!("h5live: {location}: its objects are being removed; a second signal ends this at once");
            if let Err(error) = draft.close_without_commit() {
                let error = error_with_causes(&error);
                eprintln!("h5live: {location}: {error}; `h5live repair --reclaim {location}` removes what is left");
            }
        });
        DraftDomain { opened, _at_end: at_end }
    }

    /// The sessions on it.
    pub fn last_opened(&self) -> &LastOpenedStore {
        &self.opened
    }
}

/// Options by which `opened` keeps the session on a domain of an object store.
pub fn options_tracking_opened(options: Options, opened: &LastOpenedStore) -> Options {
    let connectors =
        Options::built_in_connectors().with_connector(HsdsFolderConnector::remembering_last_opened(opened.clone()));
    #[cfg(feature = "hsds-clouds")]
    let connectors =
        connectors.with_connector(h5live_hsds::HsdsCloudConnector::remembering_last_opened(opened.clone()));
    options.connectors(connectors)
}

/// Lets others see the domain that is a draft in the session that `opened` keeps.
///
/// # Errors
/// [`Error::OpenFailed`].
pub fn publish_domain(opened: &LastOpenedStore, location: &Location) -> Result<()> {
    let failed = |error: crate::model::Error| {
        let source = Box::new(error.into());
        Error::OpenFailed { location: location.to_string(), source }
    };
    opened.last().map_or(Ok(()), |store| store.publish_domain()).map_err(failed)
}
