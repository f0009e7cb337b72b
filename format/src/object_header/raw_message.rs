//! Messages as an object header frames them, before their bodies are understood.

use crate::messages::{Message, MessageType};
use crate::{DecodeError, EncodeError, Fault, Record, Result, Widths, Wire, decode_prefix, with_encoded};

use super::MessageBody;

/// The flags of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MessageFlags(pub u8);

impl MessageFlags {
    /// The body never changes.
    pub const CONSTANT: MessageFlags = MessageFlags(0x01);

    /// Whether the body says where the message is, instead of being it.
    pub fn is_shared(self) -> bool {
        self.0 & 0x02 != 0
    }

    /// Whether the message is in the file's index of shared messages, though only this header has it.
    pub fn is_indexed_for_sharing(self) -> bool {
        self.0 & 0x40 != 0
    }

    /// Whether a program that did not know the type changed the object, so that the message may no longer be true of
    /// it.
    pub fn was_unknown_to_writer(self) -> bool {
        self.0 & 0x20 != 0
    }

    /// Whether a program that does not know the type must not open the object, or not for writing.
    pub fn must_be_known(self, for_writing: bool) -> bool {
        self.0 & 0x80 != 0 || (for_writing && self.0 & 0x08 != 0)
    }

    fn fault(self, kind: MessageType) -> Option<&'static str> {
        let has = |mask| self.0 & mask == mask;
        if has(0x06) {
            Some("shared and not to be shared")
        } else if has(0x28) {
            Some("unknown to a writer, and refused by it")
        } else if has(0x20) && !has(0x10) {
            Some("marked as unknown without leave")
        } else if kind.is_known() && !kind.is_shareable() && (has(0x02) || has(0x40)) {
            Some("shared, of a type that is never shared")
        } else {
            None
        }
    }
}

/// A message of an object header: its type, flags and body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawMessage {
    /// The type.
    pub kind: MessageType,
    /// The flags.
    pub flags: MessageFlags,
    /// The order of creation (of attributes), where the header tracks it.
    pub creation_index: u16,
    /// The body; zeros for unused space.
    pub body: MessageBody,
}

impl RawMessage {
    /// The message that holds `message`.
    ///
    /// # Errors
    /// [`EncodeError`] if a value does not fit its field.
    pub fn encode_from<M: Message + Clone>(
        message: &M,
        flags: MessageFlags,
        widths: Widths,
    ) -> std::result::Result<Self, EncodeError> {
        RawMessage::encode_from_owned(message.clone(), flags, widths)
    }

    /// As [`RawMessage::encode_from`], of a message that is given up.
    ///
    /// # Errors
    /// As [`RawMessage::encode_from`].
    pub fn encode_from_owned<M: Message>(
        mut message: M,
        flags: MessageFlags,
        widths: Widths,
    ) -> std::result::Result<Self, EncodeError> {
        let body = with_encoded(&mut message, widths, |bytes| MessageBody::from(bytes))?;
        Ok(RawMessage { kind: M::TYPE, flags, creation_index: 0, body })
    }

    /// Unused space of `body_len` bytes of body.
    pub fn unused(body_len: usize) -> Self {
        RawMessage { body: MessageBody::zeros(body_len), ..Default::default() }
    }

    /// Whether this is unused space.
    pub fn is_unused(&self) -> bool {
        self.kind == MessageType::NIL
    }

    /// The body as `M`. Bytes after it are padding, which version 1 headers have.
    ///
    /// # Errors
    /// [`DecodeError`] if the body is not such a message.
    pub fn decode<M: Message + Default>(&self, widths: Widths) -> Result<M> {
        decode_prefix(&self.body, widths).map(|(message, _)| message)
    }

    /// Refuses a message of an unknown type that a program must know to open the object (for writing or not).
    ///
    /// # Errors
    /// [`Fault::UnknownRequiredMessage`].
    pub fn refuse_unknown_required(&self, for_writing: bool) -> Result<()> {
        if self.kind.is_known() || !self.flags.must_be_known(for_writing) {
            return Ok(());
        }
        let fault = Fault::UnknownRequiredMessage(self.kind.number());
        Err(DecodeError { record: "object header", field: "message type", offset_in_structure: 0, fault })
    }
}

/// Messages that most headers do not exceed.
const INLINE_MESSAGES: usize = 6;

/// The messages of a chunk, in `len` bytes, framed according to the version of the header. A rest that is too small for
/// a message is a gap.
pub(super) fn messages(
    w: &mut impl Wire,
    version: u8,
    tracked: bool,
    len: u64,
    messages: &mut Vec<RawMessage>,
) -> Result<()> {
    let len = w.bounded_count("messages", len, 1)?;
    let end = w.position().saturating_add(len);
    let header = frame_len(version, tracked);
    if w.is_decoding() {
        *messages = Vec::with_capacity(INLINE_MESSAGES.min(len.checked_div(header).unwrap_or(0)));
        while end.saturating_sub(w.position()) >= header {
            let mut message = RawMessage::default();
            w.record(&mut FramedMessage { version, tracked, message: &mut message })?;
            messages.push(message);
        }
    } else {
        messages.iter_mut().try_for_each(|message| w.record(&mut FramedMessage { version, tracked, message }))?;
    }
    let gap = end.checked_sub(w.position());
    let gap =
        gap.ok_or_else(|| w.fault("messages", Fault::TooLarge { found: w.position() as u64, limit: end as u64 }))?;
    w.require("gap", gap == 0 || (version > 1 && gap < header), gap as u64, "none, or less than a message header")?;
    w.reserved(gap)
}

/// The bytes that precede a message body.
pub(super) fn frame_len(version: u8, tracked: bool) -> usize {
    match (version, tracked) {
        (1, _) => 8,
        (_, false) => 4,
        (_, true) => 6,
    }
}

/// A message with what its framing depends on.
struct FramedMessage<'a> {
    version: u8,
    tracked: bool,
    message: &'a mut RawMessage,
}

impl Record for FramedMessage<'_> {
    const NAME: &'static str = "message";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let message = &mut *self.message;
        let kind = if self.version == 1 {
            w.derived_u16("type", message.kind.number())?
        } else {
            w.derived_u8("type", u8::try_from(message.kind.number()).unwrap_or(u8::MAX))?.into()
        };
        message.kind = MessageType::new(kind);
        let size = u16::try_from(message.body.len());
        if size.is_err() {
            return Err(w.fault("size", Fault::TooLarge { found: message.body.len() as u64, limit: u16::MAX.into() }));
        }
        let size = w.derived_u16("size", size.unwrap_or(u16::MAX))?;
        w.require("size", self.version > 1 || size % 8 == 0, size.into(), "a multiple of 8")?;
        message.flags = MessageFlags(w.derived_u8("flags", message.flags.0)?);
        if let Some(rule) = message.flags.fault(message.kind) {
            return Err(w.fault("flags", Fault::InvalidValue { found: message.flags.0.into(), rule }));
        }
        if self.version == 1 {
            w.reserved(3)?;
        } else if self.tracked {
            w.u16("creation index", &mut message.creation_index)?;
        }
        message.body.wire(w, size.into())
    }
}
