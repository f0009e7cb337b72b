//! Datatypes as `H5Tencode` encodes them.

use h5live_format::messages::DatatypeMessage;
use h5live_format::{Record, Result as WireResult, Widths, Wire, decode, encode};
use h5live_model::Datatype;

use super::memory_form;
use crate::layout::{RecordFormatError, Result};

/// The number of the datatype message.
const DATATYPE_MESSAGE: u8 = 3;

/// A datatype in its envelope: the number of its message, a version, the message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct EncodedDatatype(pub DatatypeMessage);

impl EncodedDatatype {
    /// The type as it is in memory, in the version that the library gives to new types.
    pub fn new(datatype: &Datatype) -> Self {
        EncodedDatatype(DatatypeMessage { min_composite_version: 1, datatype: memory_form::in_memory(datatype) })
    }

    /// The type as it is in the container.
    pub fn container_datatype(&self) -> Datatype {
        memory_form::in_container(&self.0.datatype)
    }
}

impl Record for EncodedDatatype {
    const NAME: &'static str = "encoded datatype";

    fn wire(&mut self, w: &mut impl Wire) -> WireResult<()> {
        let message = w.derived_u8("message", DATATYPE_MESSAGE)?;
        w.require("message", message == DATATYPE_MESSAGE, message.into(), "3, a datatype")?;
        w.version(0..=0, &mut 0)?;
        w.record(&mut self.0)
    }
}

/// Encodes a datatype of the container as `H5Tencode` does: in the form that it has in the memory of a program.
///
/// # Errors
/// [`RecordFormatError::Encode`] if the format cannot hold it.
pub fn encode_datatype(datatype: &Datatype) -> Result<Vec<u8>> {
    encode(&EncodedDatatype::new(datatype), Widths::default()).map_err(RecordFormatError::from)
}

/// Decodes what [`encode_datatype`], or `H5Tencode`, has encoded. Elements that lead elsewhere get the sizes that they
/// have in the container.
///
/// # Errors
/// [`RecordFormatError::Decode`].
pub fn decode_datatype(bytes: &[u8]) -> Result<Datatype> {
    Ok(decode::<EncodedDatatype>(bytes, Widths::default())?.container_datatype())
}
