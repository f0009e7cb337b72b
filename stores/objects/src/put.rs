//! Writing objects.

use std::sync::Arc;

use bytes::Bytes;
use object_store::{Error as LibraryError, PutMode, PutOptions, PutPayload, UpdateVersion};

use crate::client::{ClientState, ObjectClient};
use crate::counts::RequestKind;
use crate::error::{ObjectError, ObjectErrorKind, Result};
use crate::get::{GetCondition, GetOutcome};
use crate::tag::ObjectChangeTag;
use crate::wave::InFlightLimits;

/// On what condition an object is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PutCondition {
    /// None: what is there is replaced.
    #[default]
    Always,
    /// There is no such object: [`ObjectErrorKind::Exists`] otherwise.
    Absent,
    /// The object is in this state: [`ObjectErrorKind::Changed`] otherwise, also if it is not there.
    /// [`ObjectErrorKind::Unsupported`] if the store cannot promise this: local folders, and servers that give no tags.
    Matching(ObjectChangeTag),
}

/// An object to be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PutItem {
    /// Its key.
    pub key: String,
    /// All of its bytes.
    pub bytes: Bytes,
    /// On what condition it is written.
    pub condition: PutCondition,
}

impl ObjectClient {
    /// Writes an object whole: nobody sees a part of it. Returns its new state.
    ///
    /// A condition that an earlier attempt of the same call has undone by succeeding counts as met: see the
    /// documentation of the crate.
    ///
    /// # Errors
    /// By the condition, and others.
    pub fn put(&self, key: &str, bytes: impl Into<Bytes>, condition: &PutCondition) -> Result<ObjectChangeTag> {
        let item = PutItem { key: key.to_owned(), bytes: bytes.into(), condition: condition.clone() };
        self.spawn_and_wait(|state| async move { state.write(&item).await })
    }

    /// Writes many objects in any order. `sink` gets the number of each and its new state, on this thread. `items` is
    /// asked for the next one only when there is room for it.
    ///
    /// # Errors
    /// The first one, also of `sink`. Any of the others may have been written then.
    pub fn put_many<E: From<ObjectError>>(
        &self,
        items: impl IntoIterator<Item = PutItem>,
        limits: InFlightLimits,
        sink: &mut dyn FnMut(usize, ObjectChangeTag) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let jobs = items.into_iter().map(|item| {
            let state = self.0.clone();
            (item.bytes.len() as u64, async move { state.write(&item).await })
        });
        self.run_wave(jobs, limits, sink)
    }
}

impl PutCondition {
    fn mode(&self) -> PutMode {
        match self {
            PutCondition::Always => PutMode::Overwrite,
            PutCondition::Absent => PutMode::Create,
            PutCondition::Matching(tag) => {
                PutMode::Update(UpdateVersion { e_tag: tag.etag.clone(), version: tag.version.clone() })
            }
        }
    }

    fn is_refusal(&self, error: &LibraryError) -> bool {
        match self {
            PutCondition::Always => false,
            PutCondition::Absent => {
                matches!(error, LibraryError::AlreadyExists { .. } | LibraryError::Precondition { .. })
            }
            PutCondition::Matching(_) => {
                matches!(error, LibraryError::Precondition { .. } | LibraryError::NotFound { .. })
            }
        }
    }
}

impl ClientState {
    async fn write(self: &Arc<Self>, item: &PutItem) -> Result<ObjectChangeTag> {
        let PutItem { key, bytes, condition } = item;
        let path = self.parse_key(key)?;
        if matches!(condition, PutCondition::Matching(tag) if tag.lacks_etag()) {
            let cause = "it gives no tags on which a write could depend";
            return Err(ObjectError::new(ObjectErrorKind::Unsupported, self.object_display_name(key), cause));
        }
        let put = |_| async {
            let options = PutOptions { mode: condition.mode(), ..PutOptions::default() };
            self.store.put_opts(&path, PutPayload::from(bytes.clone()), options).await
        };
        // S3 says so if two such writes are made at a time: neither has lost yet.
        let is_undecided = |error: &LibraryError| {
            matches!((condition, error), (PutCondition::Matching(_), LibraryError::AlreadyExists { .. }))
        };
        let failure = match self.request_with_retries(RequestKind::Put, is_undecided, put).await {
            Ok(written) => {
                self.counters.record_bytes_written(bytes.len() as u64);
                return Ok(ObjectChangeTag { etag: written.e_tag, version: written.version });
            }
            Err(failure) => failure,
        };
        if !condition.is_refusal(&failure.error) {
            return Err(self.error(key, &failure));
        }
        // An earlier attempt may have succeeded, and its answer may be lost.
        if failure.attempts > 1
            && let Ok(GetOutcome::Object(found)) = self.fetch(key, &GetCondition::Always).await
            && found.bytes == *bytes
        {
            self.counters.record_bytes_written(bytes.len() as u64);
            return Ok(found.meta.tag);
        }
        let kind = match condition {
            PutCondition::Absent => ObjectErrorKind::Exists,
            _ => ObjectErrorKind::Changed,
        };
        Err(ObjectError::new(kind, self.object_display_name(key), ""))
    }
}
