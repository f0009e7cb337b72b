//! Identities of objects, and the keys under which they are kept (schema 2).
//!
//! An identity is a class and 32 hexadecimal digits: `g-b03b24ef-69f244b6-acd9-4df97b-37122a`. All objects of a domain
//! share the first 16 digits. Those of the root group are these 16, and again these, each plus 8 modulo 16.
//!
//! Source: "Object Storage Schema for HDF5", "UUID", "Domain key", "Group key", "Dataset key", "Chunk key".

use std::fmt;

use h5live_model::{ChunkCoord, ObjectId, ObjectKind};

use super::error::{LayoutError, Result};
use super::shard_id::{LinksOrAttributes, ShardId, generation_text, parse_generation};

/// Hexadecimal digits of each half of an identity.
const HALF_DIGITS: usize = 16;
/// The lengths of the groups of digits, in schema 2 and in schema 1.
const SCHEMA_2_GROUPS: [usize; 5] = [8, 8, 4, 6, 6];
const SCHEMA_1_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
/// The class of an object, in the upper half of an [`ObjectId`].
const CLASS_SHIFT: u32 = 64;
/// Adds 8 modulo 16 to each digit.
const ROTATION: u64 = 0x8888_8888_8888_8888;

/// By these, the indices of a chunk give its partition, dimension by dimension (HSDS 1.0.2, `PRIMES`).
const PARTITION_PRIMES: [u8; 10] = [29, 31, 37, 41, 43, 47, 53, 59, 61, 67];

/// The name of the object that describes a domain or a folder.
pub const DOMAIN_FILE: &str = ".domain.json";
/// Summaries that a service writes, and that are stale after an edit.
pub const SUMMARY_FILES: [&str; 2] = [".summary.json", INFO_FILE];
/// The summary that the service reads.
pub const INFO_FILE: &str = ".info.json";

/// What all identities of a domain have in common: their first 16 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DomainId(pub u64);

fn class_letter(kind: ObjectKind) -> Option<char> {
    match kind {
        ObjectKind::Group => Some('g'),
        ObjectKind::Dataset => Some('d'),
        ObjectKind::Datatype => Some('t'),
        ObjectKind::Map => None,
    }
}

/// The kind of an object; `None` if it is none of this schema.
pub fn kind(id: ObjectId) -> Option<ObjectKind> {
    match id.0 >> CLASS_SHIFT {
        1 => Some(ObjectKind::Group),
        2 => Some(ObjectKind::Dataset),
        3 => Some(ObjectKind::Datatype),
        _ => None,
    }
}

/// The identity of an object of this kind with these last 16 digits.
pub fn object_id(kind: ObjectKind, low: u64) -> ObjectId {
    let class: u128 = match kind {
        ObjectKind::Group => 1,
        ObjectKind::Dataset => 2,
        ObjectKind::Datatype | ObjectKind::Map => 3,
    };
    ObjectId((class << CLASS_SHIFT) | u128::from(low))
}

/// The last 16 digits of an identity.
fn low(id: ObjectId) -> u64 {
    id.0 as u64
}

impl fmt::Display for DomainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{:08x}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

impl DomainId {
    /// The root group.
    pub fn root(self) -> ObjectId {
        object_id(ObjectKind::Group, self.0 ^ ROTATION)
    }

    /// The identity as text.
    pub fn object_id_text(self, id: ObjectId) -> String {
        let class = kind(id).and_then(class_letter).unwrap_or('x');
        format!("{class}-{self}-{}", low_text(id))
    }

    /// The identity that a text is, with the domain to which it belongs. A collection may stand before it:
    /// `datasets/d-..`.
    ///
    /// # Errors
    /// [`LayoutError::InvalidId`], [`LayoutError::Schema1Id`].
    pub fn parse_object_id(text: &str) -> Result<(DomainId, ObjectId)> {
        let unknown = || LayoutError::InvalidId(text.chars().take(64).collect());
        let bare = text.rsplit('/').next().unwrap_or(text);
        let (class, digits) = bare.split_once('-').ok_or_else(unknown)?;
        let kind = match class {
            "g" => ObjectKind::Group,
            "d" => ObjectKind::Dataset,
            "t" => ObjectKind::Datatype,
            _ => return Err(unknown()),
        };
        let groups: Vec<usize> = digits.split('-').map(str::len).collect();
        if groups == SCHEMA_1_GROUPS {
            return Err(LayoutError::Schema1Id(bare.to_owned()));
        }
        let hex: String = digits.chars().filter(|c| *c != '-').collect();
        let is_hex = hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        match hex.split_at_checked(HALF_DIGITS) {
            Some((high, low)) if groups == SCHEMA_2_GROUPS && is_hex => {
                let number = |digits| u64::from_str_radix(digits, 16).map_err(|_| unknown());
                Ok((DomainId(number(high)?), object_id(kind, number(low)?)))
            }
            _ => Err(unknown()),
        }
    }

    /// The identity that a text is, of an object of this domain.
    ///
    /// # Errors
    /// As [`DomainId::parse_object_id`]; [`LayoutError::InvalidId`] for one of another domain.
    pub fn parse_own_object_id(self, text: &str) -> Result<ObjectId> {
        match DomainId::parse_object_id(text)? {
            (domain, id) if domain == self => Ok(id),
            _ => Err(LayoutError::InvalidId(text.to_owned())),
        }
    }

    /// What the keys of all objects of the domain begin with, without a slash at the end.
    pub fn key_prefix_without_slash(self) -> String {
        format!("db/{self}")
    }

    /// The key of an object.
    pub fn document_key(self, id: ObjectId) -> String {
        match kind(id) {
            _ if id == self.root() => format!("db/{self}/.group.json"),
            Some(ObjectKind::Dataset) => format!("db/{self}/d/{}/.dataset.json", low_text(id)),
            Some(ObjectKind::Datatype) => format!("db/{self}/t/{}/.datatype.json", low_text(id)),
            _ => format!("db/{self}/g/{}/.group.json", low_text(id)),
        }
    }

    /// What the keys of the shards of an object begin with, with a slash at the end. Those of the chunks of a dataset begin
    /// with the same.
    pub fn object_key_prefix(self, id: ObjectId) -> String {
        let key = self.document_key(id);
        key.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"))
    }

    /// The key of a shard of the links, or the attributes, of an object.
    pub fn shard_key(self, id: ObjectId, shard: ShardId) -> String {
        let ShardId { class, number, version_id: generation } = shard;
        format!("{}{}/{number}-{}.json", self.object_key_prefix(id), class.folder(), generation_text(generation))
    }

    /// The shard that has this key, and its object.
    pub fn shard_of_key(self, key: &str) -> Option<(ObjectId, ShardId)> {
        let (folder, name) = key.rsplit_once('/')?;
        let (folder, class) = folder.rsplit_once('/')?;
        let class = LinksOrAttributes::BOTH.into_iter().find(|known| known.folder() == class)?;
        let (number, generation) = name.strip_suffix(".json")?.split_once('-')?;
        let shard = ShardId { class, number: number.parse().ok()?, version_id: parse_generation(generation)? };
        let files = [".group.json", ".dataset.json", ".datatype.json"];
        let id = files.iter().find_map(|file| self.object_of_document_key(&format!("{folder}/{file}")))?;
        Some((id, shard)).filter(|(id, shard)| self.shard_key(*id, *shard) == key)
    }

    /// What the keys of the chunks of a dataset begin with, with a slash at the end.
    pub fn chunk_key_prefix(self, id: ObjectId) -> String {
        format!("db/{self}/d/{}/", low_text(id))
    }

    /// The key of a chunk. `partition_count` is the number of folders over which the chunks of the dataset are spread; fewer than
    /// two are none. The chunk of a scalar is `0`.
    pub fn chunk_key(self, id: ObjectId, coord: &ChunkCoord, partition_count: u64) -> String {
        let indices: Vec<String> = match coord.scaled() {
            [] => vec!["0".to_owned()],
            indices => indices.iter().map(u64::to_string).collect(),
        };
        let folder = self.chunk_key_prefix(id);
        match partition_count {
            0 | 1 => format!("{folder}{}", indices.join("_")),
            _ => format!("{folder}p{}/{}", partition(coord, partition_count), indices.join("_")),
        }
    }

    /// The object whose description has this key.
    pub fn object_of_document_key(self, key: &str) -> Option<ObjectId> {
        let rest = key.strip_prefix(&format!("db/{self}/"))?;
        if rest == ".group.json" {
            return Some(self.root());
        }
        let mut parts = rest.split('/');
        let (class, digits, file) = (parts.next()?, parts.next()?, parts.next()?);
        let kind = match (class, file) {
            ("g", ".group.json") => ObjectKind::Group,
            ("d", ".dataset.json") => ObjectKind::Dataset,
            ("t", ".datatype.json") => ObjectKind::Datatype,
            _ => return None,
        };
        let hex: String = digits.chars().filter(|c| *c != '-').collect();
        let low = u64::from_str_radix(&hex, 16).ok().filter(|_| hex.len() == HALF_DIGITS)?;
        Some(object_id(kind, low)).filter(|_| parts.next().is_none())
    }
}

/// The folder in which the service keeps a chunk, of so many.
fn partition(coord: &ChunkCoord, partitions: u64) -> u64 {
    let terms = coord.scaled().iter().zip(PARTITION_PRIMES.iter().cycle());
    let sum: u128 = terms.map(|(index, prime)| u128::from(*index) * u128::from(*prime)).sum();
    (sum % u128::from(partitions)) as u64
}

/// The coordinate of the chunk whose key ends with `key_suffix` behind the folder of its dataset, of so many dimensions. It may lie
/// in the folder of a partition.
pub fn chunk_of_key_suffix(key_suffix: &str, rank: usize) -> Option<ChunkCoord> {
    let Some((folder, name)) = key_suffix.split_once('/') else { return chunk_of_name(key_suffix, rank) };
    let digits = folder.strip_prefix('p')?;
    let is_partition = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    chunk_of_name(name, rank).filter(|_| is_partition)
}

/// The coordinate that the name of a chunk is, of a dataset of so many dimensions.
pub fn chunk_of_name(name: &str, rank: usize) -> Option<ChunkCoord> {
    let indices: Option<Vec<u64>> = name.split('_').map(|index| index.parse().ok()).collect();
    match (indices?.as_slice(), rank) {
        ([0], 0) => Some(ChunkCoord::origin(0)),
        (indices, rank) if indices.len() == rank => Some(ChunkCoord::new(indices)),
        _ => None,
    }
}

fn low_text(id: ObjectId) -> String {
    let low = low(id);
    format!("{:04x}-{:06x}-{:06x}", low >> 48, (low >> 24) & 0xff_ffff, low & 0xff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOMAIN: DomainId = DomainId(0xb03b_24ef_69f2_44b6);

    #[test]
    fn shards_are_known_by_their_keys() {
        let group = object_id(ObjectKind::Group, 5);
        for id in [DOMAIN.root(), group, object_id(ObjectKind::Dataset, 6), object_id(ObjectKind::Datatype, 7)] {
            for class in LinksOrAttributes::BOTH {
                let shard = ShardId { class, number: 12, version_id: 0xabc };
                assert_eq!(DOMAIN.shard_of_key(&DOMAIN.shard_key(id, shard)), Some((id, shard)));
            }
        }
        let folder = DOMAIN.object_key_prefix(group);
        assert_eq!(folder, "db/b03b24ef-69f244b6/g/0000-000000-000005/");
        let good = "1-0000000000000abc.json";
        assert!(DOMAIN.shard_of_key(&format!("{folder}.h5live.links/{good}")).is_some());
        for other in [format!(".h5live.other/{good}"), ".h5live.links/01-0000000000000abc.json".to_owned()] {
            assert_eq!(DOMAIN.shard_of_key(&format!("{folder}{other}")), None);
        }
    }

    #[test]
    fn identities_are_those_of_the_document() {
        let id = object_id(ObjectKind::Group, 0xacd9_4df9_7b37_122a);
        assert_eq!(DOMAIN.object_id_text(id), "g-b03b24ef-69f244b6-acd9-4df97b-37122a");
        assert_eq!(DOMAIN.object_id_text(DOMAIN.root()), "g-b03b24ef-69f244b6-38b3-ac67e1-7acc3e");
        for text in ["g-b03b24ef-69f244b6-acd9-4df97b-37122a", "groups/g-b03b24ef-69f244b6-acd9-4df97b-37122a"] {
            assert_eq!(DomainId::parse_object_id(text).unwrap(), (DOMAIN, id));
        }
        assert!(DOMAIN.parse_own_object_id("d-b03b24ef-69f244b7-56e5-25125a-89ca79").is_err(), "another domain");
    }

    #[test]
    fn what_is_no_identity_of_schema_2_is_refused() {
        let first = DomainId::parse_object_id("g-0568d8c5-a77e-11e4-9f7a-3c15c2da029e");
        assert!(matches!(first, Err(LayoutError::Schema1Id(_))), "{first:?}");
        for text in ["", "g", "x-b03b24ef-69f244b6-acd9-4df97b-37122a", "g-b03b24ef-69f244b6-acd9-4df97b-37122", "g-+"]
        {
            assert!(matches!(DomainId::parse_object_id(text), Err(LayoutError::InvalidId(_))), "{text}");
        }
    }

    #[test]
    fn keys_are_those_that_the_service_uses() {
        let id = |kind| object_id(kind, 0xacd9_4df9_7b37_122a);
        let keys = [
            (DOMAIN.root(), "db/b03b24ef-69f244b6/.group.json"),
            (id(ObjectKind::Group), "db/b03b24ef-69f244b6/g/acd9-4df97b-37122a/.group.json"),
            (id(ObjectKind::Dataset), "db/b03b24ef-69f244b6/d/acd9-4df97b-37122a/.dataset.json"),
            (id(ObjectKind::Datatype), "db/b03b24ef-69f244b6/t/acd9-4df97b-37122a/.datatype.json"),
        ];
        for (id, key) in keys {
            assert_eq!(DOMAIN.document_key(id), key);
            assert_eq!(DOMAIN.object_of_document_key(key), Some(id));
        }
        let chunk_of =
            |at: &[u64], partitions| DOMAIN.chunk_key(id(ObjectKind::Dataset), &ChunkCoord::new(at), partitions);
        let chunk = |at: &[u64]| chunk_of(at, 0);
        assert_eq!(chunk_of(&[1, 30], 1), chunk(&[1, 30]));
        // 29 and 30 times 31, modulo 7.
        assert_eq!(chunk_of(&[1, 30], 7), "db/b03b24ef-69f244b6/d/acd9-4df97b-37122a/p0/1_30");
        assert_eq!(chunk_of(&[2, 30], 7), "db/b03b24ef-69f244b6/d/acd9-4df97b-37122a/p1/2_30");
        assert!(chunk_of(&[u64::MAX; 12], u64::MAX).contains("/p0/"));
        assert_eq!(chunk(&[1, 30]), "db/b03b24ef-69f244b6/d/acd9-4df97b-37122a/1_30");
        assert_eq!(chunk(&[]), "db/b03b24ef-69f244b6/d/acd9-4df97b-37122a/0");
        assert_eq!(DOMAIN.object_of_document_key(&chunk(&[1])), None);
        assert_eq!(chunk_of_key_suffix("p12/1_30", 2), Some(ChunkCoord::new(&[1, 30])));
        assert_eq!(chunk_of_key_suffix("1_30", 2), Some(ChunkCoord::new(&[1, 30])));
        for rest in ["p/1_30", "q1/1_30", "p1/2/3", "p1x/1_30", "p1/", "/1_30"] {
            assert_eq!(chunk_of_key_suffix(rest, 2), None, "{rest}");
        }
        assert_eq!(chunk_of_name("1_30", 2), Some(ChunkCoord::new(&[1, 30])));
        assert_eq!(chunk_of_name("0", 0), Some(ChunkCoord::origin(0)));
        for (name, rank) in [("1", 0), ("1_2", 1), (".dataset.json", 1), ("", 1), ("1_x", 2)] {
            assert_eq!(chunk_of_name(name, rank), None, "{name}");
        }
    }
}
