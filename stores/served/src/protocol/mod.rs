//! The messages between the client and the server, version 1. Each is described once, for both sides.
//!
//! A request is a POST with a message as its body; its answer is a message, too. An error has a status, a sentence in JSON
//! as every other error of the server, and the header [`FAULT_HEADER`] with its kind ([`ServedErrorKind`]).
//!
//! Numbers are little-endian. Types, shapes, filters, fill values and selections have the form that they have in HDF5 files,
//! so they are checked as those are: neither side trusts the other.

mod chunks;
mod codec;
mod fault;
mod messages;
mod object;
mod spec;
#[cfg(test)]
mod tests;

pub use chunks::{ChunkAnswer, ChunkWanted, ChunksAnswer, ChunksRequest, IndexAnswer, IndexRequest};
use codec::wire_message_head;
pub use fault::ServedErrorKind;
use h5live_format::{DecodeError, EncodeError, Record, Widths, decode, encode_mut};
pub use messages::{
    AttributesAnswer, AttributesRequest, BlobsAnswer, BlobsRequest, LinksAnswer, LinksRequest, ObjectsAnswer,
    ObjectsRequest, ReferenceAnswer, ReferenceRequest, ReferentAnswer, ReferentRequest, SessionAnswer,
};
pub use object::{ObjectFailure, ObjectRecord};

/// Below this path the server answers.
pub const BASE_PATH: &str = "/h5live/v1";
/// The type of messages.
pub const CONTENT_TYPE: &str = "application/x-h5live";
/// The header with the kind of an error.
pub const FAULT_HEADER: &str = "h5live-fault";
/// Most bytes of the body of a request.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;
/// Most bytes of elements of an answer, unless one element or the part of a chunk that was asked for has more.
pub const MAX_ANSWER_DATA_BYTES: usize = 32 << 20;
/// Most objects of a request.
pub const MAX_REQUEST_OBJECTS: usize = 1024;
/// Most links, and most attributes, that come with an object.
pub const MAX_LISTED_ENTRIES: usize = 1024;
/// Most bytes of the attributes that come with an object.
pub const MAX_LISTED_ATTRIBUTE_BYTES: usize = 64 << 10;

/// The bytes of a message.
///
/// # Errors
/// If something does not fit its field.
pub fn encode_message<R: Record>(message: &mut R) -> Result<Vec<u8>, EncodeError> {
    encode_mut(message, Widths::default())
}

/// The message that these bytes are.
///
/// # Errors
/// If they are none.
pub fn decode_message<R: Record + Default>(bytes: &[u8]) -> Result<R, DecodeError> {
    decode(bytes, Widths::default())
}
