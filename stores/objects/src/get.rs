//! Reading objects.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::{GetOptions, GetRange, ObjectStoreExt};

use crate::cause::{BodyLengthMismatch, object_store_error};
use crate::client::{ClientState, ObjectClient};
use crate::counts::RequestKind;
use crate::error::{ObjectError, ObjectErrorKind, Result};
use crate::ranges::{MergedRange, RangeMergeLimits, merge_ranges};
use crate::tag::{ObjectChangeTag, ObjectMeta};
use crate::wave::InFlightLimits;

/// On what condition an object is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GetCondition {
    /// None.
    #[default]
    Always,
    /// It is not in this state: [`GetOutcome::NotModified`] otherwise. If the tag is empty, it is read.
    NotMatching(ObjectChangeTag),
    /// It is in this state: [`ObjectErrorKind::Changed`] otherwise. If the tag is empty, it is read.
    Matching(ObjectChangeTag),
}

/// What a read found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GetOutcome {
    /// The object.
    Object(ObjectBytes),
    /// The object is in the state that the condition names.
    NotModified,
}

/// Bytes of an object, and what was known of it when they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectBytes {
    /// The bytes.
    pub bytes: Bytes,
    /// Of the whole object.
    pub meta: ObjectMeta,
}

/// An object to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetItem {
    /// Its key.
    pub key: String,
    /// Bytes that it probably has: for the bound on bytes on their way.
    pub estimated_bytes: u64,
    /// On what condition it is read.
    pub condition: GetCondition,
}

impl ObjectClient {
    /// Reads an object.
    ///
    /// # Errors
    /// [`ObjectErrorKind::NotThere`], [`ObjectErrorKind::Changed`] by the condition, and others; also if it has more
    /// bytes than the limits allow.
    pub fn get(&self, key: &str, condition: &GetCondition) -> Result<GetOutcome> {
        let (key, condition) = (key.to_owned(), condition.clone());
        self.spawn_and_wait(|state| async move { state.fetch(&key, &condition).await })
    }

    /// What is known of an object.
    ///
    /// # Errors
    /// As [`ObjectClient::get`].
    pub fn head(&self, key: &str) -> Result<ObjectMeta> {
        let key = key.to_owned();
        self.spawn_and_wait(|state| async move {
            let path = state.parse_key(&key)?;
            let head = |_| async { state.store.head(&path).await };
            let found = state.request_with_retries(RequestKind::Head, |_| false, head).await;
            found.map(|meta| ObjectMeta::from(&meta)).map_err(|failure| state.error(&key, &failure))
        })
    }

    /// Reads a range of an object, which may end behind its end: then there are fewer bytes.
    ///
    /// # Errors
    /// As [`ObjectClient::get`]; [`ObjectErrorKind::InvalidInput`] if the range is empty.
    pub fn get_range(&self, key: &str, range: Range<u64>, condition: &GetCondition) -> Result<ObjectBytes> {
        let (key, condition) = (key.to_owned(), condition.clone());
        self.spawn_and_wait(|state| async move { state.fetch_range(&key, GetRange::Bounded(range), &condition).await })
    }

    /// Reads the last bytes of an object: all of it, if it has fewer.
    ///
    /// # Errors
    /// As [`ObjectClient::get`].
    pub fn get_suffix(&self, key: &str, bytes: u64, condition: &GetCondition) -> Result<ObjectBytes> {
        let (key, condition) = (key.to_owned(), condition.clone());
        self.spawn_and_wait(|state| async move { state.fetch_range(&key, GetRange::Suffix(bytes), &condition).await })
    }

    /// Reads the first bytes of an object and, at the same time, its last ones, if the object store has such reads. The
    /// two may be of different states.
    ///
    /// # Errors
    /// As [`ObjectClient::get`].
    pub fn get_start_and_try_suffix(
        &self,
        key: &str,
        first_bytes: u64,
        last_bytes: u64,
    ) -> Result<(ObjectBytes, Option<ObjectBytes>)> {
        let key = key.to_owned();
        self.spawn_and_wait(|state| async move {
            let always = GetCondition::Always;
            let begin = state.fetch_range(&key, GetRange::Bounded(0..first_bytes), &always);
            let end = state.fetch_range(&key, GetRange::Suffix(last_bytes), &always);
            match state.supports_suffix_ranges {
                true => {
                    // Without the end, it is read when it is needed.
                    let (begin, end) = futures::future::join(begin, end).await;
                    Ok((begin?, end.ok()))
                }
                false => Ok((begin.await?, None)),
            }
        })
    }

    /// Reads ranges of an object, each within its bytes. Those that are near each other are read by one request
    /// ([`merge_ranges`]). `sink` gets the number of a range and its bytes, in any order, on this thread.
    ///
    /// # Errors
    /// The first one, also of `sink`.
    pub fn get_ranges<E: From<ObjectError>>(
        &self,
        key: &str,
        ranges: &[Range<u64>],
        condition: &GetCondition,
        merge_limits: &RangeMergeLimits,
        limits: InFlightLimits,
        sink: &mut dyn FnMut(usize, Bytes) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for (number, _) in ranges.iter().enumerate().filter(|(_, range)| range.is_empty()) {
            sink(number, Bytes::new())?;
        }
        let merged = merge_ranges(ranges, merge_limits);
        let requests = merged.iter().map(|request| request.range.clone()).collect();
        self.get_ranges_unmerged(key, requests, condition, limits, &mut |number, read| {
            let MergedRange { range, range_indices: parts } = &merged[number];
            for part in parts {
                let (start, end) = (ranges[*part].start - range.start, ranges[*part].end - range.start);
                sink(*part, read.bytes.slice(start as usize..end as usize))?;
            }
            Ok(())
        })
    }

    /// Reads ranges of an object by one request each, none of which is empty. A range ends within the object.
    ///
    /// # Errors
    /// As [`ObjectClient::get_ranges`].
    pub fn get_ranges_unmerged<E: From<ObjectError>>(
        &self,
        key: &str,
        ranges: Vec<Range<u64>>,
        condition: &GetCondition,
        limits: InFlightLimits,
        sink: &mut dyn FnMut(usize, ObjectBytes) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (key, condition): (Arc<str>, _) = (key.into(), Arc::new(condition.clone()));
        let jobs = ranges.into_iter().map(|range| {
            let (state, key, condition) = (self.0.clone(), key.clone(), condition.clone());
            let len = range.end - range.start;
            let work = async move {
                let read = state.fetch_range(&key, GetRange::Bounded(range), &condition).await?;
                match read.bytes.len() as u64 == len {
                    true => Ok(read),
                    false => Err(state.shrunk(&key)),
                }
            };
            (len, work)
        });
        self.run_wave(jobs, limits, sink)
    }

    /// Reads many objects. `sink` gets the number of each and what was found, in any order, on this thread. `None`: there
    /// is no such object.
    ///
    /// # Errors
    /// The first one, also of `sink`.
    pub fn get_many<E: From<ObjectError>>(
        &self,
        items: impl IntoIterator<Item = GetItem>,
        limits: InFlightLimits,
        sink: &mut dyn FnMut(usize, Option<GetOutcome>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let jobs = items.into_iter().map(|item| {
            let state = self.0.clone();
            let work = async move {
                match state.fetch(&item.key, &item.condition).await {
                    Ok(found) => Ok(Some(found)),
                    Err(error) if error.kind == ObjectErrorKind::NotThere => Ok(None),
                    Err(error) => Err(error),
                }
            };
            (item.estimated_bytes, work)
        });
        self.run_wave(jobs, limits, sink)
    }
}

impl GetCondition {
    fn options(&self) -> GetOptions {
        match self {
            GetCondition::Always => GetOptions::default(),
            GetCondition::NotMatching(tag) => GetOptions { if_none_match: tag.etag.clone(), ..GetOptions::default() },
            GetCondition::Matching(tag) => GetOptions { if_match: tag.etag.clone(), ..GetOptions::default() },
        }
    }

    /// Whether a server that does not know of conditions has sent another state than the one that was asked for.
    fn excludes(&self, found: &ObjectChangeTag) -> bool {
        match self {
            GetCondition::Matching(tag) => !tag.lacks_etag() && found.etag != tag.etag,
            _ => false,
        }
    }

    /// Whether such a server has sent what is known.
    fn is_known(&self, found: &ObjectChangeTag) -> bool {
        matches!(self, GetCondition::NotMatching(tag) if !tag.lacks_etag() && found.etag == tag.etag)
    }
}

impl ClientState {
    pub(crate) async fn fetch(&self, key: &str, condition: &GetCondition) -> Result<GetOutcome> {
        let path = self.parse_key(key)?;
        let limit = self.limits.max_get_bytes;
        let read = |_| async {
            let found = self.store.get_opts(&path, condition.options()).await?;
            let meta = ObjectMeta::from(&found.meta);
            if meta.size > limit || condition.excludes(&meta.tag) || condition.is_known(&meta.tag) {
                return Ok(ObjectBytes { bytes: Bytes::new(), meta });
            }
            let bytes = found.bytes().await?;
            check_len(&bytes, meta.size)?;
            Ok(ObjectBytes { bytes, meta })
        };
        match self.request_with_retries(RequestKind::Get, |_| false, read).await {
            Ok(read) if condition.excludes(&read.meta.tag) => Err(self.changed(key)),
            Ok(read) if condition.is_known(&read.meta.tag) => Ok(GetOutcome::NotModified),
            Ok(read) if read.meta.size > limit => Err(self.too_large(key, read.meta.size)),
            Ok(read) => {
                self.counters.record_bytes_read(read.bytes.len() as u64);
                Ok(GetOutcome::Object(read))
            }
            Err(failure) if matches!(failure.error, object_store::Error::NotModified { .. }) => {
                Ok(GetOutcome::NotModified)
            }
            Err(failure) => Err(self.error(key, &failure)),
        }
    }

    async fn fetch_range(&self, key: &str, range: GetRange, condition: &GetCondition) -> Result<ObjectBytes> {
        let path = self.parse_key(key)?;
        let limit = self.limits.max_get_bytes;
        let read = |_| async {
            let options = GetOptions { range: Some(range.clone()), ..condition.options() };
            let found = self.store.get_opts(&path, options).await?;
            let (meta, len) = (ObjectMeta::from(&found.meta), found.range.end.saturating_sub(found.range.start));
            if len > limit || condition.excludes(&meta.tag) {
                return Ok((ObjectBytes { bytes: Bytes::new(), meta }, len));
            }
            let bytes = found.bytes().await?;
            check_len(&bytes, len)?;
            Ok((ObjectBytes { bytes, meta }, len))
        };
        match self.request_with_retries(RequestKind::Get, |_| false, read).await {
            Ok((read, _)) if condition.excludes(&read.meta.tag) => Err(self.changed(key)),
            Ok((_, len)) if len > limit => Err(self.too_large(key, len)),
            Ok((read, _)) => {
                self.counters.record_bytes_read(read.bytes.len() as u64);
                Ok(read)
            }
            Err(failure) => Err(self.error(key, &failure)),
        }
    }

    fn changed(&self, key: &str) -> ObjectError {
        ObjectError::new(ObjectErrorKind::Changed, self.object_display_name(key), "")
    }

    fn shrunk(&self, key: &str) -> ObjectError {
        ObjectError::new(ObjectErrorKind::Changed, self.object_display_name(key), "it is shorter than it was")
    }

    fn too_large(&self, key: &str, bytes: u64) -> ObjectError {
        let cause = format!("{bytes} bytes are more than are read at once");
        ObjectError::new(ObjectErrorKind::InvalidInput, self.object_display_name(key), cause)
    }
}

fn check_len(bytes: &Bytes, expected: u64) -> object_store::Result<()> {
    match bytes.len() as u64 {
        found if found == expected => Ok(()),
        found => Err(object_store_error(BodyLengthMismatch { found, expected })),
    }
}
