//! Everything in a file as text that does not depend on how it is stored.

mod canonical;
mod columns;
mod listing;
mod render;

pub use columns::{space_text, storage_text};
pub use listing::{Listing, ListingEntry, ListingLine};
pub use render::{ManifestRenderer, ReadRawElements, UnreadCause};
