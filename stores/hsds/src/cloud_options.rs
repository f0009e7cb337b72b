//! The options that only an object store in a bucket has.

use std::time::Duration;

use h5live_model::settings;
use h5live_objects::ObjectOptions;

use crate::engine::{BucketOptions, LeaseOptions};
use crate::options::Hsds;

settings! {
    connector "hsds+s3";
    /// The options of an object store in the schema of the Highly Scalable Data Service, in a bucket.
    pub struct HsdsCloud {
        /// How long the lease of a writer holds without renewal: so long after its death others may write.
        lease: Duration = BucketOptions::default().lease.ttl,
        /// Whether the lease is taken away from another writer, which must be dead.
        take: bool = false,
        /// Whether to write on an object store that cannot exclude two writers.
        unfenced: bool = false,
        /// The longest pause of a reader between two looks for commits.
        poll_interval: Duration = BucketOptions::default().longest_poll_pause,
    }
    included {
        /// What all object stores in this schema have.
        schema: Hsds,
        /// How the object store is reached.
        objects: ObjectOptions,
    }
}

impl HsdsCloud {
    /// How a session uses the bucket.
    pub(crate) fn request(&self) -> BucketOptions {
        BucketOptions {
            lease: LeaseOptions { ttl: self.lease, takes_over_unexpired: self.take, is_unfenced: self.unfenced },
            longest_poll_pause: self.poll_interval,
        }
    }
}
