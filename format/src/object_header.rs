//! Object headers: the messages that make an object, in a first chunk and its continuations (format specification
//! 4.0, IV.A.1).

mod body;
mod chunk;
mod prefix;
mod raw_message;

pub use body::MessageBody;
pub use chunk::{ContinuationChunk, FirstHeaderChunk};
pub use prefix::{AttributePhaseChange, HeaderTimes, ObjectHeaderPrefix};
pub use raw_message::{MessageFlags, RawMessage};

#[cfg(test)]
mod tests;
