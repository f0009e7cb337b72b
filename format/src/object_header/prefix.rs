//! The part of an object header's first chunk before the messages.

use super::raw_message::frame_len;
use crate::{Fault, Record, Result, Width, Wire};

/// When an object was touched (seconds since 1970-01-01 UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HeaderTimes {
    /// Last access.
    pub access: u32,
    /// Last modification of the raw data.
    pub modification: u32,
    /// Last change of the metadata.
    pub change: u32,
    /// Creation.
    pub birth: u32,
}

/// When attributes move from the header to a heap, and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttributePhaseChange {
    /// Most attributes that are kept in the header.
    pub max_compact: u16,
    /// Fewest attributes that are kept in a heap.
    pub min_dense: u16,
}

impl Default for AttributePhaseChange {
    fn default() -> Self {
        AttributePhaseChange { max_compact: 8, min_dense: 6 }
    }
}

/// The part before the messages: version, flags, and the size of the first chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectHeaderPrefix {
    /// 1 or 2.
    pub version: u8,
    /// Messages in all chunks together (version 1).
    pub version_1_message_count: u16,
    /// Hard links to the object (version 1; version 2 keeps other counts than 1 in a message).
    pub version_1_reference_count: u32,
    /// Whether messages bear the order of creation of attributes (version 2).
    pub attribute_order_tracked: bool,
    /// Whether the order of creation of attributes is indexed (version 2).
    pub attribute_order_indexed: bool,
    /// When attributes move to a heap, if not by default (version 2).
    pub attribute_phase_change: Option<AttributePhaseChange>,
    /// When the object was touched, if that is kept (version 2).
    pub times: Option<HeaderTimes>,
    /// The width of `first_chunk_messages_size`: 1, 2, 4 or 8 bytes (version 2).
    pub first_chunk_size_width: Width,
    /// Bytes of messages in the first chunk.
    pub first_chunk_messages_size: u64,
}

impl Default for ObjectHeaderPrefix {
    fn default() -> Self {
        ObjectHeaderPrefix {
            version: 2,
            version_1_message_count: 0,
            version_1_reference_count: 1,
            attribute_order_tracked: false,
            attribute_order_indexed: false,
            attribute_phase_change: None,
            times: None,
            first_chunk_size_width: Width::FOUR,
            first_chunk_messages_size: 0,
        }
    }
}

const SIGNATURE: &str = "OHDR";

impl ObjectHeaderPrefix {
    /// Most bytes that a prefix takes.
    pub const MAX_LEN: usize = 34;

    /// The bytes that precede each message body.
    pub fn message_header_len(&self) -> usize {
        frame_len(self.version, self.attribute_order_tracked)
    }

    /// Bytes from the start of the prefix to the end of the first chunk, checksum included.
    pub fn first_chunk_len(&self) -> u64 {
        let prefix = match self.version {
            1 => 16,
            _ => {
                let times = if self.times.is_some() { 16 } else { 0 };
                let phase = if self.attribute_phase_change.is_some() { 4 } else { 0 };
                10_u64
                    .saturating_add(times)
                    .saturating_add(phase)
                    .saturating_add(self.first_chunk_size_width.bytes() as u64)
            }
        };
        prefix.saturating_add(self.first_chunk_messages_size)
    }

    /// Bytes from the start of the prefix to the first message.
    pub fn messages_offset(&self) -> usize {
        let checksum = if self.version == 1 { 0 } else { 4 };
        usize::try_from(self.first_chunk_len().saturating_sub(self.first_chunk_messages_size))
            .unwrap_or(usize::MAX)
            .saturating_sub(checksum)
    }

    fn flags(&self) -> u8 {
        let width = match self.first_chunk_size_width.bytes() {
            1 => 0,
            2 => 1,
            4 => 2,
            _ => 3,
        };
        width
            | (u8::from(self.attribute_order_tracked) << 2)
            | (u8::from(self.attribute_order_indexed) << 3)
            | (u8::from(self.attribute_phase_change.is_some()) << 4)
            | (u8::from(self.times.is_some()) << 5)
    }

    fn set_flags(&mut self, flags: u8) {
        self.first_chunk_size_width = match flags & 3 {
            0 => Width::ONE,
            1 => Width::TWO,
            2 => Width::FOUR,
            _ => Width::EIGHT,
        };
        self.attribute_order_tracked = flags & 0x04 != 0;
        self.attribute_order_indexed = flags & 0x08 != 0;
        self.attribute_phase_change = (flags & 0x10 != 0).then(AttributePhaseChange::default);
        self.times = (flags & 0x20 != 0).then(HeaderTimes::default);
    }

    fn wire_version_1(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(1..=1, &mut self.version)?;
        w.reserved(1)?;
        w.u16("messages", &mut self.version_1_message_count)?;
        w.u32("reference count", &mut self.version_1_reference_count)?;
        self.first_chunk_messages_size = w.derived_uint("chunk 0 size", Width::FOUR, self.first_chunk_messages_size)?;
        w.reserved(4)
    }

    fn wire_version_2(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic(SIGNATURE)?;
        w.version(2..=2, &mut self.version)?;
        let flags = w.derived_u8("flags", self.flags())?;
        w.require("flags", flags & !0x3f == 0, flags.into(), "bits 6 and 7 are zero")?;
        self.set_flags_keeping(flags);
        if let Some(times) = &mut self.times {
            w.u32("access time", &mut times.access)?;
            w.u32("modification time", &mut times.modification)?;
            w.u32("change time", &mut times.change)?;
            w.u32("birth time", &mut times.birth)?;
        }
        if let Some(phase) = &mut self.attribute_phase_change {
            w.u16("most compact attributes", &mut phase.max_compact)?;
            w.u16("fewest dense attributes", &mut phase.min_dense)?;
            let ordered = phase.max_compact >= phase.min_dense;
            w.require("fewest dense attributes", ordered, phase.min_dense.into(), "not above the most compact ones")?;
        }
        w.uint("chunk 0 size", self.first_chunk_size_width, &mut self.first_chunk_messages_size)
    }

    fn set_flags_keeping(&mut self, flags: u8) {
        if flags != self.flags() {
            self.set_flags(flags);
        }
    }
}

impl Record for ObjectHeaderPrefix {
    const NAME: &'static str = "object header";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        if w.is_decoding() {
            self.version = if w.remaining_starts_with(SIGNATURE.as_bytes()) { 2 } else { 1 };
        }
        match self.version {
            1 => self.wire_version_1(w),
            2 => self.wire_version_2(w),
            found => Err(w.fault("version", Fault::UnsupportedVersion { allowed: 1..=2, found })),
        }
    }
}
