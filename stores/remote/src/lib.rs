//! Native HDF5 files on object stores and web servers: `s3://bucket/run.h5`, `gs://`, `az://`, `https://host/run.h5`.
//!
//! The native store reads them by [`ObjectBackedStorage`], a storage of bytes that are read by ranges. Metadata comes in large
//! blocks that are kept. The chunks of a read are looked up first. Then they are read together: in the order of the file,
//! near ones by one request, many requests at a time. All reads of a session are of one state of the object: if it was
//! replaced, they say so.

mod block_cache;
mod connector;
mod disk_cache;
mod location;
mod options;
mod storage;
#[cfg(test)]
mod tests;

pub use connector::RemoteConnector;
pub use location::RemoteLocation;
pub use options::Remote;
pub use storage::ObjectBackedStorage;
