//! Maps in stores that have none of their own: each map is a group with a table of changes.
//!
//! A [`MapTableStore`] is a layer on an open store. All that is no map passes through. A map is a group with a mark
//! ([`layout::MARK_ATTRIBUTE`]) and one dataset ([`layout::TABLE_LINK`]) of rows of key, value and kind of change, to which each change
//! is appended. Later rows count. So a batch of changes is rows below one extent: a reader sees all of it or nothing, what
//! was published never changes, and a writer that dies leaves whole batches. The session keeps an index of the keys in
//! memory. `docs/maps.md` describes the table byte by byte.

mod error;
mod layer;
pub mod layout;
mod maps;
mod row_form;
mod rows;
mod scan;
mod table;
mod writer;

pub use error::MapTableError;
pub use layer::MapTableStore;
