//! A blocking client of object stores: S3, Google Cloud Storage, Azure, web servers, local folders and memory.
//!
//! An [`ObjectClient`] reads, writes, lists and deletes objects by their names. Whoever calls it waits on a channel; the
//! requests run on two threads that all clients of the process share. So it may be called from a thread of any
//! asynchronous runtime, too.
//!
//! # RetriedBy
//! A request that fails in a way that may pass (no connection, a reset, half a body, the statuses 408, 429 and 5xx) is
//! made again, within the bounds of [`RequestLimits`]: so often, so long, with pauses that grow and are partly random.
//! What remains is an [`ObjectError`] that names the object.
//!
//! # Conditional writes whose answer is lost
//! An attempt of a conditional write may succeed and its answer be lost. The next attempt then finds that the condition
//! does not hold any more, because of the first one. So, when a condition fails after an attempt that may have
//! succeeded, the object is read. If its bytes are exactly those that were to be written, the write has succeeded. Two
//! things follow. An object that decides who of several is first must have something in it that only its writer
//! writes: otherwise two writers of the same bytes may both take it for theirs. And if another writer has replaced the
//! object since, the write is reported as one whose condition did not hold, although it was there for a while.
//!
//! # What a server cannot promise
//! An attempt that nobody waits for any more may still reach the server later, behind a later write of the same object.
//! What must not be overwritten so is to be written on a condition.

mod attempts;
mod cause;
mod client;
#[cfg(feature = "cloud")]
mod cloud;
mod counts;
mod delete;
mod error;
mod get;
mod limits;
mod list;
mod options;
mod place;
mod put;
mod ranges;
mod runtime;
mod server_text;
mod tag;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
#[cfg(feature = "cloud")]
mod transport;
mod upload;
mod wave;

pub use bytes::Bytes;
pub use client::ObjectClient;
pub use counts::RequestCounts;
pub use error::{ObjectError, ObjectErrorKind, Result, strip_url_queries};
pub use get::{GetCondition, GetItem, GetOutcome, ObjectBytes};
pub use limits::RequestLimits;
pub use list::ListEntry;
pub use options::ObjectOptions;
pub use place::{Cloud, ObjectStoreLocation};
pub use put::{PutCondition, PutItem};
pub use ranges::{MergedRange, RangeMergeLimits, merge_ranges};
pub use tag::{ObjectChangeTag, ObjectMeta};
pub use wave::InFlightLimits;
