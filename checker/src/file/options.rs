//! What a check looks at, and what it reports.

use h5live_model::FilterEngine;

/// How a file is checked.
#[derive(Debug, Clone, Copy)]
pub struct CheckOptions<'a> {
    /// Whether bytes that nothing uses are reported. They are no fault.
    pub reports_leaks: bool,
    /// Whether to make a map of the file: which structure uses which bytes.
    pub builds_space_map: bool,
    /// Whether a writer may have the file open, or may have died: status flags, and sums that a writer brings into
    /// order last, are notes then, and the end of the file may move.
    pub may_be_live: bool,
    /// Whether harmless contradictions are findings, too: objects that state more links than there are (as groups that
    /// link to each other in a circle leave them), and sums of heaps (which libhdf5 gets wrong when heaps shrink).
    pub reports_harmless_mismatches: bool,
    /// Whether the filters of all chunks are undone, which shows damage to compressed and checksummed data.
    pub unfilters_all_chunks: bool,
    /// Most bytes of raw data that are read for the heap objects to which values lead.
    pub max_total_value_bytes: u64,
    /// Most bytes of a chunk, before or after its filters, that is read as a whole.
    pub max_chunk_bytes: u64,
    /// Undoes the filters of heaps and chunks; without it, what went through filters is not looked into. Of what it cannot
    /// decode, it says whether that is a fault of the file ([`h5live_model::is_unfilter_limitation`]).
    pub filter_engine: Option<&'a dyn FilterEngine>,
}

impl Default for CheckOptions<'_> {
    fn default() -> Self {
        CheckOptions {
            reports_leaks: false,
            builds_space_map: false,
            may_be_live: false,
            reports_harmless_mismatches: false,
            unfilters_all_chunks: false,
            max_total_value_bytes: 1 << 30,
            max_chunk_bytes: 256 << 20,
            filter_engine: None,
        }
    }
}
