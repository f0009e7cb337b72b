//! Identities of objects: 128 bits, as DAOS has them.
//!
//! The low 64 bits are the index of the object in its container. The top two bits of the next 32 bits are the kind of
//! the object. The other bits belong to DAOS (the object class); they are zero in identities that are made here.

use h5live_model::{ObjectId, ObjectKind};

/// The object that holds what belongs to the whole container: blobs, and what recognises the layout.
pub const GLOBAL_METADATA: ObjectId = new(ObjectKind::Group, 0);

/// The root group.
pub const ROOT: ObjectId = new(ObjectKind::Group, 1);

/// The index of the first object of a user.
pub const FIRST_USER_INDEX: u64 = 2;

/// Bytes of an identity, as links hold it.
pub const TOKEN_BYTES: usize = 16;

const KIND_SHIFT: u32 = 64 + 30;

/// The identity of an object of `kind` with `index`.
pub const fn new(kind: ObjectKind, index: u64) -> ObjectId {
    ObjectId((kind_bits(kind) as u128) << KIND_SHIFT | index as u128)
}

/// The index of the object in its container.
pub const fn index(id: ObjectId) -> u64 {
    id.0 as u64
}

/// The kind of the object.
pub const fn kind(id: ObjectId) -> ObjectKind {
    match (id.0 >> KIND_SHIFT) & 0b11 {
        0 => ObjectKind::Group,
        1 => ObjectKind::Dataset,
        2 => ObjectKind::Datatype,
        _ => ObjectKind::Map,
    }
}

/// The identity as links hold it: the low 64 bits, then the high ones, both little-endian.
pub const fn token(id: ObjectId) -> [u8; TOKEN_BYTES] {
    id.0.to_le_bytes()
}

/// The identity that [`token`] has made these bytes of.
pub const fn from_token(token: [u8; TOKEN_BYTES]) -> ObjectId {
    ObjectId(u128::from_le_bytes(token))
}

/// The two bits of a kind.
pub(super) const fn kind_bits(kind: ObjectKind) -> u8 {
    match kind {
        ObjectKind::Group => 0,
        ObjectKind::Dataset => 1,
        ObjectKind::Datatype => 2,
        ObjectKind::Map => 3,
    }
}

/// The high 64 bits without those of the kind: what DAOS has in them.
pub(super) const fn daos_bits(id: ObjectId) -> u64 {
    (id.0 >> 64) as u64 & !(0b11 << 30)
}

/// An identity from its three parts. The bits of the kind in `class` are passed over.
pub(super) const fn from_parts(kind: u8, index: u64, class: u64) -> ObjectId {
    let high = (class & !(0b11 << 30)) | ((kind as u64 & 0b11) << 30);
    ObjectId((high as u128) << 64 | index as u128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_in_bits_31_and_30_of_the_second_32_bit_word() {
        let kinds = [ObjectKind::Group, ObjectKind::Dataset, ObjectKind::Datatype, ObjectKind::Map];
        for (bits, expected) in kinds.into_iter().enumerate() {
            let id = new(expected, 7);
            assert_eq!(id.0, (bits as u128) << 94 | 7);
            assert_eq!((kind(id), index(id)), (expected, 7));
            assert_eq!(from_token(token(id)), id);
            assert_eq!(from_parts(kind_bits(expected), 7, daos_bits(id)), id);
        }
    }

    #[test]
    fn a_token_has_the_low_half_first() {
        let id = new(ObjectKind::Dataset, 0x0102_0304_0506_0708);
        assert_eq!(token(id), [8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0x40, 0, 0, 0, 0]);
    }
}
