//! The description of a map.

use super::MapKey;
use crate::{Datatype, Error, Result, VarLenKind};

/// The description of a map: key-value pairs, each key once (HDF5 map objects).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct MapSpec {
    /// The type of the keys.
    pub key_type: Datatype,
    /// The type of the values.
    pub value_type: Datatype,
}

impl MapSpec {
    /// Refuses a description of a map that cannot be. Every store calls it before it makes a map.
    ///
    /// Keys may be of variable length themselves, but nothing inside of a key may. Keys contain no references.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<()> {
        let inner = match &self.key_type {
            Datatype::VarLen(key) => &*key.base,
            key => key,
        };
        match () {
            () if contains_reference(inner) => refuse("keys of a map contain no references"),
            () if inner.has_vlen() => refuse("nothing inside of a key of a map has a variable length"),
            () if inner.size() == 0 || self.value_type.size() == 0 => refuse("keys and values of a map have bytes"),
            () => Ok(()),
        }
    }

    /// Refuses what is not a key of such a map: bytes of another size, an empty sequence, a null key that is not a
    /// string of variable length, and such a string with a NUL in it. The empty string is a key.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check_key(&self, key: MapKey<'_>) -> Result<()> {
        match (&self.key_type, key) {
            (Datatype::VarLen(t), key) if t.kind != VarLenKind::Sequence => match key.bytes_or_empty().contains(&0) {
                false => Ok(()),
                // Programs that end texts with a NUL would read another key.
                true => refuse("a text with a NUL in it is no key of a map"),
            },
            (Datatype::VarLen(_), MapKey::Null | MapKey::Bytes([])) => refuse("an empty sequence is no key of a map"),
            (_, MapKey::Null) => refuse("only strings of variable length have a null key"),
            (datatype, MapKey::Bytes(bytes)) => check_size("a key", datatype, bytes),
        }
    }

    /// Refuses what is not a value of such a map: bytes of another size. A value of variable length may be empty.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check_value(&self, value: &[u8]) -> Result<()> {
        check_size("a value", &self.value_type, value)
    }
}

fn refuse(why: &str) -> Result<()> {
    Err(Error::Invalid(why.to_owned()))
}

fn check_size(what: &str, datatype: &Datatype, bytes: &[u8]) -> Result<()> {
    let (is_whole, wanted) = match datatype {
        Datatype::VarLen(t) => (bytes.len().is_multiple_of(t.base.size().max(1) as usize), &*t.base),
        other => (bytes.len() == other.size() as usize, other),
    };
    match is_whole {
        true => Ok(()),
        false => {
            let (found, size) = (bytes.len(), wanted.size());
            Err(Error::Invalid(format!("{what} of {found} bytes does not fit a type of {size} bytes")))
        }
    }
}

/// Whether elements hold references, at any depth.
fn contains_reference(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::Reference(_) => true,
        Datatype::Compound(t) => t.members.iter().any(|member| contains_reference(&member.datatype)),
        Datatype::Array(t) => contains_reference(&t.base),
        Datatype::VarLen(t) => contains_reference(&t.base),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ArrayType, ByteOrder, CharacterSet, CompoundMember, CompoundType, ReferenceType, Sign, StringPadding,
        VarLenType,
    };

    fn number() -> Datatype {
        Datatype::integer(4, ByteOrder::Little, Sign::Signed)
    }

    fn sequence(base: Datatype) -> Datatype {
        Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size: 16, base: Box::new(base) })
    }

    fn text() -> Datatype {
        let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
        Datatype::VarLen(VarLenType { kind, size: 16, base: Box::new(Datatype::default()) })
    }

    fn record(member: Datatype) -> Datatype {
        let members = vec![CompoundMember { name: "m".into(), offset: 0, datatype: member }];
        Datatype::Compound(CompoundType { size: 16, members })
    }

    fn spec(key: Datatype) -> MapSpec {
        MapSpec { key_type: key, value_type: number() }
    }

    #[test]
    fn refuses_keys_with_references_or_with_variable_length_inside() {
        let reference = Datatype::Reference(ReferenceType { size: 8, ..ReferenceType::default() });
        let array = |base| Datatype::Array(ArrayType { dims: vec![2], base: Box::new(base) });
        for fine in [number(), text(), sequence(number()), record(array(number())), sequence(record(number()))] {
            spec(fine).check().unwrap();
        }
        for bad in [
            reference.clone(),
            sequence(reference.clone()),
            record(array(reference)),
            sequence(text()),
            record(text()),
            array(sequence(number())),
        ] {
            assert!(matches!(spec(bad.clone()).check(), Err(Error::Invalid(_))), "{bad}");
            MapSpec { key_type: number(), value_type: bad }.check().unwrap();
        }
    }

    #[test]
    fn refuses_keys_and_values_of_another_size() {
        let numbers = spec(number());
        numbers.check_key(MapKey::Bytes(&[1, 2, 3, 4])).unwrap();
        assert!(numbers.check_key(MapKey::Bytes(&[1, 2, 3])).is_err());
        assert!(numbers.check_key(MapKey::Null).is_err());
        assert!(numbers.check_value(&[]).is_err());
        let texts = spec(text());
        for fine in [MapKey::Null, MapKey::Bytes(b""), MapKey::Bytes(b"a")] {
            texts.check_key(fine).unwrap();
        }
        assert!(texts.check_key(MapKey::Bytes(b"a\0b")).is_err());
        let lists = MapSpec { key_type: sequence(number()), value_type: sequence(number()) };
        lists.check_key(MapKey::Bytes(&[0; 8])).unwrap();
        for bad in [MapKey::Null, MapKey::Bytes(b""), MapKey::Bytes(&[0; 6])] {
            assert!(lists.check_key(bad).is_err(), "{bad:?}");
        }
        lists.check_value(&[]).unwrap();
        assert!(lists.check_value(&[0; 6]).is_err());
    }
}
