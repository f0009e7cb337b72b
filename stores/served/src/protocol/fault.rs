//! Kinds of errors, as a client tells them apart.

/// The kind of an error, in the header [`FAULT_HEADER`](super::FAULT_HEADER).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedErrorKind {
    /// Nothing that is served has the name.
    NoFile,
    /// The file that was opened is not at its place any more.
    Replaced,
    /// The identity leads to no object.
    NoObject,
    /// The object is of another kind.
    WrongKind,
    /// A writer lets nobody read the file.
    InUse,
    /// The server does not do this.
    Unsupported,
    /// It is no file that can be read.
    NotThisFormat,
    /// The elements lie in raw files, which are not served.
    RawFilesRefused,
}

impl ServedErrorKind {
    /// All kinds, with their words.
    const NAMED: [(ServedErrorKind, &'static str); 8] = [
        (ServedErrorKind::NoFile, "no-file"),
        (ServedErrorKind::Replaced, "replaced"),
        (ServedErrorKind::NoObject, "no-object"),
        (ServedErrorKind::WrongKind, "wrong-kind"),
        (ServedErrorKind::InUse, "in-use"),
        (ServedErrorKind::Unsupported, "unsupported"),
        (ServedErrorKind::NotThisFormat, "not-this-format"),
        (ServedErrorKind::RawFilesRefused, "raw-files"),
    ];

    /// The word in the header.
    pub fn header_word(self) -> &'static str {
        Self::NAMED.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    /// The kind of a word; `None` if it is none.
    pub fn from_header_word(word: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(_, known)| *known == word).map(|(kind, _)| *kind)
    }
}
