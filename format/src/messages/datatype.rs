//! The type of an element (format specification 4.0, IV.A.2.d).

mod class_bits;
mod datatype_checks;

use h5live_model::{
    ArrayType, ByteOrder, ComplexType, CompoundMember, CompoundType, Datatype, EnumMember, EnumType, Name,
    ReferenceKind, VarLenType,
};

use super::{Message, MessageType};
use crate::{Fault, LibVer, Record, Result, Width, Wire};

/// The datatype message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatatypeMessage {
    /// The version, 1 to 5, in which compound, array and enumeration types are written at least. Simple types are
    /// always written in the first version that has them.
    pub min_composite_version: u8,
    /// The type.
    pub datatype: Datatype,
}

impl Default for DatatypeMessage {
    fn default() -> Self {
        DatatypeMessage { min_composite_version: 1, datatype: Datatype::default() }
    }
}

/// Most levels of types in types.
const MAX_DEPTH: u32 = 64;

/// Most dimensions of an array type.
const MAX_RANK: usize = 32;

impl DatatypeMessage {
    /// The message that a file of this profile holds.
    pub fn new(profile: LibVer, datatype: Datatype) -> Self {
        DatatypeMessage { min_composite_version: Self::min_composite_version_for(profile), datatype }
    }

    /// The version in which a file of this profile holds compound, array and enumeration types.
    pub fn min_composite_version_for(profile: LibVer) -> u8 {
        match profile {
            LibVer::Earliest => 1,
            LibVer::V18 | LibVer::V110 => 3,
            LibVer::V112 | LibVer::V114 => 4,
            _ => 5,
        }
    }
}

impl Record for DatatypeMessage {
    const NAME: &'static str = "datatype";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let mut lowest = None;
        let version = wire_datatype(w, &mut self.datatype, self.min_composite_version, 0, &mut lowest)?;
        if w.is_decoding() {
            self.min_composite_version = lowest.unwrap_or(version);
        }
        Ok(())
    }
}

impl Message for DatatypeMessage {
    const TYPE: MessageType = MessageType::DATATYPE;
}

/// The version in which `wire_datatype` is written, if composite types are written in version `min_version` at least.
fn version_of(datatype: &Datatype, min_version: u8) -> u8 {
    match datatype {
        Datatype::Float(float) if float.order == ByteOrder::Vax => 3,
        Datatype::Reference(t) if !matches!(t.kind, ReferenceKind::Object1 | ReferenceKind::Region1) => 4,
        Datatype::Compound(t) => {
            t.members.iter().map(|m| version_of(&m.datatype, min_version)).fold(min_version, u8::max)
        }
        Datatype::Enum(t) => version_of(&t.base, min_version).max(min_version),
        Datatype::Array(t) => version_of(&t.base, min_version).max(min_version).max(2),
        Datatype::VarLen(t) => version_of(&t.base, min_version),
        Datatype::Complex(t) => version_of(&t.base, min_version).max(5),
        _ => 1,
    }
}

/// The number of members of a compound type that are raised to its version. When a member of a later version is added,
/// libhdf5 raises the version of the compound type and of all members so far. Later members keep theirs.
fn promoted_members(t: &CompoundType, min_version: u8) -> usize {
    let mut version = min_version;
    let mut raised = 0;
    for (i, member) in t.members.iter().enumerate() {
        let own = version_of(&member.datatype, min_version);
        if own > version {
            (version, raised) = (own, i.saturating_add(1));
        }
    }
    raised
}

/// One type, with the types in it. Returns its version; `lowest` collects the lowest version of a composite type that
/// had the choice.
fn wire_datatype<W: Wire>(
    w: &mut W,
    t: &mut Datatype,
    min_version: u8,
    depth: u32,
    lowest: &mut Option<u8>,
) -> Result<u8> {
    if depth > MAX_DEPTH {
        return Err(w.fault("datatype", Fault::DeeperThan(MAX_DEPTH)));
    }
    let version = if w.is_decoding() { 0 } else { version_of(t, min_version) };
    let first = w.derived_u8("class and version", class_bits::class_number(t) | (version << 4))?;
    let version = first >> 4;
    if !(1..=5).contains(&version) {
        return Err(w.fault("version", Fault::UnsupportedVersion { allowed: 1..=5, found: version }));
    }
    let mut flags = class_bits::ClassBits::to_write();
    let mut count = class_bits::class_bits(t, &mut flags, version);
    let stored = w.derived_uint("class bits", Width::new(3).unwrap_or(Width::FOUR), flags.value().into())?;
    let size = w.derived_uint("size", Width::FOUR, t.size().into())?;
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    w.require("size", size != 0, 0, "must not be 0")?;
    if w.is_decoding() {
        flags = class_bits::ClassBits::read(u32::try_from(stored).unwrap_or(0));
        let unknown = Fault::InvalidValue { found: u64::from(first & 0x0f), rule: "a datatype class is 0 to 11" };
        *t = class_bits::blank_of_class(first & 0x0f, size).ok_or_else(|| w.fault("class", unknown))?;
        count = class_bits::class_bits(t, &mut flags, version);
    }
    if let Some(rule) = flags.broken() {
        return Err(w.fault("class bits", Fault::InvalidValue { found: stored, rule }));
    }
    let mut inner = NestedTypes { version, min_version, depth: depth.saturating_add(1), lowest };
    match t {
        Datatype::Integer(t) => wire_bit_range(w, t.size, &mut t.offset, &mut t.precision)?,
        Datatype::Bitfield(t) => wire_bit_range(w, t.size, &mut t.offset, &mut t.precision)?,
        Datatype::Float(t) => {
            w.u16("bit offset", &mut t.offset)?;
            w.u16("bit precision", &mut t.precision)?;
            w.u8("exponent position", &mut t.exponent_position)?;
            w.u8("exponent size", &mut t.exponent_size)?;
            w.u8("mantissa position", &mut t.mantissa_position)?;
            w.u8("mantissa size", &mut t.mantissa_size)?;
            w.u32("exponent bias", &mut t.exponent_bias)?;
            datatype_checks::check_float(w, t)?;
        }
        Datatype::Time(t) => w.u16("bit precision", &mut t.precision)?,
        Datatype::String(_) | Datatype::Reference(_) => {}
        Datatype::Opaque(t) => wire_tag(w, count, &mut t.tag)?,
        Datatype::Compound(t) => inner.wire_compound(w, count, t)?,
        Datatype::Enum(t) => inner.wire_enumeration(w, size, count, t)?,
        Datatype::VarLen(VarLenType { base, .. }) => inner.wire_base(w, base)?,
        Datatype::Array(t) => inner.wire_array(w, size, t)?,
        Datatype::Complex(ComplexType { base }) => {
            inner.wire_base(w, base)?;
            w.require("size", u64::from(base.size()).saturating_mul(2) == size.into(), size.into(), "twice the base")?;
        }
    }
    Ok(version)
}

/// Which bits of an integer or a bitfield of `size` bytes are its value.
fn wire_bit_range(w: &mut impl Wire, size: u32, offset: &mut u16, precision: &mut u16) -> Result<()> {
    w.u16("bit offset", offset)?;
    w.u16("bit precision", precision)?;
    datatype_checks::check_bit_range(w, size, *offset, *precision)
}

/// The tag of an opaque type, in `len` bytes.
fn wire_tag(w: &mut impl Wire, len: u32, tag: &mut Name) -> Result<()> {
    let len = w.bounded_count("tag", len.into(), 1)?;
    let mut bytes = tag.as_bytes().to_vec();
    let nul = bytes.iter().position(|byte| *byte == 0);
    w.require("tag", w.is_decoding() || nul.is_none(), nul.unwrap_or(0) as u64, "a tag holds no NUL")?;
    bytes.resize(len, 0);
    w.bytes("tag", len, &mut bytes)?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    *tag = Name::from(bytes);
    Ok(())
}

/// The types in a type.
struct NestedTypes<'a> {
    version: u8,
    min_version: u8,
    depth: u32,
    lowest: &'a mut Option<u8>,
}

impl NestedTypes<'_> {
    /// Remembers that a type of this version is one that had the choice.
    fn lower_version(&mut self) {
        *self.lowest = Some(self.lowest.map_or(self.version, |lowest| lowest.min(self.version)));
    }

    fn wire_base(&mut self, w: &mut impl Wire, base: &mut Datatype) -> Result<()> {
        wire_datatype(w, base, self.min_version, self.depth, self.lowest).map(drop)
    }

    /// A name, padded to a multiple of 8 bytes before version 3.
    fn wire_name(&self, w: &mut impl Wire, name: &mut Name) -> Result<()> {
        w.nul_terminated_name("member name", name)?;
        let used = name.as_bytes().len().saturating_add(1);
        match super::padded_len(used).saturating_sub(used) {
            padding if padding > 0 && self.version < 3 => w.reserved(padding),
            _ => Ok(()),
        }
    }

    fn wire_compound(&mut self, w: &mut impl Wire, count: u32, t: &mut CompoundType) -> Result<()> {
        self.lower_version();
        w.require("members", count != 0, 0, "at least one")?;
        let smallest = if self.version < 3 { 20 } else { 10 };
        if w.is_decoding() {
            let count = w.bounded_count("members", count.into(), smallest)?;
            t.members.resize(count, CompoundMember::default());
        }
        let width = if self.version < 3 { Width::FOUR } else { Width::for_value(t.size.into()) };
        let min_version = self.min_version;
        let raised = if w.is_decoding() { 0 } else { promoted_members(t, min_version) };
        for (i, member) in t.members.iter_mut().enumerate() {
            self.min_version = if i < raised { self.version } else { min_version };
            self.wire_name(w, &mut member.name)?;
            let offset = w.derived_uint("member offset", width, member.offset.into())?;
            member.offset = u32::try_from(offset).unwrap_or(u32::MAX);
            if self.version == 1 {
                self.wire_member_with_dims(w, &mut member.datatype)?;
            } else {
                self.wire_base(w, &mut member.datatype)?;
            }
        }
        datatype_checks::check_members(w, t)
    }

    /// A member of version 1, which may be an array without an array type.
    fn wire_member_with_dims(&mut self, w: &mut impl Wire, t: &mut Datatype) -> Result<()> {
        let rank = usize::from(w.derived_u8("dimensionality", 0)?);
        w.require("dimensionality", rank <= 4, rank as u64, "at most 4")?;
        w.reserved(3)?;
        w.reserved(4)?;
        w.reserved(4)?;
        let mut dims = [0u32; 4];
        for dim in &mut dims {
            w.u32("dimension", dim)?;
        }
        self.wire_base(w, t)?;
        let dims = dims.get(..rank).unwrap_or_default();
        if dims.is_empty() {
            return Ok(());
        }
        w.require("dimension", !dims.contains(&0), 0, "must not be 0")?;
        datatype_checks::checked_array_size(w, dims, t)?;
        let base = Box::new(std::mem::take(t));
        *t = Datatype::Array(ArrayType { dims: dims.to_vec(), base });
        Ok(())
    }

    fn wire_enumeration(&mut self, w: &mut impl Wire, size: u32, count: u32, t: &mut EnumType) -> Result<()> {
        self.lower_version();
        self.wire_base(w, &mut t.base)?;
        w.require("size", t.base.size() == size, size.into(), "that of the base type")?;
        if w.is_decoding() {
            let smallest = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(2);
            let count = w.bounded_count("members", count.into(), smallest)?;
            t.members.resize(count, EnumMember::default());
        }
        for member in &mut t.members {
            self.wire_name(w, &mut member.name)?;
            w.require("member name", !member.name.is_empty(), 0, "must not be empty")?;
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        t.members.iter_mut().try_for_each(|member| w.bytes("member value", size, &mut member.value))
    }

    fn wire_array(&mut self, w: &mut impl Wire, size: u32, t: &mut ArrayType) -> Result<()> {
        if self.version != 2 {
            self.lower_version();
        }
        let rank = usize::from(w.derived_u8("dimensionality", u8::try_from(t.dims.len()).unwrap_or(u8::MAX))?);
        w.require("dimensionality", rank <= MAX_RANK, rank as u64, "at most 32")?;
        if self.version < 3 {
            w.reserved(3)?;
        }
        t.dims.resize(rank, 0);
        t.dims.iter_mut().try_for_each(|dim| w.u32("dimension", dim))?;
        if self.version < 3 {
            for axis in 0..u32::try_from(rank).unwrap_or(0) {
                w.u32("permutation", &mut { axis })?;
            }
        }
        self.wire_base(w, &mut t.base)?;
        let expected = datatype_checks::checked_array_size(w, &t.dims, &t.base)?;
        w.require("size", expected == size, size.into(), "the number of elements times the size of the base type")
    }
}

#[cfg(test)]
mod tests;
