//! Objects to which no path leads.

use h5live_format::{Addr, FirstHeaderChunk, ObjectHeaderPrefix, decode_prefix};

use super::FileCheckReport;
use super::walk::FileWalk;

/// Bytes that are searched at a time.
const WINDOW_BYTES: u64 = 1 << 20;
/// The first bytes of an object header of version 2.
const SIGNATURE: &[u8; 4] = b"OHDR";

impl FileWalk<'_> {
    /// The addresses of whole object headers of version 2 in unused bytes (`gaps`: start, and one past the end). Links in a
    /// circle keep objects to which no path leads any more, and so does a writer that died before it had linked or
    /// deleted an object.
    pub(super) fn unreachable_headers(&self, gaps: &[(u64, u64)]) -> Vec<Addr> {
        let mut found = Vec::new();
        for (from, to) in gaps {
            let mut at = *from;
            while at < *to {
                let Ok(window) = self.source.read(at, WINDOW_BYTES.min(to - at)) else { break };
                for (place, _) in window.windows(SIGNATURE.len()).enumerate().filter(|(_, bytes)| bytes == SIGNATURE) {
                    if found.len() == FileCheckReport::MAX_FINDINGS {
                        return found;
                    }
                    let addr = at.saturating_add(place as u64);
                    if self.is_header(addr, *to) {
                        found.push(Addr::new(addr));
                    }
                }
                // A signature may lie across two windows.
                at = at.saturating_add((window.len() as u64).saturating_sub(SIGNATURE.len() as u64 - 1)).max(at + 1);
                if (window.len() as u64) < WINDOW_BYTES {
                    break;
                }
            }
        }
        found
    }

    /// Whether the first chunk of an object header lies at an address, whole and before `end`.
    fn is_header(&self, addr: u64, end: u64) -> bool {
        let read = |len: u64| self.source.read(addr, len.min(end - addr)).ok();
        let prefix = read(ObjectHeaderPrefix::MAX_LEN as u64);
        let prefix = prefix.and_then(|bytes| decode_prefix::<ObjectHeaderPrefix>(&bytes, self.widths).ok());
        let Some((prefix, _)) = prefix else { return false };
        let bytes = Some(prefix.first_chunk_len()).filter(|len| *len <= end - addr).and_then(read);
        bytes.is_some_and(|bytes| decode_prefix::<FirstHeaderChunk>(&bytes, self.widths).is_ok())
    }
}
