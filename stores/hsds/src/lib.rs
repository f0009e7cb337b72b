//! The object store.
pub mod layout;
