//! Who makes requests again that have failed.

/// Who makes requests again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetriedBy {
    Client,
    Library,
}
