//! The sizes of elements that lead elsewhere.

use crate::{ArrayType, CompoundMember, CompoundType, Datatype, ReferenceKind, ReferenceType, VarLenType};

/// The sizes of stored elements that lead elsewhere (bytes). [`Datatype::with_vlen_and_reference_sizes`]
/// makes a type fit a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VlenAndReferenceSizes {
    /// A variable-length element.
    pub vlen: u32,
    /// A reference to an object ([`ReferenceKind::Object1`]).
    pub object_reference: u32,
    /// A reference to a region ([`ReferenceKind::Region1`]).
    pub region_reference: u32,
    /// A reference of the kinds of HDF5 1.12.
    pub standard_reference: u32,
}

impl VlenAndReferenceSizes {
    /// The sizes in an HDF5 file whose addresses have `bytes` bytes.
    pub const fn with_offset_size(bytes: u32) -> Self {
        // A count and a place in a heap (address and number); an address; a place in a heap; two bytes of a header, a
        // length, and a place in a heap.
        VlenAndReferenceSizes {
            vlen: bytes + 8,
            object_reference: bytes,
            region_reference: bytes + 4,
            standard_reference: bytes + 10,
        }
    }

    /// Bytes of a reference of a kind.
    pub const fn reference_size(&self, kind: ReferenceKind) -> u32 {
        match kind {
            ReferenceKind::Object1 => self.object_reference,
            ReferenceKind::Region1 => self.region_reference,
            ReferenceKind::Object2 | ReferenceKind::Region2 | ReferenceKind::Attribute => self.standard_reference,
        }
    }
}

impl Default for VlenAndReferenceSizes {
    /// As in an HDF5 file with addresses of 8 bytes.
    fn default() -> Self {
        VlenAndReferenceSizes::with_offset_size(8)
    }
}

impl Datatype {
    /// The same type in a store where elements that lead elsewhere have other sizes. The members of compounds that
    /// follow them have other offsets there. Elements that have the sizes of `to` already, as those of a type that was
    /// read from that store, stay as they are.
    pub fn with_vlen_and_reference_sizes(&self, from: VlenAndReferenceSizes, to: VlenAndReferenceSizes) -> Datatype {
        let resized = |size: u32, from: u32, to: u32| {
            if size == to { size } else { size.saturating_sub(from).saturating_add(to) }
        };
        let base = |base: &Datatype| Box::new(base.with_vlen_and_reference_sizes(from, to));
        match self {
            _ if from == to || !self.has_vlen_or_references() => self.clone(),
            Datatype::VarLen(t) => {
                let size = resized(t.size, from.vlen, to.vlen);
                Datatype::VarLen(VarLenType { size, base: base(&t.base), ..t.clone() })
            }
            Datatype::Reference(t) => {
                let size = resized(t.size, from.reference_size(t.kind), to.reference_size(t.kind));
                Datatype::Reference(ReferenceType { size, ..t.clone() })
            }
            Datatype::Array(t) => Datatype::Array(ArrayType { base: base(&t.base), dims: t.dims.clone() }),
            Datatype::Compound(t) => {
                let grown = |member: &CompoundMember| {
                    let new = member.datatype.with_vlen_and_reference_sizes(from, to);
                    let growth = i64::from(new.size()) - i64::from(member.datatype.size());
                    (member.offset, growth, new)
                };
                let grown: Vec<_> = t.members.iter().map(grown).collect();
                let moved = |offset: u32| {
                    let before = grown.iter().filter(|(at, ..)| *at < offset).map(|(_, growth, _)| growth);
                    u32::try_from(i64::from(offset) + before.sum::<i64>()).unwrap_or(offset)
                };
                let members = t.members.iter().zip(&grown).map(|(member, (offset, _, datatype))| CompoundMember {
                    name: member.name.clone(),
                    offset: moved(*offset),
                    datatype: datatype.clone(),
                });
                Datatype::Compound(CompoundType { size: moved(t.size), members: members.collect() })
            }
            _ => self.clone(),
        }
    }
}
