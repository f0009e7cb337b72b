//! A comment on an object (format specification 4.0, IV.A.2.n).

use h5live_model::Name;

use super::{Message, MessageType};
use crate::{Record, Result, Wire};

/// The object comment message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comment {
    /// The comment.
    pub text: Name,
}

impl Record for Comment {
    const NAME: &'static str = "comment";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.nul_terminated_name("text", &mut self.text)
    }
}

impl Message for Comment {
    const TYPE: MessageType = MessageType::COMMENT;
}
