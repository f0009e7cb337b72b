//! The external files of a dataset's property list.

use h5live_format::{Record, Result as WireResult, Wire};
use h5live_model::ExternalPiece;

use super::property_list::{wire_count, wire_sized};

/// One piece of a raw file.
#[derive(Debug, Clone, Default)]
struct EncodedPiece(ExternalPiece);

impl Record for EncodedPiece {
    const NAME: &'static str = "external file";

    fn wire(&mut self, w: &mut impl Wire) -> WireResult<()> {
        let length = wire_count(w, "name length", self.0.name.as_bytes().len().saturating_add(1), 1)?;
        let start = w.position();
        w.nul_terminated_name("name", &mut self.0.name)?;
        let used = w.position().saturating_sub(start);
        w.require("name length", length == used, length as u64, "that of the name with its NUL")?;
        wire_sized(w, "offset", &mut self.0.offset)?;
        wire_sized(w, "size", &mut self.0.size)
    }
}

/// All pieces, one after the other.
pub(super) fn wire_external_files(w: &mut impl Wire, files: &mut Vec<ExternalPiece>) -> WireResult<()> {
    let count = wire_count(w, "external files", files.len(), 7)?;
    if w.is_decoding() {
        files.clear();
        files.resize(count, ExternalPiece::default());
    }
    for file in files {
        let mut encoded = EncodedPiece(std::mem::take(file));
        w.record(&mut encoded)?;
        *file = encoded.0;
    }
    Ok(())
}
