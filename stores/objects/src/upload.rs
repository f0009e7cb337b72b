//! Writing large objects in parts.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::PutPayload;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as ObjectPath;

use crate::client::{ClientState, ObjectClient};
use crate::counts::RequestKind;
use crate::error::{ObjectError, ObjectErrorKind, Result};
use crate::put::PutCondition;
use crate::tag::ObjectChangeTag;
use crate::wave::InFlightLimits;

/// Bytes of a part. Objects of no more bytes are written by one request.
const MIN_PART_BYTES: u64 = 8 << 20;
/// Parts of an object at most: clouds allow 10,000.
const MAX_PARTS: u64 = 9000;
/// Parts on their way at a time.
const PARTS_IN_FLIGHT: usize = 8;

/// An object whose parts are being written.
struct Upload {
    store: Arc<dyn MultipartStore>,
    path: ObjectPath,
    id: String,
}

impl ObjectClient {
    /// Writes a file as an object, which appears when it is complete. If it does not become complete, its parts are
    /// deleted. Returns its state.
    ///
    /// With `replace_existing`, an object that is there is replaced; otherwise it is an error. Of a file of more than 8 MiB, this
    /// is found out before and not when the object appears, because the parts of an object cannot be put together on a
    /// condition.
    ///
    /// # Errors
    /// [`ObjectErrorKind::Exists`], those of the object store, and those of the file.
    pub fn put_file(&self, key: &str, file: &Path, replace_existing: bool) -> Result<ObjectChangeTag> {
        let failed = |error: std::io::Error| {
            let cause = format!("{} cannot be read: {error}", file.display());
            ObjectError::new(ObjectErrorKind::Other, self.object_display_name(key), cause)
        };
        let mut source = File::open(file).map_err(failed)?;
        let len = source.metadata().map_err(failed)?.len();
        let Some(store) = self.0.optional_interfaces.parts.clone().filter(|_| len > MIN_PART_BYTES) else {
            if len > self.limits().max_get_bytes {
                let cause = format!("{len} bytes are more than are written at once");
                return Err(ObjectError::new(ObjectErrorKind::Unsupported, self.object_display_name(key), cause));
            }
            let mut bytes = Vec::new();
            source.read_to_end(&mut bytes).map_err(failed)?;
            let condition = if replace_existing { PutCondition::Always } else { PutCondition::Absent };
            return self.put(key, bytes, &condition);
        };
        let before = match self.head(key) {
            Ok(_) if !replace_existing => {
                return Err(ObjectError::new(ObjectErrorKind::Exists, self.object_display_name(key), ""));
            }
            Ok(meta) => meta.tag,
            Err(error) if error.kind == ObjectErrorKind::NotThere => ObjectChangeTag::default(),
            Err(error) => return Err(error),
        };
        let upload = Arc::new(self.begin_upload(key, store)?);
        let part_bytes = len.div_ceil(MAX_PARTS).max(MIN_PART_BYTES);
        let parts = self.put_parts(key, &upload, part_bytes, len, &mut source, failed);
        let done = parts.and_then(|parts| self.complete(key, &upload, parts, len, &before));
        if done.is_err() {
            // What is left there would cost something. The first error is the one that matters.
            let _ = self.spawn_and_wait(|state| async move {
                let abort = |_| upload.store.abort_multipart(&upload.path, &upload.id);
                let _ = state.request_with_retries(RequestKind::Delete, |_| false, abort).await;
                Ok(())
            });
        }
        done
    }

    fn begin_upload(&self, key: &str, store: Arc<dyn MultipartStore>) -> Result<Upload> {
        let (key, path) = (key.to_owned(), self.0.parse_key(key)?);
        self.spawn_and_wait(|state| async move {
            let id = state.request_with_retries(RequestKind::Put, |_| false, |_| store.create_multipart(&path)).await;
            let id = id.map_err(|failure| state.error(&key, &failure))?;
            Ok(Upload { store, path, id })
        })
    }

    /// Writes the parts. Each is read when there is room for it.
    fn put_parts(
        &self,
        key: &str,
        upload: &Arc<Upload>,
        part_bytes: u64,
        len: u64,
        source: &mut File,
        failed: impl Fn(std::io::Error) -> ObjectError,
    ) -> Result<Vec<PartId>> {
        let mut failure = None;
        let jobs = (0..len.div_ceil(part_bytes) as usize).map_while(|number| {
            let size = part_bytes.min(len - number as u64 * part_bytes);
            let mut bytes = vec![0; size as usize];
            if let Err(error) = source.read_exact(&mut bytes) {
                failure = Some(error);
                return None;
            }
            let (state, upload, key) = (self.0.clone(), upload.clone(), key.to_owned());
            Some((size, async move { state.write_part(&key, &upload, number, bytes.into()).await }))
        });
        let mut parts = Vec::new();
        let limits = InFlightLimits { max_requests: PARTS_IN_FLIGHT, max_bytes: part_bytes * PARTS_IN_FLIGHT as u64 };
        self.run_wave(jobs, limits, &mut |number, part| {
            parts.push((number, part));
            Ok::<(), ObjectError>(())
        })?;
        if let Some(error) = failure {
            return Err(failed(error));
        }
        parts.sort_by_key(|(number, _)| *number);
        Ok(parts.into_iter().map(|(_, part)| part).collect())
    }

    /// Puts the parts together. If the answer is lost, the object says whether that was done: it is another one than
    /// `before`, and has all bytes.
    fn complete(
        &self,
        key: &str,
        upload: &Arc<Upload>,
        parts: Vec<PartId>,
        len: u64,
        before: &ObjectChangeTag,
    ) -> Result<ObjectChangeTag> {
        let (owned, upload) = (key.to_owned(), upload.clone());
        let done = self.spawn_and_wait(|state| async move {
            let complete = |_| upload.store.complete_multipart(&upload.path, &upload.id, parts.clone());
            let done = state.request_with_retries(RequestKind::Put, |_| false, complete).await;
            Ok(match done {
                Ok(written) => Ok(ObjectChangeTag { etag: written.e_tag, version: written.version }),
                Err(failure) => Err((state.error(&owned, &failure), failure.attempts > 1)),
            })
        })?;
        match done {
            Ok(tag) => Ok(tag),
            Err((error, true)) => match self.head(key) {
                Ok(found) if found.size == len && found.tag != *before => Ok(found.tag),
                _ => Err(error),
            },
            Err((error, false)) => Err(error),
        }
    }
}

impl ClientState {
    async fn write_part(&self, key: &str, upload: &Upload, number: usize, bytes: Bytes) -> Result<PartId> {
        let put = |_| upload.store.put_part(&upload.path, &upload.id, number, PutPayload::from(bytes.clone()));
        let part = self.request_with_retries(RequestKind::Put, |_| false, put).await;
        self.counters.record_bytes_written(bytes.len() as u64);
        part.map_err(|failure| self.error(key, &failure))
    }
}
