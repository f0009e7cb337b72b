//! A link of a group (format specification 4.0, IV.A.2.g).

use h5live_model::{CharacterSet, LinkTarget, Name, ObjectId};

use super::{Message, MessageType};
use crate::{Addr, Fault, Record, Result, Width, Widths, Wire};

/// The target of a link in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkValue {
    /// An object header.
    Hard(Addr),
    /// A path in the same file.
    Soft(Name),
    /// A path in another file.
    External {
        /// The other file, as the link names it.
        file: Name,
        /// The path in it.
        path: Name,
    },
    /// A link of a class (65 to 255) that only its user knows.
    UserDefined {
        /// The link class.
        class: u8,
        /// Its data.
        data: Vec<u8>,
    },
}

impl Default for LinkValue {
    fn default() -> Self {
        LinkValue::Hard(Addr::UNDEFINED)
    }
}

impl From<LinkValue> for LinkTarget {
    fn from(value: LinkValue) -> Self {
        match value {
            LinkValue::Hard(addr) => LinkTarget::Hard(ObjectId(addr.get().unwrap_or(u64::MAX).into())),
            LinkValue::Soft(path) => LinkTarget::Soft(path),
            LinkValue::External { file, path } => LinkTarget::External { file, path },
            LinkValue::UserDefined { class, data } => LinkTarget::UserDefined { class, data },
        }
    }
}

/// The link message, which is also what dense groups keep in their heap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkMessage {
    /// The name, without slashes.
    pub name: Name,
    /// The encoding of the name.
    pub name_character_set: CharacterSet,
    /// The position in the order of creation, if the group tracks it.
    pub creation_order: Option<i64>,
    /// The target.
    pub value: LinkValue,
}

const ORDER: u8 = 0x04;
const KIND: u8 = 0x08;
const CHARACTER_SET: u8 = 0x10;

const HARD: u8 = 0;
const SOFT: u8 = 1;
const EXTERNAL: u8 = 64;

/// The largest length of a link's value (bytes).
const MAX_VALUE: usize = 0xffff;

impl LinkMessage {
    /// The name and the target of a plain hard link with an address of 8 bytes, as most are, without decoding the
    /// message. Agrees with decoding, except for bytes behind the message.
    pub fn peek_plain_hard_link(bytes: &[u8], widths: Widths) -> Option<(&[u8], Addr)> {
        let (len, rest) = match bytes {
            [1, 0, len @ 1..=u8::MAX, rest @ ..] | [1, CHARACTER_SET, 0..=1, len @ 1..=u8::MAX, rest @ ..] => {
                (*len, rest)
            }
            _ => return None,
        };
        let (name, rest) = rest.split_at_checked(len.into())?;
        let addr = rest.first_chunk().filter(|_| widths.offset == Width::EIGHT)?;
        Some((name, Addr::new(u64::from_le_bytes(*addr))))
    }

    fn kind(&self) -> u8 {
        match &self.value {
            LinkValue::Hard(_) => HARD,
            LinkValue::Soft(_) => SOFT,
            LinkValue::External { .. } => EXTERNAL,
            LinkValue::UserDefined { class, .. } => *class,
        }
    }

    fn flags(&self) -> u8 {
        let length = match self.name.as_bytes().len() {
            0..=0xff => 0,
            0x100..=0xffff => 1,
            0x1_0000..=0xffff_ffff => 2,
            _ => 3,
        };
        let order = if self.creation_order.is_some() { ORDER } else { 0 };
        let kind = if self.kind() == HARD { 0 } else { KIND };
        let character_set = if self.name_character_set == CharacterSet::Ascii { 0 } else { CHARACTER_SET };
        length | order | kind | character_set
    }

    fn wire_external(w: &mut impl Wire, file: &mut Name, path: &mut Name) -> Result<()> {
        let len = file.as_bytes().len().saturating_add(path.as_bytes().len()).saturating_add(3);
        let len = usize::from(w.derived_u16("value length", link_size_u16(w, len)?)?);
        let end = w.position().saturating_add(len);
        let version = w.derived_u8("version and flags", 0)?;
        w.require("version and flags", version == 0, version.into(), "must be 0")?;
        w.nul_terminated_name("file", file)?;
        w.nul_terminated_name("path", path)?;
        let rest = end.checked_sub(w.position());
        let fault = Fault::TooLarge { found: w.position() as u64, limit: end as u64 };
        w.reserved(rest.ok_or_else(|| w.fault("value length", fault))?)
    }
}

fn link_size_u16(w: &impl Wire, len: usize) -> Result<u16> {
    let limit = MAX_VALUE as u64;
    u16::try_from(len).map_err(|_| w.fault("value length", Fault::TooLarge { found: len as u64, limit }))
}

impl Record for LinkMessage {
    const NAME: &'static str = "link";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(1..=1, &mut 1)?;
        let flags = w.derived_u8("flags", self.flags())?;
        w.require("flags", flags & 0xe0 == 0, flags.into(), "bits 5 to 7 are zero")?;
        let kind = if flags & KIND != 0 { w.derived_u8("link type", self.kind())? } else { HARD };
        super::wire_optional(w, flags & ORDER != 0, &mut self.creation_order, |w, order| {
            w.i64("creation order", order)
        })?;
        self.name_character_set = match if flags & CHARACTER_SET != 0 {
            let utf8 = u8::from(self.name_character_set != CharacterSet::Ascii);
            w.derived_u8("name character set", utf8)?
        } else {
            0
        } {
            0 => CharacterSet::Ascii,
            1 => CharacterSet::Utf8,
            found => {
                let rule = "a name is in ASCII (0) or UTF-8 (1)";
                return Err(w.fault("name character set", Fault::InvalidValue { found: found.into(), rule }));
            }
        };
        let width = match flags & 0x03 {
            0 => Width::ONE,
            1 => Width::TWO,
            2 => Width::FOUR,
            _ => Width::EIGHT,
        };
        let len = w.derived_uint("name length", width, self.name.as_bytes().len() as u64)?;
        w.require("name length", len != 0, len, "a name has at least one byte")?;
        let len = w.bounded_count("name length", len, 1)?;
        w.name("name", len, &mut self.name)?;
        if w.is_decoding() {
            self.value = match kind {
                HARD => LinkValue::default(),
                SOFT => LinkValue::Soft(Name::default()),
                EXTERNAL => LinkValue::External { file: Name::default(), path: Name::default() },
                65.. => LinkValue::UserDefined { class: kind, data: Vec::new() },
                found => {
                    let rule = "a link is hard (0), soft (1) or of a class from 64";
                    return Err(w.fault("link type", Fault::InvalidValue { found: found.into(), rule }));
                }
            };
        }
        match &mut self.value {
            LinkValue::Hard(addr) => w.addr("object header", addr),
            LinkValue::Soft(path) => {
                let len = w.derived_u16("value length", link_size_u16(w, path.as_bytes().len())?)?;
                w.require("value length", len != 0, 0, "a soft link has a path")?;
                w.name("path", len.into(), path)
            }
            LinkValue::External { file, path } => Self::wire_external(w, file, path),
            LinkValue::UserDefined { data, .. } => {
                let len = w.derived_u16("value length", link_size_u16(w, data.len())?)?;
                w.bytes("data", len.into(), data)
            }
        }
    }
}

impl Message for LinkMessage {
    const TYPE: MessageType = MessageType::LINK;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode, encode};

    #[test]
    fn comes_back_from_bytes() {
        let values = [
            LinkValue::Hard(Addr::new(800)),
            LinkValue::Soft("/a/b".into()),
            LinkValue::External { file: "other.h5".into(), path: "/".into() },
            LinkValue::UserDefined { class: 200, data: vec![1, 2] },
        ];
        for value in values {
            for (name, creation_order) in
                [("x".to_owned(), None), ("é".repeat(200), Some(-3)), ("y".repeat(70_000), None)]
            {
                let character_set = if name.is_ascii() { CharacterSet::Ascii } else { CharacterSet::Utf8 };
                let link = LinkMessage {
                    name: name.into(),
                    name_character_set: character_set,
                    creation_order,
                    value: value.clone(),
                };
                let bytes = encode(&link, Widths::default()).unwrap();
                assert_eq!(decode::<LinkMessage>(&bytes, Widths::default()).unwrap(), link);
            }
        }
    }

    #[test]
    fn a_glance_tells_what_decoding_tells() {
        let widths = Widths::default();
        let values = [LinkValue::Hard(Addr::new(800)), LinkValue::Hard(Addr::UNDEFINED), LinkValue::Soft("/a".into())];
        let names = ["x".to_owned(), "é".to_owned(), "y".repeat(255), "é".repeat(200)];
        for (value, name) in values.iter().flat_map(|value| names.iter().map(move |name| (value, name))) {
            let character_set = if name.is_ascii() { CharacterSet::Ascii } else { CharacterSet::Utf8 };
            let link = LinkMessage {
                name: name.as_str().into(),
                name_character_set: character_set,
                creation_order: None,
                value: value.clone(),
            };
            let bytes = encode(&link, widths).unwrap();
            for len in 0..=bytes.len() {
                let bytes = &bytes[..len];
                let glance = LinkMessage::peek_plain_hard_link(bytes, widths);
                let found = glance.map(|(name, addr)| (Name::from(name), LinkValue::Hard(addr)));
                let is_plain = matches!(value, LinkValue::Hard(_)) && link.name.as_bytes().len() < 256;
                let decoded = decode::<LinkMessage>(bytes, widths).ok().filter(|_| is_plain);
                assert_eq!(found, decoded.map(|link| (link.name, link.value)));
            }
        }
        let ordered = LinkMessage { name: "x".into(), creation_order: Some(1), ..Default::default() };
        for bytes in [&encode(&ordered, widths).unwrap()[..], &[1, 0, 0], &[1, 0x10, 2, 1, b'x'], &[2, 0, 1, b'x']] {
            let bytes = [bytes, &[0; 8]].concat();
            assert!(LinkMessage::peek_plain_hard_link(&bytes, widths).is_none());
        }
        let narrow = Widths { offset: Width::FOUR, ..widths };
        assert!(LinkMessage::peek_plain_hard_link(&[1, 0, 1, b'x', 0, 0, 0, 0, 0, 0, 0, 0], narrow).is_none());
    }

    #[test]
    fn refuses_empty_names_and_paths() {
        let widths = Widths::default();
        assert!(encode(&LinkMessage::default(), widths).is_err());
        let link = LinkMessage { name: "x".into(), value: LinkValue::Soft(Name::default()), ..Default::default() };
        assert!(encode(&link, widths).is_err());
        assert!(decode::<LinkMessage>(&[1, 0, 0], widths).is_err());
    }

    #[test]
    fn cannot_write_a_value_of_64_kib() {
        let value = LinkValue::UserDefined { class: 100, data: vec![0; 65_536] };
        let link = LinkMessage { name: "x".into(), value, ..Default::default() };
        assert!(encode(&link, Widths::default()).is_err());
    }
}
