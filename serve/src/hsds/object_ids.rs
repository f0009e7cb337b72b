//! Identities of objects as HSDS has them: `g-b03b24ef-69f244b6-acd9-4df97b-37122a`.
//!
//! They follow from the file and from the identity of the object in it, so nothing has to be kept, and they are the same
//! after a restart. The first half is that of the file: its name, and which file of the system it is. So an identity of a
//! file that was replaced leads nowhere. The second half is the object's, and that of the root group is the first half with
//! each digit plus 8, by which clients recognise it. A domain in the schema of HSDS has such identities itself, and keeps them.

use h5live::model::{ObjectId, ObjectKind};
use h5live::{File, Object};
use twox_hash::XxHash3_64;

use super::faults::bad_request;
use crate::fault::Fault;

/// Adds 8 modulo 16 to each digit.
const ROTATION: u64 = 0x8888_8888_8888_8888;
/// The stores whose objects have such identities themselves: their second halves are in the lower 64 bits of an [`ObjectId`].
const HSDS_CONNECTOR: &str = "hsds";
/// Digits of the parts of an identity.
const GROUPS: [usize; 5] = [8, 8, 4, 6, 6];
/// The same of an older schema, which no object has here.
const OLD_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
/// Hexadecimal digits of each half.
const HALF_DIGITS: usize = 16;

/// The kind of an object that HSDS knows.
pub(super) fn kind_of(object: &Object) -> ObjectKind {
    match object {
        Object::Group(_) => ObjectKind::Group,
        Object::Dataset(_) => ObjectKind::Dataset,
        Object::Datatype(_) => ObjectKind::Datatype,
        _ => ObjectKind::Map,
    }
}

/// The identities of a file.
#[derive(Debug, Clone)]
pub(super) struct ObjectIds {
    half: u64,
    root: ObjectId,
}

/// An identity that a client has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClientId {
    pub kind: ObjectKind,
    half: u64,
    low: u64,
}

fn letter(kind: ObjectKind) -> Option<char> {
    match kind {
        ObjectKind::Group => Some('g'),
        ObjectKind::Dataset => Some('d'),
        ObjectKind::Datatype => Some('t'),
        ObjectKind::Map => None,
    }
}

/// The collection of objects of a kind.
pub(super) fn collection_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Group => "groups",
        ObjectKind::Dataset => "datasets",
        ObjectKind::Datatype | ObjectKind::Map => "datatypes",
    }
}

impl ClientId {
    /// # Errors
    /// If a text is none.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let unknown = || bad_request(format!("Invalid id: {text}"));
        let bare = text.rsplit('/').next().unwrap_or(text);
        let (class, digits) = bare.split_once('-').ok_or_else(unknown)?;
        let kind = match class {
            "g" => ObjectKind::Group,
            "d" => ObjectKind::Dataset,
            "t" => ObjectKind::Datatype,
            _ => return Err(unknown()),
        };
        let is_form = digits.split('-').map(str::len).eq(GROUPS);
        if digits.split('-').map(str::len).eq(OLD_GROUPS) {
            return Err(super::faults::not_found(format!("There is no object {text}")));
        }
        let hex: String = digits.chars().filter(|c| *c != '-').collect();
        if !is_form || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(unknown());
        }
        let (half, low) = hex.split_at(HALF_DIGITS);
        let number = |digits| u64::from_str_radix(digits, 16).map_err(|_| unknown());
        Ok(ClientId { kind, half: number(half)?, low: number(low)? })
    }
}

impl ObjectIds {
    /// The identities of a file that clients call so, and that the system knows by these numbers.
    pub fn new(name: &str, device_and_inode: (u64, u64), file: &File) -> Self {
        let root = file.root().id();
        if file.session().connector == HSDS_CONNECTOR {
            return ObjectIds { half: root.0 as u64 ^ ROTATION, root };
        }
        let mut text = name.as_bytes().to_vec();
        text.extend(device_and_inode.0.to_le_bytes());
        text.extend(device_and_inode.1.to_le_bytes());
        ObjectIds { half: XxHash3_64::oneshot(&text), root }
    }

    /// The root group.
    pub fn format_root_id(&self) -> String {
        self.format_id(ObjectKind::Group, self.root).unwrap_or_default()
    }

    /// An object of the file; `None` for a map, which HSDS does not know.
    pub fn format_id(&self, kind: ObjectKind, id: ObjectId) -> Option<String> {
        let low = (id.0 as u64) ^ self.key();
        let tail = format!("{low:016x}");
        let (a, b) = tail.split_at(4);
        let (b, c) = b.split_at(6);
        Some(format!("{}-{:08x}-{:08x}-{a}-{b}-{c}", letter(kind)?, self.half >> 32, self.half & 0xffff_ffff))
    }

    /// The identity of an object.
    pub fn format_id_of(&self, object: &Object) -> Option<String> {
        let kind = match object {
            Object::Group(_) => ObjectKind::Group,
            Object::Dataset(_) => ObjectKind::Dataset,
            Object::Datatype(_) => ObjectKind::Datatype,
            _ => return None,
        };
        self.format_id(kind, object.id())
    }

    /// An object as references have it: its collection and its identity.
    pub fn reference_to(&self, object: &Object) -> Option<String> {
        let kind = kind_of(object);
        self.format_id_of(object).map(|id| format!("{}/{id}", collection_name(kind)))
    }

    /// With this, identities in the file become second halves, and back.
    fn key(&self) -> u64 {
        self.root.0 as u64 ^ self.half ^ ROTATION
    }

    /// The identities in the file that a client may mean. Stores that say the kind of an object in its identity do so above
    /// the lower 64 bits: native files not at all, key-value stores from bit 94 on, and object stores from bit 64 on.
    pub fn candidates(&self, of: ClientId) -> Vec<ObjectId> {
        if of.half != self.half {
            return Vec::new();
        }
        let low = u128::from(of.low ^ self.key());
        let above: &[u128] = match of.kind {
            ObjectKind::Group => &[0, 1],
            ObjectKind::Dataset => &[0, 1 << 30, 2],
            ObjectKind::Datatype | ObjectKind::Map => &[0, 2 << 30, 3],
        };
        above.iter().map(|above| ObjectId(above << 64 | low)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_come_back() {
        let file = File::in_memory();
        let ids = ObjectIds::new("/a.h5", (1, 2), &file);
        let root = ClientId::parse(&ids.format_root_id()).unwrap();
        assert_eq!(root.low, root.half ^ ROTATION);
        assert!(ids.candidates(root).contains(&file.root().id()));
        for (kind, id) in [
            (ObjectKind::Dataset, ObjectId(800)),
            (ObjectKind::Dataset, ObjectId(2 << 64 | 7)),
            (ObjectKind::Datatype, ObjectId(2 << 94 | 7)),
        ] {
            let text = ids.format_id(kind, id).unwrap();
            let again = ClientId::parse(&text).unwrap();
            assert!(again.kind == kind && ids.candidates(again).contains(&id), "{text}");
        }
        let other = ObjectIds::new("/a.h5", (1, 3), &file);
        assert!(other.candidates(root).is_empty());
        for bad in ["", "g-", "x-b03b24ef-69f244b6-acd9-4df97b-37122a", "g-b03b24ef-69f244b6-acd9-4df97b-37122", "g-é"]
        {
            assert!(ClientId::parse(bad).is_err(), "{bad}");
        }
    }
}
