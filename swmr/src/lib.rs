//! The native HDF5 store: open modes and locks, the writer's publish protocol, the reader's retry protocol, recovery.

mod lease;
mod locking;

pub use locking::{Holder, Locking, Writer};
