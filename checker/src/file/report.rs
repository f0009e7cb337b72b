//! What the check of a file found.

/// Something that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The object that it belongs to; empty for the file as a whole.
    pub path: String,
    /// The structure, as in the format specification.
    pub structure: &'static str,
    /// Where the structure is, in bytes from the start of the file.
    pub offset: u64,
    /// What is wrong with it.
    pub cause: String,
}

/// What the check of a file found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// What is wrong.
    pub findings: Vec<Finding>,
}
