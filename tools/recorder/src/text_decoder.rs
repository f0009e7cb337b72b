//! Text in UTF-8, whatever Unicode encoding it comes in.

use std::io::{self, ErrorKind, Read};

/// Most bytes of UTF-16 that are taken from the source at once.
const BLOCK_BYTES: usize = 64 << 10;
/// The mark at the start of a text, in UTF-8.
const UTF8_MARK: [u8; 3] = *b"\xEF\xBB\xBF";

/// How a text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextEncoding {
    /// The first bytes have to tell it.
    Unknown,
    /// UTF-8, or another encoding in which lines end with one byte: handed on as it is.
    Bytes,
    /// UTF-16, little-endian: the "Unicode" of spreadsheets and of redirections in PowerShell.
    Utf16Le,
    /// UTF-16, big-endian.
    Utf16Be,
}

/// Reads a text. UTF-16 with a byte order mark is decoded, and the mark of UTF-8 is left out.
#[derive(Debug)]
pub struct TextDecoder<R> {
    source: R,
    encoding: TextEncoding,
    /// Bytes that are no whole character yet.
    pending: Vec<u8>,
    /// Decoded bytes, of which those before `at` were used.
    ready: Vec<u8>,
    at: usize,
}

impl<R: Read> TextDecoder<R> {
    /// Nothing was read yet.
    pub fn new(source: R) -> Self {
        TextDecoder { source, encoding: TextEncoding::Unknown, pending: Vec::new(), ready: Vec::new(), at: 0 }
    }

    /// Reads until it is clear how the text is encoded: no more than its first bytes if they are no part of a mark.
    fn find_encoding(&mut self) -> io::Result<()> {
        while self.encoding == TextEncoding::Unknown {
            let has_ended = !self.take_block()?;
            let mark = match &*self.pending {
                [0xFF, 0xFE, 0, 0, ..] => return Err(invalid("the input is UTF-32; convert it to UTF-8 first")),
                // Four bytes tell it from UTF-32.
                [0xFF, 0xFE, _, _, ..] => Some((TextEncoding::Utf16Le, 2)),
                [0xFF, 0xFE, ..] if has_ended => Some((TextEncoding::Utf16Le, 2)),
                [0xFE, 0xFF, ..] => Some((TextEncoding::Utf16Be, 2)),
                start if start.starts_with(&UTF8_MARK) => Some((TextEncoding::Bytes, UTF8_MARK.len())),
                [0xFF] | [0xFF, 0xFE, ..] | [0xFE] if !has_ended => None,
                start if UTF8_MARK.starts_with(start) && !has_ended => None,
                _ => Some((TextEncoding::Bytes, 0)),
            };
            if let Some((encoding, mark_bytes)) = mark {
                self.encoding = encoding;
                self.pending.drain(..mark_bytes);
            }
        }
        if self.encoding == TextEncoding::Bytes {
            self.ready = std::mem::take(&mut self.pending);
        }
        self.decode()
    }

    /// Takes more bytes from the source; whether there were any.
    fn take_block(&mut self) -> io::Result<bool> {
        let before = self.pending.len();
        self.pending.resize(before + BLOCK_BYTES, 0);
        let read = self.source.read(&mut self.pending[before..]);
        self.pending.truncate(before + read.as_ref().map_or(0, |bytes| *bytes));
        read.map(|bytes| bytes > 0)
    }

    /// Decodes all whole characters of UTF-16 that are there.
    fn decode(&mut self) -> io::Result<()> {
        let unit = match self.encoding {
            TextEncoding::Utf16Le => u16::from_le_bytes,
            TextEncoding::Utf16Be => u16::from_be_bytes,
            TextEncoding::Unknown | TextEncoding::Bytes => return Ok(()),
        };
        let mut units: Vec<u16> = self.pending.as_chunks().0.iter().map(|bytes| unit(*bytes)).collect();
        // The second half of a pair may come later.
        units.pop_if(|last| (0xD800..0xDC00).contains(last));
        self.pending.drain(..2 * units.len());
        let decoded: Result<String, _> = char::decode_utf16(units).collect();
        self.ready = decoded.map_err(|error| invalid(&format!("the input is not valid UTF-16: {error}")))?.into_bytes();
        self.at = 0;
        Ok(())
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}

impl<R: Read> Read for TextDecoder<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.encoding == TextEncoding::Unknown {
            self.find_encoding()?;
        }
        while self.at == self.ready.len() {
            if self.encoding == TextEncoding::Bytes {
                return self.source.read(to);
            }
            if !self.take_block()? {
                let is_whole = self.pending.is_empty();
                return if is_whole { Ok(0) } else { Err(invalid("the input ends within a character of UTF-16")) };
            }
            self.decode()?;
        }
        let bytes = (&self.ready[self.at..]).read(to)?;
        self.at += bytes;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that yields as many bytes at once as is said.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(to.len());
            self.0.read(&mut to[..most])
        }
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let read = |piece| {
            let mut text = Vec::new();
            let ended = TextDecoder::new(Pieces(bytes, piece)).read_to_end(&mut text);
            ended.map(|_| text).map_err(|error| error.to_string())
        };
        let whole = read(usize::MAX);
        for piece in 1..5 {
            assert_eq!(read(piece), whole, "{bytes:?} in pieces of {piece}");
        }
        whole
    }

    fn encoded(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn utf_16_with_a_mark_is_decoded() {
        let text = "Größe;m\r\n\u{1F600};2,5\n";
        for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let long = text.repeat(BLOCK_BYTES / 16);
            assert_eq!(decoded(&encoded(&format!("\u{FEFF}{text}"), to_bytes)), Ok(text.into()));
            assert_eq!(decoded(&encoded(&format!("\u{FEFF}{long}"), to_bytes)), Ok(long.into()));
            assert_eq!(decoded(&encoded("\u{FEFF}", to_bytes)), Ok(Vec::new()));
        }
    }

    #[test]
    fn other_texts_are_handed_on_as_they_are_without_the_mark_of_utf_8() {
        assert_eq!(decoded("\u{FEFF}aü\u{FEFF}".as_bytes()), Ok("aü\u{FEFF}".into()));
        for bytes in
            [&b""[..], b"a", b"\xEF", b"\xEF\xBB", b"\xEFabc", b"\xFF", b"\xFFabc", b"\xFE", b"\xFEa", b"a\xFF\xFE"]
        {
            assert_eq!(decoded(bytes), Ok(bytes.to_vec()));
        }
    }

    #[test]
    fn what_is_no_utf_16_is_an_error() {
        for (bytes, error) in [
            (&b"\xFF\xFEa\0b"[..], "the input ends within a character of UTF-16"),
            (b"\xFF\xFEa\0\x3D\xD8", "the input ends within a character of UTF-16"),
            (b"\xFF\xFE\x00\xDCa\0", "the input is not valid UTF-16: unpaired surrogate found: dc00"),
            (b"\xFF\xFE\0\0a\0\0\0", "the input is UTF-32; convert it to UTF-8 first"),
        ] {
            assert_eq!(decoded(bytes).unwrap_err(), error);
        }
    }
}
