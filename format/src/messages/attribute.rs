//! An attribute (format specification 4.0, IV.A.2.m).

use h5live_model::{CharacterSet, Name};

use super::{DataspaceMessage, DatatypeMessage, Message, MessageType, Shareable, padded_len};
use crate::{Fault, LibVer, Record, Result, Wire, encoded_len};

/// The attribute message, which is also what dense attributes keep in their heap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttributeMessage {
    /// 1 to 3.
    pub version: u8,
    /// The name.
    pub name: Name,
    /// The encoding of the name (version 3).
    pub name_character_set: CharacterSet,
    /// The type of an element.
    pub datatype: Shareable<DatatypeMessage>,
    /// The shape.
    pub dataspace: Shareable<DataspaceMessage>,
    /// The elements, row-major. If the type or the shape is stored elsewhere: all bytes that follow in the message,
    /// with padding.
    pub data: Vec<u8>,
}

const TYPE_SHARED: u8 = 0x01;
const SPACE_SHARED: u8 = 0x02;

impl AttributeMessage {
    /// The message that a file of this profile holds.
    pub fn new(
        profile: LibVer,
        name: Name,
        datatype: Shareable<DatatypeMessage>,
        dataspace: Shareable<DataspaceMessage>,
        data: Vec<u8>,
    ) -> Self {
        let character_set = if name.is_ascii() { CharacterSet::Ascii } else { CharacterSet::Utf8 };
        let shared = datatype.shared().is_some() || dataspace.shared().is_some();
        let version = Self::version_for(profile, character_set, shared);
        AttributeMessage { version, name, name_character_set: character_set, datatype, dataspace, data }
    }

    /// The version of an attribute message in a file with these version bounds, for a name with this encoding.
    /// `has_shared_parts`: the type or shape is stored elsewhere.
    pub fn version_for(profile: LibVer, name_encoding: CharacterSet, has_shared_parts: bool) -> u8 {
        match (profile, name_encoding, has_shared_parts) {
            (LibVer::Earliest, CharacterSet::Ascii, false) => 1,
            (LibVer::Earliest, CharacterSet::Ascii, true) => 2,
            _ => 3,
        }
    }

    /// The name in an encoded message, without decoding the rest of it. Agrees with decoding; `None` if no name can be
    /// told so.
    pub fn peek_name(bytes: &[u8]) -> Option<&[u8]> {
        let (start, rest) = match bytes {
            [1 | 2, _, len @ ..] => (8, len),
            [3, _, len @ ..] => (9, len),
            _ => return None,
        };
        let len = usize::from(u16::from_le_bytes(*rest.first_chunk()?));
        let name = bytes.get(start..)?.get(..len)?.strip_suffix(&[0])?;
        (!name.is_empty() && !name.contains(&0)).then_some(name)
    }

    /// Bytes of the data, if type and shape are both here.
    fn data_len(&self) -> Option<u64> {
        let element = self.datatype.inline()?.datatype.size();
        let elements = self.dataspace.inline()?.dataspace.element_count();
        Some(elements.and_then(|n| n.checked_mul(element.into())).unwrap_or(u64::MAX))
    }

    /// A part of stated size, padded in version 1.
    fn wire_part<R: Record>(
        w: &mut impl Wire,
        version: u8,
        field: &'static str,
        size: usize,
        part: &mut R,
    ) -> Result<()> {
        let start = w.position();
        w.record(part)?;
        let taken = if version == 1 { padded_len(size) } else { size };
        let used = w.position().saturating_sub(start);
        if used > size {
            return Err(w.fault(field, Fault::TooLarge { found: used as u64, limit: size as u64 }));
        }
        match taken.saturating_sub(used) {
            0 => Ok(()),
            rest => w.reserved(rest),
        }
    }
}

impl Record for AttributeMessage {
    const NAME: &'static str = "attribute";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(1..=3, &mut self.version)?;
        let version = self.version;
        let type_shared = if self.datatype.shared().is_some() { TYPE_SHARED } else { 0 };
        let space_shared = if self.dataspace.shared().is_some() { SPACE_SHARED } else { 0 };
        if version == 1 {
            let shared = type_shared | space_shared;
            w.require("version", w.is_decoding() || shared == 0, 1, "shared parts need version 2")?;
            w.reserved(1)?;
        } else {
            let flags = w.derived_u8("flags", type_shared | space_shared)?;
            w.require("flags", flags & !0x03 == 0, flags.into(), "only the flags 1 and 2 exist")?;
            if w.is_decoding() {
                self.datatype =
                    if flags & TYPE_SHARED == 0 { Shareable::default() } else { Shareable::Shared(Default::default()) };
                self.dataspace = if flags & SPACE_SHARED == 0 {
                    Shareable::default()
                } else {
                    Shareable::Shared(Default::default())
                };
            }
        }
        let (mut name_len, mut type_len, mut space_len) = (0, 0, 0);
        if !w.is_decoding() {
            name_len = super::count_u16(w, "name length", self.name.as_bytes().len().saturating_add(1))?;
            let size = encoded_len(&self.datatype, w.widths()).unwrap_or_default();
            type_len = super::count_u16(w, "datatype size", size)?;
            let size = encoded_len(&self.dataspace, w.widths()).unwrap_or_default();
            space_len = super::count_u16(w, "dataspace size", size)?;
        }
        w.u16("name length", &mut name_len)?;
        w.require("name length", name_len > 1, name_len.into(), "a name has at least one byte, and a NUL")?;
        w.u16("datatype size", &mut type_len)?;
        w.u16("dataspace size", &mut space_len)?;
        if version == 3 {
            super::wire_character_set(w, "name character set", &mut self.name_character_set)?;
        }
        let start = w.position();
        w.nul_terminated_name("name", &mut self.name)?;
        let used = w.position().saturating_sub(start);
        w.require("name", used == usize::from(name_len), used as u64, "the NUL is where the name length says")?;
        if version == 1 && padded_len(used) > used {
            w.reserved(padded_len(used).saturating_sub(used))?;
        }
        Self::wire_part(w, version, "datatype size", type_len.into(), &mut self.datatype)?;
        Self::wire_part(w, version, "dataspace size", space_len.into(), &mut self.dataspace)?;
        let len = match self.data_len() {
            Some(len) => w.bounded_count("data", len, 1)?,
            None if w.is_decoding() => w.remaining(),
            None => self.data.len(),
        };
        w.bytes("data", len, &mut self.data)
    }
}

impl Message for AttributeMessage {
    const TYPE: MessageType = MessageType::ATTRIBUTE;
}

#[cfg(test)]
mod tests {
    use h5live_model::{ByteOrder, Dataspace, Datatype, Shape, Sign};

    use super::*;
    use crate::messages::{SharedMessageReference, SharedMessageTarget};
    use crate::{Addr, Widths, decode, encode};

    fn sample(version: u8) -> AttributeMessage {
        let datatype = Datatype::integer(4, ByteOrder::Little, Sign::Signed);
        AttributeMessage {
            version,
            name: "units".into(),
            name_character_set: if version == 3 { CharacterSet::Utf8 } else { CharacterSet::Ascii },
            datatype: Shareable::Inline(DatatypeMessage { min_composite_version: 1, datatype }),
            dataspace: Shareable::Inline(DataspaceMessage {
                version: 1,
                dataspace: Dataspace::Simple(Shape::fixed(&[2])),
            }),
            data: vec![1, 0, 0, 0, 2, 0, 0, 0],
        }
    }

    #[test]
    fn comes_back_from_bytes_in_every_version() {
        for version in 1..=3 {
            let bytes = encode(&sample(version), Widths::default()).unwrap();
            assert_eq!(decode::<AttributeMessage>(&bytes, Widths::default()).unwrap(), sample(version));
        }
    }

    #[test]
    fn says_where_a_shared_datatype_is() {
        let shared = SharedMessageReference::new(SharedMessageTarget::Committed(Addr::new(800)));
        let message = AttributeMessage { datatype: Shareable::Shared(shared), ..sample(3) };
        let bytes = encode(&message, Widths::default()).unwrap();
        assert_eq!(decode::<AttributeMessage>(&bytes, Widths::default()).unwrap(), message);
        assert!(encode(&AttributeMessage { version: 1, ..message }, Widths::default()).is_err());
    }

    #[test]
    fn refuses_a_name_shorter_than_its_length() {
        let mut bytes = encode(&sample(3), Widths::default()).unwrap();
        let nul = bytes.windows(5).position(|w| w == b"units").unwrap() + 3;
        bytes[nul] = 0;
        assert_eq!(decode::<AttributeMessage>(&bytes, Widths::default()).unwrap_err().field, "name");
    }

    #[test]
    fn the_name_is_told_without_decoding() {
        for version in 1..=3 {
            for name in ["u", "units", "a name of more than a few bytes", "é"] {
                let bytes =
                    encode(&AttributeMessage { name: name.into(), ..sample(version) }, Widths::default()).unwrap();
                assert_eq!(AttributeMessage::peek_name(&bytes), Some(name.as_bytes()), "{version}");
                for len in 0..bytes.len() {
                    let told = AttributeMessage::peek_name(&bytes[..len]);
                    assert!(told.is_none_or(|told| told == name.as_bytes()), "{len}");
                }
                // Where decoding finds another name, or none, so does the look.
                for at in 0..bytes.len() {
                    let mut changed = bytes.clone();
                    changed[at] = if changed[at] == 0 { 1 } else { 0 };
                    if let Ok(decoded) = decode::<AttributeMessage>(&changed, Widths::default()) {
                        assert_eq!(AttributeMessage::peek_name(&changed), Some(decoded.name.as_bytes()), "{at}");
                    }
                }
            }
        }
    }

    #[test]
    fn cannot_write_fewer_data_than_type_and_shape_ask_for() {
        let message = AttributeMessage { data: vec![1, 2, 3], ..sample(3) };
        assert!(encode(&message, Widths::default()).is_err());
    }
}
