//! Of what something is done.

use crate::ObjectId;

/// Of what something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectScope<'a> {
    /// Of everything in the store.
    All,
    /// Of these objects.
    Objects(&'a [ObjectId]),
}
