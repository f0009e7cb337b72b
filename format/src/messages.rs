//! The messages that object headers are made of (format specification 4.0, IV.A.2), one file per message.

mod attribute;
mod attribute_info;
mod btree_k;
mod cache_image;
mod comment;
mod continuation;
mod dataspace;
mod datatype;
mod driver_info;
mod external_files;
mod file_space_info;
mod fill_value;
mod filter_pipeline;
mod group_info;
mod layout;
mod link;
mod link_info;
mod modification_time;
mod reference_count;
mod shared;
mod shared_message_table;
mod symbol_table;

use std::fmt;

pub use attribute::AttributeMessage;
pub use attribute_info::AttributeInfo;
pub use btree_k::BtreeK;
pub use cache_image::CacheImageInfo;
pub use comment::Comment;
pub use continuation::ContinuationMessage;
pub use dataspace::DataspaceMessage;
pub use datatype::DatatypeMessage;
pub use driver_info::DriverInfo;
pub use external_files::{ExternalFileSlot, ExternalFiles};
pub use file_space_info::{FileSpaceInfo, FileSpaceStrategy};
pub use fill_value::{FillValueMessage, FillValueOldMessage};
pub use filter_pipeline::FilterPipelineMessage;
pub use group_info::{GroupInfo, LinkEstimate, LinkPhaseChange};
use h5live_model::CharacterSet;
pub use layout::{
    ChunkIndexType, ChunkedStorage, LayoutClass, LayoutMessage, MAX_CHUNK_BYTES_BEFORE_V5, SingleChunkFilterInfo,
};
pub use link::{LinkMessage, LinkValue};
pub use link_info::LinkInfo;
pub use modification_time::{ModificationTime, OldModificationTime};
pub use reference_count::ReferenceCount;
pub use shared::{Shareable, SharedMessageReference, SharedMessageTarget};
pub use shared_message_table::SharedMessageTableInfo;
pub use symbol_table::SymbolTableMessage;

use crate::{Fault, Record, Result, Wire};

/// The body of an object header message.
pub trait Message: Record {
    /// The number that stands before the body in the object header.
    const TYPE: MessageType;
}

/// The type of an object header message. Unknown numbers are carried, not refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MessageType(u16);

impl MessageType {
    /// Unused space.
    pub const NIL: MessageType = MessageType(0x00);
    /// The shape of a dataset.
    pub const DATASPACE: MessageType = MessageType(0x01);
    /// Where the links of a group are kept.
    pub const LINK_INFO: MessageType = MessageType(0x02);
    /// The type of an element.
    pub const DATATYPE: MessageType = MessageType(0x03);
    /// The fill value, as files before HDF5 1.6 hold it.
    pub const FILL_VALUE_OLD: MessageType = MessageType(0x04);
    /// The fill value, and when it is written.
    pub const FILL_VALUE: MessageType = MessageType(0x05);
    /// A link of a group.
    pub const LINK: MessageType = MessageType(0x06);
    /// The raw files beside the HDF5 file that hold a dataset's elements.
    pub const EXTERNAL_FILES: MessageType = MessageType(0x07);
    /// How the elements of a dataset are laid out.
    pub const LAYOUT: MessageType = MessageType(0x08);
    /// A message for tests of the reference library, which no file should hold.
    pub const BOGUS: MessageType = MessageType(0x09);
    /// When a group keeps its links compact.
    pub const GROUP_INFO: MessageType = MessageType(0x0a);
    /// The filters of a dataset's chunks or of a group's heap.
    pub const FILTER_PIPELINE: MessageType = MessageType(0x0b);
    /// An attribute.
    pub const ATTRIBUTE: MessageType = MessageType(0x0c);
    /// A comment on the object.
    pub const COMMENT: MessageType = MessageType(0x0d);
    /// When the object was last modified, as text.
    pub const MODIFICATION_TIME_OLD: MessageType = MessageType(0x0e);
    /// Where the file's shared messages are kept.
    pub const SHARED_MESSAGE_TABLE: MessageType = MessageType(0x0f);
    /// Where the object header goes on.
    pub const CONTINUATION: MessageType = MessageType(0x10);
    /// Where the links of an old-style group are kept.
    pub const SYMBOL_TABLE: MessageType = MessageType(0x11);
    /// When the object was last modified, in seconds.
    pub const MODIFICATION_TIME: MessageType = MessageType(0x12);
    /// The sizes of the file's version 1 B-tree nodes.
    pub const BTREE_K: MessageType = MessageType(0x13);
    /// Parameters of the virtual file driver.
    pub const DRIVER_INFO: MessageType = MessageType(0x14);
    /// Where the attributes of an object are kept.
    pub const ATTRIBUTE_INFO: MessageType = MessageType(0x15);
    /// The number of hard links to the object.
    pub const REFERENCE_COUNT: MessageType = MessageType(0x16);
    /// How the file's space is managed.
    pub const FILE_SPACE_INFO: MessageType = MessageType(0x17);
    /// The place of a metadata cache image.
    pub const CACHE_IMAGE: MessageType = MessageType(0x18);

    /// The type of this number.
    pub const fn new(number: u16) -> Self {
        MessageType(number)
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Whether the format knows the type (0x09 counts as unknown, as in libhdf5).
    pub const fn is_known(self) -> bool {
        self.0 <= 0x18 && self.0 != 0x09
    }

    /// Whether the body may be a reference to a message that is stored elsewhere.
    pub const fn is_shareable(self) -> bool {
        matches!(
            self,
            Self::DATASPACE
                | Self::DATATYPE
                | Self::FILL_VALUE_OLD
                | Self::FILL_VALUE
                | Self::FILTER_PIPELINE
                | Self::ATTRIBUTE
        )
    }

    /// The name of the message, if the format knows the type.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NIL => "nil",
            Self::DATASPACE => "dataspace",
            Self::LINK_INFO => "link info",
            Self::DATATYPE => "datatype",
            Self::FILL_VALUE_OLD => "old fill value",
            Self::FILL_VALUE => "fill value",
            Self::LINK => "link",
            Self::EXTERNAL_FILES => "external files",
            Self::LAYOUT => "data layout",
            Self::BOGUS => "bogus",
            Self::GROUP_INFO => "group info",
            Self::FILTER_PIPELINE => "filter pipeline",
            Self::ATTRIBUTE => "attribute",
            Self::COMMENT => "comment",
            Self::MODIFICATION_TIME_OLD => "old modification time",
            Self::SHARED_MESSAGE_TABLE => "shared message table",
            Self::CONTINUATION => "continuation",
            Self::SYMBOL_TABLE => "symbol table",
            Self::MODIFICATION_TIME => "modification time",
            Self::BTREE_K => "B-tree K values",
            Self::DRIVER_INFO => "driver info",
            Self::ATTRIBUTE_INFO => "attribute info",
            Self::REFERENCE_COUNT => "reference count",
            Self::FILE_SPACE_INFO => "file space info",
            Self::CACHE_IMAGE => "metadata cache image",
            _ => return None,
        })
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "unknown message {:#x}", self.0),
        }
    }
}

impl fmt::Debug for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The next multiple of 8.
fn padded_len(len: usize) -> usize {
    len.checked_next_multiple_of(8).unwrap_or(usize::MAX)
}

/// A number of things that two bytes have to hold.
pub(crate) fn count_u16(w: &impl Wire, field: &'static str, count: usize) -> Result<u16> {
    let limit = u16::MAX.into();
    u16::try_from(count).map_err(|_| w.fault(field, Fault::TooLarge { found: count as u64, limit }))
}

/// A value that is there if `present`.
fn wire_optional<W: Wire, T: Default>(
    w: &mut W,
    present: bool,
    value: &mut Option<T>,
    each: impl FnOnce(&mut W, &mut T) -> Result<()>,
) -> Result<()> {
    if present {
        each(w, value.get_or_insert_default())
    } else {
        *value = None;
        Ok(())
    }
}

/// The flags that say whether the order of creation is tracked, and whether it is indexed.
fn wire_order_flags(w: &mut impl Wire, tracked: bool, indexed: bool) -> Result<(bool, bool)> {
    let flags = w.derived_u8("flags", u8::from(tracked) | (u8::from(indexed) << 1))?;
    w.require("flags", flags & !0x03 == 0, flags.into(), "only the flags 1 and 2 exist")?;
    Ok((flags & 0x01 != 0, flags & 0x02 != 0))
}

/// The encoding of a string, in one byte.
fn wire_character_set(w: &mut impl Wire, field: &'static str, set: &mut CharacterSet) -> Result<()> {
    let mut number = match *set {
        CharacterSet::Ascii => 0,
        CharacterSet::Utf8 => 1,
        CharacterSet::Reserved(number) => number,
    };
    w.u8(field, &mut number)?;
    *set = match number {
        0 => CharacterSet::Ascii,
        1 => CharacterSet::Utf8,
        number => CharacterSet::Reserved(number),
    };
    Ok(())
}
