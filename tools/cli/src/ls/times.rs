//! Who owns a file, and when its objects were made and changed, where the store keeps that.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use h5live::{File, Location};
use serde_json::Value as Json;

use crate::error::Result;
use crate::model::{ObjectId, ObjectTimes};
use crate::{open, utc};

/// What a long listing shows of the owner and the times.
#[derive(Debug, Default)]
pub struct OwnerAndTimesSource {
    #[cfg(feature = "hsds")]
    opened: h5live_hsds::LastOpenedStore,
}

/// When an object was made, and when it was changed last.
#[derive(Debug, Default)]
pub struct EntryTimes {
    created: Option<SystemTime>,
    modified: Option<SystemTime>,
}

impl OwnerAndTimesSource {
    /// Opens a file to list it.
    ///
    /// # Errors
    /// As [`open::for_reading`].
    pub fn open_and_remember(&self, location: &Location) -> Result<File> {
        #[cfg(feature = "hsds")]
        if open::is_hsds_location(location).unwrap_or(false) {
            let options = crate::draft_domain::options_tracking_opened(open::command_line_options(), &self.opened);
            return Ok(options.read().open(location)?);
        }
        open::for_reading(location)
    }

    /// The owner, where the store has one.
    pub fn owner(&self) -> Option<String> {
        #[cfg(feature = "hsds")]
        return self.opened.last()?.owner();
        #[cfg(not(feature = "hsds"))]
        None
    }

    /// The times of an object.
    pub fn times(&self, file: &File, id: ObjectId) -> EntryTimes {
        #[cfg(feature = "hsds")]
        if let Some(store) = self.opened.last() {
            let (created, modified) = store.created_and_modified(id).unwrap_or_default();
            return EntryTimes { created, modified };
        }
        let times = file.store().info(id).ok().and_then(|info| info.times).unwrap_or_default();
        EntryTimes::of_object(&times)
    }
}

impl EntryTimes {
    fn of_object(times: &ObjectTimes) -> Self {
        let time = |seconds: i64| {
            let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0)?;
            UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
        };
        EntryTimes { created: time(times.birth), modified: time(times.change.max(times.modification)) }
    }

    /// For people: when it was changed.
    pub fn modified_suffix(&self) -> String {
        self.modified.map_or(String::new(), |at| format!("  {}", utc::iso8601_seconds(at)))
    }

    /// Puts them into what programs read of an entry.
    pub fn put_json(&self, described: &mut Json) {
        for (name, at) in [("created", self.created), ("modified", self.modified)] {
            if let Some(at) = at {
                described[name] = utc::iso8601_seconds(at).into();
            }
        }
    }
}
