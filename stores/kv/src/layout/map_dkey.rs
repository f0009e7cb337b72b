//! The dkey of a key of a map.

use std::borrow::Cow;

use h5live_model::{Datatype, MapKey, MapKeyBuf, VarLenKind};

/// The empty string: the NUL of a C string.
const EMPTY_TEXT: &[u8] = &[0];
/// The null string.
const NULL_TEXT: &[u8] = &[0, 0];

/// The dkey of a key of a map: its bytes, one NUL for the empty string, two NULs for the null string.
pub fn map_dkey(key: MapKey<'_>) -> Cow<'_, [u8]> {
    match key {
        MapKey::Null => NULL_TEXT.into(),
        MapKey::Bytes([]) => EMPTY_TEXT.into(),
        MapKey::Bytes(bytes) => bytes.into(),
    }
}

/// The key of a dkey, in a map with keys of this type. A text that is one NUL, or two, is taken for the empty string or
/// the null string: C programs have no such texts.
pub fn map_key_of_dkey(key_type: &Datatype, dkey: &[u8]) -> MapKeyBuf {
    let is_text = matches!(key_type, Datatype::VarLen(t) if t.kind != VarLenKind::Sequence);
    match dkey {
        NULL_TEXT if is_text => MapKeyBuf::Null,
        EMPTY_TEXT if is_text => MapKeyBuf::Bytes(Vec::new()),
        bytes => MapKeyBuf::Bytes(bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use h5live_model::{StringPadding, VarLenType};

    use super::*;

    #[test]
    fn the_empty_string_and_null_have_dkeys_of_their_own() {
        let (padding, character_set) = (StringPadding::NullTerminated, Default::default());
        let kind = VarLenKind::String { padding, character_set };
        let text = Datatype::VarLen(VarLenType { kind, ..VarLenType::default() });
        let number = Datatype::default();
        for (key, dkey) in
            [(MapKey::Null, &[0, 0][..]), (MapKey::Bytes(b""), &[0]), (MapKey::Bytes(b"Alice"), b"Alice")]
        {
            assert_eq!(map_dkey(key), dkey);
            assert_eq!(map_key_of_dkey(&text, dkey), key.to_buf());
            assert_eq!(map_key_of_dkey(&number, dkey), MapKeyBuf::Bytes(dkey.to_vec()));
        }
    }
}
