//! Names as lines of text: what would break a line or a terminal, and what is not UTF-8, is written as an escape.

/// A name in which control characters, `\\` and what is not UTF-8 are escapes: `\n`, `\t`, `\r`, `\\`, `\xff`.
pub fn escaped(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                '\\' => text.push_str("\\\\"),
                letter if letter.is_control() => {
                    let mut bytes = [0; 4];
                    letter.encode_utf8(&mut bytes).bytes().for_each(|byte| push_hex(&mut text, byte));
                }
                letter => text.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| push_hex(&mut text, *byte));
    }
    text
}

fn push_hex(text: &mut String, byte: u8) {
    text.push_str(&format!("\\x{byte:02x}"));
}

/// The name that an escaped one stands for; `None` if something in it is no escape.
pub fn unescaped(text: &str) -> Option<Vec<u8>> {
    let (mut name, mut rest) = (Vec::new(), text);
    while let Some((before, escape)) = rest.split_once('\\') {
        name.extend(before.as_bytes());
        let (byte, len) = match escape.as_bytes().first()? {
            b'n' => (b'\n', 1),
            b't' => (b'\t', 1),
            b'r' => (b'\r', 1),
            b'\\' => (b'\\', 1),
            b'x' => (u8::from_str_radix(escape.get(1..3)?, 16).ok()?, 3),
            _ => return None,
        };
        name.push(byte);
        rest = escape.get(len..)?;
    }
    name.extend(rest.as_bytes());
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_back_from_its_escapes() {
        for (name, text) in [
            (&b"a/b.txt"[..], "a/b.txt"),
            (b"a\nb\tc\rd", "a\\nb\\tc\\rd"),
            (b"c\x1b[31md", "c\\x1b[31md"),
            (b"e\xff", "e\\xff"),
            (b"back\\slash", "back\\\\slash"),
            ("\u{e4}\u{85}".as_bytes(), "\u{e4}\\xc2\\x85"),
        ] {
            assert_eq!(escaped(name), text);
            assert_eq!(unescaped(text).unwrap(), name);
        }
        for wrong in ["\\", "\\q", "\\x", "\\xg1", "\\x1", "\\x\u{e4}"] {
            assert_eq!(unescaped(wrong), None, "{wrong}");
        }
    }
}
