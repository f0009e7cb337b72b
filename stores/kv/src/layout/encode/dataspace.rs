//! Dataspaces as `H5Sencode2` encodes them: the extent, then the selection.

use h5live_format::messages::DataspaceMessage;
use h5live_format::{
    LibVer, Record, Result as WireResult, StoredSelection, Width, Widths, Wire, decode, encode, encoded_len,
};
use h5live_model::{Dataspace, Selection, Shape};

use crate::layout::{RecordFormatError, Result};

/// The number of the dataspace message.
const DATASPACE_MESSAGE: u8 = 1;

/// The bounds of versions under which selections are encoded: regular hyperslabs stay regular.
const SELECTION_PROFILE: LibVer = LibVer::V112;

/// A dataspace in its envelope, with a selection of its elements.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct EncodedDataspace {
    space: DataspaceMessage,
    selection: StoredSelection,
}

impl EncodedDataspace {
    /// The library always writes the maximum of a shape.
    pub fn new(space: &Dataspace, selection: &Selection) -> Self {
        let rank = space.rank();
        let space = match space {
            Dataspace::Simple(shape) => Shape::with_max(shape.dims(), shape.max_dims()).map(Dataspace::Simple),
            _ => None,
        }
        .unwrap_or_else(|| space.clone());
        let selection = StoredSelection::new(SELECTION_PROFILE, rank, selection.clone());
        EncodedDataspace { space: DataspaceMessage::new(LibVer::Earliest, space), selection }
    }

    /// The shape. One whose maximum is its size is fixed.
    pub fn dataspace(&self) -> Dataspace {
        match &self.space.dataspace {
            Dataspace::Simple(shape) if shape.max_dims() == shape.dims() => {
                Dataspace::Simple(Shape::fixed(shape.dims()))
            }
            other => other.clone(),
        }
    }

    /// The selected elements.
    pub fn into_selection(self) -> Selection {
        self.selection.selection
    }
}

impl Record for EncodedDataspace {
    const NAME: &'static str = "encoded dataspace";

    fn wire(&mut self, w: &mut impl Wire) -> WireResult<()> {
        let message = w.derived_u8("message", DATASPACE_MESSAGE)?;
        w.require("message", message == DATASPACE_MESSAGE, message.into(), "1, a dataspace")?;
        w.version(0..=0, &mut 0)?;
        let outer = w.widths();
        let size = w.derived_u8("size of sizes", 8)?;
        let width = Width::new(size).filter(|width| matches!(width.bytes(), 2 | 4 | 8));
        let rule = "2, 4 or 8 bytes";
        let fault = h5live_format::Fault::InvalidValue { found: size.into(), rule };
        w.set_widths(Widths { length: width.ok_or_else(|| w.fault("size of sizes", fault))?, ..outer });
        // What cannot be encoded fails below, with the name of the field.
        let extent = if w.is_decoding() { 0 } else { encoded_len(&self.space, w.widths()).unwrap_or(0) };
        let extent = w.derived_uint("extent size", Width::FOUR, extent as u64)?;
        let start = w.position();
        w.record(&mut self.space)?;
        let used = w.position().saturating_sub(start) as u64;
        w.require("extent size", extent == used, extent, "that of the extent")?;
        w.set_widths(outer);
        w.record(&mut self.selection)
    }
}

/// Encodes a dataspace as `H5Sencode2` does. All elements are selected.
///
/// # Errors
/// [`RecordFormatError::Encode`] if the format cannot hold it.
pub fn encode_dataspace(space: &Dataspace) -> Result<Vec<u8>> {
    encode(&EncodedDataspace::new(space, &Selection::All), Widths::default()).map_err(RecordFormatError::from)
}

/// Decodes what [`encode_dataspace`], or `H5Sencode2`, has encoded. The selection is dropped.
///
/// # Errors
/// [`RecordFormatError::Decode`].
pub fn decode_dataspace(bytes: &[u8]) -> Result<Dataspace> {
    Ok(decode::<EncodedDataspace>(bytes, Widths::default())?.dataspace())
}
