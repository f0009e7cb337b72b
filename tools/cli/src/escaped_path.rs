//! Paths on the command line, with the escapes that `ls` prints.

use h5live::{File, Object};

use crate::error::{Error, Result};

/// The object at a path, and the bytes of its path. Only if nothing has this name, its escapes are undone.
///
/// # Errors
/// If there is no such object.
pub fn object_at_maybe_escaped_path(file: &File, text: &str) -> Result<(Object, Vec<u8>)> {
    let error = match file.object(text) {
        Err(error) if error.is_not_found_in_file() => error,
        found => {
            let found = found?;
            let path = found.path().as_bytes().to_vec();
            return Ok((found, path));
        }
    };
    let Some(path) = unescape_if_escaped(text) else { return Err(error.into()) };
    match file.object_at_bytes(&path) {
        // It says what was asked for.
        Err(other) if other.is_not_found_in_file() => Err(error.into()),
        found => {
            let start: &[u8] = if path.starts_with(b"/") { b"" } else { b"/" };
            Ok((found?, [start, &path].concat()))
        }
    }
}

/// Refuses a path that a command would make, if it is the way in which `ls` prints that of an object that is there.
///
/// # Errors
/// [`Error::EscapedPathTaken`].
pub fn refuse_escaped_existing(file: &File, text: &str) -> Result<()> {
    match file.object(text) {
        Err(error) if error.is_not_found_in_file() => {}
        _ => return Ok(()),
    }
    match unescape_if_escaped(text).map(|path| file.object_at_bytes(&path)) {
        Some(Ok(_)) => Err(Error::EscapedPathTaken(text.to_owned())),
        _ => Ok(()),
    }
}

/// The path of a link, whether it leads to something or not. Only if nothing has this name, its escapes are undone; `None` if
/// nothing has that one either.
///
/// # Errors
/// If the group of the link cannot be read.
pub fn find_link_path(file: &File, text: &str) -> Result<Option<Vec<u8>>> {
    let written = Some(text.as_bytes().to_vec());
    for path in written.into_iter().chain(unescape_if_escaped(text)) {
        if is_link(file, &path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The path that a new link gets. The escapes of its group are undone if nothing has the name with them; those of its own name
/// are not.
///
/// # Errors
/// As [`find_link_path`].
pub fn new_link_path(file: &File, text: &str) -> Result<Vec<u8>> {
    let Some((group, name)) = text.rsplit_once('/').filter(|(group, _)| !group.is_empty()) else {
        return Ok(text.as_bytes().to_vec());
    };
    let group = find_link_path(file, group)?.unwrap_or_else(|| group.as_bytes().to_vec());
    Ok([&group, &b"/"[..], name.as_bytes()].concat())
}

fn is_link(file: &File, path: &[u8]) -> Result<bool> {
    let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    let Some((name, above)) = names.split_last() else { return Ok(false) };
    match file.object_at_bytes(&[b"/", &*above.join(&b'/')].concat()) {
        Ok(Object::Group(group)) => Ok(group.contains_bytes(name)?),
        Ok(_) => Ok(false),
        Err(error) if error.is_not_found_in_file() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The bytes that [`crate::model::escape`] shows so; `None` if there is nothing to undo, or something else behind a backslash.
pub fn unescape_if_escaped(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('\\');
    let mut out = parts.next()?.as_bytes().to_vec();
    let mut is_escaped = false;
    while let Some(part) = parts.next() {
        is_escaped = true;
        let (byte, rest) = match (part.as_bytes().first(), part.get(1..)) {
            // Two of them stand for one, and what follows is no escape.
            (None, _) => (b'\\', parts.next()?),
            (Some(b't'), Some(rest)) => (b'\t', rest),
            (Some(b'n'), Some(rest)) => (b'\n', rest),
            (Some(b'r'), Some(rest)) => (b'\r', rest),
            (Some(b'x'), _) => (hexadecimal(part.get(1..3)?)?, part.get(3..)?),
            _ => return None,
        };
        out.push(byte);
        out.extend_from_slice(rest.as_bytes());
    }
    is_escaped.then_some(out)
}

fn hexadecimal(digits: &str) -> Option<u8> {
    // A sign is no digit.
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u8::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::escape;

    #[test]
    fn what_is_escaped_comes_back() {
        let names: [&[u8]; 6] = [b"\xffa\xe2\x82b", b"a\\b", b"\\\\", b"\\x41", b"t\tn\nr\r\\", "ü\\ü".as_bytes()];
        for name in names {
            assert_eq!(unescape_if_escaped(&escape(name)).as_deref(), Some(name), "{}", escape(name));
        }
        for text in ["plain", "\\q", "\\x4", "\\xg0", "\\", "\\x+1"] {
            assert_eq!(unescape_if_escaped(text), None, "{text}");
        }
    }
}
