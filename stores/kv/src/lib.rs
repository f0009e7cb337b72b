//! The key-value store: the HDF5 data model as keys and values, laid out as the DAOS connector lays it out.
//!
//! [`layout`] says which keys and values a container has. `docs/kv-layout.md` describes them byte by byte.
//!
//! Source: "HDF5 DAOS VOL Connector Design" (`specs/kv-daos-vol.md` of the shared documents).

pub mod engine;
pub mod layout;
