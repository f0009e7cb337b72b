//! `h5live manifest`: everything in a file as text that does not depend on how it is stored.

mod canonical;
mod columns;
mod escape;
mod render;
mod type_text;
mod walk;

pub use columns::{space_text, storage_text};
pub use escape::escape;
pub use type_text::{integer as integer_of, type_text};
