//! Files that an `h5live serve` serves, as a store: `h5live+http://host:port/run.h5`.
//!
//! [`protocol`] has the messages, which the server uses, too. The client (feature `client`) keeps what it knows of objects,
//! asks for many at a time, and reads chunks as they are stored. It is told of changes by the server's events.

pub mod protocol;

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod connector;
#[cfg(feature = "client")]
mod dataset;
#[cfg(feature = "client")]
mod error;
#[cfg(feature = "client")]
mod events;
#[cfg(feature = "client")]
mod http;
#[cfg(feature = "client")]
mod location;
#[cfg(feature = "client")]
mod object_cache;
#[cfg(feature = "client")]
mod options;
#[cfg(feature = "client")]
mod shared;
#[cfg(feature = "client")]
mod sse;
#[cfg(feature = "client")]
mod store;

#[cfg(feature = "client")]
pub use connector::ServedConnector;
#[cfg(feature = "client")]
pub use options::Served;
