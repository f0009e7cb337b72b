//! `h5live manifest`: everything in a file as text that does not depend on how it is stored.

mod canonical;
mod columns;
mod escape;
mod type_text;

pub use columns::{space_text, storage_text};
pub use type_text::integer as integer_of;
pub use type_text::type_text;
