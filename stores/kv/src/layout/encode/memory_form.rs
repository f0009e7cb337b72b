//! Datatypes as they are in the memory of a program: the connector stores types as its user gave them, and elements in
//! the form of the container.

use h5live_model::{
    ArrayType, CompoundMember, CompoundType, Datatype, ReferenceType, VarLenKind, VarLenType, VlenAndReferenceSizes,
};

/// The sizes of elements that lead elsewhere, in a container (bytes): a length and a UUID; a token; a length and a UUID;
/// two bytes, a length and a UUID.
pub const STORED_VLEN_AND_REFERENCE_SIZES: VlenAndReferenceSizes =
    VlenAndReferenceSizes { vlen: 20, object_reference: 16, region_reference: 20, standard_reference: 22 };

/// Bytes of a sequence in the memory of a program (`hvl_t`, with pointers of 8 bytes).
const SEQUENCE_BYTES: u32 = 16;
/// Bytes of a string (`char *`).
const STRING_BYTES: u32 = 8;
/// The sizes of references: `hobj_ref_t`, `hdset_reg_ref_t`, `H5R_ref_t`.
const MEMORY_REFERENCES: VlenAndReferenceSizes =
    VlenAndReferenceSizes { vlen: 0, object_reference: 8, region_reference: 12, standard_reference: 64 };

/// Bytes of an element that leads elsewhere, in one of the two forms.
type SizeOf = fn(&Datatype) -> Option<u32>;

fn size_in_memory(datatype: &Datatype) -> Option<u32> {
    match datatype {
        Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, .. }) => Some(SEQUENCE_BYTES),
        Datatype::VarLen(_) => Some(STRING_BYTES),
        Datatype::Reference(t) => Some(MEMORY_REFERENCES.reference_size(t.kind)),
        _ => None,
    }
}

fn size_in_container(datatype: &Datatype) -> Option<u32> {
    match datatype {
        Datatype::VarLen(_) => Some(STORED_VLEN_AND_REFERENCE_SIZES.vlen),
        Datatype::Reference(t) => Some(STORED_VLEN_AND_REFERENCE_SIZES.reference_size(t.kind)),
        _ => None,
    }
}

/// A datatype of the container, as it is in memory.
pub(super) fn in_memory(datatype: &Datatype) -> Datatype {
    with_sizes(datatype, size_in_memory)
}

/// A datatype of a program's memory, as it is in the container.
pub(super) fn in_container(datatype: &Datatype) -> Datatype {
    with_sizes(datatype, size_in_container)
}

/// The same type with other sizes of elements that lead elsewhere. The members of compounds that follow them move.
fn with_sizes(datatype: &Datatype, size_of: SizeOf) -> Datatype {
    let base = |base: &Datatype| Box::new(with_sizes(base, size_of));
    let size = size_of(datatype).unwrap_or_default();
    match datatype {
        _ if !datatype.has_vlen_or_references() => datatype.clone(),
        Datatype::VarLen(t) => Datatype::VarLen(VarLenType { size, base: base(&t.base), ..t.clone() }),
        Datatype::Reference(ReferenceType { kind, .. }) => Datatype::Reference(ReferenceType { kind: *kind, size }),
        Datatype::Array(t) => Datatype::Array(ArrayType { base: base(&t.base), dims: t.dims.clone() }),
        Datatype::Compound(t) => Datatype::Compound(compound_with_sizes(t, size_of)),
        _ => datatype.clone(),
    }
}

fn compound_with_sizes(t: &CompoundType, size_of: SizeOf) -> CompoundType {
    let resized: Vec<Datatype> = t.members.iter().map(|member| with_sizes(&member.datatype, size_of)).collect();
    let growth = |(member, new): (&CompoundMember, &Datatype)| {
        (member.offset, i64::from(new.size()).saturating_sub(member.datatype.size().into()))
    };
    let mut growths: Vec<(u32, i64)> = t.members.iter().zip(&resized).map(growth).collect();
    growths.sort_unstable_by_key(|(offset, _)| *offset);
    // From here on, each has the growth of all members up to it.
    let mut total = 0i64;
    for (_, growth) in &mut growths {
        total = total.saturating_add(*growth);
        *growth = total;
    }
    let moved = |offset: u32| {
        let before = growths.partition_point(|(at, _)| *at < offset).checked_sub(1);
        let by = before.and_then(|last| growths.get(last)).map_or(0, |(_, growth)| *growth);
        u32::try_from(i64::from(offset).saturating_add(by)).unwrap_or(u32::MAX)
    };
    let member = |(member, datatype): (&CompoundMember, Datatype)| CompoundMember {
        name: member.name.clone(),
        offset: moved(member.offset),
        datatype,
    };
    let members = t.members.iter().zip(resized).map(member).collect();
    CompoundType { size: moved(t.size), members }
}
